//! One batch, as the trainer sees it.

use std::path::PathBuf;
use std::sync::Arc;

use half::{bf16, f16};
use once_cell::sync::OnceCell;

use super::device::DeviceBatch;
use super::error::FeedError;
use super::tensor::Tensor;
use crate::color::Gains;
use crate::dataset::parse_location;
use crate::elements::cuda::device_memory;
use crate::elements::meta::BatchMeta;
use crate::tensor::{Dtype, Layout};

/// One sample of a batch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sample {
    /// Position in this rank's order of the epoch, from 0.
    pub index: u64,
    /// Position in the dataset, from 0.
    pub dataset_index: u64,
    /// `file://` URI, percent-encoded: paths are bytes. [`Sample::path`] decodes it.
    pub uri: String,
    /// The jitter that the pixels have; zero where there is none.
    pub gains: Gains,
    /// Repeated so that ranks or batches are equally long; not counted as delivered.
    pub pad: bool,
    /// Index in the dataset of the faulty sample whose place this one takes.
    pub replaced_from: Option<u64>,
    /// Width of the image before it was fitted into the frame, turned as it is there: by what
    /// [`orientation`](super::Builder::orientation) comes to for it.
    pub source_width: u32,
    /// Height, likewise.
    pub source_height: u32,
    /// What the dataset's annotation adds, where there is one.
    pub annotated: Option<Annotated>,
}

/// What is known of a sample that has an annotation.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Annotated {
    /// COCO's id of the image; where the format has none, its index in the dataset.
    pub image_id: i64,
    /// Pixels of the frame for a pixel of the image, horizontally and vertically.
    pub scale: [f64; 2],
    /// Pixels of the frame left of the image and above it. With `scale` it leads from predictions back to the image.
    pub pad: [u32; 2],
}

impl Sample {
    /// The one at `place` of a batch; `None` where the meta does not say all of it.
    fn of(meta: &BatchMeta, place: usize) -> Option<Self> {
        let [hue, saturation, value] = *meta.gains.get(place)?;
        Some(Self {
            index: *meta.index.get(place)?,
            dataset_index: *meta.dataset_index.get(place)?,
            uri: meta.uri.get(place)?.clone(),
            gains: Gains {
                hue,
                saturation,
                value,
            },
            pad: *meta.pad.get(place)?,
            replaced_from: u64::try_from(*meta.replaced_from.get(place)?).ok(),
            source_width: *meta.source_width.get(place)?,
            source_height: *meta.source_height.get(place)?,
            annotated: meta.targets.as_ref().and_then(|targets| {
                let fitted = targets.fitted.get(place)?;
                Some(Annotated {
                    image_id: *targets.image_id.get(place)?,
                    scale: fitted.scale,
                    pad: fitted.pad,
                })
            }),
        })
    }

    /// The file.
    pub fn path(&self) -> Option<PathBuf> {
        parse_location(&self.uri).ok()
    }
}

/// A batch of samples: a contiguous tensor and what is in it.
///
/// The values are the stream's own memory, not a copy, and are looked at when they are first asked for. It goes back to the
/// pipeline's pool when the batch is dropped; a batch may be kept, sent to other threads, and outlive its
/// [`Feed`](super::Feed).
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use epochfeed::Feed;
/// # let photos = concat!(env!("CARGO_MANIFEST_DIR"), "/data/photos");
///
/// let feed = Feed::builder(photos).size(64, 48).batch_size(4).build()?;
/// let mut epoch = feed.epochs().next().ok_or("no epoch")??;
/// let batch = epoch.next().ok_or("no batch")??;
/// assert_eq!((batch.shape(), batch.strides()), (&[4, 48, 64, 3], [48 * 64 * 3, 64 * 3, 3, 1]));
/// let values = batch.as_f32()?; // float32 is the default
/// assert!(values.iter().all(|value| (0.0..=1.0).contains(value)));
/// assert_eq!(batch.samples().len(), 4);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Batch {
    /// Before the buffer, of which it is a view.
    map: OnceCell<gst::buffer::MappedBuffer<gst::buffer::Readable>>,
    /// Not mapped before its bytes are asked for: where it is device memory, mapping copies it to the host.
    buffer: gst::Buffer,
    tensor: Arc<Tensor>,
    epoch: u64,
    number: u64,
    prepared: bool,
    samples: Vec<Sample>,
    targets: Option<Vec<[f32; 6]>>,
    state: String,
}

