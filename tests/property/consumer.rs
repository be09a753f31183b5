//! What both doors to the elements have in common.

use epochfeed::elements::coordinator::{self, Coordinator};
use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::elements::meta::BatchMeta;
use gst::prelude::*;
use std::sync::Arc;

use super::life::Door;
use super::world::World;

/// What is compared of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub epoch: u64,
    pub samples: Vec<Sample>,
    pub digest: u32,
    pub state: String,
}

/// One of its samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    pub dataset_index: u64,
    pub pad: bool,
    /// Which sample it stands in for.
    pub replaced_from: Option<u64>,
}

impl Batch {
    /// The batch in a buffer of the stream.
    pub fn of(buffer: &gst::BufferRef) -> Self {
        let meta = BatchMeta::get(buffer).expect("a batch has its meta");
        let sample = |place: usize| Sample {
            dataset_index: meta.dataset_index[place],
            pad: meta.pad[place],
            replaced_from: u64::try_from(meta.replaced_from[place]).ok(),
        };
        Self {
            epoch: meta.epoch,
            samples: (0..meta.index.len()).map(sample).collect(),
            digest: crc32fast::hash(&buffer.map_readable().unwrap()),
            state: meta.state,
        }
    }
}

/// What taking comes to.
#[derive(Debug, PartialEq)]
pub struct Taken {
    /// `None` if there was none left.
    pub batch: Option<Batch>,
    /// The epoch is known to have ended behind it.
    pub end: bool,
}

/// What a request comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    Yes,
    /// The run has no further epoch.
    NoMore,
    /// Preparing it failed.
    Failed(String),
}

/// One door to the elements, with a pipeline that runs.
pub trait Consumer: Sized {
    /// It is a feed: asking for the next epoch leaves the one before, and the pipeline is not to be meddled with.
    const IS_FEED: bool;

    /// Starts a pipeline, from `state` if there is one.
    fn start(world: &World, threads: u32, state: Option<&str>) -> Self;

    /// The next batch.
    ///
    /// # Errors
    /// What the stream failed with.
    fn take(&mut self) -> Result<Taken, String>;

    /// Asks for the next epoch.
    ///
    /// # Errors
    /// What the stream failed with.
    fn ask(&mut self, door: Door) -> Result<Asked, String>;

    /// Leaves an epoch of `slots` slots. Returns whether it is known to have ended.
    fn leave(&mut self, meant: bool, slots: u64);

    /// Seeks to a position of the epoch; true if that is its end.
    fn flush(&mut self, position: u64) -> bool;

    /// To NULL, and again to PLAYING.
    fn restart(self, world: &World) -> Self;

    /// Nothing has come of an epoch that nobody has asked for.
    fn assert_closed(&self);

    /// Where a new pipeline goes on.
    fn checkpoint(&self) -> Option<String>;

    fn pipeline(&self) -> &gst::Pipeline;

    fn element(&self, name: &str) -> gst::Element {
        self.pipeline()
            .by_name(name)
            .unwrap_or_else(|| panic!("no element {name}"))
    }

    /// What the source says of itself: a checkpoint, without knowing the consumer.
    fn source_state(&self) -> Option<String> {
        self.element("epochsrc").property("state")
    }

    fn coordinator(&self) -> Arc<Coordinator> {
        let pad = self.element("epochbuffer").static_pad("sink").unwrap();
        coordinator::find(&pad).expect("there is an epochsrc")
    }

    /// How many buffers are held.
    fn level(&self) -> u64 {
        let stats: gst::Structure = self.element("epochbuffer").property("stats");
        stats.get("level-buffers").unwrap()
    }

    /// Whether the next epoch is prepared before it is asked for.
    fn prepares(&self) -> bool {
        let buffer = self.element("epochbuffer");
        match buffer.property::<Prefetch>("prefetch") {
            Prefetch::Off => false,
            Prefetch::Complete => self.coordinator().ordinary().is_none(),
            Prefetch::Any => true,
        }
    }

    fn set_hue(&self, hue: f64) {
        self.element("hsvquantize").set_property("hue", hue);
    }

    fn set_side(&self, side: i32) {
        self.element("capsfilter").set_property("caps", size(side));
    }
}

/// Caps of square frames.
pub fn size(side: i32) -> gst::Caps {
    gst::Caps::builder("video/x-raw")
        .field("format", "RGB")
        .field("width", side)
        .field("height", side)
        .build()
}
