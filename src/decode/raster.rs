//! PNG, WebP and BMP through the `image` crate.
//!
//! Whatever the file holds becomes three channels of eight bits: alpha and colour keys are dropped, not blended (the
//! colour under a transparent pixel shows, as with Pillow's `convert("RGB")` and OpenCV's `IMREAD_COLOR`); palettes are
//! expanded; grey is replicated; of 16 bits the upper 8 are kept. Of an animation the first frame counts.

use std::io::Cursor;

use image::codecs::{bmp::BmpDecoder, png::PngDecoder, webp::WebPDecoder};
use image::error::ImageError;
use image::{ColorType, ImageDecoder, Limits};

use super::pixels::{PixelsMut, sized};
use super::{ChannelOrder, DecodeError, Format, Header, Job, Outcome, Truncated, orient, webp};

/// What the decoder may allocate besides pixels: tables, text and profile chunks.
const OVERHEAD: u64 = 64 << 20;

/// Reads the header: size and orientation.
pub(super) fn probe(format: Format, bytes: &[u8]) -> Result<Header, DecodeError> {
    if format == Format::Png {
        return probe_png(bytes);
    }
    let failed = |error| failure(format, bytes, error);
    let (size, orientation) = if format == Format::Webp {
        let size = WebPDecoder::new(Cursor::new(bytes)).map_err(failed)?.dimensions();
        // EXIF lies behind the pixels; in a cut file it is missing, which the pixels will tell better.
        (size, webp::look_through(bytes, size)?)
    } else {
        (
            BmpDecoder::new(Cursor::new(bytes)).map_err(failed)?.dimensions(),
            1,
        )
    };
    header(format, size, orientation)
}

/// PNG's chunks are walked here because `image` decompresses profiles and texts on opening, and misses an `eXIf` chunk
/// behind the pixels.
fn probe_png(bytes: &[u8]) -> Result<Header, DecodeError> {
    let cut = || DecodeError::truncated(Format::Png, "it ends inside its header");
    let first = bytes.get(8..).unwrap_or_default();
    let ihdr = chunk(first).ok_or_else(cut)?;
    let (b"IHDR", &[w0, w1, w2, w3, h0, h1, h2, h3, ..]) = (&ihdr.name, ihdr.data) else {
        return Err(DecodeError::corrupt(Format::Png, "its first chunk is not IHDR"));
    };
    let size = (
        u32::from_be_bytes([w0, w1, w2, w3]),
        u32::from_be_bytes([h0, h1, h2, h3]),
    );
    let mut rest = ihdr.rest;
    let mut orientation = 1;
    while let Some(chunk) = chunk(rest) {
        match &chunk.name {
            b"eXIf" => {
                orientation = orient::from_exif(chunk.data);
                break;
            }
            b"IEND" => break,
            _ => rest = chunk.rest,
        }
    }
    header(Format::Png, size, orientation)
}

/// One chunk of a PNG file.
struct Chunk<'a> {
    name: [u8; 4],
    data: &'a [u8],
    /// What follows its checksum.
    rest: &'a [u8],
}

/// The chunk at the start of `bytes`, if it is there in full.
fn chunk(bytes: &[u8]) -> Option<Chunk<'_>> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (name, rest) = rest.split_first_chunk::<4>()?;
    let (data, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    Some(Chunk {
        name: *name,
        data,
        rest: rest.get(4..)?,
    })
}

fn header(format: Format, (width, height): (u32, u32), orientation: u8) -> Result<Header, DecodeError> {
    if width == 0 || height == 0 {
        return Err(DecodeError::corrupt(
            format,
            format!("its size is {width}x{height}"),
        ));
    }
    Ok(Header {
        format,
        width,
        height,
        orientation,
    })
}

/// Decodes into `out`, which has the size in `header`. `raw` is a buffer for the decoder's own pixel format.
pub(super) fn decode(
    job: Job<'_>,
    out: &mut PixelsMut<'_>,
    raw: &mut Vec<u8>,
) -> Result<Outcome, DecodeError> {
    let Job { bytes, header, .. } = job;
    let failed = |error| failure(header.format, bytes, error);
    let mut limits = Limits::default();
    limits.max_image_width = Some(header.width);
    limits.max_image_height = Some(header.height);
    // Room for the decoder's own copy at 16 bits and four channels.
    limits.max_alloc = Some(u64::from(header.width) * u64::from(header.height) * 8 + OVERHEAD);
    let cursor = Cursor::new(bytes);
    match header.format {
        Format::Webp => {
            let mut decoder = WebPDecoder::new(cursor).map_err(failed)?;
            decoder.set_limits(limits).map_err(failed)?;
            read(decoder, job, out, raw)
        }
        Format::Bmp => {
            let mut decoder = BmpDecoder::new(cursor).map_err(failed)?;
            decoder.set_limits(limits).map_err(failed)?;
            read(decoder, job, out, raw)
        }
        Format::Png => read(
            PngDecoder::with_limits(cursor, limits).map_err(failed)?,
            job,
            out,
            raw,
        ),
        Format::Jpeg => Err(DecodeError::unsupported("JPEG in the PNG decoder")),
    }
}

