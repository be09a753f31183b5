//! Which boxes are used, and how: the same rules for every format.

use std::collections::HashSet;

use super::checks::{Checks, Finding};
use super::{BoxFormat, DatasetError, Options, OutOfImage, Target};

/// How far a box may reach over the edge before it counts as out of the image. Annotation tools round: some of COCO's own
/// boxes end a hundredth of a pixel outside. With `clip` those are cut, too, but nobody is told.
const TOLERANCE_PIXELS: f32 = 0.5;
/// Likewise, for fractions of the image's side.
const TOLERANCE_NORMALIZED: f32 = 1e-3;

/// The rules for one dataset, and what they need to know about the image at hand.
pub(super) struct Rules {
    format: BoxFormat,
    out_of_image: OutOfImage,
    single_class: bool,
    /// `None`: all.
    wanted: Option<HashSet<u32>>,
    /// Boxes of the current image.
    seen: HashSet<(u32, [u32; 4])>,
}

impl Rules {
    pub fn new(format: BoxFormat, options: &Options, names: &[String]) -> Result<Self, DatasetError> {
        Ok(Self {
            format,
            out_of_image: options.out_of_image,
            single_class: options.single_class,
            wanted: options.wanted_classes(names)?,
            seen: HashSet::new(),
        })
    }

    /// The boxes that come next are of another image.
    pub fn begin_image(&mut self) {
        self.seen.clear();
    }

    /// The target to be used, if any; else what it is counted as. `name` says which box it is.
    pub fn apply(
        &mut self,
        mut target: Target,
        size: Option<(u32, u32)>,
        checks: &mut Checks,
        name: impl Fn() -> String,
    ) -> Option<Target> {
        if let Some(wanted) = &self.wanted
            && !wanted.contains(&target.class)
        {
            checks.add(Finding::OtherClass, name);
            return None;
        }
        let [_, _, width, height] = target.bbox;
        let unusable = if !target.bbox.iter().all(|number| number.is_finite()) {
            Some(Finding::NotFinite)
        } else if width < 0.0 || height < 0.0 {
            Some(Finding::NegativeBox)
        } else if width == 0.0 || height == 0.0 {
            Some(Finding::EmptyBox)
        } else {
            None
        };
        if let Some(finding) = unusable {
            checks.add(finding, name);
            return None;
        }
        // As it is written: boxes of two classes are two, also where they become one class or are cut to the same. As bits:
        // two boxes that differ only in the sign of a zero are one too many to care about.
        if !self.seen.insert((target.class, target.bbox.map(f32::to_bits))) {
            checks.add(Finding::DuplicateBox, name);
            return None;
        }
        target.bbox = self.within(target.bbox, size, checks, &name)?;
        if self.single_class {
            target.class = 0;
        }
        Some(target)
    }

