//! JPEG through libjpeg-turbo: header, colour, damaged and truncated files.
//!
//! Decoder settings, on which the bytes depend: accurate integer DCT and fancy upsampling, as Pillow and OpenCV use.
//! Four-channel files (CMYK, YCCK) are taken as inverted, as Adobe writes them and as Pillow reads all of them, marked or
//! not: `R = round(C*K/255)` of the stored values, likewise G and B.

mod markers;
mod turbo;
mod whole;

use self::markers::{EOI, Frame, SOS, Scan, Segments, exif};
use self::turbo::{Decompressor, Layout};
use self::whole::Anatomy;
use super::pixels::{PixelsMut, sized};
use super::{ChannelOrder, DecodeError, Format, Header, Job, Outcome, Truncated, orient};

/// Reads the header: size, orientation, and whether this kind of JPEG is decoded at all.
pub(super) fn probe(bytes: &[u8]) -> Result<Header, DecodeError> {
    let mut frame = None;
    let mut orientation = None;
    for segment in Segments::new(bytes) {
        match segment.marker {
            SOS => break,
            EOI => return Err(DecodeError::corrupt(Format::Jpeg, "it holds no picture")),
            _ => {
                if let Some(tiff) = exif(&segment) {
                    // The first EXIF block counts; later ones belong to whatever rewrote the file.
                    orientation.get_or_insert_with(|| orient::from_exif(tiff));
                } else if frame.is_none() {
                    frame = Frame::parse(&segment);
                }
            }
        }
    }
    let frame = frame.ok_or_else(|| DecodeError::truncated(Format::Jpeg, "it ends inside its header"))?;
    if let Some(what) = unsupported(&frame) {
        return Err(DecodeError::unsupported(format!("JPEG ({what})")));
    }
    if frame.width == 0 {
        return Err(DecodeError::corrupt(Format::Jpeg, "its width is 0"));
    }
    let orientation = orientation.unwrap_or(1);
    Ok(Header {
        format: Format::Jpeg,
        width: frame.width,
        height: frame.height,
        orientation,
    })
}

/// Names the process of `frame` if it is not decoded.
fn unsupported(frame: &Frame) -> Option<String> {
    match frame.marker {
        0xc3 | 0xcb => Some("lossless".into()),
        0xc5..=0xc7 | 0xcd..=0xcf => Some("hierarchical".into()),
        0xf7 => Some("JPEG-LS".into()),
        _ if frame.precision != 8 => Some(format!("{} bit", frame.precision)),
        _ if frame.height == 0 => Some("height given at the end, DNL".into()),
        _ if !matches!(frame.components.len(), 1 | 3 | 4) => {
            Some(format!("{} channels", frame.components.len()))
        }
        _ => None,
    }
}

/// Decodes into `out`, which has the size in `header`. `ink` is a buffer for four-channel files.
///
/// After an error `out` holds whatever was decoded until then.
pub(super) fn decode(
    job: Job<'_>,
    out: &mut PixelsMut<'_>,
    ink: &mut Vec<u8>,
) -> Result<Outcome, DecodeError> {
    let warning = match pixels(job.bytes, job, out, ink) {
        Ok(warning) => warning,
        Err(DecodeError::Corrupt { detail, .. }) => return salvage(job, out, ink, detail),
        Err(error) => return Err(error),
    };
    let truncated = (warning.is_some() || scans_may_be_missing(job.bytes))
        && Anatomy::of(job.bytes).is_some_and(|anatomy| anatomy.truncated(warning.as_deref()));
    if truncated && job.options.truncated == Truncated::Fail {
        return Err(
            DecodeError::truncated(Format::Jpeg, "the data ends before the last pixel").with_pixels(),
        );
    }
    Ok(Outcome { warning, truncated })
}

/// The decoder gave up. Where the file was cut, for example inside a table between two scans, what came before the cut
/// may still be a picture.
fn salvage(
    job: Job<'_>,
    out: &mut PixelsMut<'_>,
    ink: &mut Vec<u8>,
    detail: String,
) -> Result<Outcome, DecodeError> {
    let Some(anatomy) = Anatomy::of(job.bytes).filter(|anatomy| !anatomy.ends_in_eoi()) else {
        return Err(DecodeError::corrupt(Format::Jpeg, detail));
    };
    let error = DecodeError::truncated(Format::Jpeg, format!("it ends early ({detail})"));
    // Error texts of this attempt would speak about a file that nobody has.
    match pixels(&anatomy.closed(), job, out, ink) {
        Ok(warning) if job.options.truncated == Truncated::Use => Ok(Outcome {
            warning: warning.or(Some(detail)),
            truncated: true,
        }),
        Ok(_) => Err(error.with_pixels()),
        Err(_) => Err(error),
    }
}

/// Whether the first scan leaves out components, so that later ones could be missing without a warning.
fn scans_may_be_missing(bytes: &[u8]) -> bool {
    let mut frame = None;
    for segment in Segments::new(bytes) {
        if segment.marker == SOS {
            let scan = frame
                .as_ref()
                .and_then(|frame: &Frame| Some((frame, Scan::parse(&segment, frame)?)));
            return scan.is_none_or(|(frame, scan)| scan.members.len() < frame.components.len());
        }
        frame = frame.or_else(|| Frame::parse(&segment));
    }
    true
}

/// All pixels of `bytes`, which are the job's or made from them, through libjpeg; returns its first warning.
fn pixels(
    bytes: &[u8],
    job: Job<'_>,
    out: &mut PixelsMut<'_>,
    ink: &mut Vec<u8>,
) -> Result<Option<String>, DecodeError> {
    let Job { header, order, .. } = job;
    let corrupt = |detail: String| DecodeError::corrupt(Format::Jpeg, detail);
    let mut decompressor = Decompressor::new(bytes).map_err(corrupt)?;
    let info = decompressor.info();
    // The header is the caller's, and max-pixels was held against it: libjpeg must see the same picture.
    if (info.width, info.height) != (header.width, header.height)
        || out.size() != (header.width, header.height)
    {
        return Err(corrupt(format!(
            "its headers disagree about the size ({}x{})",
            info.width, info.height
        )));
    }
    if !info.ink {
        let layout = match order {
            ChannelOrder::Rgb => Layout::Rgb,
            ChannelOrder::Bgr => Layout::Bgr,
        };
        let stride = out.stride();
        return decompressor
            .decompress(layout, out.bytes_mut(), stride)
            .map_err(corrupt);
    }
    let ink = sized(ink, info.width, info.height, Layout::Cmyk.bytes())?;
    let stride = info.width as usize * Layout::Cmyk.bytes();
    let warning = decompressor
        .decompress(Layout::Cmyk, ink, stride)
        .map_err(corrupt)?;
    for (y, row) in ink.chunks_exact(stride).enumerate() {
        multiply_ink(row, order, out.row_mut(y));
    }
    Ok(warning)
}

/// Inverted ink to light: each channel times black, divided by 255 and rounded.
fn multiply_ink(ink: &[u8], order: ChannelOrder, out: &mut [u8]) {
    for (pixel, &[c, m, y, k]) in out.as_chunks_mut::<3>().0.iter_mut().zip(ink.as_chunks::<4>().0) {
        let times_black = |ink: u8| ((u32::from(ink) * u32::from(k) + 127) / 255) as u8;
        let (r, g, b) = (times_black(c), times_black(m), times_black(y));
        *pixel = match order {
            ChannelOrder::Rgb => [r, g, b],
            ChannelOrder::Bgr => [b, g, r],
        };
    }
}
