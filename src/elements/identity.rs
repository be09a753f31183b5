//! Buffers that have lost, behind an epochsrc, what says which sample they are, or where its boxes are.
//!
//! Identity travels with the buffer and is never derived by counting: a frame without its `epochfeed-sample` meta would get
//! another sample's label and gains, and the state behind it would be unknown.

use gst::prelude::*;

use super::faults;
use super::meta::SampleMeta;

/// Posts the error about `what`, which came to `pad` of `element` without a name.
pub(super) fn post_lost(element: &impl IsA<gst::Element>, pad: &gst::Pad, what: &str) {
    let between = names_between(pad);
    gst::element_error!(
        element,
        gst::StreamError::Format,
        ("{what} does not say which sample it is: an element behind epochsrc makes new buffers without the meta of \
             the old ones"),
        ["Leave it out. The elements in between: {}", between.join(", ")]
    );
}

/// Warns that the frame of `sample`, of `size`, came to `pad` of `element` without its boxes.
pub(super) fn warn_of_boxes(
    element: &impl IsA<gst::Element>,
    pad: &gst::Pad,
    sample: &SampleMeta,
    (width, height): (u32, u32),
) {
    let between = names_between(pad);
    gst::element_warning!(
        element,
        gst::StreamError::Format,
        (
            "Batches have no targets: {} came without the boxes of its {width}x{height} frame",
            faults::describe(sample)
        ),
        [
            "An element in between decodes or changes the geometry of frames: let epochdecode decode, turn and fit them. \
             The elements in between: {}",
            between.join(", ")
        ]
    );
}

/// The names of the elements upstream of `pad` that are not ours, in the order of the stream, as far as each has one input.
fn names_between(pad: &gst::Pad) -> Vec<String> {
    let mut names = Vec::new();
    let mut next = pad.peer();
    while let Some(element) = next.as_ref().and_then(gst::Pad::parent_element) {
        let ours = element
            .factory()
            .and_then(|factory| factory.plugin())
            .is_some_and(|plugin| plugin.plugin_name() == "epochfeed");
        if !ours {
            names.push(element.name().to_string());
        }
        next = element.sink_pads().first().and_then(|pad| pad.peer());
    }
    names.reverse();
    names
}
