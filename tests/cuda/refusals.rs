//! What `FusedColor` refuses: by name, before anything is queued.

use std::sync::Arc;

use epochfeed::color::{Gains, PixelFormat};
use epochfeed::cuda::{
    Device, DeviceGains, DeviceMemory, FusedColor, Images, LaunchError, LaunchGains, Output, Stream,
};
use epochfeed::tensor::{Dtype, Layout, PackSpec};

use super::batch::Batch;
use super::definition::assert_equal;
use super::driver;
use super::frames::{Frames, Gaps, planes_at};
use super::memory::{Room, Uploaded, stream};
use super::vectors::spec;
use crate::common::gpu::{on_gpu, on_idle_gpu};

const SIZE: (usize, usize) = (5, 4);
const BATCH: usize = 2;
/// Of a batch in float32.
const BYTES: usize = BATCH * 5 * 4 * 3 * 4;

/// Something that works, to be spoilt in one way at a time.
struct Good {
    stream: Stream,
    fused: FusedColor,
    memory: DeviceMemory,
    room: Room,
    gains: [Gains; BATCH],
}

impl Good {
    fn new(device: &Arc<Device>) -> Self {
        let stream = stream(device);
        let room = Room::new(&stream, BYTES);
        Self {
            fused: FusedColor::new(device, PackSpec::default()).unwrap(),
            memory: DeviceMemory::new(&stream, BYTES).unwrap(),
            room,
            gains: [Gains::new(0.1, 0.2, 0.3).unwrap(); BATCH],
            stream,
        }
    }

    fn planes(&self) -> Images {
        // SAFETY: memory of that size, never written.
        unsafe { planes_at(self.memory.pointer(), BATCH, SIZE) }
    }

    fn strided(&self, dtype: Dtype, strides: [i64; 4]) -> Images {
        // SAFETY: it is refused before anything is read.
        unsafe { Images::from_raw(self.memory.pointer(), dtype, [BATCH, 3, SIZE.1, SIZE.0], strides) }
    }

    /// The reason, when nothing was written.
    #[track_caller]
    fn refused(
        &mut self,
        images: &Images,
        gains: Option<LaunchGains<'_>>,
        output: impl FnOnce(Output, u64) -> Output,
    ) -> LaunchError {
        let poisoned = self.room.poisoned(&self.stream, BYTES, 0);
        let output = output(poisoned, self.room.pointer());
        let host = self.gains;
        let gains = gains.unwrap_or(LaunchGains::Host(&host));
        let error = self
            .fused
            .launch(&self.stream, images, gains, &output)
            .unwrap_err();
        let left = self.room.taken(&self.stream, &|| error.to_string());
        assert!(
            left.iter().all(|byte| *byte == 0xA5),
            "written in spite of: {error}"
        );
        error
    }
}

fn as_it_is(output: Output, _: u64) -> Output {
    output
}

#[track_caller]
fn assert_text(error: &LaunchError, begin: &str) {
    let text = error.to_string();
    assert!(
        text.starts_with(begin),
        "{begin:?} is not the beginning of: {text}"
    );
}

#[test]
fn layouts_and_types_that_the_kernels_do_not_take() {
    on_gpu(|device| {
        let mut good = Good::new(device);
        for strides in [[60, 1, 15, 3], [60, 20, 10, 2], [20, 20, 5, 1]] {
            let error = good.refused(&good.strided(Dtype::Float32, strides), None, as_it_is);
            assert_text(&error, "non-contiguous: float32 images");
        }
        let mirrored = good.strided(Dtype::Uint8, [60, 1, -15, 3]);
        assert_text(
            &good.refused(&mirrored, None, as_it_is),
            "non-contiguous: uint8 images",
        );
        for dtype in [Dtype::Float16, Dtype::Bfloat16] {
            let error = good.refused(&good.strided(dtype, [60, 20, 5, 1]), None, as_it_is);
            assert_text(&error, &format!("precision: images are {dtype}"));
        }
    });
}

