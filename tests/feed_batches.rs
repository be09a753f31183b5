//! What a feed gives is what the same elements give through gst-launch, and what the files hold.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod feed_support;

use std::path::Path;

use common::{assert_same_bytes, copy_photos, photos, scratch};
use epochfeed::color::{GainRanges, Gains};
use epochfeed::decode::Fit;
use epochfeed::elements::faults::{Limit, OnError};
use epochfeed::elements::nhwcpack::LastBatch;
use epochfeed::feed::{Batch, Builder, Epoch, Epochs, Feed, FeedError, Hold};
use epochfeed::sampler::{Shuffle, Uneven};
use epochfeed::tensor::{Dtype, Layout};
use feed_support::{LIMIT, Seen, all, indices, rest, small, within};

#[test]
fn what_goes_to_other_threads_may() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Feed>();
    send::<Builder>();
    send::<Epochs>();
    send::<Epoch>();
    send::<Batch>();
    sync::<Batch>();
    send::<FeedError>();
    sync::<FeedError>();
}

/// The samples, gains, states and bytes of a feed and of gst-launch with the same properties.
#[track_caller]
fn assert_equal_to_launch(images: &Path, builder: Builder, launch: common::Feed<'_>) {
    let (found, steps) = {
        let feed = builder.build().unwrap();
        (all(&feed), feed.stats())
    };
    let wanted = common::Feed {
        location: images,
        ..launch
    }
    .taken();
    let batches = &wanted.report.batches;
    assert_eq!(found.len(), batches.len());
    assert_eq!(steps.batches, batches.len() as u64);
    for (found, wanted) in found.iter().zip(batches) {
        assert_eq!((found.epoch, &found.indices), (wanted.epoch, &wanted.indices));
        // Read as the report was: serde_json may miss the last bit of a number.
        let gains: Vec<[f64; 3]> =
            serde_json::from_str(&serde_json::to_string(&found.gains).unwrap()).unwrap();
        assert_eq!(gains, wanted.gains);
        let state: serde_json::Value = serde_json::from_str(&found.state).unwrap();
        assert_eq!(state, wanted.state);
    }
    let bytes: Vec<u8> = found.into_iter().flat_map(|batch| batch.bytes).collect();
    assert_same_bytes("the feed", &bytes, &wanted.bytes);
}

#[test]
fn batches_equal_those_of_gst_launch() {
    within(LIMIT, || {
        let images = scratch();
        copy_photos(images.path(), 10);
        let images = images.path();
        assert_equal_to_launch(
            images,
            small(images)
                .shuffle(Shuffle::Torch)
                .seed(7)
                .epochs(2)
                .batch_size(4),
            common::Feed {
                source: "shuffle=torch seed=7 epochs=2",
                pack: "batch-size=4",
                ..common::Feed::new(images)
            },
        );
        let builder = small(images)
            .seed(1 << 63)
            .rank(1)
            .world_size(3)
            .samples_per_epoch(8);
        assert_equal_to_launch(
            images,
            builder
                .uneven(Uneven::Pad)
                .io_depth(1)
                .threads(1)
                .fit(Fit::Stretch)
                .jitter(GainRanges::new(0.5, 0.25, 1.0).unwrap())
                .fuse(false)
                .batch_size(2)
                .dtype(Dtype::Float16)
                .layout(Layout::Nchw)
                .mean([0.5, 0.25, 0.125])
                .std([0.5, 1.0, 2.0])
                .last_batch(LastBatch::Pad)
                .hold(Hold::Frames),
            common::Feed {
                source: "seed=9223372036854775808 rank=1 world-size=3 samples-per-epoch=8 uneven=pad io-depth=1",
                decode: "threads=1 fit=stretch",
                jitter: "hue=0.5 saturation=0.25 value=1 fuse=false",
                pack: "batch-size=2 dtype=float16 layout=nchw mean=0.5,0.25,0.125 std=0.5,1,2 last-batch=pad",
                ..common::Feed::new(images)
            },
        );
        assert_equal_to_launch(
            images,
            small(images)
                .shuffle(Shuffle::None)
                .fit(Fit::Ultralytics)
                .pad_color([1, 2, 3])
                .interpolation(epochfeed::decode::Interpolation::Area)
                .orientation(epochfeed::decode::OrientationMode::Ignore)
                .truncated(epochfeed::decode::Truncated::Use)
                .max_pixels(1 << 30)
                .gains(Gains::new(0.01, 0.35, -0.25).unwrap())
                .batch_size(3)
                .last_batch(LastBatch::Drop),
            common::Feed {
                source: "shuffle=none",
                decode: "fit=ultralytics pad-color=0x010203 interpolation=area orientation=ignore truncated=use max-pixels=1073741824",
                jitter: "gains=0.01,0.35,-0.25",
                pack: "batch-size=3 last-batch=drop",
                ..common::Feed::new(images)
            },
        );
    });
}

