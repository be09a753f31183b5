//! Every pixel format, stride, width, element type and layout gives the definition's pixels, and changes nothing else.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use epochfeed::color::fused::{self, Backend};
use epochfeed::color::{
    FloatFrame, FrameError, FrameMut, FrameRef, Gains, Jitter, PixelFormat, native, reference,
};
use epochfeed::tensor::{Dtype, Layout, Normalize, PackError, PackSpec};
use half::{bf16, f16};

const HEIGHT: usize = 3;
/// Written to padding and alpha; must still be there afterwards.
const CANARY: u8 = 0xa5;

fn jitter() -> Jitter {
    Jitter::from(Gains::new(0.2, 0.5, -0.2).unwrap())
}

/// Pixels without structure, never the same at two places of a small frame.
fn pixels(width: usize) -> Vec<[u8; 3]> {
    (0..width * HEIGHT)
        .map(|i| [i * 7 + 1, i * 151 + 90, i * 83 + 200].map(|x| (x ^ (x >> 8)) as u8))
        .collect()
}

/// A frame's memory: one plane, or three behind each other.
struct Memory {
    format: PixelFormat,
    width: usize,
    stride: usize,
    bytes: Vec<u8>,
}

impl Memory {
    /// Lays out pixels in rows `padding` bytes apart; the last row has no padding, as in a cropped frame.
    fn new(format: PixelFormat, width: usize, padding: usize, pixels: &[[u8; 3]]) -> Self {
        let step = format.pixel_stride();
        let stride = width * step + padding;
        let plane = stride * (HEIGHT - 1) + width * step;
        let mut bytes = vec![CANARY; plane * format.planes()];
        for (i, rgb) in pixels.iter().enumerate() {
            let at = i / width * stride + i % width * step;
            for c in 0..3 {
                let plane_start = if format.planes() == 3 { c * plane } else { 0 };
                bytes[plane_start + at + format.offsets()[c]] = rgb[c];
            }
        }
        Self {
            format,
            width,
            stride,
            bytes,
        }
    }

    fn view(&self) -> FrameRef<'_> {
        let strides = [self.stride; 3];
        match self.format {
            PixelFormat::Rgbp => {
                let planes: Vec<&[u8]> = self.bytes.chunks_exact(self.bytes.len() / 3).collect();
                FrameRef::planar(self.width, HEIGHT, [planes[0], planes[1], planes[2]], strides).unwrap()
            }
            format => FrameRef::packed(format, self.width, HEIGHT, &self.bytes, self.stride).unwrap(),
        }
    }

    fn view_mut(&mut self) -> FrameMut<'_> {
        match self.format {
            PixelFormat::Rgbp => {
                let plane = self.bytes.len() / 3;
                let (r, rest) = self.bytes.split_at_mut(plane);
                let (g, b) = rest.split_at_mut(plane);
                FrameMut::planar(self.width, HEIGHT, [r, g, b], [self.stride; 3]).unwrap()
            }
            format => FrameMut::packed(format, self.width, HEIGHT, &mut self.bytes, self.stride).unwrap(),
        }
    }
}

/// The tensor of these levels, written down plainly.
fn expected(levels: &[[u8; 3]], spec: &PackSpec) -> Vec<u8> {
    let element = |level: u8, c: usize| -> Vec<u8> {
        let mut value = reference::restore(level);
        if let Some(Normalize { mean, std }) = spec.normalize() {
            value = (value - mean[c]) / std[c];
        }
        match spec.dtype() {
            Dtype::Uint8 => vec![level],
            Dtype::Float32 => value.to_ne_bytes().to_vec(),
            Dtype::Float16 => f16::from_f32(value).to_ne_bytes().to_vec(),
            Dtype::Bfloat16 => bf16::from_f32(value).to_ne_bytes().to_vec(),
        }
    };
    match spec.layout() {
        Layout::Nhwc => levels
            .iter()
            .flat_map(|rgb| (0..3).flat_map(|c| element(rgb[c], c)))
            .collect(),
        Layout::Nchw => (0..3)
            .flat_map(|c| levels.iter().flat_map(move |rgb| element(rgb[c], c)))
            .collect(),
    }
}

fn specs() -> Vec<PackSpec> {
    let imagenet = Normalize {
        mean: [0.485, 0.456, 0.406],
        std: [0.229, 0.224, 0.225],
    };
    // Reaches the subnormals, the infinities and negative numbers of binary16.
    let wide = Normalize {
        mean: [0.5, 0.0, 0.75],
        std: [1e-5, 3e5, -1e-6],
    };
    let mut specs = Vec::new();
    for layout in Layout::ALL {
        for dtype in Dtype::ALL {
            specs.push(PackSpec::new(dtype, layout, None).unwrap());
            if dtype.is_float() {
                specs.push(PackSpec::new(dtype, layout, Some(imagenet)).unwrap());
                specs.push(PackSpec::new(dtype, layout, Some(wide)).unwrap());
            }
        }
    }
    specs
}

