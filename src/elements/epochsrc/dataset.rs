//! The names of what a dataset can be asked for.

use crate::dataset::{self, Options, parse_location};

use super::settings::Settings;
use super::start::OpenError;

/// What `location` is read as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstEpochSrcFormat")]
pub enum DatasetFormat {
    /// Told by what is there.
    #[default]
    #[enum_value(
        name = "Auto: COCO for .json, YOLO for data.yaml or images/ with labels/, else folder or list",
        nick = "auto"
    )]
    Auto,
    /// All images below it.
    #[enum_value(name = "Folder: all images below a folder, or one image", nick = "folder")]
    Folder,
    /// A text list.
    #[enum_value(name = "List: a text file with one path per line", nick = "list")]
    List,
    /// COCO.
    #[enum_value(name = "COCO: a JSON file of images, categories and boxes", nick = "coco")]
    Coco,
    /// YOLO.
    #[enum_value(
        name = "YOLO: a data.yaml, or images in a folder or list with a label file each",
        nick = "yolo"
    )]
    Yolo,
    /// A folder per class.
    #[enum_value(
        name = "Image folder: a folder per class; one box around each image",
        nick = "imagefolder"
    )]
    ImageFolder,
}

impl From<DatasetFormat> for dataset::Format {
    fn from(format: DatasetFormat) -> Self {
        match format {
            DatasetFormat::Auto => Self::Auto,
            DatasetFormat::Folder => Self::Folder,
            DatasetFormat::List => Self::List,
            DatasetFormat::Coco => Self::Coco,
            DatasetFormat::Yolo => Self::Yolo,
            DatasetFormat::ImageFolder => Self::ImageFolder,
        }
    }
}

/// Which part of a YOLO set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstEpochSrcSplit")]
pub enum Split {
    /// To train with.
    #[default]
    #[enum_value(name = "Train", nick = "train")]
    Train,
    /// To validate with.
    #[enum_value(name = "Val", nick = "val")]
    Val,
}

impl From<Split> for dataset::Split {
    fn from(split: Split) -> Self {
        match split {
            Split::Train => Self::Train,
            Split::Val => Self::Val,
        }
    }
}

/// What is done with boxes around crowds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstEpochSrcCrowd")]
pub enum Crowd {
    /// Left out.
    #[default]
    #[enum_value(name = "Drop: leave them out, counted", nick = "drop")]
    Drop,
    /// As others.
    #[enum_value(name = "Keep: boxes like others", nick = "keep")]
    Keep,
}

impl From<Crowd> for dataset::Crowd {
    fn from(crowd: Crowd) -> Self {
        match crowd {
            Crowd::Drop => Self::Drop,
            Crowd::Keep => Self::Keep,
        }
    }
}

/// What is done with boxes that reach out of their image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstEpochSrcOutOfImage")]
pub enum OutOfImage {
    /// Cut.
    #[default]
    #[enum_value(name = "Clip: cut them at the edge, counted", nick = "clip")]
    Clip,
    /// Left out.
    #[enum_value(name = "Drop: leave them out, counted", nick = "drop")]
    Drop,
    /// As they are.
    #[enum_value(name = "Keep: take them as they are, counted", nick = "keep")]
    Keep,
}

impl From<OutOfImage> for dataset::OutOfImage {
    fn from(out_of_image: OutOfImage) -> Self {
        match out_of_image {
            OutOfImage::Clip => Self::Clip,
            OutOfImage::Drop => Self::Drop,
            OutOfImage::Keep => Self::Keep,
        }
    }
}

/// What is done where a state is of another dataset than the one that is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstEpochSrcOnChange")]
pub enum OnChange {
    /// Refused.
    #[default]
    #[enum_value(name = "Error: refuse the state", nick = "error")]
    Error,
    /// The epoch starts again.
    #[enum_value(
        name = "Restart: begin the state's epoch again, with the dataset as it is now",
        nick = "restart"
    )]
    Restart,
}

impl Settings {
    /// How the location is to be read.
    pub fn dataset_options(&self) -> Result<Options, OpenError> {
        let root = self.root.as_deref().filter(|root| !root.is_empty());
        let root = root.map(parse_location).transpose().map_err(OpenError::Root)?;
        let classes = self.classes.as_deref().unwrap_or_default();
        Ok(Options {
            format: self.format.into(),
            root,
            split: self.split.into(),
            crowd: self.crowd.into(),
            classes: split_classes(classes),
            single_class: self.single_class,
            fraction: self.fraction,
            out_of_image: self.out_of_image.into(),
            strict: self.strict,
        })
    }
}

/// The classes of the property `classes`: between commas, without the spaces around them; a backslash takes the next
/// character as it is.
fn split_classes(text: &str) -> Vec<String> {
    let (mut classes, mut class, mut characters) = (Vec::new(), String::new(), text.chars());
    let mut end = |class: &mut String| {
        let name = class.trim();
        if !name.is_empty() {
            classes.push(name.to_owned());
        }
        class.clear();
    };
    while let Some(character) = characters.next() {
        match character {
            ',' => end(&mut class),
            '\\' => class.extend(characters.next()),
            _ => class.push(character),
        }
    }
    end(&mut class);
    classes
}

/// The text of the property `classes` that means these.
pub fn join_classes(classes: &[String]) -> String {
    let escaped = |class: &String| class.replace('\\', r"\\").replace(',', r"\,");
    classes.iter().map(escaped).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_stand_between_commas() {
        assert_eq!(split_classes("cat, sports ball ,,3"), ["cat", "sports ball", "3"]);
        assert_eq!(split_classes(r"a\,b,c\\,d\"), ["a,b", r"c\", "d"]);
        assert!(split_classes(" , ").is_empty());
    }

    proptest! {
        #[test]
        fn what_is_joined_is_split_again(classes in proptest::collection::vec(r"[a,\\][a,\\ ]{0,4}[b,\\]", 0..4)) {
            prop_assert_eq!(split_classes(&join_classes(&classes)), classes);
        }
    }
}
