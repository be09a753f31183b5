//! Boxes stay with their image whatever happens to samples: left out, replaced, repeated as padding, sent again after a resume.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use common::covered::{assert_boxes_cover_marks, feed, pass};
use common::frames::pull;
use common::marks::{Marked, MarkedSet};
use common::wait::{LIMIT, within};
use common::{Pipeline, Report, location, scratch};
use epochfeed::Batch;
use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::elements::faults::OnError;
use epochfeed::elements::meta::BatchMeta;
use epochfeed::elements::nhwcpack::LastBatch;
use epochfeed::feed::{Builder, Hold};
use epochfeed::sampler::Shuffle;
use gst::prelude::*;

const SIZE: (u32, u32) = (320, 320);

/// Breaks every seventh file, each in another way than the one before; returns their ids.
fn break_some(set: &MarkedSet) -> BTreeSet<i64> {
    let broken: Vec<_> = set.images.iter().step_by(7).collect();
    for (number, image) in broken.iter().enumerate() {
        let file = set.path(image);
        let bytes = std::fs::read(&file).unwrap();
        match number % 4 {
            0 => std::fs::remove_file(&file).unwrap(),
            1 => std::fs::write(&file, b"").unwrap(),
            2 => std::fs::write(&file, b"no image").unwrap(),
            // Found by the decoder only.
            _ => std::fs::write(&file, &bytes[..bytes.len() * 2 / 3]).unwrap(),
        }
    }
    broken.iter().map(|image| image.id).collect()
}

/// A training feed in which much goes wrong.
fn training(json: &Path) -> Builder {
    feed(json, SIZE)
        .shuffle(Shuffle::Keyed)
        .seed(3)
        .epochs(2)
        .batch_size(11)
        .last_batch(LastBatch::Pad)
}

#[test]
fn labels_never_shift_when_samples_fail() {
    within(4 * LIMIT, || {
        let folder = scratch();
        let set = MarkedSet::make(folder.path(), 100);
        let json = set.coco();
        let broken = break_some(&set);
        let good: BTreeSet<_> = set.images.iter().map(|image| image.id).collect();
        let good: BTreeSet<_> = good.difference(&broken).copied().collect();
        for (on_error, prefetch, hold) in [
            (OnError::Skip, Prefetch::Off, Hold::Batches),
            (OnError::Replace, Prefetch::Off, Hold::Batches),
            (OnError::Skip, Prefetch::Complete, Hold::Frames),
            (OnError::Replace, Prefetch::Complete, Hold::Batches),
        ] {
            let feed = training(&json)
                .on_error(on_error)
                .prefetch(prefetch)
                .hold(hold)
                .build()
                .unwrap();
            for epoch in feed.epochs() {
                let batches: Vec<Batch> = epoch.unwrap().map(Result::unwrap).collect();
                assert_eq!(
                    assert_boxes_cover_marks(&set, &batches, SIZE),
                    good,
                    "{on_error:?}"
                );
                assert!(batches.iter().all(|batch| batch.samples().len() == 11));
                let replaced = batches.iter().flat_map(Batch::samples);
                let replaced = replaced.filter(|sample| sample.replaced_from.is_some()).count();
                let wanted = if on_error == OnError::Replace {
                    broken.len()
                } else {
                    0
                };
                assert_eq!(replaced, wanted);
            }
        }
    });
}

#[test]
fn a_resumed_run_has_the_targets_that_it_would_have_had() {
    within(2 * LIMIT, || {
        let folder = scratch();
        let set = MarkedSet::make(folder.path(), 60);
        let json = set.coco();
        break_some(&set);
        let whole = |builder: Builder| -> Vec<Batch> {
            let feed = builder.on_error(OnError::Replace).build().unwrap();
            let epochs = feed.epochs().flat_map(|epoch| epoch.unwrap().collect::<Vec<_>>());
            epochs.map(Result::unwrap).collect()
        };
        let straight = whole(training(&json));
        for at in [0, 3, straight.len() - 2] {
            let resumed = whole(training(&json).resume(straight[at].state()));
            let wanted = &straight[at + 1..];
            // The run that resumes counts its epochs anew.
            assert!(resumed.len() >= wanted.len());
            for (resumed, wanted) in resumed.iter().zip(wanted) {
                assert_eq!(
                    resumed.targets().unwrap(),
                    wanted.targets().unwrap(),
                    "behind batch {at}"
                );
            }
            assert_boxes_cover_marks(&set, &resumed, SIZE);
        }
    });
}

#[test]
fn two_ranks_share_the_targets() {
    within(2 * LIMIT, || {
        let folder = scratch();
        let set = MarkedSet::make(folder.path(), 50);
        let json = set.coco();
        let broken = break_some(&set);
        let mut seen = BTreeSet::new();
        let counts = [0, 1].map(|rank| {
            let builder = training(&json)
                .rank(rank)
                .world_size(2)
                .epochs(1)
                .on_error(OnError::Skip);
            let batches = pass(&builder.build().unwrap());
            seen.extend(assert_boxes_cover_marks(&set, &batches, SIZE));
            batches.len()
        });
        assert_eq!(counts[0], counts[1]);
        assert_eq!(seen.len(), set.images.len() - broken.len());
    });
}

