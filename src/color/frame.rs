//! Borrowed views of uint8 frames, checked once when they are made.

use super::PixelFormat;

/// Why memory is not a frame of the stated shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A frame without pixels.
    #[error("a frame of {width}x{height} pixels has nothing to work on: both sides must be at least 1")]
    Empty {
        /// In pixels.
        width: usize,
        /// In pixels.
        height: usize,
    },
    /// A planar format given as one plane, or the reverse.
    #[error("{} has {} plane(s): use `packed` for one plane, `planar` for three", .format.as_str(), .format.planes())]
    Planes {
        /// The format that does not fit the call.
        format: PixelFormat,
    },
    /// Rows would overlap.
    #[error(
        "plane {plane} has a stride of {stride} bytes, but a row of its pixels takes {row_bytes}: give the distance between rows"
    )]
    Stride {
        /// 0 for packed formats; 0, 1, 2 for R, G, B.
        plane: usize,
        /// As given, in bytes.
        stride: usize,
        /// Bytes of one row.
        row_bytes: usize,
    },
    /// The memory ends before the last pixel.
    #[error("plane {plane} has {actual} bytes, but its {height} rows take {expected}: pass the whole plane")]
    TooShort {
        /// 0 for packed formats; 0, 1, 2 for R, G, B.
        plane: usize,
        /// In rows.
        height: usize,
        /// Bytes up to the end of the last row.
        expected: usize,
        /// Bytes that were passed.
        actual: usize,
    },
    /// A float32 tensor with more or fewer elements than its shape has.
    #[error(
        "a {width}x{height} float32 frame has {expected} elements, but {actual} were passed: only contiguous tensors are taken"
    )]
    Elements {
        /// In pixels.
        width: usize,
        /// In pixels.
        height: usize,
        /// `width × height × 3`.
        expected: usize,
        /// As passed.
        actual: usize,
    },
}

/// Checks one plane: rows do not overlap and the last row is whole (its padding may be missing).
fn check_plane(
    plane: usize,
    row_bytes: usize,
    height: usize,
    len: usize,
    stride: usize,
) -> Result<(), FrameError> {
    if stride < row_bytes {
        return Err(FrameError::Stride {
            plane,
            stride,
            row_bytes,
        });
    }
    // Saturation is never reached by a slice, so a shape beyond the address space is reported as too short.
    let expected = stride.saturating_mul(height - 1).saturating_add(row_bytes);
    if len < expected {
        return Err(FrameError::TooShort {
            plane,
            height,
            expected,
            actual: len,
        });
    }
    Ok(())
}

pub(super) fn check_sides(width: usize, height: usize) -> Result<(), FrameError> {
    if width == 0 || height == 0 {
        return Err(FrameError::Empty { width, height });
    }
    Ok(())
}

fn check_packed(
    format: PixelFormat,
    width: usize,
    height: usize,
    len: usize,
    stride: usize,
) -> Result<(), FrameError> {
    check_sides(width, height)?;
    if format.planes() != 1 {
        return Err(FrameError::Planes { format });
    }
    check_plane(
        0,
        width.saturating_mul(format.pixel_stride()),
        height,
        len,
        stride,
    )
}

fn check_planar(
    width: usize,
    height: usize,
    lens: [usize; 3],
    strides: [usize; 3],
) -> Result<(), FrameError> {
    check_sides(width, height)?;
    for (plane, (len, stride)) in lens.into_iter().zip(strides).enumerate() {
        check_plane(plane, width, height, len, stride)?;
    }
    Ok(())
}

/// The memory behind a [`FrameRef`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Planes<'a> {
    Packed {
        format: PixelFormat,
        data: &'a [u8],
        stride: usize,
    },
    Planar {
        data: [&'a [u8]; 3],
        strides: [usize; 3],
    },
}

/// A uint8 frame that is read: `width × height` pixels in rows `stride` bytes apart.
///
/// ```
/// use epochfeed::color::{FrameError, FrameRef, PixelFormat};
///
/// let memory = [0; 2 * 8]; // two rows of two pixels, each row padded from 6 to 8 bytes
/// assert!(FrameRef::packed(PixelFormat::Rgb, 2, 2, &memory, 8).is_ok());
/// assert!(matches!(FrameRef::packed(PixelFormat::Rgb, 2, 2, &memory, 5), Err(FrameError::Stride { .. })));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FrameRef<'a> {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) planes: Planes<'a>,
}

