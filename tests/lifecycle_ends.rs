//! Runs that end before their epoch does: the ledger adds up, and nothing that was taken is lost.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use common::process::interrupt;
use common::{End, Held, Pipeline, Report, launch, location};
use gst::prelude::*;

const TIMEOUT: Duration = Duration::from_secs(20);

fn photos() -> String {
    location(&common::photos()[0].with_file_name(""))
}

/// A run over all photographs without end.
fn endless(report: &str, sink: &str) -> String {
    format!(
        "epochsrc name=src location={} epochs=-1 ! epochdecode ! video/x-raw,width=32,height=32 ! hsvquantize \
         ! nhwcpack batch-size=4 ! epochsink name=sink silent=true {sink} report={report}",
        photos()
    )
}

/// The report of a run that was broken off: every epoch adds up, and what was not delivered of the last was dropped.
#[track_caller]
fn assert_broken_off(report: &Report) {
    report.assert_adds_up();
    let listed = common::photos().len() as u64;
    let (last, before) = report.epochs.split_last().unwrap();
    for epoch in before {
        assert_eq!((epoch.delivered, epoch.dropped), (listed, 0), "{epoch:?}");
    }
    assert_eq!(last.delivered, report.order(last.epoch).len() as u64, "{last:?}");
    assert_eq!(
        (last.listed, last.dropped),
        (listed, listed - last.delivered),
        "{last:?}"
    );
    // Whatever has a batch has a line of its own at the end.
    assert_eq!(report.batches.last().unwrap().epoch, last.epoch);
}

#[test]
fn an_eos_from_the_application_at_any_batch() {
    for batch in [1, 2, 7, 11, 12, 13, 20] {
        let scratch = common::scratch();
        let path = scratch.path().join("report.jsonl");
        let pipeline = Pipeline::new(&endless(&location(&path), ""));
        let (send, receive) = sync_channel(0);
        let mut seen = 0;
        let seen_batches = std::sync::Mutex::new(move || {
            seen += 1;
            seen
        });
        // The streaming thread waits here until the test takes notice, so that the end comes where it is meant to.
        pipeline.element("sink").static_pad("sink").unwrap().add_probe(
            gst::PadProbeType::BUFFER,
            move |_, _| {
                if (seen_batches.lock().unwrap())() == batch {
                    let _ = send.send(());
                }
                gst::PadProbeReturn::Ok
            },
        );
        pipeline.set(gst::State::Playing);
        receive.recv_timeout(TIMEOUT).expect("the batch never came");
        assert!(pipeline.0.send_event(gst::event::Eos::new()));
        pipeline.wait_eos();
        pipeline.set(gst::State::Null);
        let report = Report::read(&path);
        assert_broken_off(&report);
        assert!(report.batches.len() >= batch);
    }
}

#[test]
fn an_eos_in_the_validation_and_before_the_first_batch() {
    let scratch = common::scratch();
    let path = scratch.path().join("report.jsonl");
    let pipeline = Pipeline::new(&endless(&location(&path), "validation-time=200"));
    pipeline.set(gst::State::Playing);
    // Posted at the end of the epoch, while epochsink is still busy with it.
    pipeline.wait_element("epochfeed-epoch");
    assert!(pipeline.0.send_event(gst::event::Eos::new()));
    pipeline.wait_eos();
    pipeline.set(gst::State::Null);
    let report = Report::read(&path);
    assert_broken_off(&report);
    assert_eq!(report.epochs.len(), 1);
    assert_eq!(report.epochs[0].dropped, 0);

    let pipeline = Pipeline::new(&endless(&location(&path), ""));
    pipeline.reach(gst::State::Paused);
    assert!(pipeline.0.send_event(gst::event::Eos::new()));
    pipeline.set(gst::State::Playing);
    pipeline.wait_eos();
    pipeline.set(gst::State::Null);
    assert_broken_off(&Report::read(&path));
}

