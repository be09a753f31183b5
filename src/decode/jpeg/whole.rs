//! Is all of the picture there?
//!
//! libjpeg fills what is missing with grey and says so in a warning that looks like any other, and it says nothing at
//! all when whole scans are missing. The rules here, applied only to files about which there is doubt:
//!
//! | the file | truncated when |
//! |---|---|
//! | has no EOI | ending it right there with an EOI leaves libjpeg short of data (so a file that lacks only its EOI is whole), or scans are missing: a component never came, or a progressive one not to its last bit |
//! | has no EOI and is arithmetic-coded | always: that coder never runs short, so wholeness cannot be shown |
//! | has no EOI and its data is damaged before the end | always, for the same reason |
//! | ends in EOI | a component never came, or the last scan is short by more than 1/16 of its data, or (progressive) a scan is short and later ones are missing |
//!
//! The last row separates a cut that something closed with an EOI from damaged bits, after which the decoder arrives
//! at the EOI a few blocks too early or too late; a damaged file is decoded and counted as a warning.

use super::markers::{DRI, EOI, Entropy, Frame, SOI, SOS, Scan, Segment, Segments};
use super::turbo::{Decompressor, Layout};

/// JFIF.
const APP0: u8 = 0xe0;
/// Adobe.
const APP14: u8 = 0xee;

/// libjpeg's warning when a marker comes where data should be (`JWRN_HIT_MARKER`).
const SHORT: &str = "Corrupt JPEG data: premature end of data segment";
/// End of libjpeg's warning when data is left over before EOI (`JWRN_EXTRANEOUS_DATA`).
const LEFT_OVER: &str = "extraneous bytes before marker 0xd9";

/// The parts of a file that decide.
pub(super) struct Anatomy<'a> {
    frame: Frame,
    /// Segments that decoding needs, in order, with each scan's data.
    parts: Vec<(Segment<'a>, Option<Entropy<'a>>)>,
    /// Bits still missing of each coefficient of each component; 255 where none came.
    missing: Vec<[u8; 64]>,
    /// Components and restart interval of the last scan.
    last_scan: Option<(Vec<usize>, u64)>,
    ends_in_eoi: bool,
}

