//! How long opening COCO's own size takes, and how much memory.
//!
//! `cargo bench --bench coco` writes an instances file of 118,287 images and 860,001 annotations with segmentations, about
//! 450 MB, with an empty file for every image, into a temporary folder, and opens it: parsing, all checks, the fingerprint.
//! It prints seconds, and the process's peak memory before and after. Pin it (`taskset -c 0`) for one core.
#![allow(clippy::unwrap_used, clippy::expect_used)] // what goes wrong ends the measurement

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use epochfeed::dataset::{Dataset, Options};

const IMAGES: u64 = 118_287;
const ANNOTATIONS: u64 = 860_001;
/// Ids of the 80 categories are spread over 1 to 90, as COCO's.
const CATEGORIES: u64 = 80;
/// Points of a segmentation, so that the file gets COCO's size.
const POINTS: u64 = 22;

/// A few numbers that look random and are the same each time.
fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

fn name(image: u64) -> String {
    format!("{:012}.jpg", image * 5 + 9)
}

fn write(json: &Path) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(json)?);
    write!(
        out,
        "{{\"info\": {{\"year\": 2017}}, \"licenses\": [], \"images\": ["
    )?;
    for image in 0..IMAGES {
        let comma = if image > 0 { ", " } else { "" };
        let (id, file) = (image * 5 + 9, name(image));
        write!(
            out,
            "{comma}{{\"license\": 3, \"file_name\": \"{file}\", \"coco_url\": \"http://images.example/train2017/{file}\", \
             \"height\": 480, \"width\": 640, \"date_captured\": \"2013-11-14 11:18:45\", \
             \"flickr_url\": \"http://farm9.example/{file}\", \"id\": {id}}}"
        )?;
    }
    write!(out, "], \"annotations\": [")?;
    for annotation in 0..ANNOTATIONS {
        let comma = if annotation > 0 { ", " } else { "" };
        let random = scattered(annotation + 1);
        let image = (random % IMAGES) * 5 + 9;
        let category = 1 + (random >> 20) % CATEGORIES * 9 / 8;
        let (x, y) = ((random >> 8) % 40_000, (random >> 24) % 30_000);
        write!(out, "{comma}{{\"segmentation\": [[")?;
        for point in 0..POINTS {
            let comma = if point > 0 { ", " } else { "" };
            let (across, down) = (x + point * 97, y + point * 53);
            write!(
                out,
                "{comma}{}.{:02}, {}.{:02}",
                across / 100,
                across % 100,
                down / 100,
                down % 100
            )?;
        }
        write!(
            out,
            "]], \"area\": 702.{}, \"iscrowd\": {}, \"image_id\": {image}, \"bbox\": [{}.{:02}, {}.{:02}, 50.5, 41.25], \
             \"category_id\": {category}, \"id\": {}}}",
            random % 10_000_000,
            u8::from(annotation % 90 == 0),
            x / 100,
            x % 100,
            y / 100,
            y % 100,
            annotation + 1
        )?;
    }
    write!(out, "], \"categories\": [")?;
    for category in 0..CATEGORIES {
        let comma = if category > 0 { ", " } else { "" };
        let id = 1 + category * 9 / 8;
        write!(
            out,
            "{comma}{{\"supercategory\": \"thing\", \"id\": {id}, \"name\": \"class {id}\"}}"
        )?;
    }
    write!(out, "]}}")?;
    out.flush()
}

/// The most memory that the process has had, in MB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1000
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("images");
    fs::create_dir(&images).unwrap();
    for image in 0..IMAGES {
        File::create(images.join(name(image))).unwrap();
    }
    let json = folder.path().join("instances_train2017.json");
    write(&json).unwrap();
    let bytes = fs::metadata(&json).unwrap().len();
    println!(
        "{IMAGES} images, {ANNOTATIONS} annotations, {} MB of JSON",
        bytes / 1_000_000
    );
    for _ in 0..3 {
        let before = peak();
        let start = Instant::now();
        let dataset = Dataset::open_with(&json, &Options::default()).unwrap();
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!(dataset.len(), IMAGES);
        assert_eq!(dataset.class_names().len() as u64, CATEGORIES);
        println!(
            "opened in {seconds:.2} s; peak memory {before} MB before, {} MB behind; {} boxes used",
            peak(),
            dataset.checks().boxes
        );
    }
}
