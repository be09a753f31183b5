//! Where this element stands among those that know the coordinator.

use std::sync::Arc;

use gst::prelude::*;
use gst::subclass::prelude::*;

use super::super::super::coordinator::{self, Listener, Stage};
use super::super::super::meta::{BatchMeta, GainsMeta};
use super::super::super::util::lock;
use super::EpochBuffer;

impl EpochBuffer {
    /// Registers with the epochsrc upstream, if there is one and that has not been done. An error if another epochbuffer
    /// has; it is posted.
    pub(super) fn find_coordinator(&self) -> Result<(), gst::FlowError> {
        if lock(&self.registration).is_some() {
            return Ok(());
        }
        let Some(coordinator) = coordinator::find(&self.sink_pad) else {
            return Ok(());
        };
        if coordinator.has_buffer() {
            // Both would stand at each boundary, and each would have an epoch read again that the other waits for.
            gst::element_imp_error!(
                self,
                gst::CoreError::Failed,
                ("There is another epochbuffer behind the same epochsrc"),
                [
                    "Hold frames in front of hsvquantize or batches behind nhwcpack, not both: remove one epochbuffer"
                ]
            );
            return Err(gst::FlowError::Error);
        }
        let shared = Arc::downgrade(&self.shared);
        let listener: Arc<Listener> = Arc::new(move || {
            if let Some(shared) = shared.upgrade() {
                // Taken once, so that a thread between its look and its wait is not missed.
                drop(shared.lock());
                shared.changed.notify_all();
            }
        });
        coordinator.listen(&listener);
        *lock(&self.listener) = Some(listener);
        *lock(&self.registration) = Some(Arc::new(coordinator.register(Stage::HeldBatches)));
        Ok(())
    }

    /// Registers where this element stands, which what it holds tells: behind it others may take part in a batch what has
    /// left here, and only they know what has been consumed. Until something leaves it stands at the end.
    pub(super) fn find_place(&self, buffer: &gst::BufferRef) {
        let place = if BatchMeta::get(buffer).is_some() {
            return;
        } else if GainsMeta::get(buffer).is_some() {
            Stage::HeldColors
        } else if self.holds_images() {
            Stage::HeldFiles
        } else {
            Stage::HeldFrames
        };
        let Some(before) = self.registration() else {
            return;
        };
        let registration = before.coordinator().move_to(place, &before);
        *lock(&self.registration) = Some(Arc::new(registration));
    }

    /// Whether what comes is not decoded yet.
    fn holds_images(&self) -> bool {
        let caps = self.src_pad.current_caps();
        caps.is_some_and(|caps| caps.iter().all(|fields| fields.name().starts_with("image/")))
    }
}
