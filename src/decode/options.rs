//! What a caller can choose about decoding.

/// How an image is brought to the size of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// Keeps the aspect ratio and pads, as Ultralytics' `LetterBox(auto=False, scaleup=True)`.
    #[default]
    Letterbox,
    /// Ultralytics' whole way: `load_image` (sides rounded up) and then `LetterBox`.
    Ultralytics,
    /// Fills the output; the aspect ratio is not kept.
    Stretch,
    /// No resampling: the output must have the image's size.
    None,
}

/// How pixels are resampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// OpenCV's `INTER_LINEAR` on uint8, byte for byte.
    #[default]
    Linear,
    /// OpenCV's `INTER_NEAREST`.
    Nearest,
    /// OpenCV's `INTER_AREA`.
    Area,
}

/// What becomes of an EXIF orientation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrientationMode {
    /// The image is turned upright, as OpenCV does by default.
    #[default]
    Apply,
    /// The image is left as stored, as Pillow does by default. So is what an annotation is of, unless its size says otherwise.
    Ignore,
    /// Whichever of the two gives the image the size that its annotation says; see
    /// [`match_orientation`](super::match_orientation). As `Apply` where both do, or where there is no annotated size.
    Match,
}

/// What becomes of a file that ends too early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Truncated {
    /// It is an error.
    #[default]
    Fail,
    /// The pixels that are there are used.
    Use,
}

/// The default of [`DecodeOptions::max_pixels`]: Pillow's limit for an error, twice a quarter of a GiB of RGB.
pub const DEFAULT_MAX_PIXELS: u64 = 178_956_970;

/// What a caller can choose; [`Default`] is what `epochdecode` does without properties.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodeOptions {
    /// How the image is brought to the output's size.
    pub fit: Fit,
    /// Colour of the padding, R, G, B; 114 each by default, as Ultralytics.
    pub pad_color: [u8; 3],
    /// How pixels are resampled.
    pub interpolation: Interpolation,
    /// Whether an EXIF orientation is applied.
    pub orientation: OrientationMode,
    /// Most pixels that a header may claim, checked before anything is allocated. 0 means no limit.
    pub max_pixels: u64,
    /// Whether a truncated file is an error.
    pub truncated: Truncated,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self {
            fit: Fit::default(),
            pad_color: [114; 3],
            interpolation: Interpolation::default(),
            orientation: OrientationMode::default(),
            max_pixels: DEFAULT_MAX_PIXELS,
            truncated: Truncated::default(),
        }
    }
}
