//! How one sample is written into its slot of the batch.

use super::{Dtype, Layout};

/// Channels of a sample: R, G, B.
pub const CHANNELS: usize = 3;

const CHANNEL_NAMES: [&str; CHANNELS] = ["red", "green", "blue"];

/// Per-channel normalisation of the restored value, `(y - mean) / std`, in the order R, G, B.
///
/// In the units of the restored value, the unit range: ImageNet's mean is `[0.485, 0.456, 0.406]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalize {
    /// Subtracted first; finite.
    pub mean: [f32; CHANNELS],
    /// Divided by afterwards (a true float32 division); finite and not zero.
    pub std: [f32; CHANNELS],
}

/// Why a sample cannot be packed like this.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// Normalised values do not fit into bytes.
    #[error(
        "mean and std need a floating-point tensor, but dtype is uint8: choose float32, float16 or bfloat16, or drop \
         mean and std"
    )]
    NormalizeUint8,
    /// A mean that no pixel could be compared with.
    #[error("the mean of the {channel} channel is {value}: give a finite number")]
    Mean {
        /// `red`, `green` or `blue`.
        channel: &'static str,
        /// What was given.
        value: f32,
    },
    /// A standard deviation that cannot be divided by.
    #[error("the std of the {channel} channel is {value}: give a finite number other than zero")]
    Std {
        /// `red`, `green` or `blue`.
        channel: &'static str,
        /// What was given.
        value: f32,
    },
    /// The destination is not one sample's slot.
    #[error(
        "a {width}x{height} sample of {dtype} takes {expected} bytes, but its slot has {actual}: pass a slot of PackSpec::sample_bytes({width}, {height})"
    )]
    SlotSize {
        /// Of the frame, in pixels.
        width: usize,
        /// Of the frame, in pixels.
        height: usize,
        /// Of the tensor.
        dtype: Dtype,
        /// Bytes that [`PackSpec::sample_bytes`] asks for.
        expected: usize,
        /// Bytes that were passed.
        actual: usize,
    },
}

/// A validated element type, layout and normalisation.
///
/// ```
/// use epochfeed::tensor::{Dtype, Layout, PackError, PackSpec, Normalize};
///
/// let spec = PackSpec::new(Dtype::Float16, Layout::Nchw, None)?;
/// assert_eq!(spec.sample_bytes(640, 480), 640 * 480 * 3 * 2);
///
/// let unit = Normalize { mean: [0.5; 3], std: [0.5; 3] };
/// assert_eq!(PackSpec::new(Dtype::Uint8, Layout::Nhwc, Some(unit)), Err(PackError::NormalizeUint8));
/// # Ok::<(), PackError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PackSpec {
    dtype: Dtype,
    layout: Layout,
    normalize: Option<Normalize>,
}

impl PackSpec {
    /// Checks that the three go together.
    ///
    /// # Errors
    /// [`PackError::NormalizeUint8`] for mean and std with uint8, [`PackError::Mean`] and [`PackError::Std`] for
    /// numbers that cannot be computed with.
    pub fn new(dtype: Dtype, layout: Layout, normalize: Option<Normalize>) -> Result<Self, PackError> {
        if let Some(Normalize { mean, std }) = normalize {
            if !dtype.is_float() {
                return Err(PackError::NormalizeUint8);
            }
            for (channel, value) in CHANNEL_NAMES.into_iter().zip(mean) {
                if !value.is_finite() {
                    return Err(PackError::Mean { channel, value });
                }
            }
            for (channel, value) in CHANNEL_NAMES.into_iter().zip(std) {
                if !value.is_finite() || value == 0.0 {
                    return Err(PackError::Std { channel, value });
                }
            }
        }
        Ok(Self {
            dtype,
            layout,
            normalize,
        })
    }

    /// The type of an element.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The order of the axes.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The normalisation after the restore, if any.
    pub fn normalize(&self) -> Option<&Normalize> {
        self.normalize.as_ref()
    }

    /// Bytes of one sample of `width × height` pixels.
    ///
    /// Saturates where the product leaves `usize`; no slot has that size, so packing reports it.
    pub fn sample_bytes(&self, width: usize, height: usize) -> usize {
        width
            .saturating_mul(height)
            .saturating_mul(CHANNELS * self.dtype.size())
    }

    /// Checks that `dst` is exactly one sample's slot.
    ///
    /// # Errors
    /// [`PackError::SlotSize`] naming both sizes.
    pub fn check_slot(&self, width: usize, height: usize, dst: &[u8]) -> Result<(), PackError> {
        let expected = self.sample_bytes(width, height);
        if dst.len() == expected {
            return Ok(());
        }
        Err(PackError::SlotSize {
            width,
            height,
            dtype: self.dtype,
            expected,
            actual: dst.len(),
        })
    }
}
