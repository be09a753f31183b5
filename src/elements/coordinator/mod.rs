//! The coordinator: the one feedback channel between the consumer of an epoch and the source that draws it.
//!
//! Each `epochsrc` owns one and answers upstream CONTEXT queries with it ([`find`]). The protocol of an epoch:
//!
//! 1. `epochsrc` starts: [`Coordinator::begin`] says what is drawn and asks for the run's first epoch.
//! 2. It draws an epoch from its receipt: [`Coordinator::open`]. Elements below can now say which state lies behind
//!    each sample ([`Coordinator::state_at`]).
//! 3. The epoch ends in the stream with SEGMENT_DONE. `epochsrc` waits in [`Coordinator::wait_for`].
//! 4. Either the consumer has validated and asks for the next epoch ([`Coordinator::request`]), or `epochbuffer` allows it
//!    to be prepared meanwhile ([`Coordinator::allow`]) and holds it behind its gate until it is asked for. Where no
//!    consumer is registered, `epochsrc auto-advance=true` asks by itself.
//! 5. The epoch begins to be delivered: [`Coordinator::deliver`]. If it was prepared under another recipe
//!    ([`Coordinator::is_current`]) it is thrown away and read again first ([`Coordinator::invalidate`]); if preparing it
//!    failed ([`Coordinator::fail`]), the request says so, and it is read again.
//! 6. What a consumer has finished with it acknowledges ([`Coordinator::acknowledge`]); that is `epochsrc state`.
//!    Without a consumer the last of our elements acknowledges what it pushed.
//! 7. A consumer that takes no more of an epoch breaks it off ([`Coordinator::break_off`]) and seeks to its end.
//!
//! The rules are in `boundary.rs`, without threads, and held against a model in `model.rs`.
//!
//! The coordinator holds no element, so it keeps nothing alive, and takes no lock but its own. Lock order: none;
//! the lock is never held over a call out (a write to the state's file included).

mod boundary;
mod context;
mod keeper;
mod recipe;
mod registration;
mod run;
mod seek;
mod state_file;
mod states;
mod told;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use gst::prelude::*;

use super::cuda::FrameAllocator;
use crate::sampler::{Order, Receipt, State};

use boundary::Boundary;
use run::Opened;

pub use boundary::{Failure, Go, Requested};
pub use keeper::{FrameKey, Keeper, Keepers};
pub use registration::{Registration, SaveError};
pub use run::{Drawn, Ordinary, Run, Taken};
pub use states::load_state;

pub use context::{CoordinatorHandle, answer, find};

/// An element's place in the path of a sample; the later one's acknowledgement counts. Where an epochbuffer stands is told
/// by what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// epochsrc, where nothing of ours follows.
    Source,
    /// epochbuffer with encoded images.
    HeldFiles,
    /// epochdecode.
    Decode,
    /// epochbuffer with frames.
    HeldFrames,
    /// hsvquantize.
    Color,
    /// epochbuffer with frames that have gains.
    HeldColors,
    /// nhwcpack.
    Pack,
    /// epochbuffer with batches, or with nothing so far.
    HeldBatches,
    /// epochsink: it stands for the trainer, asks for epochs and acknowledges batches.
    Consumer,
}

