//! The helpers of the black-box tests must not lie: limits, signals, output, the one repetition, reports.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;
use std::time::Duration;

use common::process::Job;
use common::{End, Report, inspect, launch, plugin_folder, python, scratch};

const SHORT: Duration = Duration::from_millis(300);

fn shell(script: &str) -> Job {
    Job::new("sh").arg("-c").arg(script)
}

#[test]
fn a_pipeline_that_ends_is_a_success() {
    launch("fakesrc num-buffers=3 ! fakesink").run().success();
}

#[test]
fn an_endless_pipeline_is_killed_at_its_limit() {
    let outcome = launch("fakesrc is-live=true ! fakesink sync=true")
        .limit(SHORT)
        .run();
    assert_eq!(outcome.end, End::TimedOut, "{outcome}");
    assert!(outcome.wall < Duration::from_secs(10), "{outcome}");
}

#[test]
fn a_grandchild_that_keeps_the_pipes_does_not_turn_a_success_into_a_time_out() {
    let outcome = shell("sleep 5 & echo done").limit(SHORT).run();
    assert_eq!((outcome.end, outcome.stdout.as_str()), (End::Code(0), "done\n"));
    assert!(outcome.wall < Duration::from_secs(4), "{outcome}");
}

#[test]
fn a_process_that_closes_its_pipes_is_still_waited_for() {
    let outcome = shell("exec >&- 2>&-; sleep 0.2; exit 3").run();
    assert_eq!(outcome.end, End::Code(3));
    assert_eq!(
        shell("exec >&- 2>&-; exec sleep 30").limit(SHORT).run().end,
        End::TimedOut
    );
}

#[test]
fn codes_and_signals_are_told_apart() {
    assert_eq!(shell("exit 7").run().end, End::Code(7));
    assert_eq!(shell("kill -SEGV $$").run().end, End::Signal(11));
}

#[test]
fn output_larger_than_a_pipe_arrives_whole() {
    let outcome =
        shell("head -c 300000 /dev/zero | tr '\\0' x; head -c 200000 /dev/zero | tr '\\0' y >&2").run();
    assert_eq!((outcome.stdout.len(), outcome.stderr.len()), (300_000, 200_000));
}

#[test]
fn a_failure_shows_its_reason() {
    launch("filesrc location=/does/not/exist.jpg ! fakesink")
        .expect_error()
        .run()
        .failure(&["/does/not/exist.jpg"]);
}

#[test]
#[should_panic(expected = "an orderly failure was expected")]
fn a_crash_is_not_an_orderly_failure() {
    shell("kill -ABRT $$").run().failure(&[]);
}

#[test]
#[should_panic(expected = "\"b.jpg\" is not in the errors")]
fn a_failure_that_does_not_name_the_file_is_found() {
    shell("echo ERROR: a.jpg >&2; exit 1").run().failure(&["b.jpg"]);
}

/// Runs `script` below a time limit and returns how often it was run.
fn runs(script: &str, expects_error: bool) -> usize {
    let folder = scratch();
    let log = folder.path().join("log");
    let mut job = shell(&format!("echo run >> \"$LOG\"; {script}"))
        .env("LOG", &log)
        .limit(SHORT);
    if expects_error {
        job = job.expect_error();
    }
    job.run();
    std::fs::read_to_string(log).unwrap().lines().count()
}

#[test]
fn only_a_hang_after_an_expected_error_is_repeated_and_only_twice() {
    assert_eq!(runs("echo ERROR: from element >&2; exec sleep 30", true), 3);
    assert_eq!(
        runs("echo ERROR: from element >&2; exec sleep 30", false),
        1,
        "nobody expected an error"
    );
    assert_eq!(runs("exec sleep 30", true), 1, "a hang without an error is ours");
    assert_eq!(
        runs("echo ERROR: from element >&2; kill -SEGV $$", true),
        1,
        "a crash is ours"
    );
    assert_eq!(runs("echo ERROR: from element >&2; exit 1", true), 1);
}

#[test]
fn the_plugin_of_this_build_is_the_one_that_is_found() {
    let outcome = inspect("epochfeed").run().success();
    let plugin = plugin_folder().join("libgstepochfeed.so");
    assert!(outcome.stdout.contains(&*plugin.to_string_lossy()), "{outcome}");
}

