//! Every awkward file of `data/cases`: what is decoded has the right pixels, what is not is refused with a reason.
//!
//! The right pixels are Pillow's, as stored (`.raw.png`) and after EXIF (`.exif.png`).
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};

use epochfeed::decode::{
    ChannelOrder, DecodeError, DecodeOptions, Decoded, Fit, OrientationMode, Scratch, Target, Truncated,
    decode_into, probe,
};

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases")
}

struct Case {
    name: String,
    want: String,
    orientation: u8,
    size: Option<(u32, u32)>,
    bytes: Vec<u8>,
}

fn manifest() -> Vec<Case> {
    let table = std::fs::read_to_string(cases().join("manifest.tsv")).unwrap();
    let cases: Vec<Case> = table
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            let size = cells[3]
                .split_once('x')
                .map(|(w, h)| (w.parse().unwrap(), h.parse().unwrap()));
            let bytes = std::fs::read(cases().join("img").join(cells[0])).unwrap();
            let (name, want) = (cells[0].to_owned(), cells[1].to_owned());
            Case {
                name,
                want,
                orientation: cells[2].parse().unwrap(),
                size,
                bytes,
            }
        })
        .collect();
    assert_eq!(
        cases.len(),
        std::fs::read_dir(self::cases().join("img")).unwrap().count(),
        "manifest and folder differ"
    );
    cases
}

/// Packed pixels, their size, and what was reported.
type Picture = (Vec<u8>, (u32, u32), Decoded);

/// Decodes without fitting, into rows with padding, which must stay as it was.
fn decode(
    bytes: &[u8],
    orientation: OrientationMode,
    truncated: Truncated,
    order: ChannelOrder,
    scratch: &mut Scratch,
) -> Result<Picture, DecodeError> {
    let options = DecodeOptions {
        fit: Fit::None,
        orientation,
        truncated,
        ..DecodeOptions::default()
    };
    let header = probe(bytes, &options)?;
    let (width, height) = header.oriented_size(orientation);
    let row = width as usize * 3;
    let stride = row + 5;
    let mut frame = vec![0x5a; stride * height as usize];
    let mut target = Target {
        data: &mut frame,
        stride,
        width,
        height,
        order,
    };
    let decoded = decode_into(bytes, &header, &options, &mut target, scratch)?;
    let mut pixels = Vec::with_capacity(row * height as usize);
    for line in frame.chunks(stride) {
        pixels.extend_from_slice(&line[..row]);
        assert!(
            line[row..].iter().all(|&byte| byte == 0x5a),
            "padding was written"
        );
    }
    Ok((pixels, (width, height), decoded))
}

/// An expected picture. It is read with the `image` crate directly, not with the code under test.
fn expected(file: &str) -> Option<(Vec<u8>, (u32, u32))> {
    let path = cases().join("expected").join(file);
    let picture = path.exists().then(|| image::open(path).unwrap().to_rgb8())?;
    let size = picture.dimensions();
    Some((picture.into_raw(), size))
}

fn greatest_difference(a: &[u8], b: &[u8]) -> u8 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0)
}

/// Only CMYK may differ at all, by the way the two inks are multiplied.
fn tolerance(name: &str) -> u8 {
    if name.contains("cmyk") || name.contains("ycck") {
        3
    } else {
        0
    }
}

const CUT: [&str; 3] = [
    "a08_trunc_half.jpg",
    "a08_trunc_progressive.jpg",
    "a14_png_trunc_idat.png",
];
const DAMAGED: [&str; 2] = ["a08_corrupt_entropy.jpg", "a08_trunc_no_eoi.jpg"];

