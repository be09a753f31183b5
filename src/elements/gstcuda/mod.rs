//! GStreamer's CUDA memory: the frames of nvcodec's elements, and the CUDA contexts they live in.
//!
//! `libgstcuda-1.0.so.0` is opened when the first such frame or query comes, and never linked: it brings the libraries
//! of graphic desktops along, which servers do not have. No function of the driver is called here; that is
//! [`crate::cuda`]'s.

mod context;
mod frame;
mod library;

pub(super) use context::{Context, answer, is_asked_for};
pub(super) use frame::Frame;
pub(super) use library::{Unavailable, require};

/// The caps feature of frames in CUDA memory.
pub(super) const CUDA_FEATURE: &str = "memory:CUDAMemory";
