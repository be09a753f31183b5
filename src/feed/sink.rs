//! The end of a feed's pipeline: a sink that hands its buffers over and lets itself be interrupted.
//!
//! Neither an appsink nor a base sink. In GStreamer 1.22 an appsink's `pull_object` is not woken by the end of an epoch, and
//! a base sink renders with its preroll lock held, so that one which waits for room stops the change of state to PLAYING
//! that comes meanwhile. A feed needs no clock and no preroll: waiting in the chain function is all it takes.

use std::sync::{Arc, LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

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

    pub struct FeedSink {
        pub(super) exchange: Arc<Exchange>,
        /// What the last caps say.
        tensor: Mutex<Option<Arc<Tensor>>>,
        pad: gst::Pad,
    }

    impl FeedSink {
        fn chain(&self, buffer: &gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
            let tensor = lock(&self.tensor).clone().ok_or(gst::FlowError::NotNegotiated)?;
            match self.exchange.put(buffer, &tensor) {
                Put::Done => Ok(gst::FlowSuccess::Ok),
                Put::Unlocked | Put::Closed => Err(gst::FlowError::Flushing),
            }
        }

        fn event(&self, event: &gst::Event) -> bool {
            gst::log!(CAT, imp = self, "{event:?}");
            match event.view() {
                gst::EventView::Caps(caps) => match Tensor::from_caps(caps.caps()) {
                    Ok(tensor) => *lock(&self.tensor) = Some(Arc::new(tensor)),
                    Err(error) => {
                        gst::error!(CAT, imp = self, "These are no batches: {error}");
                        return false;
                    }
                },
                gst::EventView::SegmentDone(_) => {
                    if let Some(end) = EpochEnd::get(event) {
                        self.exchange.put_end(end);
                    }
                }
                gst::EventView::Eos(_) => {
                    self.exchange.put_eos();
                    let message = gst::message::Eos::builder().seqnum(event.seqnum());
                    let _ = self.obj().post_message(message.src(&*self.obj()).build());
                }
                gst::EventView::FlushStart(_) => self.exchange.set_unlocked(true),
                gst::EventView::FlushStop(_) => {
                    self.exchange.flushed();
                    self.exchange.set_unlocked(false);
                }
                _ => (),
            }
            true
        }
    }

    #[glib::object_subclass]
    impl ObjectSubclass for FeedSink {
        const NAME: &'static str = "EpochfeedFeedSink";
        type Type = super::FeedSink;
        type ParentType = gst::Element;

        fn with_class(class: &Self::Class) -> Self {
            let template = class
                .pad_template("sink")
                .unwrap_or_else(|| unreachable!("declared in pad_templates"));
            let pad = gst::Pad::builder_from_template(&template)
                .chain_function(|_, parent, buffer| {
                    Self::catch_panic_pad_function(
                        parent,
                        || Err(gst::FlowError::Error),
                        |this| this.chain(&buffer),
                    )
                })
                .event_function(|_, parent, event| {
                    Self::catch_panic_pad_function(parent, || false, |this| this.event(&event))
                })
                .build();
            Self {
                exchange: Arc::default(),
                tensor: Mutex::default(),
                pad,
            }
        }
    }

    impl ObjectImpl for FeedSink {
        fn constructed(&self) {
            self.parent_constructed();
            let element = self.obj();
            element.set_element_flags(gst::ElementFlags::SINK);
            if let Err(error) = element.add_pad(&self.pad) {
                gst::error!(CAT, imp = self, "Cannot add the pad: {error}");
            }
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
                let caps = crate::elements::cuda::batch_caps();
                gst::PadTemplate::new("sink", gst::PadDirection::Sink, gst::PadPresence::Always, &caps)
                    .into_iter()
                    .collect()
            });
            &TEMPLATES
        }

        fn change_state(
            &self,
            transition: gst::StateChange,
        ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
            match transition {
                gst::StateChange::ReadyToPaused => self.exchange.set_unlocked(false),
                // Before the pad is deactivated, which waits for the thread that waits for room.
                gst::StateChange::PausedToReady => self.exchange.set_unlocked(true),
                _ => (),
            }
            self.parent_change_state(transition)
        }
    }
}

glib::wrapper! {
    /// The sink; see the [module](self).
    pub struct FeedSink(ObjectSubclass<imp::FeedSink>) @extends gst::Element, gst::Object;
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
