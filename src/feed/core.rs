//! The consumer's part of the protocol of an epoch: ask, take, leave, stop.
//!
//! Lock order: `asking`, then `cursor`, `last_share` or the exchange's lock, never two of these; the coordinator's is taken
//! under `last_share`. `cursor` is held for assignments only;
//! `asking` is held over a whole request, waits included, so that two threads cannot ask for one epoch each at a time. All
//! these waits end when the feed is closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use gst::prelude::*;

use super::batch::Batch;
use super::error::FeedError;
use super::exchange::{Exchange, Pop};
use super::stats::{BufferStats, FeedStats};
use super::threads::StreamingThreads;
use crate::elements::account::Account;
use crate::elements::coordinator::{Coordinator, Registration, Requested, Taken};
use crate::elements::epoch_end::EpochEnd;
use crate::elements::meta::BatchMeta;
use crate::elements::util::lock;
use crate::sampler::{Ledger, Order, Sampler, SamplerConfig, Shuffle, State};

/// This rank's share of each epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// Samples, padding included.
    pub slots: u64,
    /// Samples without padding.
    pub listed: u64,
}

impl Share {
    /// The share of a run with `config`.
    pub fn of(config: SamplerConfig) -> Option<Self> {
        // How much is drawn does not depend on the order, and that of the dataset costs nothing.
        let sampler = Sampler::new(SamplerConfig {
            shuffle: Shuffle::None,
            ..config
        })
        .ok()?;
        Some(Self::from(&sampler.draw(&sampler.first())))
    }
}

impl From<&Order> for Share {
    fn from(order: &Order) -> Self {
        Self {
            slots: order.len(),
            listed: order.listed(),
        }
    }
}

/// Where the consumer is.
#[derive(Debug)]
struct Cursor {
    /// The epoch that was asked for last.
    epoch: Option<u64>,
    /// It may still give batches.
    open: bool,
    /// It was left before its end, and the state does not say so yet.
    broken_off: bool,
    /// Counts what is taken of it, from its first batch on.
    account: Option<Account>,
    /// When it was asked for.
    asked: Instant,
    /// State behind the batch that was taken last, as long as the consumer may be working on it.
    unacknowledged: Option<String>,
    stats: FeedStats,
}

/// A feed's pipeline with its consumer; see the [module](self).
#[derive(Debug)]
pub(super) struct Core {
    pub pipeline: gst::Pipeline,
    /// The sink's pad: seeks go upstream from here.
    pub sink_pad: gst::Pad,
    pub buffer: gst::Element,
    pub exchange: Arc<Exchange>,
    pub registration: Registration,
    pub threads: Arc<StreamingThreads>,
    /// Batches in all, after which the feed ends.
    pub max_steps: Option<u64>,
    share: Share,
    /// That of the epoch that was asked about last.
    last_share: Mutex<(u64, Share)>,
    asking: Mutex<()>,
    cursor: Mutex<Cursor>,
    stopped: AtomicBool,
}

/// What a [`Core`] is made of.
pub(super) struct Parts {
    pub pipeline: gst::Pipeline,
    pub sink_pad: gst::Pad,
    pub buffer: gst::Element,
    pub exchange: Arc<Exchange>,
    pub registration: Registration,
    pub threads: Arc<StreamingThreads>,
    pub max_steps: Option<u64>,
}

impl Core {
    /// A consumer of a pipeline that has been started and delivers `share` of each epoch.
    pub fn new(parts: Parts, share: Share) -> Self {
        Self {
            pipeline: parts.pipeline,
            sink_pad: parts.sink_pad,
            buffer: parts.buffer,
            exchange: parts.exchange,
            registration: parts.registration,
            threads: parts.threads,
            max_steps: parts.max_steps,
            share,
            last_share: Mutex::new((0, share)),
            asking: Mutex::default(),
            cursor: Mutex::new(Cursor {
                epoch: None,
                open: false,
                broken_off: false,
                account: None,
                asked: Instant::now(),
                unacknowledged: None,
                stats: FeedStats::default(),
            }),
            stopped: AtomicBool::new(false),
        }
    }

    fn coordinator(&self) -> &Arc<Coordinator> {
        self.registration.coordinator()
    }

    /// This rank's share of `epoch`; of one that is not drawn, of each as the dataset was at the start.
    pub fn share(&self, epoch: u64) -> Share {
        let mut last = lock(&self.last_share);
        if let Some(order) = self.coordinator().order(epoch) {
            *last = (epoch, Share::from(&order));
        }
        // Of an epoch that is over the coordinator knows nothing more.
        if last.0 == epoch { last.1 } else { self.share }
    }

