//! The CPU random generator of PyTorch, at a known place in its output.

use rand_mt::Mt;

use super::mt_jump;

/// Up to here outputs are skipped one by one, which then takes less time than a jump (tens of milliseconds).
const SKIP_AT_MOST: u64 = 1 << 25;

/// `torch.Generator().manual_seed(seed)` after `consumed` 32-bit outputs.
#[derive(Clone, Debug)]
pub(super) struct TorchGenerator {
    mt: Mt,
    consumed: u64,
}

impl TorchGenerator {
    /// The generator right after `manual_seed`. PyTorch takes 64-bit seeds but initialises its MT19937 from
    /// their lower 32 bits (`mt19937_engine::init_with_uint32`); seeds 0 and 2^63 give the same numbers there
    /// and here.
    pub(super) fn new(seed: u64) -> Self {
        TorchGenerator {
            mt: Mt::new(seed as u32),
            consumed: 0,
        }
    }

    /// The generator after `consumed` outputs, in bounded time for any number.
    pub(super) fn at(seed: u64, consumed: u64) -> Self {
        if consumed <= SKIP_AT_MOST {
            let mut generator = TorchGenerator::new(seed);
            generator.skip(consumed);
            generator
        } else {
            TorchGenerator {
                mt: mt_jump::after(&Mt::new(seed as u32), consumed),
                consumed,
            }
        }
    }

    /// 32-bit outputs taken since `manual_seed`.
    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Moves on to `consumed` outputs if that is ahead and near enough to walk there.
    pub(super) fn advanced_to(mut self, consumed: u64) -> Option<Self> {
        let ahead = consumed.checked_sub(self.consumed)?;
        (ahead <= SKIP_AT_MOST).then(|| {
            self.skip(ahead);
            self
        })
    }

    fn skip(&mut self, outputs: u64) {
        for _ in 0..outputs {
            self.mt.next_u32();
        }
        self.consumed += outputs;
    }

    /// `CPUGeneratorImpl::random()`.
    pub(super) fn next_u32(&mut self) -> u32 {
        self.consumed += 1;
        self.mt.next_u32()
    }

    /// `CPUGeneratorImpl::random64()`: two outputs, the first one in the upper half.
    pub(super) fn next_u64(&mut self) -> u64 {
        self.consumed += 2;
        self.mt.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways around the border between skipping and jumping lead to the same place.
    #[test]
    fn skipping_and_jumping_agree() {
        let mut walked = TorchGenerator::new(7);
        walked.skip(SKIP_AT_MOST);
        for consumed in SKIP_AT_MOST..SKIP_AT_MOST + 3 {
            let mut placed = TorchGenerator::at(7, consumed);
            assert_eq!(placed.consumed(), consumed);
            assert_eq!(placed.next_u32(), walked.next_u32(), "after {consumed} outputs");
        }
    }

    #[test]
    fn only_the_lower_half_of_a_seed_counts() {
        assert_eq!(
            TorchGenerator::new(1 << 63).next_u64(),
            TorchGenerator::new(0).next_u64()
        );
        assert_ne!(
            TorchGenerator::new(1).next_u64(),
            TorchGenerator::new(0).next_u64()
        );
    }
}
