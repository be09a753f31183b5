//! Lock order: none of the locks here is held while another of them is taken, nor over a post. The stream's is held while
//! its pixels are worked on.
#![allow(missing_docs)] // the generated accessors: a property is documented by its blurb

mod epoch;
mod place;

use std::sync::{Arc, LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::subclass::BaseTransformMode;
use gst_base::subclass::base_transform::{InputBuffer, PrepareOutputBufferSuccess};
use gst_base::subclass::prelude::*;

use super::super::coordinator::{self, Registration};
use super::super::device::Wanted;
use super::super::epoch_end::EpochEnd;
use super::super::identity;
use super::super::meta::{GainsMeta, SampleMeta};
use super::super::path::{Choice, Path, PathReason};
use super::super::util::{Statistics, lock, nanoseconds_since};
use super::super::{device, gstcuda};
use super::caps::{self, Pass};
use super::gains::{Chooser, Settings};
use super::pixels::Pixels;
use crate::color::Gains;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "hsvquantize",
        gst::DebugColorFlags::empty(),
        Some("HSV jitter and quantization"),
    )
});

/// What the negotiated stream looks like.
struct Stream {
    info: gst_video::VideoInfo,
    pass: Pass,
    /// Does the pixel pass, unless nhwcpack does.
    pixels: Option<Pixels>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    frames: u64,
    /// Frames whose pixels nhwcpack changes.
    deferred: u64,
    /// Nanoseconds spent on pixels here.
    busy: u64,
}

#[derive(glib::Properties)]
#[properties(wrapper_type = super::HsvQuantize)]
pub struct HsvQuantize {
    #[property(name = "hue", get, set, type = f64, member = hue, minimum = 0.0, maximum = 1.0, default = 0.015, nick = "Hue", blurb = "The hue moves by up to this many turns", mutable_playing)]
    #[property(name = "saturation", get, set, type = f64, member = saturation, minimum = 0.0, maximum = 1.0, default = 0.7, nick = "Saturation", blurb = "The saturation is multiplied by up to 1 ± this", mutable_playing)]
    #[property(name = "value", get, set, type = f64, member = value, minimum = 0.0, maximum = 1.0, default = 0.4, nick = "Value", blurb = "The value is multiplied by up to 1 ± this", mutable_playing)]
    #[property(name = "seed", get, set, type = u64, member = seed, nick = "Seed", blurb = "Seed of the gains of frames that carry none (frames of epochsrc carry one)", mutable_playing)]
    #[property(name = "gains", get, set, type = Option<String>, member = gains, nick = "Gains", blurb = "Gains of every frame as \"hue,saturation,value\" instead of drawn ones", mutable_playing)]
    #[property(name = "fuse", get, set, type = bool, member = fuse, default = true, nick = "Fuse", blurb = "Do all operations in one pass over the pixels; the bytes are the same without", mutable_ready)]
    settings: Mutex<Settings>,
    #[property(name = "device", get, set, type = String, default = Some(device::DEFAULT), nick = "Device", blurb = "Where the pixels are computed when nhwcpack does not follow: auto (cuda:LOCAL_RANK or cuda:0 where that can be used, else the CPU), cpu or cuda:N; the bytes are the same", mutable_ready)]
    device: Mutex<String>,
    #[property(name = "path", get = Self::path, type = Path, nick = "Path", blurb = "How the pixels are computed", builder(Path::default()))]
    #[property(name = "path-reason", get = Self::path_reason, type = PathReason, nick = "Path reason", blurb = "Why the path is what it is", builder(PathReason::default()))]
    #[property(name = "stats", get = Self::stats, type = Statistics, nick = "Statistics", blurb = "Frames, frames left to nhwcpack, nanoseconds spent on pixels here")]
    stats: Mutex<Stats>,
    stream: Mutex<Option<Stream>>,
    registration: Mutex<Option<Arc<Registration>>>,
    /// The frame that was handed to the base class last: when the next one comes, it has been pushed.
    passed: Mutex<Option<SampleMeta>>,
    /// Keeps the coordinator's knowledge of the recipe alive.
    recipe: Mutex<Option<Arc<coordinator::Recipe>>>,
    /// How and where, as far as that has come out.
    chosen: Mutex<Option<Choice>>,
}

