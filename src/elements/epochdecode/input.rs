//! What comes from upstream: images, events, queries; and the task that passes them on.

use gst::prelude::*;
use gst::subclass::prelude::*;

use super::super::coordinator::FrameKey;
use super::super::faults::Place;
use super::super::util::{lock, not_behind_a_stop};
use super::imp::{CAT, EpochDecode};
use super::job::{Task, job};
use super::queue::Item;
use crate::workers::{Class, Stage, Urgency};

impl EpochDecode {
    /// An image: from the cache, or for a worker.
    pub(super) fn chain(&self, buffer: gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        let (workers, ahead, options, cache, bound, number) = {
            let mut active = lock(&self.active);
            let active = active.as_mut().ok_or(gst::FlowError::Flushing)?;
            let number = active.images;
            active.images += 1;
            (
                active.workers.clone(),
                active.ahead.clone(),
                active.options.clone(),
                active.cache.clone(),
                active.bound,
                number,
            )
        };
        self.queue.wait_for_room(bound)?;
        let mut place = Box::new(Place::of(&buffer, number));
        if let Some(fault) = place.sample.fault.take() {
            self.queue.push(Item::Image(place, Some(Err(fault))))?;
            return Ok(gst::FlowSuccess::Ok);
        }
        let output = self.output(&place)?;
        let frames = self.registration().and_then(|entry| entry.coordinator().frames());
        if let (true, Some(frames)) = (self.begins(&place), &frames) {
            frames.begin_batch();
        }
        let keep = cache.and_then(|cache| Some((cache, FrameKey::of(&place)?)));
        if let Some(kept) = keep.as_ref().and_then(|(cache, key)| cache.get(key, &output)) {
            self.queue.push(Item::Image(place, Some(Ok(kept))))?;
            return Ok(gst::FlowSuccess::Ok);
        }
        let ahead_of = place.sample.prepared.then_some(place.sample.epoch);
        let task = Task {
            encoded: buffer,
            annotated: place.annotated(),
            reserved: frames.and_then(|frames| output.reserve(&frames)),
            options,
            output,
            keep,
            busy: self.busy.clone(),
        };
        let entry = self.queue.push(Item::Image(place, None))?;
        let job = job(self.queue.clone(), entry, task);
        match (ahead_of, self.registration()) {
            (Some(epoch), Some(registration)) => ahead.spawn(registration.coordinator(), epoch, job),
            _ => workers.spawn(Class::new(Urgency::Demanded, Stage::Decode), job),
        }
        Ok(gst::FlowSuccess::Ok)
    }

    /// Of a sticky event that is turned away upstream must know why: while this element stops, a mere "no" would become an
    /// error upstream.
    pub(super) fn sink_event(&self, event: gst::Event) -> Result<gst::FlowSuccess, gst::FlowError> {
        let done = |done| {
            if done {
                Ok(gst::FlowSuccess::Ok)
            } else {
                Err(gst::FlowError::Error)
            }
        };
        let queue = |event| self.queue.push(Item::Event(event)).map(|_| gst::FlowSuccess::Ok);
        gst::log!(CAT, obj = self.sink_pad, "{event:?}");
        match event.view() {
            gst::EventView::FlushStart(_) => {
                let forwarded = self.src_pad.push_event(event);
                let events = self.queue.flush();
                let _ = self.src_pad.pause_task();
                // The stream cannot do without its sticky events, which the next frame then takes along. Behind the one that the
                // task has taken and not pushed yet, which that has waited for: their order counts.
                for event in events {
                    if event.is_sticky()
                        && !matches!(event.type_(), gst::EventType::Segment | gst::EventType::Eos)
                    {
                        let _ = self.src_pad.store_sticky_event(&event);
                    }
                }
                // Their places in the queue are gone.
                let workers = lock(&self.active).as_ref().map(|active| active.workers.clone());
                if let Some(workers) = workers {
                    workers.clear();
                }
                done(forwarded)
            }
            gst::EventView::FlushStop(_) => {
                let forwarded = self.src_pad.push_event(event);
                if let Some(delivery) = &mut *lock(&self.delivery) {
                    delivery.resolver.end();
                    delivery.discont = true;
                    delivery.failed = None;
                    delivery.again = false;
                    delivery.sent_again = 0;
                }
                // What comes next begins a batch, be it of the same epoch.
                if let Some(active) = &mut *lock(&self.active) {
                    active.epoch = None;
                }
                self.queue.start();
                done(self.start_task_again() && forwarded)
            }
            gst::EventView::Caps(caps) => {
                let framerate = caps
                    .structure()
                    .and_then(|fields| fields.get::<gst::Fraction>("framerate").ok());
                if let (Some(active), Some(framerate)) = (&mut *lock(&self.active), framerate)
                    && framerate.numer() > 0
                    && framerate != active.framerate
                {
                    active.framerate = framerate;
                    active.output = None;
                }
                done(true)
            }
            gst::EventView::StreamStart(_) => {
                self.find_coordinator();
                queue(event)
            }
            _ if event.is_serialized() => queue(event),
            _ => done(gst::Pad::event_default(&self.sink_pad, Some(&*self.obj()), event)),
        }
    }

    pub(super) fn sink_query(&self, query: &mut gst::QueryRef) -> bool {
        match query.view() {
            // Encoded images need no pool of ours, and nothing serialized waits behind the queue.
            gst::QueryView::Allocation(_) => false,
            _ => gst::Pad::query_default(&self.sink_pad, Some(&*self.obj()), query),
        }
    }

    fn start_task(&self) -> Result<(), glib::BoolError> {
        let element = self.obj().downgrade();
        self.src_pad.start_task(move || {
            if let Some(element) = element.upgrade() {
                element.imp().deliver();
            }
        })
    }

    /// Starts the task behind a flush.
    fn start_task_again(&self) -> bool {
        let started = self.start_task().is_ok();
        not_behind_a_stop(&self.src_pad, started, || {
            let _ = self.activate_src(false);
        })
    }

    pub(super) fn activate_src(&self, active: bool) -> Result<(), gst::LoggableError> {
        if active {
            self.queue.start();
            self.start_task()
                .map_err(|error| gst::loggable_error!(CAT, "Cannot start the delivery task: {error}"))
        } else {
            drop(self.queue.flush());
            self.src_pad
                .stop_task()
                .map_err(|error| gst::loggable_error!(CAT, "Cannot stop the delivery task: {error}"))
        }
    }
}
