//! `INTER_LINEAR`, byte-equal to OpenCV on uint8.
//!
//! Horizontally `S = a0*p0 + a1*p1` with 11-bit weights; vertically
//! `(((b0*(S0>>4))>>16) + ((b1*(S1>>4))>>16) + 2) >> 2`. `S >> 4` is at most 255*2049/16 = 32655 and so fits an `i16`:
//! rows are kept in that form, which halves the memory traffic and lets the vertical pass use 16-bit multiplications.
//! Each source row is resampled horizontally once, however many destination rows use it.

use super::taps::Tap;
use super::{ResizeScratch, cleared, scale};
use crate::decode::{DecodeError, Pixels, PixelsMut};

/// Buffers of [`resize_linear`].
#[derive(Debug, Default)]
pub(super) struct LinearScratch {
    columns: Vec<Column>,
    rows: [Vec<i16>; 2],
}

/// The horizontal tap of one destination column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// Byte offset of the first of six source bytes.
    pub offset: u32,
    /// Weights of the two pixels there.
    pub weights: [i16; 2],
}

/// Resamples `src` to the size of `dst` as `cv::resize(…, INTER_LINEAR)` does: half-pixel centres, no antialiasing.
///
/// # Errors
/// [`DecodeError::OutOfMemory`] where two rows of the destination do not fit.
pub fn resize_linear(
    src: Pixels<'_>,
    dst: &mut PixelsMut<'_>,
    scratch: &mut ResizeScratch,
) -> Result<(), DecodeError> {
    resample(src, dst, &mut scratch.linear, Tap::linear)
}

/// Two-tap resampling with any rule for the taps.
pub(super) fn resample(
    src: Pixels<'_>,
    dst: &mut PixelsMut<'_>,
    scratch: &mut LinearScratch,
    tap: fn(u32, f64) -> Tap,
) -> Result<(), DecodeError> {
    let ((src_w, src_h), (dst_w, dst_h)) = (src.size(), dst.size());
    let LinearScratch { columns, rows } = scratch;
    cleared(columns, dst_w as usize)?;
    let x_scale = scale(src_w, dst_w);
    columns.extend((0..dst_w).map(|d| column(tap(d, x_scale), src_w)));
    let row_len = dst_w as usize * 3;
    for row in rows.iter_mut() {
        cleared(row, row_len)?.resize(row_len, 0);
    }
    let passes = Passes::best();
    let y_scale = scale(src_h, dst_h);
    let [mut upper, mut lower] = rows.each_mut().map(|row| (None, row.as_mut_slice()));
    for y in 0..dst_h {
        let tap = tap(y, y_scale);
        let [first, second] = tap.rows(src_h);
        // Moving down, the lower row of the last step is often the upper row of this one.
        if upper.0 != Some(first) && lower.0 == Some(first) {
            std::mem::swap(&mut upper, &mut lower);
        }
        // At the edges both rows are the same one, and the upper serves for both. A row of no weight is left as it is:
        // its product is zero whatever it holds.
        let same = first == second;
        let needed = [tap.weights[0] != 0 || same, tap.weights[1] != 0 && !same];
        for ((row, wanted), needed) in [(&mut upper, first), (&mut lower, second)]
            .into_iter()
            .zip(needed)
        {
            if needed && row.0 != Some(wanted) {
                (passes.horizontal)(src.row(wanted), columns, row.1);
                row.0 = Some(wanted);
            }
        }
        let below = if same { &*upper.1 } else { &*lower.1 };
        (passes.vertical)(&*upper.1, below, tap.weights, dst.row_mut(y as usize));
    }
    Ok(())
}

/// The tap of a column as an offset that leaves room for two pixels, so that the inner loop needs no special cases.
fn column(tap: Tap, side: u32) -> Column {
    let tap = tap.held_inside(side);
    let (first, [a0, a1]) = (tap.first as u32, tap.weights);
    match first + 1 < side {
        true => Column {
            offset: first * 3,
            weights: [a0, a1],
        },
        // The last column has all the weight on its first pixel: the same as all the weight on the second, one earlier.
        false => Column {
            offset: first.saturating_sub(1) * 3,
            weights: [0, a0],
        },
    }
}

