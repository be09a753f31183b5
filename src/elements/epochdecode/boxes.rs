//! From the boxes of an annotation to those of the frame.

use std::sync::Arc;

use gst::prelude::*;
use gst::subclass::prelude::*;

use super::super::faults::{self, Place};
use super::super::meta::{BoxesMeta, BoxesOf, Fitted};
use super::super::util::lock;
use super::imp::{CAT, EpochDecode};
use crate::dataset::{BoxFormat, Target};
use crate::decode::BoxMap;

/// The boxes of a frame.
#[derive(Debug, PartialEq)]
struct Mapped {
    boxes: BoxesMeta,
    /// How many boxes of the annotation are not among them: those that are not finite, or have no width or no height left in
    /// float32. Nothing is cut off here, and no box is too small: what is outside of the image is dealt with where the
    /// dataset is read.
    vanished: u64,
}

/// So many images of another size than annotated are named; a dataset that was resized as a whole has no others.
const NAMED: u64 = 10;

/// What is wrong with the annotation of the image at `place`, if it is of one of another size.
fn disagreement(place: &Place, map: &BoxMap) -> Option<String> {
    let (width, height) = place.annotated().filter(|_| !map.agrees())?;
    let (image_width, image_height) = map.placement().source;
    Some(format!(
        "the annotation says {width}x{height}, but the image is {image_width}x{image_height}"
    ))
}

impl EpochDecode {
    /// Puts the boxes of the frame in the place of those of the image.
    pub(super) fn fit_boxes(&self, place: &mut Place, map: &BoxMap) {
        let disagreement = disagreement(place, map);
        let Some(boxes) = place.boxes.take() else {
            return;
        };
        let Some(Mapped {
            boxes: fitted,
            vanished,
        }) = map_boxes(&boxes, map)
        else {
            // Those of a frame already: nobody can say what they are of before the image is decoded.
            return;
        };
        if vanished > 0 {
            let what = faults::describe(&place.sample);
            gst::warning!(
                CAT,
                imp = self,
                "{what}: {vanished} of its boxes have no area in the frame"
            );
        }
        if !place.sample.again {
            let mut stats = lock(&self.stats);
            stats.boxes += fitted.targets.len() as u64;
            stats.vanished += vanished;
            stats.mismatches += u64::from(disagreement.is_some());
            let so_far = stats.mismatches;
            drop(stats);
            if let Some(disagreement) = disagreement {
                self.tell_of(place, &disagreement, so_far);
            }
        }
        place.boxes = Some(Arc::new(fitted));
    }

    /// Announces the `number`-th image of another size than annotated.
    fn tell_of(&self, place: &Place, disagreement: &str, number: u64) {
        let last = match number {
            ..NAMED => "",
            NAMED => "; more of them are only counted, as size-mismatches in stats",
            _ => return,
        };
        let reason = format!("{disagreement}: its boxes are taken for those of a resized image{last}");
        gst::warning!(CAT, imp = self, "{}: {reason}", faults::describe(&place.sample));
        let element = self.obj();
        let message = faults::annotation_message(element.upcast_ref(), &place.sample, &reason);
        match self.registration() {
            Some(registration) => {
                let coordinator = registration.coordinator();
                coordinator.post(place.sample.epoch, element.upcast_ref(), message);
            }
            None => {
                let _ = element.post_message(message);
            }
        }
    }
}

/// Maps `boxes` as `map` says; `None` if they are not those of an image.
fn map_boxes(boxes: &BoxesMeta, map: &BoxMap) -> Option<Mapped> {
    let BoxesOf::Image(format) = boxes.of else {
        return None;
    };
    let placement = map.placement();
    let targets: Vec<Target> = boxes
        .targets
        .iter()
        .map(|target| Target {
            bbox: corners(format, target.bbox, map).map(|side| side as f32),
            ..*target
        })
        .filter(|target| {
            let [left, top, right, bottom] = target.bbox;
            target.bbox.iter().all(|side| side.is_finite()) && left < right && top < bottom
        })
        .collect();
    let (x, y) = placement.scale();
    Some(Mapped {
        vanished: (boxes.targets.len() - targets.len()) as u64,
        boxes: BoxesMeta {
            image_id: boxes.image_id,
            size: Some(placement.output),
            of: BoxesOf::Frame(Fitted {
                scale: [x, y],
                pad: [placement.offset.0, placement.offset.1],
            }),
            targets,
        },
    })
}

