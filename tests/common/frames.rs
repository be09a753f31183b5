//! Raw frames as they come out of a pipeline.

use gst::prelude::*;
use gst_video::prelude::*;

use super::pipeline::{LIMIT, Pipeline};

/// The bytes of a frame without what pads its rows.
fn bytes(sample: &gst::Sample) -> Vec<u8> {
    let info = gst_video::VideoInfo::from_caps(sample.caps().unwrap()).unwrap();
    let buffer = sample.buffer_owned().unwrap();
    let frame = gst_video::VideoFrame::from_buffer_readable(buffer, &info).unwrap();
    let mut bytes = Vec::new();
    for plane in 0..frame.n_planes() {
        let row = (frame.comp_pstride(plane) * frame.width() as i32) as usize;
        let stride = frame.plane_stride()[plane as usize] as usize;
        let data = frame.plane_data(plane).unwrap();
        for rows in data.chunks(stride).take(frame.height() as usize) {
            bytes.extend_from_slice(&rows[..row]);
        }
    }
    bytes
}

/// The next frame of the appsink `name`; `None` at the end of the stream.
#[track_caller]
pub fn pull(pipeline: &Pipeline, name: &str) -> Option<gst::Sample> {
    let sink: gst_app::AppSink = pipeline.element(name).downcast().unwrap();
    let sample = sink.try_pull_sample(LIMIT);
    assert!(
        sample.is_some() || sink.is_eos(),
        "no frame: {:?}",
        pipeline.errors()
    );
    sample
}

/// All frames that come to the appsink `name`.
#[track_caller]
pub fn frames_of(pipeline: &Pipeline, name: &str) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| pull(pipeline, name))
        .map(|sample| bytes(&sample))
        .collect()
}

/// All frames that come to the end of `line`.
#[track_caller]
pub fn frames(line: &str) -> Vec<Vec<u8>> {
    let pipeline = Pipeline::playing(&format!("{line} ! appsink name=sink sync=false"));
    let frames = frames_of(&pipeline, "sink");
    assert_eq!(pipeline.errors(), [""; 0], "{line}");
    assert!(!frames.is_empty(), "{line}");
    frames
}

pub fn video(count: u32, format: &str, width: u32, height: u32) -> String {
    format!(
        "videotestsrc num-buffers={count} pattern=smpte75 ! video/x-raw,format={format},width={width},height={height},framerate=25/1"
    )
}

#[track_caller]
pub fn assert_same(found: &[Vec<u8>], wanted: &[Vec<u8>], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}: frames");
    for (number, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let differ = found
            .iter()
            .zip(wanted)
            .filter(|(found, wanted)| found != wanted)
            .count();
        assert_eq!(
            (found.len(), differ),
            (wanted.len(), 0),
            "{what}: differing bytes of frame {number}"
        );
    }
}
