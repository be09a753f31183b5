//! Where the channels of a uint8 pixel are.

/// The pixel formats of uint8 frames, named as in GStreamer's `video/x-raw` caps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PixelFormat {
    /// `R G B`
    Rgb,
    /// `B G R`
    Bgr,
    /// `R G B A`; the alpha is never read nor changed.
    Rgba,
    /// `B G R A`; the alpha is never read nor changed.
    Bgra,
    /// `R G B x`; the padding byte is never read nor changed.
    Rgbx,
    /// `B G R x`; the padding byte is never read nor changed.
    Bgrx,
    /// Three planes: R, G, B.
    Rgbp,
}

impl PixelFormat {
    /// Every format.
    pub const ALL: [PixelFormat; 7] = [
        PixelFormat::Rgb,
        PixelFormat::Bgr,
        PixelFormat::Rgba,
        PixelFormat::Bgra,
        PixelFormat::Rgbx,
        PixelFormat::Bgrx,
        PixelFormat::Rgbp,
    ];

    /// Bytes from one pixel to the next within a plane.
    pub const fn pixel_stride(self) -> usize {
        match self {
            PixelFormat::Rgb | PixelFormat::Bgr => 3,
            PixelFormat::Rgba | PixelFormat::Bgra | PixelFormat::Rgbx | PixelFormat::Bgrx => 4,
            PixelFormat::Rgbp => 1,
        }
    }

    /// Number of planes: 3 for [`PixelFormat::Rgbp`], else 1.
    pub const fn planes(self) -> usize {
        match self {
            PixelFormat::Rgbp => 3,
            _ => 1,
        }
    }

    /// Byte offsets of R, G and B within a pixel of their plane (all zero where each has a plane of its own).
    pub const fn offsets(self) -> [usize; 3] {
        match self {
            PixelFormat::Rgb | PixelFormat::Rgba | PixelFormat::Rgbx => [0, 1, 2],
            PixelFormat::Bgr | PixelFormat::Bgra | PixelFormat::Bgrx => [2, 1, 0],
            PixelFormat::Rgbp => [0, 0, 0],
        }
    }

    /// The name in `video/x-raw` caps.
    pub const fn as_str(self) -> &'static str {
        match self {
            PixelFormat::Rgb => "RGB",
            PixelFormat::Bgr => "BGR",
            PixelFormat::Rgba => "RGBA",
            PixelFormat::Bgra => "BGRA",
            PixelFormat::Rgbx => "RGBx",
            PixelFormat::Bgrx => "BGRx",
            PixelFormat::Rgbp => "RGBP",
        }
    }
}
