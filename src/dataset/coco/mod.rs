//! COCO: one JSON file with images, categories and boxes.

mod entry;
mod parse;
mod text;

pub use self::parse::{Coco, CocoError, parse};

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Component, Path, PathBuf};

use super::boxes::Rules;
use super::checks::{Checks, Finding};
use super::listing::{Listing, Source, shown};
use super::paths::{Paths, as_path};
use super::targets::Annotations;
use super::{BoxFormat, Crowd, DatasetError, Options, Target};

/// A COCO file.
pub(super) struct CocoFile<'a> {
    /// Its absolute path.
    pub json: &'a Path,
}

impl Source for CocoFile<'_> {
    fn list(&self, options: &Options) -> Result<Listing, DatasetError> {
        let failed = |error| DatasetError::from_io(self.json, error);
        let file = File::open(self.json).map_err(failed)?;
        let coco = parse(file).map_err(|error| match error {
            CocoError::Json(error) if error.is_io() => failed(error.into()),
            error => DatasetError::Format {
                path: self.json.to_owned(),
                format: "COCO file",
                problem: format!("{error}; download or export it again"),
            },
        })?;
        if coco.categories.is_empty() && coco.boxes() > 0 {
            return Err(DatasetError::NothingUsable {
                path: self.json.to_owned(),
                problem: "it lists no categories, so that none of its boxes has a class; export it with them"
                    .to_owned(),
            });
        }
        let root = match &options.root {
            Some(root) => root.clone(),
            None => find_root(self.json, &coco),
        };
        arrange(coco, root, options)
    }
}

/// Puts the file's arrays into the dataset's order: that of the file names' bytes, as a folder of the same files has.
fn arrange(mut coco: Coco, root: PathBuf, options: &Options) -> Result<Listing, DatasetError> {
    let mut checks = std::mem::take(&mut coco.checks);
    let (classes, class_names) = number_classes(&coco, &mut checks);
    let mut rules = Rules::new(BoxFormat::CornerPixels, options, &class_names)?;

    let mut order = usable_images(&coco, &mut checks);
    let all: HashSet<i64> = coco.images.iter().map(|image| image.id).collect();
    order.sort_by(|&a, &b| {
        let key = |image: usize| (coco.name(&coco.images[image]), coco.images[image].id);
        key(a).cmp(&key(b))
    });
    order.truncate(options.share_of(order.len()));
    let places: HashMap<i64, usize> = order
        .iter()
        .enumerate()
        .map(|(place, &image)| (coco.images[image].id, place))
        .collect();

    let mut boxes = Vec::with_capacity(coco.boxes.len());
    let mut ids = HashSet::with_capacity(coco.boxes.len());
    for (at, one) in coco.boxes.iter().enumerate() {
        let name = || describe(one.id, one.image);
        if one.id.is_some_and(|id| !ids.insert(id)) {
            checks.add(Finding::DuplicateId, name);
        }
        match places.get(&one.image) {
            Some(&place) => boxes.push((place, at)),
            // Of an image beyond the fraction, or of one that is left out and counted itself.
            None if all.contains(&one.image) => {}
            None => checks.add(Finding::UnknownImage, name),
        }
    }
    drop(ids);
    // Stable, so that the boxes of an image stay in the file's order.
    boxes.sort_by_key(|&(place, _)| place);

    let (mut paths, mut annotations) = (Paths::default(), Annotations::new(BoxFormat::CornerPixels));
    let mut boxes = boxes.into_iter().peekable();
    for (place, &image) in order.iter().enumerate() {
        let image = &coco.images[image];
        let mut targets = Vec::new();
        rules.begin_image();
        while let Some((_, at)) = boxes.next_if(|&(of, _)| of == place) {
            let one = &coco.boxes[at];
            let name = || describe(one.id, one.image);
            if one.crowd && options.crowd == Crowd::Drop {
                checks.add(Finding::CrowdBox, name);
                continue;
            }
            match classes.get(&one.category) {
                Some(&class) => {
                    let target = Target {
                        class,
                        bbox: one.bbox,
                    };
                    targets.extend(rules.apply(target, image.size, &mut checks, name));
                }
                None => checks.add(Finding::UnknownCategory, || {
                    format!("category {} of {}", one.category, name())
                }),
            }
        }
        if targets.is_empty() {
            checks.add(Finding::WithoutBoxes, || shown(coco.name(image)));
        } else if image.size.is_none() {
            checks.add(Finding::WithoutSize, || shown(coco.name(image)));
        }
        paths.push(coco.name(image));
        annotations.push(image.id, image.size, targets);
    }
    Ok(Listing {
        root,
        paths,
        is_found: false,
        annotations: Some(annotations),
        class_names,
        checks,
    })
}

fn describe(id: Option<i64>, image: i64) -> String {
    match id {
        Some(id) => format!("annotation {id} of image {image}"),
        None => format!("an annotation of image {image}"),
    }
}

/// Numbers the categories from 0 in the order of their ids, as pycocotools and Ultralytics do: COCO's 80 of 1 to 90.
fn number_classes(coco: &Coco, checks: &mut Checks) -> (HashMap<i64, u32>, Vec<String>) {
    let mut categories: Vec<_> = coco.categories.iter().collect();
    categories.sort_by_key(|category| category.id);
    let (mut numbers, mut names) = (HashMap::new(), Vec::new());
    let mut next = 0;
    for category in categories {
        // Of two with one id the first in the file counts: the sort is stable.
        match numbers.entry(category.id) {
            Entry::Occupied(_) => checks.add(Finding::DuplicateId, || format!("category {}", category.id)),
            Entry::Vacant(number) => {
                number.insert(next);
                next += 1;
                names.push(category.name.clone().unwrap_or_else(|| category.id.to_string()));
            }
        }
    }
    (numbers, names)
}

