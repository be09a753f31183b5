//! Reading a COCO file as a stream, into flat arrays: of 450 MB some 60 MB stay. Nothing of the segmentations is kept.

use std::fmt;
use std::io::{BufReader, Read};
use std::marker::PhantomData;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::super::checks::{Checks, Finding};
use super::entry::{BoxEntry, CategoryEntry, ImageEntry, Lenient};
use super::text::Standard;

/// What of a COCO file is kept, in the file's order.
#[derive(Debug, Default)]
pub struct Coco {
    pub(super) images: Vec<RawImage>,
    /// The names of the images, one behind the other.
    names: Vec<u8>,
    pub(super) boxes: Vec<RawBox>,
    pub(super) categories: Vec<RawCategory>,
    pub(super) checks: Checks,
}

#[derive(Debug)]
pub(super) struct RawImage {
    pub id: i64,
    pub size: Option<(u32, u32)>,
    name: Range<usize>,
}

#[derive(Debug)]
pub(super) struct RawBox {
    pub id: Option<i64>,
    pub image: i64,
    pub category: i64,
    pub bbox: [f32; 4],
    pub crowd: bool,
}

#[derive(Debug)]
pub(super) struct RawCategory {
    pub id: i64,
    pub name: Option<String>,
}

/// Why a text is no COCO file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CocoError {
    /// It is no JSON, it ends too early, or it is JSON of another kind; the message has line and column.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// An object without `images`.
    #[error("it has no \"images\"; a file of detections or captions lists no files")]
    NoImages,
}

impl Coco {
    /// How many images it lists.
    pub fn images(&self) -> usize {
        self.images.len()
    }

    /// How many boxes it has, before any check.
    pub fn boxes(&self) -> usize {
        self.boxes.len()
    }

    pub(super) fn name(&self, image: &RawImage) -> &[u8] {
        &self.names[image.name.clone()]
    }

    fn add_image(&mut self, entry: Lenient<ImageEntry>) {
        let entry = entry.0.unwrap_or_default();
        match (entry.id.id(), entry.file_name.0) {
            (Some(id), Some(name)) => {
                let start = self.names.len();
                self.names.extend_from_slice(&name);
                let name = start..self.names.len();
                let size = entry.width.side().zip(entry.height.side());
                self.images.push(RawImage { id, size, name });
            }
            (id, name) => self.checks.add(Finding::Malformed, || match (id, name) {
                (Some(id), _) => format!("image {id} without file_name"),
                (None, Some(name)) => format!("image {} without id", String::from_utf8_lossy(&name)),
                (None, None) => "an image without id and file_name".to_owned(),
            }),
        }
    }

    fn add_box(&mut self, entry: Lenient<BoxEntry>) {
        let entry = entry.0.unwrap_or_default();
        let id = entry.id.id();
        match (entry.image_id.id(), entry.category_id.id(), entry.bbox.0) {
            (Some(image), Some(category), Some(bbox)) => self.boxes.push(RawBox {
                id,
                image,
                category,
                bbox,
                crowd: entry.iscrowd.is_true(),
            }),
            (image, category, _) => self.checks.add(Finding::Malformed, || {
                let missing = match (image, category) {
                    (None, _) => "image_id",
                    (_, None) => "category_id",
                    _ => "a bbox of 4 numbers",
                };
                match id {
                    Some(id) => format!("annotation {id} without {missing}"),
                    None => format!("an annotation without {missing}"),
                }
            }),
        }
    }

    fn add_category(&mut self, entry: Lenient<CategoryEntry>) {
        let entry = entry.0.unwrap_or_default();
        match entry.id.id() {
            Some(id) => self.categories.push(RawCategory {
                id,
                name: entry.name.text(),
            }),
            None => self
                .checks
                .add(Finding::Malformed, || "a category without id".to_owned()),
        }
    }
}

/// Reads a COCO file, whatever its bytes are; memory is in proportion to what it holds.
///
/// Entries that do not say what they must are counted and left out. `NaN` and `Infinity`, which Python writes, are read.
///
/// # Errors
/// [`CocoError`]: what is no JSON, ends too early or lists no images, a key that is there twice, a name that is no text.
///
/// ```
/// let text = r#"{"images":[{"id":7,"file_name":"a.jpg"}],"annotations":[],"categories":[]}"#;
/// let coco = epochfeed::dataset::coco::parse(text.as_bytes())?;
/// assert_eq!((coco.images(), coco.boxes()), (1, 0));
/// # Ok::<(), epochfeed::dataset::coco::CocoError>(())
/// ```
pub fn parse(reader: impl Read) -> Result<Coco, CocoError> {
    // Its buffer on the outside, since the parser reads byte by byte.
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(Standard::new(reader)));
    let mut coco = Coco::default();
    let has_images = json.deserialize_map(Top(&mut coco))?;
    json.end()?;
    if has_images {
        Ok(coco)
    } else {
        Err(CocoError::NoImages)
    }
}

