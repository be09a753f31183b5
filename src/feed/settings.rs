//! What a feed is built from, and the names that the elements' properties give to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bus::Listener;
use crate::color::{GainRanges, Gains};
use crate::dataset::Options;
use crate::decode::{DecodeOptions, Fit, Interpolation, OrientationMode, Truncated};
use crate::elements::epochbuffer::Prefetch;
use crate::elements::epochsrc::OnChange;
use crate::elements::faults::{Limit, OnError};
use crate::elements::nhwcpack::LastBatch;
use crate::sampler::{Shuffle, Uneven};
use crate::tensor::{CHANNELS, Dtype, Layout};

/// Where a feed holds what it has ready: the place of its `epochbuffer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hold {
    /// Behind `nhwcpack`: nothing is left to be done when a batch is asked for. The heavier one: a float32 batch takes four
    /// times the bytes of its frames.
    #[default]
    Batches,
    /// Before the jitter and `nhwcpack`: uint8 frames. The first batch of a prepared epoch waits until it is packed.
    Frames,
}

/// What happens to the colours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Jitter {
    Drawn(GainRanges),
    Stated(Gains),
    None,
}

/// Everything that a builder gathers.
#[derive(Clone)]
pub(super) struct Settings {
    pub location: PathBuf,
    pub dataset: Options,
    pub on_change: OnChange,
    pub shuffle: Shuffle,
    pub seed: u64,
    /// `None`: without end.
    pub epochs: Option<u32>,
    pub rank: u32,
    pub world_size: u32,
    pub samples_per_epoch: Option<u64>,
    pub uneven: Uneven,
    pub io_depth: u32,
    pub reload: bool,
    pub state: Option<String>,
    pub state_location: Option<PathBuf>,
    /// `None`: as many as there are cores for this process.
    pub threads: Option<u32>,
    pub decode: DecodeOptions,
    pub size: (u32, u32),
    pub on_error: OnError,
    pub max_errors: Limit,
    /// Bytes of decoded frames that are kept from epoch to epoch; `None`: none are.
    pub cache: Option<u64>,
    pub quarantine: Option<PathBuf>,
    pub exclude: Option<PathBuf>,
    pub jitter: Jitter,
    pub fuse: bool,
    pub device: String,
    pub batch_size: u32,
    pub dtype: Dtype,
    pub layout: Layout,
    pub mean: Option<[f32; CHANNELS]>,
    pub std: Option<[f32; CHANNELS]>,
    pub last_batch: LastBatch,
    pub prefetch: Prefetch,
    pub max_buffers: u32,
    pub max_bytes: u64,
    pub hold: Hold,
    pub max_steps: Option<u64>,
    pub listener: Option<Arc<Listener>>,
}

impl Settings {
    /// As the elements' defaults are.
    pub fn new(location: &Path) -> Self {
        Self {
            location: location.to_owned(),
            dataset: Options::default(),
            on_change: OnChange::default(),
            shuffle: Shuffle::default(),
            seed: 0,
            epochs: Some(1),
            rank: 0,
            world_size: 1,
            samples_per_epoch: None,
            uneven: Uneven::default(),
            io_depth: 32,
            reload: false,
            state: None,
            state_location: None,
            threads: None,
            decode: DecodeOptions::default(),
            size: (640, 640),
            on_error: OnError::default(),
            max_errors: Limit::None,
            cache: None,
            quarantine: None,
            exclude: None,
            jitter: Jitter::Drawn(GainRanges::default()),
            fuse: true,
            // Not the element's `auto`: the consumer is this program, which reads the bytes unless it says otherwise.
            device: "cpu".to_owned(),
            batch_size: 1,
            dtype: Dtype::default(),
            layout: Layout::default(),
            mean: None,
            std: None,
            last_batch: LastBatch::default(),
            prefetch: Prefetch::default(),
            max_buffers: 256,
            max_bytes: 1 << 30,
            hold: Hold::default(),
            max_steps: None,
            listener: None,
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("location", &self.location)
            .field("shuffle", &self.shuffle)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// A path as the text of the property `location`: as it is, or as a URI where its bytes are not UTF-8.
pub(super) fn location(path: &Path) -> Result<String, glib::Error> {
    match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => {
            let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            glib::filename_to_uri(absolute, None).map(String::from)
        }
    }
}

/// The names that the properties use.
pub(super) trait Nick {
    fn nick(self) -> &'static str;
}

impl Nick for Fit {
    fn nick(self) -> &'static str {
        match self {
            Self::Letterbox => "letterbox",
            Self::Ultralytics => "ultralytics",
            Self::Stretch => "stretch",
            Self::None => "none",
        }
    }
}

impl Nick for Interpolation {
    fn nick(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Nearest => "nearest",
            Self::Area => "area",
        }
    }
}

impl Nick for OrientationMode {
    fn nick(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Ignore => "ignore",
            Self::Match => "match",
        }
    }
}

impl Nick for Truncated {
    fn nick(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Use => "use",
        }
    }
}

/// `max-errors` as the property writes it.
pub(super) fn limit(limit: Limit) -> String {
    match limit {
        Limit::None => "-1".to_owned(),
        Limit::Count(count) => count.to_string(),
        Limit::Percent(percent) => format!("{percent}%"),
    }
}

/// A value for each channel as the properties `mean` and `std` write it.
pub(super) fn channels([red, green, blue]: [f32; CHANNELS]) -> String {
    format!("{red},{green},{blue}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use super::*;
    use crate::dataset::parse_location;

    #[test]
    fn every_path_survives_as_a_location() {
        for path in ["a b/100%.jpg", "/x/%41"] {
            assert_eq!(
                parse_location(&location(Path::new(path)).unwrap()).unwrap(),
                Path::new(path)
            );
        }
        let bytes = PathBuf::from(OsString::from_vec(b"/a\xff%41 b".to_vec()));
        assert_eq!(parse_location(&location(&bytes).unwrap()).unwrap(), bytes);
    }

    #[test]
    fn limits_are_read_back() {
        for value in [
            Limit::None,
            Limit::Count(0),
            Limit::Count(12),
            Limit::Percent(2.5),
        ] {
            assert_eq!(limit(value).parse(), Ok(value));
        }
    }
}
