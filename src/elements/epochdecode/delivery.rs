//! Delivery: what the source pad's task does with decoded images, in order.

use std::time::Instant;

use gst::prelude::*;
use gst::subclass::prelude::*;

use super::super::coordinator::Failure;
use super::super::epoch_end::EpochEnd;
use super::super::faults::{self, Fault, Limit, OnError, Outcome, Place, Resolver};
use super::super::util::{lock, nanoseconds_since};
use super::imp::{CAT, EpochDecode};
use super::job::{self, Decoded};
use super::queue::Item;
use crate::dataset::{OpenSample, parse_location};

/// What the delivery task knows of the stream.
#[derive(Default)]
pub(super) struct Delivery {
    pub on_error: OnError,
    pub limit: Limit,
    pub resolver: Resolver<(gst::Buffer, gst_video::VideoInfo)>,
    /// What the last CAPS event said.
    pub info: Option<gst_video::VideoInfo>,
    /// Waits for the first CAPS, which must come before it.
    pub segment: Option<gst::Event>,
    /// The next frame is the first of an epoch.
    pub discont: bool,
    /// This epoch failed while it was prepared: what still comes of it is thrown away.
    pub failed: Option<u64>,
    /// What comes is sent again, from before the place where the run resumed.
    pub again: bool,
    /// How many of that so far.
    pub sent_again: usize,
    /// It has been said that skip acts as replace.
    pub announced: bool,
}

impl EpochDecode {
    /// One turn of the delivery task.
    pub(super) fn deliver(&self) {
        let start = Instant::now();
        let item = self.queue.pop();
        lock(&self.stats).wait_input += nanoseconds_since(start);
        let Some(item) = item else {
            let _ = self.src_pad.pause_task();
            return;
        };
        let Some(mut delivery) = lock(&self.delivery).take() else {
            let _ = self.src_pad.pause_task();
            return;
        };
        let result = match item {
            Item::Event(event) => self.deliver_event(&mut delivery, event),
            // `pop` waits for the result.
            Item::Image(place, result) => {
                let result = result.unwrap_or_else(|| Err(Fault::internal("the decoder gave no result")));
                self.deliver_image(&mut delivery, *place, result)
            }
        };
        *lock(&self.delivery) = Some(delivery);
        if let Err(flow) = result {
            gst::debug!(CAT, imp = self, "Delivery ends: {flow}");
            self.queue.set_flow(flow);
        }
    }

    fn deliver_event(&self, delivery: &mut Delivery, event: gst::Event) -> Result<(), gst::FlowError> {
        match event.view() {
            gst::EventView::Segment(segment) => {
                delivery.discont = true;
                delivery.failed = None;
                let event = if segment.segment().format() == gst::Format::Time {
                    event
                } else {
                    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
                    gst::event::Segment::builder(&segment)
                        .seqnum(event.seqnum())
                        .build()
                };
                if delivery.info.is_none() {
                    delivery.segment = Some(event);
                } else {
                    self.src_pad.push_event(event);
                }
            }
            gst::EventView::SegmentDone(_) => {
                let outcome = delivery.resolver.end();
                let event = match EpochEnd::get(&event) {
                    Some(mut end) => {
                        // Of an epoch that the run resumes in, the good samples may all have been taken before.
                        if end.start == 0 {
                            self.check_outcome(&outcome, Some(end.epoch))?;
                        }
                        end.ledger.skipped += outcome.skipped;
                        end.ledger.replaced += outcome.replaced;
                        if end.error.is_none() {
                            // Found here, behind the back of the source, which had read all of it.
                            let registration = self.registration();
                            end.error = registration.and_then(|entry| entry.coordinator().failure(end.epoch));
                        }
                        let event = end.update(&event);
                        if self.src_pad.push_event(event) {
                            self.acknowledge_end(&end);
                        }
                        return Ok(());
                    }
                    None => event,
                };
                self.src_pad.push_event(event);
            }
            gst::EventView::Eos(_) => {
                let outcome = delivery.resolver.end();
                self.check_outcome(&outcome, None)?;
                self.src_pad.push_event(event);
            }
            _ => {
                self.src_pad.push_event(event);
            }
        }
        Ok(())
    }