/// Where boxes are told of each sample of `batch`: its place in the dataset, and its rows without the number in the batch.
fn rows_of(batch: &gst::Sample) -> Vec<(u64, Vec<[f32; 5]>)> {
    let meta = BatchMeta::get(batch.buffer().unwrap()).unwrap();
    let targets = meta.targets.unwrap();
    assert_eq!(targets.image_id.len(), meta.dataset_index.len());
    let places = meta.dataset_index.iter().enumerate();
    places
        .map(|(place, index)| {
            let rows = targets.rows.iter().filter(|row| row[0] == place as f32);
            (
                *index,
                rows.map(|row| [row[1], row[2], row[3], row[4], row[5]]).collect(),
            )
        })
        .collect()
}

/// A seek in the middle of a batch, behind skipped samples: what was gathered is thrown away with its boxes.
#[test]
fn boxes_stay_with_their_image_behind_a_flush() {
    let folder = scratch();
    let set = MarkedSet::make(folder.path(), 40);
    let json = set.coco();
    let broken = break_some(&set).len();
    let pipeline = |prefetch: &str| {
        Pipeline::new(&format!(
            "epochsrc location={} shuffle=keyed seed=5 ! epochdecode on-error=skip ! video/x-raw,width=64,height=64 \
             ! epochbuffer prefetch={prefetch} ! nhwcpack batch-size=6 last-batch=pad \
             ! appsink name=sink sync=false max-buffers=1",
            location(&json)
        ))
    };
    let straight = pipeline("off");
    straight.set(gst::State::Playing);
    let known: BTreeMap<_, _> = std::iter::from_fn(|| pull(&straight, "sink"))
        .flat_map(|batch| rows_of(&batch))
        .collect();
    assert_eq!(known.len(), 40 - broken);
    for (prefetch, start) in [("off", 0), ("off", 9), ("complete", 0), ("complete", 13)] {
        let pipeline = pipeline(prefetch);
        pipeline.set(gst::State::Playing);
        for _ in 0..2 {
            pull(&pipeline, "sink").unwrap();
        }
        let seek = gst::event::Seek::builder(
            1.0,
            gst::SeekFlags::FLUSH,
            gst::SeekType::Set,
            gst::format::Default::from_u64(start),
            gst::SeekType::None,
            gst::format::Default::NONE,
        );
        assert!(pipeline.0.send_event(seek.build()));
        let mut seen = BTreeSet::new();
        while let Some(batch) = pull(&pipeline, "sink") {
            for (index, rows) in rows_of(&batch) {
                assert_eq!(&rows, &known[&index], "{prefetch} from {start}: {index}");
                seen.insert(index);
            }
        }
        let least = 40 - broken - start as usize;
        assert!(
            (least..=40 - broken).contains(&seen.len()),
            "{prefetch} from {start}: {seen:?}"
        );
    }
}

#[test]
fn the_report_has_what_the_feed_has() {
    let folder = scratch();
    let set = MarkedSet::make(folder.path(), 30);
    let json = set.coco();
    let report = common::Feed {
        source: "shuffle=none",
        decode: "fit=stretch",
        pack: "batch-size=7",
        ..common::Feed::new(&json)
    }
    .report();
    let side = common::feed::SIDE as u32;
    let batches = within(LIMIT, move || {
        let builder = feed(&json, (side, side)).fit(epochfeed::decode::Fit::Stretch);
        pass(&builder.batch_size(7).build().unwrap())
    });
    assert_eq!(report.batches.len(), batches.len());
    for (line, batch) in report.batches.iter().zip(&batches) {
        assert_eq!(line.targets.as_deref().unwrap(), batch.targets().unwrap());
    }
    let rows = batches
        .iter()
        .map(|batch| batch.targets().unwrap().len())
        .sum::<usize>();
    assert_eq!(
        rows,
        set.images.iter().map(|image| image.marks.len()).sum::<usize>()
    );
}

/// The report's lines about batches of a pipeline, as they are written.
fn written(line: &str) -> Vec<serde_json::Value> {
    let folder = scratch();
    let file = folder.path().join("report.jsonl");
    let pipeline = Pipeline::playing(&format!(
        "{line} ! epochsink silent=true report={}",
        file.display()
    ));
    pipeline.wait_eos();
    Report::read(&file);
    let lines = std::fs::read_to_string(&file).unwrap();
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.filter(|line| line["type"] == "batch").collect()
}

#[test]
fn frames_without_a_packer_are_reported_too_and_other_datasets_have_no_targets() {
    let folder = scratch();
    let set = MarkedSet::make(folder.path(), 6);
    let json = set.coco();
    let line = |location: &str, pack: &str| {
        format!(
            "epochsrc location={location} shuffle=none ! epochdecode ! video/x-raw,format=RGB,width=64,height=64 {pack}"
        )
    };
    let frames = written(&line(&location(&json), ""));
    let batches = written(&line(&location(&json), "! nhwcpack"));
    assert_eq!(frames.len(), 6);
    for ((frame, batch), Marked { marks, .. }) in frames.iter().zip(&batches).zip(&set.images) {
        assert_eq!(frame["targets"], batch["targets"]);
        let rows = frame["targets"].as_array().unwrap();
        assert_eq!(rows.len(), marks.len());
        for (row, (class, _)) in rows.iter().zip(marks) {
            assert_eq!(
                (row[0].as_u64(), row[1].as_u64()),
                (Some(0), Some(u64::from(*class))),
                "{row}"
            );
        }
    }
    let plain = written(&line(&location(&folder.path().join("images")), "! nhwcpack"));
    assert!(plain.len() == 6 && plain.iter().all(|line| line.get("targets").is_none()));
}
