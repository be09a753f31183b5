//! The driver as a program that embeds this library calls it: to fill and copy memory, to capture or hold a stream, and to
//! look at what the library has left.
//!
//! Opened at run time, and only where [`Device::open`] has found it. Each call makes the device's context current and puts
//! the thread's own back.
#![allow(dead_code)] // tests and benches each use a part of it

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, LazyLock};

use epochfeed::cuda::{Device, Stream};
use libloading::Library;

static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    // SAFETY: the driver, which the library under test has opened as well.
    unsafe { Library::new("libcuda.so.1") }.expect("a device has been opened, so the driver is there")
});

/// The driver's function `name`.
///
/// # Safety
/// `F` is the type of a pointer to it.
unsafe fn function<F: Copy>(name: &CStr) -> F {
    // SAFETY: the caller's promise. The library is never closed.
    *unsafe { LIBRARY.get::<F>(name) }.unwrap_or_else(|error| panic!("{name:?}: {error}"))
}

#[track_caller]
fn check(name: &str, code: c_int) {
    assert_eq!(code, 0, "{name} failed");
}

/// The `CUcontext` that is current on this thread, or null.
pub fn current_context() -> *mut c_void {
    let mut context = null_mut();
    // SAFETY: `CUresult cuCtxGetCurrent(CUcontext *)`, which writes one pointer.
    let code = unsafe {
        function::<unsafe extern "C" fn(*mut *mut c_void) -> c_int>(c"cuCtxGetCurrent")(&mut context)
    };
    check("cuCtxGetCurrent", code);
    context
}

/// Makes `context`, which may be null, current on this thread.
///
/// # Safety
/// It is a live `CUcontext` or null.
pub unsafe fn set_current_context(context: *mut c_void) {
    // SAFETY: `CUresult cuCtxSetCurrent(CUcontext)`; the context is the caller's promise.
    let code = unsafe { function::<unsafe extern "C" fn(*mut c_void) -> c_int>(c"cuCtxSetCurrent")(context) };
    check("cuCtxSetCurrent", code);
}

/// Calls `call` with `device`'s context current.
#[track_caller]
fn on(device: &Device, name: &str, call: impl FnOnce() -> c_int) {
    let before = current_context();
    // SAFETY: the handle keeps its context alive.
    unsafe { set_current_context(device.raw_context()) };
    let code = call();
    // SAFETY: it was current when this began.
    unsafe { set_current_context(before) };
    check(name, code);
}

/// Queues the filling of device memory with one byte.
///
/// # Safety
/// `bytes` bytes at `pointer` are memory of the stream's device, alive and not used by others until that is done.
pub unsafe fn fill(stream: &Stream, pointer: u64, bytes: usize, value: u8) {
    type Call = unsafe extern "C" fn(u64, u8, usize, *mut c_void) -> c_int;
    on(stream.device(), "cuMemsetD8Async", || {
        // SAFETY: `CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream)`; the memory is the caller's promise.
        unsafe { function::<Call>(c"cuMemsetD8Async")(pointer, value, bytes, stream.raw()) }
    });
}

/// Copies `from` to the device and waits for that.
///
/// # Safety
/// As [`fill`].
pub unsafe fn upload(stream: &Stream, to: u64, from: &[u8]) {
    type Call = unsafe extern "C" fn(u64, *const c_void, usize, *mut c_void) -> c_int;
    on(stream.device(), "cuMemcpyHtoDAsync", || {
        // SAFETY: `CUresult cuMemcpyHtoDAsync(CUdeviceptr, const void *, size_t, CUstream)`; `from` outlives the copy, which is
        // waited for.
        unsafe {
            function::<Call>(c"cuMemcpyHtoDAsync_v2")(to, from.as_ptr().cast(), from.len(), stream.raw())
        }
    });
    stream.synchronize().expect("an upload ends");
}

/// Copies from the device to `to` and waits for that.
///
/// # Safety
/// As [`fill`], of `to.len()` bytes, and they are written by then.
pub unsafe fn download(stream: &Stream, to: &mut [u8], from: u64) {
    type Call = unsafe extern "C" fn(*mut c_void, u64, usize, *mut c_void) -> c_int;
    on(stream.device(), "cuMemcpyDtoHAsync", || {
        // SAFETY: `CUresult cuMemcpyDtoHAsync(void *, CUdeviceptr, size_t, CUstream)`; `to` is borrowed until the copy has ended.
        unsafe {
            function::<Call>(c"cuMemcpyDtoHAsync_v2")(to.as_mut_ptr().cast(), from, to.len(), stream.raw())
        }
    });
    stream.synchronize().expect("a download ends");
}

