//! Composes the contact sheet: a grid of cells, each a pair of thumbnails over two lines of text.

use embedded_graphics::mono_font::iso_8859_1::{FONT_7X13, FONT_10X20};
use image::RgbImage;
use image::imageops::{FilterType, overlay, resize};

use crate::canvas::{Canvas, FAINT, INK, file_name};
use crate::capture::{Gains, Shot};

/// Side of a thumbnail, in pixels.
const THUMB: u32 = 200;
/// Cells side by side.
const COLUMNS: u32 = 3;
/// Space around cells.
const MARGIN: u32 = 16;
/// Space between the thumbnails of a pair: small, so that it reads as one.
const SEAM: u32 = 4;
/// Height of the title's band and of a caption's two lines.
const TITLE: u32 = 48;
const CAPTION: u32 = 36;
const CELL_WIDTH: u32 = 2 * THUMB + SEAM;
const CELL_HEIGHT: u32 = THUMB + CAPTION;

/// Draws `shots` in reading order below `title`.
pub fn compose(title: &str, shots: &[Shot]) -> RgbImage {
    let cells = u32::try_from(shots.len()).unwrap_or(u32::MAX);
    let columns = cells.clamp(1, COLUMNS);
    let width = MARGIN + columns * (CELL_WIDTH + MARGIN);
    let height = TITLE + cells.div_ceil(columns) * (CELL_HEIGHT + MARGIN);
    let mut canvas = Canvas::new(width, height);
    canvas.text(title, (MARGIN, 14), &FONT_10X20, INK, width - 2 * MARGIN);
    for (cell, shot) in (0..cells).zip(shots) {
        let left = MARGIN + cell % columns * (CELL_WIDTH + MARGIN);
        let top = TITLE + cell / columns * (CELL_HEIGHT + MARGIN);
        thumbnail(&mut canvas, &shot.before, left, top);
        thumbnail(&mut canvas, &shot.after, left + THUMB + SEAM, top);
        let name = format!("#{} {}", shot.dataset_index, file_name(&shot.uri));
        canvas.text(&name, (left, top + THUMB + 4), &FONT_7X13, INK, CELL_WIDTH);
        canvas.text(
            &caption(shot.gains),
            (left, top + THUMB + 18),
            &FONT_7X13,
            FAINT,
            CELL_WIDTH,
        );
    }
    canvas.0
}

/// The gains as people think of them: the hue's turn in degrees, the other two as the factor they multiply by.
fn caption(gains: Gains) -> String {
    let Gains {
        hue,
        saturation,
        value,
    } = gains;
    format!(
        "hue {:+.1}\u{b0}   saturation \u{d7}{:.2}   value \u{d7}{:.2}",
        hue * 360.0,
        1.0 + saturation,
        1.0 + value
    )
}

/// Fits `picture` into a square of [`THUMB`] at (`left`, `top`), centred.
fn thumbnail(canvas: &mut Canvas, picture: &RgbImage, left: u32, top: u32) {
    let (width, height) = picture.dimensions();
    let longest = width.max(height).max(1);
    let fit = |side: u32| (side * THUMB / longest).max(1);
    let small = resize(picture, fit(width), fit(height), FilterType::Triangle);
    let centred = |start: u32, side: u32| i64::from(start + (THUMB - side) / 2);
    overlay(
        &mut canvas.0,
        &small,
        centred(left, small.width()),
        centred(top, small.height()),
    );
}

#[cfg(test)]
mod tests {
    use image::Rgb;

    use super::*;
    use crate::canvas::PAPER;

    const RED: Rgb<u8> = Rgb([255, 0, 0]);
    const BLUE: Rgb<u8> = Rgb([0, 0, 255]);

    fn shot(width: u32, height: u32) -> Shot {
        Shot {
            dataset_index: 7,
            uri: "file:///photos/caf%C3%A9%20one.jpg".into(),
            gains: Gains {
                hue: 0.01,
                saturation: 0.35,
                value: -0.25,
            },
            before: RgbImage::from_pixel(width, height, RED),
            after: RgbImage::from_pixel(width, height, BLUE),
        }
    }

    /// The colour of the middle of thumbnail `half` (0 before, 1 after) of cell (`column`, `row`).
    fn middle(sheet: &RgbImage, column: u32, row: u32, half: u32) -> Rgb<u8> {
        let x = MARGIN + column * (CELL_WIDTH + MARGIN) + half * (THUMB + SEAM) + THUMB / 2;
        let y = TITLE + row * (CELL_HEIGHT + MARGIN) + THUMB / 2;
        *sheet.get_pixel(x, y)
    }

    #[test]
    fn cells_stand_in_reading_order_before_left_of_after() {
        let shots: Vec<Shot> = (0..4).map(|_| shot(64, 48)).collect();
        let sheet = compose("title", &shots);
        assert_eq!(sheet.width(), MARGIN + 3 * (CELL_WIDTH + MARGIN));
        assert_eq!(sheet.height(), TITLE + 2 * (CELL_HEIGHT + MARGIN));
        for (column, row) in [(0, 0), (1, 0), (2, 0), (0, 1)] {
            assert_eq!(middle(&sheet, column, row, 0), RED);
            assert_eq!(middle(&sheet, column, row, 1), BLUE);
        }
        assert_eq!(middle(&sheet, 1, 1, 0), PAPER, "the fifth cell is empty");
    }

    #[test]
    fn thumbnails_keep_their_shape_and_stay_in_their_square() {
        let sheet = compose("", &[shot(400, 100)]);
        let (left, top) = (MARGIN, TITLE);
        assert_eq!(
            *sheet.get_pixel(left, top + THUMB / 2),
            RED,
            "as wide as the square"
        );
        assert_eq!(
            *sheet.get_pixel(left + THUMB / 2, top + THUMB / 4),
            PAPER,
            "a quarter as high"
        );
        assert_eq!(compose("", &[shot(1, 65500)]).dimensions(), sheet.dimensions());
    }

    #[test]
    fn every_text_is_drawn_where_it_belongs() {
        let sheet = compose("title", &[shot(64, 64)]);
        let inked = |from: u32, to: u32| {
            (from..to).any(|y| (0..sheet.width()).any(|x| sheet.get_pixel(x, y).0.iter().all(|&c| c < 120)))
        };
        assert!(inked(14, 34), "title");
        assert!(inked(TITLE + THUMB + 4, TITLE + THUMB + 17), "name");
        assert!(inked(TITLE + THUMB + 18, TITLE + THUMB + 31), "gains");
        assert!(
            !inked(TITLE + CELL_HEIGHT, sheet.height()),
            "nothing runs below its cell"
        );
    }

    #[test]
    fn captions_say_degrees_and_factors() {
        let gains = Gains {
            hue: 0.01,
            saturation: 0.35,
            value: -0.25,
        };
        assert_eq!(
            caption(gains),
            "hue +3.6\u{b0}   saturation \u{d7}1.35   value \u{d7}0.75"
        );
    }

    #[test]
    fn no_shots_still_make_a_picture() {
        assert_eq!(compose("title", &[]).height(), TITLE);
    }
}
