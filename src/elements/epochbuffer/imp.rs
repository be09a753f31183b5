//! Threads: the upstream thread fills the store, the task of the source pad delivers from it.
//!
//! The task stands in one of three places:
//!
//! - **inside an epoch** it pushes what is in front;
//! - **at a boundary**, after the SEGMENT_DONE of epoch N, it allows N+1 to be prepared and waits until N+1 is asked for
//!   (EOS, or a request that came early, ends the wait at once);
//! - **restarting**, it throws away what is held of N+1 and sends a flushing seek upstream, whose flush events end here.
//!
//! Lock order: `state`, `settings` and `registration` are never held together, nor over a push, a query, a post or a
//! call of the coordinator that notifies. The coordinator's listener takes `state` alone.

#![allow(missing_docs)] // the generated accessors: a property is documented by its blurb

mod place;
mod task;

use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::time::Instant;

use glib::subclass::Signal;
use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::super::coordinator::{Coordinator, Listener, Registration, Requested};
use super::super::epoch_end::EpochEnd;
use super::super::util::{Statistics, lock, nanoseconds_since, not_behind_a_stop};
use super::settings::{Prefetch, PrefetchReason, Settings};
use super::store::{Budget, Item, Store};

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "epochbuffer",
        gst::DebugColorFlags::empty(),
        Some("Queue with a gate at the epoch boundary"),
    )
});

/// What the two threads share.
#[derive(Debug)]
struct State {
    store: Store,
    /// What the last push came to; an error ends both threads' work.
    flow: Result<gst::FlowSuccess, gst::FlowError>,
    /// The task stands at the boundary before this epoch.
    boundary: Option<u64>,
    /// The end of this epoch is here, and the one behind it has not been allowed to be prepared.
    ended: Option<u64>,
    /// This element's own flushing seek, by its number, is on its way: its flush events end here, and what comes before
    /// them is dropped.
    restarting: Option<gst::Seqnum>,
    /// Flushing seeks of others that pass here: none of this element's own begins.
    passing: u32,
    /// This element has said where it stands.
    placed: bool,
    stats: Stats,
}

impl Default for State {
    fn default() -> Self {
        Self {
            store: Store::default(),
            flow: Err(gst::FlowError::Flushing),
            boundary: None,
            ended: None,
            restarting: None,
            passing: 0,
            placed: false,
            stats: Stats::default(),
        }
    }
}

/// Counts and nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    prepared: u64,
    taken: u64,
    invalidated: u64,
    failed: u64,
    /// The task waited for data inside an epoch.
    starved: u64,
    /// The upstream thread waited for room.
    blocked: u64,
    waits: u64,
    wait_last: u64,
    wait_min: u64,
    wait_max: u64,
    wait_sum: u64,
}

/// The store and its lock, which the coordinator's listener holds too.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(glib::Properties)]
#[properties(wrapper_type = super::EpochBuffer)]
pub struct EpochBuffer {
    #[property(name = "prefetch", get, set, type = Prefetch, member = prefetch, nick = "Prefetch", blurb = "What may be prepared before it is asked for", mutable_ready, builder(Prefetch::default()))]
    #[property(name = "max-buffers", get, set, type = u32, member = max_buffers, minimum = 1, default = 256, nick = "Maximum buffers", blurb = "How many buffers are held at most", mutable_ready)]
    #[property(name = "max-bytes", get, set, type = u64, member = max_bytes, minimum = 1, default = 1 << 30, nick = "Maximum bytes", blurb = "How many bytes are held at most, on the host and on devices; one buffer is always admitted", mutable_ready)]
    settings: Mutex<Settings>,
    #[property(name = "prefetch-active", get = Self::prefetch_active, type = bool, nick = "Prefetch active", blurb = "Whether the next epoch is prepared before it is asked for")]
    #[property(name = "prefetch-reason", get = Self::prefetch_reason, type = PrefetchReason, nick = "Prefetch reason", blurb = "Why it is, or is not", builder(PrefetchReason::default()))]
    registration: Mutex<Option<Arc<Registration>>>,
    #[property(name = "stats", get = Self::stats, type = Statistics, nick = "Statistics", blurb = "Buffers, bytes and bytes on devices held and the most that were; epochs prepared, taken, invalidated, failed; nanoseconds starved, blocked and waited at boundaries")]
    shared: Arc<Shared>,
    /// Keeps the coordinator's door to this element open.
    listener: Mutex<Option<Arc<Listener>>>,
    sink_pad: gst::Pad,
    src_pad: gst::Pad,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Changes the state and wakes both threads.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    fn wait<'a>(&self, state: std::sync::MutexGuard<'a, State>) -> std::sync::MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Discards everything and takes nothing more; every wait ends.
    fn flush(&self) -> Vec<Item> {
        self.change(|state| {
            state.flow = Err(gst::FlowError::Flushing);
            state.boundary = None;
            state.ended = None;
            state.store.take()
        })
    }
}

