//! The jitter of single frames, in place.

use std::sync::Arc;

use cudarc::driver::result;

use super::device::Device;
use super::error::CudaError;
use super::kernels::Kernel;
use super::launch::Frames;
use super::memory::{DeviceMemory, PinnedMemory};
use super::stream::Stream;
use crate::color::{FrameMut, Gains, PixelFormat};

/// A uint8 frame in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFrame {
    /// Of the pixels.
    pub format: PixelFormat,
    /// In pixels.
    pub width: usize,
    /// In pixels.
    pub height: usize,
    /// Addresses of the planes: three for [`PixelFormat::Rgbp`], else the first counts.
    pub planes: [u64; 3],
    /// Bytes from a row to the next, of each plane.
    pub strides: [usize; 3],
}

/// Jitters one uint8 frame after the other on its own stream; the calling thread waits for each.
///
/// Byte for byte what [`color::fused::jitter_frame`](crate::color::fused::jitter_frame) does.
#[derive(Debug)]
pub struct FrameJitter {
    stream: Stream,
    /// The gains, on their way.
    gains: PinnedMemory,
    device_gains: DeviceMemory,
    /// A frame of host memory, while it is on the device.
    staged: Option<DeviceMemory>,
}

/// Bytes of a frame's gains.
const GAINS_BYTES: usize = 3 * size_of::<f64>();

impl FrameJitter {
    /// Loads the kernel.
    ///
    /// # Errors
    /// [`CudaError`]: the kernel, the stream or some bytes of memory cannot be had.
    pub fn new(device: &Arc<Device>) -> Result<Self, CudaError> {
        device.function(Kernel::JitterFrames, false)?;
        let stream = Stream::new(device)?;
        Ok(Self {
            gains: PinnedMemory::new(device, GAINS_BYTES)?,
            device_gains: DeviceMemory::new(&stream, GAINS_BYTES)?,
            staged: None,
            stream,
        })
    }

    /// Whose it is.
    pub fn device(&self) -> &Arc<Device> {
        self.stream.device()
    }

    /// Jitters `frame`, and waits until that is done.
    ///
    /// # Errors
    /// [`CudaError`].
    ///
    /// # Safety
    /// All pixels of `frame` are memory of this device's context that nobody else uses during the call.
    pub unsafe fn device_frame(&mut self, frame: &DeviceFrame, gains: Gains) -> Result<(), CudaError> {
        let [first, second, third] = frame.planes;
        let [row, other_rows @ ..] = frame.strides;
        let mut plane_stride = 0;
        if frame.format == PixelFormat::Rgbp {
            plane_stride = second.wrapping_sub(first);
            if other_rows != [row; 2] || third.wrapping_sub(second) != plane_stride {
                return Err(CudaError::Driver {
                    what: "taking a frame whose planes are at uneven distances",
                    ordinal: self.device().ordinal(),
                    detail: format!(
                        "planes at {:x?} with rows of {:?} bytes",
                        frame.planes, frame.strides
                    ),
                });
            }
        }
        let frames = Frames {
            format: frame.format,
            width: frame.width,
            height: frame.height,
            batch: 1,
            base: first,
            strides: [0, plane_stride.cast_signed(), row as i64],
        };
        let queued = self.upload_gains(gains).and_then(|()| {
            // SAFETY: the frame is the caller's promise; the gains are ours and in the stream's order. Both are left alone
            // until the stream is done, below; where waiting fails, the context is lost.
            unsafe { self.stream.jitter_frames(&frames, self.device_gains.pointer()) }
        });
        // Whatever was queued: the next frame's gains are written where these are read.
        let waited = self.stream.synchronize();
        queued.and(waited)
    }

