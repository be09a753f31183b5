//! COCO files: what is taken of them, in which order, and what is found wrong.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;

use epochfeed::dataset::{BoxFormat, Crowd, Dataset, DatasetError, Finding, Options, OutOfImage};
use serde_json::{Value, json};

use common::dataset::{annotation, image, write, write_coco};
use common::scratch;

/// Four images, of which the third has no box; the categories' ids are neither from 0 nor in order.
fn small(folder: &Path) -> std::path::PathBuf {
    let json = folder.join("annotations/instances_train.json");
    let images = [
        image(7, "b.jpg", 100, 50),
        image(3, "a/z.jpg", 64, 64),
        image(9, "c.jpg", 10, 10),
        image(i64::MAX, "a.jpg", 30, 20),
    ];
    let mut crowd = annotation(14, 7, 90, [0.0, 0.0, 50.0, 50.0]);
    crowd["iscrowd"] = json!(1);
    let annotations = [
        annotation(11, 7, 90, [10.5, 20.0, 30.25, 5.0]),
        annotation(12, 3, 1, [0.0, 0.0, 64.0, 64.0]),
        annotation(13, 7, 44, [1.0, 2.0, 3.0, 4.0]),
        crowd,
        annotation(15, i64::MAX, 1, [1.0, 1.0, 2.0, 2.0]),
    ];
    write_coco(
        &json,
        &images,
        &annotations,
        &[(90, "brush"), (1, "person"), (44, "bottle")],
    );
    for name in ["b.jpg", "a/z.jpg", "c.jpg", "a.jpg"] {
        write(&folder.join("images/train").join(name), name);
    }
    json
}

/// Image id and (class, box) of each sample.
type Targets = Vec<(i64, Vec<(u32, [f32; 4])>)>;

fn targets(dataset: &Dataset) -> Targets {
    (0..dataset.len())
        .map(|index| {
            let annotation = dataset.annotation(index).unwrap();
            let boxes = annotation
                .targets
                .iter()
                .map(|target| (target.class, target.bbox));
            (annotation.image_id, boxes.collect())
        })
        .collect()
}

