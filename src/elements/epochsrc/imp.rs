//! Lock order: none of the locks here is held while another is taken, nor over a push, a query, a post or a signal.
//! The running epoch is taken out of its lock by the streaming thread while it works on it.
#![allow(missing_docs)] // the generated accessors: a property is documented by its blurb

mod boundary;
mod life;
mod seek;
mod stats;
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
use super::super::file_memory::FileAllocator;
use super::super::util::{Statistics, lock, nanoseconds_since};
use super::ahead::Interrupter;
use super::dataset::{Crowd, DatasetFormat, OnChange, OutOfImage, Split};
use super::run::Run;
use super::settings::{Settings, Shuffle, Uneven};
use seek::Target;
use stats::Stats;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "epochsrc",
        gst::DebugColorFlags::empty(),
        Some("Dataset source with epochs"),
    )
});

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
    #[property(name = "split", get, set, type = Split, member = split, nick = "Split", blurb = "Which part of a data.yaml, or of a YOLO folder with the folders train and val", mutable_ready, builder(Split::default()))]
    #[property(name = "crowd", get, set, type = Crowd, member = crowd, nick = "Crowd", blurb = "What is done with COCO's boxes around crowds", mutable_ready, builder(Crowd::default()))]
    #[property(name = "classes", get, set, type = Option<String>, member = classes, nick = "Classes", blurb = "Names or contiguous numbers (not COCO's ids) of the classes whose boxes are used, with commas between them (a comma in a name as \\,; not set: all); classes keep their numbers, and images stay", mutable_ready)]
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
    files: FileAllocator,
    run: Mutex<Option<Run>>,
    /// Ends the run's waits for files.
    reads: Mutex<Option<Interrupter>>,
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
            files: FileAllocator::default(),
            run: Mutex::new(None),
            reads: Mutex::new(None),
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

    /// Ends the streaming thread's waits, for a request and for a file, or lets it wait again.
    fn set_flushing(&self, flushing: bool) {
        self.interrupt_reads(flushing);
        self.coordinator.set_flushing(flushing);
    }

    fn interrupt_reads(&self, interrupted: bool) {
        let reads = lock(&self.reads).clone();
        if let Some(reads) = reads {
            reads.interrupt(interrupted);
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
                // Nor does the end wait for a file that is not read to be delivered any more.
                self.interrupt_reads(true);
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
        self.begin()
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        self.end();
        Ok(())
    }

    fn unlock(&self) -> Result<(), gst::ErrorMessage> {
        self.set_flushing(true);
        Ok(())
    }

    fn unlock_stop(&self) -> Result<(), gst::ErrorMessage> {
        self.set_flushing(false);
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
        self.go()
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