#[test]
fn asking_for_the_end_waits_for_nobody() {
    let scratch = common::scratch();
    for state in [gst::State::Paused, gst::State::Playing] {
        let line = endless(
            &location(&scratch.path().join("report.jsonl")),
            "step-time=600000",
        );
        let pipeline = Pipeline::new(&line);
        pipeline.reach(state);
        let start = Instant::now();
        // Whatever is blocked now stays so: a step of ten minutes, or the pause.
        assert!(pipeline.0.send_event(gst::event::Eos::new()));
        pipeline.set(gst::State::Null);
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }
}

#[test]
fn ctrl_c_with_e_ends_the_run_in_order() {
    let scratch = common::scratch();
    let path = scratch.path().join("report.jsonl");
    let line = endless(&location(&path), "silent=false step-time=1");
    let outcome = launch("-e").args(&line).run_watching(|line, id| {
        if line.starts_with("epoch 1:") {
            interrupt(id);
        }
    });
    assert_eq!(outcome.end, End::Code(0), "{outcome}");
    assert_broken_off(&Report::read(&path));
    // The table of the epochs is printed at the end.
    assert!(outcome.stdout.contains("delivered"), "{outcome}");
}

/// A run without end into `sink`, with an epochbuffer for `held` that is always full.
fn endless_and_full(held: Held, source: &str, sink: &str) -> String {
    let buffer = "epochbuffer prefetch=complete max-buffers=1 !";
    let (frames, batches) = match held {
        Held::Frames => (buffer, ""),
        Held::Batches => ("", buffer),
    };
    format!(
        "epochsrc location={} epochs=-1 {source} ! epochdecode ! video/x-raw,width=32,height=32 ! {frames} hsvquantize \
         ! nhwcpack batch-size=4 ! {batches} {sink}",
        photos()
    )
}

/// The sink is slow, so the buffer is full all the time, in mid-epoch and, of the next epoch, at the boundary.
#[test]
fn ctrl_c_with_e_passes_a_full_buffer() {
    for held in Held::ALL {
        for (sink, moment) in [("step-time=20", "epoch 1:"), ("validation-time=300", "epoch 0:")] {
            let scratch = common::scratch();
            let path = scratch.path().join("report.jsonl");
            let sink = format!("epochsink {sink} report={}", location(&path));
            let line = endless_and_full(held, "", &sink);
            let outcome = launch("-e").args(&line).run_watching(move |line, id| {
                if line.starts_with(moment) {
                    interrupt(id);
                }
            });
            assert_eq!(outcome.end, End::Code(0), "{held:?}: {outcome}");
            assert_broken_off(&Report::read(&path));
        }
    }
}

/// Nobody asks for the second epoch, ever.
#[test]
fn ctrl_c_with_e_passes_a_closed_gate() {
    for held in Held::ALL {
        let line = endless_and_full(held, "auto-advance=false", "fakesink");
        // The element says when the next epoch may be prepared: all of the first is there. It may say so twice, and a second
        // Ctrl-C does not wait for the end.
        let mut interrupted = false;
        let job = launch("-e").args(&line).env("GST_DEBUG", "epochbuffer:5");
        let outcome = job.run_watching(move |line, id| {
            if line.contains("Preparing epoch 1") && !std::mem::replace(&mut interrupted, true) {
                interrupt(id);
            }
        });
        assert_eq!(outcome.end, End::Code(0), "{held:?}: {outcome}");
        assert!(
            outcome.stderr.contains("Preparing epoch 1"),
            "{held:?}: {outcome}"
        );
    }
}

#[test]
fn a_number_of_steps_ends_the_run() {
    let photos = u64::try_from(common::photos().len()).unwrap();
    let in_an_epoch = photos.div_ceil(4);
    for steps in [1, 3, in_an_epoch, in_an_epoch + 2] {
        let scratch = common::scratch();
        let path = scratch.path().join("report.jsonl");
        launch(&endless(&location(&path), &format!("max-steps={steps}")))
            .run()
            .success();
        let report = Report::read(&path);
        report.assert_adds_up();
        assert_eq!(report.batches.len() as u64, steps);
        let last = report.epochs.last().unwrap();
        assert_eq!(last.epoch, (steps - 1) / in_an_epoch);
        assert_eq!(last.dropped, photos - last.delivered, "{last:?}");
    }
}

