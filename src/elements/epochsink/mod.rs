//! `epochsink`: stands in for a trainer.

/**
 * SECTION:element-epochsink
 * @see_also: nhwcpack, epochsrc
 *
 * Takes batches as a trainer would: a step of `step-time` each, at the end of an epoch a validation of
 * `validation-time`, and only then it asks the epochsrc upstream for the next epoch. It acknowledges each batch, so
 * that `epochsrc state` is the state behind the last one that was used.
 *
 * `report` writes a line of JSON for each batch (indices, URIs, gains, flags, targets, waiting time, state), each faulty sample
 * (its place, class and reason) and each epoch (its ledger: listed = delivered + skipped + dropped; padded and replaced apart).
 * `targets` are the boxes, one `[image, class, x, y, width, height]` each as in nhwcpack's meta: empty where images have none, not
 * there where the dataset has no boxes or an element on the way lost them. At the end it posts the epochs as the
 * element message `epochfeed-summary` and prints them as a table, unless `silent`.
 *
 * ## Example pipeline
 * |[
 * gst-launch-1.0 epochsrc location=data/photos epochs=2 ! epochdecode ! hsvquantize ! nhwcpack batch-size=8 ! epochsink step-time=10 validation-time=50
 * ]| Two epochs of a trainer that takes 10 ms a step and validates for 50 ms.
 */
mod imp;
mod progress;
mod report;
mod table;

use glib::prelude::*;

glib::wrapper! {
    /// The element `epochsink`.
    pub struct EpochSink(ObjectSubclass<imp::EpochSink>) @extends gst_base::BaseSink, gst::Element, gst::Object;
}

pub(super) fn register(plugin: Option<&gst::Plugin>) -> Result<(), glib::BoolError> {
    gst::Element::register(plugin, "epochsink", gst::Rank::NONE, EpochSink::static_type())
}
