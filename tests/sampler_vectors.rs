//! The orders against tables that other programs made: PyTorch's own samplers, and an independent reader of
//! the keyed order.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod vectors;

use epochfeed::sampler::{Receipt, Sampler, SamplerConfig, Shuffle, Uneven};
use vectors::samples;

#[test]
fn keyed_equals_the_python_reader() {
    for row in vectors::read("keyed.tsv") {
        let [seed, epoch, size, position, sample] =
            ["seed", "epoch", "size", "position", "sample"].map(|column| row.get::<u64>(column));
        let sampler = Sampler::new(SamplerConfig::new(Shuffle::Keyed, seed, size)).unwrap();
        let receipt: Receipt = serde_json::from_value(serde_json::json!({ "epoch": epoch })).unwrap();
        let slot = sampler.draw(&receipt).slot(position).expect("a slot");
        assert_eq!(
            slot.dataset_index, sample,
            "seed {seed} epoch {epoch} size {size} position {position}"
        );
        assert!(!slot.pad);
    }
}

#[test]
fn torch_equals_random_sampler() {
    let mut rows = vectors::read("torch.tsv").into_iter().peekable();
    let mut runs = 0;
    while let Some(first) = rows.peek() {
        let run = |row: &vectors::Row| {
            (
                row.text("run").to_owned(),
                row.text("seed").to_owned(),
                row.get::<u64>("size"),
            )
        };
        let (this, seed) = (run(first), first.get("seed"));
        let sampler = Sampler::new(SamplerConfig::new(Shuffle::Torch, seed, this.2)).unwrap();
        let mut receipt = sampler.first();
        while let Some(row) = rows.next_if(|row| run(row) == this) {
            assert_eq!(receipt.epoch(), row.get::<u64>("epoch"));
            // An epoch that was broken off yielded the start of its order.
            let mut order = samples(&sampler.draw(&receipt));
            order.truncate(row.get("count"));
            row.assert_lists(&order);
            receipt = sampler.next(&receipt, row.flag("exhausted"));
        }
        assert!(receipt.epoch() >= 3);
        runs += 1;
    }
    assert_eq!(runs, 5 * 3 + 4 + 1);
}

#[test]
fn torch_distributed_equals_distributed_sampler() {
    for row in vectors::read("torch_distributed.tsv") {
        let sampler = Sampler::new(SamplerConfig {
            rank: row.get("rank"),
            world_size: row.get("world_size"),
            uneven: if row.flag("drop_last") {
                Uneven::Drop
            } else {
                Uneven::Pad
            },
            ..SamplerConfig::new(Shuffle::TorchDistributed, row.get("seed"), row.get("size"))
        })
        .unwrap();
        // Epochs of this order do not depend on how the ones before went.
        let receipt = (0..row.get("epoch")).fold(sampler.first(), |receipt, epoch: u64| {
            sampler.next(&receipt, epoch.is_multiple_of(2))
        });
        row.assert_lists(&samples(&sampler.draw(&receipt)));
    }
}
