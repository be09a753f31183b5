//! Nothing is left: no objects, no memory that grows, no threads, no open files.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::process::{Job, interrupt};
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

/// Resident memory of a process, in bytes.
fn resident(id: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Runs `line` without end and returns the resident memory at the end of each of the first `epochs` epochs.
fn memory(line: &str, epochs: usize) -> Vec<u64> {
    let memory: Arc<Mutex<Vec<u64>>> = Arc::default();
    let writer = memory.clone();
    let outcome = launch(line)
        .limit(Duration::from_secs(60))
        .run_watching(move |line, id| {
            let mut memory = writer.lock().unwrap();
            if line.starts_with("epoch ") && memory.len() < epochs {
                memory.push(resident(id));
                if memory.len() == epochs {
                    interrupt(id);
                }
            }
        });
    assert!(matches!(outcome.end, End::Code(_)), "{outcome}");
    let memory = memory.lock().unwrap().clone();
    assert_eq!(memory.len(), epochs, "{outcome}");
    memory
}

/// By a fit over all epochs, so that one high value at either end decides nothing.
fn growth(memory: &[u64]) -> f64 {
    let count = memory.len() as f64;
    let mean_epoch = (count - 1.0) / 2.0;
    let mean = memory.iter().map(|bytes| *bytes as f64).sum::<f64>() / count;
    let (mut above, mut below) = (0.0, 0.0);
    for (epoch, bytes) in memory.iter().enumerate() {
        let distance = epoch as f64 - mean_epoch;
        above += distance * (*bytes as f64 - mean);
        below += distance * distance;
    }
    above / below * count
}

#[test]
fn memory_does_not_grow_over_a_hundred_epochs() {
    let all = memory(&pipeline("epochs=-1", "", ""), 101);
    let grown = growth(&all[5..]);
    assert!(grown < 5e6, "{grown} bytes from epoch 5 to 100: {all:?}");
}

#[test]
fn memory_does_not_grow_with_faults() {
    let line =
        pipeline("epochs=-1", "on-error=replace", "").replace(&photos(), &location(&common::cases::folder()));
    let all = memory(&line, 41);
    let grown = growth(&all[5..]);
    assert!(grown < 5e6, "{grown} bytes from epoch 5 to 40: {all:?}");
}

#[test]
fn the_slope_of_a_leak_is_found() {
    let leak: Vec<u64> = (0..96).map(|epoch| 50_000_000 + epoch * 60_000).collect();
    assert!((growth(&leak) - 96.0 * 60_000.0).abs() < 1.0);
    assert_eq!(growth(&[7; 96]), 0.0);
}

/// Names of the files that are open in this process.
fn open_files() -> Vec<PathBuf> {
    let folder = std::fs::read_dir("/proc/self/fd").unwrap();
    folder
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .collect()
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
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
        names.filter(|name| name.starts_with("epochfeed:")).count()
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
        // They are joined, not only told.
        assert_eq!(workers(), 0, "workers are left");
        assert_eq!(photographs(), 0, "{:?}", open_files());
        assert!(
            !open_files().contains(&scratch.path().join("r")),
            "the report is still open"
        );
    }
}
