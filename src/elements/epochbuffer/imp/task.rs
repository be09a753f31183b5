//! What the task of the source pad does: deliver, stand at the boundary, restart an epoch.

use std::sync::Arc;
use std::time::Instant;

use gst::prelude::*;
use gst::subclass::prelude::*;

use super::super::super::coordinator::Coordinator;
use super::super::super::epoch_end::EpochEnd;
use super::super::super::meta::{BatchMeta, SampleMeta};
use super::super::super::util::nanoseconds_since;
use super::super::settings::PrefetchReason;
use super::super::store::Item;
use super::{CAT, EpochBuffer};

/// What the task does next.
enum Step {
    Push(Item),
    /// The epoch was asked for: it begins.
    Open(u64),
    Restart(u64),
    Stop,
}

impl EpochBuffer {
    /// Releases what is not delivered, but for what the stream cannot do without: caps and their like.
    pub(super) fn discard(&self, items: Vec<Item>) {
        for item in items {
            if let Item::Event(event) = item
                && event.is_sticky()
                && !matches!(event.type_(), gst::EventType::Segment | gst::EventType::Eos)
            {
                let _ = self.src_pad.store_sticky_event(&event);
            }
        }
    }

    /// Allows the epoch behind one that is all here to be prepared, where that is wanted and there is room. Only one is
    /// prepared at a time.
    pub(super) fn allow(&self) {
        let ended = self.shared.lock().ended;
        let (Some(epoch), Some(coordinator)) = (ended, self.coordinator()) else {
            return;
        };
        if !coordinator.has_next(epoch) || !coordinator.is_requested(epoch) {
            return;
        }
        let reason = self.prefetch_reason();
        gst::debug!(CAT, imp = self, "Preparing epoch {}: {reason:?}", epoch + 1);
        if reason == PrefetchReason::Ok {
            let prepared = coordinator.allow(epoch + 1);
            self.shared.change(|state| {
                state.ended.take_if(|ended| *ended == epoch);
                state.stats.prepared += u64::from(prepared);
            });
        }
    }

    /// Waits for something to do.
    fn next_step(&self) -> Step {
        let coordinator = self.coordinator();
        let start = Instant::now();
        let mut state = self.shared.lock();
        loop {
            match state.flow {
                Ok(_) => (),
                Err(gst::FlowError::Eos) => state.boundary = None,
                Err(_) => return Step::Stop,
            }
            if let (Some(epoch), Some(coordinator)) = (state.boundary, &coordinator) {
                // Called without this element's lock being needed by the coordinator: it only reads its own state. In this
                // order, since between the two a request may report a failure, and another one be accepted.
                let requested = coordinator.is_requested(epoch);
                if coordinator.restart() == Some(epoch) {
                    // Somebody else's seek may make it needless; its end is told.
                    if state.passing == 0 && !coordinator.is_seeking() {
                        return Step::Restart(epoch);
                    }
                } else if requested {
                    return Step::Open(epoch);
                }
                let eos_in_front = matches!(state.store.front(), Some(Item::Event(event)) if event.type_() == gst::EventType::Eos);
                if eos_in_front {
                    state.boundary = None;
                } else if coordinator.is_ending() && state.store.has_eos() {
                    // Behind a closed gate: nobody takes it any more.
                    loop {
                        match state.store.pop() {
                            Some(Item::Event(event)) if event.type_() == gst::EventType::Eos => {
                                return Step::Push(Item::Event(event));
                            }
                            Some(_) => (),
                            None => break,
                        }
                    }
                }
            }
            if state.boundary.is_none()
                && let Some(item) = state.store.pop()
            {
                state.stats.starved += nanoseconds_since(start);
                return Step::Push(item);
            }
            state = self.shared.wait(state);
        }
    }

    /// One turn of the task.
    pub(super) fn deliver(&self) {
        let result = match self.next_step() {
            Step::Stop => {
                let _ = self.src_pad.pause_task();
                return;
            }
            Step::Open(epoch) => {
                self.open(epoch);
                Ok(())
            }
            Step::Restart(epoch) => self.restart(epoch),
            Step::Push(item) => {
                // There is room now, and the push may take long.
                self.shared.changed.notify_all();
                self.push(item)
            }
        };
        self.shared.changed.notify_all();
        if let Err(flow) = result {
            gst::debug!(CAT, imp = self, "Delivery ends: {flow}");
            self.shared.change(|state| {
                if state.flow != Err(gst::FlowError::Flushing) {
                    state.flow = Err(flow);
                }
            });
        }
    }

    /// `epoch` was asked for: lets it through, or has it read again if it was made under another recipe.
    fn open(&self, epoch: u64) {
        let Some(coordinator) = self.coordinator() else {
            return;
        };
        if !coordinator.is_current(epoch) {
            gst::info!(CAT, imp = self, "Epoch {epoch} was prepared under another recipe");
            coordinator.invalidate(epoch);
            self.shared.change(|state| state.stats.invalidated += 1);
            return;
        }
        coordinator.deliver(epoch);
        self.shared.change(|state| {
            state.boundary = None;
            state.stats.taken += 1;
        });
        // All of it may be here already.
        self.allow();
    }

