//! Which format a file is, by its first bytes. Names lie: ImageNet's `n02105855_2933.JPEG` is a PNG.

/// An image format that is decoded here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// JPEG, through libjpeg-turbo.
    Jpeg,
    /// PNG; of an animated one the default image.
    Png,
    /// WebP; of an animated one the first frame.
    Webp,
    /// Windows bitmap.
    Bmp,
}

impl Format {
    /// The media type, which is also the name of the GStreamer caps: `image/jpeg` and so on.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Webp => "image/webp",
            Self::Bmp => "image/bmp",
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::Webp => "WebP",
            Self::Bmp => "BMP",
        })
    }
}

/// What the first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sniffed {
    /// A format that [`decode_into`](super::decode_into) takes.
    Supported(Format),
    /// Something recognised that is not decoded; the name is for people (`TIFF`, `HEIC`, `HTML`, …).
    Unsupported(&'static str),
    /// Nothing known.
    Unknown,
    /// No bytes.
    Empty,
}

/// Signatures of what turns up among training images without being decodable here: (bytes at the start, name).
const FOREIGN: &[(&[u8], &str)] = &[
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"II+\0", "BigTIFF"),
    (b"MM\0+", "BigTIFF"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"8BPS", "PSD"),
    (b"\x00\x00\x00\x0cJXL \r\n\x87\n", "JPEG XL"),
    (b"\xff\x0a", "JPEG XL"),
    (b"\x00\x00\x00\x0cjP  \r\n\x87\n", "JPEG 2000"),
    (b"\xff\x4f\xff\x51", "JPEG 2000"),
    (b"\x76\x2f\x31\x01", "OpenEXR"),
    (b"#?RADIANCE", "Radiance HDR"),
    (b"qoif", "QOI"),
    (b"DDS ", "DDS"),
    (b"\x00\x00\x01\x00", "ICO"),
    (b"%PDF-", "PDF"),
    (b"PK\x03\x04", "ZIP"),
    (b"\x1f\x8b", "gzip"),
    (b"version https://git-lfs", "git-lfs pointer"),
];

/// Names `bytes` by content. A few dozen leading bytes suffice.
///
/// ```
/// use epochfeed::decode::{Format, Sniffed, sniff};
/// assert_eq!(sniff(b"\x89PNG\r\n\x1a\n...."), Sniffed::Supported(Format::Png));
/// assert_eq!(sniff(b"II*\0"), Sniffed::Unsupported("TIFF"));
/// assert_eq!(sniff(b""), Sniffed::Empty);
/// ```
pub fn sniff(bytes: &[u8]) -> Sniffed {
    if bytes.is_empty() {
        return Sniffed::Empty;
    }
    // libjpeg wants SOI at offset 0 and a marker behind it; two bytes alone would also match random data.
    if bytes.starts_with(b"\xff\xd8\xff") {
        return Sniffed::Supported(Format::Jpeg);
    }
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Sniffed::Supported(Format::Png);
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Sniffed::Supported(Format::Webp);
    }
    if is_bmp(bytes) {
        return Sniffed::Supported(Format::Bmp);
    }
    if let Some((_, name)) = FOREIGN.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Sniffed::Unsupported(name);
    }
    if bytes.get(4..8) == Some(b"ftyp") {
        return Sniffed::Unsupported(iso_media(bytes));
    }
    if let Some(name) = markup(bytes) {
        return Sniffed::Unsupported(name);
    }
    Sniffed::Unknown
}

/// `BM` is only two letters, so the size of the header that follows has to be one that exists.
fn is_bmp(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BM")
        && matches!(
            bytes.get(14..18),
            Some([12 | 16 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0])
        )
}