    /// No usable sample is an error, never a clean end.
    fn check_outcome(&self, outcome: &Outcome, epoch: Option<u64>) -> Result<(), gst::FlowError> {
        match outcome.unusable(epoch) {
            Some(message) => self.fail(epoch, message, faults::UNUSABLE).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Reports that `epoch` cannot be decoded to its end: now, or, if nobody has asked for it yet, when somebody does.
    fn fail(&self, epoch: Option<u64>, message: String, remedy: &str) -> Result<Failure, gst::FlowError> {
        if let (Some(epoch), Some(registration)) = (epoch, self.registration())
            && registration.coordinator().fail(epoch, message.clone()) == Failure::Held
        {
            gst::debug!(
                CAT,
                imp = self,
                "Held until epoch {epoch} is asked for: {message}"
            );
            return Ok(Failure::Held);
        }
        gst::element_imp_error!(self, gst::StreamError::Decode, ("{message}"), ["{remedy}"]);
        Err(gst::FlowError::Error)
    }

    fn deliver_image(
        &self,
        delivery: &mut Delivery,
        place: Place,
        result: Result<Decoded, Fault>,
    ) -> Result<(), gst::FlowError> {
        // Downstream has had enough; what is still here leaves without being looked at.
        self.queue.flow()?;
        // The rest of a prepared epoch that failed is thrown away.
        if place.stamped && delivery.failed == Some(place.sample.epoch) {
            return Ok(());
        }
        let again = place.sample.again;
        if std::mem::replace(&mut delivery.again, again) && !again {
            delivery.resolver.resume();
        }
        let mut out = Vec::new();
        match result {
            Ok(decoded) => self.good(delivery, place, decoded, &mut out),
            Err(fault) => self.fault(delivery, place, &fault, &mut out)?,
        }
        if again && self.kept() == 0 {
            return Ok(());
        }
        if again {
            delivery.sent_again += out.len();
        } else {
            delivery.sent_again = 0;
        }
        for (place, (frame, info)) in out {
            self.push_frame(delivery, &place, frame, info)?;
        }
        Ok(())
    }

    /// A sample that can be used.
    fn good(
        &self,
        delivery: &mut Delivery,
        mut place: Place,
        decoded: Decoded,
        out: &mut Vec<(Place, (gst::Buffer, gst_video::VideoInfo))>,
    ) {
        if !place.sample.again {
            let mut stats = lock(&self.stats);
            stats.decoded += u64::from(!decoded.cached);
            stats.cached += u64::from(decoded.cached);
            stats.warnings += u64::from(decoded.warnings > 0);
            stats.truncated += u64::from(decoded.truncated);
        }
        if let Some(warning) = &decoded.warning {
            gst::warning!(CAT, imp = self, "{}: {warning}", faults::describe(&place.sample));
        }
        (place.sample.source_width, place.sample.source_height) = decoded.boxes.placement().source;
        self.fit_boxes(&mut place, &decoded.boxes);
        let keep = delivery.on_error == OnError::Replace
            || (delivery.on_error == OnError::Skip && self.world_size() > 1);
        delivery
            .resolver
            .good(place, (decoded.frame, decoded.info), keep, out);
    }

    /// A sample that could not be used when it was read ahead, beyond what the buffer holds, and comes here when its epoch
    /// has been asked for: what counts is the file as it is now.
    fn look_again(&self, place: &Place) -> Option<Decoded> {
        let path = parse_location(&place.sample.uri).ok()?;
        let content = OpenSample::open(path).read().ok()?;
        let (options, output) = (self.options()?, self.output(place).ok()?);
        gst::debug!(CAT, imp = self, "Read again: {}", faults::describe(&place.sample));
        job::decode(
            gst::Buffer::from_mut_slice(content).as_ref(),
            place.boxes.as_ref().and_then(|boxes| boxes.size),
            None,
            &options,
            &output,
        )
        .ok()
    }

    /// Applies the policy to a sample that cannot be used.
    fn fault(
        &self,
        delivery: &mut Delivery,
        place: Place,
        fault: &Fault,
        out: &mut Vec<(Place, (gst::Buffer, gst_video::VideoInfo))>,
    ) -> Result<(), gst::FlowError> {
        let again = place.sample.again;
        let registration = self.registration();
        let coordinator = registration
            .as_ref()
            .map(|registration| registration.coordinator());
        let action = delivery.on_error.for_world(self.world_size());
        let what = faults::describe(&place.sample);
        let epoch = place.sample.epoch;
        let in_epoch = place.stamped.then_some(epoch);
        if again && action != OnError::Replace && delivery.sent_again >= self.kept() {
            // Nobody needs it.
            return Ok(());
        }
        if action == OnError::Fail
            && place.sample.prepared
            && coordinator.is_some_and(|coordinator| coordinator.is_requested(epoch))
            && let Some(decoded) = self.look_again(&place)
        {
            self.good(delivery, place, decoded, out);
            return Ok(());
        }
        // Those that an earlier run met.
        let before = place.sample.skipped;
        lock(&self.stats).faults += u64::from(!again);
        if action == OnError::Fail {
            let remedy = "Repair or remove the file, or set on-error=skip or on-error=replace";
            let told = self.fail(in_epoch, format!("Cannot use {what}: {fault}"), remedy);
            if told.is_err() {
                self.set_aside(&place.sample.uri, fault);
            }
            told?;
            delivery.failed = in_epoch;
            return Ok(());
        }
        if action != delivery.on_error && !std::mem::replace(&mut delivery.announced, true) {
            gst::element_imp_info!(self, gst::StreamError::Decode, ["{}", faults::SKIP_IS_REPLACE]);
        }
        let element = self.obj();
        let message = faults::message(element.upcast_ref(), &place.sample, fault, action);
        match coordinator {
            _ if again => gst::debug!(CAT, imp = self, "Was told before: {what}: {fault}"),
            Some(coordinator) => coordinator.post(epoch, element.upcast_ref(), message),
            None => {
                let _ = element.post_message(message);
            }
        }
        if action == OnError::Replace {
            lock(&self.stats).replaced += u64::from(!again);
            delivery.resolver.replace(place, fault, out);
        } else {
            delivery.resolver.skip(&place, fault);
        }
        let samples = coordinator
            .and_then(|coordinator| coordinator.order(epoch))
            .map(|order| order.len());
        let faults = before + delivery.resolver.faults();
        if !again && delivery.limit.exceeded(faults, samples) {
            let message =
                format!("Too many faulty samples: {faults} in epoch {epoch}; the last is {what}: {fault}");
            let remedy = format!(
                "Repair the dataset or raise max-errors, which is {}",
                delivery.limit
            );
            self.fail(in_epoch, message, &remedy)?;
            delivery.failed = in_epoch;
            out.clear();
        }
        Ok(())
    }

    fn push_frame(
        &self,
        delivery: &mut Delivery,
        place: &Place,
        mut frame: gst::Buffer,
        info: gst_video::VideoInfo,
    ) -> Result<(), gst::FlowError> {
        if delivery.info.as_ref() != Some(&info) {
            let caps = info.to_caps().map_err(|error| {
                gst::element_imp_error!(
                    self,
                    gst::CoreError::Negotiation,
                    ["Cannot describe the frames: {error}"]
                );
                gst::FlowError::NotNegotiated
            })?;
            self.src_pad.push_event(gst::event::Caps::new(&caps));
            delivery.info = Some(info);
        }
        if let Some(segment) = delivery.segment.take() {
            self.src_pad.push_event(segment);
        }
        {
            let frame = frame.make_mut();
            if !place.sample.again && std::mem::take(&mut delivery.discont) {
                frame.set_flags(gst::BufferFlags::DISCONT);
            } else {
                frame.unset_flags(gst::BufferFlags::DISCONT);
            }
            place.stamp(frame).map_err(|error| {
                gst::element_imp_error!(self, gst::CoreError::Failed, ["Cannot stamp a frame: {error}"]);
                gst::FlowError::Error
            })?;
        }
        let start = Instant::now();
        let pushed = self.src_pad.push(frame);
        lock(&self.stats).wait_output += nanoseconds_since(start);
        if let Err(flow) = pushed {
            // EOS and flushing are no errors; of every other one the bus must hear.
            if !matches!(flow, gst::FlowError::Eos | gst::FlowError::Flushing) {
                gst::element_imp_error!(
                    self,
                    gst::StreamError::Failed,
                    ("The next element refused a frame: {flow}"),
                    ["{}", faults::describe(&place.sample)]
                );
            }
            return Err(flow);
        }
        self.acknowledge(place);
        Ok(())
    }

    /// Where nothing of ours follows, a frame that was pushed counts as consumed.
    fn acknowledge(&self, place: &Place) {
        if place.stamped
            && let Some(registration) = self.registration()
            && let Err(error) = registration.acknowledge_sample(&place.sample)
        {
            error.warn(&*self.obj());
        }
    }

    /// So does what came behind the last frame of an epoch.
    fn acknowledge_end(&self, end: &EpochEnd) {
        if let Some(registration) = self.registration()
            && let Err(error) = registration.acknowledge_end(end)
        {
            error.warn(&*self.obj());
        }
    }

    /// How many of an epoch's first frames somebody downstream needs again.
    fn kept(&self) -> usize {
        self.registration()
            .map_or(0, |registration| registration.coordinator().kept())
    }

    fn world_size(&self) -> u32 {
        self.registration()
            .map_or(1, |registration| registration.coordinator().world_size())
    }
}
