//! Nothing is left: no objects, no workers, no open files. What a stop at the epoch boundary leaves: `leaks_*.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::time::Duration;

use common::process::{Job, interrupt};
use common::usage::{open_files, thread_names};
use common::wait::until;
use common::{End, Pipeline, launch, launch_failing, location};
use gst::prelude::*;

fn photos() -> String {
    location(&common::photos()[0].with_file_name(""))
}

fn pipeline(source: &str, decode: &str, sink: &str) -> String {
    format!(
        "epochsrc location={} {source} ! epochdecode {decode} ! video/x-raw,width=32,height=32 ! hsvquantize ! queue \
         ! nhwcpack batch-size=5 ! epochsink {sink}",
        photos()
    )
}

/// A job in which a leak is listed, but ends nothing.
fn traced(job: Job) -> Job {
    job.trace_leaks().env("G_DEBUG", "")
}

#[test]
fn no_object_is_alive_after_a_run() {
    let last_batches = ["partial", "drop", "pad"];
    for last_batch in last_batches {
        let line = pipeline("epochs=2", "", "silent=true")
            .replace("nhwcpack", &format!("nhwcpack last-batch={last_batch}"));
        let outcome = traced(launch(&line)).run().success();
        assert_eq!(outcome.leaks(), [""; 0], "{outcome}");
    }
    // The visible filter, the native path, one's own pool.
    for line in [
        "videotestsrc num-buffers=20 ! hsvquantize ! videoconvert ! fakesink",
        "videotestsrc num-buffers=20 ! hsvquantize fuse=false ! nhwcpack batch-size=3 ! fakesink",
        "videotestsrc num-buffers=20 ! video/x-raw,format=RGB ! tee name=t ! queue ! nhwcpack ! fakesink \
         t. ! queue ! hsvquantize ! nhwcpack batch-size=7 ! fakesink",
    ] {
        let outcome = traced(launch(line)).run().success();
        assert_eq!(outcome.leaks(), [""; 0], "{outcome}");
    }
}

#[test]
fn no_object_is_alive_after_faults_and_errors() {
    let cases = location(&common::cases::folder());
    // The first faulty file comes after several batches, so that gst-launch-1.0 does not preroll any more: see
    // `Job::expect_error`.
    let line = |decode: &str| pipeline("shuffle=none", decode, "silent=true").replace(&photos(), &cases);
    for policy in ["skip", "replace"] {
        let outcome = traced(launch(&line(&format!("on-error={policy}"))))
            .run()
            .success();
        assert_eq!(outcome.leaks(), [""; 0], "{outcome}");
    }
    for bad in [
        line("on-error=fail"),
        line("on-error=skip max-errors=3"),
        line("on-error=fail threads=4"),
        line("").replace("batch-size=5", "mean=0.5 dtype=uint8"),
        line("").replace("location=", "location=/does/not/exist"),
    ] {
        let outcome = traced(launch_failing(&bad)).run();
        let outcome = outcome.failure(&["ERROR"]);
        assert_eq!(outcome.leaks(), [""; 0], "{outcome}");
    }
}

#[test]
fn no_object_is_alive_after_a_stop_in_the_middle() {
    for (sink, moment) in [("step-time=1", "epoch 1:"), ("validation-time=60000", "epoch 0:")] {
        // Without -e gst-launch-1.0 stops the pipeline as it is.
        let outcome = traced(launch(&pipeline("epochs=-1", "", sink))).run_watching(move |line, id| {
            if line.starts_with(moment) {
                interrupt(id);
            }
        });
        assert!(matches!(outcome.end, End::Code(_)), "{outcome}");
        assert_eq!(outcome.leaks(), [""; 0], "{outcome}");
    }
}

#[test]
fn files_and_worker_threads_go_with_the_pipeline() {
    let photographs = || {
        open_files()
            .iter()
            .filter(|file| file.extension().is_some_and(|end| end == "jpg"))
            .count()
    };
    let workers = || {
        let names = thread_names();
        names.iter().filter(|name| name.starts_with("epochfeed:")).count()
    };
    let scratch = common::scratch();
    let line = pipeline(
        "epochs=-1",
        "threads=3",
        &format!(
            "name=sink silent=true report={}",
            location(&scratch.path().join("r"))
        ),
    );
    for _ in 0..20 {
        let pipeline = Pipeline::new(&line);
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        let pad = pipeline.element("sink").static_pad("sink").unwrap();
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            let _ = send.try_send(());
            gst::PadProbeReturn::Ok
        });
        pipeline.set(gst::State::Playing);
        receive
            .recv_timeout(Duration::from_secs(20))
            .expect("no batch came");
        // How many there are depends on the cores, by way of nhwcpack.
        assert_ne!(workers(), 0, "there is nothing to be joined");
        pipeline.set(gst::State::Null);
        // The kernel shows a thread that has been joined for a moment longer.
        until("the workers have ended", || workers() == 0);
        assert_eq!(photographs(), 0, "{:?}", open_files());
        assert!(
            !open_files().contains(&scratch.path().join("r")),
            "the report is still open"
        );
    }
}
