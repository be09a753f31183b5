//! Resampling of packed three-channel uint8 pictures, byte-equal to OpenCV's `cv::resize`.
//!
//! The order of the channels does not matter, and strides are free on both sides.
//!
//! ```
//! use epochfeed::decode::{Interpolation, Pixels, PixelsMut, resize};
//! # fn main() -> Result<(), epochfeed::decode::DecodeError> {
//! let (src, mut dst) = ([0, 0, 0, 200, 100, 50], [0; 12]);
//! let mut scratch = resize::ResizeScratch::default();
//! let source = Pixels::new(&src, 2, 1, 6)?;
//! resize::resize_linear(source, &mut PixelsMut::new(&mut dst, 4, 1, 12)?, &mut scratch)?;
//! assert_eq!(dst, [0, 0, 0, 50, 25, 13, 150, 75, 38, 200, 100, 50]);
//! # Ok(())
//! # }
//! ```

mod area;
mod linear;
#[cfg(target_arch = "x86_64")]
mod linear_avx2;
mod nearest;
mod taps;

pub use self::area::resize_area;
pub use self::linear::resize_linear;
pub use self::nearest::resize_nearest;

use super::{DecodeError, Interpolation, Pixels, PixelsMut};

/// Buffers that one worker keeps from image to image.
#[derive(Debug, Default)]
pub struct ResizeScratch {
    linear: linear::LinearScratch,
    area: area::AreaScratch,
    /// Source offsets of the columns, for nearest neighbour.
    columns: Vec<usize>,
}

/// Resamples all of `src` to all of `dst` with `method`. Where the sizes are equal it copies, as every method would.
///
/// # Errors
/// [`DecodeError::OutOfMemory`] where the tables for these sizes do not fit.
pub fn resize(
    method: Interpolation,
    src: Pixels<'_>,
    dst: &mut PixelsMut<'_>,
    scratch: &mut ResizeScratch,
) -> Result<(), DecodeError> {
    if src.size() == dst.size() {
        for y in 0..src.size().1 as usize {
            dst.row_mut(y).copy_from_slice(src.row(y));
        }
        return Ok(());
    }
    match method {
        Interpolation::Linear => resize_linear(src, dst, scratch),
        Interpolation::Nearest => resize_nearest(src, dst, scratch),
        Interpolation::Area => resize_area(src, dst, scratch),
    }
}

/// OpenCV's scale of one axis, source over destination: the reciprocal of a rounded quotient, in float64.
fn scale(src: u32, dst: u32) -> f64 {
    1.0 / (f64::from(dst) / f64::from(src))
}

/// Empties `buffer` and makes room for `len` elements.
fn cleared<T>(buffer: &mut Vec<T>, len: usize) -> Result<&mut Vec<T>, DecodeError> {
    buffer.clear();
    let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
    buffer
        .try_reserve(len)
        .map_err(|_| DecodeError::OutOfMemory { bytes })?;
    Ok(buffer)
}
