//! Where an image lands in the output. One function answers for pixels and, by way of [`BoxMap`](super::BoxMap), for boxes.

use super::Fit;

/// Where an image lands, in pixels; all pairs are (horizontal, vertical).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Size of the image after orientation.
    pub source: (u32, u32),
    /// Size it is resampled to.
    pub scaled: (u32, u32),
    /// Left and top padding.
    pub offset: (u32, u32),
    /// Size of the frame.
    pub output: (u32, u32),
}

impl Placement {
    /// Scale of each axis, `scaled / source`. A box of the upright image takes `x * scale.0 + offset.0`,
    /// `y * scale.1 + offset.1`; [`BoxMap`](super::BoxMap) does so, and turns it if need be.
    pub fn scale(&self) -> (f64, f64) {
        (
            f64::from(self.scaled.0) / f64::from(self.source.0),
            f64::from(self.scaled.1) / f64::from(self.source.1),
        )
    }
}

/// Places an image of size `source` (after orientation) in a frame of size `output`; sizes must be at least 1.
///
/// - [`Fit::Letterbox`]: Ultralytics' `LetterBox(auto=False, scaleup=True)`: `r = min(H/h, W/w)`, the size
///   `round(w*r)` x `round(h*r)` (half to even), padding split with `round(dw/2 - 0.1)` on the left. Unlike there, a
///   side that would round to nothing becomes 1 pixel: 65500x2 in 640x640 is 640x1.
/// - [`Fit::Ultralytics`]: the same after [`ultralytics_load_size`].
/// - [`Fit::Stretch`]: the frame. [`Fit::None`]: the image; the caller refuses sizes that differ.
///
/// ```
/// use epochfeed::decode::{Fit, place};
/// let placement = place(Fit::Letterbox, (3775, 1571), (640, 640));
/// assert_eq!((placement.scaled, placement.offset), ((640, 266), (0, 187)));
/// ```
pub fn place(fit: Fit, source: (u32, u32), output: (u32, u32)) -> Placement {
    let (scaled, offset) = match fit {
        Fit::Letterbox => letterbox(source, output),
        Fit::Ultralytics => letterbox(ultralytics_load_size(source, output), output),
        Fit::Stretch => (output, (0, 0)),
        Fit::None => (source, (0, 0)),
    };
    Placement {
        source,
        scaled,
        offset,
        output,
    }
}

/// The size that Ultralytics' `BaseDataset.load_image` resizes to before letterboxing.
///
/// `imgsz` is the longer side of `output`; with `r = imgsz / max(w, h)` each side is `min(ceil(side * r), imgsz)`,
/// and nothing is resized when `r` is 1.
pub fn ultralytics_load_size(source: (u32, u32), output: (u32, u32)) -> (u32, u32) {
    let imgsz = output.0.max(output.1);
    let r = f64::from(imgsz) / f64::from(source.0.max(source.1));
    // r is 1 exactly when the two integers are equal, so no tolerance is needed.
    if source.0.max(source.1) == imgsz {
        return source;
    }
    let side = |side: u32| ((f64::from(side) * r).ceil() as u32).min(imgsz).max(1);
    (side(source.0), side(source.1))
}

/// Size and left/top offset of `source` letterboxed in `output`.
fn letterbox(source: (u32, u32), output: (u32, u32)) -> ((u32, u32), (u32, u32)) {
    let ratio = |whole: u32, part: u32| f64::from(whole) / f64::from(part);
    let r = ratio(output.1, source.1).min(ratio(output.0, source.0));
    let axis = |source: u32, output: u32| {
        // Python's round(): ties to even. The minimum keeps a slice of the image, the maximum guards the window.
        let scaled = (f64::from(source) * r).round_ties_even() as u32;
        let scaled = scaled.clamp(1, output.max(1));
        let padding = f64::from(output - scaled) / 2.0;
        (scaled, (padding - 0.1).round_ties_even().max(0.0) as u32)
    };
    let (width, left) = axis(source.0, output.0);
    let (height, top) = axis(source.1, output.1);
    ((width, height), (left, top))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_padding_puts_the_larger_half_behind() {
        let placement = place(Fit::Letterbox, (641, 479), (640, 640));
        assert_eq!(placement.scaled, (640, 478));
        assert_eq!(placement.offset, (0, 81));
        let placement = place(Fit::Letterbox, (640, 427), (640, 640));
        assert_eq!(placement.scaled, (640, 427));
        // 213 rows of padding: 106 above, 107 below.
        assert_eq!(placement.offset, (0, 106));
    }

    #[test]
    fn no_side_vanishes() {
        for fit in [Fit::Letterbox, Fit::Ultralytics] {
            assert_eq!(place(fit, (65500, 2), (640, 640)).scaled, (640, 1));
            assert_eq!(place(fit, (2, 65500), (640, 640)).scaled, (1, 640));
            assert_eq!(place(fit, (1, 1), (640, 640)).scaled, (640, 640));
        }
    }

    #[test]
    fn ultralytics_rounds_sides_up_first() {
        // 640/500 * 333 = 426.24: letterbox rounds to 426, load_image to 427.
        assert_eq!(place(Fit::Letterbox, (500, 333), (640, 640)).scaled, (640, 426));
        assert_eq!(place(Fit::Ultralytics, (500, 333), (640, 640)).scaled, (640, 427));
        assert_eq!(ultralytics_load_size((500, 333), (320, 640)), (640, 427));
        assert_eq!(place(Fit::Ultralytics, (500, 333), (320, 640)).scaled, (320, 214));
    }
}
