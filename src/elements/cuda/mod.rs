//! What elements share where frames and batches meet the GPU: the memory that goes through the pipeline.
//!
//! - [`BatchAllocator`] makes batches in device memory, which any sink can map;
//! - [`FrameAllocator`] makes frames in page-locked memory, in order and side by side, so that a batch of them goes to the
//!   device in one copy.

mod batches;
mod frames;

pub use batches::{BATCH_FEATURE, BatchAllocator, device_memory};
pub(crate) use batches::{MEMORY_TYPE, batch_caps};
pub use frames::FrameAllocator;
pub(crate) use frames::{Header, Slot};
