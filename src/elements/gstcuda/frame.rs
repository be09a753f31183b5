//! A frame in CUDA memory.

use std::mem::MaybeUninit;

use super::super::video::{ViewError, pixel_format, strides};
use super::context::Context;
use super::library::{GstCudaMemory, Unavailable, library};
use crate::cuda::DeviceFrame;

/// Maps to an address of the device instead of one of the host.
const GST_MAP_CUDA: gst::ffi::GstMapFlags = gst::ffi::GST_MAP_FLAG_LAST << 1;

/// Why a buffer is not a frame in CUDA memory.
#[derive(Debug, thiserror::Error)]
pub(in crate::elements) enum FrameError {
    #[error("{0}")]
    Unavailable(#[from] Unavailable),
    #[error("it has {0} memories instead of one")]
    Memories(usize),
    #[error("it is in {0} memory, not in CUDA memory")]
    Memory(String),
    #[error("it cannot be mapped for the GPU")]
    Map,
    #[error("it is {found}, not {wanted}")]
    Meta { found: String, wanted: String },
    #[error("{0}")]
    View(#[from] ViewError),
    #[error("plane {plane} ends {over} bytes behind its memory")]
    TooShort { plane: usize, over: usize },
    #[error("the rows of plane {plane} are {stride} bytes apart, which {row} bytes do not fit into")]
    Stride { plane: usize, stride: usize, row: usize },
}

/// A buffer in CUDA memory, mapped for changing on the device.
pub(in crate::elements) struct Frame<'a> {
    buffer: &'a mut gst::BufferRef,
    map: gst::ffi::GstMapInfo,
}

impl<'a> Frame<'a> {
    /// Maps `buffer`, and waits until those who wrote to it have done so. Memory that others see, too, is copied.
    pub fn map(buffer: &'a mut gst::BufferRef) -> Result<Self, FrameError> {
        let library = library()?;
        let memories = buffer.n_memory();
        if memories != 1 {
            return Err(FrameError::Memories(memories));
        }
        let memory = buffer.peek_memory(0);
        // SAFETY: a living memory.
        if unsafe { (library.is_cuda_memory)(memory.as_mut_ptr()) } == glib::ffi::GFALSE {
            let name = memory.allocator().map(|allocator| allocator.memory_type());
            return Err(FrameError::Memory(
                name.map_or_else(|| "unknown".to_owned(), ToString::to_string),
            ));
        }
        let mut map = MaybeUninit::uninit();
        let flags = gst::ffi::GST_MAP_READ | gst::ffi::GST_MAP_WRITE | GST_MAP_CUDA;
        // SAFETY: the buffer is borrowed exclusively, which is what writable is.
        let mapped = unsafe { gst::ffi::gst_buffer_map(buffer.as_mut_ptr(), map.as_mut_ptr(), flags) };
        if mapped == glib::ffi::GFALSE {
            return Err(FrameError::Map);
        }
        // SAFETY: mapping succeeded, which fills it in.
        let map = unsafe { map.assume_init() };
        if let Some(sync) = library.memory_sync {
            // Mapping for the device does not wait. That this comes after it covers a copy, too.
            // SAFETY: what was mapped is CUDA memory: the buffer's, or a copy, which the same allocator makes.
            unsafe { sync(map.memory.cast()) };
        }
        Ok(Self { buffer, map })
    }

    /// The context it lives in.
    pub fn context(&self) -> Context {
        // SAFETY: the mapped memory is CUDA memory, which holds a reference on its context.
        unsafe { Context::from_memory((*self.map.memory.cast::<GstCudaMemory>()).context) }
    }

    /// Where its pixels are, which `info` describes but for rows and planes: those are what the frame itself says.
    pub fn pixels(&self, info: &gst_video::VideoInfo) -> Result<DeviceFrame, FrameError> {
        let format = pixel_format(info.format())?;
        let (offsets, row_strides) = self.layout(info)?;
        let (width, height) = (info.width() as usize, info.height() as usize);
        let row_strides: [usize; 3] = strides(&row_strides[..format.planes()])?;
        let row = width * format.pixel_stride();
        let mut planes = [0; 3];
        for (plane, (address, (offset, stride))) in planes
            .iter_mut()
            .zip(offsets.into_iter().zip(row_strides))
            .enumerate()
            .take(format.planes())
        {
            if stride < row {
                return Err(FrameError::Stride { plane, stride, row });
            }
            let end = offset
                .saturating_add(stride.saturating_mul(height - 1))
                .saturating_add(row);
            if end > self.map.size {
                return Err(FrameError::TooShort {
                    plane,
                    over: end - self.map.size,
                });
            }
            *address = self.map.data as u64 + offset as u64;
        }
        Ok(DeviceFrame {
            format,
            width,
            height,
            planes,
            strides: row_strides,
        })
    }

    /// Offsets and strides of the planes: the buffer's meta knows them, else the memory does. Caps do not, since rows
    /// in device memory are padded.
    fn layout(&self, info: &gst_video::VideoInfo) -> Result<([usize; 4], [i32; 4]), FrameError> {
        if let Some(meta) = self.buffer.meta::<gst_video::VideoMeta>() {
            let found = (meta.format(), meta.width(), meta.height());
            let wanted = (info.format(), info.width(), info.height());
            if found != wanted {
                let describe = |(format, width, height)| format!("{format} of {width}x{height}");
                return Err(FrameError::Meta {
                    found: describe(found),
                    wanted: describe(wanted),
                });
            }
            let (mut offsets, mut strides) = ([0; 4], [0; 4]);
            for (to, from) in offsets.iter_mut().zip(meta.offset()) {
                *to = *from;
            }
            for (to, from) in strides.iter_mut().zip(meta.stride()) {
                *to = *from;
            }
            return Ok((offsets, strides));
        }
        // SAFETY: as in `context`. Nobody changes it after the memory is made.
        let info = unsafe { &(*self.map.memory.cast::<GstCudaMemory>()).info };
        Ok((info.offset, info.stride))
    }
}

impl Drop for Frame<'_> {
    fn drop(&mut self) {
        // SAFETY: mapped in `map`, and the buffer has been borrowed ever since.
        unsafe { gst::ffi::gst_buffer_unmap(self.buffer.as_mut_ptr(), &mut self.map) };
    }
}