impl<'a> FrameRef<'a> {
    /// A frame of one plane.
    ///
    /// # Errors
    /// [`FrameError`] when `data` does not hold it; [`FrameError::Planes`] for [`PixelFormat::Rgbp`].
    pub fn packed(
        format: PixelFormat,
        width: usize,
        height: usize,
        data: &'a [u8],
        stride: usize,
    ) -> Result<Self, FrameError> {
        check_packed(format, width, height, data.len(), stride)?;
        Ok(Self {
            width,
            height,
            planes: Planes::Packed { format, data, stride },
        })
    }

    /// A [`PixelFormat::Rgbp`] frame: the planes of R, G and B with their strides.
    ///
    /// # Errors
    /// [`FrameError`] when a plane does not hold its rows.
    pub fn planar(
        width: usize,
        height: usize,
        data: [&'a [u8]; 3],
        strides: [usize; 3],
    ) -> Result<Self, FrameError> {
        check_planar(width, height, data.map(<[u8]>::len), strides)?;
        Ok(Self {
            width,
            height,
            planes: Planes::Planar { data, strides },
        })
    }

    /// In pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// In pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The pixel format.
    pub fn format(&self) -> PixelFormat {
        match self.planes {
            Planes::Packed { format, .. } => format,
            Planes::Planar { .. } => PixelFormat::Rgbp,
        }
    }
}

/// The memory behind a [`FrameMut`].
#[derive(Debug)]
pub(super) enum PlanesMut<'a> {
    Packed {
        format: PixelFormat,
        data: &'a mut [u8],
        stride: usize,
    },
    Planar {
        data: [&'a mut [u8]; 3],
        strides: [usize; 3],
    },
}

/// A uint8 frame that is changed in place; shapes and errors as for [`FrameRef`].
#[derive(Debug)]
pub struct FrameMut<'a> {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) planes: PlanesMut<'a>,
}

impl<'a> FrameMut<'a> {
    /// A frame of one plane.
    ///
    /// # Errors
    /// As [`FrameRef::packed`].
    pub fn packed(
        format: PixelFormat,
        width: usize,
        height: usize,
        data: &'a mut [u8],
        stride: usize,
    ) -> Result<Self, FrameError> {
        check_packed(format, width, height, data.len(), stride)?;
        Ok(Self {
            width,
            height,
            planes: PlanesMut::Packed { format, data, stride },
        })
    }

    /// A [`PixelFormat::Rgbp`] frame: the planes of R, G and B with their strides.
    ///
    /// # Errors
    /// As [`FrameRef::planar`].
    pub fn planar(
        width: usize,
        height: usize,
        data: [&'a mut [u8]; 3],
        strides: [usize; 3],
    ) -> Result<Self, FrameError> {
        let [r, g, b] = &data;
        check_planar(width, height, [r.len(), g.len(), b.len()], strides)?;
        Ok(Self {
            width,
            height,
            planes: PlanesMut::Planar { data, strides },
        })
    }

    /// Its planes (one, or R, G and B) with the bytes from a row to the next.
    pub(crate) fn planes_mut(&mut self) -> Vec<(&mut [u8], usize)> {
        match &mut self.planes {
            PlanesMut::Packed { data, stride, .. } => vec![(&mut **data, *stride)],
            PlanesMut::Planar { data, strides } => data
                .iter_mut()
                .zip(*strides)
                .map(|(data, stride)| (&mut **data, stride))
                .collect(),
        }
    }

    /// The same frame, for reading.
    pub fn as_ref(&self) -> FrameRef<'_> {
        let planes = match &self.planes {
            PlanesMut::Packed { format, data, stride } => Planes::Packed {
                format: *format,
                data,
                stride: *stride,
            },
            PlanesMut::Planar {
                data: [r, g, b],
                strides,
            } => Planes::Planar {
                data: [r, g, b],
                strides: *strides,
            },
        };
        FrameRef {
            width: self.width,
            height: self.height,
            planes,
        }
    }
}
