//! States and acknowledgements: which state lies behind a sample, and what the consumer has done with.

use super::super::epoch_end::EpochEnd;
use super::run::{Drawn, Taken};
use super::{Coordinator, SaveError, Stage, state_file};
use crate::sampler::{Ledger, Order, Receipt, SamplerConfig, State};

impl Coordinator {
    /// The ledger of what an earlier run has taken of `epoch`.
    pub fn before(&self, epoch: u64) -> Ledger {
        let inner = self.lock();
        let resumed = inner.resumed.as_ref().filter(|state| state.epoch == epoch);
        match (resumed, inner.opened(epoch)) {
            (Some(state), Some(opened)) => state.ledger(&opened.order),
            _ => Ledger::default(),
        }
    }

    /// The order of `epoch`, if it is one of those drawn last.
    pub fn order(&self, epoch: u64) -> Option<Order> {
        self.lock().opened(epoch).map(|opened| opened.order.clone())
    }

    /// What `epoch` was drawn from, and its receipt, if it is one of those drawn last.
    pub fn drawn(&self, epoch: u64) -> Option<(Drawn, Receipt)> {
        let inner = self.lock();
        let opened = inner.opened(epoch)?;
        Some((opened.drawn.clone(), opened.receipt.clone()))
    }

    /// The state behind what has been `taken` of `epoch`, as JSON; `None` for an epoch that is not one of those drawn last.
    pub fn state_at(&self, epoch: u64, taken: Taken) -> Option<String> {
        let inner = self.lock();
        let opened = inner.opened(epoch)?;
        let Taken {
            position,
            skipped,
            replaced,
            last_good,
        } = taken;
        let state = State {
            position,
            skipped,
            replaced,
            // At its ends there is nothing left of the epoch to replace.
            last_good: last_good.filter(|_| position > 0 && position < opened.order.len()),
            ..opened.drawn.state(&opened.receipt)
        };
        drop(inner);
        Some(state.to_json())
    }

    /// The state at the start of the epoch behind `epoch`, which was broken off; `None` for an epoch that is not one of
    /// those drawn last.
    pub fn state_behind_break(&self, epoch: u64) -> Option<String> {
        let inner = self.lock();
        let opened = inner.opened(epoch)?;
        let next = opened.drawn.sampler.next(&opened.receipt, false);
        let state = opened.drawn.state(&next);
        drop(inner);
        Some(state.to_json())
    }

    /// What the current run draws, as its dataset was at the start; `None` before the first.
    pub fn config(&self) -> Option<SamplerConfig> {
        let inner = self.lock();
        let run = inner.run.as_ref()?;
        Some(run.drawn.sampler.config().clone())
    }

    /// Takes note that what lies before `state`, in `epoch`, has been consumed, as far as `stage` knows: it counts unless
    /// a later stage was there in this run. Saves it if the run has a place for it.
    ///
    /// # Errors
    /// The first time in a run that the state's file cannot be written; the state is noted all the same.
    pub fn acknowledge(&self, stage: Stage, epoch: u64, state: &str) -> Result<(), SaveError> {
        let mut inner = self.lock();
        if state.is_empty() || inner.latest > Some(stage) {
            return Ok(());
        }
        inner.state = Some(state.to_owned());
        inner.sought = None;
        while inner
            .opened
            .front()
            .is_some_and(|opened| opened.receipt.epoch() < epoch)
        {
            inner.opened.pop_front();
        }
        let Some(location) = inner.run.as_ref().and_then(|run| run.state_location.clone()) else {
            return Ok(());
        };
        drop(inner);
        match state_file::save(&location, state) {
            Err(source) if !std::mem::replace(&mut self.lock().save_failed, true) => {
                Err(SaveError { location, source })
            }
            _ => Ok(()),
        }
    }

    /// Acknowledges all of an epoch: also what came behind its last batch is done with, so that a run that resumes begins
    /// with the next one.
    ///
    /// # Errors
    /// As [`acknowledge`](Self::acknowledge).
    pub fn acknowledge_end(&self, stage: Stage, end: &EpochEnd) -> Result<(), SaveError> {
        let slots = self.order(end.epoch).map_or(0, |order| order.len());
        let state = self.state_at(end.epoch, Taken::all(slots, &end.ledger));
        self.acknowledge(stage, end.epoch, &state.unwrap_or_default())
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

/// Reads a state saved by an earlier run; `None` if there is none yet.
///
/// # Errors
/// If the file is there and cannot be read.
pub fn load_state(location: &std::path::Path) -> std::io::Result<Option<String>> {
    state_file::load(location)
}
