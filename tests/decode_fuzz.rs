//! Random damage: nothing panics, nothing asks for more memory than the limit allows, and what decodes fills the frame.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use epochfeed::decode::{
    ChannelOrder, DecodeOptions, Fit, Interpolation, OrientationMode, Scratch, Target, Truncated,
    decode_into, probe,
};
use proptest::prelude::*;

/// The system's allocator, remembering the largest request. libjpeg's own memory is not seen; it follows the header,
/// which is held against the limit first.
struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to `System` unchanged, which meets the contract of the trait.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises about `layout` are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above, and so from `System`, with this `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

const FILES: [&[u8]; 14] = [
    include_bytes!("data/jpeg/baseline.jpg"),
    include_bytes!("data/jpeg/restart.jpg"),
    include_bytes!("data/jpeg/progressive.jpg"),
    include_bytes!("data/jpeg/cmyk.jpg"),
    include_bytes!("data/cases/img/a05_ycck_adobe2.jpg"),
    include_bytes!("data/cases/img/a01_noninterleaved_422_161x119.jpg"),
    include_bytes!("data/cases/img/a06_arithmetic_progressive.jpg"),
    include_bytes!("data/cases/img/a07_exif_ifd_loop.jpg"),
    include_bytes!("data/cases/img/a00_control_rgb8.png"),
    include_bytes!("data/cases/img/a13_png_pal1.png"),
    include_bytes!("data/cases/img/a13_png_rgba16.png"),
    include_bytes!("data/cases/img/a11_apng.png"),
    include_bytes!("data/cases/img/a10_webp_named.jpg"),
    include_bytes!("data/cases/img/a10_bmp_named.jpg"),
];

const MAX_PIXELS: u64 = 1 << 18;
/// Frame and scratch at 8 bytes a pixel, and the tables of the decoders.
const MAX_REQUEST: usize = MAX_PIXELS as usize * 8 + (1 << 20);

/// Decodes with every combination of settings that takes another path. Panics are the test's failures.
fn try_everything(bytes: &[u8], scratch: &mut Scratch) {
    for truncated in [Truncated::Fail, Truncated::Use] {
        for (fit, interpolation, orientation) in [
            (Fit::None, Interpolation::Linear, OrientationMode::Ignore),
            (Fit::Letterbox, Interpolation::Linear, OrientationMode::Apply),
            (Fit::Ultralytics, Interpolation::Area, OrientationMode::Apply),
            (Fit::Stretch, Interpolation::Nearest, OrientationMode::Apply),
        ] {
            let options = DecodeOptions {
                fit,
                interpolation,
                orientation,
                truncated,
                max_pixels: MAX_PIXELS,
                ..DecodeOptions::default()
            };
            let Ok(header) = probe(bytes, &options) else {
                continue;
            };
            assert!(u64::from(header.width) * u64::from(header.height) <= MAX_PIXELS);
            assert!((1..=8).contains(&header.orientation));
            let (width, height) = match fit {
                Fit::None => header.oriented_size(orientation),
                _ => (64, 48),
            };
            let mut frame = vec![0; width as usize * height as usize * 3];
            let mut target = Target {
                data: &mut frame,
                stride: width as usize * 3,
                width,
                height,
                order: ChannelOrder::Rgb,
            };
            match decode_into(bytes, &header, &options, &mut target, scratch) {
                Ok(decoded) => assert!(truncated == Truncated::Use || !decoded.truncated),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest <= MAX_REQUEST, "{largest} bytes in one request");
}

#[test]
fn every_prefix_of_small_files() {
    let mut scratch = Scratch::default();
    for file in FILES.iter().filter(|file| file.len() < 2500) {
        for end in (0..file.len()).step_by(3) {
            try_everything(&file[..end], &mut scratch);
        }
    }
}

/// Every byte of the headers, at its extremes: sizes, counts, lengths, identifiers.
#[test]
fn every_header_byte_at_its_extremes() {
    let mut scratch = Scratch::default();
    for file in FILES {
        for at in 0..file.len().min(300) {
            for value in [0x00, 0x7f, 0xff] {
                let mut damaged = file.to_vec();
                damaged[at] = value;
                try_everything(&damaged, &mut scratch);
            }
        }
    }
}

/// Found by fuzzing: sizes that image-webp 0.2.4 believed. The frame of a picture, that of an animation, with and without
/// alpha, and metadata.
#[test]
fn webp_that_claims_more_than_it_has() {
    let mut scratch = Scratch::default();
    for file in [
        &include_bytes!("../fuzz/seeds/decode/claims_frame.webp")[..],
        include_bytes!("../fuzz/seeds/decode/claims_animated.webp"),
        include_bytes!("../fuzz/seeds/decode/claims_animated_alpha.webp"),
        include_bytes!("../fuzz/seeds/decode/claims_exif.webp"),
    ] {
        try_everything(file, &mut scratch);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_damage(
        file in 0..FILES.len(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
        cut_it in any::<bool>(),
    ) {
        let mut bytes = FILES[file].to_vec();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if cut_it {
            bytes.truncate(cut.index(bytes.len()));
        }
        try_everything(&bytes, &mut Scratch::default());
    }

    #[test]
    fn random_bytes_behind_a_signature(
        signature in prop::sample::select(vec![
            &b"\xff\xd8\xff"[..], b"\xff\xd8\xff\xc0\0\x11\x08", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", b"RIFF\x40\0\0\0WEBPVP8L",
            b"RIFF\x40\0\0\0WEBPVP8X", b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0",
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        try_everything(&[signature, &rest[..]].concat(), &mut Scratch::default());
    }
}