impl EpochBuffer {
    fn registration(&self) -> Option<Arc<Registration>> {
        lock(&self.registration).clone()
    }

    fn coordinator(&self) -> Option<Arc<Coordinator>> {
        lock(&self.registration)
            .as_ref()
            .map(|registration| registration.coordinator().clone())
    }

    fn prefetch_reason(&self) -> PrefetchReason {
        let prefetch = lock(&self.settings).prefetch;
        let Some(coordinator) = self.coordinator().filter(|_| prefetch != Prefetch::Off) else {
            return PrefetchReason::Off;
        };
        if prefetch == Prefetch::Complete
            && let Some(ordinary) = coordinator.ordinary()
        {
            return ordinary.into();
        }
        let full = !self.shared.lock().store.has_room(0, self.budget());
        if full {
            PrefetchReason::Budget
        } else {
            PrefetchReason::Ok
        }
    }

    fn prefetch_active(&self) -> bool {
        matches!(
            self.prefetch_reason(),
            PrefetchReason::Ok | PrefetchReason::Budget
        )
    }

    fn budget(&self) -> Budget {
        let settings = lock(&self.settings);
        Budget {
            buffers: settings.max_buffers.into(),
            bytes: settings.max_bytes,
        }
    }

    fn stats(&self) -> Statistics {
        let state = self.shared.lock();
        let (level, most) = (state.store.level(), state.store.most());
        let stats = state.stats;
        drop(state);
        Statistics(
            gst::Structure::builder("epochbuffer-stats")
                .field("level-buffers", level.buffers)
                .field("level-bytes", level.bytes)
                .field("level-device-bytes", level.device_bytes)
                .field("high-water-buffers", most.buffers)
                .field("high-water-bytes", most.bytes)
                .field("high-water-device-bytes", most.device_bytes)
                .field("boundary-waits", stats.waits)
                .field("boundary-wait-last-ns", stats.wait_last)
                .field("boundary-wait-min-ns", stats.wait_min)
                .field(
                    "boundary-wait-mean-ns",
                    stats.wait_sum.checked_div(stats.waits).unwrap_or(0),
                )
                .field("boundary-wait-max-ns", stats.wait_max)
                .field("wait-input-ns", stats.starved)
                .field("wait-output-ns", stats.blocked)
                .field("prepared", stats.prepared)
                .field("taken", stats.taken)
                .field("invalidated", stats.invalidated)
                .field("failed", stats.failed)
                .build(),
        )
    }

    /// Asks for the next epoch; false where there is none, or when preparing it failed, which is told by a warning.
    fn next_epoch(&self) -> bool {
        self.coordinator().is_some_and(|coordinator| {
            let next = coordinator.next();
            next.is_some_and(|next| self.ask(&coordinator, next))
        })
    }

    fn ask(&self, coordinator: &Coordinator, next: u64) -> bool {
        match coordinator.request(next) {
            Requested::Accepted => true,
            Requested::Failed(reason) => {
                gst::element_imp_warning!(
                    self,
                    gst::ResourceError::Read,
                    ("Epoch {next} could not be prepared: {reason}"),
                    ["It is prepared again; ask for it again when the cause is removed"]
                );
                false
            }
        }
    }

    fn chain(&self, buffer: gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        let budget = self.budget();
        let coordinator = self.coordinator();
        let size = buffer.size() as u64;
        let start = Instant::now();
        let mut waited = false;
        let mut state = self.shared.lock();
        loop {
            state.flow?;
            if state.restarting.is_some() {
                return Err(gst::FlowError::Flushing);
            }
            if state.store.has_room(size, budget) {
                break;
            }
            // The application ends the stream: what nobody has asked for must not keep it back.
            let closed = state.boundary.is_some_and(|epoch| {
                coordinator
                    .as_ref()
                    .is_some_and(|coordinator| !coordinator.is_requested(epoch))
            });
            if closed
                && coordinator
                    .as_ref()
                    .is_some_and(|coordinator| coordinator.is_ending())
            {
                return Ok(gst::FlowSuccess::Ok);
            }
            waited = true;
            state = self.shared.wait(state);
        }
        if waited {
            state.stats.blocked += nanoseconds_since(start);
        }
        state.store.push(Item::Buffer(buffer));
        drop(state);
        self.shared.changed.notify_all();
        Ok(gst::FlowSuccess::Ok)
    }

