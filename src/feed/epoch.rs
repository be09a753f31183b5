//! Epochs one after the other, and the batches of one.

use std::sync::Arc;

use super::batch::Batch;
use super::core::Core;
use super::error::FeedError;
use crate::sampler::Ledger;

/// Asks for one epoch after the other; made by [`Feed::epochs`](super::Feed::epochs).
///
/// `next` is the request: where the next epoch is prepared, its first batch is there at once, and where it is not, its files
/// are read from now on. It ends after the feed's last epoch.
///
/// - An epoch that still has batches is left: see [`Epoch`].
/// - If preparing the epoch failed ([`FeedError::Prepare`]), calling `next` again asks for the same epoch again, which has
///   been prepared anew in the meantime.
/// - After any other error the feed stays failed; each `Epochs` says so once and then ends.
#[derive(Debug)]
pub struct Epochs {
    core: Arc<Core>,
    done: bool,
}

impl Epochs {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core, done: false }
    }
}

impl Iterator for Epochs {
    type Item = Result<Epoch, FeedError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let asked = self.core.ask().transpose();
        self.done = match &asked {
            None => true,
            Some(Err(error)) => !matches!(
                error,
                FeedError::Prepare { .. } | FeedError::SaveState { .. } | FeedError::StreamingThread
            ),
            Some(Ok(_)) => false,
        };
        asked.map(|asked| {
            asked.map(|number| Epoch {
                core: self.core.clone(),
                number,
                done: false,
            })
        })
    }
}

/// One pass over the dataset: an iterator of [`Batch`]es that ends at the epoch's own end.
///
/// # When a batch counts as used
/// A batch is acknowledged when the next one is asked for, the last one when `next` returns `None`: that is what
/// [`Feed::state`](super::Feed::state) and the file of [`Builder::state_location`](super::Builder::state_location) say. A trainer
/// that fails while it works on a batch thus gets that batch again. [`Batch::state`] lies behind its batch at once.
///
/// # Leaving an epoch early
/// An epoch that is dropped before its end is broken off: its tail counts as dropped in the ledger, what is on its way is
/// discarded, and the next [`Epochs::next`] is a new epoch, never the rest of this one. With
/// [`Shuffle::Torch`](crate::sampler::Shuffle::Torch) that epoch has the order which PyTorch's `RandomSampler` gives after a `for` loop
/// that was left early: only one permutation has been drawn. Whatever was prepared for the epoch after an exhausted one is
/// thrown away; with `prefetch`, the new one is prepared instead.
///
/// Dropping acknowledges nothing, since a program that fails drops its epoch too: [`Feed::state`](super::Feed::state) stays where it
/// is, inside this epoch, until the next epoch is asked for or [`Epoch::break_off`] says that leaving is meant.
#[derive(Debug)]
pub struct Epoch {
    core: Arc<Core>,
    number: u64,
    done: bool,
}

impl Epoch {
    /// Number of the epoch, from 0; a feed that resumes goes on with the number it had reached.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Samples of this rank's share, without padding; those that a resumed feed has behind it among them.
    /// With [`reload`](super::Builder::reload) this follows the dataset once the epoch has begun.
    pub fn listed(&self) -> u64 {
        self.core.share(self.number).listed
    }

    /// Samples that a whole epoch delivers if none is faulty: padding that makes ranks equal is included, what ranks lose so
    /// that they are equal is not.
    pub fn slots(&self) -> u64 {
        self.core.share(self.number).slots
    }

    /// What became of the epoch's samples, once it has ended or was left.
    pub fn ledger(&self) -> Option<Ledger> {
        self.core.ledger(self.number)
    }

    /// Leaves the epoch here, on purpose: as dropping it, but [`Feed::state`](super::Feed::state) is that of the next epoch's start
    /// from now on. So a checkpoint that is made before the next epoch is asked for resumes with it.
    ///
    /// # Errors
    /// If the stream has failed, or the state cannot be saved.
    pub fn break_off(self) -> Result<(), FeedError> {
        self.core.break_off(self.number)
    }
}

impl Iterator for Epoch {
    type Item = Result<Batch, FeedError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let taken = self.core.take(self.number).transpose();
        self.done = match &taken {
            Some(Ok(_)) => false,
            Some(Err(error)) => !matches!(error, FeedError::SaveState { .. } | FeedError::StreamingThread),
            None => true,
        };
        taken
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        self.core.leave(self.number);
    }
}
