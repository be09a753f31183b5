//! What a feed has done so far.

use std::time::Duration;

use gst::prelude::*;

use crate::elements::epochbuffer::PrefetchReason;
use crate::elements::util::Statistics;
use crate::sampler::Ledger;

/// A feed's figures, as of one moment; made by [`Feed::stats`](super::Feed::stats).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FeedStats {
    /// Batches taken.
    pub batches: u64,
    /// Samples in them, padding included.
    pub samples: u64,
    /// Epochs that have ended, at their end or broken off.
    pub epochs: u64,
    /// What became of the samples of the epoch that ended last, with its number.
    pub last_epoch: Option<(u64, Ledger)>,
    /// What became of the samples of all epochs that have ended.
    pub ledger: Ledger,
    /// Time spent waiting for batches.
    pub wait: Duration,
    /// From asking for the current epoch to its first batch.
    pub boundary_wait: Duration,
    /// What is held ready behind the batch that was taken last.
    pub buffer: BufferStats,
}

/// What the feed's `epochbuffer` holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferStats {
    /// Buffers (batches, or frames: as the builder's `hold` says) held now.
    pub buffers: u64,
    /// Their bytes, on the host and on devices.
    pub bytes: u64,
    /// Those of them that are on devices.
    pub device_bytes: u64,
    /// The most buffers that were held.
    pub max_buffers: u64,
    /// The most bytes that were held.
    pub max_bytes: u64,
    /// The most bytes that were held on devices.
    pub max_device_bytes: u64,
    /// Epochs that were allowed to be prepared before they were asked for.
    pub prepared: u64,
    /// Epochs of which what was prepared has been thrown away, because the recipe had changed.
    pub invalidated: u64,
    /// Whether the next epoch is prepared before it is asked for.
    pub prefetch_active: bool,
    /// Why it is, or is not.
    pub prefetch_reason: PrefetchReason,
}

impl BufferStats {
    /// The figures of `buffer`.
    pub(super) fn of(buffer: &gst::Element) -> Self {
        let Statistics(fields) = buffer.property("stats");
        let number = |name: &str| fields.get::<u64>(name).unwrap_or_default();
        Self {
            buffers: number("level-buffers"),
            bytes: number("level-bytes"),
            device_bytes: number("level-device-bytes"),
            max_buffers: number("high-water-buffers"),
            max_bytes: number("high-water-bytes"),
            max_device_bytes: number("high-water-device-bytes"),
            prepared: number("prepared"),
            invalidated: number("invalidated"),
            prefetch_active: buffer.property("prefetch-active"),
            prefetch_reason: buffer.property("prefetch-reason"),
        }
    }
}
