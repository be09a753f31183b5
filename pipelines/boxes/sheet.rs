//! Composes the contact sheet: a grid of frames with their boxes, a caption below each.

use embedded_graphics::mono_font::iso_8859_1::{FONT_6X10, FONT_7X13, FONT_10X20};
use embedded_graphics::mono_font::{MonoFont, MonoTextStyle};
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::*;
use embedded_graphics::primitives::{PrimitiveStyle, PrimitiveStyleBuilder, Rectangle, StrokeAlignment};
use embedded_graphics::text::{Baseline, Text};
use image::RgbImage;
use image::imageops::overlay;

use crate::canvas::{Canvas, FAINT, INK, file_name};

/// One frame and what is in it.
pub struct Frame {
    /// Percent-encoded `file://` URI.
    pub uri: String,
    /// Width and height of the image before it was fitted.
    pub source: (u32, u32),
    pub picture: RgbImage,
    /// Class, centre, width and height of each box, as fractions of the frame.
    pub boxes: Vec<(usize, [f32; 4])>,
}

/// Frames side by side.
const COLUMNS: u32 = 4;
/// Space around frames.
const MARGIN: u32 = 16;
/// Height of the title's band and of a caption's two lines.
const TITLE: u32 = 48;
const CAPTION: u32 = 36;
/// Thickness of a box's outline; it lies inside of the box.
const LINE: u32 = 2;
const LABEL: &MonoFont = &FONT_6X10;
const BLACK: Rgb888 = Rgb888::new(0, 0, 0);

/// Draws `frames`, all of `size`, in reading order below `title`; `names` are those of the classes.
pub fn compose(title: &str, (width, height): (u32, u32), frames: &[Frame], names: &[String]) -> RgbImage {
    let cells = u32::try_from(frames.len()).unwrap_or(u32::MAX);
    let columns = cells.clamp(1, COLUMNS);
    let sheet = MARGIN + columns * (width + MARGIN);
    let rows = cells.div_ceil(columns);
    let mut canvas = Canvas::new(sheet, TITLE + rows * (height + CAPTION + MARGIN));
    canvas.text(title, (MARGIN, 14), &FONT_10X20, INK, sheet - 2 * MARGIN);
    for (cell, frame) in (0..cells).zip(frames) {
        let left = MARGIN + cell % columns * (width + MARGIN);
        let top = TITLE + cell / columns * (height + CAPTION + MARGIN);
        overlay(&mut canvas.0, &with_boxes(frame, names), left.into(), top.into());
        let name = file_name(&frame.uri);
        canvas.text(&name, (left, top + height + 4), &FONT_7X13, INK, width);
        let (source_width, source_height) = frame.source;
        let what = format!("{source_width}x{source_height}   boxes: {}", frame.boxes.len());
        canvas.text(&what, (left, top + height + 18), &FONT_7X13, FAINT, width);
    }
    canvas.0
}

/// The frame with its boxes drawn on it; what reaches out of the frame is not drawn.
fn with_boxes(frame: &Frame, names: &[String]) -> RgbImage {
    let mut canvas = Canvas(frame.picture.clone());
    for (class, sides) in &frame.boxes {
        let outline = outline(*sides, frame.picture.dimensions());
        // Inside, so that the outline's edge is the box's.
        let style = PrimitiveStyleBuilder::new()
            .stroke_color(colour(*class))
            .stroke_width(LINE)
            .stroke_alignment(StrokeAlignment::Inside)
            .build();
        let Ok(()) = outline.into_styled(style).draw(&mut canvas);
        label(&mut canvas, outline.top_left, *class, names);
    }
    canvas.0
}

/// The pixels of a box, to the nearest.
fn outline([x, y, width, height]: [f32; 4], (frame_width, frame_height): (u32, u32)) -> Rectangle {
    let (frame_width, frame_height) = (frame_width as f32, frame_height as f32);
    let left = ((x - width / 2.0) * frame_width).round() as i32;
    let top = ((y - height / 2.0) * frame_height).round() as i32;
    let right = ((x + width / 2.0) * frame_width).round() as i32;
    let bottom = ((y + height / 2.0) * frame_height).round() as i32;
    // A box thinner than a pixel is still seen.
    let side = |from: i32, to: i32| u32::try_from(to - from).unwrap_or(0).max(1);
    Rectangle::new(
        Point::new(left, top),
        Size::new(side(left, right), side(top, bottom)),
    )
}

