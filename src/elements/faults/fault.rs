//! Why a sample cannot be used.

use std::fmt::{self, Display};
use std::str::FromStr;

use crate::dataset::ReadError;
use rustix::io::Errno;

use crate::decode::{DecodeError, Sniffed};

/// What kind of fault it is; for programs, where the reason is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// There is no such file.
    Missing,
    /// It may not or cannot be read, or is a folder, pipe or device.
    Unreadable,
    /// It has no bytes.
    Empty,
    /// It is something known that is not decoded: another format, or a variant of one.
    Unsupported,
    /// It ends before its last pixel.
    Truncated,
    /// It is no image, or breaks the rules of its format.
    Corrupt,
    /// It has, or claims, more bytes or pixels than are allowed or than there is memory for.
    TooLarge,
    /// It is an image, and not one of the size that its annotation says.
    Mismatch,
    /// The file is not to blame: a fault of the machine or of this program.
    Internal,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Missing,
        Self::Unreadable,
        Self::Empty,
        Self::Unsupported,
        Self::Truncated,
        Self::Corrupt,
        Self::TooLarge,
        Self::Mismatch,
        Self::Internal,
    ];

    /// The name in messages, metas, reports and quarantine files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
            Self::Empty => "empty",
            Self::Unsupported => "unsupported",
            Self::Truncated => "truncated",
            Self::Corrupt => "corrupt",
            Self::TooLarge => "too-large",
            Self::Mismatch => "mismatch",
            Self::Internal => "internal",
        }
    }
}

impl Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is the name of no class.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no class of fault")]
pub struct ClassError(String);

impl FromStr for Class {
    type Err = ClassError;

    fn from_str(text: &str) -> Result<Self, ClassError> {
        let found = Self::ALL.into_iter().find(|class| class.as_str() == text);
        found.ok_or_else(|| ClassError(text.to_owned()))
    }
}

/// Why a sample cannot be used. Displays as its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What kind of fault it is.
    pub class: Class,
    /// What is wrong, and what to do, for people.
    pub reason: String,
}

impl Fault {
    /// A fault of `class` with its reason.
    pub fn new(class: Class, reason: impl Display) -> Self {
        Self {
            class,
            reason: reason.to_string(),
        }
    }

    /// A fault that the file is not to blame for.
    pub fn internal(reason: impl Display) -> Self {
        Self::new(Class::Internal, reason)
    }

    /// Why a file of these first bytes cannot be used, if that can be told from them.
    pub fn sniffed(sniffed: Sniffed) -> Option<Self> {
        Some(match sniffed {
            Sniffed::Supported(_) => return None,
            Sniffed::Unsupported(name) => Self::new(
                Class::Unsupported,
                format_args!("unsupported format: {name}; JPEG, PNG, WebP and BMP are read"),
            ),
            Sniffed::Empty => Self::new(Class::Empty, "the file is empty"),
            Sniffed::Unknown => Self::new(
                Class::Corrupt,
                "not an image: its first bytes are of no known format",
            ),
        })
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        let class = match &error {
            ReadError::Io(error) if error.kind() == std::io::ErrorKind::OutOfMemory => {
                return Self::new(
                    Class::TooLarge,
                    "no memory for the bytes of the file: lower io-depth and the number of threads, or remove the file",
                );
            }
            ReadError::Io(error)
                if matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE)) =>
            {
                return Self::internal(format_args!(
                    "cannot be read: {error}; raise the number of files that may be open (ulimit -n), or lower io-depth"
                ));
            }
            ReadError::Missing => Class::Missing,
            ReadError::PermissionDenied | ReadError::IsDirectory | ReadError::NotAFile | ReadError::Io(_) => {
                Class::Unreadable
            }
            ReadError::Empty => Class::Empty,
            ReadError::TooLarge { .. } => Class::TooLarge,
            ReadError::NoSuchSample { .. } => Class::Internal,
        };
        Self::new(class, error)
    }
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        let class = match &error {
            DecodeError::Empty => Class::Empty,
            DecodeError::Unknown | DecodeError::Corrupt { .. } => Class::Corrupt,
            DecodeError::Unsupported { .. } => Class::Unsupported,
            DecodeError::TooManyPixels { .. } | DecodeError::OutOfMemory { .. } => Class::TooLarge,
            DecodeError::Truncated { .. } => Class::Truncated,
            DecodeError::AnnotatedSize { .. } => Class::Mismatch,
            DecodeError::SizeMismatch { .. } | DecodeError::BadTarget { .. } => Class::Internal,
        };
        Self::new(class, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever lists files that cannot be used must not list those.
    #[test]
    fn a_file_is_not_to_blame_for_what_the_process_has_used_up() {
        let fault = |errno: Errno| Fault::from(ReadError::from(std::io::Error::from(errno)));
        for errno in [Errno::MFILE, Errno::NFILE] {
            let fault = fault(errno);
            assert_eq!(fault.class, Class::Internal);
            assert!(fault.reason.contains("ulimit -n"), "{fault}");
        }
        assert_eq!(fault(Errno::NOMEM).class, Class::TooLarge);
        assert!(fault(Errno::NOMEM).reason.contains("no memory"));
        assert_eq!(fault(Errno::IO).class, Class::Unreadable);
        assert_eq!(fault(Errno::NOTDIR).class, Class::Missing);
    }

    #[test]
    fn every_class_has_a_name_of_its_own() {
        for class in Class::ALL {
            assert_eq!(class.as_str().parse(), Ok(class));
        }
        assert_eq!("none".parse::<Class>(), Err(ClassError("none".to_owned())));
    }
}
