//! Building, running and dropping leaves nothing: no device memory, no context, and the thread's own context alone.

use std::ptr::null_mut;
use std::sync::Arc;

use epochfeed::color::PixelFormat;
use epochfeed::cuda::{
    Device, DeviceMemory, FrameJitter, FusedColor, LaunchGains, Packer, PinnedMemory, Stream,
};
use epochfeed::tensor::PackSpec;

use super::batch::Batch;
use super::definition::assert_equal;
use super::driver;
use super::frames::{Frames, Gaps};
use super::host_batch::Slot;
use super::memory::{Room, Uploaded, bytes_of, stream};
use crate::common::gpu::{on_gpu, on_idle_gpu};
use crate::common::soak::figure;

/// What every life does: one batch through both doors, checked.
pub struct Work {
    frames: Frames,
    batch: Batch,
    want: Vec<u8>,
}

impl Work {
    pub fn new() -> Self {
        let batch = Batch::new((160, 120), 8);
        Self {
            frames: Frames::new(PixelFormat::Rgb, batch.size, &batch.samples, Gaps::default()),
            want: batch.want(&PackSpec::default()),
            batch,
        }
    }

    pub fn live(&self, device: &Arc<Device>) {
        self.pack(device);
        self.launch(device);
        drop(FrameJitter::new(device).unwrap());
    }

    fn pack(&self, device: &Arc<Device>) {
        let mut packer = Packer::new(device, PackSpec::default()).unwrap();
        let output = DeviceMemory::new(packer.stream(), self.want.len()).unwrap();
        let slot = Slot::new(device, &self.frames);
        let gains = Some(self.batch.gains.clone());
        // More than are under way at a time, so that everything has been used again.
        for _ in 0..5 {
            // SAFETY: the slot's memory, which is kept and not written again.
            unsafe { packer.pack(slot.batch(&self.frames, &[8], gains.clone(), ()), &output) }.unwrap();
        }
        let mut host = PinnedMemory::new(device, self.want.len()).unwrap();
        output.read(&mut host, &stream(device)).unwrap();
        // SAFETY: the copy has ended.
        assert_equal(unsafe { bytes_of(&mut host) }, &self.want, &|| {
            "a packer".to_owned()
        });
    }

    fn launch(&self, device: &Arc<Device>) {
        let about = || "a launch".to_owned();
        let own = stream(device);
        let fused = FusedColor::new(device, PackSpec::default()).unwrap();
        let input = Uploaded::new(&own, &self.frames.bytes, 0);
        // SAFETY: uploaded as described, and not written again.
        let images = unsafe { self.frames.at(input.pointer()) };
        let mut room = Room::new(&own, self.want.len());
        let output = room.poisoned(&own, self.want.len(), 0);
        fused
            .launch(&own, &images, LaunchGains::Host(&self.batch.gains), &output)
            .unwrap();
        assert_equal(room.taken(&own, &about), &self.want, &about);
    }
}

#[test]
fn fifty_lives_of_a_device_leave_nothing() {
    on_idle_gpu(1, || {
        let work = Work::new();
        let mut free = Vec::new();
        for _ in 0..=50 {
            let device = Device::open(0).unwrap();
            free.push(device.free_bytes().unwrap().0);
            let number = device.raw_device();
            assert!(driver::primary_context_is_active(number));
            work.live(&device);
            drop(device);
            assert!(
                !driver::primary_context_is_active(number),
                "the context is still there"
            );
        }
        assert_eq!(free[50], free[1], "free at the beginning of each life: {free:?}");
        figure(format_args!(
            "free memory before the second and the last of 51 lives: {} bytes",
            free[50]
        ));
    });
}

#[test]
fn fifty_users_of_one_device_leave_nothing() {
    on_idle_gpu(1, || {
        let work = Work::new();
        let device = Device::open(0).unwrap();
        let mut free = Vec::new();
        for _ in 0..50 {
            work.live(&device);
            device.synchronize().unwrap();
            free.push(device.free_bytes().unwrap().0);
        }
        assert_eq!(free[49], free[0], "free behind each: {free:?}");
    });
}

#[test]
fn all_users_share_one_device() {
    on_gpu(|device| {
        let again = Device::open(0).unwrap();
        assert!(Arc::ptr_eq(device, &again));
        // SAFETY: the context of a device that stays open.
        let adopted = unsafe { Device::adopt(device.raw_context()) }.unwrap();
        assert!(Arc::ptr_eq(device, &adopted));
        assert!(Device::count().unwrap() >= 1);
        assert!(!device.name().is_empty());
        let (free, total) = device.free_bytes().unwrap();
        assert!(0 < free && free < total);
    });
}

/// A thread that uses CUDA itself has a device of its own current, one that does not has none.
#[test]
fn the_threads_context_is_left_alone() {
    on_gpu(|device| {
        let work = Work::new();
        for context in [null_mut(), device.raw_context()] {
            // SAFETY: null, or the context of an open device.
            unsafe { driver::set_current_context(context) };
            let same = |what: &str| assert_eq!(driver::current_context(), context, "after {what}");
            drop(Device::open(0).unwrap());
            same("opening");
            let stream = Stream::new(device).unwrap();
            same("making a stream");
            let memory = DeviceMemory::new(&stream, 100).unwrap();
            same("allocating");
            let event = stream.record_timed().unwrap();
            event.synchronize().unwrap();
            assert!(event.is_done().unwrap());
            assert!(event.elapsed_ms(&stream.record_timed().unwrap()).unwrap() >= 0.0);
            same("events");
            drop((event, memory, stream));
            same("dropping");
            work.live(device);
            same("packing and launching");
            // SAFETY: null is always possible.
            unsafe { driver::set_current_context(null_mut()) };
        }
    });
}

/// Neither spoils the other: what a trainer captures on its thread, and the batches that are made and read on others.
#[test]
fn a_graph_is_captured_while_batches_are_made() {
    on_idle_gpu(1, || {
        let device = Device::open(0).unwrap();
        let work = Work::new();
        driver::captured(&stream(&device), || {
            std::thread::scope(|scope| scope.spawn(|| work.pack(&device)).join().unwrap());
        });
    });
}
