//! `Packer`: the CPU's batches, one copy and one launch each where that is possible.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use epochfeed::color::PixelFormat;
use epochfeed::cuda::{CudaError, Device, DeviceMemory, Packer, PinnedMemory};
use epochfeed::tensor::{Dtype, Layout, PackSpec};

use super::batch::Batch;
use super::definition::assert_equal;
use super::driver;
use super::frames::{Frames, Gaps};
use super::host_batch::{Kept, Slot};
use super::memory::{bytes_of, stream};
use super::vectors::{NORMS, spec};
use crate::common::gpu::on_gpu;

/// Poisoned bytes behind a batch.
const GUARD: usize = 256;

/// A place for batches that is poisoned before each, and where it is read to.
struct Place {
    memory: DeviceMemory,
    host: PinnedMemory,
    bytes: usize,
}

impl Place {
    fn new(packer: &Packer, bytes: usize) -> Self {
        Self {
            memory: DeviceMemory::new(packer.stream(), bytes + GUARD).unwrap(),
            host: PinnedMemory::new(packer.device(), bytes + GUARD).unwrap(),
            bytes,
        }
    }

    fn poison(&self) {
        let stream = stream(self.memory.device());
        self.memory.begin_write(&stream).unwrap();
        // SAFETY: memory of that size, in order with its other users.
        unsafe { driver::fill(&stream, self.memory.pointer(), self.memory.len(), 0xA5) };
        self.memory.end_write(&stream).unwrap();
    }

    #[track_caller]
    fn check(&mut self, want: &[u8], about: &dyn Fn() -> String) {
        let stream = stream(self.memory.device());
        self.memory.read(&mut self.host, &stream).unwrap();
        // SAFETY: the copy has ended.
        let (batch, guard) = unsafe { bytes_of(&mut self.host) }.split_at(self.bytes);
        assert_equal(batch, want, about);
        assert!(
            guard.iter().all(|byte| *byte == 0xA5),
            "written behind the batch: {}",
            about()
        );
    }
}

fn specs() -> [PackSpec; 5] {
    [
        PackSpec::default(),
        spec(Dtype::Float16, Layout::Nchw, None),
        spec(Dtype::Bfloat16, Layout::Nhwc, Some(NORMS[0])),
        spec(Dtype::Float32, Layout::Nchw, Some(NORMS[1])),
        spec(Dtype::Uint8, Layout::Nhwc, None),
    ]
}

#[test]
fn batches_of_every_kind_are_the_cpus() {
    on_gpu(|device| {
        let batch = Batch::new((31, 32), 7);
        let gaps = [
            Gaps::default(),
            Gaps {
                row: 3,
                sample: 5,
                shift: 0,
            },
            Gaps {
                row: 4,
                sample: 16,
                shift: 0,
            },
        ];
        for spec in specs() {
            let mut packer = Packer::new(device, spec.clone()).unwrap();
            let (jittered, plain) = (batch.want(&spec), batch.plain(&spec));
            let mut place = Place::new(&packer, jittered.len());
            for (format, gaps) in PixelFormat::ALL
                .iter()
                .flat_map(|format| gaps.map(|gaps| (*format, gaps)))
            {
                let frames = Frames::new(format, batch.size, &batch.samples, gaps);
                let slot = Slot::new(device, &frames);
                for (runs, with_gains) in [
                    (&[7][..], true),
                    (&[3, 4], true),
                    (&[1; 7], true),
                    (&[7], false),
                    (&[2, 5], false),
                ] {
                    let about =
                        || format!("{format:?}, {gaps:?}, runs of {runs:?}, gains {with_gains}, {spec:?}");
                    let gains = with_gains.then(|| batch.gains.clone());
                    let (copies, launches) = packer.counts();
                    place.poison();
                    // SAFETY: the slot's memory, which is kept and not written again.
                    unsafe { packer.pack(slot.batch(&frames, runs, gains, ()), &place.memory) }
                        .unwrap_or_else(|error| panic!("{}: {error}", about()));
                    place.check(if with_gains { &jittered } else { &plain }, &about);
                    let now = packer.counts();
                    assert_eq!(
                        (now.0 - copies, now.1 - launches),
                        (runs.len() as u64, 1),
                        "{}",
                        about()
                    );
                }
            }
        }
    });
}

#[test]
fn batches_of_changing_size_are_the_cpus() {
    on_gpu(|device| {
        let spec = PackSpec::default();
        let mut packer = Packer::new(device, spec.clone()).unwrap();
        let kinds = [
            ((31, 33), 7),
            ((640, 480), 3),
            ((1, 1), 1),
            ((64, 48), 64),
            ((641, 479), 2),
            ((3, 5), 9),
        ];
        for (number, (size, count)) in kinds.into_iter().cycle().take(18).enumerate() {
            let batch = Batch::numbered(number, size, count);
            let want = batch.want(&spec);
            let frames = Frames::new(PixelFormat::Rgb, size, &batch.samples, Gaps::default());
            let slot = Slot::new(device, &frames);
            let mut place = Place::new(&packer, want.len());
            place.poison();
            // SAFETY: the slot's memory, which is kept and not written again.
            unsafe {
                packer.pack(
                    slot.batch(&frames, &[count], Some(batch.gains.clone()), ()),
                    &place.memory,
                )
            }
            .unwrap();
            place.check(&want, &|| format!("{count} of {size:?}"));
        }
    });
}

