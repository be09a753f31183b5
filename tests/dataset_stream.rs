//! A dataset with boxes through `epochsrc`: its properties, what it says at the start, what is on its buffers, and what
//! happens when it changes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use epochfeed::dataset::{BoxFormat, Target};
use epochfeed::elements::meta::{BoxesMeta, BoxesOf, SampleMeta};
use gst::prelude::*;

use common::dataset::{annotation, image, write_coco};
use common::{Pipeline, Report, assert_fails, copy_photos, location, photos, scratch};

const SAMPLES: usize = 6;

/// A COCO file over copies of photographs below `root`; image `n` has `n` boxes, and the last one is out of its image.
fn coco(folder: &Path) -> PathBuf {
    let root = folder.join("root");
    std::fs::create_dir_all(&root).unwrap();
    copy_photos(&root, SAMPLES);
    write_boxes(folder, 0.0)
}

/// The file for the photographs, with all boxes moved to the right.
fn write_boxes(folder: &Path, moved: f64) -> PathBuf {
    let json = folder.join("set.json");
    let (mut images, mut annotations) = (Vec::new(), Vec::new());
    for (number, photo) in (0_i64..).zip(photos().iter().take(SAMPLES)) {
        let name = photo.file_name().unwrap().to_str().unwrap();
        images.push(image(100 + number, name, 60, 40));
        for one in 0..number {
            let id = number * 10 + one;
            annotations.push(annotation(
                id,
                100 + number,
                3 + one % 2,
                [one as f64 + moved, 2.0, 3.0, 4.0],
            ));
        }
    }
    annotations.push(annotation(99, 100, 3, [50.0, 10.0, 60.0, 10.0]));
    write_coco(&json, &images, &annotations, &[(4, "dog"), (3, "cat")]);
    json
}

/// What the buffers of `epochsrc` carry in one epoch: id, size and boxes of each dataset index.
fn carried(source: &str) -> Vec<(u64, Option<BoxesMeta>)> {
    let pipeline = Pipeline::new(&format!("epochsrc name=source {source} ! fakesink"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let pad = pipeline.element("source").static_pad("src").unwrap();
    let store = seen.clone();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        if let Some(buffer) = info.buffer() {
            let index = SampleMeta::get(buffer).unwrap().dataset_index;
            store.lock().unwrap().push((index, BoxesMeta::get(buffer)));
        }
        gst::PadProbeReturn::Ok
    });
    pipeline.set(gst::State::Playing);
    pipeline.wait_eos();
    drop(pipeline);
    std::mem::take(&mut *seen.lock().unwrap())
}

#[test]
fn the_annotation_travels_with_its_image() {
    let folder = scratch();
    let json = coco(folder.path());
    let root = location(&folder.path().join("root"));
    let found = carried(&format!(
        "location={} root={root} shuffle=keyed seed=3",
        location(&json)
    ));
    assert_eq!(found.len(), SAMPLES);
    assert!(
        found.iter().map(|(index, _)| *index).ne(0..SAMPLES as u64),
        "shuffled"
    );
    for (index, boxes) in found {
        let boxes = boxes.unwrap();
        assert_eq!((boxes.image_id, boxes.size), (100 + index as i64, Some((60, 40))));
        assert_eq!(boxes.of, BoxesOf::Image(BoxFormat::CornerPixels));
        let mut expected: Vec<_> = (0..index as u32)
            .map(|one| Target {
                class: one % 2,
                bbox: [one as f32, 2.0, 3.0, 4.0],
            })
            .collect();
        if index == 0 {
            let bbox = [50.0, 10.0, 10.0, 10.0];
            expected.push(Target { class: 0, bbox });
        }
        assert_eq!(boxes.targets, expected);
    }
    let few = carried(&format!(
        "location={} root={root} shuffle=none classes=dog fraction=0.5",
        location(&json)
    ));
    let counts: Vec<_> = few
        .iter()
        .map(|(_, boxes)| boxes.as_ref().unwrap().targets.len())
        .collect();
    assert_eq!(counts, [0, 0, 1]);
    let plain = carried(&format!("location={root}"));
    assert!(plain.iter().all(|(_, boxes)| boxes.is_none()));
}

