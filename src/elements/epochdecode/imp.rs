//! Threads: the upstream thread (sink pad), the workers (jobs), the task of the source pad (delivery).
//!
//! Lock order: `active`, `delivery` and `stats` are never held together, nor over a push, a query or a post; the
//! delivery task takes `delivery` out of its lock while it works. The queue has its own lock (see `queue.rs`).
#![allow(missing_docs)] // the generated accessors: a property is documented by its blurb

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::super::coordinator::{self, Registration, Stage};
use super::super::faults::{self, Limit, OnError, Place};
use super::super::util::{Statistics, lock, not_behind_a_stop};
use super::ahead::Ahead;
use super::cache::{Cache, Key};
use super::delivery::Delivery;
use super::job::{Task, job};
use super::output::Output;
use super::quarantine::{self, Quarantine};
use super::queue::{Item, Queue};
use super::settings::{CacheMode, DEFAULT_CACHE_BYTES, Fit, Interpolation, Orientation, Settings, Truncated};
use crate::decode::{DEFAULT_MAX_PIXELS, DecodeOptions};
use crate::workers::{self, Class, Client, Urgency};

pub(super) static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "epochdecode",
        gst::DebugColorFlags::empty(),
        Some("Parallel image decoder"),
    )
});

/// Frames per second where upstream does not say.
const DEFAULT_FRAMERATE: (i32, i32) = (30, 1);

/// What exists between READY and PAUSED.
struct Active {
    workers: Arc<Client>,
    options: Arc<DecodeOptions>,
    bound: usize,
    registration: Option<Arc<Registration>>,
    /// Keeps the coordinator's knowledge of the recipe alive.
    recipe: Option<Arc<coordinator::Recipe>>,
    /// Keeps the coordinator's door to `ahead` open.
    listener: Option<Arc<coordinator::Listener>>,
    /// What is decoded before it is asked for.
    ahead: Arc<Ahead>,
    /// Frames of earlier epochs.
    cache: Option<Arc<Cache>>,
    /// The list of what cannot be used.
    quarantine: Option<Arc<Quarantine>>,
    framerate: gst::Fraction,
    output: Option<Arc<Output>>,
    /// It is being agreed upon: neither what it was nor what downstream asks for now is sure to come of it.
    agreeing: bool,
    /// Epoch of the last image, and whether it was sent again.
    epoch: Option<(u64, bool)>,
    /// Images taken so far: the names of those without a sample meta.
    images: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stats {
    pub decoded: u64,
    /// Taken from the cache instead.
    pub cached: u64,
    pub faults: u64,
    pub replaced: u64,
    pub warnings: u64,
    pub truncated: u64,
    /// Boxes of the frames, those that vanished, and annotations with another size than their image.
    pub boxes: u64,
    pub vanished: u64,
    pub mismatches: u64,
    /// Nanoseconds the delivery task waited for the next image to be decoded.
    pub wait_input: u64,
    /// Nanoseconds it spent pushing.
    pub wait_output: u64,
}

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
    settings: Mutex<Settings>,
    #[property(name = "stats", get = Self::stats, type = Statistics, nick = "Statistics", blurb = "Images decoded, taken from the cache, faulty, replaced, with warnings; boxes, those without area, annotations of another size; images in flight, their highest number and its bound; nanoseconds spent decoding, over all threads, and waited for input and output")]
    pub(super) stats: Mutex<Stats>,
    /// Nanoseconds spent decoding, over all threads.
    busy: Arc<AtomicU64>,
    sink_pad: gst::Pad,
    pub(super) src_pad: gst::Pad,
    pub(super) queue: Arc<Queue>,
    active: Mutex<Option<Active>>,
    pub(super) delivery: Mutex<Option<Delivery>>,
}

