//! Whether validation is slowed by a training feed that prepares its next epoch in the same process.
//!
//! `cargo bench --bench validation [-- ROUNDS [FOLDER]]` runs a validation feed over the photographs, alone and beside a
//! training feed whose next epoch is being prepared, in turn, and prints samples a second and their ratio. The training
//! feed's budget is larger than what can be prepared meanwhile, so that it prepares as long as validation runs; how much
//! it got done is printed too. Validation runs with all cores, where preparing has to wait, and with one thread, where it has
//! the others.
#![allow(clippy::unwrap_used, clippy::expect_used)] // what goes wrong ends the measurement

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::feed::Feed;
use epochfeed::tensor::Dtype;

const VALIDATION: usize = 1_600;
const TRAINING: usize = 3_000;
const BATCH: u32 = 16;

/// A list that names the images of `folder` over and over, `count` names in all.
fn repeated(folder: &Path, count: usize, list: &Path) -> PathBuf {
    let mut images: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|name| name == "jpg"))
        .collect();
    images.sort();
    let mut file = std::fs::File::create(list).unwrap();
    for image in images.iter().cycle().take(count) {
        writeln!(file, "{}", image.display()).unwrap();
    }
    list.to_owned()
}

/// Takes all batches of the feed's next epoch; samples a second.
fn pass(feed: &Feed) -> f64 {
    let start = Instant::now();
    let mut samples = 0;
    for batch in feed.epochs().next().unwrap().unwrap() {
        samples += batch.unwrap().samples().len();
    }
    samples as f64 / start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let rounds: usize = arguments.next().map_or(7, |rounds| rounds.parse().unwrap());
    let folder = arguments.next().map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("data/photos"),
        PathBuf::from,
    );
    let folder = std::path::absolute(folder).unwrap();
    let lists = tempfile::tempdir().unwrap();
    let validation_list = repeated(&folder, VALIDATION, &lists.path().join("validation.txt"));
    let training_list = repeated(&folder, TRAINING, &lists.path().join("training.txt"));

    let training = Feed::builder(training_list)
        .endless()
        .batch_size(BATCH)
        .dtype(Dtype::Uint8)
        .prefetch(Prefetch::Complete)
        .max_buffers(100_000)
        .max_bytes(8 << 30);
    let training = training.build().unwrap();
    for threads in [None, Some(1)] {
        let name = threads.map_or("as many threads as cores".to_owned(), |threads| {
            format!("threads={threads}")
        });
        println!("validation with {name}\nround\talone /s\tbeside /s\tratio\tprepared meanwhile, samples");
        let mut ratios = Vec::new();
        // The first round only warms everything up.
        for round in 0..=rounds {
            // Fresh feeds, so that both passes start alike; each feed starts with one that is not counted.
            let builder = Feed::validation(&validation_list).batch_size(BATCH);
            let builder = match threads {
                Some(threads) => builder.threads(threads),
                None => builder,
            };
            let feed = builder.build().unwrap();
            pass(&feed);
            let alone = pass(&feed);
            // From here on the training feed prepares: the end of its epoch is behind it.
            pass(&training);
            let before = training.stats().buffer.buffers;
            let beside = pass(&feed);
            let after = training.stats().buffer.buffers;
            let whole = TRAINING.div_ceil(BATCH as usize) as u64;
            let note = if after < whole {
                ""
            } else {
                " (all of it: too few)"
            };
            let prepared = (after - before) * u64::from(BATCH);
            if round > 0 {
                let ratio = beside / alone;
                println!("{round}\t{alone:.0}\t{beside:.0}\t{ratio:.3}\t{prepared}{note}");
                ratios.push(ratio);
            }
        }
        println!("median ratio {:.3} (goal: at least 0.95)\n", median(ratios));
    }
}
