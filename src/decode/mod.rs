//! From the bytes of an image file to pixels of the size that training wants.
//!
//! [`sniff`] names the format, [`probe`] reads the header without allocating, [`decode_into`] writes the pixels straight
//! into the caller's frame: decoded, turned upright, resampled and padded. What the settings mean for the bytes:
//!
//! - JPEG is libjpeg-turbo with the accurate DCT and fancy upsampling: equal to Pillow and OpenCV ([`DecodeOptions`]).
//! - [`resize`] is equal to OpenCV, [`place`] to Ultralytics' `LetterBox`; boxes follow their pixels by [`BoxMap`].
//!
//! ```
//! use epochfeed::decode::{ChannelOrder, DecodeOptions, Scratch, Target, decode_into, probe};
//! # fn main() -> Result<(), epochfeed::decode::DecodeError> {
//! let file = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/cases/img/a04_gray.jpg"));
//! let options = DecodeOptions::default();
//! let header = probe(file, &options)?;
//! assert_eq!((header.width, header.height), (160, 120));
//! let mut frame = vec![0; 64 * 64 * 3];
//! let mut target = Target { data: &mut frame, stride: 64 * 3, width: 64, height: 64, order: ChannelOrder::Rgb };
//! let decoded = decode_into(file, &header, &options, &mut target, &mut Scratch::default())?;
//! assert_eq!((decoded.placement.scaled, decoded.placement.offset), ((64, 48), (0, 8)));
//! assert_eq!(frame[..3], [114; 3]);
//! # Ok(())
//! # }
//! ```

mod boxes;
mod error;
mod fit;
mod jpeg;
mod options;
mod orient;
mod pixels;
mod raster;
pub mod resize;
mod sniff;
mod webp;

pub use self::boxes::{BoxMap, match_orientation};
pub use self::error::DecodeError;
pub use self::fit::{Placement, place, ultralytics_load_size};
pub use self::options::{DEFAULT_MAX_PIXELS, DecodeOptions, Fit, Interpolation, OrientationMode, Truncated};
pub use self::pixels::{Pixels, PixelsMut, Target};
pub use self::sniff::{Format, Sniffed, sniff};

use self::pixels::sized;

/// Order of the channels of a pixel in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelOrder {
    /// Red first.
    #[default]
    Rgb,
    /// Blue first.
    Bgr,
}

/// What the header of an image says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Format, by content.
    pub format: Format,
    /// Width as stored, at least 1.
    pub width: u32,
    /// Height as stored, at least 1.
    pub height: u32,
    /// EXIF orientation, 1 to 8; 1 where there is none or an invalid one.
    pub orientation: u8,
}

impl Header {
    /// Width and height as stored.
    pub const fn stored_size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// Width and height after orientation.
    pub fn oriented_size(&self, mode: OrientationMode) -> (u32, u32) {
        match orient::swaps_sides(orient::effective(self.orientation, mode)) {
            true => (self.height, self.width),
            false => (self.width, self.height),
        }
    }
}

/// Buffers that one worker keeps from image to image. They grow to the largest image seen.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The decoder's own pixel format (ink, alpha, 16 bits); later the picture between two resamplings.
    raw: Vec<u8>,
    /// The picture as stored.
    stored: Vec<u8>,
    /// The picture the right way up.
    turned: Vec<u8>,
    resize: resize::ResizeScratch,
}

/// What became of an image.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// Where it lies in the frame.
    pub placement: Placement,
    /// 1 if the decoder had something to complain about, else 0. (libjpeg's interface does not tell how often.)
    pub warnings: u32,
    /// The decoder's first complaint.
    pub warning: Option<String>,
    /// Whether pixels are missing at the end; only with [`Truncated::Use`].
    pub truncated: bool,
}

/// What a format's decoder is to do.
#[derive(Clone, Copy)]
struct Job<'a> {
    bytes: &'a [u8],
    header: &'a Header,
    options: &'a DecodeOptions,
    order: ChannelOrder,
}

/// What a format's decoder reports besides pixels.
#[derive(Clone, Debug, Default)]
struct Outcome {
    warning: Option<String>,
    truncated: bool,
}

/// Reads the header of `bytes` and refuses what will not be decoded, before any memory is asked for.
///
/// # Errors
/// [`DecodeError::Empty`], [`Unknown`](DecodeError::Unknown), [`Unsupported`](DecodeError::Unsupported) with the name of
/// what was found, [`TooManyPixels`](DecodeError::TooManyPixels), and [`Truncated`](DecodeError::Truncated) or
/// [`Corrupt`](DecodeError::Corrupt) for a header that is not whole; that one is refused also with [`Truncated::Use`].
pub fn probe(bytes: &[u8], options: &DecodeOptions) -> Result<Header, DecodeError> {
    let format = match sniff(bytes) {
        Sniffed::Supported(format) => format,
        Sniffed::Unsupported(name) => return Err(DecodeError::unsupported(name)),
        Sniffed::Unknown => return Err(DecodeError::Unknown),
        Sniffed::Empty => return Err(DecodeError::Empty),
    };
    let header = match format {
        Format::Jpeg => jpeg::probe(bytes)?,
        Format::Png | Format::Webp | Format::Bmp => raster::probe(format, bytes)?,
    };
    check_limit(&header, options)?;
    Ok(header)
}

