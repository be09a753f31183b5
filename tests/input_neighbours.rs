//! Elements of other plugins beside ours: their decoders behind epochsrc, their sources in front of epochdecode.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;

use common::{Report, assert_fails, cases, launch, launch_with_messages, location};

const BATCHES: &str = "nhwcpack batch-size=2 ! epochsink silent=true";

fn case(name: &str) -> String {
    location(&cases::folder().join(name))
}

/// Two good files around an empty one and one that is missing.
fn list(folder: &Path) -> String {
    common::copy_photos(folder, 2);
    std::fs::write(folder.join("zero.jpg"), b"").unwrap();
    let list = folder.join("list.txt");
    std::fs::write(
        &list,
        "zero.jpg\n000000000001.jpg\nmissing.jpg\n000000000002.jpg\n",
    )
    .unwrap();
    location(&list)
}

/// Runs `source` and returns the report.
fn report(folder: &Path, source: &str) -> Report {
    let report = folder.join("report.jsonl");
    let _ = std::fs::remove_file(&report);
    launch(&format!("{source} ! {BATCHES} report={}", location(&report)))
        .run()
        .success();
    Report::read(&report)
}

const JPEGDEC: &str = "jpegdec ! videoconvert ! videoscale ! video/x-raw,format=RGB,width=32,height=32";

#[test]
fn with_another_decoder_the_sources_policy_applies() {
    let scratch = common::scratch();
    let list = list(scratch.path());
    let source = |policy| format!("epochsrc location={list} shuffle=none on-error={policy} ! {JPEGDEC}");
    assert_fails(
        &format!("{} ! fakesink", source("fail")),
        &["Cannot use sample 0", "zero.jpg", "empty file"],
    );

    let skipped = report(scratch.path(), &source("skip"));
    skipped.assert_adds_up();
    assert_eq!(
        skipped.order(0),
        [1, 3],
        "the identity passes a decoder that knows nothing of it"
    );
    assert_eq!(
        (
            skipped.epochs[0].listed,
            skipped.epochs[0].skipped,
            skipped.epochs[0].replaced
        ),
        (4, 2, 0)
    );

    let replaced = report(scratch.path(), &source("replace"));
    replaced.assert_adds_up();
    // Of the first good one for want of one before it, then of the one before.
    assert_eq!(replaced.order(0), [1, 1, 1, 3]);
    let from: Vec<_> = replaced
        .batches
        .iter()
        .flat_map(|batch| batch.replaced_from.clone())
        .collect();
    assert_eq!(from, [0, -1, 2, -1]);
    assert_eq!((replaced.epochs[0].skipped, replaced.epochs[0].replaced), (2, 2));
}

#[test]
fn an_image_that_another_decoder_does_not_take_is_named() {
    let scratch = common::scratch();
    for name in ["a04_gray.jpg", "a10_png_named.jpg"] {
        std::fs::copy(cases::folder().join(name), scratch.path().join(name)).unwrap();
    }
    assert_fails(
        &format!(
            "epochsrc location={} shuffle=none ! jpegdec ! fakesink",
            location(scratch.path())
        ),
        &[
            "does not take image/png",
            "sample 1",
            "a10_png_named.jpg",
            "epochdecode",
        ],
    );
}

#[test]
fn one_image_from_a_file_source() {
    for (parser, file) in [
        ("jpegparse", "a00_control_420_640x480.jpg"),
        ("pngparse", "a00_control_rgb8.png"),
    ] {
        let scratch = common::scratch();
        let source = format!(
            "filesrc location={} blocksize=1000000 ! {parser} ! epochdecode ! hsvquantize",
            case(file)
        );
        let report = report(scratch.path(), &source);
        assert_eq!(report.order(0), [0]);
        assert_eq!(report.batches[0].uris, [""], "no source has said what it is");
        // There is no dataset, so that there is no state either.
        assert_eq!(report.batches[0].state, serde_json::Value::Null);
    }
}

#[test]
fn many_images_from_a_multi_file_source() {
    let scratch = common::scratch();
    let photos = common::photos();
    for (number, photo) in photos[..5].iter().enumerate() {
        std::fs::copy(photo, scratch.path().join(format!("{number}.jpg"))).unwrap();
    }
    let source = |policy| {
        format!(
            "multifilesrc location={}/%d.jpg index=0 stop-index=4 caps=image/jpeg,framerate=25/1 \
             ! epochdecode {policy} ! video/x-raw,width=32,height=32 ! hsvquantize",
            scratch.path().display()
        )
    };
    let good = report(scratch.path(), &source(""));
    assert_eq!(
        good.batches
            .iter()
            .flat_map(|batch| batch.indices.clone())
            .collect::<Vec<_>>(),
        [0, 1, 2, 3, 4]
    );
    // Gains are drawn for the number of the frame.
    let gains: Vec<_> = good
        .batches
        .iter()
        .flat_map(|batch| batch.gains.clone())
        .collect();
    assert!(gains.windows(2).all(|pair| pair[0] != pair[1]), "{gains:?}");

    // A broken one is named by its number.
    std::fs::write(scratch.path().join("2.jpg"), b"\xff\xd8\xff broken").unwrap();
    assert_fails(&format!("{} ! fakesink", source("")), &["Cannot use frame 2"]);
    let skipped = report(scratch.path(), &source("on-error=skip"));
    let frames = |report: &Report| {
        report
            .batches
            .iter()
            .map(|batch| batch.indices.len())
            .sum::<usize>()
    };
    assert_eq!(frames(&skipped), 4);
    let replaced = report(scratch.path(), &source("on-error=replace"));
    assert_eq!(frames(&replaced), 5);
}

#[test]
fn with_several_ranks_skip_acts_as_replace_and_says_so_once() {
    let scratch = common::scratch();
    let list = list(scratch.path());
    // Neither of the two files of rank 0 can be used: a replacement has to come from the rank's own.
    assert_fails(
        &format!(
            "epochsrc location={list} shuffle=none world-size=2 ! epochdecode on-error=skip \
             ! video/x-raw,width=32,height=32 ! {BATCHES}"
        ),
        &["No usable sample"],
    );

    std::fs::write(
        scratch.path().join("list.txt"),
        "zero.jpg\n000000000001.jpg\n000000000002.jpg\nmissing.jpg\nmissing.jpg\n000000000001.jpg\n000000000001.jpg\n000000000001.jpg\n",
    )
    .unwrap();
    for rank in 0..2 {
        let path = scratch.path().join("report.jsonl");
        let outcome = launch_with_messages(&format!(
            "epochsrc location={list} shuffle=none world-size=2 rank={rank} epochs=2 \
             ! epochdecode on-error=skip ! video/x-raw,width=32,height=32 ! {BATCHES} report={}",
            location(&path)
        ))
        .run()
        .success();
        let report = Report::read(&path);
        report.assert_adds_up();
        assert_eq!(report.epochs.len(), 2);
        for epoch in &report.epochs {
            // Ranks stay equally long.
            assert_eq!(report.order(epoch.epoch).len(), 4, "rank {rank}");
            assert_eq!(
                (epoch.skipped, epoch.replaced),
                if rank == 0 { (2, 2) } else { (1, 1) },
                "{epoch:?}"
            );
        }
        let announced = outcome.stdout.matches("acts as replace").count();
        assert_eq!(announced, 1, "{outcome}");
    }
}
