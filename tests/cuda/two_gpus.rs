//! The second of two GPUs: the same bytes, and nothing on the first.

use epochfeed::color::PixelFormat;
use epochfeed::cuda::{Device, FusedColor, LaunchError, LaunchGains};
use epochfeed::tensor::PackSpec;

use super::batch::Batch;
use super::definition::assert_equal;
use super::driver;
use super::frames::{Frames, Gaps};
use super::lives::Work;
use super::memory::{Room, Uploaded, stream};
use crate::common::gpu::on_idle_gpu;

#[test]
fn the_second_device_gives_the_same_bytes_and_leaves_the_first_alone() {
    on_idle_gpu(2, || {
        let work = Work::new();
        let first = Device::open(0).unwrap();
        let number = first.raw_device();
        let free = first.free_bytes().unwrap().0;
        let second = Device::open(1).unwrap();
        assert_eq!(second.ordinal(), 1);
        work.live(&second);
        assert_eq!(
            first.free_bytes().unwrap().0,
            free,
            "work of cuda:1 took memory of cuda:0"
        );
        drop(first);
        // Not even a context, when nobody asks for the first one.
        work.live(&second);
        assert!(!driver::primary_context_is_active(number));
    });
}

#[test]
fn memory_and_streams_of_another_device_are_refused() {
    on_idle_gpu(2, || {
        let (first, second) = (Device::open(0).unwrap(), Device::open(1).unwrap());
        let (here, there) = (stream(&first), stream(&second));
        let batch = Batch::new((31, 33), 7);
        let spec = PackSpec::default();
        let want = batch.want(&spec);
        let fused = FusedColor::new(&first, spec).unwrap();
        let frames = Frames::new(PixelFormat::Rgb, batch.size, &batch.samples, Gaps::default());
        let (input, foreign) = (
            Uploaded::new(&here, &frames.bytes, 0),
            Uploaded::new(&there, &frames.bytes, 0),
        );
        // SAFETY: uploaded as described, and not written again.
        let (images, elsewhere) = unsafe { (frames.at(input.pointer()), frames.at(foreign.pointer())) };
        let mut room = Room::new(&here, want.len());
        let output = room.poisoned(&here, want.len(), 0);
        let gains = LaunchGains::Host(&batch.gains);
        let not_on_device = |what| Err(LaunchError::NotOnDevice { what, ordinal: 0 });
        assert_eq!(
            fused.launch(&there, &images, gains, &output),
            not_on_device("the stream")
        );
        assert_eq!(
            fused.launch(&here, &elsewhere, gains, &output),
            not_on_device("the images")
        );
        let mut other_room = Room::new(&there, want.len());
        let other_output = other_room.poisoned(&there, want.len(), 0);
        assert_eq!(
            fused.launch(&here, &images, gains, &other_output),
            not_on_device("the output")
        );
        fused.launch(&here, &images, gains, &output).unwrap();
        let about = || "after the refusals".to_owned();
        assert_equal(room.taken(&here, &about), &want, &about);
    });
}

#[test]
fn the_threads_device_stays_the_second_one() {
    on_idle_gpu(2, || {
        let (first, second) = (Device::open(0).unwrap(), Device::open(1).unwrap());
        // SAFETY: the context of an open device.
        unsafe { driver::set_current_context(second.raw_context()) };
        Work::new().live(&first);
        drop(first);
        assert_eq!(driver::current_context(), second.raw_context());
        // SAFETY: null is always possible.
        unsafe { driver::set_current_context(std::ptr::null_mut()) };
    });
}
