//! What every format gives: the trait that they share, and the checks that are the same for all.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::checks::{Checks, Finding};
use super::paths::Paths;
use super::targets::Annotations;
use super::{DatasetError, Options};

/// A way to say what the samples are.
pub(super) trait Source {
    /// Lists them as `options` say.
    fn list(&self, options: &Options) -> Result<Listing, DatasetError>;
}

/// What a source lists.
#[derive(Debug)]
pub(super) struct Listing {
    /// What the paths are relative to.
    pub root: PathBuf,
    pub paths: Paths,
    /// The paths were found in folders rather than written somewhere: nobody has to look whether they are there.
    pub is_found: bool,
    /// For each of the paths; `None` for a format without targets.
    pub annotations: Option<Annotations>,
    pub class_names: Vec<String>,
    pub checks: Checks,
}

impl Listing {
    /// The paths that a search of the folder `root` found, without targets.
    pub fn of_folder(root: &Path, paths: Paths) -> Self {
        Self {
            is_found: true,
            ..Self::of_paths(root, paths)
        }
    }

    /// Paths below `root` without targets.
    pub fn of_paths(root: &Path, paths: Paths) -> Self {
        Self {
            root: root.to_owned(),
            paths,
            is_found: false,
            annotations: None,
            class_names: Vec::new(),
            checks: Checks::default(),
        }
    }

    /// The samples whose absolute path is `wanted`, with what is said about them. The classes, and what was found so far,
    /// stay those of all.
    pub fn filter(&self, wanted: impl Fn(&Path) -> bool) -> Self {
        let mut paths = Paths::default();
        let mut annotations = self.annotations.as_ref().map(Annotations::empty_like);
        for (index, path) in (0..).zip(self.paths.iter()) {
            if !wanted(&self.root.join(path)) {
                continue;
            }
            paths.push(path.as_os_str().as_bytes());
            let of = self.annotations.as_ref().and_then(|all| all.get(index));
            if let (Some(annotations), Some(of)) = (&mut annotations, of) {
                annotations.push(of.image_id, of.size, of.targets.iter().copied());
            }
        }
        Self {
            root: self.root.clone(),
            paths,
            is_found: self.is_found,
            annotations,
            class_names: self.class_names.clone(),
            checks: self.checks.clone(),
        }
    }

    /// Counts the files that are not there. They stay in the listing: what is done about them is for the decoder to
    /// say (`on-error`), and the order of an epoch must not depend on what a disk has lost.
    pub fn check_files(&mut self) {
        if self.is_found {
            return;
        }
        for path in self.paths.iter() {
            // Behind links, so that one to nowhere is missing. What may not be looked at is there, as far as anyone knows.
            let missing = |error: &std::io::Error| error.kind() != std::io::ErrorKind::PermissionDenied;
            if self
                .root
                .join(path)
                .metadata()
                .is_err_and(|error| missing(&error))
            {
                self.checks
                    .add(Finding::MissingFile, || path.to_string_lossy().into_owned());
            }
        }
    }
}

/// A name in a message.
pub(super) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