impl HsvQuantize {
    fn path(&self) -> Path {
        self.choice().path
    }

    fn path_reason(&self) -> PathReason {
        self.choice().reason
    }

    fn stats(&self) -> Statistics {
        let stats = *lock(&self.stats);
        Statistics(
            gst::Structure::builder("hsvquantize-stats")
                .field("frames", stats.frames)
                .field("deferred", stats.deferred)
                .field("busy-ns", stats.busy)
                .build(),
        )
    }

    fn gains(
        &self,
        frame: &gst::BufferRef,
        number: u64,
        settings: &Settings,
    ) -> Result<Gains, gst::FlowError> {
        Chooser::new(settings)
            .and_then(|chooser| Ok(chooser.choose(frame, number)?))
            .map_err(|error| {
                gst::element_imp_error!(
                    self,
                    gst::LibraryError::Settings,
                    ("Cannot jitter frame {number}: {error}")
                );
                gst::FlowError::Error
            })
    }
}

#[glib::object_subclass]
impl ObjectSubclass for HsvQuantize {
    const NAME: &'static str = "GstHsvQuantize";
    type Type = super::HsvQuantize;
    type ParentType = gst_base::BaseTransform;

    fn new() -> Self {
        Self {
            device: Mutex::new(device::DEFAULT.to_owned()),
            settings: Mutex::default(),
            stats: Mutex::default(),
            stream: Mutex::default(),
            registration: Mutex::default(),
            passed: Mutex::default(),
            recipe: Mutex::default(),
            chosen: Mutex::default(),
        }
    }
}

#[glib::derived_properties]
impl ObjectImpl for HsvQuantize {}

impl GstObjectImpl for HsvQuantize {}

impl ElementImpl for HsvQuantize {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "HSV jitter and quantizer",
                "Filter/Effect/Video",
                "Jitters hue, saturation and value for training and quantizes to 8 bits, byte-equal on every path",
                crate::elements::AUTHOR,
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let template = |name, direction, caps| {
                gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &caps)
            };
            [
                template("sink", gst::PadDirection::Sink, caps::sink_template()),
                template("src", gst::PadDirection::Src, caps::source_template()),
            ]
            .into_iter()
            .flatten()
            .collect()
        });
        &TEMPLATES
    }
}

