//! A device: its context and the kernels in it.
//!
//! [`Device::open`], [`Device::adopt`] and [`Device::count`] are the only ways in, and each asks [`driver`] first: cudarc
//! panics where the driver's library is missing.
//!
//! Lock order: `OPEN` is not held while a `Device` is dropped.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute, CUstreamCaptureMode as CaptureMode};
use cudarc::driver::{CudaContext, DriverError, result};

use super::error::{CudaError, words};
use super::kernels::Kernels;

/// The CUDA of the oldest driver that has every function that is called here, 11.2.
const OLDEST: i32 = 11_020;

/// The devices that are open, so that all users of a process share one context and its modules.
static OPEN: Mutex<Vec<Open>> = Mutex::new(Vec::new());

/// An open device, with what it is found by: a handle on another one, be it for the time of a look, could be the last,
/// and outlive a context that is not ours.
struct Open {
    /// The CUcontext, as a number.
    context: usize,
    /// Of a primary context that is held here.
    primary: Option<usize>,
    device: Weak<Device>,
}

impl Open {
    fn of(device: &Arc<Device>) -> Self {
        let primary = device.context.is_primary();
        Self {
            context: device.context.cu_ctx().addr(),
            primary: primary.then(|| device.ordinal()),
            device: Arc::downgrade(device),
        }
    }

    /// The device among `open` that `is_it`.
    fn find(open: &mut Vec<Self>, is_it: impl Fn(&Self) -> bool) -> Option<Arc<Device>> {
        open.retain(|one| one.device.strong_count() > 0);
        open.iter()
            .filter(|one| is_it(one))
            .find_map(|one| one.device.upgrade())
    }
}

/// Contexts of other libraries. cudarc destroys a context with its last handle, and these are not ours to destroy: a
/// handle of each stays here. It is some words, and one context has one.
static ADOPTED: Mutex<Vec<Arc<CudaContext>>> = Mutex::new(Vec::new());

/// A CUDA device with the kernels, in its primary context (the one that PyTorch and the CUDA runtime use) or in that of
/// another library.
///
/// The context lives as long as the last handle. Every method may be called on any thread, and leaves the thread's
/// current context as it found it.
///
/// ```
/// use epochfeed::cuda::{CudaError, Device};
///
/// match Device::open(0) {
///     Ok(device) => println!("{} has {:?} bytes free", device.name(), device.free_bytes()?),
///     Err(CudaError::NoDriver { .. }) => println!("no GPU here"),
///     Err(error) => println!("{error}"),
/// }
/// # Ok::<(), CudaError>(())
/// ```
#[derive(Debug)]
pub struct Device {
    // Before the context, which they are in.
    pub(super) kernels: Restoring<Kernels>,
    pub(super) context: Restoring<Arc<CudaContext>>,
    name: String,
    multiprocessors: usize,
}

/// Makes sure that there is a driver and that it is initialised.
fn driver() -> Result<(), CudaError> {
    // SAFETY: opens the library by the names that cudarc would, and closes it again. Its initialisers are the driver's.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver {
            detail: "libcuda.so.1 is not found".to_owned(),
        });
    }
    let mut version = 0;
    // SAFETY: `version` is written only.
    let asked = unsafe { sys::cuDriverGetVersion(&mut version) }.result();
    if asked.is_ok() && version < OLDEST {
        // cudarc would panic over functions that it does not have.
        let (major, minor) = (version / 1000, version % 1000 / 10);
        return Err(CudaError::NoDriver {
            detail: format!("it is for CUDA {major}.{minor}, which is too old"),
        });
    }
    match result::init() {
        Ok(()) => Ok(()),
        Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NO_DEVICE => {
            Err(CudaError::NoDevice { ordinal: 0, count: 0 })
        }
        Err(error) => Err(CudaError::NoDriver { detail: words(error) }),
    }
}

