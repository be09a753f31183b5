//! `epochdecode cache=ram`: frames are decoded once, and nobody can tell by their bytes.
//!
//! That it changes nothing in the life of an epoch (preparation, seeks, stops, files that go) is in `boundary_property.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::frames::{assert_same, frames, pull};
use common::wait::until;
use common::{Feed, Pipeline, assert_same_bytes, copy_photos, figure, launch, location, quoted, scratch};
use gst::prelude::*;

const PHOTOS: usize = 8;
const SIDE: u64 = 48;
const FRAME: u64 = SIDE * SIDE * 3;

/// A folder of photographs, one of them broken.
fn images() -> tempfile::TempDir {
    let images = scratch();
    let photos = copy_photos(images.path(), PHOTOS);
    std::fs::write(&photos[3], "no image").unwrap();
    images
}

#[test]
fn batches_are_those_of_decoding_every_time() {
    let images = images();
    for (on_error, source) in [
        ("skip", "shuffle=torch"),
        ("replace", "shuffle=keyed"),
        ("replace", "shuffle=none reload=true"),
    ] {
        let run = |cache: &str, source: &str| {
            let decode = format!("on-error={on_error} {cache}");
            let feed = Feed {
                source,
                decode: &decode,
                pack: "batch-size=3 last-batch=pad",
                ..Feed::new(images.path())
            };
            feed.taken()
        };
        let whole = format!("{source} seed=3 epochs=3");
        let wanted = run("", &whole);
        let found = run("cache=ram", &whole);
        assert_same_bytes(source, &found.bytes, &wanted.bytes);
        // In the middle of the second epoch.
        let state = wanted.report.batches[4].state.clone();
        assert_eq!(found.report.without_times(), wanted.report.without_times());
        let rest = format!("{source} seed=3 epochs=2 state={}", quoted(&state.to_string()));
        let resumed = run("cache=ram", &rest);
        let behind = wanted.bytes.len() - resumed.bytes.len();
        assert!(!resumed.bytes.is_empty() && behind > 0);
        assert_same_bytes(&rest, &resumed.bytes, &wanted.bytes[behind..]);
    }
}

/// Elements that write to the frames they get, each a copy of its own.
#[test]
fn who_writes_to_a_frame_writes_to_a_copy() {
    let images = scratch();
    copy_photos(images.path(), PHOTOS);
    let run = |cache| {
        frames(&format!(
            "epochsrc location={} epochs=3 ! epochdecode {cache} ! video/x-raw,format=RGB,width={SIDE},height={SIDE} \
             ! hsvquantize ! videobalance brightness=0.1",
            location(images.path())
        ))
    };
    assert_same(&run("cache=ram"), &run("cache=off"), "in place");
}

/// A pipeline that goes from epoch to epoch when the test says so.
struct Stepped {
    pipeline: Pipeline,
    per_epoch: usize,
}

impl Stepped {
    fn new(images: &Path, source: &str, decode: &str, per_epoch: usize) -> Self {
        let pipeline = Pipeline::new(&format!(
            "epochsrc name=source location={} auto-advance=false epochs=-1 {source} ! epochdecode name=decode {decode} \
             ! capsfilter name=size caps={} ! appsink name=sink sync=false",
            location(images),
            size(SIDE)
        ));
        Self { pipeline, per_epoch }
    }

    /// The frames of the next epoch.
    fn epoch(&self) -> Vec<Vec<u8>> {
        let frame = || {
            let sample = pull(&self.pipeline, "sink").unwrap();
            let map = sample.buffer().unwrap().map_readable().unwrap();
            map.to_vec()
        };
        let frames = std::iter::repeat_with(frame).take(self.per_epoch).collect();
        // A frame is counted before it is pushed.
        let source = self.pipeline.element("source");
        assert!(source.emit_by_name::<bool>("next-epoch", &[]));
        frames
    }

    fn stat(&self, name: &str) -> u64 {
        let stats: gst::Structure = self.pipeline.element("decode").property("stats");
        stats.get(name).unwrap()
    }

    /// Bytes that epochsrc has read.
    fn read(&self) -> u64 {
        let stats: gst::Structure = self.pipeline.element("source").property("stats");
        stats.get("bytes").unwrap()
    }