impl Batch {
    /// The batch in `buffer`, which `meta` describes.
    pub(super) fn new(buffer: gst::Buffer, tensor: Arc<Tensor>, meta: BatchMeta) -> Result<Self, FeedError> {
        let failed = |reason: String| FeedError::Batch { reason };
        if tensor.bytes() != Some(buffer.size()) {
            return Err(failed(format!(
                "its caps say {tensor:?}, but it has {} bytes",
                buffer.size()
            )));
        }
        let samples: Vec<_> = (0..meta.index.len())
            .map_while(|place| Sample::of(&meta, place))
            .collect();
        if samples.len() != tensor.shape[0] {
            return Err(failed(format!(
                "it has {} samples, but its meta epochfeed-batch names {}",
                tensor.shape[0],
                samples.len()
            )));
        }
        Ok(Self {
            map: OnceCell::new(),
            buffer,
            tensor,
            epoch: meta.epoch,
            number: meta.batch,
            prepared: meta.prepared,
            samples,
            targets: meta.targets.map(|targets| targets.rows),
            state: meta.state,
        })
    }

    /// Samples, height, width, channels; with [`Layout::Nchw`] samples, channels, height, width.
    pub fn shape(&self) -> &[usize; 4] {
        &self.tensor.shape
    }

    /// Elements (not bytes) from one index to the next, for each axis of [`shape`](Batch::shape). There are no gaps.
    pub fn strides(&self) -> [usize; 4] {
        self.tensor.strides()
    }

    /// Type of the elements.
    pub fn dtype(&self) -> Dtype {
        self.tensor.dtype
    }

    /// Order of the axes.
    pub fn layout(&self) -> Layout {
        self.tensor.layout
    }

