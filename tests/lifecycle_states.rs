//! State changes and flushes at any moment: nothing hangs, nothing is lost that was not meant to be.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use common::{Pipeline, Report, location};
use gst::prelude::*;

const TIMEOUT: Duration = Duration::from_secs(20);
/// How long bringing a pipeline to NULL may take.
const STOP: Duration = Duration::from_secs(1);

fn photos() -> String {
    location(&common::photos()[0].with_file_name(""))
}

/// Lets the test wait for something that passes `pad` and for which `wanted` holds.
fn passing(
    pad: &gst::Pad,
    kind: gst::PadProbeType,
    wanted: impl Fn(&gst::PadProbeInfo) -> bool + Send + Sync + 'static,
) -> Receiver<()> {
    let (send, receive) = sync_channel(1);
    pad.add_probe(kind, move |_, info| {
        if wanted(info) {
            // The test may look at the first only.
            let _ = send.try_send(());
        }
        gst::PadProbeReturn::Ok
    });
    receive
}

fn sink_pad(pipeline: &Pipeline) -> gst::Pad {
    pipeline.element("sink").static_pad("sink").unwrap()
}

/// A batch comes to the sink.
fn batches(pipeline: &Pipeline) -> Receiver<()> {
    passing(&sink_pad(pipeline), gst::PadProbeType::BUFFER, |_| true)
}

/// The end of an epoch comes to the sink, which validates then.
fn epoch_ends(pipeline: &Pipeline) -> Receiver<()> {
    passing(
        &sink_pad(pipeline),
        gst::PadProbeType::EVENT_DOWNSTREAM,
        |info| matches!(&info.data, Some(gst::PadProbeData::Event(event)) if event.type_() == gst::EventType::SegmentDone),
    )
}

#[track_caller]
fn stop(pipeline: &Pipeline) {
    let start = Instant::now();
    pipeline.set(gst::State::Null);
    assert!(start.elapsed() < STOP, "going to NULL took {:?}", start.elapsed());
}

/// Starts and stops the pipeline of `line` a hundred times, each time when a batch comes.
fn a_hundred_stops(line: &str) {
    let pipeline = Pipeline::new(line);
    for _ in 0..100 {
        let batch = batches(&pipeline);
        pipeline.set(gst::State::Playing);
        batch.recv_timeout(TIMEOUT).expect("no batch came");
        stop(&pipeline);
    }
    assert_eq!(pipeline.errors(), [""; 0]);
}

#[test]
fn a_hundred_stops_in_mid_epoch() {
    a_hundred_stops(&format!(
        "epochsrc location={} epochs=-1 ! epochdecode ! video/x-raw,width=64,height=64 ! hsvquantize \
         ! nhwcpack batch-size=4 ! epochsink name=sink silent=true",
        photos()
    ));
}

#[test]
fn a_hundred_stops_behind_a_full_queue() {
    // Nobody pulls: everything is blocked in a push, or about to be.
    a_hundred_stops(&format!(
        "epochsrc location={} epochs=-1 ! epochdecode ! video/x-raw,width=64,height=64 ! hsvquantize ! queue \
         ! nhwcpack batch-size=2 ! queue max-size-buffers=1 ! appsink name=sink max-buffers=1 sync=false",
        photos()
    ));
}

#[test]
fn every_element_goes_up_and_down_alone_and_with_peers() {
    common::pipeline::init();
    let alone = ["epochsrc", "epochdecode", "hsvquantize", "nhwcpack", "epochsink"];
    let with_peers = [
        format!("epochsrc location={} ! fakesink", photos()),
        "fakesrc ! image/jpeg ! epochdecode ! fakesink".to_owned(),
        "videotestsrc ! hsvquantize ! fakesink".to_owned(),
        "videotestsrc ! video/x-raw,format=RGB ! nhwcpack ! fakesink".to_owned(),
        "videotestsrc ! video/x-raw,format=RGB ! epochsink silent=true".to_owned(),
    ];
    for name in alone {
        let element = gst::ElementFactory::make(name).build().unwrap();
        if name == "epochsrc" {
            element.set_property("location", photos());
        }
        for _ in 0..5 {
            for state in [
                gst::State::Ready,
                gst::State::Paused,
                gst::State::Playing,
                gst::State::Null,
            ] {
                element
                    .set_state(state)
                    .unwrap_or_else(|_| panic!("{name} does not go to {state:?}"));
            }
        }
        let weak = element.downgrade();
        drop(element);
        assert!(weak.upgrade().is_none(), "{name} is kept alive");
    }
    for line in with_peers {
        let pipeline = Pipeline::new(&line);
        for _ in 0..5 {
            for state in [
                gst::State::Ready,
                gst::State::Paused,
                gst::State::Ready,
                gst::State::Paused,
            ] {
                pipeline.set(state);
            }
            stop(&pipeline);
        }
    }
}

#[test]
fn a_start_that_fails_can_be_repeated() {
    let scratch = common::scratch();
    let folder = scratch.path().join("photos");
    let pipeline = Pipeline::new(&format!(
        "epochsrc location={} ! epochdecode ! video/x-raw,width=16,height=16 ! nhwcpack ! epochsink silent=true",
        location(&folder)
    ));
    for _ in 0..3 {
        assert!(pipeline.0.set_state(gst::State::Playing).is_err());
        pipeline.set(gst::State::Null);
    }
    std::fs::create_dir(&folder).unwrap();
    common::copy_photos(&folder, 3);
    let _ = pipeline.errors();
    pipeline.set(gst::State::Playing);
    pipeline.wait_eos();
}

