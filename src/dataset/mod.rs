//! What the samples are: a folder, a list or one image; where each lies, and its bytes.
//!
//! Nothing here looks into an image beyond telling one from a list. Users' files are only ever opened for reading.

mod error;
mod exclude;
mod folder;
mod list;
mod location;
mod paths;
mod read;
mod version;

pub use self::error::{DatasetError, ReadError};
pub use self::exclude::Exclusions;
pub use self::location::parse_location;
pub use self::read::{MAX_FILE_BYTES, OpenSample};
pub use self::version::FileVersion;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::paths::Paths;
use crate::decode::{Sniffed, sniff};

/// The samples of a dataset in their order. Cloning is cheap; all clones share one list.
///
/// ```
/// use epochfeed::dataset::Dataset;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("b.jpg"), "x")?;
/// # std::fs::write(folder.path().join("a 1.png"), "y")?;
/// let dataset = Dataset::open(folder.path())?;
/// assert_eq!(dataset.len(), 2);
/// assert!(dataset.uri(0).is_some_and(|uri| uri.ends_with("/a%201.png")));
/// assert_eq!(dataset.open_ahead(1).read()?, b"x");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Dataset(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    location: PathBuf,
    /// What the paths are relative to; absolute.
    root: PathBuf,
    paths: Paths,
    fingerprint: String,
    /// How many samples were left out.
    excluded: u64,
}

impl Dataset {
    /// Opens what `location` names:
    ///
    /// - a folder: every file below it that ends as an image does (in any case; formats that are not decoded too, so
    ///   that they are reported), in the byte order of the relative paths. Hidden entries are skipped. Links are
    ///   followed unless they lead back to a folder they lie in. A folder called `x.jpg` is a folder;
    /// - an image, told by its first bytes or its name: a dataset of one;
    /// - any other file: a text list, one path a line, relative to the list's folder, taken literally.
    ///
    /// # Errors
    /// [`DatasetError`], naming the path: missing, unreadable (any folder on the way down), without samples, or a file
    /// that is no list.
    pub fn open(location: &Path) -> Result<Self, DatasetError> {
        let failed = |error| DatasetError::from_io(location, error);
        let absolute = std::path::absolute(location).map_err(failed)?;
        let metadata = fs::metadata(&absolute).map_err(failed)?;
        let (root, paths) = if metadata.is_dir() {
            let paths = folder::scan(&absolute)?;
            (absolute, paths)
        } else if metadata.len() > MAX_FILE_BYTES {
            let what = format!(
                "a file of {} bytes, too large for an image or a list",
                metadata.len()
            );
            return Err(DatasetError::NotADataset {
                path: location.to_owned(),
                what,
            });
        } else if metadata.is_file() {
            let paths = from_file(&absolute)?;
            let root = absolute.parent().unwrap_or(Path::new("/")).to_owned();
            (root, paths)
        } else {
            let what = "a pipe, socket or device".to_owned();
            return Err(DatasetError::NotADataset {
                path: location.to_owned(),
                what,
            });
        };
        let fingerprint = paths.fingerprint();
        Ok(Self(Arc::new(Inner {
            location: location.to_owned(),
            root,
            paths,
            fingerprint,
            excluded: 0,
        })))
    }

    /// The samples that are not in `exclusions`, in their order: a dataset of its own, with a fingerprint of its own.
    ///
    /// # Errors
    /// [`DatasetError::AllExcluded`] if there are none.
    pub fn without(&self, exclusions: &Exclusions) -> Result<Self, DatasetError> {
        let mut paths = Paths::default();
        for path in (0..self.len()).filter_map(|index| self.0.paths.get(index)) {
            if !exclusions.contains(&self.0.root.join(path)) {
                paths.push(path.as_os_str().as_bytes());
            }
        }
        match paths.len() {
            0 => Err(DatasetError::AllExcluded(self.len())),
            len if len == self.len() => Ok(self.clone()),
            len => Ok(Self(Arc::new(Inner {
                location: self.0.location.clone(),
                root: self.0.root.clone(),
                fingerprint: paths.fingerprint(),
                excluded: self.excluded() + self.len() - len,
                paths,
            }))),
        }
    }

    /// How many samples [`without`](Self::without) left out.
    pub fn excluded(&self) -> u64 {
        self.0.excluded
    }

    /// Number of samples, at least 1.
    pub fn len(&self) -> u64 {
        self.0.paths.len()
    }

    /// Never: a dataset without samples cannot be opened.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The absolute path of sample `index`, or `None` at or beyond [`len`](Self::len).
    pub fn path(&self, index: u64) -> Option<PathBuf> {
        Some(self.0.root.join(self.0.paths.get(index)?))
    }

    /// The `file://` URI of sample `index`, with every byte that is not plain ASCII escaped.
    pub fn uri(&self, index: u64) -> Option<String> {
        Some(location::to_uri(&self.path(index)?))
    }

    /// SHA-256, as 64 hexadecimal digits, over the relative paths in their order, each preceded by its length as 8
    /// little-endian bytes. Moving the dataset does not change it; adding, removing or renaming a file does.
    pub fn fingerprint(&self) -> &str {
        &self.0.fingerprint
    }

    /// The location as it was given.
    pub fn location(&self) -> &Path {
        &self.0.location
    }

    /// Opens the file of sample `index` and tells the kernel to read it. Any error comes out of [`OpenSample::read`].
    pub fn open_ahead(&self, index: u64) -> OpenSample {
        match self.path(index) {
            Some(path) => OpenSample::open(path),
            None => OpenSample::failed(ReadError::NoSuchSample {
                index,
                len: self.len(),
            }),
        }
    }
}

/// The samples of a location that is a file.
fn from_file(path: &Path) -> Result<Paths, DatasetError> {
    let failed = |error| DatasetError::from_io(path, error);
    // A damaged or foreign image is a sample that fails, with its index and reason, rather than a strange list.
    let bytes = if folder::has_image_extension(path) {
        None
    } else {
        Some(fs::read(path).map_err(failed)?)
    };
    match bytes.as_deref().map(|bytes| (sniff(bytes), bytes)) {
        Some((Sniffed::Unknown | Sniffed::Empty, bytes)) => list::parse(path, bytes),
        Some((Sniffed::Unsupported(what @ ("HTML or XML" | "git-lfs pointer")), _)) => {
            Err(DatasetError::NotADataset {
                path: path.to_owned(),
                what: format!("a file of type {what}"),
            })
        }
        None | Some(_) => {
            let mut paths = Paths::default();
            paths.push(path.file_name().unwrap_or_default().as_bytes());
            Ok(paths)
        }
    }
}
