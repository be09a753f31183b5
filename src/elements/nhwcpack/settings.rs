use super::super::device;
use crate::tensor::{self, Normalize, PackError, PackSpec};

/// Type of the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstNhwcPackDtype")]
pub enum Dtype {
    /// 4 bytes.
    #[default]
    #[enum_value(name = "float32: 0 to 1", nick = "float32")]
    Float32,
    /// 1 byte, 0 to 255.
    #[enum_value(name = "uint8: 0 to 255, not restored to 0..1", nick = "uint8")]
    Uint8,
    /// 2 bytes.
    #[enum_value(name = "float16: rounded to nearest even from float32", nick = "float16")]
    Float16,
    /// 2 bytes.
    #[enum_value(name = "bfloat16: rounded to nearest even from float32", nick = "bfloat16")]
    Bfloat16,
}

impl From<Dtype> for tensor::Dtype {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::Float32 => Self::Float32,
            Dtype::Uint8 => Self::Uint8,
            Dtype::Float16 => Self::Float16,
            Dtype::Bfloat16 => Self::Bfloat16,
        }
    }
}

/// Order of the dimensions in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstNhwcPackLayout")]
pub enum Layout {
    /// Channels last.
    #[default]
    #[enum_value(name = "NHWC: channels last", nick = "nhwc")]
    Nhwc,
    /// Channels first.
    #[enum_value(name = "NCHW: channels first", nick = "nchw")]
    Nchw,
}

impl From<Layout> for tensor::Layout {
    fn from(layout: Layout) -> Self {
        match layout {
            Layout::Nhwc => Self::Nhwc,
            Layout::Nchw => Self::Nchw,
        }
    }
}

/// What is done with frames that are too few for a batch at the end of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstNhwcPackLastBatch")]
pub enum LastBatch {
    /// A smaller batch.
    #[default]
    #[enum_value(name = "Partial: a smaller batch", nick = "partial")]
    Partial,
    /// None.
    #[enum_value(name = "Drop: leave them out, counted", nick = "drop")]
    Drop,
    /// A full batch.
    #[enum_value(name = "Pad: fill up with the epoch's first samples, flagged", nick = "pad")]
    Pad,
}

/// The properties that a run takes over at its start.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub batch_size: u32,
    pub dtype: Dtype,
    pub layout: Layout,
    pub mean: Option<String>,
    pub std: Option<String>,
    pub last_batch: LastBatch,
    pub threads: u32,
    pub device: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            batch_size: 1,
            dtype: Dtype::default(),
            layout: Layout::default(),
            mean: None,
            std: None,
            last_batch: LastBatch::default(),
            threads: 0,
            device: device::DEFAULT.to_owned(),
        }
    }
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettingsError {
    #[error("{name} is {text:?}: write one number for all channels, or three as \"r,g,b\"")]
    Channels { name: &'static str, text: String },
    #[error("{0}")]
    Pack(#[from] PackError),
}

impl Settings {
    /// How a sample is written.
    pub fn spec(&self) -> Result<PackSpec, SettingsError> {
        let mean = channels("mean", self.mean.as_deref())?;
        let std = channels("std", self.std.as_deref())?;
        let normalize = (mean.is_some() || std.is_some()).then(|| Normalize {
            mean: mean.unwrap_or([0.0; 3]),
            std: std.unwrap_or([1.0; 3]),
        });
        Ok(PackSpec::new(self.dtype.into(), self.layout.into(), normalize)?)
    }
}

fn channels(name: &'static str, text: Option<&str>) -> Result<Option<[f32; 3]>, SettingsError> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    let numbers: Result<Vec<f32>, _> = text.split(',').map(|number| number.trim().parse()).collect();
    match numbers.as_deref() {
        Ok([all]) => Ok(Some([*all; 3])),
        Ok([r, g, b]) => Ok(Some([*r, *g, *b])),
        _ => Err(SettingsError::Channels {
            name,
            text: text.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn channels_are_one_number_or_three() {
        let of = |text| channels("mean", Some(text));
        assert_eq!(of("0.5").unwrap(), Some([0.5; 3]));
        assert_eq!(of(" 1, 2 ,3").unwrap(), Some([1.0, 2.0, 3.0]));
        assert_eq!(of("").unwrap(), None);
        for text in ["1,2", "1,2,3,4", "a", "1;2;3", ","] {
            let message = of(text).unwrap_err().to_string();
            assert!(message.starts_with(&format!("mean is {text:?}")), "{message}");
        }
    }

    #[test]
    fn one_of_mean_and_std_is_enough() {
        let settings = Settings {
            std: Some("0.5".into()),
            ..Settings::default()
        };
        assert_eq!(
            settings.spec().unwrap().normalize(),
            Some(&Normalize {
                mean: [0.0; 3],
                std: [0.5; 3]
            })
        );
        let settings = Settings {
            dtype: Dtype::Uint8,
            ..settings
        };
        assert!(matches!(
            settings.spec(),
            Err(SettingsError::Pack(PackError::NormalizeUint8))
        ));
    }
}