#[test]
fn every_file_under_both_policies_for_truncation() {
    let mut scratch = Scratch::default();
    let mut decoded_files = 0;
    for case in manifest() {
        let Case {
            name, want, bytes, ..
        } = &case;
        for policy in [Truncated::Fail, Truncated::Use] {
            let result = decode(
                bytes,
                OrientationMode::Ignore,
                policy,
                ChannelOrder::Rgb,
                &mut scratch,
            );
            let cut = CUT.contains(&name.as_str());
            if cut && policy == Truncated::Fail {
                assert!(
                    matches!(result, Err(DecodeError::Truncated { .. })),
                    "{name}: {result:?}"
                );
                continue;
            }
            match want.as_str() {
                "reject" => {
                    let error = result.map(|_| name).unwrap_err();
                    assert!(error.to_string().len() > 10, "{name}: {error}");
                    continue;
                }
                "policy" | "decode-or-unsupported" if result.is_err() => {
                    // What is refused here, and why, is in the test of the messages.
                    assert!(REFUSED.iter().any(|(file, _)| file == name), "{name}: {result:?}");
                    continue;
                }
                _ => {}
            }
            let (pixels, size, decoded) = result.unwrap_or_else(|error| panic!("{name} {policy:?}: {error}"));
            assert_eq!(Some(size), case.size, "{name}");
            assert_eq!(decoded.truncated, cut, "{name}");
            let complaint = cut || DAMAGED.contains(&name.as_str());
            assert_eq!(
                (decoded.warnings > 0, decoded.warning.is_some()),
                (complaint, complaint),
                "{name}: {decoded:?}"
            );
            let (right, right_size) =
                expected(&format!("{name}.raw.png")).unwrap_or_else(|| panic!("{name}: no pixels"));
            assert_eq!(size, right_size, "{name}");
            assert!(
                greatest_difference(&pixels, &right) <= tolerance(name),
                "{name} {policy:?}"
            );
            decoded_files += 1;
        }
    }
    assert!(decoded_files > 100, "{decoded_files}");
}

#[test]
fn exif_orientation_is_applied_and_can_be_ignored() {
    let mut scratch = Scratch::default();
    let mut turned = 0;
    for case in manifest()
        .iter()
        .filter(|case| !matches!(case.want.as_str(), "reject"))
    {
        let name = &case.name;
        let Ok(header) = probe(&case.bytes, &DecodeOptions::default()) else {
            continue;
        };
        assert_eq!(header.orientation, case.orientation, "{name}");
        let Some((right, right_size)) = expected(&format!("{name}.exif.png")) else {
            continue;
        };
        let apply = |scratch: &mut Scratch, order| {
            decode(
                &case.bytes,
                OrientationMode::Apply,
                Truncated::Fail,
                order,
                scratch,
            )
            .unwrap()
        };
        let (pixels, size, _) = apply(&mut scratch, ChannelOrder::Rgb);
        assert_eq!(size, right_size, "{name}");
        assert_eq!(greatest_difference(&pixels, &right), 0, "{name}");
        turned += 1;
    }
    assert_eq!(turned, 8);
}

#[test]
fn bgr_is_rgb_with_the_channels_exchanged() {
    let mut scratch = Scratch::default();
    for case in manifest() {
        let run = |order, scratch: &mut Scratch| {
            decode(
                &case.bytes,
                OrientationMode::Apply,
                Truncated::Use,
                order,
                scratch,
            )
            .ok()
        };
        let rgb = run(ChannelOrder::Rgb, &mut scratch);
        let bgr = run(ChannelOrder::Bgr, &mut scratch).map(|(mut pixels, size, decoded)| {
            pixels.chunks_exact_mut(3).for_each(|pixel| pixel.swap(0, 2));
            (pixels, size, decoded)
        });
        assert!(rgb == bgr, "{}", case.name);
    }
}

/// A file's pixels must not depend on what was decoded before it with the same buffers.
#[test]
fn buffers_carry_nothing_from_file_to_file() {
    let mut shared = Scratch::default();
    let cases = manifest();
    for case in cases.iter().chain(cases.iter().rev()) {
        let run = |scratch: &mut Scratch| {
            decode(
                &case.bytes,
                OrientationMode::Apply,
                Truncated::Use,
                ChannelOrder::Rgb,
                scratch,
            )
        };
        assert!(run(&mut shared) == run(&mut Scratch::default()), "{}", case.name);
    }
}

