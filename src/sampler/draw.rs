//! The sampler: from a receipt to an order, and to the next receipt.

use std::sync::Arc;

use super::{
    config::{SamplerConfig, SamplerError, Shuffle},
    keyed::KeyedPermutation,
    mt::TorchGenerator,
    order::{Order, Source},
    receipt::Receipt,
    shard::Shard,
    torch::{self, GeneratorCache},
};

/// Draws the orders of a dataset. Validated once, never changed by use, cheap to clone.
///
/// Drawing is a pure function of configuration and receipt, so an epoch that is drawn ahead and never used
/// leaves nothing behind: there is nothing to undo, the receipt that would have followed it is simply not
/// kept.
///
/// ```
/// use epochfeed::sampler::{Sampler, SamplerConfig, Shuffle};
///
/// let sampler = Sampler::new(SamplerConfig::new(Shuffle::Torch, 0, 5))?;
/// let first = sampler.first();
/// let order: Vec<u64> = sampler.draw(&first).iter().map(|slot| slot.dataset_index).collect();
/// // list(RandomSampler(range(5), generator=torch.Generator().manual_seed(0)))
/// assert_eq!(order, [4, 0, 1, 3, 2]);
///
/// let second = sampler.next(&first, true);
/// assert_eq!(second.epoch(), 1);
/// # Ok::<(), epochfeed::sampler::SamplerError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sampler {
    config: Arc<SamplerConfig>,
    cache: GeneratorCache,
}

impl Sampler {
    /// A sampler for `config`.
    ///
    /// # Errors
    /// What [`SamplerConfig::validate`] finds.
    pub fn new(config: SamplerConfig) -> Result<Sampler, SamplerError> {
        config.validate()?;
        Ok(Sampler {
            config: Arc::new(config),
            cache: GeneratorCache::default(),
        })
    }

    /// What it was made from.
    pub fn config(&self) -> &SamplerConfig {
        &self.config
    }

    /// The receipt of epoch 0.
    pub fn first(&self) -> Receipt {
        Receipt {
            epoch: 0,
            torch_outputs: 0,
        }
    }

    /// The order that `receipt` stands for.
    ///
    /// Constant time and memory for `keyed` and `none`. The PyTorch orders take time and 4 bytes a sample in
    /// proportion to the dataset, whatever the rank and `samples_per_epoch`.
    ///
    /// With `samples_per_epoch = k` this is the start of the same order that is drawn without it. (For
    /// `torch` that is `list(RandomSampler(…))[:k]`, an epoch that went on to its end. `RandomSampler(…,
    /// num_samples=k)` yields the same k samples in epoch 0, but its next epoch follows after one
    /// permutation: for that, call an epoch not exhausted.)
    pub fn draw(&self, receipt: &Receipt) -> Order {
        let config = &*self.config;
        let source = match config.shuffle {
            Shuffle::None => Source::Dataset,
            Shuffle::Keyed => Source::Keyed(KeyedPermutation::new(config.seed, receipt.epoch, config.size)),
            Shuffle::Torch => self.listed(self.cache.randperm_at(
                config.seed,
                receipt.torch_outputs,
                config.size,
            )),
            Shuffle::TorchDistributed => {
                // Python adds without overflow and then refuses sums beyond 64 bits; there is no result to
                // differ from.
                let seed = config.seed.wrapping_add(receipt.epoch);
                self.listed(torch::randperm(&mut TorchGenerator::new(seed), config.size))
            }
        };
        Order {
            epoch: receipt.epoch,
            shard: Shard::new(config),
            source,
        }
    }

    /// Keeps of a whole permutation what this epoch lists.
    fn listed(&self, mut permutation: Vec<u32>) -> Source {
        if let Ok(listed) = usize::try_from(self.config.listed_by_all()) {
            permutation.truncate(listed);
            permutation.shrink_to_fit();
        }
        Source::Listed(Arc::new(permutation))
    }

    /// The receipt of the epoch after `receipt`'s.
    ///
    /// `exhausted` says whether that epoch was asked for a sample beyond its last one, as a `for` loop does
    /// that is not left early. It matters to `torch` only: a `RandomSampler` that is exhausted draws a second
    /// permutation, of which it uses nothing. An epoch that `samples_per_epoch` ended counts as exhausted.
    pub fn next(&self, receipt: &Receipt, exhausted: bool) -> Receipt {
        let outputs = match self.config.shuffle {
            Shuffle::Torch => outputs_of_epoch(self.config.size, exhausted),
            Shuffle::Keyed | Shuffle::TorchDistributed | Shuffle::None => 0,
        };
        // Both sums are far from the end of their range in any run; a receipt that was read is checked
        // (`State`).
        Receipt {
            epoch: receipt.epoch.saturating_add(1),
            torch_outputs: receipt.torch_outputs.saturating_add(outputs),
        }
    }
}

/// Generator outputs that one epoch of `torch` takes.
fn outputs_of_epoch(size: u64, exhausted: bool) -> u64 {
    torch::outputs_per_permutation(size) * if exhausted { 2 } else { 1 }
}
