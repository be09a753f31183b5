//! Streams and events.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUevent_flags, CUevent_wait_flags, CUresult, CUstreamCaptureStatus};
use cudarc::driver::{CudaEvent, CudaStream, result};

use super::device::{Device, Restoring};
use super::error::CudaError;

/// Work of a device that is done in order.
#[derive(Clone, Debug)]
pub struct Stream {
    // Before the device, whose context it is in.
    stream: Arc<Restoring<Arc<CudaStream>>>,
    device: Arc<Device>,
}

/// A moment in a stream.
#[derive(Clone, Debug)]
pub struct Event {
    event: Arc<Restoring<CudaEvent>>,
    device: Arc<Device>,
}

impl Stream {
    /// A stream of its own, that does not wait for the default stream.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn new(device: &Arc<Device>) -> Result<Self, CudaError> {
        let _before = device.enter("making a stream")?;
        let stream = device
            .context
            .new_stream()
            .map_err(|error| device.error("making a stream", error))?;
        Ok(Self {
            stream: Arc::new(Restoring::new(stream)),
            device: device.clone(),
        })
    }

    /// A stream of another library: `stream` is its `CUstream` (a `cudaStream_t` is one; null is the default stream).
    ///
    /// # Safety
    /// `stream` is of `device`'s context and alive while the result and what is queued through it lives.
    pub unsafe fn borrow(device: &Arc<Device>, stream: *mut c_void) -> Self {
        // SAFETY: the caller keeps the stream alive; it is never destroyed from here.
        let stream = unsafe {
            device
                .context
                .wrap_borrowed_stream(stream.cast::<sys::CUstream_st>())
        };
        Self {
            stream: Arc::new(Restoring::new(stream)),
            device: device.clone(),
        }
    }

    /// Whose it is.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The `CUstream`, for other libraries; alive as long as this handle.
    pub fn raw(&self) -> *mut c_void {
        self.stream.cu_stream().cast()
    }

    pub(super) fn inner(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Marks where the stream's work is now.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn record(&self) -> Result<Event, CudaError> {
        self.record_with(CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    /// Marks where the stream's work is now, for a thread that waits for it: [`Event::synchronize`] sleeps, while for another
    /// event it would keep a core busy that others need.
    pub(super) fn record_for_host(&self) -> Result<Event, CudaError> {
        self.record_with(CUevent_flags::CU_EVENT_BLOCKING_SYNC)
    }

    /// Marks where the stream's work is now, for [`Event::elapsed_ms`].
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn record_timed(&self) -> Result<Event, CudaError> {
        self.record_with(CUevent_flags::CU_EVENT_DEFAULT)
    }

    fn record_with(&self, flags: CUevent_flags) -> Result<Event, CudaError> {
        let _before = self.device.enter("recording an event")?;
        let event = self
            .stream
            .record_event(Some(flags))
            .map_err(|error| self.device.error("recording an event", error))?;
        Ok(Event {
            event: Arc::new(Restoring::new(event)),
            device: self.device.clone(),
        })
    }

    /// Lets what is queued from now on wait for `event`, which may be another device's. The calling thread does not wait.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn wait(&self, event: &Event) -> Result<(), CudaError> {
        self.device.run("letting a stream wait", || {
            let (stream, event) = (self.stream.cu_stream(), event.event.cu_event());
            // SAFETY: both are alive as long as their handles.
            unsafe { result::stream::wait_event(stream, event, CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT) }
        })
    }

    /// Waits, on the calling thread, for all that was queued.
    ///
    /// # Errors
    /// [`CudaError::Driver`]: also for failures of what was queued.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.device.run("waiting for a stream", || {
            // SAFETY: the stream is alive as long as this handle.
            unsafe { result::stream::synchronize(self.stream.cu_stream()) }
        })
    }

    /// Whether the stream is being captured into a graph; of the default stream, whether it is locked by a capture of a stream
    /// that waits for it.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn is_capturing(&self) -> Result<bool, CudaError> {
        self.device.run("asking a stream for its capture", || {
            // SAFETY: the stream is alive as long as this handle.
            match unsafe { result::stream::is_capturing(self.stream.cu_stream()) } {
                Ok(status) => Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE),
                Err(error) if error.0 == CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT => Ok(true),
                Err(error) => Err(error),
            }
        })
    }
}

impl Event {
    /// Whether the moment is past.
    ///
    /// # Errors
    /// [`CudaError::Driver`]: also for failures of what was queued before it.
    pub fn is_done(&self) -> Result<bool, CudaError> {
        self.device
            .run("asking an event", || self.event.try_is_complete())
    }

    /// Waits for it on the calling thread.
    ///
    /// # Errors
    /// As [`Event::is_done`].
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.device.run("waiting for an event", || {
            // SAFETY: the event is alive as long as this handle.
            unsafe { result::event::synchronize(self.event.cu_event()) }
        })
    }

    /// Milliseconds from this event to `end`; waits for both. Both of [`Stream::record_timed`].
    ///
    /// # Errors
    /// [`CudaError::Driver`], also where the driver is older than CUDA 12.8, which this needs.
    pub fn elapsed_ms(&self, end: &Self) -> Result<f32, CudaError> {
        let mut version = 0;
        self.device.run("asking for the driver's version", || {
            // SAFETY: `version` is written only.
            unsafe { sys::cuDriverGetVersion(&mut version) }.result()
        })?;
        if version < 12_080 {
            // cudarc would panic over the missing function.
            return Err(CudaError::Driver {
                what: "timing",
                ordinal: self.device.ordinal(),
                detail: format!(
                    "the driver is for CUDA {}.{}, 12.8 is needed",
                    version / 1000,
                    version % 1000 / 10
                ),
            });
        }
        self.device.run("timing", || self.event.elapsed_ms(&end.event))
    }

    /// The `CUevent`, for other libraries; alive as long as this handle.
    pub fn raw(&self) -> *mut c_void {
        self.event.cu_event().cast()
    }
}
