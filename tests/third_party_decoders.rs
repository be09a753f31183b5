//! Decoders of others behind epochsrc: their pixels, our order, gains and epochs.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{Pipeline, Report, Seen, Watched, copy_photos, location, scratch};
use gst::prelude::*;

const PHOTOS: usize = 6;

/// What makes frames of one size of the images.
const DECODERS: [&str; 4] = [
    "jpegdec ! videoconvert ! videoscale",
    "queue ! jpegdec ! queue ! videoconvert ! queue ! videoscale ! queue",
    "jpegparse ! jpegdec ! videoconvert ! videoscale",
    "decodebin ! videoconvert ! videoscale",
];

fn pipeline(images: &Path, decoder: &str, frames: &str, batches: &str) -> Watched {
    Watched::new(&format!(
        "epochsrc name=source location={} auto-advance=false epochs=-1 seed=5 ! {decoder} \
         ! video/x-raw,format=RGB,width=32,height=32,pixel-aspect-ratio=1/1 {frames} ! hsvquantize name=jitter \
         ! nhwcpack {batches} ! fakesink name=sink",
        location(images)
    ))
}

const FRAMES: &str = "! epochbuffer name=buffer prefetch=complete";
const BATCHES: &str = "! epochbuffer name=buffer prefetch=complete";

/// The first epoch's checksums by dataset index.
fn by_index(batches: &[Seen]) -> BTreeMap<u64, u32> {
    let named = batches.iter().map(|batch| match batch {
        Seen::Batch(0, indices, checksum) => (indices[0], *checksum),
        other => panic!("{other:?}"),
    });
    named.collect()
}

/// Each photograph's pixels without jitter, decoded in a pipeline of its own, by dataset index.
fn alone(photos: &[std::path::PathBuf], decoder: &str) -> BTreeMap<u64, u32> {
    let alone = photos.iter().enumerate().map(|(index, photo)| {
        let watched = pipeline(photo, decoder, "", "! epochbuffer name=buffer");
        watched.pipeline.element("jitter").set_property("gains", "0,0,0");
        watched.start();
        (index as u64, by_index(&watched.epoch())[&0])
    });
    let alone: BTreeMap<_, _> = alone.collect();
    let different: std::collections::BTreeSet<_> = alone.values().collect();
    assert_eq!(different.len(), photos.len(), "no two photographs are alike");
    alone
}

#[test]
fn epochs_are_the_same_however_they_are_held_and_asked_for() {
    let images = scratch();
    copy_photos(images.path(), PHOTOS);
    // Our own decoder has other pixels, but the same order.
    let order = |epochs: &[Vec<Seen>]| -> Vec<(u64, Vec<u64>)> {
        let batches = epochs.iter().flatten().map(|batch| match batch {
            Seen::Batch(epoch, indices, _) => (*epoch, indices.clone()),
            other => panic!("{other:?}"),
        });
        batches.collect()
    };
    let epochs = |decoder: &str, frames: &str, batches: &str, ask: &dyn Fn(&Watched) -> bool| {
        let watched = pipeline(images.path(), decoder, frames, batches);
        watched.start();
        let epochs = (0..3).map(|epoch| {
            if epoch > 0 {
                if (frames, batches) == ("", BATCHES) {
                    watched.until("level-buffers", PHOTOS as u64);
                }
                assert!(watched.seen.try_recv().is_err(), "the gate leaks");
                assert!(ask(&watched));
            }
            watched.epoch()
        });
        epochs.collect::<Vec<_>>()
    };
    let off = "! epochbuffer name=buffer";
    let ours = order(&epochs("epochdecode", "", off, &Watched::ask));
    for decoder in DECODERS {
        let wanted = epochs(decoder, "", off, &Watched::ask);
        assert_eq!(order(&wanted), ours, "{decoder}");
        for (frames, batches) in [("", off), (FRAMES, ""), ("", BATCHES)] {
            for ask in [Watched::ask, Watched::segment_seek] {
                let found = epochs(decoder, frames, batches, &ask);
                assert_eq!(found, wanted, "{decoder} {frames} {batches}");
            }
        }
    }
}

/// A decoder that is only plugged when the data comes is not linked yet when the elements behind it start: they must find
/// epochsrc all the same.
#[test]
fn what_changes_while_an_epoch_is_held_is_noticed_behind_every_decoder() {
    let images = scratch();
    copy_photos(images.path(), PHOTOS);
    for decoder in DECODERS {
        let run = |change: bool| {
            let watched = pipeline(images.path(), decoder, "", BATCHES);
            watched.start();
            watched.epoch();
            watched.until("level-buffers", PHOTOS as u64);
            if change {
                watched.pipeline.element("jitter").set_property("hue", 0.4);
            }
            assert!(watched.ask());
            let epoch = watched.epoch();
            assert_eq!(watched.stat("invalidated"), u64::from(change), "{decoder}");
            epoch
        };
        let (held, changed) = (run(false), run(true));
        for (held, changed) in held.iter().zip(&changed) {
            assert_ne!(held, changed, "{decoder}: the old hue");
        }
    }
}