    fn counts(&self) -> [u64; 4] {
        ["cache-hits", "cache-misses", "cache-entries", "cache-bytes"].map(|name| self.stat(name))
    }
}

fn bytes_of(files: &[PathBuf]) -> u64 {
    files
        .iter()
        .map(|file| std::fs::metadata(file).unwrap().len())
        .sum()
}

fn size(side: u64) -> String {
    format!("video/x-raw,format=RGB,width={side},height={side}")
}

#[test]
fn hits_and_misses_are_counted_and_all_is_released() {
    let images = scratch();
    let files = bytes_of(&copy_photos(images.path(), PHOTOS));
    let run = Stepped::new(images.path(), "", "cache=ram", PHOTOS);
    let (photos, samples) = (PHOTOS as u64, 3 * PHOTOS as u64);
    for _ in 0..2 {
        run.pipeline.element("source").set_property("state", "");
        run.pipeline.set(gst::State::Playing);
        for _ in 0..3 {
            run.epoch();
            assert_eq!(run.read(), files, "files are read once");
        }
        // The next epoch, which has been asked for, may have begun.
        let [hits, misses, entries, bytes] = run.counts();
        assert_eq!((misses, entries, bytes), (photos, photos, photos * FRAME));
        assert!((samples - photos..=samples).contains(&hits), "{hits} hits");
        run.pipeline.set(gst::State::Ready);
        // What was counted stays; what was kept does not.
        let [_, misses, entries, bytes] = run.counts();
        assert_eq!((misses, entries, bytes), (photos, 0, 0));
        // A frame that nobody pulled stays in appsink until NULL, and would be taken for one of the next run.
        run.pipeline.set(gst::State::Null);
    }
}

/// What fits gives hits, in any order of the samples; the rest is decoded each time.
#[test]
fn the_budget_is_kept() {
    let images = scratch();
    copy_photos(images.path(), PHOTOS);
    for shuffle in ["none", "keyed"] {
        let decode = format!("cache=ram cache-bytes={}", 3 * FRAME + FRAME / 2);
        let run = Stepped::new(images.path(), &format!("shuffle={shuffle}"), &decode, PHOTOS);
        run.pipeline.set(gst::State::Playing);
        run.epoch();
        run.epoch();
        run.epoch();
        let [hits, misses, entries, bytes] = run.counts();
        assert_eq!((entries, bytes), (3, 3 * FRAME), "{shuffle}");
        assert!(hits >= 6, "{shuffle}: {hits} hits");
        assert!(misses >= 3 * 5 + 3, "{shuffle}: {misses} misses");
    }
}

/// Frames of files that are gone, which no epoch asks for, make room.
#[test]
fn what_is_gone_makes_room() {
    let images = scratch();
    let photos = copy_photos(images.path(), 4);
    let decode = format!("cache=ram cache-bytes={}", 2 * FRAME);
    let run = Stepped::new(images.path(), "reload=true shuffle=none", &decode, 2);
    for photo in &photos[2..] {
        std::fs::rename(photo, photo.with_extension("aside")).unwrap();
    }
    run.pipeline.set(gst::State::Playing);
    run.epoch();
    until("the second epoch is decoded", || run.stat("cache-hits") == 2);
    for (old, new) in photos[..2].iter().zip(&photos[2..]) {
        std::fs::remove_file(old).unwrap();
        std::fs::rename(new.with_extension("aside"), new).unwrap();
    }
    for _ in 0..3 {
        run.epoch();
    }
    // Epoch 2 found no room, epoch 3 took it.
    until("hits again", || run.stat("cache-hits") >= 4);
    assert_eq!(run.counts()[2..], [2, 2 * FRAME]);
}

