//! What can go wrong with a feed.

use gst::prelude::*;

use crate::tensor::Dtype;

/// Why a feed, an epoch or a batch cannot be had.
///
/// A [`Stream`](FeedError::Stream) error is final: the feed stays failed. After [`Prepare`](FeedError::Prepare) and
/// [`SaveState`](FeedError::SaveState) the same call may be made again.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// GStreamer cannot be initialised, or refuses the elements of this crate.
    #[error("the elements of epochfeed cannot be registered: {reason}")]
    Register {
        /// What GStreamer says.
        reason: String,
    },
    /// An element cannot be made or linked: GStreamer's own plugins are incomplete.
    #[error("the element {name} cannot be made or linked: {reason}; is the GStreamer plugin installed?")]
    Element {
        /// Name of the element's factory.
        name: String,
        /// What GStreamer says.
        reason: String,
    },
    /// A setting of the builder that no element takes.
    #[error("{setting} is {value}: use {allowed}")]
    Setting {
        /// The element's property.
        setting: String,
        /// What was asked for.
        value: String,
        /// What is possible.
        allowed: String,
    },
    /// An element failed: a file that cannot be used, a dataset that cannot be opened, a state that does not fit. The
    /// message names the file or the setting.
    #[error("{message}{}", remedy.as_ref().map(|remedy| format!(" ({remedy})")).unwrap_or_default())]
    Stream {
        /// Name of the element in [`Feed::pipeline`](super::Feed::pipeline).
        element: String,
        /// What happened, and to which file.
        message: String,
        /// What can be done about it, if the element says so.
        remedy: Option<String>,
    },
    /// An epoch failed while it was prepared. It is prepared again: ask for it again when the cause is removed.
    #[error("epoch {epoch} could not be prepared: {reason}; remove the cause and ask for the epoch again")]
    Prepare {
        /// The epoch that was asked for.
        epoch: u64,
        /// What happened, and to which file.
        reason: String,
    },
    /// The state cannot be written to `state_location`. Nothing of the stream is lost.
    #[error("the state cannot be saved: {reason}; make room for it or repair the folder, then go on")]
    SaveState {
        /// What the operating system says.
        reason: String,
    },
    /// A buffer that is not one of `nhwcpack`'s batches: something was put into the pipeline.
    #[error("a batch cannot be read: {reason}; leave the elements of the feed's pipeline as they are")]
    Batch {
        /// What is missing.
        reason: String,
    },
    /// The values of a batch are of another type than was asked for.
    #[error(
        "the values of the batch are {dtype}, not {asked}: ask for those, or choose another `dtype` for the feed"
    )]
    Dtype {
        /// What was asked for.
        asked: Dtype,
        /// What they are.
        dtype: Dtype,
    },
    /// The values of a batch cannot be read by the host, as where there is no room for a copy of device memory.
    #[error("the values of a batch cannot be read: {reason}; GST_DEBUG=3 shows what its memory says")]
    Unreadable {
        /// What was tried.
        reason: String,
    },
    /// The elements refused to go to the end of an epoch that was broken off.
    #[error("epoch {epoch} cannot be broken off: an element refused the flushing seek; build the feed anew")]
    BreakOff {
        /// The epoch.
        epoch: u64,
    },
    /// A thread of the feed's own pipeline asked for what it has to make itself.
    #[error(
        "batches cannot be taken on a streaming thread of the feed's own pipeline; take them on another one"
    )]
    StreamingThread,
    /// The feed was dropped.
    #[error("the feed has been dropped; keep it for as long as batches are taken")]
    Closed,
}

impl FeedError {
    /// What an ERROR message on the bus says.
    pub(super) fn from_message(error: &gst::message::Error) -> Self {
        let element = error.src().map(|source| source.name().to_string());
        // GStreamer puts "file(line): function (): path:\n" before what the element wrote.
        let remedy = error
            .debug()
            .and_then(|debug| debug.split_once('\n').map(|(_, text)| text.trim().to_owned()));
        Self::Stream {
            element: element.unwrap_or_default(),
            message: error.error().message().to_owned(),
            remedy: remedy.filter(|remedy| !remedy.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_error_says_what_the_element_said() {
        gst::init().unwrap();
        let element = gst::Pipeline::with_name("here");
        let message = |debug: &str| {
            let builder = gst::message::Error::builder(gst::ResourceError::Read, "file x is gone");
            builder.src(&element).debug(debug).build()
        };
        let text = |message: &gst::Message| match message.view() {
            gst::MessageView::Error(error) => FeedError::from_message(error).to_string(),
            _ => unreachable!("made above"),
        };
        let said = message("src/a.rs(1): f (): /here:\nPut it back");
        assert_eq!(text(&said), "file x is gone (Put it back)");
        let said = message("src/a.rs(1): f (): /here");
        assert_eq!(text(&said), "file x is gone");
    }
}
