//! Draws a contact sheet of samples before and after the HSV jitter, with the gains that made the difference.
//!
//! ```text
//! GST_PLUGIN_PATH=target/release target/release/examples/preview data/photos out/preview.png --seed 7
//! ```
//!
//! It is also a small model of an application: a pipeline with two `appsink`s whose frames are matched by the identity in
//! their metas, never by counting, and whose errors reach the user with the file's name.

#[path = "../canvas.rs"]
mod canvas;
mod capture;
mod sheet;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

/// Draws samples before and after the HSV jitter into one PNG.
#[derive(Parser)]
#[command(name = "preview")]
struct Arguments {
    /// A folder of images, a text list of paths, one image, or a file:// URI of one of these
    location: PathBuf,
    /// The PNG to write; its folder is made
    out: PathBuf,
    /// Seed of order and gains, as in the training run
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Which epoch to look at, from 0
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..i64::from(i32::MAX)))]
    epoch: u32,
    /// How many samples, from the start of the epoch
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..=300))]
    count: u16,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("preview: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    gst::init()?;
    let shots = capture::capture(&capture::Request {
        location: &arguments.location,
        seed: arguments.seed,
        epoch: arguments.epoch,
        count: usize::from(arguments.count),
    })?;
    let title = format!("epochfeed   seed {}   epoch {}", arguments.seed, arguments.epoch);
    let sheet = sheet::compose(&title, &shots);
    write(&sheet, &arguments.out)
}

/// Writes `sheet` as a PNG, whatever the name ends with, and makes the folder it lies in.
fn write(sheet: &image::RgbImage, out: &Path) -> Result<(), Box<dyn Error>> {
    let named = |error: &dyn Error| format!("cannot write {}: {error}", out.display());
    if let Some(folder) = out.parent() {
        std::fs::create_dir_all(folder).map_err(|error| named(&error))?;
    }
    sheet
        .save_with_format(out, image::ImageFormat::Png)
        .map_err(|error| named(&error))?;
    Ok(())
}