impl Device {
    /// How many devices the driver shows.
    ///
    /// # Errors
    /// [`CudaError::NoDriver`]. A driver without a device gives 0.
    pub fn count() -> Result<usize, CudaError> {
        match driver() {
            Err(CudaError::NoDevice { .. }) => return Ok(0),
            other => other?,
        }
        let count =
            result::device::get_count().map_err(|error| CudaError::NoDriver { detail: words(error) })?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// The device `ordinal` (as the driver counts: after `CUDA_VISIBLE_DEVICES`), in its primary context.
    ///
    /// # Errors
    /// [`CudaError::NoDriver`] and [`CudaError::NoDevice`] where there is none; [`CudaError::ModuleLoad`] for a GPU older
    /// than compute capability 5.2; [`CudaError::Driver`] where the context cannot be had.
    pub fn open(ordinal: usize) -> Result<Arc<Self>, CudaError> {
        let count = Self::count()?;
        if ordinal >= count {
            return Err(CudaError::NoDevice { ordinal, count });
        }
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = Open::find(&mut open, |one| one.primary == Some(ordinal)) {
            return Ok(device);
        }
        let before = Current::save();
        let context = CudaContext::new(ordinal).map_err(|error| CudaError::Driver {
            what: "making the context",
            ordinal,
            detail: words(error),
        })?;
        let device = Self::of(context)?;
        drop(before);
        open.push(Open::of(&device));
        Ok(device)
    }

    /// The device of `context`, a `CUcontext` of another library (GStreamer's `GstCudaContext` has one).
    ///
    /// # Errors
    /// As [`Device::open`].
    ///
    /// # Safety
    /// `context` is a live `CUcontext`, and stays so while the result and what is made from it lives.
    pub unsafe fn adopt(context: *mut c_void) -> Result<Arc<Self>, CudaError> {
        driver()?;
        let handle: sys::CUcontext = context.cast();
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = Open::find(&mut open, |one| one.context == handle.addr()) {
            return Ok(device);
        }
        let failed = |what, error| CudaError::Driver {
            what,
            ordinal: 0,
            detail: words(error),
        };
        let before = Current::save();
        // SAFETY: the caller says that the context is alive.
        unsafe { result::ctx::set_current(handle) }
            .map_err(|error| failed("taking over a context", error))?;
        let mut raw = 0;
        // SAFETY: a context is current, and `raw` is written only.
        unsafe { sys::cuCtxGetDevice(&mut raw) }
            .result()
            .map_err(|error| failed("asking a context for its device", error))?;
        let count = Self::count()?;
        let ordinal = (0..count)
            .find(|&ordinal| i32::try_from(ordinal).is_ok_and(|o| result::device::get(o) == Ok(raw)))
            .ok_or(CudaError::NoDevice {
                ordinal: count,
                count,
            })?;
        let context = {
            let mut adopted = ADOPTED.lock().unwrap_or_else(PoisonError::into_inner);
            // A handle may have been used again for a context of another device.
            match adopted
                .iter()
                .find(|context| context.cu_ctx() == handle && context.ordinal() == ordinal)
            {
                Some(context) => context.clone(),
                None => {
                    // SAFETY: the context is alive and of this device. It is never destroyed from here: the handle in
                    // ADOPTED keeps the count above zero for ever.
                    let context = unsafe { CudaContext::from_raw_context(ordinal, raw, handle) }
                        .map_err(|error| failed("taking over a context", error))?;
                    adopted.push(context.clone());
                    context
                }
            }
        };
        let device = Self::of(context)?;
        drop(before);
        open.push(Open::of(&device));
        Ok(device)
    }

    fn of(context: Arc<CudaContext>) -> Result<Arc<Self>, CudaError> {
        let ordinal = context.ordinal();
        let failed = |error| CudaError::Driver {
            what: "asking for the properties",
            ordinal,
            detail: words(error),
        };
        // SAFETY: events are what cudarc would order accesses to its slices by. Here streams and events are explicit.
        unsafe { context.disable_event_tracking() };
        let name = context.name().map_err(failed)?;
        let capability = context.compute_capability().map_err(failed)?;
        let multiprocessors = context
            .attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            .map_err(failed)?;
        if capability < (5, 2) {
            let (major, minor) = capability;
            return Err(CudaError::ModuleLoad {
                ordinal,
                name,
                detail: format!("its compute capability is {major}.{minor}, 5.2 is the least"),
            });
        }
        Ok(Arc::new(Self {
            kernels: Restoring::new(Kernels::new(capability)),
            context: Restoring::new(context),
            name,
            multiprocessors: usize::try_from(multiprocessors).unwrap_or(1),
        }))
    }

    /// As the driver counts; what `cuda:N` names.
    pub fn ordinal(&self) -> usize {
        self.context.ordinal()
    }

    /// As the driver calls it: `NVIDIA H200`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The `CUcontext`, for other libraries; alive as long as this handle, not theirs to destroy.
    pub fn raw_context(&self) -> *mut c_void {
        self.context.cu_ctx().cast()
    }

    /// The `CUdevice`.
    pub fn raw_device(&self) -> i32 {
        self.context.cu_device()
    }

    /// Bytes of device memory that are free, and that there are.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn free_bytes(&self) -> Result<(usize, usize), CudaError> {
        self.run("asking for the free memory", result::mem_get_info)
    }

