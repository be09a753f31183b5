//! One launch of a kernel: which function, which grid, which arguments. `kernels/README.md` has the rules.

use cudarc::driver::{LaunchConfig, PushKernelArg};

use super::error::CudaError;
use super::kernels::Kernel;
use super::stream::Stream;
use crate::color::PixelFormat;
use crate::tensor::{Layout, Normalize, PackSpec};

/// Threads of a block, as measured best; see `benches/RESULTS.md`.
const THREADS: usize = 128;
/// Bytes of shared memory that each of them exchanges pixels through.
const SHARED_PER_THREAD: usize = 48;
/// The grid's second dimension.
pub(super) const MAX_BATCH: usize = 65_535;
/// Pixel numbers are 32 bits.
const MAX_PIXELS: usize = (1 << 31) - 1;

/// uint8 frames in device memory, all laid out alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frames {
    pub format: PixelFormat,
    pub width: usize,
    pub height: usize,
    pub batch: usize,
    /// Address of the first pixel.
    pub base: u64,
    /// Bytes from a sample to the next, from a plane to the next, from a row to the next.
    pub strides: [i64; 3],
}

/// float32 planes in device memory, contiguous: samples, channels, rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Planes {
    pub width: usize,
    pub height: usize,
    pub batch: usize,
    /// Address of the first value.
    pub base: u64,
}

fn code(format: PixelFormat) -> i32 {
    match format {
        PixelFormat::Rgb => 0,
        PixelFormat::Bgr => 1,
        PixelFormat::Rgbx | PixelFormat::Rgba => 2,
        PixelFormat::Bgrx | PixelFormat::Bgra => 3,
        PixelFormat::Rgbp => 4,
    }
}

impl Frames {
    /// Whether the kernels may read four pixels at a time.
    fn takes_fours(&self) -> bool {
        let size = self.format.pixel_stride();
        let unit: u64 = if size == 4 { 16 } else { 4 };
        let contiguous = usize::try_from(self.strides[2]) == Ok(self.width * size);
        let aligned = |stride: i64| stride.unsigned_abs().is_multiple_of(unit);
        self.base.is_multiple_of(unit)
            && aligned(self.strides[0])
            && aligned(self.strides[1])
            && (contiguous || (aligned(self.strides[2]) && self.width.is_multiple_of(4)))
            && (self.width * self.height).is_multiple_of(4)
    }
}

impl Planes {
    fn takes_fours(&self) -> bool {
        (self.width * self.height).is_multiple_of(4) && self.base.is_multiple_of(16)
    }
}

/// Checks the sizes and makes the grid.
fn config(grid: &Grid, multiprocessors: usize) -> Result<LaunchConfig, CudaError> {
    let pixels = grid.width.saturating_mul(grid.height);
    let checks = [
        ("the batch size", grid.batch, MAX_BATCH),
        ("the number of pixels of a sample", pixels, MAX_PIXELS),
    ];
    for (what, value, limit) in checks {
        if value > limit {
            return Err(CudaError::TooLarge { what, value, limit });
        }
    }
    // A small batch is spread over the whole device rather than amortising what a thread does first.
    let most = pixels.div_ceil(THREADS * 4);
    let amortised = pixels.div_ceil(THREADS * grid.kernel.pixels_per_thread());
    let spread = (16 * multiprocessors).div_ceil(grid.batch.max(1));
    let blocks = amortised.max(spread).min(most).max(1);
    let shared = if grid.any { 0 } else { SHARED_PER_THREAD * THREADS };
    // All below 2^31.
    Ok(LaunchConfig {
        grid_dim: (blocks as u32, grid.batch as u32, 1),
        block_dim: (THREADS as u32, 1, 1),
        shared_mem_bytes: shared as u32,
    })
}

/// An argument of a kernel, of the type that its source says.
#[derive(Clone, Copy, Debug)]
enum Argument {
    Int(i32),
    Long(i64),
    Float(f32),
    Address(u64),
}

