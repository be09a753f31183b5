//! Boxes are where the pixels are: sets of images with marks in colours of their own, whose boxes are held against what came out.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::covered::{assert_boxes_cover_marks, feed, pass};
use common::marks::{self, Marked, MarkedSet};
use common::scratch;
use common::wait::{LIMIT, within};
use epochfeed::Batch;
use epochfeed::decode::{Fit, OrientationMode};

#[test]
fn every_box_covers_its_mark() {
    within(4 * LIMIT, || {
        let folder = scratch();
        let set = MarkedSet::make(folder.path(), marks::MOST);
        let all =
            |of: &dyn Fn(&Marked) -> String| -> BTreeSet<String> { set.images.iter().map(of).collect() };
        let sizes = all(&|image| format!("{:?}", image.size)).len();
        let turned = all(&|image| format!("{:?} {}", image.size, image.orientation)).len();
        let formats =
            all(&|image| format!("{} {}", image.orientation, &image.file[image.file.len() - 3..])).len();
        assert_eq!((turned, formats), (8 * sizes, 16));
        let coco = set.coco();
        for (fit, size) in [
            (Fit::Letterbox, (640, 640)),
            (Fit::Letterbox, (320, 320)),
            (Fit::Letterbox, (641, 479)),
            (Fit::Stretch, (200, 300)),
        ] {
            let batches = pass(&feed(&coco, size).fit(fit).build().unwrap());
            let seen = assert_boxes_cover_marks(&set, &batches, size);
            assert_eq!(seen.len(), marks::MOST, "{fit:?} {size:?}");
        }
    });
}

/// The frames are equal, and their boxes to 1e-6; returns how many.
#[track_caller]
fn assert_same_rows(coco: &[Batch], yolo: &[Batch]) -> usize {
    assert_eq!(coco.len(), yolo.len());
    let mut rows = 0;
    for (coco, yolo) in coco.iter().zip(yolo) {
        assert_eq!(coco.as_u8().unwrap(), yolo.as_u8().unwrap());
        let (coco, yolo) = (coco.targets().unwrap(), yolo.targets().unwrap());
        assert_eq!(coco.len(), yolo.len());
        for (coco, yolo) in coco.iter().zip(yolo) {
            let off = coco.iter().zip(yolo).map(|(a, b)| (a - b).abs());
            assert!(off.fold(0.0, f32::max) <= 1e-6, "{coco:?} {yolo:?}");
        }
        rows += coco.len();
    }
    rows
}

#[test]
fn coco_and_yolo_agree() {
    within(2 * LIMIT, || {
        let folder = scratch();
        let set = MarkedSet::make(folder.path(), 90);
        let (coco, yolo) = (set.coco(), set.yolo());
        let boxes: usize = set.images.iter().map(|image| image.marks.len()).sum();
        for size in [(640, 640), (641, 479)] {
            for fit in [Fit::Letterbox, Fit::Ultralytics] {
                let of = |location: &Path| pass(&feed(location, size).fit(fit).build().unwrap());
                assert_eq!(assert_same_rows(&of(&coco), &of(&yolo)), boxes);
            }
        }
    });
}

#[test]
fn boxes_of_the_stored_image_follow_it_too() {
    within(4 * LIMIT, || {
        let folder = scratch();
        let set = MarkedSet::make(folder.path(), 144);
        for mode in [
            OrientationMode::Apply,
            OrientationMode::Ignore,
            OrientationMode::Match,
        ] {
            for stored in [false, true] {
                // Where the size does not tell, whoever ignores orientations has annotated the images as stored.
                let is_stored = |image: &Marked| match image.is_told() {
                    true => stored,
                    false => mode == OrientationMode::Ignore,
                };
                let location = set.coco_of("some.json", |image| match is_stored(image) {
                    true => image.as_stored(),
                    false => image.upright(),
                });
                let batches = pass(&feed(&location, (320, 320)).orientation(mode).build().unwrap());
                assert_eq!(assert_boxes_cover_marks(&set, &batches, (320, 320)).len(), 144);
                // Which way it lies is told by its size, too.
                for sample in batches.iter().flat_map(Batch::samples) {
                    let image = set.get(sample.annotated.unwrap().image_id);
                    let lies = match mode {
                        OrientationMode::Apply => false,
                        OrientationMode::Ignore => true,
                        OrientationMode::Match => stored && image.is_told(),
                    };
                    let wanted = if lies { image.as_stored().0 } else { image.size };
                    assert_eq!(
                        (sample.source_width, sample.source_height),
                        wanted,
                        "{mode:?} {image:?}"
                    );
                }
            }
        }
    });
}

/// YOLO says no sizes: what was annotated as it is stored is so with `orientation=ignore`.
#[test]
fn yolo_of_the_stored_images_is_for_who_ignores_orientations() {
    within(2 * LIMIT, || {
        let folder = scratch();
        let set = MarkedSet::make(folder.path(), 72);
        let pass = |location: &Path| {
            let feed = feed(location, (320, 320)).orientation(OrientationMode::Ignore);
            pass(&feed.build().unwrap())
        };
        let coco = pass(&set.coco_of("stored.json", Marked::as_stored));
        assert_boxes_cover_marks(&set, &coco, (320, 320));
        assert_same_rows(&coco, &pass(&set.yolo_of(Marked::as_stored)));
    });
}