    /// The state of what has been acknowledged.
    pub fn state(&self) -> Option<String> {
        self.coordinator().state()
    }

    /// The figures so far.
    pub fn stats(&self) -> FeedStats {
        let stats = lock(&self.cursor).stats.clone();
        FeedStats {
            buffer: BufferStats::of(&self.buffer),
            ..stats
        }
    }

    /// What became of `epoch`, if it is the last one that has ended.
    pub fn ledger(&self, epoch: u64) -> Option<Ledger> {
        let (last, ledger) = lock(&self.cursor).stats.last_epoch?;
        (last == epoch).then_some(ledger)
    }

    fn acknowledge(&self, state: &str) -> Result<(), FeedError> {
        let epoch = State::from_json(state).map_or(0, |state| state.epoch);
        self.registration
            .acknowledge(epoch, state)
            .map_err(|error| FeedError::SaveState {
                reason: error.to_string(),
            })
    }

    /// Asks for the next epoch and leaves the current one; `None` after the last.
    pub fn ask(self: &Arc<Self>) -> Result<Option<u64>, FeedError> {
        if self.threads.has_current() {
            return Err(FeedError::StreamingThread);
        }
        let _turn = lock(&self.asking);
        let current = lock(&self.cursor).epoch;
        if let Some(epoch) = current {
            self.leave(epoch);
            self.commit_break(epoch)?;
            self.exchange.check()?;
        }
        let coordinator = self.coordinator();
        let next = match current {
            // The run's first epoch is asked for by starting it; what has happened to it since is for the epoch to say.
            None => coordinator.requested(),
            Some(epoch) if self.ended() || !coordinator.has_next(epoch) => None,
            Some(epoch) => Some(epoch + 1),
        };
        let Some(next) = next.filter(|_| !self.limit_reached()) else {
            // A feed that is being stopped looks as if its stream had ended.
            self.exchange.check()?;
            return Ok(None);
        };
        {
            let mut cursor = lock(&self.cursor);
            cursor.asked = Instant::now();
            cursor.account = None;
        }
        if let Requested::Failed(reason) = coordinator.request(next) {
            return Err(FeedError::Prepare { epoch: next, reason });
        }
        {
            let mut cursor = lock(&self.cursor);
            cursor.epoch = Some(next);
            cursor.open = true;
            cursor.unacknowledged = None;
        }
        self.exchange.begin(next);
        Ok(Some(next))
    }

    /// The application has ended the stream.
    fn ended(&self) -> bool {
        self.exchange.is_eos() || self.coordinator().is_ending()
    }

    fn limit_reached(&self) -> bool {
        self.max_steps
            .is_some_and(|limit| lock(&self.cursor).stats.batches >= limit)
    }

    /// The next batch of `epoch`; `None` at its end, and for an epoch that is not the one asked for last.
    pub fn take(&self, epoch: u64) -> Result<Option<Batch>, FeedError> {
        if self.threads.has_current() {
            return Err(FeedError::StreamingThread);
        }
        let used = {
            let mut cursor = lock(&self.cursor);
            if cursor.epoch != Some(epoch) || !cursor.open {
                return Ok(None);
            }
            cursor.unacknowledged.take()
        };
        if let Some(state) = used {
            self.acknowledge(&state)?;
        }
        if self.limit_reached() {
            self.exchange.end(false);
            self.close_epoch(epoch, false, None);
            return Ok(None);
        }
        let asked = Instant::now();
        loop {
            match self.exchange.pop(epoch) {
                Pop::Failed(error) => return Err(error),
                Pop::Left => return Ok(None),
                Pop::Batch(buffer, tensor) => {
                    let meta = BatchMeta::get(&buffer).ok_or_else(|| FeedError::Batch {
                        reason: "it has no meta epochfeed-batch".to_owned(),
                    })?;
                    if meta.epoch < epoch {
                        continue;
                    }
                    self.count(&meta, asked);
                    return Batch::new(buffer, tensor, meta).map(Some);
                }
                Pop::End(end) => {
                    self.exchange.end(false);
                    let taken = Taken::all(self.share(epoch).slots, &end.ledger);
                    let state = self.coordinator().state_at(epoch, taken);
                    self.close_epoch(epoch, false, Some(end));
                    return self.acknowledge(&state.unwrap_or_default()).map(|()| None);
                }
                Pop::Eos => {
                    self.exchange.end(false);
                    self.close_epoch(epoch, false, None);
                    return Ok(None);
                }
            }
        }
    }

