//! Lock order: none of the locks here is held while another is taken, nor over a push, a query, a post or a signal.
//! The running epoch is taken out of its lock by the streaming thread while it works on it.
#![allow(missing_docs)] // the generated accessors: a property is documented by its blurb

mod stream;

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Instant;

use glib::subclass::Signal;
use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::base_src::CreateSuccess;
use gst_base::subclass::prelude::*;

use super::super::coordinator::{self, Coordinator, Requested, Stage};
use super::super::faults::OnError;
use super::super::util::{Statistics, lock, nanoseconds_since};
use super::dataset::{Crowd, DatasetFormat, OnChange, OutOfImage, Split};
use super::run::Run;
use super::settings::{Settings, Shuffle, Uneven};
use crate::dataset::Finding;
use crate::sampler::State;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "epochsrc",
        gst::DebugColorFlags::empty(),
        Some("Dataset source with epochs"),
    )
});

#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    epochs: u64,
    samples: u64,
    bytes: u64,
    faults: u64,
    /// Nanoseconds spent reading files.
    wait_input: u64,
    /// Nanoseconds spent pushing.
    wait_output: u64,
    /// Nanoseconds spent waiting for a request.
    wait_request: u64,
    /// Slots of the current epoch pushed, and all of them.
    position: u64,
    duration: u64,
}

/// Where a flush goes.
#[derive(Clone, Debug)]
struct Target {
    epoch: u64,
    position: u64,
    /// What has been taken of the epoch, if it is not begun anew.
    state: Option<State>,
}

impl Target {
    /// The epoch is begun anew, at `position`.
    fn at(epoch: u64, position: u64) -> Self {
        Self {
            epoch,
            position,
            state: None,
        }
    }
}

