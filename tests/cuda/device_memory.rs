//! Device memory: what a launch takes, what is said when there is none, and that it is in order across streams.

use std::sync::Arc;

use epochfeed::color::PixelFormat;
use epochfeed::cuda::{
    CudaError, Device, DeviceMemory, FusedColor, Images, LaunchGains, Output, PinnedMemory, Stream,
};
use epochfeed::tensor::{Dtype, PackSpec};

use super::batch::Batch;
use super::driver;
use super::frames::{Frames, Gaps};
use super::gate::{Gate, Meanwhile};
use super::memory::{Room, Uploaded, bytes_of, stream};
use crate::common::gpu::{on_gpu, on_idle_gpu};
use crate::common::soak::figure;

/// What the driver's pool may take at a time for some bytes of gains.
const GRANULARITY: usize = 64 << 20;

/// What is free when everything queued is done and the pools have let go.
fn free(device: &Device) -> usize {
    device.synchronize().unwrap();
    device.free_bytes().unwrap().0
}

#[test]
fn a_launch_takes_nothing_but_its_gains() {
    const SIDE: usize = 640;
    const BATCH: usize = 64;
    const LAUNCHES: usize = 32;
    on_idle_gpu(1, || {
        let device = Device::open(0).unwrap();
        let stream = stream(&device);
        let spec = PackSpec::default();
        let fused = FusedColor::new(&device, spec.clone()).unwrap();
        let batch = Batch::new((1, 1), BATCH);
        let (input, output) = (BATCH * SIDE * SIDE * 3, BATCH * spec.sample_bytes(SIDE, SIDE));
        let empty = free(&device);
        let from = DeviceMemory::new(&stream, input).unwrap();
        let to = DeviceMemory::new(&stream, output).unwrap();
        // SAFETY: both are of that size and used on this stream only.
        let (images, out) = unsafe {
            driver::fill(&stream, from.pointer(), input, 100);
            let strides = [SIDE * SIDE * 3, 1, SIDE * 3, 3].map(|stride| stride as i64);
            let images = Images::from_raw(from.pointer(), Dtype::Uint8, [BATCH, 3, SIDE, SIDE], strides);
            (images, Output::from_raw(to.pointer(), output))
        };
        let gains = LaunchGains::Host(&batch.gains);
        // The driver may load what it launches now.
        fused.launch(&stream, &images, gains, &out).unwrap();
        let before = free(&device);
        assert!(empty - before >= input + output);
        assert!(
            empty - before <= input + output + GRANULARITY,
            "{} for input and output",
            empty - before
        );

        let gate = Gate::close(&stream);
        for _ in 0..LAUNCHES {
            fused.launch(&stream, &images, gains, &out).unwrap();
        }
        // Memory is taken when it is asked for, so all that any of them has is taken now.
        let queued = device.free_bytes().unwrap().0;
        gate.open();
        let taken = before.saturating_sub(queued);
        // One intermediate result in bytes would be 79 MB a launch.
        assert!(taken <= GRANULARITY, "{LAUNCHES} launches took {taken} bytes");
        assert_eq!(free(&device), before);
        figure(format_args!(
            "{LAUNCHES} queued launches took {taken} bytes of device memory"
        ));
    });
}

/// Trainers that make no streams use the default one, from threads that may never have seen CUDA.
#[test]
fn memory_of_the_default_stream_comes_back() {
    on_idle_gpu(1, || {
        let device = Device::open(0).unwrap();
        let stream = driver::default_stream(&device);
        let batch = Batch::new((31, 33), 7);
        let spec = PackSpec::default();
        let want = batch.want(&spec);
        let fused = FusedColor::new(&device, spec).unwrap();
        let frames = Frames::new(PixelFormat::Rgb, batch.size, &batch.samples, Gaps::default());
        let input = Uploaded::new(&stream, &frames.bytes, 0);
        // SAFETY: uploaded as described, and not written again.
        let images = unsafe { frames.at(input.pointer()) };
        let mut room = Room::new(&stream, want.len());
        let launch = |room: &mut Room| {
            let output = room.poisoned(&stream, want.len(), 0);
            // Large enough that one that stays is seen.
            drop(DeviceMemory::new(&stream, 1 << 20).unwrap());
            fused
                .launch(&stream, &images, LaunchGains::Host(&batch.gains), &output)
                .unwrap();
            assert!(room.taken(&stream, &|| "the default stream".to_owned()) == want);
        };
        launch(&mut room);
        let before = free(&device);
        assert!(driver::current_context().is_null(), "this thread has no context");
        for _ in 0..200 {
            launch(&mut room);
        }
        assert_eq!(free(&device), before);
    });
}

