//! One file that is to be read, if its bytes are needed.

use std::sync::Weak;

use super::super::coordinator::{FrameKey, Keeper};
use crate::dataset::{Dataset, FileVersion, OpenSample, ReadError};
use crate::decode::Format;

/// What a sample's file holds.
#[derive(Debug)]
pub(super) enum Bytes {
    Read(Vec<u8>),
    /// Of this format, and nobody may need them: the frame is kept.
    Kept(OpenSample, Format),
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
    pub keeper: Option<Weak<Keeper>>,
}

/// The file, open.
pub(super) struct File {
    file: OpenSample,
    kept: Option<(Format, FileVersion)>,
}

impl Wanted {
    /// Opens the file. Errors come out of [`File::content`].
    pub fn open(&self) -> File {
        let file = self.dataset.open_file(self.index);
        let kept = self.kept(&file);
        File { file, kept }
    }

    /// What `file` is, if its frame is kept.
    fn kept(&self, file: &OpenSample) -> Option<(Format, FileVersion)> {
        let keeper = self.keeper.as_ref()?.upgrade()?;
        let version = file.version()?;
        let annotation = self.dataset.annotation(self.index);
        let key = FrameKey {
            uri: self.dataset.uri(self.index)?,
            version: version.number(),
            annotated: annotation.and_then(|annotation| annotation.size),
            epoch: self.epoch,
        };
        Some((keeper(&key)?, version))
    }
}

impl File {
    /// Bytes of memory that [`content`](Self::content) takes.
    pub fn size(&self) -> u64 {
        match self.kept {
            Some(_) => 0,
            None => self.file.size(),
        }
    }

    /// Whether it is known without a read that there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.file.is_empty()
    }

    /// Reads the file, if its bytes are needed.
    pub fn content(self) -> Content {
        match self.kept {
            Some((format, version)) => Ok((Bytes::Kept(self.file, format), version)),
            None => {
                let (bytes, version) = self.file.read_version()?;
                Ok((Bytes::Read(bytes), version))
            }
        }
    }
}
