//! How a location is read: its format, and what of it is wanted.

use std::collections::HashSet;
use std::path::PathBuf;

use super::DatasetError;

/// What a location is read as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Told by what is there; see [`Dataset::open_with`](super::Dataset::open_with).
    #[default]
    Auto,
    /// All images below a folder, or one image.
    Folder,
    /// A text list, one path a line.
    List,
    /// A COCO JSON file.
    Coco,
    /// YOLO: a `data.yaml`, or images in a folder or list with a label file each.
    Yolo,
    /// A folder per class.
    ImageFolder,
}

/// Which part of a YOLO set: as its `data.yaml` says, or by the names of its folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Split {
    /// `train`.
    #[default]
    Train,
    /// `val`.
    Val,
}

/// What is done with COCO's boxes around crowds (`iscrowd`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Crowd {
    /// They are left out, as detectors are trained.
    #[default]
    Drop,
    /// They are boxes like others.
    Keep,
}

/// What is done with a box that reaches out of its image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OutOfImage {
    /// It is cut at the image's edge; what lies outside entirely is left out.
    #[default]
    Clip,
    /// It is left out.
    Drop,
    /// It stays as it is.
    Keep,
}

/// How a location is read. The defaults take everything that is sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// What the location is.
    pub format: Format,
    /// What COCO's file names are relative to, and the `path` of a `data.yaml`; found beside the file where `None`.
    pub root: Option<PathBuf>,
    /// Which part of a YOLO set that has parts.
    pub split: Split,
    /// COCO's boxes around crowds.
    pub crowd: Crowd,
    /// Names or numbers of the classes whose boxes are kept; all where empty. The numbers are those of
    /// [`class_names`](super::Dataset::class_names), not COCO's category ids. Classes keep their numbers and images stay in
    /// the dataset, as with Ultralytics' `classes`. Refused for a dataset without boxes.
    pub classes: Vec<String>,
    /// All boxes are of class 0, called `item`.
    pub single_class: bool,
    /// Only this part of the samples, from the first on in the dataset's order, as with Ultralytics' `fraction`: more than
    /// 0, at most 1. Of class folders, these are the first classes.
    pub fraction: f64,
    /// Boxes that reach out of their image.
    pub out_of_image: OutOfImage,
    /// What the checks find is an error.
    pub strict: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: Format::Auto,
            root: None,
            split: Split::Train,
            crowd: Crowd::Drop,
            classes: Vec::new(),
            single_class: false,
            fraction: 1.0,
            out_of_image: OutOfImage::Clip,
            strict: false,
        }
    }
}

impl Options {
    /// How many of `count` samples are wanted: at least one, rounded as Python rounds.
    pub(super) fn share_of(&self, count: usize) -> usize {
        let wanted = (count as f64 * self.fraction).round_ties_even();
        (wanted as usize).clamp(1, count.max(1))
    }

    pub(super) fn check(&self) -> Result<(), DatasetError> {
        if self.fraction > 0.0 && self.fraction <= 1.0 {
            return Ok(());
        }
        Err(DatasetError::BadOption {
            option: "fraction",
            value: self.fraction.to_string(),
            remedy: "give a number above 0, at most 1".to_owned(),
        })
    }

    /// The classes whose boxes are wanted; `None` if all are. Without names there are only numbers.
    pub(super) fn wanted_classes(&self, names: &[String]) -> Result<Option<HashSet<u32>>, DatasetError> {
        if self.classes.is_empty() {
            return Ok(None);
        }
        let mut wanted = HashSet::new();
        for class in &self.classes {
            let numbers = numbers_of(class.trim(), names);
            if numbers.is_empty() {
                return Err(DatasetError::BadOption {
                    option: "classes",
                    value: class.clone(),
                    remedy: format!("give names or numbers of the dataset's classes: {}", known(names)),
                });
            }
            wanted.extend(numbers);
        }
        Ok(Some(wanted))
    }
}

/// The classes that `class` means, by name before number. Files have names with spaces around them, and several classes of
/// one name.
fn numbers_of(class: &str, names: &[String]) -> Vec<u32> {
    let is_named = |name: &String| !class.is_empty() && name.trim() == class;
    let named = (0..).zip(names).filter(|(_, name)| is_named(name));
    let named: Vec<u32> = named.map(|(number, _)| number).collect();
    if !named.is_empty() {
        return named;
    }
    let exists = |number: &u32| names.is_empty() || (*number as usize) < names.len();
    class.parse().ok().filter(exists).into_iter().collect()
}

/// The classes in a message, not all of a thousand.
fn known(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut text: Vec<_> = names
        .iter()
        .take(SHOWN)
        .enumerate()
        .map(|(number, name)| format!("{number} {name}"))
        .collect();
    match names.len() {
        0 => text.push("it names none, so only numbers".to_owned()),
        all if all > SHOWN => text.push(format!("… {all} in all")),
        _ => {}
    }
    text.join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_rounded_as_python_does_and_never_none() {
        let share = |fraction, count| {
            Options {
                fraction,
                ..Options::default()
            }
            .share_of(count)
        };
        // python3 -c "print(round(5 * .5), round(7 * .5), round(10 * .1))"
        assert_eq!((share(0.5, 5), share(0.5, 7), share(0.1, 10)), (2, 4, 1));
        assert_eq!((share(0.001, 10), share(1.0, 10)), (1, 10));
    }

    #[test]
    fn fractions_that_mean_nothing_are_refused() {
        for fraction in [0.0, -0.5, 1.01, f64::NAN, f64::INFINITY] {
            let options = Options {
                fraction,
                ..Options::default()
            };
            let message = options.check().unwrap_err().to_string();
            assert!(
                message.contains("fraction") && message.contains("at most 1"),
                "{message}"
            );
        }
        assert!(Options::default().check().is_ok());
    }

    #[test]
    fn classes_go_by_name_before_number() {
        let names = ["cat", "0", "dog"].map(String::from);
        let wanted = |classes: &[&str]| {
            let classes = classes.iter().map(ToString::to_string).collect();
            let options = Options {
                classes,
                ..Options::default()
            };
            options.wanted_classes(&names)
        };
        assert_eq!(wanted(&[]).unwrap(), None);
        assert_eq!(wanted(&["0", " 2"]).unwrap(), Some(HashSet::from([1, 2])));
        for unknown in ["bird", "3", "-1", ""] {
            let message = wanted(&[unknown]).unwrap_err().to_string();
            assert!(message.contains("0 cat, 1 0, 2 dog"), "{message}");
        }
    }
}
