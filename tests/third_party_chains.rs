//! Elements of others between ours: what leaves frames as they are leaves the epochs as they are, however these are asked
//! for and wherever the next one is held.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;
use std::time::Duration;

use common::{Pipeline, Report, Seen, Watched, copy_photos, launch, location, scratch};

const PHOTOS: usize = 8;
const EPOCHS: usize = 3;
const LIMIT: Duration = Duration::from_secs(20);

/// What stands between our elements.
#[derive(Clone, Copy, Debug, Default)]
struct Between<'a> {
    /// Behind epochsrc: encoded images.
    files: &'a str,
    /// Behind epochdecode.
    frames: &'a str,
    /// Behind hsvquantize.
    jittered: &'a str,
    /// Behind nhwcpack.
    batches: &'a str,
    /// Behind an epochbuffer that holds batches.
    held: &'a str,
}

impl<'a> Between<'a> {
    /// The same element everywhere.
    fn everywhere(element: &'a str) -> Self {
        Self {
            files: element,
            frames: element,
            jittered: element,
            batches: element,
            held: element,
        }
    }
}

/// What the epochbuffer holds.
#[derive(Clone, Copy, Debug)]
enum Held {
    Nothing,
    Frames,
    Batches,
}

/// The pipeline up to its sink. Each of `between` begins with a `!` unless it is empty.
fn line(images: &Path, source: &str, held: Held, between: Between) -> String {
    let Between {
        files,
        frames,
        jittered,
        batches,
        held: behind,
    } = between;
    let (early, late) = match held {
        Held::Nothing => ("", "! epochbuffer name=buffer"),
        Held::Frames => ("! epochbuffer name=buffer prefetch=complete", ""),
        Held::Batches => ("", "! epochbuffer name=buffer prefetch=complete"),
    };
    format!(
        "epochsrc name=source location={} seed=3 {source} {files} ! epochdecode \
         ! video/x-raw,format=RGB,width=32,height=32 {frames} {early} {frames} ! hsvquantize name=jitter {jittered} \
         ! nhwcpack batch-size=3 {batches} {late} {behind}",
        location(images)
    )
}

/// How the next epoch is asked for.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Auto,
    Signal,
    Seek,
}

/// Every epoch in our own order, up to the end of the stream.
#[track_caller]
fn epochs(images: &Path, ask: Ask, held: Held, between: Between) -> Vec<Vec<Seen>> {
    epochs_of(images, "", ask, held, between)
}

#[track_caller]
fn epochs_of(images: &Path, source: &str, ask: Ask, held: Held, between: Between) -> Vec<Vec<Seen>> {
    let source = match ask {
        Ask::Auto => format!("epochs={EPOCHS} {source}"),
        Ask::Signal | Ask::Seek => format!("epochs={EPOCHS} auto-advance=false {source}"),
    };
    let watched = Watched::new(&format!(
        "{} ! fakesink name=sink",
        line(images, &source, held, between)
    ));
    watched.start();
    let epochs = (0..EPOCHS).map(|epoch| {
        let whole = match held {
            Held::Nothing => None,
            Held::Frames => Some(PHOTOS as u64),
            Held::Batches => Some(PHOTOS.div_ceil(3) as u64),
        };
        if epoch > 0 && !matches!(ask, Ask::Auto) {
            if let Some(whole) = whole {
                watched.until("level-buffers", whole);
            }
            assert!(watched.seen.try_recv().is_err(), "the gate leaks");
        }
        match ask {
            Ask::Signal if epoch > 0 => assert!(watched.ask()),
            Ask::Seek if epoch > 0 => assert!(watched.segment_seek()),
            _ => (),
        }
        watched.epoch()
    });
    let epochs = epochs.collect();
    assert_eq!(watched.next(), Seen::Eos);
    epochs
}

/// Fails the test unless a pipeline with `between` delivers what one without it does, in every way of asking and holding.
#[track_caller]
fn assert_neutral(images: &Path, wanted: &[Vec<Seen>], between: Between) {
    for held in [Held::Nothing, Held::Frames, Held::Batches] {
        for ask in [Ask::Auto, Ask::Signal, Ask::Seek] {
            let found = epochs(images, ask, held, between);
            assert_eq!(found, wanted, "{ask:?}, holding {held:?}, {between:?}");
        }
    }
}

/// The epochs of a pipeline of ours alone, and its images.
fn plain() -> (tempfile::TempDir, Vec<Vec<Seen>>) {
    let images = scratch();
    copy_photos(images.path(), PHOTOS);
    let wanted = epochs(images.path(), Ask::Signal, Held::Nothing, Between::default());
    let mut checksums: Vec<_> = wanted
        .iter()
        .flatten()
        .map(|batch| format!("{batch:?}"))
        .collect();
    checksums.sort();
    checksums.dedup();
    assert_eq!(
        checksums.len(),
        EPOCHS * PHOTOS.div_ceil(3),
        "no two batches are alike"
    );
    (images, wanted)
}

#[test]
fn elements_that_pass_everything_on() {
    let (images, wanted) = plain();
    for element in [
        "! queue",
        "! queue max-size-buffers=1",
        "! queue2",
        "! multiqueue",
        "! identity",
        "! tee ! valve",
        "! input-selector",
        "! funnel",
        "! concat",
        "! multiqueue ! identity ! queue2 ! tee ! queue",
    ] {
        assert_neutral(images.path(), &wanted, Between::everywhere(element));
    }
}

