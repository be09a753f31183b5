//! What travels with the buffers: identity and gains of a frame, identity and state of a batch.
//!
//! These are `GstCustomMeta`s with kebab-case fields, so that any language can read them
//! (`gst_buffer_get_custom_meta`). Identity travels with the buffer and is never derived by counting. They carry no
//! tags: converters and scalers keep them.

mod batch;
mod gains;
mod sample;

pub use batch::BatchMeta;
pub use gains::GainsMeta;
pub use sample::SampleMeta;

/// Makes the metas known to GStreamer; does nothing the second time.
pub(super) fn register() {
    for name in [SampleMeta::NAME, GainsMeta::NAME, BatchMeta::NAME] {
        if !gst::meta::CustomMeta::is_registered(name) {
            gst::meta::CustomMeta::register_simple(name);
        }
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
    use super::super::faults::{Class, Fault};
    use super::*;

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
            state: r#"{"version":1}"#.into(),
        };
        batch.set(buffer).unwrap();
        assert_eq!(BatchMeta::get(buffer), Some(batch));
    }
}
