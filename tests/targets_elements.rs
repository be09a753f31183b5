//! Elements of others between epochdecode and nhwcpack: boxes go with frames whose geometry stays, and disappear, which is said,
//! where it changes. They never lie.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::frames::pull;
use common::pipeline::describe;
use common::{MarkedSet, Pipeline, location, scratch};
use epochfeed::dataset::{BoxFormat, Target};
use epochfeed::elements::meta::{BatchMeta, BatchTargets, BoxesMeta, BoxesOf};
use gst::prelude::*;

const IMAGES: usize = 12;

/// All batches' targets of the pipeline with `between` behind epochdecode, and what was warned of.
#[track_caller]
fn run(line: &str) -> (Vec<Option<BatchTargets>>, Vec<String>) {
    let pipeline = Pipeline::playing(&format!(
        "{line} ! nhwcpack batch-size=5 ! appsink name=sink sync=false"
    ));
    let batches = std::iter::from_fn(|| pull(&pipeline, "sink"));
    let targets = batches.map(|batch| BatchMeta::get(batch.buffer().unwrap()).unwrap().targets);
    let targets: Vec<_> = targets.collect();
    let bus = pipeline.0.bus().unwrap();
    let messages: Vec<_> = std::iter::from_fn(|| bus.pop()).collect();
    let of = |kind| messages.iter().filter(move |message| message.type_() == kind);
    assert_eq!(
        of(gst::MessageType::Error).map(describe).collect::<Vec<_>>(),
        [""; 0],
        "{line}"
    );
    (targets, of(gst::MessageType::Warning).map(text).collect())
}

fn text(message: &gst::Message) -> String {
    match message.view() {
        gst::MessageView::Warning(warning) => {
            format!("{}; {}", warning.error(), warning.debug().unwrap_or_default())
        }
        _ => describe(message),
    }
}

fn decoded(set: &MarkedSet, between: &str) -> String {
    format!(
        "epochsrc location={} shuffle=none ! epochdecode ! video/x-raw,format=RGB,width=96,height=64 {between}",
        location(&set.coco())
    )
}

#[test]
fn boxes_go_with_frames_that_keep_their_geometry() {
    let folder = scratch();
    let set = MarkedSet::make(folder.path(), IMAGES);
    let (plain, warnings) = run(&decoded(&set, ""));
    assert_eq!(warnings, [""; 0]);
    let rows: usize = plain
        .iter()
        .map(|targets| targets.as_ref().unwrap().rows.len())
        .sum();
    assert_eq!(
        rows,
        set.images.iter().map(|image| image.marks.len()).sum::<usize>()
    );
    let ids: Vec<_> = plain
        .iter()
        .flat_map(|targets| targets.clone().unwrap().image_id)
        .collect();
    assert_eq!(ids, set.images.iter().map(|image| image.id).collect::<Vec<_>>());
    for between in [
        "! queue ! identity",
        "! videobalance saturation=0.5",
        "! gamma gamma=2",
        // Two handles on one frame: the element that changes it makes a copy.
        "! tee name=tee tee. ! queue ! fakesink sync=false async=false tee. ! queue ! videobalance hue=0.5",
        "! videoconvert ! video/x-raw,format=BGR ! videoconvert ! video/x-raw,format=RGB",
        "! videoconvert ! video/x-raw,format=AYUV ! videobalance ! videoconvert ! video/x-raw,format=RGB",
        "! videoscale ! video/x-raw,width=96,height=64",
        "! videocrop",
        "! epochbuffer prefetch=complete",
        "! hsvquantize hue=0.5",
        "! hsvquantize hue=0.5 fuse=false",
    ] {
        let (targets, warnings) = run(&decoded(&set, between));
        assert_eq!(targets, plain, "{between}");
        assert_eq!(warnings, [""; 0], "{between}");
    }
}

#[test]
fn boxes_disappear_where_the_geometry_changes() {
    let folder = scratch();
    let set = MarkedSet::make(folder.path(), IMAGES);
    for between in [
        "videoflip video-direction=horiz",
        "videoflip video-direction=180",
        "videoflip video-direction=90r",
        "videoscale ! video/x-raw,width=64,height=64",
        // There and back again: the size is what it was, the pixels' places need not be.
        "videoscale ! video/x-raw,width=48,height=64 ! videoscale ! video/x-raw,width=96,height=64",
        "videoconvertscale ! video/x-raw,format=BGR,width=95",
        "videocrop left=8 right=8",
        "videobox left=8 right=-8",
        "aspectratiocrop aspect-ratio=1/1",
        "videoconvert ! rotate angle=0.5 ! videoconvert",
        // The size stays, but of wider pixels it takes fewer to show the same: borders are added.
        "identity ! video/x-raw,pixel-aspect-ratio=1/1 ! videoscale ! video/x-raw,width=96,height=64,pixel-aspect-ratio=2/1",
    ] {
        let (targets, warnings) = run(&decoded(&set, &format!("! {between}")));
        assert!(
            !targets.is_empty() && targets.iter().all(Option::is_none),
            "{between}: {targets:?}"
        );
        // Once, not for each batch.
        assert_eq!(warnings.len(), 1, "{between}: {warnings:?}");
        let culprit = between.split([' ', '!']).next().unwrap();
        for word in ["no targets", &set.images[0].file, "epochdecode", culprit] {
            assert!(warnings[0].contains(word), "{between}: {}", warnings[0]);
        }
    }
}

