//! Gains: the published vectors, their text form and their checks.
//!
//! `EPOCHFEED_BLESS=1 cargo test --release --test color_gains` writes `tests/vectors/gains.tsv` anew. The independent
//! check of that file is `tests/vectors/read_gains.py`, which has a ChaCha8 of its own.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Write;
use std::path::Path;

use epochfeed::color::{GainRanges, Gains, GainsError, Jitter, draw_gains};

const SEEDS: [u64; 4] = [0, 7, 1 << 63, u64::MAX];
const EPOCHS: [u64; 3] = [0, 1, 5];
const INDICES: [u64; 6] = [0, 1, 2, 1000, 118_286, 1 << 33];

/// The vectors as the file has them: 17 significant digits, which a float64 is read back from exactly.
fn vectors() -> String {
    let mut text = String::from("seed\tepoch\tindex\trange_h\trange_s\trange_v\thue\tsaturation\tvalue\n");
    for ranges in [GainRanges::default(), GainRanges::new(1.0, 1.0, 1.0).unwrap()] {
        for seed in SEEDS {
            for epoch in EPOCHS {
                for index in INDICES {
                    let gains = draw_gains(seed, epoch, index, &ranges);
                    write!(
                        text,
                        "{seed}\t{epoch}\t{index}\t{}\t{}\t{}",
                        ranges.hue, ranges.saturation, ranges.value
                    )
                    .unwrap();
                    writeln!(
                        text,
                        "\t{:.16e}\t{:.16e}\t{:.16e}",
                        gains.hue, gains.saturation, gains.value
                    )
                    .unwrap();
                }
            }
        }
    }
    text
}

#[test]
fn draws_equal_the_published_vectors() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/gains.tsv");
    if std::env::var_os("EPOCHFEED_BLESS").is_some() {
        std::fs::write(&path, vectors()).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        published.lines().count(),
        1 + 2 * SEEDS.len() * EPOCHS.len() * INDICES.len()
    );
    for (got, want) in vectors().lines().zip(published.lines()) {
        assert_eq!(got, want);
    }
}

#[test]
fn draws_differ_by_seed_epoch_and_index_and_stay_in_range() {
    let ranges = GainRanges::new(0.5, 1.0, 0.25).unwrap();
    let mut seen = std::collections::HashSet::new();
    for seed in [0, 1, 2, 1 << 32] {
        for epoch in [0, 1, 2, 1 << 32] {
            for index in [
                0,
                1,
                2,
                3,
                4,
                15,
                16,
                17,
                1 << 32,
                1 << 60,
                u64::MAX - 1,
                u64::MAX,
            ] {
                let gains = draw_gains(seed, epoch, index, &ranges);
                assert!(gains.hue.abs() <= 0.5 && gains.saturation.abs() <= 1.0 && gains.value.abs() <= 0.25);
                assert!(
                    seen.insert(gains.to_string()),
                    "seed {seed} epoch {epoch} index {index} repeats {gains}"
                );
            }
        }
    }
    let zero = GainRanges::new(0.0, 0.0, 0.0).unwrap();
    assert_eq!(draw_gains(1, 2, 3, &zero), Gains::ZERO);
}

#[test]
fn the_mean_of_many_draws_is_zero() {
    let ranges = GainRanges::new(1.0, 1.0, 1.0).unwrap();
    let count = 100_000;
    let mut sums = [0.0; 3];
    for index in 0..count {
        let gains = draw_gains(7, 0, index, &ranges);
        for (sum, gain) in sums.iter_mut().zip([gains.hue, gains.saturation, gains.value]) {
            *sum += gain;
        }
    }
    // The standard deviation of the mean is 1 / sqrt(3 * count) = 0.0018; the draws are fixed, so this is no gamble.
    assert!(
        sums.iter().all(|sum| (sum / count as f64).abs() < 0.008),
        "{sums:?}"
    );
}

#[test]
fn text_is_read_back_to_the_same_bits() {
    for gains in [
        Gains::ZERO,
        draw_gains(1, 2, 3, &GainRanges::default()),
        Gains::new(1e-300, -1e30, 0.1).unwrap(),
    ] {
        assert_eq!(gains.to_string().parse(), Ok(gains));
    }
    assert_eq!("  0.5 ,-1, 1e-2 ".parse(), Gains::new(0.5, -1.0, 0.01));
}

#[test]
fn wrong_text_says_what_is_wrong() {
    let error = |text: &str| text.parse::<Gains>().unwrap_err();
    assert_eq!(
        error("1,2"),
        GainsError::Count {
            text: "1,2".into(),
            count: 2
        }
    );
    assert_eq!(
        error("").to_string(),
        "gains \"\" have 1 fields: write three numbers as \"hue,saturation,value\""
    );
    assert_eq!(
        error("1,2,3,4"),
        GainsError::Count {
            text: "1,2,3,4".into(),
            count: 4
        }
    );
    assert_eq!(
        error("1,x,3"),
        GainsError::Number {
            name: "saturation",
            text: "x".into()
        }
    );
    assert_eq!(
        error("1,2,"),
        GainsError::Number {
            name: "value",
            text: String::new()
        }
    );
    assert_eq!(
        error("inf,0,0"),
        GainsError::NonFinite {
            name: "hue",
            value: f64::INFINITY
        }
    );
    assert!(matches!(
        error("0,NaN,0"),
        GainsError::NonFinite {
            name: "saturation",
            ..
        }
    ));
    // Finite, but the float32 factor would be infinite and turn greys coloured.
    assert_eq!(
        error("0,0,1e39"),
        GainsError::NonFinite {
            name: "value",
            value: 1e39
        }
    );
}

#[test]
fn ranges_are_from_zero_to_one() {
    assert!(GainRanges::new(0.0, 1.0, 0.4).is_ok());
    assert_eq!(
        GainRanges::new(-0.1, 0.0, 0.0),
        Err(GainsError::Range {
            name: "hue",
            value: -0.1
        })
    );
    assert_eq!(
        GainRanges::new(0.0, 1.5, 0.0),
        Err(GainsError::Range {
            name: "saturation",
            value: 1.5
        })
    );
    assert!(matches!(
        GainRanges::new(0.0, 0.0, f64::NAN),
        Err(GainsError::Range { name: "value", .. })
    ));
}

#[test]
fn the_factor_is_added_in_float64() {
    // In float32, 1 + 2^-24 would be 1 after either order; this gain tells the orders apart: its float32 is 2^-24, a
    // tie that rounds down to 1, while the float64 sum is above the tie and rounds up.
    let gain = 2_f64.powi(-24) * (1.0 + 2_f64.powi(-25));
    assert_eq!(1.0_f32 + gain as f32, 1.0);
    let jitter = Jitter::from(Gains::new(0.1, gain, gain).unwrap());
    assert_eq!(
        jitter,
        Jitter {
            dh: 0.1,
            ks: 1.0 + f32::EPSILON,
            kv: 1.0 + f32::EPSILON
        }
    );
}