#[test]
fn the_start_says_what_there_is_and_what_is_wrong() {
    let folder = scratch();
    let json = coco(folder.path());
    std::fs::remove_file(folder.path().join("root").join(photos()[1].file_name().unwrap())).unwrap();
    let root = folder.path().join("root");
    let source = format!("epochsrc location={} root={}", location(&json), location(&root));
    let pipeline = Pipeline::playing(&format!("{source} on-error=skip ! fakesink"));
    let message = pipeline.wait_element("epochfeed-dataset");
    let count = |field: &str| message.get::<u64>(field).unwrap();
    assert_eq!(count("samples"), SAMPLES as u64);
    assert_eq!(count("boxes"), 16);
    assert_eq!((count("missing-files"), count("out-of-image-boxes")), (1, 1));
    assert_eq!(
        count("duplicate-ids") + count("malformed-entries") + count("empty-boxes"),
        0
    );
    let classes = message.get::<gst::Array>("classes").unwrap();
    let classes: Vec<_> = classes.iter().map(|name| name.get::<String>().unwrap()).collect();
    assert_eq!(classes, ["cat", "dog"]);
    let table = message.get::<String>("checks").unwrap();
    assert!(
        table.contains("out-of-image-boxes: annotation 99 of image 100"),
        "{table}"
    );

    assert_fails(
        &format!("{source} strict=true ! fakesink"),
        &["strict=true", "set.json", "missing-files", "annotation 99"],
    );
    assert_fails(
        &format!("{source} fraction=0 ! fakesink"),
        &["fraction", "above 0"],
    );
    assert_fails(
        &format!("{source} classes=bird ! fakesink"),
        &["bird", "0 cat, 1 dog"],
    );
    assert_fails(
        &format!("{source} format=imagefolder ! fakesink"),
        &["set.json is a file"],
    );
}

/// Epoch, indices and images of each batch of one epoch behind `state`; the state behind the second batch of it.
fn run(json: &Path, source: &str, state: Option<&str>, sink: &str) -> Report {
    let out = scratch();
    let report = out.path().join("report.jsonl");
    let pipeline = Pipeline::new(&format!(
        "epochsrc name=source location={} root={} seed=7 {source} ! epochdecode \
         ! video/x-raw,width=16,height=16 ! nhwcpack batch-size=2 ! epochsink silent=true report={} {sink}",
        location(json),
        location(&json.parent().unwrap().join("root")),
        report.display()
    ));
    pipeline.element("source").set_property("state", state);
    pipeline.set(gst::State::Playing);
    pipeline.wait_eos();
    pipeline.reach(gst::State::Null);
    Report::read(&report)
}

#[test]
fn a_state_of_changed_boxes_is_refused_or_begins_its_epoch_again() {
    for source in ["", "shuffle=torch"] {
        let folder = scratch();
        let json = coco(folder.path());
        let begun = run(&json, &format!("{source} epochs=2"), None, "max-steps=4");
        let inside = begun.batches.last().unwrap().state.to_string();
        assert_eq!(begun.batches.last().unwrap().epoch, 1);

        // Nothing has changed: the state goes on where it is.
        let restart = format!("{source} on-change=restart");
        let rest = run(&json, &restart, Some(&inside), "");
        assert_eq!(rest.batches.len(), 2);

        write_boxes(folder.path(), 0.5);
        let line = format!(
            "epochsrc name=source location={} root={} seed=7 {source} ! fakesink",
            location(&json),
            location(&folder.path().join("root"))
        );
        let pipeline = Pipeline::new(&line);
        pipeline.element("source").set_property("state", &inside);
        assert!(pipeline.0.set_state(gst::State::Paused).is_err());
        let said = pipeline.wait_error();
        assert!(
            said.contains("fingerprint") && said.contains("on-change=restart"),
            "{said}"
        );

        let again = run(&json, &restart, Some(&inside), "");
        let epoch = &again.epochs[0];
        assert_eq!(
            (epoch.epoch, epoch.listed, epoch.delivered),
            (1, 6, 6),
            "{source}"
        );
        assert_eq!(again.batches.len(), 3);
        assert_eq!(
            again.batches[0].indices, begun.batches[3].indices,
            "the order of the epoch is the same"
        );
        again.assert_adds_up();

        // Also of another size, whose state goes on like any other.
        let fewer = run(&json, &format!("{restart} fraction=0.7"), Some(&inside), "");
        assert_eq!(
            (fewer.epochs[0].epoch, fewer.epochs[0].delivered),
            (1, 4),
            "{source}"
        );
        let state = fewer.batches[0].state.to_string();
        let rest = run(&json, &format!("{source} fraction=0.7"), Some(&state), "");
        assert_eq!(rest.batches[0].indices, fewer.batches[1].indices);
    }
}

#[test]
fn a_restart_is_warned_about() {
    let folder = scratch();
    let json = coco(folder.path());
    let inside = run(&json, "", None, "max-steps=1").batches[0].state.to_string();
    write_boxes(folder.path(), 0.5);
    let pipeline = Pipeline::new(&format!(
        "epochsrc name=source location={} root={} seed=7 on-change=restart ! fakesink",
        location(&json),
        location(&folder.path().join("root"))
    ));
    pipeline.element("source").set_property("state", &inside);
    pipeline.set(gst::State::Playing);
    let message = pipeline.wait(|message| message.type_() == gst::MessageType::Warning);
    let gst::MessageView::Warning(warning) = message.view() else {
        unreachable!("it is one");
    };
    let text = warning.error().to_string();
    assert!(
        text.contains("epoch 0 begins again") && text.contains("set.json"),
        "{text}"
    );
}