/// The feedback channel; see the [module](self).
#[derive(Default)]
pub struct Coordinator {
    inner: Mutex<Inner>,
    /// Signalled when an epoch is asked for and when the source is to stop waiting.
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    run: Option<Run>,
    /// The epochs that were drawn and are not behind the consumer yet, oldest first.
    opened: VecDeque<Opened>,
    /// Where the run began, if in the middle of an epoch.
    resumed: Option<State>,
    /// What may be read and delivered.
    boundary: Boundary,
    /// The last epoch of the run, if it has one.
    last: Option<u64>,
    /// Who says what the current settings of an element come to; see [`Coordinator::recipe`].
    recipes: BTreeMap<&'static str, Weak<Recipe>>,
    /// Where frames are made best, if a packer has said so; see [`Registration::offers`].
    frames: Option<glib::WeakRef<FrameAllocator>>,
    /// Who keeps frames from epoch to epoch.
    keepers: Vec<Weak<Keeper>>,
    /// A consumer has said that it may stop in the middle of an epoch.
    step_bound: bool,
    /// The recipes under which epochs were prepared that are not delivered yet; `None` if it changed meanwhile.
    prepared: BTreeMap<u64, Option<u64>>,
    /// The seek that asked for an epoch last, with success, and the epoch.
    asked: Option<(gst::Seqnum, u64)>,
    /// The flushing seek that reads the epoch to be restarted.
    restart_seqnum: Option<gst::Seqnum>,
    /// A flushing seek is on its way.
    seeking: bool,
    /// The epoch that the consumer was sent to by a seek, of which it has not acknowledged anything since.
    sought: Option<u64>,
    /// Messages about samples of an epoch that is not delivered yet.
    held: Vec<(u64, glib::WeakRef<gst::Element>, gst::Message)>,
    /// The faults that were told, where a consumer wants them.
    told: Option<told::Told>,
    /// Called after every change that somebody may wait for.
    listeners: Vec<Weak<Listener>>,
    /// The source must not wait: it flushes or stops.
    flushing: bool,
    /// How many elements of each stage are there.
    stages: BTreeMap<Stage, usize>,
    /// How many of an epoch's first frames a packer keeps, to fill up the last batch with.
    kept: usize,
    /// The latest stage that was there in this run: while a pipeline stops, from sink to source, what an earlier one
    /// passes on is not consumed.
    latest: Option<Stage>,
    /// It has been said that the state cannot be saved.
    save_failed: bool,
    /// What was acknowledged last. It survives the end of a run.
    state: Option<String>,
}

/// Hashes the current settings of an element.
pub type Recipe = dyn Fn() -> u64 + Send + Sync;
/// Is told that something changed.
pub type Listener = dyn Fn() + Send + Sync;

impl Coordinator {
    /// A poisoned lock is used all the same: every change under it is a plain assignment.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a run of the epochs `first` to `last` (without end if there is none), the first of them at `resumed` if
    /// in its middle. Requests and failures of the run before are forgotten; the state stays.
    pub fn begin(&self, run: Run, first: u64, last: Option<u64>, resumed: Option<State>) {
        let mut inner = self.lock();
        inner.run = Some(run);
        inner.opened.clear();
        inner.boundary = Boundary::begin(first);
        inner.resumed = resumed;
        inner.latest = inner.stages.keys().next_back().copied();
        inner.save_failed = false;
        inner.prepared.clear();
        inner.asked = None;
        inner.restart_seqnum = None;
        inner.sought = None;
        inner.last = last;
        inner.flushing = false;
        let held = std::mem::take(&mut inner.held);
        let told = inner.told.as_mut().map(std::mem::take);
        drop(inner);
        drop((held, told));
        self.notify();
    }

    /// Makes an epoch known that was drawn from `drawn`.
    pub fn open(&self, drawn: Drawn, receipt: Receipt, order: Order) {
        let mut inner = self.lock();
        inner
            .opened
            .retain(|opened| opened.receipt.epoch() != receipt.epoch());
        inner.opened.push_back(Opened {
            receipt,
            order,
            drawn,
        });
    }

    /// Changes the protocol's state and tells everybody who waits.
    fn change<T>(&self, change: impl FnOnce(&mut Boundary) -> T) -> T {
        let result = change(&mut self.lock().boundary);
        self.notify();
        result
    }

    fn notify(&self) {
        self.changed.notify_all();
        let mut listeners = Vec::new();
        self.lock().listeners.retain(|listener| match listener.upgrade() {
            Some(listener) => {
                listeners.push(listener);
                true
            }
            None => false,
        });
        for listener in listeners {
            listener();
        }
    }

    /// Has `listener` called after every change, as long as it lives.
    pub fn listen(&self, listener: &Arc<Listener>) {
        self.lock().listeners.push(Arc::downgrade(listener));
    }

    /// The consumer asks for `epoch` (and those before it). Asking again changes nothing.
    pub fn request(&self, epoch: u64) -> Requested {
        let requested = self.change(|boundary| boundary.request(epoch));
        if let Requested::Failed(_) = requested {
            // What was said of it will be said again when it is prepared again.
            self.forget_messages(|of| of > epoch);
        }
        requested
    }

    /// Answers the seek `seqnum`, which asks for the next epoch, with what `ask` says; it gets that epoch's number. After
    /// a failure the same seek may ask again.
    ///
    /// A pipeline sends a seek to each of its sinks, and behind a tee each arrives. Only the first one asks: what it asked
    /// for may be on its way when the others come, which would then ask for the epoch behind.
    pub fn ask_once(&self, seqnum: gst::Seqnum, ask: impl FnOnce(u64) -> bool) -> bool {
        let before = self.lock().asked;
        if let Some((last, epoch)) = before
            && last == seqnum
            && !self.is_finished(epoch)
        {
            return true;
        }
        let Some(next) = self.next() else {
            return false;
        };
        let answer = ask(next);
        if answer {
            self.lock().asked = Some((seqnum, next));
        }
        answer
    }

