//! Where the boxes of an image lie in its frame: through the same orientation, scale and offset as its pixels.

use std::cmp::Ordering;

use super::orient;
use super::{DecodeError, Header, OrientationMode, Placement};

/// Maps the boxes of an annotation to pixels of the frame that the image was decoded into.
///
/// A box is four numbers: left, top, right, bottom, as positions between pixels (the left edge of the first pixel is 0). The map is
/// linear and nothing is cut off: what is inside the image stays inside its window of the frame, and what is outside it is as far
/// outside as it was.
///
/// ```
/// use epochfeed::decode::{BoxMap, Fit, Format, Header, OrientationMode, place};
/// // A photograph that was taken upright with a camera that stores landscapes.
/// let header = Header { format: Format::Jpeg, width: 640, height: 480, orientation: 6 };
/// let mode = OrientationMode::Apply;
/// let placement = place(Fit::Letterbox, header.oriented_size(mode), (320, 320));
/// // Its annotation says 480x640: it was drawn on the picture as it is seen.
/// let map = BoxMap::new(&header, mode, placement, Some((480, 640)));
/// assert_eq!(map.pixels([0.0, 0.0, 480.0, 320.0]), [40.0, 0.0, 280.0, 160.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoxMap {
    placement: Placement,
    /// The size that the annotation's pixels are of.
    annotated: (f64, f64),
    /// The orientation that leads from the annotation's picture to the frame's.
    turn: u8,
    agrees: bool,
}

impl BoxMap {
    /// For the image of `header`, decoded with `mode` to `placement`, whose annotation says that the image has the size
    /// `annotated`.
    ///
    /// An annotation is of the image as it was seen where its boxes were drawn: turned upright, or as stored. Where an orientation
    /// exchanges the sides, those that are annotated tell which, whatever `mode` is, and the boxes follow from there into
    /// the frame. Where they cannot (none are annotated, a square, a mirrored image), the annotation is of what `mode` makes of
    /// the image: who ignores orientations says that they were ignored before. A size that is neither
    /// ([`agrees`](Self::agrees)) is that of a resized image, the one whose shape it comes nearer to.
    pub fn new(
        header: &Header,
        mode: OrientationMode,
        placement: Placement,
        annotated: Option<(u32, u32)>,
    ) -> Self {
        let (upright, stored) = (header.oriented_size(OrientationMode::Apply), header.stored_size());
        let decoded = header.oriented_size(mode);
        let annotated = annotated.unwrap_or(decoded);
        let is_upright = match distance(annotated, upright).total_cmp(&distance(annotated, stored)) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => mode != OrientationMode::Ignore,
        };
        let turn = match (is_upright, mode) {
            (true, OrientationMode::Ignore) => orient::inverse(header.orientation),
            (false, OrientationMode::Apply | OrientationMode::Match) => header.orientation,
            _ => 1,
        };
        Self {
            placement,
            annotated: (annotated.0.into(), annotated.1.into()),
            turn,
            agrees: annotated == stored || annotated == upright,
        }
    }

    /// Whether the image has the size that the annotation says, as stored or turned upright.
    pub const fn agrees(&self) -> bool {
        self.agrees
    }

    /// Where the image lies in the frame.
    pub const fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The box in the frame of one in pixels of the annotation's picture.
    pub fn pixels(&self, [left, top, right, bottom]: [f64; 4]) -> [f64; 4] {
        let (width, height) = self.annotated;
        self.fractions([left / width, top / height, right / width, bottom / height])
    }

    /// The box in the frame of one in fractions of the sides of the annotation's picture.
    pub fn fractions(&self, sides: [f64; 4]) -> [f64; 4] {
        let [left, top, right, bottom] = orient::apply_to_box(self.turn, sides);
        let Placement { scaled, offset, .. } = self.placement;
        let x = |x: f64| x * f64::from(scaled.0) + f64::from(offset.0);
        let y = |y: f64| y * f64::from(scaled.1) + f64::from(offset.1);
        [x(left), y(top), x(right), y(bottom)]
    }
}

/// How far the shape of one size is from that of another: 1 where it has the same, as where it is resized, more elsewhere.
fn distance(a: (u32, u32), b: (u32, u32)) -> f64 {
    let (one, other) = (u64::from(a.0) * u64::from(b.1), u64::from(a.1) * u64::from(b.0));
    // The same two numbers for a size and for the one with the sides exchanged, if they are equally far.
    one.max(other) as f64 / one.min(other) as f64
}

