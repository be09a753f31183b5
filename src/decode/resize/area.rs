//! `INTER_AREA` as OpenCV computes it on uint8.
//!
//! Where both sides shrink by whole numbers (or stay), a destination pixel is the rounded mean of its block: with 2x2
//! `(sum + 2) >> 2`, else `sum * f32(1/area)` rounded half to even. Where both shrink otherwise, it is the mean weighted
//! by the covered part of each source pixel, in float32, summed in the order of the columns and then of the rows. Where
//! a side grows, two pixels are mixed as in `INTER_LINEAR`, with weights by coverage.

use super::linear::resample;
use super::taps::Tap;
use super::{ResizeScratch, cleared, scale};
use crate::decode::{DecodeError, Pixels, PixelsMut};

/// Buffers of [`resize_area`].
#[derive(Debug, Default)]
pub(super) struct AreaScratch {
    columns: Vec<Share>,
    rows: Vec<Share>,
    /// One source row, resampled horizontally.
    line: Vec<f32>,
    /// The destination row so far.
    sum: Vec<f32>,
}

/// The part of one source position in one destination position.
#[derive(Clone, Copy, Debug)]
struct Share {
    src: usize,
    dst: usize,
    weight: f32,
}

/// Resamples `src` to the size of `dst` as `cv::resize(…, INTER_AREA)` does.
///
/// # Errors
/// [`DecodeError::OutOfMemory`] where the table of shares, one or two entries a source column, does not fit.
pub fn resize_area(
    src: Pixels<'_>,
    dst: &mut PixelsMut<'_>,
    scratch: &mut ResizeScratch,
) -> Result<(), DecodeError> {
    let ((src_w, src_h), (dst_w, dst_h)) = (src.size(), dst.size());
    let (x_scale, y_scale) = (scale(src_w, dst_w), scale(src_h, dst_h));
    if x_scale < 1.0 || y_scale < 1.0 {
        return resample(src, dst, &mut scratch.linear, Tap::area);
    }
    let whole = |scale: f64| (scale - scale.round_ties_even()).abs() < f64::EPSILON;
    if whole(x_scale) && whole(y_scale) {
        blocks(
            src,
            dst,
            x_scale.round_ties_even() as usize,
            y_scale.round_ties_even() as usize,
        );
        return Ok(());
    }
    weighted(src, dst, &mut scratch.area, x_scale, y_scale)
}

/// Means over blocks of `columns` x `rows` pixels.
fn blocks(src: Pixels<'_>, dst: &mut PixelsMut<'_>, columns: usize, rows: usize) {
    let area = columns * rows;
    let reciprocal = 1.0 / area as f32;
    for y in 0..dst.size().1 as usize {
        for (x, pixel) in dst.row_mut(y).as_chunks_mut::<3>().0.iter_mut().enumerate() {
            for (channel, out) in pixel.iter_mut().enumerate() {
                let sum: u64 = (y * rows..(y + 1) * rows)
                    .flat_map(|row| {
                        src.row(row)[x * columns * 3..][..columns * 3]
                            .iter()
                            .skip(channel)
                            .step_by(3)
                    })
                    .map(|&byte| u64::from(byte))
                    .sum();
                *out = match (columns, rows) {
                    (2, 2) => ((sum + 2) >> 2) as u8,
                    _ => (sum as f32 * reciprocal).round_ties_even() as u8,
                };
            }
        }
    }
}

/// Means weighted by coverage.
fn weighted(
    src: Pixels<'_>,
    dst: &mut PixelsMut<'_>,
    scratch: &mut AreaScratch,
    x_scale: f64,
    y_scale: f64,
) -> Result<(), DecodeError> {
    let ((src_w, src_h), (dst_w, dst_h)) = (src.size(), dst.size());
    let AreaScratch {
        columns,
        rows,
        line,
        sum,
    } = scratch;
    shares(columns, src_w, dst_w, x_scale)?;
    shares(rows, src_h, dst_h, y_scale)?;
    let row_len = dst_w as usize * 3;
    cleared(line, row_len)?.resize(row_len, 0.0);
    cleared(sum, row_len)?.resize(row_len, 0.0);
    let mut row = 0;
    for (index, share) in rows.iter().enumerate() {
        line.fill(0.0);
        let source = src.row(share.src).as_chunks::<3>().0;
        let pixels = line.as_chunks_mut::<3>().0;
        for column in columns.iter() {
            for (out, &byte) in pixels[column.dst].iter_mut().zip(&source[column.src]) {
                *out += f32::from(byte) * column.weight;
            }
        }
        if share.dst != row || index == 0 {
            row = share.dst;
            sum.iter_mut()
                .zip(&*line)
                .for_each(|(sum, &value)| *sum = share.weight * value);
        } else {
            sum.iter_mut()
                .zip(&*line)
                .for_each(|(sum, &value)| *sum += share.weight * value);
        }
        if rows.get(index + 1).is_none_or(|next| next.dst != row) {
            for (out, &sum) in dst.row_mut(row).iter_mut().zip(&*sum) {
                // `as` saturates, as OpenCV's saturate_cast does.
                *out = sum.round_ties_even() as u8;
            }
        }
    }
    Ok(())
}

/// Fills `table` with OpenCV's `computeResizeAreaTab`: each destination cell's source pixels, those covered by less than
/// 1/1000 left out.
fn shares(table: &mut Vec<Share>, src: u32, dst: u32, scale: f64) -> Result<(), DecodeError> {
    cleared(table, src as usize + 2 * dst as usize)?;
    let side = f64::from(src);
    for d in 0..dst {
        let begin = f64::from(d) * scale;
        let end = begin + scale;
        let width = scale.min(side - begin);
        let last = end.floor().min(side - 1.0);
        let first = begin.ceil().min(last);
        let dst = d as usize;
        if first - begin > 1e-3 {
            table.push(Share {
                src: first as usize - 1,
                dst,
                weight: ((first - begin) / width) as f32,
            });
        }
        let weight = (1.0 / width) as f32;
        table.extend((first as usize..last as usize).map(|src| Share { src, dst, weight }));
        if end - last > 1e-3 {
            let covered = (end - last).min(1.0).min(width);
            table.push(Share {
                src: last as usize,
                dst,
                weight: (covered / width) as f32,
            });
        }
    }
    Ok(())
}
