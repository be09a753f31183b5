//! Frames that are kept from epoch to epoch: whoever keeps them says so, and their files are not read.

use std::sync::{Arc, Weak};

use super::super::faults::Place;
use super::{Coordinator, Stage};
use crate::decode::Format;

/// Which frame it is, and for which epoch.
#[derive(Clone, Debug)]
pub struct FrameKey {
    /// The file's URI, never empty.
    pub uri: String,
    /// The file's [version](crate::dataset::FileVersion).
    pub version: u64,
    /// The size that the annotation says: how an image is turned, and where its boxes are, may depend on it.
    pub annotated: Option<(u32, u32)>,
    /// The epoch that asks for it.
    pub epoch: u64,
}

impl FrameKey {
    /// The key of the sample at `place`; `None` for one whose file is not known.
    pub fn of(place: &Place) -> Option<Self> {
        let sample = &place.sample;
        (sample.file_version != 0 && !sample.uri.is_empty()).then(|| Self {
            uri: sample.uri.clone(),
            version: sample.file_version,
            annotated: place.annotated(),
            epoch: sample.epoch,
        })
    }
}

/// Says of which format a file is whose frame is kept. That it still is when the sample comes is likely, not promised.
pub type Keeper = dyn Fn(&FrameKey) -> Option<Format> + Send + Sync;

/// All decoders, if each of them keeps frames; else nobody.
#[derive(Clone, Default)]
pub struct Keepers(Vec<Weak<Keeper>>);

impl Keepers {
    /// Whether nobody has to be asked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Of which format a file is whose frame all of them keep: one that decodes it needs its bytes, and has nobody who
    /// reads ahead for it.
    pub fn format(&self, key: &FrameKey) -> Option<Format> {
        let mut format = None;
        for keeper in &self.0 {
            format = Some(keeper.upgrade()?(key)?);
        }
        format
    }
}

impl From<Weak<Keeper>> for Keepers {
    fn from(keeper: Weak<Keeper>) -> Self {
        Self(vec![keeper])
    }
}

impl Coordinator {
    /// Has `keeper`, of one decoder, asked which frames are kept, as long as it lives.
    pub fn add_keeper(&self, keeper: &Arc<Keeper>) {
        let mut inner = self.lock();
        inner.keepers.retain(|keeper| keeper.strong_count() > 0);
        inner.keepers.push(Arc::downgrade(keeper));
    }

    /// Who keeps frames. There are several decoders behind a tee.
    pub fn keepers(&self) -> Keepers {
        let inner = self.lock();
        let keepers = inner.keepers.iter().filter(|keeper| keeper.strong_count() > 0);
        let keepers: Vec<_> = keepers.cloned().collect();
        match inner.stages.get(&Stage::Decode) {
            Some(decoders) if *decoders == keepers.len() => Keepers(keepers),
            _ => Keepers::default(),
        }
    }
}
