use std::path::PathBuf;

use super::super::faults::OnError;
use super::cache::Cache;
use crate::decode;

/// How an image is fitted into the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstEpochDecodeFit")]
pub enum Fit {
    /// Aspect kept, centred, padded.
    #[default]
    #[enum_value(
        name = "Letterbox: keep the aspect, centre, pad (Ultralytics' LetterBox)",
        nick = "letterbox"
    )]
    Letterbox,
    /// As Ultralytics loads images.
    #[enum_value(
        name = "Ultralytics: size as its load_image does, then letterbox",
        nick = "ultralytics"
    )]
    Ultralytics,
    /// Aspect not kept.
    #[enum_value(name = "Stretch: fill the frame, the aspect changes", nick = "stretch")]
    Stretch,
    /// Size not changed.
    #[enum_value(name = "None: each image in its own size", nick = "none")]
    None,
}

impl From<Fit> for decode::Fit {
    fn from(fit: Fit) -> Self {
        match fit {
            Fit::Letterbox => Self::Letterbox,
            Fit::Ultralytics => Self::Ultralytics,
            Fit::Stretch => Self::Stretch,
            Fit::None => Self::None,
        }
    }
}

/// How pixels are resampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstEpochDecodeInterpolation")]
pub enum Interpolation {
    /// OpenCV's INTER_LINEAR.
    #[default]
    #[enum_value(name = "Linear: byte-equal to OpenCV's INTER_LINEAR", nick = "linear")]
    Linear,
    /// Nearest neighbour.
    #[enum_value(name = "Nearest: nearest neighbour", nick = "nearest")]
    Nearest,
    /// Area average.
    #[enum_value(name = "Area: average of the area, without aliasing", nick = "area")]
    Area,
}

impl From<Interpolation> for decode::Interpolation {
    fn from(interpolation: Interpolation) -> Self {
        match interpolation {
            Interpolation::Linear => Self::Linear,
            Interpolation::Nearest => Self::Nearest,
            Interpolation::Area => Self::Area,
        }
    }
}

/// What is done about the EXIF orientation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstEpochDecodeOrientation")]
pub enum Orientation {
    /// Turn the image upright.
    #[default]
    #[enum_value(name = "Apply: turn the image upright", nick = "apply")]
    Apply,
    /// Leave it as stored.
    #[enum_value(
        name = "Ignore: leave the image as it is stored, as its boxes are, unless the annotated size says otherwise",
        nick = "ignore"
    )]
    Ignore,
    /// Whichever gives the annotated size.
    #[enum_value(
        name = "Match: the one of both that gives the size in the image's annotation; upright if both do or there is none",
        nick = "match"
    )]
    Match,
}

impl From<Orientation> for decode::OrientationMode {
    fn from(orientation: Orientation) -> Self {
        match orientation {
            Orientation::Apply => Self::Apply,
            Orientation::Ignore => Self::Ignore,
            Orientation::Match => Self::Match,
        }
    }
}

/// What is done about a file that ends before its last pixel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstEpochDecodeTruncated")]
pub enum Truncated {
    /// It cannot be used.
    #[default]
    #[enum_value(name = "Fail: the sample is faulty", nick = "fail")]
    Fail,
    /// The pixels that are there are used.
    #[enum_value(name = "Use: take the pixels that are there", nick = "use")]
    Use,
}

impl From<Truncated> for decode::Truncated {
    fn from(truncated: Truncated) -> Self {
        match truncated {
            Truncated::Fail => Self::Fail,
            Truncated::Use => Self::Use,
        }
    }
}

/// Whether frames are kept from epoch to epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "GstEpochDecodeCache")]
pub enum CacheMode {
    /// Each epoch decodes its images.
    #[default]
    #[enum_value(name = "Off: decode in every epoch", nick = "off")]
    Off,
    /// They are kept in memory.
    #[enum_value(name = "RAM: keep frames in memory, up to cache-bytes", nick = "ram")]
    Ram,
}

/// The default of `cache-bytes`, 1 GiB: some 870 frames of 640x640.
pub(super) const DEFAULT_CACHE_BYTES: u64 = 1 << 30;

/// The properties that a run takes over at its start.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub threads: u32,
    pub fit: Fit,
    pub pad_color: u32,
    pub interpolation: Interpolation,
    pub orientation: Orientation,
    pub max_pixels: u64,
    pub truncated: Truncated,
    pub on_error: OnError,
    pub max_errors: String,
    pub cache: CacheMode,
    pub cache_bytes: u64,
    pub quarantine: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            threads: 0,
            fit: Fit::default(),
            pad_color: 0x72_72_72,
            interpolation: Interpolation::default(),
            orientation: Orientation::default(),
            max_pixels: decode::DEFAULT_MAX_PIXELS,
            truncated: Truncated::default(),
            on_error: OnError::default(),
            max_errors: "-1".to_owned(),
            cache: CacheMode::default(),
            cache_bytes: DEFAULT_CACHE_BYTES,
            quarantine: None,
        }
    }
}

impl Settings {
    /// Where frames are kept, if they are.
    pub fn cache(&self) -> Option<Cache> {
        match self.cache {
            CacheMode::Off => None,
            CacheMode::Ram => Some(Cache::new(self.cache_bytes)),
        }
    }

    /// What the decoder is told.
    pub fn options(&self) -> decode::DecodeOptions {
        let [_, red, green, blue] = self.pad_color.to_be_bytes();
        decode::DecodeOptions {
            fit: self.fit.into(),
            pad_color: [red, green, blue],
            interpolation: self.interpolation.into(),
            orientation: self.orientation.into(),
            max_pixels: self.max_pixels,
            truncated: self.truncated.into(),
        }
    }
}
