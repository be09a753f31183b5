//! `epochsrc state`: what it says, that it survives a stop, and what is refused.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use gst::prelude::*;
use serde_json::{Value, json};

use common::{Pipeline, Report, copy_photos, location, scratch};

const SAMPLES: usize = 6;

/// A pipeline into an epochsink in batches of two, and a fresh report.
fn pipeline(images: &Path, source: &str, sink: &str, report: &Path) -> Pipeline {
    Pipeline::new(&format!(
        "epochsrc name=source location={} seed=7 {source} ! epochdecode ! video/x-raw,width=16,height=16 \
         ! nhwcpack batch-size=2 ! epochsink silent=true report={} {sink}",
        location(images),
        report.display()
    ))
}

fn state(pipeline: &Pipeline) -> Value {
    let state: Option<String> = pipeline.element("source").property("state");
    state.map_or(Value::Null, |state| serde_json::from_str(&state).unwrap())
}

fn set_state(pipeline: &Pipeline, state: &str) {
    pipeline.element("source").set_property("state", state);
}

/// Epoch and index of what a run takes until EOS; the pipeline is left in READY.
#[track_caller]
fn run(pipeline: &Pipeline, report: &Path) -> Vec<(u64, u64)> {
    pipeline.set(gst::State::Playing);
    pipeline.wait_eos();
    pipeline.reach(gst::State::Ready);
    let batches = Report::read(report).batches;
    assert_eq!(state(pipeline), batches.last().unwrap().state);
    batches
        .iter()
        .flat_map(|batch| batch.indices.iter().map(|index| (batch.epoch, *index)))
        .collect()
}

#[test]
fn the_state_is_what_was_acknowledged_and_survives_a_stop() {
    let (images, out) = (scratch(), scratch());
    copy_photos(images.path(), SAMPLES);
    let report = out.path().join("report.jsonl");
    let whole = run(&pipeline(images.path(), "epochs=3", "", &report), &report);

    let pipeline = pipeline(images.path(), "epochs=1", "max-steps=2", &report);
    assert_eq!(state(&pipeline), Value::Null, "nothing has been taken");
    assert_eq!(run(&pipeline, &report), whole[..4]);
    assert_eq!(state(&pipeline)["position"], 4);
    assert_eq!(run(&pipeline, &report), whole[4..6]);
    assert_eq!(run(&pipeline, &report), whole[6..10]);
    // Also through NULL.
    pipeline.reach(gst::State::Null);
    assert_eq!(run(&pipeline, &report), whole[10..12]);
    set_state(&pipeline, "");
    assert_eq!(state(&pipeline), Value::Null);
    assert_eq!(run(&pipeline, &report), whole[..4]);
}

/// A state behind the second batch of a run over `images` with `source`'s properties.
fn saved(images: &Path, source: &str) -> Value {
    let out = scratch();
    let report = out.path().join("report.jsonl");
    let pipeline = pipeline(images, source, "max-steps=2", &report);
    run(&pipeline, &report);
    state(&pipeline)
}

/// The message with which `source`'s properties and `state` are refused. The pipeline does not get to PAUSED.
#[track_caller]
fn refusal(images: &Path, source: &str, state: &str) -> String {
    let line = format!(
        "epochsrc name=source location={} seed=7 {source} ! fakesink",
        location(images)
    );
    let pipeline = Pipeline::new(&line);
    set_state(&pipeline, state);
    assert!(
        pipeline.0.set_state(gst::State::Paused).is_err(),
        "{source}: {state:.100} is accepted"
    );
    let said = pipeline.wait_error();
    // The remedy that the message names.
    set_state(&pipeline, "");
    pipeline.reach(gst::State::Paused);
    said
}

#[track_caller]
fn assert_refused(images: &Path, source: &str, state: &str, words: &[&str]) {
    let said = refusal(images, source, state);
    for word in words.iter().chain(&["The state cannot be resumed"]) {
        assert!(said.contains(word), "{word:?} is not in {said}");
    }
    assert!(said.len() < 2_000, "{} bytes of message", said.len());
}