    /// Where the values lie on a GPU; `None` if they are on the host. See [`Builder::device`](super::Builder::device).
    pub fn device(&self) -> Option<DeviceBatch<'_>> {
        let memory = (self.buffer.n_memory() == 1).then(|| self.buffer.peek_memory(0))?;
        device_memory(memory).map(DeviceBatch::new)
    }

    /// The elements as bytes, in this machine's order. The first call copies a batch in device memory to the host, waiting for
    /// it; asking again, on whatever thread, gives the same slice at no cost.
    ///
    /// # Errors
    /// [`FeedError::Unreadable`] where the memory cannot be read by the host. A later call tries again.
    pub fn as_bytes(&self) -> Result<&[u8], FeedError> {
        let map = self.map.get_or_try_init(|| {
            let mapped = self.buffer.clone().into_mapped_buffer_readable();
            mapped.map_err(|buffer| FeedError::Unreadable {
                reason: format!("{buffer:?} cannot be mapped for reading"),
            })
        });
        map.map(|map| map.as_slice())
    }

    /// The elements, if they are float32.
    ///
    /// # Errors
    /// [`FeedError::Dtype`] if they are not; otherwise as [`Batch::as_bytes`].
    pub fn as_f32(&self) -> Result<&[f32], FeedError> {
        self.view(Dtype::Float32)
    }

    /// The elements, if they are uint8.
    ///
    /// # Errors
    /// As [`Batch::as_f32`].
    pub fn as_u8(&self) -> Result<&[u8], FeedError> {
        self.view(Dtype::Uint8)
    }

    /// The elements, if they are float16.
    ///
    /// # Errors
    /// As [`Batch::as_f32`].
    pub fn as_f16(&self) -> Result<&[f16], FeedError> {
        self.view(Dtype::Float16)
    }

    /// The elements, if they are bfloat16.
    ///
    /// # Errors
    /// As [`Batch::as_f32`].
    pub fn as_bf16(&self) -> Result<&[bf16], FeedError> {
        self.view(Dtype::Bfloat16)
    }

    /// The samples, in the order of the first axis.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The boxes, one row each, in Ultralytics' order: which sample of this batch, class, centre x, centre y, width and height,
    /// the last four as fractions of the frame. They stay with their sample: one that stands in for a faulty one, or fills up
    /// a batch, has its own. `None` for a dataset without annotations.
    pub fn targets(&self) -> Option<&[[f32; 6]]> {
        self.targets.as_deref()
    }

    /// The state behind this batch, as JSON: a feed built with [`resume`](super::Builder::resume) of it begins with the
    /// batch that comes next. This is what belongs into a checkpoint that was made after training on this batch.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Number of the epoch, from 0.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Number of the batch among those of this epoch that this feed was given, from 0.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether work on it had begun before its epoch was asked for.
    pub fn prepared(&self) -> bool {
        self.prepared
    }

    fn view<T: Plain>(&self, asked: Dtype) -> Result<&[T], FeedError> {
        let dtype = self.tensor.dtype;
        if dtype != asked {
            return Err(FeedError::Dtype { asked, dtype });
        }
        elements(self.as_bytes()?).ok_or_else(|| FeedError::Unreadable {
            reason: format!("its memory does not lie as {dtype} has to"),
        })
    }
}

/// Types of which every pattern of bits is a value.
///
/// # Safety
/// The type has neither padding nor invalid patterns.
unsafe trait Plain {}
// SAFETY: an integer.
unsafe impl Plain for u8 {}
// SAFETY: every pattern of 32 bits is a float.
unsafe impl Plain for f32 {}
// SAFETY: a transparent wrapper of u16.
unsafe impl Plain for f16 {}
// SAFETY: a transparent wrapper of u16.
unsafe impl Plain for bf16 {}

