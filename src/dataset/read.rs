//! Reading a sample's file, in two steps: what is known of it once it is open decides whether it is read, and when.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::fs::Advice;
use rustix::fs::{FileType, Mode, OFlags};

use super::{DatasetError, FileVersion, ReadError};

/// Largest file that is read, 2 GiB. A header alone decides about pixels, but the file has to be in memory for that.
pub const MAX_FILE_BYTES: u64 = 1 << 31;

/// A file that was opened ahead of being read. One that cannot be opened yet is tried again when it is read.
#[derive(Debug)]
pub struct OpenSample {
    path: PathBuf,
    opened: Result<Opened, ReadError>,
}

#[derive(Debug)]
struct Opened {
    file: File,
    size: u64,
    version: FileVersion,
}

impl OpenSample {
    /// Opens `path`.
    pub fn open(path: PathBuf) -> Self {
        let opened = open(&path);
        Self { path, opened }
    }

    /// An error in place of a file.
    pub(super) fn failed(error: ReadError) -> Self {
        Self {
            path: PathBuf::new(),
            opened: Err(error),
        }
    }

    /// The absolute path; empty where the sample does not exist.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The size at the time of opening, 0 where opening failed: what a limit on memory can count with.
    pub fn size(&self) -> u64 {
        self.opened.as_ref().map_or(0, |opened| opened.size)
    }

    /// Whether it was opened and the file system says that there is nothing in it; known without a read.
    pub fn is_empty(&self) -> bool {
        self.opened.as_ref().is_ok_and(|opened| opened.size == 0)
    }

    /// Which version of the file was opened; `None` where that failed.
    pub fn version(&self) -> Option<FileVersion> {
        self.opened.as_ref().ok().map(|opened| opened.version)
    }

    /// All bytes of the file.
    ///
    /// # Errors
    /// What went wrong on opening or reading, as a [`ReadError`]. A file without bytes is [`ReadError::Empty`].
    pub fn read(self) -> Result<Vec<u8>, ReadError> {
        self.read_version().map(|(bytes, _)| bytes)
    }

    /// All bytes of the file, and which version of it they are: one that changes while it is read has another one
    /// afterwards.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_version(self) -> Result<(Vec<u8>, FileVersion), ReadError> {
        let Opened { file, size, version } = match self.opened {
            Ok(opened) => opened,
            Err(error) if self.path.as_os_str().is_empty() => return Err(error),
            // Opened ahead of time; what counts is the file when it is needed.
            Err(_) => open(&self.path)?,
        };
        let too_large = |bytes| ReadError::TooLarge {
            bytes,
            limit: MAX_FILE_BYTES,
        };
        if size > MAX_FILE_BYTES {
            return Err(too_large(size));
        }
        // All of it at a time, where the kernel reads less ahead. A hint: where a file system does not take it, reading is later.
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::fadvise(&file, 0, None, Advice::WillNeed);
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(size as usize)
            .map_err(|error| ReadError::Io(error.into()))?;
        bytes.resize(size as usize, 0);
        let read = fill(&file, &mut bytes)?;
        bytes.truncate(read);
        // It may have grown since: it is read to its end, within the limit.
        if read as u64 == size && is_larger(&file, size) {
            (&file).take(MAX_FILE_BYTES + 1 - size).read_to_end(&mut bytes)?;
        }
        match bytes.len() as u64 {
            0 => Err(ReadError::Empty),
            len if len > MAX_FILE_BYTES => Err(too_large(len)),
            _ => Ok((bytes, version)),
        }
    }
}

/// All bytes of a file that is read at once for what it says: a list, labels, names. `None` if it is not there.
///
/// # Errors
/// [`DatasetError::BadFile`]: no regular file (a pipe would be waited for, a device has no end), too large, unreadable.
pub(super) fn text(path: &Path) -> Result<Option<Vec<u8>>, DatasetError> {
    match OpenSample::open(path.to_owned()).read() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(ReadError::Missing) => Ok(None),
        Err(ReadError::Empty) => Ok(Some(Vec::new())),
        Err(error) => Err(DatasetError::BadFile {
            path: path.to_owned(),
            error,
        }),
    }
}

/// As [`text`], of a file that must be there.
pub(super) fn existing_text(path: &Path) -> Result<Vec<u8>, DatasetError> {
    text(path)?.ok_or_else(|| DatasetError::Missing(path.to_owned()))
}

/// A file as it was when it was open. It holds nothing open: there may be as many as there are samples.
#[derive(Clone, Debug)]
pub(crate) struct ClosedSample {
    path: PathBuf,
    size: u64,
    version: FileVersion,
}

impl ClosedSample {
    /// What `file` is; `None` if it could not be opened.
    pub fn of(file: &OpenSample) -> Option<Self> {
        let opened = file.opened.as_ref().ok()?;
        Some(Self {
            path: file.path.clone(),
            size: opened.size,
            version: opened.version,
        })
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Which version of the file it is.
    pub fn version(&self) -> FileVersion {
        self.version
    }

    /// All bytes of the file; `None` if it is another one now.
    ///
    /// # Errors
    /// As [`OpenSample::read`].
    pub fn read(&self) -> Result<Option<Vec<u8>>, ReadError> {
        let file = OpenSample::open(self.path.clone());
        if file.version().is_some_and(|version| version != self.version) {
            return Ok(None);
        }
        let bytes = file.read()?;
        Ok((bytes.len() as u64 == self.size).then_some(bytes))
    }
}

/// Reads until `bytes` is full or the file ends. One call in general: where each takes its time, a second one that only finds
/// the end would double it.
fn fill(mut file: &File, bytes: &mut [u8]) -> Result<usize, ReadError> {
    let mut length = 0;
    while length < bytes.len() {
        match file.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(length)
}

/// Whether there is more in the file than `size` bytes. Special file systems say 0 of files that have content.
fn is_larger(file: &File, size: u64) -> bool {
    size == 0 || file.metadata().is_ok_and(|metadata| metadata.len() > size)
}

/// The first bytes of a regular file, at most `limit`; `None` if it cannot be read.
pub(super) fn head(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path).ok()?.file.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Opens a regular file.
fn open(path: &Path) -> Result<Opened, ReadError> {
    let io = |error: rustix::io::Errno| ReadError::from(std::io::Error::from(error));
    // Without NONBLOCK opening a named pipe would wait for a writer, perhaps for ever. Regular files ignore it.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(io)?;
    let stat = rustix::fs::fstat(&file).map_err(io)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(ReadError::IsDirectory),
        _ => return Err(ReadError::NotAFile),
    }
    Ok(Opened {
        file: File::from(file),
        size: stat.st_size as u64,
        version: FileVersion::of(&stat),
    })
}