#[test]
fn each_epoch_ends_at_its_own_end() {
    within(LIMIT, || {
        let images = scratch();
        copy_photos(images.path(), 5);
        let feed = small(images.path()).epochs(3).batch_size(2).build().unwrap();
        let mut epochs = feed.epochs();
        for number in 0..3 {
            let mut epoch = epochs.next().unwrap().unwrap();
            assert_eq!((epoch.number(), epoch.listed(), epoch.slots()), (number, 5, 5));
            assert_eq!(epoch.ledger(), None);
            let batches: Vec<_> = epoch.by_ref().map(Result::unwrap).collect();
            let numbers: Vec<_> = batches.iter().map(Batch::number).collect();
            assert_eq!(numbers, [0, 1, 2]);
            let sizes: Vec<_> = batches.iter().map(|batch| batch.shape()[0]).collect();
            assert_eq!(sizes, [2, 2, 1]);
            assert!(epoch.next().is_none(), "an epoch that has ended stays at its end");
            assert_eq!(epoch.ledger().unwrap().delivered, 5);
            assert_eq!(feed.stats().epochs, number + 1);
        }
        assert!(epochs.next().is_none() && epochs.next().is_none());
        assert!(
            feed.epochs().next().is_none(),
            "nor is there another in a second iterator"
        );
        let stats = feed.stats();
        assert_eq!((stats.batches, stats.samples, stats.ledger.listed), (9, 15, 15));
        assert!(stats.ledger.balanced() && stats.wait >= stats.boundary_wait / 2);
    });
}

#[test]
fn a_batch_is_a_view_of_its_own_type() {
    within(LIMIT, || {
        let images = scratch();
        copy_photos(images.path(), 2);
        let of = |dtype, layout| {
            let feed = Feed::builder(images.path())
                .size(32, 16)
                .batch_size(2)
                .no_jitter()
                .shuffle(Shuffle::None)
                .dtype(dtype)
                .layout(layout)
                .build()
                .unwrap();
            let batch = feed.epochs().next().unwrap().unwrap().next().unwrap().unwrap();
            // The batch outlives its feed.
            drop(feed);
            assert_eq!((batch.dtype(), batch.layout()), (dtype, layout));
            assert_eq!(batch.as_bytes().unwrap().len(), 2 * 16 * 32 * 3 * dtype.size());
            batch
        };
        let bytes = of(Dtype::Uint8, Layout::Nhwc);
        assert_eq!(
            (bytes.shape(), bytes.strides()),
            (&[2, 16, 32, 3], [1536, 96, 3, 1])
        );
        let levels = bytes.as_u8().unwrap();
        assert!(bytes.as_f32().is_err() && levels.iter().any(|level| *level != levels[0]));

        let floats = of(Dtype::Float32, Layout::Nchw);
        assert_eq!(
            (floats.shape(), floats.strides()),
            (&[2, 3, 16, 32], [1536, 512, 32, 1])
        );
        let floats = floats.as_f32().unwrap();
        let at = |sample: usize, y: usize, x: usize, channel: usize| {
            let level = levels[sample * 1536 + y * 96 + x * 3 + channel];
            (level, floats[sample * 1536 + channel * 512 + y * 32 + x])
        };
        for (sample, y, x, channel) in [(0, 0, 0, 0), (1, 15, 31, 2), (0, 7, 30, 1), (1, 3, 3, 0)] {
            let (level, float) = at(sample, y, x, channel);
            assert_eq!(
                float,
                f32::from(level) * (1.0 / 255.0),
                "{sample} {y} {x} {channel}"
            );
        }
        let halves = of(Dtype::Float16, Layout::Nhwc);
        let halves = halves.as_f16().unwrap();
        let brains = of(Dtype::Bfloat16, Layout::Nhwc);
        let brains = brains.as_bf16().unwrap();
        for place in [0, 1000, 3071] {
            let float = f32::from(levels[place]) * (1.0 / 255.0);
            assert_eq!(halves[place], half::f16::from_f32(float));
            assert_eq!(brains[place], half::bf16::from_f32(float));
        }
    });
}