/// An epoch that ends with one format and the next one that begins with another: the caps change between the two.
#[test]
fn formats_that_change_at_the_boundary() {
    let images = scratch();
    copy_photos(images.path(), 2);
    let png = common::cases::folder().join("a00_control_rgb8.png");
    std::fs::copy(png, images.path().join("zzz.png")).unwrap();
    let run = |between| epochs_of(images.path(), "shuffle=none", Ask::Auto, Held::Nothing, between);
    let wanted = run(Between::default());
    assert_eq!(wanted[0].len(), 1);
    for element in ["! queue", "! queue2", "! multiqueue"] {
        assert_eq!(run(Between::everywhere(element)), wanted, "{element}");
    }
}

#[test]
fn converters_whose_work_can_be_undone() {
    let (images, wanted) = plain();
    for (frames, jittered) in [
        ("! videoconvert", "! videoconvert"),
        // The feature that leaves the pixels to nhwcpack ends at a converter: they come finished, and are not jittered
        // a second time.
        (
            "! videoconvert ! video/x-raw,format=BGRx ! videoconvert ! video/x-raw,format=RGB",
            "! videoconvert ! video/x-raw,format=BGRx",
        ),
        (
            "! videoflip method=rotate-180 ! videoflip method=rotate-180",
            "! queue ! videoflip method=horizontal-flip ! queue ! videoflip method=horizontal-flip ! queue",
        ),
        (
            "! videobox left=-4 top=-8 ! videocrop left=4 top=8",
            "! videobox left=-4 top=-8 ! videocrop left=4 top=8",
        ),
        ("! videoscale ! videobalance", "! videoscale ! videobalance"),
    ] {
        let between = Between {
            frames,
            jittered,
            ..Between::default()
        };
        assert_neutral(images.path(), &wanted, between);
    }
}

/// Sizes of frames that a cropping element changes are those of the batch, on every path.
#[test]
fn a_crop_is_the_same_however_the_epochs_are_held() {
    let (images, plain) = plain();
    let cropped = Between {
        frames: "! videocrop left=5 bottom=3",
        jittered: "! videoflip method=vertical-flip ! videocrop right=1",
        ..Between::default()
    };
    let wanted = epochs(images.path(), Ask::Signal, Held::Nothing, cropped);
    assert_ne!(wanted, plain);
    assert_neutral(images.path(), &wanted, cropped);
}

const QUEUES: [&str; 3] = ["! queue", "! queue2", "! multiqueue"];

#[test]
fn a_flush_in_the_middle_of_an_epoch_discards_what_is_in_queues() {
    let (images, wanted) = plain();
    for queue in QUEUES {
        for held in [Held::Nothing, Held::Frames, Held::Batches] {
            let line = line(
                images.path(),
                "epochs=-1 auto-advance=false",
                held,
                Between::everywhere(queue),
            );
            let watched = Watched::new(&format!("{line} ! fakesink name=sink"));
            watched.start();
            assert_eq!(watched.epoch(), wanted[0]);
            let stopped = watched.stop_at_the_second();
            assert!(watched.ask());
            assert_eq!(watched.next(), wanted[1][0]);
            let probe = stopped.recv_timeout(LIMIT).expect("a second batch comes");
            // What waits in front of the sink and in all the queues is gone; the epoch goes on behind its third sample.
            assert!(watched.flushing_seek(3));
            drop(probe);
            assert_eq!(watched.epoch(), wanted[1][1..], "{queue}, holding {held:?}");
            assert!(watched.ask());
            assert_eq!(watched.epoch(), wanted[2], "{queue}, holding {held:?}");
        }
    }
}

/// A sink that has had enough ends the stream, with the end of the only epoch in the queues already.
#[test]
fn a_sink_that_has_had_enough_ends_the_stream() {
    let images = scratch();
    copy_photos(images.path(), PHOTOS);
    for queue in QUEUES {
        let line = line(images.path(), "", Held::Nothing, Between::everywhere(queue));
        // Not always, where it hung.
        for _ in 0..8 {
            let pipeline = Pipeline::playing(&format!("{line} ! fakesink num-buffers=1 sync=false"));
            pipeline.wait_eos();
        }
    }
}

/// What epochsink booked of a run through `between`, without times.
#[track_caller]
fn report(images: &Path, source: &str, held: Held, between: Between, sink: &str) -> Report {
    let folder = scratch();
    let report = folder.path().join("report.jsonl");
    launch(&line(images, source, held, between))
        .args(&format!("! epochsink silent=true {sink}"))
        .arg(format!("report={}", report.display()))
        .run()
        .success();
    Report::read(&report).without_times()
}

#[test]
fn ledger_states_and_epochs_are_booked_alike() {
    let images = scratch();
    copy_photos(images.path(), PHOTOS);
    // The second run breaks the second epoch off, with the rest of it in the queues.
    for sink in ["validation-time=5", "max-steps=4"] {
        let wanted = report(images.path(), "epochs=3", Held::Nothing, Between::default(), sink);
        wanted.assert_adds_up();
        for (held, element) in [
            (Held::Nothing, "! queue"),
            (Held::Frames, "! multiqueue"),
            (Held::Batches, "! queue2"),
            (Held::Batches, "! identity ! tee ! queue"),
        ] {
            let found = report(
                images.path(),
                "epochs=3",
                held,
                Between::everywhere(element),
                sink,
            );
            assert_eq!(found, wanted, "{sink}: {element}, holding {held:?}");
        }
    }
}
