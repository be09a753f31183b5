//! COCO files as other programs write them: what is odd about one entry is counted, and costs no other.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;

use epochfeed::dataset::{Dataset, Finding, Options};
use serde_json::{Value, json};

use common::dataset::{annotation, image, write, write_coco};
use common::scratch;

/// Three images with a sound box each, with `change` made to the file.
fn open(folder: &Path, change: impl FnOnce(&mut Value)) -> Result<Dataset, String> {
    let mut coco = json!({
        "images": [image(1, "a.jpg", 50, 50), image(2, "b.jpg", 50, 50), image(3, "c.jpg", 50, 50)],
        "annotations": (1..=3).map(|id| annotation(id, id, 7, [1.0, 2.0, 3.0, 4.0])).collect::<Vec<_>>(),
        "categories": [{"id": 7, "name": "cat"}, {"id": 9, "name": " dog "}, {"id": 8, "name": "dog"}],
    });
    change(&mut coco);
    open_text(folder, &coco.to_string(), &Options::default())
}

fn open_text(folder: &Path, text: &str, options: &Options) -> Result<Dataset, String> {
    let json = folder.join("set.json");
    for name in ["a.jpg", "b.jpg", "c.jpg"] {
        write(&folder.join(name), name);
    }
    write(&json, text);
    Dataset::open_with(&json, options).map_err(|error| error.to_string())
}

fn push(coco: &mut Value, section: &str, entry: Value) {
    coco[section].as_array_mut().unwrap().push(entry);
}

#[test]
fn an_entry_that_says_nothing_useful_costs_no_other() {
    let folder = scratch();
    let boxed = |bbox: Value| json!({"id": 10, "image_id": 1, "category_id": 7, "bbox": bbox});
    for (section, entry) in [
        ("images", json!({"id": 4, "file_name": null})),
        ("images", json!({"id": 4, "file_name": ["d.jpg"]})),
        ("images", json!(null)),
        ("images", json!("d.jpg")),
        ("images", json!([4, "d.jpg"])),
        ("annotations", boxed(json!(null))),
        ("annotations", boxed(json!("1,2,3,4"))),
        ("annotations", boxed(json!({"x": 1}))),
        ("annotations", boxed(json!(true))),
        ("annotations", boxed(json!(-1.5))),
        ("annotations", json!(7)),
        ("annotations", json!([1, 1, 7, [1, 2, 3, 4]])),
        ("categories", json!("bird")),
    ] {
        let shown = format!("{section}: {entry}");
        let dataset =
            open(folder.path(), |coco| push(coco, section, entry)).unwrap_or_else(|e| panic!("{shown}: {e}"));
        let checks = dataset.checks();
        assert_eq!(
            (checks.images, checks.boxes, checks.count(Finding::Malformed)),
            (3, 3, 1),
            "{shown}"
        );
    }
}

#[test]
fn numbers_in_quotes_are_numbers() {
    let folder = scratch();
    let entry = |crowd: &str| {
        json!({"id": "11", "image_id": "1", "category_id": "7", "bbox": ["5", " 6.5", "1e1", "2"],
               "iscrowd": crowd})
    };
    let dataset = open(folder.path(), |coco| {
        push(coco, "annotations", entry("0"));
        push(coco, "annotations", entry("1"));
        coco["images"][0]["width"] = json!("50");
    })
    .unwrap();
    let annotation = dataset.annotation(0).unwrap();
    assert_eq!(annotation.targets[1].bbox, [5.0, 6.5, 10.0, 2.0]);
    assert_eq!(annotation.size, Some((50, 50)));
    assert_eq!(dataset.checks().count(Finding::CrowdBox), 1);
    assert_eq!(dataset.checks().count(Finding::NotFinite), 0);
}

/// Of two values Python takes the last, and nobody knows whether that was meant.
#[test]
fn what_cannot_be_meant_is_refused_where_it_is() {
    let folder = scratch();
    for (text, words) in [
        (
            "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"}],\n\"images\":[],\"annotations\":[]}",
            "duplicate field `images` at line 2",
        ),
        (
            "{\"images\":[\n{\"id\":1,\"file_name\":\"a.jpg\",\"id\":2}]}",
            "duplicate field `id` at line 2",
        ),
        (
            "{\"images\":[{\"id\":1,\n\"file_name\":17}]}",
            "expected a file name at line 2",
        ),
    ] {
        let message = open_text(folder.path(), text, &Options::default()).unwrap_err();
        assert!(message.contains(words), "{message}");
    }
}

