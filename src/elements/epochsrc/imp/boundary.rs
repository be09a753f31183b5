//! Where an epoch begins and ends in the stream.

use std::time::Instant;

use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;

use super::super::super::coordinator::{Go, Stage};
use super::super::super::epoch_end::EpochEnd;
use super::super::super::faults::{self, OnError};
use super::super::super::util::{lock, nanoseconds_since};
use super::super::run::Run;
use super::{CAT, EpochSrc};
use crate::sampler::Ledger;

impl EpochSrc {
    /// Makes the current epoch known, and begins its segment.
    pub(super) fn open_epoch(&self, run: &mut Run) -> Result<(), gst::FlowError> {
        self.coordinator.open(
            run.drawn(),
            run.reader.receipt().clone(),
            run.reader.order().clone(),
        );
        let kept = u64::try_from(self.coordinator.kept()).unwrap_or(u64::MAX);
        let may_replace = run.on_error == OnError::Replace || self.coordinator.has(Stage::Decode);
        run.again = Some(run.needed_again(kept, may_replace)).filter(|again| !again.is_empty());
        {
            let mut stats = lock(&self.stats);
            stats.position = 0;
            stats.duration = run.reader.order().len();
        }
        self.obj()
            .new_segment(run.segment().upcast_ref())
            .map_err(|error| {
                gst::element_imp_error!(self, gst::CoreError::Event, ["Cannot begin a segment: {error}"]);
                gst::FlowError::Error
            })
    }

    /// Begins a segment behind a SEGMENT_DONE at once where a multiqueue needs that; `open_epoch` leaves it to the base
    /// class, which sends it with the first buffer.
    pub(super) fn reopen(&self, run: &mut Run) {
        if std::mem::take(&mut run.segment_done) && self.has_closed_multiqueue() {
            let segment = gst::event::Segment::new(&run.segment());
            let _ = self.obj().src_pad().push_event(segment);
        }
    }

    /// Before GStreamer 1.26 a multiqueue (there is one in decodebin) is closed behind SEGMENT_DONE to all but a SEGMENT: a
    /// change of caps, or the end of the stream, would hang in it. A queue, on the other hand, may stop at a SEGMENT that
    /// it has not passed on when a sink has had enough, so that none is sent without need.
    fn has_closed_multiqueue(&self) -> bool {
        if gst::version() >= (1, 26, 0, 0) {
            return false;
        }
        let mut top = self.obj().clone().upcast::<gst::Object>();
        while let Some(parent) = top.parent() {
            top = parent;
        }
        let Ok(bin) = top.downcast::<gst::Bin>() else {
            return false;
        };
        let mut found = bin.iterate_all_by_element_factory_name("multiqueue");
        loop {
            match found.next() {
                Ok(element) => return element.is_some(),
                // Somebody adds or removes elements.
                Err(gst::IteratorError::Resync) => found.resync(),
                Err(gst::IteratorError::Error) => return false,
            }
        }
    }

    /// Reads the dataset again for the epoch that begins.
    pub(super) fn reload(&self, run: &mut Run) -> Result<(), gst::FlowError> {
        let epoch = run.reader.epoch();
        match run.reload() {
            Ok(true) => {
                self.set_recipe(run);
                let message = self.dataset_message(run);
                self.coordinator.post(epoch, self.obj().upcast_ref(), message);
                Ok(())
            }
            Ok(false) => Ok(()),
            Err(error) => self.fail(
                epoch,
                format!("Cannot read the dataset for epoch {epoch}: {error}"),
                "Restore the location, or set reload=false to go on with the dataset as it was",
            ),
        }
    }

    /// Announces the end of the epoch.
    pub(super) fn end_epoch(&self, run: &mut Run) -> Result<(), gst::FlowError> {
        let outcome = run.resolver.end();
        let (epoch, order) = (run.reader.epoch(), run.reader.order());
        // Of an epoch that the run resumes in, the good samples may all have been taken before.
        if run.start == 0
            && let Some(message) = outcome.unusable(Some(epoch))
        {
            self.fail(epoch, message, faults::UNUSABLE)?;
        }
        let ledger = Ledger {
            listed: order.listed(),
            delivered: 0,
            skipped: run.skipped_before + outcome.skipped,
            dropped: order.dropped() + run.passed_over,
            padded: order.padded(),
            replaced: run.replaced_before + outcome.replaced,
        };
        let message = gst::message::Element::builder(
            gst::Structure::builder("epochfeed-epoch")
                .field("epoch", epoch)
                .field("listed", ledger.listed)
                .field("padded", ledger.padded)
                .field("dropped", ledger.dropped)
                .build(),
        );
        let element = self.obj();
        self.coordinator
            .post(epoch, element.upcast_ref(), message.src(&*element).build());
        lock(&self.stats).epochs += 1;
        let position: gst::GenericFormattedValue = run.time(run.slots).into();
        let event = EpochEnd {
            epoch,
            ledger,
            error: self.coordinator.failure(epoch),
            start: run.start,
        }
        .event(position, gst::Seqnum::next());
        gst::debug!(CAT, imp = self, "End of epoch {epoch}: {ledger:?}");
        // Refused when downstream flushes or has ended: the next push says which.
        let _ = self.obj().src_pad().push_event(event);
        run.segment_done = true;
        Ok(())
    }

    /// Waits until the next epoch is asked for, and draws it.
    pub(super) fn cross_boundary(&self, run: &mut Run) -> Result<(), gst::FlowError> {
        let next = run.reader.epoch() + 1;
        let auto_advance = lock(&self.settings).auto_advance;
        if auto_advance && !self.coordinator.has(Stage::Consumer) {
            self.coordinator.request(next);
        }
        let start = Instant::now();
        let go = self.coordinator.wait_for(next);
        lock(&self.stats).wait_request += nanoseconds_since(start);
        let go = go.ok_or(gst::FlowError::Flushing)?;
        if go == Go::Ended {
            return Err(gst::FlowError::Eos);
        }
        if go == Go::Requested && !self.coordinator.has_buffer() {
            self.coordinator.deliver(next);
        }
        gst::debug!(CAT, imp = self, "Epoch {next} begins: {go:?}");
        run.reader.advance();
        run.begin_epoch();
        Ok(())
    }
}