#[test]
fn a_state_of_another_run_is_refused_by_the_field() {
    let images = scratch();
    copy_photos(images.path(), SAMPLES);
    let images = images.path();
    let plain = saved(images, "").to_string();
    for (source, words) in [
        ("seed=8", ["seed", "7", "8"]),
        ("shuffle=torch", ["shuffle", "keyed", "torch"]),
        ("world-size=2", ["world_size", "1", "2"]),
        ("uneven=drop", ["uneven", "pad", "drop"]),
        ("samples-per-epoch=3", ["samples_per_epoch", "all", "3"]),
    ] {
        assert_refused(images, source, &plain, &words);
    }
    let sharded = saved(images, "world-size=2").to_string();
    assert_refused(images, "world-size=2 rank=1", &sharded, &["rank", "0", "1"]);

    // A file more is another size; another name is another dataset.
    let files: Vec<_> = common::photos();
    std::fs::copy(&files[0], images.join("zzz.jpg")).unwrap();
    assert_refused(images, "", &plain, &["size", "6", "7"]);
    std::fs::remove_file(images.join(files[0].file_name().unwrap())).unwrap();
    assert_refused(images, "", &plain, &["fingerprint"]);
}

#[test]
fn an_altered_state_is_refused_by_the_field() {
    let images = scratch();
    copy_photos(images.path(), SAMPLES);
    let images = images.path();
    let good = saved(images, "");
    for (field, value) in [
        ("version", json!(2)),
        ("version", json!("1")),
        ("position", json!(7)),
        ("position", json!(-1)),
        ("position", json!(1.5)),
        ("epoch", json!(u64::MAX)),
        ("epoch", json!(1)),
        ("size", json!(0)),
        ("world_size", json!(0)),
        ("rank", json!(1u64 << 40)),
        ("shuffle", json!("random")),
        ("receipt", json!(null)),
        ("receipt", json!({"epoch": 3})),
        ("skipped", json!(5)),
        ("replaced", json!(u64::MAX)),
        ("fingerprint", json!("\u{202e}".repeat(5_000))),
    ] {
        let mut altered = good.clone();
        assert_ne!(altered[field], value);
        altered[field] = value;
        // What contradicts the size or the number of ranks is refused by the name of the property or of the field.
        let named = if field == "world_size" || field == "size" {
            ""
        } else {
            field
        };
        assert_refused(images, "", &altered.to_string(), &[named]);
        let mut without = good.clone();
        without.as_object_mut().unwrap().remove(field);
        assert_refused(images, "", &without.to_string(), &[field]);
    }
    let mut more = good.clone();
    more["surprise"] = json!(0);
    assert_refused(images, "", &more.to_string(), &["surprise"]);
}

#[test]
fn hostile_text_is_an_error_and_no_more() {
    let images = scratch();
    copy_photos(images.path(), 1);
    let deep = "[".repeat(200_000);
    let huge = format!("{{\"version\": \"{}\"}}", "x".repeat(5_000_000));
    for text in [
        " ",
        "{",
        "{}",
        "[]",
        "null",
        "0",
        "1e999",
        "\"state\"",
        "{\"version\":1}",
        "{\"version\":1,\"version\":1}",
        "{\"version\":1e400}",
        "{\"version\":-0}",
        "{\"version\":1}trailing",
        "\u{feff}{}",
        "\\\"%s%n%05d",
        "{\"version\":1,\"seed\":\"\\ud800\"}",
        &deep,
        &huge,
    ] {
        assert_refused(images.path(), "", text, &[]);
    }
}

/// The size is compared before an order of it is drawn, which would take seconds here.
#[test]
fn a_state_of_a_large_dataset_costs_nothing() {
    let images = scratch();
    copy_photos(images.path(), SAMPLES);
    let mut large = saved(images.path(), "shuffle=torch");
    large["size"] = json!(150_000_000);
    let start = Instant::now();
    assert_refused(
        images.path(),
        "shuffle=torch",
        &large.to_string(),
        &["size", "150000000"],
    );
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}
