//! Pipelines in which nothing asks for epochs but the test, and what arrives at their end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use gst::prelude::*;

use super::Pipeline;

const LIMIT: Duration = Duration::from_secs(20);

/// What arrives at the sink: a batch's epoch and dataset indices and a checksum of its bytes, or the end of an epoch.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    Batch(u64, Vec<u64>, u32),
    EpochEnd,
    Eos,
}

/// A pipeline of a gst-launch line, with elements called `source` (epochsrc) and `sink`, and `buffer` (epochbuffer) where
/// it is asked.
pub struct Watched {
    pub pipeline: Pipeline,
    pub seen: Receiver<Seen>,
}

fn array(structure: &gst::StructureRef, name: &str) -> Vec<u64> {
    let array = structure.get::<gst::ArrayRef>(name).unwrap();
    array
        .as_slice()
        .iter()
        .map(|value| value.get().unwrap())
        .collect()
}

fn batch(buffer: &gst::Buffer) -> Seen {
    let meta = gst::meta::CustomMeta::from_buffer(buffer, "epochfeed-batch").unwrap();
    let bytes = buffer.map_readable().unwrap();
    Seen::Batch(
        meta.structure().get("epoch").unwrap(),
        array(meta.structure(), "dataset-index"),
        crc32fast::hash(&bytes),
    )
}

impl Watched {
    pub fn new(line: &str) -> Self {
        let pipeline = Pipeline::new(line);
        let (send, seen) = channel();
        let pad = pipeline.element("sink").static_pad("sink").unwrap();
        let what = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
        pad.add_probe(what, move |_, info| {
            let seen = match &info.data {
                Some(gst::PadProbeData::Buffer(buffer)) => Some(batch(buffer)),
                Some(gst::PadProbeData::Event(event)) => match event.type_() {
                    gst::EventType::SegmentDone => Some(Seen::EpochEnd),
                    gst::EventType::Eos => Some(Seen::Eos),
                    _ => None,
                },
                _ => None,
            };
            if let Some(seen) = seen {
                // The test may have seen enough.
                let _ = send.send(seen);
            }
            gst::PadProbeReturn::Ok
        });
        Self { pipeline, seen }
    }

    pub fn start(&self) {
        self.pipeline.set(gst::State::Playing);
    }

    /// The batches of the next epoch, up to its end.
    #[track_caller]
    pub fn epoch(&self) -> Vec<Seen> {
        let mut batches = Vec::new();
        loop {
            match self.next() {
                Seen::EpochEnd => return batches,
                Seen::Eos => panic!("EOS behind {batches:?}"),
                batch => batches.push(batch),
            }
        }
    }

    #[track_caller]
    pub fn next(&self) -> Seen {
        self.seen
            .recv_timeout(LIMIT)
            .unwrap_or_else(|_| panic!("nothing comes: {:?}", self.pipeline.errors()))
    }

    pub fn ask(&self) -> bool {
        self.pipeline.element("buffer").emit_by_name("next-epoch", &[])
    }

    /// Asks for the next epoch by a seek to the pipeline, as an application does that knows no element of it.
    pub fn segment_seek(&self) -> bool {
        self.seek(gst::SeekFlags::SEGMENT, 0)
    }

    /// Has the current epoch read again from its `start`-th sample.
    pub fn flushing_seek(&self, start: u64) -> bool {
        self.seek(gst::SeekFlags::FLUSH, start)
    }

    fn seek(&self, flags: gst::SeekFlags, start: u64) -> bool {
        let seek = gst::event::Seek::builder(
            1.0,
            flags,
            gst::SeekType::Set,
            gst::format::Default::from_u64(start),
            gst::SeekType::None,
            gst::format::Default::NONE,
        );
        self.pipeline.0.send_event(seek.build())
    }

    /// Lets one more batch into the sink and stops the stream in front of it with the next; gives the stop away then.
    pub fn stop_at_the_second(&self) -> Receiver<Stopped> {
        let pad = self.pipeline.element("sink").static_pad("sink").unwrap();
        let (send, stopped) = channel();
        let batches = AtomicUsize::new(0);
        let what = gst::PadProbeType::BLOCK | gst::PadProbeType::BUFFER;
        pad.add_probe(what, move |pad, info| {
            match batches.fetch_add(1, Ordering::Relaxed) {
                0 => return gst::PadProbeReturn::Pass,
                1 => drop(send.send(Stopped(pad.clone(), info.id.take()))),
                _ => (),
            }
            gst::PadProbeReturn::Ok
        });
        stopped
    }

    pub fn stat(&self, name: &str) -> u64 {
        let stats: gst::Structure = self.pipeline.element("buffer").property("stats");
        stats.get(name).unwrap()
    }

    /// Waits until the figure `name` is `wanted`.
    #[track_caller]
    pub fn until(&self, name: &str, wanted: u64) {
        let deadline = Instant::now() + LIMIT;
        while self.stat(name) != wanted {
            assert!(Instant::now() < deadline, "{name} stays at {}", self.stat(name));
            std::thread::yield_now();
        }
    }
}

/// A pad that lets nothing through until this is dropped.
pub struct Stopped(gst::Pad, Option<gst::PadProbeId>);

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(probe) = self.1.take() {
            self.0.remove_probe(probe);
        }
    }
}
