//! How sets lie on disk: class folders, YOLO's parts and labels, and what is where it should not be.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use epochfeed::dataset::{Dataset, DatasetError, Exclusions, Finding, Format, Options, Split};
use rustix::fs::{CWD, FileType, mknodat};

use common::dataset::write;
use common::scratch;
use common::wait::{LIMIT, within};

fn options(format: Format) -> Options {
    Options {
        format,
        ..Options::default()
    }
}

fn says(location: &Path, options: &Options) -> String {
    match Dataset::open_with(location, options) {
        Err(error) => error.to_string(),
        Ok(dataset) => panic!("{} samples are opened", dataset.len()),
    }
}

/// The classes of each sample.
fn classes(dataset: &Dataset) -> Vec<Vec<u32>> {
    let of = |index| dataset.annotation(index).unwrap().targets.iter();
    (0..dataset.len())
        .map(|index| of(index).map(|target| target.class).collect())
        .collect()
}

/// An image and its label for each name.
fn yolo(folder: &Path, names: &[&str]) {
    for (class, name) in names.iter().enumerate() {
        write(&folder.join(format!("images/{name}.jpg")), name);
        write(
            &folder.join(format!("labels/{name}.txt")),
            format!("{class} 0.5 0.5 0.2 0.2\n"),
        );
    }
}

/// The validation part of a set may lack what a class is called after, and its classes are numbered as in training.
#[test]
fn a_class_folder_without_images_keeps_its_number() {
    let folder = scratch();
    for part in ["train", "val"] {
        for class in ["ant", "bee", "cat"] {
            write(&folder.path().join(part).join(class).join("readme.txt"), "");
            if (part, class) != ("val", "bee") {
                write(&folder.path().join(part).join(class).join("x.jpg"), "x");
            }
        }
    }
    let open =
        |part: &str| Dataset::open_with(&folder.path().join(part), &options(Format::ImageFolder)).unwrap();
    let (train, val) = (open("train"), open("val"));
    assert_eq!(classes(&train), [vec![0], vec![1], vec![2]]);
    assert_eq!(classes(&val), [vec![0], vec![2]]);
    assert_eq!(val.class_names(), train.class_names());
    assert_eq!(val.checks().examples(Finding::EmptyClass), ["bee"]);
    assert_eq!(train.checks().found().count(), 0);
    let strict = Options {
        strict: true,
        ..options(Format::ImageFolder)
    };
    let message = says(&folder.path().join("val"), &strict);
    assert!(message.contains("classes-without-images: bee"), "{message}");
}

/// Torchvision's order is that of the names; two that only differ in bytes that are no text are two.
#[test]
fn class_folders_are_told_apart_by_their_bytes() {
    let folder = scratch();
    for name in [&b"caf\xe8"[..], b"caf\xe9"] {
        write(&folder.path().join(OsStr::from_bytes(name)).join("x.jpg"), "x");
    }
    let dataset = Dataset::open_with(folder.path(), &options(Format::ImageFolder)).unwrap();
    assert_eq!(classes(&dataset), [vec![0], vec![1]]);
    assert_eq!(dataset.class_names().len(), 2);
}

/// What is validated with must not be trained with, only because there is no `data.yaml`.
#[test]
fn parts_in_folders_are_parts_without_a_data_yaml() {
    let folder = scratch();
    yolo(folder.path(), &["train/a", "train/b", "val/c", "other/d"]);
    let open = |split| {
        let options = Options {
            split,
            ..Options::default()
        };
        Dataset::open_with(folder.path(), &options)
    };
    assert_eq!(classes(&open(Split::Train).unwrap()), [vec![0], vec![1]]);
    assert_eq!(classes(&open(Split::Val).unwrap()), [vec![2]]);
    std::fs::rename(
        folder.path().join("images/val"),
        folder.path().join("images/later"),
    )
    .unwrap();
    let message = open(Split::Val).unwrap_err().to_string();
    assert!(
        message.contains("images/val") && message.contains("data.yaml"),
        "{message}"
    );
    // Where neither part is there, it is one set.
    std::fs::rename(
        folder.path().join("images/train"),
        folder.path().join("images/first"),
    )
    .unwrap();
    assert_eq!(open(Split::Val).unwrap().len(), 4);
}

/// COCO as Ultralytics lays it out has the year behind the name of each part.
#[test]
fn parts_are_found_with_their_year() {
    let folder = scratch();
    yolo(
        folder.path(),
        &[
            "train2017/a",
            "val2017/b",
            "test2017/c",
            "training/d",
            "train12/e",
        ],
    );
    let open = |split| {
        let options = Options {
            split,
            ..Options::default()
        };
        Dataset::open_with(folder.path(), &options)
    };
    assert_eq!(classes(&open(Split::Train).unwrap()), [[0]]);
    assert_eq!(classes(&open(Split::Val).unwrap()), [[1]]);
    // Which of two years is meant only a data.yaml says.
    yolo(folder.path(), &["train2014/a"]);
    let message = open(Split::Train).unwrap_err().to_string();
    assert!(
        message.contains("train2014 and train2017") && message.contains("data.yaml"),
        "{message}"
    );
    // The name alone comes first.
    yolo(folder.path(), &["0", "train/f"]);
    assert_eq!(classes(&open(Split::Train).unwrap()), [[1]]);
}

