//! The fused pass for programs that have their pixels in device memory.
//!
//! Lock order: that of `Uploads` is taken alone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::result;
use cudarc::driver::sys;
use cudarc::driver::sys::CUpointer_attribute_enum as PointerAttribute;

use super::device::Device;
use super::error::CudaError;
use super::kernels::Kernel;
use super::launch::{Frames, Planes};
use super::memory::{DeviceMemory, PinnedMemory};
use super::stream::{Event, Stream};
use crate::color::{Gains, PixelFormat};
use crate::tensor::{Dtype, PackSpec};

/// Images in device memory, described as PyTorch and DLPack do: address, element type, shape and strides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Images {
    pointer: u64,
    dtype: Dtype,
    shape: [usize; 4],
    strides: [i64; 4],
    bgr: bool,
}

impl Images {
    /// `shape` is N, C, H, W, whatever the memory's order; `strides` are in elements. In PyTorch these are
    /// `x.data_ptr()`, `x.dtype`, `x.shape` and `x.stride()` of a tensor [N, C, H, W] (of `x.permute(0, 3, 1, 2)`, for
    /// one that is [N, H, W, C]).
    ///
    /// # Safety
    /// All elements are device memory, which stays alive and unwritten until the stream that is launched on has done
    /// its work.
    pub unsafe fn from_raw(pointer: u64, dtype: Dtype, shape: [usize; 4], strides: [i64; 4]) -> Self {
        Self {
            pointer,
            dtype,
            shape,
            strides,
            bgr: false,
        }
    }

    /// The channels are blue, green, red.
    #[must_use]
    pub fn bgr(self) -> Self {
        Self { bgr: true, ..self }
    }
}

/// Gains of a launch.
#[derive(Clone, Copy, Debug)]
pub enum LaunchGains<'a> {
    /// No jitter: float32 is quantized, uint8 is as it is.
    None,
    /// One for each sample. They are copied to the device in the order of the stream, and freed there behind the launch.
    Host(&'a [Gains]),
    /// N × 3 contiguous float64 in device memory.
    Device(DeviceGains),
}

/// Gains in device memory.
#[derive(Clone, Copy, Debug)]
pub struct DeviceGains {
    pointer: u64,
    samples: usize,
}

impl DeviceGains {
    /// Hue, saturation, value of each sample, float64, finite as float32.
    ///
    /// # Safety
    /// `pointer` is that much device memory, aligned to 8 bytes, which stays alive and unwritten until the stream that is
    /// launched on has done its work.
    pub unsafe fn from_raw(pointer: u64, samples: usize) -> Self {
        Self { pointer, samples }
    }
}

/// Where a batch is written to.
#[derive(Debug)]
pub struct Output {
    pointer: u64,
    bytes: usize,
}

impl Output {
    /// `bytes` bytes at `pointer`, for a contiguous batch.
    ///
    /// # Safety
    /// It is device memory, aligned to the batch's elements (16 bytes are the fastest), which stays alive and is used by
    /// nobody else until the stream that is launched on has done its work.
    pub unsafe fn from_raw(pointer: u64, bytes: usize) -> Self {
        Self { pointer, bytes }
    }
}

/// Why a launch is refused: the caller keeps the path it had.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A float32 tensor with gaps or in another order, or a uint8 one that no frame is laid out like.
    #[error(
        "non-contiguous: {dtype} images of shape {shape:?} (N, C, H, W) have strides {strides:?}. float32 has to be contiguous \
         (tensor.contiguous()); uint8 may have padded rows, with pixels of 3 or 4 bytes or with three planes"
    )]
    NonContiguous {
        /// Of the elements.
        dtype: Dtype,
        /// N, C, H, W.
        shape: [usize; 4],
        /// In elements.
        strides: [i64; 4],
    },
    /// Neither uint8 nor float32.
    #[error(
        "precision: images are {dtype}; uint8 and float32 are taken, any dtype can be asked for as output"
    )]
    Precision {
        /// Of the elements.
        dtype: Dtype,
    },
    /// The stream is being captured into a graph, which would play the same gains again and again.
    #[error(
        "capturing: the stream is being captured into a CUDA graph, which would repeat the gains of this launch; launch outside of the capture"
    )]
    Capturing,
    /// Shapes that do not belong together.
    #[error("{what}: {actual}, but {expected} is needed")]
    Mismatch {
        /// What is wrong.
        what: &'static str,
        /// As passed.
        actual: usize,
        /// As it should be.
        expected: usize,
    },
    /// Memory that the device does not have.
    #[error(
        "{what}: not on cuda:{ordinal}. Pass memory of the device that the stream is on, not of the host"
    )]
    NotOnDevice {
        /// `the images`, `the output`, `the gains`.
        what: &'static str,
        /// Of the stream's device.
        ordinal: usize,
    },
    /// The driver.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

