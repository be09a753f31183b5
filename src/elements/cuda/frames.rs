//! Frames in page-locked memory, side by side in the order in which they are asked for.
//!
//! A slab has room for the frames of a batch, and in front of them for their gains. It is used again when all its frames
//! are gone, never slot by slot: so the frames of a batch stay together whatever order they are released in.
//!
//! Lock order: `slabs` is taken alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use glib::subclass::prelude::*;
use glib::translate::{IntoGlibPtr, ToGlibPtr, mut_override};
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::super::util::lock;
use crate::cuda::{CudaError, Device, Packer, PinnedMemory};

/// From a frame to the next, so that each begins where kernels read at full speed.
const ALIGNMENT: usize = 256;

/// Room for the frames of a batch.
#[derive(Debug)]
struct Slab {
    memory: PinnedMemory,
    /// Bytes in front of the first slot.
    header: usize,
    header_used: AtomicBool,
    /// Bytes from a slot to the next.
    stride: usize,
    slots: usize,
}

impl Slab {
    fn slot(&self, index: usize) -> *mut u8 {
        // Inside of the memory: `index` is below `slots`, which all fit.
        self.memory
            .as_ptr()
            .wrapping_add(self.header + index * self.stride)
    }
}

/// One frame's place; the slab lives as long as it.
#[derive(Debug)]
pub(crate) struct Slot {
    slab: Arc<Slab>,
    index: usize,
    bytes: usize,
}

impl AsRef<[u8]> for Slot {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: initialised memory; each slot of a slab is handed out once until all are gone, so only this one
        // refers to its bytes. The GPU's copies only read, while the buffer is held and nobody writes.
        unsafe { std::slice::from_raw_parts(self.slab.slot(self.index), self.bytes) }
    }
}

impl AsMut<[u8]> for Slot {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.slab.slot(self.index), self.bytes) }
    }
}

/// The room in front of a slab's frames, while it is used.
#[derive(Debug)]
pub(crate) struct Header(Arc<Slab>);

impl Header {
    /// Where `bytes` bytes end at the first frame; `None` where that is more than there are.
    pub fn pointer(&self, bytes: usize) -> Option<*mut u8> {
        let before = self.0.header.checked_sub(bytes)?;
        Some(self.0.memory.as_ptr().wrapping_add(before))
    }
}

impl Drop for Header {
    fn drop(&mut self) {
        self.0.header_used.store(false, Ordering::Release);
    }
}

/// Where a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    slab: usize,
    index: usize,
}

impl Place {
    /// Whether this is right behind `before`.
    pub fn follows(self, before: Self) -> bool {
        self.slab == before.slab && self.index == before.index + 1
    }
}

#[derive(Debug)]
struct Slabs {
    all: Vec<Arc<Slab>>,
    /// The slab that is being handed out, and its next slot.
    current: Option<(Arc<Slab>, usize)>,
}

/// What an allocator is for.
#[derive(Debug)]
struct Setup {
    device: Arc<Device>,
    /// Frames of a slab.
    batch: usize,
}

mod imp {
    use super::*;

    pub struct FrameAllocator {
        pub(super) setup: OnceLock<Setup>,
        pub(super) slabs: Mutex<Slabs>,
    }

    impl Default for FrameAllocator {
        fn default() -> Self {
            Self {
                setup: OnceLock::new(),
                slabs: Mutex::new(Slabs {
                    all: Vec::new(),
                    current: None,
                }),
            }
        }
    }

    #[glib::object_subclass]
    impl ObjectSubclass for FrameAllocator {
        const NAME: &'static str = "EpochfeedPinnedFrameAllocator";
        type Type = super::FrameAllocator;
        type ParentType = gst::Allocator;
    }

    impl ObjectImpl for FrameAllocator {
        fn constructed(&self) {
            self.parent_constructed();
            let allocator: *mut gst::ffi::GstAllocator = self.obj().upcast_ref::<gst::Allocator>().as_ptr();
            // SAFETY: the object is being made, and nobody else has it. CUSTOM_ALLOC: what copies a frame does not want the
            // copy page-locked.
            unsafe { (*allocator).object.flags |= gst::ffi::GST_ALLOCATOR_FLAG_CUSTOM_ALLOC };
        }
    }

    impl GstObjectImpl for FrameAllocator {}

    // SAFETY: `alloc` returns null or a memory of the Rust allocator or of the default one, which free them.
    unsafe impl AllocatorImpl for FrameAllocator {
        unsafe fn alloc(&self, size: usize, params: &gst::AllocationParams) -> *mut gst::ffi::GstMemory {
            // Prefix and padding are for parsers; an alignment is given as its mask.
            if params.prefix() == 0 && params.padding() == 0 && params.align() < ALIGNMENT {
                match self.obj().slot(size) {
                    Ok(slot) => return gst::Memory::from_mut_slice(slot).into_glib_ptr(),
                    Err(error) => gst::warning!(gst::CAT_RUST, "No page-locked frame: {error}"),
                }
            }
            // Whoever makes frames goes on; the packer copies them, or says what it lacks for that.
            let params = params.to_glib_none().0;
            // SAFETY: null is the default allocator, and the parameters are read only.
            unsafe { gst::ffi::gst_allocator_alloc(std::ptr::null_mut(), size, mut_override(params)) }
        }
    }
}

