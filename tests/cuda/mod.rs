//! The modules of `cuda_library`: helpers first, then the tests by subject.

mod definition;
pub mod driver;
mod frames;
mod memory;
mod vectors;

mod parity_colours;
mod parity_floats;
mod parity_shapes;
mod without_driver;