#[test]
fn jitter_in_place_of_every_format_and_stride() {
    let jitter = jitter();
    let mut scratch = native::Scratch::new();
    for width in 1..=70 {
        let pixels = pixels(width);
        let jittered: Vec<[u8; 3]> = pixels
            .iter()
            .map(|rgb| reference::jitter_u8(*rgb, &jitter))
            .collect();
        for format in PixelFormat::ALL {
            for padding in [0, 1, 5] {
                let before = Memory::new(format, width, padding, &pixels);
                // Laid out the same way, so padding and alpha are compared too.
                let want = Memory::new(format, width, padding, &jittered).bytes;
                for backend in Backend::available() {
                    let mut memory = Memory {
                        bytes: before.bytes.clone(),
                        ..before
                    };
                    fused::jitter_frame_on(backend, &mut memory.view_mut(), &jitter);
                    assert!(
                        memory.bytes == want,
                        "{} {format:?} width {width} padding {padding}",
                        backend.as_str()
                    );
                }
                let mut memory = Memory {
                    bytes: before.bytes.clone(),
                    ..before
                };
                native::jitter_frame(&mut memory.view_mut(), &jitter, &mut scratch);
                assert!(
                    memory.bytes == want,
                    "native {format:?} width {width} padding {padding}"
                );
            }
        }
    }
}

#[test]
fn pack_of_every_format_type_and_layout() {
    let jitter = jitter();
    let mut scratch = native::Scratch::new();
    for width in [1, 2, 21, 22, 63, 64, 65, 70, 200] {
        let pixels = pixels(width);
        let jittered: Vec<[u8; 3]> = pixels
            .iter()
            .map(|rgb| reference::jitter_u8(*rgb, &jitter))
            .collect();
        for spec in specs() {
            let plain_want = expected(&pixels, &spec);
            let jittered_want = expected(&jittered, &spec);
            // One byte in, so that the slot is not aligned.
            let mut memory = vec![0; spec.sample_bytes(width, HEIGHT) + 1];
            let slot = &mut memory[1..];
            for format in PixelFormat::ALL {
                for padding in [0, 3] {
                    let what = format!("{format:?} width {width} padding {padding} {spec:?}");
                    let frame = Memory::new(format, width, padding, &pixels);
                    let frame = frame.view();
                    for backend in Backend::available() {
                        let name = backend.as_str();
                        fused::pack_on(backend, &frame, Some(&jitter), &spec, slot).unwrap();
                        assert!(slot == jittered_want, "{name}, jittered, {what}");
                        fused::pack_on(backend, &frame, None, &spec, slot).unwrap();
                        assert!(slot == plain_want, "{name}, plain, {what}");
                    }
                    native::jitter_and_pack(&frame, &jitter, &spec, slot, &mut scratch).unwrap();
                    assert!(slot == jittered_want, "native, jittered, {what}");
                    native::pack(&frame, &spec, slot, &mut scratch).unwrap();
                    assert!(slot == plain_want, "native, plain, {what}");
                }
            }
            let floats: Vec<[f32; 3]> = pixels.iter().map(|rgb| rgb.map(reference::restore)).collect();
            let planes: Vec<f32> = (0..3)
                .flat_map(|c| floats.iter().map(move |rgb| rgb[c]))
                .collect();
            for frame in [
                FloatFrame::hwc(width, HEIGHT, floats.as_flattened()).unwrap(),
                FloatFrame::chw(width, HEIGHT, &planes).unwrap(),
            ] {
                for (jitter, want) in [(Some(&jitter), &jittered_want), (None, &plain_want)] {
                    for backend in Backend::available() {
                        fused::pack_f32_on(backend, &frame, jitter, &spec, slot).unwrap();
                        assert!(slot == want, "{}, {frame:?} {spec:?}", backend.as_str());
                    }
                    native::pack_f32(&frame, jitter, &spec, slot, &mut scratch).unwrap();
                    assert!(slot == want, "native, {frame:?} {spec:?}");
                }
            }
        }
    }
}

#[test]
fn planes_may_have_different_strides() {
    let (r, g, b) = ([1, 0, 2], [3, 9, 9, 4], [5, 9, 9, 9, 6]);
    let frame = FrameRef::planar(1, 2, [&r, &g, &b], [2, 3, 4]).unwrap();
    let spec = PackSpec::new(Dtype::Uint8, Layout::Nhwc, None).unwrap();
    for backend in Backend::available() {
        let mut slot = [0; 6];
        fused::pack_on(backend, &frame, None, &spec, &mut slot).unwrap();
        assert_eq!(slot, [1, 3, 5, 2, 4, 6]);
    }
}

