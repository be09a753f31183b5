//! `nhwcpack`: gathers frames into one tensor a batch.

/**
 * SECTION:element-nhwcpack
 * @see_also: hsvquantize, epochsink
 *
 * Gathers `batch-size` frames of one size into a buffer of N×H×W×C (or N×C×H×W) values, C being R, G, B: restored to
 * 0..1, normalised by `mean` and `std` if asked for, in `dtype`. When hsvquantize precedes it and neither element
 * between them changes pixels, jitter, quantization, restore and layout are one pass over the pixels here.
 *
 * The caps are NNStreamer's: other/tensors with `dimensions` innermost first, and `layout`. bfloat16, which NNStreamer
 * does not know, is a value of our own. What is in the batch travels in the meta `epochfeed-batch`: indices, URIs,
 * gains, flags, and the state behind it, from which a run can resume. Where the dataset has boxes, so do its `targets`: M×6
 * little-endian float32 in a GBytes, one row a box: number of the sample in the batch, class, centre x, centre y, width and
 * height as fractions of the frame; and how each image came to lie in its frame, in the arrays `image-id`, `source-width`,
 * `source-height`, `scale-x`, `scale-y`, `pad-left` and `pad-top`. When an element in between has changed the geometry of
 * frames they are left out: with a warning, and counted in `stats`.
 *
 * The end of an epoch completes the last batch as `last-batch` says: smaller (`partial`, with caps of its own), left
 * out and counted (`drop`), or filled with the first samples of the epoch, flagged (`pad`).
 *
 * ## Where batches are made
 * `device` is `auto`, `cpu` or `cuda:N`; the bytes are the same everywhere. `auto` takes the GPU of the number LOCAL_RANK (of
 * torchrun; else the first one; the only one, where this process sees only one), or the CPU where that cannot be used: `path`,
 * `path-reason` and the element message `epochfeed-path` say which, and why. `cuda:N` is that GPU, or an error that says what is
 * missing.
 *
 * A GPU's batches are and stay in its memory, with the caps feature `memory:EpochfeedCUDA` where downstream takes it. Whoever
 * maps one for reading gets its bytes on the host, also without knowing the feature. The frames go over the bus once; `stats`
 * counts the copies, the launches, and the frames that had to be gathered on the CPU first, because they were not made in the
 * page-locked memory that this element offers upstream.
 *
 * ## Example pipeline
 * |[
 * gst-launch-1.0 epochsrc location=data/photos ! epochdecode ! hsvquantize ! nhwcpack batch-size=8 dtype=float16 last-batch=pad ! fakesink
 * ]| Batches of 8×640×640×3 float16 values.
 */
mod batch;
mod gpu;
mod imp;
mod settings;

use glib::prelude::*;

pub use settings::{Dtype, LastBatch, Layout};

glib::wrapper! {
    /// The element `nhwcpack`.
    pub struct NhwcPack(ObjectSubclass<imp::NhwcPack>) @extends gst::Element, gst::Object;
}

pub(super) fn register(plugin: Option<&gst::Plugin>) -> Result<(), glib::BoolError> {
    gst::Element::register(plugin, "nhwcpack", gst::Rank::NONE, NhwcPack::static_type())
}
