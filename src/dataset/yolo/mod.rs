//! YOLO: images with a text file of labels each, found as Ultralytics finds them.

mod data_yaml;
mod labels;

pub use self::data_yaml::{DataYaml, DataYamlError, parse_data_yaml};
pub use self::labels::{BadLine, Label, parse_labels};

use self::data_yaml::MAX_BYTES;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::boxes::Rules;
use super::checks::Finding;
use super::listing::{Listing, Source, shown};
use super::paths::Paths;
use super::read::{existing_text, text};
use super::targets::Annotations;
use super::{BoxFormat, DatasetError, Options, Split, Target, folder, list};

/// The name of the file that describes a set.
pub(super) const DATA_YAML: &str = "data.yaml";

/// A `data.yaml`, a folder, or a list of images.
pub(super) struct Yolo<'a> {
    /// Its absolute path.
    pub location: &'a Path,
}

impl Source for Yolo<'_> {
    fn list(&self, options: &Options) -> Result<Listing, DatasetError> {
        let mut listing = if self.location.is_dir() {
            let yaml = self.location.join(DATA_YAML);
            if yaml.is_file() {
                described(&yaml, options)?
            } else {
                let root = part_of(self.location, options.split)?;
                let mut listing = Listing::of_folder(&root, folder::scan(&root)?);
                listing.class_names = class_names_beside(self.location)?;
                listing
            }
        } else if is_yaml(self.location) {
            described(self.location, options)?
        } else {
            let root = self.location.parent().unwrap_or(Path::new("/"));
            Listing::of_paths(root, listed(self.location)?)
        };
        let count = usize::try_from(listing.paths.len()).unwrap_or(usize::MAX);
        listing.paths.truncate(options.share_of(count));
        read_labels(self.location, &mut listing, options)?;
        Ok(listing)
    }
}

/// Whether a file is to be read as a `data.yaml`.
pub(super) fn is_yaml(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    ["yaml", "yml"]
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
}

/// The folder of a set's images without a `data.yaml`: `images`, if there is one, and in it the part that is asked for, if
/// it has parts. What is validated with must not be trained with, only because a file is missing.
fn part_of(set: &Path, split: Split) -> Result<PathBuf, DatasetError> {
    let images = set.join("images");
    let images = if images.is_dir() { images } else { set.to_owned() };
    let folders = folder::folders(&images)?;
    let unusable = |problem| {
        Err(DatasetError::NothingUsable {
            path: set.to_owned(),
            problem,
        })
    };
    let (other, name) = match split {
        Split::Train => (Split::Val, "train"),
        Split::Val => (Split::Train, "val"),
    };
    match parts(&folders, split)[..] {
        [part] => Ok(images.join(OsStr::from_bytes(part))),
        [one, other, ..] => unusable(format!(
            "{} has several folders to {name} with, {} and {}; name them in a {DATA_YAML}, or give one of them as location",
            images.display(),
            shown(one),
            shown(other)
        )),
        [] if parts(&folders, other).is_empty() => Ok(images),
        [] => unusable(format!(
            "it has another part and no {}; choose another split, or name its folders in a {DATA_YAML}",
            images.join(name).display()
        )),
    }
}

/// Those of `folders` that a part is called by: one of the names that are in use, else all with a year behind it, as COCO's
/// `train2017`.
fn parts(folders: &[Vec<u8>], split: Split) -> Vec<&[u8]> {
    let names: &[&[u8]] = match split {
        Split::Train => &[b"train"],
        Split::Val => &[b"val", b"valid"],
    };
    let folders = || folders.iter().map(Vec::as_slice);
    if let Some(name) = names.iter().find(|name| folders().any(|folder| folder == **name)) {
        return vec![name];
    }
    let is_year = |year: &[u8]| year.len() == 4 && year.iter().all(u8::is_ascii_digit);
    let is_part = |folder: &&[u8]| {
        let year = |name: &&[u8]| folder.strip_prefix(*name).is_some_and(is_year);
        names.iter().any(year)
    };
    folders().filter(is_part).collect()
}

/// The entries of a list of images.
fn listed(path: &Path) -> Result<Paths, DatasetError> {
    list::parse(path, &existing_text(path)?)
}

/// What the file says, unless it is too large to be read at all.
fn read_data_yaml(path: &Path) -> Result<Result<DataYaml, DataYamlError>, DatasetError> {
    let size = fs::metadata(path).map_or(0, |metadata| metadata.len());
    if size > MAX_BYTES as u64 {
        return Ok(Err(DataYamlError::TooLarge(
            usize::try_from(size).unwrap_or(usize::MAX),
        )));
    }
    Ok(parse_data_yaml(&existing_text(path)?))
}

