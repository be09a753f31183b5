//! One start-to-stop of the element.

use std::collections::VecDeque;
use std::time::Instant;

use super::super::coordinator::{Drawn, Taken, hash};
use super::super::faults::{OnError, Place, Resolver};
use super::reader::Reader;
use super::settings::Settings;
use super::start::{OpenError, Start, open};
use crate::decode::Format;
use crate::sampler::{Slot, State};

/// What comes next in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The SEGMENT of the current epoch.
    Beginning,
    /// Samples of the current epoch.
    Reading,
    /// All its samples have been pushed: its end is to be announced.
    Ended,
    /// Its end has been announced and the next epoch is not asked for yet.
    Boundary,
    /// It failed while it was prepared: it is read again when that is asked for.
    Failed,
    /// The run's last epoch has ended.
    Finished,
}

/// One start-to-stop of the element; owned by the streaming thread while it works.
pub(super) struct Run {
    /// The properties as they were at the start.
    settings: Settings,
    pub reader: Reader,
    pub phase: Phase,
    /// The last epoch; `None` without end.
    pub last: Option<u64>,
    /// Position at which the current epoch begins in this run.
    pub start: u64,
    /// Samples before `start` that a seek passed over; nobody has taken them.
    pub passed_over: u64,
    /// Where the seek went, which may be behind the epoch's end.
    target: u64,
    /// The state that the run resumes from, if in the middle of an epoch.
    pub resumed: Option<State>,
    /// See [`State::reloaded`].
    pub reloaded: bool,
    /// The state was of another dataset, and its epoch begins again.
    pub restarted: bool,
    /// The dataset has been read for the epoch that begins; with `reload` that is done for each.
    pub current: bool,
    /// What is sent again before the run goes on in the middle of an epoch, as long as it does that.
    pub again: Option<VecDeque<(u64, Slot)>>,
    /// The sample delivered last before `start`.
    pub last_good: Option<u64>,
    /// No buffer of the current epoch has been pushed yet: the first is a discontinuity.
    pub fresh: bool,
    pub framerate: gst::Fraction,
    /// Slots of this run so far; running time is this many frames.
    pub slots: u64,
    /// Faults of the current epoch before this run, for a run that resumes in it.
    pub skipped_before: u64,
    pub replaced_before: u64,
    pub on_error: OnError,
    /// It has been said that skip acts as replace.
    pub announced: bool,
    pub resolver: Resolver<Encoded>,
    /// What is to be pushed next.
    pub ready: VecDeque<(Place, Encoded)>,
    /// Epoch and place behind the buffer that was pushed last.
    pub pushed: Option<(u64, Taken)>,
    pub caps: Option<Format>,
    /// SEGMENT_DONE was sent, and no segment since.
    pub segment_done: bool,
    /// When the last buffer was handed to the base class.
    pub handed_over: Option<Instant>,
}

/// An encoded image, or a fault (`format` is `None`).
#[derive(Clone, Debug)]
pub(super) struct Encoded {
    pub format: Option<Format>,
    pub buffer: gst::Buffer,
}

impl Run {
    /// Opens the dataset and finds the place to start at: behind `state`, if there is one.
    pub fn prepare(settings: &Settings, state: Option<&str>) -> Result<Self, gst::ErrorMessage> {
        let epochs = match settings.epochs {
            0 => {
                return Err(gst::error_msg!(
                    gst::ResourceError::Settings,
                    ("epochs is 0: set it to at least 1, or to -1 for no end")
                ));
            }
            epochs => u64::try_from(epochs).ok().map(|epochs| epochs - 1),
        };
        let (dataset, sampler) = open(settings)?;
        let start = match state {
            None => Start::of(&sampler),
            Some(json) => Start::behind(json, &dataset, &sampler, settings).map_err(|error| {
                gst::error_msg!(
                    gst::ResourceError::Settings,
                    ("The state cannot be resumed: {error}"),
                    [
                        "Restore what it was made with; or set on-change=restart to begin the epoch again with another dataset, or \
                         state=\"\" (and remove the state-location file) to start over"
                    ]
                )
            })?,
        };
        let resumed = start.resumed;
        let (receipt, position) = (start.receipt, resumed.as_ref().map_or(0, |state| state.position));
        let io_depth = usize::try_from(settings.io_depth).unwrap_or(usize::MAX);
        let mut run = Self {
            phase: Phase::Beginning,
            last: epochs.map(|more| receipt.epoch().saturating_add(more)),
            start: position,
            passed_over: 0,
            target: 0,
            resumed: resumed.clone(),
            reloaded: settings.reload || start.reloaded,
            restarted: start.restarted,
            current: true,
            again: None,
            last_good: None,
            fresh: true,
            framerate: settings.framerate,
            slots: 0,
            skipped_before: 0,
            replaced_before: 0,
            on_error: settings.on_error.for_world(settings.world_size),
            announced: false,
            resolver: Resolver::default(),
            ready: VecDeque::new(),
            pushed: None,
            caps: None,
            segment_done: false,
            handed_over: None,
            settings: settings.clone(),
            reader: Reader::new(dataset, sampler, receipt, position, io_depth),
        };
        if let Some(state) = &resumed {
            run.resume(state);
        }
        Ok(run)
    }

