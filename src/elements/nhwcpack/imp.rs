//! Everything happens on the upstream thread; workers help to pack.
//!
//! Lock order: none of the locks here is held while another is taken, nor over a push, a query or a post. The stream
//! is taken out of its lock by the upstream thread while it works on it.
#![allow(missing_docs)] // the generated accessors: a property is documented by its blurb

mod emit;

use std::sync::{LazyLock, Mutex};
use std::time::Instant;

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::super::coordinator::{self, Registration, Stage};
use super::super::cuda::BATCH_FEATURE;
use super::super::device;
use super::super::device::Wanted;
use super::super::epoch_end::EpochEnd;
use super::super::path::{Choice, Path, PathReason};
use super::super::util::{Statistics, lock, nanoseconds_since};
use super::super::video::{self, GAINS_FEATURE};
use super::super::{faults, identity};
use super::batch::Frame;
use super::gpu::{Counts, Gpu};
use super::settings::{Dtype, LastBatch, Layout, Settings};
use crate::tensor::PackSpec;
use crate::workers::{self, Client};

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new("nhwcpack", gst::DebugColorFlags::empty(), Some("Batch packer"))
});

/// What exists between READY and PAUSED.
struct Stream {
    spec: PackSpec,
    batch_size: usize,
    last_batch: LastBatch,
    /// How many of the epoch's first frames are kept to fill up its last batch.
    kept: usize,
    workers: Client,
    /// What packs, where that is a GPU.
    gpu: Option<Gpu>,
    registration: Option<Registration>,
    /// What the frames' caps say, and whether their gains are still to be applied.
    input: Option<(gst_video::VideoInfo, bool)>,
    pool: Option<gst::BufferPool>,
    /// The caps sent last.
    caps: Option<gst::Caps>,
    /// Waits for the first caps, which must come before it.
    segment: Option<gst::Event>,
    /// Frames of the batch that is being gathered.
    frames: Vec<Frame>,
    /// The epoch's first frames, for `last-batch=pad`.
    first: Vec<Frame>,
    /// Epoch and place in it of the last frame.
    place: Option<(u64, u64)>,
    /// It has been said that frames come again or out of order.
    disordered: bool,
    /// It has been said that boxes got lost.
    boxes_lost: bool,
    /// Frames so far: the names of those without a sample meta.
    number: u64,
    /// Batches of the epoch so far.
    batches: u64,
    /// The next batch is the first of an epoch.
    discont: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    frames: u64,
    batches: u64,
    dropped: u64,
    padded: u64,
    /// Batches without the targets that their samples have.
    targets_lost: u64,
    /// Frames that wait for their batch.
    level: u64,
    /// What a GPU has done.
    gpu: Counts,
    /// Nanoseconds spent packing; on a GPU, spent queueing.
    busy: u64,
    /// Nanoseconds between frames.
    wait_input: u64,
    /// Nanoseconds spent pushing.
    wait_output: u64,
    /// When the last frame was done with.
    idle_since: Option<Instant>,
}

#[derive(glib::Properties)]
#[properties(wrapper_type = super::NhwcPack)]
pub struct NhwcPack {
    #[property(name = "batch-size", get, set, type = u32, member = batch_size, minimum = 1, maximum = 65_536, default = 1, nick = "Batch size", blurb = "Frames a batch", mutable_ready)]
    #[property(name = "dtype", get, set, type = Dtype, member = dtype, nick = "Data type", blurb = "Type of the values", mutable_ready, builder(Dtype::default()))]
    #[property(name = "layout", get, set, type = Layout, member = layout, nick = "Layout", blurb = "Order of the dimensions in memory", mutable_ready, builder(Layout::default()))]
    #[property(name = "mean", get, set, type = Option<String>, member = mean, nick = "Mean", blurb = "Subtracted from the values 0..1 of each channel, \"r,g,b\" or one number for all; not with uint8", mutable_ready)]
    #[property(name = "std", get, set, type = Option<String>, member = std, nick = "Standard deviation", blurb = "What the values of each channel are divided by, \"r,g,b\" or one number for all; not with uint8", mutable_ready)]
    #[property(name = "last-batch", get, set, type = LastBatch, member = last_batch, nick = "Last batch", blurb = "What is done with frames that are too few for a batch at the end of an epoch", mutable_ready, builder(LastBatch::default()))]
    #[property(name = "threads", get, set, type = u32, member = threads, maximum = 1024, nick = "Threads", blurb = "How many frames are packed at a time, besides the one on the streaming thread (0 = cores / LOCAL_WORLD_SIZE)", mutable_ready)]
    #[property(name = "device", get, set, type = String, member = device, default = Some(device::DEFAULT), nick = "Device", blurb = "Where batches are made and are: cpu, cuda:N, or auto (the GPU of this rank where one can be used, else the CPU)", mutable_ready)]
    settings: Mutex<Settings>,
    #[property(name = "path", get = |this: &Self| lock(&this.choice).path, type = Path, nick = "Path", blurb = "How the pixels are computed", builder(Path::default()))]
    #[property(name = "path-reason", get = |this: &Self| lock(&this.choice).reason, type = PathReason, nick = "Path reason", blurb = "Why the path is what it is", builder(PathReason::default()))]
    choice: Mutex<Choice>,
    #[property(name = "stats", get = Self::stats, type = Statistics, nick = "Statistics", blurb = "Frames, batches, frames dropped, padding, batches that lost their targets, frames waiting; copies to a GPU, launches, frames gathered for a copy; nanoseconds packing and waited for input and output")]
    stats: Mutex<Stats>,
    sink_pad: gst::Pad,
    src_pad: gst::Pad,
    stream: Mutex<Option<Stream>>,
}

