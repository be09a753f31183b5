//! The end of a feed's pipeline: a sink that hands its buffers over and lets itself be interrupted.
//!
//! Not an appsink: its `pull_object` is not woken by the end of an epoch in GStreamer 1.22, and a callback of it that waits
//! for room is not told when the stream flushes, pauses or stops. A sink of our own is, by `unlock`.

use std::sync::{Arc, LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::prelude::*;

use super::exchange::{Exchange, Put};
use super::tensor::Tensor;
use crate::elements::epoch_end::EpochEnd;
use crate::elements::util::lock;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "epochfeed",
        gst::DebugColorFlags::empty(),
        Some("The application's feed"),
    )
});

mod imp {
    use super::*;

    #[derive(Debug, Default)]
    pub struct FeedSink {
        pub(super) exchange: Arc<Exchange>,
        /// What the last caps say.
        tensor: Mutex<Option<Arc<Tensor>>>,
    }

    #[glib::object_subclass]
    impl ObjectSubclass for FeedSink {
        const NAME: &'static str = "EpochfeedFeedSink";
        type Type = super::FeedSink;
        type ParentType = gst_base::BaseSink;
    }

    impl ObjectImpl for FeedSink {
        fn constructed(&self) {
            self.parent_constructed();
            let element = self.obj();
            // Batches are taken as fast as they can be used, not by the clock.
            element.set_sync(false);
            // A flush in the middle of the run does not make the pipeline wait for a buffer again.
            element.set_async(false);
            // Its memory belongs to the pool again as soon as the application lets go of it.
            element.set_property("enable-last-sample", false);
        }
    }

    impl GstObjectImpl for FeedSink {}

    impl ElementImpl for FeedSink {
        fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
            static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
                gst::subclass::ElementMetadata::new(
                    "Feed sink",
                    "Sink/Tensor",
                    "Hands batches to the application",
                    crate::elements::AUTHOR,
                )
            });
            Some(&METADATA)
        }

        fn pad_templates() -> &'static [gst::PadTemplate] {
            static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
                let caps = gst::Caps::new_empty_simple("other/tensors");
                gst::PadTemplate::new("sink", gst::PadDirection::Sink, gst::PadPresence::Always, &caps)
                    .into_iter()
                    .collect()
            });
            &TEMPLATES
        }
    }

    impl BaseSinkImpl for FeedSink {
        fn set_caps(&self, caps: &gst::Caps) -> Result<(), gst::LoggableError> {
            let tensor = Tensor::from_caps(caps).map_err(|error| gst::loggable_error!(CAT, "{error}"))?;
            *lock(&self.tensor) = Some(Arc::new(tensor));
            Ok(())
        }

        fn render(&self, buffer: &gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
            let tensor = lock(&self.tensor).clone().ok_or(gst::FlowError::NotNegotiated)?;
            loop {
                match self.exchange.put(buffer, &tensor) {
                    Put::Done => return Ok(gst::FlowSuccess::Ok),
                    Put::Closed => return Err(gst::FlowError::Flushing),
                    Put::Unlocked => {
                        self.obj().wait_preroll()?;
                    }
                }
            }
        }

        fn event(&self, event: gst::Event) -> bool {
            match event.view() {
                gst::EventView::SegmentDone(_) => {
                    if let Some(end) = EpochEnd::get(&event) {
                        gst::debug!(CAT, imp = self, "{end:?}");
                        self.exchange.put_end(end);
                    }
                }
                gst::EventView::Eos(_) => self.exchange.put_eos(),
                gst::EventView::FlushStop(_) => self.exchange.flushed(),
                _ => (),
            }
            self.parent_event(event)
        }

        fn unlock(&self) -> Result<(), gst::ErrorMessage> {
            self.exchange.set_unlocked(true);
            Ok(())
        }

        fn unlock_stop(&self) -> Result<(), gst::ErrorMessage> {
            self.exchange.set_unlocked(false);
            Ok(())
        }
    }
}

glib::wrapper! {
    /// The sink; see the [module](self).
    pub struct FeedSink(ObjectSubclass<imp::FeedSink>) @extends gst_base::BaseSink, gst::Element, gst::Object;
}

impl FeedSink {
    /// A sink with an exchange of its own.
    pub(super) fn new() -> Self {
        glib::Object::builder().property("name", "feedsink").build()
    }

    /// Where its batches go.
    pub(super) fn exchange(&self) -> Arc<Exchange> {
        self.imp().exchange.clone()
    }
}
