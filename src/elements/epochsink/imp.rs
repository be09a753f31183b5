//! Lock order: none of the locks here is held while another is taken, nor over a post, a query or a request. The
//! session is taken out of its lock by the streaming thread while it works on it.
#![allow(missing_docs)] // the generated accessors: a property is documented by its blurb

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::prelude::*;

use super::super::account::{Account, EpochReport};
use super::super::coordinator::{self, Registration, Requested, Taken};
use super::super::epoch_end::EpochEnd;
use super::super::identity;
use super::super::meta::{BatchMeta, BatchTargets, BoxesMeta, GainsMeta, SampleMeta};
use super::super::util::{Statistics, lock, nanoseconds_since};
use super::progress::Progress;
use super::report::Report;
use super::table::Table;
use crate::sampler::Ledger;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "epochsink",
        gst::DebugColorFlags::empty(),
        Some("Stand-in for a trainer"),
    )
});

#[derive(Clone, Debug, Default)]
struct Settings {
    step_time: u32,
    validation_time: u32,
    max_steps: u64,
    silent: bool,
    report: Option<PathBuf>,
}

/// One start-to-stop of the element.
struct Session {
    settings: Settings,
    registration: Option<Registration>,
    report: Option<Report>,
    progress: Option<Progress>,
    /// The epoch that is being taken.
    account: Option<Account>,
    epochs: Vec<EpochReport>,
    steps: u64,
    /// It has been said that boxes got lost.
    boxes_lost: bool,
    /// Since when a batch is waited for.
    ready: Instant,
    /// When the next epoch was asked for.
    asked: Instant,
    /// The summary is out.
    ended: bool,
}

impl Session {
    /// Whether `epoch` has ended before: a flush during the validation brings its end once more, an element that repeats
    /// frames something of it.
    fn is_booked(&self, epoch: u64) -> bool {
        self.epochs.last().is_some_and(|last| last.epoch == epoch)
    }

    /// Whether `max-steps` is reached.
    fn is_out_of_steps(&self) -> bool {
        self.settings.max_steps > 0 && self.steps >= self.settings.max_steps
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    batches: u64,
    samples: u64,
    epochs: u64,
    /// Nanoseconds waited for batches.
    wait_input: u64,
    /// Nanoseconds spent in steps and validation.
    busy: u64,
    /// The last wait at an epoch's boundary, in nanoseconds.
    boundary_wait: u64,
}

#[derive(Default, glib::Properties)]
#[properties(wrapper_type = super::EpochSink)]
pub struct EpochSink {
    #[property(name = "step-time", get, set, type = u32, member = step_time, nick = "Step time", blurb = "Milliseconds that a training step takes", mutable_ready)]
    #[property(name = "validation-time", get, set, type = u32, member = validation_time, nick = "Validation time", blurb = "Milliseconds that the validation after each epoch takes, before the next is asked for", mutable_ready)]
    #[property(name = "max-steps", get, set, type = u64, member = max_steps, nick = "Maximum steps", blurb = "After so many batches in all the run ends with EOS (0 = no limit)", mutable_ready)]
    #[property(name = "silent", get, set, type = bool, member = silent, nick = "Silent", blurb = "Print neither progress nor the table of the epochs", mutable_ready)]
    #[property(name = "report", get, set, type = Option<PathBuf>, member = report, nick = "Report", blurb = "File for a line of JSON a batch, a faulty sample and an epoch; a file that is there is replaced", mutable_ready)]
    settings: Mutex<Settings>,
    #[property(name = "stats", get = Self::stats, type = Statistics, nick = "Statistics", blurb = "Batches, samples, epochs; nanoseconds waited for input, spent in steps, and of the last wait at a boundary")]
    stats: Mutex<Stats>,
    session: Mutex<Option<Session>>,
    /// The streaming thread must not wait: the element flushes, pauses or stops.
    unlocked: Mutex<bool>,
    /// Signalled when `unlocked` changes.
    wake: Condvar,
    /// The end of the stream has been posted.
    ended: AtomicBool,
}

/// How a simulated work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Done,
    /// So much of it is left.
    Interrupted(Duration),
}

impl EpochSink {
    fn stats(&self) -> Statistics {
        let stats = *lock(&self.stats);
        Statistics(
            gst::Structure::builder("epochsink-stats")
                .field("batches", stats.batches)
                .field("samples", stats.samples)
                .field("epochs", stats.epochs)
                .field("wait-input-ns", stats.wait_input)
                .field("busy-ns", stats.busy)
                .field("boundary-wait-ns", stats.boundary_wait)
                .build(),
        )
    }

