//! Which gains a frame gets.

use super::super::meta::{GainsMeta, SampleMeta};
use crate::color::{GainRanges, Gains, GainsError, draw_gains};

/// The properties that say it.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub hue: f64,
    pub saturation: f64,
    pub value: f64,
    pub seed: u64,
    pub gains: Option<String>,
    pub fuse: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let GainRanges {
            hue,
            saturation,
            value,
        } = GainRanges::default();
        Self {
            hue,
            saturation,
            value,
            seed: 0,
            gains: None,
            fuse: true,
        }
    }
}

/// Why the properties cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettingsError {
    #[error("gains is {text:?}: {error}")]
    Stated { text: String, error: GainsError },
    #[error("{0}")]
    Gains(#[from] GainsError),
}

/// Chooses the gains of one frame after the other.
#[derive(Clone, Debug)]
pub(super) struct Chooser {
    ranges: GainRanges,
    seed: u64,
    stated: Option<Gains>,
}

impl Chooser {
    /// What `settings` say.
    pub fn new(settings: &Settings) -> Result<Self, SettingsError> {
        let stated = settings.gains.as_deref().filter(|gains| !gains.is_empty());
        let parse = |text: &str| {
            text.parse().map_err(|error| SettingsError::Stated {
                text: text.to_owned(),
                error,
            })
        };
        Ok(Self {
            ranges: GainRanges::new(settings.hue, settings.saturation, settings.value)?,
            seed: settings.seed,
            stated: stated.map(parse).transpose()?,
        })
    }

    /// The gains of `frame`, the `number`-th of its stream: what it states, what the property states, or what is
    /// drawn for its sample.
    pub fn choose(&self, frame: &gst::BufferRef, number: u64) -> Result<Gains, GainsError> {
        if let Some(stated) = GainsMeta::get(frame).filter(|meta| !meta.applied) {
            return Gains::new(stated.hue, stated.saturation, stated.value);
        }
        if let Some(stated) = self.stated {
            return Ok(stated);
        }
        Ok(match SampleMeta::get(frame) {
            Some(sample) => draw_gains(sample.seed, sample.epoch, sample.dataset_index, &self.ranges),
            None => draw_gains(self.seed, 0, number, &self.ranges),
        })
    }
}
