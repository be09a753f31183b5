//! What the stream says of itself: queries, segments, time stamps, offsets, flags and the ends of epochs.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::sync::{Arc, Mutex};

use common::{Pipeline, location};
use epochfeed::elements::epoch_end::EpochEnd;
use gst::prelude::*;

/// What passed a pad, in order.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Segment {
        start: u64,
        base: u64,
        time: u64,
    },
    Buffer {
        pts: u64,
        duration: u64,
        offset: u64,
        discont: bool,
    },
    EpochDone {
        epoch: u64,
        listed: u64,
    },
    Eos,
    Other(gst::EventType),
}

/// Writes down what passes `pad`.
fn watch(pad: &gst::Pad) -> Arc<Mutex<Vec<Seen>>> {
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let writer = seen.clone();
    pad.add_probe(
        gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM,
        move |_, info| {
            let entry = match &info.data {
                Some(gst::PadProbeData::Buffer(buffer)) => Seen::Buffer {
                    pts: buffer.pts().unwrap().nseconds(),
                    duration: buffer.duration().unwrap().nseconds(),
                    offset: buffer.offset(),
                    discont: buffer.flags().contains(gst::BufferFlags::DISCONT),
                },
                Some(gst::PadProbeData::Event(event)) => match event.view() {
                    gst::EventView::Segment(segment) => {
                        let segment = segment
                            .segment()
                            .downcast_ref::<gst::ClockTime>()
                            .expect("a TIME segment");
                        assert_eq!((segment.rate(), segment.stop()), (1.0, None));
                        Seen::Segment {
                            start: segment.start().unwrap().nseconds(),
                            base: segment.base().unwrap().nseconds(),
                            time: segment.time().unwrap().nseconds(),
                        }
                    }
                    gst::EventView::SegmentDone(_) => {
                        let end = EpochEnd::get(event).expect("SEGMENT_DONE says which epoch");
                        Seen::EpochDone {
                            epoch: end.epoch,
                            listed: end.ledger.listed,
                        }
                    }
                    gst::EventView::Eos(_) => Seen::Eos,
                    _ => Seen::Other(event.type_()),
                },
                _ => return gst::PadProbeReturn::Ok,
            };
            writer.lock().unwrap().push(entry);
            gst::PadProbeReturn::Ok
        },
    );
    seen
}

/// A pipeline over `count` photographs, `epochs` times, in batches of `batch`.
fn pipeline(folder: &std::path::Path, epochs: u32, batch: usize) -> Pipeline {
    Pipeline::new(&format!(
        "epochsrc name=src location={} epochs={epochs} framerate=10/1 ! epochdecode name=decode \
         ! video/x-raw,width=16,height=16 ! hsvquantize ! nhwcpack name=pack batch-size={batch} \
         ! fakesink name=sink",
        location(folder)
    ))
}

/// Checks what was seen of `epochs` epochs of `buffers` buffers each, which stand for `samples` samples.
fn assert_epochs(what: &str, seen: &[Seen], epochs: u64, samples: u64, batch: u64) {
    const SLOT: u64 = 100_000_000; // at 10 a second
    let mut seen = seen.iter().filter(|entry| {
        !matches!(
            entry,
            Seen::Other(gst::EventType::StreamStart | gst::EventType::Caps | gst::EventType::Tag)
        )
    });
    for epoch in 0..epochs {
        let start = epoch * samples * SLOT;
        // Running time continues: a buffer's PTS is its running time, in every epoch.
        assert_eq!(
            seen.next(),
            Some(&Seen::Segment {
                start,
                base: start,
                time: start
            }),
            "{what}, epoch {epoch}"
        );
        let mut first = 0;
        while first < samples {
            let in_batch = batch.min(samples - first);
            let wanted = Seen::Buffer {
                pts: start + first * SLOT,
                duration: in_batch * SLOT,
                offset: first,
                discont: first == 0,
            };
            assert_eq!(
                seen.next(),
                Some(&wanted),
                "{what}, epoch {epoch}, sample {first}"
            );
            first += in_batch;
        }
        assert_eq!(
            seen.next(),
            Some(&Seen::EpochDone {
                epoch,
                listed: samples
            }),
            "{what}"
        );
    }
    // At once, once, and nothing behind it.
    assert_eq!(seen.next(), Some(&Seen::Eos), "{what}");
    assert_eq!(seen.next(), None, "{what}");
}

#[test]
fn epochs_follow_each_other_in_the_stream() {
    let scratch = common::scratch();
    common::copy_photos(scratch.path(), 5);
    let pipeline = pipeline(scratch.path(), 3, 2);
    let pads = [("src", 1), ("decode", 1), ("pack", 2)];
    let seen = pads.map(|(name, batch)| {
        (
            name,
            batch,
            watch(&pipeline.element(name).static_pad("src").unwrap()),
        )
    });
    pipeline.set(gst::State::Playing);
    pipeline.wait_eos();
    for (name, batch, seen) in seen {
        assert_epochs(name, &seen.lock().unwrap(), 3, 5, batch);
    }
}