/// Labels in another place are not images without objects.
#[test]
fn a_set_without_any_label_file_is_refused() {
    let folder = scratch();
    yolo(folder.path(), &["a", "b"]);
    std::fs::rename(folder.path().join("labels"), folder.path().join("annotations")).unwrap();
    let message = says(folder.path(), &options(Format::Yolo));
    for words in ["labels/a.txt", "images/a.jpg", "format=folder"] {
        assert!(message.contains(words), "{words}: {message}");
    }
    // One file of labels, even an empty one, is a set with images of nothing.
    write(&folder.path().join("labels/b.txt"), "");
    assert_eq!(Dataset::open(folder.path()).unwrap().checks().boxes, 0);
    // Labels of which no line can be read are none.
    write(&folder.path().join("labels/b.txt"), "a 0.5 0.5 1 1\n");
    let message = says(folder.path(), &Options::default());
    assert!(
        message.contains("none of its boxes") && message.contains("b.txt:1"),
        "{message}"
    );
}

#[test]
fn names_beside_the_images_are_read_as_they_are_written() {
    let folder = scratch();
    yolo(folder.path(), &["a", "b", "c"]);
    write(
        &folder.path().join("classes.txt"),
        b"\xef\xbb\xbfcaf\xe9\r\nb c\r\n\r\n\n",
    );
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(dataset.class_names(), ["caf\u{fffd}", "b c"]);
    assert_eq!(dataset.checks().count(Finding::UnknownCategory), 1);
}

/// Filters of boxes say nothing about images without: a location that was taken for a folder is told apart from a set
/// whose classes are filtered.
#[test]
fn classes_of_a_set_without_boxes_are_refused() {
    let folder = scratch();
    write(&folder.path().join("a.jpg"), "a");
    let wanted = Options {
        classes: vec!["cat".into()],
        ..Options::default()
    };
    let message = says(folder.path(), &wanted);
    assert!(
        message.contains("classes") && message.contains("format"),
        "{message}"
    );
}

/// What is named in a `data.yaml`, a list of what to leave out and the names of the classes may be anything.
#[test]
fn what_is_no_file_is_refused_and_never_waited_for() {
    within(LIMIT, || {
        let folder = scratch();
        let root = folder.path();
        yolo(root, &["a"]);
        let pipe = root.join("pipe.txt");
        mknodat(CWD, &pipe, FileType::Fifo, 0o644.into(), 0).unwrap();
        for entry in ["pipe.txt", "/dev/zero"] {
            write(&root.join("data.yaml"), format!("train: {entry}\n"));
            let message = says(root, &Options::default());
            assert!(
                message.contains(entry) && message.contains("not a regular file"),
                "{message}"
            );
        }
        write(&root.join("data.yaml"), vec![b' '; 3 << 20]);
        let message = says(root, &Options::default());
        assert!(message.contains("no data.yaml is so long"), "{message}");
        std::fs::remove_file(root.join("data.yaml")).unwrap();
        std::fs::rename(&pipe, root.join("classes.txt")).unwrap();
        let message = says(root, &Options::default());
        assert!(message.contains("classes.txt"), "{message}");
        for list in [root.join("classes.txt"), "/dev/zero".into()] {
            let error = Exclusions::read(&list).unwrap_err();
            assert!(matches!(&error, DatasetError::BadFile { .. }), "{error}");
        }
    });
}

/// A list of what to leave out often lies in a folder of its own.
#[test]
fn exclusions_are_found_behind_detours() {
    let folder = scratch();
    yolo(folder.path(), &["a", "b", "c"]);
    let list = folder.path().join("lists/bad.txt");
    write(
        &list,
        "../images/a.jpg\n../images/../images/./b.jpg\n../images/gone.jpg\n",
    );
    let exclusions = Exclusions::read(&list).unwrap();
    let open = |location: &Path| {
        let strict = Options {
            strict: true,
            ..Options::default()
        };
        Dataset::open_without(location, &strict, &exclusions).unwrap()
    };
    let rest = open(folder.path());
    assert_eq!((rest.len(), rest.excluded()), (1, 2));
    assert_eq!(classes(&rest), [vec![2]]);
    // Also those of a set whose images are behind one.
    write(&folder.path().join("yaml/data.yaml"), "train: ../images\n");
    assert_eq!(open(&folder.path().join("yaml")).len(), 1);
    // What is left out is not missed.
    let listed = folder.path().join("list.txt");
    write(&listed, "images/gone.jpg\nimages/c.jpg\n");
    assert_eq!(open(&listed).len(), 1);
}
