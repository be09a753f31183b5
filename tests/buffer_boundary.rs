//! epochbuffer: the next epoch is ready when it is asked for, and one that is never taken leaves no trace.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::{
    Buffered, Held, Pipeline, Report, Seen, Watched, assert_fails, copy_photos, launch, location, scratch,
};
use gst::prelude::*;

const LIMIT: Duration = Duration::from_secs(20);

/// Batches of two samples, by way of an epochbuffer that holds them.
fn watched(images: &Path, source: &str, jitter: &str, buffer: &str) -> Watched {
    Watched::new(&format!(
        "epochsrc name=source location={} auto-advance=false {source} ! epochdecode \
         ! video/x-raw,format=RGB,width=32,height=32 ! hsvquantize name=jitter {jitter} ! nhwcpack batch-size=2 \
         ! epochbuffer name=buffer {buffer} ! fakesink name=sink",
        location(images)
    ))
}

/// The epochs of a run without preparation, one after the other.
fn plain(images: &Path, source: &str, jitter: &str, epochs: usize) -> Vec<Vec<Seen>> {
    let watched = watched(images, source, jitter, "prefetch=off");
    watched.start();
    let mut seen = Vec::new();
    for epoch in 0..epochs {
        if epoch > 0 {
            assert!(watched.ask());
        }
        seen.push(watched.epoch());
    }
    seen
}

#[test]
fn an_epoch_is_prepared_behind_the_gate_and_is_the_same() {
    let images = scratch();
    copy_photos(images.path(), 8);
    for shuffle in ["keyed", "torch", "torch-distributed", "none"] {
        let source = format!("epochs=-1 seed=3 shuffle={shuffle}");
        let wanted = plain(images.path(), &source, "", 4);
        let watched = watched(images.path(), &source, "", "prefetch=complete");
        watched.start();
        for (epoch, wanted) in wanted.iter().enumerate() {
            if epoch > 0 {
                // All of it is here before anybody asks, and none of it has passed.
                watched.until("level-buffers", 4);
                assert!(watched.seen.try_recv().is_err(), "the gate leaks");
                assert!(watched.ask());
            }
            assert_eq!(&watched.epoch(), wanted, "{shuffle}, epoch {epoch}");
        }
        assert_eq!(watched.stat("taken"), 3);
    }
}

#[test]
fn without_preparation_nothing_is_read_before_it_is_asked_for() {
    let images = scratch();
    copy_photos(images.path(), 4);
    let read = |prefetch: &str| {
        let watched = watched(images.path(), "epochs=-1", "", prefetch);
        watched.start();
        watched.epoch();
        if prefetch == "prefetch=complete" {
            watched.until("level-buffers", 2);
        }
        let stats: gst::Structure = watched.pipeline.element("source").property("stats");
        stats.get::<u64>("samples").unwrap()
    };
    assert_eq!(read("prefetch=off"), 4);
    assert_eq!(read("prefetch=complete"), 8);
}

#[test]
fn the_budget_holds_and_one_buffer_is_always_admitted() {
    let images = scratch();
    copy_photos(images.path(), 16);
    for (budget, most) in [("max-buffers=3", 3), ("max-bytes=1", 1)] {
        let watched = watched(
            images.path(),
            "epochs=-1",
            "",
            &format!("prefetch=complete {budget}"),
        );
        watched.start();
        for epoch in 0..5 {
            if epoch > 0 {
                watched.until("level-buffers", most);
                assert!(watched.ask());
            }
            assert_eq!(watched.epoch().len(), 8);
        }
        assert_eq!(watched.stat("high-water-buffers"), most);
    }
}

#[test]
fn what_was_prepared_under_another_recipe_is_prepared_again() {
    let images = scratch();
    copy_photos(images.path(), 6);
    let source = "epochs=-1 seed=5";
    let wanted = plain(images.path(), source, "hue=0.5", 2);
    let watched = watched(images.path(), source, "hue=0.0", "prefetch=complete");
    watched.start();
    assert_ne!(watched.epoch(), wanted[0]);
    watched.until("level-buffers", 3);
    watched.pipeline.element("jitter").set_property("hue", 0.5);
    assert!(watched.ask());
    assert_eq!(watched.epoch(), wanted[1]);
    assert_eq!(watched.stat("invalidated"), 1);
}

