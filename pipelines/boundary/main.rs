//! The wait at the epoch boundary, with and without preparation, over the same data.
//!
//! ```text
//! pipelines/boundary.sh --samples 1000 --epochs 21
//! ```
//!
//! Runs the same pipeline twice, with `prefetch=off` and with `prefetch=complete`, behind an epochsink that validates
//! after each epoch. It prints for each epoch what the sink waited, and draws both runs as a timeline. Waits are
//! measured where batches arrive, at the sink, and so are the checksums of all batches, which must be the same in both.

mod arm;
mod plot;

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use arm::{Arm, Hold, Plan};
use clap::Parser;

/// Measures the wait at the epoch boundary, with and without preparation.
#[derive(Parser)]
#[command(name = "boundary")]
struct Arguments {
    /// A folder of images; its files are repeated until there are enough samples
    #[arg(default_value = "data/photos")]
    location: PathBuf,
    /// Samples an epoch
    #[arg(long, default_value_t = 1000)]
    samples: usize,
    /// Epochs in each run; there is one boundary less
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(2..))]
    epochs: u32,
    /// Samples a batch
    #[arg(long, default_value_t = 8)]
    batch: u32,
    /// Milliseconds a training step takes
    #[arg(long, default_value_t = 0)]
    step: u32,
    /// Milliseconds a validation takes
    #[arg(long, default_value_t = 1000)]
    validation: u32,
    /// What the epochbuffer holds
    #[arg(long, value_enum, default_value_t = Hold::Batches)]
    hold: Hold,
    /// Budget of the epochbuffer, in bytes
    #[arg(long, default_value_t = 1 << 30)]
    max_bytes: u64,
    /// Budget of the epochbuffer, in buffers
    #[arg(long, default_value_t = 256)]
    max_buffers: u32,
    /// Side of a frame, in pixels
    #[arg(long, default_value_t = 640)]
    size: u32,
    /// The timeline to draw
    #[arg(long, default_value = "out/boundary.png")]
    out: PathBuf,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("boundary: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether both runs delivered the same and stayed below the budget.
fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    gst::init()?;
    let plan = Plan {
        files: arm::repeated(&arguments.location, arguments.samples)?,
        epochs: arguments.epochs,
        batch: arguments.batch,
        step: arguments.step,
        validation: arguments.validation,
        hold: arguments.hold,
        max_bytes: arguments.max_bytes,
        max_buffers: arguments.max_buffers,
        size: arguments.size,
    };
    let off = arm::run(&plan, "off")?;
    let complete = arm::run(&plan, "complete")?;

    let mut out = std::io::stdout().lock();
    for arm in [&off, &complete] {
        table(&mut out, arm)?;
    }
    let same_bytes = !off.checksums.is_empty() && off.checksums == complete.checksums;
    let same_threads = off.threads == complete.threads;
    let within =
        complete.high_water.0 <= u64::from(plan.max_buffers) && complete.high_water.1 <= plan.max_bytes;
    writeln!(
        out,
        "bytes of {} batches: {}",
        off.checksums.len(),
        said(same_bytes, "the same", "DIFFERENT")
    )?;
    writeln!(
        out,
        "threads: {} ({})",
        said(same_threads, "the same", "DIFFERENT"),
        names(&complete)
    )?;
    writeln!(
        out,
        "high-water mark: {}",
        said(within, "within the budget", "ABOVE THE BUDGET")
    )?;
    let (without, with) = (off.boundary(95), complete.boundary(95));
    writeln!(
        out,
        "95th percentile of the boundary wait: {} off, {} complete ({:.1} times)",
        milliseconds(without),
        milliseconds(with),
        without.as_secs_f64() / with.as_secs_f64().max(1e-9)
    )?;
    plot::draw(&[&off, &complete], plan.validation, &arguments.out)?;
    writeln!(out, "{}: both runs on one time axis", arguments.out.display())?;
    Ok(same_bytes && same_threads && within)
}

fn said(good: bool, yes: &'static str, no: &'static str) -> &'static str {
    if good { yes } else { no }
}

fn names(arm: &Arm) -> String {
    arm.threads.iter().cloned().collect::<Vec<_>>().join(", ")
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn table(out: &mut impl Write, arm: &Arm) -> std::io::Result<()> {
    writeln!(out, "prefetch={}", arm.prefetch)?;
    writeln!(
        out,
        "{:>5} {:>14} {:>22} {:>12} {:>10}",
        "epoch", "boundary wait", "median wait inside it", "other waits", "total"
    )?;
    for epoch in &arm.epochs {
        writeln!(
            out,
            "{:>5} {:>14} {:>22} {:>12} {:>10}",
            epoch.number,
            milliseconds(epoch.boundary),
            milliseconds(epoch.median_inside()),
            milliseconds(epoch.inside.iter().sum()),
            milliseconds(epoch.ended - epoch.asked),
        )?;
    }
    writeln!(
        out,
        "boundaries: median {}, 95th percentile {}; waits inside epochs: median {}; held at most: {} buffers, {:.0} MB; whole run {:.2} s\n",
        milliseconds(arm.boundary(50)),
        milliseconds(arm.boundary(95)),
        milliseconds(arm.inside_median()),
        arm.high_water.0,
        arm.high_water.1 as f64 / 1e6,
        arm.wall.as_secs_f64(),
    )
}
