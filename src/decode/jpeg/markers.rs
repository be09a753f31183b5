//! The marker structure of a JPEG file: enough of ITU-T T.81 annex B to know the frame, the scans and the EXIF block.
//!
//! Nothing here allocates more than a few bytes a component, and every step moves forward.

/// Start of image.
pub(super) const SOI: u8 = 0xd8;
/// End of image.
pub(super) const EOI: u8 = 0xd9;
/// Start of scan.
pub(super) const SOS: u8 = 0xda;
/// Define restart interval.
pub(super) const DRI: u8 = 0xdd;
/// Application segment 1: EXIF or XMP.
const APP1: u8 = 0xe1;

/// One thing between two places of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    /// The byte behind `0xff`.
    pub marker: u8,
    /// Contents without marker and length; empty for markers that stand alone.
    pub body: &'a [u8],
    /// The segment as it stands in the file, marker included.
    pub whole: &'a [u8],
}

/// Walks the segments of a file from behind SOI. Ends at EOI, at the end of the data, or where a segment is cut.
#[derive(Clone, Debug)]
pub(super) struct Segments<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Segments<'a> {
    /// Starts behind the SOI of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 2 }
    }

    /// Takes the entropy-coded data of the scan whose SOS was returned last: everything up to the next marker that is
    /// neither a stuffed byte nor RSTn.
    pub fn entropy(&mut self) -> Entropy<'a> {
        let start = self.at;
        let mut restarts = 0;
        let mut end = start;
        let mut terminated = false;
        while let Some(skip) = self.bytes[end..].iter().position(|&b| b == 0xff) {
            end += skip;
            match self.bytes.get(end + 1) {
                Some(0x00) => end += 2,
                Some(0xd0..=0xd7) => {
                    restarts += 1;
                    end += 2;
                }
                // Fill bytes before a marker.
                Some(0xff) => end += 1,
                Some(_) => {
                    terminated = true;
                    break;
                }
                // The file ends between 0xff and what should follow.
                None => break,
            }
        }
        if !terminated && self.bytes.get(end) != Some(&0xff) {
            end = self.bytes.len();
        }
        self.at = end;
        Entropy {
            data: &self.bytes[start..end],
            restarts,
        }
    }
}

/// The entropy-coded data of one scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entropy<'a> {
    /// The bytes, stuffing and restart markers included.
    pub data: &'a [u8],
    /// Number of RSTn markers inside.
    pub restarts: u64,
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        // As libjpeg's next_marker(): anything before 0xff is skipped, fill bytes are legal, 0xff00 is no marker.
        let marker = loop {
            let skip = self.bytes.get(self.at..)?.iter().position(|&b| b == 0xff)?;
            self.at += skip;
            let fill = self.bytes[self.at..].iter().position(|&b| b != 0xff)?;
            self.at += fill;
            let code = self.bytes[self.at];
            self.at += 1;
            if code != 0 {
                break code;
            }
        };
        let start = self.at - 2;
        if matches!(marker, 0x01 | 0xd0..=0xd9) {
            let whole = &self.bytes[start..self.at];
            return Some(Segment {
                marker,
                body: &[],
                whole,
            });
        }
        let length = usize::from(u16::from_be_bytes([
            *self.bytes.get(self.at)?,
            *self.bytes.get(self.at + 1)?,
        ]));
        let end = self.at + length;
        let body = self.bytes.get(self.at + 2..end)?;
        self.at = end;
        Some(Segment {
            marker,
            body,
            whole: &self.bytes[start..end],
        })
    }
}

/// One component of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Component {
    /// The identifier that scans refer to.
    pub id: u8,
    /// Horizontal and vertical sampling factors, 1 to 4.
    pub sampling: (u8, u8),
}

/// A start-of-frame segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The marker, 0xc0 to 0xcf or 0xf7: it names the process.
    pub marker: u8,
    /// Bits a sample.
    pub precision: u8,
    /// Height; 0 where a DNL segment tells it later.
    pub height: u32,
    /// Width.
    pub width: u32,
    /// The components in the order of the frame.
    pub components: Vec<Component>,
}

impl Frame {
    /// Reads a SOF segment; `None` for other segments and for one that contradicts itself.
    pub fn parse(segment: &Segment<'_>) -> Option<Self> {
        // 0xc4 is DHT, 0xc8 reserved, 0xcc DAC; 0xf7 is JPEG-LS.
        if !matches!(segment.marker, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf | 0xf7) {
            return None;
        }
        let (head, components) = segment.body.split_at_checked(6)?;
        let (components, rest) = components.as_chunks::<3>();
        if components.len() != usize::from(head[5]) || components.is_empty() || !rest.is_empty() {
            return None;
        }
        Some(Self {
            marker: segment.marker,
            precision: head[0],
            height: u32::from(u16::from_be_bytes([head[1], head[2]])),
            width: u32::from(u16::from_be_bytes([head[3], head[4]])),
            components: components
                .iter()
                .map(|c| Component {
                    id: c[0],
                    sampling: (c[1] >> 4, c[1] & 15),
                })
                .collect(),
        })
    }

