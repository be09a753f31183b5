//! The arithmetic: HSV jitter, quantize, restore and the copy into the batch.
//!
//! One definition and two ways to run it, equal byte for byte:
//!
//! * [`reference`](mod@reference) is the definition: one pixel, one readable step after the other;
//! * [`native`] runs one pass per operation and materialises every intermediate, as the eager framework does;
//! * [`fused`] reads each pixel once and writes it once, vectorised, straight into the batch.
//!
//! [`Gains`] are what a sample's jitter is described by, [`draw_gains`] draws them, [`Jitter`] is their float32 form
//! that the arithmetic takes. Frames are borrowed views: [`FrameRef`], [`FrameMut`], [`FloatFrame`]. Nothing here
//! holds state: no tensor, no output and no gain outlives a call.
//!
//! ```
//! use epochfeed::color::{FrameRef, Gains, Jitter, PixelFormat, fused};
//! use epochfeed::tensor::PackSpec;
//!
//! let pixels = [255, 0, 0, /**/ 128, 128, 128]; // red, grey
//! let frame = FrameRef::packed(PixelFormat::Rgb, 2, 1, &pixels, 6)?;
//! let spec = PackSpec::default(); // float32, channels last
//! let jitter = Jitter::from(Gains::new(1.0 / 3.0, 0.0, 0.0)?);
//!
//! let mut slot = vec![0; spec.sample_bytes(2, 1)];
//! fused::pack(&frame, Some(&jitter), &spec, &mut slot)?;
//!
//! let values: Vec<f32> = slot.chunks_exact(4).map(|v| f32::from_ne_bytes([v[0], v[1], v[2], v[3]])).collect();
//! assert_eq!(values[..3], [0.0, 1.0, 0.0], "a third of a turn makes red green");
//! assert_eq!(values[3..], [128.0 * (1.0 / 255.0); 3], "grey stays grey");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod draw;
mod float_frame;
mod format;
mod frame;
pub mod fused;
mod gains;
mod jitter;
pub mod native;
pub mod reference;

pub use draw::draw_gains;
pub use float_frame::FloatFrame;
pub use format::PixelFormat;
pub use frame::{FrameError, FrameMut, FrameRef};
pub use gains::{GainRanges, Gains, GainsError};
pub use jitter::Jitter;
