//! `epochdecode`: decodes images on several threads, in order, and fits them to one size.

/**
 * SECTION:element-epochdecode
 * @see_also: epochsrc, hsvquantize
 *
 * Takes one encoded image a buffer (JPEG, PNG, WebP, BMP, by content) and gives RGB or BGR frames of the size that
 * downstream asks for, 640x640 where it does not say. JPEG pixels are those of libjpeg-turbo, the resize is
 * byte-equal to OpenCV's INTER_LINEAR, the letterbox to Ultralytics': the same bytes on any number of threads.
 *
 * Images are decoded in parallel and delivered in order, from this element's own streaming thread. At most twice as
 * many as `threads` are in work or done and not yet delivered; `stats` has the bound and the highest level.
 *
 * A sample that cannot be decoded is named, with its place in the dataset and the reason: in an error with
 * `on-error=fail`, else in an element message `epochfeed-fault`, and the sample is left out (`skip`) or its place is
 * taken by a good one (`replace`). An epoch without a usable sample is always an error. Where several ranks share the
 * epochs, `skip` acts as `replace`, so that they stay equally long. With `max-errors` the run ends with an error at the first
 * fault beyond the limit; each epoch, and each rank, has its own count, which goes on where a run resumes in the middle of one.
 *
 * Where the dataset has boxes (the meta `epochfeed-boxes` on the encoded image), they go the way of the pixels: turned, scaled
 * and moved by the same numbers, as left, top, right and bottom in pixels of the frame. Whether an annotation is of the upright
 * image or of the image as stored is told by its width and height, whatever `orientation` is. Where they do not tell (YOLO has none;
 * a square; an orientation that exchanges no sides) it is of what is decoded: of the upright image, with `orientation=ignore`
 * of the image as stored. A size that is neither is counted in `stats`, for the first ten images announced in an
 * element message `epochfeed-annotation`, and the boxes are taken for those of a resized image. With `orientation=match` the
 * image is turned or not so that it has the annotated size, upright if it has it both ways, and is faulty if it never has.
 * Boxes that have no area vanish, counted in `stats`; nothing is cut off.
 *
 * The message has the `class` of the fault: missing, unreadable, empty, unsupported, truncated, corrupt (no image at all, too),
 * too-large, mismatch (of the annotated size, with `orientation=match`), or internal where the file is not to blame.
 * `quarantine` is a file for the user: a line of JSON with `uri`, `class` and `reason` for each file at fault, once, added to
 * what is there; `epochsrc exclude` leaves these files out. A fault that is not told, in an epoch that is prepared and never
 * asked for, is not listed either.
 *
 * With `cache=ram` frames are kept in memory, up to `cache-bytes`, and a sample whose frame is there is not decoded again in
 * later epochs: its bytes are the same. Nor is its file read, if every decoder behind that epochsrc has the frame: it is opened,
 * to see whether it is still the same, and read when somebody else maps the encoded buffer. A frame counts only as long as its
 * file is the same (device, inode, size, times of modification and change) and frames have the same size and format; a
 * dataset larger than the budget has hits for the part that fits. Hits and misses are in `stats`. Everything is released
 * when the element stops.
 *
 * ## Example pipeline
 * |[
 * gst-launch-1.0 epochsrc location=data/photos ! epochdecode threads=2 on-error=skip ! video/x-raw,format=RGB,width=320,height=320 ! fakesink
 * ]| Decodes and letterboxes a folder to 320x320.
 * |[
 * gst-launch-1.0 filesrc location=data/photos/000000000001.jpg ! jpegparse ! epochdecode fit=none ! videoconvert ! pngenc ! fakesink
 * ]| Also takes images from other sources, one a buffer.
 */
mod active;
mod ahead;
mod boxes;
mod cache;
mod delivery;
mod imp;
mod input;
mod job;
mod output;
mod quarantine;
mod queue;
mod settings;
mod stats;

use glib::prelude::*;

pub use settings::{CacheMode, Fit, Interpolation, Orientation, Truncated};

glib::wrapper! {
    /// The element `epochdecode`.
    pub struct EpochDecode(ObjectSubclass<imp::EpochDecode>) @extends gst::Element, gst::Object;
}

pub(super) fn register(plugin: Option<&gst::Plugin>) -> Result<(), glib::BoolError> {
    gst::Element::register(plugin, "epochdecode", gst::Rank::NONE, EpochDecode::static_type())
}
