//! Where a run starts: its dataset, and its place in the sequence of epochs.

use super::dataset::OnChange;
use super::settings::Settings;
use crate::dataset::{Dataset, DatasetError, Exclusions, parse_location};
use crate::sampler::{Receipt, Sampler, SamplerConfig, SamplerError, State, StateError};

/// Why there is nothing to draw from.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error("No location is set: set it to a folder of images, a list of paths, or an image")]
    NoLocation,
    #[error("{error}")]
    Dataset { error: DatasetError, location: String },
    #[error("root: {0}")]
    Root(DatasetError),
    #[error("{0}")]
    Exclude(DatasetError),
    #[error("{0}")]
    Sampler(#[from] SamplerError),
}

impl From<OpenError> for gst::ErrorMessage {
    fn from(error: OpenError) -> Self {
        match &error {
            OpenError::Dataset { location, .. } => gst::error_msg!(
                gst::ResourceError::OpenRead,
                ("{error}"),
                ["location={location:?}"]
            ),
            OpenError::Exclude(_) => gst::error_msg!(
                gst::ResourceError::OpenRead,
                ("{error}"),
                ["Correct the list that exclude names, or unset exclude"]
            ),
            OpenError::NoLocation | OpenError::Root(_) | OpenError::Sampler(_) => {
                gst::error_msg!(gst::ResourceError::Settings, ("{error}"))
            }
        }
    }
}

/// The dataset that `settings` name, and what draws from it.
pub(super) fn open(settings: &Settings) -> Result<(Dataset, Sampler), OpenError> {
    let location = settings
        .location
        .as_deref()
        .filter(|location| !location.is_empty())
        .ok_or(OpenError::NoLocation)?;
    let options = settings.dataset_options()?;
    let exclusions = settings.exclude.as_deref().map(Exclusions::read);
    let exclusions = exclusions.transpose().map_err(OpenError::Exclude)?;
    let dataset = parse_location(location)
        .and_then(|path| Dataset::open_without(&path, &options, &exclusions.unwrap_or_default()))
        .map_err(|error| match error {
            DatasetError::AllExcluded(_) => OpenError::Exclude(error),
            error => OpenError::Dataset {
                error,
                location: location.to_owned(),
            },
        })?;
    let sampler = Sampler::new(settings.sampler_config(dataset.len()))?;
    Ok((dataset, sampler))
}

/// A place in the sequence of epochs.
pub(super) struct Start {
    /// Draws the epoch.
    pub receipt: Receipt,
    /// What was taken of it, if the run starts in its middle.
    pub resumed: Option<State>,
    /// See [`State::reloaded`].
    pub reloaded: bool,
    /// The state is of another dataset, and its epoch begins again.
    pub restarted: bool,
}

impl Start {
    /// The first epoch.
    pub fn of(sampler: &Sampler) -> Self {
        Self {
            receipt: sampler.first(),
            resumed: None,
            reloaded: false,
            restarted: false,
        }
    }

    /// Behind the state `json`. An epoch that begins may be drawn from another dataset than the state's with `reload`; with
    /// `on-change=restart` one that is in its middle begins again then.
    pub fn behind(
        json: &str,
        dataset: &Dataset,
        sampler: &Sampler,
        settings: &Settings,
    ) -> Result<Self, StateError> {
        let state = State::from_json(json)?;
        // Nothing is drawn yet: the state may be of another, larger dataset.
        let length = state.slots();
        let inside = (1..length).contains(&state.position);
        let changed = state.fingerprint != dataset.fingerprint() || state.size != sampler.config().size;
        let restarted = inside && changed && settings.on_change == OnChange::Restart;
        // The epoch that begins is drawn from what is there now.
        let may_differ =
            restarted || (!inside && (settings.reload || settings.on_change == OnChange::Restart));
        if may_differ {
            let config = SamplerConfig {
                size: state.size,
                ..sampler.config().clone()
            };
            state.check(&config, &state.fingerprint)?;
        } else {
            state.check(sampler.config(), dataset.fingerprint())?;
        }
        let reloaded = state.reloaded || (changed && may_differ);
        Ok(if state.position < length {
            Self {
                receipt: state.receipt.clone(),
                resumed: (inside && !restarted).then_some(state),
                reloaded,
                restarted,
            }
        } else {
            Self {
                receipt: Sampler::new(state.config())?.next(&state.receipt, true),
                resumed: None,
                reloaded,
                restarted: false,
            }
        })
    }
}
