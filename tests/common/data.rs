//! Files for the tests.

use std::path::{Path, PathBuf};

/// The bundled photographs, in dataset order.
pub fn photos() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/photos");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jpg"));
    files.sort();
    files
}

/// A folder that goes away with the value.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("the temporary folder is writable")
}

/// Copies the first `count` photographs into `folder` under their own names, and returns the copies.
pub fn copy_photos(folder: &Path, count: usize) -> Vec<PathBuf> {
    let copy = |photo: PathBuf| {
        let to = folder.join(photo.file_name().expect("a photograph has a name"));
        std::fs::copy(&photo, &to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
        to
    };
    let copies: Vec<_> = photos().into_iter().take(count).map(copy).collect();
    assert_eq!(copies.len(), count, "there are not that many photographs");
    copies
}

/// A folder with `count` names of one small image: a dataset whose decoding costs nothing.
pub fn tiny_images(folder: &Path, count: usize) {
    let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases/img/a02_size_7x5.jpg");
    let first = folder.join("0000.jpg");
    std::fs::copy(image, &first).unwrap();
    for number in 1..count {
        std::fs::hard_link(&first, folder.join(format!("{number:04}.jpg"))).unwrap();
    }
}

/// An absolute path as `gst-launch-1.0` hands it to a `location` property unchanged: plain characters as they are, anything
/// else as a percent-encoded URI. The same rule as `scripts/gst-location.sh`.
pub fn location(path: &Path) -> String {
    let plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte))
    };
    match path.to_str() {
        Some(text) if plain(text) => text.to_owned(),
        _ => glib::filename_to_uri(path, None)
            .expect("the path is absolute")
            .into(),
    }
}
