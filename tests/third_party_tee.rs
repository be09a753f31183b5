//! A tee in front of nhwcpack: one branch trains, the other looks at the frames.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use common::{Seen, Watched, copy_photos, location, scratch};
use gst::prelude::*;

const PHOTOS: usize = 6;
const LIMIT: Duration = Duration::from_secs(20);
/// How long a pipeline that must not go on is watched.
const QUIET: Duration = Duration::from_millis(300);

/// A pipeline in which each batch is one frame in `uint8`, that is, the very bytes of the frame.
fn pipeline(images: &Path, prefetch: &str, preview: &str) -> Watched {
    Watched::new(&format!(
        "epochsrc name=source location={} auto-advance=false epochs=-1 seed=5 ! epochdecode \
         ! video/x-raw,format=RGB,width=32,height=32 ! hsvquantize name=jitter ! tee name=t \
         t. ! queue ! nhwcpack dtype=uint8 ! epochbuffer name=buffer prefetch={prefetch} ! fakesink name=sink \
         {preview}",
        location(images)
    ))
}

const PREVIEW: &str = "t. ! queue ! video/x-raw ! fakesink name=preview";

/// Epoch, index and checksum of what comes to the preview.
fn watch_preview(watched: &Watched) -> Receiver<Seen> {
    let (send, frames) = channel();
    let pad = watched.pipeline.element("preview").static_pad("sink").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        if let Some(gst::PadProbeData::Buffer(frame)) = &info.data {
            let meta = gst::meta::CustomMeta::from_buffer(frame, "epochfeed-sample").unwrap();
            let field = |name| meta.structure().get::<u64>(name).unwrap();
            let checksum = crc32fast::hash(&frame.map_readable().unwrap());
            let _ = send.send(Seen::Batch(
                field("epoch"),
                vec![field("dataset-index")],
                checksum,
            ));
        }
        gst::PadProbeReturn::Ok
    });
    frames
}

/// The epochs of a pipeline without a tee.
fn plain(images: &Path, epochs: usize) -> Vec<Vec<Seen>> {
    let watched = pipeline(images, "off", "");
    watched.start();
    (0..epochs)
        .map(|epoch| {
            assert!(epoch == 0 || watched.ask());
            watched.epoch()
        })
        .collect()
}

#[test]
fn the_other_branch_sees_what_is_trained_on() {
    let images = scratch();
    copy_photos(images.path(), PHOTOS);
    let wanted = plain(images.path(), 3);
    for prefetch in ["off", "complete"] {
        let watched = pipeline(images.path(), prefetch, PREVIEW);
        let preview = watch_preview(&watched);
        watched.start();
        for (epoch, wanted) in wanted.iter().enumerate() {
            if epoch > 0 {
                if prefetch == "complete" {
                    watched.until("level-buffers", PHOTOS as u64);
                }
                assert!(watched.seen.try_recv().is_err(), "the gate leaks");
                assert!(watched.ask());
            }
            assert_eq!(&watched.epoch(), wanted, "{prefetch}, epoch {epoch}");
            let frames: Vec<_> = wanted
                .iter()
                .map(|_| preview.recv_timeout(LIMIT).unwrap())
                .collect();
            assert_eq!(&frames, wanted, "preview, {prefetch}, epoch {epoch}");
        }
    }
}

/// A pipeline sends a seek to every sink, and here each comes to epochsrc or epochbuffer.
#[test]
fn a_seek_that_comes_by_every_branch_asks_for_one_epoch() {
    let images = scratch();
    copy_photos(images.path(), PHOTOS);
    let wanted = plain(images.path(), 3);
    for prefetch in ["off", "complete"] {
        let watched = pipeline(images.path(), prefetch, PREVIEW);
        watched.start();
        assert_eq!(watched.epoch(), wanted[0]);
        let seek = gst::event::Seek::builder(
            1.0,
            gst::SeekFlags::SEGMENT,
            gst::SeekType::Set,
            gst::format::Default::ZERO,
            gst::SeekType::None,
            gst::format::Default::NONE,
        );
        let seek = seek.build();
        let stopped = watched.stop_at_the_second();
        assert!(watched.pipeline.0.send_event(seek.clone()));
        assert_eq!(watched.next(), wanted[1][0]);
        let stopped = stopped.recv_timeout(LIMIT).expect("a second batch comes");
        // As when the pipeline comes to its last sink late, with the epoch on its way.
        for branch in ["sink", "preview"] {
            let pad = watched.pipeline.element(branch).static_pad("sink").unwrap();
            assert!(pad.push_event(seek.clone()), "{branch}");
        }
        drop(stopped);
        assert_eq!(watched.epoch(), wanted[1][1..]);
        assert_eq!(
            watched.seen.recv_timeout(QUIET),
            Err(RecvTimeoutError::Timeout),
            "{prefetch}: nobody asked for more"
        );
        assert!(watched.segment_seek(), "another seek");
        assert_eq!(watched.epoch(), wanted[2]);
    }
}

#[test]
fn flushes_and_restarts_reach_both_branches() {
    let images = scratch();
    copy_photos(images.path(), PHOTOS);
    let wanted = plain(images.path(), 2);
    for prefetch in ["off", "complete"] {
        let watched = pipeline(images.path(), prefetch, PREVIEW);
        let preview = watch_preview(&watched);
        watched.start();
        assert_eq!(watched.epoch(), wanted[0]);
        let stopped = watched.stop_at_the_second();
        assert!(watched.ask());
        assert_eq!(watched.next(), wanted[1][0]);
        let stopped = stopped.recv_timeout(LIMIT).expect("a second batch comes");
        // By one sink only: by both, each would have the epoch read again.
        let seek = gst::event::Seek::builder(
            1.0,
            gst::SeekFlags::FLUSH,
            gst::SeekType::Set,
            gst::format::Default::from_u64(2),
            gst::SeekType::None,
            gst::format::Default::NONE,
        );
        let sink = watched.pipeline.element("sink");
        assert!(sink.send_event(seek.build()));
        drop(stopped);
        assert_eq!(watched.epoch(), wanted[1][2..], "{prefetch}");
        if prefetch == "complete" {
            watched.until("level-buffers", PHOTOS as u64);
            // The preview may be behind: what was prepared before the change is to be past it.
            let mut prepared = 0;
            while prepared < PHOTOS {
                let seen = preview.recv_timeout(LIMIT).unwrap();
                prepared += usize::from(matches!(seen, Seen::Batch(2, ..)));
            }
            watched.pipeline.element("jitter").set_property("hue", 0.5);
            assert!(watched.ask());
            let again = watched.epoch();
            assert_eq!(watched.stat("invalidated"), 1);
            let frames: Vec<_> = again
                .iter()
                .map(|_| preview.recv_timeout(LIMIT).unwrap())
                .collect();
            assert_eq!(frames, again, "the preview sees the epoch that is trained on");
        }
    }
}