/// The images with an id of their own and a name inside the root.
fn usable_images(coco: &Coco, checks: &mut Checks) -> Vec<usize> {
    let mut ids = HashSet::with_capacity(coco.images.len());
    let mut usable = Vec::with_capacity(coco.images.len());
    for (at, image) in coco.images.iter().enumerate() {
        let name = || format!("{} (image {})", shown(coco.name(image)), image.id);
        if !stays_inside(coco.name(image)) {
            checks.add(Finding::OutsideRoot, name);
        } else if !ids.insert(image.id) {
            checks.add(Finding::DuplicateId, name);
        } else {
            usable.push(at);
        }
    }
    usable
}

/// Whether a name leads to a place below the root. By its text: links inside the root may lead anywhere, as in a folder,
/// since it was not the file that put them there.
fn stays_inside(name: &[u8]) -> bool {
    let mut depth = 0_usize;
    for part in as_path(name).components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    depth > 0 && !name.contains(&0)
}

/// Where the images are, if nobody says: the first of the usual places that has one of them.
///
/// For `annotations/instances_train2017.json` that is the file's own folder, then `images/`, `train2017/` and
/// `images/train2017/` there and beside it.
fn find_root(json: &Path, coco: &Coco) -> PathBuf {
    let here = json.parent().unwrap_or(Path::new("/"));
    let stem = json.file_stem().unwrap_or_default().to_string_lossy();
    let split = stem.rsplit_once('_').map_or(&*stem, |(_, split)| split);
    // A few over the whole list, since any file may be missing.
    let step = (coco.images.len() / 8).max(1);
    let names: Vec<_> = coco
        .images
        .iter()
        .step_by(step)
        .map(|image| coco.name(image))
        .filter(|name| stays_inside(name))
        .collect();
    let folders = [Some(here), here.parent()];
    folders
        .into_iter()
        .flatten()
        .flat_map(|folder| {
            let images = folder.join("images");
            [folder.to_owned(), images.join(split), folder.join(split), images]
        })
        .find(|folder| names.iter().any(|name| folder.join(as_path(name)).exists()))
        .unwrap_or_else(|| here.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A small file with something of everything.
    const SEED: &[u8] = br#"{"info":{"x":[1]},"images":[{"id":2,"file_name":"b/c.jpg","width":10,"height":20},
        {"id":1,"file_name":"a.jpg"},{"id":1,"file_name":"../x"}],"annotations":[{"id":1,"image_id":2,"category_id":9,
        "bbox":[1.5,NaN,-3,4e1],"iscrowd":1,"segmentation":[[1,2]]},{"id":1,"image_id":1,"category_id":3,
        "bbox":[0,0,1,1]}],"categories":[{"id":9,"name":"x"},{"id":3,"name":null}]}"#;

    /// Reads and arranges; what comes out must hold together.
    fn used(bytes: &[u8]) -> Option<Listing> {
        let options = Options {
            crowd: Crowd::Keep,
            ..Options::default()
        };
        let listing = arrange(parse(bytes).ok()?, PathBuf::from("/"), &options).unwrap();
        let annotations = listing.annotations.as_ref().unwrap();
        for (path, index) in listing.paths.iter().zip(0..) {
            assert!(stays_inside(
                shown(path.as_os_str().as_encoded_bytes()).as_bytes()
            ));
            for target in annotations.get(index).unwrap().targets {
                assert!((target.class as usize) < listing.class_names.len());
                assert!(target.bbox.iter().all(|number| number.is_finite()));
            }
        }
        assert_eq!(annotations.get(listing.paths.len()), None);
        Some(listing)
    }

    proptest! {
        #[test]
        fn any_file_is_arranged_or_refused(
            edits in proptest::collection::vec((0..SEED.len(), any::<u8>(), 0..3_u8), 0..6),
        ) {
            let mut bytes = SEED.to_vec();
            for (at, byte, kind) in edits {
                let at = at.min(bytes.len().saturating_sub(1));
                match kind {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, b"0123456789-eE.\"[]{},:\\"[usize::from(byte) % 22]),
                    _ => drop(bytes.drain(at..(at + usize::from(byte) % 8).min(bytes.len()))),
                }
            }
            let _ = used(&bytes);
        }
    }

    #[test]
    fn the_seed_itself_is_read() {
        assert_eq!(used(SEED).unwrap().paths.len(), 2);
    }

    #[test]
    fn names_stay_inside_the_root() {
        for inside in [
            "a.jpg",
            "a/b.jpg",
            "./a.jpg",
            "a/../b.jpg",
            "a//b",
            "..a/b",
            "a/..",
        ] {
            assert_eq!(stays_inside(inside.as_bytes()), inside != "a/..", "{inside}");
        }
        for outside in ["", ".", "/", "/a.jpg", "..", "../a.jpg", "a/../../b.jpg", "a\0b"] {
            assert!(!stays_inside(outside.as_bytes()), "{outside}");
        }
    }
}