glib::wrapper! {
    /// Makes frames in page-locked memory.
    pub struct FrameAllocator(ObjectSubclass<imp::FrameAllocator>) @extends gst::Allocator, gst::Object;
}

impl FrameAllocator {
    /// For batches of `batch` frames that go to `device`.
    pub fn new(device: &Arc<Device>, batch: usize) -> Self {
        let allocator: Self = glib::Object::new();
        let device = device.clone();
        allocator.imp().setup.get_or_init(|| Setup {
            device,
            batch: batch.max(1),
        });
        allocator
    }

    /// Bytes from a frame of `bytes` bytes to the next.
    pub(crate) fn stride(bytes: usize) -> usize {
        bytes.next_multiple_of(ALIGNMENT)
    }

    /// The next frame is the first of a batch: what is left of the slab is not used.
    pub(crate) fn begin_batch(&self) {
        let mut slabs = lock(&self.imp().slabs);
        if slabs.current.as_ref().is_some_and(|(_, next)| *next > 0) {
            slabs.current = None;
        }
    }

    /// Room for a frame of `bytes` bytes, behind the one before.
    pub(crate) fn slot(&self, bytes: usize) -> Result<Slot, CudaError> {
        let Some(setup) = self.imp().setup.get() else {
            return Err(CudaError::OutOfPinned {
                wanted: bytes,
                detail: "the allocator has no device".to_owned(),
            });
        };
        let stride = Self::stride(bytes);
        let mut slabs = lock(&self.imp().slabs);
        let fits = |(slab, next): &(Arc<Slab>, usize)| slab.stride == stride && *next < slab.slots;
        // Let go of first, as the slab that is full may be the one that is free.
        let (slab, index) = match slabs.current.take().filter(fits) {
            Some(place) => place,
            None => (slabs.take(setup, stride)?, 0),
        };
        slabs.current = Some((slab.clone(), index + 1));
        Ok(Slot { slab, index, bytes })
    }

    /// Where the frame of `bytes` bytes at `data` is, if it is one of these.
    pub(crate) fn place(&self, data: *const u8, bytes: usize) -> Option<Place> {
        let (address, stride) = (data.addr(), Self::stride(bytes));
        let slabs = lock(&self.imp().slabs);
        let mut alike = slabs.all.iter().filter(|slab| slab.stride == stride);
        alike.find_map(|slab| {
            let offset = address.checked_sub(slab.slot(0).addr())?;
            let index = offset / slab.stride;
            (offset % slab.stride == 0 && index < slab.slots).then(|| Place {
                slab: slab.memory.as_ptr().addr(),
                index,
            })
        })
    }

    /// The room in front of `first`, where that is a slab's first frame, and nobody uses it.
    pub(crate) fn header(&self, first: Place) -> Option<Header> {
        if first.index != 0 {
            return None;
        }
        let slabs = lock(&self.imp().slabs);
        let slab = slabs
            .all
            .iter()
            .find(|slab| slab.memory.as_ptr().addr() == first.slab)?;
        let free = !slab.header_used.swap(true, Ordering::Acquire);
        free.then(|| Header(slab.clone()))
    }
}

impl Slabs {
    /// A slab with no frame in it: one that has been used, or a new one.
    fn take(&mut self, setup: &Setup, stride: usize) -> Result<Arc<Slab>, CudaError> {
        // Nobody else refers to it, and what others did with it is done. New references are made under the lock only.
        let is_free = |slab: &mut Arc<Slab>| Arc::get_mut(slab).is_some();
        // Frames of another size will hardly come back.
        self.all
            .retain_mut(|slab| slab.stride == stride || !is_free(slab));
        let mut alike = self.all.iter_mut().filter(|slab| slab.stride == stride);
        if let Some(slab) = alike.find_map(|slab| is_free(slab).then_some(slab)) {
            return Ok(slab.clone());
        }
        let header = Packer::header_bytes(setup.batch);
        let bytes = stride
            .checked_mul(setup.batch)
            .and_then(|bytes| bytes.checked_add(header))
            .ok_or_else(|| CudaError::OutOfPinned {
                wanted: usize::MAX,
                detail: format!("{} frames of {stride} bytes", setup.batch),
            })?;
        let slab = Arc::new(Slab {
            memory: PinnedMemory::new(&setup.device, bytes)?,
            header,
            header_used: AtomicBool::new(false),
            stride,
            slots: setup.batch,
        });
        self.all.push(slab.clone());
        Ok(slab)
    }
}
