//! Resampling and placing against OpenCV and Ultralytics, by vectors that `vectors/make_resize_vectors.py` made.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use epochfeed::decode::{
    ChannelOrder, DecodeOptions, Fit, Interpolation, Pixels, PixelsMut, Scratch, Target, decode_into, place,
    probe, resize,
};
use sha2::{Digest, Sha256};

/// The same formula as `source()` in the script.
fn source(width: u32, height: u32, seed: u32) -> Vec<u8> {
    let start = seed.wrapping_mul(0x9e37_79b9);
    let mix = |i: u32| {
        let x = i.wrapping_add(start);
        let x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
        let x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
        (x >> 24) as u8
    };
    (0..width * height * 3).map(mix).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().skip(2).map(|line| line.split('\t').collect())
}

fn method(name: &str) -> Interpolation {
    match name {
        "linear" => Interpolation::Linear,
        "nearest" => Interpolation::Nearest,
        "area" => Interpolation::Area,
        other => panic!("unknown method {other}"),
    }
}

fn number(text: &str) -> u32 {
    text.parse().unwrap()
}

/// Resizes through padded rows on both sides and checks that the padding stays as it was.
fn resized(row: &[&str], scratch: &mut resize::ResizeScratch) -> Vec<u8> {
    let [sw, sh, dw, dh, seed] = [1, 2, 3, 4, 5].map(|i| number(row[i]));
    let tight = source(sw, sh, seed);
    let (src_row, dst_row) = (sw as usize * 3, dw as usize * 3);
    let (src_stride, dst_stride) = (src_row + 5, dst_row + 7);
    let mut src = vec![0xaa; src_stride * sh as usize];
    for (to, from) in src.chunks_mut(src_stride).zip(tight.chunks(src_row)) {
        to[..src_row].copy_from_slice(from);
    }
    let mut dst = vec![0x55; dst_stride * dh as usize];
    let pixels = Pixels::new(&src, sw, sh, src_stride).unwrap();
    let mut out = PixelsMut::new(&mut dst, dw, dh, dst_stride).unwrap();
    match method(row[0]) {
        Interpolation::Linear => resize::resize_linear(pixels, &mut out, scratch).unwrap(),
        Interpolation::Nearest => resize::resize_nearest(pixels, &mut out, scratch).unwrap(),
        Interpolation::Area => resize::resize_area(pixels, &mut out, scratch).unwrap(),
    }
    let mut result = Vec::with_capacity(dst_row * dh as usize);
    for row in dst.chunks(dst_stride) {
        result.extend_from_slice(&row[..dst_row]);
        assert!(
            row[dst_row..].iter().all(|&byte| byte == 0x55),
            "padding was written"
        );
    }
    result
}

#[test]
fn equal_to_opencv_over_all_size_pairs() {
    let mut scratch = resize::ResizeScratch::default();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for row in rows(include_str!("vectors/resize.tsv")) {
        seen += 1;
        if hex(&Sha256::digest(resized(&row, &mut scratch))) != row[6] {
            wrong.push(row[..5].join(" "));
        }
    }
    assert!(seen >= 3 * 40, "{seen} vectors");
    assert!(wrong.is_empty(), "not equal to OpenCV: {wrong:#?}");
}

#[test]
fn equal_to_opencv_pixel_by_pixel() {
    let mut scratch = resize::ResizeScratch::default();
    for row in rows(include_str!("vectors/resize_small.tsv")) {
        assert_eq!(hex(&resized(&row, &mut scratch)), row[6], "{:?}", &row[..5]);
    }
}

/// A picture of the vectors as an uncompressed file, so that the whole path is walked.
fn bitmap(width: u32, height: u32, rgb: &[u8]) -> Vec<u8> {
    let row = width as usize * 3;
    let padded = row.next_multiple_of(4);
    let size = 54 + padded * height as usize;
    let mut file = Vec::with_capacity(size);
    file.extend_from_slice(b"BM");
    for value in [
        size as u32,
        0,
        54,
        40,
        width,
        height,
        1 | 24 << 16,
        0,
        0,
        2835,
        2835,
        0,
        0,
    ] {
        file.extend_from_slice(&value.to_le_bytes());
    }
    for line in rgb.chunks(row).rev() {
        file.extend(line.chunks(3).flat_map(|p| [p[2], p[1], p[0]]));
        file.resize(file.len() + padded - row, 0);
    }
    file
}

#[test]
fn equal_to_ultralytics_from_file_to_frame() {
    let mut scratch = Scratch::default();
    for row in rows(include_str!("vectors/letterbox.tsv")) {
        let name = row[..5].join(" ");
        let [sw, sh, w, h, seed, scaled_w, scaled_h, left, top] =
            [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|i| number(row[i]));
        let fit = match row[0] {
            "letterbox" => Fit::Letterbox,
            "ultralytics" => Fit::Ultralytics,
            _ => Fit::Stretch,
        };
        let placement = place(fit, (sw, sh), (w, h));
        assert_eq!(
            (placement.scaled, placement.offset),
            ((scaled_w, scaled_h), (left, top)),
            "{name}"
        );

        let file = bitmap(sw, sh, &source(sw, sh, seed));
        let options = DecodeOptions {
            fit,
            ..DecodeOptions::default()
        };
        let header = probe(&file, &options).unwrap();
        for order in [ChannelOrder::Rgb, ChannelOrder::Bgr] {
            let stride = w as usize * 3 + 9;
            let mut frame = vec![0; stride * h as usize];
            let mut target = Target {
                data: &mut frame,
                stride,
                width: w,
                height: h,
                order,
            };
            let decoded = decode_into(&file, &header, &options, &mut target, &mut scratch).unwrap();
            assert_eq!(decoded.placement, placement, "{name}");
            let mut hash = Sha256::new();
            for line in frame.chunks_mut(stride) {
                let line = &mut line[..w as usize * 3];
                if order == ChannelOrder::Bgr {
                    line.chunks_exact_mut(3).for_each(|pixel| pixel.swap(0, 2));
                }
                hash.update(line);
            }
            assert_eq!(hex(&hash.finalize()), row[10], "{name} {order:?}");
        }
    }
}