    /// Whether several scans refine the same coefficients.
    pub const fn progressive(&self) -> bool {
        matches!(self.marker, 0xc2 | 0xca)
    }

    /// Whether the entropy coder is the arithmetic one.
    pub const fn arithmetic(&self) -> bool {
        matches!(self.marker, 0xc9 | 0xca)
    }

    /// Number of MCUs in a scan over `members` of the components (indices), by T.81 A.2. At least 1.
    pub fn mcus(&self, members: &[usize]) -> u64 {
        let most = |pick: fn(&Component) -> u8| {
            u64::from(self.components.iter().map(pick).max().unwrap_or(1).max(1))
        };
        let (h_max, v_max) = (most(|c| c.sampling.0), most(|c| c.sampling.1));
        let (width, height) = (u64::from(self.width), u64::from(self.height));
        let count = match members {
            // A scan of one component is not padded to the frame's MCU: it has one block each.
            &[only] if let Some(c) = self.components.get(only) => {
                let columns = (width * u64::from(c.sampling.0)).div_ceil(h_max).div_ceil(8);
                columns * (height * u64::from(c.sampling.1)).div_ceil(v_max).div_ceil(8)
            }
            _ => width.div_ceil(8 * h_max) * height.div_ceil(8 * v_max),
        };
        count.max(1)
    }
}

/// A start-of-scan segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scan {
    /// Indices into [`Frame::components`].
    pub members: Vec<usize>,
    /// First and last coefficient of the band, at most 63.
    pub band: (u8, u8),
    /// Bits of precision still missing after this scan (Al).
    pub missing_bits: u8,
}

impl Scan {
    /// Reads a SOS segment for `frame`; `None` where the two do not fit.
    pub fn parse(segment: &Segment<'_>, frame: &Frame) -> Option<Self> {
        let (&count, rest) = segment.body.split_first()?;
        let (selectors, rest) = rest.split_at_checked(usize::from(count) * 2)?;
        let &[first, last, approximation] = rest else {
            return None;
        };
        let find = |id: u8| frame.components.iter().position(|c| c.id == id);
        let members = selectors
            .as_chunks::<2>()
            .0
            .iter()
            .map(|s| find(s[0]))
            .collect::<Option<Vec<_>>>()?;
        if members.is_empty() || first > last || last > 63 {
            return None;
        }
        Some(Self {
            members,
            band: (first, last),
            missing_bits: approximation & 15,
        })
    }
}

/// The TIFF structure of an EXIF segment; XMP and other users of APP1 give `None`.
pub(super) fn exif<'a>(segment: &Segment<'a>) -> Option<&'a [u8]> {
    (segment.marker == APP1)
        .then_some(segment.body)?
        .strip_prefix(b"Exif\0")?
        .get(1..)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn fill_bytes_junk_and_standalone_markers_are_walked() {
        let file = b"\xff\xd8junk\xff\xff\xfe\0\x03x\xff\x01\xff\xda\0\x02ab\xff\0\xff\xd0cd\xff\xff\xd9";
        let mut walk = Segments::new(file);
        let comment = walk.next().unwrap();
        assert_eq!(
            (comment.marker, comment.body, comment.whole),
            (0xfe, &b"x"[..], &b"\xff\xfe\0\x03x"[..])
        );
        assert_eq!(walk.next().unwrap().marker, 0x01);
        assert_eq!(walk.next().unwrap().marker, SOS);
        let entropy = walk.entropy();
        assert_eq!(
            (entropy.data, entropy.restarts),
            (&b"ab\xff\0\xff\xd0cd\xff"[..], 1)
        );
        assert_eq!(walk.next().unwrap().marker, EOI);
        assert_eq!(walk.next(), None);
    }

    #[test]
    fn a_cut_segment_ends_the_walk() {
        assert_eq!(Segments::new(b"\xff\xd8\xff\xe0\0\x10JFIF").next(), None);
        assert_eq!(Segments::new(b"\xff\xd8\xff\xe0\0\x01").next(), None);
        assert_eq!(Segments::new(b"\xff\xd8\xff\xe0\0").next(), None);
        assert_eq!(Segments::new(b"\xff\xd8\xff\xff").next(), None);
        let mut walk = Segments::new(b"\xff\xd8\xff\xda\0\x02abc\xff");
        assert_eq!(walk.next().unwrap().marker, SOS);
        assert_eq!(walk.entropy().data, b"abc");
        assert_eq!(walk.next(), None);
    }

    #[test]
    fn mcus_follow_the_sampling_factors() {
        let component = |id, h, v| Component { id, sampling: (h, v) };
        let components = vec![component(1, 2, 2), component(2, 1, 1), component(3, 1, 1)];
        let frame = Frame {
            marker: 0xc0,
            precision: 8,
            height: 119,
            width: 161,
            components,
        };
        assert_eq!(frame.mcus(&[0, 1, 2]), 11 * 8);
        assert_eq!(frame.mcus(&[0]), 21 * 15);
        assert_eq!(frame.mcus(&[1]), 11 * 8);
    }
}