    /// Waits until the device has done all that was asked of this context.
    ///
    /// # Errors
    /// [`CudaError::Driver`]: also for failures of what was asked before.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.run("waiting for the device", result::ctx::synchronize)
    }

    /// Multiprocessors: what a small batch is spread over.
    pub(super) fn multiprocessors(&self) -> usize {
        self.multiprocessors
    }

    /// Does `call` with the context current.
    pub(super) fn run<T>(
        &self,
        what: &'static str,
        call: impl FnOnce() -> Result<T, DriverError>,
    ) -> Result<T, CudaError> {
        let _before = self.enter(what)?;
        call().map_err(|error| self.error(what, error))
    }

    /// Makes the context current until the result is dropped.
    pub(super) fn enter(&self, what: &'static str) -> Result<Current, CudaError> {
        Current::enter(&self.context).map_err(|error| self.error(what, error))
    }

    pub(super) fn error(&self, what: &'static str, error: DriverError) -> CudaError {
        CudaError::Driver {
            what,
            ordinal: self.ordinal(),
            detail: words(error),
        }
    }
}

/// Puts the thread's current context back when dropped: to a caller who uses CUDA, it says which device is theirs.
///
/// Until then this thread's calls do not count as those that spoil a capture: while a trainer captures a graph, the driver
/// refuses the queries and allocations of every other thread, and throws the graph away with them. None of the streams here
/// is part of it: the only ones that could be are [borrowed](super::Stream::borrow).
pub(super) struct Current {
    context: Option<sys::CUcontext>,
    mode: Option<CaptureMode>,
}

/// Makes `mode` this thread's, and says which it was.
fn exchange_capture_mode(mut mode: CaptureMode) -> Option<CaptureMode> {
    // SAFETY: `mode` is a mode before and after.
    let exchanged = unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) };
    exchanged.result().is_ok().then_some(mode)
}

impl Current {
    /// Notes what is current. Only behind [`driver`].
    pub(super) fn save() -> Self {
        Self {
            context: result::ctx::get_current().ok().flatten(),
            mode: exchange_capture_mode(CaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED),
        }
    }

    /// Notes what is current, and makes `context` so.
    ///
    /// Not by cudarc's `bind_to_thread`: what fails when something is dropped it keeps for whoever binds next, and a wait that
    /// is left out for that is a wait too few.
    fn enter(context: &CudaContext) -> Result<Self, DriverError> {
        let mut before = Self::save();
        // SAFETY: the handle keeps its context alive.
        unsafe { result::ctx::set_current(context.cu_ctx()) }?;
        // The driver may want a context for that.
        let mode = || exchange_capture_mode(CaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
        before.mode = before.mode.or_else(mode);
        Ok(before)
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        if let Some(mode) = self.mode {
            exchange_capture_mode(mode);
        }
        let handle = self.context.unwrap_or(std::ptr::null_mut());
        // SAFETY: null or what was current before, which its owner keeps alive while it is current. Where that fails, the
        // next use says so.
        let _ = unsafe { result::ctx::set_current(handle) };
    }
}

/// Something of cudarc's whose drop makes its context current: here the thread's own is put back behind it.
#[derive(Debug)]
pub(super) struct Restoring<T>(ManuallyDrop<T>);

impl<T> Restoring<T> {
    pub(super) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T> Deref for Restoring<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for Restoring<T> {
    fn drop(&mut self) {
        let _before = Current::save();
        // SAFETY: dropped here only, once, and not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}
