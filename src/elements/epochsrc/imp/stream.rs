//! What the streaming thread does inside an epoch: samples and faults.

use std::sync::Arc;
use std::time::Instant;

use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;

use super::super::super::coordinator::{Failure, Stage, Taken};
use super::super::super::faults::{self, Fault, OnError, Place};
use super::super::super::meta::{BoxesMeta, SampleMeta};
use super::super::super::util::{lock, nanoseconds_since};
use super::super::ahead::Interrupted;
use super::super::reader::Read;
use super::super::run::{Encoded, Phase, Run};
use super::super::wanted::Bytes;
use super::{CAT, EpochSrc};
use crate::decode::{Format, Sniffed, sniff};

impl EpochSrc {
    /// The next of what is sent again, else of the epoch.
    fn next(&self, run: &mut Run) -> Result<Option<(Read, bool)>, Interrupted> {
        if let Some(again) = &mut run.again {
            if let Some((position, slot)) = again.pop_front() {
                return Ok(Some((run.reader.read_again(position, slot), true)));
            }
            run.again = None;
            run.resolver.resume();
        }
        Ok(run.reader.next()?.map(|read| (read, false)))
    }

    /// Reads the next sample into `run.ready`, or finds the end of the epoch.
    fn read(&self, run: &mut Run) -> Result<(), gst::FlowError> {
        // The rest of a prepared epoch that failed would be thrown away.
        if self.coordinator.has_failed(run.reader.epoch()) {
            run.phase = Phase::Ended;
            return Ok(());
        }
        let start = Instant::now();
        run.reader.keepers = self.coordinator.keepers();
        let next = self.next(run).map_err(|Interrupted| {
            // A flush, or the application's end.
            match self.coordinator.is_ending() {
                true => gst::FlowError::Eos,
                false => gst::FlowError::Flushing,
            }
        })?;
        let Some((read, again)) = next else {
            run.phase = Phase::Ended;
            return Ok(());
        };
        let Read {
            position,
            slot,
            content,
        } = read;
        let annotation = run.reader.dataset.annotation(slot.dataset_index);
        let boxes = annotation.map(|annotation| Arc::new(BoxesMeta::of(&annotation)));
        let recipe = self.coordinator.recipe();
        self.coordinator.note_recipe(run.reader.epoch(), recipe);
        let sample = SampleMeta {
            epoch: run.reader.epoch(),
            index: position,
            dataset_index: slot.dataset_index,
            uri: run.reader.dataset.uri(slot.dataset_index).unwrap_or_default(),
            file_version: content.as_ref().map_or(0, |(_, version)| version.number()),
            seed: run.reader.sampler.config().seed,
            recipe,
            prepared: !self.coordinator.is_requested(run.reader.epoch()),
            again,
            pad: slot.pad,
            replaced_from: -1,
            fault: None,
            skipped: run.skipped_before,
            replaced: run.replaced_before,
            annotated: boxes.is_some(),
            ..SampleMeta::default()
        };
        let pts = run.time(run.slots);
        // What is sent again takes no time.
        run.slots += u64::from(!again);
        let duration = run.time(run.slots).saturating_sub(pts);
        let mut place = Place {
            sample,
            boxes,
            stamped: true,
            pts: Some(pts),
            duration: Some(duration),
            offset: position,
        };
        let content = content
            .map_err(Fault::from)
            .and_then(|(content, _)| self.encoded(content));
        {
            let mut stats = lock(&self.stats);
            stats.wait_input += nanoseconds_since(start);
            if content.is_err() {
                stats.faults += u64::from(!again);
            }
        }
        match content {
            Ok(encoded) => {
                if self.coordinator.has(Stage::Decode) {
                    run.ready.push_back((place, encoded));
                } else {
                    let mut out = Vec::new();
                    run.resolver
                        .good(place, encoded, run.on_error == OnError::Replace, &mut out);
                    self.extend(run, out);
                }
                Ok(())
            }
            Err(fault) if self.coordinator.has(Stage::Decode) => {
                gst::debug!(CAT, imp = self, "{}: {fault}", faults::describe(&place.sample));
                place.sample.fault = Some(fault);
                run.ready.push_back((
                    place,
                    Encoded {
                        format: None,
                        buffer: gst::Buffer::new(),
                    },
                ));
                Ok(())
            }
            Err(fault) => self.apply_own_policy(run, place, &fault),
        }
    }

