//! What travels with the buffers: identity, gains and boxes of a frame; identity, targets and state of a batch.
//!
//! These are `GstCustomMeta`s with kebab-case fields, so that any language can read them
//! (`gst_buffer_get_custom_meta`). Identity travels with the buffer and is never derived by counting. They carry no
//! tags, so that converters and scalers keep them; except for boxes, which whatever changes the geometry drops.

mod batch;
mod boxes;
mod gains;
mod sample;
mod targets;

pub use batch::BatchMeta;
pub use boxes::{BoxesMeta, BoxesOf, Fitted};
pub use gains::GainsMeta;
pub use sample::SampleMeta;
pub use targets::{BatchTargets, Row};

/// Makes the metas known to GStreamer; does nothing the second time.
pub(super) fn register() {
    for name in [SampleMeta::NAME, GainsMeta::NAME, BatchMeta::NAME] {
        if !gst::meta::CustomMeta::is_registered(name) {
            gst::meta::CustomMeta::register_simple(name);
        }
    }
    if !gst::meta::CustomMeta::is_registered(BoxesMeta::NAME) {
        boxes::register();
    }
}

/// The structure of the meta `name` on `buffer`, if it is there.
fn read<'a>(buffer: &'a gst::BufferRef, name: &str) -> Option<gst::meta::MetaRef<'a, gst::meta::CustomMeta>> {
    gst::meta::CustomMeta::from_buffer(buffer, name).ok()
}

/// The structure of the meta `name` on `buffer`, which is added if it is not there.
fn write<'a>(
    buffer: &'a mut gst::BufferRef,
    name: &str,
) -> Result<gst::meta::MetaRefMut<'a, gst::meta::CustomMeta, gst::meta::Standalone>, glib::BoolError> {
    if read(buffer, name).is_some() {
        gst::meta::CustomMeta::from_mut_buffer(buffer, name)
    } else {
        gst::meta::CustomMeta::add(buffer, name)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use glib::prelude::*;

    use super::super::faults::{Class, Fault};
    use super::*;
    use crate::dataset::{BoxFormat, Target};

    #[test]
    fn metas_survive_the_round_trip() {
        gst::init().unwrap();
        register();
        register();
        let mut buffer = gst::Buffer::new();
        let buffer = buffer.get_mut().unwrap();
        assert_eq!(SampleMeta::get(buffer), None);
        let sample = SampleMeta {
            epoch: 3,
            index: 4,
            dataset_index: u64::MAX,
            uri: "file:///a%FF%0A.jpg".into(),
            file_version: 9,
            seed: 1 << 63,
            recipe: 7,
            prepared: true,
            again: true,
            pad: true,
            replaced_from: 5,
            fault: Some(Fault::new(Class::Empty, "empty file")),
            skipped: 6,
            replaced: 2,
            source_width: 640,
            source_height: 427,
            annotated: true,
        };
        sample.set(buffer).unwrap();
        assert_eq!(SampleMeta::get(buffer), Some(sample.clone()));
        // Set again: replaced, not added.
        let sample = SampleMeta {
            fault: None,
            ..sample
        };
        sample.set(buffer).unwrap();
        assert_eq!(SampleMeta::get(buffer), Some(sample));

        let gains = GainsMeta {
            hue: 0.1,
            saturation: -0.2,
            value: 0.3,
            applied: true,
        };
        gains.set(buffer).unwrap();
        assert_eq!(GainsMeta::get(buffer), Some(gains));

        let batch = BatchMeta {
            epoch: 1,
            batch: 2,
            seed: 3,
            recipe: 4,
            prepared: false,
            index: vec![8, 9],
            dataset_index: vec![5, 1],
            uri: vec!["file:///x".into(), String::new()],
            gains: vec![[0.1, 0.2, 0.3], [-0.1, 0.0, 1.0]],
            pad: vec![false, true],
            replaced_from: vec![-1, 7],
            source_width: vec![640, 1],
            source_height: vec![427, u32::MAX],
            targets: Some(BatchTargets {
                rows: vec![[0.0, 7.0, 0.5, 0.25, 0.1, 0.2], [1.0, 0.0, 0.5, 0.5, 1.0, 1.0]],
                image_id: vec![-3, i64::MAX],
                fitted: vec![Fitted::default(); 2],
            }),
            state: r#"{"version":1}"#.into(),
        };
        batch.set(buffer).unwrap();
        assert_eq!(BatchMeta::get(buffer), Some(batch.clone()));
        let batch = BatchMeta {
            targets: None,
            ..batch
        };
        batch.set(buffer).unwrap();
        assert_eq!(BatchMeta::get(buffer), Some(batch));
    }
    #[test]
    fn boxes_survive_the_round_trip_and_copies() {
        gst::init().unwrap();
        register();
        let mut buffer = gst::Buffer::new();
        let mut boxes = BoxesMeta {
            image_id: -1,
            size: None,
            of: BoxesOf::Image(BoxFormat::CenterNormalized),
            targets: vec![
                Target {
                    class: u32::MAX,
                    bbox: [0.1, -2.0, f32::MAX, 0.0],
                },
                Target {
                    class: 0,
                    bbox: [0.25; 4],
                },
            ],
        };
        boxes.set(buffer.make_mut()).unwrap();
        assert_eq!(BoxesMeta::get(&buffer), Some(boxes.clone()));
        assert_eq!(boxes.fitted((0, 0)), None);
        let fitted = Fitted {
            scale: [0.5, 0.25],
            pad: [3, 0],
        };
        boxes.of = BoxesOf::Frame(fitted);
        boxes.size = Some((640, 480));
        boxes.set(buffer.make_mut()).unwrap();
        let copy = buffer.copy_deep().unwrap();
        assert_eq!(BoxesMeta::get(&copy), Some(boxes.clone()));
        assert_eq!(boxes.fitted((640, 480)), Some(fitted));
        assert_eq!(boxes.fitted((480, 640)), None);
        // Back to an image's: nothing of the frame's is left.
        boxes.of = BoxesOf::Image(BoxFormat::CornerPixels);
        boxes.targets.clear();
        boxes.set(buffer.make_mut()).unwrap();
        assert_eq!(BoxesMeta::get(&buffer), Some(boxes));
    }

    #[test]
    fn nonsense_in_the_place_of_boxes_is_none() {
        gst::init().unwrap();
        register();
        let mut buffer = gst::Buffer::new();
        let boxes = BoxesMeta {
            image_id: 0,
            size: Some((1, 2)),
            of: BoxesOf::Image(BoxFormat::CornerPixels),
            targets: Vec::new(),
        };
        boxes.set(buffer.make_mut()).unwrap();
        let change = |buffer: &mut gst::Buffer, name: &str, value: glib::SendValue| {
            let mut meta = write(buffer.make_mut(), BoxesMeta::NAME).unwrap();
            meta.mut_structure().set_value(name, value);
        };
        change(
            &mut buffer,
            "boxes",
            glib::Bytes::from_static(&[0; 21]).to_send_value(),
        );
        assert_eq!(BoxesMeta::get(&buffer), None);
        change(&mut buffer, "boxes", 7.to_send_value());
        assert_eq!(BoxesMeta::get(&buffer), None);
        change(
            &mut buffer,
            "boxes",
            glib::Bytes::from_static(&[]).to_send_value(),
        );
        assert_eq!(BoxesMeta::get(&buffer), Some(boxes));
        change(&mut buffer, "format", "furlongs".to_send_value());
        assert_eq!(BoxesMeta::get(&buffer), None);
    }
}
