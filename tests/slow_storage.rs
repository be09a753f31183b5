//! Storage where each read takes 20 ms: `io-depth` reads are in flight, so that the decoder does not starve.
//!
//! The delay is made by a few lines of C in front of the C library's `read` (tests/data/slow_read.c), which needs no right that
//! a container might withhold.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::alone::alone_under;
use common::wait::until;
use common::{Pipeline, copy_photos, figure, location, scratch};
use gst::prelude::*;

/// Milliseconds that a read takes.
const DELAY: u64 = 20;
const LIMIT: Duration = Duration::from_secs(60);
const PHOTOS: usize = 40;
/// Where the images are.
const FOLDER: &str = "SLOW_FOLDER";
/// Where reads take so long that they might as well never end.
const GONE: &str = "GONE_FOLDER";

/// A folder of photographs, and the environment in which each read there is slow; and its part that nothing comes from.
fn slow_photos() -> (tempfile::TempDir, Vec<(&'static str, String)>) {
    let folder = scratch();
    copy_photos(folder.path(), PHOTOS);
    let gone = folder.path().join("gone");
    std::fs::create_dir(&gone).unwrap();
    copy_photos(&gone, 8);
    let library = folder.path().join("slow_read.so");
    let made = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/slow_read.c"))
        .arg("-ldl")
        .status()
        .unwrap();
    assert!(made.success());
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let variables = vec![
        ("LD_PRELOAD", text(&library)),
        (FOLDER, text(folder.path())),
        ("SLOW_MS", DELAY.to_string()),
        (GONE, text(&gone)),
        ("GONE_MS", LIMIT.as_millis().to_string()),
    ];
    (folder, variables)
}

/// The folder in which reads are slow.
fn slow_folder() -> PathBuf {
    PathBuf::from(std::env::var_os(FOLDER).unwrap())
}

/// A list `name` in the slow folder that names each photograph in `folder` so many times.
fn list(name: &str, folder: &Path, times: usize) -> PathBuf {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let names: Vec<_> = entries
        .map(|path| path.into_os_string().into_string().unwrap())
        .filter(|name| name.ends_with(".jpg"))
        .collect();
    assert!(names.len() >= PHOTOS);
    let list = slow_folder().join(name);
    std::fs::write(&list, vec![names[..PHOTOS].join("\n"); times].join("\n")).unwrap();
    list
}

/// What a run takes, the decoder's statistics, and the source's.
fn run(list: &Path, source: &str, decode: &str, side: u32) -> (Duration, [gst::Structure; 2]) {
    let pipeline = Pipeline::new(&format!(
        "epochsrc name=source location={} {source} ! epochdecode name=decode {decode} \
         ! video/x-raw,width={side},height={side} ! fakesink sync=false",
        location(list)
    ));
    let start = Instant::now();
    pipeline.set(gst::State::Playing);
    pipeline.wait_eos();
    let wall = start.elapsed();
    let stats = ["decode", "source"].map(|name| pipeline.element(name).property("stats"));
    (wall, stats)
}

/// The share of time that each of two decode threads works, and that the source waits for files.
fn shares(list: &Path) -> [f64; 2] {
    let (wall, [decoder, source]) = run(list, "io-depth=64", "threads=2", 1280);
    let share = |nanoseconds: u64, of: f64| nanoseconds as f64 / 1e9 / of / wall.as_secs_f64();
    [
        share(decoder.get("decode-ns").unwrap(), 2.0),
        share(source.get("wait-input-ns").unwrap(), 1.0),
    ]
}

/// Busy is what two threads are without any delay: on a machine that does other things, too, that is less than all the time.
#[test]
fn two_decoders_are_busy() {
    alone_under(LIMIT, slow_photos, || {
        let times = 20;
        let photos = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/photos");
        let fast = list("fast.txt", &photos, times);
        let slow = list("slow.txt", &slow_folder(), times);
        // In turn, because the machine's load changes; the better one of each, and more of them where it is high.
        let ([mut without, mut with], [mut without_waits, mut waits]) = ([0.0_f64; 2], [1.0_f64; 2]);
        for round in 1..=6 {
            let [[busy, waited], [slow_busy, slow_waited]] = [shares(&fast), shares(&slow)];
            (without, with) = (without.max(busy), with.max(slow_busy));
            (without_waits, waits) = (without_waits.min(waited), waits.min(slow_waited));
            if round >= 3 && with >= 0.9 * without && waits < without_waits + 0.1 {
                break;
            }
        }
        figure(format_args!(
            "{} files, {DELAY} ms a read, io-depth=64: two decode threads busy for {:.1} % of the time, without a delay for \
             {:.1} %; files are waited for {:.1} % of the time, without a delay {:.1} %",
            times * PHOTOS,
            with * 100.0,
            without * 100.0,
            waits * 100.0,
            without_waits * 100.0
        ));
        assert!(with >= 0.9 * without, "{with} of {without}");
        // Reading is work, and waits for its turn on cores that decode.
        assert!(waits < without_waits + 0.1, "{waits} against {without_waits}");
    });
}

/// Without reading ahead each file is waited for, once: its end takes no read of its own.
#[test]
fn each_file_takes_one_read() {
    alone_under(LIMIT, slow_photos, || {
        let list = list("list.txt", &slow_folder(), 1);
        let (wall, _) = run(&list, "io-depth=1", "", 16);
        let one = Duration::from_millis(DELAY) * PHOTOS as u32;
        assert!(wall > one, "{wall:?}: the delay has no effect");
        assert!(wall < one * 2, "{wall:?}");
        // With their frames kept, for all epochs together.
        let (wall, [_, source]) = run(&list, "io-depth=1 epochs=20", "cache=ram", 16);
        let waited = Duration::from_nanos(source.get("wait-input-ns").unwrap());
        figure(format_args!(
            "cache=ram: 20 epochs of {PHOTOS} files wait {:.2} times as long for files as one reads, and take {:.2} times as long",
            waited.as_secs_f64() / one.as_secs_f64(),
            wall.as_secs_f64() / one.as_secs_f64()
        ));
        assert!(waited < one * 2, "{waited:?}");
    });
}

/// Nor do files that cannot be used hold up the others: they are read ahead like those.
#[test]
fn empty_files_are_not_waited_for_one_by_one() {
    alone_under(LIMIT, slow_photos, || {
        let list = list("empty.txt", &slow_folder(), 1);
        let empty: Vec<_> = (0..100)
            .map(|number| {
                let name = slow_folder().join(format!("empty{number}"));
                std::fs::write(&name, "").unwrap();
                name.into_os_string().into_string().unwrap()
            })
            .collect();
        let names = std::fs::read_to_string(&list).unwrap();
        std::fs::write(&list, format!("{names}\n{}", empty.join("\n"))).unwrap();
        let (wall, [decoder, _]) = run(&list, "io-depth=64", "on-error=skip", 16);
        assert_eq!(decoder.get::<u64>("faults"), Ok(100));
        let one_by_one = Duration::from_millis(DELAY) * 100;
        assert!(wall < one_by_one / 2, "{wall:?}");
    });
}

/// A network mount that has gone away: who waits for a file lets go, at a flush, at the end and at a stop, and leaves the reads behind.
#[test]
fn nobody_waits_for_storage_that_is_gone() {
    alone_under(LIMIT, slow_photos, || {
        let list = list("photos.txt", &slow_folder(), 1);
        let gone = std::fs::read_dir(std::env::var_os(GONE).unwrap()).unwrap();
        let gone = gone.map(|entry| entry.unwrap().path().into_os_string().into_string().unwrap());
        // The first ones are slow, so that threads read the others.
        let names = std::fs::read_to_string(&list).unwrap();
        let names = names.lines().take(3).map(str::to_owned);
        let names: Vec<_> = names.chain(gone).collect();
        std::fs::write(&list, names.join("\n")).unwrap();
        let pipeline = Pipeline::playing(&format!(
            "epochsrc name=source location={} shuffle=none io-depth=4 ! fakesink async=false",
            location(&list)
        ));
        let waits = |pushed: u64| {
            until("the slow ones are there", || {
                let stats: gst::Structure = pipeline.element("source").property("stats");
                stats.get::<u64>("samples") == Ok(pushed)
            });
        };
        let soon = |what: &str, start: Instant| {
            assert!(
                start.elapsed() < Duration::from_secs(5),
                "{what}: {:?}",
                start.elapsed()
            );
        };
        waits(3);
        let start = Instant::now();
        let pad = pipeline.element("source").static_pad("src").unwrap();
        let flags = gst::SeekFlags::FLUSH;
        assert!(pad.send_event(gst::event::Seek::new(
            1.0,
            flags,
            gst::SeekType::Set,
            gst::format::Default::ZERO,
            gst::SeekType::None,
            gst::format::Default::NONE,
        )));
        soon("flush", start);
        // The reads that hang hold up nothing that is read now.
        waits(6);
        let start = Instant::now();
        assert!(pipeline.0.send_event(gst::event::Eos::new()));
        pipeline.wait_eos();
        soon("end", start);
        let start = Instant::now();
        pipeline.set(gst::State::Null);
        soon("stop", start);
    });
}
