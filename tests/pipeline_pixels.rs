//! The main job's bytes: what gst-launch writes is what an independent NumPy program computes, on every way there.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use common::{assert_same_bytes, copy_photos, launch, location, photos, python, scratch};

const GAINS: &str = "0.01,0.35,-0.25";

/// The main job over the photographs in `folder`, without its sink.
fn main_job(folder: &Path) -> String {
    format!(
        "epochsrc location={} shuffle=none ! epochdecode ! video/x-raw,format=RGB,width=640,height=640 \
         ! hsvquantize gains=\"{GAINS}\" ! nhwcpack batch-size=8 dtype=float32",
        location(folder)
    )
}

fn all_photos() -> &'static Path {
    static FOLDER: OnceLock<std::path::PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| photos()[0].parent().unwrap().to_owned())
}

/// Runs `line` into `file`.
#[track_caller]
fn write(line: &str, file: &Path) {
    launch(line)
        .args("! filesink")
        .arg(format!("location={}", file.display()))
        .run()
        .success();
}

/// Compares files, each "DTYPE:LAYOUT:" and its path, with what NumPy computes.
#[track_caller]
fn assert_equal_to_numpy(folder: &Path, options: &[&str], files: &[String]) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/numpy/first_light.py");
    let mut job = python()
        .arg(program)
        .arg(folder)
        .arg(format!("--gains={GAINS}"))
        .limit(Duration::from_secs(60));
    for argument in options.iter().copied().chain(files.iter().map(String::as_str)) {
        job = job.arg(argument);
    }
    let outcome = job.run().success();
    assert!(outcome.stdout.contains("are equal, byte for byte"), "{outcome}");
}

/// `text` with its only `part` replaced.
#[track_caller]
fn with(text: &str, part: &str, replacement: &str) -> String {
    assert_eq!(text.matches(part).count(), 1, "{part:?} in {text:?}");
    text.replace(part, replacement)
}

/// The main job's bytes over all photographs, which
/// [`the_main_job_is_what_numpy_computes`] holds against NumPy.
fn reference() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| bytes_of(&main_job(all_photos())))
}

#[track_caller]
fn bytes_of(line: &str) -> Vec<u8> {
    let folder = scratch();
    let file = folder.path().join("out");
    write(line, &file);
    std::fs::read(&file).expect("filesink wrote it")
}

/// The main job, changed by `change`, writes the same bytes.
#[track_caller]
fn assert_same(what: &str, change: impl Fn(&str) -> String) {
    let line = change(&main_job(all_photos()));
    assert_same_bytes(what, &bytes_of(&line), reference());
}

#[test]
fn the_main_job_is_what_numpy_computes() {
    let folder = scratch();
    let file = folder.path().join("out.f32");
    std::fs::write(&file, reference()).unwrap();
    assert_eq!(reference().len(), photos().len() * 640 * 640 * 3 * 4);
    assert_equal_to_numpy(all_photos(), &[], &[format!("float32:nhwc:{}", file.display())]);
}

#[test]
fn the_native_path_writes_the_same_bytes() {
    assert_same("fuse=false", |line| {
        with(line, "hsvquantize", "hsvquantize fuse=false")
    });
}

#[test]
fn the_number_of_threads_does_not_matter() {
    for threads in ["threads=1", "threads=4"] {
        let decode = format!("epochdecode {threads}");
        assert_same(threads, |line| with(line, "epochdecode", &decode));
    }
}

#[test]
fn the_size_of_a_batch_does_not_matter() {
    assert_same("batch-size=1", |line| with(line, "batch-size=8", "batch-size=1"));
}

#[test]
fn queues_do_not_matter() {
    assert_same("queues", |line| line.replace(" ! ", " ! queue ! "));
}

/// 16 photographs, because of the many pipelines: formats × paths.
#[test]
fn the_format_of_the_frames_does_not_matter() {
    let folder = scratch();
    copy_photos(folder.path(), 16);
    let line = main_job(folder.path());
    let wanted = &reference()[..16 * 640 * 640 * 3 * 4];
    for format in ["BGR", "RGBA", "BGRA", "RGBx", "BGRx", "RGBP"] {
        let converted = format!("! videoconvert ! video/x-raw,format={format} ! hsvquantize");
        let line = with(&line, "! hsvquantize", &converted);
        assert_same_bytes(format, &bytes_of(&line), wanted);
        let native = with(&line, "hsvquantize", "hsvquantize fuse=false");
        assert_same_bytes(&format!("{format} with fuse=false"), &bytes_of(&native), wanted);
    }
    let decoded = with(&line, "format=RGB", "format=BGR");
    assert_same_bytes("decoded to BGR", &bytes_of(&decoded), wanted);
}

/// Runs the main job once for each of `packings` (data type, layout) with `properties`, and compares all with NumPy.
#[track_caller]
fn assert_packings(packings: &[(&str, &str)], properties: &str, options: &[&str]) {
    let folder = scratch();
    let images = folder.path().join("images");
    std::fs::create_dir(&images).unwrap();
    copy_photos(&images, 10);
    let files: Vec<_> = packings
        .iter()
        .map(|(dtype, layout)| {
            let file = folder.path().join(format!("out.{dtype}.{layout}"));
            let packing = format!("dtype={dtype} layout={layout} {properties}");
            write(&with(&main_job(&images), "dtype=float32", &packing), &file);
            format!("{dtype}:{layout}:{}", file.display())
        })
        .collect();
    assert_equal_to_numpy(&images, options, &files);
}

#[test]
fn every_type_and_layout_is_what_numpy_derives() {
    let dtypes = ["float32", "uint8", "float16", "bfloat16"];
    let packings: Vec<_> = dtypes
        .iter()
        .flat_map(|dtype| [(*dtype, "nhwc"), (*dtype, "nchw")])
        .collect();
    assert_packings(&packings, "", &[]);
}

#[test]
fn normalised_values_are_what_numpy_derives() {
    assert_packings(
        &[
            ("float32", "nhwc"),
            ("float32", "nchw"),
            ("float16", "nhwc"),
            ("bfloat16", "nchw"),
        ],
        "mean=\"0.485,0.456,0.406\" std=\"0.229,0.224,0.225\"",
        &["--mean=0.485,0.456,0.406", "--std=0.229,0.224,0.225"],
    );
}
