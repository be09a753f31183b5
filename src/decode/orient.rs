//! EXIF orientation: finding the number, and moving pixels and boxes.

use super::OrientationMode;
use super::pixels::{Pixels, PixelsMut};

/// The orientation, 1 to 8, in a TIFF structure. Anything missing or invalid is 1. What marks it in JPEG, `Exif\0\0`, does not
/// belong in PNG and WebP, and is written there all the same by some: it is passed over.
///
/// Only IFD0 is read, so thumbnails and looping IFD chains do not matter.
pub(super) fn from_exif(tiff: &[u8]) -> u8 {
    let tiff = tiff.strip_prefix(b"Exif\0\0").unwrap_or(tiff);
    image::metadata::Orientation::from_exif_chunk(tiff).map_or(1, image::metadata::Orientation::to_exif)
}

/// The orientation to apply under `mode`.
pub(super) const fn effective(orientation: u8, mode: OrientationMode) -> u8 {
    match mode {
        OrientationMode::Apply | OrientationMode::Match => orientation,
        OrientationMode::Ignore => 1,
    }
}

/// Whether `orientation` exchanges width and height.
pub(super) const fn swaps_sides(orientation: u8) -> bool {
    matches!(orientation, 5..=8)
}

/// The orientation that undoes `orientation`.
pub(super) const fn inverse(orientation: u8) -> u8 {
    match orientation {
        6 => 8,
        8 => 6,
        // Mirrors and the half turn undo themselves.
        other => other,
    }
}

/// Where a box (left, top, right, bottom, in fractions of the sides) ends up when [`apply`] turns the picture that it is in.
pub(super) fn apply_to_box(orientation: u8, [left, top, right, bottom]: [f64; 4]) -> [f64; 4] {
    match orientation {
        2 => [1.0 - right, top, 1.0 - left, bottom],
        3 => [1.0 - right, 1.0 - bottom, 1.0 - left, 1.0 - top],
        4 => [left, 1.0 - bottom, right, 1.0 - top],
        5 => [top, left, bottom, right],
        6 => [1.0 - bottom, left, 1.0 - top, right],
        7 => [1.0 - bottom, 1.0 - right, 1.0 - top, 1.0 - left],
        8 => [top, 1.0 - right, bottom, 1.0 - left],
        _ => [left, top, right, bottom],
    }
}

/// Writes `src` into `dst` the right way up. `dst` must have the size of `src`, with the sides exchanged for 5 to 8;
/// what lies outside the smaller of the two is left alone.
///
/// By EXIF 2.32: 2 mirrored left-right, 3 turned by 180°, 4 mirrored top-bottom, 5 transposed, 6 to be turned
/// clockwise, 7 transposed over the other diagonal, 8 to be turned counterclockwise.
pub(super) fn apply(orientation: u8, src: Pixels<'_>, dst: &mut PixelsMut<'_>) {
    let (width, height) = (src.size().0 as usize, src.size().1 as usize);
    if swaps_sides(orientation) {
        // Source rows are read in bands of 8, so that the cache lines of a destination row are still there for the
        // next source row; a plain transposition touches a new line for every pixel.
        const BAND: usize = 8;
        for band in (0..height).step_by(BAND) {
            let end = (band + BAND).min(height);
            for x in 0..width {
                let target_y = if matches!(orientation, 7 | 8) {
                    width - 1 - x
                } else {
                    x
                };
                let row = dst.row_mut(target_y).as_chunks_mut::<3>().0;
                for y in band..end {
                    let target_x = if matches!(orientation, 6 | 7) {
                        height - 1 - y
                    } else {
                        y
                    };
                    if let Some(pixel) = row.get_mut(target_x) {
                        *pixel = src.row(y).as_chunks::<3>().0[x];
                    }
                }
            }
        }
        return;
    }
    for y in 0..height {
        let target_y = if matches!(orientation, 3 | 4) {
            height - 1 - y
        } else {
            y
        };
        let row = dst.row_mut(target_y);
        if matches!(orientation, 2 | 3) {
            let source = src.row(y).as_chunks::<3>().0;
            for (target, pixel) in row.as_chunks_mut::<3>().0.iter_mut().zip(source.iter().rev()) {
                *target = *pixel;
            }
        } else {
            row.copy_from_slice(src.row(y));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Where the picture a b / c d / e f ends up, by the definition of each number.
    #[test]
    fn all_eight_orientations() {
        let src: Vec<u8> = b"abcdef".iter().flat_map(|&b| [b, b, b]).collect();
        let expected: [(&[u8], u32); 8] = [
            (b"abcdef", 2),
            (b"badcfe", 2),
            (b"fedcba", 2),
            (b"efcdab", 2),
            (b"acebdf", 3),
            (b"ecafdb", 3),
            (b"fdbeca", 3),
            (b"bdface", 3),
        ];
        for (index, (letters, width)) in expected.into_iter().enumerate() {
            let mut out = vec![0; 18];
            let mut dst = PixelsMut::new(&mut out, width, 6 / width, width as usize * 3).unwrap();
            apply(index as u8 + 1, Pixels::new(&src, 2, 3, 6).unwrap(), &mut dst);
            let got: Vec<u8> = out.chunks(3).map(|p| p[0]).collect();
            assert_eq!(got, letters, "orientation {}", index + 1);
        }
    }

    #[test]
    fn bands_cover_tall_pictures() {
        let src: Vec<u8> = (0..3 * 21 * 2).map(|i| i as u8).collect();
        let mut once = vec![0; src.len()];
        apply(
            6,
            Pixels::new(&src, 2, 21, 6).unwrap(),
            &mut PixelsMut::new(&mut once, 21, 2, 63).unwrap(),
        );
        let mut back = vec![0; src.len()];
        apply(
            8,
            Pixels::new(&once, 21, 2, 63).unwrap(),
            &mut PixelsMut::new(&mut back, 2, 21, 6).unwrap(),
        );
        assert_eq!(src, back);
        assert_ne!(src, once);
    }

    #[test]
    fn invalid_exif_is_upright() {
        assert_eq!(from_exif(b""), 1);
        assert_eq!(
            from_exif(b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"),
            6
        );
        assert_eq!(
            from_exif(b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x09\0\0\0"),
            1
        );
        assert_eq!(from_exif(b"II*\0\xff\xff\xff\xff"), 1);
        assert_eq!(from_exif(b"Exif\0\0"), 1);
    }

    #[test]
    fn the_mark_in_front_of_the_structure_is_passed_over() {
        let structure = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";
        assert_eq!(from_exif(&[b"Exif\0\0".as_slice(), structure].concat()), 6);
    }
}
