//! The orders PyTorch's own samplers draw on the CPU, number for number.
//!
//! `torch.randperm(n, generator=g)` with the default dtype, as in `aten/src/ATen/native/TensorFactories.cpp`
//! (`randperm_cpu`): up to 2^32 / 20 elements one 32-bit output per step of a forward Fisher-Yates shuffle,
//! beyond that one 64-bit number per step of the inside-out variant. `tests/vectors/make_torch_vectors.py`
//! makes the vectors this is checked against from the classes themselves.

use std::sync::{Arc, Mutex, PoisonError};

use super::mt::TorchGenerator;

/// From this many elements on, `randperm` takes 64-bit numbers (`std::numeric_limits<uint32_t>::max() / 20`).
const WIDE_FROM: u64 = u32::MAX as u64 / 20;

/// 32-bit outputs that one `randperm(size)` takes from the generator.
pub(super) const fn outputs_per_permutation(size: u64) -> u64 {
    if size < WIDE_FROM {
        size.saturating_sub(1)
    } else {
        2 * size
    }
}

/// `torch.randperm(size, generator=generator)`. `size` is at most [`MAX_TORCH_SIZE`](super::MAX_TORCH_SIZE),
/// so that indices are 32-bit numbers.
pub(super) fn randperm(generator: &mut TorchGenerator, size: u64) -> Vec<u32> {
    if size < WIDE_FROM {
        narrow(generator, size as u32)
    } else {
        wide(generator, size)
    }
}

fn narrow(generator: &mut TorchGenerator, size: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..size).collect();
    for i in 0..size.saturating_sub(1) {
        let z = generator.next_u32() % (size - i);
        order.swap(i as usize, (i + z) as usize);
    }
    order
}

fn wide(generator: &mut TorchGenerator, size: u64) -> Vec<u32> {
    let mut order = Vec::with_capacity(size as usize);
    for i in 0..size {
        let z = (generator.next_u64() % (i + 1)) as usize;
        order.push(i as u32);
        order.swap(i as usize, z);
    }
    order
}

/// The generator as the last draw left it, shared by the clones of a sampler.
///
/// Only a shortcut: without it every draw would step from the seed again. What is drawn depends on the
/// receipt alone.
#[derive(Clone, Debug, Default)]
pub(super) struct GeneratorCache(Arc<Mutex<Option<TorchGenerator>>>);

impl GeneratorCache {
    /// Draws `randperm(size)` from the generator of `seed` after `consumed` outputs.
    ///
    /// The lock is held for a copy of 2.5 KB on either side, never over the draw.
    pub(super) fn randperm_at(&self, seed: u64, consumed: u64, size: u64) -> Vec<u32> {
        let cached = self.lock().clone();
        let mut generator = cached
            .and_then(|generator| generator.advanced_to(consumed))
            .unwrap_or_else(|| TorchGenerator::at(seed, consumed));
        debug_assert_eq!(generator.consumed(), consumed);
        let order = randperm(&mut generator, size);
        *self.lock() = Some(generator);
        order
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<TorchGenerator>> {
        // A panic elsewhere cannot leave half a generator here: it is replaced as a whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn permutations_take_the_outputs_they_say() {
        for size in [1_u64, 2, 7, 1000] {
            let mut generator = TorchGenerator::new(0);
            randperm(&mut generator, size);
            assert_eq!(generator.consumed(), outputs_per_permutation(size));
        }
        let mut generator = TorchGenerator::new(0);
        wide(&mut generator, 1000);
        assert_eq!(generator.consumed(), 2000);
        assert_eq!(outputs_per_permutation(WIDE_FROM - 1), WIDE_FROM - 2);
        assert_eq!(outputs_per_permutation(WIDE_FROM), 2 * WIDE_FROM);
    }

    /// The largest narrow and the smallest wide permutation: SHA-256 of `torch.randperm(n,
    /// generator=g).numpy()` with seed 7 under PyTorch 2.15.0.
    #[test]
    #[ignore = "takes 2 GB of memory and half a minute; run with --ignored"]
    fn permutations_on_both_sides_of_the_border() {
        for (size, expected) in [
            (
                214_748_363,
                "6e613d44146caef653b2ca4dc0584d5f11fc2476ad738e39e6d141e5365a52bd",
            ),
            (
                214_748_364,
                "bc1a456324f5a859ee4e9c06495dd01950811344e384db27ab00e6c548d83938",
            ),
        ] {
            let mut hash = Sha256::new();
            for chunk in randperm(&mut TorchGenerator::new(7), size).chunks(1 << 16) {
                let bytes: Vec<u8> = chunk
                    .iter()
                    .flat_map(|&index| u64::from(index).to_le_bytes())
                    .collect();
                hash.update(bytes);
            }
            assert_eq!(format!("{:x}", hash.finalize()), expected, "{size} elements");
        }
    }
}
