//! The ordered queue between the sink pad, the workers and the source-pad task.
//!
//! Entries leave in the order they came; a frame leaves when its job has finished. The lock is never held over a
//! push, a query, or the release of a buffer's memory.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::super::faults::{Fault, Place};
use super::job::Decoded;

/// What waits in the queue.
pub(super) enum Item {
    /// A serialized event.
    Event(gst::Event),
    /// An image; `None` while its job has not finished.
    Image(Box<Place>, Option<Result<Decoded, Fault>>),
}

/// The queue; see the [module](self).
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Signalled when an entry is ready or has left, and when flushing begins.
    changed: Condvar,
}

struct State {
    items: VecDeque<Item>,
    /// Number of the entry in front; numbers are never used twice, so that a job from before a flush finds nothing.
    first: u64,
    /// Images among the entries.
    images: usize,
    /// Most images there were at a time.
    high_water: usize,
    /// Why no more images are taken, if so: what the source pad's last push came to.
    flow: Result<gst::FlowSuccess, gst::FlowError>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            items: VecDeque::new(),
            first: 0,
            images: 0,
            high_water: 0,
            flow: Err(gst::FlowError::Flushing),
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the queue, empty.
    pub fn start(&self) {
        let mut state = self.lock();
        state.flow = Ok(gst::FlowSuccess::Ok);
        state.high_water = 0;
    }

    /// Discards everything and takes nothing more; every wait ends. Returns the events that were discarded.
    pub fn flush(&self) -> Vec<gst::Event> {
        let mut state = self.lock();
        state.flow = Err(gst::FlowError::Flushing);
        let items = std::mem::take(&mut state.items);
        state.first += items.len() as u64;
        state.images = 0;
        drop(state);
        self.changed.notify_all();
        items
            .into_iter()
            .filter_map(|item| match item {
                Item::Event(event) => Some(event),
                Item::Image(..) => None,
            })
            .collect()
    }

    /// Takes note of what a push came to. After an error no more images are taken; those that are here leave.
    pub fn set_flow(&self, flow: gst::FlowError) {
        let mut state = self.lock();
        if state.flow != Err(gst::FlowError::Flushing) {
            state.flow = Err(flow);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// What the source pad's last push came to.
    pub fn flow(&self) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.lock().flow
    }

    /// Waits for room below `bound` images.
    pub fn wait_for_room(&self, bound: usize) -> Result<(), gst::FlowError> {
        let mut state = self.lock();
        loop {
            state.flow?;
            if state.images < bound {
                return Ok(());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Appends an entry and returns its number.
    pub fn push(&self, item: Item) -> Result<u64, gst::FlowError> {
        let mut state = self.lock();
        match (&item, state.flow) {
            // After EOS from downstream, events (EOS among them) still go through.
            (Item::Event(_), Err(gst::FlowError::Eos)) => (),
            (_, flow) => {
                flow?;
            }
        }
        if let Item::Image(..) = item {
            state.images += 1;
            state.high_water = state.high_water.max(state.images);
        }
        let number = state.first + state.items.len() as u64;
        state.items.push_back(item);
        drop(state);
        self.changed.notify_all();
        Ok(number)
    }

    /// Whether the entry is still wanted.
    pub fn wants(&self, number: u64) -> bool {
        let state = self.lock();
        number >= state.first && state.flow.is_ok()
    }

    /// Hands in the result of a job.
    pub fn finish(&self, number: u64, decoded: Result<Decoded, Fault>) {
        let mut state = self.lock();
        let index = number
            .checked_sub(state.first)
            .and_then(|index| usize::try_from(index).ok());
        let left_over = match index.and_then(|index| state.items.get_mut(index)) {
            Some(Item::Image(_, result)) => result.replace(decoded),
            _ => Some(decoded),
        };
        drop(state);
        self.changed.notify_all();
        drop(left_over);
    }

    /// Waits for the entry in front to be ready and takes it; `None` when flushing or after an error.
    pub fn pop(&self) -> Option<Item> {
        let mut state = self.lock();
        loop {
            if matches!(state.flow, Err(flow) if flow != gst::FlowError::Eos) {
                return None;
            }
            if !matches!(state.items.front(), None | Some(Item::Image(_, None))) {
                break;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let item = state.items.pop_front();
        state.first += 1;
        if let Some(Item::Image(..)) = item {
            state.images -= 1;
        }
        drop(state);
        self.changed.notify_all();
        item
    }

    /// Images that are here now, and the most there were.
    pub fn levels(&self) -> (usize, usize) {
        let state = self.lock();
        (state.images, state.high_water)
    }
}
