//! What can go wrong between the bytes of a file and its pixels.

use super::Format;

/// Why an image was refused. The caller knows the file's name; the message says what is wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// There are no bytes at all.
    #[error("empty file: download it again or remove it from the dataset")]
    Empty,
    /// The first bytes belong to no image format that is known here.
    #[error("not an image (no JPEG, PNG, WebP or BMP signature at the start): replace the file or remove it")]
    Unknown,
    /// A known format, or a variant of one, that is not decoded.
    #[error("unsupported {what}: convert it to baseline JPEG or PNG")]
    Unsupported {
        /// For example `TIFF` or `JPEG (12 bit)`.
        what: String,
    },
    /// The header promises more pixels than [`DecodeOptions::max_pixels`](super::DecodeOptions::max_pixels) allows.
    #[error(
        "image of {width}x{height} pixels is over the limit of {limit}: raise max-pixels if it is genuine"
    )]
    TooManyPixels {
        /// Width in the header.
        width: u32,
        /// Height in the header.
        height: u32,
        /// The limit in force, in pixels.
        limit: u64,
    },
    /// The data ends before the last pixel.
    #[error(
        "truncated {format}: {detail}; download it again{}",
        if *partial { ", or use truncated=use to accept what is there" } else { "" }
    )]
    Truncated {
        /// The format found.
        format: Format,
        /// Where it ends, or what the decoder said.
        detail: String,
        /// Some of its pixels are there, and [`Truncated::Use`](super::Truncated::Use) would take them.
        partial: bool,
    },
    /// The data breaks the rules of its format, and the decoder gave up.
    #[error("corrupt {format}: {detail}; replace the file or remove it from the dataset")]
    Corrupt {
        /// The format found.
        format: Format,
        /// What the decoder said.
        detail: String,
    },
    /// `Fit::None` keeps the size, and the caller's frame has another one.
    #[error(
        "image is {}x{} but the output is {}x{}: choose a fit other than none, or this output size",
        source_size.0, source_size.1, output.0, output.1
    )]
    SizeMismatch {
        /// Width and height of the image after orientation.
        source_size: (u32, u32),
        /// Width and height of the frame.
        output: (u32, u32),
    },
    /// The image has not the size that its annotation says, whether it is turned as its EXIF data say or not.
    #[error(
        "the annotation says {}x{}, but the image is {}x{} as stored and {} turned upright (EXIF orientation {orientation}): \
         correct the annotation, or use orientation=apply or ignore to take its boxes for those of a resized image",
        annotated.0, annotated.1, stored.0, stored.1, upright(*stored, *orientation)
    )]
    AnnotatedSize {
        /// Width and height in the annotation.
        annotated: (u32, u32),
        /// Width and height in the file.
        stored: (u32, u32),
        /// The file's EXIF orientation, 1 to 8.
        orientation: u8,
    },
    /// The frame handed in cannot hold the picture it describes.
    #[error(
        "output frame of {width}x{height} with stride {stride} does not fit its {len} bytes: pass a larger buffer"
    )]
    BadTarget {
        /// Width of the frame in pixels.
        width: u32,
        /// Height of the frame in pixels.
        height: u32,
        /// Bytes from row to row.
        stride: usize,
        /// Bytes in the buffer.
        len: usize,
    },
    /// An intermediate picture does not fit into memory.
    #[error("no memory for {bytes} bytes of pixels: lower max-pixels or the number of threads")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
    },
}

/// The size of an image turned upright, as text.
fn upright((width, height): (u32, u32), orientation: u8) -> String {
    match super::orient::swaps_sides(orientation) {
        true => format!("{height}x{width}"),
        false => format!("{width}x{height}"),
    }
}

impl DecodeError {
    /// Shorthand for [`DecodeError::Corrupt`].
    pub(super) fn corrupt(format: Format, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self::Corrupt { format, detail }
    }

    /// Shorthand for [`DecodeError::Truncated`] without usable pixels.
    pub(super) fn truncated(format: Format, detail: impl Into<String>) -> Self {
        let (detail, partial) = (detail.into(), false);
        Self::Truncated {
            format,
            detail,
            partial,
        }
    }

    /// This error, where pixels are there that could be used.
    pub(super) fn with_pixels(mut self) -> Self {
        if let Self::Truncated { partial, .. } = &mut self {
            *partial = true;
        }
        self
    }

    /// Shorthand for [`DecodeError::Unsupported`].
    pub(super) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into() }
    }
}