/// Runs one decoder and converts its pixels.
fn read(
    decoder: impl ImageDecoder,
    job: Job<'_>,
    out: &mut PixelsMut<'_>,
    raw: &mut Vec<u8>,
) -> Result<Outcome, DecodeError> {
    let Job {
        bytes,
        header,
        options,
        order,
    } = job;
    let (width, height) = decoder.dimensions();
    if (width, height) != (header.width, header.height) || out.size() != (width, height) {
        let detail = format!("its headers disagree about the size ({width}x{height})");
        return Err(DecodeError::corrupt(header.format, detail));
    }
    let color = decoder.color_type();
    let raw = sized(raw, width, height, usize::from(color.bytes_per_pixel()))?;
    // A cut file leaves its tail unwritten: that must be black, not the picture before.
    raw.fill(0);
    let outcome = match decoder.read_image(raw) {
        Ok(()) => Outcome::default(),
        Err(error) => {
            let error = failure(header.format, bytes, error);
            // These two decoders write row by row, so what was there has arrived.
            let partial = matches!(header.format, Format::Png | Format::Bmp);
            match error {
                DecodeError::Truncated { detail, .. } if partial && options.truncated == Truncated::Use => {
                    Outcome {
                        warning: Some(detail),
                        truncated: true,
                    }
                }
                error if partial => return Err(error.with_pixels()),
                error => return Err(error),
            }
        }
    };
    convert(raw, color, order, out, outcome.truncated)?;
    Ok(outcome)
}

/// Any pixel format of `image` to three bytes. `big_endian`: 16-bit samples are still in the order of the file,
/// because the decoder turns them only after the last row.
fn convert(
    raw: &[u8],
    color: ColorType,
    order: ChannelOrder,
    out: &mut PixelsMut<'_>,
    big_endian: bool,
) -> Result<(), DecodeError> {
    let bytes = usize::from(color.bytes_per_pixel());
    let channels = usize::from(color.channel_count());
    let sample = bytes / channels;
    if sample > 2 {
        return Err(DecodeError::unsupported(format!("pixel format {color:?}")));
    }
    // Offset of the upper byte of each sample.
    let upper = if sample == 2 && !big_endian && cfg!(target_endian = "little") {
        1
    } else {
        0
    };
    let offsets = match (channels >= 3, order) {
        (false, _) => [upper; 3],
        (true, ChannelOrder::Rgb) => [upper, sample + upper, 2 * sample + upper],
        (true, ChannelOrder::Bgr) => [2 * sample + upper, sample + upper, upper],
    };
    let straight = bytes == 3 && order == ChannelOrder::Rgb;
    for (y, row) in raw.chunks_exact(out.size().0 as usize * bytes).enumerate() {
        let out = out.row_mut(y);
        if straight {
            out.copy_from_slice(row);
            continue;
        }
        for (pixel, source) in out.as_chunks_mut::<3>().0.iter_mut().zip(row.chunks_exact(bytes)) {
            *pixel = offsets.map(|offset| source[offset]);
        }
    }
    Ok(())
}

/// Translates the errors of `image` about `bytes`.
fn failure(format: Format, bytes: &[u8], error: ImageError) -> DecodeError {
    match error {
        ImageError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            DecodeError::truncated(format, "the data ends before the last pixel")
        }
        // The WebP decoder has many words for a missing end; the container says how long the file should be.
        error if format == Format::Webp && riff_is_cut(bytes) => {
            DecodeError::truncated(format, error.to_string())
        }
        ImageError::Unsupported(error) => DecodeError::unsupported(format!("{format} ({error})")),
        error => DecodeError::corrupt(format, error.to_string()),
    }
}

/// Whether a RIFF container is shorter than it says.
fn riff_is_cut(bytes: &[u8]) -> bool {
    let size = bytes
        .get(4..)
        .and_then(<[u8]>::first_chunk::<4>)
        .map_or(u32::MAX, |size| u32::from_le_bytes(*size));
    (bytes.len() as u64) < u64::from(size) + 8
}
