//! What a dataset's start finds wrong with it: counts and first examples, as one table.

use std::fmt;

/// How many examples of a kind are kept.
const EXAMPLES: usize = 3;

/// Longest example; a hostile name is cut.
const EXAMPLE_CHARS: usize = 160;

/// A kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finding {
    /// A file that is listed and not there. The sample stays and is a fault when its turn comes.
    MissingFile,
    /// A path that leads out of the root; its image and boxes are left out.
    OutsideRoot,
    /// A file of another size than its annotation says, both as it is stored and upright. Of a large dataset, only some
    /// files over the whole are looked into, all with [`strict`](super::Options::strict); the decoder says it of each.
    SizeMismatch,
    /// An image with boxes in pixels whose entry does not say its size: nobody knows yet which of them reach out of it, so that
    /// all are kept as they are.
    WithoutSize,
    /// An id of an image, category or annotation that is there twice. The later image or category is left out, the later
    /// annotation stays.
    DuplicateId,
    /// An entry or line that does not say what it must; left out.
    Malformed,
    /// A box of an image that is not listed; left out.
    UnknownImage,
    /// A box of a class that is not listed; left out.
    UnknownCategory,
    /// A box with a number that is none; left out.
    NotFinite,
    /// A box with a negative side; left out.
    NegativeBox,
    /// A box without an area; left out.
    EmptyBox,
    /// A box that reaches out of its image: cut, left out or kept, as asked for.
    OutOfImage,
    /// A box that its image has already, class included; left out.
    DuplicateBox,
    /// An image without a class, beside the folders of the classes; left out.
    WithoutClass,
    /// A class folder without images. It keeps its number, so that the parts of a set agree about the others.
    EmptyClass,
    /// An image without boxes, which is kept: the background teaches, too.
    WithoutBoxes,
    /// A box around a crowd that was left out as asked for.
    CrowdBox,
    /// A box of a class that is not asked for.
    OtherClass,
}

impl Finding {
    /// All kinds, in the order of the table.
    pub const ALL: [Self; 18] = [
        Self::MissingFile,
        Self::OutsideRoot,
        Self::SizeMismatch,
        Self::WithoutSize,
        Self::DuplicateId,
        Self::Malformed,
        Self::UnknownImage,
        Self::UnknownCategory,
        Self::NotFinite,
        Self::NegativeBox,
        Self::EmptyBox,
        Self::OutOfImage,
        Self::DuplicateBox,
        Self::WithoutClass,
        Self::EmptyClass,
        Self::WithoutBoxes,
        Self::CrowdBox,
        Self::OtherClass,
    ];

    /// Its name in kebab-case, for messages that programs read.
    pub fn name(self) -> &'static str {
        match self {
            Self::MissingFile => "missing-files",
            Self::OutsideRoot => "outside-root",
            Self::SizeMismatch => "size-mismatches",
            Self::WithoutSize => "images-without-size",
            Self::DuplicateId => "duplicate-ids",
            Self::Malformed => "malformed-entries",
            Self::UnknownImage => "unknown-images",
            Self::UnknownCategory => "unknown-categories",
            Self::NotFinite => "not-finite-boxes",
            Self::NegativeBox => "negative-boxes",
            Self::EmptyBox => "empty-boxes",
            Self::OutOfImage => "out-of-image-boxes",
            Self::DuplicateBox => "duplicate-boxes",
            Self::WithoutClass => "images-without-class",
            Self::EmptyClass => "classes-without-images",
            Self::WithoutBoxes => "images-without-boxes",
            Self::CrowdBox => "crowd-boxes",
            Self::OtherClass => "other-classes",
        }
    }

    /// Whether it is what was asked for, or nothing wrong, so that `strict` does not mind.
    pub fn is_harmless(self) -> bool {
        matches!(self, Self::WithoutBoxes | Self::CrowdBox | Self::OtherClass)
    }
}

/// What the checks found, and how much there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Images that are listed.
    pub images: u64,
    /// Boxes that are used.
    pub boxes: u64,
    counts: [u64; Finding::ALL.len()],
    examples: [Vec<String>; Finding::ALL.len()],
    /// Boxes out of their image are kept because that was asked for.
    pub(super) out_of_image_is_kept: bool,
}

impl Checks {
    /// Counts one; `example` is asked only for the first few.
    pub(super) fn add(&mut self, finding: Finding, example: impl FnOnce() -> String) {
        let index = finding as usize;
        self.counts[index] += 1;
        let examples = &mut self.examples[index];
        if examples.len() < EXAMPLES {
            let mut example = example();
            if let Some((end, _)) = example.char_indices().nth(EXAMPLE_CHARS) {
                example.truncate(end);
                example.push('…');
            }
            // A name may hold line breaks, which would break the table.
            examples.push(example.replace(char::is_control, "\u{fffd}"));
        }
    }

    /// How many of a kind were found.
    pub fn count(&self, finding: Finding) -> u64 {
        self.counts[finding as usize]
    }

    /// The first few of a kind.
    pub fn examples(&self, finding: Finding) -> &[String] {
        &self.examples[finding as usize]
    }

    /// The kinds that were found.
    pub fn found(&self) -> impl Iterator<Item = Finding> {
        Finding::ALL
            .into_iter()
            .filter(|&finding| self.count(finding) > 0)
    }

    /// Whether nothing was found that `strict` minds.
    pub fn is_clean(&self) -> bool {
        self.found().all(|finding| {
            finding.is_harmless() || (finding == Finding::OutOfImage && self.out_of_image_is_kept)
        })
    }
}

impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9}  images", self.images)?;
        if self.boxes > 0 {
            write!(f, "\n{:>9}  boxes", self.boxes)?;
        }
        for finding in self.found() {
            let (count, examples) = (self.count(finding), self.examples(finding));
            let more = if count > examples.len() as u64 {
                ", …"
            } else {
                ""
            };
            let name = finding.name();
            write!(f, "\n{count:>9}  {name}: {}{more}", examples.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_counts_and_first_examples() {
        let mut checks = Checks {
            images: 12,
            boxes: 3,
            ..Checks::default()
        };
        for number in 0..5 {
            checks.add(Finding::EmptyBox, || format!("annotation {number}"));
        }
        checks.add(Finding::WithoutBoxes, || "a\nb.jpg".to_owned());
        let table = "       12  images\n        3  boxes\n        5  empty-boxes: annotation 0, annotation 1, \
                     annotation 2, …\n        1  images-without-boxes: a\u{fffd}b.jpg";
        assert_eq!(checks.to_string(), table);
        assert!(!checks.is_clean());
    }

    #[test]
    fn what_was_asked_for_is_no_fault() {
        let mut checks = Checks::default();
        for finding in Finding::ALL.into_iter().filter(|finding| finding.is_harmless()) {
            checks.add(finding, String::new);
        }
        assert!(checks.is_clean());
        checks.add(Finding::OutOfImage, || "x".repeat(5000));
        assert!(!checks.is_clean());
        assert!(checks.examples(Finding::OutOfImage)[0].len() < 200);
        checks.out_of_image_is_kept = true;
        assert!(checks.is_clean());
    }

    #[test]
    fn kinds_are_in_the_order_of_their_numbers() {
        for (number, finding) in Finding::ALL.into_iter().enumerate() {
            assert_eq!(finding as usize, number);
        }
    }
}
