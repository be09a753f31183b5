//! `epochsrc`: reads a dataset epoch by epoch, as encoded images.

/**
 * SECTION:element-epochsrc
 * @see_also: epochdecode, nhwcpack, epochsink
 *
 * Draws the order of each epoch, reads the files and pushes them encoded, stamped with what they are: epoch, position,
 * index in the dataset and `file://` URI travel with the buffer as the meta `epochfeed-sample`.
 *
 * `location` is a folder (searched recursively), a text list of paths, one image, or a dataset with boxes: a COCO JSON
 * file, whose images are below `root` (found beside the file where it is not set), or YOLO's, as a `data.yaml` or as a folder
 * with `images` and `labels`, of which `split` names the part. `format` says so where it cannot be told;
 * `imagefolder`, a folder per class, is never guessed. A path that is not UTF-8 can be given as a percent-encoded `file://`
 * URI. The type of a file is found by its content, not by its name.
 *
 * The boxes of a sample travel as the meta `epochfeed-boxes`. `crowd`, `classes`, `single-class` and `fraction` say what of
 * a dataset is used; classes keep their numbers, and images without boxes stay. What is wrong with a dataset is counted at
 * the start and told in the element message `epochfeed-dataset`, which has the counts as fields and, as `checks`, a table
 * with the first examples of each kind; boxes that cannot be used are left out. With `strict` it is an error. Nothing
 * usable always is.
 *
 * A state knows the dataset that it was made with, boxes included. With `on-change=restart`, a run that is given one of
 * a dataset that has changed since begins the state's epoch again instead of refusing it, and warns.
 *
 * Where files have to be waited for, up to `io-depth` are read at a time, ahead of those that are asked for and within the
 * epoch; where they come at once (from the page cache) one after the other. At most 256 MiB are read ahead, or one file. A
 * flush, an EOS or a stop does not wait for reads that do not come back, such as those of a network mount that has gone away; only
 * `io-depth=1`, and the first slow file of a run, are read where they cannot be left behind.
 *
 * Between two epochs the element waits until the next one is asked for: by epochsink or an application's feed when
 * there is one, by the action signal `next-epoch`, or, with `auto-advance`, by itself. The end of an epoch is a
 * SEGMENT_DONE event; EOS comes after the last epoch only.
 *
 * With `reload` the location is read again before each epoch, so that files may come and go between epochs. The epoch
 * that runs keeps the listing that it was drawn from; a state inside an epoch names it, and a run can resume there only
 * as long as the dataset is the same. `epochbuffer prefetch=complete` prepares nothing then.
 *
 * `exclude` names a list of files that are left out before the order is drawn, such as epochdecode's `quarantine` file: lines of JSON with
 * a `uri`, or paths. How many they were is in the message `epochfeed-dataset`. What is left is a dataset of its own: its indices
 * and its fingerprint are others, so that a state from before is refused. With `reload` the list is read again, too.
 *
 * A run that resumes in the middle of an epoch reads some of the samples before that place again, where something
 * downstream has to repeat them: the last one, which may stand in for a faulty one, and the epoch's first ones for
 * `nhwcpack last-batch=pad`. They are marked `again` in their meta, are counted nowhere, and other branches of a tee see
 * them, too.
 *
 * A file that is missing, unreadable or empty is passed on as an empty GAP buffer that names the fault, so that
 * epochdecode applies its `on-error` to all faults alike. With another decoder this element applies its own.
 *
 * POSITION and DURATION are in samples of the current epoch (format DEFAULT), and so are seeks, with rate 1.0: one with
 * FLUSH discards what has not been taken and begins the current epoch anew at `start`, one with SEGMENT alone asks for the
 * next epoch.
 *
 * ## Example pipeline
 * |[
 * gst-launch-1.0 epochsrc location=data/photos shuffle=torch seed=7 epochs=2 ! epochdecode ! fakesink
 * ]| Two epochs in the order of PyTorch's RandomSampler, decoded and thrown away.
 * |[
 * gst-launch-1.0 -m epochsrc location=data format=imagefolder fraction=0.5 ! epochdecode ! fakesink
 * ]| The first half of a class-per-folder set, by its paths; `-m` shows the message `epochfeed-dataset` with what the
 * checks found. COCO's validation images would be `location=annotations/instances_val2017.json root=val2017`.
 */
mod ahead;
mod dataset;
mod imp;
mod reader;
mod run;
mod settings;
mod start;
mod wanted;

use glib::prelude::*;

pub(crate) use dataset::join_classes;
pub use dataset::{Crowd, DatasetFormat, OnChange, OutOfImage, Split};
pub use settings::{Shuffle, Uneven};

glib::wrapper! {
    /// The element `epochsrc`.
    pub struct EpochSrc(ObjectSubclass<imp::EpochSrc>) @extends gst_base::PushSrc, gst_base::BaseSrc, gst::Element, gst::Object;
}

pub(super) fn register(plugin: Option<&gst::Plugin>) -> Result<(), glib::BoolError> {
    gst::Element::register(plugin, "epochsrc", gst::Rank::NONE, EpochSrc::static_type())
}
