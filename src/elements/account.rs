//! The consumer's own account of an epoch: epochsink's, and an application's feed's.

use std::time::{Duration, Instant};

use super::meta::BatchMeta;
use crate::sampler::{Ledger, State};

/// Counts what arrives of one epoch.
#[derive(Debug)]
pub(crate) struct Account {
    pub epoch: u64,
    /// Counted here, plus what a state says was counted before a resume.
    delivered: u64,
    padded: u64,
    replaced: u64,
    /// As the last batch's state says.
    skipped: u64,
    pub batches: u64,
    /// Delivered in this run, for the throughput.
    samples: u64,
    asked: Instant,
    /// From asking for the epoch to its first batch.
    boundary_wait: Duration,
}

/// One epoch as it ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EpochReport {
    pub epoch: u64,
    pub ledger: Ledger,
    pub samples_per_s: f64,
    pub boundary_wait: Duration,
}

impl Account {
    /// Begins `epoch`, which was asked for at `asked` and of which something came at `now`. `before` is the ledger of
    /// what an earlier run has taken of it.
    pub fn begin(epoch: u64, before: Ledger, asked: Instant, now: Instant) -> Self {
        Self {
            epoch,
            delivered: before.delivered,
            padded: before.padded,
            replaced: before.replaced,
            skipped: before.skipped,
            batches: 0,
            samples: 0,
            asked,
            boundary_wait: now.saturating_duration_since(asked),
        }
    }

    /// Counts a batch.
    pub fn add(&mut self, batch: &BatchMeta) {
        let (delivered, padded, replaced) = counts(batch);
        self.delivered += delivered;
        self.padded += padded;
        self.replaced += replaced;
        self.samples += delivered;
        self.batches += 1;
        if let Ok(state) = State::from_json(&batch.state) {
            self.skipped = state.skipped;
        }
    }

    /// Samples delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The epoch ended at `now` as upstream says in `ledger`.
    pub fn finish(&self, ledger: Ledger, now: Instant) -> EpochReport {
        self.report(
            Ledger {
                delivered: self.delivered,
                padded: self.padded,
                replaced: self.replaced,
                ..ledger
            },
            now,
        )
    }

    /// The epoch, of which `listed` samples there are, was broken off at `now`: the rest counts as dropped.
    pub fn break_off(&self, listed: u64, now: Instant) -> EpochReport {
        let ledger = Ledger {
            listed,
            delivered: self.delivered,
            skipped: self.skipped,
            dropped: listed.saturating_sub(self.delivered + self.skipped),
            padded: self.padded,
            replaced: self.replaced,
        };
        self.report(ledger, now)
    }

    fn report(&self, ledger: Ledger, now: Instant) -> EpochReport {
        let seconds = now.saturating_duration_since(self.asked).as_secs_f64();
        EpochReport {
            epoch: self.epoch,
            ledger,
            samples_per_s: if seconds > 0.0 {
                self.samples as f64 / seconds
            } else {
                0.0
            },
            boundary_wait: self.boundary_wait,
        }
    }
}

/// Delivered, padding and replaced samples of a batch.
fn counts(batch: &BatchMeta) -> (u64, u64, u64) {
    let padded = batch.pad.iter().filter(|pad| **pad).count();
    let replaced = batch.replaced_from.iter().filter(|from| **from >= 0).count();
    let delivered = batch
        .pad
        .iter()
        .zip(&batch.replaced_from)
        .filter(|(pad, from)| !**pad && **from < 0)
        .count();
    (delivered as u64, padded as u64, replaced as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(pad: &[bool], replaced_from: &[i64]) -> BatchMeta {
        BatchMeta {
            epoch: 4,
            pad: pad.to_vec(),
            replaced_from: replaced_from.to_vec(),
            ..BatchMeta::default()
        }
    }

    #[test]
    fn padding_and_replacements_are_not_delivered() {
        let asked = Instant::now();
        let first = batch(&[false, false, false, true], &[-1, 7, -1, -1]);
        let mut account = Account::begin(4, Ledger::default(), asked, asked + Duration::from_millis(3));
        account.add(&first);
        account.add(&batch(&[false], &[-1]));
        let ledger = Ledger {
            listed: 5,
            skipped: 2,
            ..Ledger::default()
        };
        let report = account.finish(ledger, asked + Duration::from_secs(2));
        assert_eq!(
            report.ledger,
            Ledger {
                listed: 5,
                delivered: 3,
                skipped: 2,
                dropped: 0,
                padded: 1,
                replaced: 1
            }
        );
        assert!(report.ledger.balanced());
        assert_eq!((report.epoch, report.samples_per_s), (4, 1.5));
        assert_eq!(report.boundary_wait, Duration::from_millis(3));
    }

    #[test]
    fn what_is_left_of_a_broken_off_epoch_is_dropped() {
        let now = Instant::now();
        let first = batch(&[false, false], &[-1, -1]);
        let mut account = Account::begin(4, Ledger::default(), now, now);
        account.add(&first);
        let report = account.break_off(10, now);
        assert_eq!(
            report.ledger,
            Ledger {
                listed: 10,
                delivered: 2,
                dropped: 8,
                ..Ledger::default()
            }
        );
        assert_eq!(report.samples_per_s, 0.0);
    }
}