    fn sink_pad(&self) -> Option<gst::Pad> {
        self.obj().static_pad("sink")
    }

    fn find_coordinator(&self) -> Option<Registration> {
        let coordinator = coordinator::find(&self.sink_pad()?)?;
        coordinator.set_step_bound(lock(&self.settings).max_steps > 0);
        let registration = coordinator.register_consumer();
        if registration.is_some() {
            coordinator.keep_faults(lock(&self.settings).report.is_some());
        }
        if registration.is_none() {
            gst::element_imp_error!(
                self,
                gst::ResourceError::Busy,
                ("Two epochsinks take the epochs of one epochsrc: each would ask for the other's"),
                ["Use a fakesink or filesink for the second branch"]
            );
        }
        registration
    }

    /// Begins a run. Not the base class's `start`, which is one with NULL→READY: several runs may follow it.
    fn begin(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.settings).clone();
        let report = match &settings.report {
            Some(path) => Some(Report::create(path).map_err(|error| {
                gst::error_msg!(
                    gst::ResourceError::OpenWrite,
                    ("Cannot create the report {}: {error}", path.display()),
                    ["Set report to a file in a folder that exists and can be written to"]
                )
            })?),
            None => None,
        };
        *lock(&self.stats) = Stats::default();
        let now = Instant::now();
        let session = Session {
            progress: (!settings.silent).then(Progress::new),
            settings,
            registration: self.find_coordinator(),
            report,
            account: None,
            epochs: Vec::new(),
            steps: 0,
            boxes_lost: false,
            ready: now,
            asked: now,
            ended: false,
        };
        self.ended.store(false, Ordering::SeqCst);
        *lock(&self.session) = Some(session);
        Ok(())
    }

    /// Ends a run.
    fn finish(&self) {
        let mut session = lock(&self.session).take();
        if let Some(session) = &mut session {
            // Of the epoch that was not taken to its end: those that ended the run, for example.
            self.report_faults(session, u64::MAX);
            if let Some(registration) = &session.registration {
                registration.coordinator().keep_faults(false);
            }
        }
        if let Some(progress) = session.as_ref().and_then(|session| session.progress.as_ref()) {
            progress.finish();
        }
    }

    /// Does `work` with the session in hand; `otherwise` where there is none.
    fn with_session<T>(&self, otherwise: T, work: impl FnOnce(&mut Session) -> T) -> T {
        let Some(mut session) = lock(&self.session).take() else {
            return otherwise;
        };
        let result = work(&mut session);
        *lock(&self.session) = Some(session);
        result
    }

    /// Works for `time`, as a trainer would, unless the element is unlocked.
    fn work(&self, time: Duration) -> Work {
        let start = Instant::now();
        let guard = lock(&self.unlocked);
        let (unlocked, _) = self
            .wake
            .wait_timeout_while(guard, time, |unlocked| !*unlocked)
            .unwrap_or_else(PoisonError::into_inner);
        let interrupted = *unlocked;
        drop(unlocked);
        lock(&self.stats).busy += nanoseconds_since(start);
        match time.checked_sub(start.elapsed()) {
            Some(left) if interrupted => Work::Interrupted(left),
            _ => Work::Done,
        }
    }

    /// A training step: pausing the pipeline pauses it.
    fn step(&self, mut time: Duration) -> Result<(), gst::FlowError> {
        while let Work::Interrupted(left) = self.work(time) {
            self.obj().wait_preroll()?;
            time = left;
        }
        Ok(())
    }

    /// The validation behind an epoch: pausing the pipeline pauses it; false if the element flushes.
    fn validate(&self, mut time: Duration) -> bool {
        while let Work::Interrupted(left) = self.work(time) {
            // Events come, as buffers do, with the preroll lock held, which a change of state needs: this lets go of it.
            if self.obj().wait_preroll().is_err() {
                return false;
            }
            time = left;
        }
        true
    }

    /// Warns when a part of the report cannot be written; the run goes on without it.
    fn written(&self, session: &mut Session, result: std::io::Result<()>) {
        if let Err(error) = result
            && let Some(report) = session.report.take()
        {
            gst::element_imp_warning!(
                self,
                gst::ResourceError::Write,
                ("Cannot write the report {}: {error}", report.path().display())
            );
        }
    }

    fn take_batch(
        &self,
        session: &mut Session,
        buffer: &gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        if session.ended {
            // Said before, but in an answer that got lost: that to an epoch's last batch, pushed with the epoch's end.
            return Err(gst::FlowError::Eos);
        }
        if SampleMeta::get(buffer).is_some_and(|sample| sample.again) {
            // For a packer in another branch.
            return Ok(gst::FlowSuccess::Ok);
        }
        let now = Instant::now();
        let wait = now.saturating_duration_since(session.ready);
        let order = |session: &Session, epoch| {
            session
                .registration
                .as_ref()
                .and_then(|registration| registration.coordinator().order(epoch))
        };
        let batch = match (BatchMeta::get(buffer), SampleMeta::get(buffer)) {
            (Some(batch), _) => batch,
            (None, Some(sample)) => self.single(session, buffer, sample),
            (None, None) if session.registration.is_some() => {
                if let Some(pad) = self.sink_pad() {
                    identity::post_lost(&*self.obj(), &pad, &format!("Buffer {}", session.steps));
                }
                return Err(gst::FlowError::Error);
            }
            (None, None) => BatchMeta {
                pad: vec![false],
                replaced_from: vec![-1],
                batch: session.steps,
                ..BatchMeta::default()
            },
        };
        let epoch_order = order(session, batch.epoch);
        if session
            .account
            .as_ref()
            .is_none_or(|account| account.epoch != batch.epoch)
        {
            let before = Self::before(session, batch.epoch);
            let account = Account::begin(batch.epoch, before, session.asked, now);
            session.account = Some(account);
            lock(&self.stats).boundary_wait =
                u64::try_from(now.saturating_duration_since(session.asked).as_nanos()).unwrap_or(u64::MAX);
        }
        if let Some(account) = &mut session.account {
            account.add(&batch);
            if let Some(progress) = &session.progress {
                progress.update(
                    batch.epoch,
                    account.delivered(),
                    epoch_order.map(|order| order.listed()),
                );
            }
        }
        if let Some(report) = &mut session.report {
            let result = report.batch(&batch, wait);
            self.written(session, result);
        }
        {
            let mut stats = lock(&self.stats);
            stats.batches += 1;
            stats.samples += batch.pad.len() as u64;
            stats.wait_input += u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        }
        self.step(Duration::from_millis(session.settings.step_time.into()))?;
        if let Some(registration) = &session.registration {
            self.acknowledge(registration, batch.epoch, &batch.state);
        }
        session.steps += 1;
        session.ready = Instant::now();
        if session.is_out_of_steps() {
            gst::info!(CAT, imp = self, "max-steps reached");
            // Booked now: upstream, ahead of this step, may end the epoch in the stream as if all of it had been taken.
            self.end(session);
            if let Some(registration) = &session.registration {
                // A source that waits at the boundary would never learn it from a push.
                registration.coordinator().end();
            }
            // Not left to the EOS event that upstream answers with: a queue that finds a SEGMENT among what it throws away
            // after this return stops there for good.
            let message = gst::message::Eos::builder().src(&*self.obj()).build();
            let _ = self.obj().post_message(message);
            return Err(gst::FlowError::Eos);
        }
        Ok(gst::FlowSuccess::Ok)
    }

    /// What lies before `state` has been used.
    fn acknowledge(&self, registration: &Registration, epoch: u64, state: &str) {
        if let Err(error) = registration.acknowledge(epoch, state) {
            error.warn(&*self.obj());
        }
    }

    /// The ledger of what an earlier run has taken of `epoch`.
    fn before(session: &Session, epoch: u64) -> Ledger {
        session
            .registration
            .as_ref()
            .map_or_else(Ledger::default, |registration| {
                registration.coordinator().before(epoch)
            })
    }

    /// A frame that comes without nhwcpack, as a batch of one.
    fn single(&self, session: &mut Session, buffer: &gst::BufferRef, sample: SampleMeta) -> BatchMeta {
        let state = session.registration.as_ref().and_then(|registration| {
            let coordinator = registration.coordinator();
            coordinator.state_at(sample.epoch, Taken::up_to(&sample))
        });
        let size = self
            .sink_pad()
            .and_then(|pad| pad.current_caps())
            .and_then(|caps| gst_video::VideoInfo::from_caps(&caps).ok())
            .map(|info| (info.width(), info.height()));
        let targets = size.and_then(|size| BatchTargets::of([BoxesMeta::get(buffer)], size));
        if let (Some(pad), Some(size), None, true) = (self.sink_pad(), size, &targets, sample.annotated)
            && !std::mem::replace(&mut session.boxes_lost, true)
        {
            identity::warn_of_boxes(&*self.obj(), &pad, &sample, size);
        }
        BatchMeta {
            epoch: sample.epoch,
            // Those before it that gave a frame; of an epoch that the run resumes in, the first are behind.
            batch: sample
                .index
                .saturating_sub(sample.skipped.saturating_sub(sample.replaced)),
            seed: sample.seed,
            recipe: sample.recipe,
            prepared: sample.prepared,
            index: vec![sample.index],
            dataset_index: vec![sample.dataset_index],
            uri: vec![sample.uri],
            gains: vec![
                GainsMeta::get(buffer).map_or([0.0; 3], |gains| [gains.hue, gains.saturation, gains.value]),
            ],
            pad: vec![sample.pad],
            replaced_from: vec![sample.replaced_from],
            source_width: vec![sample.source_width],
            source_height: vec![sample.source_height],
            targets,
            state: state.unwrap_or_default(),
        }
    }

    /// Books an epoch that has ended.
    fn book(&self, session: &mut Session, epoch: EpochReport) {
        if !epoch.ledger.balanced() {
            gst::element_imp_warning!(
                self,
                gst::StreamError::Failed,
                (
                    "The ledger of epoch {} does not add up: {:?}",
                    epoch.epoch,
                    epoch.ledger
                ),
                ["An element between epochsrc and epochsink lost samples or the end of the epoch"]
            );
        }
        if let Some(progress) = &session.progress {
            progress.epoch(&epoch);
        }
        session.epochs.push(epoch);
        lock(&self.stats).epochs += 1;
        self.report_faults(session, epoch.epoch);
        if let Some(report) = &mut session.report {
            let result = report.epoch(&epoch);
            self.written(session, result);
        }
    }

    /// Names the faulty samples of the epochs up to `epoch` that have been told.
    fn report_faults(&self, session: &mut Session, epoch: u64) {
        let (Some(report), Some(registration)) = (&mut session.report, &session.registration) else {
            return;
        };
        let faults = registration.coordinator().take_faults(epoch);
        let result = report.faults(faults.iter().filter_map(|message| message.structure()));
        self.written(session, result);
    }

    /// An epoch has ended in the stream: validates, and asks for the next.
    fn end_epoch(&self, session: &mut Session, end: EpochEnd) {
        if session.ended {
            return;
        }
        let now = Instant::now();
        let account = match session.account.take() {
            Some(account) if account.epoch == end.epoch => account,
            // No batch came of it: what this run had left of it was skipped or dropped.
            _ => Account::begin(end.epoch, Self::before(session, end.epoch), session.asked, now),
        };
        if !session.is_booked(end.epoch) {
            self.book(session, account.finish(end.ledger, now));
        }
        // Also what came behind the last batch is done with: a run that resumes begins with the next epoch.
        if let Some(registration) = &session.registration
            && let Err(error) = registration.acknowledge_end(&end)
        {
            error.warn(&*self.obj());
        }
        if self.validate(Duration::from_millis(session.settings.validation_time.into())) {
            session.asked = Instant::now();
            session.ready = session.asked;
            if let Some(registration) = &session.registration
                && registration.coordinator().has_next(end.epoch)
            {
                let next = end.epoch + 1;
                if let Requested::Failed(reason) = registration.coordinator().request(next) {
                    gst::element_imp_error!(
                        self,
                        gst::ResourceError::Read,
                        ("Epoch {next} could not be prepared: {reason}"),
                        ["Remove the cause and start again: the run resumes with this epoch"]
                    );
                }
            }
        }
    }

    /// The stream has ended: books an epoch that was broken off, and says how it went.
    fn end(&self, session: &mut Session) {
        let account = session.account.take();
        if let Some(account) = account.filter(|account| !session.is_booked(account.epoch)) {
            let coordinator = session
                .registration
                .as_ref()
                .map(|registration| registration.coordinator());
            let listed = coordinator
                .and_then(|coordinator| coordinator.order(account.epoch))
                .map_or_else(|| account.delivered(), |order| order.listed());
            let report = account.break_off(listed, Instant::now());
            self.book(session, report);
        }
        if std::mem::replace(&mut session.ended, true) {
            return;
        }
        let epochs = session.epochs.iter().map(|epoch| {
            gst::Structure::builder("epoch")
                .field("epoch", epoch.epoch)
                .field("listed", epoch.ledger.listed)
                .field("delivered", epoch.ledger.delivered)
                .field("skipped", epoch.ledger.skipped)
                .field("dropped", epoch.ledger.dropped)
                .field("padded", epoch.ledger.padded)
                .field("replaced", epoch.ledger.replaced)
                .field("samples-per-s", epoch.samples_per_s)
                .field(
                    "boundary-wait-ns",
                    u64::try_from(epoch.boundary_wait.as_nanos()).unwrap_or(u64::MAX),
                )
                .build()
        });
        let message = gst::message::Element::builder(
            gst::Structure::builder("epochfeed-summary")
                .field("steps", session.steps)
                .field("epochs", gst::Array::new(epochs))
                .build(),
        );
        let _ = self.obj().post_message(message.src(&*self.obj()).build());
        if let Some(progress) = &session.progress {
            progress.finish();
            // Nobody may read it.
            let _ = write!(std::io::stdout(), "{}", Table(&session.epochs));
        }
    }
}