/// The mode under which the image of `header` has the size `annotated`: what [`OrientationMode::Match`] comes to for it. Upright
/// if both do (a square, or an orientation that keeps the sides), or if nothing is annotated.
///
/// # Errors
/// [`DecodeError::AnnotatedSize`] if neither does.
pub fn match_orientation(
    header: &Header,
    annotated: Option<(u32, u32)>,
) -> Result<OrientationMode, DecodeError> {
    let stored = header.stored_size();
    match annotated {
        None => Ok(OrientationMode::Apply),
        Some(size) if size == header.oriented_size(OrientationMode::Apply) => Ok(OrientationMode::Apply),
        Some(size) if size == stored => Ok(OrientationMode::Ignore),
        Some(annotated) => Err(DecodeError::AnnotatedSize {
            annotated,
            stored,
            orientation: header.orientation,
        }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::pixels::{Pixels, PixelsMut};
    use super::super::resize::{self, ResizeScratch};
    use super::super::{Fit, Format, Interpolation, place, ultralytics_load_size};
    use super::*;

    fn header((width, height): (u32, u32), orientation: u8) -> Header {
        Header {
            format: Format::Png,
            width,
            height,
            orientation,
        }
    }

    /// Left, top, right and bottom of what is brighter than half.
    fn bright(picture: &[u8], width: u32) -> [f64; 4] {
        let mut found = [f64::MAX, f64::MAX, 0.0, 0.0];
        for (number, pixel) in picture.chunks_exact(3).enumerate() {
            if pixel[0] >= 128 {
                let (x, y) = (number as u32 % width, number as u32 / width);
                found[0] = found[0].min(x.into());
                found[1] = found[1].min(y.into());
                found[2] = found[2].max(f64::from(x) + 1.0);
                found[3] = found[3].max(f64::from(y) + 1.0);
            }
        }
        found
    }

    /// Black pixels of `size` with white ones in `mark`.
    fn marked((width, height): (u32, u32), mark: [u32; 4]) -> Vec<u8> {
        let inside = |x, y| (mark[0]..mark[2]).contains(&x) && (mark[1]..mark[3]).contains(&y);
        (0..height)
            .flat_map(|y| (0..width).map(move |x| (x, y)))
            .flat_map(|(x, y)| [if inside(x, y) { 255u8 } else { 0 }; 3])
            .collect()
    }

    fn view(picture: &[u8], size: (u32, u32)) -> Pixels<'_> {
        Pixels::new(picture, size.0, size.1, size.0 as usize * 3).unwrap()
    }

    fn resized(picture: &[u8], from: (u32, u32), to: (u32, u32)) -> Vec<u8> {
        let mut out = vec![0; (to.0 * to.1 * 3) as usize];
        let mut target = PixelsMut::new(&mut out, to.0, to.1, to.0 as usize * 3).unwrap();
        let mut scratch = ResizeScratch::default();
        resize::resize(
            Interpolation::Linear,
            view(picture, from),
            &mut target,
            &mut scratch,
        )
        .unwrap();
        out
    }

    /// A box follows the pixels that it is around: every orientation, fit and mode, up and down, by unequal scales. Pixels
    /// can only say so to half of one.
    #[test]
    fn boxes_go_where_the_pixels_go() {
        for (stored, mark) in [((61, 37), [9, 5, 40, 21]), ((23, 64), [4, 30, 17, 60])] {
            let picture = marked(stored, mark);
            for orientation in 1..=8 {
                for mode in [OrientationMode::Apply, OrientationMode::Ignore] {
                    let header = header(stored, orientation);
                    let source = header.oriented_size(mode);
                    let mut turned = vec![0; picture.len()];
                    let mut target =
                        PixelsMut::new(&mut turned, source.0, source.1, source.0 as usize * 3).unwrap();
                    orient::apply(
                        orient::effective(orientation, mode),
                        view(&picture, stored),
                        &mut target,
                    );
                    // The annotator saw the picture as stored, and its box there is the mark.
                    for (fit, output) in [
                        (Fit::Letterbox, (160, 160)),
                        (Fit::Letterbox, (31, 29)),
                        (Fit::Ultralytics, (97, 50)),
                        (Fit::Stretch, (90, 13)),
                        (Fit::None, source),
                    ] {
                        let placement = place(fit, source, output);
                        let between = match fit {
                            Fit::Ultralytics => ultralytics_load_size(source, output),
                            _ => source,
                        };
                        let frame = resized(&resized(&turned, source, between), between, placement.scaled);
                        let window = bright(&frame, placement.scaled.0);
                        let map = BoxMap::new(&header, mode, placement, Some(stored));
                        let sides = [
                            f64::from(mark[0]) / f64::from(stored.0),
                            f64::from(mark[1]) / f64::from(stored.1),
                            f64::from(mark[2]) / f64::from(stored.0),
                            f64::from(mark[3]) / f64::from(stored.1),
                        ];
                        // 2, 3 and 4 keep the sides: only who ignores them has the annotation of the stored picture.
                        let seen = if orient::swaps_sides(orientation) || mode == OrientationMode::Ignore {
                            assert_eq!(map.fractions(sides), map.pixels(mark.map(f64::from)));
                            map.fractions(sides)
                        } else {
                            map.fractions(orient::apply_to_box(orientation, sides))
                        };
                        let offset = [
                            placement.offset.0,
                            placement.offset.1,
                            placement.offset.0,
                            placement.offset.1,
                        ];
                        for side in 0..4 {
                            let found = window[side] + f64::from(offset[side]);
                            // Two resamplings blur by half a pixel of the picture between.
                            let within = if fit == Fit::Ultralytics { 1.0 } else { 0.5 };
                            assert!(
                                (found - seen[side]).abs() <= within + 1e-9,
                                "{stored:?} {orientation} {mode:?} {fit:?}: {window:?}+{offset:?}, not {seen:?}"
                            );
                        }
                        assert!(map.agrees());
                    }
                }
            }
        }
    }

    #[test]
    fn the_whole_image_is_its_window_exactly() {
        for source in [
            (3775, 1571),
            (641, 479),
            (427, 640),
            (7, 5),
            (1, 300),
            (65_500, 2),
        ] {
            for orientation in 1..=8 {
                let header = header(source, orientation);
                for mode in [OrientationMode::Apply, OrientationMode::Ignore] {
                    for (fit, output) in [
                        (Fit::Letterbox, (640, 640)),
                        (Fit::Ultralytics, (641, 479)),
                        (Fit::Stretch, (3, 99)),
                    ] {
                        let placement = place(fit, header.oriented_size(mode), output);
                        let window = [
                            placement.offset.0,
                            placement.offset.1,
                            placement.offset.0 + placement.scaled.0,
                            placement.offset.1 + placement.scaled.1,
                        ]
                        .map(f64::from);
                        for annotated in [source, (source.1, source.0)] {
                            let map = BoxMap::new(&header, mode, placement, Some(annotated));
                            let whole = [0.0, 0.0, f64::from(annotated.0), f64::from(annotated.1)];
                            assert_eq!(map.pixels(whole), window);
                            assert_eq!(map.fractions([0.0, 0.0, 1.0, 1.0]), window);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_size_that_is_neither_is_that_of_a_resized_image() {
        let header = header((640, 480), 6);
        let place = |size| place(Fit::None, size, size);
        let bbox = [10.0, 20.0, 30.0, 40.0];
        let apply = |annotated| BoxMap::new(&header, OrientationMode::Apply, place((480, 640)), annotated);
        let ignore = |annotated| BoxMap::new(&header, OrientationMode::Ignore, place((640, 480)), annotated);
        // Half the upright one, and about half the stored one.
        let (upright, stored) = (Some((240, 320)), Some((320, 239)));
        for map in [apply(upright), apply(stored), ignore(upright), ignore(stored)] {
            assert!(!map.agrees());
        }
        assert_eq!(apply(upright).pixels(bbox), [20.0, 40.0, 60.0, 80.0]);
        assert_eq!(ignore(upright).pixels(bbox), [40.0, 420.0, 80.0, 460.0]);
        let close = |found: [f64; 4], wanted: [f64; 4]| {
            assert!(
                found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 0.5),
                "{found:?}"
            );
        };
        close(ignore(stored).pixels(bbox), [20.0, 40.0, 60.0, 80.0]);
        close(apply(stored).pixels(bbox), [400.0, 20.0, 440.0, 60.0]);
    }

    /// Where the sides do not tell, an annotation is of what is decoded; whoever annotated as the image is stored has a mode, too.
    #[test]
    fn without_a_size_that_tells_it_is_of_the_picture_that_is_decoded() {
        for (stored, annotated) in [
            ((640, 480), None),
            ((640, 640), Some((640, 640))),
            ((640, 640), Some((320, 320))),
            // As far from the one as from the other.
            ((640, 480), Some((100, 100))),
        ] {
            for orientation in 1..=8 {
                let header = header(stored, orientation);
                for mode in [OrientationMode::Apply, OrientationMode::Ignore] {
                    let size = header.oriented_size(mode);
                    let map = BoxMap::new(&header, mode, place(Fit::None, size, size), annotated);
                    let (x, y) = (f64::from(size.0), f64::from(size.1));
                    assert_eq!(
                        map.fractions([0.25, 0.5, 0.5, 0.625]),
                        [0.25 * x, 0.5 * y, 0.5 * x, 0.625 * y],
                        "{stored:?} {annotated:?} {orientation} {mode:?}"
                    );
                    assert_eq!(
                        map.agrees(),
                        annotated.is_none_or(|annotated| annotated == stored)
                    );
                }
            }
        }
    }

    #[test]
    fn the_orientation_that_matches_is_the_one_with_the_annotated_size() {
        let of = |size, orientation, annotated| match_orientation(&header(size, orientation), annotated);
        assert_eq!(of((640, 480), 6, Some((480, 640))), Ok(OrientationMode::Apply));
        assert_eq!(of((640, 480), 6, Some((640, 480))), Ok(OrientationMode::Ignore));
        assert_eq!(of((640, 480), 3, Some((640, 480))), Ok(OrientationMode::Apply));
        assert_eq!(of((640, 640), 8, Some((640, 640))), Ok(OrientationMode::Apply));
        assert_eq!(of((640, 480), 8, None), Ok(OrientationMode::Apply));
        let error = of((640, 480), 6, Some((320, 240))).unwrap_err().to_string();
        for word in ["320x240", "640x480", "480x640", "orientation 6"] {
            assert!(error.contains(word), "{error}");
        }
    }
}