#[test]
fn validation_passes_over_the_dataset_as_it_is() {
    within(LIMIT, || {
        let feed = Feed::validation(feed_support::photos())
            .size(24, 24)
            .dtype(Dtype::Uint8)
            .batch_size(16)
            .build()
            .unwrap();
        let files = photos();
        let mut epochs = feed.epochs();
        let mut passes: Vec<Vec<Seen>> = Vec::new();
        for pass in 0..2 {
            let mut epoch = epochs.next().unwrap().unwrap();
            assert_eq!(epoch.number(), pass);
            let mut seen = Vec::new();
            for batch in &mut epoch {
                let batch = batch.unwrap();
                for sample in batch.samples() {
                    let file = &files[sample.index as usize];
                    assert_eq!(sample.path().as_deref(), Some(file.as_path()));
                    let (width, height) = size(file);
                    assert_eq!(
                        (sample.source_width, sample.source_height),
                        (width, height),
                        "{file:?}"
                    );
                    assert!(!sample.pad && sample.gains == Gains::ZERO && sample.replaced_from.is_none());
                }
                seen.push(feed_support::seen(&batch));
            }
            assert_eq!(indices(&seen), (0..files.len() as u64).collect::<Vec<_>>());
            passes.push(seen);
        }
        let pixels = |pass: &[Seen]| {
            pass.iter()
                .flat_map(|batch| batch.bytes.clone())
                .collect::<Vec<_>>()
        };
        assert!(pixels(&passes[0]) == pixels(&passes[1]));
    });
}

/// Width and height that the header says; none of the photographs is turned.
fn size(file: &Path) -> (u32, u32) {
    let bytes = std::fs::read(file).unwrap();
    let options = epochfeed::decode::DecodeOptions::default();
    let header = epochfeed::decode::probe(&bytes, &options).unwrap();
    assert_eq!(header.orientation, 1);
    (header.width, header.height)
}

#[test]
fn a_turned_image_is_as_large_as_it_is_seen() {
    within(LIMIT, || {
        let image = common::cases::folder().join("a07_exif_o6.jpg");
        let of = |mode| {
            let feed = Feed::validation(&image)
                .size(16, 16)
                .orientation(mode)
                .build()
                .unwrap();
            let batch = feed.epochs().next().unwrap().unwrap().next().unwrap().unwrap();
            (batch.samples()[0].source_width, batch.samples()[0].source_height)
        };
        let (width, height) = of(epochfeed::decode::OrientationMode::Ignore);
        assert_ne!(width, height);
        assert_eq!(of(epochfeed::decode::OrientationMode::Apply), (height, width));
    });
}

#[test]
fn faults_are_named_and_counted() {
    within(LIMIT, || {
        let images = scratch();
        let files = copy_photos(images.path(), 5);
        std::fs::write(&files[2], b"").unwrap();
        let name = files[2].file_name().unwrap().to_str().unwrap().to_owned();
        let build = || small(images.path()).shuffle(Shuffle::None);

        let feed = build().build().unwrap();
        let mut epochs = feed.epochs();
        let mut epoch = epochs.next().unwrap().unwrap();
        let error = epoch.find_map(Result::err).unwrap();
        let FeedError::Stream {
            element,
            message,
            remedy,
        } = &error
        else {
            panic!("{error:?}");
        };
        assert_eq!(element, "epochdecode");
        assert!(
            message.contains(&name) && message.contains("sample 2"),
            "{message}"
        );
        assert!(remedy.as_ref().unwrap().contains("on-error=skip"), "{remedy:?}");
        assert!(error.to_string().contains(&name));
        assert!(epoch.next().is_none(), "said once");
        let again = epochs.next().unwrap().unwrap_err();
        assert_eq!(again.to_string(), error.to_string());
        assert!(epochs.next().is_none());

        let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let listener = told.clone();
        let feed = build()
            .on_error(OnError::Replace)
            .max_errors(Limit::Percent(20.0))
            .on_message(move |message| {
                if let Some(fault) = message
                    .structure()
                    .filter(|fields| fields.name() == "epochfeed-fault")
                {
                    listener.lock().unwrap().push(fault.get::<String>("uri").unwrap());
                }
            })
            .build()
            .unwrap();
        let mut epoch = feed.epochs().next().unwrap().unwrap();
        let replaced: Vec<_> = epoch
            .by_ref()
            .map(|batch| {
                let batch = batch.unwrap();
                let sample = &batch.samples()[0];
                assert!(sample.source_width > 100);
                (sample.dataset_index, sample.replaced_from)
            })
            .collect();
        assert_eq!(
            replaced,
            [(0, None), (1, None), (1, Some(2)), (3, None), (4, None)]
        );
        let ledger = epoch.ledger().unwrap();
        assert_eq!((ledger.delivered, ledger.skipped, ledger.replaced), (4, 1, 1));
        let told = told.lock().unwrap();
        assert!(told.len() == 1 && told[0].ends_with(&name), "{told:?}");
    });
}

