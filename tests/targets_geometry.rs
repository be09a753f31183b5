//! Boxes are where the pixels are: sets of images with marks in colours of their own, whose boxes are held against what came out.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::covered::{assert_boxes_cover_marks, feed, pass};
use common::marks::{self, Marked, MarkedSet, Sides};
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

#[test]
fn coco_and_yolo_agree() {
    within(2 * LIMIT, || {
        let folder = scratch();
        let set = MarkedSet::make(folder.path(), 90);
        let (coco, yolo) = (set.coco(), set.yolo());
        for size in [(640, 640), (641, 479)] {
            for fit in [Fit::Letterbox, Fit::Ultralytics] {
                let of = |location: &Path| pass(&feed(location, size).fit(fit).build().unwrap());
                let mut rows = 0;
                for (coco, yolo) in of(&coco).iter().zip(of(&yolo)) {
                    assert_eq!(coco.as_u8().unwrap(), yolo.as_u8().unwrap());
                    let (coco, yolo) = (coco.targets().unwrap(), yolo.targets().unwrap());
                    assert_eq!(coco.len(), yolo.len());
                    for (coco, yolo) in coco.iter().zip(yolo) {
                        let off = coco.iter().zip(yolo).map(|(a, b)| (a - b).abs());
                        assert!(off.fold(0.0, f32::max) <= 1e-6, "{coco:?} {yolo:?}");
                        rows += 1;
                    }
                }
                assert!(rows > 90);
            }
        }
    });
}

/// What the annotation of an image as it is stored says: its size, and its boxes there.
fn as_stored(image: &Marked) -> ((u32, u32), Vec<(u32, Sides)>) {
    let (width, height) = image.size;
    let turn = |[left, top, right, bottom]: Sides| match image.orientation {
        5 => [top, left, bottom, right],
        6 => [top, width - right, bottom, width - left],
        7 => [height - bottom, width - right, height - top, width - left],
        8 => [height - bottom, left, height - top, right],
        other => panic!("{other} keeps the sides"),
    };
    let marks = image.marks.iter().map(|(class, sides)| (*class, turn(*sides)));
    ((height, width), marks.collect())
}

/// Whether the size of an image tells whether it is meant as stored.
fn is_told(image: &Marked) -> bool {
    image.orientation >= 5 && image.size.0 != image.size.1
}

#[test]
fn boxes_of_the_stored_image_follow_it_too() {
    within(4 * LIMIT, || {
        let folder = scratch();
        let set = MarkedSet::make(folder.path(), 144);
        let upright = set.coco();
        let stored = set.coco_of("stored.json", |image| match is_told(image) {
            true => as_stored(image),
            false => (image.size, image.marks.clone()),
        });
        for mode in [
            OrientationMode::Apply,
            OrientationMode::Ignore,
            OrientationMode::Match,
        ] {
            for location in [&upright, &stored] {
                let batches = pass(&feed(location, (320, 320)).orientation(mode).build().unwrap());
                assert_boxes_cover_marks(&set, &batches, (320, 320));
                // Which way it lies is told by its size, too.
                for sample in batches.iter().flat_map(Batch::samples) {
                    let image = set.get(sample.annotated.unwrap().image_id);
                    let (width, height) = image.size;
                    let lies = match mode {
                        OrientationMode::Apply => false,
                        OrientationMode::Ignore => image.orientation >= 5,
                        OrientationMode::Match => location == &stored && is_told(image),
                    };
                    let wanted = if lies { (height, width) } else { (width, height) };
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
