//! What a training batch looks like in memory: element type, layout, and how one sample is packed into its slot.
//!
//! A batch is N samples behind each other; a sample is `H × W × C` ([`Layout::Nhwc`]) or `C × H × W`
//! ([`Layout::Nchw`]) elements of one [`Dtype`], with C = 3 in the order R, G, B and no padding anywhere.
//! [`PackSpec`] is the validated combination that the packers of [`crate::color`] take.

mod dtype;
mod layout;
mod spec;

pub use dtype::{Dtype, ParseDtypeError};
pub use layout::{Layout, ParseLayoutError};
pub use spec::{CHANNELS, Normalize, PackError, PackSpec};
