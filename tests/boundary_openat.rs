//! Which files are opened before an epoch is asked for: none without preparation, all within the budget with it.
//!
//! inotify tells of every open of a file in a folder, by whatever thread and system call, in order, and needs neither a
//! package nor the right to trace another process, which containers often withhold.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use common::{Pipeline, copy_photos, launch, location, scratch};
use epochfeed::elements::epoch_end::EpochEnd;
use epochfeed::sampler::{Sampler, SamplerConfig, Shuffle};
use gst::prelude::*;
use rustix::fs::inotify;
use rustix::io::Errno;

const LIMIT: Duration = Duration::from_secs(20);
const FILES: usize = 12;
const SEED: u64 = 3;

#[track_caller]
fn until(what: &str, mut wanted: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !wanted() {
        assert!(Instant::now() < deadline, "{what}: not in {LIMIT:?}");
        std::thread::yield_now();
    }
}

/// A folder of photographs in which every open is noted.
struct Watched {
    folder: tempfile::TempDir,
    names: Vec<String>,
    inotify: OwnedFd,
    opened: Vec<String>,
}

impl Watched {
    fn new() -> Self {
        let folder = scratch();
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let names = copy_photos(folder.path(), FILES)
            .iter()
            .map(|path| name(path))
            .collect();
        std::fs::write(folder.path().join(MARKER), "").unwrap();
        let inotify = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&inotify, folder.path(), inotify::WatchFlags::OPEN).unwrap();
        Self {
            folder,
            names,
            inotify,
            opened: Vec::new(),
        }
    }

    /// The names of the files that were opened so far, in order.
    fn opened(&mut self) -> &[String] {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) => {
                    assert!(!event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW));
                    // Without a name it is the folder itself.
                    let name = event.file_name().map(|name| name.to_str().unwrap().to_owned());
                    self.opened.extend(name);
                }
                Err(Errno::AGAIN) => return &self.opened,
                Err(error) => panic!("inotify: {error}"),
            }
        }
    }

    /// Whether every photograph was opened so many times, and nothing else.
    fn all_opened(&mut self, times: usize) -> bool {
        let wanted = self.names.iter().map(|name| (name.clone(), times)).collect();
        counts(self.opened()) == wanted
    }

    /// Notes the moment between what was opened before and what is opened from now on.
    fn mark(&self) {
        drop(std::fs::File::open(self.folder.path().join(MARKER)).unwrap());
    }

    /// What was opened before the mark and behind it.
    fn around_mark(&mut self) -> (Vec<String>, Vec<String>) {
        let opened = self.opened();
        let mark = opened
            .iter()
            .position(|name| name == MARKER)
            .expect("it was opened");
        (opened[..mark].to_vec(), opened[mark + 1..].to_vec())
    }

    /// The files of an epoch in its order.
    fn order(&self, epoch: usize) -> Vec<String> {
        let sampler = Sampler::new(SamplerConfig::new(Shuffle::Keyed, SEED, FILES as u64)).unwrap();
        let receipt = (0..epoch).fold(sampler.first(), |receipt, _| sampler.next(&receipt, true));
        let slots = sampler.draw(&receipt);
        slots
            .iter()
            .map(|slot| self.names[slot.dataset_index as usize].clone())
            .collect()
    }
}

/// Not an image by its name.
const MARKER: &str = "the consumer asks";

fn counts(names: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name.clone()).or_default() += 1;
    }
    counts
}

/// Frames up to a sink that asks for nothing: whoever sees this reach the end of an epoch is the consumer.
fn line(watched: &Watched, buffer: &str) -> String {
    format!(
        "epochsrc location={} seed={SEED} auto-advance=false epochs=-1 io-depth=1 ! epochdecode threads=1 \
         ! video/x-raw,width=16,height=16 ! epochbuffer name=buffer {buffer} ! fakesink name=sink async=false",
        location(watched.folder.path())
    )
}

