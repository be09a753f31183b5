//! One start-to-stop: what a run has, and what it makes frames as.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gst::prelude::*;
use gst::subclass::prelude::*;

use super::super::coordinator::{self, Registration, Stage};
use super::super::faults::{Limit, Place};
use super::super::util::lock;
use super::ahead::Ahead;
use super::cache::Cache;
use super::delivery::Delivery;
use super::imp::EpochDecode;
use super::output::Output;
use super::quarantine::{self, Quarantine};
use super::stats::Stats;
use crate::decode::DecodeOptions;
use crate::workers::{self, Client};

/// Frames per second where upstream does not say.
const DEFAULT_FRAMERATE: (i32, i32) = (30, 1);

/// What exists between READY and PAUSED.
pub(super) struct Active {
    pub workers: Arc<Client>,
    pub options: Arc<DecodeOptions>,
    pub bound: usize,
    pub registration: Option<Arc<Registration>>,
    /// Keeps the coordinator's knowledge of the recipe alive.
    pub recipe: Option<Arc<coordinator::Recipe>>,
    /// Keeps the coordinator's door to `ahead` open.
    pub listener: Option<Arc<coordinator::Listener>>,
    /// What is decoded before it is asked for.
    pub ahead: Arc<Ahead>,
    /// Frames of earlier epochs.
    pub cache: Option<Arc<Cache>>,
    /// Keeps the coordinator's door to `cache` open.
    pub keeper: Option<Arc<coordinator::Keeper>>,
    /// The list of what cannot be used.
    pub quarantine: Option<Arc<Quarantine>>,
    pub framerate: gst::Fraction,
    pub output: Option<Arc<Output>>,
    /// It is being agreed upon: neither what it was nor what downstream asks for now is sure to come of it.
    pub agreeing: bool,
    /// Epoch of the last image, and whether it was sent again.
    pub epoch: Option<(u64, bool)>,
    /// Images taken so far: the names of those without a sample meta.
    pub images: u64,
}

