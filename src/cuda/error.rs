//! What can go wrong between here and the driver.

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

/// Why the GPU cannot do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// No driver, or one that does not work.
    #[error(
        "the NVIDIA driver cannot be used: {detail}. Install the driver (it brings libcuda.so.1; the CUDA toolkit is not \
         needed), or choose the CPU"
    )]
    NoDriver {
        /// What was tried, or the driver's own words.
        detail: String,
    },
    /// The driver works, but has no such device.
    #[error(
        "there is no device cuda:{ordinal}: the driver shows {count} device(s), counted from 0 \
         (CUDA_VISIBLE_DEVICES hides devices)"
    )]
    NoDevice {
        /// Asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// The device is there, but does not run the kernels.
    #[error(
        "cuda:{ordinal} ({name}) does not load the kernels: {detail}. A newer NVIDIA driver may; or choose the CPU"
    )]
    ModuleLoad {
        /// Of the device.
        ordinal: usize,
        /// Of the device.
        name: String,
        /// The driver's own words.
        detail: String,
    },
    /// Device memory is used up.
    #[error(
        "cuda:{ordinal} has no room for {wanted} bytes: {free} of its {total} bytes are free. Use smaller batches, hold \
         fewer of them, or end what else runs there"
    )]
    OutOfMemory {
        /// Of the device.
        ordinal: usize,
        /// Bytes of the request.
        wanted: usize,
        /// Bytes that are free.
        free: usize,
        /// Bytes that the device has.
        total: usize,
    },
    /// Page-locked host memory is used up.
    #[error(
        "{wanted} bytes of page-locked host memory cannot be had ({detail}): hold fewer frames, or use smaller ones"
    )]
    OutOfPinned {
        /// Bytes of the request.
        wanted: usize,
        /// The driver's own words.
        detail: String,
    },
    /// Beyond what a launch takes.
    #[error("{what} is {value}, but the kernels take at most {limit}")]
    TooLarge {
        /// `the batch size`, `the number of pixels of a sample`.
        what: &'static str,
        /// As asked for.
        value: usize,
        /// The most.
        limit: usize,
    },
    /// Not one for each.
    #[error("{gains} gains were given for {frames} frames: give one for each, or none")]
    Count {
        /// As given.
        gains: usize,
        /// Of the batch.
        frames: usize,
    },
    /// Any other failure of the driver; after some of them, as a fault in a kernel, the context is lost.
    #[error("{what} failed on cuda:{ordinal}: {detail}")]
    Driver {
        /// What was being done.
        what: &'static str,
        /// Of the device.
        ordinal: usize,
        /// The driver's own words.
        detail: String,
    },
}

/// `error` as the driver names it.
pub(super) fn words(error: DriverError) -> String {
    let text = |result: Result<&std::ffi::CStr, DriverError>| {
        result.map_or_else(
            |_| format!("error {}", error.0 as u32),
            |text| text.to_string_lossy().into_owned(),
        )
    };
    format!("{} ({})", text(error.error_string()), text(error.error_name()))
}

/// Whether `error` says that memory is used up.
pub(super) fn is_out_of_memory(error: DriverError) -> bool {
    error.0 == CUresult::CUDA_ERROR_OUT_OF_MEMORY
}
