//! What a sample's jitter is described by.

use std::fmt;
use std::str::FromStr;

/// The three gains of one sample, in float64 as they are drawn, stated and reported.
///
/// `hue` is added on the circle, in turns (1.0 is once around); `saturation` and `value` multiply as `1 + gain`.
///
/// ```
/// use epochfeed::color::Gains;
///
/// let gains: Gains = "0.01, 0.35, -0.25".parse()?;
/// assert_eq!(gains, Gains::new(0.01, 0.35, -0.25)?);
/// assert_eq!(gains.to_string(), "0.01,0.35,-0.25");
/// # Ok::<(), epochfeed::color::GainsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    /// Turns added to the hue.
    pub hue: f64,
    /// Saturation is multiplied by `1 + saturation`; -1 removes all colour.
    pub saturation: f64,
    /// Value is multiplied by `1 + value`; -1 makes black.
    pub value: f64,
}

/// Why three numbers are not gains or gain ranges.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GainsError {
    /// NaN, an infinity, or a number so large that the float32 arithmetic would make it one.
    #[error("the {name} gain is {value}: give a number that is finite as float32")]
    NonFinite {
        /// `hue`, `saturation` or `value`.
        name: &'static str,
        /// What was given.
        value: f64,
    },
    /// Not three fields.
    #[error("gains {text:?} have {count} fields: write three numbers as \"hue,saturation,value\"")]
    Count {
        /// What was given.
        text: String,
        /// How many comma-separated fields it has.
        count: usize,
    },
    /// A field that is not a number.
    #[error("the {name} gain {text:?} is not a number: write three numbers as \"hue,saturation,value\"")]
    Number {
        /// `hue`, `saturation` or `value`.
        name: &'static str,
        /// The field as given.
        text: String,
    },
    /// A range outside of [0, 1].
    #[error("the {name} range is {value}: give a number from 0 to 1")]
    Range {
        /// `hue`, `saturation` or `value`.
        name: &'static str,
        /// What was given.
        value: f64,
    },
}

const NAMES: [&str; 3] = ["hue", "saturation", "value"];

impl Gains {
    /// No change: the jitter by these gains is the identity on every uint8 colour.
    pub const ZERO: Gains = Gains {
        hue: 0.0,
        saturation: 0.0,
        value: 0.0,
    };

    /// Three stated gains.
    ///
    /// # Errors
    /// [`GainsError::NonFinite`] for NaN, infinities and numbers beyond float32: with an infinite factor a grey
    /// (`0 × ∞`) would turn coloured.
    pub fn new(hue: f64, saturation: f64, value: f64) -> Result<Self, GainsError> {
        for (name, gain) in NAMES.into_iter().zip([hue, saturation, value]) {
            if !(gain as f32).is_finite() {
                return Err(GainsError::NonFinite { name, value: gain });
            }
        }
        Ok(Self {
            hue,
            saturation,
            value,
        })
    }
}

impl FromStr for Gains {
    type Err = GainsError;

    /// Reads `"hue,saturation,value"`; spaces around the numbers are tolerated.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let [hue, saturation, value] = fields[..] else {
            return Err(GainsError::Count {
                text: text.to_owned(),
                count: fields.len(),
            });
        };
        let number = |name, field: &str| {
            field.parse::<f64>().map_err(|_| GainsError::Number {
                name,
                text: field.to_owned(),
            })
        };
        Self::new(
            number(NAMES[0], hue)?,
            number(NAMES[1], saturation)?,
            number(NAMES[2], value)?,
        )
    }
}

impl fmt::Display for Gains {
    /// The shortest text that [`FromStr`] reads back to the same bits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.hue, self.saturation, self.value)
    }
}

/// How far gains are drawn to either side of zero, each in [0, 1].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GainRanges {
    /// Largest hue gain, in turns.
    pub hue: f64,
    /// Largest saturation gain.
    pub saturation: f64,
    /// Largest value gain.
    pub value: f64,
}

impl GainRanges {
    /// Three ranges.
    ///
    /// # Errors
    /// [`GainsError::Range`] for a number outside of [0, 1], NaN included.
    pub fn new(hue: f64, saturation: f64, value: f64) -> Result<Self, GainsError> {
        for (name, range) in NAMES.into_iter().zip([hue, saturation, value]) {
            if !(0.0..=1.0).contains(&range) {
                return Err(GainsError::Range { name, value: range });
            }
        }
        Ok(Self {
            hue,
            saturation,
            value,
        })
    }
}

impl Default for GainRanges {
    /// The usual ranges of detection recipes: 0.015, 0.7, 0.4.
    fn default() -> Self {
        Self {
            hue: 0.015,
            saturation: 0.7,
            value: 0.4,
        }
    }
}