#[test]
fn a_batch_that_does_not_fit_is_an_error_that_lets_go_of_it() {
    on_gpu(|device| {
        let spec = PackSpec::default();
        let mut packer = Packer::new(device, spec.clone()).unwrap();
        let batch = Batch::new((31, 33), 7);
        let frames = Frames::new(PixelFormat::Rgb, batch.size, &batch.samples, Gaps::default());
        let want = batch.want(&spec);
        let slot = Slot::new(device, &frames);
        let small = DeviceMemory::new(packer.stream(), want.len() - 1).unwrap();
        let (kept, dropped) = channel();
        let gains = Some(batch.gains.clone());
        let host = slot.batch(&frames, &[7], gains.clone(), Kept(1, kept.clone()));
        // SAFETY: the slot's memory, which is kept and not written again.
        let error = unsafe { packer.pack(host, &small) }.unwrap_err();
        let too_large = CudaError::TooLarge {
            what: "a batch in bytes",
            value: want.len(),
            limit: want.len() - 1,
        };
        assert_eq!(error, too_large);
        assert_eq!(dropped.try_recv(), Ok(1));
        let mut place = Place::new(&packer, want.len());
        place.poison();
        // SAFETY: as above.
        unsafe { packer.pack(slot.batch(&frames, &[7], gains, Kept(2, kept)), &place.memory) }.unwrap();
        place.check(&want, &|| "after the error".to_owned());
        drop(packer);
        assert_eq!(dropped.try_recv(), Ok(2));
    });
}

/// The next slot whose copy has ended.
fn next_slot(packer: &mut Packer, free: &mut Vec<usize>, dropped: &Receiver<usize>) -> usize {
    loop {
        free.extend(dropped.try_iter());
        if let Some(slot) = free.pop() {
            return slot;
        }
        packer.release().unwrap();
        std::thread::yield_now();
    }
}

/// Many batches through few buffers, all of them in flight: a consumer's stream copies each of two outputs away, behind
/// the packer and before the next one, while the host fills a frame memory again as soon as its copy has ended.
///
/// Without the waits in `begin_write`, `begin_read` or `release` bytes of the wrong batch appear.
#[test]
fn many_batches_through_few_buffers_do_not_mix() {
    const BATCHES: usize = 300;
    const KINDS: usize = 7;
    on_gpu(|device| {
        let spec = PackSpec::default();
        let mut packer = Packer::new(device, spec.clone()).unwrap();
        let consumer = stream(device);
        let all: Vec<(Batch, Frames, Vec<u8>)> = (0..KINDS)
            .map(|number| {
                let batch = Batch::numbered(number, (160, 120), 8);
                let frames = Frames::new(PixelFormat::Rgb, batch.size, &batch.samples, Gaps::default());
                let want = batch.want(&spec);
                (batch, frames, want)
            })
            .collect();
        let bytes = all[0].2.len();
        let outputs = [(); 2].map(|()| DeviceMemory::new(packer.stream(), bytes).unwrap());
        let taken = DeviceMemory::new(&consumer, BATCHES * bytes).unwrap();
        let mut slots = [(); 4].map(|()| Slot::new(device, &all[0].1));
        let (kept, dropped) = channel();
        let mut free: Vec<usize> = (0..slots.len()).collect();
        for number in 0..BATCHES {
            let (batch, frames, _) = &all[number % KINDS];
            let slot = next_slot(&mut packer, &mut free, &dropped);
            slots[slot].hold(frames);
            let runs: &[usize] = if number % 3 == 2 { &[5, 3] } else { &[8] };
            let gains = Some(batch.gains.clone());
            let host = slots[slot].batch(frames, runs, gains, Kept(slot, kept.clone()));
            let output = &outputs[number % outputs.len()];
            // SAFETY: the slot's memory, which is kept, and written again only when that is dropped.
            unsafe { packer.pack(host, output) }.unwrap();
            output.begin_read(&consumer).unwrap();
            let to = taken.pointer() + (number * bytes) as u64;
            // SAFETY: room for all of them, used on this stream only; the output is kept for its reader.
            unsafe { driver::copy(&consumer, to, output.pointer(), bytes) };
            output.end_read(&consumer).unwrap();
        }
        taken.end_write(&consumer).unwrap();
        let mut host = PinnedMemory::new(device, BATCHES * bytes).unwrap();
        taken.read(&mut host, &consumer).unwrap();
        // SAFETY: the copy has ended.
        for (number, got) in unsafe { bytes_of(&mut host) }.chunks_exact(bytes).enumerate() {
            assert_equal(got, &all[number % KINDS].2, &|| format!("batch {number}"));
        }
        assert_eq!(
            packer.counts(),
            (
                (0..BATCHES).map(|number| 1 + u64::from(number % 3 == 2)).sum(),
                BATCHES as u64
            )
        );
    });
}

#[test]
fn moments_are_in_order() {
    on_gpu(|device: &Arc<Device>| {
        let spec = PackSpec::default();
        let mut packer = Packer::new(device, spec.clone()).unwrap();
        let batch = Batch::new((160, 120), 8);
        let frames = Frames::new(PixelFormat::Rgb, batch.size, &batch.samples, Gaps::default());
        let slot = Slot::new(device, &frames);
        let output = DeviceMemory::new(packer.stream(), batch.want(&spec).len()).unwrap();
        assert!(packer.take_times().is_empty());
        packer.time();
        for _ in 0..4 {
            // SAFETY: the slot's memory, which is kept and not written again.
            unsafe { packer.pack(slot.batch(&frames, &[8], Some(batch.gains.clone()), ()), &output) }
                .unwrap();
        }
        let times = packer.take_times();
        assert_eq!(times.len(), 4);
        for times in times {
            let [copied, copy_done] = &times.copy;
            let [packing, packed] = &times.kernel;
            for (from, to) in [(copied, copy_done), (copy_done, packing), (packing, packed)] {
                assert!(from.elapsed_ms(to).unwrap() >= 0.0);
            }
        }
        assert!(packer.take_times().is_empty());
    });
}