    /// What is pushed of a file: an image by its first bytes, or one that was decoded before.
    fn encoded(&self, content: Bytes) -> Result<Encoded, Fault> {
        let (format, buffer) = match content {
            Bytes::Read(bytes) => {
                let sniffed = sniff(&bytes);
                let format = match (sniffed, Fault::sniffed(sniffed)) {
                    (Sniffed::Supported(format), None) => format,
                    (_, fault) => return Err(fault.unwrap_or_else(|| Fault::internal("no format"))),
                };
                self.count_bytes(bytes.len() as u64);
                (format, gst::Buffer::from_mut_slice(bytes))
            }
            Bytes::Kept(file, format) => {
                let element = self.obj().downgrade();
                let memory = self.files.memory(file, move |bytes| {
                    if let Some(element) = element.upgrade() {
                        element.imp().count_bytes(bytes);
                    }
                });
                let mut buffer = gst::Buffer::new();
                buffer.make_mut().append_memory(memory);
                (format, buffer)
            }
        };
        Ok(Encoded {
            format: Some(format),
            buffer,
        })
    }

    fn count_bytes(&self, bytes: u64) {
        lock(&self.stats).bytes += bytes;
    }

    /// Reports that `epoch` cannot be read to its end: now if the consumer has asked for it, else when it does.
    pub(super) fn fail(&self, epoch: u64, message: String, remedy: &str) -> Result<(), gst::FlowError> {
        match self.coordinator.fail(epoch, message.clone()) {
            Failure::Held => Ok(()),
            Failure::Demanded => {
                gst::element_imp_error!(self, gst::ResourceError::Read, ("{message}"), ["{remedy}"]);
                Err(gst::FlowError::Error)
            }
        }
    }

    /// What is done about a fault where no epochdecode follows.
    fn apply_own_policy(&self, run: &mut Run, place: Place, fault: &Fault) -> Result<(), gst::FlowError> {
        if run.on_error != lock(&self.settings).on_error && !std::mem::replace(&mut run.announced, true) {
            gst::element_imp_info!(self, gst::ResourceError::Read, ["{}", faults::SKIP_IS_REPLACE]);
        }
        let sample = &place.sample;
        if run.on_error == OnError::Fail {
            let message = format!("Cannot use {}: {fault}", faults::describe(sample));
            return self.fail(
                sample.epoch,
                message,
                "Repair or remove the file, or set on-error=skip or on-error=replace",
            );
        }
        if !sample.again {
            let element = self.obj();
            let message = faults::message(element.upcast_ref(), sample, fault, run.on_error);
            self.coordinator.post(sample.epoch, element.upcast_ref(), message);
        }
        let mut out = Vec::new();
        if run.on_error == OnError::Replace {
            run.resolver.replace(place, fault, &mut out);
        } else {
            run.resolver.skip(&place, fault);
        }
        self.extend(run, out);
        Ok(())
    }

    /// Has `out` pushed next; what is sent again only where somebody wants it.
    fn extend(&self, run: &mut Run, out: Vec<(Place, Encoded)>) {
        let wanted = self.coordinator.kept() > 0;
        run.ready
            .extend(out.into_iter().filter(|(place, _)| wanted || !place.sample.again));
    }

    /// A format that the next element takes.
    fn any_format(&self) -> Format {
        let allowed = self.obj().src_pad().allowed_caps();
        [Format::Jpeg, Format::Png, Format::Webp, Format::Bmp]
            .into_iter()
            .find(|format| {
                let caps = gst::Caps::new_empty_simple(format.media_type());
                allowed
                    .as_ref()
                    .is_some_and(|allowed| allowed.can_intersect(&caps))
            })
            .unwrap_or(Format::Jpeg)
    }

