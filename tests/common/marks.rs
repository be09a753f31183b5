//! Annotated images whose boxes can be checked in the pixels: made from the photographs, each with marks of a colour of its own.
//!
//! A mark is a filled rectangle, and its box is its sides. Around it is a frame of the opposite colour, so that where the mark ends
//! is plain whatever the photograph is like. The colour says which image it is, so that boxes and pixels which do not belong
//! together are found.

use std::path::{Path, PathBuf};

use image::imageops::{FilterType, resize};
use image::metadata::Orientation;
use image::{DynamicImage, ImageEncoder, Rgb, RgbImage};
use serde_json::json;

/// A box: left, top, right, bottom, in pixels of the upright image.
pub type Sides = [u32; 4];

/// One image of a set.
#[derive(Clone, Debug)]
pub struct Marked {
    /// COCO's id. Neither the order of the files nor that of the annotations.
    pub id: i64,
    /// Its name in the folder `images`.
    pub file: String,
    /// Width and height, upright.
    pub size: (u32, u32),
    /// EXIF orientation: how the file has to be turned.
    pub orientation: u8,
    /// Class and box of each mark.
    pub marks: Vec<(u32, Sides)>,
}

/// What an annotation says of an image: its size, and class and box of each mark.
pub type Said = ((u32, u32), Vec<(u32, Sides)>);

impl Marked {
    /// What the annotation of the image as it is seen says.
    pub fn upright(&self) -> Said {
        (self.size, self.marks.clone())
    }

    /// What the annotation of the image as it is stored says.
    pub fn as_stored(&self) -> Said {
        let (width, height) = self.size;
        let turn = |[left, top, right, bottom]: Sides| match self.orientation {
            2 => [width - right, top, width - left, bottom],
            3 => [width - right, height - bottom, width - left, height - top],
            4 => [left, height - bottom, right, height - top],
            5 => [top, left, bottom, right],
            6 => [top, width - right, bottom, width - left],
            7 => [height - bottom, width - right, height - top, width - left],
            8 => [height - bottom, left, height - top, right],
            _ => [left, top, right, bottom],
        };
        let size = if self.orientation >= 5 {
            (height, width)
        } else {
            (width, height)
        };
        let marks = self.marks.iter().map(|(class, sides)| (*class, turn(*sides)));
        (size, marks.collect())
    }

    /// Whether its size tells whether an annotation is of the image as it is stored.
    pub fn is_told(&self) -> bool {
        self.orientation >= 5 && self.size.0 != self.size.1
    }
}

/// A folder with `images`, and annotations if they are written.
pub struct MarkedSet {
    pub folder: PathBuf,
    /// In the order of their names, which is the dataset's.
    pub images: Vec<Marked>,
}

/// Levels of each channel: far enough apart for JPEG and resampling.
const LEVELS: i64 = 6;
const STEP: i64 = 51;
/// How many images can be told apart.
pub const MOST: usize = (LEVELS * LEVELS * LEVELS) as usize;
/// Classes of the marks; COCO's ids of them have gaps.
const CLASSES: u32 = 7;
/// Sizes of the images, upright: landscape, portrait, square, odd, tiny, and with sides of one pixel.
const SIZES: [(u32, u32); 18] = [
    (320, 213),
    (213, 320),
    (451, 300),
    (240, 427),
    (161, 119),
    (128, 128),
    (97, 131),
    (640, 360),
    (333, 500),
    (641, 479),
    (17, 13),
    (7, 5),
    (2, 3),
    (1, 1),
    (1, 64),
    (64, 1),
    (640, 1),
    (1, 500),
];

/// The number of an image from its id, by which its colour is known.
fn number(id: i64) -> i64 {
    (id - 9000) / 13
}

/// The colour of an image's marks.
pub fn color(id: i64) -> [u8; 3] {
    let number = number(id);
    [number / (LEVELS * LEVELS), number / LEVELS, number].map(|part| (part % LEVELS * STEP) as u8)
}

/// The id of the image with marks of this colour, give or take what JPEG does to it.
pub fn id_of(color: [u8; 3]) -> i64 {
    let [red, green, blue] = color.map(|part| (i64::from(part) + STEP / 2) / STEP);
    9000 + 13 * ((red * LEVELS + green) * LEVELS + blue)
}

/// The colour around a mark.
fn opposite(color: [u8; 3]) -> [u8; 3] {
    color.map(|part| if part < 128 { 255 } else { 0 })
}

