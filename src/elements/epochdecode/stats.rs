//! What is counted.

use std::sync::atomic::Ordering;

use super::super::util::{Statistics, lock};
use super::imp::EpochDecode;

/// Of one start-to-stop.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stats {
    pub decoded: u64,
    /// There is a cache, so that each of these was not in it.
    pub caches: bool,
    /// Taken from the cache instead.
    pub cached: u64,
    pub faults: u64,
    pub replaced: u64,
    pub warnings: u64,
    pub truncated: u64,
    /// Boxes of the frames, those that vanished, and annotations with another size than their image.
    pub boxes: u64,
    pub vanished: u64,
    pub mismatches: u64,
    /// Nanoseconds the delivery task waited for the next image to be decoded.
    pub wait_input: u64,
    /// Nanoseconds it spent pushing.
    pub wait_output: u64,
}

impl EpochDecode {
    /// The property `stats`.
    pub(super) fn stats(&self) -> Statistics {
        let (bound, cache) = lock(&self.active)
            .as_ref()
            .map_or((0, None), |active| (active.bound, active.cache.clone()));
        let (entries, bytes) = cache.as_ref().map_or((0, 0), |cache| cache.levels());
        let (in_flight, high_water) = self.queue.levels();
        let stats = *lock(&self.stats);
        Statistics(
            gst::Structure::builder("epochdecode-stats")
                .field("decoded", stats.decoded)
                .field("faults", stats.faults)
                .field("replaced", stats.replaced)
                .field("warnings", stats.warnings)
                .field("truncated", stats.truncated)
                .field("boxes", stats.boxes)
                .field("boxes-vanished", stats.vanished)
                .field("size-mismatches", stats.mismatches)
                .field("in-flight", in_flight as u64)
                .field("in-flight-max", high_water as u64)
                .field("in-flight-bound", bound as u64)
                .field("cache-hits", stats.cached)
                .field("cache-misses", if stats.caches { stats.decoded } else { 0 })
                .field("cache-entries", entries)
                .field("cache-bytes", bytes)
                .field("decode-ns", self.busy.load(Ordering::Relaxed))
                .field("wait-input-ns", stats.wait_input)
                .field("wait-output-ns", stats.wait_output)
                .build(),
        )
    }
}