/// `bytes` as elements; `None` if they do not begin at a multiple of the type's alignment or end inside an element. (The
/// memory of GStreamer's allocators does; that of another one may not.)
fn elements<T: Plain>(bytes: &[u8]) -> Option<&[T]> {
    // SAFETY: every pattern of bits is a T, so the aligned middle is a slice of them.
    let (before, middle, behind) = unsafe { bytes.align_to::<T>() };
    (before.is_empty() && behind.is_empty()).then_some(middle)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn batch(shape: [usize; 4], dtype: Dtype, bytes: usize, samples: usize) -> Result<Batch, FeedError> {
        gst::init().unwrap();
        let contents = (0..bytes).map(|byte| byte as u8).collect::<Vec<_>>();
        batch_of(gst::Buffer::from_slice(contents), shape, dtype, samples)
    }

    fn batch_of(
        buffer: gst::Buffer,
        shape: [usize; 4],
        dtype: Dtype,
        samples: usize,
    ) -> Result<Batch, FeedError> {
        let tensor = Tensor {
            shape,
            dtype,
            layout: Layout::Nhwc,
        };
        let meta = BatchMeta {
            epoch: 3,
            batch: 2,
            index: vec![7; samples],
            dataset_index: vec![8; samples],
            uri: vec!["file:///a%20b".into(); samples],
            gains: vec![[0.5, 0.25, -1.0]; samples],
            pad: vec![true; samples],
            replaced_from: vec![-1; samples],
            source_width: vec![640; samples],
            source_height: vec![480; samples],
            ..BatchMeta::default()
        };
        Batch::new(buffer, Arc::new(tensor), meta)
    }

    #[test]
    fn elements_are_of_the_batchs_own_type_only() {
        let batch = batch([1, 1, 2, 3], Dtype::Float16, 12, 1).unwrap();
        assert_eq!(batch.as_f16().unwrap()[1], f16::from_bits(0x0302));
        let error = batch.as_f32().unwrap_err().to_string();
        assert!(error.contains("float32") && error.contains("float16"), "{error}");
        assert!(batch.as_bf16().is_err() && batch.as_u8().is_err());
        assert_eq!(batch.as_bytes().unwrap().len(), 12);
        let sample = &batch.samples()[0];
        assert_eq!(sample.path().unwrap(), std::path::Path::new("/a b"));
        assert_eq!((sample.replaced_from, sample.pad), (None, true));
        assert_eq!((batch.epoch(), batch.number()), (3, 2));
    }

    #[test]
    fn nothing_is_mapped_before_the_bytes_are_asked_for() {
        gst::init().unwrap();
        let memory = gst::Memory::from_mut_slice(vec![7u8; 3]);
        let mut buffer = gst::Buffer::new();
        buffer.get_mut().unwrap().append_memory(memory);
        let memory = buffer.peek_memory(0).as_mut_ptr();
        let mut info = std::mem::MaybeUninit::uninit();
        // Somebody writes: it cannot be read meanwhile.
        // SAFETY: `buffer`, and then the batch, keeps the memory alive until it is unmapped below.
        let writing = unsafe { gst::ffi::gst_memory_map(memory, info.as_mut_ptr(), gst::ffi::GST_MAP_WRITE) };
        assert_ne!(writing, glib::ffi::GFALSE);
        let batch = batch_of(buffer, [1, 1, 1, 3], Dtype::Uint8, 1).unwrap();
        let error = batch.as_u8().unwrap_err();
        assert!(matches!(error, FeedError::Unreadable { .. }), "{error}");
        // SAFETY: mapped above, by this function alone.
        unsafe { gst::ffi::gst_memory_unmap(memory, info.as_mut_ptr()) };
        assert_eq!(batch.as_u8().unwrap(), [7, 7, 7], "a failure is not kept");
    }

    #[test]
    fn all_threads_see_one_view() {
        gst::init().unwrap();
        // Of two memories, which are put together each time that they are mapped.
        let mut buffer = gst::Buffer::from_slice([1u8, 2, 3]);
        buffer.append(gst::Buffer::from_slice([4u8, 5, 6]));
        let batch = batch_of(buffer, [1, 1, 2, 3], Dtype::Uint8, 1).unwrap();
        let start = std::sync::Barrier::new(8);
        let ask = || {
            start.wait();
            batch.as_bytes().unwrap()
        };
        let views: Vec<&[u8]> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(views[0], [1, 2, 3, 4, 5, 6]);
        assert!(views.iter().all(|view| std::ptr::eq(*view, views[0])));
    }

    #[test]
    fn a_buffer_that_is_not_what_its_caps_say_is_an_error() {
        for (bytes, samples) in [(11, 1), (12, 2), (12, 0)] {
            let error = batch([1, 1, 2, 3], Dtype::Bfloat16, bytes, samples).unwrap_err();
            assert!(matches!(error, FeedError::Batch { .. }), "{error}");
        }
    }

    #[test]
    fn misaligned_bytes_are_not_elements() {
        let floats = [1.0f32, 2.0, 3.0];
        let bytes: Vec<u8> = floats.iter().flat_map(|float| float.to_ne_bytes()).collect();
        let at = bytes.as_ptr().align_offset(align_of::<f32>());
        assert!(at + 8 <= bytes.len());
        assert_eq!(elements::<f32>(&bytes[at..at + 8]).map(<[f32]>::len), Some(2));
        assert!(elements::<f32>(&bytes[at + 1..at + 5]).is_none());
        assert!(elements::<f32>(&bytes[at..at + 7]).is_none());
    }
}
