//! `scripts/gst-location.sh` and its twin in the test helpers: every path reaches gst-launch-1.0's property unchanged.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use common::process::Job;
use common::{launch, location, scratch};

/// File names that some layer between a person and the property would change.
const NAMES: [&[u8]; 16] = [
    b"plain-name_1.jpg",
    b"two  words.jpg",
    b"it's.jpg",
    b"say \"hi\".jpg",
    b"back\\slash\\\\.jpg",
    b"bang ! fakesink.jpg",
    b"percent_%05d_%s_100%.jpg",
    b"a=b,c;d(e)[f]{g}.jpg",
    b"$HOME`id`$(id).jpg",
    b"line\nbreak\n",
    b"tab\there.jpg",
    b"caf\xc3\xa9 \xe2\x82\xac.jpg",
    b"latin1-caf\xe9.jpg",
    b"\xff\xfe.jpg",
    b"-n.jpg",
    b"#?&+~*.jpg",
];

fn script() -> Job {
    Job::new(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("scripts/gst-location.sh")
            .to_string_lossy(),
    )
}

fn by_script(path: &Path) -> String {
    let outcome = script().arg(path).run().success();
    outcome.stdout.strip_suffix('\n').unwrap().to_owned()
}

/// What a `file://` URI means, by GLib's reading.
fn meaning(location: &str) -> PathBuf {
    if location.starts_with("file://") {
        glib::filename_from_uri(location).unwrap().0
    } else {
        location.into()
    }
}

#[test]
fn every_name_comes_back_byte_for_byte() {
    for name in NAMES {
        let path = Path::new("/data").join(OsStr::from_bytes(name));
        assert_eq!(meaning(&by_script(&path)), path);
        assert_eq!(meaning(&location(&path)), path);
    }
}

#[test]
fn every_byte_comes_back() {
    for byte in 1..=255u8 {
        let path = PathBuf::from(OsStr::from_bytes(&[b'/', b'x', byte, b'y']));
        assert_eq!(meaning(&by_script(&path)), path, "byte {byte}");
    }
}

#[test]
fn gst_launch_opens_the_very_file() {
    let folder = scratch();
    for name in NAMES {
        let path = folder.path().join(OsStr::from_bytes(name));
        std::fs::write(&path, name).unwrap();
        let copy = folder.path().join("copy");
        let found = by_script(&path);
        // A stock source for each of the two forms; what it read tells which file it opened.
        let source = if found.starts_with("file://") {
            "giosrc"
        } else {
            "filesrc"
        };
        let pipeline = launch(source).arg(format!("location={found}"));
        pipeline
            .args("! filesink")
            .arg(format!("location={}", location(&copy)))
            .run()
            .success();
        assert_eq!(std::fs::read(&copy).unwrap(), name, "{found}");
    }
}

#[test]
fn relative_paths_and_uris() {
    let here = std::env::current_dir().unwrap();
    assert_eq!(by_script(Path::new("data/photos")), "data/photos");
    assert_eq!(
        meaning(&by_script(Path::new("my photos"))),
        here.join("my photos")
    );
    assert_eq!(by_script(Path::new("file:///a%20b")), "file:///a%20b");
    assert_eq!(
        meaning(&by_script(Path::new("file:///a b"))),
        here.join("file:///a b"),
        "not a URI, so a path"
    );
    script().arg("").run().failure(&["usage"]);
}