impl EpochDecode {
    /// Takes what a run needs; the error message is posted by the caller.
    pub(super) fn prepare(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.settings).clone();
        let usage =
            |error: &dyn std::fmt::Display| gst::error_msg!(gst::ResourceError::Settings, ("{error}"));
        let limit = settings
            .max_errors
            .parse::<Limit>()
            .map_err(|error| usage(&error))?;
        let threads = match settings.threads {
            0 => workers::default_threads().map_err(|error| usage(&error))?,
            threads => usize::try_from(threads).unwrap_or(usize::MAX),
        };
        let workers = Client::new(threads)
            .map_err(|error| gst::error_msg!(gst::ResourceError::NoSpaceLeft, ("{error}")))?;
        let quarantine = settings.quarantine.as_deref().map(quarantine::open).transpose()?;
        let cache = settings.cache().map(Arc::new);
        *lock(&self.stats) = Stats {
            caches: cache.is_some(),
            ..Stats::default()
        };
        self.busy.store(0, Ordering::Relaxed);
        let workers = Arc::new(workers);
        *lock(&self.active) = Some(Active {
            ahead: Arc::new(Ahead::new(workers.clone())),
            workers,
            options: Arc::new(settings.options()),
            bound: threads * 2,
            cache,
            keeper: None,
            quarantine: quarantine.map(Arc::new),
            registration: None,
            recipe: None,
            listener: None,
            framerate: DEFAULT_FRAMERATE.into(),
            output: None,
            agreeing: false,
            epoch: None,
            images: 0,
        });
        *lock(&self.delivery) = Some(Delivery {
            on_error: settings.on_error,
            limit,
            ..Delivery::default()
        });
        self.find_coordinator();
        Ok(())
    }

    /// Registers with the epochsrc upstream, if there is one and that has not been done.
    pub(super) fn find_coordinator(&self) {
        if lock(&self.active)
            .as_ref()
            .is_none_or(|active| active.registration.is_some())
        {
            return;
        }
        let Some(found) = coordinator::find(&self.sink_pad) else {
            return;
        };
        let registration = Arc::new(found.register(Stage::Decode));
        let element = self.obj().downgrade();
        let recipe: Arc<coordinator::Recipe> =
            Arc::new(move || element.upgrade().map_or(0, |element| element.imp().recipe()));
        if let Some(active) = &mut *lock(&self.active) {
            found.set_recipe("epochdecode", &recipe);
            active.recipe = Some(recipe);
            active.listener = Some(active.ahead.listen(&found));
            active.keeper = active.cache.clone().map(|cache| {
                let keeper: Arc<coordinator::Keeper> = Arc::new(move |key| cache.format(key));
                found.add_keeper(&keeper);
                keeper
            });
            active.workers.join(&found);
            active.registration = Some(registration);
        }
    }

    pub(super) fn quarantine(&self) -> Option<Arc<Quarantine>> {
        lock(&self.active)
            .as_ref()
            .and_then(|active| active.quarantine.clone())
    }

    /// Hash of what frames are made as: the options, and the format and size that downstream asks for, which may change at
    /// any time.
    fn recipe(&self) -> u64 {
        let (options, framerate, shape) = {
            let active = lock(&self.active);
            let Some(active) = active.as_ref().filter(|active| !active.agreeing) else {
                return 0;
            };
            // Under the lock, since `output` takes the flag back under it.
            let asked = self.src_pad.pad_flags().contains(gst::PadFlags::NEED_RECONFIGURE);
            let shape = active
                .output
                .as_ref()
                .filter(|_| !asked)
                .map(|output| output.shape());
            (active.options.clone(), active.framerate, shape)
        };
        let shape = shape.or_else(|| {
            let own_size = options.fit == crate::decode::Fit::None;
            let info = Output::agree(&self.src_pad, framerate, own_size).ok()?;
            Some((info.format(), (!own_size).then(|| (info.width(), info.height()))))
        });
        coordinator::hash([format!("{options:?} {shape:?}")])
    }

    pub(super) fn options(&self) -> Option<Arc<DecodeOptions>> {
        lock(&self.active).as_ref().map(|active| active.options.clone())
    }

    pub(super) fn registration(&self) -> Option<Arc<Registration>> {
        lock(&self.active)
            .as_ref()
            .and_then(|active| active.registration.clone())
    }

    /// What frames are made as, renegotiated when downstream asks for it, for an image at `place`.
    pub(super) fn output(&self, place: &Place) -> Result<Arc<Output>, gst::FlowError> {
        let (framerate, own_size, before) = {
            let mut active = lock(&self.active);
            let active = active.as_mut().ok_or(gst::FlowError::Flushing)?;
            let before = if self.src_pad.check_reconfigure() {
                active.output.take()
            } else {
                active.output.clone()
            };
            if let Some(output) = &active.output {
                return Ok(output.clone());
            }
            active.agreeing = true;
            let own_size = active.options.fit == crate::decode::Fit::None;
            (active.framerate, own_size, before)
        };
        let output = Output::negotiate(&self.src_pad, framerate, own_size).map(Arc::new);
        if let Ok(output) = &output
            && before.is_some_and(|before| before.shape() != output.shape())
            && place.sample.prepared
            && let Some(registration) = self.registration()
        {
            // Whatever is asked for later: frames of this epoch are of two kinds now.
            registration.coordinator().spoil(place.sample.epoch);
        }
        if let Some(active) = &mut *lock(&self.active) {
            active.agreeing = false;
            active.output = output.as_ref().ok().cloned();
        }
        output.map_err(|error| {
            self.src_pad.mark_reconfigure();
            gst::element_imp_error!(
                self,
                gst::StreamError::Format,
                ("Cannot agree on a format with the next element: {error}"),
                ["epochdecode gives RGB and BGR frames; put videoconvert behind it for other formats"]
            );
            gst::FlowError::NotNegotiated
        })
    }

    /// Whether the image at `place` is the first that is delivered of its epoch, in this run.
    pub(super) fn begins(&self, place: &Place) -> bool {
        let run = (place.sample.epoch, place.sample.again);
        let mut active = lock(&self.active);
        active
            .as_mut()
            .is_none_or(|active| active.epoch.replace(run) != Some(run))
    }
}
