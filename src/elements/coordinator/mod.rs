//! The coordinator: the one feedback channel between the consumer of an epoch and the source that draws it.
//!
//! Each `epochsrc` owns one and answers upstream CONTEXT queries with it ([`find`]). The protocol of an epoch:
//!
//! 1. `epochsrc` starts: [`Coordinator::begin`] says what is drawn and asks for the run's first epoch.
//! 2. It draws an epoch from its receipt: [`Coordinator::open`]. Elements below can now say which state lies behind
//!    each sample ([`Coordinator::state_at`]).
//! 3. The epoch ends in the stream with SEGMENT_DONE. `epochsrc` waits in [`Coordinator::wait_for_request`].
//! 4. The consumer has validated and asks for the next epoch: [`Coordinator::request`]. Where no consumer is
//!    registered, `epochsrc auto-advance=true` asks by itself.
//! 5. What a consumer has finished with it acknowledges ([`Coordinator::acknowledge`]); that is `epochsrc state`.
//!    Without a consumer the last of our elements acknowledges what it pushed.
//!
//! The coordinator holds no element, so it keeps nothing alive, and takes no lock but its own. Lock order: none;
//! the lock is never held over a call out (a write to the state's file included).

mod context;
mod state_file;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::sampler::{Order, Receipt, Sampler, State};

pub use context::{CoordinatorHandle, answer, find};

/// An element's place in the path of a sample; the later one's acknowledgement counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// epochsrc, where nothing of ours follows.
    Source,
    /// epochdecode.
    Decode,
    /// hsvquantize.
    Color,
    /// nhwcpack.
    Pack,
    /// epochsink: it stands for the trainer, asks for epochs and acknowledges batches.
    Consumer,
}

/// What one run of an `epochsrc` draws.
#[derive(Clone, Debug)]
pub struct Run {
    /// Order, shard and their configuration.
    pub sampler: Sampler,
    /// Fingerprint of the dataset.
    pub fingerprint: String,
    /// Where the state is saved at each acknowledgement, if anywhere.
    pub state_location: Option<PathBuf>,
}

/// An epoch that has been drawn.
#[derive(Clone, Debug)]
struct Opened {
    receipt: Receipt,
    order: Order,
}

/// The feedback channel; see the [module](self).
#[derive(Debug, Default)]
pub struct Coordinator {
    inner: Mutex<Inner>,
    /// Signalled when an epoch is asked for and when the source is to stop waiting.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    run: Option<Run>,
    /// The epochs drawn last, oldest first: the consumer may still be behind in the one before.
    opened: VecDeque<Opened>,
    /// The highest epoch that was asked for in this run.
    requested: Option<u64>,
    /// The source must not wait: it flushes or stops.
    flushing: bool,
    /// The application has ended the run: no further sample is read.
    ending: bool,
    /// How many elements of each stage are there.
    stages: BTreeMap<Stage, usize>,
    /// What was acknowledged last. It survives the end of a run.
    state: Option<String>,
}

/// What a wait for a request ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The epoch was asked for.
    Requested,
    /// The source flushes or stops.
    Flushing,
    /// The application has ended the run.
    Ending,
}

impl Coordinator {
    /// How many drawn epochs are kept: the one being taken and the one being prepared.
    const OPENED: usize = 2;

    /// A poisoned lock is used all the same: every change under it is a plain assignment.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a run whose first epoch is `epoch`. Requests of the last run are forgotten; the state stays.
    pub fn begin(&self, run: Run, epoch: u64) {
        let mut inner = self.lock();
        inner.run = Some(run);
        inner.opened.clear();
        inner.requested = Some(epoch);
        inner.flushing = false;
        inner.ending = false;
    }

    /// Makes a drawn epoch known.
    pub fn open(&self, receipt: Receipt, order: Order) {
        let mut inner = self.lock();
        inner
            .opened
            .retain(|opened| opened.receipt.epoch() != receipt.epoch());
        while inner.opened.len() >= Self::OPENED {
            inner.opened.pop_front();
        }
        inner.opened.push_back(Opened { receipt, order });
    }

    /// Asks for `epoch` (and those before it). Asking again changes nothing.
    pub fn request(&self, epoch: u64) {
        let mut inner = self.lock();
        inner.requested = inner.requested.max(Some(epoch));
        drop(inner);
        self.changed.notify_all();
    }

