//! What became of the samples of an epoch.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// The account of one rank and epoch: every listed sample is delivered, skipped or dropped.
///
/// ```
/// use epochfeed::sampler::Ledger;
///
/// let ledger = Ledger { listed: 10, delivered: 7, skipped: 1, ..Ledger::default() };
/// assert_eq!(ledger.outstanding(), 2);
/// assert!(!ledger.balanced());
/// assert!(ledger.closed().balanced());
/// ```
#[derive(Default, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Samples of this rank's share.
    pub listed: u64,
    /// Samples that reached the consumer, without pads.
    pub delivered: u64,
    /// Samples left out because of a fault, also those for which another sample was delivered.
    pub skipped: u64,
    /// Samples that were never on their way: by `uneven=drop`, or because the epoch was ended early.
    pub dropped: u64,
    /// Slots delivered only to make the shares equally long. Not part of `listed`.
    pub padded: u64,
    /// Slots in which another sample was delivered in place of a faulty one.
    pub replaced: u64,
}

impl Ledger {
    /// Whether every listed sample is accounted for.
    pub fn balanced(&self) -> bool {
        self.accounted() == Some(self.listed)
    }

    /// Listed samples whose fate is still open.
    pub fn outstanding(&self) -> u64 {
        self.accounted().map_or(0, |sum| self.listed.saturating_sub(sum))
    }

    /// The account of an epoch that ends here: what is outstanding counts as dropped.
    pub fn closed(mut self) -> Self {
        self.dropped = self.dropped.saturating_add(self.outstanding());
        self
    }

    fn accounted(&self) -> Option<u64> {
        self.delivered
            .checked_add(self.skipped)?
            .checked_add(self.dropped)
    }
}

/// Adds up ranks or epochs.
impl AddAssign for Ledger {
    fn add_assign(&mut self, other: Ledger) {
        for (sum, number) in [
            (&mut self.listed, other.listed),
            (&mut self.delivered, other.delivered),
            (&mut self.skipped, other.skipped),
            (&mut self.dropped, other.dropped),
            (&mut self.padded, other.padded),
            (&mut self.replaced, other.replaced),
        ] {
            *sum = sum.saturating_add(number);
        }
    }
}