#[glib::object_subclass]
impl ObjectSubclass for EpochSink {
    const NAME: &'static str = "GstEpochSink";
    type Type = super::EpochSink;
    type ParentType = gst_base::BaseSink;
}

#[glib::derived_properties]
impl ObjectImpl for EpochSink {
    fn constructed(&self) {
        self.parent_constructed();
        // A trainer takes batches as fast as it can, not by the clock.
        self.obj().set_sync(false);
    }
}

impl GstObjectImpl for EpochSink {}

impl ElementImpl for EpochSink {
    /// The end is said once: by `max-steps`, or by the base class when the event comes.
    fn post_message(&self, message: gst::Message) -> bool {
        if message.type_() == gst::MessageType::Eos && self.ended.swap(true, Ordering::SeqCst) {
            return true;
        }
        self.parent_post_message(message)
    }

    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Epoch sink",
                "Sink/Tensor",
                "Stands in for a trainer: takes batches, validates, asks for the next epoch, and reports",
                crate::elements::AUTHOR,
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let mut caps = crate::elements::cuda::batch_caps();
            caps.merge(crate::elements::video::plain_caps());
            gst::PadTemplate::new("sink", gst::PadDirection::Sink, gst::PadPresence::Always, &caps)
                .into_iter()
                .collect()
        });
        &TEMPLATES
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        if transition == gst::StateChange::ReadyToPaused
            && let Err(error) = self.begin()
        {
            self.post_error_message(error);
            return Err(gst::StateChangeError);
        }
        let result = self.parent_change_state(transition);
        let failed = transition == gst::StateChange::ReadyToPaused && result.is_err();
        if failed || transition == gst::StateChange::PausedToReady {
            self.finish();
        }
        result
    }
}

