//! A dataset of one image, around hostile annotations, and what holds for the boxes that come out of it.

use std::fs;
use std::path::Path;

use epochfeed::dataset::{BoxFormat, Dataset, Options};
use tempfile::TempDir;

/// The image. It is looked for and never read.
const IMAGE: &str = "images/a.jpg";

/// A folder with the image and `annotations` in the file `name`.
pub(crate) fn folder(name: &str, annotations: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().expect("the temporary folder is writable");
    let path = |name: &str| folder.path().join(name);
    for (name, bytes) in [(IMAGE, &b"x"[..]), (name, annotations)] {
        let path = path(name);
        let parent = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(parent).expect("a folder can be made in the temporary one");
        fs::write(path, bytes).expect("a file can be written there");
    }
    folder
}

/// Opens the dataset at `location` and looks at all that it says.
pub(crate) fn open(location: &Path, options: &Options) {
    let dataset = match Dataset::open_with(location, options) {
        Ok(dataset) => dataset,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let (names, checks) = (dataset.class_names(), dataset.checks());
    assert_eq!(checks.images, dataset.len());
    let mut boxes = 0;
    for index in 0..dataset.len() {
        let path = dataset.path(index).expect("an index below the length");
        let root = options.root.as_deref().unwrap_or(location);
        assert!(path.starts_with(root), "{} is not in the root", path.display());
        let annotation = dataset.annotation(index).expect("its format has annotations");
        boxes += annotation.targets.len() as u64;
        for target in annotation.targets {
            assert!(names.is_empty() || (target.class as usize) < names.len());
            let [x, y, width, height] = target.bbox.map(f64::from);
            assert!(x.is_finite() && y.is_finite() && width.is_finite() && height.is_finite());
            assert!(width > 0.0 && height > 0.0, "{target:?} has no area");
            let (left, top, image) = match (annotation.format, annotation.size) {
                (BoxFormat::CenterNormalized, _) => (x - width / 2.0, y - height / 2.0, (1.0, 1.0)),
                (BoxFormat::CornerPixels, Some((w, h))) => (x, y, (f64::from(w), f64::from(h))),
                // Nobody knows where the image ends.
                (BoxFormat::CornerPixels, None) => continue,
            };
            // What rounding to float32 may add.
            let (over_x, over_y) = (image.0 * 1e-6, image.1 * 1e-6);
            assert!(
                left >= -over_x && top >= -over_y,
                "{target:?} of {image:?} begins outside"
            );
            assert!(
                left + width <= image.0 + over_x,
                "{target:?} of {image:?} is too wide"
            );
            assert!(
                top + height <= image.1 + over_y,
                "{target:?} of {image:?} is too high"
            );
        }
    }
    assert_eq!(checks.boxes, boxes);
    assert_eq!(dataset.fingerprint().len(), 64);
    assert!(!checks.to_string().is_empty());
}
