use super::batch::array;
use super::boxes::{BoxesMeta, Fitted};

/// A box of a batch, in Ultralytics' order: which image of the batch, its class, and centre x, centre y, width and height as
/// fractions of the frame's sides.
pub type Row = [f32; 6];

/// The boxes of a batch's samples, and how each image came to lie in its frame.
///
/// In the structure of `epochfeed-batch`, `targets` is a `GBytes` of M×6 little-endian float32; `image-id`, `scale-x`,
/// `scale-y`, `pad-left` and `pad-top` are arrays with one entry a sample. None of them is there for samples without
/// annotations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchTargets {
    /// All boxes, sample after sample, each sample's in the annotation's order.
    pub rows: Vec<Row>,
    /// COCO's id of each image; where the format has none, its index in the dataset.
    pub image_id: Vec<i64>,
    /// How each image was fitted.
    pub fitted: Vec<Fitted>,
}

/// Bytes of a row.
const ROW: usize = 24;
const FIELDS: [&str; 6] = ["targets", "image-id", "scale-x", "scale-y", "pad-left", "pad-top"];

impl BatchTargets {
    /// The boxes of frames of `size`. `None` unless every frame has boxes, and for this size.
    pub fn of(boxes: impl IntoIterator<Item = Option<BoxesMeta>>, size: (u32, u32)) -> Option<Self> {
        let mut all = Self::default();
        for (place, boxes) in boxes.into_iter().enumerate() {
            let boxes = boxes?;
            all.fitted.push(boxes.fitted(size)?);
            all.image_id.push(boxes.image_id);
            let (width, height) = (f64::from(size.0), f64::from(size.1));
            all.rows.extend(boxes.targets.iter().map(|target| {
                let [left, top, right, bottom] = target.bbox.map(f64::from);
                [
                    place as f32,
                    target.class as f32,
                    ((left + right) / (2.0 * width)) as f32,
                    ((top + bottom) / (2.0 * height)) as f32,
                    ((right - left) / width) as f32,
                    ((bottom - top) / height) as f32,
                ]
            }));
        }
        Some(all)
    }

    /// Those in `fields`, if they are there and whole.
    pub(super) fn read(fields: &gst::StructureRef) -> Option<Self> {
        let bytes = fields.get::<glib::Bytes>("targets").ok()?;
        let (rows, rest) = bytes.as_chunks::<ROW>();
        if !rest.is_empty() {
            return None;
        }
        let number =
            |row: &[u8; ROW], at: usize| f32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]);
        let rows = rows
            .iter()
            .map(|row| [0, 4, 8, 12, 16, 20].map(|at| number(row, at)))
            .collect();
        let scale_x: Vec<f64> = array(fields, "scale-x")?;
        let scale_y: Vec<f64> = array(fields, "scale-y")?;
        let left: Vec<u32> = array(fields, "pad-left")?;
        let top: Vec<u32> = array(fields, "pad-top")?;
        let fitted = scale_x.into_iter().zip(scale_y).zip(left.into_iter().zip(top));
        Some(Self {
            rows,
            image_id: array(fields, "image-id")?,
            fitted: fitted
                .map(|((x, y), (left, top))| Fitted {
                    scale: [x, y],
                    pad: [left, top],
                })
                .collect(),
        })
    }

    /// Puts `targets` into `fields`, or takes out those that are there.
    pub(super) fn write(targets: Option<&Self>, fields: &mut gst::StructureRef) {
        let Some(targets) = targets else {
            fields.remove_fields(FIELDS);
            return;
        };
        let bytes: Vec<u8> = targets
            .rows
            .iter()
            .flatten()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        let each = |of: fn(&Fitted) -> f64| gst::Array::new(targets.fitted.iter().map(of));
        let count = |of: fn(&Fitted) -> u32| gst::Array::new(targets.fitted.iter().map(of));
        fields.set("targets", glib::Bytes::from_owned(bytes));
        fields.set("image-id", gst::Array::new(&targets.image_id));
        fields.set("scale-x", each(|fitted| fitted.scale[0]));
        fields.set("scale-y", each(|fitted| fitted.scale[1]));
        fields.set("pad-left", count(|fitted| fitted.pad[0]));
        fields.set("pad-top", count(|fitted| fitted.pad[1]));
    }
}

#[cfg(test)]
mod tests {
    use super::super::BoxesOf;
    use super::*;
    use crate::dataset::Target;

    fn boxes(size: (u32, u32), targets: &[(u32, [f32; 4])]) -> Option<BoxesMeta> {
        Some(BoxesMeta {
            image_id: 9,
            size: Some(size),
            of: BoxesOf::Frame(Fitted {
                scale: [2.0, 1.0],
                pad: [0, 5],
            }),
            targets: targets
                .iter()
                .map(|&(class, bbox)| Target { class, bbox })
                .collect(),
        })
    }

    #[test]
    fn rows_are_fractions_of_the_frame_and_name_their_sample() {
        let size = (200, 100);
        let batch = [
            boxes(
                size,
                &[(3, [0.0, 0.0, 200.0, 100.0]), (1, [50.0, 10.0, 100.0, 20.0])],
            ),
            boxes(size, &[]),
            boxes(size, &[(2, [199.0, 99.0, 200.0, 100.0])]),
        ];
        let targets = BatchTargets::of(batch, size).unwrap_or_default();
        let rows = [
            [0.0, 3.0, 0.5, 0.5, 1.0, 1.0],
            [0.0, 1.0, 0.375, 0.15, 0.25, 0.1],
            [2.0, 2.0, 0.9975, 0.995, 0.005, 0.01],
        ];
        assert_eq!(targets.rows, rows);
        assert_eq!((targets.image_id.len(), targets.fitted[1].pad), (3, [0, 5]));
    }

    #[test]
    fn boxes_that_are_missing_or_of_another_size_are_no_targets() {
        let size = (200, 100);
        assert_eq!(BatchTargets::of([boxes(size, &[]), None], size), None);
        assert_eq!(
            BatchTargets::of([boxes(size, &[]), boxes((100, 200), &[])], size),
            None
        );
    }
}