/// Which ISO media file: `ftyp` has one brand of its own, a version, and brands that it is compatible with.
fn iso_media(bytes: &[u8]) -> &'static str {
    let length = bytes
        .first_chunk::<4>()
        .map_or(0, |length| u32::from_be_bytes(*length));
    let end = bytes.len().min(usize::try_from(length).unwrap_or(usize::MAX));
    let compatible = bytes.get(16..end).unwrap_or_default().as_chunks::<4>().0;
    match bytes.get(8..12) {
        Some(b"avif" | b"avis") => "AVIF",
        // A picture of some kind: the others say of which.
        Some(b"mif1" | b"msf1" | b"miaf") if compatible.iter().any(|brand| brand.starts_with(b"avi")) => {
            "AVIF"
        }
        Some(b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx" | b"hevm" | b"hevs") => "HEIC",
        Some(b"mif1" | b"msf1" | b"miaf") => "HEIC",
        Some(b"crx ") => "Canon raw (CR3)",
        _ => "MP4 or other ISO media file",
    }
}

/// So much of a text is looked at for the first tag that says what it is; comments may stand in front of it.
const PROLOGUE: usize = 1024;

/// A drawing, or an error page saved under an image's name.
fn markup(bytes: &[u8]) -> Option<&'static str> {
    let text = bytes
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(bytes)
        .trim_ascii_start();
    let starts = |text: &[u8], tag: &str| {
        text.get(..tag.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(tag.as_bytes()))
    };
    let is_markup = [
        "<!doctype",
        "<!--",
        "<html",
        "<?xml",
        "<svg",
        "<head",
        "<body",
        "<error",
    ]
    .iter()
    .any(|tag| starts(text, tag));
    if !is_markup {
        return None;
    }
    // A page may hold a drawing, further down; a drawing holds no page.
    let tags = &text[..text.len().min(PROLOGUE)];
    let is_page =
        (0..tags.len()).any(|at| starts(&tags[at..], "<html") || starts(&tags[at..], "<!doctype html"));
    let is_drawing = (0..tags.len()).any(|at| starts(&tags[at..], "<svg"));
    Some(if is_drawing && !is_page {
        "SVG"
    } else {
        "HTML or XML"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_is_told_apart() {
        for (magic, name) in FOREIGN {
            assert_eq!(sniff(magic), Sniffed::Unsupported(name));
        }
        assert_eq!(sniff(b"\0\0\0\x1cftypavif"), Sniffed::Unsupported("AVIF"));
        assert_eq!(sniff(b"\0\0\0\x18ftypheic"), Sniffed::Unsupported("HEIC"));
        assert_eq!(sniff(b"\n <!DOCTYPE html>"), Sniffed::Unsupported("HTML or XML"));
        for (file, name) in [
            (&b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf"[..], "AVIF"),
            (b"\0\0\0\x1cftypmif1\0\0\0\0mif1heicmiaf", "HEIC"),
            // What lies behind the box is no brand.
            (b"\0\0\0\x14ftypmif1\0\0\0\0mif1avif", "HEIC"),
            (b"\0\0\0\x18ftypisom\0\0\0\0avif", "MP4 or other ISO media file"),
            (b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "SVG"),
            (
                b"\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- drawn -->\n<svg>",
                "SVG",
            ),
            (
                b"<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"svg11.dtd\"><svg>",
                "SVG",
            ),
            (b"<!-- a page --><html><body><svg>", "HTML or XML"),
            (b"<?xml version=\"1.0\"?><Error><Code>AccessDenied", "HTML or XML"),
        ] {
            assert_eq!(sniff(file), Sniffed::Unsupported(name));
        }
        assert_eq!(sniff(b"RIFF\0\0\0\0WEBPVP8 "), Sniffed::Supported(Format::Webp));
    }

    #[test]
    fn two_letters_do_not_make_a_bitmap() {
        let text = b"BMW.jpg is a list entry, not a bitmap";
        assert_eq!(sniff(text), Sniffed::Unknown);
        let mut header = [0u8; 18];
        header[..2].copy_from_slice(b"BM");
        header[14] = 40;
        assert_eq!(sniff(&header), Sniffed::Supported(Format::Bmp));
    }

    #[test]
    fn zeros_and_garbage_before_soi_are_unknown() {
        assert_eq!(sniff(&[0; 64]), Sniffed::Unknown);
        assert_eq!(sniff(b"\r\n\r\n\xff\xd8\xff\xe0"), Sniffed::Unknown);
        assert_eq!(sniff(b"\xff\xd8"), Sniffed::Unknown);
    }
}
