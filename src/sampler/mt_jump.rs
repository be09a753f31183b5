//! Jumping ahead in MT19937, so that a receipt far down the stream costs no more than a near one.
//!
//! The generator is linear over GF(2): with `phi` the characteristic polynomial of its transition and `g(t) =
//! t^J mod phi(t)`, output number `J + i` is the exclusive or of all outputs `k + i` for which the
//! coefficient of `t^k` in `g` is 1 (Haramoto, Matsumoto, Nishimura, Panneton and L'Ecuyer, "Efficient Jump
//! Ahead for F2-Linear Random Number Generators", 2008). Tempering is linear as well, so this works on the
//! outputs themselves, and 624 consecutive outputs are a whole generator again.

use std::sync::LazyLock;

use rand_mt::Mt;

/// Words of the state, and the other constants of MT19937 (Matsumoto and Nishimura, 1998).
const N: usize = 624;
const M: usize = 397;
const MATRIX_A: u32 = 0x9908_B0DF;

/// Degree of the characteristic polynomial.
const DEGREE: usize = 19937;

/// Words of a polynomial of degree below `2 * DEGREE`: a square before its reduction.
const WORDS: usize = (2 * DEGREE).div_ceil(64);

static CHARACTERISTIC: LazyLock<Polynomial> = LazyLock::new(characteristic);

/// The generator `start` is, `outputs` outputs later. `start` must be freshly seeded and `outputs` at least
/// 624.
pub(super) fn after(start: &Mt, outputs: u64) -> Mt {
    // The generator is put together from the 624 outputs before the place asked for.
    let coefficients = Polynomial::power_of_t(outputs.saturating_sub(N as u64), &CHARACTERISTIC);
    let mut start = start.clone();
    let stream: Vec<u32> = (0..DEGREE + N).map(|_| start.next_u32()).collect();
    let mut window = [0_u32; N];
    for (k, outputs) in stream.windows(N).take(DEGREE).enumerate() {
        if coefficients.bit(k) {
            for (sum, output) in window.iter_mut().zip(outputs) {
                *sum ^= output;
            }
        }
    }
    Mt::from(window)
}

/// `phi`, from the closed form in the appendix of the 1998 paper; with w = 32 and r = 31 it is `u * (v^31 +
/// a[0] v^30 + … + a[30]) + a[31]`, where `u = t^N + t^M`, `v = t^(N-1) + t^(M-1)` and `a[i]` is bit i of
/// `MATRIX_A`.
fn characteristic() -> Polynomial {
    let a = |i: u32| u64::from(MATRIX_A >> i & 1);
    let mut phi = Polynomial::one();
    for i in 0..31 {
        phi = phi.times_binomial(N - 1, M - 1);
        phi.0[0] ^= a(i);
    }
    phi = phi.times_binomial(N, M);
    phi.0[0] ^= a(31);
    phi
}

/// A polynomial over GF(2); bit `k % 64` of word `k / 64` is the coefficient of `t^k`.
#[derive(Clone, Debug, PartialEq)]
struct Polynomial(Box<[u64; WORDS]>);

impl Polynomial {
    fn zero() -> Self {
        Polynomial(Box::new([0; WORDS]))
    }

    fn one() -> Self {
        let mut one = Polynomial::zero();
        one.0[0] = 1;
        one
    }

    fn bit(&self, k: usize) -> bool {
        self.0[k / 64] >> (k % 64) & 1 == 1
    }

    /// Adds `other * t^shift`; what would go beyond the last word must be zero.
    fn add_shifted(&mut self, other: &Polynomial, shift: usize) {
        let (words, bits) = (shift / 64, shift % 64);
        let mut carry = 0;
        for (sum, &word) in self.0[words..].iter_mut().zip(other.0.iter()) {
            *sum ^= word << bits | carry;
            // Not `word >> (64 - bits)`, which is no shift for bits = 0.
            carry = word >> 1 >> (63 - bits);
        }
    }

    fn times_binomial(&self, a: usize, b: usize) -> Self {
        let mut product = Polynomial::zero();
        product.add_shifted(self, a);
        product.add_shifted(self, b);
        product
    }

    /// The remainder modulo `modulus`, which has degree `DEGREE`.
    fn reduced(mut self, modulus: &Polynomial) -> Self {
        for k in (DEGREE..2 * DEGREE).rev() {
            if self.bit(k) {
                self.add_shifted(modulus, k - DEGREE);
            }
        }
        self
    }

    /// The square: over GF(2) every coefficient just moves to twice its place.
    fn squared(&self) -> Self {
        let mut square = Polynomial::zero();
        for (pair, &word) in square.0.chunks_mut(2).zip(self.0.iter()) {
            for (half, out) in pair.iter_mut().enumerate() {
                *out = spread((word >> (32 * half)) as u32);
            }
        }
        square
    }

    /// `t^exponent` modulo `modulus`.
    fn power_of_t(exponent: u64, modulus: &Polynomial) -> Self {
        let mut power = Polynomial::one();
        for bit in (0..u64::BITS - exponent.leading_zeros()).rev() {
            power = power.squared();
            if exponent >> bit & 1 == 1 {
                let mut times_t = Polynomial::zero();
                times_t.add_shifted(&power, 1);
                power = times_t;
            }
            power = power.reduced(modulus);
        }
        power
    }
}

/// Moves bit k to bit 2k.
fn spread(word: u32) -> u64 {
    let mut x = u64::from(word);
    x = (x | x << 16) & 0x0000_FFFF_0000_FFFF;
    x = (x | x << 8) & 0x00FF_00FF_00FF_00FF;
    x = (x | x << 4) & 0x0F0F_0F0F_0F0F_0F0F;
    x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_land_where_steps_do() {
        let start = Mt::new(12345);
        for outputs in [624_u64, 625, 1000, 19_936, 19_937, 19_938, 20_561, 1_234_567] {
            let mut stepped = start.clone();
            for _ in 0..outputs {
                stepped.next_u32();
            }
            let mut jumped = after(&start, outputs);
            for i in 0..2000 {
                assert_eq!(
                    jumped.next_u32(),
                    stepped.next_u32(),
                    "output {i} after {outputs}"
                );
            }
        }
    }

    /// Far jumps, where stepping is no option: a jump of 2^40 + 1000 outputs equals one of 2^40 and a walk.
    #[test]
    fn far_jumps_agree_with_each_other() {
        let start = Mt::new(1);
        let mut walked = after(&start, 1 << 40);
        for _ in 0..1000 {
            walked.next_u32();
        }
        let mut jumped = after(&start, (1 << 40) + 1000);
        assert!((0..2000).all(|_| jumped.next_u32() == walked.next_u32()));
        // The farthest there is; that it ends is the point.
        after(&start, u64::MAX).next_u32();
    }
}