    /// Jitters `frame` by way of device memory: up, one launch, down.
    ///
    /// # Errors
    /// [`CudaError`]; the frame may be as it was then.
    pub fn host_frame(&mut self, frame: &mut FrameMut<'_>, gains: Gains) -> Result<(), CudaError> {
        let (format, width, height) = {
            let view = frame.as_ref();
            (view.format(), view.width(), view.height())
        };
        let mut planes = frame.planes_mut();
        // Behind each other, each at an address that the kernel reads four pixels at.
        let mut offsets = [0; 3];
        let mut bytes: usize = 0;
        for (offset, (data, _)) in offsets.iter_mut().zip(&planes) {
            *offset = bytes;
            bytes = bytes.saturating_add(data.len().next_multiple_of(256));
        }
        let even = planes.len() == 1
            || (planes[0].1 == planes[1].1
                && planes[1].1 == planes[2].1
                && offsets[2] - offsets[1] == offsets[1]);
        if !even {
            // Planes of one frame differ in nothing but their content, as far as GStreamer's formats go.
            return Err(CudaError::Driver {
                what: "taking a frame whose planes are laid out unlike each other",
                ordinal: self.device().ordinal(),
                detail: format!("{format:?}"),
            });
        }
        if self.staged.as_ref().is_none_or(|staged| staged.len() < bytes) {
            self.staged = None;
            self.staged = Some(DeviceMemory::new(&self.stream, bytes)?);
        }
        let Some(base) = self.staged.as_ref().map(DeviceMemory::pointer) else {
            return Ok(());
        };
        let frames = Frames {
            format,
            width,
            height,
            batch: 1,
            base,
            strides: [0, offsets[1] as i64, planes[0].1 as i64],
        };
        let done = self.round_trip(&frames, &mut planes, offsets, gains);
        // Whatever was queued: the frame is given back only when nothing reads or writes it any more.
        let waited = self.stream.synchronize();
        done.and(waited)
    }

    /// Queues all of it. The caller waits for the stream before `planes` may go.
    fn round_trip(
        &mut self,
        frames: &Frames,
        planes: &mut [(&mut [u8], usize)],
        offsets: [usize; 3],
        gains: Gains,
    ) -> Result<(), CudaError> {
        let stream = self.stream.clone();
        let raw = stream.inner().cu_stream();
        for ((data, _), offset) in planes.iter().zip(offsets) {
            stream.device().run("copying a frame to the device", || {
                // SAFETY: the staged memory has room for all planes; `data` is borrowed until the stream is done.
                unsafe { result::memcpy_htod_async(frames.base + offset as u64, data, raw) }
            })?;
        }
        self.upload_gains(gains)?;
        // SAFETY: our own memory, in the stream's order.
        unsafe { stream.jitter_frames(frames, self.device_gains.pointer()) }?;
        for ((data, _), offset) in planes.iter_mut().zip(offsets) {
            stream.device().run("copying a frame to the host", || {
                // SAFETY: as above; `data` is borrowed for writing until the stream is done.
                unsafe { result::memcpy_dtoh_async(data, frames.base + offset as u64, raw) }
            })?;
        }
        Ok(())
    }

    fn upload_gains(&mut self, gains: Gains) -> Result<(), CudaError> {
        let values = [gains.hue, gains.saturation, gains.value];
        // SAFETY: 24 bytes of ours, aligned as pinned memory is (to a page). The copy before has ended: each frame is
        // waited for.
        let place = unsafe { std::slice::from_raw_parts_mut(self.gains.as_ptr().cast::<f64>(), 3) };
        place.copy_from_slice(&values);
        let (to, raw) = (self.device_gains.pointer(), self.stream.inner().cu_stream());
        self.stream.device().run("copying the gains", || {
            // SAFETY: both are ours, of that size, and alive until the stream is done.
            unsafe { result::memcpy_htod_async(to, place, raw) }
        })
    }
}

impl Drop for FrameJitter {
    fn drop(&mut self) {
        // A failure may have left copies behind that were not waited for.
        let _ = self.stream.synchronize();
    }
}