/// The fused pass: jitter, quantize, restore, normalise, cast and layout in one launch, from device memory to device memory.
///
/// Byte for byte what [`color::fused::pack`](crate::color::fused::pack) gives on the CPU. Nothing is allocated but, for gains in host
/// memory, 24 bytes a sample on the device in the order of the stream, and as many page-locked bytes for each launch whose
/// gains are not there yet (used again later). The calling thread waits for nothing.
///
/// ```no_run
/// use epochfeed::color::Gains;
/// use epochfeed::cuda::{Device, FusedColor, Images, LaunchGains, Output, Stream};
/// use epochfeed::tensor::{Dtype, PackSpec};
///
/// # fn step(images: u64, batch: u64, cuda_stream: *mut std::ffi::c_void) -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::open(0)?;
/// let fused = FusedColor::new(&device, PackSpec::default())?; // float32, channels last
/// // SAFETY: the trainer's stream and tensors, all alive until the stream has done this.
/// let (stream, images, output) = unsafe {
///     (
///         Stream::borrow(&device, cuda_stream),
///         Images::from_raw(images, Dtype::Uint8, [2, 3, 640, 640], [640 * 640 * 3, 1, 640 * 3, 3]),
///         Output::from_raw(batch, 2 * 640 * 640 * 3 * 4),
///     )
/// };
/// let gains = [Gains::new(0.01, 0.2, -0.1)?, Gains::ZERO];
/// fused.launch(&stream, &images, LaunchGains::Host(&gains), &output)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FusedColor {
    device: Arc<Device>,
    spec: PackSpec,
    uploads: Arc<Uploads>,
}

/// What was uploaded from and may be still.
#[derive(Debug, Default)]
struct Uploads(Mutex<Vec<Upload>>);

/// Gains on their way to the device, in memory that a copy is asynchronous from.
#[derive(Debug)]
struct Upload {
    memory: PinnedMemory,
    /// When they are there.
    copied: Event,
}

impl Uploads {
    fn lock(&self) -> MutexGuard<'_, Vec<Upload>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory of at least `bytes` from which all has been copied.
    fn used(&self, bytes: usize) -> Option<PinnedMemory> {
        let mut uploads = self.lock();
        let place = uploads
            .iter()
            .position(|upload| upload.memory.len() >= bytes && upload.copied.is_done().unwrap_or(false))?;
        Some(uploads.swap_remove(place).memory)
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        for upload in self.lock().iter() {
            // Where waiting fails the context is lost, and nothing copies.
            let _ = upload.copied.synchronize();
        }
    }
}

/// Images as a kernel takes them.
enum Input {
    Frames(Frames),
    Planes(Planes),
}

impl FusedColor {
    /// For batches as `spec` says. Loads the kernels.
    ///
    /// # Errors
    /// [`CudaError::ModuleLoad`].
    pub fn new(device: &Arc<Device>, spec: PackSpec) -> Result<Self, CudaError> {
        for kernel in [Kernel::PackBytes(spec.dtype()), Kernel::PackFloats(spec.dtype())] {
            device.function(kernel, false)?;
        }
        Ok(Self {
            device: device.clone(),
            spec,
            uploads: Arc::default(),
        })
    }

    /// What the batches are.
    pub fn spec(&self) -> &PackSpec {
        &self.spec
    }