#[test]
fn a_file_that_goes_while_the_pipeline_runs_is_a_fault() {
    let scratch = common::scratch();
    let files = common::copy_photos(scratch.path(), 8);
    let elsewhere = common::scratch();
    let path = elsewhere.path().join("report.jsonl");
    let pipeline = Pipeline::new(&format!(
        "epochsrc name=src location={} shuffle=none epochs=2 io-depth=1 ! epochdecode on-error=skip \
         ! video/x-raw,width=16,height=16 ! nhwcpack batch-size=2 ! epochsink silent=true report={}",
        location(scratch.path()),
        location(&path)
    ));
    let (gone, emptied) = (files[5].clone(), files[6].clone());
    let once = std::sync::Once::new();
    pipeline
        .element("src")
        .static_pad("src")
        .unwrap()
        .add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            once.call_once(|| {
                std::fs::remove_file(&gone).unwrap();
                std::fs::write(&emptied, b"").unwrap();
            });
            gst::PadProbeReturn::Ok
        });
    pipeline.set(gst::State::Playing);
    for (index, reason) in [
        (5, "does not exist"),
        (6, "empty file"),
        (5, "does not exist"),
        (6, "empty file"),
    ] {
        let fault = pipeline.wait_element("epochfeed-fault");
        assert_eq!(fault.get::<u64>("dataset-index"), Ok(index), "{fault}");
        assert!(fault.get::<String>("reason").unwrap().contains(reason), "{fault}");
    }
    pipeline.wait_eos();
    let report = Report::read(&path);
    report.assert_adds_up();
    for epoch in [0, 1] {
        assert_eq!(report.order(epoch), [0, 1, 2, 3, 4, 7]);
    }
}

/// What ended itself after so many steps is at its end like any other: it can be paused, and a flush leads to the end again.
#[test]
fn behind_the_last_step_one_can_pause_and_seek() {
    let pipeline = Pipeline::playing(&endless("/dev/null", "max-steps=2"));
    pipeline.wait_eos();
    let seek = gst::event::Seek::new(
        1.0,
        gst::SeekFlags::FLUSH,
        gst::SeekType::Set,
        gst::format::Default::ZERO,
        gst::SeekType::None,
        gst::format::Default::NONE,
    );
    assert!(pipeline.0.send_event(seek));
    pipeline.wait_eos();
    pipeline.reach(gst::State::Paused);
}

/// The end that the sink makes and the source's, which follows, are one to the application.
#[test]
fn a_number_of_steps_ends_the_run_once() {
    for (epochs, tail) in [
        (-1, ""),
        (1, ""),
        (-1, "queue !"),
        (-1, "epochbuffer prefetch=any !"),
    ] {
        let pipeline = Pipeline::new(&format!(
            "epochsrc location={} epochs={epochs} ! epochdecode ! video/x-raw,width=16,height=16 ! nhwcpack batch-size=16 \
             ! {tail} epochsink name=sink silent=true max-steps=3",
            photos()
        ));
        let (send, ended) = sync_channel(8);
        let pad = pipeline.element("sink").static_pad("sink").unwrap();
        pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, move |_, info| {
            if let Some(gst::PadProbeData::Event(event)) = &info.data
                && event.type_() == gst::EventType::Eos
            {
                let _ = send.send(());
            }
            gst::PadProbeReturn::Ok
        });
        pipeline.set(gst::State::Playing);
        ended.recv_timeout(TIMEOUT).expect("the source does not end");
        pipeline.wait_eos();
        // Whatever is on its way has come then.
        pipeline.reach(gst::State::Ready);
        let bus = pipeline.0.bus().unwrap();
        let more = bus.pop_filtered(&[gst::MessageType::Eos, gst::MessageType::Error]);
        assert!(more.is_none(), "epochs={epochs} {tail}: {more:?}");
    }
}