#[derive(glib::Properties)]
#[properties(wrapper_type = super::EpochSrc)]
pub struct EpochSrc {
    #[property(name = "location", get, set, type = Option<String>, member = location, nick = "Location", blurb = "Folder (searched recursively), text list of paths, one image, COCO JSON or data.yaml; a path, or a file:// URI for one that is not UTF-8", mutable_ready)]
    #[property(name = "shuffle", get, set, type = Shuffle, member = shuffle, nick = "Shuffle", blurb = "Order of the samples of each epoch", mutable_ready, builder(Shuffle::default()))]
    #[property(name = "seed", get, set, type = u64, member = seed, nick = "Seed", blurb = "Seed of the order and of the jitter", mutable_ready)]
    #[property(name = "epochs", get, set, type = i32, member = epochs, minimum = -1, default = 1, nick = "Epochs", blurb = "How many epochs a run delivers before EOS (-1 = endless)", mutable_ready)]
    #[property(name = "rank", get, set, type = u32, member = rank, nick = "Rank", blurb = "Which share of each epoch is delivered, from 0", mutable_ready)]
    #[property(name = "world-size", get, set, type = u32, member = world_size, minimum = 1, default = 1, nick = "World size", blurb = "Number of ranks that share each epoch", mutable_ready)]
    #[property(name = "samples-per-epoch", get, set, type = u64, member = samples_per_epoch, nick = "Samples per epoch", blurb = "Only the first so many samples of each order, over all ranks (0 = all)", mutable_ready)]
    #[property(name = "uneven", get, set, type = Uneven, member = uneven, nick = "Uneven", blurb = "What is done where ranks do not divide the samples equally", mutable_ready, builder(Uneven::default()))]
    #[property(name = "io-depth", get, set, type = u32, member = io_depth, minimum = 1, maximum = 1024, default = 32, nick = "I/O depth", blurb = "How many files are read at a time, ahead of the epoch, where storage is slow", mutable_ready)]
    #[property(name = "framerate", get, set, type = gst::Fraction, member = framerate, minimum = gst::Fraction::new(1, i32::MAX), maximum = gst::Fraction::new(i32::MAX, 1), default = gst::Fraction::new(30, 1), nick = "Frame rate", blurb = "Nominal samples per second, for time stamps", mutable_ready)]
    #[property(name = "auto-advance", get, set = Self::set_auto_advance, type = bool, member = auto_advance, default = true, nick = "Auto-advance", blurb = "Go on to the next epoch without being asked, where no epochsink or application asks", mutable_playing)]
    #[property(name = "state-location", get, set, type = Option<std::path::PathBuf>, member = state_location, nick = "State location", blurb = "File the state is loaded from at the start and saved to whenever a batch has been consumed", mutable_ready)]
    #[property(name = "on-error", get, set, type = OnError, member = on_error, nick = "On error", blurb = "What is done about an unusable file where the decoder is not epochdecode (which has its own)", mutable_ready, builder(OnError::default()))]
    #[property(name = "reload", get, set, type = bool, member = reload, default = false, nick = "Reload", blurb = "Read the location again before each epoch, for a dataset that changes", mutable_ready)]
    #[property(name = "format", get, set, type = DatasetFormat, member = format, nick = "Format", blurb = "What the location is read as", mutable_ready, builder(DatasetFormat::default()))]
    #[property(name = "root", get, set, type = Option<String>, member = root, nick = "Root", blurb = "Folder that the file names of a COCO file, or train and val of a data.yaml, are relative to; found beside the file if not set", mutable_ready)]
    #[property(name = "split", get, set, type = Split, member = split, nick = "Split", blurb = "Which part of a data.yaml", mutable_ready, builder(Split::default()))]
    #[property(name = "crowd", get, set, type = Crowd, member = crowd, nick = "Crowd", blurb = "What is done with COCO's boxes around crowds", mutable_ready, builder(Crowd::default()))]
    #[property(name = "classes", get, set, type = Option<String>, member = classes, nick = "Classes", blurb = "Names or numbers of the classes whose boxes are used, with commas between them (a comma in a name as \\,; not set: all); classes keep their numbers, and images stay", mutable_ready)]
    #[property(name = "single-class", get, set, type = bool, member = single_class, default = false, nick = "Single class", blurb = "All boxes are of class 0", mutable_ready)]
    #[property(name = "fraction", get, set, type = f64, member = fraction, minimum = 0.0, maximum = 1.0, default = 1.0, nick = "Fraction", blurb = "Which part of the samples is used, from the first on; more than 0", mutable_ready)]
    #[property(name = "out-of-image", get, set, type = OutOfImage, member = out_of_image, nick = "Out of image", blurb = "What is done with boxes that reach out of their image", mutable_ready, builder(OutOfImage::default()))]
    #[property(name = "strict", get, set, type = bool, member = strict, default = false, nick = "Strict", blurb = "What the checks find wrong with the dataset is an error", mutable_ready)]
    #[property(name = "on-change", get, set, type = OnChange, member = on_change, nick = "On change", blurb = "What is done where the state is of another dataset than the one that is there", mutable_ready, builder(OnChange::default()))]
    #[property(name = "exclude", get, set, type = Option<std::path::PathBuf>, member = exclude, nick = "Exclude", blurb = "List of files that are left out of the dataset before the order is drawn: one that epochdecode quarantine wrote, or one path a line", mutable_ready)]
    settings: Mutex<Settings>,
    #[property(name = "state", get = Self::state, set = Self::set_state, type = Option<String>, nick = "State", blurb = "Where the consumer is, as JSON; set it to resume there, or to the empty string to start over", mutable_ready)]
    /// `state` was set to start over: the file is not loaded at the next start.
    start_over: Mutex<bool>,
    #[property(name = "stats", get = Self::stats, type = Statistics, nick = "Statistics", blurb = "Epochs, samples, bytes, faults; position in the epoch; nanoseconds waited for input, output and requests")]
    stats: Mutex<Stats>,
    coordinator: Arc<Coordinator>,
    run: Mutex<Option<Run>>,
    /// Where a flushing seek goes: epoch and position.
    target: Mutex<Option<Target>>,
    /// Keeps the coordinator's knowledge of the recipe alive.
    recipe: Mutex<Option<Arc<coordinator::Recipe>>>,
}

