//! Drawn gains: what an independent ChaCha8 draws, and the same for a sample whatever surrounds it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{Feed, Sample, copy_photos, launch, location, python, scratch};

const PHOTOS: usize = 8;

/// Runs two epochs of 8 photographs with drawn gains, and compares pixels and report with NumPy's.
#[track_caller]
fn assert_drawn(jitter: &str, options: &[&str]) {
    let (images, out) = (scratch(), scratch());
    copy_photos(images.path(), PHOTOS);
    let (file, report) = (out.path().join("out"), out.path().join("report.jsonl"));
    launch(&format!(
        "epochsrc location={} shuffle=none seed=7 epochs=2 ! epochdecode ! video/x-raw,format=RGB,width=320,height=320 \
         ! hsvquantize {jitter} ! nhwcpack batch-size=3 ! tee name=t t. ! queue ! filesink",
        location(images.path())
    ))
    .arg(format!("location={}", file.display()))
    .args("t. ! queue ! epochsink silent=true")
    .arg(format!("report={}", report.display()))
    .run()
    .success();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/numpy/first_light.py");
    let mut job = python().arg(program).arg(images.path());
    for option in ["--size=320", "--seed=7", "--epochs=2"].iter().chain(options) {
        job = job.arg(option);
    }
    let outcome = job
        .arg(format!("--report={}", report.display()))
        .arg(format!("float32:nhwc:{}", file.display()))
        .run()
        .success();
    assert!(outcome.stdout.starts_with("16 samples are equal"), "{outcome}");
}

#[test]
fn drawn_gains_are_those_of_an_independent_chacha8() {
    assert_drawn("", &[]);
}

#[test]
fn the_widest_ranges_are_drawn_alike() {
    assert_drawn("hue=0.5 saturation=1 value=1 fuse=false", &["--ranges=0.5,1,1"]);
}

/// Gains and pixels of each sample by epoch and index.
type Samples = BTreeMap<(u64, u64), ([f64; 3], Vec<u8>)>;

#[track_caller]
fn by_name(samples: Vec<Sample>) -> Samples {
    let mut named = Samples::new();
    for Sample {
        epoch,
        index,
        gains,
        pixels,
    } in samples
    {
        // Padding repeats a sample of its epoch: with the same gains.
        let before = named.insert((epoch, index), (gains, pixels.clone()));
        assert!(
            before.is_none_or(|before| before == (gains, pixels)),
            "sample {index} of epoch {epoch} came twice, and not the same"
        );
    }
    named
}

#[test]
fn a_sample_is_the_same_whatever_surrounds_it() {
    let images = scratch();
    copy_photos(images.path(), PHOTOS);
    let feed = Feed {
        source: "seed=7 epochs=2 shuffle=none",
        ..Feed::new(images.path())
    };
    let wanted = by_name(feed.taken().samples());
    assert_eq!(wanted.len(), 2 * PHOTOS);

    for (source, decode, pack) in [
        ("shuffle=none", "threads=1", ""),
        ("shuffle=none", "threads=4", "batch-size=3"),
        ("shuffle=none", "", "batch-size=16 last-batch=pad"),
        ("shuffle=keyed", "threads=2", "batch-size=8"),
        ("shuffle=torch", "", "batch-size=5 last-batch=pad"),
        ("shuffle=torch-distributed", "", "batch-size=2"),
        ("shuffle=keyed samples-per-epoch=5", "", "batch-size=2"),
        ("shuffle=keyed world-size=3 rank=0", "", "batch-size=2"),
        ("shuffle=none world-size=3 rank=2", "", ""),
        ("shuffle=torch world-size=3 rank=1 uneven=drop", "", ""),
    ] {
        let what = format!("{source} {decode} {pack}");
        let found = by_name(
            Feed {
                source: &format!("seed=7 epochs=2 {source}"),
                decode,
                pack,
                ..feed
            }
            .taken()
            .samples(),
        );
        assert!(found.len() >= 4, "{what}: {} samples", found.len());
        for (name, sample) in found {
            assert!(
                wanted.get(&name) == Some(&sample),
                "{what}: (epoch, index) {name:?}"
            );
        }
    }
}

#[test]
fn another_seed_or_epoch_has_other_gains() {
    let images = scratch();
    copy_photos(images.path(), PHOTOS);
    let feed = |source| Feed {
        source,
        ..Feed::new(images.path())
    };
    let seven = by_name(feed("seed=7 epochs=2 shuffle=none").taken().samples());
    let eight = by_name(feed("seed=8 epochs=2 shuffle=none").taken().samples());
    let mut gains: Vec<_> = seven
        .values()
        .chain(eight.values())
        .map(|(gains, _)| *gains)
        .collect();
    gains.sort_by(|a, b| a.partial_cmp(b).unwrap());
    gains.dedup();
    assert_eq!(
        gains.len(),
        4 * PHOTOS,
        "seed 8 epoch 0 must not be seed 7 epoch 1 either"
    );
    let differs = seven
        .iter()
        .filter(|(name, sample)| eight[name].1 != sample.1)
        .count();
    assert_eq!(differs, 2 * PHOTOS);
}
