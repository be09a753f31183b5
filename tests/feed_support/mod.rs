//! Helpers of the feed's tests.
#![allow(dead_code, unused_imports)] // every test binary uses a part of them
#![allow(clippy::unwrap_used, clippy::expect_used)] // a helper that cannot do its work fails the test

use std::path::{Path, PathBuf};

use epochfeed::feed::{Builder, Epoch, Feed};
use epochfeed::tensor::Dtype;

pub use crate::common::tiny_images;
pub use crate::common::wait::{LIMIT, until, within};

/// A feed of small uint8 frames.
pub fn small(location: &Path) -> Builder {
    Feed::builder(location).size(24, 24).dtype(Dtype::Uint8)
}

/// What is compared of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub epoch: u64,
    pub indices: Vec<u64>,
    pub gains: Vec<[f64; 3]>,
    pub state: String,
    pub bytes: Vec<u8>,
}

/// The rest of an epoch.
#[track_caller]
pub fn rest(epoch: &mut Epoch) -> Vec<Seen> {
    epoch.map(|batch| seen(&batch.unwrap())).collect()
}

/// What is compared of `batch`.
pub fn seen(batch: &epochfeed::Batch) -> Seen {
    let gains =
        |sample: &epochfeed::feed::Sample| [sample.gains.hue, sample.gains.saturation, sample.gains.value];
    Seen {
        epoch: batch.epoch(),
        indices: batch
            .samples()
            .iter()
            .map(|sample| sample.dataset_index)
            .collect(),
        gains: batch.samples().iter().map(gains).collect(),
        state: batch.state().to_owned(),
        bytes: batch.as_bytes().unwrap().to_vec(),
    }
}

/// Everything that a feed still gives.
#[track_caller]
pub fn all(feed: &Feed) -> Vec<Seen> {
    feed.epochs()
        .flat_map(|epoch| rest(&mut epoch.unwrap()))
        .collect()
}

/// The dataset indices of batches, one behind the other.
pub fn indices(batches: &[Seen]) -> Vec<u64> {
    batches.iter().flat_map(|batch| batch.indices.clone()).collect()
}

/// The bundled photographs.
pub fn photos() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/photos")
}

/// Whether `epoch` has failed while it was prepared and nobody has been told.
pub fn failed(feed: &Feed, epoch: u64) -> bool {
    use gst::prelude::*;
    let pad = feed
        .pipeline()
        .by_name("epochbuffer")
        .unwrap()
        .static_pad("sink")
        .unwrap();
    let coordinator = epochfeed::elements::coordinator::find(&pad).unwrap();
    coordinator.has_failed(epoch)
}
