//! Files that end too early, lack only their end, or are damaged: which is which, at every possible place of the cut.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use epochfeed::decode::{
    ChannelOrder, DecodeError, DecodeOptions, Decoded, Fit, Scratch, Target, Truncated, decode_into, probe,
};

const BASELINE: &[u8] = include_bytes!("data/jpeg/baseline.jpg");
const RESTART: &[u8] = include_bytes!("data/jpeg/restart.jpg");
const PROGRESSIVE: &[u8] = include_bytes!("data/jpeg/progressive.jpg");
const CMYK: &[u8] = include_bytes!("data/jpeg/cmyk.jpg");
const SCANS: &[u8] = include_bytes!("data/cases/img/a01_noninterleaved_422_161x119.jpg");
const ARITHMETIC: &[u8] = include_bytes!("data/cases/img/a06_arithmetic.jpg");
const PNG: &[u8] = include_bytes!("data/cases/img/a00_control_rgb8.png");
const PNG_INTERLACED: &[u8] = include_bytes!("data/cases/img/a13_png_pal1.png");
const PNG_16: &[u8] = include_bytes!("data/cases/img/a13_png_rgba16.png");
const BMP: &[u8] = include_bytes!("data/cases/img/a10_bmp_named.jpg");
const WEBP: &[u8] = include_bytes!("data/cases/img/a10_webp_named.jpg");

fn decode(bytes: &[u8], truncated: Truncated) -> Result<(Vec<u8>, Decoded), DecodeError> {
    let options = DecodeOptions {
        fit: Fit::None,
        truncated,
        ..DecodeOptions::default()
    };
    let header = probe(bytes, &options)?;
    let (width, height) = header.oriented_size(options.orientation);
    let stride = width as usize * 3;
    let mut frame = vec![0; stride * height as usize];
    let mut target = Target {
        data: &mut frame,
        stride,
        width,
        height,
        order: ChannelOrder::Rgb,
    };
    let decoded = decode_into(bytes, &header, &options, &mut target, &mut Scratch::default())?;
    Ok((frame, decoded))
}

/// The file up to `end`, followed by an EOI: what a repair tool makes of a broken download.
fn closed(file: &[u8], end: usize) -> Vec<u8> {
    [&file[..end], b"\xff\xd9"].concat()
}

/// What is accepted as whole must have the pixels of the whole file, wherever the cut is.
fn check_every_prefix(name: &str, file: &[u8], may_lack: usize) {
    let (whole, decoded) = decode(file, Truncated::Fail).unwrap();
    assert_eq!((decoded.warnings, decoded.truncated), (0, false), "{name}");
    for end in 0..file.len() {
        let cut = &file[..end];
        match decode(cut, Truncated::Fail) {
            Ok((pixels, decoded)) => {
                assert!(
                    pixels == whole,
                    "{name}: {end} of {} bytes pass for whole",
                    file.len()
                );
                assert!(!decoded.truncated);
                assert!(
                    end + may_lack >= file.len(),
                    "{name}: {end} of {} bytes are not enough",
                    file.len()
                );
            }
            Err(error @ DecodeError::Truncated { partial, .. }) => {
                // The remedy is one, and is named wherever it is.
                assert_eq!(
                    partial,
                    decode(cut, Truncated::Use).is_ok(),
                    "{name}: {end}: {error}"
                );
                assert_eq!(partial, error.to_string().contains("truncated=use"), "{error}");
                assert!(
                    end + 2 < file.len() || may_lack < 2,
                    "{name}: without its last {} bytes",
                    file.len() - end
                );
            }
            Err(error) => assert!(end < 40 || may_lack == 0, "{name}: {end} bytes: {error}"),
        }
    }
}

#[test]
fn every_prefix_of_a_jpeg() {
    // Up to two bytes of EOI may be missing. In a few files the last byte of data holds nothing but padding.
    for (name, file) in [
        ("baseline", BASELINE),
        ("restart", RESTART),
        ("progressive", PROGRESSIVE),
        ("cmyk", CMYK),
    ] {
        check_every_prefix(name, file, 2);
    }
    check_every_prefix("one scan a component", SCANS, 2);
}

#[test]
fn every_prefix_of_the_other_formats() {
    // A PNG may lack its last chunk (12 bytes) and the checksum before it; a BMP nothing but row padding.
    check_every_prefix("png", PNG, 16);
    check_every_prefix("png, palette", PNG_INTERLACED, 16);
    check_every_prefix("png, 16 bit", PNG_16, 16);
    check_every_prefix("webp", WEBP, 8);
}

#[test]
fn with_use_every_cut_behind_the_header_gives_pixels() {
    for (name, file) in [
        ("baseline", BASELINE),
        ("restart", RESTART),
        ("progressive", PROGRESSIVE),
        ("cmyk", CMYK),
    ] {
        let (whole, _) = decode(file, Truncated::Use).unwrap();
        let scan = file.windows(2).position(|pair| pair == b"\xff\xda").unwrap() + 16;
        let mut differing = 0;
        for end in scan..file.len() - 2 {
            let (pixels, decoded) =
                decode(&file[..end], Truncated::Use).unwrap_or_else(|e| panic!("{name} {end}: {e}"));
            assert!(
                decoded.truncated && decoded.warnings == 1 && decoded.warning.is_some(),
                "{name}: {end}"
            );
            differing += usize::from(pixels != whole);
        }
        assert!(differing > (file.len() - scan) / 2, "{name}");
    }
}

