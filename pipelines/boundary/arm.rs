//! One run of the pipeline, seen from the sink.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gst::prelude::*;

/// A pipeline that has not ended after this long never will.
const LIMIT: gst::ClockTime = gst::ClockTime::from_seconds(1200);

/// What the epochbuffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Hold {
    /// Frames, in front of hsvquantize.
    Frames,
    /// Batches, behind nhwcpack.
    Batches,
}

/// What both runs do.
pub struct Plan {
    pub files: Vec<PathBuf>,
    pub epochs: u32,
    pub batch: u32,
    pub step: u32,
    pub validation: u32,
    pub hold: Hold,
    pub max_bytes: u64,
    pub max_buffers: u32,
    pub size: u32,
}

/// One epoch, in time since the run began.
#[derive(Clone, Debug, Default)]
pub struct Epoch {
    pub number: u64,
    pub asked: Duration,
    /// From asking for it to its first batch.
    pub boundary: Duration,
    /// From being done with a batch to having the next.
    pub inside: Vec<Duration>,
    pub ended: Duration,
}

/// One run.
pub struct Arm {
    pub prefetch: &'static str,
    pub epochs: Vec<Epoch>,
    /// Of all batches, in order.
    pub checksums: Vec<u32>,
    /// Names of all threads that were seen.
    pub threads: BTreeSet<String>,
    /// Buffers and bytes.
    pub high_water: (u64, u64),
    pub wall: Duration,
}

/// `samples` paths from the images of `folder`, over and over.
pub fn repeated(folder: &Path, samples: usize) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let dataset = epochfeed::dataset::Dataset::open(folder)?;
    let files: Option<Vec<_>> = (0..dataset.len()).map(|index| dataset.path(index)).collect();
    let files = files.ok_or("the dataset lost a file while it was listed")?;
    Ok(files.iter().cycle().take(samples).cloned().collect())
}

/// What the probe at the sink sees.
#[derive(Default)]
struct Seen {
    epochs: Vec<Epoch>,
    /// CRC-32 of each batch: a slow hash would be a training step that is not in the plan.
    checksums: Vec<u32>,
    /// The sink was done with the last batch.
    done: Option<Duration>,
    threads: BTreeSet<String>,
}

/// Runs the plan with `prefetch`.
pub fn run(plan: &Plan, prefetch: &'static str) -> Result<Arm, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let list = folder.path().join("samples.txt");
    let mut lines = String::new();
    for file in &plan.files {
        writeln!(lines, "{}", file.display())?;
    }
    fs::write(&list, lines)?;

    let buffer = format!(
        "epochbuffer name=buffer prefetch={prefetch} max-buffers={} max-bytes={}",
        plan.max_buffers, plan.max_bytes
    );
    let (frames, batches) = match plan.hold {
        Hold::Frames => (format!("{buffer} ! "), String::new()),
        Hold::Batches => (String::new(), format!("{buffer} ! ")),
    };
    let line = format!(
        "epochsrc name=source epochs={} ! epochdecode name=decode ! video/x-raw,format=RGB,width={size},height={size} ! {frames}\
         hsvquantize ! nhwcpack batch-size={} ! {batches}epochsink name=sink silent=true step-time={} validation-time={}",
        plan.epochs,
        plan.batch,
        plan.step,
        plan.validation,
        size = plan.size,
    );
    let pipeline = gst::parse::launch(&line)?
        .downcast::<gst::Pipeline>()
        .map_err(|_| "not a pipeline")?;
    let element = |name: &str| pipeline.by_name(name).ok_or_else(|| format!("no element {name}"));
    element("source")?.set_property("location", list.to_string_lossy().as_ref());
    let start = Instant::now();
    let seen = watch(
        &element("sink")?,
        start,
        Duration::from_millis(plan.validation.into()),
    )?;

    pipeline.set_state(gst::State::Playing)?;
    let outcome = wait(&pipeline);
    let stats: gst::Structure = element("buffer")?.property("stats");
    pipeline.set_state(gst::State::Null)?;
    outcome?;
    let wall = start.elapsed();
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Arm {
        prefetch,
        epochs: std::mem::take(&mut seen.epochs),
        checksums: std::mem::take(&mut seen.checksums),
        threads: std::mem::take(&mut seen.threads),
        high_water: (stats.get("high-water-buffers")?, stats.get("high-water-bytes")?),
        wall,
    })
}