/// A file that is another one now is decoded, also where its size and its modification time are what they were.
#[test]
fn a_file_that_changes_is_decoded_again() {
    let images = scratch();
    let photos = copy_photos(images.path(), 3);
    let (first, second) = (&photos[0], &photos[1]);
    // Both of one size; what follows the end of a JPEG says nothing.
    let mut contents = [first, second].map(|file| std::fs::read(file).unwrap());
    let length = contents.iter().map(Vec::len).max().unwrap();
    contents.iter_mut().for_each(|content| content.resize(length, 0));
    std::fs::write(first, &contents[0]).unwrap();
    std::fs::write(second, &contents[1]).unwrap();
    let time = std::fs::metadata(first).unwrap().modified().unwrap();

    let run = Stepped::new(images.path(), "shuffle=none io-depth=1", "cache=ram", 3);
    run.pipeline.set(gst::State::Playing);
    let before = run.epoch();
    // The second epoch is behind when its last frame is.
    until("the second epoch is decoded", || run.stat("cache-hits") == 3);
    std::fs::write(first, &contents[1]).unwrap();
    std::fs::File::options()
        .write(true)
        .open(first)
        .unwrap()
        .set_modified(time)
        .unwrap();
    assert_eq!(run.epoch(), before);
    let after = run.epoch();
    assert_ne!(before[0], before[1]);
    assert_eq!(after, [&before[1], &before[1], &before[2]].map(Clone::clone));
}

/// A file that is listed twice is one frame, and each decoder has its own cache.
#[test]
fn a_file_that_is_listed_twice_is_kept_once() {
    let images = scratch();
    let photos = copy_photos(images.path(), 2);
    let list = images.path().join("list.txt");
    let names = [&photos[0], &photos[1], &photos[0], &photos[0]].map(|photo| photo.to_str().unwrap());
    std::fs::write(&list, names.join("\n")).unwrap();
    let pipeline = Pipeline::playing(&format!(
        "epochsrc location={} epochs=3 ! tee name=t ! queue ! epochdecode name=a cache=ram ! {} ! fakesink \
         t. ! queue ! epochdecode name=b cache=ram ! {} ! fakesink",
        location(&list),
        size(SIDE),
        size(32)
    ));
    pipeline.wait_eos();
    for (name, frame) in [("a", FRAME), ("b", 32 * 32 * 3)] {
        let stats: gst::Structure = pipeline.element(name).property("stats");
        let stat = |name| stats.get::<u64>(name).unwrap();
        assert_eq!(
            (stat("cache-entries"), stat("cache-bytes")),
            (2, 2 * frame),
            "{name}"
        );
        assert_eq!(stat("cache-hits") + stat("cache-misses"), 12, "{name}");
        // The second epoch begins while the last images of the first are decoded.
        assert!(stat("cache-hits") >= 4, "{name}: {stats}");
    }
}

/// Frames of another size or format are other frames.
#[test]
fn another_size_is_decoded_again() {
    let images = scratch();
    let files = bytes_of(&copy_photos(images.path(), 3));
    let run = Stepped::new(images.path(), "shuffle=none", "cache=ram", 3);
    run.pipeline.set(gst::State::Playing);
    let before = run.epoch();
    until("the second epoch is decoded", || run.stat("cache-hits") == 3);
    run.pipeline
        .element("size")
        .set_property("caps", size(32).parse::<gst::Caps>().unwrap());
    assert_eq!(run.epoch(), before);
    let small = run.epoch();
    let wanted = frames(&format!(
        "epochsrc location={} shuffle=none ! epochdecode ! {}",
        location(images.path()),
        size(32)
    ));
    assert_same(&small, &wanted, "of the new size");
    assert_eq!(run.stat("cache-bytes"), 3 * 32 * 32 * 3);
    // It was epochdecode that found that the files are needed after all.
    assert_eq!(run.read(), 2 * files);
}

/// Whoever else gets the files of kept frames reads them.
#[test]
fn another_branch_finds_the_files() {
    let images = scratch();
    let photos = copy_photos(images.path(), PHOTOS);
    let pipeline = Pipeline::playing(&format!(
        "epochsrc name=source location={} shuffle=none epochs=2 auto-advance=false ! tee name=tee \
         tee. ! queue ! epochdecode name=decode cache=ram ! {} ! fakesink async=false \
         tee. ! queue ! appsink name=sink sync=false",
        location(images.path()),
        size(SIDE)
    ));
    let epoch = |kept| {
        for photo in &photos {
            let sample = pull(&pipeline, "sink").unwrap();
            let buffer = sample.buffer().unwrap();
            assert_eq!(buffer.peek_memory(0).is_type("EpochfeedFile"), kept, "{photo:?}");
            assert_same_bytes(
                &photo.display().to_string(),
                &buffer.map_readable().unwrap(),
                &std::fs::read(photo).unwrap(),
            );
        }
    };
    epoch(false);
    until("all frames are kept", || {
        let stats: gst::Structure = pipeline.element("decode").property("stats");
        stats.get::<u64>("cache-entries").unwrap() == PHOTOS as u64
    });
    assert!(pipeline.element("source").emit_by_name::<bool>("next-epoch", &[]));
    epoch(true);
    pipeline.wait_eos();
}

