//! epochfeed prepares training images inside a GStreamer pipeline, so that a trainer does not wait for its input.
//!
//! The subjects (`color`, `sampler`, `dataset`, `decode`, `tensor`, `workers`) are plain Rust without GStreamer
//! types; `elements` builds the GStreamer elements from them. Imports point one way: elements → subjects.
//! An application that links this crate makes the elements available with [`plugin_register_static`].

pub mod color;
pub mod dataset;
pub mod decode;
pub mod elements;
mod embed;
pub mod sampler;
pub mod tensor;
pub mod workers;

pub use embed::plugin_register_static;
