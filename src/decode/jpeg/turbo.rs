//! The only door to libjpeg-turbo's C API (TurboJPEG 3).
//!
//! The `turbojpeg` crate's own wrapper returns `Err` for every *warning*, which would drop pictures that every other
//! program reads, so the raw functions are used. Two facts about them shape this file:
//!
//! - They return -1 for warnings and errors alike, and `tj3GetErrorCode` says "warning" also for an error that follows a
//!   warning. The message tells: an error replaces the text, later warnings do not (libjpeg formats only the first). All
//!   of libjpeg's warning texts are known ([`is_warning`]).
//! - A libjpeg object keeps quantization and Huffman tables from file to file, so that a file without tables would
//!   decode with those of the file before. A handle is therefore made for each file, which costs microseconds.

use std::ffi::{CStr, c_int};
use std::ptr::NonNull;

use turbojpeg::raw;

/// Most scans of a progressive file. Real ones have about ten; a crafted one can ask for a full pass of CPU time with
/// every few bytes. TurboJPEG's own limit (`TJFLAG_LIMITSCANS`) is the same.
const SCAN_LIMIT: c_int = 500;

/// How samples are laid out in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Three bytes: red, green, blue. Grey is replicated.
    Rgb,
    /// Three bytes: blue, green, red.
    Bgr,
    /// Four bytes as stored; YCCK is converted.
    Cmyk,
}

impl Layout {
    /// Bytes a pixel.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Rgb | Self::Bgr => 3,
            Self::Cmyk => 4,
        }
    }

    const fn raw(self) -> c_int {
        match self {
            Self::Rgb => raw::TJPF_TJPF_RGB,
            Self::Bgr => raw::TJPF_TJPF_BGR,
            Self::Cmyk => raw::TJPF_TJPF_CMYK,
        }
    }
}

/// What libjpeg found in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Info {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Whether there are four channels of ink (CMYK or YCCK), which libjpeg does not turn into RGB.
    pub ink: bool,
}

/// One file being decoded.
pub(super) struct Decompressor<'a> {
    handle: NonNull<std::ffi::c_void>,
    bytes: &'a [u8],
    info: Info,
    /// 1 or 8: the output has the size divided by it, rounded up.
    shrink: u32,
}

impl<'a> Decompressor<'a> {
    /// Opens `bytes` and reads the header. The error is libjpeg's text.
    pub fn new(bytes: &'a [u8]) -> Result<Self, String> {
        // SAFETY: tj3Init takes no pointers; it returns null or a handle that Drop gives back.
        let handle = unsafe { raw::tj3Init(raw::TJINIT_TJINIT_DECOMPRESS as c_int) };
        let handle = NonNull::new(handle).ok_or("libjpeg-turbo could not be initialised (out of memory)")?;
        let info = Info {
            width: 0,
            height: 0,
            ink: false,
        };
        let mut this = Self {
            handle,
            bytes,
            info,
            shrink: 1,
        };
        // Accurate DCT and smooth upsampling are what Pillow and OpenCV use; they are the defaults, and pinned here
        // because the bytes depend on them.
        this.set(raw::TJPARAM_TJPARAM_FASTDCT, 0)?;
        this.set(raw::TJPARAM_TJPARAM_FASTUPSAMPLE, 0)?;
        this.set(raw::TJPARAM_TJPARAM_SCANLIMIT, SCAN_LIMIT)?;
        // No copies of ICC profiles: they are not used.
        this.set(raw::TJPARAM_TJPARAM_SAVEMARKERS, 0)?;
        // SAFETY: the handle is live, and pointer and length describe `bytes`, which outlives `self`.
        let status = unsafe { raw::tj3DecompressHeader(this.raw(), bytes.as_ptr(), bytes.len() as _) };
        if status != 0 {
            let message = this.message();
            if !is_warning(&message) {
                return Err(message);
            }
        }
        let side = |value: c_int| {
            u32::try_from(value)
                .ok()
                .filter(|&side| side > 0)
                .ok_or("no picture in the file")
        };
        this.info = Info {
            width: side(this.get(raw::TJPARAM_TJPARAM_JPEGWIDTH))?,
            height: side(this.get(raw::TJPARAM_TJPARAM_JPEGHEIGHT))?,
            ink: matches!(
                this.get(raw::TJPARAM_TJPARAM_COLORSPACE) as raw::TJCS,
                raw::TJCS_TJCS_CMYK | raw::TJCS_TJCS_YCCK
            ),
        };
        Ok(this)
    }

