//! Opening folders, lists and images, and reading their files, with all the names and mishaps that real sets have.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use epochfeed::dataset::{Dataset, DatasetError, ReadError, parse_location};
use tempfile::TempDir;

/// A folder with the given files; their contents are their names.
fn folder(names: &[&[u8]]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        let path = folder.path().join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    folder
}

/// The relative paths of a dataset, as bytes.
fn relative(dataset: &Dataset, root: &Path) -> Vec<Vec<u8>> {
    (0..dataset.len())
        .map(|i| {
            dataset
                .path(i)
                .unwrap()
                .strip_prefix(root)
                .unwrap()
                .as_os_str()
                .as_bytes()
                .to_vec()
        })
        .collect()
}

#[test]
fn a_folder_is_listed_in_the_byte_order_of_its_relative_paths() {
    let names: [&[u8]; 12] = [
        b"b.jpg",
        b"a/x.png",
        b"a-b/x.png",
        b"B.JPG",
        b"a.jpeg",
        b"caf\xe9.jpg",
        b"caf\xc3\xa9.webp",
        b"with \"quotes\".jpg",
        b"line\nbreak.bmp",
        b"%05d_%s.JPEG",
        b"deep/er/still/photo.jfif",
        b"scan.TIFF",
    ];
    let folder = folder(&names);
    for skipped in [
        "readme.txt",
        ".hidden.jpg",
        "._b.jpg",
        ".git/x.jpg",
        "noextension",
        "jpg",
        "x.jpg.part",
    ] {
        let path = folder.path().join(skipped);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "no").unwrap();
    }
    // A folder that looks like an image is searched.
    fs::create_dir(folder.path().join("x.jpg")).unwrap();
    fs::write(folder.path().join("x.jpg/inside.png"), "x.jpg/inside.png").unwrap();

    let dataset = Dataset::open(folder.path()).unwrap();
    let mut expected: Vec<Vec<u8>> = names.iter().map(|name| name.to_vec()).collect();
    expected.push(b"x.jpg/inside.png".to_vec());
    expected.sort();
    assert_eq!(relative(&dataset, folder.path()), expected);
    for (index, name) in expected.iter().enumerate() {
        let index = index as u64;
        assert_eq!(&dataset.open_file(index).read().unwrap(), name);
        let uri = dataset.uri(index).unwrap();
        assert!(uri.starts_with("file:///") && uri.is_ascii());
        assert_eq!(parse_location(&uri).unwrap(), dataset.path(index).unwrap());
    }
    assert_eq!(dataset.path(dataset.len()), None);
    assert_eq!(dataset.uri(u64::MAX), None);
    assert!(!dataset.is_empty());
}

#[test]
fn links_are_followed_and_loops_end() {
    let outside = folder(&[b"far.jpg"]);
    let folder = folder(&[b"sub/near.jpg"]);
    let root = folder.path();
    symlink(root, root.join("sub/up")).unwrap();
    symlink(".", root.join("self")).unwrap();
    symlink("round.jpg", root.join("round.jpg")).unwrap();
    symlink(outside.path(), root.join("other")).unwrap();
    symlink("sub", root.join("twice")).unwrap();
    symlink("nowhere", root.join("gone.jpg")).unwrap();
    symlink("nowhere", root.join("gone.txt")).unwrap();
    let dataset = Dataset::open(root).unwrap();
    let expected: [&[u8]; 5] = [
        b"gone.jpg",
        b"other/far.jpg",
        b"round.jpg",
        b"sub/near.jpg",
        b"twice/near.jpg",
    ];
    assert_eq!(relative(&dataset, root), expected);
    assert!(matches!(dataset.open_file(0).read(), Err(ReadError::Missing)));
    assert!(matches!(dataset.open_file(2).read(), Err(ReadError::Io(_))));
}

#[test]
fn a_list_is_literal_and_relative_to_its_folder() {
    let folder = folder(&[b"img/a.jpg", b"img/*.jpg", b"img/caf\xe9.jpg", b"%05d.jpg"]);
    let absolute = folder.path().join("img/a.jpg");
    let mut text = b"\xef\xbb\xbfimg/*.jpg\r\n\r\n%05d.jpg\r\nimg/caf\xe9.jpg\r\nimg/a.jpg\r\n../".to_vec();
    text.extend_from_slice(folder.path().file_name().unwrap().as_bytes());
    text.extend_from_slice(b"/img/a.jpg\r\nmissing.jpg\r\nimg\r\n");
    text.extend_from_slice(absolute.as_os_str().as_bytes());
    fs::write(folder.path().join("train.txt"), text).unwrap();
    let dataset = Dataset::open(&folder.path().join("train.txt")).unwrap();
    assert_eq!(dataset.len(), 8);
    let read = |index| dataset.open_file(index).read();
    assert_eq!(read(0).unwrap(), b"img/*.jpg");
    assert_eq!(read(1).unwrap(), b"%05d.jpg");
    assert_eq!(read(2).unwrap(), b"img/caf\xe9.jpg");
    assert_eq!(read(3).unwrap(), b"img/a.jpg");
    assert_eq!(read(4).unwrap(), b"img/a.jpg");
    assert!(matches!(read(5), Err(ReadError::Missing)));
    assert!(matches!(read(6), Err(ReadError::IsDirectory)));
    assert_eq!(read(7).unwrap(), b"img/a.jpg");
    assert!(matches!(
        read(8),
        Err(ReadError::NoSuchSample { index: 8, len: 8 })
    ));
}