impl NhwcPack {
    fn stats(&self) -> Statistics {
        let stats = *lock(&self.stats);
        Statistics(
            gst::Structure::builder("nhwcpack-stats")
                .field("frames", stats.frames)
                .field("batches", stats.batches)
                .field("dropped", stats.dropped)
                .field("padded", stats.padded)
                .field("targets-lost", stats.targets_lost)
                .field("level", stats.level)
                .field("copies", stats.gpu.copies)
                .field("launches", stats.gpu.launches)
                .field("staged", stats.gpu.staged)
                .field("busy-ns", stats.busy)
                .field("wait-input-ns", stats.wait_input)
                .field("wait-output-ns", stats.wait_output)
                .build(),
        )
    }

    /// Takes what a run needs; the error message is posted by the caller.
    fn prepare(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.settings).clone();
        let usage = |error: &dyn std::fmt::Display| gst::error_msg!(gst::LibraryError::Settings, ("{error}"));
        let spec = settings.spec().map_err(|error| usage(&error))?;
        let threads = match settings.threads {
            0 => workers::default_threads().map_err(|error| usage(&error))?,
            threads => usize::try_from(threads).unwrap_or(usize::MAX),
        };
        let workers = Client::new(threads)
            .map_err(|error| gst::error_msg!(gst::ResourceError::NoSpaceLeft, ("{error}")))?;
        *lock(&self.stats) = Stats::default();
        let wanted: Wanted = settings.device.parse().map_err(|error| usage(&error))?;
        let (gpu, choice) = self.open(wanted, &spec, settings.batch_size)?;
        *lock(&self.choice) = choice.clone();
        choice.post(&*self.obj(), false);
        let batch_size = usize::try_from(settings.batch_size).unwrap_or(usize::MAX);
        let kept = match settings.last_batch {
            LastBatch::Pad => batch_size - 1,
            LastBatch::Partial | LastBatch::Drop => 0,
        };
        *lock(&self.stream) = Some(Stream {
            spec,
            batch_size,
            last_batch: settings.last_batch,
            workers,
            gpu,
            registration: None,
            kept,
            input: None,
            pool: None,
            caps: None,
            segment: None,
            frames: Vec::new(),
            first: Vec::new(),
            place: None,
            disordered: false,
            boxes_lost: false,
            number: 0,
            batches: 0,
            discont: true,
        });
        self.with_stream((), |stream| self.find_coordinator(stream));
        Ok(())
    }

    /// What packs on the device that is wanted, and the path that this makes; `auto` falls back to the CPU.
    fn open(
        &self,
        wanted: Wanted,
        spec: &PackSpec,
        batch_size: u32,
    ) -> Result<(Option<Gpu>, Choice), gst::ErrorMessage> {
        let batch_size = usize::try_from(batch_size).unwrap_or(usize::MAX);
        wanted
            .open(|device| Gpu::new(device, spec.clone(), batch_size))
            .map_err(|error| gst::error_msg!(gst::ResourceError::OpenReadWrite, ("{error}")))
    }

    /// This element was linked when the run had begun to read.
    fn warn_of_late_padding(&self) {
        gst::element_imp_warning!(
            self,
            gst::StreamError::Failed,
            ("The padding of the epoch that is resumed may be of other samples than it was"),
            [
                "What stands in front (decodebin, say) was linked too late for the epoch's first samples to be read again: \
                 put a decoder like epochdecode or jpegdec there, or use another last-batch"
            ]
        );
    }

    /// Registers with the epochsrc upstream, if there is one.
    fn find_coordinator(&self, stream: &mut Stream) {
        let Some(coordinator) = coordinator::find(&self.sink_pad) else {
            return;
        };
        let registration = coordinator.register(Stage::Pack);
        registration.keeps(stream.kept);
        if let Some(gpu) = &stream.gpu {
            registration.offers(gpu.frames());
        }
        stream.workers.join(&coordinator);
        stream.registration = Some(registration);
    }

    /// Does `work` with the stream in hand; `otherwise` where there is none.
    fn with_stream<T>(&self, otherwise: T, work: impl FnOnce(&mut Stream) -> T) -> T {
        let Some(mut stream) = lock(&self.stream).take() else {
            return otherwise;
        };
        let result = work(&mut stream);
        *lock(&self.stream) = Some(stream);
        result
    }

    fn chain(&self, stream: &mut Stream, buffer: gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        let Some((_, deferred)) = stream.input else {
            gst::element_imp_error!(
                self,
                gst::CoreError::Negotiation,
                ("A frame came before its caps")
            );
            return Err(gst::FlowError::NotNegotiated);
        };
        let number = stream.number;
        let frame = Frame::new(buffer, number, deferred).map_err(|error| {
            gst::element_imp_error!(
                self,
                gst::StreamError::Format,
                ("Frame {number} cannot be packed: {error}")
            );
            gst::FlowError::Error
        })?;
        if frame.sample.again {
            // Sent for this only, the last of them perhaps twice; see `Coordinator::kept`.
            let known = |first: &Frame| first.sample.index >= frame.sample.index;
            if stream.first.len() < stream.kept && !stream.first.last().is_some_and(known) {
                stream.first.push(frame);
            }
            return Ok(gst::FlowSuccess::Ok);
        }
        stream.number += 1;
        if let Some(gpu) = &mut stream.gpu {
            gpu.release();
        }
        {
            let mut stats = lock(&self.stats);
            stats.frames += 1;
            let waited = stats.idle_since.take().map_or(0, nanoseconds_since);
            stats.wait_input += waited;
        }
        if !frame.stamped && stream.registration.is_some() {
            identity::post_lost(&*self.obj(), &self.sink_pad, &format!("Frame {number}"));
            return Err(gst::FlowError::Error);
        }
        self.check_order(stream, &frame);
        // An element in between may have swallowed the end of an epoch: no batch holds samples of two.
        let epoch = |frame: &Frame| frame.stamped.then_some(frame.sample.epoch);
        if stream
            .frames
            .first()
            .is_some_and(|first| epoch(first) != epoch(&frame))
        {
            self.complete(stream, None)?;
        }
        if stream.batches == 0 && stream.frames.is_empty() && frame.stamped {
            // Of an epoch that the run resumes in, the first batches are behind.
            let sample = &frame.sample;
            let left_out = sample.skipped.saturating_sub(sample.replaced);
            stream.batches = sample.index.saturating_sub(left_out) / stream.batch_size as u64;
        }
        if stream.first.len() < stream.kept {
            stream.first.push(frame.clone());
        }
        stream.frames.push(frame);
        let result = if stream.frames.len() >= stream.batch_size {
            self.emit(stream, None)
        } else {
            Ok(gst::FlowSuccess::Ok)
        };
        let mut stats = lock(&self.stats);
        stats.level = stream.frames.len() as u64;
        stats.idle_since = Some(Instant::now());
        result
    }

    /// Warns, once, of a frame that is not behind the one before it.
    fn check_order(&self, stream: &mut Stream, frame: &Frame) {
        let place = (frame.sample.epoch, frame.sample.index);
        let before = stream.place.replace(place);
        if before.is_some_and(|before| place <= before) && !std::mem::replace(&mut stream.disordered, true) {
            gst::element_imp_warning!(
                self,
                gst::StreamError::Failed,
                (
                    "Epoch {}, {} came again, or out of its order",
                    frame.sample.epoch,
                    faults::describe(&frame.sample)
                ),
                ["An element between epochsrc and nhwcpack repeats frames or mixes them up (videorate does)"]
            );
        }
    }

    /// Takes over the caps of frames.
    fn set_input(&self, stream: &mut Stream, caps: &gst::CapsRef) -> bool {
        let info = match gst_video::VideoInfo::from_caps(caps) {
            Ok(info) => info,
            Err(error) => {
                gst::element_imp_error!(self, gst::StreamError::Format, ("Cannot take {caps}: {error}"));
                return false;
            }
        };
        let size = |info: &gst_video::VideoInfo| (info.width(), info.height());
        let alike = |(before, _): &(gst_video::VideoInfo, bool)| same_layout(before, &info);
        if stream.input.as_ref().is_some_and(|input| !alike(input)) && stream.is_wasted() {
            stream.frames.clear();
        }
        if let Some((before, _)) = stream
            .input
            .as_ref()
            .filter(|(before, _)| !same_layout(before, &info))
        {
            if size(before) != size(&info) && !stream.frames.is_empty() {
                let ((old_width, old_height), (width, height)) = (size(before), size(&info));
                gst::element_imp_error!(
                    self,
                    gst::StreamError::Format,
                    ("Frames of {old_width}x{old_height} and of {width}x{height} cannot be in one batch"),
                    [
                        "Give epochdecode one size with a caps filter and a `fit` other than none, or use batch-size=1"
                    ]
                );
                return false;
            }
            if !stream.frames.is_empty() {
                // The frames gathered so far are laid out otherwise than those to come.
                gst::element_imp_error!(
                    self,
                    gst::StreamError::Format,
                    (
                        "The layout of frames changed from {:?} to {:?} inside a batch",
                        before.format(),
                        info.format()
                    ),
                    ["Fix the format with a caps filter in front of nhwcpack"]
                );
                return false;
            }
            if size(before) != size(&info) {
                stream.pool = None;
            }
            stream.first.clear();
        }
        let deferred = caps
            .features(0)
            .is_some_and(|features| features.contains(GAINS_FEATURE));
        stream.input = Some((info, deferred));
        true
    }

    /// A serialized event. After a failure to complete the batch, the event still goes on: downstream must end.
    fn stream_event(&self, stream: &mut Stream, event: gst::Event) -> bool {
        match event.view() {
            gst::EventView::Caps(caps) => return self.set_input(stream, caps.caps()),
            gst::EventView::StreamStart(_) if stream.registration.is_none() => {
                self.find_coordinator(stream);
                let registration = stream.registration.as_ref();
                if stream.kept > 0 && registration.is_some_and(|entry| entry.coordinator().is_resumed()) {
                    self.warn_of_late_padding();
                }
            }
            gst::EventView::Segment(_) => {
                stream.discont = true;
                if stream.caps.is_none() {
                    stream.segment = Some(event);
                    return true;
                }
            }
            gst::EventView::SegmentDone(_) => {
                let end = EpochEnd::get(&event);
                let counts = self.complete(stream, end.as_ref());
                if let (Some(mut end), Ok((dropped, padding_dropped, padded))) = (end, counts) {
                    end.ledger.dropped += dropped;
                    end.ledger.padded = end.ledger.padded.saturating_sub(padding_dropped) + padded;
                    let pushed = self.src_pad.push_event(end.update(&event));
                    if pushed
                        && let Some(registration) = stream.registration.as_ref()
                        && let Err(error) = registration.acknowledge_end(&end)
                    {
                        error.warn(&*self.obj());
                    }
                    return pushed;
                }
            }
            gst::EventView::Eos(_) => {
                let _ = self.complete(stream, None);
            }
            gst::EventView::FlushStop(_) => stream.reset(),
            _ => (),
        }
        self.src_pad.push_event(event)
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        gst::log!(CAT, obj = self.sink_pad, "{event:?}");
        if event.is_serialized() {
            self.with_stream(false, |stream| self.stream_event(stream, event))
        } else {
            gst::Pad::event_default(&self.sink_pad, Some(&*self.obj()), event)
        }
    }

    fn sink_query(&self, query: &mut gst::QueryRef) -> bool {
        // hsvquantize asks where the pass is done that it leaves to this element.
        let choice = lock(&self.choice).clone();
        if choice.answer(query) {
            return true;
        }
        match query.view_mut() {
            // Frames end here: what downstream would propose is for batches. A GPU has its own wish.
            gst::QueryViewMut::Allocation(query) => self.with_stream(false, |stream| {
                let Some(gpu) = &stream.gpu else {
                    return false;
                };
                query.add_allocation_param(Some(gpu.frames()), gst::AllocationParams::default());
                true
            }),
            _ => gst::Pad::query_default(&self.sink_pad, Some(&*self.obj()), query),
        }
    }
}

