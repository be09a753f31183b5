//! What is negotiated: whose memory the frames are in, and whether nhwcpack does the pixel pass.

use gst_video::prelude::*;

use super::super::gstcuda::CUDA_FEATURE;
use super::super::video::{self, GAINS_FEATURE};

/// Frames that come in.
pub(super) fn sink_template() -> gst::Caps {
    let mut caps = video::cuda_caps();
    caps.merge(video::plain_caps());
    caps
}

/// Frames that go out, what is offered first in front.
pub(super) fn source_template() -> gst::Caps {
    let mut caps = video::gains_caps();
    caps.merge(sink_template());
    caps
}

/// Where the pixel pass is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// Here, on frames in system memory.
    System,
    /// Here, on frames in CUDA memory.
    Cuda,
    /// In nhwcpack, with the gains that travel beside the frame.
    Deferred,
}

impl Pass {
    /// What the caps of the frames that go out say.
    pub fn of(caps: &gst::CapsRef) -> Self {
        let has = |feature| {
            caps.features(0)
                .is_some_and(|features| features.contains(feature))
        };
        if has(GAINS_FEATURE) {
            Self::Deferred
        } else if has(CUDA_FEATURE) {
            Self::Cuda
        } else {
            Self::System
        }
    }
}

/// What the properties allow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    /// To leave the pass to nhwcpack.
    pub deferred: bool,
    /// Frames in CUDA memory.
    pub cuda: bool,
}

/// What can be on the other side of what `caps`, in `direction`, can be on this one: frames in system memory come in, and
/// leave with their gains beside them, where that may be, or finished; frames in CUDA memory stay there.
pub(super) fn transform(direction: gst::PadDirection, caps: &gst::Caps, allowed: Allowed) -> gst::Caps {
    let (mut with_gains, mut plain, mut cuda) = (
        gst::Caps::new_empty(),
        gst::Caps::new_empty(),
        gst::Caps::new_empty(),
    );
    for (structure, features) in caps.iter_with_features() {
        let structure = structure.to_owned();
        if features.contains(CUDA_FEATURE) {
            cuda.make_mut()
                .append_structure_full(structure, Some(video::cuda_features()));
        } else {
            with_gains
                .make_mut()
                .append_structure_full(structure.clone(), Some(video::gains_features()));
            plain.make_mut().append_structure(structure);
        }
    }
    let mut result = gst::Caps::new_empty();
    if direction == gst::PadDirection::Sink && allowed.deferred {
        result.merge(with_gains);
    }
    // First, since cudaupload and cudadownload let either kind through, and one of them stands there for a reason.
    if allowed.cuda {
        result.merge(cuda);
    }
    result.merge(plain);
    result
}

/// Whether what follows `pad` does the pixel pass. Only a peer that names the feature knows it. One that takes anything
/// (filesink, an appsink without caps), or any feature (videoconvert, videorate, and what stands behind them), gets finished
/// pixels.
pub(super) fn is_deferred_behind(pad: &gst::Pad) -> bool {
    pad.peer_query_caps(None)
        .iter_with_features()
        .any(|(_, features)| !features.is_any() && features.contains(GAINS_FEATURE))
}

/// `caps` without those that leave the pass to nhwcpack.
pub(super) fn finished(caps: &gst::Caps) -> gst::Caps {
    caps.iter_with_features()
        .filter(|(_, features)| !features.contains(GAINS_FEATURE))
        .map(|(structure, features)| (structure.to_owned(), features.to_owned()))
        .collect()
}
