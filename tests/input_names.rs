//! File names are bytes: whatever they hold, the file is read, and named in a way that leads back to it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use common::{Report, launch, location};

const REST: &str =
    "! epochdecode ! video/x-raw,width=32,height=32 ! nhwcpack batch-size=4 ! epochsink silent=true";

const NAMES: [&[u8]; 16] = [
    b"plain.jpg",
    b"with space.jpg",
    b" leading and trailing .jpg",
    b"'single'.jpg",
    b"\"double\".jpg",
    b"new\nline.jpg",
    b"tab\t.jpg",
    b"return\r.jpg",
    b"percent_%05d_%s%n.jpg",
    b"%41.jpg",
    b"caf\xe9.jpg",
    b"caf\xc3\xa9.jpg",
    b"back\\slash.jpg",
    b"$HOME;`id`.jpg",
    b"#hash?query!exclamation.JPG",
    b"-q.jpg",
];

/// A folder, itself called something awkward, with a photograph under each name.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let scratch = common::scratch();
    let folder = scratch.path().join(OsStr::from_bytes(b"d\xe9ep 'n\n%05d"));
    std::fs::create_dir(&folder).unwrap();
    let photo = &common::photos()[0];
    for name in NAMES {
        std::fs::copy(photo, folder.join(OsStr::from_bytes(name))).unwrap();
    }
    (scratch, folder)
}

/// The file that a report's URI names.
fn file(uri: &str) -> PathBuf {
    glib::filename_from_uri(uri)
        .unwrap_or_else(|error| panic!("{uri}: {error}"))
        .0
}

fn run(source: &str) -> Report {
    let scratch = common::scratch();
    let report = scratch.path().join("report.jsonl");
    launch(&format!(
        "epochsrc {source} shuffle=none {REST} report={}",
        location(&report)
    ))
    .run()
    .success();
    Report::read(&report)
}

fn delivered(report: &Report) -> Vec<PathBuf> {
    report.assert_adds_up();
    report
        .batches
        .iter()
        .flat_map(|batch| &batch.uris)
        .map(|uri| file(uri))
        .collect()
}

#[test]
fn a_folder_of_them() {
    let (_scratch, folder) = folder();
    let mut wanted: Vec<_> = NAMES
        .iter()
        .map(|name| folder.join(OsStr::from_bytes(name)))
        .collect();
    wanted.sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
    let report = run(&format!("location={}", location(&folder)));
    assert_eq!(delivered(&report), wanted, "in the byte order of the names");
    assert!(
        report
            .batches
            .iter()
            .flat_map(|batch| &batch.uris)
            .all(|uri| uri.is_ascii())
    );
}

#[test]
fn each_as_the_location() {
    let (_scratch, folder) = folder();
    for name in NAMES {
        let path = folder.join(OsStr::from_bytes(name));
        let uri = glib::filename_to_uri(&path, None).unwrap();
        assert_eq!(delivered(&run(&format!("location={uri}"))), [path]);
    }
}

#[test]
fn a_path_with_printf_patterns_is_taken_literally() {
    let scratch = common::scratch();
    let path = scratch.path().join("percent_%05d_%s%n.jpg");
    std::fs::copy(&common::photos()[0], &path).unwrap();
    // As text, not as a URI.
    assert_eq!(delivered(&run(&format!("location={}", path.display()))), [path]);
}

#[test]
fn a_list_with_windows_line_ends_and_a_byte_order_mark() {
    let (scratch, folder) = folder();
    // A list's line ends at a line feed, so that such a name cannot be in one; nor a return at the end of a line.
    let names: Vec<_> = NAMES
        .iter()
        .filter(|name| !name.contains(&b'\n'))
        .copied()
        .collect();
    let mut text = b"\xef\xbb\xbf".to_vec();
    let relative = Path::new(folder.file_name().unwrap());
    assert!(relative.as_os_str().as_bytes().contains(&b'\n'));
    let plain = scratch.path().join("images");
    std::fs::rename(&folder, &plain).unwrap();
    for name in &names {
        text.extend([b"images/", *name, b"\r\n"].concat());
    }
    text.extend(b"\r\n");
    // An absolute entry, without a line end.
    text.extend(plain.join("plain.jpg").as_os_str().as_bytes());
    let list = scratch.path().join("list of images.txt");
    std::fs::write(&list, text).unwrap();
    let mut wanted: Vec<_> = names
        .iter()
        .map(|name| plain.join(OsStr::from_bytes(name)))
        .collect();
    wanted.push(plain.join("plain.jpg"));
    assert_eq!(
        delivered(&run(&format!("location={}", location(&list)))),
        wanted,
        "in the list's order"
    );
}

#[test]
fn content_decides_and_hidden_files_are_left_out() {
    let scratch = common::scratch();
    let folder = scratch.path();
    let case = |name: &str| common::cases::folder().join(name);
    let copies = [
        (case("a13_png_rgba8.png"), "png.jpg"),
        (case("a10_jpeg_named.png"), "jpeg.png"),
        (case("a10_webp_named.jpg"), "webp.JPEG"),
        (case("a10_bmp_named.jpg"), "bmp.jfif"),
        (case("a04_gray.jpg"), "._resource-fork.jpg"),
        (case("a04_gray.jpg"), ".hidden.jpg"),
        (case("a04_gray.jpg"), "image.txt"),
    ];
    for (from, to) in copies {
        std::fs::copy(from, folder.join(to)).unwrap();
    }
    let found: BTreeSet<_> = delivered(&run(&format!("location={}", location(folder))))
        .into_iter()
        .collect();
    assert_eq!(
        found,
        ["bmp.jfif", "jpeg.png", "png.jpg", "webp.JPEG"]
            .map(|name| folder.join(name))
            .into()
    );
}

#[test]
fn links_that_go_round_end() {
    let scratch = common::scratch();
    let folder = scratch.path().join("photos");
    let deep = folder.join("deep");
    std::fs::create_dir_all(&deep).unwrap();
    common::copy_photos(&deep, 2);
    std::os::unix::fs::symlink(&folder, deep.join("up")).unwrap();
    std::os::unix::fs::symlink(&deep, deep.join("self")).unwrap();
    // Not a sample, whatever it is called.
    std::fs::create_dir(folder.join("x.jpg")).unwrap();
    assert_eq!(
        delivered(&run(&format!("location={}", location(&folder)))).len(),
        2
    );
}
