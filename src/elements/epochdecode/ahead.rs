//! Decoding before it is asked for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::super::coordinator::{Coordinator, Listener};
use crate::workers::{Class, Client, Stage, Urgency};

/// What is decoded of an epoch that nobody has asked for yet. It gives way to what is demanded elsewhere in the process,
/// until somebody asks for the epoch.
pub(super) struct Ahead {
    workers: Arc<Client>,
    /// The epoch, or [`NONE`](Self::NONE).
    epoch: AtomicU64,
}

impl Ahead {
    const NONE: u64 = u64::MAX;

    pub fn new(workers: Arc<Client>) -> Self {
        Self {
            workers,
            epoch: AtomicU64::new(Self::NONE),
        }
    }

    /// Has `coordinator` tell of requests, as long as what is returned lives.
    pub fn listen(self: &Arc<Self>, coordinator: &Arc<Coordinator>) -> Arc<Listener> {
        let this: Weak<Self> = Arc::downgrade(self);
        let asked = Arc::downgrade(coordinator);
        let listener: Arc<Listener> = Arc::new(move || {
            if let (Some(this), Some(coordinator)) = (this.upgrade(), asked.upgrade()) {
                this.update(&coordinator);
            }
        });
        coordinator.listen(&listener);
        listener
    }

    /// Queues a job of `epoch`.
    pub fn spawn(&self, coordinator: &Coordinator, epoch: u64, job: impl FnOnce() + Send + 'static) {
        if is_wanted(coordinator, epoch) {
            let demanded = Class::new(Urgency::Demanded, Stage::Decode);
            return self.workers.spawn(demanded, job);
        }
        self.epoch.store(epoch, Ordering::SeqCst);
        self.workers.spawn(Class::new(Urgency::Ahead, Stage::Decode), job);
        // A request that came before the job was there has looked in vain.
        if is_wanted(coordinator, epoch) {
            self.workers.demand();
        }
    }

    /// Moves the jobs forward if somebody waits for them now.
    fn update(&self, coordinator: &Coordinator) {
        let epoch = self.epoch.load(Ordering::SeqCst);
        if epoch != Self::NONE && is_wanted(coordinator, epoch) {
            self.epoch.store(Self::NONE, Ordering::SeqCst);
            self.workers.demand();
        }
    }
}

/// Whether somebody waits for what is on its way of `epoch`: the consumer, or whoever ends the stream.
fn is_wanted(coordinator: &Coordinator, epoch: u64) -> bool {
    coordinator.is_requested(epoch) || coordinator.is_ending()
}