/// The images of the part of a `data.yaml` that is asked for.
fn described(yaml: &Path, options: &Options) -> Result<Listing, DatasetError> {
    let wrong = |problem: String| DatasetError::Format {
        path: yaml.to_owned(),
        format: "data.yaml",
        problem,
    };
    let data = read_data_yaml(yaml)?.map_err(|error| wrong(format!("{error}; correct it there")))?;
    let beside = yaml.parent().unwrap_or(Path::new("/"));
    let root = match (&options.root, &data.path) {
        (Some(root), _) => root.clone(),
        // A set is often moved, and the file with it: then its path names a folder that is not there.
        (None, Some(path)) => Some(beside.join(path))
            .filter(|root| root.is_dir())
            .unwrap_or(beside.to_owned()),
        (None, None) => beside.to_owned(),
    };
    let (key, entries) = match options.split {
        Split::Train => ("train", &data.train),
        Split::Val => ("val", &data.val),
    };
    if entries.is_empty() {
        return Err(wrong(format!(
            "it has no {key}; choose another split, or add {key}: with a folder of images"
        )));
    }
    let mut paths = Paths::default();
    let mut is_found = true;
    for entry in entries {
        let at = locate(&root, entry);
        if !at.exists() {
            return Err(wrong(format!(
                "of {key}: {entry}, {} is not there; correct it, or set root to the folder of the set",
                at.display()
            )));
        }
        is_found &= at.is_dir();
        let (below, found) = if at.is_dir() {
            (at.as_path(), folder::scan(&at)?)
        } else {
            (at.parent().unwrap_or(&root), listed(&at)?)
        };
        for path in found.iter() {
            let path = below.join(path);
            let path = path.strip_prefix(&root).unwrap_or(&path);
            paths.push(path.as_os_str().as_bytes());
        }
    }
    let mut listing = Listing::of_paths(&root, paths);
    (listing.is_found, listing.class_names) = (is_found, data.names);
    Ok(listing)
}

/// Where an entry of `train` or `val` is. Roboflow writes `../train/images` and means `train/images`.
fn locate(root: &Path, entry: &str) -> PathBuf {
    let at = root.join(entry);
    match entry.strip_prefix("../") {
        Some(inside) if !at.exists() => root.join(inside),
        _ => at,
    }
}

/// The names in the `classes.txt` that annotation tools write beside images or labels, one a line. Blank lines behind the
/// last one are none; one between them is a class without a name.
fn class_names_beside(folder: &Path) -> Result<Vec<String>, DatasetError> {
    for folder in [folder.to_owned(), folder.join("labels")] {
        if let Some(bytes) = text(&folder.join("classes.txt"))? {
            let text = String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes));
            let lines = text.trim_end().lines();
            return Ok(lines.map(|line| line.trim().to_owned()).collect());
        }
    }
    Ok(Vec::new())
}

/// Where the labels of an image are: `labels` for the last `images` in its path, and `.txt` for its ending.
fn label_path(image: &Path) -> PathBuf {
    const IMAGES: &[u8] = b"/images/";
    let bytes = image.as_os_str().as_bytes();
    let last = bytes.windows(IMAGES.len()).rposition(|window| window == IMAGES);
    let path = match last {
        Some(at) => [&bytes[..at], b"/labels/", &bytes[at + IMAGES.len()..]].concat(),
        None => bytes.to_vec(),
    };
    Path::new(OsStr::from_bytes(&path)).with_extension("txt")
}

/// Reads the labels of all images of `listing`.
fn read_labels(location: &Path, listing: &mut Listing, options: &Options) -> Result<(), DatasetError> {
    let names = &listing.class_names;
    let mut rules = Rules::new(BoxFormat::CenterNormalized, options, names)?;
    let mut annotations = Annotations::new(BoxFormat::CenterNormalized);
    let checks = &mut listing.checks;
    let mut is_labelled = false;
    for (image, index) in listing.paths.iter().zip(0..) {
        let path = label_path(&listing.root.join(image));
        // Without a file, an image has no labels; nothing else is silent.
        let bytes = text(&path).unwrap_or_else(|error| {
            checks.add(Finding::Malformed, || error.to_string());
            Some(Vec::new())
        });
        is_labelled |= bytes.is_some();
        let bytes = bytes.unwrap_or_default();
        rules.begin_image();
        let mut targets = Vec::new();
        for label in parse_labels(&bytes) {
            let shown = |line| format!("{}:{line}", path.display());
            match label {
                Ok(label) if !names.is_empty() && label.class as usize >= names.len() => {
                    checks.add(Finding::UnknownCategory, || {
                        format!("class {} in {}", label.class, shown(label.line))
                    });
                }
                Ok(Label { line, class, bbox }) => {
                    targets.extend(rules.apply(Target { class, bbox }, None, checks, || shown(line)));
                }
                Err(bad) => {
                    checks.add(Finding::Malformed, || {
                        format!("{}: {}", shown(bad.line), bad.problem)
                    });
                }
            }
        }
        if targets.is_empty() {
            checks.add(Finding::WithoutBoxes, || image.to_string_lossy().into_owned());
        }
        annotations.push(index, None, targets);
    }
    // Labels in another place are not images without objects. Where the images themselves are, is asked first.
    let image = listing
        .paths
        .iter()
        .map(|path| listing.root.join(path))
        .find(|image| image.exists());
    if let (false, Some(image)) = (is_labelled, image) {
        return Err(DatasetError::NothingUsable {
            path: location.to_owned(),
            problem: format!(
                "none of its {} images has a label file: {} for {} is not there; put them there, or set format=folder for \
                 images alone",
                listing.paths.len(),
                label_path(&image).display(),
                image.display()
            ),
        });
    }
    listing.annotations = Some(annotations);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_where_ultralytics_looks() {
        // ultralytics.data.utils.img2label_paths
        for (image, label) in [
            ("/d/images/train/a.jpg", "/d/labels/train/a.txt"),
            ("/images/images/a.b.jpeg", "/images/labels/a.b.txt"),
            ("/d/pictures/a.png", "/d/pictures/a.txt"),
            ("/d/myimages/a.png", "/d/myimages/a.txt"),
            ("/d/train/images/a", "/d/train/labels/a.txt"),
        ] {
            assert_eq!(label_path(Path::new(image)), Path::new(label));
        }
    }
}