/// No table of samples' addresses: they lie at one distance from each other.
const NO_TABLE: Argument = Argument::Address(0);

impl Frames {
    fn arguments(&self) -> Vec<Argument> {
        let mut arguments = vec![Argument::Address(self.base)];
        arguments.extend(self.strides.map(Argument::Long));
        arguments.push(NO_TABLE);
        arguments
    }
}

impl Planes {
    fn arguments(&self) -> Vec<Argument> {
        let pixels = (self.width * self.height) as i64;
        let mut arguments = vec![Argument::Address(self.base)];
        arguments.extend([3 * pixels, pixels, 1].map(Argument::Long));
        arguments
    }
}

fn layout(spec: &PackSpec) -> Argument {
    Argument::Int(i32::from(spec.layout() == Layout::Nchw))
}

/// Mean, std: a std of 0 for the first channel is none.
fn normalisation(spec: &PackSpec) -> [Argument; 6] {
    let values = match spec.normalize() {
        Some(Normalize { mean, std }) => [mean[0], mean[1], mean[2], std[0], std[1], std[2]],
        None => [0.0; 6],
    };
    values.map(Argument::Float)
}

/// A kernel and what it runs over.
#[derive(Clone, Copy, Debug)]
struct Grid {
    kernel: Kernel,
    /// Where memory is not aligned as four pixels at a time need.
    any: bool,
    width: usize,
    height: usize,
    batch: usize,
}

impl Grid {
    /// Width and height.
    fn size(&self) -> [Argument; 2] {
        // `config` refuses what is larger.
        [self.width, self.height].map(|side| Argument::Int(side as i32))
    }
}

impl Stream {
    /// Queues frames → batch. `gains` is the address of B × 3 float64 in device memory, or 0.
    ///
    /// # Safety
    /// Every pixel of `input`, the gains and `spec.sample_bytes(..) * batch` bytes at `out` (aligned to an element) are memory of
    /// this stream's device, alive and not used otherwise until the stream has done this.
    pub(super) unsafe fn pack_frames(
        &self,
        input: &Frames,
        gains: u64,
        out: u64,
        spec: &PackSpec,
    ) -> Result<(), CudaError> {
        let grid = Grid {
            kernel: Kernel::PackBytes(spec.dtype()),
            any: !(input.takes_fours() && out.is_multiple_of(16)),
            width: input.width,
            height: input.height,
            batch: input.batch,
        };
        let mut arguments = input.arguments();
        arguments.push(Argument::Int(code(input.format)));
        arguments.extend(grid.size());
        arguments.extend([Argument::Address(gains), Argument::Address(out), layout(spec)]);
        arguments.extend(normalisation(spec));
        // SAFETY: the arguments of `pack_bytes`, in order; the memory is the caller's promise.
        unsafe { self.launch("launching the packer", &grid, &arguments) }
    }

    /// Queues float32 planes → batch.
    ///
    /// # Safety
    /// As [`pack_frames`](Self::pack_frames).
    pub(super) unsafe fn pack_planes(
        &self,
        input: &Planes,
        gains: u64,
        out: u64,
        spec: &PackSpec,
    ) -> Result<(), CudaError> {
        let grid = Grid {
            kernel: Kernel::PackFloats(spec.dtype()),
            any: !(input.takes_fours() && out.is_multiple_of(16)),
            width: input.width,
            height: input.height,
            batch: input.batch,
        };
        let mut arguments = input.arguments();
        arguments.extend(grid.size());
        arguments.extend([Argument::Address(gains), Argument::Address(out), layout(spec)]);
        arguments.extend(normalisation(spec));
        // SAFETY: the arguments of `pack_floats`, in order; the memory is the caller's promise.
        unsafe { self.launch("launching the packer", &grid, &arguments) }
    }

