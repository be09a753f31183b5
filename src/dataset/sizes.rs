//! Whether the annotated sizes are those of the files: boxes in pixels are of no use without.

use std::path::Path;

use super::checks::{Checks, Finding};
use super::listing::Listing;
use super::read;
use crate::decode::{DecodeOptions, Header, match_orientation, probe};

/// How many files are looked into unless all are asked for. An annotation of images of another size is of all of them as a
/// rule; on storage that takes 20 ms a read, these are 5 s, and all of COCO's 40 minutes.
const LOOKED_INTO: u64 = 256;

/// Bytes that a header ends within: most often, behind a camera's thumbnail or a colour profile, and always.
const HEADS: [u64; 3] = [16 << 10, 256 << 10, read::MAX_FILE_BYTES];

impl Listing {
    /// Counts the files of another size than their annotation says: among `all`, or some over the whole listing. One that
    /// cannot be read is for the decoder to name.
    pub fn check_sizes(&mut self, all: bool) {
        let Some(annotations) = &self.annotations else {
            return;
        };
        let count = self.paths.len();
        let looked_into = if all { count } else { count.min(LOOKED_INTO) };
        for number in 0..looked_into {
            let index = (u128::from(number) * u128::from(count) / u128::from(looked_into)) as u64;
            let size = annotations.get(index).and_then(|annotation| annotation.size);
            if let (Some(path), Some(size)) = (self.paths.get(index), size) {
                compare(&self.root, path, size, &mut self.checks);
            }
        }
    }
}

/// Counts the file if neither as stored nor upright it has the annotated `size`.
fn compare(root: &Path, path: &Path, size: (u32, u32), checks: &mut Checks) {
    let file = root.join(path);
    let mut found = None;
    // The orientation may stand behind the picture: nobody is accused before all has been read.
    for limit in HEADS {
        found = header(&file, limit);
        if found
            .as_ref()
            .is_some_and(|header| match_orientation(header, Some(size)).is_ok())
        {
            return;
        }
    }
    if let Some(header) = found {
        checks.add(Finding::SizeMismatch, || {
            let (path, (width, height)) = (path.display(), size);
            format!(
                "{path} is {}x{}, annotated {width}x{height}",
                header.width, header.height
            )
        });
    }
}

/// What the first `limit` bytes of a file say.
fn header(file: &Path, limit: u64) -> Option<Header> {
    // Nothing is allocated for the pixels.
    let options = DecodeOptions {
        max_pixels: 0,
        ..DecodeOptions::default()
    };
    probe(&read::head(file, limit)?, &options).ok()
}
