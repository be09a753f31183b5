//! A folder per class, as torchvision's `ImageFolder` reads them.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use super::boxes::Rules;
use super::checks::Finding;
use super::listing::{Listing, Source};
use super::paths::Paths;
use super::targets::Annotations;
use super::{BoxFormat, DatasetError, Options, Target, folder};

/// The box of a label that is about the whole image.
const WHOLE: [f32; 4] = [0.5, 0.5, 1.0, 1.0];

/// A folder of folders.
pub(super) struct ImageFolder<'a> {
    /// Its absolute path.
    pub root: &'a Path,
}

impl Source for ImageFolder<'_> {
    /// Each image is one target, around all of it, whose class is the folder directly below the root: number 0 is the
    /// first in byte order. Images of a class may lie deeper.
    fn list(&self, options: &Options) -> Result<Listing, DatasetError> {
        let all = folder::scan(self.root)?;
        let mut listing = Listing::of_paths(self.root, Paths::default());
        let mut classes = Vec::new();
        for path in all.iter() {
            let mut parts = path.components();
            match (parts.next(), parts.next()) {
                (Some(Component::Normal(class)), Some(_)) => {
                    let class = class.to_string_lossy().into_owned();
                    // Byte order of whole paths keeps a folder's images together, though not in the folders' order.
                    if listing.class_names.last() != Some(&class) {
                        listing.class_names.push(class.clone());
                    }
                    listing.paths.push(path.as_os_str().as_bytes());
                    classes.push(class);
                }
                _ => listing
                    .checks
                    .add(Finding::WithoutClass, || path.to_string_lossy().into_owned()),
            }
        }
        listing.class_names.sort();
        listing.class_names.dedup();
        classes.truncate(options.share_of(classes.len()));
        listing.paths.truncate(classes.len());

        let mut rules = Rules::new(BoxFormat::CenterNormalized, options, &listing.class_names)?;
        let mut annotations = Annotations::new(BoxFormat::CenterNormalized);
        for ((class, path), index) in classes.iter().zip(listing.paths.iter()).zip(0..) {
            let number = listing.class_names.binary_search(class).ok();
            let target = number
                .and_then(|class| u32::try_from(class).ok())
                .map(|class| Target { class, bbox: WHOLE });
            rules.begin_image();
            let shown = || path.to_string_lossy().into_owned();
            let target = target.and_then(|target| rules.apply(target, None, &mut listing.checks, shown));
            annotations.push(index, None, target);
        }
        listing.annotations = Some(annotations);
        Ok(listing)
    }
}
