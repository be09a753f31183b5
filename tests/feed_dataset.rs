//! A feed over a dataset with boxes: every option reaches the source, and the boxes reach the program.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;

use epochfeed::FeedError;
use epochfeed::dataset::{Crowd, Dataset, Format, Options, OutOfImage, Split};
use epochfeed::elements::epochsrc::OnChange;
use epochfeed::feed::{Builder, Feed};
use epochfeed::sampler::Shuffle;
use serde_json::json;

use common::dataset::{annotation, image, write, write_coco};
use common::{photos, scratch};

/// Three photographs, whose classes have names that are awkward to list; a crowd, and a box that is half outside.
fn coco(folder: &Path) -> std::path::PathBuf {
    let json = folder.join("set.json");
    let name = |n: i64| format!("{n}.jpg");
    for (n, photo) in (0..).zip(photos().iter().take(3)) {
        write(&folder.join("root").join(name(n)), std::fs::read(photo).unwrap());
    }
    let images: Vec<_> = (0..3).map(|n| image(n, &name(n), 100, 100)).collect();
    let mut crowd = annotation(3, 1, 2, [10.0, 10.0, 80.0, 80.0]);
    crowd["iscrowd"] = json!(1);
    let annotations = [
        annotation(1, 0, 1, [50.0, 50.0, 20.0, 20.0]),
        annotation(2, 1, 2, [50.0, 50.0, 20.0, 20.0]),
        crowd,
        annotation(4, 2, 3, [90.0, 40.0, 20.0, 20.0]),
    ];
    write_coco(
        &json,
        &images,
        &annotations,
        &[(1, "a,b"), (2, r"c\"), (3, "d e")],
    );
    json
}

/// Sample and class of each box of the first batch.
fn rows(builder: Builder) -> Vec<(u32, u32)> {
    let feed = builder.size(32, 32).batch_size(8).build().unwrap();
    let batch = feed.epochs().next().unwrap().unwrap().next().unwrap().unwrap();
    let rows = batch.targets().unwrap().iter();
    rows.map(|row| (row[0] as u32, row[1] as u32)).collect()
}

#[test]
fn every_option_reaches_the_source() {
    let folder = scratch();
    let json = coco(folder.path());
    let base = Options {
        root: Some(folder.path().join("root")),
        ..Options::default()
    };
    let with = |options: Options| rows(Feed::builder(&json).shuffle(Shuffle::None).dataset(options));
    assert_eq!(with(base.clone()), [(0, 0), (1, 1), (2, 2)]);
    let classes = vec!["a,b".to_owned(), r"c\".to_owned()];
    assert_eq!(
        with(Options {
            classes,
            ..base.clone()
        }),
        [(0, 0), (1, 1)]
    );
    assert_eq!(
        with(Options {
            crowd: Crowd::Keep,
            ..base.clone()
        })
        .len(),
        4
    );
    let out_of_image = OutOfImage::Drop;
    assert_eq!(
        with(Options {
            out_of_image,
            ..base.clone()
        }),
        [(0, 0), (1, 1)]
    );
    assert_eq!(
        with(Options {
            single_class: true,
            ..base.clone()
        }),
        [(0, 0), (1, 0), (2, 0)]
    );
    assert_eq!(
        with(Options {
            fraction: 0.3,
            ..base.clone()
        }),
        [(0, 0)]
    );
    let refused = |options: Options| match Feed::builder(&json).dataset(options).build() {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it is built"),
    };
    let message = refused(Options {
        strict: true,
        ..base.clone()
    });
    assert!(message.contains("strict=true"), "{message}");
    let message = refused(Options {
        format: Format::Yolo,
        ..base.clone()
    });
    assert!(
        message.contains("lists no images") || message.contains("no usable"),
        "{message}"
    );
    assert!(matches!(
        Feed::builder(&json).dataset(Options { fraction: f64::NAN, ..base }).build(),
        Err(FeedError::Setting { setting, .. }) if setting == "fraction"
    ));
}

#[test]
fn a_split_and_a_changed_set() {
    let folder = scratch();
    let root = folder.path();
    for (n, part) in ["train", "train", "train", "val"].iter().enumerate() {
        write(
            &root.join(format!("images/{part}/{n}.jpg")),
            std::fs::read(&photos()[n]).unwrap(),
        );
        write(
            &root.join(format!("labels/{part}/{n}.txt")),
            format!("{n} 0.5 0.5 0.2 0.2\n"),
        );
    }
    write(
        &root.join("data.yaml"),
        "train: images/train\nval: images/val\nnames: [a, b, c, d]\n",
    );
    let val = Options {
        split: Split::Val,
        ..Options::default()
    };
    assert_eq!(
        Dataset::open_with(root, &val).unwrap().class_names(),
        ["a", "b", "c", "d"]
    );
    assert_eq!(rows(Feed::builder(root).dataset(val)), [(0, 3)]);

    let small = || Feed::builder(root).size(32, 32).shuffle(Shuffle::None);
    let feed = small().build().unwrap();
    let first = feed.epochs().next().unwrap().unwrap().next().unwrap().unwrap();
    let state = first.state().to_owned();
    write(&root.join("labels/train/1.txt"), "2 0.5 0.5 0.3 0.3\n");
    let message = match small().resume(state.as_str()).build() {
        Err(error) => error.to_string(),
        Ok(_) => panic!("a changed dataset is accepted"),
    };
    assert!(message.contains("fingerprint"), "{message}");
    let feed = small()
        .resume(state)
        .on_change(OnChange::Restart)
        .build()
        .unwrap();
    let indices: Vec<_> = feed
        .epochs()
        .flat_map(|epoch| epoch.unwrap())
        .map(|batch| batch.unwrap().samples()[0].dataset_index)
        .collect();
    assert_eq!(indices, [0, 1, 2], "the epoch begins again");
}
