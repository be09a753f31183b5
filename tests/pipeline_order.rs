//! The order of delivery: PyTorch's where it is asked for, repeatable always, shared by ranks without loss.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod vectors;

use std::path::Path;

use common::{Feed, Report, Taken, assert_same_bytes, copy_photos, photos, scratch};

/// Each index must name its own file.
#[track_caller]
fn assert_uris_fit(report: &Report) {
    let files = photos();
    for batch in &report.batches {
        assert_eq!(batch.uris.len(), batch.indices.len());
        for (uri, &index) in batch.uris.iter().zip(&batch.indices) {
            let file = files[usize::try_from(index).unwrap()].file_name().unwrap();
            assert!(uri.starts_with("file:///"), "{uri}");
            assert!(uri.ends_with(file.to_str().unwrap()), "{index}: {uri}");
        }
    }
}

#[test]
fn the_torch_order_is_that_of_random_sampler() {
    let images = scratch();
    copy_photos(images.path(), 40);
    let report = Feed {
        source: "shuffle=torch seed=7 epochs=3",
        pack: "batch-size=8",
        ..Feed::new(images.path())
    }
    .report();
    report.assert_adds_up();
    assert_uris_fit(&report);
    let rows = vectors::read("torch.tsv");
    let rows: Vec<_> = rows.iter().filter(|row| row.text("run") == "whole").collect();
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!((row.get::<u64>("seed"), row.get::<u64>("size")), (7, 40));
        row.assert_lists(&report.order(row.get("epoch")));
    }
}

#[test]
fn the_torch_distributed_order_is_that_of_distributed_sampler() {
    let images = scratch();
    copy_photos(images.path(), 7);
    let rows = vectors::read("torch_distributed.tsv");
    for world_size in [1, 3] {
        for uneven in ["pad", "drop"] {
            for rank in 0..world_size {
                let source = format!(
                    "shuffle=torch-distributed seed=7 epochs=4 world-size={world_size} rank={rank} uneven={uneven}"
                );
                let report = Feed {
                    source: &source,
                    pack: "batch-size=2",
                    ..Feed::new(images.path())
                }
                .report();
                assert_uris_fit(&report);
                let ours = |row: &&vectors::Row| {
                    let is = |column, wanted| row.get::<u64>(column) == wanted;
                    is("seed", 7)
                        && is("size", 7)
                        && is("world_size", world_size)
                        && is("rank", rank)
                        && row.flag("drop_last") == (uneven == "drop")
                };
                let rows: Vec<_> = rows.iter().filter(ours).collect();
                assert_eq!(rows.len(), 4, "{source}");
                for row in rows {
                    row.assert_lists(&report.order(row.get("epoch")));
                }
            }
        }
    }
}

fn run(images: &Path, source: &str, decode: &str) -> Taken {
    Feed {
        source,
        decode,
        pack: "batch-size=4",
        ..Feed::new(images)
    }
    .taken()
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_reports() {
    let images = scratch();
    copy_photos(images.path(), 10);
    for shuffle in ["keyed", "torch", "torch-distributed", "none"] {
        let source = format!("seed=3 epochs=2 shuffle={shuffle}");
        let first = run(images.path(), &source, "threads=4");
        let second = run(images.path(), &source, "threads=1");
        assert_same_bytes(shuffle, &second.bytes, &first.bytes);
        assert_eq!(
            second.report.without_times(),
            first.report.without_times(),
            "{shuffle}"
        );
    }
}

#[test]
fn another_seed_or_epoch_has_another_order() {
    let images = scratch();
    copy_photos(images.path(), 10);
    for shuffle in ["keyed", "torch", "torch-distributed"] {
        let orders: Vec<_> = [3, 4]
            .into_iter()
            .flat_map(|seed| {
                let source = format!("seed={seed} epochs=2 shuffle={shuffle}");
                let report = run(images.path(), &source, "").report;
                [report.order(0), report.order(1)]
            })
            .collect();
        for (number, order) in orders.iter().enumerate() {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>(), "{shuffle}: each once");
            // DistributedSampler adds seed and epoch: there, and only there, seed 4 starts where seed 3 goes on.
            let same = orders.iter().filter(|other| *other == order).count();
            let shared = shuffle == "torch-distributed" && (1..=2).contains(&number);
            assert_eq!(same, 1 + usize::from(shared), "{shuffle}: {orders:?}");
        }
    }
    let report = run(images.path(), "seed=3 epochs=2 shuffle=none", "").report;
    for epoch in [0, 1] {
        assert_eq!(report.order(epoch), (0..10).collect::<Vec<_>>());
    }
}

/// Reports of four ranks over 10 samples, two epochs.
fn ranks(images: &Path, properties: &str) -> Vec<Report> {
    (0..4)
        .map(|rank| {
            let source = format!("seed=5 epochs=2 world-size=4 rank={rank} {properties}");
            let report = Feed {
                source: &source,
                pack: "batch-size=2",
                ..Feed::new(images)
            }
            .report();
            report.assert_adds_up();
            report
        })
        .collect()
}

#[test]
fn four_ranks_share_ten_samples() {
    let images = scratch();
    copy_photos(images.path(), 10);
    for shuffle in ["keyed", "torch", "torch-distributed", "none"] {
        for (uneven, slots, padded, dropped) in [("pad", 3, 2, 0), ("drop", 2, 0, 2)] {
            let what = format!("shuffle={shuffle} uneven={uneven}");
            let reports = ranks(images.path(), &what);
            for epoch in [0, 1] {
                let mut own = Vec::new();
                let mut sums = [0; 4];
                for report in &reports {
                    assert_eq!(report.order(epoch).len(), slots, "{what}");
                    let batches = report.batches.iter().filter(|batch| batch.epoch == epoch);
                    own.extend(
                        batches
                            .flat_map(|batch| batch.indices.iter().zip(&batch.pad))
                            .filter(|(_, pad)| !**pad)
                            .map(|(index, _)| *index),
                    );
                    let ledger = report.epochs.iter().find(|line| line.epoch == epoch).unwrap();
                    let fields = [ledger.listed, ledger.delivered, ledger.padded, ledger.dropped];
                    sums = std::array::from_fn(|field| sums[field] + fields[field]);
                }
                assert_eq!(sums, [10, 10 - dropped, padded, dropped], "{what} epoch {epoch}");
                let delivered = own.len();
                own.sort_unstable();
                own.dedup();
                assert_eq!(
                    own.len(),
                    delivered,
                    "{what} epoch {epoch}: a sample came to two ranks"
                );
                assert_eq!(delivered as u64, 10 - dropped, "{what} epoch {epoch}");
            }
        }
    }
}

#[test]
fn a_rank_without_samples_is_refused() {
    let images = scratch();
    copy_photos(images.path(), 3);
    let job = |source| {
        Feed {
            source,
            ..Feed::new(images.path())
        }
        .job(&images.path().join("report.jsonl"))
        .expect_error()
        .run()
    };
    job("world-size=7 rank=5 uneven=drop").failure(&["uneven", "7"]);
    job("world-size=2 rank=2").failure(&["rank", "world-size"]);
    job("samples-per-epoch=4").failure(&["samples-per-epoch", "4", "3"]);
}