impl BaseTransformImpl for HsvQuantize {
    const MODE: BaseTransformMode = BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.settings).clone();
        Chooser::new(&settings).map_err(|error| gst::error_msg!(gst::LibraryError::Settings, ("{error}")))?;
        self.wanted()
            .and_then(Wanted::check)
            .map_err(|error| gst::error_msg!(gst::LibraryError::Settings, ("{error}")))?;
        *lock(&self.stats) = Stats::default();
        self.find_coordinator();
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        let stream = lock(&self.stream).take();
        drop(stream);
        *lock(&self.chosen) = None;
        *lock(&self.recipe) = None;
        *lock(&self.passed) = None;
        let registration = lock(&self.registration).take();
        drop(registration);
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        // When the element started, what stands in front of it may not have been linked yet (decodebin is one).
        if event.type_() == gst::EventType::StreamStart && lock(&self.registration).is_none() {
            self.find_coordinator();
        }
        let end = EpochEnd::get(&event);
        if end.is_some() {
            self.acknowledge_passed();
        }
        let pushed = self.parent_sink_event(event);
        let registration = lock(&self.registration).clone();
        if let (true, Some(end), Some(registration)) = (pushed, end, registration)
            && let Err(error) = registration.acknowledge_end(&end)
        {
            error.warn(&*self.obj());
        }
        pushed
    }

    fn transform_caps(
        &self,
        direction: gst::PadDirection,
        caps: &gst::Caps,
        filter: Option<&gst::Caps>,
    ) -> Option<gst::Caps> {
        let result = caps::transform(direction, caps, self.allowed());
        Some(match filter {
            Some(filter) => filter.intersect_with_mode(&result, gst::CapsIntersectMode::First),
            None => result,
        })
    }

    fn fixate_caps(
        &self,
        direction: gst::PadDirection,
        caps: &gst::Caps,
        mut othercaps: gst::Caps,
    ) -> gst::Caps {
        if direction == gst::PadDirection::Sink && !self.is_deferred_behind() {
            othercaps = caps::finished(&othercaps);
        }
        self.parent_fixate_caps(direction, caps, othercaps)
    }

    fn set_caps(&self, incaps: &gst::Caps, outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let info = gst_video::VideoInfo::from_caps(incaps)
            .map_err(|error| gst::loggable_error!(CAT, "Cannot use {incaps}: {error}"))?;
        self.prepare(info, Pass::of(outcaps)).map_err(|error| {
            // The base class would say no more than that it is not negotiated.
            self.post_error_message(self.error_message("Frames", &error));
            gst::loggable_error!(CAT, "{error}")
        })
    }

    /// Frames are changed in place: whose memory they should be in is for those behind to say.
    fn propose_allocation(
        &self,
        _decided: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        let answered = self
            .obj()
            .static_pad("src")
            .is_some_and(|pad| pad.peer_query(query));
        if answered {
            Ok(())
        } else {
            Err(gst::loggable_error!(
                CAT,
                "Nobody behind has a wish for the memory of frames"
            ))
        }
    }

    fn query(&self, direction: gst::PadDirection, query: &mut gst::QueryRef) -> bool {
        if gstcuda::is_asked_for(query) {
            return self.answer_context(direction, query);
        }
        BaseTransformImplExt::parent_query(self, direction, query)
    }

    /// The frame itself, or a second handle on its memory: pixels are copied only when they are written here.
    fn prepare_output_buffer(
        &self,
        inbuf: InputBuffer,
    ) -> Result<PrepareOutputBufferSuccess, gst::FlowError> {
        Ok(match inbuf {
            InputBuffer::Writable(_) => PrepareOutputBufferSuccess::InputBuffer,
            InputBuffer::Readable(buffer) => PrepareOutputBufferSuccess::Buffer(buffer.copy()),
        })
    }

    fn transform_ip(&self, frame: &mut gst::BufferRef) -> Result<gst::FlowSuccess, gst::FlowError> {
        let number = {
            let mut stats = lock(&self.stats);
            stats.frames += 1;
            stats.frames - 1
        };
        self.acknowledge_passed();
        if SampleMeta::get(frame).is_none()
            && lock(&self.registration).is_some()
            && let Some(pad) = self.obj().static_pad("sink")
        {
            identity::post_lost(&*self.obj(), &pad, &format!("Frame {number}"));
            return Err(gst::FlowError::Error);
        }
        let settings = lock(&self.settings).clone();
        let gains = self.gains(frame, number, &settings)?;
        if let Some(sample) = SampleMeta::get(frame).filter(|sample| sample.prepared) {
            self.check_recipe(&sample, &settings);
        }
        let start = std::time::Instant::now();
        let done = self.jitter(frame, gains).map_err(|error| {
            self.post_error_message(self.error_message(&format!("Frame {number}"), &error));
            gst::FlowError::Error
        })?;
        match done {
            true => lock(&self.stats).busy += nanoseconds_since(start),
            false => lock(&self.stats).deferred += 1,
        }
        let Gains {
            hue,
            saturation,
            value,
        } = gains;
        GainsMeta {
            hue,
            saturation,
            value,
            applied: done,
        }
        .set(frame)
        .map_err(|error| {
            gst::element_imp_error!(self, gst::CoreError::Failed, ["Cannot attach the gains: {error}"]);
            gst::FlowError::Error
        })?;
        *lock(&self.passed) = SampleMeta::get(frame);
        Ok(gst::FlowSuccess::Ok)
    }
}