/// From a source row and the taps to a row of `S >> 4`.
type Horizontal = fn(&[u8], &[Column], &mut [i16]);
/// From two such rows and their weights to a row of bytes.
type Vertical = fn(&[i16], &[i16], [i16; 2], &mut [u8]);

/// The two inner loops for one kind of processor.
#[derive(Clone, Copy)]
pub(super) struct Passes {
    /// One source row.
    pub horizontal: Horizontal,
    /// One destination row.
    pub vertical: Vertical,
}

impl Passes {
    /// Any processor; the definition of the arithmetic.
    const SCALAR: Self = Self {
        horizontal: horizontal_scalar,
        vertical: vertical_scalar,
    };

    /// The fastest for this machine. All give the same bytes.
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return super::linear_avx2::PASSES;
        }
        Self::SCALAR
    }
}

/// `S >> 4` of a whole destination row.
pub(super) fn horizontal_scalar(src: &[u8], columns: &[Column], out: &mut [i16]) {
    if src.len() == 3 {
        // A single column has no neighbour to index; its weight is all on the second pixel of the pair.
        for (out, column) in out.as_chunks_mut::<3>().0.iter_mut().zip(columns) {
            for (out, &p) in out.iter_mut().zip(src) {
                *out = ((i32::from(p) * i32::from(column.weights[1])) >> 4) as i16;
            }
        }
        return;
    }
    for (out, column) in out.as_chunks_mut::<3>().0.iter_mut().zip(columns) {
        let pair = &src[column.offset as usize..][..6];
        let [a0, a1] = column.weights.map(i32::from);
        for channel in 0..3 {
            let sum = i32::from(pair[channel]) * a0 + i32::from(pair[channel + 3]) * a1;
            out[channel] = (sum >> 4) as i16;
        }
    }
}

/// Two rows of `S >> 4` to one row of bytes.
fn vertical_scalar(upper: &[i16], lower: &[i16], weights: [i16; 2], out: &mut [u8]) {
    vertical_body(upper, lower, weights, out);
}

/// The loop of [`vertical_scalar`], written so that the compiler can turn it into 16-bit vector instructions of whatever
/// processor the function around it is compiled for.
#[inline(always)]
pub(super) fn vertical_body(upper: &[i16], lower: &[i16], [b0, b1]: [i16; 2], out: &mut [u8]) {
    let high = |s: i16, b: i16| ((i32::from(s) * i32::from(b)) >> 16) as i16;
    for ((out, &s0), &s1) in out.iter_mut().zip(upper).zip(lower) {
        *out = ((high(s0, b0) + high(s1, b1) + 2) >> 2) as u8;
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// Rows of every length, from noise and from the largest sums there are.
    #[test]
    fn vector_passes_equal_the_scalar_ones() {
        if !std::arch::is_x86_feature_detected!("avx2") {
            return;
        }
        let fast = super::super::linear_avx2::PASSES;
        for src_w in [1u32, 2, 3, 4, 5, 31, 64, 641] {
            for dst_w in (1u32..40).chain([320, 641, 1999]) {
                let noise = |i: u32| (i.wrapping_mul(0x9e37_79b9) >> 23) as u8;
                for bright in [0, 255] {
                    let src: Vec<u8> = (0..src_w * 3).map(|i| noise(i) | bright).collect();
                    let x_scale = scale(src_w, dst_w);
                    let columns: Vec<Column> = (0..dst_w)
                        .map(|d| column(Tap::linear(d, x_scale), src_w))
                        .collect();
                    let len = dst_w as usize * 3;
                    let (mut plain, mut vector) = (vec![0; len], vec![-1; len]);
                    horizontal_scalar(&src, &columns, &mut plain);
                    (fast.horizontal)(&src, &columns, &mut vector);
                    assert_eq!(plain, vector, "{src_w} to {dst_w}");

                    let (mut out, mut vector_out) = (vec![0; len], vec![1; len]);
                    let other: Vec<i16> = plain.iter().rev().copied().collect();
                    for b1 in [0, 1, 777, 1024, 2047, 2048] {
                        vertical_scalar(&plain, &other, [2048 - b1, b1], &mut out);
                        (fast.vertical)(&plain, &other, [2048 - b1, b1], &mut vector_out);
                        assert_eq!(out, vector_out, "{src_w} to {dst_w}, {b1}");
                    }
                }
            }
        }
    }
}
