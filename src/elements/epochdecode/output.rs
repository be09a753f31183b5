//! What downstream wants: format, size, and where the frames come from.

use gst::prelude::*;

use super::super::cuda::FrameAllocator;

/// The size where downstream does not say.
const DEFAULT_SIDE: i32 = 640;

/// Format and size of frames; no size where each image keeps its own.
pub(super) type Shape = (gst_video::VideoFormat, Option<(u32, u32)>);

/// The negotiated output of the element.
#[derive(Debug)]
pub(super) struct Output {
    format: gst_video::VideoFormat,
    framerate: gst::Fraction,
    /// One size for all, with the frames' pool; `None` where each image keeps its own.
    fixed: Option<(gst_video::VideoInfo, gst::BufferPool)>,
}

impl Output {
    /// What frames would be made as now: what the peer of `pad` takes. With `own_size` every image keeps its size, and that
    /// of the result says nothing.
    pub fn agree(
        pad: &gst::Pad,
        framerate: gst::Fraction,
        own_size: bool,
    ) -> Result<gst_video::VideoInfo, glib::BoolError> {
        let template = pad.pad_template_caps();
        let mut caps = pad.peer_query_caps(Some(&template)).intersect(&template);
        if caps.is_empty() {
            return Err(glib::bool_error!(
                "the next element takes neither RGB nor BGR frames"
            ));
        }
        caps.truncate();
        {
            let caps = caps.make_mut();
            if let Some(fields) = caps.structure_mut(0) {
                if !own_size {
                    fields.fixate_field_nearest_int("width", DEFAULT_SIDE);
                    fields.fixate_field_nearest_int("height", DEFAULT_SIDE);
                }
                fields.fixate_field_str("format", "RGB");
                if fields.has_field("framerate") {
                    fields.fixate_field_nearest_fraction("framerate", framerate);
                } else {
                    fields.set("framerate", framerate);
                }
            }
        }
        caps.fixate();
        gst_video::VideoInfo::from_caps(&caps)
    }

    /// Agrees with the peer of `pad`, and makes ready for its frames; see [`Output::agree`].
    pub fn negotiate(
        pad: &gst::Pad,
        framerate: gst::Fraction,
        own_size: bool,
    ) -> Result<Self, glib::BoolError> {
        let info = Self::agree(pad, framerate, own_size)?;
        let fixed = if own_size {
            None
        } else {
            let pool = gst::BufferPool::new();
            let mut config = pool.config();
            let size = u32::try_from(info.size())
                .map_err(|_| glib::bool_error!("frames of {} bytes", info.size()))?;
            // No maximum: how many are in flight is bounded by this element's queue and by downstream.
            config.set_params(Some(&info.to_caps()?), size, 0, 0);
            pool.set_config(config)?;
            pool.set_active(true)?;
            Some((info.clone(), pool))
        };
        Ok(Self {
            format: info.format(),
            framerate: info.fps(),
            fixed,
        })
    }

    /// Format and size, where that is one for all: what the pixels depend on.
    pub fn shape(&self) -> Shape {
        let size = self.fixed.as_ref().map(|(info, _)| (info.width(), info.height()));
        (self.format, size)
    }

    /// Whether frames are made as one that `info` describes was.
    pub fn makes(&self, info: &gst_video::VideoInfo) -> bool {
        match &self.fixed {
            Some((fixed, _)) => fixed == info,
            None => info.format() == self.format && info.fps() == self.framerate,
        }
    }

    /// The place in `frames` of the next frame in the order of delivery. Without one, [`frame`](Self::frame) makes it when it is
    /// decoded: the bytes are the same, the packer copies once more.
    pub fn reserve(&self, frames: &FrameAllocator) -> Option<gst::Buffer> {
        let (info, _) = self.fixed.as_ref()?;
        let memory = frames.alloc(info.size(), None).ok()?;
        let mut frame = gst::Buffer::new();
        frame.make_mut().append_memory(memory);
        Some(frame)
    }

    /// Format and size of what [`reserve`](Self::reserve) gave.
    pub fn reserved(&self) -> Option<&gst_video::VideoInfo> {
        self.fixed.as_ref().map(|(info, _)| info)
    }

    /// A frame for an image of `size`.
    pub fn frame(&self, size: (u32, u32)) -> Result<(gst::Buffer, gst_video::VideoInfo), glib::BoolError> {
        match &self.fixed {
            Some((info, pool)) => {
                let frame = pool
                    .acquire_buffer(None)
                    .map_err(|flow| glib::bool_error!("no frame to write to: {flow}"))?;
                Ok((frame, info.clone()))
            }
            None => {
                let info = gst_video::VideoInfo::builder(self.format, size.0, size.1)
                    .fps(self.framerate)
                    .build()?;
                Ok((gst::Buffer::with_size(info.size())?, info))
            }
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some((_, pool)) = &self.fixed {
            // Frees the frames that are not in use; those that are go when they are released.
            let _ = pool.set_active(false);
        }
    }
}