    /// What lies before its place in the epoch was taken earlier, with `state` behind it.
    pub fn resume(&mut self, state: &State) {
        (self.skipped_before, self.replaced_before) = (state.skipped, state.replaced);
        self.last_good = state.last_good;
    }

    /// Reads the location again, and draws the epoch that begins from what is there now. True if it has changed.
    pub fn reload(&mut self) -> Result<bool, OpenError> {
        let (dataset, sampler) = open(&self.settings)?;
        let changed = dataset.fingerprint() != self.reader.dataset.fingerprint();
        self.reader.reload(dataset, sampler);
        self.current = true;
        self.pass_over(self.target);
        Ok(changed)
    }

    /// Begins the epoch at `target`, if it has so many slots; nobody takes those before.
    pub fn pass_over(&mut self, target: u64) {
        self.target = target;
        let order = self.reader.order();
        self.start = target.min(order.len());
        self.passed_over = self.start - order.padded_before(self.start);
        self.reader.skip_to(self.start);
    }

    /// What the current epoch is drawn from.
    pub fn drawn(&self) -> Drawn {
        Drawn {
            sampler: self.reader.sampler.clone(),
            dataset: self.reader.dataset.clone(),
            reloaded: self.reloaded,
        }
    }

    /// Slots before the place where the run resumes in its epoch that are needed again: its first ones, of which a packer
    /// keeps `kept` frames, and the sample delivered last, where it may have to stand in for faulty ones.
    pub fn needed_again(&self, kept: u64, may_replace: bool) -> VecDeque<(u64, Slot)> {
        let order = self.reader.order();
        // An epoch that a seek begins anew at a later place has nothing before that.
        if self.start == 0 || self.start >= order.len() || self.passed_over > 0 {
            return VecDeque::new();
        }
        let first = match kept {
            0 => 0,
            // Some of them may have given no frame.
            kept => self.start.min(kept.saturating_add(self.skipped_before)),
        };
        let mut again: VecDeque<_> = (0..first)
            .filter_map(|position| Some((position, order.slot(position)?)))
            .collect();
        // Also behind all of them: they may be faulty ones that it stood in for, coming after them.
        if let Some(dataset_index) = self.last_good.filter(|_| may_replace) {
            let pad = false;
            again.push_back((self.start - 1, Slot { dataset_index, pad }));
        }
        again
    }

    /// Begins the epoch that the reader is at.
    pub fn begin_epoch(&mut self) {
        (self.skipped_before, self.replaced_before, self.start) = (0, 0, 0);
        (self.passed_over, self.target) = (0, 0);
        (self.again, self.last_good) = (None, None);
        self.current = !self.settings.reload;
        self.resolver.end();
        self.ready.clear();
        self.pushed = None;
        self.fresh = true;
        self.phase = Phase::Beginning;
    }

    /// Hash of what this element contributes to the pixels: dataset and order.
    pub fn recipe(&self) -> u64 {
        let reader = &self.reader;
        hash([format!(
            "{:?} {}",
            reader.sampler.config(),
            reader.dataset.fingerprint()
        )])
    }

    /// The segment that begins behind the slots so far.
    pub fn segment(&self) -> gst::FormattedSegment<gst::ClockTime> {
        let start = self.time(self.slots);
        let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
        segment.set_start(start);
        segment.set_time(start);
        segment.set_base(start);
        segment.set_position(start);
        segment
    }

    /// Time stamp of the run's `slots`-th frame.
    pub fn time(&self, slots: u64) -> gst::ClockTime {
        let (numerator, denominator) = (self.framerate.numer(), self.framerate.denom());
        let nanoseconds = u128::from(slots) * 1_000_000_000 * denominator.unsigned_abs() as u128
            / u128::from(numerator.unsigned_abs().max(1));
        gst::ClockTime::from_nseconds(u64::try_from(nanoseconds).unwrap_or(u64::MAX - 1))
    }
}