/// Watches what arrives at `sink`: the probes run on the thread that brings it, before the sink sees it.
fn watch(
    sink: &gst::Element,
    start: Instant,
    validation: Duration,
) -> Result<Arc<Mutex<Seen>>, Box<dyn Error>> {
    let pad = sink.static_pad("sink").ok_or("no sink pad")?;
    let seen = Arc::new(Mutex::new(Seen::default()));
    let probe = seen.clone();
    let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
    pad.add_probe(kinds, move |_, info| {
        let now = start.elapsed();
        let mut seen = probe.lock().unwrap_or_else(PoisonError::into_inner);
        match &info.data {
            Some(gst::PadProbeData::Buffer(buffer)) => {
                seen.batch(buffer, now);
                seen.done = Some(start.elapsed());
            }
            Some(gst::PadProbeData::Event(event)) if event.type_() == gst::EventType::SegmentDone => {
                if let Some(epoch) = seen.epochs.last_mut() {
                    epoch.ended = now;
                }
                let number = seen.epochs.len() as u64;
                // The sink validates in this event, then asks.
                seen.epochs.push(Epoch {
                    number,
                    asked: now + validation,
                    ..Epoch::default()
                });
                seen.done = None;
            }
            // Nothing came behind the last epoch.
            Some(gst::PadProbeData::Event(event))
                if event.type_() == gst::EventType::Eos
                    && seen.epochs.last().is_some_and(|epoch| epoch.ended.is_zero()) =>
            {
                seen.epochs.pop();
            }
            _ => (),
        }
        gst::PadProbeReturn::Ok
    });
    Ok(seen)
}

impl Seen {
    fn batch(&mut self, buffer: &gst::BufferRef, now: Duration) {
        if self.epochs.is_empty() {
            self.epochs.push(Epoch::default());
        }
        if let Some(epoch) = self.epochs.last_mut() {
            match self.done {
                Some(done) => epoch.inside.push(now.saturating_sub(done)),
                None => epoch.boundary = now.saturating_sub(epoch.asked),
            }
        }
        if let Ok(map) = buffer.map_readable() {
            self.checksums.push(crc32fast::hash(&map));
        }
        self.threads.extend(threads());
    }
}

/// Names of this process's threads, numbers left out: which workers exist is the same, how often each was seen is not.
fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .collect()
}

/// Waits for the end of `pipeline`.
fn wait(pipeline: &gst::Pipeline) -> Result<(), Box<dyn Error>> {
    let bus = pipeline.bus().ok_or("the pipeline has no bus")?;
    let kinds = [gst::MessageType::Eos, gst::MessageType::Error];
    let message = bus
        .timed_pop_filtered(LIMIT, &kinds)
        .ok_or("the pipeline did not end")?;
    match message.view() {
        gst::MessageView::Error(error) => Err(error.error().to_string().into()),
        _ => Ok(()),
    }
}

/// The `percent`-th percentile of `times`; zero if there are none.
fn percentile(mut times: Vec<Duration>, percent: usize) -> Duration {
    times.sort_unstable();
    let index = (times.len() * percent).div_ceil(100).saturating_sub(1);
    times.get(index).copied().unwrap_or_default()
}

impl Epoch {
    pub fn median_inside(&self) -> Duration {
        percentile(self.inside.clone(), 50)
    }
}

impl Arm {
    /// A percentile of the waits at boundaries; the first epoch begins at none.
    pub fn boundary(&self, percent: usize) -> Duration {
        percentile(
            self.epochs.iter().skip(1).map(|epoch| epoch.boundary).collect(),
            percent,
        )
    }

    /// The median of all waits inside epochs.
    pub fn inside_median(&self) -> Duration {
        percentile(
            self.epochs
                .iter()
                .flat_map(|epoch| epoch.inside.clone())
                .collect(),
            50,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occur() {
        let times: Vec<_> = (1..=20).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(times.clone(), 50), Duration::from_millis(10));
        assert_eq!(percentile(times.clone(), 95), Duration::from_millis(19));
        assert_eq!(percentile(times, 100), Duration::from_millis(20));
        assert_eq!(percentile(Vec::new(), 95), Duration::ZERO);
    }
}