impl Default for EpochSrc {
    fn default() -> Self {
        Self {
            settings: Mutex::default(),
            start_over: Mutex::new(false),
            stats: Mutex::default(),
            coordinator: Arc::default(),
            run: Mutex::new(None),
            target: Mutex::new(None),
            recipe: Mutex::new(None),
        }
    }
}

impl EpochSrc {
    /// Also goes on from a boundary at which the source stands.
    fn set_auto_advance(&self, auto_advance: bool) {
        lock(&self.settings).auto_advance = auto_advance;
        if auto_advance
            && !self.coordinator.has(Stage::Consumer)
            && let Some(next) = self.coordinator.next()
            && let Requested::Failed(reason) = self.coordinator.request(next)
        {
            gst::element_imp_error!(
                self,
                gst::ResourceError::Read,
                ("Epoch {next} could not be prepared: {reason}"),
                ["Remove the cause and start again: the run resumes with this epoch"]
            );
        }
    }

    fn state(&self) -> Option<String> {
        self.coordinator.state()
    }

    fn set_state(&self, state: Option<String>) {
        let state = state.filter(|state| !state.is_empty());
        *lock(&self.start_over) = state.is_none();
        self.coordinator.set_state(state);
    }

    fn stats(&self) -> Statistics {
        let stats = *lock(&self.stats);
        Statistics(
            gst::Structure::builder("epochsrc-stats")
                .field("epochs", stats.epochs)
                .field("samples", stats.samples)
                .field("bytes", stats.bytes)
                .field("faults", stats.faults)
                .field("position", stats.position)
                .field("duration", stats.duration)
                .field("wait-input-ns", stats.wait_input)
                .field("wait-output-ns", stats.wait_output)
                .field("wait-request-ns", stats.wait_request)
                .build(),
        )
    }

    /// Asks for the epoch after the one that is delivered now; false where there is none, or when preparing it failed,
    /// which is told by a warning.
    fn next_epoch(&self) -> bool {
        self.coordinator.next().is_some_and(|next| self.ask(next))
    }

    fn ask(&self, next: u64) -> bool {
        match self.coordinator.request(next) {
            Requested::Accepted => true,
            Requested::Failed(reason) => {
                gst::element_imp_warning!(
                    self,
                    gst::ResourceError::Read,
                    ("Epoch {next} could not be prepared: {reason}"),
                    ["It is prepared again; ask for it again when the cause is removed"]
                );
                false
            }
        }
    }

    /// A seek of the application: with SEGMENT and without FLUSH it asks for the next epoch, with FLUSH it discards what
    /// has not been taken and reads the current epoch again from `start`, in samples.
    fn seek(&self, seek: &gst::event::Seek, seqnum: gst::Seqnum) -> bool {
        let (rate, flags, start_type, start, _, _) = seek.get();
        if !flags.contains(gst::SeekFlags::FLUSH) {
            return flags.contains(gst::SeekFlags::SEGMENT)
                && self.coordinator.ask_once(seqnum, |next| self.ask(next));
        }
        let position = match start {
            gst::GenericFormattedValue::Default(start) if start_type == gst::SeekType::Set => {
                start.map_or(0, |start| *start)
            }
            gst::GenericFormattedValue::Default(_) if start_type == gst::SeekType::None => 0,
            _ => {
                gst::warning!(
                    CAT,
                    imp = self,
                    "Refusing a seek that is not in samples (format DEFAULT)"
                );
                return false;
            }
        };
        if rate != 1.0 {
            gst::warning!(
                CAT,
                imp = self,
                "Refusing a seek with rate {rate}: only 1.0 is possible"
            );
            return false;
        }
        self.seek_alone(seqnum, || {
            // A restart reads an epoch again that nobody has taken; else it is the one that the consumer is in.
            let restart = self.coordinator.take_restart(seqnum);
            let epoch = restart.or_else(|| self.coordinator.current())?;
            Some(Target::at(epoch, position))
        })
    }

