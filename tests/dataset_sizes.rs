//! Annotations that say another size than the file has, at the start.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::{Path, PathBuf};

use epochfeed::dataset::{Dataset, Finding, Options};
use serde_json::Value;

use common::dataset::{annotation, image, write, write_coco};
use common::scratch;

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/cases/img")
        .join(name)
}

/// The dataset of `images`, each with one box in its corner.
fn open(folder: &Path, images: &[Value], strict: bool) -> Result<Dataset, String> {
    let json = folder.join("set.json");
    let corner = |image: &Value| {
        annotation(
            image["id"].as_i64().unwrap(),
            image["id"].as_i64().unwrap(),
            1,
            [0.0, 0.0, 1.0, 1.0],
        )
    };
    let annotations: Vec<_> = images.iter().map(corner).collect();
    write_coco(&json, images, &annotations, &[(1, "x")]);
    let options = Options {
        strict,
        ..Options::default()
    };
    Dataset::open_with(&json, &options).map_err(|error| error.to_string())
}

#[test]
fn a_file_has_its_size_as_stored_and_upright() {
    let folder = scratch();
    // Of 120x80, to be turned by a quarter; in the PNG that is said behind the picture.
    let mut images = Vec::new();
    for name in [
        "a04_gray.jpg",
        "a07_exif_o6.jpg",
        "a07_exif_o6.png",
        "a12_icc_150k_multi.jpg",
    ] {
        let bytes = std::fs::read(case(name)).unwrap();
        let header = epochfeed::decode::probe(&bytes, &Default::default()).unwrap();
        let (width, height) = header.oriented_size(epochfeed::decode::OrientationMode::Apply);
        for (kind, size) in [
            ("stored", (header.width, header.height)),
            ("upright", (width, height)),
            ("wrong", (width + 1, height)),
        ] {
            let file = format!("{kind}/{name}");
            write(&folder.path().join(&file), &bytes);
            images.push(image(images.len() as i64, &file, size.0, size.1));
        }
    }
    // What cannot be read is the decoder's to name.
    write(&folder.path().join("broken.jpg"), "broken");
    images.push(image(1000, "broken.jpg", 10, 10));
    images.push(image(1001, "gone.jpg", 10, 10));
    let dataset = open(folder.path(), &images, false).unwrap();
    let checks = dataset.checks();
    assert_eq!(checks.count(Finding::SizeMismatch), 4, "{checks}");
    for example in checks.examples(Finding::SizeMismatch) {
        assert!(
            example.starts_with("wrong/") && example.contains("annotated"),
            "{example}"
        );
    }
    let sound: Vec<_> = images
        .into_iter()
        .filter(|image| {
            !image["file_name"].as_str().unwrap().starts_with("wrong") && image["id"].as_i64().unwrap() < 1001
        })
        .collect();
    open(folder.path(), &sound, true).unwrap();
}

#[test]
fn of_many_files_some_are_looked_into_and_all_where_that_is_an_error() {
    let folder = scratch();
    let bytes = std::fs::read(case("a02_size_1x1.png")).unwrap();
    let images: Vec<_> = (0..600)
        .map(|number| {
            let name = format!("{number:03}.png");
            write(&folder.path().join(&name), &bytes);
            // The wrong ones are at the end.
            image(number, &name, if number < 590 { 1 } else { 2 }, 1)
        })
        .collect();
    let dataset = open(folder.path(), &images, false).unwrap();
    assert!((1..10).contains(&dataset.checks().count(Finding::SizeMismatch)));
    let message = open(folder.path(), &images, true).unwrap_err();
    assert!(
        message.contains("10  size-mismatches: 590.png is 1x1, annotated 2x1"),
        "{message}"
    );
}