#[test]
fn a_failure_while_preparing_is_told_when_the_epoch_is_asked_for() {
    let images = scratch();
    let photos = copy_photos(images.path(), 6);
    let source = "epochs=-1 seed=5";
    let wanted = plain(images.path(), source, "", 3);
    let watched = watched(images.path(), source, "", "prefetch=complete");
    watched.start();
    assert_eq!(watched.epoch(), wanted[0]);
    watched.until("level-buffers", 3);
    // Epoch 1 is held whole; the file goes before epoch 2 is prepared.
    let hidden = images.path().join("hidden.away");
    let victim = &photos[3];
    std::fs::rename(victim, &hidden).unwrap();
    assert!(watched.ask());
    assert_eq!(watched.epoch(), wanted[1], "it is delivered whole");
    for failures in 1..=2 {
        watched.until("failed", failures);
        assert!(!watched.ask(), "it cannot be prepared");
        let told = watched
            .pipeline
            .wait(|message| message.type_() == gst::MessageType::Warning);
        let gst::MessageView::Warning(warning) = told.view() else {
            unreachable!()
        };
        let name = victim.file_name().unwrap().to_string_lossy();
        assert!(
            warning.error().to_string().contains(&*name),
            "{}",
            warning.error()
        );
    }
    watched.until("failed", 3);
    std::fs::rename(&hidden, victim).unwrap();
    assert!(!watched.ask(), "what failed before it was repaired is told, too");
    watched.until("level-buffers", 3);
    assert!(watched.ask());
    assert_eq!(watched.epoch(), wanted[2], "as if nothing had happened");
    assert_eq!(watched.pipeline.errors(), [""; 0]);
}

#[test]
fn an_eos_from_the_application_passes_a_closed_gate_and_a_full_buffer() {
    let images = scratch();
    copy_photos(images.path(), 8);
    for buffer in [
        "prefetch=complete",
        "prefetch=complete max-buffers=1",
        "prefetch=off",
    ] {
        let watched = watched(images.path(), "epochs=-1", "", buffer);
        watched.start();
        watched.epoch();
        if buffer != "prefetch=off" {
            watched.until("level-buffers", if buffer.contains('1') { 1 } else { 4 });
        }
        assert!(watched.pipeline.0.send_event(gst::event::Eos::new()));
        watched.pipeline.wait_eos();
        assert_eq!(
            watched.seen.recv_timeout(LIMIT),
            Ok(Seen::Eos),
            "{buffer}: nobody asked for more"
        );
    }
}

#[test]
fn a_flushing_seek_begins_the_current_epoch_anew() {
    let images = scratch();
    copy_photos(images.path(), 8);
    let source = "epochs=-1 seed=9 shuffle=torch";
    let wanted = plain(images.path(), source, "", 2);
    let watched = watched(images.path(), source, "", "prefetch=complete");
    watched.start();
    assert_eq!(watched.epoch(), wanted[0]);
    watched.until("level-buffers", 4);
    assert!(watched.flushing_seek(0));
    assert_eq!(watched.epoch(), wanted[0], "the epoch that the consumer is in");
    assert!(watched.flushing_seek(4));
    assert_eq!(watched.epoch(), wanted[0][2..]);
    assert!(watched.ask());
    assert_eq!(watched.epoch(), wanted[1]);
}

#[test]
fn a_segment_seek_asks_for_the_next_epoch() {
    let images = scratch();
    copy_photos(images.path(), 4);
    let wanted = plain(images.path(), "epochs=-1", "", 2);
    for buffer in ["prefetch=complete", "prefetch=off"] {
        let watched = watched(images.path(), "epochs=-1", "", buffer);
        watched.start();
        assert_eq!(watched.epoch(), wanted[0]);
        assert!(watched.segment_seek());
        assert_eq!(watched.epoch(), wanted[1]);
    }
}

#[test]
fn the_reason_is_told() {
    let images = scratch();
    copy_photos(images.path(), 4);
    let reason = |source: &str, buffer: &str, sink: &str| {
        let pipeline = Pipeline::new(&format!(
            "epochsrc location={} {source} ! epochdecode ! video/x-raw,width=16,height=16 ! nhwcpack \
             ! epochbuffer name=buffer {buffer} ! {sink}",
            location(images.path())
        ));
        pipeline.reach(gst::State::Paused);
        let buffer = pipeline.element("buffer");
        let reason = buffer.property_value("prefetch-reason");
        let (_, reason) = glib::EnumValue::from_value(&reason).unwrap();
        (
            reason.nick().to_owned(),
            buffer.property::<bool>("prefetch-active"),
        )
    };
    let told = |reason: &str, active| (reason.to_owned(), active);
    assert_eq!(reason("", "", "fakesink"), told("off", false));
    assert_eq!(reason("", "prefetch=complete", "fakesink"), told("ok", true));
    for (source, sink, why) in [
        ("world-size=2", "fakesink", "world-size"),
        ("samples-per-epoch=3", "fakesink", "samples-per-epoch"),
        ("reload=true", "fakesink", "reload"),
        ("", "epochsink silent=true max-steps=9", "step-bound"),
    ] {
        assert_eq!(reason(source, "prefetch=complete", sink), told(why, false));
        assert_eq!(reason(source, "prefetch=any", sink), told("ok", true));
    }
}

