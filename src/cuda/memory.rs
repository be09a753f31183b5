//! Device memory and page-locked host memory.
//!
//! Lock order: the lock of a [`DeviceMemory`] is taken alone.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::CU_MEMHOSTALLOC_PORTABLE;
use cudarc::driver::{CudaSlice, DevicePtr, result};

use super::device::{Device, Restoring};
use super::error::{CudaError, is_out_of_memory, words};
use super::stream::{Event, Stream};

/// Page-locked host memory: copies from and to it run beside the calling thread, and at the full speed of the bus.
#[derive(Debug)]
pub struct PinnedMemory {
    data: NonNull<u8>,
    bytes: usize,
    device: Arc<Device>,
}

// SAFETY: memory like any other; access is by the borrow rules or through raw pointers, whose users order theirs.
unsafe impl Send for PinnedMemory {}
// SAFETY: as above.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    /// `bytes` bytes (at least one), zeroed.
    ///
    /// # Errors
    /// [`CudaError::OutOfPinned`], [`CudaError::Driver`].
    pub fn new(device: &Arc<Device>, bytes: usize) -> Result<Self, CudaError> {
        let bytes = bytes.max(1);
        let _before = device.enter("allocating page-locked memory")?;
        // SAFETY: the result is zeroed before anyone sees it, and freed once, in Drop.
        let allocated = unsafe { result::malloc_host(bytes, CU_MEMHOSTALLOC_PORTABLE) };
        let data = allocated.map_err(|error| CudaError::OutOfPinned {
            wanted: bytes,
            detail: words(error),
        })?;
        let data = NonNull::new(data.cast::<u8>()).ok_or_else(|| CudaError::OutOfPinned {
            wanted: bytes,
            detail: "the driver gave no address".to_owned(),
        })?;
        // SAFETY: fresh memory of that many bytes. Written so that a slice of it is one of initialised bytes.
        unsafe { data.write_bytes(0, bytes) };
        Ok(Self {
            data,
            bytes,
            device: device.clone(),
        })
    }

    /// The first byte. Who reads or writes through it orders that with other users and with copies in flight.
    pub fn as_ptr(&self) -> *mut u8 {
        self.data.as_ptr()
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Never: there is at least one byte.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // Failures have nobody to be told to; a lost context has freed it already.
        let _ = self.device.run("freeing page-locked memory", || {
            // SAFETY: allocated in `new`, freed here only. Its users have let copies in flight end.
            unsafe { result::free_host(self.data.as_ptr().cast()) }
        });
    }
}

/// Device memory that knows who wrote and who reads it, so that streams are ordered without a thread that waits.
///
/// Allocated and freed in the order of a stream; a driver without memory pools does so at once.
#[derive(Debug)]
pub struct DeviceMemory {
    slice: Option<Restoring<CudaSlice<u8>>>,
    pointer: u64,
    bytes: usize,
    access: Mutex<Access>,
    /// What it is allocated and freed on.
    stream: Stream,
}

/// What is in flight.
#[derive(Debug, Default)]
struct Access {
    written: Option<Event>,
    read: Vec<Event>,
}

impl DeviceMemory {
    /// `bytes` bytes (at least one) with whatever was in them, usable by what is queued on `stream` from now on, and by
    /// others behind [`begin_write`](Self::begin_write).
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`] naming what is free, [`CudaError::Driver`].
    pub fn new(stream: &Stream, bytes: usize) -> Result<Self, CudaError> {
        let bytes = bytes.max(1);
        let device = stream.device();
        let _before = device.enter("allocating device memory")?;
        // SAFETY: bytes have no invalid values, and Rust never reads these.
        let slice = unsafe { stream.inner().alloc::<u8>(bytes) }.map_err(|error| {
            if is_out_of_memory(error) {
                let (free, total) = device.free_bytes().unwrap_or((0, 0));
                CudaError::OutOfMemory {
                    ordinal: device.ordinal(),
                    wanted: bytes,
                    free,
                    total,
                }
            } else {
                device.error("allocating device memory", error)
            }
        })?;
        let (pointer, synced) = slice.device_ptr(stream.inner());
        drop(synced);
        let written = stream.record()?;
        Ok(Self {
            slice: Some(Restoring::new(slice)),
            pointer,
            bytes,
            access: Mutex::new(Access {
                written: Some(written),
                read: Vec::new(),
            }),
            stream: stream.clone(),
        })
    }

    /// The `CUdeviceptr` of the first byte.
    pub fn pointer(&self) -> u64 {
        self.pointer
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Never: there is at least one byte.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Where it is.
    pub fn device(&self) -> &Arc<Device> {
        self.stream.device()
    }

    fn access(&self) -> MutexGuard<'_, Access> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets what is queued on `stream` from now on wait for all earlier users.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn begin_write(&self, stream: &Stream) -> Result<(), CudaError> {
        let mut access = self.access();
        for event in access.written.iter().chain(&access.read) {
            stream.wait(event)?;
        }
        access.read.clear();
        Ok(())
    }

    /// What was queued on `stream` so far has written it.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn end_write(&self, stream: &Stream) -> Result<(), CudaError> {
        let event = stream.record()?;
        self.access().written = Some(event);
        Ok(())
    }

    /// Lets what is queued on `stream` from now on wait until the memory is written. The calling thread does not wait.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn begin_read(&self, stream: &Stream) -> Result<(), CudaError> {
        let written = self.access().written.clone();
        written.map_or(Ok(()), |event| stream.wait(&event))
    }

    /// What was queued on `stream` so far reads it: it is not written, nor freed, before that is done.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn end_read(&self, stream: &Stream) -> Result<(), CudaError> {
        let event = stream.record()?;
        let mut access = self.access();
        // What is past holds nobody up; without this a memory that is read for ever would collect events.
        // One that cannot be asked may not be past.
        access.read.retain(|event| !event.is_done().unwrap_or(false));
        access.read.push(event);
        Ok(())
    }

    /// When it is written; `None` never is.
    pub fn written(&self) -> Option<Event> {
        self.access().written.clone()
    }

    /// Copies the first `to.len()` bytes, or all where those are fewer, to the host, and waits for that.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn read(&self, to: &mut PinnedMemory, stream: &Stream) -> Result<(), CudaError> {
        self.begin_read(stream)?;
        let bytes = to.len().min(self.bytes);
        // SAFETY: initialised bytes that nobody else uses while `to` is borrowed.
        let to = unsafe { std::slice::from_raw_parts_mut(to.as_ptr(), bytes) };
        self.device().run("copying to the host", || {
            // SAFETY: both are of at least that many bytes; the copy has ended when `to` is given back, below, or has
            // not begun where this fails.
            unsafe { result::memcpy_dtoh_async(to, self.pointer, stream.inner().cu_stream()) }
        })?;
        match stream.record_for_host() {
            Ok(copied) => copied.synchronize(),
            Err(error) => stream.synchronize().and(Err(error)),
        }
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // The stream frees in its order, so it is to wait for everybody's; where it cannot, this thread does. Where that fails
        // the context is lost, and its memory with it.
        let stream = self.stream.clone();
        if self.begin_write(&stream).is_err() {
            let access = self.access();
            for event in access.written.iter().chain(&access.read) {
                let _ = event.synchronize();
            }
        }
        let slice = self.slice.take();
        // The default stream is that of the current context, which cudarc does not see to here.
        let _ = self.device().run("freeing device memory", || {
            drop(slice);
            Ok(())
        });
    }
}