    /// Whether all of `epoch` has been acknowledged.
    fn is_finished(&self, epoch: u64) -> bool {
        let inner = self.lock();
        let state = inner
            .state
            .as_deref()
            .and_then(|state| State::from_json(state).ok());
        state.is_some_and(|state| {
            let length = inner.opened(epoch).map(|opened| opened.order.len());
            state.epoch > epoch
                || state.epoch == epoch && length.is_some_and(|length| state.position >= length)
        })
    }

    /// Allows `epoch` to be prepared; false if it was allowed before.
    pub fn allow(&self, epoch: u64) -> bool {
        self.change(|boundary| boundary.allow(epoch))
    }

    /// A sample of `epoch` is read under `recipe`.
    pub fn note_recipe(&self, epoch: u64, recipe: u64) {
        let mut inner = self.lock();
        if inner.boundary.is_requested(epoch) {
            return;
        }
        let noted = inner.prepared.entry(epoch).or_insert(Some(recipe));
        if *noted != Some(recipe) {
            *noted = None;
        }
    }

    /// Whether what was prepared of `epoch` was made under the current recipe.
    pub fn is_current(&self, epoch: u64) -> bool {
        let prepared = self.lock().prepared.get(&epoch).copied();
        prepared.is_none_or(|recipe| recipe == Some(self.recipe()))
    }

    /// Says which flushing seek restarts an epoch.
    pub fn restart_with(&self, seqnum: gst::Seqnum) {
        self.lock().restart_seqnum = Some(seqnum);
    }

