//! The sampler's state before an epoch is drawn.

use serde::{Deserialize, Serialize};

/// Everything that [`Sampler::draw`](super::Sampler::draw) needs besides the sampler: a small value that can
/// be kept, compared and sent, in place of a generator that changes when it is used.
///
/// As JSON `{"epoch":3}`, with `torch` `{"epoch":3,"torch_outputs":234}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    pub(super) epoch: u64,
    /// 32-bit outputs taken from PyTorch's generator since it was seeded; 0 in all orders but `torch`. They
    /// say how many of the epochs before were broken off.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) torch_outputs: u64,
}

impl Receipt {
    /// Number of the epoch that it draws, from 0.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
