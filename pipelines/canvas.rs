//! The sheets that the examples draw: an image that embedded-graphics can draw on, and text that stays where it belongs.

use std::convert::Infallible;

use embedded_graphics::mono_font::{MonoFont, MonoTextStyle};
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::*;
use embedded_graphics::text::{Baseline, Text};
use image::{Rgb, RgbImage};

/// Colours of every sheet: background, names, and what is less important.
pub const PAPER: Rgb<u8> = Rgb([250, 250, 248]);
pub const INK: Rgb888 = Rgb888::new(30, 30, 34);
pub const FAINT: Rgb888 = Rgb888::new(110, 110, 118);

/// The picture under construction, as embedded-graphics wants to draw on it.
pub struct Canvas(pub RgbImage);

impl Canvas {
    /// An empty one.
    pub fn new(width: u32, height: u32) -> Self {
        Self(RgbImage::from_pixel(width, height, PAPER))
    }

    /// Writes one line with its top left corner at `at`, cut to `width` pixels with dots.
    pub fn text(&mut self, line: &str, at: (u32, u32), font: &MonoFont, colour: Rgb888, width: u32) {
        let room = usize::try_from(width / font.character_size.width).unwrap_or(usize::MAX);
        let line = shorten(line, room);
        let at = Point::new(
            i32::try_from(at.0).unwrap_or(i32::MAX),
            i32::try_from(at.1).unwrap_or(i32::MAX),
        );
        let Ok(_) =
            Text::with_baseline(&line, at, MonoTextStyle::new(font, colour), Baseline::Top).draw(self);
    }
}

/// At most `room` characters of `line`, on one line. Names end in what tells them apart, so the beginning goes.
fn shorten(line: &str, room: usize) -> String {
    let flat: Vec<char> = line
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if flat.len() <= room {
        return flat.into_iter().collect();
    }
    let kept = room.saturating_sub(2);
    "..".chars()
        .chain(flat[flat.len() - kept..].iter().copied())
        .collect()
}

impl OriginDimensions for Canvas {
    fn size(&self) -> Size {
        Size::new(self.0.width(), self.0.height())
    }
}

impl DrawTarget for Canvas {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<Rgb888>>>(&mut self, pixels: I) -> Result<(), Infallible> {
        for Pixel(at, colour) in pixels {
            let (Ok(x), Ok(y)) = (u32::try_from(at.x), u32::try_from(at.y)) else {
                continue;
            };
            if let Some(pixel) = self.0.get_pixel_mut_checked(x, y) {
                *pixel = Rgb([colour.r(), colour.g(), colour.b()]);
            }
        }
        Ok(())
    }
}

/// The last part of a percent-encoded URI, as text.
pub fn file_name(uri: &str) -> String {
    let last = uri.rsplit('/').next().unwrap_or(uri);
    percent_encoding::percent_decode_str(last)
        .decode_utf8_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_end_on_one_line() {
        assert_eq!(shorten("short", 5), "short");
        assert_eq!(shorten("a/very/long/000123.jpg", 12), "..000123.jpg");
        assert_eq!(shorten("two\nlines", 20), "two lines");
    }

    #[test]
    fn names_are_readable() {
        assert_eq!(
            file_name("file:///photos/caf%C3%A9%20one.jpg"),
            "caf\u{e9} one.jpg"
        );
    }
}
