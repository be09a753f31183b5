//! One start-to-stop of the element.

use std::collections::VecDeque;
use std::time::Instant;

use super::super::coordinator::hash;
use super::super::faults::{OnError, Place, Resolver};
use super::reader::Reader;
use super::settings::Settings;
use crate::dataset::{Dataset, parse_location};
use crate::decode::Format;
use crate::sampler::{Sampler, State};

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
    pub reader: Reader,
    pub phase: Phase,
    /// The last epoch; `None` without end.
    pub last: Option<u64>,
    /// Position at which the current epoch begins in this run.
    pub start: u64,
    /// Samples before `start` that a seek passed over; nobody has taken them.
    pub passed_over: u64,
    /// The state that the run resumes from, if in the middle of an epoch.
    pub resumed: Option<State>,
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
    /// State behind the buffer that was pushed last: (epoch, position, skipped, replaced).
    pub pushed: Option<(u64, u64, u64, u64)>,
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
        let usage = |message: String| gst::error_msg!(gst::ResourceError::Settings, ("{message}"));
        let location = settings
            .location
            .as_deref()
            .filter(|location| !location.is_empty())
            .ok_or_else(|| {
                usage("No location is set: set it to a folder of images, a list of paths, or an image".into())
            })?;
        let dataset = parse_location(location)
            .and_then(|path| Dataset::open(&path))
            .map_err(|error| {
                gst::error_msg!(
                    gst::ResourceError::OpenRead,
                    ("{error}"),
                    ["location={location:?}"]
                )
            })?;
        let epochs = match settings.epochs {
            0 => {
                return Err(usage(
                    "epochs is 0: set it to at least 1, or to -1 for no end".into(),
                ));
            }
            epochs => u64::try_from(epochs).ok().map(|epochs| epochs - 1),
        };
        let sampler =
            Sampler::new(settings.sampler_config(dataset.len())).map_err(|error| usage(error.to_string()))?;

        let mut resumed = None;
        let mut start = (sampler.first(), 0, 0, 0);
        if let Some(json) = state {
            let refused = |error: &dyn std::fmt::Display| {
                gst::error_msg!(
                    gst::ResourceError::Settings,
                    ("The state cannot be resumed: {error}"),
                    [
                        "Restore what it was made with, or set state=\"\" (and remove the state-location file) to start over"
                    ]
                )
            };
            let state = State::from_json(json).map_err(|error| refused(&error))?;
            state
                .check(sampler.config(), dataset.fingerprint())
                .map_err(|error| refused(&error))?;
            start = if state.position < sampler.draw(&state.receipt).len() {
                resumed = (state.position > 0).then(|| state.clone());
                (state.receipt, state.position, state.skipped, state.replaced)
            } else {
                (sampler.next(&state.receipt, true), 0, 0, 0)
            };
        }
        let (receipt, position, skipped_before, replaced_before) = start;
        let io_depth = usize::try_from(settings.io_depth).unwrap_or(usize::MAX);
        Ok(Self {
            phase: Phase::Beginning,
            last: epochs.map(|more| receipt.epoch().saturating_add(more)),
            start: position,
            passed_over: 0,
            resumed,
            fresh: true,
            framerate: settings.framerate,
            slots: 0,
            skipped_before,
            replaced_before,
            on_error: settings.on_error.for_world(settings.world_size),
            announced: false,
            resolver: Resolver::default(),
            ready: VecDeque::new(),
            pushed: None,
            caps: None,
            segment_done: false,
            handed_over: None,
            reader: Reader::new(dataset, sampler, receipt, position, io_depth),
        })
    }

    /// Begins the epoch that the reader is at.
    pub fn begin_epoch(&mut self) {
        (self.skipped_before, self.replaced_before, self.start) = (0, 0, 0);
        self.passed_over = 0;
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
