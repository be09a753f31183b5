//! How a location is read, as the properties of `epochsrc` write it.

use super::error::FeedError;
use super::part::Part;
use super::settings::{Nick, location};
use crate::dataset::{Crowd, Format, Options, OutOfImage, Split};
use crate::elements::epochsrc::join_classes;

/// Gives `source` the properties that `options` stand for.
pub(super) fn describe(source: Part, options: &Options) -> Result<Part, FeedError> {
    let source = source
        .name("format", options.format.nick())?
        .name("split", options.split.nick())?
        .name("crowd", options.crowd.nick())?
        .name("out-of-image", options.out_of_image.nick())?
        .text("classes", &join_classes(&options.classes))?
        .real("fraction", options.fraction)?
        .choice("single-class", options.single_class)
        .choice("strict", options.strict);
    match &options.root {
        None => Ok(source),
        Some(root) => {
            let path =
                location(root).map_err(|error| Part::refuse("root", root.display(), &error.to_string()))?;
            source.text("root", &path)
        }
    }
}

impl Nick for Format {
    fn nick(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Folder => "folder",
            Self::List => "list",
            Self::Coco => "coco",
            Self::Yolo => "yolo",
            Self::ImageFolder => "imagefolder",
        }
    }
}

impl Nick for Split {
    fn nick(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Val => "val",
        }
    }
}

impl Nick for Crowd {
    fn nick(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Keep => "keep",
        }
    }
}

impl Nick for OutOfImage {
    fn nick(self) -> &'static str {
        match self {
            Self::Clip => "clip",
            Self::Drop => "drop",
            Self::Keep => "keep",
        }
    }
}
