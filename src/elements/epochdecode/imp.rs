//! Threads: the upstream thread (sink pad), the workers (jobs), the task of the source pad (delivery).
//!
//! Lock order: `active`, `delivery` and `stats` are never held together, nor over a push, a query or a post; the
//! delivery task takes `delivery` out of its lock while it works. The queue has its own lock (see `queue.rs`).
#![allow(missing_docs)] // the generated accessors: a property is documented by its blurb

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::super::faults::{self, OnError};
use super::super::util::{Statistics, lock};
use super::active::Active;
use super::delivery::Delivery;
use super::queue::Queue;
use super::settings::{CacheMode, DEFAULT_CACHE_BYTES, Fit, Interpolation, Orientation, Settings, Truncated};
use super::stats::Stats;
use crate::decode::DEFAULT_MAX_PIXELS;

pub(super) static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "epochdecode",
        gst::DebugColorFlags::empty(),
        Some("Parallel image decoder"),
    )
});

#[derive(glib::Properties)]
#[properties(wrapper_type = super::EpochDecode)]
pub struct EpochDecode {
    #[property(name = "threads", get, set, type = u32, member = threads, maximum = 1024, nick = "Threads", blurb = "How many images are decoded at a time (0 = cores / LOCAL_WORLD_SIZE)", mutable_ready)]
    #[property(name = "fit", get, set, type = Fit, member = fit, nick = "Fit", blurb = "How an image is fitted into the frame", mutable_ready, builder(Fit::default()))]
    #[property(name = "pad-color", get, set, type = u32, member = pad_color, maximum = 0xff_ff_ff, default = 0x72_72_72, nick = "Pad colour", blurb = "Colour of the letterbox, 0xRRGGBB; the default is 0x727272, a grey of 114", mutable_ready)]
    #[property(name = "interpolation", get, set, type = Interpolation, member = interpolation, nick = "Interpolation", blurb = "How pixels are resampled", mutable_ready, builder(Interpolation::default()))]
    #[property(name = "orientation", get, set, type = Orientation, member = orientation, nick = "Orientation", blurb = "What is done about the EXIF orientation", mutable_ready, builder(Orientation::default()))]
    #[property(name = "max-pixels", get, set, type = u64, member = max_pixels, minimum = 1, default = DEFAULT_MAX_PIXELS, nick = "Maximum pixels", blurb = "Images whose header claims more pixels are refused before memory is taken", mutable_ready)]
    #[property(name = "truncated", get, set, type = Truncated, member = truncated, nick = "Truncated", blurb = "What is done about a file that ends before its last pixel", mutable_ready, builder(Truncated::default()))]
    #[property(name = "on-error", get, set, type = OnError, member = on_error, nick = "On error", blurb = "What is done about a sample that cannot be used", mutable_ready, builder(OnError::default()))]
    #[property(name = "max-errors", get, set, type = String, member = max_errors, default = Some("-1"), nick = "Maximum errors", blurb = "With skip and replace, how many samples of an epoch may be faulty before it ends with an error: a count (10), a percentage of those that this rank has in it (2%; behind epochsrc only), or -1 for no limit", mutable_ready)]
    #[property(name = "cache", get, set, type = CacheMode, member = cache, nick = "Cache", blurb = "Whether frames are kept from epoch to epoch, so that their images are decoded once", mutable_ready, builder(CacheMode::default()))]
    #[property(name = "cache-bytes", get, set, type = u64, member = cache_bytes, default = DEFAULT_CACHE_BYTES, nick = "Cache bytes", blurb = "With cache=ram, so many bytes of frames are kept at most; what does not fit is decoded in every epoch", mutable_ready)]
    #[property(name = "quarantine", get, set, type = Option<PathBuf>, member = quarantine, nick = "Quarantine", blurb = "File for a line of JSON about each file that cannot be used (uri, class, reason), added to what is there; epochsrc exclude reads it", mutable_ready)]
    pub(super) settings: Mutex<Settings>,
    #[property(name = "stats", get = Self::stats, type = Statistics, nick = "Statistics", blurb = "Images decoded, taken from the cache, faulty, replaced, with warnings; boxes, those without area, annotations of another size; images in flight, their highest number and its bound; nanoseconds spent decoding, over all threads, and waited for input and output")]
    pub(super) stats: Mutex<Stats>,
    /// Nanoseconds spent decoding, over all threads.
    pub(super) busy: Arc<AtomicU64>,
    pub(super) sink_pad: gst::Pad,
    pub(super) src_pad: gst::Pad,
    pub(super) queue: Arc<Queue>,
    pub(super) active: Mutex<Option<Active>>,
    pub(super) delivery: Mutex<Option<Delivery>>,
}