    /// Waits until `epoch` has been asked for.
    pub fn wait_for_request(&self, epoch: u64) -> Wait {
        let mut inner = self.lock();
        loop {
            if inner.flushing {
                return Wait::Flushing;
            }
            if inner.ending {
                return Wait::Ending;
            }
            if inner.requested >= Some(epoch) {
                return Wait::Requested;
            }
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the source's wait, or lets it wait again.
    pub fn set_flushing(&self, flushing: bool) {
        self.lock().flushing = flushing;
        self.changed.notify_all();
    }

    /// Ends the run: the source reads no further sample, and waits for no further request.
    pub fn end(&self) {
        self.lock().ending = true;
        self.changed.notify_all();
    }

    /// Whether the run is to end.
    pub fn ending(&self) -> bool {
        self.lock().ending
    }

    /// Registers an element for as long as the returned value lives.
    pub fn register(self: &Arc<Self>, stage: Stage) -> Registration {
        *self.lock().stages.entry(stage).or_default() += 1;
        Registration {
            coordinator: self.clone(),
            stage,
        }
    }

    /// Whether an element of `stage` is registered.
    pub fn has(&self, stage: Stage) -> bool {
        self.lock().stages.contains_key(&stage)
    }

    /// Number of ranks of the current run; 1 before the first.
    pub fn world_size(&self) -> u32 {
        self.lock()
            .run
            .as_ref()
            .map_or(1, |run| run.sampler.config().world_size)
    }

    /// The order of `epoch`, if it is one of those drawn last.
    pub fn order(&self, epoch: u64) -> Option<Order> {
        self.lock().opened(epoch).map(|opened| opened.order.clone())
    }

    /// The epoch that was drawn last.
    pub fn newest(&self) -> Option<u64> {
        self.lock().opened.back().map(|opened| opened.receipt.epoch())
    }

    /// The state after `position` slots of `epoch`, of which `skipped` were skipped (`replaced` of them replaced),
    /// as JSON; `None` for an epoch that is not one of those drawn last.
    pub fn state_at(&self, epoch: u64, position: u64, skipped: u64, replaced: u64) -> Option<String> {
        let inner = self.lock();
        let run = inner.run.as_ref()?;
        let opened = inner.opened(epoch)?;
        let config = run.sampler.config();
        let state = State {
            version: State::VERSION,
            seed: config.seed,
            shuffle: config.shuffle,
            epoch,
            position,
            rank: config.rank,
            world_size: config.world_size,
            uneven: config.uneven,
            samples_per_epoch: config.samples_per_epoch,
            size: config.size,
            receipt: opened.receipt.clone(),
            fingerprint: run.fingerprint.clone(),
            skipped,
            replaced,
        };
        drop(inner);
        Some(state.to_json())
    }

    /// Takes note that what lies before `state` has been consumed, as far as `stage` knows: it counts unless an
    /// element of a later stage is registered. Saves it if the run has a place for it.
    ///
    /// # Errors
    /// If the state's file cannot be written; the state is noted all the same.
    pub fn acknowledge(&self, stage: Stage, state: &str) -> std::io::Result<()> {
        let mut inner = self.lock();
        if state.is_empty() || inner.stages.keys().next_back().is_some_and(|last| *last > stage) {
            return Ok(());
        }
        inner.state = Some(state.to_owned());
        let location = inner.run.as_ref().and_then(|run| run.state_location.clone());
        drop(inner);
        location.map_or(Ok(()), |location| state_file::save(&location, state))
    }

    /// What was acknowledged last.
    pub fn state(&self) -> Option<String> {
        self.lock().state.clone()
    }

    /// Sets what the next run resumes from; `None` starts over.
    pub fn set_state(&self, state: Option<String>) {
        self.lock().state = state;
    }
}

impl Inner {
    fn opened(&self, epoch: u64) -> Option<&Opened> {
        self.opened.iter().find(|opened| opened.receipt.epoch() == epoch)
    }
}

/// Reads a state saved by an earlier run; `None` if there is none yet.
///
/// # Errors
/// If the file is there and cannot be read.
pub fn load_state(location: &std::path::Path) -> std::io::Result<Option<String>> {
    state_file::load(location)
}

/// An element's entry in the coordinator; dropping it removes the entry.
#[derive(Debug)]
pub struct Registration {
    coordinator: Arc<Coordinator>,
    stage: Stage,
}

impl Registration {
    /// The coordinator.
    pub fn coordinator(&self) -> &Arc<Coordinator> {
        &self.coordinator
    }

    /// Whether this element's acknowledgements count: no later stage is registered.
    pub fn counts(&self) -> bool {
        self.coordinator
            .lock()
            .stages
            .keys()
            .next_back()
            .is_none_or(|last| *last <= self.stage)
    }

    /// [`Coordinator::acknowledge`] for this element's stage.
    ///
    /// # Errors
    /// As there.
    pub fn acknowledge(&self, state: &str) -> std::io::Result<()> {
        self.coordinator.acknowledge(self.stage, state)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut inner = self.coordinator.lock();
        if let Some(count) = inner.stages.get_mut(&self.stage) {
            *count -= 1;
            if *count == 0 {
                inner.stages.remove(&self.stage);
            }
        }
    }
}

#[cfg(test)]
mod tests;
