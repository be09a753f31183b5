//! A file as GStreamer memory: read by the first who maps it, and not at all if nobody does.
//!
//! epochsrc makes it of files whose frames are kept (`epochdecode cache=ram`). The element that keeps the frame does not look;
//! whoever else gets the buffer, by a tee or a probe, finds the file's bytes as ever.
//!
//! Lock order: `state`, held while the file is read, so that it is read once; `read` is called under it.

use std::sync::Mutex;

use glib::subclass::prelude::*;
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::faults::{Class, Fault};
use super::util::lock;
use crate::dataset::ClosedSample;

/// Told of how many bytes were read.
type Read = Box<dyn Fn(u64) + Send + Sync>;

enum State {
    /// Nobody has looked.
    Unread(ClosedSample),
    /// Never changed again: maps have its address.
    Read(Vec<u8>),
    Failed(Fault),
}

/// GStreamer's part comes first, as its users cast to it.
#[repr(C)]
struct FileMemory {
    memory: gst::ffi::GstMemory,
    state: Mutex<State>,
    read: Read,
}

impl FileMemory {
    /// The file's bytes; null if they cannot be had.
    fn data(&self) -> *const u8 {
        let mut state = lock(&self.state);
        let unread = State::Failed(Fault::internal("reading it failed inside"));
        *state = match std::mem::replace(&mut *state, unread) {
            State::Unread(file) => self.load(&file),
            known => known,
        };
        match &*state {
            State::Read(bytes) => bytes.as_ptr(),
            State::Unread(_) | State::Failed(_) => std::ptr::null(),
        }
    }

    fn load(&self, file: &ClosedSample) -> State {
        match file.read() {
            Ok(Some(bytes)) => {
                (self.read)(bytes.len() as u64);
                State::Read(bytes)
            }
            Ok(None) => State::Failed(Fault::new(
                Class::Unreadable,
                "the file was changed while it was in use; leave it alone, or write a new one and rename it",
            )),
            Err(error) => State::Failed(error.into()),
        }
    }
}

mod imp {
    use super::*;

    #[derive(Default)]
    pub struct FileAllocator;

    #[glib::object_subclass]
    impl ObjectSubclass for FileAllocator {
        const NAME: &'static str = "EpochfeedFileAllocator";
        type Type = super::FileAllocator;
        type ParentType = gst::Allocator;
    }

    impl ObjectImpl for FileAllocator {
        fn constructed(&self) {
            self.parent_constructed();
            let allocator: *mut gst::ffi::GstAllocator = self.obj().upcast_ref::<gst::Allocator>().as_ptr();
            // SAFETY: the object is being made, and nobody else has it. CUSTOM_ALLOC: copies go to ordinary memory.
            unsafe {
                (*allocator).object.flags |= gst::ffi::GST_ALLOCATOR_FLAG_CUSTOM_ALLOC;
                (*allocator).mem_type = c"EpochfeedFile".as_ptr();
                (*allocator).mem_map = Some(map);
                (*allocator).mem_unmap = Some(unmap);
                (*allocator).mem_share = Some(share);
            }
        }
    }

    impl GstObjectImpl for FileAllocator {}

    // SAFETY: `alloc` returns null, which stands for a failure; `free` frees what `FileAllocator::memory` made.
    unsafe impl AllocatorImpl for FileAllocator {
        unsafe fn alloc(&self, _: usize, _: &gst::AllocationParams) -> *mut gst::ffi::GstMemory {
            // Memory without a file there is elsewhere.
            std::ptr::null_mut()
        }

        unsafe fn free(&self, memory: *mut gst::ffi::GstMemory) {
            // SAFETY: made by `FileAllocator::memory`, and this is its last use.
            drop(unsafe { Box::from_raw(memory.cast::<FileMemory>()) });
        }
    }
}

glib::wrapper! {
    /// Makes files into memory.
    pub struct FileAllocator(ObjectSubclass<imp::FileAllocator>) @extends gst::Allocator, gst::Object;
}

impl Default for FileAllocator {
    fn default() -> Self {
        glib::Object::new()
    }
}

impl FileAllocator {
    /// The memory of `file`; `read` is told when it is read.
    pub(crate) fn memory(
        &self,
        file: ClosedSample,
        read: impl Fn(u64) + Send + Sync + 'static,
    ) -> gst::Memory {
        // What is larger than memory can be is refused when it is read.
        let size = usize::try_from(file.size()).unwrap_or(usize::MAX);
        let memory = Box::into_raw(Box::new(FileMemory {
            // SAFETY: all zeros are a valid GstMemory for gst_memory_init.
            memory: unsafe { std::mem::zeroed() },
            state: Mutex::new(State::Unread(file)),
            read: Box::new(read),
        }));
        // SAFETY: GstMemory is the first field of a fresh #[repr(C)] struct, whose one reference is taken over. READONLY: who maps
        // it for writing gets a copy.
        unsafe {
            gst::ffi::gst_memory_init(
                memory.cast(),
                gst::ffi::GST_MEMORY_FLAG_READONLY,
                self.upcast_ref::<gst::Allocator>().as_ptr(),
                std::ptr::null_mut(),
                size,
                0,
                0,
                size,
            );
            glib::translate::from_glib_full(memory.cast::<gst::ffi::GstMemory>())
        }
    }
}

