//! Views of packed three-channel pixels with a stride: the currency between decoders, orientation and resizing.

use super::{ChannelOrder, DecodeError};

/// Checks that `len` bytes hold `height` rows of `width` packed pixels, `stride` bytes apart.
fn check(len: usize, width: u32, height: u32, stride: usize) -> Result<(), DecodeError> {
    let bad = DecodeError::BadTarget {
        width,
        height,
        stride,
        len,
    };
    let Some(row) = (width as usize).checked_mul(3) else {
        return Err(bad);
    };
    let needed = (height as usize)
        .checked_sub(1)
        .and_then(|rows| rows.checked_mul(stride)?.checked_add(row));
    match needed {
        // The last row needs no padding behind it: GStreamer and crops do not promise it.
        Some(needed) if width > 0 && stride >= row && needed <= len => Ok(()),
        _ => Err(bad),
    }
}

/// A picture to read: packed three-byte pixels, rows `stride` bytes apart.
#[derive(Clone, Copy, Debug)]
pub struct Pixels<'a> {
    data: &'a [u8],
    width: u32,
    height: u32,
    stride: usize,
}

impl<'a> Pixels<'a> {
    /// Wraps `data`. Both sides must be at least 1, `stride` at least `3 * width`, and the last row complete
    /// (without its padding); anything else is [`DecodeError::BadTarget`].
    pub fn new(data: &'a [u8], width: u32, height: u32, stride: usize) -> Result<Self, DecodeError> {
        check(data.len(), width, height, stride)?;
        Ok(Self {
            data,
            width,
            height,
            stride,
        })
    }

    /// Width and height in pixels.
    pub const fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// The bytes of row `y`, without padding. `y` must be below the height.
    #[inline]
    pub fn row(&self, y: usize) -> &'a [u8] {
        let start = y * self.stride;
        &self.data[start..start + self.width as usize * 3]
    }
}

/// A picture to write: packed three-byte pixels, rows `stride` bytes apart.
#[derive(Debug)]
pub struct PixelsMut<'a> {
    data: &'a mut [u8],
    width: u32,
    height: u32,
    stride: usize,
}

impl<'a> PixelsMut<'a> {
    /// Wraps `data`, under the rules of [`Pixels::new`].
    pub fn new(data: &'a mut [u8], width: u32, height: u32, stride: usize) -> Result<Self, DecodeError> {
        check(data.len(), width, height, stride)?;
        Ok(Self {
            data,
            width,
            height,
            stride,
        })
    }

    /// Width and height in pixels.
    pub const fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// Bytes from row to row.
    pub const fn stride(&self) -> usize {
        self.stride
    }

    /// The bytes of row `y`, without padding. `y` must be below the height.
    #[inline]
    pub fn row_mut(&mut self, y: usize) -> &mut [u8] {
        let start = y * self.stride;
        &mut self.data[start..start + self.width as usize * 3]
    }

    /// All bytes from the first pixel to the end of the buffer.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.data
    }

    /// The part of `size` that begins at `offset` (left, top), or an error where it does not lie inside.
    pub fn window(&mut self, offset: (u32, u32), size: (u32, u32)) -> Result<PixelsMut<'_>, DecodeError> {
        let inside =
            |offset: u32, side: u32, whole: u32| offset.checked_add(side).is_some_and(|end| end <= whole);
        let start = offset.1 as usize * self.stride + offset.0 as usize * 3;
        let len = self.data.len();
        if inside(offset.0, size.0, self.width) && inside(offset.1, size.1, self.height) && start < len {
            return PixelsMut::new(&mut self.data[start..], size.0, size.1, self.stride);
        }
        Err(DecodeError::BadTarget {
            width: size.0,
            height: size.1,
            stride: self.stride,
            len,
        })
    }

    /// Paints everything outside the window of `size` at `offset`, and nothing inside it.
    pub(super) fn fill_around(&mut self, offset: (u32, u32), size: (u32, u32), color: [u8; 3]) {
        let (left, top) = (offset.0 as usize * 3, offset.1 as usize);
        let (right, bottom) = (left + size.0 as usize * 3, top + size.1 as usize);
        let paint = |bytes: &mut [u8]| bytes.as_chunks_mut::<3>().0.fill(color);
        for y in 0..self.height as usize {
            let row = self.row_mut(y);
            if y < top || y >= bottom {
                paint(row);
            } else {
                paint(&mut row[..left]);
                paint(&mut row[right..]);
            }
        }
    }
}

