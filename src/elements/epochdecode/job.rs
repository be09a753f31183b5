//! The work on one image, on a worker.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::super::coordinator::FrameKey;
use super::super::faults::Fault;
use super::super::file_memory;
use super::super::util::nanoseconds_since;
use super::cache::Cache;
use super::output::Output;
use super::queue::Queue;
use crate::decode::{self, BoxMap, ChannelOrder, DecodeOptions, Format, OrientationMode, Scratch, Target};

/// A decoded image.
#[derive(Clone, Debug)]
pub(super) struct Decoded {
    pub frame: gst::Buffer,
    pub info: gst_video::VideoInfo,
    /// The file's.
    pub format: Format,
    /// Where the image is in the frame, and boxes of it.
    pub boxes: Box<BoxMap>,
    /// Warnings of the decoder, and the first of them.
    pub warnings: u32,
    pub warning: Option<String>,
    /// The file ended early; what was there is in the frame.
    pub truncated: bool,
    /// It was not decoded now, but kept from an earlier epoch.
    pub cached: bool,
}

/// Makes sure that a job's place in the queue is filled whatever happens to the job: a job that panics or that is
/// discarded would otherwise be waited for without end.
struct Promise {
    queue: Arc<Queue>,
    number: u64,
    result: Option<Result<Decoded, Fault>>,
}

impl Drop for Promise {
    fn drop(&mut self) {
        let result = self.result.take().unwrap_or_else(|| {
            Err(Fault::internal(
                "the decoder failed inside (a bug; please report it)",
            ))
        });
        self.queue.finish(self.number, result);
    }
}

/// What a job works on.
pub(super) struct Task {
    pub encoded: gst::Buffer,
    /// The image's size as its annotation says, if it does.
    pub annotated: Option<(u32, u32)>,
    /// Where the frame goes; else it is one of `output`.
    pub reserved: Option<gst::Buffer>,
    pub options: Arc<DecodeOptions>,
    pub output: Arc<Output>,
    /// Where it is kept, and under which key.
    pub keep: Option<(Arc<Cache>, FrameKey)>,
    /// Nanoseconds that were spent decoding, over all threads.
    pub busy: Arc<AtomicU64>,
}

impl Task {
    fn run(self) -> Result<Decoded, Fault> {
        let (busy, start) = (self.busy.clone(), Instant::now());
        let result = self.decode();
        busy.fetch_add(nanoseconds_since(start), Ordering::Relaxed);
        result
    }

    fn decode(self) -> Result<Decoded, Fault> {
        // A place among those of a batch cannot be held beyond it.
        let borrowed = self.reserved.is_some();
        let decoded = decode(
            &self.encoded,
            self.annotated,
            self.reserved,
            &self.options,
            &self.output,
        )?;
        if let Some((cache, key)) = self.keep {
            if !borrowed {
                cache.put(key, &decoded);
            } else if let Ok(frame) = decoded.frame.copy_deep() {
                let kept = Decoded {
                    frame,
                    warning: None,
                    ..decoded.clone()
                };
                cache.put(key, &kept);
            }
        }
        Ok(decoded)
    }
}

/// The job of the entry `number`.
pub(super) fn job(queue: Arc<Queue>, number: u64, task: Task) -> impl FnOnce() + Send + 'static {
    let promise = Promise {
        queue,
        number,
        result: None,
    };
    move || {
        // Whole, not field by field: its Drop is the point.
        let mut promise = promise;
        let result = if promise.queue.wants(promise.number) {
            task.run()
        } else {
            drop(task);
            Err(Fault::internal("not wanted any more"))
        };
        promise.result = Some(result);
        drop(promise);
    }
}

/// Images with more pixels leave no buffers behind on the worker: one panorama must not hold memory for ever.
const KEEP_BELOW_PIXELS: u64 = 1 << 24;

thread_local! {
    /// A worker's buffers, kept from one image to the next.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Decodes `encoded`, whose annotation says that its size is `annotated`, as `options` say into `reserved`, or into a frame of
/// `output`.
pub(super) fn decode(
    encoded: &gst::BufferRef,
    annotated: Option<(u32, u32)>,
    reserved: Option<gst::Buffer>,
    options: &DecodeOptions,
    output: &Output,
) -> Result<Decoded, Fault> {
    let bytes = encoded
        .map_readable()
        .map_err(|error| file_memory::fault(encoded).unwrap_or_else(|| Fault::internal(error)))?;
    let header = decode::probe(&bytes, options)?;
    let orientation = match options.orientation {
        OrientationMode::Match => decode::match_orientation(&header, annotated)?,
        orientation => orientation,
    };
    let options = &DecodeOptions {
        orientation,
        ..options.clone()
    };
    let source = header.oriented_size(orientation);
    let (mut frame, info) = match reserved.zip(output.reserved()) {
        Some((frame, info)) => (frame, info.clone()),
        None => output.frame(source).map_err(Fault::internal)?,
    };
    let outcome = {
        let frame = frame.make_mut();
        let mut map =
            gst_video::VideoFrameRef::from_buffer_ref_writable(frame, &info).map_err(Fault::internal)?;
        let stride = usize::try_from(info.stride()[0]).map_err(Fault::internal)?;
        let order = match info.format() {
            gst_video::VideoFormat::Bgr => ChannelOrder::Bgr,
            _ => ChannelOrder::Rgb,
        };
        let data = map.plane_data_mut(0).map_err(Fault::internal)?;
        let mut target = Target {
            data,
            stride,
            width: info.width(),
            height: info.height(),
            order,
        };
        SCRATCH.with_borrow_mut(|scratch| {
            let outcome = decode::decode_into(&bytes, &header, options, &mut target, scratch);
            if u64::from(header.width) * u64::from(header.height) > KEEP_BELOW_PIXELS {
                *scratch = Scratch::default();
            }
            outcome
        })?
    };
    Ok(Decoded {
        frame,
        info,
        format: header.format,
        boxes: Box::new(BoxMap::new(&header, orientation, outcome.placement, annotated)),
        warnings: outcome.warnings,
        warning: outcome.warning,
        truncated: outcome.truncated,
        cached: false,
    })
}
