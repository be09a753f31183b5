//! What a sampler is asked for, and what it refuses.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Largest dataset of the `keyed` and `none` orders: 2^63 samples.
pub const MAX_SIZE: u64 = 1 << 63;

/// Largest dataset of the `torch` and `torch-distributed` orders: 2^32 samples.
///
/// A PyTorch permutation only exists as a whole list. It is held as 32-bit indices, so this is also where its
/// memory (4 bytes a sample, 16 GiB here) stops being reasonable; the keyed order has neither limit.
pub const MAX_TORCH_SIZE: u64 = 1 << 32;

/// Which order an epoch is drawn in.
///
/// ```
/// use epochfeed::sampler::Shuffle;
///
/// assert_eq!("torch-distributed".parse(), Ok(Shuffle::TorchDistributed));
/// assert_eq!(Shuffle::default().as_str(), "keyed");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shuffle {
    /// A keyed permutation of (seed, epoch): constant memory, any position directly.
    #[default]
    Keyed,
    /// `torch.utils.data.RandomSampler` over one `torch.Generator`, epoch after epoch.
    Torch,
    /// `torch.utils.data.DistributedSampler` after `set_epoch(epoch)`.
    TorchDistributed,
    /// The order of the dataset.
    None,
}

impl Shuffle {
    /// All orders, the default first.
    pub const ALL: [Shuffle; 4] = [
        Shuffle::Keyed,
        Shuffle::Torch,
        Shuffle::TorchDistributed,
        Shuffle::None,
    ];

    /// The name used in properties and in the JSON of a state.
    pub const fn as_str(self) -> &'static str {
        match self {
            Shuffle::Keyed => "keyed",
            Shuffle::Torch => "torch",
            Shuffle::TorchDistributed => "torch-distributed",
            Shuffle::None => "none",
        }
    }

    /// Largest dataset this order can be drawn over, in samples.
    pub const fn max_size(self) -> u64 {
        match self {
            Shuffle::Keyed | Shuffle::None => MAX_SIZE,
            Shuffle::Torch | Shuffle::TorchDistributed => MAX_TORCH_SIZE,
        }
    }
}

impl fmt::Display for Shuffle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Shuffle {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Shuffle::ALL
            .into_iter()
            .find(|shuffle| shuffle.as_str() == name)
            .ok_or_else(|| UnknownName {
                what: "shuffle",
                name: name.to_owned(),
                known: "keyed, torch, torch-distributed, none",
            })
    }
}

/// How the shares of the ranks are made equally long.
///
/// ```
/// use epochfeed::sampler::Uneven;
///
/// assert_eq!("drop".parse(), Ok(Uneven::Drop));
/// assert!("trim".parse::<Uneven>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Uneven {
    /// Short shares repeat samples from the start of the order, flagged as pads.
    #[default]
    Pad,
    /// Long shares lose their last sample, counted as dropped.
    Drop,
}

impl Uneven {
    /// Both policies, the default first.
    pub const ALL: [Uneven; 2] = [Uneven::Pad, Uneven::Drop];

    /// The name used in properties and in the JSON of a state.
    pub const fn as_str(self) -> &'static str {
        match self {
            Uneven::Pad => "pad",
            Uneven::Drop => "drop",
        }
    }
}

impl fmt::Display for Uneven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Uneven {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Uneven::ALL
            .into_iter()
            .find(|uneven| uneven.as_str() == name)
            .ok_or_else(|| UnknownName {
                what: "uneven",
                name: name.to_owned(),
                known: "pad, drop",
            })
    }
}

/// A name that is none of an enumeration's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {name:?}; use one of {known}")]
pub struct UnknownName {
    what: &'static str,
    name: String,
    known: &'static str,
}

