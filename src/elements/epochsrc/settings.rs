use std::path::PathBuf;

use super::super::faults::OnError;
use super::dataset::{Crowd, DatasetFormat, OnChange, OutOfImage, Split};
use crate::sampler;

/// How the samples of an epoch are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstEpochSrcShuffle")]
pub enum Shuffle {
    /// A keyed permutation of (seed, epoch).
    #[default]
    #[enum_value(
        name = "Keyed: a permutation keyed by seed and epoch, any size, no memory",
        nick = "keyed"
    )]
    Keyed,
    /// PyTorch's RandomSampler.
    #[enum_value(
        name = "Torch: the order of PyTorch's RandomSampler with a seeded generator",
        nick = "torch"
    )]
    Torch,
    /// PyTorch's DistributedSampler.
    #[enum_value(
        name = "Torch distributed: the order of PyTorch's DistributedSampler",
        nick = "torch-distributed"
    )]
    TorchDistributed,
    /// Dataset order.
    #[enum_value(name = "None: dataset order (byte order of the paths)", nick = "none")]
    None,
}

impl From<Shuffle> for sampler::Shuffle {
    fn from(shuffle: Shuffle) -> Self {
        match shuffle {
            Shuffle::Keyed => Self::Keyed,
            Shuffle::Torch => Self::Torch,
            Shuffle::TorchDistributed => Self::TorchDistributed,
            Shuffle::None => Self::None,
        }
    }
}

/// How ranks get equally many samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstEpochSrcUneven")]
pub enum Uneven {
    /// Repeat samples.
    #[default]
    #[enum_value(
        name = "Pad: repeat samples from the start of the order, flagged",
        nick = "pad"
    )]
    Pad,
    /// Leave samples out.
    #[enum_value(name = "Drop: leave the last samples out, counted", nick = "drop")]
    Drop,
}

impl From<Uneven> for sampler::Uneven {
    fn from(uneven: Uneven) -> Self {
        match uneven {
            Uneven::Pad => Self::Pad,
            Uneven::Drop => Self::Drop,
        }
    }
}

/// The properties that a run takes over at its start.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub location: Option<String>,
    pub shuffle: Shuffle,
    pub seed: u64,
    pub epochs: i32,
    pub rank: u32,
    pub world_size: u32,
    pub samples_per_epoch: u64,
    pub uneven: Uneven,
    pub io_depth: u32,
    pub framerate: gst::Fraction,
    pub auto_advance: bool,
    pub state_location: Option<PathBuf>,
    pub on_error: OnError,
    pub reload: bool,
    pub format: DatasetFormat,
    pub root: Option<String>,
    pub split: Split,
    pub crowd: Crowd,
    pub classes: Option<String>,
    pub single_class: bool,
    pub fraction: f64,
    pub out_of_image: OutOfImage,
    pub strict: bool,
    pub on_change: OnChange,
    pub exclude: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            location: None,
            shuffle: Shuffle::default(),
            seed: 0,
            epochs: 1,
            rank: 0,
            world_size: 1,
            samples_per_epoch: 0,
            uneven: Uneven::default(),
            io_depth: 32,
            framerate: gst::Fraction::new(30, 1),
            auto_advance: true,
            state_location: None,
            on_error: OnError::default(),
            reload: false,
            format: DatasetFormat::default(),
            root: None,
            split: Split::default(),
            crowd: Crowd::default(),
            classes: None,
            single_class: false,
            fraction: 1.0,
            out_of_image: OutOfImage::default(),
            strict: false,
            on_change: OnChange::default(),
            exclude: None,
        }
    }
}

impl Settings {
    /// What the sampler is to draw from a dataset of `size` samples.
    pub fn sampler_config(&self, size: u64) -> sampler::SamplerConfig {
        sampler::SamplerConfig {
            shuffle: self.shuffle.into(),
            seed: self.seed,
            size,
            rank: self.rank,
            world_size: self.world_size,
            uneven: self.uneven.into(),
            samples_per_epoch: (self.samples_per_epoch > 0).then_some(self.samples_per_epoch),
        }
    }
}
