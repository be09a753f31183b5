//! epochfeed prepares training images inside a GStreamer pipeline, so that a trainer does not wait for its input.
//!
//! The subjects (`color`, `cuda`, `sampler`, `dataset`, `decode`, `tensor`, `workers`) are plain Rust without GStreamer
//! types; `elements` builds the GStreamer elements from them, `feed` an application's epochs and batches. Imports point one
//! way: feed → elements → subjects. An application takes batches from a [`Feed`], or makes the elements available with
//! [`plugin_register_static`] and builds a pipeline of its own.

pub mod color;
pub mod cuda;
pub mod dataset;
pub mod decode;
pub mod elements;
mod embed;
pub mod feed;
pub mod sampler;
pub mod tensor;
pub mod workers;

pub use embed::plugin_register_static;
pub use feed::{Batch, Epoch, Feed, FeedError};