fn open(json: &Path, options: &Options) -> Dataset {
    Dataset::open_with(json, options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn images_are_in_the_order_of_their_names_and_classes_in_that_of_their_ids() {
    let folder = scratch();
    let json = small(folder.path());
    let dataset = Dataset::open(&json).unwrap();
    // As `sorted(coco.getCatIds())` numbers them.
    assert_eq!(dataset.class_names(), ["person", "bottle", "brush"]);
    let expected: Targets = vec![
        (i64::MAX, vec![(0, [1.0, 1.0, 2.0, 2.0])]),
        (3, vec![(0, [0.0, 0.0, 64.0, 64.0])]),
        (7, vec![(2, [10.5, 20.0, 30.25, 5.0]), (1, [1.0, 2.0, 3.0, 4.0])]),
        (9, vec![]),
    ];
    assert_eq!(targets(&dataset), expected);
    for (index, name) in ["a.jpg", "a/z.jpg", "b.jpg", "c.jpg"].iter().enumerate() {
        // The folder of the split is found, and the file's content is its name.
        assert_eq!(dataset.open_file(index as u64).read().unwrap(), name.as_bytes());
    }
    let annotation = dataset.annotation(2).unwrap();
    assert_eq!(
        (annotation.format, annotation.size),
        (BoxFormat::CornerPixels, Some((100, 50)))
    );
    let checks = dataset.checks();
    assert_eq!((checks.images, checks.boxes), (4, 4));
    assert_eq!(
        checks.found().collect::<Vec<_>>(),
        [Finding::WithoutBoxes, Finding::CrowdBox]
    );
    // The same images without targets are the same samples.
    let images = Dataset::open(&folder.path().join("images/train")).unwrap();
    assert!((0..4).all(|index| images.path(index) == dataset.path(index)));
}

#[test]
fn filters_take_boxes_and_leave_images() {
    let folder = scratch();
    let json = small(folder.path());
    let with = |change: fn(&mut Options)| {
        let mut options = Options::default();
        change(&mut options);
        targets(&open(&json, &options))
    };
    let classes = |targets: Targets| -> Vec<Vec<u32>> {
        targets
            .iter()
            .map(|(_, boxes)| boxes.iter().map(|(class, _)| *class).collect())
            .collect()
    };
    assert_eq!(
        classes(with(|o| o.crowd = Crowd::Keep)),
        [vec![0], vec![0], vec![2, 1, 2], vec![]]
    );
    assert_eq!(
        classes(with(|o| o.classes = vec!["brush".into(), "0".into()])),
        [vec![0], vec![0], vec![2], vec![]]
    );
    assert_eq!(
        classes(with(|o| o.single_class = true)),
        [vec![0], vec![0], vec![0, 0], vec![]]
    );
    assert_eq!(classes(with(|o| o.fraction = 0.5)), [vec![0], vec![0]]);
    let single = Options {
        single_class: true,
        ..Options::default()
    };
    assert_eq!(open(&json, &single).class_names(), ["item"]);
    let unknown = Options {
        classes: vec!["unicorn".into()],
        ..Options::default()
    };
    let message = Dataset::open_with(&json, &unknown).unwrap_err().to_string();
    assert!(
        message.contains("unicorn") && message.contains("1 bottle"),
        "{message}"
    );
}

/// One of each thing that can be wrong, beside a sound image with a sound box.
fn awkward(folder: &Path) -> std::path::PathBuf {
    let json = folder.join("set.json");
    let images = [
        image(1, "good.jpg", 100, 100),
        image(2, "gone.jpg", 100, 100),
        image(1, "again.jpg", 100, 100),
        image(4, "../outside.jpg", 100, 100),
        image(5, "/etc/hostname.jpg", 100, 100),
        image(6, "x/../../outside.jpg", 100, 100),
        image(7, "x/../fine.jpg", 100, 100),
        json!({"id": 8, "width": 1}),
        json!({"id": 9, "file_name": "sizeless.jpg"}),
    ];
    let bad = |id, bbox: [Value; 4]| json!({"id": id, "image_id": 1, "category_id": 1, "bbox": bbox});
    let annotations = [
        annotation(1, 1, 1, [10.0, 10.0, 20.0, 20.0]),
        annotation(2, 1, 1, [10.0, 10.0, 20.0, 20.0]),
        annotation(2, 1, 1, [11.0, 10.0, 20.0, 20.0]),
        annotation(3, 77, 1, [1.0, 1.0, 2.0, 2.0]),
        annotation(4, 1, 66, [1.0, 1.0, 2.0, 2.0]),
        annotation(5, 1, 1, [1.0, 1.0, 0.0, 2.0]),
        annotation(6, 1, 1, [1.0, 1.0, -3.0, 2.0]),
        annotation(7, 1, 1, [90.0, 90.0, 20.0, 20.0]),
        bad(8, [json!("NUMBER"), json!(1), json!(1), json!(1)]),
        json!({"id": 9, "image_id": 1, "category_id": 1}),
        annotation(10, 9, 1, [5000.0, 1.0, 2.0, 2.0]),
        // Of an image that is left out, and goes with it.
        annotation(11, 4, 1, [1.0, 1.0, 2.0, 2.0]),
    ];
    write_coco(&json, &images, &annotations, &[(1, "mark"), (1, "double")]);
    // Python writes what JSON does not have.
    let text = std::fs::read_to_string(&json)
        .unwrap()
        .replace("\"NUMBER\"", "NaN");
    write(&json, text);
    for name in [
        "good.jpg",
        "again.jpg",
        "fine.jpg",
        "sizeless.jpg",
        "../outside.jpg",
    ] {
        write(&folder.join("root").join(name), name);
    }
    std::fs::create_dir(folder.join("root/x")).unwrap();
    json
}

#[test]
fn everything_wrong_is_counted_and_the_sound_rest_is_used() {
    let folder = scratch();
    let json = awkward(folder.path());
    let mut options = Options {
        root: Some(folder.path().join("root")),
        ..Options::default()
    };
    let dataset = open(&json, &options);
    let checks = dataset.checks();
    let counts: Vec<_> = checks
        .found()
        .map(|finding| (finding, checks.count(finding)))
        .collect();
    let expected = [
        (Finding::MissingFile, 1),
        (Finding::OutsideRoot, 3),
        (Finding::WithoutSize, 1),
        // An image, a category, an annotation.
        (Finding::DuplicateId, 3),
        (Finding::Malformed, 2),
        (Finding::UnknownImage, 1),
        (Finding::UnknownCategory, 1),
        (Finding::NotFinite, 1),
        (Finding::NegativeBox, 1),
        (Finding::EmptyBox, 1),
        (Finding::OutOfImage, 1),
        (Finding::DuplicateBox, 1),
        (Finding::WithoutBoxes, 2),
    ];
    assert_eq!(counts, expected, "{checks}");
    assert_eq!(checks.examples(Finding::MissingFile), ["gone.jpg"]);
    assert_eq!(checks.examples(Finding::NegativeBox), ["annotation 6 of image 1"]);
    let mark = |bbox| (0, bbox);
    let good = vec![
        mark([10.0, 10.0, 20.0, 20.0]),
        mark([11.0, 10.0, 20.0, 20.0]),
        mark([90.0, 90.0, 10.0, 10.0]),
    ];
    // gone.jpg keeps its place: reading it is a fault like any other.
    let expected = vec![
        (2, vec![]),
        (1, good),
        (9, vec![mark([5000.0, 1.0, 2.0, 2.0])]),
        (7, vec![]),
    ];
    assert_eq!(targets(&dataset), expected);
    assert_eq!(dataset.class_names(), ["mark"]);

    options.out_of_image = OutOfImage::Drop;
    assert_eq!(open(&json, &options).checks().boxes, 3);
    options.out_of_image = OutOfImage::Keep;
    let kept = open(&json, &options);
    assert_eq!(
        kept.annotation(1).unwrap().targets[2].bbox,
        [90.0, 90.0, 20.0, 20.0]
    );

    options.strict = true;
    let error = Dataset::open_with(&json, &options).unwrap_err();
    assert!(matches!(error, DatasetError::Strict { .. }), "{error}");
    let message = error.to_string();
    for words in [
        "set.json",
        "strict=false",
        "outside-root",
        "gone.jpg",
        "category 66 of annotation 4",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn a_sound_set_is_strict() {
    let folder = scratch();
    let options = Options {
        strict: true,
        ..Options::default()
    };
    // It has a crowd, and an image without boxes.
    assert_eq!(open(&small(folder.path()), &options).len(), 4);
}

#[test]
fn nothing_usable_is_an_error_that_says_why() {
    let folder = scratch();
    let json = folder.path().join("set.json");
    let says = |options: &Options| Dataset::open_with(&json, options).unwrap_err().to_string();
    let default = Options::default();

    write_coco(&json, &[image(1, "a.jpg", 9, 9)], &[], &[]);
    let message = says(&default);
    assert!(
        message.contains("set.json") && message.contains("set root"),
        "{message}"
    );

    write(&folder.path().join("a.jpg"), "a");
    assert_eq!(open(&json, &default).len(), 1, "an image without boxes is usable");

    write_coco(&json, &[], &[annotation(1, 1, 1, [1.0; 4])], &[(1, "x")]);
    assert!(says(&default).contains("no usable image"));

    let crossed = annotation(1, 1, 2, [1.0; 4]);
    write_coco(&json, &[image(1, "a.jpg", 9, 9)], &[crossed], &[(1, "x")]);
    let message = says(&default);
    assert!(
        message.contains("none of its boxes") && message.contains("category 2"),
        "{message}"
    );
    for (text, words) in [
        ("{\"images\": [{\"id\": 1, \"fil", "line 1 column 26"),
        ("[{\"image_id\": 1}]", "is no COCO file"),
        ("{\"annotations\": []}", "no \"images\""),
        ("", "download or export it again"),
    ] {
        write(&json, text);
        let message = says(&default);
        assert!(
            message.contains(words) && message.contains("set.json"),
            "{message}"
        );
    }
}

#[test]
fn the_fingerprint_sees_every_change_of_the_annotations() {
    let folder = scratch();
    let json = folder.path().join("set.json");
    let print = |bbox, category, size, name| {
        write_coco(
            &json,
            &[image(1, "a.jpg", size, 50)],
            &[annotation(1, 1, category, bbox)],
            &[(1, name), (2, "y")],
        );
        open(&json, &Options::default()).fingerprint().to_owned()
    };
    write(&folder.path().join("a.jpg"), "a");
    let first = print([1.0, 2.0, 3.0, 4.0], 1, 50, "x");
    assert_eq!(print([1.0, 2.0, 3.0, 4.0], 1, 50, "x"), first);
    assert_ne!(print([1.0, 2.0, 3.0, 4.5], 1, 50, "x"), first);
    assert_ne!(print([1.0, 2.0, 3.0, 4.0], 2, 50, "x"), first);
    assert_ne!(print([1.0, 2.0, 3.0, 4.0], 1, 51, "x"), first);
    assert_ne!(print([1.0, 2.0, 3.0, 4.0], 1, 50, "z"), first);
    // Without targets the paths are all there is, as before there were formats.
    let images = Dataset::open(folder.path()).unwrap();
    assert_ne!(images.fingerprint(), first);
}
