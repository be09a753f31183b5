//! Frames that are kept from epoch to epoch: whoever keeps them says so, and their files are not read.

use std::sync::{Arc, Weak};

use super::super::faults::Place;
use super::Coordinator;
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

impl Coordinator {
    /// Has `keeper` asked which frames are kept, as long as it lives.
    pub fn set_keeper(&self, keeper: &Arc<Keeper>) {
        self.lock().keeper = Some(Arc::downgrade(keeper));
    }

    /// Who keeps frames, if anybody has said so.
    pub fn keeper(&self) -> Option<Weak<Keeper>> {
        self.lock().keeper.clone()
    }
}