/// Two epochs of four samples in batches of two, with a report.
fn trainer(folder: &Path, report: &Path, times: &str) -> Pipeline {
    common::copy_photos(folder, 4);
    Pipeline::new(&format!(
        "epochsrc location={} epochs=2 ! epochdecode ! video/x-raw,width=16,height=16 ! hsvquantize \
         ! nhwcpack batch-size=2 ! epochsink name=sink silent=true {times} report={}",
        location(folder),
        location(report)
    ))
}

/// Pauses and goes on when `moment` comes; the run must be whole all the same.
fn pause_and_go_on(times: &str, moment: fn(&Pipeline) -> Receiver<()>) {
    let (scratch, elsewhere) = (common::scratch(), common::scratch());
    let report = elsewhere.path().join("report.jsonl");
    let pipeline = trainer(scratch.path(), &report, times);
    let moment = moment(&pipeline);
    let start = Instant::now();
    pipeline.set(gst::State::Playing);
    for _ in 0..2 {
        moment.recv_timeout(TIMEOUT).expect("the moment never came");
        // Each is waited for: GStreamer 1.22 itself stays in PAUSED when a pipeline that still prerolls is paused and
        // started again at once, with any sink.
        pipeline.reach(gst::State::Playing);
        for _ in 0..3 {
            pipeline.reach(gst::State::Paused);
            pipeline.reach(gst::State::Playing);
        }
    }
    pipeline.wait_eos();
    let elapsed = start.elapsed();
    stop(&pipeline);
    let report = Report::read(&report);
    report.assert_adds_up();
    assert_eq!((report.batches.len(), report.epochs.len()), (4, 2));
    // Four steps, or two validations: pausing does not cut them short.
    assert!(
        elapsed >= Duration::from_millis(390),
        "steps were cut short: {elapsed:?}"
    );
}

#[test]
fn pausing_in_a_step_loses_nothing() {
    pause_and_go_on("step-time=100", batches);
}

#[test]
fn pausing_in_the_validation_loses_nothing() {
    pause_and_go_on("validation-time=200", epoch_ends);
}

#[test]
fn a_long_step_or_validation_ends_with_the_pipeline() {
    for (times, moment) in [
        ("step-time=600000", batches as fn(&_) -> _),
        ("validation-time=600000", epoch_ends),
    ] {
        let (scratch, elsewhere) = (common::scratch(), common::scratch());
        let pipeline = trainer(scratch.path(), &elsewhere.path().join("report.jsonl"), times);
        let moment = moment(&pipeline);
        pipeline.set(gst::State::Playing);
        moment.recv_timeout(TIMEOUT).expect("the moment never came");
        stop(&pipeline);
    }
}

#[test]
fn a_pause_in_a_long_step_is_reached() {
    let (scratch, elsewhere) = (common::scratch(), common::scratch());
    let pipeline = trainer(
        scratch.path(),
        &elsewhere.path().join("report.jsonl"),
        "step-time=600000",
    );
    let batch = batches(&pipeline);
    pipeline.set(gst::State::Playing);
    batch.recv_timeout(TIMEOUT).expect("no batch came");
    pipeline.reach(gst::State::Playing);
    pipeline.reach(gst::State::Paused);
    pipeline.reach(gst::State::Playing);
    stop(&pipeline);
}

#[test]
fn a_flush_sets_everything_that_is_blocked_free() {
    let pipeline = Pipeline::new(&format!(
        "epochsrc name=src location={} epochs=-1 ! epochdecode ! video/x-raw,width=16,height=16 ! hsvquantize \
         ! nhwcpack batch-size=2 ! queue max-size-buffers=1 ! appsink name=sink max-buffers=1 sync=false",
        photos()
    ));
    let sink = pipeline.element("sink").downcast::<gst_app::AppSink>().unwrap();
    pipeline.set(gst::State::Playing);
    let pull = || sink.try_pull_sample(common::pipeline::LIMIT);
    for _ in 0..20 {
        // A flush takes the sink's state away until it has prerolled again. GStreamer 1.22 itself may stay in PAUSED
        // when the next flush comes before that.
        pipeline.reach(gst::State::Playing);
        pull().expect("a batch before the flush");
        let source = pipeline.element("src");
        assert!(source.send_event(gst::event::FlushStart::new()));
        assert!(source.send_event(gst::event::FlushStop::new(true)));
    }
    for _ in 0..100 {
        pull().expect("a batch after the flushes");
    }
    // To the end: a pull ends with no sample at EOS, and with a time-out if something still hangs.
    assert!(pipeline.0.send_event(gst::event::Eos::new()));
    let start = Instant::now();
    while pull().is_some() {}
    assert!(
        sink.is_eos(),
        "the stream has not ended after {:?}",
        start.elapsed()
    );
    stop(&pipeline);
    assert_eq!(pipeline.errors(), [""; 0]);
}
