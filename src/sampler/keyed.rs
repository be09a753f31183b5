//! The `keyed` order: a pseudorandom permutation that is computed, not stored.
//!
//! Every position is answered on its own, in constant memory and about constant time, for any size from 1 to
//! 2^63. The algorithm is part of the public contract; `tests/vectors/make_keyed_vectors.py` is an
//! independent reader of it.
//!
//! 1. **Keys.** The ChaCha8 stream (64-bit block counter, 64-bit stream number, as in `rand_chacha`) whose
//!    key is the seed as 8 little-endian bytes followed by the 24 ASCII bytes `epochfeed keyed order v1`, and
//!    whose stream number is the epoch, from word 0. `k[0]` to `k[16]` are its first seventeen little-endian
//!    64-bit words. The text keeps these streams apart from those of the gains; epoch and seed have their own
//!    fields, so no two (seed, epoch) share a stream.
//! 2. **Domain.** `half` = max(1, ceil(log2(size) / 2)). The network permutes `2 * half`-bit numbers, at most
//!    four times as many as there are samples.
//! 3. **Round function.** `F(k, x)` = the upper `half` bits of `mix(k + (x + 1) * 0x9E3779B97F4A7C15)` (mod
//!    2^64), where `mix(z)`: `z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9; z = (z ^ (z >> 27)) *
//!    0x94D049BB133111EB; z ^ (z >> 31)`. That is output number x of SplitMix64 started at k.
//! 4. **Network.** A balanced Feistel network of sixteen rounds: `left` = upper half of the number, `right` =
//!    lower half; for i = 0, …, 15 `(left, right) = (right, left ^ F(k[i], right))`.
//! 5. **Parity.** If `k[16]` is odd, the numbers 0 and 1 change places before they enter the network. With
//!    halves of two bits and more a Feistel network is always an even permutation, which would show in the
//!    orders of small datasets; this makes it even or odd with equal probability.
//! 6. **Walk.** Applied to the position, and again to its own result until that is below `size`. The position
//!    is itself below `size` and on a cycle of the network, so this ends, and restricted to the samples it is
//!    a bijection (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). At most four
//!    applications on average.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

/// With the one-bit halves of a dataset of four every round halves the distance from the uniform distribution
/// over all 24 orders; after sixteen rounds it is 2e-5 (total variation, with ideal round functions), beyond
/// what can be seen.
const ROUNDS: usize = 16;

/// Separates these ChaCha streams from all others under the same seed, and versions the algorithm.
const DOMAIN: &[u8; 24] = b"epochfeed keyed order v1";

/// A permutation of `0..size`, fixed by (seed, epoch, size).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyedPermutation {
    size: u64,
    /// Bits in each half of the network, 1 to 32.
    half: u32,
    keys: [u64; ROUNDS],
    /// 1 if the numbers 0 and 1 change places, else 0.
    parity: u64,
}

impl KeyedPermutation {
    /// `size` is 1 to 2^63, as [`SamplerConfig::validate`](super::SamplerConfig::validate) has checked.
    pub(super) fn new(seed: u64, epoch: u64, size: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..].copy_from_slice(DOMAIN);
        let mut stream = ChaCha8Rng::from_seed(key);
        stream.set_stream(epoch);

        let bits = u64::BITS - size.saturating_sub(1).leading_zeros(); // ceil(log2(size))
        KeyedPermutation {
            size,
            half: bits.div_ceil(2).max(1),
            // Struct fields are evaluated in this order: the keys come first from the stream.
            keys: std::array::from_fn(|_| stream.next_u64()),
            parity: stream.next_u64() & 1,
        }
    }

    /// The sample at `position`, which is below `size`.
    pub(super) fn at(&self, position: u64) -> u64 {
        debug_assert!(position < self.size);
        let mut number = position;
        loop {
            number = self.network(number);
            if number < self.size {
                return number;
            }
        }
    }

    fn network(&self, number: u64) -> u64 {
        let number = if number < 2 { number ^ self.parity } else { number };
        let mut left = number >> self.half;
        let mut right = number & ((1 << self.half) - 1);
        for key in self.keys {
            let mixed = splitmix64(key, right) >> (u64::BITS - self.half);
            (left, right) = (right, left ^ mixed);
        }
        (left << self.half) | right
    }
}

