//! What an annotation says about an image, and all annotations of a dataset in little memory.

use sha2::{Digest, Sha256};

/// A box of an image, as its annotation says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Its class, contiguous from 0; [`Dataset::class_names`](super::Dataset::class_names) has the names.
    pub class: u32,
    /// The box; [`BoxFormat`] says how the numbers are meant.
    pub bbox: [f32; 4],
}

/// How the numbers of [`Target::bbox`] are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoxFormat {
    /// COCO: x and y of the upper left corner, width and height, in pixels of an image of [`Annotation::size`].
    CornerPixels,
    /// YOLO: x and y of the centre, width and height, each as a fraction of the image's side.
    CenterNormalized,
}

/// What the dataset says about one image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Annotation<'a> {
    /// COCO's id of the image; where the format has none, its index in the dataset, counted before any exclusion.
    pub image_id: i64,
    /// Width and height as the annotation has them, which may differ from the file's.
    pub size: Option<(u32, u32)>,
    /// How the boxes are written.
    pub format: BoxFormat,
    /// The boxes, in the annotation's order; none for an image without objects.
    pub targets: &'a [Target],
}

/// The annotations of all images in the dataset's order: three flat arrays instead of an allocation per image.
#[derive(Debug)]
pub(super) struct Annotations {
    format: BoxFormat,
    images: Vec<Image>,
    targets: Vec<Target>,
}

#[derive(Debug)]
struct Image {
    id: i64,
    size: Option<(u32, u32)>,
    /// End of its boxes in `targets`.
    end: usize,
}

impl Annotations {
    pub fn new(format: BoxFormat) -> Self {
        Self {
            format,
            images: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// None yet, written as those of `other` are.
    pub fn empty_like(other: &Self) -> Self {
        Self::new(other.format)
    }

    /// Adds the next image of the dataset.
    pub fn push(&mut self, id: i64, size: Option<(u32, u32)>, targets: impl IntoIterator<Item = Target>) {
        self.targets.extend(targets);
        let end = self.targets.len();
        self.images.push(Image { id, size, end });
    }

    pub fn get(&self, index: u64) -> Option<Annotation<'_>> {
        let index = usize::try_from(index).ok()?;
        let image = self.images.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.images[before].end);
        Some(Annotation {
            image_id: image.id,
            size: image.size,
            format: self.format,
            targets: &self.targets[start..image.end],
        })
    }

    /// Number of boxes.
    pub fn boxes(&self) -> u64 {
        self.targets.len() as u64
    }

    /// Adds everything to a fingerprint. Each image says how many boxes it has, so that a box cannot change sides unseen.
    pub fn hash(&self, hash: &mut Sha256) {
        hash.update([match self.format {
            BoxFormat::CornerPixels => 0,
            BoxFormat::CenterNormalized => 1,
        }]);
        let mut start = 0;
        for image in &self.images {
            let (width, height) = image.size.unwrap_or_default();
            hash.update(image.id.to_le_bytes());
            hash.update(width.to_le_bytes());
            hash.update(height.to_le_bytes());
            hash.update(((image.end - start) as u64).to_le_bytes());
            for target in &self.targets[start..image.end] {
                hash.update(target.class.to_le_bytes());
                for number in target.bbox {
                    hash.update(number.to_bits().to_le_bytes());
                }
            }
            start = image.end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(annotations: &Annotations) -> Vec<u8> {
        let mut hash = Sha256::new();
        annotations.hash(&mut hash);
        hash.finalize().to_vec()
    }

    #[test]
    fn boxes_stay_with_their_image() {
        let target = |class| Target {
            class,
            bbox: [1.0, 2.0, 3.0, 4.0],
        };
        let mut annotations = Annotations::new(BoxFormat::CornerPixels);
        annotations.push(7, Some((4, 5)), [target(0), target(1)]);
        annotations.push(-1, None, []);
        annotations.push(9, None, [target(2)]);
        let classes = |index| -> Option<Vec<u32>> {
            Some(annotations.get(index)?.targets.iter().map(|t| t.class).collect())
        };
        assert_eq!(classes(0), Some(vec![0, 1]));
        assert_eq!(classes(1), Some(vec![]));
        assert_eq!(classes(2), Some(vec![2]));
        assert_eq!(classes(3), None);
        assert_eq!(annotations.boxes(), 3);

        let mut moved = Annotations::new(BoxFormat::CornerPixels);
        moved.push(7, Some((4, 5)), [target(0)]);
        moved.push(-1, None, [target(1)]);
        moved.push(9, None, [target(2)]);
        assert_ne!(print(&annotations), print(&moved));
    }
}
