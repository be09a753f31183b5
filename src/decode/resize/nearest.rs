//! `INTER_NEAREST`: the pixel at `floor(d * scale)`, as OpenCV picks it.

use super::{ResizeScratch, cleared, scale};
use crate::decode::{DecodeError, Pixels, PixelsMut};

/// Resamples `src` to the size of `dst` as `cv::resize(…, INTER_NEAREST)` does: the top left corner of each destination
/// pixel decides, not its centre.
///
/// # Errors
/// [`DecodeError::OutOfMemory`] where one table entry a column does not fit.
pub fn resize_nearest(
    src: Pixels<'_>,
    dst: &mut PixelsMut<'_>,
    scratch: &mut ResizeScratch,
) -> Result<(), DecodeError> {
    let ((src_w, src_h), (dst_w, dst_h)) = (src.size(), dst.size());
    let pick =
        |d: u32, scale: f64, side: u32| ((f64::from(d) * scale).floor() as usize).min(side as usize - 1);
    let x_scale = scale(src_w, dst_w);
    let columns = cleared(&mut scratch.columns, dst_w as usize)?;
    columns.extend((0..dst_w).map(|d| pick(d, x_scale, src_w)));
    let y_scale = scale(src_h, dst_h);
    for y in 0..dst_h {
        let row = src.row(pick(y, y_scale, src_h)).as_chunks::<3>().0;
        for (pixel, &x) in dst
            .row_mut(y as usize)
            .as_chunks_mut::<3>()
            .0
            .iter_mut()
            .zip(&*columns)
        {
            *pixel = row[x];
        }
    }
    Ok(())
}
