//! float32 that no camera gives: CUDA gives the bytes of the definition, and the published ones.

use epochfeed::color::{Gains, reference};
use epochfeed::cuda::{FusedColor, LaunchGains};
use epochfeed::tensor::{Dtype, Layout};

use super::definition::{Finish, assert_equal, in_parallel, levels_of_floats};
use super::frames::{planes, planes_at};
use super::memory::{Room, Uploaded, stream};
use super::vectors::{Noise, extremes, spec, triples};
use crate::common::gpu::on_gpu;

#[test]
fn extremes_have_the_published_levels() {
    on_gpu(|device| {
        let stream = stream(device);
        let fused = FusedColor::new(device, spec(Dtype::Uint8, Layout::Nhwc, None)).unwrap();
        let mut room = Room::new(&stream, 5488 * 3);
        for group in extremes() {
            // As they are, and one more or fewer: the number of pixels decides which kernel runs.
            for count in [
                group.pixels.len(),
                group.pixels.len() / 4 * 4,
                group.pixels.len() / 4 * 4 - 1,
            ] {
                let input = Uploaded::new(&stream, &planes(&[group.pixels[..count].to_vec()]), 0);
                // SAFETY: uploaded as described, and not written again.
                let images = unsafe { planes_at(input.pointer(), 1, (count, 1)) };
                let output = room.poisoned(&stream, count * 3, 0);
                fused
                    .launch(&stream, &images, LaunchGains::Host(&[group.gains]), &output)
                    .unwrap();
                let about = || format!("{count} pixels by {}", group.gains);
                let got = room.taken(&stream, &about).as_chunks::<3>().0.to_vec();
                for ((pixel, got), want) in group.pixels.iter().zip(got).zip(&group.levels) {
                    assert_eq!(got, *want, "{pixel:?} by {}", group.gains);
                }
            }
        }
    });
}

/// What random pixels are made of.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Usual,
    AnyBits,
    OutOfRange,
    NearGrey,
    Special,
    Ties,
}

const KINDS: [Kind; 6] = [
    Kind::Usual,
    Kind::AnyBits,
    Kind::OutOfRange,
    Kind::NearGrey,
    Kind::Special,
    Kind::Ties,
];

/// Numbers at which something begins or ends: non-finite, denormal, and where the kernels leave their fast way.
const SPECIALS: [f32; 18] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::MAX,
    f32::MIN,
    f32::MIN_POSITIVE,
    1e-45,
    -1e-45,
    -0.0,
    0.0,
    1.0,
    -1.0,
    1.455_191_5e-11,
    7.275_958e-12,
    1.152_921_5e18,
    2.305_843e18,
    3e38,
    -3e38,
];

fn pixel(kind: Kind, noise: &mut Noise) -> [f32; 3] {
    let unit = |noise: &mut Noise| noise.unit() as f32;
    match kind {
        Kind::Usual => [0; 3].map(|_| unit(noise)),
        Kind::AnyBits => [0; 3].map(|_| f32::from_bits(noise.next() as u32)),
        Kind::OutOfRange => [0; 3].map(|_| unit(noise) * 4.0 - 1.5),
        // Their quotients are the hardest.
        Kind::NearGrey => {
            let grey = unit(noise).to_bits();
            [0; 3].map(|_| f32::from_bits(grey.saturating_add(noise.next() as u32 % 17).saturating_sub(8)))
        }
        Kind::Special => [0; 3].map(|_| match SPECIALS.get(noise.next() as usize % 60) {
            Some(special) => *special,
            None => unit(noise),
        }),
        // Around what is quantized to another level.
        Kind::Ties => [0; 3].map(|_| {
            let tie = (noise.next() % 1030) as f32 / 4.0 / 255.0;
            [tie.next_down(), tie, tie.next_up()][noise.next() as usize % 3]
        }),
    }
}

#[test]
fn random_floats_are_the_definitions() {
    on_gpu(|device| {
        // 513 is one more than what four pixels at a time take.
        let sizes = [(512, 512), (513, 511)];
        let cases: Vec<_> = (0..48)
            .map(|turn| (turn, KINDS[turn % KINDS.len()], sizes[turn / KINDS.len() % 2]))
            .collect();
        let triples = triples();
        in_parallel(&cases, || {
            let (stream, triples) = (stream(device), &triples);
            let mut room = Room::new(&stream, 4 * 513 * 512 * 12);
            let fused = Dtype::ALL.map(|dtype| {
                let spec = spec(dtype, Layout::Nhwc, None);
                (FusedColor::new(device, spec.clone()).unwrap(), Finish::new(&spec))
            });
            move |(turn, kind, size)| {
                let mut noise = Noise::new(*turn as u64);
                let samples: Vec<Vec<[f32; 3]>> = (0..4)
                    .map(|_| (0..size.0 * size.1).map(|_| pixel(*kind, &mut noise)).collect())
                    .collect();
                let gains: Vec<Gains> = (0..4)
                    .map(|sample| triples[(turn * 4 + sample) % triples.len()])
                    .collect();
                let input = Uploaded::new(&stream, &planes(&samples), 0);
                // SAFETY: uploaded as described, and not written again.
                let images = unsafe { planes_at(input.pointer(), 4, *size) };
                for with_gains in [true, false] {
                    let levels: Vec<_> = samples
                        .iter()
                        .zip(&gains)
                        .map(|(pixels, gains)| levels_of_floats(pixels, with_gains.then_some(*gains)))
                        .collect();
                    for (fused, finish) in &fused {
                        let want = finish.batch(&levels);
                        let about =
                            || format!("{kind:?}, turn {turn}, to {:?}, gains {with_gains}", fused.spec());
                        let output = room.poisoned(&stream, want.len(), 0);
                        let launched = if with_gains {
                            LaunchGains::Host(&gains)
                        } else {
                            LaunchGains::None
                        };
                        fused.launch(&stream, &images, launched, &output).unwrap();
                        assert_equal(room.taken(&stream, &about), &want, &about);
                    }
                }
            }
        });
    });
}

/// The thresholds in the list are those that `kernels/README.md` names.
#[test]
fn the_special_numbers_are_the_kernels_thresholds() {
    for (exponent, number) in [
        (-36, SPECIALS[12]),
        (-37, SPECIALS[13]),
        (60, SPECIALS[14]),
        (61, SPECIALS[15]),
    ] {
        assert_eq!(number, 2_f32.powi(exponent));
    }
    assert_eq!(reference::quantize(SPECIALS[0]), 0, "NaN is level 0");
}
