//! Batches in page-locked memory, as a `Packer` takes them.

use std::any::Any;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use epochfeed::color::Gains;
use epochfeed::cuda::{Device, HostBatch, HostRun, Packer, PinnedMemory};

use super::frames::Frames;

/// Page-locked memory for the frames of a batch, behind each other, with room for their gains in front.
pub struct Slot {
    memory: Arc<PinnedMemory>,
    header: usize,
}

impl Slot {
    /// As large as `frames`, which it holds then.
    pub fn new(device: &Arc<Device>, frames: &Frames) -> Self {
        let header = Packer::header_bytes(frames.samples);
        let memory = PinnedMemory::new(device, header + frames.bytes.len()).unwrap();
        let mut slot = Self {
            memory: Arc::new(memory),
            header,
        };
        slot.hold(frames);
        slot
    }

    /// Other frames, of the same sizes. Nothing copies from here any more: what kept the memory for that is gone.
    pub fn hold(&mut self, frames: &Frames) {
        assert_eq!(Arc::strong_count(&self.memory), 1, "a copy may be under way");
        assert!(self.header + frames.bytes.len() <= self.memory.len());
        // SAFETY: room for as many bytes, which nobody else uses.
        unsafe {
            self.memory
                .as_ptr()
                .add(self.header)
                .copy_from_nonoverlapping(frames.bytes.as_ptr(), frames.bytes.len());
        }
    }

    /// The batch of `frames`, as runs of `runs` frames each; with one run the gains can travel in front of it. `keep` is let
    /// go of with the memory.
    pub fn batch(
        &self,
        frames: &Frames,
        runs: &[usize],
        gains: Option<Vec<Gains>>,
        keep: impl Any + Send,
    ) -> HostBatch {
        assert_eq!(runs.iter().sum::<usize>(), frames.samples);
        let header = self.memory.as_ptr();
        let mut first = 0;
        let runs = runs.iter().map(|count| {
            // SAFETY: within the memory, which holds all frames.
            let data = unsafe { header.add(self.header + first * frames.sample_stride) };
            first += count;
            HostRun {
                data,
                frames: *count,
                header: if *count == frames.samples {
                    header
                } else {
                    std::ptr::null_mut()
                },
            }
        });
        HostBatch {
            format: frames.format,
            width: frames.width,
            height: frames.height,
            offsets: [0, frames.plane_stride, 2 * frames.plane_stride],
            row_stride: frames.row_stride,
            sample_stride: frames.sample_stride,
            runs: runs.collect(),
            gains,
            keep: Box::new((self.memory.clone(), keep)),
        }
    }
}

/// What a batch keeps: says its number when it is let go of.
pub struct Kept(pub usize, pub Sender<usize>);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.1.send(self.0);
    }
}