#[test]
fn one_image_is_told_by_content_or_by_name() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases/img");
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let jpeg = fs::read(cases.join("a04_gray.jpg")).unwrap();
    let tiff = fs::read(cases.join("a10_tiff_named.jpg")).unwrap();
    for path in [
        put("photo", &jpeg),
        put("photo.txt", &jpeg),
        put("scan.dat", &tiff),
        put("broken.jpg", b"not an image"),
        put("zero.PNG", b""),
    ] {
        let dataset = Dataset::open(&path).unwrap();
        assert_eq!((dataset.len(), dataset.path(0)), (1, Some(path)));
    }
    let zero = Dataset::open(&folder.path().join("zero.PNG")).unwrap();
    assert!(matches!(zero.open_file(0).read(), Err(ReadError::Empty)));
    for (path, reason) in [
        (put("empty.txt", b""), "lists no images"),
        (put("page.txt", b"<!doctype html><p>404"), "HTML"),
        (
            put("pointer.txt", b"version https://git-lfs.github.com/spec/v1\n"),
            "git-lfs",
        ),
        (
            put("program", b"\x7fELF\x02\x01\x01\0"),
            "neither a known image nor text",
        ),
    ] {
        let message = Dataset::open(&path).unwrap_err().to_string();
        assert!(
            message.contains(reason) && message.contains(path.to_str().unwrap()),
            "{message}"
        );
    }
}

#[test]
fn what_cannot_be_opened_is_named() {
    let folder = folder(&[b"notes.txt"]);
    assert!(
        matches!(Dataset::open(folder.path()), Err(DatasetError::EmptyFolder(path)) if path == folder.path())
    );
    let missing = folder.path().join("no such folder");
    assert!(matches!(Dataset::open(&missing), Err(DatasetError::Missing(path)) if path == missing));
    let message = Dataset::open(&missing).unwrap_err().to_string();
    assert!(message.contains("no such folder does not exist"), "{message}");
    let message = Dataset::open(folder.path()).unwrap_err().to_string();
    assert!(
        message.contains("holds no images") && message.contains("webp"),
        "{message}"
    );
}

/// Whether permissions bind this process; they do not bind root.
fn may_read(path: &Path) -> bool {
    fs::File::open(path).is_ok()
}

#[test]
fn permissions_are_reported() {
    let folder = folder(&[b"a.jpg", b"locked/b.jpg"]);
    let (file, locked) = (folder.path().join("a.jpg"), folder.path().join("locked"));
    let dataset = Dataset::open(folder.path()).unwrap();
    let set = |path: &PathBuf, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    set(&file, 0);
    set(&locked, 0);
    if may_read(&file) {
        eprintln!("skipped: this user may read everything");
    } else {
        assert!(matches!(
            dataset.open_file(0).read(),
            Err(ReadError::PermissionDenied)
        ));
        let error = Dataset::open(folder.path()).unwrap_err();
        assert!(
            matches!(&error, DatasetError::Unreadable { path, .. } if *path == locked),
            "{error}"
        );
    }
    set(&locked, 0o755);
}

#[test]
fn a_named_pipe_does_not_hang_anyone() {
    let folder = folder(&[b"a.jpg"]);
    let pipe = folder.path().join("pipe.jpg");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        0o644.into(),
        0,
    )
    .unwrap();
    assert_eq!(Dataset::open(folder.path()).unwrap().len(), 1, "no sample");
    assert!(matches!(
        Dataset::open(&pipe),
        Err(DatasetError::NotADataset { .. })
    ));
    fs::write(folder.path().join("list.txt"), "pipe.jpg\n").unwrap();
    let dataset = Dataset::open(&folder.path().join("list.txt")).unwrap();
    // In a thread of its own, so that a regression fails here instead of hanging the run.
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(dataset.open_file(0).read()));
    let result = receiver
        .recv_timeout(Duration::from_secs(20))
        .expect("opening a pipe waits for a writer");
    assert!(matches!(result, Err(ReadError::NotAFile)));
}

#[test]
fn a_file_that_shrinks_or_vanishes_between_opening_and_reading() {
    let folder = folder(&[b"a.jpg", b"b.jpg"]);
    let dataset = Dataset::open(folder.path()).unwrap();
    let (first, second) = (dataset.open_file(0), dataset.open_file(1));
    assert_eq!(
        (first.size(), first.path()),
        (5, folder.path().join("a.jpg").as_path())
    );
    fs::remove_file(folder.path().join("a.jpg")).unwrap();
    fs::write(folder.path().join("b.jpg"), "").unwrap();
    assert_eq!(first.read().unwrap(), b"a.jpg", "what is open can be read");
    assert!(matches!(second.read(), Err(ReadError::Empty)));
    assert!(matches!(dataset.open_file(0).read(), Err(ReadError::Missing)));
}

#[test]
fn the_fingerprint_is_about_names_and_not_about_places() {
    let (one, two, three) = (
        folder(&[b"a.jpg", b"b.jpg"]),
        folder(&[b"b.jpg", b"a.jpg"]),
        folder(&[b"a.jpg", b"c.jpg"]),
    );
    let print = |folder: &TempDir| Dataset::open(folder.path()).unwrap().fingerprint().to_owned();
    assert_eq!(print(&one), print(&two));
    assert_ne!(print(&one), print(&three));
    fs::write(one.path().join("list.txt"), "b.jpg\na.jpg\n").unwrap();
    let list = Dataset::open(&one.path().join("list.txt")).unwrap();
    assert_ne!(
        list.fingerprint(),
        print(&one),
        "another order is another dataset"
    );
    assert_eq!(list.fingerprint().len(), 64);
}

#[test]
fn clones_are_shared_between_threads() {
    let folder = folder(&[b"a.jpg"]);
    let dataset = Dataset::open(folder.path()).unwrap();
    let clone = dataset.clone();
    let path = std::thread::spawn(move || clone.path(0)).join().unwrap();
    assert_eq!(path, dataset.path(0));
}
