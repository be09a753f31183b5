//! What happens to a sample that cannot be used: the policy, its limit, and the replacement.

mod fault;
mod limit;
mod place;
mod resolver;

pub use fault::{Class, ClassError, Fault};
pub use limit::{Limit, LimitError};
pub use place::Place;
pub use resolver::{Outcome, Resolver};

use super::meta::SampleMeta;

/// What to do with a sample that cannot be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "EpochfeedOnError")]
pub enum OnError {
    /// Post an error that names the file, and stop.
    #[default]
    #[enum_value(name = "Fail: stop with an error that names the file", nick = "fail")]
    Fail,
    /// Leave the sample out, count and announce it.
    #[enum_value(name = "Skip: leave the sample out, count and announce it", nick = "skip")]
    Skip,
    /// Put the previous good sample (else the next) in its place, flagged.
    #[enum_value(
        name = "Replace: repeat the previous good sample (else the next), flagged",
        nick = "replace"
    )]
    Replace,
}

impl OnError {
    /// The policy in force for one of `world_size` ranks: ranks must stay equal, so that skip becomes replace.
    pub fn for_world(self, world_size: u32) -> Self {
        match self {
            Self::Skip if world_size > 1 => Self::Replace,
            policy => policy,
        }
    }

    /// The property's value.
    pub fn nick(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Skip => "skip",
            Self::Replace => "replace",
        }
    }
}

/// Said once where [`OnError::for_world`] changes the policy.
pub const SKIP_IS_REPLACE: &str =
    "With several ranks on-error=skip acts as replace, so that they stay equally long";

/// What to do about an epoch of which no sample can be used.
pub const UNUSABLE: &str =
    "Repair the files or correct the location; the epochfeed-fault messages name each file and its reason";

/// The name of the element message about a sample that cannot be used.
pub const FAULT: &str = "epochfeed-fault";

/// The element message `epochfeed-fault` about one sample.
pub fn message(element: &gst::Element, sample: &SampleMeta, fault: &Fault, action: OnError) -> gst::Message {
    gst::message::Element::builder(
        gst::Structure::builder(FAULT)
            .field("uri", &sample.uri)
            .field("dataset-index", sample.dataset_index)
            .field("epoch", sample.epoch)
            .field("index", sample.index)
            .field("class", fault.class.as_str())
            .field("reason", &fault.reason)
            .field("action", action.nick())
            .build(),
    )
    .src(element)
    .build()
}

/// The element message `epochfeed-annotation` about a sample whose annotation is not of its image.
pub fn annotation_message(element: &gst::Element, sample: &SampleMeta, reason: &str) -> gst::Message {
    gst::message::Element::builder(
        gst::Structure::builder("epochfeed-annotation")
            .field("uri", &sample.uri)
            .field("dataset-index", sample.dataset_index)
            .field("epoch", sample.epoch)
            .field("index", sample.index)
            .field("reason", reason)
            .build(),
    )
    .src(element)
    .build()
}

/// The file's URI and the fault that a [`message`] tells of; `None` for other messages.
pub fn told(said: &gst::StructureRef) -> Option<(String, Fault)> {
    if said.name() != FAULT {
        return None;
    }
    let class = said.get::<&str>("class").ok()?.parse().ok()?;
    let fault = Fault::new(class, said.get::<&str>("reason").ok()?);
    Some((said.get("uri").ok()?, fault))
}

/// How errors and warnings name a sample: its place in the dataset and its file.
pub fn describe(sample: &SampleMeta) -> String {
    if sample.uri.is_empty() {
        format!("frame {}", sample.dataset_index)
    } else {
        format!("sample {} ({})", sample.dataset_index, sample.uri)
    }
}