    /// Queues one launch on `stream`: `images` jittered by `gains` into `output`.
    ///
    /// # Errors
    /// A refusal that names its reason, before anything is queued; see [`LaunchError`].
    pub fn launch(
        &self,
        stream: &Stream,
        images: &Images,
        gains: LaunchGains<'_>,
        output: &Output,
    ) -> Result<(), LaunchError> {
        let batch = images.shape[0];
        let input = input(images)?;
        let [_, _, height, width] = images.shape;
        let expected = self.spec.sample_bytes(width, height).saturating_mul(batch);
        let mismatch = |what, actual, expected| LaunchError::Mismatch {
            what,
            actual,
            expected,
        };
        if output.bytes != expected {
            return Err(mismatch("the bytes of the output", output.bytes, expected));
        }
        let align = self.spec.dtype().size();
        if !output.pointer.is_multiple_of(align as u64) {
            return Err(mismatch("the alignment of the output", 1, align));
        }
        match gains {
            LaunchGains::Host(gains) if gains.len() != batch => {
                return Err(mismatch("the number of gains", gains.len(), batch));
            }
            LaunchGains::Device(gains) if gains.samples != batch => {
                return Err(mismatch("the number of gains", gains.samples, batch));
            }
            _ => (),
        }
        if stream.device().raw_context() != self.device.raw_context() {
            let ordinal = self.device.ordinal();
            return Err(LaunchError::NotOnDevice {
                what: "the stream",
                ordinal,
            });
        }
        if stream.is_capturing()? {
            return Err(LaunchError::Capturing);
        }
        if batch == 0 {
            // Nothing has no place: the pointers of empty tensors are null.
            return Ok(());
        }
        self.check_place("the images", images.pointer)?;
        self.check_place("the output", output.pointer)?;
        let (uploaded, gains) = match gains {
            LaunchGains::None => (None, 0),
            LaunchGains::Device(gains) => {
                self.check_place("the gains", gains.pointer)?;
                (None, gains.pointer)
            }
            LaunchGains::Host(gains) => {
                let memory = self.upload(stream, gains)?;
                let pointer = memory.pointer();
                (Some(memory), pointer)
            }
        };
        // SAFETY: who made the descriptions has promised that the memory is there and stays; the sizes are checked above.
        unsafe {
            match &input {
                Input::Frames(frames) => stream.pack_frames(frames, gains, output.pointer, &self.spec)?,
                Input::Planes(planes) => stream.pack_planes(planes, gains, output.pointer, &self.spec)?,
            }
        }
        // Freed in the order of the stream, so behind the launch.
        drop(uploaded);
        Ok(())
    }

    /// Queues the copy of `gains`, and the allocation of where they go to.
    fn upload(&self, stream: &Stream, gains: &[Gains]) -> Result<DeviceMemory, CudaError> {
        let values: Vec<[f64; 3]> = gains
            .iter()
            .map(|gains| [gains.hue, gains.saturation, gains.value])
            .collect();
        let bytes = size_of_val(values.as_slice());
        let target = DeviceMemory::new(stream, bytes)?;
        let memory = match self.uploads.used(bytes) {
            Some(memory) => memory,
            None => PinnedMemory::new(&self.device, bytes)?,
        };
        // SAFETY: nobody else has the memory, which is as large and aligned to a page; a copy from it has ended.
        let place = unsafe {
            memory
                .as_ptr()
                .copy_from_nonoverlapping(values.as_ptr().cast(), bytes);
            std::slice::from_raw_parts(memory.as_ptr(), bytes)
        };
        let queued = self.device.run("copying the gains", || {
            // SAFETY: the target is of that size and fresh in this stream's order; the memory is kept until the copy has
            // ended, below.
            unsafe { result::memcpy_htod_async(target.pointer(), place, stream.inner().cu_stream()) }
        });
        match queued.and_then(|()| stream.record()) {
            Ok(copied) => {
                self.uploads.lock().push(Upload { memory, copied });
                Ok(target)
            }
            Err(error) => {
                // It may be under way all the same.
                let _ = stream.synchronize();
                Err(error)
            }
        }
    }

    /// Whether `pointer` is this device's.
    fn check_place(&self, what: &'static str, pointer: u64) -> Result<(), LaunchError> {
        let (mut ordinal, mut kind) = (-1_i32, 0_u32);
        let of_device = PointerAttribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        // Page-locked memory has a device, too.
        let of_kind = PointerAttribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        let known = self.device.run("looking at a pointer", || {
            // SAFETY: both attributes are 32-bit integers, as `ordinal` and `kind` are.
            unsafe {
                sys::cuPointerGetAttribute((&raw mut ordinal).cast(), of_device, pointer).result()?;
                sys::cuPointerGetAttribute((&raw mut kind).cast(), of_kind, pointer).result()
            }
        });
        let is_device = kind == sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as u32;
        if known.is_err() || !is_device || usize::try_from(ordinal) != Ok(self.device.ordinal()) {
            let ordinal = self.device.ordinal();
            return Err(LaunchError::NotOnDevice { what, ordinal });
        }
        Ok(())
    }
}

