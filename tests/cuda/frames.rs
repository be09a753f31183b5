//! uint8 frames in memory, in any format and with any gaps.

use epochfeed::color::{FrameRef, PixelFormat};
use epochfeed::cuda::Images;
use epochfeed::tensor::Dtype;

use super::vectors::Noise;

/// Gaps, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gaps {
    /// Behind each row.
    pub row: usize,
    /// Behind each sample.
    pub sample: usize,
    /// In front of everything: what the address is shifted by.
    pub shift: usize,
}

/// Frames of a batch, as bytes.
pub struct Frames {
    pub format: PixelFormat,
    pub width: usize,
    pub height: usize,
    pub row_stride: usize,
    pub plane_stride: usize,
    pub sample_stride: usize,
    pub samples: usize,
    pub bytes: Vec<u8>,
}

impl Frames {
    /// `samples` laid out as `format`; what is no channel of a pixel is noise.
    pub fn new(
        format: PixelFormat,
        (width, height): (usize, usize),
        samples: &[Vec<[u8; 3]>],
        gaps: Gaps,
    ) -> Self {
        let row_stride = width * format.pixel_stride() + gaps.row;
        let plane_stride = row_stride * height;
        let sample_stride = plane_stride * format.planes() + gaps.sample;
        let mut noise = Noise::new(9);
        let mut frames = Self {
            format,
            width,
            height,
            row_stride,
            plane_stride,
            sample_stride,
            samples: samples.len(),
            bytes: (0..sample_stride * samples.len()).map(|_| noise.byte()).collect(),
        };
        frames.bytes = frames.with(samples);
        frames
    }

    /// Where the red, green and blue of a pixel are.
    fn places(&self, sample: usize, pixel: usize) -> [usize; 3] {
        let (x, y) = (pixel % self.width, pixel / self.width);
        let first = sample * self.sample_stride + y * self.row_stride + x * self.format.pixel_stride();
        match self.format {
            PixelFormat::Rgbp => [0, 1, 2].map(|plane| first + plane * self.plane_stride),
            _ => self.format.offsets().map(|offset| first + offset),
        }
    }

    /// These frames with other pixels, all else as it is.
    pub fn with(&self, samples: &[Vec<[u8; 3]>]) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for (sample, pixels) in samples.iter().enumerate() {
            for (number, rgb) in pixels.iter().enumerate() {
                for (place, level) in self.places(sample, number).into_iter().zip(rgb) {
                    bytes[place] = *level;
                }
            }
        }
        bytes
    }

    /// A sample, for the CPU.
    pub fn sample(&self, sample: usize) -> FrameRef<'_> {
        let bytes = &self.bytes[sample * self.sample_stride..];
        let (width, height, stride) = (self.width, self.height, self.row_stride);
        match self.format {
            PixelFormat::Rgbp => {
                let data = [0, 1, 2].map(|plane| &bytes[plane * self.plane_stride..]);
                FrameRef::planar(width, height, data, [stride; 3])
            }
            format => FrameRef::packed(format, width, height, bytes, stride),
        }
        .unwrap()
    }

    /// They as a program describes them that has them at `pointer`.
    ///
    /// # Safety
    /// As [`Images::from_raw`].
    pub unsafe fn at(&self, pointer: u64) -> Images {
        let pixel = self.format.pixel_stride();
        let channel = if self.format == PixelFormat::Rgbp {
            self.plane_stride
        } else {
            1
        };
        let channels = if pixel == 4 { 4 } else { 3 };
        let strides = [self.sample_stride, channel, self.row_stride, pixel].map(|stride| stride as i64);
        let shape = [self.samples, channels, self.height, self.width];
        // SAFETY: the caller's promise.
        let images = unsafe { Images::from_raw(pointer, Dtype::Uint8, shape, strides) };
        match self.format {
            PixelFormat::Bgr | PixelFormat::Bgrx | PixelFormat::Bgra => images.bgr(),
            _ => images,
        }
    }
}

/// Planes of float32 as bytes: samples, channels, pixels.
pub fn planes(samples: &[Vec<[f32; 3]>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(samples.iter().map(|pixels| pixels.len() * 12).sum());
    for pixels in samples {
        for channel in 0..3 {
            bytes.extend(pixels.iter().flat_map(|rgb| rgb[channel].to_ne_bytes()));
        }
    }
    bytes
}

/// Contiguous float32 planes at `pointer`.
///
/// # Safety
/// As [`Images::from_raw`].
pub unsafe fn planes_at(pointer: u64, samples: usize, (width, height): (usize, usize)) -> Images {
    let (w, h) = (width as i64, height as i64);
    // SAFETY: the caller's promise.
    unsafe {
        Images::from_raw(
            pointer,
            Dtype::Float32,
            [samples, 3, height, width],
            [3 * w * h, w * h, w, 1],
        )
    }
}