    /// Makes the buffer that is pushed next.
    fn finish(&self, run: &mut Run, place: &Place, encoded: Encoded) -> Result<gst::Buffer, gst::FlowError> {
        let sample = &place.sample;
        // A SEGMENT must not come before CAPS, so that a fault in front of the first image needs some.
        let format = match run.caps {
            None => encoded.format.or_else(|| Some(self.any_format())),
            Some(_) => encoded.format,
        };
        if let Some(format) = format
            && run.caps != Some(format)
        {
            // The first caps stand in front of their segment.
            if run.caps.is_some() {
                self.reopen(run);
            }
            let caps = gst::Caps::builder(format.media_type())
                .field("framerate", run.framerate)
                .build();
            // Asked for, because setting caps that are refused succeeds: the next push would fail without a reason.
            let taken = self.obj().src_pad().peer_query_accept_caps(&caps);
            if !taken || self.obj().set_caps(&caps).is_err() {
                // Nobody takes anything while the stream is flushed; that ends behind this call.
                if self.obj().src_pad().pad_flags().contains(gst::PadFlags::FLUSHING) {
                    return Err(gst::FlowError::Flushing);
                }
                gst::element_imp_error!(
                    self,
                    gst::StreamError::Format,
                    (
                        "The next element does not take {}, which {} is",
                        format.media_type(),
                        faults::describe(sample)
                    ),
                    ["Put epochdecode behind epochsrc: it decodes every format that epochsrc reads"]
                );
                return Err(gst::FlowError::NotNegotiated);
            }
            run.caps = Some(format);
        }
        // A replacement's buffer is shared with the sample it repeats.
        let mut buffer = encoded.buffer.copy();
        run.segment_done = false;
        {
            let buffer = buffer.make_mut();
            if !sample.again && std::mem::take(&mut run.fresh) {
                buffer.set_flags(gst::BufferFlags::DISCONT);
            }
            if encoded.format.is_none() {
                buffer.set_flags(gst::BufferFlags::GAP);
            }
            place.stamp(buffer).map_err(|error| {
                gst::element_imp_error!(self, gst::CoreError::Failed, ["Cannot stamp a buffer: {error}"]);
                gst::FlowError::Error
            })?;
        }
        if !sample.again {
            run.pushed = Some((sample.epoch, Taken::up_to(sample)));
            let mut stats = lock(&self.stats);
            stats.samples += u64::from(encoded.format.is_some());
            stats.position = sample.index + 1;
        }
        Ok(buffer)
    }

    /// The next buffer of the stream, with what comes before it, or before the end.
    pub(super) fn produce(&self, run: &mut Run) -> Result<gst::Buffer, gst::FlowError> {
        let result = self.next_buffer(run);
        if result == Err(gst::FlowError::Eos) {
            self.reopen(run);
        }
        result
    }

    fn next_buffer(&self, run: &mut Run) -> Result<gst::Buffer, gst::FlowError> {
        if self.coordinator.is_ending() {
            return Err(gst::FlowError::Eos);
        }
        loop {
            if let Some((place, encoded)) = run.ready.pop_front() {
                return self.finish(run, &place, encoded);
            }
            match run.phase {
                Phase::Beginning => {
                    if !run.current {
                        self.reload(run)?;
                    }
                    self.open_epoch(run)?;
                    run.phase = Phase::Reading;
                }
                Phase::Reading => self.read(run)?,
                Phase::Ended => {
                    self.end_epoch(run)?;
                    let epoch = run.reader.epoch();
                    run.phase = if self.coordinator.has_failed(epoch) {
                        Phase::Failed
                    } else if run.last == Some(epoch) {
                        Phase::Finished
                    } else {
                        Phase::Boundary
                    };
                }
                Phase::Boundary => self.cross_boundary(run)?,
                // Until a flush, which reads the epoch again, or the end.
                Phase::Failed => {
                    self.coordinator
                        .wait_for(u64::MAX)
                        .ok_or(gst::FlowError::Flushing)?;
                    return Err(gst::FlowError::Eos);
                }
                Phase::Finished => return Err(gst::FlowError::Eos),
            }
        }
    }
}
