//! The modules of `cuda_library`: helpers first, then the tests by subject.

mod batch;
mod definition;
pub mod driver;
mod frames;
mod gate;
mod host_batch;
mod memory;
mod vectors;

mod device_memory;
mod frame_jitter;
mod lives;
mod packer;
mod packer_order;
mod parity_colours;
mod parity_floats;
mod parity_shapes;
mod refusals;
mod two_gpus;
mod without_driver;
