//! Boxes are where the pixels are: sets of images with marks in colours of their own, whose boxes are held against what came out.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::marks::{self, Marked, MarkedSet, Sides};
use common::scratch;
use common::wait::{LIMIT, within};
use epochfeed::decode::{Fit, OrientationMode};
use epochfeed::tensor::Dtype;
use epochfeed::{Batch, Feed};

/// Neither a level of the marks nor the usual grey.
const PADDING: [u8; 3] = [9, 27, 230];

fn feed(location: &Path, (width, height): (u32, u32)) -> epochfeed::feed::Builder {
    Feed::validation(location)
        .size(width, height)
        .pad_color(PADDING)
        .dtype(Dtype::Uint8)
        .batch_size(16)
}

/// The batches of one pass.
#[track_caller]
fn pass(feed: &Feed) -> Vec<Batch> {
    let epoch = feed.epochs().next().unwrap().unwrap();
    epoch.map(Result::unwrap).collect()
}

/// Where the mark ends on the way from the first of `pixels`, which is all mark, in pixels from there: where half of it is left.
fn end(pixels: impl Iterator<Item = [u8; 3]>, color: [u8; 3]) -> f64 {
    let mut before = 1.0;
    let mut length = 0.0;
    for pixel in pixels.take_while(|pixel| *pixel != PADDING) {
        let share = marks::share(pixel, color);
        if share < 0.5 {
            // Between the middles of this pixel and the one before.
            return length - 0.5 + (before - 0.5) / (before - share);
        }
        (before, length) = (share, length + 1.0);
    }
    length
}

/// Left, top, right and bottom of the mark around `start`, found in the pixels of `frame`.
fn mark_around(frame: &[u8], (width, height): (u32, u32), start: (u32, u32), color: [u8; 3]) -> [f64; 4] {
    let pixel = |x: u32, y: u32| {
        let at = ((y * width + x) * 3) as usize;
        [frame[at], frame[at + 1], frame[at + 2]]
    };
    let (x, y) = start;
    let middle = pixel(x, y);
    assert!(
        middle != PADDING && marks::share(middle, color) >= 0.5,
        "no mark of {color:?} at {x},{y}"
    );
    let (from_x, from_y) = (f64::from(x), f64::from(y));
    [
        from_x + 1.0 - end((0..=x).rev().map(|x| pixel(x, y)), color),
        from_y + 1.0 - end((0..=y).rev().map(|y| pixel(x, y)), color),
        from_x + end((x..width).map(|x| pixel(x, y)), color),
        from_y + end((y..height).map(|y| pixel(x, y)), color),
    ]
}

/// Every box of `batches` is where the mark is that it is of, to half a pixel, and every mark has its box and its class. Returns
/// the images that were seen.
#[track_caller]
fn assert_boxes_cover_marks(set: &MarkedSet, batches: &[Batch], size: (u32, u32)) -> BTreeSet<i64> {
    let (width, height) = (f64::from(size.0), f64::from(size.1));
    let mut seen = BTreeSet::new();
    for batch in batches {
        let rows = batch.targets().expect("the dataset has targets");
        let frames = batch
            .as_u8()
            .unwrap()
            .chunks_exact((size.0 * size.1 * 3) as usize);
        for (place, (sample, frame)) in batch.samples().iter().zip(frames).enumerate() {
            let id = sample.annotated.expect("every sample is annotated").image_id;
            let image = set.get(id);
            assert!(sample.uri.ends_with(&image.file), "{} is {image:?}", sample.uri);
            let own: Vec<_> = rows.iter().filter(|row| row[0] == place as f32).collect();
            let classes: Vec<_> = own.iter().map(|row| row[1] as u32).collect();
            let wanted: Vec<_> = image.marks.iter().map(|(class, _)| *class).collect();
            assert_eq!(classes, wanted, "{image:?}");
            for row in own {
                let [x, y, w, h] = [row[2], row[3], row[4], row[5]].map(f64::from);
                let sides = [
                    (x - w / 2.0) * width,
                    (y - h / 2.0) * height,
                    (x + w / 2.0) * width,
                    (y + h / 2.0) * height,
                ];
                let start = ((x * width) as u32, (y * height) as u32);
                let found = mark_around(frame, size, start, marks::color(id));
                for (side, found) in sides.iter().zip(found) {
                    // Half a pixel, and what the sums of float32 above may be off.
                    let off = (side - found).abs();
                    assert!(
                        off <= 0.5 + 1e-4,
                        "{sides:?}, but the mark is {found:?}: {image:?}"
                    );
                }
            }
            seen.insert(id);
        }
    }
    seen
}

#[test]
fn every_box_covers_its_mark() {
    within(4 * LIMIT, || {
        let folder = scratch();
        let set = MarkedSet::make(folder.path(), marks::MOST);
        let orientations: BTreeSet<_> = set.images.iter().map(|image| image.orientation).collect();
        assert_eq!(orientations.len(), 8);
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
