use std::sync::Arc;

use super::super::meta::BoxesMeta;
use super::SampleMeta;

/// A sample's place in the stream: who is there, and when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The sample. Where the source is not epochsrc, only `index` and `dataset_index` say something: the number of
    /// the frame.
    pub sample: SampleMeta,
    /// The sample's boxes, if there is an annotation: of the image where it is encoded, of the frame where it is decoded.
    pub boxes: Option<Arc<BoxesMeta>>,
    /// Whether the sample came with its meta from upstream, and goes on with it.
    pub stamped: bool,
    /// Presentation time.
    pub pts: Option<gst::ClockTime>,
    /// Duration.
    pub duration: Option<gst::ClockTime>,
    /// GST_BUFFER_OFFSET.
    pub offset: u64,
}

impl Place {
    /// Width and height of the image as its annotation says, if it does.
    pub fn annotated(&self) -> Option<(u32, u32)> {
        self.boxes.as_ref()?.size
    }

    /// The place of `buffer`, the `number`-th of its stream.
    pub fn of(buffer: &gst::BufferRef, number: u64) -> Self {
        let sample = SampleMeta::get(buffer);
        let boxes = BoxesMeta::get(buffer).map(Arc::new);
        let stamped = sample.is_some();
        let mut sample = sample.unwrap_or_else(|| SampleMeta {
            index: number,
            dataset_index: number,
            replaced_from: -1,
            ..SampleMeta::default()
        });
        sample.annotated |= boxes.is_some();
        Self {
            stamped,
            sample,
            boxes,
            pts: buffer.pts(),
            duration: buffer.duration(),
            offset: buffer.offset(),
        }
    }

    /// Puts `buffer` in this place.
    ///
    /// # Errors
    /// If the meta is not registered.
    pub fn stamp(&self, buffer: &mut gst::BufferRef) -> Result<(), glib::BoolError> {
        buffer.set_pts(self.pts);
        buffer.set_dts(gst::ClockTime::NONE);
        buffer.set_duration(self.duration);
        buffer.set_offset(self.offset);
        buffer.set_offset_end(if self.offset == gst::ffi::GST_BUFFER_OFFSET_NONE {
            self.offset
        } else {
            self.offset + 1
        });
        if let Some(boxes) = &self.boxes {
            boxes.set(buffer)?;
        }
        if self.stamped {
            self.sample.set(buffer)
        } else {
            Ok(())
        }
    }
}
