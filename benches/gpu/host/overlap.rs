//! How much of the copy of batch n+1 is hidden behind the work on batch n, from events.
//!
//! Over PCIe a batch takes about ten times as long to arrive as to be packed, so that the packer alone can hide its kernels
//! behind the copies but not the copies behind its kernels. A trainer works on a batch for longer than that: here repeated
//! launches over the batch, on a stream of its own, stand in for one.

use std::fmt::Write;
use std::sync::Arc;

use epochfeed::cuda::{
    Device, DeviceMemory, Event, FusedColor, LaunchGains, Output, PackTimes, Packer, Stream,
};
use epochfeed::tensor::{Dtype, Layout, PackSpec};

use crate::check::spec;
use crate::measure::{Spans, covered, length, median, ms};
use crate::pixels::{FRAME, Slot, Source, gains, images};
use crate::{BATCH, SIDE, driver};

const BATCHES: usize = 60;
/// Batches at the beginning that are not counted: everything fills up.
const WARM: usize = 8;
/// Page-locked memories and batches in turn.
const SLOTS: usize = 4;
const OUTPUTS: usize = 2;
/// How much longer than a copy the stand-in works.
const TRAINER: f64 = 1.3;
/// What has to be hidden.
const GOAL: f64 = 0.8;

/// Works on batches, on a stream of its own.
struct Trainer {
    stream: Stream,
    step: FusedColor,
    launches: usize,
    scratch: DeviceMemory,
}

impl Trainer {
    fn new(device: &Arc<Device>, busy_ms: f64) -> Self {
        let stream = Stream::new(device).unwrap();
        let spec = spec(Dtype::Float32);
        let step = FusedColor::new(device, spec.clone()).unwrap();
        let scratch = DeviceMemory::new(&stream, BATCH * spec.sample_bytes(SIDE, SIDE)).unwrap();
        let batch = DeviceMemory::new(&stream, scratch.len()).unwrap();
        // Whatever was there may be numbers that are slow to compute with.
        // SAFETY: fresh memory of that size, in its stream's order.
        unsafe { driver::fill(&stream, batch.pointer(), batch.len(), 0) };
        let mut trainer = Self {
            stream,
            step,
            launches: 8,
            scratch,
        };
        trainer.train(&batch);
        let (begin, end) = trainer.train(&batch);
        let launch = ms(&begin, &end) / trainer.launches as f64;
        trainer.launches = (busy_ms / launch).ceil() as usize;
        trainer
    }

    /// Queues the work on `batch`: its beginning and its end.
    fn train(&self, batch: &DeviceMemory) -> (Event, Event) {
        batch.begin_read(&self.stream).unwrap();
        let begin = self.stream.record_timed().unwrap();
        for _ in 0..self.launches {
            // SAFETY: float32 planes, kept for this reader until `end_read` is past; the scratch is used here only.
            unsafe {
                let planes = images(batch.pointer(), Dtype::Float32);
                let output = Output::from_raw(self.scratch.pointer(), self.scratch.len());
                self.step
                    .launch(&self.stream, &planes, LaunchGains::None, &output)
            }
            .unwrap();
        }
        let end = self.stream.record_timed().unwrap();
        batch.end_read(&self.stream).unwrap();
        (begin, end)
    }
}

/// What a run gave, from events only.
struct Run {
    copies: Spans,
    kernels: Spans,
    trainings: Spans,
    /// From a batch to the next, in the middle of the run.
    period: f64,
}

impl Run {
    fn new(base: &Event, times: &[PackTimes], trainings: &[(Event, Event)]) -> Self {
        let span = |from: &Event, to: &Event| (ms(base, from), ms(base, to));
        let spans = |of: fn(&PackTimes) -> &[Event; 2]| -> Spans {
            times[WARM..]
                .iter()
                .map(|times| span(&of(times)[0], &of(times)[1]))
                .collect()
        };
        let kernels = spans(|times| &times.kernel);
        let ends = (kernels[0].1, kernels[kernels.len() - 1].1);
        Self {
            copies: spans(|times| &times.copy),
            period: (ends.1 - ends.0) / (kernels.len() - 1) as f64,
            kernels,
            trainings: trainings.iter().map(|(begin, end)| span(begin, end)).collect(),
        }
    }