    /// Goes where `target` says, when nobody else seeks.
    fn seek_alone(&self, seqnum: gst::Seqnum, target: impl FnOnce() -> Option<Target>) -> bool {
        if !self.coordinator.begin_seek(self.coordinator.is_restart(seqnum)) {
            return false;
        }
        let done = target().is_some_and(|target| self.flush_to(target, seqnum));
        self.coordinator.end_seek();
        done
    }

    /// Discards what has not been taken and goes on behind what has: a flush from outside loses and repeats nothing.
    fn flush_to_consumer(&self, seqnum: gst::Seqnum) -> bool {
        self.seek_alone(seqnum, || {
            let epoch = self.coordinator.current()?;
            let state = self.coordinator.state();
            let state = state.and_then(|state| State::from_json(&state).ok());
            Some(match state.filter(|state| state.epoch == epoch) {
                Some(state) => Target {
                    epoch,
                    position: state.position,
                    state: Some(state),
                },
                None => Target::at(epoch, 0),
            })
        })
    }

    /// Has the base class flush, stop the streaming thread, and call `do_seek`.
    fn flush_to(&self, target: Target, seqnum: gst::Seqnum) -> bool {
        *lock(&self.target) = Some(target);
        let event = gst::event::Seek::builder(
            1.0,
            gst::SeekFlags::FLUSH,
            gst::SeekType::Set,
            gst::ClockTime::ZERO,
            gst::SeekType::None,
            gst::ClockTime::NONE,
        )
        .seqnum(seqnum)
        .build();
        BaseSrcImplExt::parent_event(self, &event)
    }

    /// Says which dataset is drawn from, and what the checks found.
    fn dataset_message(&self, run: &Run) -> gst::Message {
        let dataset = &run.reader.dataset;
        let checks = dataset.checks();
        gst::info!(CAT, imp = self, "{}:\n{checks}", dataset.location().display());
        let mut fields = gst::Structure::builder("epochfeed-dataset")
            .field("location", dataset.location().to_string_lossy().as_ref())
            .field("samples", dataset.len())
            .field("excluded", dataset.excluded())
            .field("fingerprint", dataset.fingerprint())
            .field("boxes", checks.boxes)
            .field("classes", gst::Array::new(dataset.class_names()))
            .field("checks", checks.to_string())
            .build();
        for finding in Finding::ALL {
            fields.set(finding.name(), checks.count(finding));
        }
        gst::message::Element::builder(fields).src(&*self.obj()).build()
    }

    /// Makes what this element contributes to the pixels known.
    fn set_recipe(&self, run: &Run) {
        let hash = run.recipe();
        let recipe: Arc<coordinator::Recipe> = Arc::new(move || hash);
        self.coordinator.set_recipe("epochsrc", &recipe);
        *lock(&self.recipe) = Some(recipe);
    }

    /// The state this run resumes from: what was set or kept, else the file.
    fn resume_state(&self, settings: &Settings) -> Result<Option<String>, gst::ErrorMessage> {
        let start_over = *lock(&self.start_over);
        if let Some(state) = self.coordinator.state() {
            return Ok(Some(state));
        }
        match &settings.state_location {
            Some(location) if !start_over => coordinator::load_state(location).map_err(|error| {
                gst::error_msg!(
                    gst::ResourceError::Read,
                    ("Cannot read the state in {}: {error}", location.display()),
                    ["Set state-location to a file that can be read, or remove the file to start over"]
                )
            }),
            _ => Ok(None),
        }
    }
}