#[test]
fn time_goes_on_over_faults_at_either_end_of_an_epoch() {
    let scratch = common::scratch();
    common::copy_photos(scratch.path(), 3);
    // First, in the middle and last in the order of names.
    for name in ["000000000000.jpg", "000000000001x.jpg", "zzz.jpg"] {
        std::fs::write(scratch.path().join(name), b"").unwrap();
    }
    let pipeline = Pipeline::new(&format!(
        "epochsrc name=src location={} epochs=2 shuffle=none framerate=10/1 ! epochdecode name=decode on-error=replace \
         ! video/x-raw,width=16,height=16 ! fakesink",
        location(scratch.path())
    ));
    let seen =
        ["src", "decode"].map(|name| (name, watch(&pipeline.element(name).static_pad("src").unwrap())));
    pipeline.set(gst::State::Playing);
    pipeline.wait_eos();
    for (name, seen) in seen {
        assert_epochs(name, &seen.lock().unwrap(), 2, 6, 1);
    }
}

fn position_and_duration(element: &gst::Element) -> (Option<u64>, Option<u64>) {
    let of = |value: gst::GenericFormattedValue| match value {
        gst::GenericFormattedValue::Default(value) => value.map(|value| *value),
        other => panic!("{other:?}"),
    };
    (
        element
            .query_position_generic(gst::Format::Default)
            .map(of)
            .unwrap_or_default(),
        element
            .query_duration_generic(gst::Format::Default)
            .map(of)
            .unwrap_or_default(),
    )
}

#[test]
fn position_and_duration_are_in_samples_of_the_epoch() {
    let scratch = common::scratch();
    common::copy_photos(scratch.path(), 5);
    let pipeline = Pipeline::new(&format!(
        "epochsrc name=src location={} epochs=2 ! epochdecode name=decode ! video/x-raw,width=16,height=16 \
         ! nhwcpack ! fakesink name=sink",
        location(scratch.path())
    ));
    let source = pipeline.element("src");
    let positions: Arc<Mutex<Vec<_>>> = Arc::default();
    let writer = positions.clone();
    let weak = source.downgrade();
    source
        .static_pad("src")
        .unwrap()
        .add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            writer
                .lock()
                .unwrap()
                .push(position_and_duration(&weak.upgrade().unwrap()));
            gst::PadProbeReturn::Ok
        });
    pipeline.set(gst::State::Playing);
    pipeline.wait_eos();
    let wanted: Vec<_> = (0..2)
        .flat_map(|_| 1..=5)
        .map(|position| (Some(position), Some(5)))
        .collect();
    assert_eq!(*positions.lock().unwrap(), wanted);
    // From downstream, through our elements.
    assert_eq!(position_and_duration(&pipeline.element("decode")).1, Some(5));
    let pad = pipeline.element("sink").static_pad("sink").unwrap();
    let mut query = gst::query::Duration::new(gst::Format::Default);
    assert!(pad.peer_query(query.query_mut()));
    assert_eq!(
        query.result(),
        gst::GenericFormattedValue::Default(Some(gst::format::Default::from_u64(5)))
    );
}

#[test]
fn it_seeks_in_samples_and_says_so() {
    let scratch = common::scratch();
    common::copy_photos(scratch.path(), 2);
    let pipeline = pipeline(scratch.path(), 1, 1);
    pipeline.reach(gst::State::Paused);
    let pad = pipeline.element("sink").static_pad("sink").unwrap();
    let asked = |format| {
        let mut query = gst::query::Seeking::new(format);
        assert!(pad.peer_query(query.query_mut()), "{format:?}");
        query.result()
    };
    for format in [gst::Format::Time, gst::Format::Bytes] {
        assert!(!asked(format).0, "{format:?}");
    }
    let samples = |count| gst::GenericFormattedValue::Default(Some(gst::format::Default::from_u64(count)));
    assert_eq!(asked(gst::Format::Default), (true, samples(0), samples(2)));
    // A format that there is not is no reason to panic.
    let mut query = gst::query::Seeking::new(gst::Format::Undefined);
    let _ = pad.peer_query(query.query_mut());
    assert!(
        pipeline
            .0
            .seek_simple(gst::SeekFlags::FLUSH, gst::ClockTime::ZERO)
            .is_err()
    );
    let backwards = gst::event::Seek::builder(
        -1.0,
        gst::SeekFlags::FLUSH,
        gst::SeekType::Set,
        gst::format::Default::ZERO,
        gst::SeekType::None,
        gst::format::Default::NONE,
    );
    assert!(!pipeline.0.send_event(backwards.build()));
    // The refused seeks have done no harm.
    pipeline.set(gst::State::Playing);
    pipeline.wait_eos();
}

#[test]
fn the_caps_are_sent_once_for_images_of_all_sizes() {
    let scratch = common::scratch();
    for case in common::cases::all().iter().filter(|case| case.good).take(30) {
        std::fs::copy(
            common::cases::folder().join(&case.name),
            scratch.path().join(&case.name),
        )
        .unwrap();
    }
    let pipeline = pipeline(scratch.path(), 2, 3);
    let seen = ["decode", "pack"].map(|name| watch(&pipeline.element(name).static_pad("src").unwrap()));
    pipeline.set(gst::State::Playing);
    pipeline.wait_eos();
    for seen in seen {
        let caps = |entry: &&Seen| matches!(entry, Seen::Other(gst::EventType::Caps));
        assert_eq!(seen.lock().unwrap().iter().filter(caps).count(), 1);
    }
}
