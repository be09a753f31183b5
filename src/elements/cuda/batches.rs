//! Batches in device memory as GStreamer memory.
//!
//! Mapped for reading, a batch is copied to the host, once for all who map it at a time: a sink that knows nothing of GPUs
//! gets its bytes. Mapped with GStreamer's flag for CUDA (`GST_MAP_CUDA`, `GST_MAP_FLAG_LAST << 1`), it gives its device
//! address, when it is written. A consumer in Rust has [`device_memory`], and need not wait.
//!
//! Lock order: `host` of a memory, then `spare`; `failure` is taken alone.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use glib::subclass::prelude::*;
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::super::util::lock;
use crate::cuda::{CudaError, DeviceMemory, PinnedMemory, Stream};

/// The caps feature of batches in device memory.
pub const BATCH_FEATURE: &str = "memory:EpochfeedCUDA";

/// Tensors wherever they are, those in device memory first.
pub(crate) fn batch_caps() -> gst::Caps {
    let mut caps = gst::Caps::builder("other/tensors")
        .features([BATCH_FEATURE])
        .build();
    caps.merge(gst::Caps::new_empty_simple("other/tensors"));
    caps
}

/// The type of the memory, as `gst_memory_is_type` takes it.
pub(crate) const MEMORY_TYPE: &glib::GStr = glib::gstr!("EpochfeedCUDA");

/// Asks for the device address, as GStreamer's CUDA library does.
const MAP_CUDA: gst::ffi::GstMapFlags = gst::ffi::GST_MAP_FLAG_LAST << 1;

/// Host copies that are kept for the next one who maps a batch.
const SPARE: usize = 2;

/// What the memories of an allocator share, and may outlive it with.
#[derive(Debug)]
struct Shared {
    /// What batches are written on; memory is made and freed in its order.
    write: Stream,
    /// What they are copied to the host on, beside later batches.
    read: Stream,
    spare: Mutex<Vec<PinnedMemory>>,
    failure: Mutex<Option<CudaError>>,
}

/// A batch's memory. GStreamer's part comes first, as its users cast to it.
#[repr(C)]
struct BatchMemory {
    memory: gst::ffi::GstMemory,
    device: DeviceMemory,
    host: Mutex<Host>,
    shared: Arc<Shared>,
}

/// The copy on the host, while the batch is mapped.
#[derive(Default)]
struct Host {
    copy: Option<PinnedMemory>,
    maps: usize,
}

mod imp {
    use super::*;

    #[derive(Default)]
    pub struct BatchAllocator {
        pub(super) shared: OnceLock<Arc<Shared>>,
    }

    #[glib::object_subclass]
    impl ObjectSubclass for BatchAllocator {
        const NAME: &'static str = "EpochfeedCudaBatchAllocator";
        type Type = super::BatchAllocator;
        type ParentType = gst::Allocator;
    }

    impl ObjectImpl for BatchAllocator {
        fn constructed(&self) {
            self.parent_constructed();
            let allocator: *mut gst::ffi::GstAllocator = self.obj().upcast_ref::<gst::Allocator>().as_ptr();
            // SAFETY: the object is being made, and nobody else has it. CUSTOM_ALLOC: copies (for someone who wants to
            // write) go to ordinary memory.
            unsafe {
                (*allocator).object.flags |= gst::ffi::GST_ALLOCATOR_FLAG_CUSTOM_ALLOC;
                (*allocator).mem_type = MEMORY_TYPE.as_ptr();
                (*allocator).mem_map_full = Some(map);
                (*allocator).mem_unmap_full = Some(unmap);
            }
        }
    }

    impl GstObjectImpl for BatchAllocator {}

    // SAFETY: `alloc` returns null or a memory that `free` frees, as GStreamer asks.
    unsafe impl AllocatorImpl for BatchAllocator {
        unsafe fn alloc(&self, size: usize, _: &gst::AllocationParams) -> *mut gst::ffi::GstMemory {
            let Some(shared) = self.shared.get() else {
                return std::ptr::null_mut();
            };
            let device = match DeviceMemory::new(&shared.write, size) {
                Ok(device) => device,
                Err(error) => {
                    *lock(&shared.failure) = Some(error);
                    return std::ptr::null_mut();
                }
            };
            let memory = Box::into_raw(Box::new(BatchMemory {
                // SAFETY: all zeros are a valid GstMemory for gst_memory_init.
                memory: unsafe { std::mem::zeroed() },
                device,
                host: Mutex::default(),
                shared: shared.clone(),
            }));
            // SAFETY: GstMemory is the first field of a fresh #[repr(C)] struct. READONLY: who maps it for writing gets a
            // copy in ordinary memory. NO_SHARE: a part of it cannot be made without a copy.
            unsafe {
                gst::ffi::gst_memory_init(
                    memory.cast(),
                    gst::ffi::GST_MEMORY_FLAG_READONLY | gst::ffi::GST_MEMORY_FLAG_NO_SHARE,
                    self.obj().upcast_ref::<gst::Allocator>().as_ptr(),
                    std::ptr::null_mut(),
                    size,
                    0,
                    0,
                    size,
                );
            }
            memory.cast()
        }

