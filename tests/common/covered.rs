//! Batches held against the marks in their pixels.

use std::collections::BTreeSet;
use std::path::Path;

use epochfeed::feed::{Annotated, Sample};
use epochfeed::tensor::Dtype;
use epochfeed::{Batch, Feed};

use super::marks::{self, MarkedSet, Said, Sides};

/// Neither a level of the marks nor the usual grey.
pub const PADDING: [u8; 3] = [9, 27, 230];

pub fn feed(location: &Path, (width, height): (u32, u32)) -> epochfeed::feed::Builder {
    Feed::validation(location)
        .size(width, height)
        .pad_color(PADDING)
        .dtype(Dtype::Uint8)
        .batch_size(16)
}

/// The batches of one pass.
#[track_caller]
pub fn pass(feed: &Feed) -> Vec<Batch> {
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
    // Its share tells the mark from what is around it, not from those of other images, whose colours are a step away.
    assert!(
        middle != PADDING && marks::id_of(middle) == marks::id_of(color),
        "no mark of {color:?} at {x},{y}, but {middle:?}"
    );
    let (from_x, from_y) = (f64::from(x), f64::from(y));
    [
        from_x + 1.0 - end((0..=x).rev().map(|x| pixel(x, y)), color),
        from_y + 1.0 - end((0..=y).rev().map(|y| pixel(x, y)), color),
        from_x + end((x..width).map(|x| pixel(x, y)), color),
        from_y + end((y..height).map(|y| pixel(x, y)), color),
    ]
}

/// Whether size, scale and padding of `sample` lead from boxes of the frame to those that are `said` of the image.
fn lead_back(sample: &Sample, boxes: &[[f64; 4]], (size, marks): &Said) -> bool {
    let Annotated { scale, pad, .. } = sample.annotated.unwrap();
    let fits = |bbox: &[f64; 4], sides: &Sides| {
        let axes = [0, 1, 0, 1].into_iter().zip(bbox.iter().zip(sides));
        axes.map(|(axis, (side, mark))| side - (f64::from(*mark) * scale[axis] + f64::from(pad[axis])))
            .all(|off| off.abs() < 1e-3)
    };
    *size == (sample.source_width, sample.source_height)
        && boxes
            .iter()
            .zip(marks)
            .all(|(bbox, (_, sides))| fits(bbox, sides))
}

/// Every box of `batches` is where the mark is that it is of, to half a pixel, every mark has its box and its class, and each
/// sample says how its image came there. Returns the images that were seen.
#[track_caller]
pub fn assert_boxes_cover_marks(set: &MarkedSet, batches: &[Batch], size: (u32, u32)) -> BTreeSet<i64> {
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
            let sides_of = |row: &[f32; 6]| {
                let [x, y, w, h] = [row[2], row[3], row[4], row[5]].map(f64::from);
                [
                    (x - w / 2.0) * width,
                    (y - h / 2.0) * height,
                    (x + w / 2.0) * width,
                    (y + h / 2.0) * height,
                ]
            };
            let all: Vec<_> = own.iter().map(|row| sides_of(row)).collect();
            assert!(
                [image.upright(), image.as_stored()]
                    .iter()
                    .any(|said| lead_back(sample, &all, said)),
                "{sample:?} does not lead from {all:?} back to {image:?}"
            );
            for row in own {
                let ([x, y], sides) = ([row[2], row[3]].map(f64::from), sides_of(row));
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