#[test]
fn reports_are_the_same_wherever_the_buffer_stands() {
    let images = scratch();
    copy_photos(images.path(), 10);
    let report = scratch();
    let path = report.path().join("report.jsonl");
    let run = |frames: &str, batches: &str| {
        let line = format!(
            "epochsrc location={} epochs=4 seed=2 shuffle=torch ! epochdecode ! video/x-raw,width=32,height=32 ! {frames} \
             hsvquantize ! nhwcpack batch-size=4 ! {batches} epochsink silent=true validation-time=20 report={}",
            location(images.path()),
            location(&path).trim_start_matches("file://")
        );
        launch(&line).run().success();
        Report::read(&path).without_times()
    };
    let wanted = run("", "");
    assert_eq!(wanted.epochs.len(), 4);
    for prefetch in ["off", "complete", "any"] {
        let buffer = format!("epochbuffer prefetch={prefetch} !");
        assert_eq!(run(&buffer, ""), wanted, "frames, {prefetch}");
        assert_eq!(run("", &buffer), wanted, "batches, {prefetch}");
        assert_eq!(
            run(&format!("queue ! {buffer} queue !"), ""),
            wanted,
            "between queues, {prefetch}"
        );
    }
}

#[test]
fn a_recipe_that_changes_all_the_time_skips_and_repeats_nothing() {
    let images = scratch();
    copy_photos(images.path(), 8);
    let watched = watched(images.path(), "epochs=-1", "", "prefetch=complete");
    watched.start();
    let jitter = watched.pipeline.element("jitter");
    let mut chance = 1u64;
    for epoch in 0..300 {
        let batches = watched.epoch();
        let numbers: Vec<_> = batches
            .iter()
            .map(|batch| match batch {
                Seen::Batch(number, ..) => *number,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(numbers, [epoch; 4], "epoch {epoch}");
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // At any moment of the preparation: nothing is waited for, some time is spent.
        for _ in 0..chance >> 44 {
            std::hint::spin_loop();
        }
        jitter.set_property("hue", (chance >> 40) as f64 / (1u64 << 24) as f64);
        assert!(watched.ask());
    }
    assert!(watched.stat("invalidated") > 0);
}

#[test]
fn without_a_consumer_what_passes_the_buffer_is_acknowledged() {
    let images = scratch();
    copy_photos(images.path(), 6);
    let watched = watched(images.path(), "epochs=-1", "", "prefetch=complete");
    watched.start();
    watched.epoch();
    watched.until("level-buffers", 3);
    let place = || {
        let state: Option<String> = watched.pipeline.element("source").property("state");
        let state: serde_json::Value = serde_json::from_str(&state.unwrap_or_default()).unwrap_or_default();
        (state["epoch"].as_u64(), state["position"].as_u64())
    };
    assert_eq!(place(), (Some(0), Some(6)), "what is held is not consumed");
    assert!(watched.ask());
    watched.epoch();
    let deadline = Instant::now() + LIMIT;
    while place() != (Some(1), Some(6)) {
        assert!(Instant::now() < deadline, "the state stays at {:?}", place());
        std::thread::yield_now();
    }
}

/// All of the current epoch may be here before it is asked for: the one behind it does not wait until it has been consumed.
#[test]
fn behind_an_epoch_that_was_prepared_whole_the_next_is_prepared() {
    let images = scratch();
    copy_photos(images.path(), 6);
    for held in Held::ALL {
        let stream = Buffered::new(images.path(), "auto-advance=false", held, "prefetch=complete", 1);
        stream.pipeline().set(gst::State::Playing);
        for _ in 0..3 {
            stream.pull();
        }
        stream.until("level-buffers", if held == Held::Frames { 6 } else { 3 });
        assert!(stream.ask());
        // One batch is in the sink and the next in front of it; nobody takes them.
        stream.until("prepared", 2);
        assert_eq!(stream.pull(), Some((1, vec![0, 1])), "{held:?}");
    }
}

/// Two would have each other's epochs read again without end.
#[test]
fn a_second_buffer_is_refused() {
    let images = scratch();
    copy_photos(images.path(), 2);
    assert_fails(
        &format!(
            "epochsrc location={} ! epochdecode ! video/x-raw,width=16,height=16 ! epochbuffer ! hsvquantize ! nhwcpack \
             ! epochbuffer ! fakesink",
            location(images.path())
        ),
        &["There is another epochbuffer"],
    );
}