/// How much of a pixel is the mark, and not what is around it: 0 to 1.
pub fn share(pixel: [u8; 3], color: [u8; 3]) -> f64 {
    let around = opposite(color);
    let dot = |a: [u8; 3], b: [u8; 3]| -> f64 {
        let parts = (0..3)
            .map(|i| (f64::from(a[i]) - f64::from(around[i])) * (f64::from(b[i]) - f64::from(around[i])));
        parts.sum()
    };
    (dot(pixel, color) / dot(color, color)).clamp(0.0, 1.0)
}

impl MarkedSet {
    /// Makes `count` images in `folder`, half of them PNG, half JPEG, of all orientations and sizes.
    pub fn make(folder: &Path, count: usize) -> Self {
        assert!(count <= MOST);
        let photos: Vec<_> = super::photos().iter().take(12).map(|file| open(file)).collect();
        std::fs::create_dir_all(folder.join("images")).unwrap();
        let mut images: Vec<_> = (0..count)
            .map(|number| {
                let (round, place) = (number / SIZES.len(), number % SIZES.len());
                let size = SIZES[place];
                // So that in eight rounds every size comes in every orientation, and every orientation in both formats.
                let orientation = 1 + (place + 3 * round) as u8 % 8;
                let ending = ["png", "jpg"][(place / 2 + round) % 2];
                let image = Marked {
                    id: 9000 + 13 * number as i64,
                    file: format!("{:03}-{number}.{ending}", number * 91 % 1000),
                    size,
                    orientation,
                    marks: marks(number as u32, size),
                };
                let picture = paint(&photos[number % photos.len()], &image);
                write(&folder.join("images").join(&image.file), &picture, orientation);
                image
            })
            .collect();
        images.sort_by(|a, b| a.file.cmp(&b.file));
        Self {
            folder: folder.to_owned(),
            images,
        }
    }

    /// The image with this id.
    #[track_caller]
    pub fn get(&self, id: i64) -> &Marked {
        let found = self.images.iter().find(|image| image.id == id);
        found.unwrap_or_else(|| panic!("no image has the id {id}"))
    }

    /// The path of `image`.
    pub fn path(&self, image: &Marked) -> PathBuf {
        self.folder.join("images").join(&image.file)
    }

    /// Writes the annotations as COCO does, boxes of the upright images.
    pub fn coco(&self) -> PathBuf {
        self.coco_of("upright.json", Marked::upright)
    }

    /// Writes the annotations as COCO does, with the size and the boxes that `of` says.
    pub fn coco_of(&self, name: &str, of: impl Fn(&Marked) -> Said) -> PathBuf {
        // The order of the ids, which is neither the files' nor that of anything else here.
        let mut images: Vec<_> = self.images.iter().collect();
        images.sort_by_key(|image| std::cmp::Reverse(image.id));
        let mut boxes = Vec::new();
        let listed: Vec<_> = images
            .iter()
            .map(|image| {
                let ((width, height), marks) = of(image);
                for (class, [left, top, right, bottom]) in marks {
                    boxes.push(json!({
                        "id": boxes.len() + 1,
                        "image_id": image.id,
                        "category_id": category(class),
                        "iscrowd": 0,
                        "bbox": [left, top, right - left, bottom - top],
                    }));
                }
                json!({ "id": image.id, "file_name": image.file, "width": width, "height": height })
            })
            .collect();
        let categories: Vec<_> = (0..CLASSES)
            .map(|class| json!({ "id": category(class), "name": format!("mark {class}") }))
            .collect();
        let file = self.folder.join(name);
        let content = json!({ "images": listed, "annotations": boxes, "categories": categories });
        std::fs::write(&file, content.to_string()).unwrap();
        file
    }

    /// Writes the annotations as YOLO does, boxes of the upright images; the dataset is the folder.
    pub fn yolo(&self) -> PathBuf {
        self.yolo_of(Marked::upright)
    }

    /// Writes the annotations as YOLO does, with boxes of images of the size that `of` says.
    pub fn yolo_of(&self, of: impl Fn(&Marked) -> Said) -> PathBuf {
        std::fs::create_dir_all(self.folder.join("labels")).unwrap();
        for image in &self.images {
            let (size, marks) = of(image);
            let (width, height) = (f64::from(size.0), f64::from(size.1));
            let line = |(class, sides): &(u32, Sides)| {
                let [left, top, right, bottom] = sides.map(f64::from);
                format!(
                    "{class} {} {} {} {}\n",
                    (left + right) / 2.0 / width,
                    (top + bottom) / 2.0 / height,
                    (right - left) / width,
                    (bottom - top) / height
                )
            };
            let labels = self.folder.join("labels").join(&image.file).with_extension("txt");
            std::fs::write(labels, marks.iter().map(line).collect::<String>()).unwrap();
        }
        self.folder.clone()
    }
}

