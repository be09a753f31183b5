//! Where the jitter happens: at hsvquantize's place in the pipeline, whoever does the pixels.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;

use common::{SAMPLE, assert_same_bytes, copy_photos, launch, launch_verbose, location, scratch};

const FEATURE: &str = "meta:EpochfeedGains";
const PHOTOS: usize = 4;

/// The pipeline up to `tail`, with the jitter that the tests look for.
fn line(images: &Path, tail: &str) -> String {
    format!(
        "epochsrc location={} shuffle=none ! epochdecode ! video/x-raw,format=RGB,width=24,height=24 {tail}",
        location(images)
    )
}

/// A folder of images, and one for what comes out.
fn folders() -> (tempfile::TempDir, tempfile::TempDir) {
    let images = scratch();
    copy_photos(images.path(), PHOTOS);
    (images, scratch())
}

/// What `tail` writes; it ends with a filesink.
#[track_caller]
fn bytes(images: &Path, tail: &str) -> Vec<u8> {
    let out = scratch();
    let file = out.path().join("out");
    launch(&line(images, tail))
        .arg(format!("location={}", file.display()))
        .run()
        .success();
    let bytes = std::fs::read(&file).expect("filesink wrote it");
    assert_eq!(bytes.len(), PHOTOS * SAMPLE);
    bytes
}

const JITTER: &str = "! hsvquantize gains=\"0.2,0,0\"";
const PACK: &str = "! nhwcpack dtype=uint8 batch-size=4";

/// Jittered and packed, by the native path, which leaves nothing to the packer.
fn jittered(images: &Path) -> Vec<u8> {
    bytes(images, &format!("{JITTER} fuse=false {PACK} ! filesink"))
}

/// Each caps of hsvquantize's source pad that gst-launch reports for `tail`.
#[track_caller]
fn source_caps(images: &Path, tail: &str) -> Vec<String> {
    let outcome = launch_verbose(&line(images, tail)).run().success();
    let caps: Vec<_> = outcome
        .stdout
        .lines()
        .filter(|line| line.contains("/GstHsvQuantize:") && line.contains(".GstPad:src: caps = "))
        .map(str::to_owned)
        .collect();
    assert!(!caps.is_empty(), "no caps are reported\n{outcome}");
    caps
}

#[track_caller]
fn assert_deferred(images: &Path, tail: &str, deferred: bool) {
    for caps in source_caps(images, tail) {
        assert_eq!(caps.contains(FEATURE), deferred, "{tail}: {caps}");
    }
}

#[test]
fn jitter_happens_before_a_converter_that_follows() {
    let (images, _) = folders();
    let images = images.path();
    let balanced = format!("! videobalance saturation=0 {PACK} ! filesink");

    let found = bytes(images, &format!("{JITTER} {balanced}"));
    // The native path cannot defer anything.
    assert_same_bytes(
        "videobalance behind the jitter",
        &found,
        &bytes(images, &format!("{JITTER} fuse=false {balanced}")),
    );
    // Where the caps between are plain by force, nothing is deferred either.
    assert_same_bytes(
        "videobalance behind a caps filter",
        &found,
        &bytes(images, &format!("{JITTER} ! video/x-raw {balanced}")),
    );
    // The order shows: another hue has another lightness, and grey has no hue to change.
    let before = bytes(
        images,
        &format!("! videobalance saturation=0 {JITTER} {PACK} ! filesink"),
    );
    assert_ne!(found, before);
    let unjittered = bytes(images, &balanced);
    assert_ne!(found, unjittered);

    let to_nothing = "! videobalance saturation=0 ! nhwcpack ! fakesink";
    assert_deferred(images, &format!("{JITTER} {to_nothing}"), false);
}

#[test]
fn what_only_passes_frames_on_passes_the_gains_on() {
    let (images, _) = folders();
    let images = images.path();
    let wanted = jittered(images);
    for between in [
        "",
        "! queue",
        "! tee",
        "! identity",
        "! queue ! tee ! queue ! identity",
    ] {
        let head = format!("{JITTER} {between} {PACK}");
        assert_deferred(images, &format!("{head} ! fakesink"), true);
        assert_same_bytes(between, &bytes(images, &format!("{head} ! filesink")), &wanted);
    }
    let native = format!("{JITTER} fuse=false ! queue {PACK} ! fakesink");
    assert_deferred(images, &native, false);
}

/// Passthrough converters may take the feature or not; the pixels must be right in both cases.
#[test]
fn converters_that_do_nothing_change_nothing() {
    let (images, _) = folders();
    let wanted = jittered(images.path());
    for between in ["videobalance", "videoconvert", "videoscale", "videoflip"] {
        let tail = format!("{JITTER} ! {between} {PACK} ! filesink");
        assert_same_bytes(between, &bytes(images.path(), &tail), &wanted);
    }
}

/// The feature must also end at the element that refuses it when that is not the next one.
#[test]
fn a_converter_behind_a_queue_gets_finished_pixels() {
    let (images, _) = folders();
    let images = images.path();
    let tail = format!("! queue ! identity ! videobalance saturation=0 {PACK} ! filesink");
    let native = bytes(images, &format!("{JITTER} fuse=false {tail}"));
    assert_same_bytes(
        "videobalance",
        &bytes(images, &format!("{JITTER} {tail}")),
        &native,
    );
}

/// Alone the element is a visible filter, also for sinks that take anything.
#[test]
fn without_a_packer_the_pixels_are_finished() {
    let (images, _) = folders();
    let images = images.path();
    let wanted = jittered(images);
    for end in [
        "! filesink",
        "! queue ! filesink",
        "! tee ! filesink",
        "! video/x-raw ! filesink",
    ] {
        assert_deferred(
            images,
            &format!("{JITTER} {}", end.replace("filesink", "fakesink")),
            false,
        );
        assert_same_bytes(end, &bytes(images, &format!("{JITTER} {end}")), &wanted);
    }
}

/// Runs a tee with two branches, each ending with a filesink, and compares what they write.
#[track_caller]
fn assert_branches(jitter: &str, deferred: bool, branches: [(&str, &[u8]); 2]) {
    let (images, out) = folders();
    let files = [out.path().join("0"), out.path().join("1")];
    let mut job = launch_verbose(&line(images.path(), &format!("{jitter} ! tee name=t")));
    for ((branch, _), file) in branches.iter().zip(&files) {
        job = job
            .args(&format!("t. ! queue {branch} ! filesink"))
            .arg(format!("location={}", file.display()));
    }
    let outcome = job.run().success();
    assert_eq!(outcome.stdout.contains(FEATURE), deferred, "{outcome}");
    for ((branch, wanted), file) in branches.into_iter().zip(&files) {
        assert_same_bytes(branch, &std::fs::read(file).unwrap(), wanted);
    }
}

#[test]
fn a_tee_defers_only_where_all_branches_pack() {
    let (images, _) = folders();
    let images = images.path();
    let packed = jittered(images);
    let grey = format!("! videobalance saturation=0 {PACK}");
    let balanced = bytes(images, &format!("{JITTER} fuse=false {grey} ! filesink"));

    assert_branches(JITTER, true, [(PACK, &packed), (PACK, &packed)]);
    assert_branches(JITTER, false, [(PACK, &packed), (&grey, &balanced)]);
    // A branch that is to see the frames as they are trained on.
    assert_branches(JITTER, false, [(PACK, &packed), ("! video/x-raw", &packed)]);
}
