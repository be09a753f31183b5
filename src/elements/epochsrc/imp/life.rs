//! Start and stop.

use std::sync::Arc;

use gst::prelude::*;
use gst::subclass::prelude::*;

use super::super::super::coordinator;
use super::super::super::util::lock;
use super::super::run::Run;
use super::super::settings::Settings;
use super::stats::Stats;
use super::{CAT, EpochSrc};
use crate::dataset::Finding;

impl EpochSrc {
    /// Opens the dataset, and makes the run known.
    pub(super) fn begin(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.settings).clone();
        let state = self.resume_state(&settings)?;
        let run = Run::prepare(&settings, state.as_deref())?;
        let _ = self.obj().post_message(self.dataset_message(&run));
        if run.restarted {
            gst::element_imp_warning!(
                self,
                gst::ResourceError::Settings,
                (
                    "The state is of another dataset: epoch {} begins again with the one in {}",
                    run.reader.epoch(),
                    run.reader.dataset.location().display()
                ),
                [
                    "Restore the dataset to go on where the state is, or set on-change=error to be stopped here"
                ]
            );
        }
        *lock(&self.stats) = Stats::default();
        self.coordinator.begin(
            coordinator::Run {
                drawn: run.drawn(),
                state_location: settings.state_location,
                reload: settings.reload,
            },
            run.reader.epoch(),
            run.last,
            run.resumed.clone(),
        );
        // One that was loaded is where the consumer is until it acknowledges more.
        self.coordinator.set_state(state);
        *lock(&self.start_over) = false;
        self.set_recipe(&run);
        *lock(&self.reads) = Some(run.reader.interrupter());
        *lock(&self.run) = Some(run);
        Ok(())
    }

    /// Drops the run.
    pub(super) fn end(&self) {
        let run = lock(&self.run).take();
        drop(run);
        *lock(&self.reads) = None;
        self.coordinator.stop();
    }

    /// Says which dataset is drawn from, and what the checks found.
    pub(super) fn dataset_message(&self, run: &Run) -> gst::Message {
        let dataset = &run.reader.dataset;
        let checks = dataset.checks();
        gst::info!(CAT, imp = self, "{}:\n{checks}", dataset.location().display());
        let mut fields = gst::Structure::builder("epochfeed-dataset")
            .field("location", dataset.location().to_string_lossy().as_ref())
            .field("samples", dataset.len())
            .field("excluded", dataset.excluded())
            .field("fingerprint", dataset.fingerprint())
            .field("boxes", checks.boxes)
            .field("classes", gst::Array::new(dataset.class_names()))
            .field("checks", checks.to_string())
            .build();
        for finding in Finding::ALL {
            fields.set(finding.name(), checks.count(finding));
        }
        gst::message::Element::builder(fields).src(&*self.obj()).build()
    }

    /// Makes what this element contributes to the pixels known.
    pub(super) fn set_recipe(&self, run: &Run) {
        let hash = run.recipe();
        let recipe: Arc<coordinator::Recipe> = Arc::new(move || hash);
        self.coordinator.set_recipe("epochsrc", &recipe);
        *lock(&self.recipe) = Some(recipe);
    }

    /// The state this run resumes from: what was set or kept, else the file.
    fn resume_state(&self, settings: &Settings) -> Result<Option<String>, gst::ErrorMessage> {
        let start_over = *lock(&self.start_over);
        if let Some(state) = self.coordinator.state() {
            return Ok(Some(state));
        }
        match &settings.state_location {
            Some(location) if !start_over => coordinator::load_state(location).map_err(|error| {
                gst::error_msg!(
                    gst::ResourceError::Read,
                    ("Cannot read the state in {}: {error}", location.display()),
                    ["Set state-location to a file that can be read, or remove the file to start over"]
                )
            }),
            _ => Ok(None),
        }
    }
}