/// Whether frames of `a` and of `b` lie in memory alike; a pixel's aspect or a rate may differ.
fn same_layout(a: &gst_video::VideoInfo, b: &gst_video::VideoInfo) -> bool {
    (a.format(), a.width(), a.height()) == (b.format(), b.width(), b.height())
        && (a.stride(), a.offset()) == (b.stride(), b.offset())
}

impl Stream {
    /// Whether the frames that were gathered are of an epoch that is thrown away: what was prepared of it was so under
    /// another recipe.
    fn is_wasted(&self) -> bool {
        match (self.frames.first(), &self.registration) {
            (Some(frame), Some(registration)) if frame.stamped => {
                registration.coordinator().is_wasted(frame.sample.epoch)
            }
            _ => false,
        }
    }

    fn flushing(&self, pad: &gst::Pad) -> bool {
        pad.pad_flags().contains(gst::PadFlags::FLUSHING)
    }

    /// Forgets the current batch and epoch.
    fn reset(&mut self) {
        self.frames.clear();
        self.first.clear();
        self.place = None;
        self.batches = 0;
        self.discont = true;
        self.segment = None;
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            // Frees the buffers that are not in use; those that are go when they are released.
            let _ = pool.set_active(false);
        }
    }
}

#[glib::object_subclass]
impl ObjectSubclass for NhwcPack {
    const NAME: &'static str = "GstNhwcPack";
    type Type = super::NhwcPack;
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
                    |this| {
                        this.with_stream(Err(gst::FlowError::Flushing), |stream| this.chain(stream, buffer))
                    },
                )
            })
            .event_function(|_, parent, event| {
                Self::catch_panic_pad_function(parent, || false, |this| this.sink_event(event))
            })
            .query_function(|_, parent, query| {
                Self::catch_panic_pad_function(parent, || false, |this| this.sink_query(query))
            })
            .build();
        let src_pad = gst::Pad::builder_from_template(&template("src")).build();
        Self {
            settings: Mutex::default(),
            choice: Mutex::default(),
            stats: Mutex::default(),
            sink_pad,
            src_pad,
            stream: Mutex::new(None),
        }
    }
}