#[test]
fn what_cannot_be_built_says_why() {
    within(LIMIT, || {
        let images = scratch();
        copy_photos(images.path(), 2);
        let refused = |builder: Builder| match builder.build() {
            Ok(_) => panic!("it was built"),
            Err(error) => error.to_string(),
        };
        let text = refused(Feed::builder(images.path().join("nowhere")));
        assert!(text.contains("nowhere"), "{text}");
        let text = refused(small(images.path()).batch_size(0));
        assert_eq!(text, "batch-size is 0: use 1 to 65536");
        let text = refused(small(images.path()).size(0, 24));
        assert_eq!(text, "width is 0: use 1 to 32767");
        let text = refused(small(images.path()).epochs(0));
        assert!(text.contains("epochs is 0"), "{text}");
        let text = refused(small(images.path()).samples_per_epoch(0));
        assert!(text.contains("samples-per-epoch is 0"), "{text}");
        let text = refused(small(images.path()).mean([0.5; 3]));
        assert!(text.contains("uint8"), "{text}");
        let text = refused(small(images.path()).rank(1));
        assert!(text.contains("rank is 1"), "{text}");
        let text = refused(small(images.path()).resume("{}"));
        assert!(text.contains("version"), "{text}");
        let text = refused(small(images.path()).resume(""));
        assert!(text.contains("resume"), "{text}");
        let state = all(&small(images.path()).seed(1).build().unwrap())[0]
            .state
            .clone();
        let text = refused(small(images.path()).seed(2).resume(state));
        assert!(text.contains("seed"), "{text}");
    });
}

/// A bound on the steps ends the feed in the middle of an epoch, and a later run goes on there.
#[test]
fn steps_are_bounded() {
    within(LIMIT, || {
        let images = scratch();
        copy_photos(images.path(), 4);
        let whole = all(&small(images.path()).epochs(2).build().unwrap());
        for steps in [0, 1, 4, 6, 8, 9] {
            let feed = small(images.path()).epochs(2).max_steps(steps).build().unwrap();
            let taken = all(&feed);
            assert!(taken == whole[..whole.len().min(steps as usize)], "{steps} steps");
            if (1..8).contains(&steps) {
                let resumed = small(images.path()).epochs(2).resume(feed.state().unwrap());
                let behind = all(&resumed.build().unwrap());
                assert!(
                    behind[..8 - steps as usize] == whole[steps as usize..],
                    "{steps} steps"
                );
            }
        }
    });
}

/// Two feeds in one process do not know of each other.
#[test]
fn feeds_live_side_by_side() {
    within(LIMIT, || {
        let images = scratch();
        copy_photos(images.path(), 6);
        let alone = all(&small(images.path()).epochs(2).build().unwrap());
        let training = small(images.path()).epochs(2).build().unwrap();
        let validation = Feed::validation(images.path()).size(24, 24).build().unwrap();
        let mut passes = validation.epochs();
        let mut taken = Vec::new();
        for epoch in training.epochs() {
            taken.extend(rest(&mut epoch.unwrap()));
            assert_eq!(passes.next().unwrap().unwrap().map(Result::unwrap).count(), 6);
        }
        assert!(taken == alone);
    });
}
