//! What the coordinator upstream learns from this element: its settings, and the frames that were consumed here.

use std::sync::Arc;

use gst::prelude::*;
use gst::subclass::prelude::*;

use super::super::super::coordinator::{self, Stage};
use super::super::super::meta::SampleMeta;
use super::super::super::util::lock;
use super::super::gains::Settings;
use super::HsvQuantize;

/// This element's name in the recipe.
const RECIPE: &str = "hsvquantize";

fn settings_hash(settings: &Settings) -> u64 {
    coordinator::hash([format!("{settings:?}")])
}

impl HsvQuantize {
    /// Registers with the epochsrc upstream, if there is one, and lets it know what the properties are whenever it asks:
    /// they may change while frames that were made with others are held.
    pub(super) fn find_coordinator(&self) {
        let pad = self.obj().static_pad("sink");
        let Some(coordinator) = pad.and_then(|pad| coordinator::find(&pad)) else {
            return;
        };
        let element = self.obj().downgrade();
        let recipe: Arc<coordinator::Recipe> = Arc::new(move || {
            element.upgrade().map_or(0, |element| {
                let settings = lock(&element.imp().settings).clone();
                settings_hash(&settings)
            })
        });
        coordinator.set_recipe(RECIPE, &recipe);
        *lock(&self.recipe) = Some(recipe);
        *lock(&self.registration) = Some(Arc::new(coordinator.register(Stage::Color)));
    }

    /// Where nothing of ours follows, a frame that was pushed counts as consumed.
    pub(super) fn acknowledge_passed(&self) {
        let passed = lock(&self.passed).take();
        let registration = lock(&self.registration).clone();
        if let (Some(sample), Some(registration)) = (passed, registration)
            && let Err(error) = registration.acknowledge_sample(&sample)
        {
            error.warn(&*self.obj());
        }
    }

    /// The properties may be others than when the frame was read, and again those by the time that its epoch is asked for.
    pub(super) fn check_recipe(&self, sample: &SampleMeta, settings: &Settings) {
        let Some(registration) = lock(&self.registration).clone() else {
            return;
        };
        let coordinator = registration.coordinator();
        if coordinator.recipe_with(Some((RECIPE, settings_hash(settings)))) != sample.recipe {
            coordinator.spoil(sample.epoch);
        }
    }
}
