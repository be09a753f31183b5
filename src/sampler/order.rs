//! One epoch's order, as one rank sees it.

use std::sync::Arc;

use super::{keyed::KeyedPermutation, shard::Shard};

/// One place in a rank's share of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Index of the sample in the dataset, from 0.
    pub dataset_index: u64,
    /// Whether the sample is only here to make the shares equally long. Some rank has it in the same epoch
    /// without this flag.
    pub pad: bool,
}

/// Where the samples of an order come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The order of the dataset.
    Dataset,
    Keyed(KeyedPermutation),
    /// PyTorch's orders exist only as lists. 32 bits suffice, see [`MAX_TORCH_SIZE`](super::MAX_TORCH_SIZE).
    Listed(Arc<Vec<u32>>),
}

/// The slots that one rank delivers in one epoch, in order.
///
/// Made by [`Sampler::draw`](super::Sampler::draw). Cheap to clone; positions count from 0 and can be asked
/// for in any sequence.
///
/// ```
/// use epochfeed::sampler::{Sampler, SamplerConfig, Shuffle};
///
/// let config = SamplerConfig { rank: 3, world_size: 4, ..SamplerConfig::new(Shuffle::None, 0, 10) };
/// let sampler = Sampler::new(config)?;
/// let order = sampler.draw(&sampler.first());
/// let slots: Vec<_> = order.iter().map(|slot| (slot.dataset_index, slot.pad)).collect();
/// assert_eq!(slots, [(3, false), (7, false), (1, true)]);
/// # Ok::<(), epochfeed::sampler::SamplerError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Order {
    pub(super) epoch: u64,
    pub(super) shard: Shard,
    pub(super) source: Source,
}

impl Order {
    /// Number of the epoch, from 0.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Slots this rank delivers, pads included.
    pub fn len(&self) -> u64 {
        self.shard.len()
    }

    /// Whether there is no slot at all; never so for an order that a sampler drew.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slot at `position`, `None` from [`len`](Order::len) on. Constant time.
    pub fn slot(&self, position: u64) -> Option<Slot> {
        let (place, pad) = self.shard.locate(position)?;
        let dataset_index = match &self.source {
            Source::Dataset => place,
            Source::Keyed(keyed) => keyed.at(place),
            Source::Listed(list) => u64::from(*list.get(usize::try_from(place).ok()?)?),
        };
        Some(Slot { dataset_index, pad })
    }

    /// All slots from the first.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        (0..self.len()).map_while(|position| self.slot(position))
    }

    /// Samples of this rank's share: `len - padded + dropped`.
    pub fn listed(&self) -> u64 {
        self.shard.listed()
    }

    /// Slots that `uneven=pad` added to this rank's share.
    pub fn padded(&self) -> u64 {
        self.shard.padded()
    }

    /// Samples that `uneven=drop` took from this rank's share.
    pub fn dropped(&self) -> u64 {
        self.shard.dropped()
    }

    /// Pads among the first `position` slots.
    pub fn padded_before(&self, position: u64) -> u64 {
        self.shard.padded_before(position)
    }
}