    /// Counts a batch that was asked for at `asked`.
    fn count(&self, meta: &BatchMeta, asked: Instant) {
        let now = Instant::now();
        let before = self.coordinator().before(meta.epoch);
        let mut cursor = lock(&self.cursor);
        let since = cursor.asked;
        if cursor.account.is_none() {
            cursor.stats.boundary_wait = now.saturating_duration_since(since);
        }
        cursor
            .account
            .get_or_insert_with(|| Account::begin(meta.epoch, before, since, now))
            .add(meta);
        cursor.unacknowledged = Some(meta.state.clone());
        cursor.stats.batches += 1;
        cursor.stats.samples += meta.pad.len() as u64;
        cursor.stats.wait += now.saturating_duration_since(asked);
    }

    /// Books `epoch`: as the stream says in `end`, else as one that ended early. False if it was closed before.
    fn close_epoch(&self, epoch: u64, broken_off: bool, end: Option<EpochEnd>) -> bool {
        let now = Instant::now();
        // Looked up without the cursor's lock; of use only where no batch of the epoch came.
        let before = self.coordinator().before(epoch);
        let listed = self.share(epoch).listed;
        let mut cursor = lock(&self.cursor);
        if cursor.epoch != Some(epoch) || !std::mem::take(&mut cursor.open) {
            return false;
        }
        cursor.broken_off = broken_off;
        let asked = cursor.asked;
        let account = cursor
            .account
            .take()
            .unwrap_or_else(|| Account::begin(epoch, before, asked, now));
        let report = match end {
            Some(end) => account.finish(end.ledger, now),
            None => account.break_off(listed, now),
        };
        cursor.stats.epochs += 1;
        cursor.stats.last_epoch = Some((epoch, report.ledger));
        cursor.stats.ledger += report.ledger;
        true
    }

    /// Leaves `epoch` if it still has batches: its tail is dropped, and the stream is moved to its end.
    pub fn leave(self: &Arc<Self>, epoch: u64) {
        if !self.close_epoch(epoch, true, None) {
            return;
        }
        let moving = self.exchange.end(!self.ended() && !self.limit_reached());
        if !moving {
            return;
        }
        self.coordinator().break_off(epoch);
        let core = self.clone();
        // A flushing seek waits for the streaming threads.
        self.threads.outside("epochfeed-leave", &self.pipeline, move || {
            if !core.seek_to_end() {
                core.exchange.fail(FeedError::BreakOff { epoch });
            }
            core.exchange.settle();
        });
    }

    fn seek_to_end(&self) -> bool {
        let seek = gst::event::Seek::builder(
            1.0,
            gst::SeekFlags::FLUSH,
            gst::SeekType::Set,
            // Behind every epoch's last slot; how many there are may not be known yet.
            gst::format::Default::from_u64(i64::MAX.unsigned_abs()),
            gst::SeekType::None,
            gst::format::Default::NONE,
        );
        self.sink_pad.push_event(seek.build())
    }

    /// Leaves `epoch` and moves the state to the start of the next one.
    pub fn break_off(self: &Arc<Self>, epoch: u64) -> Result<(), FeedError> {
        self.leave(epoch);
        if self.threads.has_current() {
            return Err(FeedError::StreamingThread);
        }
        let _turn = lock(&self.asking);
        self.commit_break(epoch)
    }

    /// If `epoch` was broken off: waits until it has ended in the stream, and moves the state to the next one's start.
    fn commit_break(&self, epoch: u64) -> Result<(), FeedError> {
        let (broken_off, used) = {
            let mut cursor = lock(&self.cursor);
            let broken_off = cursor.epoch == Some(epoch) && cursor.broken_off;
            (broken_off, cursor.unacknowledged.take_if(|_| broken_off))
        };
        if !broken_off {
            return Ok(());
        }
        // The feed's own limit is no decision about the epoch: a run that resumes goes on with its rest.
        let state = if self.limit_reached() {
            used
        } else {
            self.exchange.wait_settled();
            if !self.ended() {
                self.exchange.wait_end(epoch)?;
            }
            self.coordinator().state_behind_break(epoch)
        };
        if let Some(state) = state {
            self.acknowledge(&state)?;
        }
        lock(&self.cursor).broken_off = false;
        Ok(())
    }

    /// Brings the pipeline to NULL, which joins its threads. On one of these threads, another one does it, and joins them
    /// when the callback that this is called in has returned.
    pub fn stop(self: &Arc<Self>) {
        if self.stopped.swap(true, Ordering::AcqRel) {
            return;
        }
        self.exchange.close();
        let core = self.clone();
        self.threads.outside("epochfeed-stop", &self.pipeline, move || {
            // Elements must not be stopped under a seek that starts their tasks again.
            core.exchange.wait_settled();
            let _ = core.pipeline.set_state(gst::State::Null);
        });
    }
}
