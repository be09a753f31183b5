//! `state-location`: a run of gst-launch continues where the last one was.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::process::Outcome;
use common::{Feed, Report, Seen, Watched, copy_photos, launch, launch_verbose, location, scratch};
use gst::prelude::*;

/// A folder of images and one for the state and the report.
struct Place {
    images: tempfile::TempDir,
    state: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let images = scratch();
        copy_photos(images.path(), 10);
        Self {
            images,
            state: scratch(),
        }
    }

    /// A run in batches of 4 that saves its state; and its outcome.
    fn run(&self, source: &str, sink: &str) -> (Outcome, std::path::PathBuf) {
        let report = self.state.path().join("report.jsonl");
        let source = format!("seed=9 {source} state-location={}", self.file().display());
        let feed = Feed {
            source: &source,
            pack: "batch-size=4",
            sink,
            ..Feed::new(self.images.path())
        };
        (feed.job(&report).expect_error().run(), report)
    }

    #[track_caller]
    fn report(&self, source: &str, sink: &str) -> Report {
        let (outcome, report) = self.run(source, sink);
        outcome.success();
        Report::read(&report)
    }

    fn file(&self) -> std::path::PathBuf {
        self.state.path().join("state.json")
    }

    fn saved(&self) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.file()).unwrap()).unwrap()
    }
}

/// Epoch and index of all samples of several runs, in turn.
fn samples<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Vec<(u64, u64)> {
    let batches = reports.into_iter().flat_map(|report| &report.batches);
    batches
        .flat_map(|batch| batch.indices.iter().map(|index| (batch.epoch, *index)))
        .collect()
}

fn whole(shuffle: &str) -> Report {
    Place::new().report(&format!("{shuffle} epochs=4"), "")
}

#[test]
fn an_interrupted_run_continues_where_it_was() {
    for shuffle in ["shuffle=keyed", "shuffle=torch", "shuffle=none"] {
        let place = Place::new();
        // Three batches an epoch: it stops in epoch 0, then in epoch 1, at the end of epoch 1, and finishes two more.
        let runs = ["max-steps=2", "max-steps=3", "max-steps=1"].map(|steps| {
            let report = place.report(&format!("{shuffle} epochs=-1"), steps);
            assert_eq!(place.saved(), report.batches.last().unwrap().state);
            report
        });
        let rest = place.report(&format!("{shuffle} epochs=2"), "");
        assert_eq!(
            samples(runs.iter().chain([&rest])),
            samples([&whole(shuffle)]),
            "{shuffle}"
        );
        // The epoch that was broken off is booked whole where it ends.
        let epoch = runs[1].epochs.iter().find(|line| line.epoch == 0).unwrap();
        assert_eq!(
            (epoch.listed, epoch.delivered, epoch.dropped),
            (10, 10, 0),
            "{shuffle}"
        );

        let mut names: Vec<_> = std::fs::read_dir(place.state.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["report.jsonl", "state.json"], "nothing temporary is left");
    }
}

#[test]
fn behind_the_last_epoch_comes_the_next_one() {
    let place = Place::new();
    let runs = ["epochs=1", "epochs=2", "epochs=1"].map(|epochs| place.report(epochs, ""));
    let epochs = runs
        .each_ref()
        .map(|run| run.epochs.iter().map(|line| line.epoch).collect::<Vec<_>>());
    assert_eq!(epochs, [vec![0], vec![1, 2], vec![3]]);
    assert_eq!(samples(&runs), samples([&whole("")]));
}

/// What is left of an epoch after its last batch must not be what the next run, and the one after it, begins with.
#[test]
fn a_tail_that_was_dropped_is_done_with() {
    for sink in ["epochsink", "fakesink"] {
        let place = Place::new();
        for epoch in 0..3 {
            let source = format!(
                "epochsrc location={} seed=9 state-location={}",
                location(place.images.path()),
                place.file().display()
            );
            let pack = "nhwcpack batch-size=4 last-batch=drop";
            launch(&format!("{source} ! epochdecode ! {pack} ! {sink}"))
                .run()
                .success();
            let saved = place.saved();
            assert_eq!([&saved["epoch"], &saved["position"]], [epoch, 10], "{sink}");
        }
    }
}

#[test]
fn an_epoch_that_was_broken_off_adds_up() {
    for steps in 1..4 {
        let report = Place::new().report("epochs=2", &format!("max-steps={steps}"));
        report.assert_adds_up();
        let delivered = [4, 8, 10][steps - 1];
        let epochs: Vec<_> = report
            .epochs
            .iter()
            .map(|line| (line.delivered, line.dropped))
            .collect();
        assert_eq!(epochs, [(delivered, 10 - delivered)]);
    }
}

#[test]
fn the_empty_state_starts_over() {
    let place = Place::new();
    let first = place.report("", "max-steps=2");
    let again = place.report("state=\"\"", "max-steps=2");
    assert_eq!(again.without_times(), first.without_times());
    // Only that run: the next one goes on.
    let next = place.report("", "");
    assert_eq!(samples([&next]), samples([&whole("")])[8..10]);
}

#[test]
fn what_cannot_be_a_state_is_refused_with_its_name() {
    let place = Place::new();
    let refused = |problem: &str| {
        let (outcome, _) = place.run("", "");
        outcome.failure(&["state", problem]);
    };
    for (content, problem) in [
        (&b""[..], "cannot be read"),
        (b"{", "cannot be read"),
        (b"\xff\xfe", "state.json"),
        (&[b' '; 70_000], "state.json"),
    ] {
        std::fs::write(place.file(), content).unwrap();
        refused(problem);
        assert_eq!(
            std::fs::read(place.file()).unwrap(),
            content,
            "it must stay for the user to see"
        );
    }
    std::fs::remove_file(place.file()).unwrap();
    std::fs::create_dir(place.file()).unwrap();
    refused("state.json");
}

#[test]
fn a_state_that_cannot_be_saved_does_not_end_the_run() {
    let place = Place::new();
    let missing = place.state.path().join("missing/state.json");
    let report = place.state.path().join("report.jsonl");
    let outcome = launch_verbose(&format!(
        "epochsrc location={} state-location={} ! epochdecode ! nhwcpack batch-size=4 ! epochsink silent=true",
        location(place.images.path()),
        missing.display()
    ))
    .arg(format!("report={}", report.display()))
    .run()
    .success();
    assert!(
        outcome.stdout.contains("WARNING") || outcome.stderr.contains("WARNING"),
        "{outcome}"
    );
    assert_eq!(Report::read(&report).epochs[0].delivered, 10);
    assert!(!missing.exists());
}

/// Nothing has been acknowledged yet: the run is where the file says, not at the dataset's beginning.
#[test]
fn a_flush_before_the_first_acknowledgement_goes_back_to_the_file() {
    let place = Place::new();
    place.report("shuffle=none", "max-steps=1");
    let run = Watched::new(&format!(
        "epochsrc location={} seed=9 shuffle=none state-location={} ! epochdecode ! video/x-raw,width=16,height=16 \
         ! nhwcpack batch-size=4 ! fakesink name=sink",
        location(place.images.path()),
        place.file().display()
    ));
    // The first batch stands in front of the sink and is not consumed.
    run.pipeline.reach(gst::State::Paused);
    let first = run.next();
    assert!(
        matches!(&first, Seen::Batch(0, indices, _) if indices == &[4, 5, 6, 7]),
        "{first:?}"
    );
    assert!(run.pipeline.0.send_event(gst::event::FlushStart::new()));
    assert!(run.pipeline.0.send_event(gst::event::FlushStop::new(true)));
    run.start();
    assert_eq!(run.next(), first);
}
