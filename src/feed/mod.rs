//! The application's side: epochs and batches as iterators.
//!
//! A [`Feed`] is a pipeline with everything that the elements offer ([`Builder`]) and a consumer that speaks the protocol of an
//! epoch ([`coordinator`]). [`Feed::epochs`] asks for one epoch after the other, each [`Epoch`] gives
//! [`Batch`]es and ends at its own end:
//!
//! ```
//! # fn main() -> Result<(), epochfeed::FeedError> {
//! use epochfeed::Feed;
//! # let (train, val) = (concat!(env!("CARGO_MANIFEST_DIR"), "/data/photos"), concat!(env!("CARGO_MANIFEST_DIR"), "/data/photos"));
//!
//! let training = Feed::builder(train).epochs(2).size(32, 32).batch_size(16).build()?;
//! let validation = Feed::validation(val).size(32, 32).batch_size(16).build()?;
//! let mut passes = validation.epochs();
//! for epoch in training.epochs() {
//!     for batch in epoch? {
//!         let batch = batch?;
//!         let (values, samples) = (batch.as_f32()?, batch.samples());
//!         assert_eq!(values.len(), samples.len() * 32 * 32 * 3);
//!     }
//!     if let Some(pass) = passes.next() {
//!         for batch in pass? {
//!             assert_eq!(batch?.samples()[0].gains, epochfeed::color::Gains::ZERO);
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! With [`Builder::device`] batches are made on a GPU and stay there: [`Batch::device`] has the pointer, and orders the
//! application's stream behind the making. The values are the same.
//!
//! # Threads
//! The pipeline works on threads of its own. A feed has one consumer at a time; it may be any thread, another one for each
//! batch, but none of the pipeline's own ([`FeedError::StreamingThread`]). The feed, its epochs and its batches can be dropped on
//! any thread at any moment, see [`Feed`].
//!
//! The files: `core` is the consumer, `exchange` what lies between it and the pipeline's `sink`, `assemble` the pipeline, `threads`
//! how to do what a streaming thread must not do.

mod assemble;
mod batch;
mod builder;
mod bus;
mod core;
mod dataset;
mod device;
mod epoch;
mod error;
mod exchange;
mod part;
mod settings;
mod sink;
mod stats;
mod tensor;
mod threads;

use std::path::Path;
use std::sync::Arc;

use gst::prelude::*;

pub use self::batch::{Annotated, Batch, Sample};
pub use self::builder::Builder;
pub use self::device::DeviceBatch;
pub use self::epoch::{Epoch, Epochs};
pub use self::error::FeedError;
pub use self::settings::Hold;
pub use self::stats::{BufferStats, FeedStats};

use self::assemble::Assembly;
use self::core::{Core, Parts, Share};
use self::exchange::Exchange;
use self::settings::Settings;
use self::threads::StreamingThreads;
use crate::elements::coordinator::{self, Stage};

/// Training batches from a dataset, epoch after epoch.
///
/// # Dropping
/// Dropping the feed stops its pipeline and joins the pipeline's threads, at any moment, whatever they are doing; batches
/// that were taken stay valid, epochs that are left over give [`FeedError::Closed`]. On one of the pipeline's own threads (in a
/// pad probe, or while a message is handled) that thread cannot be waited for: another one does the work, and is done when
/// the callback has returned.
#[derive(Debug)]
pub struct Feed {
    core: Arc<Core>,
}

/// A pipeline that is brought to NULL if it does not become a feed.
struct Starting {
    pipeline: gst::Pipeline,
    exchange: Arc<Exchange>,
    started: bool,
}

impl Drop for Starting {
    fn drop(&mut self) {
        if !self.started {
            self.exchange.close();
            let _ = self.pipeline.set_state(gst::State::Null);
        }
    }
}

impl Feed {
    /// A feed for training from `location`: a folder of images (searched recursively), a text list of paths, one image, or a
    /// `file://` URI of one of these.
    pub fn builder(location: impl AsRef<Path>) -> Builder {
        Builder::training(location.as_ref())
    }

    /// A feed for validation: as [`Feed::builder`], but in the order of the dataset, without jitter, without padding (the last
    /// batch is smaller), and without end: each epoch that is asked for is one pass. [`Sample::source_width`] and
    /// [`Sample::source_height`] say how large each image was.
    pub fn validation(location: impl AsRef<Path>) -> Builder {
        Builder::validation(location.as_ref())
    }

    /// Builds and starts the pipeline.
    fn start(settings: Settings) -> Result<Self, FeedError> {
        crate::plugin_register_static().map_err(|error| FeedError::Register {
            reason: error.to_string(),
        })?;
        let Assembly {
            pipeline,
            buffer,
            sink,
        } = assemble::assemble(&settings)?;
        let missing = |what: &str| FeedError::Element {
            name: "pipeline".to_owned(),
            reason: format!("it has no {what}"),
        };
        let exchange = sink.exchange();
        let threads = Arc::new(StreamingThreads::default());
        let bus = pipeline.bus().ok_or_else(|| missing("bus"))?;
        bus::watch(&bus, exchange.clone(), threads.clone(), settings.listener);
        let sink_pad = sink.static_pad("sink").ok_or_else(|| missing("sink pad"))?;
        let coordinator = coordinator::find(&sink_pad).ok_or_else(|| missing("coordinator"))?;
        coordinator.set_step_bound(settings.max_steps.is_some());
        // Before the start: epochsrc must not go on by itself.
        let registration = coordinator.register(Stage::Consumer);

        let mut starting = Starting {
            pipeline: pipeline.clone(),
            exchange: exchange.clone(),
            started: false,
        };
        if let Err(error) = pipeline.set_state(gst::State::Playing) {
            // What an element said is better than that something was said.
            exchange.check()?;
            return Err(FeedError::Stream {
                element: pipeline.name().to_string(),
                message: format!("The pipeline cannot be started: {error}"),
                remedy: Some("GST_DEBUG=3 shows which element refuses".to_owned()),
            });
        }
        let share = coordinator
            .config()
            .and_then(Share::of)
            .ok_or_else(|| missing("dataset"))?;
        starting.started = true;
        let parts = Parts {
            pipeline,
            sink_pad,
            buffer,
            exchange,
            registration,
            threads,
            max_steps: settings.max_steps,
        };
        Ok(Self {
            core: Arc::new(Core::new(parts, share)),
        })
    }

    /// The epochs that have not been asked for yet. Calling this again goes on where the last one stands.
    pub fn epochs(&self) -> Epochs {
        Epochs::new(self.core.clone())
    }

    /// The figures so far.
    pub fn stats(&self) -> FeedStats {
        self.core.stats()
    }

    /// Where the consumer is, as JSON for [`Builder::resume`]: behind the last batch that was acknowledged, see [`Epoch`]. `None` for a
    /// new feed of which nothing has been used yet.
    pub fn state(&self) -> Option<String> {
        self.core.state()
    }

    /// The pipeline, for looking at: its elements are called as their factories (`epochsrc`, `epochdecode`, `hsvquantize`,
    /// `nhwcpack`, `epochbuffer`), each with its `stats`. The feed stops it; setting its state elsewhere breaks the feed.
    pub fn pipeline(&self) -> &gst::Pipeline {
        &self.core.pipeline
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.core.stop();
    }
}
