//! The order of a batch's axes in memory.

use std::fmt;
use std::str::FromStr;

/// Which axis runs fastest. Both are contiguous; the channels are always R, G, B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Channels last: `R G B R G B …`, PyTorch's `channels_last` once viewed as N, C, H, W.
    #[default]
    Nhwc,
    /// Channels first: a plane of R, a plane of G, a plane of B for each sample.
    Nchw,
}

/// A name that is none of [`Layout::ALL`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown tensor layout {name:?}: use nhwc or nchw")]
#[non_exhaustive]
pub struct ParseLayoutError {
    /// What was given.
    pub name: String,
}

impl Layout {
    /// Every layout, the default first.
    pub const ALL: [Layout; 2] = [Layout::Nhwc, Layout::Nchw];

    /// The name used in properties, caps and reports; [`FromStr`] reads it back.
    pub const fn as_str(self) -> &'static str {
        match self {
            Layout::Nhwc => "nhwc",
            Layout::Nchw => "nchw",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Layout {
    type Err = ParseLayoutError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|layout| layout.as_str() == name)
            .ok_or_else(|| ParseLayoutError {
                name: name.to_owned(),
            })
    }
}