/// Behind a tee one decoder may keep what another needs: then files are read ahead as ever, and not by the decoder, which can
/// neither be called back from a read nor has many on their way.
#[test]
fn files_are_not_read_only_if_every_decoder_keeps_their_frames() {
    let images = scratch();
    copy_photos(images.path(), PHOTOS);
    for (cache, kept) in [
        ("cache=off", 0),
        ("cache=ram", PHOTOS),
        (&*format!("cache=ram cache-bytes={FRAME}"), 1),
    ] {
        let pipeline = Pipeline::new(&format!(
            "epochsrc name=source location={} shuffle=none epochs=2 auto-advance=false ! tee name=tee \
             tee. ! queue ! epochdecode name=all cache=ram ! {size} ! fakesink async=false \
             tee. ! queue ! epochdecode name=some {cache} ! {size} ! fakesink async=false",
            location(images.path()),
            size = size(SIDE)
        ));
        let unread = Arc::new(AtomicUsize::new(0));
        let seen = unread.clone();
        let pad = pipeline.element("some").static_pad("sink").unwrap();
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            let is_unread = |buffer: &gst::Buffer| buffer.peek_memory(0).is_type("EpochfeedFile");
            seen.fetch_add(info.buffer().is_some_and(is_unread).into(), Ordering::Relaxed);
            gst::PadProbeReturn::Ok
        });
        pipeline.set(gst::State::Playing);
        let done = |name: &str| {
            let stats: gst::Structure = pipeline.element(name).property("stats");
            stats.get::<u64>("decoded").unwrap() == PHOTOS as u64
        };
        until("the first epoch is decoded", || done("all") && done("some"));
        assert!(pipeline.element("source").emit_by_name::<bool>("next-epoch", &[]));
        pipeline.wait_eos();
        assert_eq!(unread.load(Ordering::Relaxed), kept, "{cache}");
    }
}

/// Images that keep their own size are kept, too, and no object is left.
#[test]
fn own_sizes_are_kept_and_nothing_leaks() {
    let images = scratch();
    copy_photos(images.path(), 3);
    let line = format!(
        "epochsrc location={} epochs=3 ! epochdecode cache=ram fit=none ! epochbuffer prefetch=complete ! fakesink",
        location(images.path())
    );
    let outcome = launch(&line).trace_leaks().run().success();
    assert_eq!(outcome.leaks(), [""; 0], "{outcome}");
}

/// Samples a second of the later epochs against the first.
#[test]
fn later_epochs_are_three_times_as_fast() {
    let images = scratch();
    let photos = copy_photos(images.path(), 40);
    assert_eq!(photos.len(), 40);
    let folder = scratch();
    let report = folder.path().join("report.jsonl");
    let line = format!(
        "epochsrc location={} epochs=5 ! epochdecode cache=ram ! video/x-raw,format=RGB,width=640,height=640 \
         ! epochsink silent=true report={}",
        location(images.path()),
        report.display()
    );
    launch(&line).limit(Duration::from_secs(60)).run().success();
    let epochs = common::Report::read(&report).epochs;
    let (first, later) = epochs.split_first().unwrap();
    let later = later
        .iter()
        .map(|epoch| epoch.samples_per_s)
        .fold(f64::MAX, f64::min);
    let ratio = later / first.samples_per_s;
    figure(format_args!(
        "cache=ram: {:.0} samples/s, then {later:.0} at least: {ratio:.1} times",
        first.samples_per_s
    ));
    assert!(ratio >= 3.0, "{ratio}: {epochs:?}");
}