#[test]
fn memory_that_is_no_frame_is_refused() {
    let data = [0; 100];
    let packed = |format, width, height, len: usize, stride| {
        FrameRef::packed(format, width, height, &data[..len], stride).map(|_| ())
    };
    assert_eq!(
        packed(PixelFormat::Rgb, 0, 4, 10, 3),
        Err(FrameError::Empty { width: 0, height: 4 })
    );
    assert_eq!(
        packed(PixelFormat::Rgb, 4, 0, 10, 12),
        Err(FrameError::Empty { width: 4, height: 0 })
    );
    assert_eq!(
        packed(PixelFormat::Rgbp, 1, 1, 3, 3),
        Err(FrameError::Planes {
            format: PixelFormat::Rgbp
        })
    );
    assert_eq!(
        packed(PixelFormat::Rgb, 4, 2, 24, 11),
        Err(FrameError::Stride {
            plane: 0,
            stride: 11,
            row_bytes: 12
        })
    );
    assert_eq!(
        packed(PixelFormat::Rgbx, 4, 2, 35, 20),
        Err(FrameError::TooShort {
            plane: 0,
            height: 2,
            expected: 36,
            actual: 35
        })
    );
    assert!(packed(PixelFormat::Rgbx, 4, 2, 36, 20).is_ok());
    assert!(matches!(
        packed(PixelFormat::Rgb, usize::MAX, 1, 9, 9),
        Err(FrameError::Stride { .. })
    ));
    assert!(matches!(
        packed(PixelFormat::Rgb, 3, usize::MAX, 9, 9),
        Err(FrameError::TooShort { .. })
    ));
    let planes = FrameRef::planar(3, 2, [&data, &data[..5], &data], [3, 3, 3]);
    assert_eq!(
        planes.err(),
        Some(FrameError::TooShort {
            plane: 1,
            height: 2,
            expected: 6,
            actual: 5
        })
    );
    let floats = [0.0; 11];
    assert_eq!(
        FloatFrame::hwc(2, 2, &floats).err(),
        Some(FrameError::Elements {
            width: 2,
            height: 2,
            expected: 12,
            actual: 11
        })
    );
    assert!(FloatFrame::chw(usize::MAX, 2, &floats).is_err());
}

#[test]
fn slots_of_another_size_are_refused() {
    let data = [0; 12];
    let frame = FrameRef::packed(PixelFormat::Rgb, 2, 2, &data, 6).unwrap();
    let spec = PackSpec::default();
    let mut slot = [0; 47];
    let want = PackError::SlotSize {
        width: 2,
        height: 2,
        dtype: Dtype::Float32,
        expected: 48,
        actual: 47,
    };
    assert_eq!(fused::pack(&frame, None, &spec, &mut slot), Err(want.clone()));
    assert_eq!(
        native::pack(&frame, &spec, &mut slot, &mut native::Scratch::new()),
        Err(want)
    );
}

#[test]
fn normalisations_that_cannot_be_computed_are_refused() {
    let new = |mean, std| PackSpec::new(Dtype::Float32, Layout::Nhwc, Some(Normalize { mean, std }));
    assert!(new([0.0; 3], [1.0; 3]).is_ok());
    assert_eq!(
        new([0.0; 3], [1.0, 0.0, 1.0]),
        Err(PackError::Std {
            channel: "green",
            value: 0.0
        })
    );
    assert!(matches!(
        new([0.0; 3], [1.0, 1.0, f32::NAN]),
        Err(PackError::Std { channel: "blue", .. })
    ));
    assert_eq!(
        new([f32::INFINITY, 0.0, 0.0], [1.0; 3]),
        Err(PackError::Mean {
            channel: "red",
            value: f32::INFINITY
        })
    );
    let one = Normalize {
        mean: [0.0; 3],
        std: [1.0; 3],
    };
    assert_eq!(
        PackSpec::new(Dtype::Uint8, Layout::Nchw, Some(one)),
        Err(PackError::NormalizeUint8)
    );
}

#[test]
fn names_are_read_back() {
    for dtype in Dtype::ALL {
        assert_eq!(dtype.as_str().parse(), Ok(dtype));
    }
    for layout in Layout::ALL {
        assert_eq!(layout.as_str().parse(), Ok(layout));
    }
    assert!(
        "float64"
            .parse::<Dtype>()
            .unwrap_err()
            .to_string()
            .contains("\"float64\"")
    );
    assert!("chw".parse::<Layout>().is_err());
}