    /// Queues the jitter of `frames`, in place.
    ///
    /// # Safety
    /// As [`pack_frames`](Self::pack_frames), `frames` being both.
    pub(super) unsafe fn jitter_frames(&self, frames: &Frames, gains: u64) -> Result<(), CudaError> {
        let grid = Grid {
            kernel: Kernel::JitterFrames,
            any: !frames.takes_fours(),
            width: frames.width,
            height: frames.height,
            batch: frames.batch,
        };
        // In and out.
        let mut arguments = frames.arguments().repeat(2);
        arguments.push(Argument::Int(code(frames.format)));
        arguments.extend(grid.size());
        arguments.push(Argument::Address(gains));
        // SAFETY: the arguments of `jitter_frames`, in order; the memory is the caller's promise.
        unsafe { self.launch("launching the jitter", &grid, &arguments) }
    }

    /// # Safety
    /// `arguments` are those of the grid's kernel in number, order and type, and may be used as they are.
    unsafe fn launch(
        &self,
        what: &'static str,
        grid: &Grid,
        arguments: &[Argument],
    ) -> Result<(), CudaError> {
        let device = self.device();
        let config = config(grid, device.multiprocessors())?;
        let function = device.function(grid.kernel, grid.any)?;
        let _before = device.enter("launching a kernel")?;
        let mut launch = self.inner().launch_builder(&function);
        for argument in arguments {
            match argument {
                Argument::Int(value) => launch.arg(value),
                Argument::Long(value) => launch.arg(value),
                Argument::Float(value) => launch.arg(value),
                Argument::Address(value) => launch.arg(value),
            };
        }
        // SAFETY: the caller's promise.
        unsafe { launch.launch(config) }.map_err(|error| device.error(what, error))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tensor::Dtype;

    fn frames(format: PixelFormat, width: usize, height: usize, row: i64) -> Frames {
        Frames {
            format,
            width,
            height,
            batch: 2,
            base: 256,
            strides: [row * height as i64, row * height as i64, row],
        }
    }

    #[test]
    fn four_pixels_at_a_time_need_alignment() {
        use PixelFormat::{Rgb, Rgba, Rgbp};
        assert!(frames(Rgb, 640, 640, 1920).takes_fours());
        assert!(
            frames(Rgb, 6, 2, 18).takes_fours(),
            "contiguous rows need no width of four"
        );
        assert!(!frames(Rgb, 6, 2, 20).takes_fours(), "padded rows do");
        assert!(frames(Rgb, 8, 2, 28).takes_fours());
        assert!(!frames(Rgb, 8, 2, 26).takes_fours());
        assert!(!frames(Rgb, 3, 3, 9).takes_fours(), "9 pixels");
        assert!(frames(Rgba, 4, 4, 16).takes_fours());
        assert!(!frames(Rgba, 8, 2, 36).takes_fours(), "16 bytes a group");
        assert!(frames(Rgbp, 8, 2, 8).takes_fours());
        let moved = Frames {
            base: 258,
            ..frames(Rgb, 640, 640, 1920)
        };
        assert!(!moved.takes_fours());
    }

    #[test]
    fn the_grid_covers_small_batches_and_refuses_what_is_too_large() {
        let of = |(width, height), batch| {
            let grid = Grid {
                kernel: Kernel::PackBytes(Dtype::Float32),
                any: false,
                width,
                height,
                batch,
            };
            config(&grid, 132)
        };
        let full = of((640, 640), 64).unwrap();
        assert_eq!(full.grid_dim, (267, 64, 1));
        assert_eq!(
            of((640, 640), 1).unwrap().grid_dim.0,
            800,
            "spread, up to four pixels a thread"
        );
        assert_eq!(of((1, 1), 1).unwrap().grid_dim, (1, 1, 1));
        assert_eq!(full.shared_mem_bytes, 6144);
        let error = of((640, 640), 65_536).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the batch size is 65536, but the kernels take at most 65535"
        );
        assert!(of((65_536, 32_768), 1).is_err());
        assert!(of((65_535, 32_768), 1).is_ok());
    }
}