    /// Of a sticky event that is turned away upstream must know why: while this element stops, a mere "no" would become an
    /// error upstream.
    fn sink_event(&self, event: gst::Event) -> Result<gst::FlowSuccess, gst::FlowError> {
        let done = |done| {
            if done {
                Ok(gst::FlowSuccess::Ok)
            } else {
                Err(gst::FlowError::Error)
            }
        };
        gst::log!(CAT, obj = self.sink_pad, "{event:?}");
        match event.view() {
            gst::EventView::FlushStart(_) => {
                if self.shared.lock().restarting == Some(event.seqnum()) {
                    return done(true);
                }
                let forwarded = self.src_pad.push_event(event);
                let items = self.shared.flush();
                let _ = self.src_pad.pause_task();
                // Behind what the task has taken and not pushed yet, which that has waited for: caps in front of its
                // STREAM_START would be in the wrong order.
                self.discard(items);
                done(forwarded)
            }
            gst::EventView::FlushStop(_) => {
                // Events that were on their way when the restart began are of the epoch that is thrown away.
                let own = self.shared.change(|state| {
                    let own = state.restarting.take_if(|seqnum| *seqnum == event.seqnum());
                    own.map(|_| {
                        state.ended = None;
                        state.store.take()
                    })
                });
                if let Some(items) = own {
                    self.discard(items);
                    return done(true);
                }
                let forwarded = self.src_pad.push_event(event);
                self.shared.change(|state| {
                    state.flow = Ok(gst::FlowSuccess::Ok);
                    // The task, in its last turn before the flush stopped it, may have come to a boundary.
                    state.boundary = None;
                });
                done(self.start_task_again() && forwarded)
            }
            _ if !event.is_serialized() => {
                done(gst::Pad::event_default(&self.sink_pad, Some(&*self.obj()), event))
            }
            _ => {
                if event.type_() == gst::EventType::StreamStart {
                    self.find_coordinator()?;
                }
                let end = EpochEnd::get(&event);
                let item = match end {
                    Some(_) => Item::EpochEnd(event),
                    None => Item::Event(event),
                };
                let stored = self.shared.change(|state| match state.flow {
                    // After EOS from downstream, events (EOS among them) still go through.
                    Ok(_) | Err(gst::FlowError::Eos) if state.restarting.is_none() => {
                        let failed = end.as_ref().is_some_and(|end| end.error.is_some());
                        state.stats.failed += u64::from(failed);
                        state.store.push(item);
                        // Under the same lock: a flush must not come in between.
                        if let Some(end) = &end {
                            state.ended = Some(end.epoch);
                        }
                        Ok(())
                    }
                    Ok(_) | Err(gst::FlowError::Eos) => Err(Ok(item)),
                    Err(flow) => Err(Err(flow)),
                });
                match stored {
                    Ok(()) => {
                        if end.is_some() {
                            self.allow();
                        }
                        done(true)
                    }
                    Err(Ok(item)) => {
                        self.discard(vec![item]);
                        done(true)
                    }
                    Err(Err(flow)) => Err(flow),
                }
            }
        }
    }

    /// What comes from below: requests are answered here, so that their caller is never blocked by an epoch.
    fn src_event(&self, event: gst::Event) -> bool {
        if let gst::EventView::Seek(seek) = event.view() {
            let (_, flags, ..) = seek.get();
            if flags.contains(gst::SeekFlags::SEGMENT) && !flags.contains(gst::SeekFlags::FLUSH) {
                return self.coordinator().is_some_and(|coordinator| {
                    coordinator.ask_once(event.seqnum(), |next| self.ask(&coordinator, next))
                });
            }
            if flags.contains(gst::SeekFlags::FLUSH) {
                // Pads that this element's own seek has set flushing would turn this one away.
                let mut state = self.shared.lock();
                while state.restarting.is_some() {
                    state = self.shared.wait(state);
                }
                state.passing += 1;
                drop(state);
                let done = gst::Pad::event_default(&self.src_pad, Some(&*self.obj()), event);
                self.shared
                    .change(|state| state.passing = state.passing.saturating_sub(1));
                return done;
            }
        }
        gst::Pad::event_default(&self.src_pad, Some(&*self.obj()), event)
    }