/// What a kernel makes of `images`.
fn input(images: &Images) -> Result<Input, LaunchError> {
    let Images {
        pointer,
        dtype,
        shape,
        strides,
        bgr,
    } = *images;
    let [batch, channels, height, width] = shape;
    let refused = LaunchError::NonContiguous {
        dtype,
        shape,
        strides,
    };
    let mismatch = |what, actual, expected| LaunchError::Mismatch {
        what,
        actual,
        expected,
    };
    if width == 0 || height == 0 {
        return Err(mismatch("a side of the images", 0, 1));
    }
    match dtype {
        Dtype::Float16 | Dtype::Bfloat16 => Err(LaunchError::Precision { dtype }),
        Dtype::Float32 => {
            if channels != 3 {
                return Err(mismatch("the number of channels", channels, 3));
            }
            let (w, h) = (width as i64, height as i64);
            let contiguous = [w.saturating_mul(h).saturating_mul(3), w.saturating_mul(h), w, 1];
            // The stride of an axis of length 1 says nothing, and PyTorch writes anything there.
            let as_expected = (0..4).all(|axis| shape[axis] == 1 || strides[axis] == contiguous[axis]);
            if !as_expected || bgr {
                return Err(refused);
            }
            if !pointer.is_multiple_of(4) {
                return Err(mismatch("the alignment of the images", 1, 4));
            }
            Ok(Input::Planes(Planes {
                width,
                height,
                batch,
                base: pointer,
            }))
        }
        Dtype::Uint8 => {
            let [sample, channel, row, pixel] = strides;
            let one_pixel = width == 1;
            let format = match (channels, channel) {
                (3 | 4, 1) if pixel == 4 || (one_pixel && channels == 4) => PixelFormat::Rgbx,
                (3, 1) if pixel == 3 || one_pixel => PixelFormat::Rgb,
                (3, _) if pixel == 1 || one_pixel => PixelFormat::Rgbp,
                (3 | 4, _) => return Err(refused),
                _ => return Err(mismatch("the number of channels", channels, 3)),
            };
            let format = match (format, bgr) {
                (PixelFormat::Rgb, true) => PixelFormat::Bgr,
                (PixelFormat::Rgbx, true) => PixelFormat::Bgrx,
                (PixelFormat::Rgbp, true) => return Err(refused),
                (format, false) => format,
                _ => return Err(refused),
            };
            if sample < 0 || row < 0 || (format == PixelFormat::Rgbp && channel < 0) {
                return Err(refused);
            }
            Ok(Input::Frames(Frames {
                format,
                width,
                height,
                batch,
                base: pointer,
                strides: [sample, if format == PixelFormat::Rgbp { channel } else { 0 }, row],
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn images(dtype: Dtype, shape: [usize; 4], strides: [i64; 4]) -> Images {
        // SAFETY: nothing is launched on it.
        unsafe { Images::from_raw(4096, dtype, shape, strides) }
    }

    fn format(images: Images) -> Option<PixelFormat> {
        match input(&images) {
            Ok(Input::Frames(frames)) => Some(frames.format),
            _ => None,
        }
    }

    #[test]
    fn uint8_may_be_strided() {
        let of = |channels, strides| images(Dtype::Uint8, [2, channels, 4, 5], strides);
        let nhwc = of(3, [60, 1, 15, 3]);
        assert_eq!(format(nhwc), Some(PixelFormat::Rgb));
        assert_eq!(format(nhwc.bgr()), Some(PixelFormat::Bgr));
        assert_eq!(
            format(of(3, [72, 1, 18, 3])),
            Some(PixelFormat::Rgb),
            "padded rows"
        );
        assert_eq!(format(of(4, [80, 1, 20, 4])), Some(PixelFormat::Rgbx));
        assert_eq!(
            format(of(3, [80, 1, 20, 4])),
            Some(PixelFormat::Rgbx),
            "a view of RGBA"
        );
        assert_eq!(format(of(3, [60, 20, 5, 1])), Some(PixelFormat::Rgbp));
        for strides in [[60, 1, 15, 5], [60, 1, -15, 3], [120, 40, 10, 2]] {
            let error = input(&of(3, strides)).err().unwrap().to_string();
            assert!(error.starts_with("non-contiguous: uint8"), "{error}");
        }
    }

    #[test]
    fn float32_has_to_be_contiguous() {
        let of = |strides| input(&images(Dtype::Float32, [2, 3, 4, 5], strides));
        assert!(matches!(of([60, 20, 5, 1]), Ok(Input::Planes(_))));
        for strides in [[60, 1, 15, 3], [120, 20, 5, 1], [60, 24, 6, 1], [0, 20, 5, 1]] {
            assert!(
                matches!(of(strides), Err(LaunchError::NonContiguous { .. })),
                "{strides:?}"
            );
        }
        let one = images(Dtype::Float32, [1, 3, 1, 5], [7, 5, 9, 1]);
        assert!(input(&one).is_ok(), "strides of axes of length 1 say nothing");
    }

    #[test]
    fn other_types_are_refused_by_name() {
        for dtype in [Dtype::Float16, Dtype::Bfloat16] {
            let error = input(&images(dtype, [1, 3, 2, 2], [12, 4, 2, 1])).err().unwrap();
            assert!(error.to_string().starts_with("precision: images are "), "{error}");
        }
        let grey = input(&images(Dtype::Uint8, [1, 1, 2, 2], [4, 4, 2, 1]))
            .err()
            .unwrap();
        assert_eq!(grey.to_string(), "the number of channels: 1, but 3 is needed");
    }
}