#[glib::object_subclass]
impl ObjectSubclass for EpochSrc {
    const NAME: &'static str = "GstEpochSrc";
    type Type = super::EpochSrc;
    type ParentType = gst_base::PushSrc;
}

#[glib::derived_properties]
impl ObjectImpl for EpochSrc {
    fn signals() -> &'static [Signal] {
        static SIGNALS: LazyLock<Vec<Signal>> = LazyLock::new(|| {
            vec![
                Signal::builder("next-epoch")
                    .action()
                    .return_type::<bool>()
                    .class_handler(|args| {
                        let element = args[0].get::<super::EpochSrc>().ok()?;
                        Some(element.imp().next_epoch().to_value())
                    })
                    .build(),
            ]
        });
        &SIGNALS
    }

    fn constructed(&self) {
        self.parent_constructed();
        let element = self.obj();
        // By its full name: the property `format` has a setter, too.
        BaseSrcExt::set_format(element.upcast_ref::<gst_base::BaseSrc>(), gst::Format::Time);
        element.set_live(false);
    }
}

impl GstObjectImpl for EpochSrc {}

impl ElementImpl for EpochSrc {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Epoch source",
                "Source/File/Image",
                "Reads a dataset of images epoch by epoch, shuffled, sharded and resumable",
                crate::elements::AUTHOR,
            )
        });
        Some(&METADATA)
    }

    fn send_event(&self, event: gst::Event) -> bool {
        match event.view() {
            gst::EventView::Seek(seek) => self.seek(seek, event.seqnum()),
            // Its other half does it all.
            gst::EventView::FlushStart(_) => self.obj().src_pad().push_event(event),
            gst::EventView::FlushStop(_) => self.flush_to_consumer(event.seqnum()),
            // Not left to the base class, which waits for the streaming thread while the caller holds the lock that a
            // pipeline needs to get it going.
            gst::EventView::Eos(_) => {
                let running = self.coordinator.requested().is_some();
                self.coordinator.end();
                running
            }
            _ => self.parent_send_event(event),
        }
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let caps = crate::elements::encoded_caps();
            gst::PadTemplate::new("src", gst::PadDirection::Src, gst::PadPresence::Always, &caps)
                .into_iter()
                .collect()
        });
        &TEMPLATES
    }
}