    fn sink_query(&self, query: &mut gst::QueryRef) -> bool {
        if !query.is_serialized() {
            return gst::Pad::query_default(&self.sink_pad, Some(&*self.obj()), query);
        }
        // Nothing serialized waits behind an epoch: it is answered from below at once.
        let answered = self.src_pad.peer_query(query);
        if let gst::QueryViewMut::Allocation(allocation) = query.view_mut() {
            // A pool with an end would starve the epoch that is prepared while this one is held.
            let pools: Vec<_> = allocation.allocation_pools().collect();
            for (index, (pool, size, minimum, _)) in pools.into_iter().enumerate() {
                allocation.set_nth_allocation_pool(index as u32, pool.as_ref(), size, minimum, 0);
            }
        }
        answered
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

    fn activate_src(&self, active: bool) -> Result<(), gst::LoggableError> {
        if active {
            self.shared.change(|state| {
                *state = State {
                    flow: Ok(gst::FlowSuccess::Ok),
                    ..State::default()
                }
            });
            self.start_task()
                .map_err(|error| gst::loggable_error!(CAT, "Cannot start the task: {error}"))
        } else {
            drop(self.shared.flush());
            self.src_pad
                .stop_task()
                .map_err(|error| gst::loggable_error!(CAT, "Cannot stop the task: {error}"))
        }
    }
}

#[glib::object_subclass]
impl ObjectSubclass for EpochBuffer {
    const NAME: &'static str = "GstEpochBuffer";
    type Type = super::EpochBuffer;
    type ParentType = gst::Element;

    fn with_class(class: &Self::Class) -> Self {
        let template = |name| {
            class
                .pad_template(name)
                .unwrap_or_else(|| unreachable!("declared in pad_templates"))
        };
        let flags = gst::PadFlags::PROXY_CAPS | gst::PadFlags::PROXY_SCHEDULING;
        let sink_pad = gst::Pad::builder_from_template(&template("sink"))
            .chain_function(|_, parent, buffer| {
                Self::catch_panic_pad_function(
                    parent,
                    || Err(gst::FlowError::Error),
                    |this| this.chain(buffer),
                )
            })
            .event_full_function(|_, parent, event| {
                Self::catch_panic_pad_function(
                    parent,
                    || Err(gst::FlowError::Error),
                    |this| this.sink_event(event),
                )
            })
            .query_function(|_, parent, query| {
                Self::catch_panic_pad_function(parent, || false, |this| this.sink_query(query))
            })
            .flags(flags | gst::PadFlags::PROXY_ALLOCATION)
            .build();
        let src_pad = gst::Pad::builder_from_template(&template("src"))
            .event_function(|_, parent, event| {
                Self::catch_panic_pad_function(parent, || false, |this| this.src_event(event))
            })
            .activatemode_function(|_, parent, mode, active| {
                Self::catch_panic_pad_function(
                    parent,
                    || Err(gst::loggable_error!(CAT, "Panic activating the source pad")),
                    |this| match mode {
                        gst::PadMode::Push => this.activate_src(active),
                        _ => Err(gst::loggable_error!(CAT, "Only push mode is possible")),
                    },
                )
            })
            .flags(flags)
            .build();
        Self {
            settings: Mutex::default(),
            registration: Mutex::default(),
            shared: Arc::default(),
            listener: Mutex::default(),
            sink_pad,
            src_pad,
        }
    }
}

#[glib::derived_properties]
impl ObjectImpl for EpochBuffer {
    fn signals() -> &'static [Signal] {
        static SIGNALS: LazyLock<Vec<Signal>> = LazyLock::new(|| {
            vec![
                Signal::builder("next-epoch")
                    .action()
                    .return_type::<bool>()
                    .class_handler(|args| {
                        let element = args[0].get::<super::EpochBuffer>().ok()?;
                        Some(element.imp().next_epoch().to_value())
                    })
                    .build(),
            ]
        });
        &SIGNALS
    }

    fn constructed(&self) {
        self.parent_constructed();
        for pad in [&self.sink_pad, &self.src_pad] {
            if let Err(error) = self.obj().add_pad(pad) {
                gst::error!(CAT, imp = self, "Cannot add {}: {error}", pad.name());
            }
        }
    }
}

impl GstObjectImpl for EpochBuffer {}

impl ElementImpl for EpochBuffer {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Epoch buffer",
                "Generic",
                "Holds the next epoch ready, behind a gate that opens when it is asked for",
                crate::elements::AUTHOR,
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let any = gst::Caps::new_any();
            [
                gst::PadTemplate::new("sink", gst::PadDirection::Sink, gst::PadPresence::Always, &any),
                gst::PadTemplate::new("src", gst::PadDirection::Src, gst::PadPresence::Always, &any),
            ]
            .into_iter()
            .flatten()
            .collect()
        });
        &TEMPLATES
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        match transition {
            gst::StateChange::ReadyToPaused => self.find_coordinator().map_err(|_| gst::StateChangeError)?,
            // Before the pads are deactivated, so that no thread of theirs waits for us.
            gst::StateChange::PausedToReady => drop(self.shared.flush()),
            _ => (),
        }
        let result = self.parent_change_state(transition);
        if transition == gst::StateChange::PausedToReady {
            let listener = lock(&self.listener).take();
            drop(listener);
            let registration = lock(&self.registration).take();
            drop(registration);
        }
        result
    }
}