/// The file's object; true if it has images.
struct Top<'a>(&'a mut Coco);

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Section {
    Images,
    Annotations,
    Categories,
    #[serde(other)]
    Other,
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with images, annotations and categories")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<bool, A::Error> {
        let mut seen = [false; 3];
        // Of two, Python takes the last: nobody knows whether that was meant.
        let mut once = |at: usize, name| match std::mem::replace(&mut seen[at], true) {
            true => Err(A::Error::duplicate_field(name)),
            false => Ok(()),
        };
        while let Some(section) = entries.next_key()? {
            match section {
                Section::Images => {
                    once(0, "images")?;
                    entries.next_value_seed(each(|entry| self.0.add_image(entry)))?;
                }
                Section::Annotations => {
                    once(1, "annotations")?;
                    entries.next_value_seed(each(|entry| self.0.add_box(entry)))?;
                }
                Section::Categories => {
                    once(2, "categories")?;
                    entries.next_value_seed(each(|entry| self.0.add_category(entry)))?;
                }
                Section::Other => {
                    entries.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(seen[0])
    }
}

/// Calls the function for each entry of an array, none of which is kept.
struct Each<T, F>(F, PhantomData<T>);

fn each<T, F: FnMut(T)>(function: F) -> Each<T, F> {
    Each(function, PhantomData)
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> DeserializeSeed<'de> for Each<T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        while let Some(entry) = entries.next_element()? {
            (self.0)(entry);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> Coco {
        parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn sections_come_in_any_order_with_anything_between() {
        let coco = read(
            r#"{"info":{"a":[{}]},"annotations":[{"id":1,"image_id":7,"category_id":3,"bbox":[1,2,3,4],
            "segmentation":[[1,2,3]],"iscrowd":1,"area":1e3}],"licenses":null,"categories":[{"id":3,"name":"cat",
            "keypoints":["x"]}],"images":[{"license":1,"file_name":"a/b.jpg","height":4,"width":5,"id":7}]}"#,
        );
        assert_eq!((coco.images[0].id, coco.images[0].size), (7, Some((5, 4))));
        assert_eq!(coco.name(&coco.images[0]), b"a/b.jpg");
        let only = &coco.boxes[0];
        assert_eq!(
            (only.id, only.image, only.category, only.crowd),
            (Some(1), 7, 3, true)
        );
        assert_eq!(only.bbox, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(coco.categories[0].name.as_deref(), Some("cat"));
        assert_eq!(coco.checks.found().count(), 0);
    }

    #[test]
    fn entries_without_what_they_must_say_are_counted() {
        let coco = read(
            r#"{"images":[{},{"id":1},{"file_name":"x.jpg"},{"id":1.5,"file_name":"x.jpg"},{"id":2,"file_name":"y"}],
            "annotations":[{},{"id":5,"image_id":2},{"image_id":2,"category_id":1,"bbox":[1,2,3]},
            {"image_id":2,"category_id":1,"bbox":[NaN,-Infinity,1,1]}],"categories":[{},{"id":1,"name":null}]}"#,
        );
        assert_eq!((coco.images(), coco.boxes(), coco.categories.len()), (1, 1, 1));
        assert_eq!(coco.checks.count(Finding::Malformed), 8);
        assert_eq!(
            coco.checks.examples(Finding::Malformed)[1],
            "image 1 without file_name"
        );
        assert!(coco.boxes[0].bbox[..2].iter().all(|number| number.is_nan()));
    }

    #[test]
    fn what_is_no_coco_says_where() {
        let says = |text: &[u8]| parse(text).unwrap_err().to_string();
        for (text, words) in [
            (&b""[..], "EOF"),
            (b"[]", "expected an object with images"),
            (b"{\"images\":[{\"id\":1,\n\"file_na", "line 2 column 8"),
            (b"{\"images\":[]} {}", "trailing characters"),
            (b"{\"annotations\":[]}", "no \"images\""),
            (b"{\"images\":7}", "expected an array"),
            (b"{\"images\":[{\"file_name\":7}]}", "expected a file name"),
            (b"\xff\xfe{\0", "expected value"),
            (b"\x89PNG", "expected value"),
        ] {
            let message = says(text);
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn nesting_is_no_recursion_where_it_is_passed_over() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        let coco = read(&format!("{{\"info\":{deep},\"images\":[]}}"));
        assert_eq!(coco.images(), 0);
        // Where an entry is expected there is a limit.
        assert!(parse(format!("{{\"images\":[{{\"id\":{deep}}}]}}").as_bytes()).is_ok());
        assert!(parse("[".repeat(1_000_000).as_bytes()).is_err());
        assert!(parse("{\"images\":".repeat(1_000_000).as_bytes()).is_err());
    }
}
