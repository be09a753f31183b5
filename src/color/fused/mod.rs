//! The fused path: the same arithmetic with one read and one write per pixel.
//!
//! A frame is worked on in blocks of 64 pixels that stay in the first-level cache: *load* gathers a block's channels
//! into planes, the *kernel* computes on the planes without branches, *store* casts and interleaves them into the
//! tensor. All loops are plain Rust of fixed length that the compiler vectorises; they are compiled once for each
//! instruction set of [`Backend`], which is chosen at run time. Every backend computes the bytes of
//! [`crate::color::reference`], which `tests/color_exhaustive.rs` proves over all 2^24 colours.

mod backend;
mod block;
mod half;
mod kernel;
mod levels;
mod load;
mod passes;
mod store;

pub use backend::Backend;

use super::{FloatFrame, FrameMut, FrameRef, Jitter};
use crate::tensor::{PackError, PackSpec};

/// Jitters `frame` in place; alpha, padding bytes and row padding stay as they are.
pub fn jitter_frame(frame: &mut FrameMut<'_>, jitter: &Jitter) {
    jitter_frame_on(Backend::best(), frame, jitter);
}

/// Packs one uint8 frame, jittered if asked for, into `dst`, one sample's slot.
///
/// Without a jitter the levels are restored (or, for a uint8 tensor, copied) as they are.
///
/// # Errors
/// [`PackError::SlotSize`] when `dst` is not [`PackSpec::sample_bytes`] long.
pub fn pack(
    frame: &FrameRef<'_>,
    jitter: Option<&Jitter>,
    spec: &PackSpec,
    dst: &mut [u8],
) -> Result<(), PackError> {
    pack_on(Backend::best(), frame, jitter, spec, dst)
}

/// Packs one float32 image, jittered if asked for, into `dst`, one sample's slot.
///
/// Without a jitter the values are quantized and restored.
///
/// # Errors
/// [`PackError::SlotSize`] when `dst` is not [`PackSpec::sample_bytes`] long.
pub fn pack_f32(
    src: &FloatFrame<'_>,
    jitter: Option<&Jitter>,
    spec: &PackSpec,
    dst: &mut [u8],
) -> Result<(), PackError> {
    pack_f32_on(Backend::best(), src, jitter, spec, dst)
}

/// The instruction set this machine's calls run on: `avx512`, `avx2` or `baseline`.
pub fn backend() -> &'static str {
    Backend::best().as_str()
}

/// [`jitter_frame`] on a stated backend, for tests and benchmarks.
#[doc(hidden)]
pub fn jitter_frame_on(backend: Backend, frame: &mut FrameMut<'_>, jitter: &Jitter) {
    backend.run(passes::JitterFrame { frame, jitter });
}

/// [`pack`] on a stated backend, for tests and benchmarks.
#[doc(hidden)]
pub fn pack_on(
    backend: Backend,
    frame: &FrameRef<'_>,
    jitter: Option<&Jitter>,
    spec: &PackSpec,
    dst: &mut [u8],
) -> Result<(), PackError> {
    spec.check_slot(frame.width, frame.height, dst)?;
    backend.run(passes::PackBytes {
        frame,
        jitter,
        spec,
        dst,
    });
    Ok(())
}

/// [`pack_f32`] on a stated backend, for tests and benchmarks.
#[doc(hidden)]
pub fn pack_f32_on(
    backend: Backend,
    src: &FloatFrame<'_>,
    jitter: Option<&Jitter>,
    spec: &PackSpec,
    dst: &mut [u8],
) -> Result<(), PackError> {
    spec.check_slot(src.width, src.height, dst)?;
    backend.run(passes::PackFloats {
        src,
        jitter,
        spec,
        dst,
    });
    Ok(())
}
