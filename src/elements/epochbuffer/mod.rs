//! `epochbuffer`: holds the next epoch ready while the trainer validates.

/**
 * SECTION:element-epochbuffer
 * @see_also: epochsrc, epochsink, queue
 *
 * A bounded queue with a gate at the end of each epoch. With `prefetch=complete` the epochsrc upstream goes on to the
 * next epoch as soon as all of the current one has arrived here, and what it makes waits behind the gate until the
 * consumer asks for that epoch. With `prefetch=off`, the default, nothing is read before it is asked for: prepared data
 * stay in memory during validation.
 *
 * Before hsvquantize the element holds frames, which are light and still have to be packed; behind nhwcpack it holds
 * batches, which are ready. At most `max-buffers` and `max-bytes` are held, on the host and on devices together; one
 * buffer is always admitted. `stats` says how many of the bytes are a device's. There is one epochbuffer behind an
 * epochsrc; a second one is refused.
 *
 * An epoch that was prepared and is never taken leaves no trace: its receipt is part of no state. What was prepared
 * with other settings than the current ones is thrown away and prepared again; when preparing fails, the current epoch
 * is delivered whole and the failure is told when the next one is asked for.
 *
 * ## Example pipeline
 * |[
 * gst-launch-1.0 epochsrc location=data/photos epochs=2 ! epochdecode ! hsvquantize ! nhwcpack batch-size=8 ! epochbuffer prefetch=complete ! epochsink validation-time=200
 * ]| The second epoch is prepared while the sink validates.
 */
mod imp;
mod settings;
mod store;

use glib::prelude::*;

pub use settings::{Prefetch, PrefetchReason};

glib::wrapper! {
    /// The element `epochbuffer`.
    pub struct EpochBuffer(ObjectSubclass<imp::EpochBuffer>) @extends gst::Element, gst::Object;
}

pub(super) fn register(plugin: Option<&gst::Plugin>) -> Result<(), glib::BoolError> {
    gst::Element::register(plugin, "epochbuffer", gst::Rank::NONE, EpochBuffer::static_type())
}
