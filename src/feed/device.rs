//! A batch that lies on a GPU.

use std::sync::Arc;

use crate::cuda::{CudaError, Device, DeviceMemory, Stream};

/// Where a batch lies on a GPU; made by [`Batch::device`](super::Batch::device).
///
/// The batch may still be in the making when it is taken, and its memory is used again, or freed, when it is dropped. Both are
/// ordered on the device, without a thread that waits: [`DeviceBatch::read_on`] queues a consumer's work on the consumer's
/// stream behind the making, and the memory waits for that work, even if the batch is dropped at once.
///
/// ```
/// use std::ffi::c_void;
///
/// use epochfeed::cuda::{CudaError, Stream};
/// use epochfeed::Batch;
///
/// /// Queues a step of the training on `stream`, a `CUstream` (a `cudaStream_t` is one).
/// ///
/// /// # Safety
/// /// `stream` is a stream of the batch's device, in its primary context.
/// unsafe fn train(batch: Batch, stream: *mut c_void) -> Result<(), CudaError> {
///     let Some(values) = batch.device() else {
///         return Ok(()); // as_f32() has it on the host
///     };
///     // SAFETY: the caller's promise.
///     let stream = unsafe { Stream::borrow(values.device(), stream) };
///     values.read_on(&stream, |pointer| {
///         // launch what reads values.bytes() bytes at `pointer`
///         # let _ = pointer;
///     })
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DeviceBatch<'a> {
    memory: &'a DeviceMemory,
}

/// Work that is being queued. The memory has to wait for it also where queueing panics half-way.
struct Reading<'a> {
    memory: &'a DeviceMemory,
    stream: &'a Stream,
}

impl Reading<'_> {
    fn note(&self) -> Result<(), CudaError> {
        // What cannot be marked has to be waited for; where neither works the context is lost, and its memory with it.
        self.memory
            .end_read(self.stream)
            .or_else(|_| self.stream.synchronize())
    }

    fn end(self) -> Result<(), CudaError> {
        let result = self.note();
        // Two references: nothing is lost with them.
        std::mem::forget(self);
        result
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let _ = self.note();
    }
}

impl<'a> DeviceBatch<'a> {
    pub(super) fn new(memory: &'a DeviceMemory) -> Self {
        Self { memory }
    }

    /// The device, in whose primary context the memory is.
    pub fn device(&self) -> &'a Arc<Device> {
        self.memory.device()
    }

    /// The device's number, as in `cuda:N`.
    pub fn ordinal(&self) -> usize {
        self.device().ordinal()
    }

    /// The `CUdeviceptr` of the first element, valid as long as the batch. What is there may still be in the making: see
    /// [`DeviceBatch::read_on`] and [`DeviceBatch::wait`].
    pub fn pointer(&self) -> u64 {
        self.memory.pointer()
    }

    /// Bytes at the pointer.
    pub fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// Has `queue` put work on `stream` that reads the batch at the pointer it is given: behind the batch's making, and before
    /// its memory is used for anything else, even if the batch is dropped before the work is done. The calling thread does
    /// not wait. What `queue` puts on other streams has to be ordered with `stream` there.
    ///
    /// # Errors
    /// [`CudaError::Driver`]; before `queue` was called where the stream cannot wait or is being captured (the graph, which is
    /// not spoilt by the question, would read the memory again when it is another batch's), else after it, for failures of the
    /// device.
    pub fn read_on<T>(&self, stream: &Stream, queue: impl FnOnce(u64) -> T) -> Result<T, CudaError> {
        if stream.is_capturing()? {
            return Err(CudaError::Driver {
                what: "reading a batch",
                ordinal: stream.device().ordinal(),
                detail: "the stream is being captured into a graph; copy the batch to memory of the graph's before that"
                    .to_owned(),
            });
        }
        self.memory.begin_read(stream)?;
        let reading = Reading {
            memory: self.memory,
            stream,
        };
        let queued = queue(self.memory.pointer());
        reading.end()?;
        Ok(queued)
    }

    /// Waits, on the calling thread, until the batch is made: for a consumer that has no stream to order. Such a consumer
    /// keeps the batch until it has read it.
    ///
    /// # Errors
    /// [`CudaError::Driver`]: also for failures of the making.
    pub fn wait(&self) -> Result<(), CudaError> {
        self.memory
            .written()
            .map_or(Ok(()), |written| written.synchronize())
    }
}
