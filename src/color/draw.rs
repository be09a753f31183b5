//! Drawing a sample's gains.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::{GainRanges, Gains};

/// Words of a ChaCha block. Each sample owns one block, of which it uses the first six words.
const BLOCK_WORDS: u128 = 16;

/// The gains of one sample in one epoch: a pure function of its arguments.
///
/// ChaCha with 8 rounds; the key is `seed` as 8 little-endian bytes followed by 24 zero bytes, the 64-bit stream is
/// `epoch`, the 64-bit block counter is `dataset_index` (word position `16 × dataset_index`, 68 bits wide, so every
/// index has a block of its own and none wraps around). Three draws `x = (next_u64 >> 11) × 2⁻⁵³` give
/// `(2x - 1) × range`, in float64, in the order hue, saturation, value. Neither thread, rank, batch nor the order
/// within the epoch plays a part.
///
/// Published vectors: `tests/vectors/gains.tsv`, with a reader in plain Python beside them.
///
/// ```
/// use epochfeed::color::{GainRanges, draw_gains};
///
/// let ranges = GainRanges::default();
/// let gains = draw_gains(7, 0, 1000, &ranges);
/// assert_eq!(gains, draw_gains(7, 0, 1000, &ranges));
/// assert_ne!(gains, draw_gains(7, 1, 1000, &ranges));
/// assert!(gains.saturation.abs() <= ranges.saturation);
/// ```
pub fn draw_gains(seed: u64, epoch: u64, dataset_index: u64, ranges: &GainRanges) -> Gains {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(epoch);
    rng.set_word_pos(BLOCK_WORDS * u128::from(dataset_index));

    let mut gain = |range: f64| {
        // 53 bits: every value is a multiple of 2^-53, which float64 holds exactly.
        let x = (rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64);
        (2.0 * x - 1.0) * range
    };
    Gains {
        hue: gain(ranges.hue),
        saturation: gain(ranges.saturation),
        value: gain(ranges.value),
    }
}
