//! An element's door to the coordinator.

use std::path::PathBuf;
use std::sync::Arc;

use gst::prelude::*;

use super::super::cuda::FrameAllocator;
use super::super::epoch_end::EpochEnd;
use super::super::meta::SampleMeta;
use super::{Coordinator, Stage, Taken};

/// The state cannot be saved. It is said once a run.
#[derive(Debug, thiserror::Error)]
#[error("cannot save the state in {}: {source}", location.display())]
pub struct SaveError {
    pub(super) location: PathBuf,
    pub(super) source: std::io::Error,
}

impl SaveError {
    /// Warns of it in the name of `element`.
    pub fn warn(&self, element: &impl IsA<gst::Element>) {
        gst::element_warning!(
            element,
            gst::ResourceError::Write,
            ("{self}"),
            [
                "Set state-location to a file in a folder that can be written to; the run goes on without saving"
            ]
        );
    }
}

/// An element's entry in the coordinator; dropping it removes the entry.
#[derive(Debug)]
pub struct Registration {
    pub(super) coordinator: Arc<Coordinator>,
    pub(super) stage: Stage,
}

impl Registration {
    /// The coordinator.
    pub fn coordinator(&self) -> &Arc<Coordinator> {
        &self.coordinator
    }

    /// Whether this element's acknowledgements count: no later stage was there in this run.
    pub fn counts(&self) -> bool {
        self.coordinator.lock().latest <= Some(self.stage)
    }

    /// Acknowledges all of an epoch.
    ///
    /// # Errors
    /// As [`Coordinator::acknowledge`].
    pub fn acknowledge_end(&self, end: &EpochEnd) -> Result<(), SaveError> {
        if self.counts() {
            self.coordinator.acknowledge_end(self.stage, end)
        } else {
            Ok(())
        }
    }

    /// Acknowledges a frame.
    ///
    /// # Errors
    /// As [`Coordinator::acknowledge`].
    pub fn acknowledge_sample(&self, sample: &SampleMeta) -> Result<(), SaveError> {
        // One that is sent again was acknowledged when it was delivered.
        if sample.again || !self.counts() {
            return Ok(());
        }
        let state = self.coordinator.state_at(sample.epoch, Taken::up_to(sample));
        self.acknowledge(sample.epoch, &state.unwrap_or_default())
    }

    /// Says that this element, a packer, takes frames best from `frames`. It keeps them; whoever makes frames asks for each
    /// with [`Coordinator::frames`].
    pub fn offers(&self, frames: &FrameAllocator) {
        self.coordinator.lock().frames = Some(frames.downgrade());
    }

    /// Says that this element, a packer, needs the first `frames` of an epoch until its end.
    pub fn keeps(&self, frames: usize) {
        let mut inner = self.coordinator.lock();
        inner.kept = inner.kept.max(frames);
    }

    /// [`Coordinator::acknowledge`] for this element's stage.
    ///
    /// # Errors
    /// As there.
    pub fn acknowledge(&self, epoch: u64, state: &str) -> Result<(), SaveError> {
        self.coordinator.acknowledge(self.stage, epoch, state)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut inner = self.coordinator.lock();
        if let Some(count) = inner.stages.get_mut(&self.stage) {
            *count -= 1;
            if *count == 0 {
                inner.stages.remove(&self.stage);
                if self.stage == Stage::Pack {
                    inner.kept = 0;
                }
            }
        }
    }
}
