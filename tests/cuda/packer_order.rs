//! `Packer`: nothing is overwritten before it has been read. Streams are held, so that only the waits keep the order.

use std::any::Any;
use std::sync::Arc;
use std::sync::mpsc::channel;

use epochfeed::color::PixelFormat;
use epochfeed::cuda::{Device, DeviceMemory, HostBatch, Packer, PinnedMemory};
use epochfeed::tensor::PackSpec;

use super::batch::Batch;
use super::definition::assert_equal;
use super::driver;
use super::frames::{Frames, Gaps};
use super::gate::{Gate, Meanwhile};
use super::host_batch::{Kept, Slot};
use super::memory::{bytes_of, stream};
use crate::common::gpu::on_idle_gpu;

/// Different batches of one shape, each in its own page-locked memory.
struct Batches {
    all: Vec<(Batch, Frames, Slot, Vec<u8>)>,
}

impl Batches {
    fn new(device: &Arc<Device>, count: usize) -> Self {
        let one = |number| {
            let batch = Batch::numbered(number, (160, 120), 8);
            let frames = Frames::new(PixelFormat::Rgb, batch.size, &batch.samples, Gaps::default());
            let slot = Slot::new(device, &frames);
            let want = batch.want(&PackSpec::default());
            (batch, frames, slot, want)
        };
        Self {
            all: (0..count).map(one).collect(),
        }
    }

    fn host(&self, number: usize, keep: impl Any + Send) -> HostBatch {
        let (batch, frames, slot, _) = &self.all[number];
        slot.batch(frames, &[8], Some(batch.gains.clone()), keep)
    }

    fn want(&self, number: usize) -> &[u8] {
        &self.all[number].3
    }
}

/// A packer that has everything it needs: what is made later could wait for a held stream.
fn warm(device: &Arc<Device>, batches: &Batches) -> Packer {
    let mut packer = Packer::new(device, PackSpec::default()).unwrap();
    let output = DeviceMemory::new(packer.stream(), batches.want(0).len()).unwrap();
    for _ in 0..4 {
        // SAFETY: the slot's memory, which is kept and not written again.
        unsafe { packer.pack(batches.host(0, ()), &output) }.unwrap();
    }
    packer.stream().synchronize().unwrap();
    packer.release().unwrap();
    packer
}

#[track_caller]
fn check(device: &Arc<Device>, memory: &DeviceMemory, want: &[u8], what: &str) {
    let mut host = PinnedMemory::new(device, want.len()).unwrap();
    memory.read(&mut host, &stream(device)).unwrap();
    // SAFETY: the copy has ended.
    assert_equal(unsafe { bytes_of(&mut host) }, want, &|| what.to_owned());
}

#[test]
fn a_batch_waits_for_the_readers_of_its_output() {
    on_idle_gpu(1, || {
        let device = Device::open(0).unwrap();
        let batches = Batches::new(&device, 2);
        let mut packer = warm(&device, &batches);
        let consumer = stream(&device);
        let bytes = batches.want(0).len();
        let output = DeviceMemory::new(packer.stream(), bytes).unwrap();
        let taken = DeviceMemory::new(&consumer, bytes).unwrap();
        let meanwhile = Meanwhile::new(&device);
        // SAFETY: the slot's memory, which is kept and not written again.
        unsafe { packer.pack(batches.host(0, ()), &output) }.unwrap();

        let gate = Gate::close(&consumer);
        output.begin_read(&consumer).unwrap();
        // SAFETY: both of that size; the output is kept for its reader, the other used here only.
        unsafe { driver::copy(&consumer, taken.pointer(), output.pointer(), bytes) };
        output.end_read(&consumer).unwrap();
        taken.end_write(&consumer).unwrap();
        // SAFETY: as above.
        unsafe { packer.pack(batches.host(1, ()), &output) }.unwrap();
        meanwhile.pass();
        assert!(
            !output.written().unwrap().is_done().unwrap(),
            "the batch has not waited"
        );
        gate.open();
        check(&device, &taken, batches.want(0), "what the consumer read");
        check(&device, &output, batches.want(1), "what came next");
    });
}

/// With the kernels held, two batches of frames go to the device, and the third waits for the first one's kernel. The calling
/// thread waits for none of it.
#[test]
fn frames_on_the_device_are_read_before_the_next_are_copied_there() {
    on_idle_gpu(1, || {
        let device = Device::open(0).unwrap();
        let batches = Batches::new(&device, 4);
        let mut packer = warm(&device, &batches);
        let outputs: Vec<_> = (0..4)
            .map(|number| DeviceMemory::new(packer.stream(), batches.want(number).len()).unwrap())
            .collect();
        let meanwhile = Meanwhile::new(&device);
        let (kept, dropped) = channel();

        let gate = Gate::close(packer.stream());
        for (number, output) in outputs.iter().enumerate() {
            let host = batches.host(number, Kept(number, kept.clone()));
            // SAFETY: the slot's memory, which is kept and not written again.
            unsafe { packer.pack(host, output) }.unwrap();
        }
        meanwhile.pass();
        packer.release().unwrap();
        let mut released: Vec<usize> = dropped.try_iter().collect();
        released.sort_unstable();
        assert_eq!(
            released,
            [0, 1],
            "these have been copied, the others wait for kernels"
        );
        gate.open();
        for (number, output) in outputs.iter().enumerate() {
            check(&device, output, batches.want(number), &format!("batch {number}"));
        }
        packer.release().unwrap();
        assert_eq!(dropped.try_iter().count(), 2);
    });
}
