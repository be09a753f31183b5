//! What the samples are: where each lies, what an annotation says about it, and its bytes.
//!
//! A format is a file here: [`open`](Dataset::open_with) chooses one, and each gives the same listing.
//!
//! Nothing here looks into an image beyond telling one from a list. Users' files are only ever opened for reading.

mod boxes;
mod checks;
pub mod coco;
mod error;
mod exclude;
mod folder;
mod image_folder;
mod list;
mod listing;
mod location;
mod open;
mod options;
mod paths;
mod read;
mod sizes;
mod targets;
mod version;
pub mod yolo;

pub use self::checks::{Checks, Finding};
pub use self::error::{DatasetError, ReadError};
pub use self::exclude::Exclusions;
pub use self::location::parse_location;
pub use self::options::{Crowd, Format, Options, OutOfImage, Split};
pub(crate) use self::read::ClosedSample;
pub use self::read::{MAX_FILE_BYTES, OpenSample};
pub use self::targets::{Annotation, BoxFormat, Target};
pub use self::version::FileVersion;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::listing::Listing;

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
/// assert_eq!(dataset.open_file(1).read()?, b"x");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Dataset(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    location: PathBuf,
    listing: Listing,
    fingerprint: String,
    /// How many samples were left out.
    excluded: u64,
}

impl Dataset {
    /// Opens what `location` names, as it is: [`open_with`](Self::open_with) the default options.
    ///
    /// # Errors
    /// Those of [`open_with`](Self::open_with).
    pub fn open(location: &Path) -> Result<Self, DatasetError> {
        Self::open_with(location, &Options::default())
    }

    /// Opens what `location` names. With [`Format::Auto`] that is
    ///
    /// - for a folder with a `data.yaml`, or with the folders `images` and `labels`, and for a file ending in `.yaml` or
    ///   `.yml`: [`Format::Yolo`];
    /// - for any other folder: [`Format::Folder`]. A folder per class is never guessed, since so are photographs sorted;
    /// - for a file ending in `.json`: [`Format::Coco`];
    /// - for an image, told by its first bytes or its name: a dataset of one;
    /// - for any other file: [`Format::List`].
    ///
    /// What they are:
    ///
    /// - **Folder**: every file below it that ends as an image does (in any case; formats that are not decoded too, so
    ///   that they are reported), in the byte order of the relative paths. Hidden entries are skipped. Links are
    ///   followed unless they lead back to a folder they lie in. A folder called `x.jpg` is a folder;
    /// - **List**: one path a line, relative to the list's folder, taken literally, in the list's order;
    /// - **Coco**: the `images` in the byte order of their `file_name`s, which are relative to [`Options::root`] or to the
    ///   first of these that holds one of them: the file's folder, `images/SPLIT`, `SPLIT` and `images` in it, the same
    ///   beside it, where SPLIT is what follows the last `_` in the file's name (`instances_train2017.json`). Categories
    ///   are numbered from 0 in the order of their ids. Boxes stay in pixels of the JSON's width and height;
    /// - **Yolo**: the images of a folder (of its `images` if it has one), a list, or the part [`Options::split`] of a
    ///   `data.yaml`. A folder with `train` and `val` (or `valid`) in it, also with a year as in `train2017`, has parts, too.
    ///   Labels are where Ultralytics looks for them: `labels` for the last `images` of the path, and `.txt`; see
    ///   [`yolo::parse_labels`] for a line. An image without such a file has no boxes, but one of them must have one. Classes
    ///   are named by the `data.yaml`, or a `classes.txt` in the folder or its `labels`;
    /// - **ImageFolder**: one target around the whole image, whose class is the folder directly below the location. A folder
    ///   without images has a number, too.
    ///
    /// Then it is checked; see [`Checks`].
    ///
    /// # Errors
    /// [`DatasetError`], naming the path: missing, unreadable (any folder on the way down), without samples, a file that is
    /// not what its format says, nothing that can be used, or, with [`Options::strict`], anything that the checks find.
    pub fn open_with(location: &Path, options: &Options) -> Result<Self, DatasetError> {
        Self::open_without(location, options, &Exclusions::default())
    }

    /// Opens what `location` names without the samples in `exclusions`: a dataset of its own, with indices and a fingerprint
    /// of its own. Their files are not missed by the checks; what is wrong with their annotations still counts.
    ///
    /// # Errors
    /// Those of [`open_with`](Self::open_with), and [`DatasetError::AllExcluded`] if nothing is left.
    pub fn open_without(
        location: &Path,
        options: &Options,
        exclusions: &Exclusions,
    ) -> Result<Self, DatasetError> {
        let (listing, excluded) = open::open(location, options, exclusions)?;
        let fingerprint = open::fingerprint(&listing);
        Ok(Self(Arc::new(Inner {
            location: location.to_owned(),
            listing,
            fingerprint,
            excluded,
        })))
    }

    /// How many samples [`open_without`](Self::open_without) left out.
    pub fn excluded(&self) -> u64 {
        self.0.excluded
    }

    /// Number of samples, at least 1.
    pub fn len(&self) -> u64 {
        self.0.listing.paths.len()
    }

    /// Never: a dataset without samples cannot be opened.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The absolute path of sample `index`, or `None` at or beyond [`len`](Self::len).
    pub fn path(&self, index: u64) -> Option<PathBuf> {
        Some(self.0.listing.root.join(self.0.listing.paths.get(index)?))
    }

    /// The `file://` URI of sample `index`, with every byte that is not plain ASCII escaped.
    pub fn uri(&self, index: u64) -> Option<String> {
        Some(location::to_uri(&self.path(index)?))
    }

    /// What the dataset says about sample `index`; `None` for a dataset without targets, and at or beyond
    /// [`len`](Self::len).
    pub fn annotation(&self, index: u64) -> Option<Annotation<'_>> {
        self.0.listing.annotations.as_ref()?.get(index)
    }

    /// The name of each class, by its number; empty where the dataset has no targets or does not name them.
    pub fn class_names(&self) -> &[String] {
        &self.0.listing.class_names
    }

    /// What was found wrong with it.
    pub fn checks(&self) -> &Checks {
        &self.0.listing.checks
    }

    /// SHA-256, as 64 hexadecimal digits, over the relative paths in their order, each preceded by its length as 8
    /// little-endian bytes; then, where there are targets, over the annotations as they are used and the classes' names.
    /// Moving the dataset does not change it; adding, removing or renaming a file does, and so does changing a box.
    pub fn fingerprint(&self) -> &str {
        &self.0.fingerprint
    }

    /// The location as it was given.
    pub fn location(&self) -> &Path {
        &self.0.location
    }

    /// Opens the file of sample `index`. Any error comes out of [`OpenSample::read`].
    pub fn open_file(&self, index: u64) -> OpenSample {
        match self.path(index) {
            Some(path) => OpenSample::open(path),
            None => OpenSample::failed(ReadError::NoSuchSample {
                index,
                len: self.len(),
            }),
        }
    }
}

/// A digest in lower case.
fn hexadecimal(hash: sha2::Sha256) -> String {
    use sha2::Digest;
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