/// What a [`Sampler`](super::Sampler) draws from and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplerConfig {
    /// The order.
    pub shuffle: Shuffle,
    /// Seed of the order. `keyed` uses all 64 bits; the PyTorch orders use what PyTorch's Mersenne Twister
    /// uses of a seed, its lower 32 bits.
    pub seed: u64,
    /// Samples in the dataset, 1 to [`Shuffle::max_size`].
    pub size: u64,
    /// Which share this is, 0 to `world_size - 1`.
    pub rank: u32,
    /// How many shares there are, at least 1.
    pub world_size: u32,
    /// How the shares are made equally long.
    pub uneven: Uneven,
    /// Only the first so many samples of each order, counted over all ranks, before sharding. 1 to `size`.
    pub samples_per_epoch: Option<u64>,
}

impl SamplerConfig {
    /// Whole epochs of `size` samples for a single rank.
    ///
    /// ```
    /// use epochfeed::sampler::{SamplerConfig, Shuffle};
    ///
    /// let config = SamplerConfig { rank: 1, world_size: 4, ..SamplerConfig::new(Shuffle::Keyed, 7, 1000) };
    /// assert_eq!(config.listed_by_all(), 1000);
    /// ```
    pub fn new(shuffle: Shuffle, seed: u64, size: u64) -> Self {
        SamplerConfig {
            shuffle,
            seed,
            size,
            rank: 0,
            world_size: 1,
            uneven: Uneven::default(),
            samples_per_epoch: None,
        }
    }

    /// Samples of one epoch over all ranks: `samples_per_epoch`, else the whole dataset.
    pub fn listed_by_all(&self) -> u64 {
        self.samples_per_epoch.unwrap_or(self.size)
    }

    /// Checks everything that makes an order possible.
    ///
    /// # Errors
    /// The first thing that is wrong, see [`SamplerError`].
    pub fn validate(&self) -> Result<(), SamplerError> {
        let size = self.size;
        if size == 0 {
            return Err(SamplerError::Empty);
        }
        if size > self.shuffle.max_size() {
            return Err(SamplerError::TooLarge {
                size,
                shuffle: self.shuffle,
                max: self.shuffle.max_size(),
            });
        }
        if self.rank >= self.world_size {
            return Err(SamplerError::Rank {
                rank: self.rank,
                world_size: self.world_size,
            });
        }
        // Not clamped: an epoch has each sample at most once, and a step schedule that was computed from a
        // wish the dataset cannot fulfil would silently be wrong.
        if let Some(samples) = self.samples_per_epoch
            && !(1..=size).contains(&samples)
        {
            return Err(SamplerError::SamplesPerEpoch { samples, size });
        }
        let listed = self.listed_by_all();
        if self.uneven == Uneven::Drop && listed < u64::from(self.world_size) {
            return Err(SamplerError::NothingLeft {
                listed,
                world_size: self.world_size,
            });
        }
        Ok(())
    }
}

/// Why there is no sampler for a [`SamplerConfig`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplerError {
    /// `size` is 0.
    #[error("the dataset has no samples; point it at a folder or list that has some")]
    Empty,
    /// `size` is beyond what the order supports.
    #[error(
        "the dataset has {size} samples, shuffle={shuffle} takes at most {max}; use shuffle=keyed for large ones"
    )]
    TooLarge {
        /// Samples in the dataset.
        size: u64,
        /// The order asked for.
        shuffle: Shuffle,
        /// What that order supports.
        max: u64,
    },
    /// `rank` is not below `world_size`; always so for a world size of 0.
    #[error("rank is {rank} with world-size {world_size}; world-size must be at least 1 and rank below it")]
    Rank {
        /// The rank asked for.
        rank: u32,
        /// The world size asked for.
        world_size: u32,
    },
    /// `samples_per_epoch` is 0 or more than the dataset has.
    #[error(
        "samples-per-epoch is {samples}, the dataset has {size} samples; use 1 to {size}, or leave it out for all"
    )]
    SamplesPerEpoch {
        /// Samples asked for.
        samples: u64,
        /// Samples in the dataset.
        size: u64,
    },
    /// With `uneven=drop` no rank would get a sample.
    #[error(
        "uneven=drop leaves nothing of {listed} samples for {world_size} ranks; use uneven=pad or fewer ranks"
    )]
    NothingLeft {
        /// Samples of an epoch over all ranks.
        listed: u64,
        /// How many ranks share them.
        world_size: u32,
    },
}
