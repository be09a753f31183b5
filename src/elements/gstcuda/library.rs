//! The functions of `libgstcuda-1.0.so.0`, those that are the same in every GStreamer since 1.22.
//!
//! `gst_cuda_allocator_alloc` is not among them: its arguments changed under the same name and soname.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use glib::ffi::{GType, gboolean};
use gst::ffi::{GstContext, GstMemory};
use libloading::os::unix::{Library as Shared, RTLD_LOCAL, RTLD_NOW};

const NAME: &str = "libgstcuda-1.0.so.0";

/// A `GstCudaContext`, which is a GstObject; handled by pointer only.
#[repr(C)]
pub(super) struct GstCudaContext {
    _opaque: [u8; 0],
}

/// The public fields of a `GstCudaMemory`, in the order that they have had since 1.22.
#[repr(C)]
pub(super) struct GstCudaMemory {
    pub mem: GstMemory,
    pub context: *mut GstCudaContext,
    pub info: gst_video::ffi::GstVideoInfo,
}

/// Why frames in CUDA memory cannot be handled.
#[derive(Clone, Debug, thiserror::Error)]
pub(in crate::elements) enum Unavailable {
    #[error(
        "{NAME} cannot be opened ({0}): install GStreamer's \"bad\" libraries, in Debian the package libgstreamer-plugins-bad1.0-0"
    )]
    Library(String),
    #[error("{NAME} is not one that is known ({0}): install GStreamer 1.22 or newer")]
    Function(String),
    #[error("libcuda.so.1 cannot be opened: install the NVIDIA driver")]
    Driver,
    #[error("GStreamer does not take the context of cuda:{0}; GST_DEBUG=cuda*:5 says why")]
    Wrap(usize),
}

/// What is called; see `gst/cuda/*.h`.
pub(super) struct Library {
    pub is_cuda_memory: unsafe extern "C" fn(*mut GstMemory) -> gboolean,
    /// Since 1.24: waits for the work on the stream that the memory belongs to.
    pub memory_sync: Option<unsafe extern "C" fn(*mut GstCudaMemory)>,
    pub context_get_type: unsafe extern "C" fn() -> GType,
    /// Takes a CUcontext and a CUdevice.
    pub context_new_wrapped: unsafe extern "C" fn(*mut c_void, c_int) -> *mut GstCudaContext,
    /// Gives the CUcontext.
    pub context_get_handle: unsafe extern "C" fn(*mut GstCudaContext) -> *mut c_void,
    pub new_context: unsafe extern "C" fn(*mut GstCudaContext) -> *mut GstContext,
}

/// The function `name` of `shared`.
///
/// # Safety
/// `T` is a pointer to a function with the arguments and result of that one.
unsafe fn function<T: Copy>(shared: &Shared, name: &str) -> Result<T, Unavailable> {
    // SAFETY: the caller's promise.
    let symbol = unsafe { shared.get::<T>(name) };
    symbol
        .map(|symbol| *symbol)
        .map_err(|error| Unavailable::Function(error.to_string()))
}

impl Library {
    fn open() -> Result<Self, Unavailable> {
        // SAFETY: the initialisers of the library and of those it needs are GStreamer's and the system's, and do nothing
        // that depends on when they run.
        let shared = unsafe { Shared::open(Some(NAME), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| Unavailable::Library(error.to_string()))?;
        // SAFETY: the types are those of the declarations in the headers of GStreamer 1.22 (of 1.24 for the optional one),
        // which newer versions have left as they are.
        let (load_library, memory_init_once, library) = unsafe {
            let load_library: unsafe extern "C" fn() -> gboolean =
                function(&shared, "gst_cuda_load_library")?;
            let memory_init_once: unsafe extern "C" fn() = function(&shared, "gst_cuda_memory_init_once")?;
            let library = Self {
                is_cuda_memory: function(&shared, "gst_is_cuda_memory")?,
                memory_sync: function(&shared, "gst_cuda_memory_sync").ok(),
                context_get_type: function(&shared, "gst_cuda_context_get_type")?,
                context_new_wrapped: function(&shared, "gst_cuda_context_new_wrapped")?,
                context_get_handle: function(&shared, "gst_cuda_context_get_handle")?,
                new_context: function(&shared, "gst_context_new_cuda_context")?,
            };
            (load_library, memory_init_once, library)
        };
        // GObject types cannot be unloaded: the library stays, and with it the functions.
        std::mem::forget(shared);
        // SAFETY: GStreamer is initialised, since an element runs. Without a driver other functions abort the process, so
        // this is the first one.
        if unsafe { load_library() } == glib::ffi::GFALSE {
            return Err(Unavailable::Driver);
        }
        // SAFETY: the driver is loaded.
        unsafe { memory_init_once() };
        Ok(library)
    }
}

/// The library, opened by the first call; what came of that holds for the life of the process.
pub(super) fn library() -> Result<&'static Library, Unavailable> {
    static LIBRARY: OnceLock<Result<Library, Unavailable>> = OnceLock::new();
    LIBRARY.get_or_init(Library::open).as_ref().map_err(Clone::clone)
}

/// Whether frames in CUDA memory can be handled.
pub(in crate::elements) fn require() -> Result<(), Unavailable> {
    library().map(|_| ())
}