/// Files that are refused, and what the message must say.
const REFUSED: [(&str, &str); 15] = [
    ("a06_12bit.jpg", "unsupported JPEG (12 bit)"),
    ("a06_lossless_sof3.jpg", "unsupported JPEG (lossless)"),
    ("a08_trunc_header.jpg", "truncated JPEG"),
    ("a08_leading_garbage.jpg", "not an image"),
    ("a09_bomb_header_65500sq.jpg", "65500x65500"),
    ("a09_bomb_header_16000sq.jpg", "16000x16000"),
    ("a09_bomb_png_20000sq_1bit.png", "20000x20000"),
    ("a09_png_dims_2g.png", "2147483647x2147483647"),
    ("a10_empty.jpg", "empty file"),
    ("a10_empty.png", "empty file"),
    ("a10_zeros_4k.jpg", "not an image"),
    ("a10_tiff_named.jpg", "unsupported TIFF"),
    ("a14_png_idat_corrupt.png", "corrupt PNG"),
    ("a14_png_idat_badcrc_only.png", "corrupt PNG"),
    ("a14_png_trunc_idat.png", "truncated PNG"),
];

#[test]
fn refusals_say_why() {
    let mut scratch = Scratch::default();
    for (name, reason) in REFUSED {
        let bytes = std::fs::read(cases().join("img").join(name)).unwrap();
        let error = decode(
            &bytes,
            OrientationMode::Apply,
            Truncated::Fail,
            ChannelOrder::Rgb,
            &mut scratch,
        )
        .map(|_| name)
        .unwrap_err()
        .to_string();
        assert!(error.contains(reason), "{name}: {error}");
    }
}

#[test]
fn the_limit_is_a_property() {
    let bytes = std::fs::read(cases().join("img/a00_control_rgb8.png")).unwrap();
    let with = |max_pixels| {
        probe(
            &bytes,
            &DecodeOptions {
                max_pixels,
                ..DecodeOptions::default()
            },
        )
    };
    assert!(with(160 * 120).is_ok());
    assert_eq!(
        with(160 * 120 - 1),
        Err(DecodeError::TooManyPixels {
            width: 160,
            height: 120,
            limit: 160 * 120 - 1
        })
    );
    assert!(with(0).is_ok(), "0 is no limit");
    // A header that was not held against this limit does not get past the decoder either.
    let options = DecodeOptions {
        max_pixels: 100,
        ..DecodeOptions::default()
    };
    let mut frame = [0; 64 * 64 * 3];
    let mut target = Target {
        data: &mut frame,
        stride: 192,
        width: 64,
        height: 64,
        order: ChannelOrder::Rgb,
    };
    let result = decode_into(
        &bytes,
        &with(0).unwrap(),
        &options,
        &mut target,
        &mut Scratch::default(),
    );
    assert!(matches!(result, Err(DecodeError::TooManyPixels { .. })));
}

#[test]
fn without_a_fit_the_sizes_must_agree() {
    let bytes = std::fs::read(cases().join("img/a07_exif_o6.jpg")).unwrap();
    let options = DecodeOptions {
        fit: Fit::None,
        ..DecodeOptions::default()
    };
    let header = probe(&bytes, &options).unwrap();
    let mut frame = vec![0; 96 * 64 * 3];
    let mut target = Target {
        data: &mut frame,
        stride: 288,
        width: 96,
        height: 64,
        order: ChannelOrder::Rgb,
    };
    let error = decode_into(&bytes, &header, &options, &mut target, &mut Scratch::default()).unwrap_err();
    assert_eq!(
        error,
        DecodeError::SizeMismatch {
            source_size: (64, 96),
            output: (96, 64)
        }
    );
    let mut target = Target {
        data: &mut frame,
        stride: 190,
        width: 64,
        height: 96,
        order: ChannelOrder::Rgb,
    };
    let error = decode_into(&bytes, &header, &options, &mut target, &mut Scratch::default()).unwrap_err();
    assert!(matches!(error, DecodeError::BadTarget { .. }));
}