/// Why the file of `buffer` could not be read, if it is one of these and that was tried.
pub(crate) fn fault(buffer: &gst::BufferRef) -> Option<Fault> {
    buffer.iter_memories().find_map(|memory| {
        if memory.allocator()?.type_() != FileAllocator::static_type() {
            return None;
        }
        // SAFETY: memory of this allocator is a FileMemory, which lives as long as the reference.
        let memory = unsafe { &*memory.as_ptr().cast::<FileMemory>() };
        match &*lock(&memory.state) {
            State::Failed(fault) => Some(fault.clone()),
            State::Unread(_) | State::Read(_) => None,
        }
    })
}

unsafe extern "C" fn map(
    memory: *mut gst::ffi::GstMemory,
    _maxsize: usize,
    _flags: gst::ffi::GstMapFlags,
) -> glib::ffi::gpointer {
    // SAFETY: GStreamer calls this with a memory of this allocator, for reading only.
    let memory = unsafe { &*memory.cast::<FileMemory>() };
    memory.data().cast_mut().cast()
}

/// The bytes stay for who looks next.
unsafe extern "C" fn unmap(_memory: *mut gst::ffi::GstMemory) {}

/// Whoever wants a part gets a copy of it.
unsafe extern "C" fn share(
    _memory: *mut gst::ffi::GstMemory,
    _offset: isize,
    _size: isize,
) -> *mut gst::ffi::GstMemory {
    std::ptr::null_mut()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::dataset::OpenSample;

    struct Files {
        folder: tempfile::TempDir,
        read: Arc<AtomicU64>,
    }

    impl Files {
        fn new() -> Self {
            gst::init().unwrap();
            Self {
                folder: tempfile::tempdir().unwrap(),
                read: Arc::default(),
            }
        }

        fn path(&self) -> std::path::PathBuf {
            self.folder.path().join("file")
        }

        fn buffer(&self) -> gst::Buffer {
            let read = self.read.clone();
            let file = ClosedSample::of(&OpenSample::open(self.path())).unwrap();
            let memory = FileAllocator::default().memory(file, move |bytes| {
                read.fetch_add(bytes, Ordering::Relaxed);
            });
            let mut buffer = gst::Buffer::new();
            buffer.make_mut().append_memory(memory);
            buffer
        }

        fn read(&self) -> u64 {
            self.read.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_file_is_read_once_and_only_if_somebody_looks() {
        let files = Files::new();
        std::fs::write(files.path(), b"0123456789").unwrap();
        let buffer = files.buffer();
        let copy = buffer.copy();
        assert_eq!((buffer.size(), copy.size(), files.read()), (10, 10, 0));
        assert_eq!(buffer.map_readable().unwrap().as_slice(), b"0123456789");
        assert_eq!(copy.map_readable().unwrap().as_slice(), b"0123456789");
        assert_eq!(files.read(), 10);
        let part = buffer.copy_region(gst::BufferCopyFlags::MEMORY, 3..7).unwrap();
        assert_eq!(part.map_readable().unwrap().as_slice(), b"3456");
        // Who writes has a copy.
        let mut written = buffer.copy();
        written.make_mut().map_writable().unwrap()[0] = b'x';
        assert_eq!(written.map_readable().unwrap().as_slice(), b"x123456789");
        assert_eq!(buffer.map_readable().unwrap().as_slice(), b"0123456789");
        assert_eq!((files.read(), fault(&buffer)), (10, None));
    }

    #[test]
    fn a_file_that_has_changed_is_a_fault_and_not_other_bytes() {
        let files = Files::new();
        // Another content, or none at all.
        for (change, wanted) in [
            (Some("longer"), Class::Unreadable),
            (Some(""), Class::Unreadable),
            (None, Class::Missing),
        ] {
            std::fs::write(files.path(), "long").unwrap();
            let buffer = files.buffer();
            assert_eq!(fault(&buffer), None);
            match change {
                Some(content) => std::fs::write(files.path(), content).unwrap(),
                None => std::fs::remove_file(files.path()).unwrap(),
            }
            for _ in 0..2 {
                assert!(buffer.map_readable().is_err());
                assert_eq!(fault(&buffer).unwrap().class, wanted);
            }
        }
        assert_eq!(files.read(), 0);
    }
}
