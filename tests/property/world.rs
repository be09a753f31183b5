//! The files of a life, and what is set from outside.

use std::fs;
use std::path::{Path, PathBuf};

use super::life::{Ahead, Setup};
use crate::common::scratch;

/// A folder of tiny images, each of its own colours, and the settings of the moment.
pub struct World {
    pub setup: Setup,
    pub ahead: Ahead,
    pub hue: f64,
    pub side: i32,
    /// What the elements read.
    folder: tempfile::TempDir,
    /// Where a file is while it is gone.
    aside: tempfile::TempDir,
}

impl World {
    pub fn new(setup: &Setup, ahead: Ahead) -> Self {
        let world = Self {
            setup: setup.clone(),
            ahead,
            hue: 0.0,
            side: 8,
            folder: scratch(),
            aside: scratch(),
        };
        for index in 0..setup.sampler.size {
            let path = world.file(index);
            match setup.broken {
                Some((broken, at_source)) if broken == index => {
                    // An empty file is found by the source, one without pixels by the decoder.
                    let header = png(index);
                    fs::write(path, if at_source { &[][..] } else { &header[..40] }).unwrap();
                }
                _ => fs::write(path, png(index)).unwrap(),
            }
        }
        world
    }

    pub fn location(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self, index: u64) -> PathBuf {
        self.folder.path().join(format!("{index:02}.png"))
    }

    fn hidden(&self) -> PathBuf {
        self.aside.path().join("victim")
    }

    /// The victim is gone.
    pub fn lose(&self) {
        fs::rename(self.file(self.setup.victim), self.hidden()).unwrap();
    }

    /// It is back.
    pub fn restore(&self) {
        fs::rename(self.hidden(), self.file(self.setup.victim)).unwrap();
    }
}

/// A picture of 6×5 pixels that no other number has.
fn png(number: u64) -> Vec<u8> {
    let picture = image::RgbImage::from_fn(6, 5, |x, y| {
        let base = number as u32 * 23;
        image::Rgb([
            (base + 40 * x) as u8,
            (200 + base + 11 * y) as u8,
            (base + 7 * x * y) as u8,
        ])
    });
    let mut file = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut file, image::ImageFormat::Png).unwrap();
    file.into_inner()
}
