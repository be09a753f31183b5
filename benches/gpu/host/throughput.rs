//! Samples a second from frames in host memory to a batch: the GPU beside the CPU's packer, by the wall clock.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use epochfeed::cuda::{Device, DeviceMemory, Packer};
use epochfeed::tensor::Dtype;

use crate::check::spec;
use crate::measure::median;
use crate::pixels::{Slot, Source, gains};
use crate::{BATCH, SIDE};

const ROUNDS: usize = 7;
/// Batches of a round on the GPU, and on the CPU.
const BATCHES: usize = 60;
const CPU_BATCHES: usize = 4;
const SLOTS: usize = 4;

fn samples_per_second(batches: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    (batches * BATCH) as f64 / start.elapsed().as_secs_f64()
}

pub fn run(device: &Arc<Device>) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut table = format!(
        "Frames in host memory to a batch, samples/s: medians of {ROUNDS} rounds in turn; the GPU's batches stay there, the CPU's \
         are made by {cores} threads\n\n| uint8 to | GPU | CPU | times |\n|---|---|---|---|\n"
    );
    let sources: Vec<Source> = (0..SLOTS)
        .map(|slot| Source::new(Dtype::Uint8, slot as u64))
        .collect();
    let slots: Vec<Slot> = sources.iter().map(|source| Slot::new(device, source)).collect();
    for dtype in [Dtype::Float32, Dtype::Bfloat16] {
        let spec = spec(dtype);
        let mut packer = Packer::new(device, spec.clone()).unwrap();
        let output = |_| DeviceMemory::new(packer.stream(), BATCH * spec.sample_bytes(SIDE, SIDE)).unwrap();
        let outputs: Vec<_> = (0..2).map(output).collect();
        let mut on_gpu = |batches: usize| {
            for number in 0..batches {
                let host = slots[number % SLOTS].batch(gains(number));
                // SAFETY: the slot's memory, which is kept and never written again.
                unsafe { packer.pack(host, &outputs[number % 2]) }.unwrap();
            }
            packer.stream().synchronize().unwrap();
        };
        let mut batch = vec![0; BATCH * spec.sample_bytes(SIDE, SIDE)];
        let mut on_cpu = |batches: usize| {
            for number in 0..batches {
                sources[number % SLOTS].cpu(&gains(number), &spec, &mut batch);
                std::hint::black_box(&mut batch);
            }
        };
        on_gpu(4);
        on_cpu(1);
        let (mut gpu, mut cpu) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            gpu.push(samples_per_second(BATCHES, || on_gpu(BATCHES)));
            cpu.push(samples_per_second(CPU_BATCHES, || on_cpu(CPU_BATCHES)));
        }
        let (gpu, cpu) = (median(gpu), median(cpu));
        let _ = writeln!(table, "| {dtype} | {gpu:.0} | {cpu:.0} | {:.1} |", gpu / cpu);
    }
    table
}
