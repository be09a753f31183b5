//! A minimal training program: epochs of jittered batches, a validation pass behind each, and how long it waited for data.
//!
//! ```text
//! cargo run --release --example train_validate -- data/photos --epochs 3 --batch 8
//! ```
//!
//! While it validates, the next training epoch is prepared (`--prefetch complete`), so that the wait at the boundary is gone.
//! Where a model would be, the mean of all values stands for the loss: it depends on every pixel.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::feed::Builder;
use epochfeed::sampler::Shuffle;
use epochfeed::{Epoch, Feed};

/// Trains and validates on the images at LOCATION, without a model.
#[derive(Parser)]
#[command(name = "train_validate")]
struct Arguments {
    /// A folder of images, a text list of paths, one image, or a file:// URI of one of these
    location: PathBuf,
    /// Training epochs
    #[arg(long, default_value_t = 3)]
    epochs: u32,
    /// Samples a batch
    #[arg(long, default_value_t = 8)]
    batch: u32,
    /// Width and height of the frames
    #[arg(long, default_value_t = 640)]
    size: u32,
    /// Seed of order and jitter
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// What is prepared while the validation runs
    #[arg(long, value_enum, default_value_t = Ahead::Complete)]
    prefetch: Ahead,
}

/// The property `prefetch` of epochbuffer.
#[derive(Clone, Copy, ValueEnum)]
enum Ahead {
    Off,
    Complete,
    Any,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("train_validate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let common = |builder: Builder| {
        builder
            .size(arguments.size, arguments.size)
            .batch_size(arguments.batch)
    };
    let training = common(Feed::builder(&arguments.location))
        .shuffle(Shuffle::Torch)
        .seed(arguments.seed)
        .epochs(arguments.epochs)
        .prefetch(match arguments.prefetch {
            Ahead::Off => Prefetch::Off,
            Ahead::Complete => Prefetch::Complete,
            Ahead::Any => Prefetch::Any,
        })
        .build()?;
    let validation = common(Feed::validation(&arguments.location)).build()?;
    let mut passes = validation.epochs();

    for epoch in training.epochs() {
        let trained = pass(epoch?)?;
        println!("train {trained}");
        let checked = pass(passes.next().ok_or("the validation has ended")??)?;
        println!("valid {checked}");
    }
    let stats = training.stats();
    println!(
        "{} batches, {} of {} samples; at most {} batches held",
        stats.batches, stats.ledger.delivered, stats.ledger.listed, stats.buffer.max_buffers
    );
    Ok(())
}

/// What one pass over the data came to.
struct Pass {
    epoch: u64,
    samples: u64,
    loss: f64,
    /// From the request to the first batch, and the longest wait for one behind it.
    first: Duration,
    longest: Duration,
}

impl std::fmt::Display for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            epoch, samples, loss, ..
        } = self;
        let (first, longest) = (self.first.as_secs_f64() * 1e3, self.longest.as_secs_f64() * 1e3);
        write!(
            f,
            "epoch {epoch}: samples {samples} loss {loss:.9} first {first:.1} ms longest {longest:.1} ms"
        )
    }
}

/// Takes every batch of an epoch that has just been asked for.
fn pass(epoch: Epoch) -> Result<Pass, Box<dyn Error>> {
    let mut pass = Pass {
        epoch: epoch.number(),
        samples: 0,
        loss: 0.0,
        first: Duration::ZERO,
        longest: Duration::ZERO,
    };
    let mut values = 0;
    let mut asked = Instant::now();
    for batch in epoch {
        let batch = batch?;
        let waited = asked.elapsed();
        if pass.samples == 0 {
            pass.first = waited;
        } else {
            pass.longest = pass.longest.max(waited);
        }
        let step = batch.as_f32()?;
        pass.loss += step.iter().map(|value| f64::from(*value)).sum::<f64>();
        values += step.len();
        pass.samples += batch.samples().len() as u64;
        asked = Instant::now();
    }
    pass.loss /= values.max(1) as f64;
    Ok(pass)
}
