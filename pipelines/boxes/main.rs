//! Draws a contact sheet of a dataset's frames with their boxes, as a detector would be given them.
//!
//! ```text
//! target/release/examples/boxes data/photos.json out/boxes.png --seed 7 --size 320
//! ```
//!
//! It is also the smallest program that uses targets: a [`Feed`], and for each batch its frames, samples and
//! [`targets`](epochfeed::Batch::targets).

#[path = "../canvas.rs"]
mod canvas;
mod sheet;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use epochfeed::dataset::{Dataset, Options, Split, parse_location};
use epochfeed::decode::OrientationMode;
use epochfeed::sampler::Shuffle;
use epochfeed::tensor::Dtype;
use epochfeed::{Batch, Feed};
use image::RgbImage;

use sheet::Frame;

/// Draws frames with their boxes into one PNG.
#[derive(Parser)]
#[command(name = "boxes")]
struct Arguments {
    /// A COCO JSON file, a data.yaml, a folder with images and labels, or a file:// URI of one of these
    location: String,
    /// The PNG to write; its folder is made
    out: PathBuf,
    /// What the file names of a COCO file are relative to; found beside it if it is not given
    #[arg(long)]
    root: Option<PathBuf>,
    /// The part of a data.yaml that is called val, not the one called train
    #[arg(long)]
    val: bool,
    /// Shuffles with this seed; in the dataset's order if it is not given
    #[arg(long)]
    seed: Option<u64>,
    /// How many frames, if there are so many
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=300))]
    count: u32,
    /// Width and height of the frames
    #[arg(long, default_value_t = 320, value_parser = clap::value_parser!(u32).range(16..=2048))]
    size: u32,
    /// What is done about EXIF orientations
    #[arg(long, value_enum, default_value_t = Orientation::Apply)]
    orientation: Orientation,
}

#[derive(Clone, Copy, ValueEnum)]
enum Orientation {
    /// Each image is turned upright
    Apply,
    /// Each image, and its boxes if their size does not say otherwise, are left as stored
    Ignore,
    /// Each image is turned so that it has the size in its annotation; it is an error if it never has
    Match,
}

impl From<Orientation> for OrientationMode {
    fn from(orientation: Orientation) -> Self {
        match orientation {
            Orientation::Apply => Self::Apply,
            Orientation::Ignore => Self::Ignore,
            Orientation::Match => Self::Match,
        }
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("boxes: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let location = parse_location(&arguments.location)?;
    // The feed opens it again; here it is asked for its size and the names of its classes.
    let options = Options {
        root: arguments.root.clone(),
        split: if arguments.val { Split::Val } else { Split::Train },
        ..Options::default()
    };
    let dataset = Dataset::open_with(&location, &options)?;
    let names = dataset.class_names().to_vec();
    // A set to try things with may have four images.
    let count = u64::from(arguments.count).min(dataset.len());
    let mut feed = Feed::builder(&location)
        .dataset(options)
        .shuffle(Shuffle::None)
        .no_jitter()
        .dtype(Dtype::Uint8)
        .size(arguments.size, arguments.size)
        .orientation(arguments.orientation.into());
    if let Some(seed) = arguments.seed {
        feed = feed.shuffle(Shuffle::Keyed).seed(seed);
    }
    let feed = feed.samples_per_epoch(count).build()?;

    let mut frames = Vec::new();
    for epoch in feed.epochs() {
        for batch in epoch? {
            frames.push(frame(&batch?, &arguments.location)?);
        }
    }
    let size = (arguments.size, arguments.size);
    let title = format!("epochfeed   {}   {} frames", arguments.location, frames.len());
    write(&sheet::compose(&title, size, &frames, &names), &arguments.out)
}

/// The frame that a batch of one holds.
fn frame(batch: &Batch, location: &str) -> Result<Frame, Box<dyn Error>> {
    let rows = batch.targets().ok_or_else(|| {
        format!(
            "{location} has no boxes: give a COCO JSON file, a data.yaml, or a folder with images and labels"
        )
    })?;
    let [_, height, width, _] = *batch.shape();
    let pixels = batch.as_u8()?.to_vec();
    let picture = RgbImage::from_raw(u32::try_from(width)?, u32::try_from(height)?, pixels);
    let sample = batch.samples().first().ok_or("a batch is empty")?;
    Ok(Frame {
        uri: sample.uri.clone(),
        source: (sample.source_width, sample.source_height),
        picture: picture.ok_or("a batch is shorter than its shape")?,
        boxes: rows
            .iter()
            .map(|&[_, class, x, y, width, height]| (class as usize, [x, y, width, height]))
            .collect(),
    })
}

/// Writes `sheet` as a PNG, whatever the name ends with, and makes the folder it lies in.
fn write(sheet: &RgbImage, out: &Path) -> Result<(), Box<dyn Error>> {
    let named = |error: &dyn Error| format!("cannot write {}: {error}", out.display());
    if let Some(folder) = out.parent() {
        std::fs::create_dir_all(folder).map_err(|error| named(&error))?;
    }
    sheet
        .save_with_format(out, image::ImageFormat::Png)
        .map_err(|error| named(&error))?;
    Ok(())
}
