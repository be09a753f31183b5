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
 * packer does the one pass over the pixels; `path` and `path-reason` then say what its `device` came to. With `fuse=false`
 * each operation is a pass of its own here (`path` native): the bytes are the same.
 *
 * ## Where the pixels are computed
 * `device` is `auto`, `cpu` or `cuda:N`, and says it for the pass that is done here; the bytes are the same everywhere.
 * `auto` takes the GPU of the number LOCAL_RANK (of torchrun; else the first one; the only one, where this process sees
 * only one), or the CPU where that cannot be used: `path-reason` and the element message `epochfeed-path` say why. `cuda:N` is that
 * GPU, or an error that says what is missing.
 *
 * Frames in system memory go to the GPU and come back. Frames of nvcodec's elements (`memory:CUDAMemory`) are changed in
 * place, on the GPU and in the CUDA context that they are in, and no other memory is needed; not with `device=cpu` or
 * `fuse=false`, which negotiate system memory. Neighbours that ask for a CUDA context get the one of the application
 * (gst_element_set_context), else one that their other neighbours have, else the primary context of the device, which the
 * CUDA runtime and PyTorch use as well.
 *
 * Of a tee's branches of which one leads to nhwcpack, another one that takes anything (a filesink) sees frames that are
 * not jittered yet; a caps filter `video/x-raw` in that branch makes this element do the pixels for all of them.
 *
 * ## Example pipeline
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=30 ! hsvquantize gains="0.25,0,-0.2" ! videoconvert ! fakesink
 * ]| Turns the hue of a video by a quarter and darkens it.
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=30 ! video/x-raw,format=RGBA,width=640,height=480 ! cudaupload ! hsvquantize ! cudadownload ! fakesink
 * ]| Jitters frames where they are: in the memory of the GPU.
 * |[
 * gst-launch-1.0 filesrc location=data/photos/000000000001.jpg ! jpegparse ! nvjpegdec ! cudaconvert ! hsvquantize ! cudadownload ! fakesink
 * ]| A photograph that is decoded on the GPU stays there. Its bytes are not those of epochdecode.
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