/// Output number `index` of SplitMix64 started at `state` (Steele, Lea and Flood, 2014).
fn splitmix64(state: u64, index: u64) -> u64 {
    let gamma = 0x9E37_79B9_7F4A_7C15_u64;
    let mut z = state.wrapping_add(index.wrapping_add(1).wrapping_mul(gamma));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn permutation(seed: u64, epoch: u64, size: u64) -> Vec<u64> {
        let keyed = KeyedPermutation::new(seed, epoch, size);
        (0..size).map(|position| keyed.at(position)).collect()
    }

    fn assert_bijective(seed: u64, epoch: u64, size: u64) {
        let mut order = permutation(seed, epoch, size);
        order.sort_unstable();
        assert!(
            order.into_iter().eq(0..size),
            "seed {seed} epoch {epoch} size {size}"
        );
    }

    /// Chi-square over equally likely cells, as standard deviations from what is expected (Wilson and
    /// Hilferty's approximation, good from one degree of freedom on).
    fn deviation(cells: &[u64]) -> f64 {
        let expected = cells.iter().sum::<u64>() as f64 / cells.len() as f64;
        let chi: f64 = cells
            .iter()
            .map(|&seen| (seen as f64 - expected).powi(2) / expected)
            .sum();
        let degrees = (cells.len() - 1) as f64;
        let spread = 2.0 / (9.0 * degrees);
        ((chi / degrees).cbrt() - (1.0 - spread)) / spread.sqrt()
    }

    #[test]
    fn every_sample_once_around_powers_of_two() {
        for size in (0..15).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power.saturating_sub(1).max(1), power, power + 1]
        }) {
            assert_bijective(7, 3, size);
        }
    }

    proptest! {
        #[test]
        fn every_sample_once(seed: u64, epoch: u64, size in 1_u64..5000) {
            assert_bijective(seed, epoch, size);
        }

        #[test]
        fn huge_sizes_answer_any_position(seed: u64, size in 1_u64 << 33..=1 << 63, at: u64) {
            let keyed = KeyedPermutation::new(seed, 0, size);
            let position = at % size;
            let other = (position + 1) % size;
            prop_assert!(keyed.at(position) < size);
            prop_assert_ne!(keyed.at(position), keyed.at(other));
        }
    }

    #[test]
    fn epoch_is_not_added_to_the_seed() {
        assert_ne!(permutation(5, 1, 100), permutation(6, 0, 100));
        assert_ne!(permutation(5, 1, 100), permutation(5, 0, 100));
    }

    /// No sample prefers a position: all (position, sample) cells are equally often hit over many epochs.
    #[test]
    fn positions_are_uniform() {
        for size in [2_u64, 3, 5, 10, 16, 17, 40] {
            let mut cells = vec![0; (size * size) as usize];
            for epoch in 0..20_000 {
                for (position, sample) in permutation(11, epoch, size).into_iter().enumerate() {
                    cells[position * size as usize + sample as usize] += 1;
                }
            }
            let deviation = deviation(&cells);
            assert!(deviation < 4.0, "size {size}: {deviation} standard deviations");
        }
    }

    /// All orders of a tiny dataset are equally likely, not only its marginals.
    #[test]
    fn tiny_orders_are_uniform() {
        for (size, orders) in [(2, 2), (3, 6), (4, 24), (5, 120), (6, 720)] {
            let mut cells = vec![0; orders];
            for epoch in 0..400_000 {
                cells[rank_of(&permutation(3, epoch, size))] += 1;
            }
            let deviation = deviation(&cells);
            assert!(deviation < 4.0, "size {size}: {deviation} standard deviations");
        }
    }

    /// Number of an order among all orders of its length (Lehmer code).
    fn rank_of(order: &[u64]) -> usize {
        order.iter().enumerate().fold(0, |rank, (i, sample)| {
            let smaller = order[i + 1..].iter().filter(|later| *later < sample).count();
            rank * (order.len() - i) + smaller
        })
    }

    /// Neighbours in the order are unrelated in the dataset: the rank correlation of an order with itself
    /// moved by one, and with the next epoch's, is noise (standard deviation about 1/sqrt(size)).
    #[test]
    fn neighbours_and_epochs_are_unrelated() {
        let size = 100_000_u64;
        let mean = (size - 1) as f64 / 2.0;
        let variance = ((size * size - 1) / 12) as f64;
        let correlation = |a: &[u64], b: &[u64]| {
            let sum: f64 = a
                .iter()
                .zip(b)
                .map(|(&x, &y)| (x as f64 - mean) * (y as f64 - mean))
                .sum();
            sum / (size as f64 * variance)
        };
        let (now, next) = (permutation(1, 0, size), permutation(1, 1, size));
        let mut moved = now.clone();
        moved.rotate_left(1);
        let dataset: Vec<u64> = (0..size).collect();
        for (name, other) in [("moved", &moved), ("next epoch", &next), ("dataset", &dataset)] {
            let r = correlation(&now, other);
            assert!(r.abs() < 5.0 / (size as f64).sqrt(), "{name}: {r}");
        }
    }
}
