//! Annotations that say another size than the image has: named, and with `orientation=match` a fault.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::PathBuf;

use common::covered::{assert_boxes_cover_marks, feed, pass};
use common::marks::{Marked, MarkedSet, Said};
use common::pipeline::error_of;
use common::wait::{LIMIT, within};
use common::{Pipeline, location, scratch};
use epochfeed::decode::OrientationMode;
use epochfeed::elements::faults::OnError;
use gst::prelude::*;

const IMAGES: usize = 24;

/// Annotations of which every fifth is of an image twice as large as the file.
fn resized(set: &MarkedSet, of: impl Fn(&Marked) -> Said) -> (PathBuf, Vec<Marked>) {
    let odd: Vec<_> = set.images.iter().skip(2).step_by(5).cloned().collect();
    let is_odd = |image: &Marked| odd.iter().any(|odd| odd.id == image.id);
    let json = set.coco_of("resized.json", |image| {
        let by = if is_odd(image) { 2 } else { 1 };
        let ((width, height), marks) = of(image);
        let marks = marks
            .into_iter()
            .map(|(class, sides)| (class, sides.map(|side| side * by)));
        ((width * by, height * by), marks.collect())
    });
    (json, odd)
}

#[test]
fn an_image_that_never_has_the_annotated_size_is_a_fault_of_its_own() {
    let folder = scratch();
    let set = MarkedSet::make(folder.path(), IMAGES);
    let (json, odd) = resized(&set, Marked::upright);
    let line = |decode: &str| {
        format!(
            "epochsrc location={} shuffle=none ! epochdecode name=decode orientation=match {decode} ! fakesink sync=false",
            location(&json)
        )
    };
    let (width, height) = odd[0].size;
    let error = error_of(&line(""));
    for word in [
        &*odd[0].file,
        &format!("the annotation says {}x{}", width * 2, height * 2),
        &format!("{width}x{height}"),
        &format!("EXIF orientation {}", odd[0].orientation),
    ] {
        assert!(error.contains(word), "{word:?} is not in {error}");
    }

    let pipeline = Pipeline::playing(&line("on-error=skip"));
    for image in &odd {
        let fault = pipeline.wait_element("epochfeed-fault");
        assert!(
            fault.get::<&str>("uri").unwrap().ends_with(&image.file),
            "{fault}"
        );
        assert!(
            fault
                .get::<&str>("reason")
                .unwrap()
                .contains("the annotation says"),
            "{fault}"
        );
    }
    pipeline.wait_eos();
}

#[test]
fn the_others_are_found_and_their_labels_stay_with_them() {
    within(LIMIT, || {
        let folder = scratch();
        let set = MarkedSet::make(folder.path(), IMAGES);
        let (json, odd) = resized(&set, Marked::upright);
        let feed = feed(&json, (320, 320));
        let feed = feed
            .orientation(OrientationMode::Match)
            .on_error(OnError::Skip)
            .build()
            .unwrap();
        let seen = assert_boxes_cover_marks(&set, &pass(&feed), (320, 320));
        assert_eq!(seen.len(), IMAGES - odd.len());
    });
}

/// Otherwise such an annotation is taken for that of the image before it was resized, and it is said.
#[test]
fn boxes_of_a_resized_image_are_scaled_and_announced() {
    let folder = scratch();
    let set = MarkedSet::make(folder.path(), IMAGES);
    let (json, odd) = resized(&set, Marked::upright);
    for orientation in ["apply", "ignore"] {
        let pipeline = Pipeline::new(&format!(
            "epochsrc location={} shuffle=none ! epochdecode name=decode orientation={orientation} ! fakesink sync=false",
            location(&json)
        ));
        pipeline.set(gst::State::Playing);
        for image in &odd {
            let message = pipeline.wait_element("epochfeed-annotation");
            assert!(
                message.get::<&str>("uri").unwrap().ends_with(&image.file),
                "{message}"
            );
            let says = format!("says {}x{}", image.size.0 * 2, image.size.1 * 2);
            assert!(
                message.get::<&str>("reason").unwrap().contains(&says),
                "{message}"
            );
        }
        pipeline.wait_eos();
        let stats: gst::Structure = pipeline.element("decode").property("stats");
        assert_eq!(stats.get::<u64>("size-mismatches").unwrap(), odd.len() as u64);
        assert_eq!(stats.get::<u64>("boxes-vanished").unwrap(), 0);
        let boxes: usize = set.images.iter().map(|image| image.marks.len()).sum();
        assert_eq!(stats.get::<u64>("boxes").unwrap(), boxes as u64);
    }
    within(LIMIT, move || {
        for (mode, of) in [
            (OrientationMode::Apply, Marked::upright as fn(&Marked) -> Said),
            (OrientationMode::Apply, |image| match image.is_told() {
                true => image.as_stored(),
                false => image.upright(),
            }),
            (OrientationMode::Ignore, Marked::as_stored),
        ] {
            let (json, _) = resized(&set, of);
            let feed = feed(&json, (320, 320)).orientation(mode).build().unwrap();
            let seen = assert_boxes_cover_marks(&set, &pass(&feed), (320, 320));
            assert_eq!(seen.len(), IMAGES);
        }
        drop(folder);
    });
}

/// A dataset that was resized as a whole: the first images are named, all are counted, and a second epoch names none again.
#[test]
fn many_of_another_size_are_counted_rather_than_named() {
    let folder = scratch();
    let set = MarkedSet::make(folder.path(), IMAGES);
    let json = set.coco_of("all.json", |image| {
        ((image.size.0 * 3, image.size.1 * 3), image.marks.clone())
    });
    let pipeline = Pipeline::playing(&format!(
        "epochsrc location={} epochs=2 ! epochdecode name=decode ! fakesink sync=false",
        location(&json)
    ));
    let mut reasons = Vec::new();
    pipeline.wait(|message| {
        let said = message
            .structure()
            .filter(|said| said.name() == "epochfeed-annotation");
        reasons.extend(said.map(|said| said.get::<String>("reason").unwrap()));
        message.type_() == gst::MessageType::Eos
    });
    assert_eq!(reasons.len(), 10, "{reasons:?}");
    let last: Vec<_> = reasons
        .iter()
        .map(|reason| reason.contains("only counted"))
        .collect();
    assert_eq!(last, [vec![false; 9], vec![true]].concat());
    let stats: gst::Structure = pipeline.element("decode").property("stats");
    assert_eq!(stats.get("size-mismatches"), Ok(2 * IMAGES as u64));
}

#[test]
fn strict_makes_another_size_an_error() {
    let folder = scratch();
    let set = MarkedSet::make(folder.path(), IMAGES);
    let (json, odd) = resized(&set, Marked::upright);
    let error = error_of(&format!(
        "epochsrc location={} strict=true ! epochdecode ! fakesink",
        location(&json)
    ));
    let (width, height) = (odd[0].size.0 * 2, odd[0].size.1 * 2);
    for word in [
        &*odd[0].file,
        &format!("annotated {width}x{height}"),
        &format!("{}  size-mismatches", odd.len()),
        "strict=true",
    ] {
        assert!(error.contains(word), "{word:?} is not in {error}");
    }
}
