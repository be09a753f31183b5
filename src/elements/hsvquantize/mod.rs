//! `hsvquantize`: jitters hue, saturation and value, and quantizes to 8 bits.

/**
 * SECTION:element-hsvquantize
 * @see_also: epochdecode, nhwcpack
 *
 * Draws three gains for each sample from (seed, epoch, index in the dataset), so that a sample's jitter does not depend
 * on threads, ranks, batch size or order: the hue is moved by up to `hue` turns, saturation and value are multiplied
 * by up to 1 ± `saturation` and 1 ± `value`. `gains` states them for every frame instead, and gains that a frame
 * brings along (the meta `epochfeed-gains`) win over both.
 *
 * The arithmetic is torchvision's (v1) HSV in float32 in the order PyTorch evaluates it on CUDA, rounded half to even.
 *
 * Alone the element is a visible filter for any video in RGB, BGR, their four-byte relatives and planar RGB. When
 * nhwcpack follows, the frames' caps get the feature `meta:EpochfeedGains`, the gains travel beside the frame, and the
 * packer does the one pass over the pixels (`path` fused-cpu). With `fuse=false` each operation is a pass of its own
 * here (`path` native): the bytes are the same.
 *
 * Of a tee's branches of which one leads to nhwcpack, another one that takes anything (a filesink) sees frames that are
 * not jittered yet; a caps filter `video/x-raw` in that branch makes this element do the pixels for all of them.
 *
 * ## Example pipeline
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=30 ! hsvquantize gains="0.25,0,-0.2" ! videoconvert ! fakesink
 * ]| Turns the hue of a video by a quarter and darkens it.
 */
mod caps;
mod gains;
mod imp;
mod pixels;

use glib::prelude::*;

glib::wrapper! {
    /// The element `hsvquantize`.
    pub struct HsvQuantize(ObjectSubclass<imp::HsvQuantize>) @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

pub(super) fn register(plugin: Option<&gst::Plugin>) -> Result<(), glib::BoolError> {
    gst::Element::register(plugin, "hsvquantize", gst::Rank::NONE, HsvQuantize::static_type())
}
