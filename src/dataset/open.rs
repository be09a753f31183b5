//! From a location to a dataset: what it is read as, and the checks that follow.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::checks::Finding;
use super::coco::CocoFile;
use super::image_folder::ImageFolder;
use super::listing::{Listing, Source};
use super::paths::Paths;
use super::yolo::{self, Yolo};
use super::{
    DatasetError, Exclusions, Format, MAX_FILE_BYTES, Options, OutOfImage, folder, hexadecimal, list,
};
use crate::decode::{Sniffed, sniff};

/// What Ultralytics calls the only class.
const SINGLE_CLASS: &str = "item";

/// Lists what `location` names, leaves out what is excluded and checks the rest. Also says how many were left out.
pub(super) fn open(
    location: &Path,
    options: &Options,
    exclusions: &Exclusions,
) -> Result<(Listing, u64), DatasetError> {
    options.check()?;
    let failed = |error| DatasetError::from_io(location, error);
    let absolute = std::path::absolute(location).map_err(failed)?;
    let mut options = options.clone();
    if let Some(root) = &mut options.root {
        *root = std::path::absolute(&*root).map_err(|error| DatasetError::from_io(root, error))?;
    }
    let metadata = fs::metadata(&absolute).map_err(failed)?;
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(not_a_dataset(location, "a pipe, socket or device"));
    }
    let source = source(location, &absolute, &metadata, options.format)?;
    let mut listing = source.list(&options)?;
    if options.single_class && listing.annotations.is_some() {
        listing.class_names = vec![SINGLE_CLASS.to_owned()];
    }
    let all = listing.paths.len();
    if !exclusions.is_empty() {
        listing = listing.filter(|path| !exclusions.contains(path));
    }
    let left = listing.paths.len();
    if left == 0 && all > 0 {
        return Err(DatasetError::AllExcluded(all));
    }
    // Before the checks: what is known to be missing is not missed, and costs no look.
    listing.check_files();
    listing.check_sizes(options.strict);
    check(location, &mut listing, &options)?;
    Ok((listing, all - left))
}

fn not_a_dataset(location: &Path, what: impl Into<String>) -> DatasetError {
    DatasetError::NotADataset {
        path: location.to_owned(),
        what: what.into(),
    }
}

/// How `absolute` is read.
fn source<'a>(
    location: &Path,
    absolute: &'a Path,
    metadata: &fs::Metadata,
    format: Format,
) -> Result<Box<dyn Source + 'a>, DatasetError> {
    let is_folder = metadata.is_dir();
    let format = match format {
        Format::Auto => guess(absolute, is_folder),
        format => format,
    };
    let refused = |remedy: &str| {
        Err(DatasetError::BadOption {
            option: "format",
            value: format!("{format:?}").to_lowercase(),
            remedy: format!(
                "{} is a {}; {remedy}",
                location.display(),
                if is_folder { "folder" } else { "file" }
            ),
        })
    };
    Ok(match format {
        Format::Auto | Format::Folder if is_folder => Box::new(Images { root: absolute }),
        Format::Auto | Format::Folder | Format::List if !is_folder => {
            if metadata.len() > MAX_FILE_BYTES {
                let what = format!(
                    "a file of {} bytes, too large for an image or a list",
                    metadata.len()
                );
                return Err(not_a_dataset(location, what));
            }
            Box::new(OneFile {
                path: absolute,
                format,
            })
        }
        Format::Coco if !is_folder => Box::new(CocoFile { json: absolute }),
        Format::Coco => return refused("give the JSON file, and its images as root"),
        Format::Yolo => Box::new(Yolo { location: absolute }),
        Format::ImageFolder if is_folder => Box::new(ImageFolder { root: absolute }),
        Format::ImageFolder => return refused("give the folder that holds a folder for each class"),
        _ => return refused("give a text file with one path per line, or set format=folder"),
    })
}

/// What a location is, if nobody says; see [`Dataset::open_with`](super::Dataset::open_with).
fn guess(absolute: &Path, is_folder: bool) -> Format {
    let is_yolo = || {
        absolute.join(yolo::DATA_YAML).is_file()
            || (absolute.join("images").is_dir() && absolute.join("labels").is_dir())
    };
    let extension = absolute.extension().unwrap_or_default();
    match is_folder {
        true if is_yolo() => Format::Yolo,
        true => Format::Folder,
        false if extension.eq_ignore_ascii_case("json") => Format::Coco,
        false if yolo::is_yaml(absolute) => Format::Yolo,
        false => Format::Auto,
    }
}

