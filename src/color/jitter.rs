//! Gains in the form the arithmetic takes.

use super::Gains;

/// Step 6 of the arithmetic: a sample's gains as float32.
///
/// The additions happen in float64 before the cast, as the eager framework does it with Python floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// Added to the hue, in turns: `f32(hue)`.
    pub dh: f32,
    /// Multiplies the saturation: `f32(1.0 + saturation)`.
    pub ks: f32,
    /// Multiplies the value: `f32(1.0 + value)`.
    pub kv: f32,
}

impl From<Gains> for Jitter {
    fn from(gains: Gains) -> Self {
        Self {
            dh: gains.hue as f32,
            ks: (1.0 + gains.saturation) as f32,
            kv: (1.0 + gains.value) as f32,
        }
    }
}
