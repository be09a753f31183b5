//! The example applications that use a feed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod feed_support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::process::Job;
use common::{MarkedSet, copy_photos, scratch};

/// A built example.
fn example(name: &str) -> Job {
    let deps = std::env::current_exe().unwrap();
    let target: PathBuf = deps.parent().unwrap().parent().unwrap().to_owned();
    let program = target.join("examples").join(name);
    assert!(
        program.exists(),
        "{} does not exist: run `cargo build --release --examples`",
        program.display()
    );
    Job::new(program.to_string_lossy())
        .env("G_DEBUG", "fatal_warnings")
        .limit(Duration::from_secs(60))
}

/// The loss of each line that begins with `what`.
fn losses(output: &str, what: &str) -> Vec<String> {
    output
        .lines()
        .filter(|line| line.starts_with(what))
        .map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            assert_eq!(words[4], "10", "samples: {line}");
            words[6].to_owned()
        })
        .collect()
}

#[test]
fn training_and_validation_take_turns() {
    let images = scratch();
    copy_photos(images.path(), 10);
    let run = |prefetch: &str, seed: &str| {
        let job = example("train_validate").arg(images.path());
        let job = job.args(&format!(
            "--epochs 3 --batch 4 --size 32 --prefetch {prefetch} --seed {seed}"
        ));
        let output = job.run().success().stdout;
        (losses(&output, "train"), losses(&output, "valid"), output)
    };
    let (train, valid, output) = run("complete", "1");
    assert_eq!((train.len(), valid.len()), (3, 3), "{output}");
    assert!(
        train[0] != train[1] && train[1] != train[2],
        "each epoch is jittered otherwise: {output}"
    );
    assert!(valid.iter().all(|loss| *loss == valid[0]), "{output}");
    assert!(output.contains("9 batches, 30 of 30 samples"), "{output}");
    let (ordinary, _, _) = run("off", "1");
    assert_eq!(ordinary, train, "what is prepared is what would have been read");
    let (other, same, _) = run("any", "2");
    assert!(other != train && same == valid);
}

#[test]
fn boxes_are_drawn_on_a_sheet() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = scratch();
    let out = folder.path().join("new/boxes.png");
    let draw = |location: &Path, more: &str| {
        let job = example("boxes")
            .arg(location)
            .arg(&out)
            .args("--size 64")
            .args(more);
        job.run()
    };
    draw(&root.join("data/photos.json"), "").success();
    let sheet = image::open(&out).unwrap();
    // Four rows of four, below a title.
    assert_eq!((sheet.width(), sheet.height()), (16 + 4 * 80, 48 + 4 * 116));
    std::fs::remove_file(&out).unwrap();
    draw(
        &root.join("data/photos.json"),
        "--seed 7 --count 3 --orientation match",
    )
    .success();
    assert_eq!(image::open(&out).unwrap().width(), 16 + 3 * 80);
    // Fewer than the sixteen that are drawn where nobody says how many.
    let set = MarkedSet::make(folder.path(), 5);
    draw(&set.yolo(), "--orientation ignore").success();
    assert_eq!(image::open(&out).unwrap().height(), 48 + 2 * 116);
    draw(&root.join("data/photos"), "").failure(&["data/photos", "has no boxes", "COCO"]);
    draw(Path::new("/nowhere/at/all.json"), "").failure(&["/nowhere/at/all.json"]);
}

#[test]
fn a_run_without_data_says_so() {
    let job = example("train_validate").arg("/nowhere/at/all");
    job.run().failure(&["/nowhere/at/all"]);
}

#[test]
fn a_killed_run_resumes_exactly() {
    let images = scratch();
    copy_photos(images.path(), 10);
    let job = example("resume").arg(images.path()).args("--batch 2 --kill 2 8");
    let output = job.run().success().stdout;
    assert!(
        output.contains("in epoch 0") && output.contains("in epoch 1"),
        "{output}"
    );
    assert!(output.contains("all 15 batches equal"), "{output}");
}