/// Counts and refuses what is the same for every format.
fn check(location: &Path, listing: &mut Listing, options: &Options) -> Result<(), DatasetError> {
    let checks = &mut listing.checks;
    checks.images = listing.paths.len();
    checks.boxes = listing
        .annotations
        .as_ref()
        .map_or(0, |annotations| annotations.boxes());
    checks.out_of_image_is_kept = options.out_of_image == OutOfImage::Keep;
    if options.strict && !checks.is_clean() {
        return Err(DatasetError::Strict {
            path: location.to_owned(),
            checks: Box::new(checks.clone()),
        });
    }
    if listing.annotations.is_none() {
        return match options.classes.as_slice() {
            [] => Ok(()),
            classes => Err(DatasetError::BadOption {
                option: "classes",
                value: classes.join(","),
                remedy: format!(
                    "{} has no boxes to choose from; set format to what it is",
                    location.display()
                ),
            }),
        };
    }
    let unusable = |problem| {
        Err(DatasetError::NothingUsable {
            path: location.to_owned(),
            problem,
        })
    };
    if checks.images == 0 {
        return unusable(format!("correct its entries\n{checks}"));
    }
    if checks.count(Finding::MissingFile) == checks.images {
        let root = listing.root.display();
        let is_windows = |path: &Path| path.as_os_str().as_bytes().contains(&b'\\');
        let hint = match listing.paths.get(0).is_some_and(is_windows) {
            true => ", and write / for the backslashes in their names",
            false => "",
        };
        return unusable(format!(
            "none of its files is below {root}: set root to their folder{hint}\n{checks}"
        ));
    }
    // Boxes there were, and none is left. What is malformed may have been one: a file of captions has annotations, too.
    let had_boxes = checks.found().any(|finding| {
        matches!(
            finding,
            Finding::Malformed
                | Finding::UnknownImage
                | Finding::UnknownCategory
                | Finding::NotFinite
                | Finding::NegativeBox
                | Finding::EmptyBox
                | Finding::OutOfImage
                | Finding::CrowdBox
                | Finding::OtherClass
        )
    });
    if checks.boxes == 0 && had_boxes {
        return unusable(format!(
            "none of its boxes is left; correct them, or choose other classes\n{checks}"
        ));
    }
    Ok(())
}

/// SHA-256 over all that is listed. Without targets only the paths count.
pub(super) fn fingerprint(listing: &Listing) -> String {
    let mut hash = Sha256::new();
    listing.paths.hash(&mut hash);
    if let Some(annotations) = &listing.annotations {
        annotations.hash(&mut hash);
        for name in &listing.class_names {
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name);
        }
    }
    hexadecimal(hash)
}

/// A folder of images.
struct Images<'a> {
    root: &'a Path,
}

impl Source for Images<'_> {
    fn list(&self, options: &Options) -> Result<Listing, DatasetError> {
        Ok(Listing::of_folder(
            self.root,
            share(folder::scan(self.root)?, options),
        ))
    }
}

/// One image or a list.
struct OneFile<'a> {
    path: &'a Path,
    format: Format,
}

impl Source for OneFile<'_> {
    fn list(&self, options: &Options) -> Result<Listing, DatasetError> {
        let paths = self.paths()?;
        let root = self.path.parent().unwrap_or(Path::new("/"));
        Ok(Listing::of_paths(root, share(paths, options)))
    }
}

impl OneFile<'_> {
    fn paths(&self) -> Result<Paths, DatasetError> {
        let path = self.path;
        let failed = |error| DatasetError::from_io(path, error);
        // A damaged or foreign image is a sample that fails, with its index and reason, rather than a strange list.
        let bytes = if folder::has_image_extension(path) && self.format != Format::List {
            None
        } else {
            Some(fs::read(path).map_err(failed)?)
        };
        match bytes.as_deref().map(|bytes| (sniff(bytes), bytes)) {
            Some((Sniffed::Unknown | Sniffed::Empty, _)) if self.format == Format::Folder => {
                Err(not_a_dataset(path, "no image, and format=folder"))
            }
            Some((Sniffed::Unknown | Sniffed::Empty, bytes)) => list::parse(path, bytes),
            Some((Sniffed::Unsupported(what @ ("HTML or XML" | "git-lfs pointer")), _)) => {
                Err(not_a_dataset(path, format!("a file of type {what}")))
            }
            Some((_, bytes)) if self.format == Format::List => list::parse(path, bytes),
            None | Some(_) => {
                let mut paths = Paths::default();
                paths.push(path.file_name().unwrap_or_default().as_bytes());
                Ok(paths)
            }
        }
    }
}

/// The part of the paths that is wanted.
fn share(mut paths: Paths, options: &Options) -> Paths {
    let count = usize::try_from(paths.len()).unwrap_or(usize::MAX);
    paths.truncate(options.share_of(count));
    paths
}
