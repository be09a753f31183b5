//! A training run that is killed with SIGKILL in the middle of an epoch, twice, and goes on as if nothing had happened.
//!
//! ```text
//! cargo run --release --example resume -- data/photos
//! ```
//!
//! The program starts itself as a worker, once without a disturbance and once with two kills, and compares what the workers
//! were given, batch by batch. A worker keeps its checkpoint as a trainer should: the model and the state of the batch that
//! it was trained on last, in one file that is replaced by renaming. Where a model would be, there is the list of the
//! batches' hashes.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use clap::Parser;
use epochfeed::Feed;
use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::sampler::Shuffle;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const EPOCHS: u64 = 3;

/// Kills a training run twice and shows that it resumes exactly.
#[derive(Parser)]
#[command(name = "resume")]
struct Arguments {
    /// A folder of images, a text list of paths, one image, or a file:// URI of one of these
    location: PathBuf,
    /// Samples a batch
    #[arg(long, default_value_t = 4)]
    batch: u32,
    /// Behind how many steps the first and the second worker are killed
    #[arg(long, num_args = 2, default_values_t = [3, 14])]
    kill: Vec<usize>,
    /// Trains with this checkpoint: what the program starts itself with
    #[arg(long)]
    worker: Option<PathBuf>,
}

/// What a trainer keeps.
#[derive(Default, Serialize, Deserialize)]
struct Checkpoint {
    /// The "model": what it has been trained on.
    batches: Vec<String>,
    /// Behind the last of them.
    state: Option<String>,
}

impl Checkpoint {
    fn load(file: &Path) -> Result<Self, Box<dyn Error>> {
        match std::fs::read(file) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(format!("{}: {error}", file.display()).into()),
        }
    }

    /// A kill leaves the old one or the new one, never a half.
    fn save(&self, file: &Path) -> Result<(), Box<dyn Error>> {
        let temporary = file.with_extension("tmp");
        std::fs::write(&temporary, serde_json::to_vec(self)?)?;
        Ok(std::fs::rename(temporary, file)?)
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.worker {
        Some(checkpoint) => train(&arguments, checkpoint),
        None => compare(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("resume: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The worker: goes on where the checkpoint says. It does one step for each line of its standard input, and the rest when
/// that ends, so that the parent decides how far it gets.
fn train(arguments: &Arguments, file: &Path) -> Result<(), Box<dyn Error>> {
    let mut checkpoint = Checkpoint::load(file)?;
    let mut builder = Feed::builder(&arguments.location)
        .shuffle(Shuffle::Torch)
        .seed(1)
        .size(64, 64)
        .batch_size(arguments.batch)
        .prefetch(Prefetch::Complete)
        .endless();
    if let Some(state) = &checkpoint.state {
        builder = builder.resume(state);
    }
    let feed = builder.build()?;
    let mut permits = std::io::stdin().lines();
    for epoch in feed.epochs() {
        let epoch = epoch?;
        if epoch.number() == EPOCHS {
            break;
        }
        for batch in epoch {
            permits.next().transpose()?;
            let batch = batch?;
            let hash = format!("{:x}", Sha256::digest(batch.as_bytes()?));
            checkpoint.batches.push(format!("{}:{hash}", batch.epoch()));
            checkpoint.state = Some(batch.state().to_owned());
            checkpoint.save(file)?;
            println!("{}", checkpoint.batches.len());
        }
    }
    Ok(())
}

/// The parent: an undisturbed run, a disturbed one, and whether they are the same.
fn compare(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("epochfeed-resume-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let compared = compare_in(arguments, &folder);
    std::fs::remove_dir_all(&folder)?;
    compared
}

fn compare_in(arguments: &Arguments, folder: &Path) -> Result<(), Box<dyn Error>> {
    let (whole, disturbed) = (folder.join("whole.json"), folder.join("disturbed.json"));
    run_to_end(arguments, &whole)?;
    let wanted = Checkpoint::load(&whole)?.batches;
    for steps in &arguments.kill {
        run_and_kill(arguments, &disturbed, *steps)?;
        let reached = Checkpoint::load(&disturbed)?.batches;
        if reached.len() >= wanted.len() {
            return Err(format!("there are only {} steps: kill earlier", wanted.len()).into());
        }
        let epoch = reached.last().and_then(|batch| batch.split(':').next());
        println!(
            "killed behind step {} in epoch {}",
            reached.len(),
            epoch.unwrap_or("0")
        );
    }
    run_to_end(arguments, &disturbed)?;
    let found = Checkpoint::load(&disturbed)?.batches;
    if let Some(step) = (0..wanted.len().max(found.len())).find(|step| found.get(*step) != wanted.get(*step))
    {
        return Err(format!("step {step} differs from the undisturbed run's").into());
    }
    println!("all {} batches equal those of the undisturbed run", wanted.len());
    Ok(())
}

fn worker(arguments: &Arguments, checkpoint: &Path) -> Result<Command, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg(&arguments.location)
        .args(["--batch", &arguments.batch.to_string(), "--worker"])
        .arg(checkpoint);
    Ok(command)
}

fn run_to_end(arguments: &Arguments, checkpoint: &Path) -> Result<(), Box<dyn Error>> {
    let mut command = worker(arguments, checkpoint)?;
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("a worker ended with {status}").into())
    }
}

/// Lets a worker get behind the run's step `steps`, and kills it somewhere in the next one.
fn run_and_kill(arguments: &Arguments, checkpoint: &Path, steps: usize) -> Result<(), Box<dyn Error>> {
    let done = Checkpoint::load(checkpoint)?.batches.len();
    let mut command = worker(arguments, checkpoint)?;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let reached = watch(&mut child, done, steps);
    // On Unix this is SIGKILL.
    child.kill()?;
    child.wait()?;
    reached
}

fn watch(child: &mut Child, done: usize, steps: usize) -> Result<(), Box<dyn Error>> {
    let mut permits = child.stdin.take().ok_or("the worker has no input")?;
    let output = child.stdout.take().ok_or("the worker has no output")?;
    permits.write_all("\n".repeat((steps + 1).saturating_sub(done)).as_bytes())?;
    for line in BufReader::new(output).lines() {
        if line?.parse() == Ok(steps) {
            // Its input must stay open until it is dead.
            child.stdin = Some(permits);
            return Ok(());
        }
    }
    Err(format!("a worker ended before step {steps}").into())
}
