//! Borrowed views of float32 images, checked once when they are made.

use super::FrameError;
use super::frame::check_sides;

/// How the elements of a [`FloatFrame`] lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FloatOrder {
    /// `R G B R G B …`
    Hwc,
    /// A plane each of R, G, B.
    Chw,
}

/// A contiguous float32 RGB image, nominally in the unit range; NaN, infinities and other numbers are taken as they
/// are.
#[derive(Clone, Copy, Debug)]
pub struct FloatFrame<'a> {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) data: &'a [f32],
    pub(super) order: FloatOrder,
}

impl<'a> FloatFrame<'a> {
    /// An image of shape height × width × 3.
    ///
    /// # Errors
    /// [`FrameError::Empty`], and [`FrameError::Elements`] when `data` is not exactly that long.
    pub fn hwc(width: usize, height: usize, data: &'a [f32]) -> Result<Self, FrameError> {
        Self::new(width, height, data, FloatOrder::Hwc)
    }

    /// An image of shape 3 × height × width.
    ///
    /// # Errors
    /// As [`FloatFrame::hwc`].
    pub fn chw(width: usize, height: usize, data: &'a [f32]) -> Result<Self, FrameError> {
        Self::new(width, height, data, FloatOrder::Chw)
    }

    fn new(width: usize, height: usize, data: &'a [f32], order: FloatOrder) -> Result<Self, FrameError> {
        check_sides(width, height)?;
        let expected = width.saturating_mul(height).saturating_mul(3);
        if data.len() != expected {
            return Err(FrameError::Elements {
                width,
                height,
                expected,
                actual: data.len(),
            });
        }
        Ok(Self {
            width,
            height,
            data,
            order,
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
}
