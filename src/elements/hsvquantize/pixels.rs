//! The pixel pass, wherever it is done.

use super::super::device::{DeviceError, Wanted};
use super::super::gstcuda::{self, Context};
use super::super::path::Choice;
use super::super::video;
use crate::color::{FrameMut, Gains, fused, native};
use crate::cuda::{CudaError, FrameJitter};

/// Why a frame's pixels are not changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PixelsError {
    #[error("it came before its caps")]
    NoCaps,
    #[error("it is not what its caps say: {0}")]
    Frame(Box<dyn std::error::Error + Send + Sync>),
    #[error("{0}")]
    Device(#[from] DeviceError),
    #[error("{0}")]
    Cuda(#[from] CudaError),
    #[error(
        "it is in the memory of cuda:{found}, and device is {wanted}: choose device=auto, or give the elements that made it \
         cuda-device-id"
    )]
    OtherDevice { found: usize, wanted: Wanted },
    #[error("it is in CUDA memory: {0}, or convert it with cudadownload")]
    Unavailable(#[from] gstcuda::Unavailable),
}

impl PixelsError {
    fn frame(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Frame(Box::new(error))
    }
}

/// How it is done for the frames of a stream.
pub(super) enum Pixels {
    /// In one pass on the CPU.
    Fused,
    /// In one pass an operation.
    Native(native::Scratch),
    /// On the GPU, for frames in system memory.
    Host(OnDevice),
    /// On the GPU that the frames are on, in the context they live in, which the first of them shows.
    Resident(Option<OnDevice>, Wanted),
}

/// A GPU, in one context.
pub(super) struct OnDevice {
    // Dropped in this order: nothing outlives the context that it was made in.
    jitter: FrameJitter,
    /// Another library's; `None` is the primary context, which the jitter holds itself.
    context: Option<Context>,
}

impl OnDevice {
    fn in_context(context: Context) -> Result<Self, CudaError> {
        // SAFETY: the device is the jitter's alone, and that is dropped before the context.
        let device = unsafe { context.device() }?;
        Ok(Self {
            jitter: FrameJitter::new(&device)?,
            context: Some(context),
        })
    }

    fn ordinal(&self) -> usize {
        self.jitter.device().ordinal()
    }
}

impl Pixels {
    /// For frames in system memory: in the context that was `given`, where the property allows it.
    pub fn system(wanted: Wanted, given: Option<Context>) -> Result<(Self, Choice), PixelsError> {
        let (on_device, choice) = match given.filter(|context| wanted.allows(context.ordinal())) {
            Some(context) => {
                let made = OnDevice::in_context(context);
                wanted.made(made.map(|on_device| {
                    let ordinal = on_device.ordinal();
                    (on_device, ordinal)
                }))?
            }
            None => wanted.open(|device| {
                let jitter = FrameJitter::new(device)?;
                Ok(OnDevice {
                    jitter,
                    context: None,
                })
            })?,
        };
        Ok((on_device.map_or(Self::Fused, Self::Host), choice))
    }

    /// For frames in CUDA memory.
    pub fn resident(wanted: Wanted) -> Result<Self, PixelsError> {
        gstcuda::require()?;
        Ok(Self::Resident(None, wanted))
    }

    /// Changes the pixels of `frame` in place. Returns where, if that has only now come out.
    pub fn jitter(
        &mut self,
        frame: &mut gst::BufferRef,
        info: &gst_video::VideoInfo,
        gains: Gains,
    ) -> Result<Option<Choice>, PixelsError> {
        match self {
            Self::Fused => with_view(frame, info, |view| fused::jitter_frame(view, &gains.into()))?,
            Self::Native(scratch) => with_view(frame, info, |view| {
                native::jitter_frame(view, &gains.into(), scratch);
            })?,
            Self::Host(OnDevice { jitter, .. }) => {
                with_view(frame, info, |view| jitter.host_frame(view, gains))??;
            }
            Self::Resident(on_device, wanted) => {
                return jitter_resident(on_device, *wanted, frame, info, gains);
            }
        }
        Ok(None)
    }
}

/// Does `work` on the pixels of a frame in system memory.
fn with_view<T>(
    frame: &mut gst::BufferRef,
    info: &gst_video::VideoInfo,
    work: impl FnOnce(&mut FrameMut<'_>) -> T,
) -> Result<T, PixelsError> {
    let mut frame =
        gst_video::VideoFrameRef::from_buffer_ref_writable(frame, info).map_err(PixelsError::frame)?;
    let mut view = video::view_mut(&mut frame).map_err(PixelsError::frame)?;
    Ok(work(&mut view))
}

fn jitter_resident(
    on_device: &mut Option<OnDevice>,
    wanted: Wanted,
    frame: &mut gst::BufferRef,
    info: &gst_video::VideoInfo,
    gains: Gains,
) -> Result<Option<Choice>, PixelsError> {
    let frame = gstcuda::Frame::map(frame).map_err(PixelsError::frame)?;
    let pixels = frame.pixels(info).map_err(PixelsError::frame)?;
    let context = frame.context();
    let mut chosen = None;
    let known = on_device
        .take()
        .filter(|on_device| on_device.context.as_ref() == Some(&context));
    let on_device = match known {
        Some(known) => on_device.insert(known),
        None => {
            let found = context.ordinal();
            if !wanted.allows(found) {
                return Err(PixelsError::OtherDevice { found, wanted });
            }
            let made = on_device.insert(OnDevice::in_context(context)?);
            chosen = Some(Choice::cuda(made.ordinal()));
            made
        }
    };
    // SAFETY: the addresses are those of memory that is mapped for changing until `frame` is dropped, checked against its
    // size, and in the context that the jitter was made for.
    unsafe { on_device.jitter.device_frame(&pixels, gains) }?;
    Ok(chosen)
}
