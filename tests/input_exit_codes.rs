//! Every awkward file on its own through gst-launch-1.0: what the process ends with, and what it prints.
//!
//! One test, and in a binary of its own: gst-launch-1.0 1.22 hangs after some of the errors during preroll (see
//! `Job::expect_error`), the more often the more runs at a time.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::cases::{self, TRUNCATED};
use common::{Outcome, launch, launch_failing, location};

/// Small frames: what is tested is not the pixels.
const REST: &str =
    "! video/x-raw,width=48,height=48 ! hsvquantize ! nhwcpack batch-size=8 ! epochsink silent=true";

/// The reason behind the name of the file.
fn reason(outcome: &Outcome) -> &str {
    let line = outcome
        .stderr
        .lines()
        .find(|line| line.contains("Cannot use"))
        .unwrap();
    line.rsplit_once("): ").unwrap().1
}

#[test]
fn each_file_on_its_own() {
    for case in cases::all() {
        let file = location(&cases::folder().join(&case.name));
        let line = format!("epochsrc location={file} ! epochdecode {REST}");
        if case.good {
            launch(&line).run().success();
            continue;
        }
        // Named with its place in the dataset, and more than "cannot".
        let outcome = launch_failing(&line)
            .run()
            .failure(&["Cannot use sample 0 (file://", &case.name]);
        assert!(reason(&outcome).len() > 20, "{outcome}");
        if TRUNCATED.contains(&case.name.as_str()) {
            assert!(reason(&outcome).contains("truncated=use"), "{outcome}");
            launch(&line.replace("epochdecode", "epochdecode truncated=use"))
                .run()
                .success();
        }
    }
}