    /// The share of the time that something was copied during which kernels ran.
    fn beside_kernels(&self) -> f64 {
        let work = [self.kernels.clone(), self.trainings.clone()].concat();
        covered(&self.copies, &work) / length(&self.copies)
    }
}

fn lengths(spans: &Spans) -> f64 {
    median(spans.iter().map(|(from, to)| to - from).collect())
}

/// What all runs pack: planes, which the trainer can work on.
struct Pipeline {
    packer: Packer,
    slots: Vec<Slot>,
    outputs: Vec<DeviceMemory>,
}

impl Pipeline {
    fn new(device: &Arc<Device>) -> Self {
        let spec = PackSpec::new(Dtype::Float32, Layout::Nchw, None).unwrap();
        let packer = Packer::new(device, spec.clone()).unwrap();
        let slots = (0..SLOTS).map(|slot| Slot::new(device, &Source::new(Dtype::Uint8, slot as u64)));
        let output = |_| DeviceMemory::new(packer.stream(), BATCH * spec.sample_bytes(SIDE, SIDE)).unwrap();
        Self {
            slots: slots.collect(),
            outputs: (0..OUTPUTS).map(output).collect(),
            packer,
        }
    }

    /// Packs all batches, each of them followed by `then`.
    fn run(&mut self, mut then: impl FnMut(&DeviceMemory) -> Option<(Event, Event)>) -> Run {
        self.packer.time();
        let base = self.packer.stream().record_timed().unwrap();
        let mut trainings = Vec::new();
        for number in 0..BATCHES {
            let host = self.slots[number % SLOTS].batch(gains(number));
            let output = &self.outputs[number % OUTPUTS];
            // SAFETY: the slot's memory, which is kept and never written again.
            unsafe { self.packer.pack(host, output) }.unwrap();
            trainings.extend(then(output));
        }
        self.packer.device().synchronize().unwrap();
        Run::new(&base, &self.packer.take_times(), &trainings)
    }
}

pub fn run(device: &Arc<Device>) -> String {
    let mut pipeline = Pipeline::new(device);
    // One batch at a time: what copy and kernel take by themselves.
    let alone = pipeline.run(|output| {
        output.written().unwrap().synchronize().unwrap();
        None
    });
    let (copy, kernel) = (lengths(&alone.copies), lengths(&alone.kernels));
    let packing = pipeline.run(|_| None);
    let trainer = Trainer::new(device, TRAINER * copy);
    let training = pipeline.run(|output| Some(trainer.train(output)));
    let step = lengths(&training.trainings);

    let mut table = format!(
        "Copies hidden, from events: medians or means of {} batches, {:.1} MB each in one copy ({:.1} GB/s)\n\n\
         | | copy, ms | on the device, ms | period, ms | hidden of the shorter | copying while kernels ran |\n\
         |---|---|---|---|---|---|\n",
        BATCHES - WARM,
        (BATCH * FRAME) as f64 / 1e6,
        (BATCH * FRAME) as f64 / 1e6 / copy
    );
    let mut row = |name: &str, compute: f64, run: &Run| {
        let hidden = (copy + compute - run.period) / copy.min(compute);
        let _ = writeln!(
            table,
            "| {name} | {copy:.3} | {compute:.3} | {:.3} | {:.1} % | {:.1} % |",
            run.period,
            100.0 * hidden,
            100.0 * run.beside_kernels()
        );
        hidden
    };
    row("one batch after the other", kernel, &alone);
    row("packer alone", kernel, &packing);
    let hidden = row(
        &format!("with a consumer of {} launches a batch", trainer.launches),
        kernel + step,
        &training,
    );
    let share = training.beside_kernels();
    let reached = hidden >= GOAL && share >= GOAL;
    let _ = writeln!(
        table,
        "\nGoal, {:.0} % of the copies hidden behind a consumer: {}",
        100.0 * GOAL,
        if reached { "reached" } else { "NOT reached" }
    );
    table
}