#[test]
fn a_warning_of_glib_ends_a_pipeline() {
    // What tool() relies on, without an element that misbehaves: GLib itself.
    let program = "import ctypes; ctypes.CDLL('libglib-2.0.so.0').g_log(None, 16, b'a warning')";
    let outcome = python()
        .arg("-c")
        .arg(program)
        .env("G_DEBUG", "fatal_warnings")
        .run();
    assert!(matches!(outcome.end, End::Signal(5 | 6)), "{outcome}");
}

#[test]
fn live_objects_are_listed() {
    let clean = launch("fakesrc num-buffers=1 ! fakesink")
        .trace_leaks()
        .run()
        .success();
    assert_eq!(clean.leaks(), [""; 0]);
    let program = "from ctypes import *; gst = CDLL('libgstreamer-1.0.so.0'); gst.gst_init(None, None); \
                   gst.gst_element_factory_make(b'fakesink', None); gst.gst_deinit()";
    let leaking = python()
        .arg("-c")
        .arg(program)
        .trace_leaks()
        .env("G_DEBUG", "")
        .run()
        .success();
    assert!(
        leaking.leaks().iter().any(|line| line.contains("GstFakeSink")),
        "{leaking}"
    );
}

#[test]
fn python_has_the_pinned_packages() {
    let outcome = python()
        .arg("-c")
        .arg("import cv2, numpy, PIL; print(cv2.__version__)")
        .run()
        .success();
    assert!(!outcome.stdout.is_empty());
}

const REPORT: &str = r#"{"type":"batch","epoch":0,"batch":0,"indices":[2,0],"uris":["file:///b","file:///a"],"gains":[[0.1,0.2,-0.3],[0,0,0]],"pad":[false,false],"replaced_from":[-1,-1],"wait_ns":10,"state":{"version":1}}
{"type":"batch","epoch":0,"batch":1,"indices":[1,2],"uris":["file:///c","file:///b"],"gains":[[0,0,0],[0,0,0]],"pad":[false,true],"replaced_from":[3,-1],"wait_ns":20,"state":{}}
{"type":"epoch","epoch":0,"listed":4,"delivered":2,"skipped":1,"dropped":1,"padded":1,"replaced":1,"samples_per_s":12.5,"boundary_wait_ns":30}
"#;

#[test]
fn a_report_is_read() {
    let folder = scratch();
    let file = folder.path().join("report.jsonl");
    std::fs::write(&file, REPORT).unwrap();
    let report = Report::read(&file);
    assert_eq!(report.order(0), [2, 0, 1, 2]);
    assert_eq!(report.batches[0].gains[0], [0.1, 0.2, -0.3]);
    assert_eq!(report.batches[1].replaced_from, [3, -1]);
    report.assert_adds_up();
    let other = Report::parse(
        &REPORT
            .replace("\"wait_ns\":20", "\"wait_ns\":21")
            .replace("12.5", "99"),
    );
    assert_ne!(report, other);
    assert_eq!(report.without_times(), other.without_times());
}

#[test]
#[should_panic(expected = "report line 2")]
fn a_broken_report_line_is_named() {
    Report::parse(&format!(
        "{}\n{{\"type\":\"other\"}}\n",
        REPORT.lines().next().unwrap()
    ));
}

#[test]
fn a_ledger_that_does_not_add_up_is_found() {
    for (from, to) in [
        ("\"listed\":4", "\"listed\":5"),
        ("\"padded\":1", "\"padded\":0"),
        ("\"replaced\":1", "\"replaced\":0"),
        ("\"indices\":[1,2]", "\"indices\":[1]"),
    ] {
        assert!(REPORT.contains(from));
        let report = Report::parse(&REPORT.replace(from, to));
        let found = std::panic::catch_unwind(|| report.assert_adds_up());
        assert!(found.is_err(), "{to} went unnoticed");
    }
}

#[test]
fn photographs_are_found_in_order() {
    let photos = common::photos();
    assert!(photos.len() >= 32);
    assert_eq!(photos[0].file_name(), Some("000000000001.jpg".as_ref()));
    let folder = scratch();
    let copies = common::copy_photos(folder.path(), 3);
    assert!(
        copies
            .iter()
            .all(|copy| copy.starts_with(folder.path()) && Path::exists(copy))
    );
}
