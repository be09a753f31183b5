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
fn config(
    kernel: Kernel,
    any: bool,
    size: (usize, usize),
    batch: usize,
    multiprocessors: usize,
) -> Result<LaunchConfig, CudaError> {
    let pixels = size.0.saturating_mul(size.1);
    let checks = [
        ("the batch size", batch, MAX_BATCH),
        ("the number of pixels of a sample", pixels, MAX_PIXELS),
    ];
    for (what, value, limit) in checks {
        if value > limit {
            return Err(CudaError::TooLarge { what, value, limit });
        }
    }
    // A small batch is spread over the whole device rather than amortising what a thread does first.
    let most = pixels.div_ceil(THREADS * 4);
    let amortised = pixels.div_ceil(THREADS * kernel.pixels_per_thread());
    let spread = (16 * multiprocessors).div_ceil(batch.max(1));
    let blocks = amortised.max(spread).min(most).max(1);
    let shared = if any { 0 } else { SHARED_PER_THREAD * THREADS };
    // All below 2^31.
    Ok(LaunchConfig {
        grid_dim: (blocks as u32, batch as u32, 1),
        block_dim: (THREADS as u32, 1, 1),
        shared_mem_bytes: shared as u32,
    })
}

/// Mean, std: a std of 0 for the first channel is none.
fn normalisation(spec: &PackSpec) -> [f32; 6] {
    let Some(Normalize { mean, std }) = spec.normalize() else {
        return [0.0; 6];
    };
    [mean[0], mean[1], mean[2], std[0], std[1], std[2]]
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
        let kernel = Kernel::PackBytes(spec.dtype());
        let any = !(input.takes_fours() && out.is_multiple_of(16));
        let (width, height) = (input.width, input.height);
        let config = config(
            kernel,
            any,
            (width, height),
            input.batch,
            self.device().multiprocessors(),
        )?;
        let function = self.device().function(kernel, any)?;
        let _before = self.device().enter("launching a kernel")?;
        let (table, format, nchw) = (0u64, code(input.format), i32::from(spec.layout() == Layout::Nchw));
        let (width, height) = (width as i32, height as i32);
        let normalisation = normalisation(spec);
        let mut launch = self.inner().launch_builder(&function);
        launch.arg(&input.base);
        for stride in &input.strides {
            launch.arg(stride);
        }
        launch.arg(&table).arg(&format).arg(&width).arg(&height);
        launch.arg(&gains).arg(&out).arg(&nchw);
        for value in &normalisation {
            launch.arg(value);
        }
        // SAFETY: the arguments are the function's, in number, order and type; the memory is the caller's promise.
        unsafe { launch.launch(config) }
            .map_err(|error| self.device().error("launching the packer", error))?;
        Ok(())
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
        let kernel = Kernel::PackFloats(spec.dtype());
        let any = !(input.takes_fours() && out.is_multiple_of(16));
        let (width, height) = (input.width, input.height);
        let config = config(
            kernel,
            any,
            (width, height),
            input.batch,
            self.device().multiprocessors(),
        )?;
        let function = self.device().function(kernel, any)?;
        let _before = self.device().enter("launching a kernel")?;
        let pixels = (width * height) as i64;
        let strides = [3 * pixels, pixels, 1];
        let nchw = i32::from(spec.layout() == Layout::Nchw);
        let (width, height) = (width as i32, height as i32);
        let normalisation = normalisation(spec);
        let mut launch = self.inner().launch_builder(&function);
        launch.arg(&input.base);
        for stride in &strides {
            launch.arg(stride);
        }
        launch.arg(&width).arg(&height).arg(&gains).arg(&out).arg(&nchw);
        for value in &normalisation {
            launch.arg(value);
        }
        // SAFETY: the arguments are the function's, in number, order and type; the memory is the caller's promise.
        unsafe { launch.launch(config) }
            .map_err(|error| self.device().error("launching the packer", error))?;
        Ok(())
    }

    /// Queues the jitter of `frames`, in place.
    ///
    /// # Safety
    /// As [`pack_frames`](Self::pack_frames), `frames` being both.
    pub(super) unsafe fn jitter_frames(&self, frames: &Frames, gains: u64) -> Result<(), CudaError> {
        let kernel = Kernel::JitterFrames;
        let any = !frames.takes_fours();
        let (width, height) = (frames.width, frames.height);
        let config = config(
            kernel,
            any,
            (width, height),
            frames.batch,
            self.device().multiprocessors(),
        )?;
        let function = self.device().function(kernel, any)?;
        let _before = self.device().enter("launching a kernel")?;
        let (table, format) = (0u64, code(frames.format));
        let (width, height) = (width as i32, height as i32);
        let mut launch = self.inner().launch_builder(&function);
        for _in_and_out in 0..2 {
            launch.arg(&frames.base);
            for stride in &frames.strides {
                launch.arg(stride);
            }
            launch.arg(&table);
        }
        launch.arg(&format).arg(&width).arg(&height).arg(&gains);
        // SAFETY: the arguments are the function's, in number, order and type; the memory is the caller's promise.
        unsafe { launch.launch(config) }
            .map_err(|error| self.device().error("launching the jitter", error))?;
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
        let kernel = Kernel::PackBytes(Dtype::Float32);
        let of = |size, batch| config(kernel, false, size, batch, 132);
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