/// The caller's frame: where [`decode_into`](super::decode_into) writes.
#[derive(Debug)]
pub struct Target<'a> {
    /// Bytes of the frame from its first pixel; the last row may lack its padding.
    pub data: &'a mut [u8],
    /// Bytes from row to row, at least `3 * width`.
    pub stride: usize,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Order of the three channels in memory.
    pub order: ChannelOrder,
}

impl Target<'_> {
    /// The frame as a checked view.
    pub(super) fn pixels(&mut self) -> Result<PixelsMut<'_>, DecodeError> {
        PixelsMut::new(self.data, self.width, self.height, self.stride)
    }
}

/// Makes `buffer` hold a packed picture of `width` x `height` and `channels` bytes a pixel, and returns that part.
///
/// Old contents stay: every caller overwrites all of it. Memory is asked for fallibly, since a header decides the size.
pub(super) fn sized(
    buffer: &mut Vec<u8>,
    width: u32,
    height: u32,
    channels: usize,
) -> Result<&mut [u8], DecodeError> {
    let bytes = u64::from(width) * u64::from(height);
    let bytes = bytes.saturating_mul(channels as u64);
    let no_memory = DecodeError::OutOfMemory { bytes };
    let Ok(len) = usize::try_from(bytes) else {
        return Err(no_memory);
    };
    if buffer.len() < len {
        // Not `reserve`: its doubling would cost up to twice the largest picture for every worker.
        buffer
            .try_reserve_exact(len - buffer.len())
            .map_err(|_| no_memory)?;
        buffer.resize(len, 0);
    }
    Ok(&mut buffer[..len])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_needs_no_padding_but_all_its_pixels() {
        assert!(Pixels::new(&[0; 8 + 6], 2, 2, 8).is_ok());
        assert!(Pixels::new(&[0; 8 + 5], 2, 2, 8).is_err());
        assert!(Pixels::new(&[0; 64], 2, 2, 5).is_err());
        assert!(Pixels::new(&[0; 64], 0, 2, 8).is_err());
        assert!(Pixels::new(&[0; 64], 2, 0, 8).is_err());
        assert!(Pixels::new(&[0; 64], u32::MAX, u32::MAX, usize::MAX).is_err());
    }

    #[test]
    fn borders_are_painted_and_the_window_and_the_padding_are_not() {
        let mut data = [7u8; 13 * 4];
        let mut pixels = PixelsMut::new(&mut data, 4, 4, 13).unwrap();
        pixels.fill_around((1, 1), (2, 1), [1, 2, 3]);
        for y in 0..4usize {
            for x in 0..4usize {
                let inside = y == 1 && (x == 1 || x == 2);
                let expected = if inside { [7; 3] } else { [1, 2, 3] };
                assert_eq!(data[y * 13 + x * 3..][..3], expected, "{x},{y}");
            }
            assert_eq!(data[y * 13 + 12], 7);
        }
    }

    #[test]
    fn windows_outside_the_picture_are_refused() {
        let mut data = [0u8; 12 * 4];
        let mut pixels = PixelsMut::new(&mut data, 4, 4, 12).unwrap();
        assert!(pixels.window((2, 2), (2, 2)).is_ok());
        assert!(pixels.window((3, 0), (2, 1)).is_err());
        assert!(pixels.window((0, 4), (1, 1)).is_err());
        assert!(pixels.window((u32::MAX, 0), (2, 1)).is_err());
    }
}