/// A pipeline, and the epochs that have ended at its sink.
fn play(watched: &Watched, buffer: &str) -> (Pipeline, Receiver<u64>) {
    let pipeline = Pipeline::new(&line(watched, buffer));
    let (send, ends) = channel();
    let pad = pipeline.element("sink").static_pad("sink").unwrap();
    pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, move |_, info| {
        if let Some(gst::PadProbeData::Event(event)) = &info.data
            && let Some(end) = EpochEnd::get(event)
        {
            // The test may have seen enough.
            let _ = send.send(end.epoch);
        }
        gst::PadProbeReturn::Ok
    });
    pipeline.set(gst::State::Playing);
    (pipeline, ends)
}

fn wait_level(pipeline: &Pipeline, wanted: u64) {
    until("the next epoch is prepared", || {
        let stats: gst::Structure = pipeline.element("buffer").property("stats");
        stats.get::<u64>("level-buffers").unwrap() == wanted
    });
}

/// Plays two epochs and returns the files of the second one that were opened before it was asked for, and behind that.
fn opened_around_request(buffer: &str, held: u64) -> (Vec<String>, Vec<String>, Vec<String>) {
    let (mut watched, other) = (Watched::new(), Watched::new());
    let (pipeline, ends) = play(&watched, buffer);
    assert_eq!(ends.recv_timeout(LIMIT), Ok(0));
    if held > 0 {
        wait_level(&pipeline, held);
    } else {
        // As much time as another one needs, from its start, to prepare all of it.
        let (other, _ends) = play(&other, "prefetch=complete");
        wait_level(&other, FILES as u64);
    }
    watched.mark();
    assert!(pipeline.element("buffer").emit_by_name::<bool>("next-epoch", &[]));
    assert_eq!(ends.recv_timeout(LIMIT), Ok(1));
    drop(pipeline);
    let (mut before, behind) = watched.around_mark();
    assert_eq!(before[..FILES], watched.order(0), "the first epoch, in its order");
    (before.split_off(FILES), behind, watched.order(1))
}

#[test]
fn without_preparation_nothing_is_opened_before_it_is_asked_for() {
    let (before, behind, order) = opened_around_request("prefetch=off", 0);
    assert_eq!(before, [""; 0]);
    assert_eq!(behind, order);
}

#[test]
fn with_preparation_everything_is_opened_before_it_is_asked_for() {
    let (before, behind, order) = opened_around_request("prefetch=complete", FILES as u64);
    assert_eq!(before, order);
    // Once it is asked for, there is room for the epoch behind it.
    assert!(behind.iter().all(|name| order.contains(name)) && behind.len() <= FILES);
}

#[test]
fn a_budget_bounds_what_is_opened_before_it_is_asked_for() {
    let (before, behind, order) = opened_around_request("prefetch=complete max-buffers=3", 3);
    // Beside the three there are what is decoded (two for each thread), what waits to be pushed at either end, and the
    // file that is opened ahead.
    assert!((3..=3 + 2 + 2 + 1).contains(&before.len()), "{before:?}");
    assert_eq!(before, order[..before.len()]);
    assert_eq!(behind[..FILES - before.len()], order[before.len()..]);
}

/// The same from outside, of processes of which nobody can ask for an epoch.
#[test]
fn gst_launch_opens_the_next_epoch_with_preparation_only() {
    let (mut ordinary, mut preparing) = (Watched::new(), Watched::new());
    let start = |watched: &Watched, buffer: &str| {
        // A debug line is the sign of life that tells the process's number.
        let job = launch(&line(watched, buffer)).env("GST_DEBUG", "epochsrc:5");
        let (send, number) = channel();
        let thread = std::thread::spawn(move || {
            job.run_watching(move |_, id| {
                let _ = send.send(id);
            })
        });
        (thread, number)
    };
    let (off, off_number) = start(&ordinary, "prefetch=off");
    until("an epoch is read", || ordinary.all_opened(1));
    let (complete, complete_number) = start(&preparing, "prefetch=complete");
    until("two epochs are read", || preparing.all_opened(2));
    for number in [off_number, complete_number] {
        common::process::interrupt(number.recv_timeout(LIMIT).unwrap());
    }
    for thread in [off, complete] {
        thread.join().unwrap().success();
    }
    assert!(ordinary.all_opened(1) && preparing.all_opened(2));
}