impl BaseSinkImpl for EpochSink {
    fn unlock(&self) -> Result<(), gst::ErrorMessage> {
        *lock(&self.unlocked) = true;
        self.wake.notify_all();
        Ok(())
    }

    fn unlock_stop(&self) -> Result<(), gst::ErrorMessage> {
        *lock(&self.unlocked) = false;
        self.wake.notify_all();
        Ok(())
    }

    fn event(&self, event: gst::Event) -> bool {
        match event.view() {
            gst::EventView::StreamStart(_) => self.with_session((), |session| {
                if session.registration.is_none() {
                    session.registration = self.find_coordinator();
                }
            }),
            gst::EventView::SegmentDone(_) => {
                if let Some(end) = EpochEnd::get(&event) {
                    self.with_session((), |session| self.end_epoch(session, end));
                }
            }
            // What comes now of the epoch begins where the coordinator says.
            gst::EventView::FlushStop(_) => {
                self.ended.store(false, Ordering::SeqCst);
                self.with_session((), |session| {
                    session.account = None;
                    session.ended &= session.is_out_of_steps();
                });
            }
            gst::EventView::Eos(_) => self.with_session((), |session| self.end(session)),
            _ => (),
        }
        self.parent_event(event)
    }

    fn render(&self, buffer: &gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.with_session(Err(gst::FlowError::Flushing), |session| {
            self.take_batch(session, buffer)
        })
    }
}