#[glib::object_subclass]
impl ObjectSubclass for EpochDecode {
    const NAME: &'static str = "GstEpochDecode";
    type Type = super::EpochDecode;
    type ParentType = gst::Element;

    fn with_class(class: &Self::Class) -> Self {
        let template = |name| {
            class
                .pad_template(name)
                .unwrap_or_else(|| unreachable!("declared in pad_templates"))
        };
        let sink_pad = gst::Pad::builder_from_template(&template("sink"))
            .chain_function(|_, parent, buffer| {
                Self::catch_panic_pad_function(
                    parent,
                    || Err(gst::FlowError::Error),
                    |this| this.chain(buffer),
                )
            })
            .event_full_function(|_, parent, event| {
                Self::catch_panic_pad_function(
                    parent,
                    || Err(gst::FlowError::Error),
                    |this| this.sink_event(event),
                )
            })
            .query_function(|_, parent, query| {
                Self::catch_panic_pad_function(parent, || false, |this| this.sink_query(query))
            })
            .build();
        let src_pad = gst::Pad::builder_from_template(&template("src"))
            .activatemode_function(|_, parent, mode, active| {
                Self::catch_panic_pad_function(
                    parent,
                    || Err(gst::loggable_error!(CAT, "Panic activating the source pad")),
                    |this| match mode {
                        gst::PadMode::Push => this.activate_src(active),
                        _ => Err(gst::loggable_error!(CAT, "Only push mode is possible")),
                    },
                )
            })
            .build();
        Self {
            settings: Mutex::default(),
            stats: Mutex::default(),
            busy: Arc::default(),
            sink_pad,
            src_pad,
            queue: Arc::default(),
            active: Mutex::new(None),
            delivery: Mutex::new(None),
        }
    }
}

#[glib::derived_properties]
impl ObjectImpl for EpochDecode {
    fn constructed(&self) {
        self.parent_constructed();
        for pad in [&self.sink_pad, &self.src_pad] {
            if let Err(error) = self.obj().add_pad(pad) {
                gst::error!(CAT, imp = self, "Cannot add {}: {error}", pad.name());
            }
        }
    }
}

impl GstObjectImpl for EpochDecode {}

impl ElementImpl for EpochDecode {
    /// A fault is listed when it is told: of an epoch that is prepared, that is when somebody asks for it.
    fn post_message(&self, message: gst::Message) -> bool {
        if let Some((uri, fault)) = message.structure().and_then(faults::told) {
            self.set_aside(&uri, &fault);
        }
        self.parent_post_message(message)
    }

    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Epoch image decoder",
                "Codec/Decoder/Image",
                "Decodes JPEG, PNG, WebP and BMP on several threads, in order, and letterboxes to one size",
                crate::elements::AUTHOR,
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let frames = gst_video::VideoCapsBuilder::new()
                .format_list([gst_video::VideoFormat::Rgb, gst_video::VideoFormat::Bgr])
                .build();
            [
                gst::PadTemplate::new(
                    "sink",
                    gst::PadDirection::Sink,
                    gst::PadPresence::Always,
                    &crate::elements::encoded_caps(),
                ),
                gst::PadTemplate::new("src", gst::PadDirection::Src, gst::PadPresence::Always, &frames),
            ]
            .into_iter()
            .flatten()
            .collect()
        });
        &TEMPLATES
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        match transition {
            gst::StateChange::ReadyToPaused => {
                if let Err(error) = self.prepare() {
                    self.post_error_message(error);
                    return Err(gst::StateChangeError);
                }
            }
            // Before the pads are deactivated, so that no thread of theirs waits for us.
            gst::StateChange::PausedToReady => drop(self.queue.flush()),
            _ => (),
        }
        let result = self.parent_change_state(transition);
        let started = transition == gst::StateChange::ReadyToPaused && result.is_ok();
        if !started
            && matches!(
                transition,
                gst::StateChange::ReadyToPaused | gst::StateChange::PausedToReady
            )
        {
            let active = lock(&self.active).take();
            drop(active);
            let delivery = lock(&self.delivery).take();
            drop(delivery);
        }
        result
    }
}
