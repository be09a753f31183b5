//! A sink's pad at which every batch waits for the test.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use epochfeed::elements::epoch_end::EpochEnd;
use gst::prelude::*;

use super::LIMIT;
use super::consumer::Batch;

#[derive(Default)]
struct State {
    standing: Option<Batch>,
    /// Epochs that have ended in front of what stands here.
    ended: VecDeque<End>,
    /// Nothing is let in: the stream is flushed or stops.
    shut: bool,
    /// Counts how often it was shut, for a thread that sleeps over it.
    times_shut: u64,
    error: Option<String>,
    warning: Option<String>,
}

/// See the [module](self).
#[derive(Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

/// What is known of an epoch at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    pub epoch: u64,
    pub skipped: u64,
    pub replaced: u64,
}

/// What is there.
#[derive(Debug, PartialEq)]
pub enum Next {
    Batch,
    End(End),
}

impl Gate {
    /// A gate in front of the sink's `pad`; it also hears what elements say on `bus`.
    pub fn new(pad: &gst::Pad, bus: &gst::Bus) -> Arc<Self> {
        let gate = Arc::new(Self::default());
        let probe = gate.clone();
        let what =
            gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM | gst::PadProbeType::EVENT_FLUSH;
        pad.add_probe(what, move |_, info| {
            match &info.data {
                Some(gst::PadProbeData::Buffer(buffer)) if !probe.hold(Batch::of(buffer)) => {
                    // Not dropped, which would count as taken.
                    info.data = None;
                    info.flow_res = Err(gst::FlowError::Flushing);
                    return gst::PadProbeReturn::Handled;
                }
                Some(gst::PadProbeData::Event(event)) => match event.type_() {
                    gst::EventType::FlushStart => probe.shut(true),
                    gst::EventType::FlushStop => probe.shut(false),
                    _ => {
                        if let Some(end) = EpochEnd::get(event) {
                            let end = End {
                                epoch: end.epoch,
                                skipped: end.ledger.skipped,
                                replaced: end.ledger.replaced,
                            };
                            probe.change(|state| {
                                if !state.shut {
                                    state.ended.push_back(end);
                                }
                            });
                        }
                    }
                },
                _ => (),
            }
            gst::PadProbeReturn::Ok
        });
        let hearing = gate.clone();
        bus.set_sync_handler(move |_, message| {
            match message.view() {
                gst::MessageView::Error(error) => {
                    let error = format!("{} {:?}", error.error(), error.debug());
                    // While a pipeline stops, a capsfilter whose source pad is inactive already makes an error of it.
                    hearing.change(|state| {
                        if !state.shut {
                            state.error.get_or_insert(error);
                        }
                    });
                }
                gst::MessageView::Warning(warning) => {
                    // Of a request that failed; others say how few samples are left.
                    let warning = warning.error().to_string();
                    if warning.contains("could not be prepared") {
                        hearing.change(|state| state.warning = Some(warning));
                    }
                }
                _ => (),
            }
            gst::BusSyncReply::Drop
        });
        gate
    }

    /// A test that fails while it waits must still be able to stop the stream.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// On the streaming thread: waits until the test has taken `batch`; false if the stream was flushed instead.
    fn hold(&self, batch: Batch) -> bool {
        let mut state = self.lock();
        let times_shut = state.times_shut;
        if state.shut {
            return false;
        }
        assert_eq!(state.standing, None, "two at a time");
        state.standing = Some(batch);
        self.changed.notify_all();
        let waits = |state: &mut State| state.times_shut == times_shut && state.standing.is_some();
        let state = self.changed.wait_while(state, waits);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        state.times_shut == times_shut
    }

    /// Turns away what stands here, and lets nothing in; or the stream begins anew.
    pub fn shut(&self, shut: bool) {
        self.change(|state| {
            if shut {
                state.times_shut += 1;
                state.standing = None;
                state.ended.clear();
            }
            state.shut = shut;
        });
    }

    /// Waits until something is there.
    ///
    /// # Errors
    /// What the stream failed with.
    #[track_caller]
    pub fn next(&self) -> Result<Next, String> {
        let deadline = Instant::now() + LIMIT;
        let mut state = self.lock();
        loop {
            if let Some(end) = state.ended.front() {
                return Ok(Next::End(*end));
            }
            if state.standing.is_some() {
                return Ok(Next::Batch);
            }
            if let Some(error) = &state.error {
                return Err(error.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "nothing comes in {LIMIT:?}");
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Takes the end that is there.
    pub fn take_end(&self) -> Option<End> {
        self.change(|state| state.ended.pop_front())
    }

    /// Takes the batch that is there.
    pub fn take_batch(&self) -> Option<Batch> {
        self.change(|state| state.standing.take())
    }

    /// What an element warned of since this was called last.
    pub fn take_warning(&self) -> Option<String> {
        self.change(|state| state.warning.take())
    }

    /// Nothing stands here.
    #[track_caller]
    pub fn assert_empty(&self) {
        let state = self.lock();
        let leak = (&state.standing, &state.ended);
        assert_eq!(leak, (&None, &VecDeque::new()), "nobody has asked for it");
    }
}
