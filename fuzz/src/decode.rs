//! From the bytes of an image file to pixels, as `epochdecode` goes.

use epochfeed::decode::{
    ChannelOrder, DecodeOptions, Fit, Interpolation, OrientationMode, Scratch, Target, Truncated,
    decode_into, probe,
};

/// Most pixels, so that one execution stays short.
const MAX_PIXELS: u64 = 1 << 16;
/// Width and height of the frame, where the image has no say in it.
const FRAME: (u32, u32) = (64, 48);
/// Bytes behind each row that are nobody's.
const BETWEEN: usize = 5;

/// How many settings there are for the last byte to choose from.
pub const SETTINGS: u8 = 8;

/// The settings for a file that ends in `last`: no decoder needs what is behind the picture, so that seeds are images as
/// they are and the fuzzer can choose.
fn settings(last: u8) -> (DecodeOptions, ChannelOrder) {
    let last = last % SETTINGS;
    let (fit, interpolation, orientation) = match last / 2 {
        0 => (Fit::Letterbox, Interpolation::Linear, OrientationMode::Apply),
        1 => (Fit::Ultralytics, Interpolation::Area, OrientationMode::Apply),
        2 => (Fit::Stretch, Interpolation::Nearest, OrientationMode::Apply),
        _ => (Fit::None, Interpolation::Linear, OrientationMode::Ignore),
    };
    let (truncated, order) = match last % 2 {
        0 => (Truncated::Use, ChannelOrder::Rgb),
        _ => (Truncated::Fail, ChannelOrder::Bgr),
    };
    let options = DecodeOptions {
        fit,
        interpolation,
        orientation,
        max_pixels: MAX_PIXELS,
        truncated,
        ..DecodeOptions::default()
    };
    (options, order)
}

/// Decodes `bytes` twice: into a clean frame, and with the leavings of the first time in the frame and the scratch. Nothing
/// of what was there before may show, and nothing is written between the rows.
pub fn decode(bytes: &[u8]) {
    let (options, order) = settings(bytes.last().copied().unwrap_or_default());
    let header = match probe(bytes, &options) {
        Ok(header) => header,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(u64::from(header.width) * u64::from(header.height) <= MAX_PIXELS);
    assert!((1..=8).contains(&header.orientation));
    let (width, height) = match options.fit {
        Fit::None => header.oriented_size(options.orientation),
        _ => FRAME,
    };
    let row = width as usize * 3;
    let stride = row + BETWEEN;
    let mut scratch = Scratch::default();
    let [first, second] = [0x00, 0xff].map(|before| {
        let mut data = vec![before; stride * height as usize];
        let mut target = Target {
            data: &mut data,
            stride,
            width,
            height,
            order,
        };
        let outcome = decode_into(bytes, &header, &options, &mut target, &mut scratch);
        let rows = data.chunks(stride).map(|chunk| chunk.split_at(row));
        let mut pixels = Vec::with_capacity(row * height as usize);
        for (inside, between) in rows {
            assert!(between.iter().all(|&byte| byte == before), "a row is too long");
            pixels.extend_from_slice(inside);
        }
        match outcome {
            Ok(decoded) => {
                assert!(options.truncated == Truncated::Use || !decoded.truncated);
                Ok((decoded, pixels))
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                Err(error)
            }
        }
    });
    assert!(
        first == second,
        "what was there before shows: {header:?}, {options:?}"
    );
}