    /// What the header says.
    pub const fn info(&self) -> Info {
        self.info
    }

    /// Makes the output an eighth of the size, which still reads all of the data. Only for telling whether the data is
    /// whole: these pixels are not those of any other program.
    pub fn shrink(&mut self) -> Result<(), String> {
        // SAFETY: the handle is live; the argument is passed by value.
        let status =
            unsafe { raw::tj3SetScalingFactor(self.raw(), raw::tjscalingfactor { num: 1, denom: 8 }) };
        if status != 0 {
            return Err(self.message());
        }
        self.shrink = 8;
        Ok(())
    }

    /// Width and height of what [`decompress`](Self::decompress) writes.
    pub const fn output_size(&self) -> (u32, u32) {
        (
            self.info.width.div_ceil(self.shrink),
            self.info.height.div_ceil(self.shrink),
        )
    }

    /// Decodes into `out`, rows `stride` bytes apart, the last one without padding. Returns libjpeg's first warning, if
    /// any; the error is its text, after which some rows may have been written.
    pub fn decompress(
        &mut self,
        layout: Layout,
        out: &mut [u8],
        stride: usize,
    ) -> Result<Option<String>, String> {
        let (width, height) = self.output_size();
        let row = width as usize * layout.bytes();
        let needed = stride
            .checked_mul(height as usize - 1)
            .and_then(|before| before.checked_add(row));
        let pitch = c_int::try_from(stride).ok();
        let (Some(needed), Some(pitch)) = (needed, pitch) else {
            return Err(format!("rows of {stride} bytes are too long"));
        };
        if stride < row || out.len() < needed {
            return Err(format!("{} bytes cannot hold {width}x{height} pixels", out.len()));
        }
        // SAFETY: the handle is live and `bytes` is the slice whose header was read; the library reads that header
        // again and so arrives at the same size (`shrink` included). It writes `row` bytes at each multiple of
        // `pitch` below `height * pitch`, and `out` was just shown to hold the last of them.
        let status = unsafe {
            raw::tj3Decompress8(
                self.raw(),
                self.bytes.as_ptr(),
                self.bytes.len() as _,
                out.as_mut_ptr(),
                pitch,
                layout.raw(),
            )
        };
        if status == 0 {
            return Ok(None);
        }
        let message = self.message();
        if is_warning(&message) {
            Ok(Some(message))
        } else {
            Err(message)
        }
    }

    fn raw(&self) -> raw::tjhandle {
        self.handle.as_ptr()
    }

    fn set(&mut self, parameter: raw::TJPARAM, value: c_int) -> Result<(), String> {
        // SAFETY: the handle is live; the other arguments are numbers, which the library checks.
        let status = unsafe { raw::tj3Set(self.raw(), parameter as c_int, value) };
        if status == 0 { Ok(()) } else { Err(self.message()) }
    }

    fn get(&self, parameter: raw::TJPARAM) -> c_int {
        // SAFETY: as in `set`.
        unsafe { raw::tj3Get(self.raw(), parameter as c_int) }
    }

    /// The text of the call that failed last. It may live in a thread-local of the library, so it is copied at once.
    fn message(&self) -> String {
        // SAFETY: the handle is live; the result points to a NUL-terminated buffer of the handle or of this thread,
        // which no other call can change before the copy is made.
        let text = unsafe { CStr::from_ptr(raw::tj3GetErrorStr(self.raw())) };
        text.to_string_lossy().into_owned()
    }
}

impl Drop for Decompressor<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle came from tj3Init, and nothing uses it after this.
        unsafe { raw::tj3Destroy(self.raw()) };
    }
}

/// Whether `message` is one of libjpeg's warnings (the `JWRN_` entries of `jerror.h`) rather than an error.
fn is_warning(message: &str) -> bool {
    const STARTS: [&str; 7] = [
        "Corrupt JPEG data: ",
        "Premature end of JPEG file",
        "Warning: unknown JFIF revision number",
        "Unknown Adobe color transform code",
        "Inconsistent progression sequence",
        "Invalid SOS parameters for sequential JPEG",
        "Application transferred too many scanlines",
    ];
    STARTS.iter().any(|start| message.starts_with(start))
}