    /// Waits until `epoch` may be read; `None` when the source flushes or stops.
    pub fn wait_for(&self, epoch: u64) -> Option<Go> {
        let mut inner = self.lock();
        loop {
            if inner.flushing {
                return None;
            }
            if let Some(go) = inner.boundary.go(epoch) {
                return Some(go);
            }
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether `epoch` has been asked for.
    pub fn is_requested(&self, epoch: u64) -> bool {
        self.lock().boundary.is_requested(epoch)
    }

    /// The epoch that was asked for last.
    pub fn requested(&self) -> Option<u64> {
        self.lock().boundary.requested()
    }

    /// The epoch that the consumer is in: as far as it has acknowledged, else the one that is being delivered.
    pub fn current(&self) -> Option<u64> {
        let inner = self.lock();
        let current = inner.boundary.current()?;
        if inner.boundary.is_broken_off(current) {
            return Some(current);
        }
        if inner.sought.is_some() {
            // What it has acknowledged before may be the end of the same epoch.
            return inner.sought;
        }
        let acknowledged = inner
            .state
            .as_deref()
            .and_then(|state| State::from_json(state).ok());
        let place = acknowledged.and_then(|state| Some((inner.opened(state.epoch)?.order.len(), state)));
        Some(match place {
            Some((length, state)) if state.position < length => state.epoch,
            Some((_, state)) if inner.boundary.is_requested(state.epoch + 1) => state.epoch + 1,
            Some((_, state)) => state.epoch,
            None => current,
        })
    }

    /// The epoch behind the one that is delivered now; `None` behind the last one of the run, and where none runs.
    pub fn next(&self) -> Option<u64> {
        let inner = self.lock();
        let next = inner.boundary.next()?;
        inner.last.is_none_or(|last| next <= last).then_some(next)
    }

    /// The run has ended; only the state stays.
    pub fn stop(&self) {
        let mut inner = self.lock();
        inner.run = None;
        inner.boundary = Boundary::default();
        let held = std::mem::take(&mut inner.held);
        let opened = std::mem::take(&mut inner.opened);
        drop(inner);
        drop((held, opened));
        self.notify();
    }

    /// `epoch` begins to be delivered. Messages about it that were held back are posted now.
    pub fn deliver(&self, epoch: u64) {
        self.change(|boundary| boundary.deliver(epoch));
        let mut post = Vec::new();
        let mut inner = self.lock();
        inner.prepared.retain(|of, _| *of > epoch);
        inner.held.retain(|(of, element, message)| {
            let keep = *of > epoch;
            if !keep && let Some(element) = element.upgrade() {
                post.push((element, message.clone()));
            }
            keep
        });
        drop(inner);
        for (element, message) in post {
            self.note_told(&message);
            let _ = element.post_message(message);
        }
    }

    /// Whether the run goes on after `epoch`.
    pub fn has_next(&self, epoch: u64) -> bool {
        self.lock().last.is_none_or(|last| epoch < last)
    }

    /// `epoch` cannot be read to its end. A failure of an epoch that nobody has asked for is held back until somebody
    /// does; what is still read of it is worthless.
    pub fn fail(&self, epoch: u64, reason: String) -> Failure {
        self.change(|boundary| boundary.fail(epoch, reason))
    }

    /// Whether `epoch` failed while it was prepared, and nobody has been told.
    pub fn has_failed(&self, epoch: u64) -> bool {
        self.lock().boundary.has_failed(epoch)
    }

    /// Why `epoch` failed while it was prepared, if it did and nobody has been told.
    pub fn failure(&self, epoch: u64) -> Option<String> {
        self.lock().boundary.failure(epoch).map(str::to_owned)
    }

    /// What was prepared of `epoch` is to be thrown away and read again.
    pub fn invalidate(&self, epoch: u64) {
        self.change(|boundary| boundary.invalidate(epoch));
        let mut inner = self.lock();
        inner.prepared.clear();
        drop(inner);
        self.forget_messages(|of| of != epoch);
    }

    /// The epoch that has to be read again, if any.
    pub fn restart(&self) -> Option<u64> {
        self.lock().boundary.restart()
    }

    /// The epoch that the flushing seek `seqnum` restarts; `None` if it is somebody else's seek.
    pub fn take_restart(&self, seqnum: gst::Seqnum) -> Option<u64> {
        self.lock().restart_seqnum.take_if(|restart| *restart == seqnum)?;
        self.change(Boundary::restarted)
    }

    /// Everything on its way has been flushed away; `epoch` is read again, from `resumed` if not from its start.
    pub fn flushed(&self, epoch: u64, resumed: Option<State>) {
        let mut inner = self.lock();
        inner.resumed = resumed;
        inner.prepared.clear();
        inner.sought = inner.boundary.is_requested(epoch).then_some(epoch);
        // What was drawn behind it may be drawn otherwise the next time.
        inner.opened.retain(|opened| opened.receipt.epoch() <= epoch);
        drop(inner);
        // What was said of what is flushed away will be said again.
        self.forget_messages(|of| of < epoch);
        self.change(|boundary| boundary.flushed(epoch));
    }

    /// The consumer leaves `epoch` before its end, so that the next one follows an epoch that was not exhausted
    /// ([`Sampler::next`](crate::sampler::Sampler::next)). A flushing seek to the end of `epoch` has to follow: it discards what is on its way, and
    /// the epoch ends in the stream as every other does.
    pub fn break_off(&self, epoch: u64) {
        self.change(|boundary| boundary.break_off(epoch));
        self.forget_messages(|of| of <= epoch);
    }

    /// Whether the consumer has left `epoch` before its end.
    pub fn is_broken_off(&self, epoch: u64) -> bool {
        self.lock().boundary.is_broken_off(epoch)
    }

    /// The application ends the stream, or the consumer takes nothing more: the source goes on to no further epoch.
    pub fn end(&self) {
        self.change(Boundary::end);
    }

    /// Whether the stream ends.
    pub fn is_ending(&self) -> bool {
        self.lock().boundary.is_ending()
    }

    /// Forgets the messages that are held back about epochs for which `keep` says so. A message may be the last to know its
    /// element, which then goes, and with it its entry here: not under the lock.
    fn forget_messages(&self, keep: impl Fn(u64) -> bool) {
        let mut inner = self.lock();
        let held = std::mem::take(&mut inner.held);
        let (kept, forgotten): (Vec<_>, Vec<_>) = held.into_iter().partition(|(of, _, _)| keep(*of));
        inner.held = kept;
        drop(inner);
        drop(forgotten);
    }

    /// Posts `message` about `epoch` for `element`, now or when the epoch begins to be delivered.
    pub fn post(&self, epoch: u64, element: &gst::Element, message: gst::Message) {
        let mut inner = self.lock();
        if inner.boundary.is_delivered(epoch) {
            drop(inner);
            self.note_told(&message);
            let _ = element.post_message(message);
        } else {
            inner.held.push((epoch, element.downgrade(), message));
        }
    }

    /// Has `recipe` asked what the current settings of `element` come to, as long as it lives.
    pub fn set_recipe(&self, element: &'static str, recipe: &Arc<Recipe>) {
        self.lock().recipes.insert(element, Arc::downgrade(recipe));
    }

    /// Says that the consumer may stop in the middle of an epoch.
    pub fn set_step_bound(&self, bound: bool) {
        self.lock().step_bound = bound;
    }

    /// Why `prefetch=complete` takes the ordinary path, if it does.
    pub fn ordinary(&self) -> Option<Ordinary> {
        let inner = self.lock();
        let run = inner.run.as_ref()?;
        let config = run.drawn.sampler.config();
        if config.world_size > 1 {
            Some(Ordinary::WorldSize)
        } else if config.samples_per_epoch.is_some() {
            Some(Ordinary::SamplesPerEpoch)
        } else if inner.step_bound {
            Some(Ordinary::StepBound)
        } else if run.reload {
            Some(Ordinary::Reload)
        } else {
            None
        }
    }

    /// Ends the source's wait, or lets it wait again.
    pub fn set_flushing(&self, flushing: bool) {
        self.lock().flushing = flushing;
        self.notify();
    }

    /// Registers an element for as long as the returned value lives.
    pub fn register(self: &Arc<Self>, stage: Stage) -> Registration {
        let mut inner = self.lock();
        *inner.stages.entry(stage).or_default() += 1;
        inner.latest = inner.latest.max(Some(stage));
        drop(inner);
        Registration {
            coordinator: self.clone(),
            stage,
        }
    }

    /// Registers an element whose place was a guess at its true one; `before` is to be dropped.
    pub fn move_to(self: &Arc<Self>, stage: Stage, before: &Registration) -> Registration {
        let registration = self.register(stage);
        let mut inner = self.lock();
        if inner.latest == Some(before.stage) && inner.stages.get(&before.stage) == Some(&1) {
            let rest = inner.stages.keys().rev().find(|other| **other != before.stage);
            inner.latest = rest.copied();
        }
        drop(inner);
        registration
    }

    /// Registers the consumer; `None` if there is one: two would ask for epochs for each other.
    pub fn register_consumer(self: &Arc<Self>) -> Option<Registration> {
        (!self.has(Stage::Consumer)).then(|| self.register(Stage::Consumer))
    }

    /// Whether the run began in the middle of an epoch, and is still there.
    pub fn is_resumed(&self) -> bool {
        let inner = self.lock();
        let resumed = inner.resumed.as_ref();
        resumed.is_some_and(|state| inner.boundary.current() == Some(state.epoch))
    }

    /// How many of an epoch's first frames are needed until its end. A run that resumes inside the epoch sends them again.
    pub fn kept(&self) -> usize {
        self.lock().kept
    }

    /// Where frames are made best, while the packer that said so runs.
    pub fn frames(&self) -> Option<FrameAllocator> {
        self.lock().frames.as_ref()?.upgrade()
    }

    /// Whether an element of `stage` is registered.
    pub fn has(&self, stage: Stage) -> bool {
        self.lock().stages.contains_key(&stage)
    }

    /// Whether an epochbuffer is registered, which says by itself when an epoch begins to be delivered.
    pub fn has_buffer(&self) -> bool {
        use Stage::{HeldBatches, HeldColors, HeldFiles, HeldFrames};
        let inner = self.lock();
        let held = [HeldFiles, HeldFrames, HeldColors, HeldBatches];
        held.iter().any(|stage| inner.stages.contains_key(stage))
    }

    /// Number of ranks of the current run; 1 before the first.
    pub fn world_size(&self) -> u32 {
        self.lock()
            .run
            .as_ref()
            .map_or(1, |run| run.drawn.sampler.config().world_size)
    }
}

impl std::fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coordinator")
            .field("boundary", &self.lock().boundary)
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn opened(&self, epoch: u64) -> Option<&Opened> {
        self.opened.iter().find(|opened| opened.receipt.epoch() == epoch)
    }
}

/// The first 64 bits of the SHA-256 of `parts`, one after the other.
pub fn hash(parts: impl IntoIterator<Item = String>) -> u64 {
    use sha2::Digest;
    let mut digest = sha2::Sha256::new();
    for part in parts {
        digest.update(part);
    }
    digest
        .finalize()
        .iter()
        .take(8)
        .fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod model;
#[cfg(test)]
mod tests;
