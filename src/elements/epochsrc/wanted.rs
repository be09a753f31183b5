//! One file that is to be read, if its bytes are needed.

use super::super::coordinator::{FrameKey, Keepers};
use crate::dataset::{ClosedSample, Dataset, FileVersion, OpenSample, ReadError};
use crate::decode::Format;

/// What a sample's file holds.
#[derive(Debug)]
pub(super) enum Bytes {
    Read(Vec<u8>),
    /// Of this format, and nobody may need them: the frame is kept.
    Kept(ClosedSample, Format),
}

/// A file's bytes, and which version of it they are.
pub(super) type Content = Result<(Bytes, FileVersion), ReadError>;

/// Sample `index` of `dataset`, for `epoch`.
#[derive(Clone)]
pub(super) struct Wanted {
    pub dataset: Dataset,
    pub index: u64,
    pub epoch: u64,
    /// Who may have its frame.
    pub keepers: Keepers,
}

/// The file, open; or one whose frame is kept.
pub(super) enum File {
    Open(OpenSample),
    Kept(ClosedSample, Format),
}

impl Wanted {
    /// Opens the file. Errors come out of [`File::content`].
    pub fn open(&self) -> File {
        let file = self.dataset.open_file(self.index);
        match self.format(&file).zip(ClosedSample::of(&file)) {
            Some((format, file)) => File::Kept(file, format),
            None => File::Open(file),
        }
    }

    /// What `file` is, if its frame is kept.
    fn format(&self, file: &OpenSample) -> Option<Format> {
        if self.keepers.is_empty() {
            return None;
        }
        let annotation = self.dataset.annotation(self.index);
        let key = FrameKey {
            uri: self.dataset.uri(self.index)?,
            version: file.version()?.number(),
            annotated: annotation.and_then(|annotation| annotation.size),
            epoch: self.epoch,
        };
        self.keepers.format(&key)
    }
}

impl File {
    /// Bytes of memory that [`content`](Self::content) takes.
    pub fn size(&self) -> u64 {
        match self {
            Self::Open(file) => file.size(),
            Self::Kept(..) => 0,
        }
    }

    /// Whether it is known without a read that there is nothing in it.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Open(file) => file.is_empty(),
            Self::Kept(..) => false,
        }
    }

    /// Reads the file, if its bytes are needed.
    pub fn content(self) -> Content {
        match self {
            Self::Open(file) => {
                let (bytes, version) = file.read_version()?;
                Ok((Bytes::Read(bytes), version))
            }
            Self::Kept(file, format) => {
                let version = file.version();
                Ok((Bytes::Kept(file, format), version))
            }
        }
    }
}
