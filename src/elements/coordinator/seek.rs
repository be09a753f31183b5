//! Flushing seeks, of the consumer and of the task that restarts an epoch: one at a time.

use std::sync::PoisonError;

use super::Coordinator;

impl Coordinator {
    /// Begins a flushing seek; [`end_seek`](Self::end_seek) has to follow. There is one at a time, since the flush events of
    /// two would mix: `restart`s of an epoch are refused while there is another, everybody else waits.
    pub fn begin_seek(&self, restart: bool) -> bool {
        let mut inner = self.lock();
        while inner.seeking {
            // What is sought from outside waits for the task that restarts: that one cannot wait for it.
            if restart {
                inner.restart_seqnum = None;
                return false;
            }
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        inner.seeking = true;
        true
    }

    /// Ends it.
    pub fn end_seek(&self) {
        self.lock().seeking = false;
        self.notify();
    }

    /// Whether somebody seeks, flushing.
    pub fn is_seeking(&self) -> bool {
        self.lock().seeking
    }

    /// Whether `seqnum` is that of the flushing seek that restarts an epoch.
    pub fn is_restart(&self, seqnum: gst::Seqnum) -> bool {
        self.lock().restart_seqnum == Some(seqnum)
    }
}