/// Holds the header against `max_pixels`.
fn check_limit(header: &Header, options: &DecodeOptions) -> Result<(), DecodeError> {
    let &Header { width, height, .. } = header;
    let limit = options.max_pixels;
    if limit != 0 && u64::from(width) * u64::from(height) > limit {
        return Err(DecodeError::TooManyPixels { width, height, limit });
    }
    Ok(())
}

/// Decodes `bytes` into `target`: turned upright, brought to its size and padded, every pixel of it written.
///
/// `header` is what [`probe`] said about the same bytes. An image that needs neither turning nor resampling is decoded
/// straight into the frame.
///
/// # Errors
/// Those of [`probe`], [`DecodeError::Truncated`] unless [`Truncated::Use`] (WebP gives no partial picture, so there it
/// is an error either way), [`DecodeError::SizeMismatch`] for [`Fit::None`], [`DecodeError::BadTarget`] and
/// [`DecodeError::OutOfMemory`]. After an error the contents of `target` are unspecified.
pub fn decode_into(
    bytes: &[u8],
    header: &Header,
    options: &DecodeOptions,
    target: &mut Target<'_>,
    scratch: &mut Scratch,
) -> Result<Decoded, DecodeError> {
    check_limit(header, options)?;
    let order = target.order;
    let output = (target.width, target.height);
    let mut frame = target.pixels()?;
    let source = header.oriented_size(options.orientation);
    if options.fit == Fit::None && source != output {
        return Err(DecodeError::SizeMismatch {
            source_size: source,
            output,
        });
    }
    let placement = place(options.fit, source, output);
    frame.fill_around(
        placement.offset,
        placement.scaled,
        padding(options.pad_color, order),
    );
    let window = frame.window(placement.offset, placement.scaled)?;
    let outcome = fill(
        Job {
            bytes,
            header,
            options,
            order,
        },
        window,
        output,
        scratch,
    )?;
    Ok(Decoded {
        placement,
        warnings: u32::from(outcome.warning.is_some()),
        warning: outcome.warning,
        truncated: outcome.truncated,
    })
}

/// The padding's colour in the order of the frame.
const fn padding([r, g, b]: [u8; 3], order: ChannelOrder) -> [u8; 3] {
    match order {
        ChannelOrder::Rgb => [r, g, b],
        ChannelOrder::Bgr => [b, g, r],
    }
}

/// Fills `window` with the image: decode, turn, resample, each step only where it is needed.
fn fill(
    job: Job<'_>,
    mut window: PixelsMut<'_>,
    output: (u32, u32),
    scratch: &mut Scratch,
) -> Result<Outcome, DecodeError> {
    let Job { header, options, .. } = job;
    let Scratch {
        raw,
        stored,
        turned,
        resize,
    } = scratch;
    let orientation = orient::effective(header.orientation, options.orientation);
    let source = header.oriented_size(options.orientation);
    // Only Ultralytics' load_image resizes before fitting.
    let loaded = match options.fit {
        Fit::Ultralytics => ultralytics_load_size(source, output),
        Fit::Letterbox | Fit::Stretch | Fit::None => source,
    };
    let resampled = loaded != source || window.size() != source;
    if orientation == 1 && !resampled {
        return decode(job, &mut window, raw);
    }

    let stride = header.width as usize * 3;
    let stored = sized(stored, header.width, header.height, 3)?;
    let mut picture = PixelsMut::new(stored, header.width, header.height, stride)?;
    let outcome = decode(job, &mut picture, raw)?;
    let picture = Pixels::new(stored, header.width, header.height, stride)?;
    if orientation != 1 && !resampled {
        orient::apply(orientation, picture, &mut window);
        return Ok(outcome);
    }

    let stride = source.0 as usize * 3;
    let picture = if orientation == 1 {
        picture
    } else {
        let turned = sized(turned, source.0, source.1, 3)?;
        orient::apply(
            orientation,
            picture,
            &mut PixelsMut::new(turned, source.0, source.1, stride)?,
        );
        Pixels::new(turned, source.0, source.1, stride)?
    };
    let method = options.interpolation;
    if loaded == source || loaded == window.size() {
        resize::resize(method, picture, &mut window, resize)?;
        return Ok(outcome);
    }
    // Both resamplings of Ultralytics: the first one's result takes the raw buffer, which is free by now.
    let stride = loaded.0 as usize * 3;
    let between = sized(raw, loaded.0, loaded.1, 3)?;
    resize::resize(
        method,
        picture,
        &mut PixelsMut::new(between, loaded.0, loaded.1, stride)?,
        resize,
    )?;
    resize::resize(
        method,
        Pixels::new(between, loaded.0, loaded.1, stride)?,
        &mut window,
        resize,
    )?;
    Ok(outcome)
}

/// Decodes into `out`, which has the stored size.
fn decode(job: Job<'_>, out: &mut PixelsMut<'_>, raw: &mut Vec<u8>) -> Result<Outcome, DecodeError> {
    match job.header.format {
        Format::Jpeg => jpeg::decode(job, out, raw),
        Format::Png | Format::Webp | Format::Bmp => raster::decode(job, out, raw),
    }
}
