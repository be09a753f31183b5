//! Every seed of the fuzz targets, through the code that the targets run. What must hold is asserted there (`fuzz/src`).
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
#[path = "../fuzz/src/lib.rs"]
mod entries;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::wait::within;

/// How long the seeds of one target may take; they take less than a tenth of it.
const LIMIT: Duration = Duration::from_secs(30);

/// The files in folders of this repository, in the order of their names.
fn seeds(folders: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in folders {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    files.sort();
    files
}

/// Gives `entry` each of at least `least` seeds, whole and cut, and names the one that fails.
#[track_caller]
fn run(least: usize, folders: &'static [&str], entry: fn(&[u8])) {
    within(LIMIT, move || {
        let files = seeds(folders);
        assert!(files.len() >= least, "{folders:?} hold {} seeds", files.len());
        for file in files {
            let bytes = fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            for end in [bytes.len(), bytes.len() / 2, bytes.len().saturating_sub(1)] {
                let outcome = catch_unwind(AssertUnwindSafe(|| entry(&bytes[..end])));
                assert!(outcome.is_ok(), "the first {end} bytes of {}", file.display());
            }
        }
    });
}

#[test]
fn coco() {
    run(8, &["fuzz/seeds/coco"], entries::coco);
}

#[test]
fn yolo_labels() {
    run(5, &["fuzz/seeds/yolo_labels"], entries::yolo_labels);
}

#[test]
fn data_yaml() {
    run(6, &["fuzz/seeds/data_yaml"], entries::data_yaml);
}

#[test]
fn state() {
    run(5, &["fuzz/seeds/state"], entries::state);
}

/// With all settings: the last byte chooses them.
#[test]
fn decode() {
    run(
        60,
        &["fuzz/seeds/decode", "tests/data/jpeg", "tests/data/cases/img"],
        |bytes| {
            entries::decode(bytes);
            for setting in 0..entries::SETTINGS {
                entries::decode(&[bytes, &[setting]].concat());
            }
        },
    );
}