/// The class's name on a ground of its colour, at the box's upper left corner, or as near to it as the frame allows.
fn label(canvas: &mut Canvas, corner: Point, class: usize, names: &[String]) {
    let name = names
        .get(class)
        .map_or_else(|| format!("class {class}"), Clone::clone);
    let characters = u32::try_from(name.chars().count()).unwrap_or(u32::MAX);
    let size = LABEL.character_size;
    let ground = Size::new(
        characters.saturating_mul(size.width).saturating_add(4),
        size.height + 2,
    );
    // Whole, as far as the frame has room for it.
    let within = |at: i32, label: u32, frame: u32| {
        let last = i32::try_from(frame.saturating_sub(label)).unwrap_or(i32::MAX);
        at.clamp(0, last)
    };
    let (width, height) = canvas.0.dimensions();
    let corner = Point::new(
        within(corner.x, ground.width, width),
        within(corner.y, ground.height, height),
    );
    let ground = Rectangle::new(corner, ground).into_styled(PrimitiveStyle::with_fill(colour(class)));
    let Ok(()) = ground.draw(canvas);
    let style = MonoTextStyle::new(LABEL, BLACK);
    let Ok(_) = Text::with_baseline(&name, corner + Point::new(2, 1), style, Baseline::Top).draw(canvas);
}

/// A light colour for a class, far from those of the classes next to it.
fn colour(class: usize) -> Rgb888 {
    // The golden ratio spreads any number of hues.
    let hue = (class as f64 * 0.618_034).fract() * 6.0;
    let channel = |shift: f64| {
        let distance = ((hue + shift) % 6.0 - 3.0).abs() - 1.0;
        (90.0 + 165.0 * distance.clamp(0.0, 1.0)) as u8
    };
    Rgb888::new(channel(0.0), channel(4.0), channel(2.0))
}

#[cfg(test)]
mod tests {
    use image::Rgb;

    use super::*;

    const GREY: Rgb<u8> = Rgb([40, 40, 40]);

    fn frame(boxes: &[(usize, [f32; 4])]) -> Frame {
        Frame {
            uri: "file:///a.jpg".into(),
            source: (7, 5),
            picture: RgbImage::from_pixel(100, 80, GREY),
            boxes: boxes.to_vec(),
        }
    }

    #[test]
    fn the_outline_lies_just_inside_the_box() {
        // 20..70 by 20..60.
        let drawn = with_boxes(&frame(&[(3, [0.45, 0.5, 0.5, 0.5])]), &[]);
        let colour = colour(3);
        let colour = Rgb([colour.r(), colour.g(), colour.b()]);
        for (x, y) in [(69, 20), (69, 59), (20, 59), (68, 40), (40, 58)] {
            assert_eq!(*drawn.get_pixel(x, y), colour, "{x},{y}");
        }
        for (x, y) in [(19, 40), (70, 40), (40, 19), (40, 60), (67, 40), (40, 57)] {
            assert_eq!(*drawn.get_pixel(x, y), GREY, "{x},{y}");
        }
    }

    #[test]
    fn boxes_that_are_thin_or_reach_out_of_the_frame_are_drawn_as_far_as_they_are_there() {
        let odd = frame(&[
            (0, [0.0, 0.5, 0.4, 4.0]),
            (1, [0.5, 0.5, 1e-4, 0.5]),
            (2, [9.0, 9.0, 1.0, 1.0]),
        ]);
        assert_ne!(with_boxes(&odd, &["a".into()]), odd.picture);
    }

    #[test]
    fn labels_are_whole_at_the_frames_edge() {
        // A box of two pixels in the lower right corner, named in four letters of 6x10.
        let drawn = with_boxes(&frame(&[(0, [0.99, 0.99, 0.02, 0.02])]), &["edge".into()]);
        for (x, y) in [(100 - 28, 80 - 12), (99, 80 - 12), (100 - 28, 79)] {
            assert_ne!(*drawn.get_pixel(x, y), GREY, "{x},{y}");
        }
        assert_eq!(*drawn.get_pixel(100 - 29, 79), GREY);
    }

    #[test]
    fn frames_stand_in_reading_order() {
        let frames: Vec<_> = (0..5).map(|_| frame(&[])).collect();
        let sheet = compose("title", (100, 80), &frames, &[]);
        assert_eq!(sheet.width(), MARGIN + 4 * (100 + MARGIN));
        assert_eq!(sheet.height(), TITLE + 2 * (80 + CAPTION + MARGIN));
        assert_eq!(
            *sheet.get_pixel(MARGIN + 50, TITLE + 80 + CAPTION + MARGIN + 40),
            GREY
        );
        assert_eq!(
            *sheet.get_pixel(MARGIN + 100 + MARGIN + 50, TITLE + 80 + CAPTION + MARGIN + 40),
            crate::canvas::PAPER
        );
    }

    #[test]
    fn neighbouring_classes_differ() {
        for class in 0..80 {
            let (one, next) = (colour(class), colour(class + 1));
            let apart = one
                .r()
                .abs_diff(next.r())
                .max(one.g().abs_diff(next.g()))
                .max(one.b().abs_diff(next.b()));
            assert!(apart > 60, "{class}");
        }
    }
}
