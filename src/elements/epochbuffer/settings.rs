use super::super::coordinator::Ordinary;

/// What may be prepared before it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstEpochBufferPrefetch")]
pub enum Prefetch {
    /// Nothing.
    #[default]
    #[enum_value(name = "Off: the next epoch is read when it is asked for", nick = "off")]
    Off,
    /// The next epoch, if it is a complete one.
    #[enum_value(
        name = "Complete: prepare the next epoch while the consumer validates, if epochs are complete and not shared",
        nick = "complete"
    )]
    Complete,
    /// The next epoch, whatever it is.
    #[enum_value(name = "Any: also of shared or shortened epochs", nick = "any")]
    Any,
}

/// Why the next epoch is, or is not, prepared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstEpochBufferPrefetchReason")]
pub enum PrefetchReason {
    /// The property says so, or there is no epochsrc upstream.
    #[default]
    #[enum_value(name = "Off: prefetch=off, or no epochsrc upstream", nick = "off")]
    Off,
    /// It is.
    #[enum_value(name = "OK: the next epoch is prepared", nick = "ok")]
    Ok,
    /// Several ranks share the epochs.
    #[enum_value(name = "World size: several ranks share the epochs", nick = "world-size")]
    WorldSize,
    /// An epoch is only a part of the dataset.
    #[enum_value(
        name = "Samples per epoch: an epoch is a part of the dataset",
        nick = "samples-per-epoch"
    )]
    SamplesPerEpoch,
    /// The consumer may stop in the middle of an epoch.
    #[enum_value(
        name = "Step bound: the consumer may stop in the middle of an epoch",
        nick = "step-bound"
    )]
    StepBound,
    /// The dataset is read again before each epoch.
    #[enum_value(name = "Reload: the dataset is read again before each epoch", nick = "reload")]
    Reload,
    /// There is no room yet.
    #[enum_value(name = "Budget: what is left of this epoch fills the buffer", nick = "budget")]
    Budget,
}

impl From<Ordinary> for PrefetchReason {
    fn from(ordinary: Ordinary) -> Self {
        match ordinary {
            Ordinary::WorldSize => Self::WorldSize,
            Ordinary::SamplesPerEpoch => Self::SamplesPerEpoch,
            Ordinary::StepBound => Self::StepBound,
            Ordinary::Reload => Self::Reload,
        }
    }
}

/// The properties.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub prefetch: Prefetch,
    pub max_buffers: u32,
    pub max_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefetch: Prefetch::default(),
            max_buffers: 256,
            max_bytes: 1 << 30,
        }
    }
}