#[glib::derived_properties]
impl ObjectImpl for NhwcPack {
    fn constructed(&self) {
        self.parent_constructed();
        for pad in [&self.sink_pad, &self.src_pad] {
            if let Err(error) = self.obj().add_pad(pad) {
                gst::error!(CAT, imp = self, "Cannot add {}: {error}", pad.name());
            }
        }
    }
}

impl GstObjectImpl for NhwcPack {}

impl ElementImpl for NhwcPack {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Batch packer",
                "Converter/Video/Tensor",
                "Gathers frames into channels-last (or channels-first) tensors, in one pass over the pixels",
                crate::elements::AUTHOR,
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let mut frames = video::gains_caps();
            frames.merge(video::plain_caps());
            let tensors = gst::Caps::builder("other/tensors")
                .field("format", "static")
                .field("num_tensors", 1i32)
                .field(
                    "types",
                    gst::List::new(["float32", "uint8", "float16", "bfloat16"]),
                )
                .field("layout", gst::List::new(["nhwc", "nchw"]))
                .build();
            let mut batches = tensors.clone();
            batches
                .make_mut()
                .set_features_simple(Some(gst::CapsFeatures::new([BATCH_FEATURE])));
            batches.merge(tensors);
            [
                gst::PadTemplate::new("sink", gst::PadDirection::Sink, gst::PadPresence::Always, &frames),
                gst::PadTemplate::new("src", gst::PadDirection::Src, gst::PadPresence::Always, &batches),
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
        if transition == gst::StateChange::ReadyToPaused
            && let Err(error) = self.prepare()
        {
            self.post_error_message(error);
            return Err(gst::StateChangeError);
        }
        let result = self.parent_change_state(transition);
        let started = transition == gst::StateChange::ReadyToPaused && result.is_ok();
        if !started
            && matches!(
                transition,
                gst::StateChange::ReadyToPaused | gst::StateChange::PausedToReady
            )
        {
            let stream = lock(&self.stream).take();
            drop(stream);
        }
        result
    }
}