#[test]
fn each_sample_has_its_own_pixels_also_behind_a_file_that_is_cut_off() {
    for decoder in ["jpegdec ! videoconvert ! videoscale", DECODERS[1]] {
        let images = scratch();
        let photos = copy_photos(images.path(), PHOTOS);
        let mut wanted = alone(&photos, decoder);
        for cut in [None, Some(2)] {
            if let Some(cut) = cut {
                let whole = std::fs::read(&photos[cut]).unwrap();
                std::fs::write(&photos[cut], &whole[..whole.len() / 2]).unwrap();
                wanted.remove(&(cut as u64));
            }
            let watched = pipeline(images.path(), decoder, "", BATCHES);
            watched.pipeline.element("jitter").set_property("gains", "0,0,0");
            watched.start();
            let mut found = by_index(&watched.epoch());
            if let Some(cut) = cut {
                // Whether it makes a frame of it is the decoder's affair.
                found.remove(&(cut as u64));
            }
            assert_eq!(found, wanted, "{decoder}, cut off: {cut:?}");
        }
    }
}

/// What a run that resumes in mid-epoch has to repeat goes through the decoder once more: the first samples for padding, the
/// last one in place of an empty file.
#[test]
fn a_resumed_run_repeats_what_the_whole_run_repeats() {
    let images = scratch();
    let photos = copy_photos(images.path(), 2 * PHOTOS);
    for empty in [0, 5, 6] {
        std::fs::write(&photos[empty], "").unwrap();
    }
    for on_error in ["replace", "skip"] {
        let run = |source: &str| {
            let folder = scratch();
            let (report, bytes) = (folder.path().join("report.jsonl"), folder.path().join("bytes"));
            common::launch(&format!(
                "epochsrc location={} shuffle=torch on-error={on_error} {source} ! {} \
                 ! video/x-raw,format=RGB,width=24,height=24,pixel-aspect-ratio=1/1 ! hsvquantize \
                 ! nhwcpack dtype=uint8 batch-size=5 last-batch=pad ! tee name=batches batches. ! queue ! filesink",
                location(images.path()),
                DECODERS[0]
            ))
            .arg(format!("location={}", bytes.display()))
            .args("batches. ! queue ! epochsink silent=true")
            .arg(format!("report={}", report.display()))
            .run()
            .success();
            let batches = common::Report::read(&report).without_times().batches;
            (batches, std::fs::read(&bytes).unwrap())
        };
        let (batches, bytes) = run("epochs=2");
        let size = bytes.len() / batches.len();
        for (number, batch) in batches[..batches.len() - 1].iter().enumerate() {
            let state = common::quoted(&batch.state.to_string());
            // Behind an epoch's last batch, the one that follows is the run's first.
            let left = 1 + u64::from(batch.epoch == batches[number + 1].epoch && batch.epoch == 0);
            let (found, pixels) = run(&format!("epochs={left} state={state}"));
            assert_eq!(found, batches[number + 1..], "{on_error}, behind batch {number}");
            assert!(
                pixels == bytes[(number + 1) * size..],
                "{on_error}, behind batch {number}"
            );
        }
    }
}

/// Behind a decoder that is plugged late, nhwcpack cannot ask for an epoch's first samples in time: that the padding may be
/// another than the whole run's is said.
#[test]
fn padding_that_cannot_be_repeated_is_warned_of() {
    let images = scratch();
    copy_photos(images.path(), PHOTOS);
    for (decoder, late) in [(DECODERS[0], false), (DECODERS[3], true)] {
        let run = |state: &str| {
            let folder = scratch();
            let report = folder.path().join("report.jsonl");
            let pipeline = Pipeline::new(&format!(
                "epochsrc name=source location={} ! {decoder} \
                 ! video/x-raw,format=RGB,width=24,height=24,pixel-aspect-ratio=1/1 \
                 ! nhwcpack dtype=uint8 batch-size=4 last-batch=pad ! epochsink silent=true report={}",
                location(images.path()),
                report.display()
            ));
            pipeline.element("source").set_property("state", state);
            pipeline.set(gst::State::Playing);
            let mut warnings = Vec::new();
            pipeline.wait(|message| {
                if let gst::MessageView::Warning(warning) = message.view() {
                    warnings.push(warning.error().to_string());
                }
                message.type_() == gst::MessageType::Eos
            });
            pipeline.set(gst::State::Null);
            (Report::read(&report).batches, warnings)
        };
        let (batches, warnings) = run("");
        assert_eq!(warnings, [""; 0], "{decoder}: nothing is repeated");
        let (_, warnings) = run(&batches[0].state.to_string());
        assert_eq!(warnings.len(), usize::from(late), "{decoder}: {warnings:?}");
        assert!(
            warnings.iter().all(|said| said.contains("padding")),
            "{warnings:?}"
        );
    }
}