fn corners(format: BoxFormat, bbox: [f32; 4], map: &BoxMap) -> [f64; 4] {
    let [x, y, width, height] = bbox.map(f64::from);
    match format {
        BoxFormat::CornerPixels => map.pixels([x, y, x + width, y + height]),
        BoxFormat::CenterNormalized => map.fractions([
            x - width / 2.0,
            y - height / 2.0,
            x + width / 2.0,
            y + height / 2.0,
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Fit, Format, Header, OrientationMode, place};

    fn boxes(format: BoxFormat, bboxes: &[[f32; 4]]) -> BoxesMeta {
        BoxesMeta {
            image_id: 5,
            size: Some((500, 333)),
            of: BoxesOf::Image(format),
            targets: bboxes
                .iter()
                .zip(7..)
                .map(|(&bbox, class)| Target { class, bbox })
                .collect(),
        }
    }

    fn fitted(boxes: &BoxesMeta) -> Option<Mapped> {
        let header = Header {
            format: Format::Jpeg,
            width: 500,
            height: 333,
            orientation: 1,
        };
        let placement = place(Fit::Letterbox, (500, 333), (640, 640));
        map_boxes(
            boxes,
            &BoxMap::new(&header, OrientationMode::Apply, placement, boxes.size),
        )
    }

    #[test]
    fn both_ways_of_writing_a_box_are_the_same_box() {
        let coco = boxes(BoxFormat::CornerPixels, &[[10.5, 20.25, 100.0, 200.0]]);
        let yolo = boxes(
            BoxFormat::CenterNormalized,
            &[[
                (60.5 / 500.0) as f32,
                (120.25 / 333.0) as f32,
                (100.0 / 500.0) as f32,
                (200.0 / 333.0) as f32,
            ]],
        );
        let of = |boxes| fitted(boxes).map(|mapped| mapped.boxes.targets[0]);
        let (Some(coco), Some(yolo)) = (of(&coco), of(&yolo)) else {
            panic!("no boxes");
        };
        assert_eq!((coco.class, yolo.class), (7, 7));
        // 426 rows for 333, below 107 of padding.
        assert_eq!(coco.bbox[1], (20.25 * 426.0 / 333.0 + 107.0) as f32);
        for (coco, yolo) in coco.bbox.iter().zip(yolo.bbox) {
            assert!((coco - yolo).abs() <= 640.0 * 1e-6, "{coco} {yolo}");
        }
    }

    #[test]
    fn boxes_without_area_vanish_and_are_counted_and_others_keep_their_class() {
        let odd = boxes(
            BoxFormat::CornerPixels,
            &[
                [0.0, 0.0, 0.0, 10.0],
                [0.0, 0.0, 10.0, f32::NAN],
                [0.0, 0.0, -1.0, 10.0],
                [-10.0, 0.0, 5.0, 5.0],
                [1.0, 1.0, f32::INFINITY, 1.0],
                [490.0, 1.0, 20.0, 1e-3],
            ],
        );
        let mapped = fitted(&odd);
        let classes = |mapped: &Mapped| mapped.boxes.targets.iter().map(|t| t.class).collect::<Vec<_>>();
        assert_eq!(mapped.as_ref().map(|mapped| mapped.vanished), Some(4));
        assert_eq!(mapped.as_ref().map(classes), Some(vec![10, 12]));
        // Boxes of a frame are no annotation.
        assert_eq!(mapped.and_then(|mapped| fitted(&mapped.boxes)), None);
    }
}
