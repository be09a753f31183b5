//! YOLO's files and class folders, and that they say what COCO's file of the same boxes says.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;

use epochfeed::dataset::{BoxFormat, Dataset, Finding, Format, Options, Split};

use common::dataset::{annotation, image, write, write_coco};
use common::scratch;

fn open(location: &Path, options: &Options) -> Dataset {
    Dataset::open_with(location, options).unwrap_or_else(|error| panic!("{error}"))
}

fn as_format(format: Format) -> Options {
    Options {
        format,
        ..Options::default()
    }
}

/// Class numbers of each sample.
fn classes(dataset: &Dataset) -> Vec<Vec<u32>> {
    (0..dataset.len())
        .map(|index| {
            let annotation = dataset.annotation(index).unwrap();
            annotation.targets.iter().map(|target| target.class).collect()
        })
        .collect()
}

/// Images and labels as Ultralytics lays them out, with a `data.yaml`.
fn set(folder: &Path) {
    for (name, labels) in [
        (
            "train/a",
            "1 0.5 0.5 0.2 0.4\n0 0.1 0.1 0.3 0.1 0.3 0.3 0.1 0.3\n",
        ),
        ("train/b", ""),
        (
            "train/c",
            "0 0.5 0.5 0.2 0.4\nfive\n7 0.5 0.5 0.1 0.1\n0 0.5 0.5 0.2 0.4\n0 0.9 0.5 0.4 0.4\n",
        ),
        ("val/d", "0 0.5 0.5 1 1\n"),
    ] {
        write(&folder.join(format!("images/{name}.jpg")), name);
        write(&folder.join(format!("labels/{name}.txt")), labels);
    }
    write(&folder.join("images/train/unlabelled.png"), "u");
    let yaml = "path: moved/away\ntrain: images/train\nval:\n  - images/val\nnames:\n  0: cat\n  1: dog\n";
    write(&folder.join("data.yaml"), yaml);
}

#[test]
fn a_data_yaml_names_parts_and_classes() {
    let folder = scratch();
    set(folder.path());
    for location in [folder.path().to_owned(), folder.path().join("data.yaml")] {
        let dataset = Dataset::open(&location).unwrap();
        assert_eq!(dataset.class_names(), ["cat", "dog"]);
        assert_eq!(classes(&dataset), [vec![1, 0], vec![], vec![0, 0], vec![]]);
        assert_eq!(dataset.open_file(3).read().unwrap(), b"u");
        let annotation = dataset.annotation(0).unwrap();
        assert_eq!(
            (annotation.format, annotation.size),
            (BoxFormat::CenterNormalized, None)
        );
        assert_eq!(annotation.targets[0].bbox, [0.5, 0.5, 0.2, 0.4]);
        // The box around the outline.
        let around = annotation.targets[1].bbox;
        assert!(
            around.iter().all(|number| (number - 0.2).abs() < 1e-6),
            "{around:?}"
        );
        let checks = dataset.checks();
        let counts: Vec<_> = checks
            .found()
            .map(|finding| (finding, checks.count(finding)))
            .collect();
        let expected = [
            (Finding::Malformed, 1),
            (Finding::UnknownCategory, 1),
            (Finding::OutOfImage, 1),
            (Finding::DuplicateBox, 1),
            (Finding::WithoutBoxes, 2),
        ];
        assert_eq!(counts, expected, "{checks}");
        let example = &checks.examples(Finding::Malformed)[0];
        assert!(
            example.contains("labels/train/c.txt:2: the class is no number"),
            "{example}"
        );
    }
    let val = Options {
        split: Split::Val,
        ..Options::default()
    };
    assert_eq!(classes(&open(folder.path(), &val)), [vec![0]]);
}

#[test]
fn roots_and_lists_of_a_data_yaml() {
    let folder = scratch();
    set(folder.path());
    let yaml = folder.path().join("elsewhere/set.yml");
    let options = Options {
        root: Some(folder.path().to_owned()),
        ..Options::default()
    };
    // A list's entries are relative to the list; as Roboflow writes it, `../` leads out of nothing.
    write(
        &folder.path().join("lists/train.txt"),
        "../images/train/c.jpg\n../images/train/gone.jpg\n",
    );
    write(&yaml, "train: [lists/train.txt, ../images/val]\nnames: [cat]\n");
    let dataset = open(&yaml, &options);
    assert_eq!(classes(&dataset), [vec![0, 0], vec![], vec![0]]);
    assert_eq!(dataset.checks().count(Finding::MissingFile), 1);
    // With another `images` in front, labels are still found at the last one.
    let list = open(&folder.path().join("lists/train.txt"), &as_format(Format::Yolo));
    assert_eq!(classes(&list), [vec![0, 7, 0], vec![]]);

    write(&yaml, "val: images/val\n");
    let message = Dataset::open_with(&yaml, &options).unwrap_err().to_string();
    assert!(
        message.contains("set.yml") && message.contains("no train"),
        "{message}"
    );
    write(&yaml, "train: nowhere\n");
    let message = Dataset::open_with(&yaml, &options).unwrap_err().to_string();
    for words in ["set.yml", "train: nowhere", "/nowhere is not there", "root"] {
        assert!(message.contains(words), "{message}");
    }
    write(&yaml, "train: [a\n");
    let message = Dataset::open_with(&yaml, &options).unwrap_err().to_string();
    assert!(
        message.contains("is no data.yaml") && message.contains("line"),
        "{message}"
    );
}

