//! The compiled kernels of `kernels/`, and how each is found and launched.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaModule};
use cudarc::nvrtc::Ptx;
use once_cell::sync::OnceCell;

use super::device::Device;
use super::error::{CudaError, words};
use crate::tensor::Dtype;

/// A compiled source: for compute capability 8.0 and newer, and for what is older.
#[derive(Debug)]
struct Source {
    sm80: &'static str,
    sm52: &'static str,
}

const PACK_BYTES: Source = Source {
    sm80: include_str!("../../kernels/ptx/pack_bytes_sm80.ptx"),
    sm52: include_str!("../../kernels/ptx/pack_bytes_sm52.ptx"),
};
const PACK_FLOATS: Source = Source {
    sm80: include_str!("../../kernels/ptx/pack_floats_sm80.ptx"),
    sm52: include_str!("../../kernels/ptx/pack_floats_sm52.ptx"),
};
const JITTER_FRAMES: Source = Source {
    sm80: include_str!("../../kernels/ptx/jitter_frames_sm52.ptx"),
    sm52: include_str!("../../kernels/ptx/jitter_frames_sm52.ptx"),
};

/// What a kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    /// uint8 frames to a batch.
    PackBytes(Dtype),
    /// float32 planes to a batch.
    PackFloats(Dtype),
    /// uint8 frames to uint8 frames.
    JitterFrames,
}

impl Kernel {
    /// The function; `any` is the one that takes any alignment.
    fn function(self, any: bool) -> String {
        let any = if any { "any_" } else { "" };
        match self {
            Self::PackBytes(dtype) => format!("epochfeed_pack_{any}bytes_{dtype}"),
            Self::PackFloats(dtype) => format!("epochfeed_pack_{any}floats_{dtype}"),
            Self::JitterFrames => format!("epochfeed_jitter_{any}frames"),
        }
    }

    /// Pixels of a thread that the grid is made for, as measured; see `kernels/README.md`.
    pub(super) fn pixels_per_thread(self) -> usize {
        match self {
            Self::PackBytes(Dtype::Float32) => 12,
            Self::PackBytes(_) | Self::JitterFrames => 40,
            Self::PackFloats(Dtype::Float32) => 8,
            Self::PackFloats(Dtype::Uint8) => 16,
            Self::PackFloats(_) => 12,
        }
    }
}

/// The modules of one context, loaded when they are first used.
#[derive(Debug)]
pub(super) struct Kernels {
    new: bool,
    pack_bytes: OnceCell<Arc<CudaModule>>,
    pack_floats: OnceCell<Arc<CudaModule>>,
    jitter_frames: OnceCell<Arc<CudaModule>>,
}

impl Kernels {
    /// None loaded yet, for a device of this compute capability.
    pub(super) fn new(capability: (i32, i32)) -> Self {
        Self {
            new: capability >= (8, 0),
            pack_bytes: OnceCell::new(),
            pack_floats: OnceCell::new(),
            jitter_frames: OnceCell::new(),
        }
    }
}

impl Device {
    fn module(&self, kernel: Kernel) -> Result<&Arc<CudaModule>, CudaError> {
        let (cell, source) = match kernel {
            Kernel::PackBytes(_) => (&self.kernels.pack_bytes, &PACK_BYTES),
            Kernel::PackFloats(_) => (&self.kernels.pack_floats, &PACK_FLOATS),
            Kernel::JitterFrames => (&self.kernels.jitter_frames, &JITTER_FRAMES),
        };
        cell.get_or_try_init(|| {
            let text = if self.kernels.new {
                source.sm80
            } else {
                source.sm52
            };
            let _before = self.enter("loading the kernels")?;
            self.context
                .load_module(Ptx::from_src(text))
                .map_err(|error| self.load_error(error))
        })
    }

    /// The function of `kernel`; with `any` the one that takes any alignment. Loads its module.
    pub(super) fn function(&self, kernel: Kernel, any: bool) -> Result<CudaFunction, CudaError> {
        let module = self.module(kernel)?;
        let _before = self.enter("loading the kernels")?;
        module
            .load_function(&kernel.function(any))
            .map_err(|error| self.load_error(error))
    }

    fn load_error(&self, error: cudarc::driver::DriverError) -> CudaError {
        CudaError::ModuleLoad {
            ordinal: self.ordinal(),
            name: self.name().to_owned(),
            detail: words(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_in_its_module() {
        let mut all = vec![(Kernel::JitterFrames, &JITTER_FRAMES)];
        for dtype in Dtype::ALL {
            all.push((Kernel::PackBytes(dtype), &PACK_BYTES));
            all.push((Kernel::PackFloats(dtype), &PACK_FLOATS));
        }
        for (kernel, source) in all {
            for any in [false, true] {
                let entry = format!(".entry {}(", kernel.function(any));
                for text in [source.sm80, source.sm52] {
                    assert!(text.contains(&entry), "{entry}");
                    assert!(!text.contains('\0'), "PTX is text");
                }
            }
        }
    }
}
