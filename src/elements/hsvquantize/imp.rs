//! Lock order: none of the locks here is held while another is taken, nor over a post.
#![allow(missing_docs)] // the generated accessors: a property is documented by its blurb

use std::sync::{Arc, LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::subclass::BaseTransformMode;
use gst_base::subclass::base_transform::{InputBuffer, PrepareOutputBufferSuccess};
use gst_base::subclass::prelude::*;

use super::super::coordinator::{self, Registration, Stage};
use super::super::epoch_end::EpochEnd;
use super::super::identity;
use super::super::meta::{GainsMeta, SampleMeta};
use super::super::util::{Statistics, lock, nanoseconds_since};
use super::super::video::{self, GAINS_FEATURE};
use super::gains::{Chooser, Settings};
use crate::color::{Gains, Jitter, fused, native};

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "hsvquantize",
        gst::DebugColorFlags::empty(),
        Some("HSV jitter and quantization"),
    )
});

/// How the pixels are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstHsvQuantizePath")]
pub enum Path {
    /// One pass.
    #[default]
    #[enum_value(name = "Fused CPU: one read and one write a pixel", nick = "fused-cpu")]
    FusedCpu,
    /// A pass an operation.
    #[enum_value(name = "Native: one pass an operation", nick = "native")]
    Native,
}

/// Why the path is what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstHsvQuantizePathReason")]
pub enum PathReason {
    /// The fused path runs.
    #[default]
    #[enum_value(name = "OK: the fused path runs", nick = "ok")]
    Ok,
    /// The property says so.
    #[enum_value(name = "Fuse off: fuse=false", nick = "fuse-off")]
    FuseOff,
}

/// What the negotiated stream looks like.
struct Stream {
    info: gst_video::VideoInfo,
    /// nhwcpack does the pixel pass.
    deferred: bool,
}

/// This element's name in the recipe.
const RECIPE: &str = "hsvquantize";

fn settings_hash(settings: &Settings) -> u64 {
    coordinator::hash([format!("{settings:?}")])
}

#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    frames: u64,
    /// Frames whose pixels nhwcpack changes.
    deferred: u64,
    /// Nanoseconds spent on pixels here.
    busy: u64,
}

#[derive(Default, glib::Properties)]
#[properties(wrapper_type = super::HsvQuantize)]
pub struct HsvQuantize {
    #[property(name = "hue", get, set, type = f64, member = hue, minimum = 0.0, maximum = 1.0, default = 0.015, nick = "Hue", blurb = "The hue moves by up to this many turns", mutable_playing)]
    #[property(name = "saturation", get, set, type = f64, member = saturation, minimum = 0.0, maximum = 1.0, default = 0.7, nick = "Saturation", blurb = "The saturation is multiplied by up to 1 ± this", mutable_playing)]
    #[property(name = "value", get, set, type = f64, member = value, minimum = 0.0, maximum = 1.0, default = 0.4, nick = "Value", blurb = "The value is multiplied by up to 1 ± this", mutable_playing)]
    #[property(name = "seed", get, set, type = u64, member = seed, nick = "Seed", blurb = "Seed of the gains of frames that carry none (frames of epochsrc carry one)", mutable_playing)]
    #[property(name = "gains", get, set, type = Option<String>, member = gains, nick = "Gains", blurb = "Gains of every frame as \"hue,saturation,value\" instead of drawn ones", mutable_playing)]
    #[property(name = "fuse", get, set, type = bool, member = fuse, default = true, nick = "Fuse", blurb = "Do all operations in one pass over the pixels; the bytes are the same without", mutable_ready)]
    settings: Mutex<Settings>,
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
    scratch: Mutex<native::Scratch>,
}

impl HsvQuantize {
    fn path(&self) -> Path {
        if lock(&self.settings).fuse {
            Path::FusedCpu
        } else {
            Path::Native
        }
    }

