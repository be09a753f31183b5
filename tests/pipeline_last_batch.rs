//! The last batch of an epoch: smaller, left out or filled up, and always accounted for.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{Feed, SAMPLE, Taken, copy_photos, scratch};

const SAMPLES: u64 = 10;
const EPOCHS: u64 = 2;

fn run(shuffle: &str, properties: &str) -> Taken {
    let images = scratch();
    copy_photos(images.path(), SAMPLES as usize);
    Feed {
        source: &format!("seed=1 epochs={EPOCHS} shuffle={shuffle}"),
        pack: properties,
        ..Feed::new(images.path())
    }
    .taken()
}

/// Checks each epoch: the sizes of its batches, and its ledger of delivered, dropped and padded samples.
#[track_caller]
fn assert_epochs(properties: &str, sizes: &[usize], ledger: [u64; 3]) -> Taken {
    let taken = run("keyed", properties);
    let report = &taken.report;
    report.assert_adds_up();
    assert_eq!(report.epochs.len() as u64, EPOCHS, "{properties}");
    for epoch in &report.epochs {
        assert_eq!(
            [epoch.listed, epoch.skipped, epoch.replaced],
            [SAMPLES, 0, 0],
            "{properties}"
        );
        assert_eq!(
            [epoch.delivered, epoch.dropped, epoch.padded],
            ledger,
            "{properties}"
        );
        let batches = report.batches.iter().filter(|batch| batch.epoch == epoch.epoch);
        let found: Vec<_> = batches.clone().map(|batch| batch.indices.len()).collect();
        assert_eq!(found, sizes, "{properties}");
        let numbers: Vec<_> = batches.map(|batch| batch.batch).collect();
        assert_eq!(
            numbers,
            (0..sizes.len() as u64).collect::<Vec<_>>(),
            "{properties}"
        );
    }
    let rows = sizes.iter().sum::<usize>() * EPOCHS as usize;
    assert_eq!(taken.bytes.len(), rows * SAMPLE, "{properties}");
    taken
}

#[test]
fn partial_makes_a_smaller_batch() {
    for (size, sizes) in [(4, &[4, 4, 2][..]), (10, &[10]), (16, &[10])] {
        let taken = assert_epochs(&format!("batch-size={size}"), sizes, [10, 0, 0]);
        assert!(
            taken
                .report
                .batches
                .iter()
                .all(|batch| !batch.pad.contains(&true))
        );
    }
}

#[test]
fn drop_leaves_the_tail_of_the_order_out() {
    let whole = run("keyed", "batch-size=10");
    let orders = [whole.report.order(0), whole.report.order(1)];
    for (size, sizes, dropped) in [(4, &[4, 4][..], 2), (10, &[10], 0), (16, &[], 10)] {
        let properties = format!("last-batch=drop batch-size={size}");
        let taken = assert_epochs(&properties, sizes, [10 - dropped, dropped, 0]);
        for (epoch, order) in orders.iter().enumerate() {
            assert_eq!(
                taken.report.order(epoch as u64),
                order[..sizes.iter().sum::<usize>()]
            );
        }
    }
    assert_ne!(orders[0][8..], orders[1][8..], "each epoch leaves others out");
}

#[test]
fn pad_repeats_the_epochs_first_samples() {
    for (size, sizes, padded) in [
        (4, &[4, 4, 4][..], 2),
        (10, &[10], 0),
        (16, &[16], 6),
        (23, &[23], 13),
    ] {
        let properties = format!("last-batch=pad batch-size={size}");
        let taken = assert_epochs(&properties, sizes, [10, 0, padded]);
        let samples = taken.samples();
        let flags: Vec<_> = taken.report.batches.iter().flat_map(|batch| &batch.pad).collect();
        let slots: usize = sizes.iter().sum();
        for (samples, flags) in samples.chunks_exact(slots).zip(flags.chunks_exact(slots)) {
            for (row, (sample, flag)) in samples.iter().zip(flags).enumerate() {
                assert_eq!(**flag, row >= 10, "{properties}: row {row}");
                // From 20 on the epoch's samples begin once more.
                assert!(*sample == samples[row % 10], "{properties}: row {row}");
            }
        }
    }
}

/// The state lies behind the padding's epoch, not behind the samples that the padding repeats.
#[test]
fn padding_does_not_turn_the_state_back() {
    let taken = run("none", "last-batch=pad batch-size=4");
    let positions: Vec<_> = taken
        .report
        .batches
        .iter()
        .map(|batch| batch.state["position"].as_u64().unwrap())
        .collect();
    assert_eq!(positions, [4, 8, 10, 4, 8, 10]);
}

#[test]
fn a_fixed_batch_size_downstream_names_the_remedy() {
    let images = scratch();
    copy_photos(images.path(), 10);
    let feed = |pack| Feed {
        pack,
        ..Feed::new(images.path())
    };
    let report = images.path().join("report.jsonl");
    let fixed = "! other/tensors,dimensions=(string)3:24:24:4";
    let pack = format!("batch-size=4 {fixed}");
    feed(&pack)
        .job(&report)
        .expect_error()
        .run()
        .failure(&["last-batch=pad", "2"]);
    let pack = format!("batch-size=4 last-batch=pad {fixed}");
    feed(&pack).job(&report).run().success();
}
