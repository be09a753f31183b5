//! Tests that need a process of their own: what they count (threads, descriptors, memory, objects) belongs to nobody else.
//!
//! The test binary starts itself once more with nothing but the test that calls [`alone`]; there, `alone` does the work.

use std::time::Duration;

use super::process::{Job, Outcome};
use super::soak::FIGURE;

/// Set in the child, to the name of its test.
const VARIABLE: &str = "EPOCHFEED_ALONE";
/// Said by the child when the work is done: a child that runs no test at all ends well, too.
const DONE: &str = "the work is done";

/// The test that the closure `F` is written in.
fn test_of<F>() -> &'static str {
    let path = std::any::type_name::<F>();
    let (_binary, test) = path.split_once("::").expect("a closure has a path");
    test.split("::{{").next().expect("there is a first part")
}

/// The process of the test that `F` is written in; `None` if it is this one.
fn child_of<F>() -> Option<Job> {
    let test = test_of::<F>();
    if std::env::var_os(VARIABLE).is_some_and(|child| child == test) {
        return None;
    }
    let binary = std::env::current_exe().expect("a test knows its own path");
    let job = Job::new(binary.to_string_lossy())
        .args("--nocapture --exact")
        .arg(test)
        .env(VARIABLE, test)
        .env("G_DEBUG", "fatal_warnings")
        .env("GST_DEBUG", "")
        .env("GST_DEBUG_NO_COLOR", "1");
    Some(job)
}

#[track_caller]
fn checked(outcome: Outcome) -> Outcome {
    let outcome = outcome.success();
    assert!(outcome.stdout.contains(DONE), "the child ran no test\n{outcome}");
    outcome
}

/// Does `work` in a process of its own, which may take `limit`.
#[track_caller]
pub fn alone<F: FnOnce()>(limit: Duration, work: F) {
    let Some(child) = child_of::<F>() else {
        work();
        println!("{DONE}");
        return;
    };
    pass_on(&checked(child.limit(limit).run()));
}

/// As [`alone`], with the environment variables that `setup` returns together with what must live as long.
#[track_caller]
pub fn alone_under<F: FnOnce(), T>(
    limit: Duration,
    setup: impl FnOnce() -> (T, Vec<(&'static str, String)>),
    work: F,
) {
    let Some(child) = child_of::<F>() else {
        work();
        println!("{DONE}");
        return;
    };
    let (_kept, variables) = setup();
    let child = variables
        .iter()
        .fold(child, |child, (name, value)| child.env(name, value));
    pass_on(&checked(child.limit(limit).run()));
}

/// Prints the figures of a child.
fn pass_on(outcome: &Outcome) {
    for line in outcome.stdout.lines().filter(|line| line.starts_with(FIGURE)) {
        println!("\n{line}");
    }
}

/// Does `work` in a process of its own, ends GStreamer there, and returns the objects that are still alive.
#[track_caller]
pub fn alive_after<F: FnOnce()>(work: F) -> Vec<String> {
    let Some(child) = child_of::<F>() else {
        work();
        println!("{DONE}");
        // SAFETY: all that `work` made of GStreamer's is gone, and nothing else runs in this process.
        unsafe { gst::deinit() };
        // Not back into a test that may use GStreamer again.
        std::process::exit(0);
    };
    // Leaks are listed with a warning of GLib's, which must not end the list.
    let outcome = child.trace_leaks().env("G_DEBUG", "fatal_criticals").run();
    let outcome = checked(outcome);
    outcome.leaks().into_iter().map(str::to_owned).collect()
}