/// A file of captions has images and annotations, and no box among them.
#[test]
fn annotations_without_any_box_are_nothing_to_train_with() {
    let folder = scratch();
    let message = open(folder.path(), |coco| {
        coco["annotations"] = json!([{"id": 1, "image_id": 1, "caption": "a cat"}]);
    })
    .unwrap_err();
    assert!(
        message.contains("none of its boxes") && message.contains("annotation 1 without category_id"),
        "{message}"
    );
    let message = open(folder.path(), |coco| {
        coco.as_object_mut().unwrap().remove("categories");
    })
    .unwrap_err();
    assert!(message.contains("lists no categories"), "{message}");
    // A file of images alone is one of images without objects.
    let dataset = open(folder.path(), |coco| coco["annotations"] = json!([])).unwrap();
    assert_eq!((dataset.len(), dataset.checks().boxes), (3, 0));
}

/// They are parts of a name here: the file was written on Windows.
#[test]
fn backslashes_in_names_are_pointed_at() {
    let folder = scratch();
    let named = |separator| {
        open(folder.path(), |coco| {
            for image in coco["images"].as_array_mut().unwrap() {
                image["file_name"] = json!(format!("sub{separator}{}.jpg", image["id"]));
            }
        })
        .unwrap_err()
    };
    assert!(named('\\').contains("backslashes"));
    assert!(!named('/').contains("backslashes"));
}

#[test]
fn boxes_of_an_image_that_was_refused_go_with_it() {
    let folder = scratch();
    let dataset = open(folder.path(), |coco| {
        push(coco, "images", image(4, "../d.jpg", 50, 50));
        push(coco, "annotations", annotation(4, 4, 7, [1.0, 2.0, 3.0, 4.0]));
    })
    .unwrap();
    let found: Vec<_> = dataset.checks().found().collect();
    assert_eq!(found, [Finding::OutsideRoot]);
}

/// Two classes may have a box around the same thing; that they become one class makes none of them wrong.
#[test]
fn one_class_for_all_makes_no_duplicates() {
    let folder = scratch();
    let json = folder.path().join("set.json");
    write(&folder.path().join("a.jpg"), "a");
    let bbox = [1.0, 2.0, 3.0, 4.0];
    let annotations = [
        annotation(1, 1, 1, bbox),
        annotation(2, 1, 2, bbox),
        annotation(3, 1, 2, bbox),
    ];
    write_coco(
        &json,
        &[image(1, "a.jpg", 50, 50)],
        &annotations,
        &[(1, "x"), (2, "y")],
    );
    for single_class in [false, true] {
        let options = Options {
            single_class,
            ..Options::default()
        };
        let dataset = Dataset::open_with(&json, &options).unwrap();
        let checks = dataset.checks();
        assert_eq!((checks.boxes, checks.count(Finding::DuplicateBox)), (2, 1));
    }
}

/// Names as annotation tools leave them: with spaces around, and one of two categories.
#[test]
fn every_class_of_a_name_is_taken() {
    let folder = scratch();
    let text = json!({
        "images": [image(1, "a.jpg", 50, 50)],
        "annotations": (7..=9).map(|id| annotation(id, 1, id, [1.0, 2.0, 3.0, 4.0])).collect::<Vec<_>>(),
        "categories": [{"id": 7, "name": "cat"}, {"id": 9, "name": " dog "}, {"id": 8, "name": "dog"}],
    });
    let options = Options {
        classes: vec!["dog".into()],
        ..Options::default()
    };
    let dataset = open_text(folder.path(), &text.to_string(), &options).unwrap();
    let classes: Vec<_> = dataset
        .annotation(0)
        .unwrap()
        .targets
        .iter()
        .map(|target| target.class)
        .collect();
    assert_eq!(classes, [1, 2]);
}

#[test]
fn an_image_that_does_not_say_its_size_is_counted() {
    let folder = scratch();
    let dataset = open(folder.path(), |coco| {
        coco["images"][0] = json!({"id": 1, "file_name": "a.jpg"});
        coco["images"][1] = json!({"id": 2, "file_name": "b.jpg", "width": 50});
        // Without boxes there is nothing to cut.
        push(coco, "images", json!({"id": 4, "file_name": "d.jpg"}));
        coco["annotations"][0]["bbox"] = json!([40.0, 2.0, 300.0, 4.0]);
    })
    .unwrap();
    let checks = dataset.checks();
    assert_eq!(checks.count(Finding::WithoutSize), 2, "{checks}");
    assert_eq!(
        checks.examples(Finding::WithoutSize),
        ["a.jpg", "b.jpg"],
        "{checks}"
    );
    assert_eq!(checks.count(Finding::OutOfImage), 0, "{checks}");
    assert_eq!(
        dataset.annotation(0).unwrap().targets[0].bbox,
        [40.0, 2.0, 300.0, 4.0]
    );
}