impl EpochDecode {
    fn stats(&self) -> Statistics {
        let (bound, cache) = lock(&self.active)
            .as_ref()
            .map_or((0, None), |active| (active.bound, active.cache.clone()));
        let (entries, bytes) = cache.as_ref().map_or((0, 0), |cache| cache.levels());
        let (in_flight, high_water) = self.queue.levels();
        let stats = *lock(&self.stats);
        Statistics(
            gst::Structure::builder("epochdecode-stats")
                .field("decoded", stats.decoded)
                .field("faults", stats.faults)
                .field("replaced", stats.replaced)
                .field("warnings", stats.warnings)
                .field("truncated", stats.truncated)
                .field("boxes", stats.boxes)
                .field("boxes-vanished", stats.vanished)
                .field("size-mismatches", stats.mismatches)
                .field("in-flight", in_flight as u64)
                .field("in-flight-max", high_water as u64)
                .field("in-flight-bound", bound as u64)
                .field("cache-hits", stats.cached)
                .field("cache-misses", if cache.is_some() { stats.decoded } else { 0 })
                .field("cache-entries", entries)
                .field("cache-bytes", bytes)
                .field("decode-ns", self.busy.load(Ordering::Relaxed))
                .field("wait-input-ns", stats.wait_input)
                .field("wait-output-ns", stats.wait_output)
                .build(),
        )
    }

