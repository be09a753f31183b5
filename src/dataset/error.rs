//! What can be wrong with a dataset, before and while its files are read.

use std::io;
use std::path::{Path, PathBuf};

use super::Checks;

/// Why a location is no dataset. Messages name the path (lossily: paths are bytes) and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// Nothing is there.
    #[error("{} does not exist: check the location, and that the disk is mounted", .0.display())]
    Missing(PathBuf),
    /// It is there and cannot be read.
    #[error("cannot read {}: {error}; check its permissions", path.display())]
    Unreadable {
        /// The folder or file that failed; it may lie deep inside the dataset.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A file that is read for what it says about the images, and is no such file.
    #[error("cannot read {}: {error}", path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what can be done.
        #[source]
        error: ReadError,
    },
    /// A folder without images.
    #[error(
        "{} holds no images: point location at a folder with files ending in one of {}",
        .0.display(), super::folder::EXTENSIONS.join(", ")
    )]
    EmptyFolder(PathBuf),
    /// A list without entries.
    #[error("{} lists no images: write one path per line into it", .0.display())]
    EmptyList(PathBuf),
    /// A file that is neither an image nor a list of paths.
    #[error("{} is {what}: give a folder, a UTF-8 text list with one path per line, or an image", path.display())]
    NotADataset {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        what: String,
    },
    /// A file that is not what its format says.
    #[error("{} is no {format}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What it was read as.
        format: &'static str,
        /// Where it stops being one, and what can be done.
        problem: String,
    },
    /// It lists images, and none can be used.
    #[error("{} has no usable image: {problem}", path.display())]
    NothingUsable {
        /// The location.
        path: PathBuf,
        /// Why, and what can be done.
        problem: String,
    },
    /// The checks found something, and that was asked to be an error.
    #[error("{} has faults, and strict=true makes them errors; repair it or set strict=false:\n{checks}", path.display())]
    Strict {
        /// The location.
        path: PathBuf,
        /// All that was found.
        checks: Box<Checks>,
    },
    /// A setting that does not fit.
    #[error("{option}={value:?} cannot be: {remedy}")]
    BadOption {
        /// Which.
        option: &'static str,
        /// What it is.
        value: String,
        /// What it can be.
        remedy: String,
    },
    /// A line of a list of what is to be left out says nothing.
    #[error("line {number} of {} is neither a path nor {{\"uri\": \"file://…\"}}: {reason}; correct or remove it", path.display())]
    BadExclusion {
        /// The list.
        path: PathBuf,
        /// Which of its lines with text, from 1.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// All samples are left out.
    #[error(
        "all {0} samples are left out by the list of exclusions: there is nothing to deliver; shorten the list"
    )]
    AllExcluded(u64),
    /// A location that is no path.
    #[error("location \"{location}\" {reason}: give a path, or file:// with percent escapes")]
    BadLocation {
        /// What was given.
        location: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl DatasetError {
    /// An I/O error about `path` under its proper name.
    pub(super) fn from_io(path: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing(path.to_owned()),
            _ => Self::Unreadable {
                path: path.to_owned(),
                error,
            },
        }
    }
}

/// Why a sample's file could not be read. The caller knows which file; the message says what is wrong with it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no such file, or a link to nowhere.
    #[error("file does not exist: restore it or take it off the list")]
    Missing,
    /// It may not be read.
    #[error("permission denied: make the file readable for this user")]
    PermissionDenied,
    /// A folder stands where a file was expected.
    #[error("is a folder, not a file: list the files in it instead")]
    IsDirectory,
    /// A pipe, socket or device.
    #[error("is not a regular file: copy its contents into one")]
    NotAFile,
    /// It has no bytes.
    #[error("empty file: download it again or remove it from the dataset")]
    Empty,
    /// It has more bytes than an image can have.
    #[error("file of {bytes} bytes is too large (limit {limit}): remove it from the dataset")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// [`MAX_FILE_BYTES`](super::MAX_FILE_BYTES).
        limit: u64,
    },
    /// The index is not below the number of samples.
    #[error("sample {index} does not exist: the dataset has {len}")]
    NoSuchSample {
        /// The index asked for.
        index: u64,
        /// Samples in the dataset.
        len: u64,
    },
    /// Anything else that the system reports.
    #[error("cannot be read: {0}; check the disk or network mount")]
    Io(#[source] io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // A path that leads through a file cannot exist either.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            io::ErrorKind::PermissionDenied => Self::PermissionDenied,
            io::ErrorKind::IsADirectory => Self::IsDirectory,
            _ => Self::Io(error),
        }
    }
}
