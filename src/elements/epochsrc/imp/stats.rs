//! What is counted.

use super::super::super::util::{Statistics, lock};
use super::EpochSrc;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stats {
    pub epochs: u64,
    pub samples: u64,
    pub bytes: u64,
    pub faults: u64,
    /// Nanoseconds spent reading files.
    pub wait_input: u64,
    /// Nanoseconds spent pushing.
    pub wait_output: u64,
    /// Nanoseconds spent waiting for a request.
    pub wait_request: u64,
    /// Slots of the current epoch pushed, and all of them.
    pub position: u64,
    pub duration: u64,
}

impl EpochSrc {
    /// The property `stats`.
    pub(super) fn stats(&self) -> Statistics {
        let stats = *lock(&self.stats);
        Statistics(
            gst::Structure::builder("epochsrc-stats")
                .field("epochs", stats.epochs)
                .field("samples", stats.samples)
                .field("bytes", stats.bytes)
                .field("faults", stats.faults)
                .field("position", stats.position)
                .field("duration", stats.duration)
                .field("wait-input-ns", stats.wait_input)
                .field("wait-output-ns", stats.wait_output)
                .field("wait-request-ns", stats.wait_request)
                .build(),
        )
    }
}
