//! What may be read, prepared and delivered: the protocol at the boundary between two epochs, without threads.
//!
//! ```text
//!                     allow(N+1)                  request(N+1)
//!   N is delivered ──────────────▶ N+1 is prepared ───────────▶ N+1 is delivered
//!        │                              │   ▲ ▲
//!        │ request(N+1)          fail(N+1)  │ │ restarted(N+1)
//!        └──────────▶ N+1 is     └──▶ failed │ └─── invalidated: its recipe is not the current one
//!                     delivered        │     │
//!                                      └─────┘ request(N+1) reports the failure once and prepares again
//! ```
//!
//! A consumer may also leave N before its end ([`Boundary::break_off`]): what is on its way is flushed away, N ends there,
//! and N+1 is drawn as what follows an epoch that was not exhausted.
//!
//! Nothing that is prepared is committed here: a receipt is only ever committed by an acknowledged state, and states
//! lie behind delivered samples. A prepared epoch that is dropped leaves this structure as it was before `allow`.

/// The protocol's state; see the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Boundary {
    /// The highest epoch that the consumer has asked for; `None` before the run begins.
    requested: Option<u64>,
    /// The epoch that is being delivered.
    delivered: Option<u64>,
    /// The highest epoch that may be prepared without having been asked for.
    allowed: Option<u64>,
    /// An epoch that failed while it was prepared, and why.
    failed: Option<(u64, String)>,
    /// An epoch that has to be read again from its start.
    restart: Option<u64>,
    /// The epoch that the consumer has left before its end, if the last one was left.
    broken_off: Option<u64>,
    /// The application or the consumer ends the stream: no further epoch is read.
    ending: bool,
}

/// What a request came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requested {
    /// The epoch is delivered as soon as it can be.
    Accepted,
    /// Preparing it failed. The failure has been told; the epoch is prepared again and may be asked for again.
    Failed(String),
}

/// What became of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nobody has asked for the epoch: the failure is kept until somebody does. The rest of the epoch is worthless.
    Held,
    /// The epoch is being delivered: the failure has to be reported now.
    Demanded,
}

/// How the source may go on to an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    /// The consumer has asked for it.
    Requested,
    /// It may be prepared.
    Prepare,
    /// Not at all: the stream ends.
    Ended,
}

impl Boundary {
    /// Begins a run with `epoch`, which counts as asked for.
    pub fn begin(epoch: u64) -> Self {
        Self {
            requested: Some(epoch),
            delivered: Some(epoch),
            ..Self::default()
        }
    }

    /// The consumer asks for `epoch` and those before it.
    pub fn request(&mut self, epoch: u64) -> Requested {
        if let Some((failed, _)) = &self.failed
            && *failed <= epoch
            && let Some((failed, reason)) = self.failed.take()
        {
            self.restart = Some(failed);
            return Requested::Failed(reason);
        }
        self.requested = self.requested.max(Some(epoch));
        Requested::Accepted
    }

    /// `epoch` may be prepared; false if that was so before.
    pub fn allow(&mut self, epoch: u64) -> bool {
        let new = self.allowed < Some(epoch);
        self.allowed = self.allowed.max(Some(epoch));
        new
    }

    /// Whether `epoch` is, or was, delivered.
    pub fn is_delivered(&self, epoch: u64) -> bool {
        self.delivered >= Some(epoch)
    }

    /// Whether and how `epoch` may be read.
    pub fn go(&self, epoch: u64) -> Option<Go> {
        if self.ending {
            Some(Go::Ended)
        } else if self.is_requested(epoch) {
            Some(Go::Requested)
        } else {
            (self.allowed >= Some(epoch)).then_some(Go::Prepare)
        }
    }

    /// Whether `epoch` may be delivered.
    pub fn is_requested(&self, epoch: u64) -> bool {
        self.requested >= Some(epoch)
    }

    /// `epoch` begins to be delivered.
    pub fn deliver(&mut self, epoch: u64) {
        self.delivered = self.delivered.max(Some(epoch));
    }

    /// The epoch behind the one that is being delivered: what a consumer that does not count asks for.
    pub fn next(&self) -> Option<u64> {
        self.delivered.map(|epoch| epoch + 1)
    }

    /// The epoch that the consumer asked for last.
    pub fn requested(&self) -> Option<u64> {
        self.requested
    }

    /// The epoch that the consumer is in: the one that is being delivered, or one that it has asked for and left at once.
    pub fn current(&self) -> Option<u64> {
        let left = self.requested.filter(|epoch| self.is_broken_off(*epoch));
        left.or(self.delivered)
    }

    /// `epoch` cannot be read to its end because of `reason`. The first failure is the one that is told.
    pub fn fail(&mut self, epoch: u64, reason: String) -> Failure {
        if self.is_requested(epoch) {
            return Failure::Demanded;
        }
        self.failed.get_or_insert((epoch, reason));
        Failure::Held
    }

    /// Why `epoch` failed while it was prepared, if it did and nobody has been told yet.
    pub fn failure(&self, epoch: u64) -> Option<&str> {
        self.failed
            .as_ref()
            .filter(|(failed, _)| *failed == epoch)
            .map(|(_, reason)| reason.as_str())
    }

