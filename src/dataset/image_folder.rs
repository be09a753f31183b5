//! A folder per class, as torchvision's `ImageFolder` reads them.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use super::boxes::Rules;
use super::checks::Finding;
use super::listing::{Listing, Source, shown};
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
        // All folders, also one without images: else the parts of a set would number their classes differently.
        let folders = folder::folders(self.root)?;
        let all = folder::scan(self.root)?;
        let mut listing = Listing::of_folder(self.root, Paths::default());
        let mut classes = Vec::new();
        let mut is_used = vec![false; folders.len()];
        for path in all.iter() {
            match class_of(path).and_then(|name| folders.binary_search_by(|folder| folder[..].cmp(name)).ok())
            {
                Some(class) => {
                    is_used[class] = true;
                    listing.paths.push(path.as_os_str().as_bytes());
                    classes.push(class);
                }
                None => listing
                    .checks
                    .add(Finding::WithoutClass, || path.to_string_lossy().into_owned()),
            }
        }
        listing.class_names = folders.iter().map(|name| shown(name)).collect();
        for (name, _) in listing.class_names.iter().zip(is_used).filter(|(_, used)| !used) {
            listing.checks.add(Finding::EmptyClass, || name.clone());
        }
        classes.truncate(options.share_of(classes.len()));
        listing.paths.truncate(classes.len());

        let mut rules = Rules::new(BoxFormat::CenterNormalized, options, &listing.class_names)?;
        let mut annotations = Annotations::new(BoxFormat::CenterNormalized);
        for ((class, path), index) in classes.iter().zip(listing.paths.iter()).zip(0..) {
            let target = u32::try_from(*class).map(|class| Target { class, bbox: WHOLE });
            rules.begin_image();
            let shown = || path.to_string_lossy().into_owned();
            let target = target
                .ok()
                .and_then(|target| rules.apply(target, None, &mut listing.checks, shown));
            annotations.push(index, None, target);
        }
        listing.annotations = Some(annotations);
        Ok(listing)
    }
}

/// The folder directly below the root that `path` is in, if it is in one.
fn class_of(path: &Path) -> Option<&[u8]> {
    let mut parts = path.components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(class)), Some(_)) => Some(class.as_bytes()),
        _ => None,
    }
}
