//! Where there is no driver, or no such device, every way in says so.

use std::ptr::null_mut;

use epochfeed::cuda::{CudaError, Device};

#[test]
fn every_way_in_names_what_is_missing_and_the_remedy() {
    match Device::count() {
        Ok(count) => {
            let error = Device::open(count).unwrap_err();
            assert_eq!(
                error,
                CudaError::NoDevice {
                    ordinal: count,
                    count
                }
            );
            let text = error.to_string();
            assert!(text.contains(&format!("cuda:{count}")), "{text}");
            assert!(text.contains("CUDA_VISIBLE_DEVICES"), "{text}");
        }
        Err(error) => {
            // SAFETY: without a driver nothing looks at the context.
            let adopted = unsafe { Device::adopt(null_mut()) };
            for error in [error, Device::open(0).unwrap_err(), adopted.unwrap_err()] {
                assert!(matches!(error, CudaError::NoDriver { .. }), "{error:?}");
                let text = error.to_string();
                for part in ["libcuda.so.1", "Install the driver", "choose the CPU"] {
                    assert!(text.contains(part), "{part:?} is not in: {text}");
                }
            }
        }
    }
}

#[test]
fn an_ordinal_beyond_every_device_is_an_error_on_every_thread() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for ordinal in [1000, usize::MAX] {
                    let error = Device::open(ordinal).unwrap_err();
                    let text = error.to_string();
                    assert!(
                        text.contains(&format!("cuda:{ordinal}")) || text.contains("libcuda.so.1"),
                        "{text}"
                    );
                }
            });
        }
    });
}
