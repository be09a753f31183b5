//! Which positions of an order belong to which rank.
//!
//! Rank r of W takes positions r, r + W, r + 2W, … of the epoch's order, as `DistributedSampler` does. `pad`
//! makes the order longer until W divides it, by repeating it from its start; `drop` makes it shorter.

use super::config::{SamplerConfig, Uneven};

/// The share of one rank, as arithmetic on its validated configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shard {
    rank: u64,
    world_size: u64,
    uneven: Uneven,
    /// Length of the order that is shared out.
    listed_by_all: u64,
}

impl Shard {
    /// `config` has been validated.
    pub(super) fn new(config: &SamplerConfig) -> Self {
        Shard {
            rank: u64::from(config.rank),
            world_size: u64::from(config.world_size),
            uneven: config.uneven,
            listed_by_all: config.listed_by_all(),
        }
    }

    /// Slots this rank delivers; the same for every rank.
    pub(super) fn len(&self) -> u64 {
        match self.uneven {
            Uneven::Pad => self.listed_by_all.div_ceil(self.world_size),
            Uneven::Drop => self.listed_by_all / self.world_size,
        }
    }

    /// Positions of the order that are this rank's.
    pub(super) fn listed(&self) -> u64 {
        self.listed_by_all
            .saturating_sub(self.rank)
            .div_ceil(self.world_size)
    }

    pub(super) fn padded(&self) -> u64 {
        self.len().saturating_sub(self.listed())
    }

    pub(super) fn dropped(&self) -> u64 {
        self.listed().saturating_sub(self.len())
    }

    /// Pads among the first `position` slots; they are the last ones of the share.
    pub(super) fn padded_before(&self, position: u64) -> u64 {
        position.min(self.len()).saturating_sub(self.listed())
    }

    /// Place in the order, and whether it is there for the second time, of the slot at `position`.
    pub(super) fn locate(&self, position: u64) -> Option<(u64, bool)> {
        // In range the sum is below listed_by_all + world_size, at most 2^63 + 2^32.
        (position < self.len()).then(|| {
            let place = position * self.world_size + self.rank;
            (place % self.listed_by_all, place >= self.listed_by_all)
        })
    }
}
