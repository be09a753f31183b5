//! Elements of others that lose samples, or what says which they are: it is told, and nothing gets another's name.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;

use common::{Pipeline, Report, assert_fails, copy_photos, location, scratch};

/// The pipeline up to and with `between`.
fn head(images: &Path, between: &str) -> String {
    format!(
        "epochsrc location={} epochs=2 seed=5 ! epochdecode ! video/x-raw,format=RGB,width=32,height=32 ! {between}",
        location(images)
    )
}

/// Runs `line` into an epochsink to the end: the first warning, if there is one, and the report.
#[track_caller]
fn warned(line: &str) -> (Option<String>, Report) {
    let folder = scratch();
    let report = folder.path().join("report.jsonl");
    let pipeline = Pipeline::playing(&format!(
        "{line} ! epochsink silent=true report={}",
        location(&report)
    ));
    let mut warning = None;
    pipeline.wait(|message| {
        if let gst::MessageView::Warning(message) = message.view() {
            warning.get_or_insert(message.error().to_string());
        }
        message.type_() == gst::MessageType::Eos
    });
    drop(pipeline);
    (warning, Report::read(&report))
}

/// compositor paints new frames. Counted instead of named, they would be other samples than they are.
#[test]
fn frames_without_a_name_are_an_error_wherever_they_come_to() {
    let images = scratch();
    copy_photos(images.path(), 4);
    let nameless = head(
        images.path(),
        "queue ! compositor ! videoconvert ! video/x-raw,format=RGB",
    );
    for (tail, element) in [
        ("hsvquantize ! nhwcpack ! fakesink", "hsvquantize"),
        ("nhwcpack ! fakesink", "nhwcpack"),
        ("epochsink silent=true", "epochsink"),
    ] {
        assert_fails(
            &format!("{nameless} ! {tail}"),
            &[
                "does not say which sample it is",
                element,
                "queue",
                "compositor",
                "videoconvert",
            ],
        );
    }
}

/// Without an epochsrc there are no names that could be lost.
#[test]
fn frames_of_other_sources_need_no_name() {
    let pipeline = Pipeline::playing(
        "videotestsrc num-buffers=4 ! video/x-raw,format=RGB,width=32,height=32 ! hsvquantize ! nhwcpack batch-size=2 \
         ! epochsink silent=true",
    );
    pipeline.wait_eos();
}

#[test]
fn samples_that_are_lost_are_missed_in_the_ledger() {
    let images = scratch();
    copy_photos(images.path(), 4);
    // The first of each epoch.
    let lost = head(images.path(), "identity drop-buffer-flags=discont");
    let whole = warned(&format!(
        "{} ! hsvquantize ! nhwcpack",
        head(images.path(), "identity")
    ));
    assert_eq!(whole.0, None);
    for buffer in ["", "! epochbuffer prefetch=complete"] {
        let (warning, report) = warned(&format!("{lost} {buffer} ! hsvquantize ! nhwcpack"));
        let warning = warning.expect("it is told");
        assert!(warning.contains("ledger of epoch 0 does not add up"), "{warning}");
        let delivered: Vec<_> = report.epochs.iter().map(|epoch| epoch.delivered).collect();
        assert_eq!(delivered, [3, 3]);
        for epoch in 0..2 {
            assert_eq!(report.order(epoch), whole.1.order(epoch)[1..]);
        }
    }
}

#[test]
fn samples_that_come_again_are_told_and_no_epoch_is_booked_twice() {
    let images = scratch();
    copy_photos(images.path(), 4);
    // videorate fills up to its rate with the frame before, also behind the end of an epoch.
    for rate in ["videorate", "videorate ! video/x-raw,framerate=60/1"] {
        let (warning, report) = warned(&format!("{} ! hsvquantize ! nhwcpack", head(images.path(), rate)));
        let epochs: Vec<_> = report.epochs.iter().map(|epoch| epoch.epoch).collect();
        assert_eq!(epochs, [0, 1], "{rate}");
        let repeated = report.batches.len() > 8;
        assert_eq!(
            warning.is_some_and(|warning| warning.contains("came again")),
            repeated,
            "{rate}"
        );
        assert!(repeated || rate == "videorate", "60 frames a second of 30");
    }
}