impl BaseSrcImpl for EpochSrc {
    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.settings).clone();
        let state = self.resume_state(&settings)?;
        let run = Run::prepare(&settings, state.as_deref())?;
        let _ = self.obj().post_message(self.dataset_message(&run));
        if run.restarted {
            gst::element_imp_warning!(
                self,
                gst::ResourceError::Settings,
                (
                    "The state is of another dataset: epoch {} begins again with the one in {}",
                    run.reader.epoch(),
                    run.reader.dataset.location().display()
                ),
                [
                    "Restore the dataset to go on where the state is, or set on-change=error to be stopped here"
                ]
            );
        }
        *lock(&self.stats) = Stats::default();
        self.coordinator.begin(
            coordinator::Run {
                drawn: run.drawn(),
                state_location: settings.state_location,
                reload: settings.reload,
                strict: settings.strict,
            },
            run.reader.epoch(),
            run.last,
            run.resumed.clone(),
        );
        // One that was loaded is where the consumer is until it acknowledges more.
        self.coordinator.set_state(state);
        *lock(&self.start_over) = false;
        self.set_recipe(&run);
        *lock(&self.run) = Some(run);
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        let run = lock(&self.run).take();
        drop(run);
        self.coordinator.stop();
        Ok(())
    }

    fn unlock(&self) -> Result<(), gst::ErrorMessage> {
        self.coordinator.set_flushing(true);
        Ok(())
    }

    fn unlock_stop(&self) -> Result<(), gst::ErrorMessage> {
        self.coordinator.set_flushing(false);
        Ok(())
    }

    /// To the base class, which carries out flushing seeks; what others are told is in `query`.
    fn is_seekable(&self) -> bool {
        true
    }

    fn event(&self, event: &gst::Event) -> bool {
        match event.view() {
            gst::EventView::Seek(seek) => self.seek(seek, event.seqnum()),
            _ => BaseSrcImplExt::parent_event(self, event),
        }
    }

    /// Everything is flushed and the streaming thread stands still: goes where [`EpochSrc::seek`] said.
    fn do_seek(&self, _segment: &mut gst::Segment) -> bool {
        // The base class also "seeks" to the beginning when it starts.
        let Some(target) = lock(&self.target).take() else {
            return true;
        };
        let known = self.coordinator.drawn(target.epoch);
        if let Some(run) = &mut *lock(&self.run) {
            // An epoch that was asked for and left at once may not have been drawn yet.
            let is_drawn = known.is_some();
            let receipt = match known {
                Some((drawn, receipt)) => {
                    (run.reader.dataset, run.reader.sampler) = (drawn.dataset, drawn.sampler);
                    receipt
                }
                None => match run.reader.receipt_of(target.epoch) {
                    Some(receipt) => receipt,
                    None => return false,
                },
            };
            let exhausted = !self.coordinator.is_broken_off(target.epoch);
            run.reader.seek(receipt, target.position, exhausted);
            run.begin_epoch();
            run.segment_done = false;
            run.start = target.position.min(run.reader.order().len());
            match &target.state {
                Some(state) => run.resume(state),
                None => run.pass_over(target.position),
            }
            // In its middle, positions are those of the dataset that it was drawn from.
            run.current |= is_drawn && run.start > 0;
            self.set_recipe(run);
        }
        self.coordinator.flushed(target.epoch, target.state);
        true
    }

    /// Caps are those of the file that comes next: nothing is decided before it has been read.
    fn negotiate(&self) -> Result<(), gst::LoggableError> {
        Ok(())
    }

    fn query(&self, query: &mut gst::QueryRef) -> bool {
        if coordinator::answer(query, &self.coordinator) {
            return true;
        }
        match query.view_mut() {
            gst::QueryViewMut::Position(query) if query.format() == gst::Format::Default => {
                query.set(gst::format::Default::from_u64(lock(&self.stats).position));
                true
            }
            gst::QueryViewMut::Duration(query) if query.format() == gst::Format::Default => {
                query.set(gst::format::Default::from_u64(lock(&self.stats).duration));
                true
            }
            gst::QueryViewMut::Seeking(query) if query.format() == gst::Format::Default => {
                let end = gst::format::Default::from_u64(lock(&self.stats).duration);
                query.set(true, gst::format::Default::ZERO, end);
                true
            }
            gst::QueryViewMut::Seeking(query) if query.format() != gst::Format::Undefined => {
                let none = gst::GenericFormattedValue::none_for_format(query.format());
                query.set(false, none, none);
                true
            }
            _ => BaseSrcImplExt::parent_query(self, query),
        }
    }
}

impl PushSrcImpl for EpochSrc {
    fn create(&self, _buffer: Option<&mut gst::BufferRef>) -> Result<CreateSuccess, gst::FlowError> {
        let mut run = lock(&self.run).take().ok_or(gst::FlowError::Flushing)?;
        if let Some(start) = run.handed_over.take() {
            lock(&self.stats).wait_output += nanoseconds_since(start);
        }
        // Being asked for the next buffer means that the last one was taken.
        if let Some((epoch, taken)) = run.pushed.take()
            && let Some(state) = self.coordinator.state_at(epoch, taken)
            && let Err(error) = self.coordinator.acknowledge(Stage::Source, epoch, &state)
        {
            error.warn(&*self.obj());
        }
        let result = self.produce(&mut run);
        run.handed_over = result.is_ok().then(Instant::now);
        *lock(&self.run) = Some(run);
        result.map(CreateSuccess::NewBuffer)
    }
}
