//! Where the pixel pass is done.

use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::subclass::prelude::*;

use super::super::super::device::{DeviceError, Wanted};
use super::super::super::gstcuda::{self, Context};
use super::super::super::path::Choice;
use super::super::super::util::lock;
use super::super::caps::{self, Allowed, Pass};
use super::super::pixels::{Pixels, PixelsError};
use super::{CAT, HsvQuantize, Stream};
use crate::color::{Gains, native};

impl HsvQuantize {
    pub(super) fn wanted(&self) -> Result<Wanted, DeviceError> {
        lock(&self.device).parse()
    }

    fn fuse(&self) -> bool {
        lock(&self.settings).fuse
    }

    /// What is known of path and device; what the properties ask for until a stream has shown more.
    pub(super) fn choice(&self) -> Choice {
        let chosen = lock(&self.chosen).clone();
        chosen.unwrap_or_else(|| {
            if self.fuse() {
                Choice::cpu()
            } else {
                Choice::native()
            }
        })
    }

    /// What may be negotiated. Nothing of CUDA is touched for that.
    pub(super) fn allowed(&self) -> Allowed {
        let fuse = self.fuse();
        Allowed {
            deferred: fuse,
            cuda: fuse && self.wanted().is_ok_and(|wanted| wanted != Wanted::Cpu),
        }
    }

    /// Whether nhwcpack follows and does the pixel pass.
    pub(super) fn is_deferred_behind(&self) -> bool {
        self.fuse()
            && self
                .obj()
                .static_pad("src")
                .is_some_and(|pad| caps::is_deferred_behind(&pad))
    }

    /// Prepares for frames like `info` that are worked on in `pass`.
    pub(super) fn prepare(&self, info: gst_video::VideoInfo, pass: Pass) -> Result<(), PixelsError> {
        // What worked on the last frames goes on, if it can; else it is gone before another device is opened.
        let before = lock(&self.stream).take().filter(|before| before.pass == pass);
        let (pixels, choice) = match before {
            Some(before) => (before.pixels, None),
            None => self.choose(pass)?,
        };
        *lock(&self.stream) = Some(Stream { info, pass, pixels });
        if let Some(choice) = choice {
            self.announce(choice, pass == Pass::Deferred);
        }
        Ok(())
    }

    /// What works on the pixels of frames, and where, if that is known already.
    fn choose(&self, pass: Pass) -> Result<(Option<Pixels>, Option<Choice>), PixelsError> {
        let (pixels, choice) = match pass {
            // No device is opened for what nhwcpack does on its own.
            Pass::Deferred => return Ok((None, Some(self.choice_behind()))),
            // The first frame shows which device it is on.
            Pass::Cuda => return Ok((Some(Pixels::resident(self.wanted()?)?), None)),
            Pass::System if !self.fuse() => (Pixels::Native(native::Scratch::default()), Choice::native()),
            Pass::System => Pixels::system(self.wanted()?, Context::given_to(&*self.obj()))?,
        };
        Ok((Some(pixels), Some(choice)))
    }

    /// What nhwcpack has chosen.
    fn choice_behind(&self) -> Choice {
        let pad = self.obj().static_pad("src");
        pad.and_then(|pad| Choice::behind(&pad)).unwrap_or_default()
    }

    fn announce(&self, choice: Choice, deferred: bool) {
        gst::info!(CAT, imp = self, "{choice:?}, deferred: {deferred}");
        *lock(&self.chosen) = Some(choice.clone());
        choice.post(&*self.obj(), deferred);
    }

    /// Changes the pixels in place; false if nhwcpack does that.
    pub(super) fn jitter(&self, frame: &mut gst::BufferRef, gains: Gains) -> Result<bool, PixelsError> {
        let chosen = match &mut *lock(&self.stream) {
            Some(Stream {
                info,
                pixels: Some(pixels),
                ..
            }) => pixels.jitter(frame, info, gains)?,
            Some(Stream { pixels: None, .. }) => return Ok(false),
            None => return Err(PixelsError::NoCaps),
        };
        if let Some(choice) = chosen {
            self.announce(choice, false);
        }
        Ok(true)
    }

    pub(super) fn error_message(&self, what: &str, error: &PixelsError) -> gst::ErrorMessage {
        match error {
            PixelsError::Frame(_) => {
                gst::error_msg!(gst::StreamError::Format, ("{what} cannot be jittered: {error}"))
            }
            _ => gst::error_msg!(gst::ResourceError::Failed, ("{what} cannot be jittered: {error}")),
        }
    }

    /// Answers an element that asks for a CUDA context, in any state. The application's comes first, then what the elements
    /// on the other side say, since they may have one already; else it is the primary context of the device.
    pub(super) fn answer_context(&self, direction: gst::PadDirection, query: &mut gst::QueryRef) -> bool {
        if !self.allowed().cuda {
            return BaseTransformImplExt::parent_query(self, direction, query);
        }
        if let Some(context) = Context::given_to(&*self.obj()) {
            return gstcuda::answer(query, &context);
        }
        if BaseTransformImplExt::parent_query(self, direction, query) {
            return true;
        }
        // The device is then nhwcpack's to choose.
        if self.is_deferred_behind() {
            return false;
        }
        match self.primary_context() {
            Ok(Some(context)) => gstcuda::answer(query, &context),
            Ok(None) => false,
            Err(error) => {
                gst::info!(CAT, imp = self, "No CUDA context to share: {error}");
                false
            }
        }
    }

    fn primary_context(&self) -> Result<Option<Context>, PixelsError> {
        gstcuda::require()?;
        let (device, _) = self.wanted()?.open(|device| Ok(device.clone()))?;
        Ok(device.map(|device| Context::of_device(&device)).transpose()?)
    }
}