impl<'a> Anatomy<'a> {
    /// Takes `bytes` apart; `None` where there is no frame, and so nothing to say.
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        let mut walk = Segments::new(bytes);
        let mut frame: Option<Frame> = None;
        let mut this = Self {
            frame: Frame {
                marker: 0xc0,
                precision: 8,
                height: 0,
                width: 0,
                components: Vec::new(),
            },
            parts: Vec::new(),
            missing: Vec::new(),
            last_scan: None,
            ends_in_eoi: false,
        };
        let mut interval = 0;
        while let Some(segment) = walk.next() {
            match segment.marker {
                EOI => {
                    this.ends_in_eoi = true;
                    break;
                }
                // JFIF and Adobe decide about colour; other APPn, comments and stray markers are left out, so that a
                // warning about an ICC profile does not hide one about the data.
                0xe1..=0xed | 0xef | 0xfe | 0x01 | 0xd0..=SOI => {}
                SOS => {
                    let entropy = walk.entropy();
                    if let Some(scan) = frame.as_ref().and_then(|frame| Scan::parse(&segment, frame)) {
                        this.note(&scan);
                        this.last_scan = Some((scan.members, interval));
                    }
                    this.parts.push((segment, Some(entropy)));
                }
                marker => {
                    if let (DRI, &[high, low]) = (marker, segment.body) {
                        interval = u64::from(u16::from_be_bytes([high, low]));
                    }
                    if let Some(found) = Frame::parse(&segment) {
                        this.missing = vec![[255; 64]; found.components.len()];
                        frame = Some(found);
                    }
                    this.parts.push((segment, None));
                }
            }
        }
        this.frame = frame?;
        Some(this)
    }

    /// Whether the file says that it ends.
    pub const fn ends_in_eoi(&self) -> bool {
        self.ends_in_eoi
    }

    /// A scan came: its coefficients are known but for its missing bits.
    fn note(&mut self, scan: &Scan) {
        for &member in &scan.members {
            if let Some(bits) = self.missing.get_mut(member) {
                bits[usize::from(scan.band.0)..=usize::from(scan.band.1)].fill(scan.missing_bits);
            }
        }
    }

    /// Whether a component never came.
    fn lacks_component(&self) -> bool {
        self.missing.iter().any(|bits| bits[0] == 255)
    }

    /// Whether anything that a complete set of scans brings is missing.
    fn lacks_detail(&self) -> bool {
        let unfinished = |bits: &[u8; 64]| bits.iter().any(|&missing| missing != 0);
        self.lacks_component() || (self.frame.progressive() && self.missing.iter().any(unfinished))
    }

    /// Whether the last scan lacks restart intervals, by more than `tolerance` of them.
    fn lacks_restarts(&self, tolerance: u64) -> bool {
        let entropy = self.parts.iter().rev().find_map(|part| part.1);
        match (&self.last_scan, entropy) {
            (Some((members, interval)), Some(entropy)) if *interval > 0 => {
                let expected = self.frame.mcus(members).div_ceil(*interval) - 1;
                entropy.restarts + tolerance < expected
            }
            _ => false,
        }
    }

    /// The file again without what decoding does not need or what is incomplete, and with an EOI.
    pub fn closed(&self) -> Vec<u8> {
        self.joined(|_| true, 0)
    }

    /// A file whose first warning, if any, is about the end of the last scan, with `filler` bytes of zero behind that.
    ///
    /// Colour does not matter here, so JFIF and Adobe segments are left out with the warnings they may cause. Scans of
    /// a sequential file do not depend on each other, so only the last is kept.
    fn ending(&self, filler: usize) -> Vec<u8> {
        let last = self.parts.iter().rposition(|part| part.1.is_some());
        let keep = |index: usize| match &self.parts[index] {
            (_, Some(_)) => self.frame.progressive() || Some(index) == last,
            (segment, None) => !matches!(segment.marker, APP0 | APP14),
        };
        self.joined(keep, filler)
    }

    fn joined(&self, keep: impl Fn(usize) -> bool, filler: usize) -> Vec<u8> {
        let mut bytes = vec![0xff, SOI];
        for (index, (segment, entropy)) in self.parts.iter().enumerate() {
            if keep(index) {
                bytes.extend_from_slice(segment.whole);
                bytes.extend_from_slice(entropy.map_or(&[], |entropy| entropy.data));
            }
        }
        bytes.resize(bytes.len() + filler, 0);
        bytes.extend_from_slice(&[0xff, EOI]);
        bytes
    }

    /// Whether the picture is cut short. `warning` is what libjpeg said about the file first.
    pub fn truncated(&self, warning: Option<&str>) -> bool {
        if self.ends_in_eoi {
            return self.lacks_component() || warning.is_some_and(|text| self.cut_before_eoi(text));
        }
        if self.frame.arithmetic() || self.lacks_detail() || self.lacks_restarts(0) {
            return true;
        }
        match first_warning(&self.ending(0)) {
            Some(text) => !text.is_empty() && !text.ends_with(LEFT_OVER),
            None => true,
        }
    }

    /// For files that end in EOI and gave a warning.
    fn cut_before_eoi(&self, warning: &str) -> bool {
        if self.frame.progressive() {
            return warning.starts_with(SHORT) && self.lacks_detail();
        }
        let Some((members, interval)) = &self.last_scan else {
            return false;
        };
        // Damage costs a restart interval or two; every interval begins afresh, so their number tells the rest.
        if let Some(intervals) = self.frame.mcus(members).checked_div(*interval) {
            return self.lacks_restarts((intervals / 16).max(1));
        }
        let data = self
            .parts
            .iter()
            .rev()
            .find_map(|part| part.1)
            .map_or(0, |entropy| entropy.data.len());
        first_warning(&self.ending((data / 16).max(64))).is_some_and(|text| text.starts_with(SHORT))
    }
}

/// libjpeg's first warning about `bytes`, empty where there is none; `None` where it cannot be decoded at all.
fn first_warning(bytes: &[u8]) -> Option<String> {
    let mut decompressor = Decompressor::new(bytes).ok()?;
    decompressor.shrink().ok()?;
    let layout = if decompressor.info().ink {
        Layout::Cmyk
    } else {
        Layout::Rgb
    };
    let (width, height) = decompressor.output_size();
    // At most a 64th of max-pixels, which the header was held against.
    let mut pixels = vec![0; width as usize * height as usize * layout.bytes()];
    let warning = decompressor
        .decompress(layout, &mut pixels, width as usize * layout.bytes())
        .ok()?;
    Some(warning.unwrap_or_default())
}
