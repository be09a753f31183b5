//! The element types of a batch.

use std::fmt;
use std::str::FromStr;

/// The type of one tensor element, in the machine's byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// IEEE binary32; what the arithmetic computes in.
    #[default]
    Float32,
    /// The quantized level 0..=255 itself, not restored.
    Uint8,
    /// IEEE binary16, the round-to-nearest-even cast of the float32 value.
    Float16,
    /// The upper half of a binary32, the round-to-nearest-even cast of the float32 value.
    Bfloat16,
}

/// A name that is none of [`Dtype::ALL`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown tensor type {name:?}: use float32, uint8, float16 or bfloat16")]
#[non_exhaustive]
pub struct ParseDtypeError {
    /// What was given.
    pub name: String,
}

impl Dtype {
    /// Every element type, the default first.
    pub const ALL: [Dtype; 4] = [Dtype::Float32, Dtype::Uint8, Dtype::Float16, Dtype::Bfloat16];

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Dtype::Float32 => 4,
            Dtype::Float16 | Dtype::Bfloat16 => 2,
            Dtype::Uint8 => 1,
        }
    }

    /// The name used in properties and reports; [`FromStr`] reads it back.
    pub const fn as_str(self) -> &'static str {
        match self {
            Dtype::Float32 => "float32",
            Dtype::Uint8 => "uint8",
            Dtype::Float16 => "float16",
            Dtype::Bfloat16 => "bfloat16",
        }
    }

    /// The value of `types` in `other/tensors` caps.
    ///
    /// `float32`, `uint8` and `float16` are NNStreamer's names. It has no bfloat16: `bfloat16` is this project's own
    /// value, which an NNStreamer element refuses at negotiation instead of misreading.
    pub const fn nnstreamer_type(self) -> &'static str {
        self.as_str()
    }

    /// Whether values are restored to the unit range (and may be normalised) before they are stored.
    pub const fn is_float(self) -> bool {
        !matches!(self, Dtype::Uint8)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Dtype {
    type Err = ParseDtypeError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|dtype| dtype.as_str() == name)
            .ok_or_else(|| ParseDtypeError {
                name: name.to_owned(),
            })
    }
}