    /// The box as it is used; `None` if it is left out for reaching out of the image.
    fn within(
        &self,
        bbox: [f32; 4],
        size: Option<(u32, u32)>,
        checks: &mut Checks,
        name: impl Fn() -> String,
    ) -> Option<[f32; 4]> {
        let (image, tolerance) = match (self.format, size) {
            (BoxFormat::CornerPixels, Some((width, height))) => {
                ([width as f32, height as f32], TOLERANCE_PIXELS)
            }
            (BoxFormat::CenterNormalized, _) => ([1.0, 1.0], TOLERANCE_NORMALIZED),
            // Nobody knows where the image ends.
            (BoxFormat::CornerPixels, None) => return Some(bbox),
        };
        // In f64, so that nothing is found outside that only a sum's rounding put there.
        let [x, y, width, height] = bbox.map(f64::from);
        let (left, top) = match self.format {
            BoxFormat::CornerPixels => (x, y),
            BoxFormat::CenterNormalized => (x - width / 2.0, y - height / 2.0),
        };
        let (right, bottom) = (left + width, top + height);
        let [image_right, image_bottom] = image.map(f64::from);
        let over = [-left, -top, right - image_right, bottom - image_bottom]
            .into_iter()
            .fold(0.0, f64::max);
        if over > f64::from(tolerance) {
            checks.add(Finding::OutOfImage, &name);
            if self.out_of_image == OutOfImage::Drop {
                return None;
            }
        }
        if over == 0.0 || self.out_of_image == OutOfImage::Keep {
            return Some(bbox);
        }
        let (left, top) = (left.max(0.0), top.max(0.0));
        let (right, bottom) = (right.min(image_right), bottom.min(image_bottom));
        let (width, height) = (right - left, bottom - top);
        // As it will be kept: what is left may be too little for an f32.
        if width as f32 <= 0.0 || height as f32 <= 0.0 {
            // A sliver just outside, within the tolerance, has not been counted yet.
            if over <= f64::from(tolerance) {
                checks.add(Finding::EmptyBox, name);
            }
            return None;
        }
        let clipped = match self.format {
            BoxFormat::CornerPixels => [left, top, width, height],
            BoxFormat::CenterNormalized => [left + width / 2.0, top + height / 2.0, width, height],
        };
        Some(clipped.map(|number| number as f32))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn apply(options: &Options, format: BoxFormat, boxes: &[[f32; 4]]) -> (Vec<[f32; 4]>, Checks) {
        let (mut checks, mut rules) = (Checks::default(), Rules::new(format, options, &[]).unwrap());
        let used = boxes
            .iter()
            .filter_map(|&bbox| {
                let target = Target { class: 0, bbox };
                rules.apply(target, Some((100, 50)), &mut checks, String::new)
            })
            .map(|target| target.bbox)
            .collect();
        (used, checks)
    }

    fn policy(out_of_image: OutOfImage) -> Options {
        Options {
            out_of_image,
            ..Options::default()
        }
    }

    #[test]
    fn unusable_boxes_are_told_apart() {
        let boxes = [
            [f32::NAN, 0.0, 1.0, 1.0],
            [0.0, 0.0, f32::INFINITY, 1.0],
            [0.0, 0.0, -1.0, 1.0],
            [0.0, 0.0, 1.0, 0.0],
            [1.0, 1.0, 2.0, 2.0],
            [1.0, 1.0, 2.0, 2.0],
        ];
        let (used, checks) = apply(&Options::default(), BoxFormat::CornerPixels, &boxes);
        assert_eq!(used, [[1.0, 1.0, 2.0, 2.0]]);
        assert_eq!(checks.count(Finding::NotFinite), 2);
        for finding in [Finding::NegativeBox, Finding::EmptyBox, Finding::DuplicateBox] {
            assert_eq!(checks.count(finding), 1, "{finding:?}");
        }
    }

    #[test]
    fn boxes_out_of_the_image_follow_the_policy() {
        let boxes = [
            [-10.0, -10.0, 20.0, 30.0],
            [90.0, 40.0, 20.0, 20.0],
            [200.0, 10.0, 5.0, 5.0],
            [0.0, 0.0, 100.0, 50.0],
        ];
        let format = BoxFormat::CornerPixels;
        let (used, checks) = apply(&policy(OutOfImage::Clip), format, &boxes);
        let cut = [[0.0, 0.0, 10.0, 20.0], [90.0, 40.0, 10.0, 10.0], boxes[3]];
        assert_eq!(
            (used.as_slice(), checks.count(Finding::OutOfImage)),
            (&cut[..], 3)
        );
        let (used, checks) = apply(&policy(OutOfImage::Drop), format, &boxes);
        assert_eq!((used, checks.count(Finding::OutOfImage)), (vec![boxes[3]], 3));
        let (used, checks) = apply(&policy(OutOfImage::Keep), format, &boxes);
        assert_eq!(
            (used.as_slice(), checks.count(Finding::OutOfImage)),
            (&boxes[..], 3)
        );
    }

    #[test]
    fn rounding_is_no_fault_and_is_cut_in_silence() {
        let boxes = [[0.0, 0.0, 100.01, 50.0], [-0.25, 0.0, 1.0, 1.0]];
        let (used, checks) = apply(&policy(OutOfImage::Drop), BoxFormat::CornerPixels, &boxes);
        assert_eq!(used, [[0.0, 0.0, 100.0, 50.0], [0.0, 0.0, 0.75, 1.0]]);
        assert_eq!(checks.found().count(), 0);
    }

    #[test]
    fn normalised_boxes_are_cut_at_the_edge() {
        let boxes = [
            [0.95, 0.5, 0.2, 0.5],
            [0.5, 0.5, 1.0, 1.0],
            [640.0, 320.0, 64.0, 32.0],
        ];
        let (used, checks) = apply(&policy(OutOfImage::Clip), BoxFormat::CenterNormalized, &boxes);
        assert_eq!(used.len(), 2);
        let close = |a: f32, b: f32| (a - b).abs() < 1e-6;
        assert!(close(used[0][0], 0.925) && close(used[0][2], 0.15), "{used:?}");
        assert_eq!(used[1], boxes[1]);
        assert_eq!(checks.count(Finding::OutOfImage), 2);
    }

    /// Found by fuzzing: half of the smallest number is none.
    #[test]
    fn what_is_cut_to_nothing_is_no_box() {
        let boxes = [[0.5, 0.0, 1.0, f32::from_bits(1)]];
        let (used, checks) = apply(&policy(OutOfImage::Clip), BoxFormat::CenterNormalized, &boxes);
        assert_eq!((used.len(), checks.count(Finding::EmptyBox)), (0, 1));
    }

    #[test]
    fn an_image_of_unknown_size_has_no_outside() {
        let mut rules = Rules::new(BoxFormat::CornerPixels, &Options::default(), &[]).unwrap();
        let target = Target {
            class: 3,
            bbox: [-5.0, 0.0, 1e6, 1.0],
        };
        let mut checks = Checks::default();
        assert_eq!(rules.apply(target, None, &mut checks, String::new), Some(target));
    }
}
