//! The timeline: what the trainer does, a band a run, on one axis.

use std::convert::Infallible;
use std::error::Error;
use std::path::Path;
use std::time::Duration;

use embedded_graphics::mono_font::MonoTextStyle;
use embedded_graphics::mono_font::iso_8859_1::{FONT_7X13, FONT_10X20};
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::*;
use embedded_graphics::text::{Baseline, Text};
use image::{Rgb, RgbImage};

use crate::arm::Arm;

const WIDTH: u32 = 1200;
const LEFT: u32 = 24;
const BAND: u32 = 46;
const TOP: u32 = 64;
const ROW: u32 = 96;
const PAPER: Rgb<u8> = Rgb([250, 250, 248]);
const INK: Rgb888 = Rgb888::new(30, 30, 34);
const TRAIN: Rgb<u8> = Rgb([86, 156, 214]);
const VALIDATE: Rgb<u8> = Rgb([196, 200, 206]);
const WAIT: Rgb<u8> = Rgb([214, 60, 60]);
/// How many boundaries are shown: more would be too narrow to see.
const SHOWN: usize = 4;

/// Draws the first epochs of `arms`, which validate for `validation` milliseconds, into a PNG at `out`.
pub fn draw(arms: &[&Arm], validation: u32, out: &Path) -> Result<(), Box<dyn Error>> {
    let rows = u32::try_from(arms.len())?;
    let mut image = RgbImage::from_pixel(WIDTH, TOP + rows * ROW + 24, PAPER);
    let span = arms
        .iter()
        .filter_map(|arm| arm.epochs.iter().take(SHOWN + 1).map(|epoch| epoch.ended).max())
        .max()
        .ok_or("no epoch was seen")?;
    let validation = Duration::from_millis(validation.into());
    let x = |time: Duration| {
        let share = time.as_secs_f64() / span.as_secs_f64().max(1e-9);
        LEFT + (share.min(1.0) * f64::from(WIDTH - 2 * LEFT)) as u32
    };
    text(&mut image, "epochfeed: what the trainer does", (LEFT, 10), true);
    let legend = [
        ("training", TRAIN),
        ("validation", VALIDATE),
        ("waiting for the next epoch", WAIT),
    ];
    let mut left = LEFT;
    for (name, colour) in legend {
        fill(&mut image, (left, 40), (left + 12, 52), colour);
        text(&mut image, name, (left + 18, 40), false);
        left += 40 + 7 * u32::try_from(name.len())?;
    }
    for (row, arm) in (0..rows).zip(arms) {
        let top = TOP + row * ROW + 22;
        let title = format!(
            "prefetch={}: boundary wait {:.1} ms (median of {}), whole run {:.2} s",
            arm.prefetch,
            arm.boundary(50).as_secs_f64() * 1e3,
            arm.epochs.len().saturating_sub(1),
            arm.wall.as_secs_f64(),
        );
        text(&mut image, &title, (LEFT, top - 18), false);
        for epoch in arm.epochs.iter().take(SHOWN + 1) {
            let first = epoch.asked + epoch.boundary;
            // A wait is drawn however short: one pixel that is red is the point.
            fill(&mut image, (x(first), top), (x(epoch.ended), top + BAND), TRAIN);
            fill(
                &mut image,
                (x(epoch.asked), top),
                (x(first).max(x(epoch.asked) + 1), top + BAND),
                WAIT,
            );
            fill(
                &mut image,
                (x(epoch.ended), top),
                (x(epoch.ended + validation), top + BAND),
                VALIDATE,
            );
        }
    }
    if let Some(folder) = out.parent() {
        std::fs::create_dir_all(folder)?;
    }
    image
        .save_with_format(out, image::ImageFormat::Png)
        .map_err(|error| format!("cannot write {}: {error}", out.display()))?;
    Ok(())
}

fn fill(image: &mut RgbImage, from: (u32, u32), to: (u32, u32), colour: Rgb<u8>) {
    for y in from.1..to.1.min(image.height()) {
        for x in from.0..to.0.min(image.width()) {
            image.put_pixel(x, y, colour);
        }
    }
}

/// What embedded-graphics draws on.
struct Canvas<'a>(&'a mut RgbImage);

impl OriginDimensions for Canvas<'_> {
    fn size(&self) -> Size {
        Size::new(self.0.width(), self.0.height())
    }
}

impl DrawTarget for Canvas<'_> {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<Rgb888>>>(&mut self, pixels: I) -> Result<(), Infallible> {
        for Pixel(point, colour) in pixels {
            if let (Ok(x), Ok(y)) = (u32::try_from(point.x), u32::try_from(point.y))
                && let Some(pixel) = self.0.get_pixel_mut_checked(x, y)
            {
                *pixel = Rgb([colour.r(), colour.g(), colour.b()]);
            }
        }
        Ok(())
    }
}

fn text(image: &mut RgbImage, text: &str, (x, y): (u32, u32), large: bool) {
    let style = MonoTextStyle::new(if large { &FONT_10X20 } else { &FONT_7X13 }, INK);
    let point = Point::new(x.cast_signed(), y.cast_signed());
    let Ok(_) = Text::with_baseline(text, point, style, Baseline::Top).draw(&mut Canvas(image));
}
