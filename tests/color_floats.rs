//! float32 input: what the definition makes of NaN, infinities, denormals and numbers out of range.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use epochfeed::color::fused::{self, Backend};
use epochfeed::color::{FloatFrame, Gains, Jitter, native, reference};
use epochfeed::tensor::{Dtype, Layout, PackSpec};
use proptest::prelude::*;

fn uint8() -> PackSpec {
    PackSpec::new(Dtype::Uint8, Layout::Nhwc, None).unwrap()
}

/// The levels that native and each backend of fused give, with the path's name.
fn all_paths(pixels: &[[f32; 3]], jitter: Option<&Jitter>) -> Vec<(&'static str, Vec<[u8; 3]>)> {
    let frame = FloatFrame::hwc(pixels.len(), 1, pixels.as_flattened()).unwrap();
    let mut levels = vec![[0; 3]; pixels.len()];
    native::pack_f32(
        &frame,
        jitter,
        &uint8(),
        levels.as_flattened_mut(),
        &mut native::Scratch::new(),
    )
    .unwrap();
    let mut results = vec![("native", levels)];
    for backend in Backend::available() {
        let mut levels = vec![[0; 3]; pixels.len()];
        fused::pack_f32_on(backend, &frame, jitter, &uint8(), levels.as_flattened_mut()).unwrap();
        results.push((backend.as_str(), levels));
    }
    results
}

/// Checks every path against the definition.
fn check(pixels: &[[f32; 3]], jitter: &Jitter) -> Result<(), TestCaseError> {
    for (path, levels) in all_paths(pixels, Some(jitter)) {
        for (pixel, got) in pixels.iter().zip(levels) {
            let want = reference::jitter_f32(*pixel, jitter);
            prop_assert_eq!(
                got,
                want,
                "{} of {:?} (bits {:x?}) by {:?}",
                path,
                pixel,
                pixel.map(f32::to_bits),
                jitter
            );
        }
    }
    Ok(())
}

#[test]
fn extremes_equal_the_published_pixels() {
    let mut groups: Vec<(Gains, Vec<[f32; 3]>, Vec<[u8; 3]>)> = Vec::new();
    let table = include_str!("data/color/float_extremes.tsv");
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        // The table prints each float32 as the double that it is.
        let pixel = [0, 1, 2].map(|i| fields[i].parse::<f64>().unwrap() as f32);
        let level = [6, 7, 8].map(|i| fields[i].parse::<u8>().unwrap());
        let gains: Gains = fields[3..6].join(",").parse().unwrap();
        match groups.iter_mut().find(|group| group.0 == gains) {
            Some((_, pixels, levels)) => {
                pixels.push(pixel);
                levels.push(level);
            }
            None => groups.push((gains, vec![pixel], vec![level])),
        }
    }
    assert_eq!(groups.iter().map(|group| group.1.len()).sum::<usize>(), 5488);
    for (gains, pixels, want) in &groups {
        let jitter = Jitter::from(*gains);
        let defined: Vec<_> = pixels
            .iter()
            .map(|pixel| reference::jitter_f32(*pixel, &jitter))
            .collect();
        let mut results = all_paths(pixels, Some(&jitter));
        results.push(("reference", defined));
        for (path, got) in results {
            for ((pixel, got), want) in pixels.iter().zip(got).zip(want) {
                assert_eq!(got, *want, "{path} of {pixel:?} by {gains}");
            }
        }
    }
}

/// Special numbers in every combination of three channels, under gains that are themselves special: here a saturation
/// can be infinite or NaN while the hue is finite.
#[test]
fn special_numbers_equal_the_definition() {
    let specials = [
        f32::NAN,
        f32::from_bits(0xff80_0001),
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        1e-45,
        -1e-45,
        0.0,
        -0.0,
        0.5,
        1.0,
        -1.0,
        1e30,
        0.3,
    ];
    let mut pixels = Vec::new();
    for r in specials {
        for g in specials {
            pixels.extend(specials.map(|b| [r, g, b]));
        }
    }
    for dh in [0.0, -0.0, 0.25, -1.0, 1e5, 1e9, -3e38, f32::INFINITY, f32::NAN] {
        for ks in [0.0, 1.0, -1.0, 1e10, 3e38, f32::INFINITY, f32::NAN] {
            for kv in [0.0, 1.0, -2.0, 1e30, 3e38, f32::INFINITY, f32::NAN] {
                check(&pixels, &Jitter { dh, ks, kv }).unwrap();
            }
        }
    }
}

#[test]
fn without_jitter_values_are_quantized() {
    // Around every tie of the quantization, and beyond the range.
    let mut values: Vec<f32> = (-3..=1026)
        .flat_map(|i| {
            let x = i as f32 / 4.0 / 255.0;
            [x.next_down(), x, x.next_up()]
        })
        .collect();
    values.extend([
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        3e38,
        -3e38,
        -0.0,
        1e-45,
    ]);
    let pixels: Vec<[f32; 3]> = values.iter().map(|x| [*x, 1.0 - *x, *x * 0.5]).collect();
    for (path, levels) in all_paths(&pixels, None) {
        for (pixel, got) in pixels.iter().zip(levels) {
            assert_eq!(got, pixel.map(reference::quantize), "{path} of {pixel:?}");
        }
    }
}

/// Numbers of every kind: any bits, the unit range, levels, and pixels with equal channels.
fn number() -> impl Strategy<Value = f32> {
    prop_oneof![
        any::<u32>().prop_map(f32::from_bits),
        (0.0_f32..=1.0),
        any::<u8>().prop_map(reference::restore),
        (0..=8_u32).prop_map(|i| i as f32 / 8.0),
    ]
}

fn gain() -> impl Strategy<Value = f64> {
    prop_oneof![
        -1.0..=1.0,
        -1e-8..=1e-8,
        -1e6..=1e6,
        (-8..=8_i32).prop_map(|i| f64::from(i) / 8.0)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn random_floats_equal_the_definition(
        pixels in prop::collection::vec([number(), number(), number()], 1..200),
        gains in [gain(), gain(), gain()],
    ) {
        let jitter = Jitter::from(Gains::new(gains[0], gains[1], gains[2]).unwrap());
        check(&pixels, &jitter)?;
    }

    #[test]
    fn greys_stay_grey(grey in number(), gains in [gain(), gain(), gain()]) {
        let jitter = Jitter::from(Gains::new(gains[0], gains[1], gains[2]).unwrap());
        let levels: Vec<[u8; 3]> = (0..=255).map(|u| reference::jitter_u8([u; 3], &jitter)).collect();
        prop_assert!(levels.iter().all(|[r, g, b]| r == g && g == b), "{:?} makes {:?}", jitter, levels);
        if grey.is_finite() {
            let [r, g, b] = reference::jitter_f32([grey; 3], &jitter);
            prop_assert!(r == g && g == b, "{} becomes {:?} by {:?}", grey, [r, g, b], jitter);
        }
    }
}