#[test]
fn images_beside_labels_are_yolo_and_folders_are_not_guessed_to_be_classes() {
    let folder = scratch();
    set(folder.path());
    std::fs::remove_file(folder.path().join("data.yaml")).unwrap();
    write(&folder.path().join("labels/classes.txt"), "cat\r\ndog\n");
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(classes(&dataset), [vec![1, 0], vec![], vec![0, 0], vec![]]);
    assert_eq!(dataset.class_names(), ["cat", "dog"]);
    assert_eq!(
        open(folder.path(), &as_format(Format::Folder)).annotation(0),
        None
    );
    // Without names any number is a class, and `classes` takes numbers.
    std::fs::remove_file(folder.path().join("labels/classes.txt")).unwrap();
    let options = Options {
        classes: vec!["7".into()],
        ..Options::default()
    };
    assert_eq!(classes(&open(folder.path(), &options)).concat(), [7]);

    let images = folder.path().join("images");
    assert_eq!(Dataset::open(&images).unwrap().annotation(0), None);
    let sorted = open(&images, &as_format(Format::ImageFolder));
    assert_eq!(sorted.class_names(), ["train", "val"]);
    assert_eq!(classes(&sorted), [vec![0], vec![0], vec![0], vec![0], vec![1]]);
    assert_eq!(
        sorted.annotation(4).unwrap().targets[0].bbox,
        [0.5, 0.5, 1.0, 1.0]
    );
}

#[test]
fn classes_of_folders_are_in_byte_order_whatever_stands_between_their_images() {
    let folder = scratch();
    // As paths, `a-b/x` comes before `a/x`; as names, `a` before `a-b`.
    for name in [
        "a/x.jpg",
        "a-b/x.jpg",
        "a-b/deep/er/y.jpg",
        "loose.jpg",
        "empty/readme.txt",
    ] {
        write(&folder.path().join(name), name);
    }
    let dataset = open(folder.path(), &as_format(Format::ImageFolder));
    assert_eq!(dataset.class_names(), ["a", "a-b", "empty"]);
    assert_eq!(classes(&dataset), [vec![1], vec![1], vec![0]]);
    assert_eq!(dataset.checks().examples(Finding::WithoutClass), ["loose.jpg"]);
}

#[test]
fn a_format_that_does_not_fit_is_refused_with_what_would() {
    let folder = scratch();
    set(folder.path());
    let list = folder.path().join("list.txt");
    write(&list, "images/train/a.jpg\n");
    for (location, format, words) in [
        (folder.path(), Format::Coco, "JSON file"),
        (folder.path(), Format::List, "text file"),
        (&list, Format::ImageFolder, "folder for each class"),
        (&list, Format::Coco, "is no COCO file"),
        (&list, Format::Folder, "format=folder"),
    ] {
        let message = Dataset::open_with(location, &as_format(format))
            .unwrap_err()
            .to_string();
        assert!(message.contains(words), "{format:?}: {message}");
    }
    assert_eq!(open(&list, &as_format(Format::List)).len(), 1);
}

#[test]
fn coco_and_yolo_say_the_same_about_the_same_boxes() {
    let folder = scratch();
    let root = folder.path();
    let (mut images, mut annotations) = (Vec::new(), Vec::new());
    for number in 0..40_i64 {
        let (width, height) = (33 + 61 * number as u32, 2000 - 47 * number as u32);
        let name = format!("{number:02}.jpg");
        images.push(image(1000 - number, &name, width, height));
        write(&root.join("images").join(&name), &name);
        let mut labels = String::new();
        for one in 0..number % 5 {
            let [w, h] = [f64::from(width), f64::from(height)];
            let part = (one + 1) as f64 / 7.0;
            let bbox = [w * part * 0.31, h * part * 0.17, w * part * 0.6, h * part * 0.83];
            annotations.push(annotation(number * 10 + one, 1000 - number, 5 + one, bbox));
            let [x, y, bw, bh] = bbox;
            labels += &format!(
                "{one} {} {} {} {}\n",
                (x + bw / 2.0) / w,
                (y + bh / 2.0) / h,
                bw / w,
                bh / h
            );
        }
        write(&root.join(format!("labels/{number:02}.txt")), labels);
    }
    let json = root.join("all.json");
    write_coco(
        &json,
        &images,
        &annotations,
        &[(8, "d"), (5, "a"), (6, "b"), (7, "c")],
    );
    let (coco, yolo) = (Dataset::open(&json).unwrap(), Dataset::open(root).unwrap());
    assert_eq!(
        (coco.len(), yolo.len(), coco.checks().boxes),
        (40, 40, annotations.len() as u64)
    );
    for index in 0..40 {
        assert_eq!(coco.path(index), yolo.path(index));
        let (corner, centre) = (coco.annotation(index).unwrap(), yolo.annotation(index).unwrap());
        assert_eq!(corner.targets.len(), centre.targets.len());
        let (width, height) = corner.size.unwrap();
        let [width, height] = [f64::from(width), f64::from(height)];
        for (a, b) in corner.targets.iter().zip(centre.targets) {
            assert_eq!(a.class, b.class);
            let [x, y, w, h] = a.bbox.map(f64::from);
            let a = [
                (x + w / 2.0) / width,
                (y + h / 2.0) / height,
                w / width,
                h / height,
            ];
            for (a, b) in a.iter().zip(b.bbox) {
                assert!((a - f64::from(b)).abs() < 1e-6, "{a} {b}");
            }
        }
    }
}
