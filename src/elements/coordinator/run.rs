//! What is drawn: the run, its dataset, its epochs.

use std::path::PathBuf;

use super::super::meta::SampleMeta;
use crate::dataset::Dataset;
use crate::sampler::{Ledger, Order, Receipt, Sampler, State};

/// What one run of an `epochsrc` draws from, at its start.
#[derive(Clone, Debug)]
pub struct Run {
    /// The dataset, as it is drawn from.
    pub drawn: Drawn,
    /// Where the state is saved at each acknowledgement, if anywhere.
    pub state_location: Option<PathBuf>,
    /// The dataset is read again before each epoch.
    pub reload: bool,
}

/// A dataset as epochs are drawn from it.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Order, shard and their configuration.
    pub sampler: Sampler,
    /// The dataset.
    pub dataset: Dataset,
    /// See [`State::reloaded`].
    pub reloaded: bool,
}

/// An epoch that has been drawn.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub receipt: Receipt,
    pub order: Order,
    /// With `reload` another epoch's may differ.
    pub drawn: Drawn,
}

/// What has been taken of an epoch; see the fields of [`State`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Slots that are behind.
    pub position: u64,
    /// How many of them were skipped.
    pub skipped: u64,
    /// How many were replaced.
    pub replaced: u64,
    /// The sample delivered last, if any.
    pub last_good: Option<u64>,
}

impl Taken {
    /// Everything up to `sample`, which was delivered.
    pub fn up_to(sample: &SampleMeta) -> Self {
        Self {
            position: sample.index + 1,
            skipped: sample.skipped,
            replaced: sample.replaced,
            last_good: Some(sample.dataset_index),
        }
    }

    /// All of an epoch of `slots`, which came to `ledger`.
    pub fn all(slots: u64, ledger: &Ledger) -> Self {
        Self {
            position: slots,
            skipped: ledger.skipped,
            replaced: ledger.replaced,
            last_good: None,
        }
    }
}

/// Why an epoch is, or is not, prepared before it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordinary {
    /// Several ranks share the epochs.
    WorldSize,
    /// An epoch is only a part of the dataset.
    SamplesPerEpoch,
    /// The consumer may stop in the middle of an epoch.
    StepBound,
    /// The dataset is read again before each epoch.
    Reload,
}

impl Drawn {
    /// The start of the epoch that `receipt` draws.
    pub(super) fn state(&self, receipt: &Receipt) -> State {
        State {
            reloaded: self.reloaded,
            ..State::new(self.sampler.config(), receipt, self.dataset.fingerprint())
        }
    }
}