/// Queues a copy from device memory to device memory.
///
/// # Safety
/// As [`fill`], both.
pub unsafe fn copy(stream: &Stream, to: u64, from: u64, bytes: usize) {
    type Call = unsafe extern "C" fn(u64, u64, usize, *mut c_void) -> c_int;
    on(stream.device(), "cuMemcpyDtoDAsync", || {
        // SAFETY: `CUresult cuMemcpyDtoDAsync(CUdeviceptr, CUdeviceptr, size_t, CUstream)`; the memory is the caller's promise.
        unsafe { function::<Call>(c"cuMemcpyDtoDAsync_v2")(to, from, bytes, stream.raw()) }
    });
}

/// Captures what `work` queues on `stream` into a graph, as PyTorch does by default (any unsafe call of any thread would
/// fail meanwhile), and drops the graph.
pub fn captured(stream: &Stream, work: impl FnOnce()) {
    type Begin = unsafe extern "C" fn(*mut c_void, c_uint) -> c_int;
    type End = unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int;
    type Destroy = unsafe extern "C" fn(*mut c_void) -> c_int;
    const GLOBAL: c_uint = 0;
    on(stream.device(), "cuStreamBeginCapture", || {
        // SAFETY: `CUresult cuStreamBeginCapture(CUstream, CUstreamCaptureMode)` of a live stream.
        unsafe { function::<Begin>(c"cuStreamBeginCapture_v2")(stream.raw(), GLOBAL) }
    });
    work();
    on(stream.device(), "cuStreamEndCapture", || {
        let mut graph = null_mut();
        // SAFETY: `CUresult cuStreamEndCapture(CUstream, CUgraph *)` of the stream that is being captured, and
        // `CUresult cuGraphDestroy(CUgraph)` of what it made.
        unsafe {
            let code = function::<End>(c"cuStreamEndCapture")(stream.raw(), &mut graph);
            if code != 0 || graph.is_null() {
                return code;
            }
            function::<Destroy>(c"cuGraphDestroy")(graph)
        }
    });
}

/// Queues `work` on `stream`, as something that the device waits for.
///
/// It must not call the driver.
pub fn queue_host_work(stream: &Stream, work: impl FnOnce() + Send + 'static) {
    type Work = Box<dyn FnOnce() + Send>;
    type Call = unsafe extern "C" fn(*mut c_void, unsafe extern "C" fn(*mut c_void), *mut c_void) -> c_int;
    unsafe extern "C" fn run(work: *mut c_void) {
        // SAFETY: the pointer of below, which the driver hands over once.
        let work = unsafe { Box::from_raw(work.cast::<Work>()) };
        work();
    }
    let work: *mut Work = Box::into_raw(Box::new(Box::new(work)));
    on(stream.device(), "cuLaunchHostFunc", || {
        // SAFETY: `CUresult cuLaunchHostFunc(CUstream, CUhostFn, void *)`; `run` takes what is passed.
        unsafe { function::<Call>(c"cuLaunchHostFunc")(stream.raw(), run, work.cast()) }
    });
}

/// Whether this process holds the primary context of device `device`, a `CUdevice`.
pub fn primary_context_is_active(device: i32) -> bool {
    type Call = unsafe extern "C" fn(c_int, *mut c_uint, *mut c_int) -> c_int;
    let (mut flags, mut active) = (0, 0);
    // SAFETY: `CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned int *, int *)`, which writes two numbers.
    let code = unsafe { function::<Call>(c"cuDevicePrimaryCtxGetState")(device, &mut flags, &mut active) };
    check("cuDevicePrimaryCtxGetState", code);
    active != 0
}

/// The default stream of `device`, which trainers use that make none.
pub fn default_stream(device: &Arc<Device>) -> Stream {
    // SAFETY: null is the default stream, which is there as long as its context.
    unsafe { Stream::borrow(device, null_mut()) }
}