    /// Takes what a run needs; the error message is posted by the caller.
    fn prepare(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.settings).clone();
        let usage =
            |error: &dyn std::fmt::Display| gst::error_msg!(gst::ResourceError::Settings, ("{error}"));
        let limit = settings
            .max_errors
            .parse::<Limit>()
            .map_err(|error| usage(&error))?;
        let threads = match settings.threads {
            0 => workers::default_threads().map_err(|error| usage(&error))?,
            threads => usize::try_from(threads).unwrap_or(usize::MAX),
        };
        let workers = Client::new(threads)
            .map_err(|error| gst::error_msg!(gst::ResourceError::NoSpaceLeft, ("{error}")))?;
        let quarantine = settings.quarantine.as_deref().map(quarantine::open).transpose()?;
        *lock(&self.stats) = Stats::default();
        self.busy.store(0, Ordering::Relaxed);
        let workers = Arc::new(workers);
        *lock(&self.active) = Some(Active {
            ahead: Arc::new(Ahead::new(workers.clone())),
            workers,
            options: Arc::new(settings.options()),
            bound: threads * 2,
            cache: settings.cache().map(Arc::new),
            quarantine: quarantine.map(Arc::new),
            registration: None,
            recipe: None,
            listener: None,
            framerate: DEFAULT_FRAMERATE.into(),
            output: None,
            agreeing: false,
            epoch: None,
            images: 0,
        });
        *lock(&self.delivery) = Some(Delivery {
            on_error: settings.on_error,
            limit,
            ..Delivery::default()
        });
        self.find_coordinator();
        Ok(())
    }

    /// Registers with the epochsrc upstream, if there is one and that has not been done.
    fn find_coordinator(&self) {
        if lock(&self.active)
            .as_ref()
            .is_none_or(|active| active.registration.is_some())
        {
            return;
        }
        let Some(found) = coordinator::find(&self.sink_pad) else {
            return;
        };
        let registration = Arc::new(found.register(Stage::Decode));
        let element = self.obj().downgrade();
        let recipe: Arc<coordinator::Recipe> =
            Arc::new(move || element.upgrade().map_or(0, |element| element.imp().recipe()));
        if let Some(active) = &mut *lock(&self.active) {
            found.set_recipe("epochdecode", &recipe);
            active.recipe = Some(recipe);
            active.listener = Some(active.ahead.listen(&found));
            active.workers.join(&found);
            active.registration = Some(registration);
        }
    }

    pub(super) fn quarantine(&self) -> Option<Arc<Quarantine>> {
        lock(&self.active)
            .as_ref()
            .and_then(|active| active.quarantine.clone())
    }

    /// Hash of what frames are made as: the options, and the format and size that downstream asks for, which may change at
    /// any time.
    fn recipe(&self) -> u64 {
        let (options, framerate, shape) = {
            let active = lock(&self.active);
            let Some(active) = active.as_ref().filter(|active| !active.agreeing) else {
                return 0;
            };
            // Under the lock, since `output` takes the flag back under it.
            let asked = self.src_pad.pad_flags().contains(gst::PadFlags::NEED_RECONFIGURE);
            let shape = active
                .output
                .as_ref()
                .filter(|_| !asked)
                .map(|output| output.shape());
            (active.options.clone(), active.framerate, shape)
        };
        let shape = shape.or_else(|| {
            let own_size = options.fit == crate::decode::Fit::None;
            let info = Output::agree(&self.src_pad, framerate, own_size).ok()?;
            Some((info.format(), (!own_size).then(|| (info.width(), info.height()))))
        });
        coordinator::hash([format!("{options:?} {shape:?}")])
    }

    pub(super) fn options(&self) -> Option<Arc<DecodeOptions>> {
        lock(&self.active).as_ref().map(|active| active.options.clone())
    }

    pub(super) fn registration(&self) -> Option<Arc<Registration>> {
        lock(&self.active)
            .as_ref()
            .and_then(|active| active.registration.clone())
    }

    /// What frames are made as, renegotiated when downstream asks for it, for an image at `place`.
    pub(super) fn output(&self, place: &Place) -> Result<Arc<Output>, gst::FlowError> {
        let (framerate, own_size, before) = {
            let mut active = lock(&self.active);
            let active = active.as_mut().ok_or(gst::FlowError::Flushing)?;
            let before = if self.src_pad.check_reconfigure() {
                active.output.take()
            } else {
                active.output.clone()
            };
            if let Some(output) = &active.output {
                return Ok(output.clone());
            }
            active.agreeing = true;
            let own_size = active.options.fit == crate::decode::Fit::None;
            (active.framerate, own_size, before)
        };
        let output = Output::negotiate(&self.src_pad, framerate, own_size).map(Arc::new);
        if let Ok(output) = &output
            && before.is_some_and(|before| before.shape() != output.shape())
            && place.sample.prepared
            && let Some(registration) = self.registration()
        {
            // Whatever is asked for later: frames of this epoch are of two kinds now.
            registration.coordinator().spoil(place.sample.epoch);
        }
        if let Some(active) = &mut *lock(&self.active) {
            active.agreeing = false;
            active.output = output.as_ref().ok().cloned();
        }
        output.map_err(|error| {
            self.src_pad.mark_reconfigure();
            gst::element_imp_error!(
                self,
                gst::StreamError::Format,
                ("Cannot agree on a format with the next element: {error}"),
                ["epochdecode gives RGB and BGR frames; put videoconvert behind it for other formats"]
            );
            gst::FlowError::NotNegotiated
        })
    }

    /// Whether the image at `place` is the first that is delivered of its epoch, in this run.
    fn begins(&self, place: &Place) -> bool {
        let run = (place.sample.epoch, place.sample.again);
        let mut active = lock(&self.active);
        active
            .as_mut()
            .is_none_or(|active| active.epoch.replace(run) != Some(run))
    }

    fn chain(&self, buffer: gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        let (workers, ahead, options, cache, bound, number) = {
            let mut active = lock(&self.active);
            let active = active.as_mut().ok_or(gst::FlowError::Flushing)?;
            let number = active.images;
            active.images += 1;
            (
                active.workers.clone(),
                active.ahead.clone(),
                active.options.clone(),
                active.cache.clone(),
                active.bound,
                number,
            )
        };
        self.queue.wait_for_room(bound)?;
        let mut place = Box::new(Place::of(&buffer, number));
        if let Some(fault) = place.sample.fault.take() {
            self.queue.push(Item::Image(place, Some(Err(fault))))?;
            return Ok(gst::FlowSuccess::Ok);
        }
        let output = self.output(&place)?;
        let frames = self.registration().and_then(|entry| entry.coordinator().frames());
        if let (true, Some(frames)) = (self.begins(&place), &frames) {
            frames.begin_batch();
        }
        let keep = cache.and_then(|cache| Some((cache, Key::of(&place)?)));
        if let Some(kept) = keep.as_ref().and_then(|(cache, key)| cache.get(key, &output)) {
            self.queue.push(Item::Image(place, Some(Ok(kept))))?;
            return Ok(gst::FlowSuccess::Ok);
        }
        let ahead_of = place.sample.prepared.then_some(place.sample.epoch);
        let task = Task {
            encoded: buffer,
            annotated: place.annotated(),
            reserved: frames.and_then(|frames| output.reserve(&frames)),
            options,
            output,
            keep,
            busy: self.busy.clone(),
        };
        let entry = self.queue.push(Item::Image(place, None))?;
        let job = job(self.queue.clone(), entry, task);
        match (ahead_of, self.registration()) {
            (Some(epoch), Some(registration)) => ahead.spawn(registration.coordinator(), epoch, job),
            _ => workers.spawn(Class::new(Urgency::Demanded, workers::Stage::Decode), job),
        }
        Ok(gst::FlowSuccess::Ok)
    }

    /// Of a sticky event that is turned away upstream must know why: while this element stops, a mere "no" would become an
    /// error upstream.
    fn sink_event(&self, event: gst::Event) -> Result<gst::FlowSuccess, gst::FlowError> {
        let done = |done| {
            if done {
                Ok(gst::FlowSuccess::Ok)
            } else {
                Err(gst::FlowError::Error)
            }
        };
        let queue = |event| self.queue.push(Item::Event(event)).map(|_| gst::FlowSuccess::Ok);
        gst::log!(CAT, obj = self.sink_pad, "{event:?}");
        match event.view() {
            gst::EventView::FlushStart(_) => {
                let forwarded = self.src_pad.push_event(event);
                // The stream cannot do without its sticky events, which the next frame then takes along.
                for event in self.queue.flush() {
                    if event.is_sticky()
                        && !matches!(event.type_(), gst::EventType::Segment | gst::EventType::Eos)
                    {
                        let _ = self.src_pad.store_sticky_event(&event);
                    }
                }
                let _ = self.src_pad.pause_task();
                // Their places in the queue are gone.
                let workers = lock(&self.active).as_ref().map(|active| active.workers.clone());
                if let Some(workers) = workers {
                    workers.clear();
                }
                done(forwarded)
            }
            gst::EventView::FlushStop(_) => {
                let forwarded = self.src_pad.push_event(event);
                if let Some(delivery) = &mut *lock(&self.delivery) {
                    delivery.resolver.end();
                    delivery.discont = true;
                    delivery.failed = None;
                    delivery.again = false;
                    delivery.sent_again = 0;
                }
                // What comes next begins a batch, be it of the same epoch.
                if let Some(active) = &mut *lock(&self.active) {
                    active.epoch = None;
                }
                self.queue.start();
                done(self.start_task_again() && forwarded)
            }
            gst::EventView::Caps(caps) => {
                let framerate = caps
                    .structure()
                    .and_then(|fields| fields.get::<gst::Fraction>("framerate").ok());
                if let (Some(active), Some(framerate)) = (&mut *lock(&self.active), framerate)
                    && framerate.numer() > 0
                    && framerate != active.framerate
                {
                    active.framerate = framerate;
                    active.output = None;
                }
                done(true)
            }
            gst::EventView::StreamStart(_) => {
                self.find_coordinator();
                queue(event)
            }
            _ if event.is_serialized() => queue(event),
            _ => done(gst::Pad::event_default(&self.sink_pad, Some(&*self.obj()), event)),
        }
    }

    fn sink_query(&self, query: &mut gst::QueryRef) -> bool {
        match query.view() {
            // Encoded images need no pool of ours, and nothing serialized waits behind the queue.
            gst::QueryView::Allocation(_) => false,
            _ => gst::Pad::query_default(&self.sink_pad, Some(&*self.obj()), query),
        }
    }

    fn start_task(&self) -> Result<(), glib::BoolError> {
        let element = self.obj().downgrade();
        self.src_pad.start_task(move || {
            if let Some(element) = element.upgrade() {
                element.imp().deliver();
            }
        })
    }

    /// Starts the task behind a flush.
    fn start_task_again(&self) -> bool {
        let started = self.start_task().is_ok();
        not_behind_a_stop(&self.src_pad, started, || {
            let _ = self.activate_src(false);
        })
    }

    fn activate_src(&self, active: bool) -> Result<(), gst::LoggableError> {
        if active {
            self.queue.start();
            self.start_task()
                .map_err(|error| gst::loggable_error!(CAT, "Cannot start the delivery task: {error}"))
        } else {
            drop(self.queue.flush());
            self.src_pad
                .stop_task()
                .map_err(|error| gst::loggable_error!(CAT, "Cannot stop the delivery task: {error}"))
        }
    }
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