#[test]
fn sizes_that_do_not_belong_together() {
    on_gpu(|device| {
        let mut good = Good::new(device);
        let images = good.planes();
        for bytes in [BYTES - 1, BYTES + 1, 0] {
            // SAFETY: it is refused before anything is written.
            let error = good.refused(&images, None, |_, at| unsafe { Output::from_raw(at, bytes) });
            assert_text(
                &error,
                &format!("the bytes of the output: {bytes}, but {BYTES} is needed"),
            );
        }
        // SAFETY: as above.
        let error = good.refused(&images, None, |_, at| unsafe { Output::from_raw(at + 2, BYTES) });
        assert_text(&error, "the alignment of the output");
        let few = [Gains::ZERO];
        let error = good.refused(&images, Some(LaunchGains::Host(&few)), as_it_is);
        assert_text(&error, "the number of gains: 1, but 2 is needed");
        // SAFETY: as above.
        let many = unsafe { DeviceGains::from_raw(good.memory.pointer(), 3) };
        let error = good.refused(&images, Some(LaunchGains::Device(many)), as_it_is);
        assert_text(&error, "the number of gains: 3, but 2 is needed");
    });
}

#[test]
fn host_memory() {
    on_gpu(|device| {
        let mut good = Good::new(device);
        let host = vec![0_u8; BYTES];
        let address = host.as_ptr() as u64;
        let not_on_device = |what| LaunchError::NotOnDevice { what, ordinal: 0 };
        // SAFETY: all of these are refused before anything is read or written.
        let (images, gains) = unsafe {
            (
                planes_at(address, BATCH, SIZE),
                DeviceGains::from_raw(address, BATCH),
            )
        };
        let error = good.refused(&images, None, as_it_is);
        assert_eq!(error, not_on_device("the images"));
        let images = good.planes();
        let error = good.refused(&images, Some(LaunchGains::Device(gains)), as_it_is);
        assert_eq!(error, not_on_device("the gains"));
        // SAFETY: as above.
        let error = good.refused(&images, None, |_, _| unsafe {
            Output::from_raw(address & !3, BYTES)
        });
        assert_eq!(error, not_on_device("the output"));
        assert!(host.iter().all(|byte| *byte == 0));
    });
}

#[test]
fn a_batch_of_nothing_is_nothing_to_do() {
    on_gpu(|device| {
        let good = Good::new(device);
        // SAFETY: no samples, no memory: what PyTorch has for an empty tensor.
        let (images, output) = unsafe { (planes_at(0, 0, SIZE), Output::from_raw(0, 0)) };
        good.fused
            .launch(&good.stream, &images, LaunchGains::None, &output)
            .unwrap();
        good.stream.synchronize().unwrap();
    });
}

/// The caller of a refused launch keeps its path, and its graph is not spoilt by the question.
#[test]
fn a_capturing_stream() {
    on_idle_gpu(1, || {
        let device = Device::open(0).unwrap();
        let stream = stream(&device);
        let batch = Batch::new((31, 33), 7);
        let spec = spec(Dtype::Float32, Layout::Nhwc, None);
        let want = batch.want(&spec);
        let fused = FusedColor::new(&device, spec).unwrap();
        let frames = Frames::new(PixelFormat::Rgb, batch.size, &batch.samples, Gaps::default());
        let input = Uploaded::new(&stream, &frames.bytes, 0);
        // SAFETY: uploaded as described, and not written again.
        let images = unsafe { frames.at(input.pointer()) };
        let mut room = Room::new(&stream, want.len());
        let output = room.poisoned(&stream, want.len(), 0);
        stream.synchronize().unwrap();
        let gains = LaunchGains::Host(&batch.gains);
        driver::captured(&stream, || {
            assert!(stream.is_capturing().unwrap());
            let error = fused.launch(&stream, &images, gains, &output).unwrap_err();
            assert_eq!(error, LaunchError::Capturing);
            assert_text(&error, "capturing: ");
        });
        assert!(!stream.is_capturing().unwrap());
        let left = room.taken(&stream, &|| "captured".to_owned());
        assert!(
            left.iter().all(|byte| *byte == 0xA5),
            "written in spite of the refusal"
        );
        fused.launch(&stream, &images, gains, &output).unwrap();
        let about = || "after the capture".to_owned();
        assert_equal(room.taken(&stream, &about), &want, &about);
    });
}
