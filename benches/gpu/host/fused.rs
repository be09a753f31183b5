//! `FusedColor` beside a copy that reads and writes as many bytes.

use std::fmt::Write;
use std::sync::Arc;

use epochfeed::cuda::{Device, DeviceGains, DeviceMemory, FusedColor, Images, LaunchGains, Output, Stream};

use crate::check::{TYPES, spec};
use crate::measure::{device_ms, median};
use crate::pixels::{Source, gains, images};
use crate::{BATCH, SIDE, driver};

/// Inputs and outputs in turn, each larger than any cache.
const SETS: usize = 3;
const ROUNDS: usize = 21;
const LAUNCHES: usize = 12;

/// Device memory of one turn.
struct Set {
    images: Images,
    output: Output,
    _memory: [DeviceMemory; 2],
}

pub fn run(device: &Arc<Device>) -> String {
    let mut table = format!(
        "FusedColor, ms a launch: medians of {ROUNDS} rounds of {LAUNCHES}, {SETS} sets of memory in turn, beside a \
         device-to-device copy that moves as many bytes\n\n\
         | | MB | copy | gains on the device | of copy bandwidth | gains from the host | of copy bandwidth |\n\
         |---|---|---|---|---|---|---|\n"
    );
    let stream = Stream::new(device).unwrap();
    for (from, to) in TYPES {
        let spec = spec(to);
        let fused = FusedColor::new(device, spec.clone()).unwrap();
        let bytes = BATCH * spec.sample_bytes(SIDE, SIDE);
        let mut moved = 0;
        let sets: Vec<Set> = (0..SETS)
            .map(|set| {
                let input = Source::new(from, set as u64).upload(&stream);
                let output = DeviceMemory::new(&stream, bytes).unwrap();
                moved = input.len() + bytes;
                Set {
                    // SAFETY: uploaded as described, kept in the set and used on this stream only.
                    images: unsafe { images(input.pointer(), from) },
                    // SAFETY: room for the batch, likewise.
                    output: unsafe { Output::from_raw(output.pointer(), bytes) },
                    _memory: [input, output],
                }
            })
            .collect();
        let copies: Vec<[DeviceMemory; 2]> = (0..SETS)
            .map(|_| [(); 2].map(|()| DeviceMemory::new(&stream, moved / 2).unwrap()))
            .collect();
        let gains = gains(0);
        let device_gains = upload_gains(&stream, &gains);
        // SAFETY: uploaded, kept, and not written again.
        let on_device = unsafe { DeviceGains::from_raw(device_gains.pointer(), BATCH) };

        let copy = |turn: usize| {
            let [from, to] = &copies[turn % SETS];
            // SAFETY: both of that size, used on this stream only.
            unsafe { driver::copy(&stream, to.pointer(), from.pointer(), moved / 2) };
        };
        let launch = |turn: usize, gains: LaunchGains<'_>| {
            let set = &sets[turn % SETS];
            fused.launch(&stream, &set.images, gains, &set.output).unwrap();
        };
        let (mut copied, mut device_side, mut host_side) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let times = [
                device_ms(&stream, LAUNCHES, copy),
                device_ms(&stream, LAUNCHES, |turn| {
                    launch(turn, LaunchGains::Device(on_device))
                }),
                device_ms(&stream, LAUNCHES, |turn| launch(turn, LaunchGains::Host(&gains))),
            ];
            // The first round warms up.
            if round > 0 {
                copied.push(times[0]);
                device_side.push(times[1]);
                host_side.push(times[2]);
            }
        }
        let [copied, device_side, host_side] = [copied, device_side, host_side].map(median);
        let _ = writeln!(
            table,
            "| {from} → {to} | {:.0} | {copied:.4} | **{device_side:.4}** | {:.1} % | {host_side:.4} | {:.1} % |",
            moved as f64 / 1e6,
            100.0 * copied / device_side,
            100.0 * copied / host_side
        );
    }
    table
}

fn upload_gains(stream: &Stream, gains: &[epochfeed::color::Gains]) -> DeviceMemory {
    let bytes: Vec<u8> = gains
        .iter()
        .flat_map(|gains| [gains.hue, gains.saturation, gains.value])
        .flat_map(f64::to_ne_bytes)
        .collect();
    let memory = DeviceMemory::new(stream, bytes.len()).unwrap();
    // SAFETY: fresh memory of that size, in its stream's order.
    unsafe { driver::upload(stream, memory.pointer(), &bytes) };
    memory
}