#[test]
fn rows_before_the_cut_are_right() {
    for (name, file) in [("baseline", BASELINE), ("png", PNG), ("16 bit", PNG_16)] {
        let (whole, _) = decode(file, Truncated::Use).unwrap();
        let (pixels, decoded) = decode(&file[..file.len() * 3 / 4], Truncated::Use).unwrap();
        assert!(decoded.truncated, "{name}");
        let same = pixels.iter().zip(&whole).take_while(|(a, b)| a == b).count();
        assert!(
            same > whole.len() / 4 && same < whole.len(),
            "{name}: {same} of {}",
            whole.len()
        );
    }
    // Bottom-up: the end of the file is the top of the picture. What is not there is black.
    let (whole, _) = decode(BMP, Truncated::Use).unwrap();
    let (pixels, decoded) = decode(&BMP[..BMP.len() / 2], Truncated::Use).unwrap();
    assert!(decoded.truncated);
    assert!(pixels[..pixels.len() / 4].iter().all(|&byte| byte == 0));
    assert_eq!(pixels[pixels.len() * 3 / 4..], whole[whole.len() * 3 / 4..]);
    assert!(matches!(
        decode(&BMP[..BMP.len() / 2], Truncated::Fail),
        Err(DecodeError::Truncated { .. })
    ));
}

#[test]
fn a_cut_closed_with_an_eoi_is_still_a_cut() {
    for (name, file) in [
        ("baseline", BASELINE),
        ("restart", RESTART),
        ("cmyk", CMYK),
        ("scans", SCANS),
    ] {
        let scan = file.windows(2).position(|pair| pair == b"\xff\xda").unwrap() + 16;
        for tenth in 1..=8 {
            let end = scan + (file.len() - scan) * tenth / 10;
            let result = decode(&closed(file, end), Truncated::Fail).map(|(_, decoded)| decoded);
            assert!(
                matches!(result, Err(DecodeError::Truncated { .. })),
                "{name} {tenth}/10: {result:?}"
            );
            assert!(
                decode(&closed(file, end), Truncated::Use).unwrap().1.truncated,
                "{name} {tenth}/10"
            );
        }
    }
}

#[test]
fn a_warning_in_the_header_does_not_hide_a_cut() {
    let mut file = BASELINE.to_vec();
    // An unknown JFIF revision: libjpeg warns about that, and then about nothing else.
    let version = file.windows(5).position(|bytes| bytes == b"JFIF\0").unwrap() + 5;
    file[version] = 9;
    let (_, decoded) = decode(&file, Truncated::Fail).unwrap();
    assert!(decoded.warning.unwrap().contains("JFIF"));
    let half = &file[..file.len() * 3 / 4];
    assert!(matches!(
        decode(half, Truncated::Fail),
        Err(DecodeError::Truncated { .. })
    ));
    assert!(
        decode(&file[..file.len() - 2], Truncated::Fail).is_ok(),
        "only its EOI is missing"
    );
}

#[test]
fn trailing_bytes_do_not_matter() {
    for file in [BASELINE, RESTART, PROGRESSIVE, CMYK, ARITHMETIC, PNG] {
        let (whole, _) = decode(file, Truncated::Fail).unwrap();
        let (pixels, decoded) =
            decode(&[file, b"\0\0junk\xff\xd8\xff", file].concat(), Truncated::Fail).unwrap();
        assert!(pixels == whole && decoded.warnings == 0);
    }
    // Junk instead of the EOI: all of the data is there.
    let (whole, _) = decode(BASELINE, Truncated::Fail).unwrap();
    let junk = [&BASELINE[..BASELINE.len() - 2], &[0x20; 40]].concat();
    let (pixels, decoded) = decode(&junk, Truncated::Fail).unwrap();
    assert!(pixels == whole && decoded.warnings == 1);
}

#[test]
fn an_arithmetic_file_without_end_is_not_known_to_be_whole() {
    let cut = &ARITHMETIC[..ARITHMETIC.len() - 2];
    assert!(matches!(
        decode(cut, Truncated::Fail),
        Err(DecodeError::Truncated { .. })
    ));
    assert!(decode(cut, Truncated::Use).unwrap().1.truncated);
}

/// Damaged bits are warnings, as for every other program: a file with an EOI and all its scans was not cut.
#[test]
fn damage_is_not_truncation() {
    for (name, file) in [
        ("baseline", BASELINE),
        ("restart", RESTART),
        ("progressive", PROGRESSIVE),
    ] {
        let scan = file.windows(2).position(|pair| pair == b"\xff\xda").unwrap() + 16;
        let (mut warned, mut cut) = (0, 0);
        for at in (scan..file.len() - 2).step_by(7) {
            let mut damaged = file.to_vec();
            damaged[at] = damaged[at].wrapping_mul(31).wrapping_add(7);
            match decode(&damaged, Truncated::Fail) {
                Ok((_, decoded)) => warned += decoded.warnings,
                Err(DecodeError::Truncated { .. }) => cut += 1,
                // Headers of later scans are part of this range.
                Err(error) => assert!(name == "progressive", "{name}: {at}: {error}"),
            }
        }
        println!("{name}: {warned} warnings, {cut} taken for cuts");
        assert!(warned > 20, "{name}: {warned}");
        assert!(cut * 20 <= file.len() / 7, "{name}: {cut}");
    }
}
