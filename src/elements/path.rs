//! Which way the pixels take, why, and how an element says so.

use gst::prelude::*;

use crate::color::fused;
use crate::cuda::CudaError;

/// How the pixels are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "EpochfeedPath")]
pub enum Path {
    /// One pass on the CPU.
    #[default]
    #[enum_value(name = "Fused CPU: one read and one write a pixel", nick = "fused-cpu")]
    FusedCpu,
    /// One pass on the GPU.
    #[enum_value(name = "Fused CUDA: one read and one write a pixel", nick = "fused-cuda")]
    FusedCuda,
    /// A pass an operation.
    #[enum_value(name = "Native: one pass an operation", nick = "native")]
    Native,
}

/// Why the path is what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, glib::Enum)]
#[enum_type(name = "EpochfeedPathReason")]
pub enum PathReason {
    /// The path is the one that was asked for.
    #[default]
    #[enum_value(name = "OK: the fused path runs where it was asked for", nick = "ok")]
    Ok,
    /// The property says so.
    #[enum_value(name = "Fuse off: fuse=false", nick = "fuse-off")]
    FuseOff,
    /// There is no CUDA driver.
    #[enum_value(name = "No driver: there is no CUDA driver", nick = "no-driver")]
    NoDriver,
    /// There is a driver, and no device that it can use.
    #[enum_value(name = "No device: no CUDA device can be used", nick = "no-device")]
    NoDevice,
    /// The device does not take the kernels.
    #[enum_value(
        name = "Module load: the CUDA device does not take the kernels",
        nick = "module-load"
    )]
    ModuleLoad,
    /// A tensor has gaps.
    #[enum_value(name = "Non-contiguous: the tensor has gaps", nick = "non-contiguous")]
    NonContiguous,
    /// A tensor is of a type that the kernels do not read.
    #[enum_value(name = "Precision: neither uint8 nor float32", nick = "precision")]
    Precision,
    /// The stream records a graph.
    #[enum_value(name = "Capturing: the CUDA stream is being captured", nick = "capturing")]
    Capturing,
}

impl From<&CudaError> for PathReason {
    fn from(error: &CudaError) -> Self {
        match error {
            CudaError::NoDriver { .. } => Self::NoDriver,
            CudaError::ModuleLoad { .. } => Self::ModuleLoad,
            // One that is there and has no memory left, say, is none either.
            _ => Self::NoDevice,
        }
    }
}

/// A path with its reason and place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    pub path: Path,
    pub reason: PathReason,
    /// The CUDA device; `None` on the CPU.
    pub ordinal: Option<usize>,
    /// What stands behind the reason.
    pub detail: Option<String>,
}

impl Choice {
    /// A pass an operation, as `fuse=false` asks for.
    pub fn native() -> Self {
        Self {
            path: Path::Native,
            reason: PathReason::FuseOff,
            ..Self::default()
        }
    }

    /// The CPU, because that is what was asked for.
    pub fn cpu() -> Self {
        Self::default()
    }

    /// The CPU, for want of a GPU.
    pub fn cpu_because(error: &CudaError) -> Self {
        Self {
            reason: error.into(),
            detail: Some(error.to_string()),
            ..Self::default()
        }
    }

    /// A GPU.
    pub fn cuda(ordinal: usize) -> Self {
        Self {
            path: Path::FusedCuda,
            ordinal: Some(ordinal),
            ..Self::default()
        }
    }

    /// As the property `device` names it.
    pub fn device(&self) -> String {
        self.ordinal
            .map_or_else(|| "cpu".to_owned(), |ordinal| format!("cuda:{ordinal}"))
    }

    /// Posts the element message `epochfeed-path`. With `deferred`, the pass is another element's, further on.
    pub fn post(&self, element: &impl IsA<gst::Element>, deferred: bool) {
        let backend = match self.path {
            Path::FusedCuda => "cuda",
            Path::FusedCpu | Path::Native => fused::backend(),
        };
        let structure = gst::Structure::builder("epochfeed-path")
            .field("path", nick(self.path))
            .field("path-reason", nick(self.reason))
            .field("backend", backend)
            .field("device", self.device())
            .field("deferred", deferred)
            .field_if_some("detail", self.detail.as_deref())
            .build();
        let message = gst::message::Element::builder(structure).src(element.upcast_ref::<gst::Element>());
        // Where there is no bus, nobody listens.
        let _ = element.post_message(message.build());
    }
}

/// Name of the query, and of its answer's only field.
const QUERY: &str = "epochfeed-path";
const FIELD: &str = "choice";

/// A choice as a value of GObject's type system.
#[derive(Clone, Debug, glib::Boxed)]
#[boxed_type(name = "EpochfeedPathChoice")]
struct Boxed(Choice);

impl Choice {
    /// What the element behind the source pad `pad` has chosen that does the pixel pass, if there is one.
    pub fn behind(pad: &gst::Pad) -> Option<Self> {
        let mut query = gst::query::Custom::new(gst::Structure::new_empty(QUERY));
        if !pad.peer_query(&mut query) {
            return None;
        }
        query.structure()?.get::<Boxed>(FIELD).ok().map(|boxed| boxed.0)
    }

    /// Answers [`Choice::behind`]; false if it is another query.
    pub fn answer(&self, query: &mut gst::QueryRef) -> bool {
        let gst::QueryViewMut::Custom(query) = query.view_mut() else {
            return false;
        };
        let is_ours = query
            .structure()
            .is_some_and(|structure| structure.name() == QUERY);
        if is_ours {
            query.structure_mut().set(FIELD, Boxed(self.clone()));
        }
        is_ours
    }
}

fn nick(value: impl ToValue) -> String {
    glib::EnumValue::from_value(&value.to_value())
        .map(|(_, value)| value.nick().to_owned())
        .unwrap_or_default()
}
