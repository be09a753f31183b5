//! Raw frames: the formats that are taken, the caps, and the views that the arithmetic works on.

use gst_video::VideoFormat;
use gst_video::prelude::*;

use super::gstcuda::CUDA_FEATURE;
use crate::color::{FrameError, FrameMut, FrameRef, PixelFormat};

/// The caps feature of frames whose gains travel beside them and are still to be applied.
///
/// Queues, tees and passthrough elements pass it, every active converter refuses it, so that nothing is jittered in
/// the wrong place.
pub(super) const GAINS_FEATURE: &str = "meta:EpochfeedGains";

const FORMATS: [VideoFormat; 7] = [
    VideoFormat::Rgb,
    VideoFormat::Bgr,
    VideoFormat::Rgba,
    VideoFormat::Bgra,
    VideoFormat::Rgbx,
    VideoFormat::Bgrx,
    VideoFormat::Rgbp,
];

/// Frames in system memory.
pub(super) fn plain_caps() -> gst::Caps {
    gst_video::VideoCapsBuilder::new().format_list(FORMATS).build()
}

/// The features of frames with gains to be applied.
pub(super) fn gains_features() -> gst::CapsFeatures {
    gst::CapsFeatures::new([gst::CAPS_FEATURE_MEMORY_SYSTEM_MEMORY.as_str(), GAINS_FEATURE])
}

/// Frames with gains to be applied.
pub(super) fn gains_caps() -> gst::Caps {
    gst_video::VideoCapsBuilder::new()
        .features(gains_features().iter())
        .format_list(FORMATS)
        .build()
}

/// The features of frames in CUDA memory.
pub(super) fn cuda_features() -> gst::CapsFeatures {
    gst::CapsFeatures::new([CUDA_FEATURE])
}

/// Frames in CUDA memory: every one of our formats is one of GStreamer's there.
pub(super) fn cuda_caps() -> gst::Caps {
    gst_video::VideoCapsBuilder::new()
        .features(cuda_features().iter())
        .format_list(FORMATS)
        .build()
}

/// Why a buffer is not the frame that its caps promise.
#[derive(Debug, thiserror::Error)]
pub(super) enum ViewError {
    #[error("the format {0} is none that is taken")]
    Format(VideoFormat),
    #[error("a stride of {0} bytes is negative")]
    Stride(i32),
    #[error("{0}")]
    Frame(#[from] FrameError),
}

/// The arithmetic's name of `format`.
pub(super) fn pixel_format(format: VideoFormat) -> Result<PixelFormat, ViewError> {
    match format {
        VideoFormat::Rgb => Ok(PixelFormat::Rgb),
        VideoFormat::Bgr => Ok(PixelFormat::Bgr),
        VideoFormat::Rgba => Ok(PixelFormat::Rgba),
        VideoFormat::Bgra => Ok(PixelFormat::Bgra),
        VideoFormat::Rgbx => Ok(PixelFormat::Rgbx),
        VideoFormat::Bgrx => Ok(PixelFormat::Bgrx),
        VideoFormat::Rgbp => Ok(PixelFormat::Rgbp),
        other => Err(ViewError::Format(other)),
    }
}

/// Bytes from row to row of each plane; 0 for planes that are not there.
pub(super) fn strides<const N: usize>(strides: &[i32]) -> Result<[usize; N], ViewError> {
    let mut result = [0; N];
    for (result, stride) in result.iter_mut().zip(strides) {
        *result = usize::try_from(*stride).map_err(|_| ViewError::Stride(*stride))?;
    }
    Ok(result)
}

/// The pixels of `frame`, for reading.
pub(super) fn view<'a>(
    frame: &'a gst_video::VideoFrameRef<&gst::BufferRef>,
) -> Result<FrameRef<'a>, ViewError> {
    let (width, height) = (frame.width() as usize, frame.height() as usize);
    let [first, second, third, _] = frame.planes_data();
    Ok(match pixel_format(frame.format())? {
        PixelFormat::Rgbp => FrameRef::planar(
            width,
            height,
            [first, second, third],
            strides(frame.plane_stride())?,
        )?,
        format => {
            let [stride] = strides(frame.plane_stride())?;
            FrameRef::packed(format, width, height, first, stride)?
        }
    })
}

/// The pixels of `frame`, for changing.
pub(super) fn view_mut<'a>(
    frame: &'a mut gst_video::VideoFrameRef<&mut gst::BufferRef>,
) -> Result<FrameMut<'a>, ViewError> {
    let (width, height, format) = (frame.width() as usize, frame.height() as usize, frame.format());
    let all = strides::<3>(frame.plane_stride())?;
    let [first, second, third, _] = frame.planes_data_mut();
    Ok(match pixel_format(format)? {
        PixelFormat::Rgbp => FrameMut::planar(width, height, [first, second, third], all)?,
        format => FrameMut::packed(format, width, height, first, all[0])?,
    })
}
