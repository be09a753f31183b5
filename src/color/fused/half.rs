//! Round-to-nearest-even casts to 16 bits that vectorise.
//!
//! The `half` crate asks the processor anew for every number, which keeps a loop from being vectorised. These are
//! integer formulations of the same casts, compared with that crate in the tests below.

/// float32 to bfloat16: the upper half, after adding just under half a unit of it (exactly half when it is odd).
#[inline(always)]
pub(super) fn bf16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    // NaN must not be rounded to infinity: keep its upper half and make it quiet.
    let nan = bits >> 16 | 0x0040;
    (if x.is_nan() { nan } else { rounded }) as u16
}

/// float32 to IEEE binary16, after F. Giesen's `float_to_half_fast3_rtne`.
#[inline(always)]
pub(super) fn f16_bits(x: f32) -> u16 {
    /// 65536, the first magnitude that is infinity in binary16 whatever the rounding.
    const OVERFLOW: u32 = (127 + 16) << 23;
    /// 2^-14, the smallest normal binary16.
    const NORMAL: u32 = (127 - 14) << 23;
    /// One half: its unit in the last place, 2^-24, is that of binary16's subnormals.
    const SUBNORMAL: u32 = (127 - 1) << 23;

    let bits = x.to_bits();
    let sign = bits >> 16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;

    // Subnormal: adding one half lets the float32 addition round at 2^-24; the low bits are then the result.
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(SUBNORMAL))
        .to_bits()
        .wrapping_sub(SUBNORMAL);
    // Normal: rebias the exponent and round as in `bf16_bits`, 13 bits lower; a carry moves into the exponent as it
    // should, up to infinity.
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_sub((127 - 15) << 23).wrapping_add(0xfff + odd) >> 13;
    // Infinity, or NaN with its upper bits and made quiet.
    let special = if magnitude > 0x7f80_0000 {
        0x7e00 | magnitude >> 13 & 0x3ff
    } else {
        0x7c00
    };

    let half = if magnitude < NORMAL { subnormal } else { normal };
    let half = if magnitude >= OVERFLOW { special } else { half };
    (half | sign) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_equal_the_half_crate() {
        // Every sign, exponent and upper 8 bits of the significand, with lower bits around each place where the
        // casts round: all ties, their neighbours, carries, subnormals, overflow, infinities, NaN payloads.
        let lower = [
            0, 1, 0xfff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x2fff, 0x3000, 0x3001, 0x3fff, 0x4000, 0x5000,
            0x7000, 0x7fff,
        ];
        for upper in 0..1 << 17 {
            for lower in lower {
                let x = f32::from_bits(upper << 15 | lower);
                assert_eq!(
                    bf16_bits(x),
                    ::half::bf16::from_f32(x).to_bits(),
                    "{x:e} {:08x}",
                    x.to_bits()
                );
                assert_eq!(
                    f16_bits(x),
                    ::half::f16::from_f32(x).to_bits(),
                    "{x:e} {:08x}",
                    x.to_bits()
                );
            }
        }
    }
}