    fn path_reason(&self) -> PathReason {
        if lock(&self.settings).fuse {
            PathReason::Ok
        } else {
            PathReason::FuseOff
        }
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

    /// Says how the pixels are computed, and where.
    fn post_path(&self, deferred: bool) {
        let nick = |value: &glib::Value| {
            glib::EnumValue::from_value(value)
                .map(|(_, value)| value.nick().to_owned())
                .unwrap_or_default()
        };
        let message = gst::message::Element::builder(
            gst::Structure::builder("epochfeed-path")
                .field("path", nick(&self.path().to_value()))
                .field("path-reason", nick(&self.path_reason().to_value()))
                .field("backend", fused::backend())
                .field("deferred", deferred)
                .build(),
        );
        let _ = self.obj().post_message(message.src(&*self.obj()).build());
    }

    /// Registers with the epochsrc upstream, if there is one, and lets it know what the properties are whenever it asks:
    /// they may change while frames that were made with others are held.
    fn find_coordinator(&self) {
        let pad = self.obj().static_pad("sink");
        let Some(coordinator) = pad.and_then(|pad| coordinator::find(&pad)) else {
            return;
        };
        let element = self.obj().downgrade();
        let recipe: Arc<coordinator::Recipe> = Arc::new(move || {
            element.upgrade().map_or(0, |element| {
                let settings = lock(&element.imp().settings).clone();
                settings_hash(&settings)
            })
        });
        coordinator.set_recipe(RECIPE, &recipe);
        *lock(&self.recipe) = Some(recipe);
        *lock(&self.registration) = Some(Arc::new(coordinator.register(Stage::Color)));
    }

    /// Where nothing of ours follows, a frame that was pushed counts as consumed.
    fn acknowledge_passed(&self) {
        let passed = lock(&self.passed).take();
        let registration = lock(&self.registration).clone();
        if let (Some(sample), Some(registration)) = (passed, registration)
            && let Err(error) = registration.acknowledge_sample(&sample)
        {
            error.warn(&*self.obj());
        }
    }

    /// The properties may be others than when the frame was read, and again those by the time that its epoch is asked for.
    fn check_recipe(&self, sample: &SampleMeta, settings: &Settings) {
        let Some(registration) = lock(&self.registration).clone() else {
            return;
        };
        let coordinator = registration.coordinator();
        if coordinator.recipe_with(Some((RECIPE, settings_hash(settings)))) != sample.recipe {
            coordinator.spoil(sample.epoch);
        }
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

    /// Changes the pixels in place.
    fn jitter(
        &self,
        frame: &mut gst::BufferRef,
        info: &gst_video::VideoInfo,
        jitter: &Jitter,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let mut frame = gst_video::VideoFrameRef::from_buffer_ref_writable(frame, info)?;
        let mut view = video::view_mut(&mut frame)?;
        match self.path() {
            Path::FusedCpu => fused::jitter_frame(&mut view, jitter),
            Path::Native => native::jitter_frame(&mut view, jitter, &mut lock(&self.scratch)),
        }
        Ok(())
    }
}

#[glib::object_subclass]
impl ObjectSubclass for HsvQuantize {
    const NAME: &'static str = "GstHsvQuantize";
    type Type = super::HsvQuantize;
    type ParentType = gst_base::BaseTransform;
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
            let mut source = video::gains_caps();
            source.merge(video::plain_caps());
            [
                gst::PadTemplate::new(
                    "sink",
                    gst::PadDirection::Sink,
                    gst::PadPresence::Always,
                    &video::plain_caps(),
                ),
                gst::PadTemplate::new("src", gst::PadDirection::Src, gst::PadPresence::Always, &source),
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
        *lock(&self.stats) = Stats::default();
        self.find_coordinator();
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *lock(&self.stream) = None;
        *lock(&self.recipe) = None;
        *lock(&self.passed) = None;
        let registration = lock(&self.registration).take();
        drop(registration);
        *lock(&self.scratch) = native::Scratch::default();
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

    /// Plain frames come in; frames with gains beside them, where that may be, or plain ones go out.
    fn transform_caps(
        &self,
        direction: gst::PadDirection,
        caps: &gst::Caps,
        filter: Option<&gst::Caps>,
    ) -> Option<gst::Caps> {
        let fuse = lock(&self.settings).fuse;
        let mut plain = gst::Caps::new_empty();
        let mut with_gains = gst::Caps::new_empty();
        for (structure, _) in caps.iter_with_features() {
            plain.make_mut().append_structure(structure.to_owned());
            with_gains
                .make_mut()
                .append_structure_full(structure.to_owned(), Some(video::gains_features()));
        }
        let result = if direction == gst::PadDirection::Sink && fuse {
            with_gains.merge(plain);
            with_gains
        } else {
            plain
        };
        Some(match filter {
            Some(filter) => filter.intersect_with_mode(&result, gst::CapsIntersectMode::First),
            None => result,
        })
    }

    /// Only a peer that names the feature knows it. One that takes anything (filesink, an appsink without caps), or any
    /// feature (videoconvert, videorate, and what stands behind them), gets finished pixels.
    fn fixate_caps(
        &self,
        direction: gst::PadDirection,
        caps: &gst::Caps,
        mut othercaps: gst::Caps,
    ) -> gst::Caps {
        let knows = |pad: gst::Pad| {
            pad.peer_query_caps(None)
                .iter_with_features()
                .any(|(_, features)| !features.is_any() && features.contains(GAINS_FEATURE))
        };
        if direction == gst::PadDirection::Sink && !self.obj().static_pad("src").is_some_and(knows) {
            othercaps = othercaps
                .iter_with_features()
                .filter(|(_, features)| !features.contains(GAINS_FEATURE))
                .map(|(structure, features)| (structure.to_owned(), features.to_owned()))
                .collect();
        }
        self.parent_fixate_caps(direction, caps, othercaps)
    }

    fn set_caps(&self, incaps: &gst::Caps, outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let info = gst_video::VideoInfo::from_caps(incaps)
            .map_err(|error| gst::loggable_error!(CAT, "Cannot use {incaps}: {error}"))?;
        let deferred = outcaps
            .features(0)
            .is_some_and(|features| features.contains(GAINS_FEATURE));
        let before = lock(&self.stream).replace(Stream { info, deferred });
        if before.is_none_or(|before| before.deferred != deferred) {
            self.post_path(deferred);
        }
        Ok(())
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
        let (info, deferred) = match &*lock(&self.stream) {
            Some(stream) => (stream.info.clone(), stream.deferred),
            None => return Err(gst::FlowError::NotNegotiated),
        };
        if deferred {
            lock(&self.stats).deferred += 1;
        } else {
            let start = std::time::Instant::now();
            self.jitter(frame, &info, &Jitter::from(gains)).map_err(|error| {
                gst::element_imp_error!(
                    self,
                    gst::StreamError::Format,
                    ("Frame {number} is not what its caps say: {error}"),
                    ["{info:?}"]
                );
                gst::FlowError::Error
            })?;
            lock(&self.stats).busy += nanoseconds_since(start);
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
            applied: !deferred,
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