/// COCO's id of a class.
fn category(class: u32) -> u32 {
    2 + class * 5
}

/// Where the marks of an image are: side by side, up to three.
fn marks(number: u32, (width, height): (u32, u32)) -> Vec<(u32, Sides)> {
    let count = if width >= 90 { 1 + number % 3 } else { 1 };
    let column = width / count;
    (0..count)
        .map(|place| {
            let seed = number * 31 + place * 17;
            let (left, right) = span(column, seed);
            let (top, bottom) = span(height, seed / 3);
            let sides = [left + place * column, top, right + place * column, bottom];
            ((number + place * 3) % CLASSES, sides)
        })
        .collect()
}

/// A part of a side, with room around it where there is some.
fn span(side: u32, seed: u32) -> (u32, u32) {
    match side {
        ..3 => (0, side),
        3..12 => (1, side - 1),
        _ => {
            let room = around(side);
            let length = side / 4 + seed % (side / 4);
            let start = room + seed * 7 % (side - length - 2 * room + 1);
            (start, start + length)
        }
    }
}

/// How thick the frame around a mark is.
fn around(side: u32) -> u32 {
    (side / 16).max(1)
}

fn open(photo: &Path) -> RgbImage {
    let photo = turbojpeg::decompress(&std::fs::read(photo).unwrap(), turbojpeg::PixelFormat::RGB).unwrap();
    RgbImage::from_raw(photo.width as u32, photo.height as u32, photo.pixels).unwrap()
}

/// The picture of `image`, upright.
fn paint(photo: &RgbImage, image: &Marked) -> RgbImage {
    let (width, height) = image.size;
    let mut picture = resize(photo, width, height, FilterType::Nearest);
    let fill = |picture: &mut RgbImage, [left, top, right, bottom]: Sides, color| {
        for y in top..bottom {
            for x in left..right {
                picture.put_pixel(x, y, Rgb(color));
            }
        }
    };
    let color = color(image.id);
    let column = width / image.marks.len() as u32;
    for (_, [left, top, right, bottom]) in &image.marks {
        let (x, y) = (around(column), around(height));
        let frame = [
            left.saturating_sub(x),
            top.saturating_sub(y),
            (right + x).min(width),
            (bottom + y).min(height),
        ];
        fill(&mut picture, frame, opposite(color));
    }
    for (_, sides) in &image.marks {
        fill(&mut picture, *sides, color);
    }
    picture
}

/// Writes the upright `picture` as a file that has to be turned by `orientation`.
fn write(file: &Path, picture: &RgbImage, orientation: u8) {
    let undone = match orientation {
        6 => 8,
        8 => 6,
        other => other,
    };
    let mut stored = DynamicImage::from(picture.clone());
    stored.apply_orientation(Orientation::from_exif(undone).unwrap());
    let stored = stored.into_rgb8();
    let exif = [
        b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".as_slice(),
        &[orientation, 0, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    let (width, height) = stored.dimensions();
    let bytes = if file.extension().is_some_and(|ending| ending == "png") {
        let mut bytes = Vec::new();
        let mut encoder = image::codecs::png::PngEncoder::new(&mut bytes);
        encoder.set_exif_metadata(exif).unwrap();
        encoder
            .write_image(&stored, width, height, image::ExtendedColorType::Rgb8)
            .unwrap();
        bytes
    } else {
        let image = turbojpeg::Image {
            pixels: stored.as_raw().as_slice(),
            width: width as usize,
            pitch: width as usize * 3,
            height: height as usize,
            format: turbojpeg::PixelFormat::RGB,
        };
        let jpeg = turbojpeg::compress(image, 100, turbojpeg::Subsamp::None).unwrap();
        let length = (exif.len() + 8) as u16;
        // Directly behind SOI.
        [
            &jpeg[..2],
            &[0xff, 0xe1],
            &length.to_be_bytes(),
            b"Exif\0\0",
            &exif,
            &jpeg[2..],
        ]
        .concat()
    };
    std::fs::write(file, bytes).unwrap();
}