#[test]
fn a_request_beyond_what_is_free_is_named_and_leaves_nothing() {
    on_idle_gpu(1, || {
        let device = Device::open(0).unwrap();
        let stream = stream(&device);
        drop(DeviceMemory::new(&stream, 1).unwrap());
        let before = free(&device);
        let request = before + (1 << 30);
        for _ in 0..3 {
            let error = DeviceMemory::new(&stream, request).unwrap_err();
            let CudaError::OutOfMemory {
                ordinal,
                wanted,
                free,
                total,
            } = error
            else {
                panic!("{error:?}");
            };
            assert_eq!((ordinal, wanted), (0, request));
            assert!(free < wanted && free <= total && free > before / 2, "{error}");
            let text = error.to_string();
            for part in [
                format!("{request} bytes"),
                format!("{free} of its {total}"),
                "smaller batches".into(),
            ] {
                assert!(text.contains(&part), "{part:?} is not in: {text}");
            }
        }
        let smaller = DeviceMemory::new(&stream, 1 << 20).unwrap();
        let mut host = PinnedMemory::new(&device, 1 << 20).unwrap();
        // SAFETY: memory of that size, used on this stream.
        unsafe { driver::fill(&stream, smaller.pointer(), 1 << 20, 7) };
        smaller.end_write(&stream).unwrap();
        smaller.read(&mut host, &stream).unwrap();
        // SAFETY: the copy has ended.
        assert!(unsafe { bytes_of(&mut host) }.iter().all(|byte| *byte == 7));
        drop(smaller);
        assert_eq!(free(&device), before);
    });
}

#[test]
fn page_locked_memory_beyond_the_machine_is_an_error() {
    on_gpu(|device| {
        let error = PinnedMemory::new(device, 1 << 50).unwrap_err();
        assert!(
            matches!(error, CudaError::OutOfPinned { wanted, .. } if wanted == 1 << 50),
            "{error:?}"
        );
        assert!(
            error
                .to_string()
                .contains("1125899906842624 bytes of page-locked"),
            "{error}"
        );
        assert_eq!(PinnedMemory::new(device, 4096).unwrap().len(), 4096);
    });
}

/// Memory with `value` in it, known to be written.
fn filled(stream: &Stream, bytes: usize, value: u8) -> DeviceMemory {
    let memory = DeviceMemory::new(stream, bytes).unwrap();
    // SAFETY: fresh memory of that size, in its stream's order.
    unsafe { driver::fill(stream, memory.pointer(), bytes, value) };
    memory.end_write(stream).unwrap();
    stream.synchronize().unwrap();
    memory
}

#[test]
fn a_reader_waits_for_the_writer() {
    const BYTES: usize = 1 << 20;
    on_idle_gpu(1, || {
        let device = Device::open(0).unwrap();
        let (writer, reader) = (stream(&device), stream(&device));
        let memory = Arc::new(filled(&writer, BYTES, 1));
        let mut host = PinnedMemory::new(&device, BYTES).unwrap();
        let meanwhile = Meanwhile::new(&device);

        let gate = Gate::close(&writer);
        memory.begin_write(&writer).unwrap();
        // SAFETY: memory of that size; readers wait for `end_write`.
        unsafe { driver::fill(&writer, memory.pointer(), BYTES, 2) };
        memory.end_write(&writer).unwrap();
        let written = memory.written().unwrap();
        let from = memory.clone();
        let read = std::thread::spawn(move || {
            from.read(&mut host, &reader).unwrap();
            host
        });
        meanwhile.pass();
        assert!(!written.is_done().unwrap());
        assert!(!read.is_finished(), "the reader has not waited");
        gate.open();
        let mut host = read.join().unwrap();
        // SAFETY: the copy has ended.
        assert!(unsafe { bytes_of(&mut host) }.iter().all(|byte| *byte == 2));
    });
}

/// Memory that is dropped while another stream still reads it goes to the next user behind that reader.
#[test]
fn memory_is_freed_behind_its_readers() {
    const BYTES: usize = 1 << 20;
    on_idle_gpu(1, || {
        let device = Device::open(0).unwrap();
        let (owner, reader) = (stream(&device), stream(&device));
        let copy = filled(&reader, BYTES, 0);
        let memory = filled(&owner, BYTES, 1);
        let address = memory.pointer();
        let meanwhile = Meanwhile::new(&device);

        let gate = Gate::close(&reader);
        memory.begin_read(&reader).unwrap();
        // SAFETY: both of that size; the one is kept for its reader, the other used here only.
        unsafe { driver::copy(&reader, copy.pointer(), memory.pointer(), BYTES) };
        memory.end_read(&reader).unwrap();
        copy.end_write(&reader).unwrap();
        drop(memory);
        // The next user of that address, and of those that the driver gives out before it.
        let mut next = Vec::new();
        while next
            .last()
            .is_none_or(|next: &DeviceMemory| next.pointer() != address)
        {
            assert!(next.len() < 1000, "the address does not come back");
            next.push(DeviceMemory::new(&owner, BYTES).unwrap());
        }
        for memory in &next {
            // SAFETY: fresh memory of that size, in its stream's order.
            unsafe { driver::fill(&owner, memory.pointer(), BYTES, 2) };
        }
        meanwhile.pass();
        gate.open();
        let mut host = PinnedMemory::new(&device, BYTES).unwrap();
        copy.read(&mut host, &reader).unwrap();
        // SAFETY: the copy has ended.
        let intact = unsafe { bytes_of(&mut host) }.iter().all(|byte| *byte == 1);
        assert!(intact, "memory was given on while it was read");
    });
}
