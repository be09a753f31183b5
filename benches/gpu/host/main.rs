//! The library on a GPU: correctness first, then `FusedColor` beside a copy, how much of the copies to the device is hidden,
//! and samples a second beside the CPU; short tables last.
//!
//! `cargo bench --bench gpu_host`, or the binary by itself on a machine that has nothing but a GPU (`benches/gpu/run.sh`).
//! Leave the machine alone meanwhile: wall clocks are part of it.
#![allow(clippy::unwrap_used, clippy::expect_used)] // what goes wrong ends the measurement

mod check;
#[path = "../../../tests/cuda/driver.rs"]
mod driver;
mod fused;
mod measure;
mod overlap;
mod pixels;
mod throughput;

use std::process::ExitCode;

use epochfeed::cuda::Device;

/// Samples of a batch, pixels of a side.
const BATCH: usize = 64;
const SIDE: usize = 640;
/// Pixels of a sample.
const PIXELS: usize = SIDE * SIDE;

fn main() -> ExitCode {
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(error) => {
            eprintln!("nothing to measure: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("{}, batches of {BATCH} at {SIDE}x{SIDE}", device.name());
    check::run(&device);
    let tables = [
        fused::run(&device),
        overlap::run(&device),
        throughput::run(&device),
    ];
    for table in tables {
        println!("\n{table}");
    }
    ExitCode::SUCCESS
}