/// Every batch of which one frame has lost its boxes is counted, and an epochsink without a packer says it, too.
#[test]
fn lost_boxes_are_counted_and_told_without_a_packer_too() {
    let folder = scratch();
    let set = MarkedSet::make(folder.path(), IMAGES);
    let line = decoded(&set, "! videoflip video-direction=180");
    let pipeline = Pipeline::playing(&format!(
        "{line} ! nhwcpack name=pack batch-size=5 ! fakesink sync=false"
    ));
    pipeline.wait_eos();
    let stats: gst::Structure = pipeline.element("pack").property("stats");
    assert_eq!(
        (stats.get("batches"), stats.get("targets-lost")),
        (Ok(3_u64), Ok(3_u64))
    );

    let pipeline = Pipeline::playing(&format!("{line} ! epochsink silent=true"));
    let warning = pipeline.wait(|message| message.type_() == gst::MessageType::Warning);
    assert!(text(&warning).contains("videoflip"), "{}", text(&warning));
    let mut again = 0;
    pipeline.wait(|message| {
        again += u32::from(message.type_() == gst::MessageType::Warning);
        message.type_() == gst::MessageType::Eos
    });
    assert_eq!(again, 0);
}

#[test]
fn another_decoder_has_no_targets_and_it_is_said() {
    let folder = scratch();
    let mut set = MarkedSet::make(folder.path(), IMAGES);
    set.images.retain(|image| image.file.ends_with("jpg"));
    let line = format!(
        "epochsrc location={} ! jpegdec ! videoconvertscale ! video/x-raw,format=RGB,width=96,height=64",
        location(&set.coco())
    );
    let (targets, warnings) = run(&line);
    assert!(!targets.is_empty() && targets.iter().all(Option::is_none));
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

/// Calls `change` with every buffer that leaves the element `name`.
fn change(pipeline: &Pipeline, name: &str, change: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static) {
    let pad = pipeline.element(name).static_pad("src").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        if let Some(gst::PadProbeData::Buffer(buffer)) = &mut info.data {
            change(buffer.make_mut());
        }
        gst::PadProbeReturn::Ok
    });
}

/// Boxes that an application puts on images of its own, without epochsrc.
#[test]
fn an_application_can_bring_its_own_boxes() {
    let folder = scratch();
    let set = MarkedSet::make(folder.path(), 1);
    let pipeline = Pipeline::new(&format!(
        "filesrc name=source location={} blocksize=10000000 ! epochdecode fit=stretch \
         ! video/x-raw,format=RGB,width=100,height=50 ! nhwcpack ! appsink name=sink sync=false",
        set.path(&set.images[0]).display()
    ));
    change(&pipeline, "source", |buffer| {
        let boxes = BoxesMeta {
            image_id: -5,
            size: None,
            of: BoxesOf::Image(BoxFormat::CenterNormalized),
            targets: vec![Target {
                class: 4,
                bbox: [0.5, 0.25, 0.5, 0.125],
            }],
        };
        boxes.set(buffer).unwrap();
    });
    pipeline.set(gst::State::Playing);
    let batch = pull(&pipeline, "sink").unwrap();
    let targets = BatchMeta::get(batch.buffer().unwrap()).unwrap().targets.unwrap();
    assert_eq!(targets.rows, [[0.0, 4.0, 0.5, 0.25, 0.5, 0.125]]);
    let (width, height) = set.images[0].size;
    let scale = [100.0 / f64::from(width), 50.0 / f64::from(height)];
    assert_eq!((targets.image_id, targets.fitted[0].scale), (vec![-5], scale));
}

/// An element that keeps what it should not: the size for which boxes hold is compared as well.
#[test]
fn boxes_of_another_size_are_not_believed() {
    let folder = scratch();
    let set = MarkedSet::make(folder.path(), 3);
    let pipeline = Pipeline::new(&format!(
        "{} ! identity name=liar ! nhwcpack ! appsink name=sink sync=false",
        decoded(&set, "")
    ));
    change(&pipeline, "liar", |buffer| {
        let mut boxes = BoxesMeta::get(buffer).unwrap();
        boxes.size = Some((64, 96));
        boxes.set(buffer).unwrap();
    });
    pipeline.set(gst::State::Playing);
    while let Some(batch) = pull(&pipeline, "sink") {
        assert_eq!(BatchMeta::get(batch.buffer().unwrap()).unwrap().targets, None);
    }
    let warning = pipeline.wait(|message| message.type_() == gst::MessageType::Warning);
    assert!(text(&warning).contains("96x64"), "{}", text(&warning));
}