    /// Throws away what is held of `epoch` and has it read again.
    fn restart(&self, epoch: u64) -> Result<(), gst::FlowError> {
        let seqnum = gst::Seqnum::next();
        let items = self.shared.change(|state| {
            state.restarting = (state.passing == 0).then_some(seqnum);
            state.restarting.map(|_| {
                state.ended = None;
                state.store.take()
            })
        });
        let Some(items) = items else {
            // Put off: somebody else's seek has come since this was decided.
            return Ok(());
        };
        self.discard(items);
        if let Some(coordinator) = self.coordinator() {
            coordinator.restart_with(seqnum);
        }
        let seek = gst::event::Seek::builder(
            1.0,
            gst::SeekFlags::FLUSH,
            gst::SeekType::Set,
            gst::format::Default::ZERO,
            gst::SeekType::None,
            gst::format::Default::NONE,
        )
        .seqnum(seqnum)
        .build();
        // The upstream thread may wait for room: it has some now, and is turned away until the flush has passed.
        let done = self.sink_pad.push_event(seek);
        let (leftover, flushing) = self.shared.change(|state| {
            let flushing = state.flow == Err(gst::FlowError::Flushing);
            (state.restarting.take().is_some(), flushing)
        });
        if flushing || self.sink_pad.pad_flags().contains(gst::PadFlags::FLUSHING) {
            // Somebody else flushes or stops.
            return Err(gst::FlowError::Flushing);
        }
        let put_off = |coordinator: Arc<Coordinator>| {
            !coordinator.is_restart(seqnum) && coordinator.restart() == Some(epoch)
        };
        if !done && self.coordinator().is_some_and(put_off) {
            // Somebody else's seek came first. If the restart is still needed behind that, there will be another.
            return Ok(());
        }
        if !done || leftover {
            gst::element_imp_error!(
                self,
                gst::CoreError::Seek,
                ("Epoch {epoch} cannot be read again: the elements upstream refused a flushing seek"),
                ["Every element between epochsrc and epochbuffer must pass seek and flush events"]
            );
            return Err(gst::FlowError::Error);
        }
        Ok(())
    }

    /// Where no consumer of ours follows, what was pushed counts as consumed.
    fn acknowledge(&self, batch: Option<BatchMeta>, sample: Option<SampleMeta>) {
        let Some(registration) = self.registration().filter(|registration| registration.counts()) else {
            return;
        };
        let result = match (batch, sample) {
            (Some(batch), _) => registration.acknowledge(batch.epoch, &batch.state),
            (None, Some(sample)) => registration.acknowledge_sample(&sample),
            (None, None) => Ok(()),
        };
        if let Err(error) = result {
            error.warn(&*self.obj());
        }
    }

    /// Downstream ends the stream. Of every reason but EOS and flushing the bus must hear: upstream may have nothing more
    /// to push that would tell it.
    fn refused(&self, flow: gst::FlowError) {
        if matches!(flow, gst::FlowError::Eos | gst::FlowError::Flushing) {
            return;
        }
        gst::element_imp_error!(
            self,
            gst::StreamError::Failed,
            ("The next element refused a buffer: {flow}"),
            ["Link an element behind epochbuffer that takes what comes in front of it"]
        );
        self.src_pad.push_event(gst::event::Eos::new());
    }

    fn push(&self, item: Item) -> Result<(), gst::FlowError> {
        match item {
            Item::Buffer(buffer) => {
                // By this thread, which acknowledges what it has pushed before.
                if !std::mem::replace(&mut self.shared.lock().placed, true) {
                    self.find_place(&buffer);
                }
                let batch = BatchMeta::get(&buffer);
                let sample = SampleMeta::get(&buffer);
                self.src_pad
                    .push(buffer)
                    .inspect_err(|flow| self.refused(*flow))?;
                self.acknowledge(batch, sample);
                // There is room for one more.
                self.allow();
            }
            Item::Event(event) => {
                self.src_pad.push_event(event);
            }
            Item::EpochEnd(event) => {
                let end = EpochEnd::get(&event);
                let coordinator = self.coordinator();
                if let (Some(end), Some(coordinator)) = (&end, &coordinator)
                    && coordinator.has_next(end.epoch)
                {
                    // Before the consumer learns of the end: its request may come from inside the push.
                    self.shared.change(|state| state.boundary = Some(end.epoch + 1));
                    // There may have been no room so far.
                    self.allow();
                }
                let pushed = self.src_pad.push_event(event);
                if let (true, Some(end), Some(registration)) = (pushed, end, self.registration())
                    && let Err(error) = registration.acknowledge_end(&end)
                {
                    error.warn(&*self.obj());
                }
            }
        }
        Ok(())
    }
}
