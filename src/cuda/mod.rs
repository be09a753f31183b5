//! The GPU: the only door to the CUDA driver.
//!
//! Nothing is linked. The driver's library is opened when a [`Device`] is first asked for; without one every way in gives
//! [`CudaError::NoDriver`]. The kernels (`kernels/`) are embedded as PTX, which the driver compiles once and caches: a
//! user needs the NVIDIA driver and nothing else.
//!
//! - [`Device`] is a context with the kernels in it, [`Stream`] and [`Event`] order its work, [`DeviceMemory`] and
//!   [`PinnedMemory`] are what it works on;
//! - [`FusedColor`] is the fused pass for programs that have their pixels on the device;
//! - [`FrameJitter`] jitters single frames, [`Packer`] makes batches of frames in host memory: what the elements use.
//!
//! All of it gives the bytes of [`color`](crate::color), on every device.

mod device;
mod error;
mod frame_jitter;
mod fused;
mod kernels;
mod launch;
mod memory;
mod packer;
mod stream;

pub use device::Device;
pub use error::CudaError;
pub use frame_jitter::{DeviceFrame, FrameJitter};
pub use fused::{DeviceGains, FusedColor, Images, LaunchError, LaunchGains, Output};
pub use memory::{DeviceMemory, PinnedMemory};
pub use packer::{HostBatch, HostRun, PackTimes, Packer};
pub use stream::{Event, Stream};