    /// Whether `epoch` failed while it was prepared and nobody has been told yet.
    pub fn has_failed(&self, epoch: u64) -> bool {
        self.failure(epoch).is_some()
    }

    /// What was prepared of `epoch` is to be thrown away and read again.
    pub fn invalidate(&mut self, epoch: u64) {
        if self.has_failed(epoch) {
            self.failed = None;
        }
        self.restart = Some(epoch);
    }

    /// The epoch that has to be read again, if any.
    pub fn restart(&self) -> Option<u64> {
        self.restart
    }

    /// The epoch is being read again from its start.
    pub fn restarted(&mut self) -> Option<u64> {
        self.restart.take()
    }

    /// What was prepared has been flushed away along with everything else; `epoch` is read again.
    pub fn flushed(&mut self, epoch: u64) {
        self.restart = None;
        self.failed = None;
        self.allowed = self.allowed.min(Some(epoch));
        // Where the gate stands is flushed as well: it may not have let the epoch through yet, or, at the last moment, the
        // next one.
        if self.is_requested(epoch) {
            self.delivered = Some(epoch);
        }
    }

    /// The consumer takes no more of `epoch`. What was prepared behind it is flushed away with its rest.
    pub fn break_off(&mut self, epoch: u64) {
        self.broken_off = Some(epoch);
        self.restart = None;
        self.failed = None;
    }

    /// Whether the consumer has left `epoch` before its end.
    pub fn is_broken_off(&self, epoch: u64) -> bool {
        self.broken_off == Some(epoch)
    }

    /// The stream ends: what is read of an epoch that was asked for is delivered, nothing else.
    pub fn end(&mut self) {
        self.ending = true;
    }

    /// Whether the stream ends.
    pub fn is_ending(&self) -> bool {
        self.ending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_prepared_is_not_delivered_before_it_is_asked_for() {
        let mut boundary = Boundary::begin(3);
        assert_eq!((boundary.go(3), boundary.go(4)), (Some(Go::Requested), None));
        boundary.allow(4);
        assert_eq!(
            (boundary.go(4), boundary.is_requested(4)),
            (Some(Go::Prepare), false)
        );
        assert_eq!(boundary.go(5), None);
        assert_eq!(boundary.request(4), Requested::Accepted);
        assert_eq!(
            (boundary.go(4), boundary.requested()),
            (Some(Go::Requested), Some(4))
        );
        boundary.end();
        assert_eq!(boundary.go(4), Some(Go::Ended));
    }

    #[test]
    fn a_failure_is_told_once_and_the_epoch_is_prepared_again() {
        let mut boundary = Boundary::begin(0);
        assert_eq!(boundary.fail(0, "now".into()), Failure::Demanded);
        boundary.allow(1);
        assert_eq!(boundary.fail(1, "first".into()), Failure::Held);
        assert_eq!(boundary.fail(1, "second".into()), Failure::Held);
        assert!(boundary.has_failed(1) && boundary.restart().is_none());
        assert_eq!(boundary.request(1), Requested::Failed("first".into()));
        assert!(!boundary.is_requested(1) && !boundary.has_failed(1));
        assert_eq!((boundary.restarted(), boundary.restarted()), (Some(1), None));
        assert_eq!(boundary.go(1), Some(Go::Prepare));
        assert_eq!(boundary.request(1), Requested::Accepted);
        assert_eq!(boundary.fail(1, "again".into()), Failure::Demanded);
    }

    #[test]
    fn an_invalidated_epoch_keeps_no_failure() {
        let mut boundary = Boundary::begin(0);
        boundary.allow(1);
        boundary.fail(1, "of the old recipe".into());
        boundary.invalidate(1);
        assert_eq!(boundary.request(1), Requested::Accepted);
        assert_eq!(boundary.restart(), Some(1));
        boundary.flushed(0);
        assert_eq!((boundary.restart(), boundary.go(1)), (None, Some(Go::Requested)));
    }

    #[test]
    fn the_gate_is_where_the_flush_goes() {
        let mut asked = Boundary::begin(0);
        asked.request(1);
        // Before the gate has let it through.
        asked.flushed(1);
        assert_eq!(asked.next(), Some(2));
        let mut back = Boundary::begin(0);
        back.request(1);
        back.deliver(1);
        // At the last moment, when the flush to the epoch before was on its way already.
        back.flushed(0);
        assert_eq!(back.next(), Some(1));
        let mut prepared = Boundary::begin(0);
        prepared.allow(1);
        prepared.invalidate(1);
        prepared.flushed(1);
        assert_eq!(prepared.next(), Some(1), "nobody has asked for it");
    }

    #[test]
    fn breaking_off_leaves_nothing_of_what_was_prepared() {
        let mut boundary = Boundary::begin(4);
        boundary.allow(5);
        boundary.fail(5, "as it would have been".into());
        boundary.break_off(4);
        boundary.flushed(4);
        assert!(boundary.is_broken_off(4) && !boundary.is_broken_off(5));
        assert_eq!((boundary.go(5), boundary.has_failed(5)), (None, false));
        assert_eq!(boundary.request(5), Requested::Accepted);
        assert!(
            !Boundary::begin(4).is_broken_off(4),
            "another run does not remember"
        );
    }
}