        unsafe fn free(&self, memory: *mut gst::ffi::GstMemory) {
            // SAFETY: made by `alloc`, and this is its last use.
            drop(unsafe { Box::from_raw(memory.cast::<BatchMemory>()) });
        }
    }
}

glib::wrapper! {
    /// Makes batches in the memory of one device.
    pub struct BatchAllocator(ObjectSubclass<imp::BatchAllocator>) @extends gst::Allocator, gst::Object;
}

impl BatchAllocator {
    /// For batches that are written on `stream`.
    ///
    /// # Errors
    /// [`CudaError`]: no stream can be had.
    pub fn new(stream: &Stream) -> Result<Self, CudaError> {
        let allocator: Self = glib::Object::new();
        let shared = Shared {
            write: stream.clone(),
            read: Stream::new(stream.device())?,
            spare: Mutex::default(),
            failure: Mutex::default(),
        };
        allocator.imp().shared.get_or_init(|| Arc::new(shared));
        Ok(allocator)
    }

    /// Why the last allocation that failed did.
    pub fn take_failure(&self) -> Option<CudaError> {
        lock(&self.imp().shared.get()?.failure).take()
    }
}

/// The device memory of a batch; `None` for any other memory.
///
/// Queue what reads it between [`begin_read`](DeviceMemory::begin_read) and [`end_read`](DeviceMemory::end_read): then it is written
/// before, and not written again until that is done, although nobody waits.
pub fn device_memory(memory: &gst::MemoryRef) -> Option<&DeviceMemory> {
    let allocator = memory.allocator()?;
    if allocator.type_() != BatchAllocator::static_type() {
        return None;
    }
    // SAFETY: memory of this allocator is a BatchMemory, which lives as long as the reference.
    Some(unsafe { &(*memory.as_ptr().cast::<BatchMemory>()).device })
}

impl BatchMemory {
    /// The bytes on the host, copied by the first who asks.
    fn map_host(&self) -> Result<*mut u8, CudaError> {
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = match host.copy.take() {
            Some(copy) => copy,
            None => {
                let bytes = self.device.len();
                let spare = {
                    let mut spare = lock(&self.shared.spare);
                    let found = spare.iter().position(|copy| copy.len() >= bytes);
                    found.map(|place| spare.swap_remove(place))
                };
                let mut copy = match spare {
                    Some(copy) => copy,
                    None => PinnedMemory::new(self.device.device(), bytes)?,
                };
                self.device.read(&mut copy, &self.shared.read)?;
                copy
            }
        };
        let data = copy.as_ptr();
        host.copy = Some(copy);
        host.maps += 1;
        Ok(data)
    }

    fn unmap_host(&self) {
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        host.maps = host.maps.saturating_sub(1);
        if host.maps == 0
            && let Some(copy) = host.copy.take()
        {
            let mut spare = lock(&self.shared.spare);
            if spare.len() < SPARE {
                spare.push(copy);
            }
        }
    }

    /// The device address, when the batch is written.
    fn map_device(&self) -> Result<*mut u8, CudaError> {
        if let Some(written) = self.device.written() {
            written.synchronize()?;
        }
        Ok(self.device.pointer() as *mut u8)
    }
}

unsafe extern "C" fn map(
    memory: *mut gst::ffi::GstMemory,
    info: *mut gst::ffi::GstMapInfo,
    _maxsize: usize,
) -> glib::ffi::gpointer {
    // SAFETY: GStreamer calls this with a memory of this allocator and the map's description.
    let (memory, flags) = unsafe { (&*memory.cast::<BatchMemory>(), (*info).flags) };
    let mapped = if flags & MAP_CUDA != 0 {
        memory.map_device()
    } else {
        memory.map_host()
    };
    match mapped {
        Ok(data) => data.cast(),
        Err(error) => {
            gst::error!(gst::CAT_RUST, "Cannot map a batch: {error}");
            std::ptr::null_mut()
        }
    }
}

unsafe extern "C" fn unmap(memory: *mut gst::ffi::GstMemory, info: *mut gst::ffi::GstMapInfo) {
    // SAFETY: as in `map`.
    let (memory, flags) = unsafe { (&*memory.cast::<BatchMemory>(), (*info).flags) };
    if flags & MAP_CUDA == 0 {
        memory.unmap_host();
    }
}
