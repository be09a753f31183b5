//! Tests that need a GPU run where there is one, and say so where there is none.
//!
//! `EPOCHFEED_REQUIRE_GPU=N` makes a test that finds fewer than N devices a failure: for machines that have them.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use epochfeed::cuda::{CudaError, Device};

use super::wait::within;

/// How many devices there have to be.
const REQUIRED: &str = "EPOCHFEED_REQUIRE_GPU";
/// How long a test may use the GPU. Far more than any takes: one that hangs has to end.
const LIMIT: Duration = Duration::from_secs(170);

/// Those who look at what is free on the device are alone on it, the others are beside each other.
static USERS: RwLock<()> = RwLock::new(());

/// The device `ordinal`; `None`, with a line that the test did not run, where there is none.
#[track_caller]
pub fn device(ordinal: usize) -> Option<Arc<Device>> {
    match Device::open(ordinal) {
        Ok(device) => Some(device),
        Err(error) => {
            let required = std::env::var(REQUIRED).map_or(0, |text| {
                text.parse()
                    .expect("EPOCHFEED_REQUIRE_GPU is a number of devices")
            });
            assert!(
                ordinal >= required,
                "{REQUIRED}={required}, but cuda:{ordinal}: {error}"
            );
            println!("not run: {error}");
            None
        }
    }
}

/// Whether there is a device; a test that needs one and has none says so.
#[track_caller]
pub fn is_there() -> bool {
    device(0).is_some()
}

/// Whether there is not even a driver. (One may be there without a device: CUDA_VISIBLE_DEVICES hides them.)
pub fn has_no_driver() -> bool {
    matches!(Device::count(), Err(CudaError::NoDriver { .. }))
}

/// Whether there is a device and GStreamer has all of `elements`.
#[track_caller]
pub fn has(elements: &[&str]) -> bool {
    if !is_there() {
        return false;
    }
    super::pipeline::init();
    let missing = |element: &&&str| gst::ElementFactory::find(element).is_none();
    let missing: Vec<_> = elements.iter().filter(missing).collect();
    if !missing.is_empty() {
        println!("not run: GStreamer has no {missing:?}");
    }
    missing.is_empty()
}

/// Does `work` with the first device, beside other tests.
#[track_caller]
pub fn on_gpu(work: impl FnOnce(&Arc<Device>) + Send + 'static) {
    let _beside = USERS.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = device(0) {
        // Moved, so that nothing of the test is left behind when it ends.
        within(LIMIT, move || work(&device));
    }
}

/// The elements that bring frames to the device and back.
pub const NVCODEC: [&str; 2] = ["cudaupload", "cudadownload"];

/// Does `work` where there is a GPU and GStreamer has all of `elements`.
#[track_caller]
pub fn with(elements: &'static [&'static str], work: impl FnOnce() + Send + 'static) {
    on_gpu(move |_| {
        if has(elements) {
            work();
        }
    });
}

/// Does `work` while no other test of this process uses the first `devices` devices; it opens them itself.
#[track_caller]
pub fn on_idle_gpu(devices: usize, work: impl FnOnce() + Send + 'static) {
    let _alone = USERS.write().unwrap_or_else(PoisonError::into_inner);
    if (0..devices).all(|ordinal| device(ordinal).is_some()) {
        within(LIMIT, work);
    }
}
