//! Between the sink's streaming thread and the thread that trains: one batch, ready.
//!
//! ```text
//!  sink: put ──▶ [ batch │ end of epoch │ … ] ──▶ pop: consumer
//!  bus:  fail ─────────── error ───────────────▶
//! ```
//!
//! One lock, held for assignments only; what is thrown away is released without it. Every wait ends when the feed is
//! closed and when the stream fails.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::error::FeedError;
use super::tensor::Tensor;
use crate::elements::epoch_end::EpochEnd;

/// Batches that wait for the consumer; the rest is held by epochbuffer, whose budget the user chose.
const CAPACITY: usize = 1;

/// What comes out of the stream, in order.
#[derive(Debug)]
enum Item {
    Batch(gst::Buffer, Arc<Tensor>),
    End(EpochEnd),
}

/// What a sink's buffer came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    Done,
    /// The sink flushes or stops.
    Unlocked,
    Closed,
}

/// What a consumer gets.
#[derive(Debug)]
pub(super) enum Pop {
    Batch(gst::Buffer, Arc<Tensor>),
    /// The end of the epoch, in the stream.
    End(EpochEnd),
    /// The stream has ended in the middle of the epoch.
    Eos,
    /// The epoch is not the one that is taken (any more).
    Left,
    Failed(FeedError),
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Item>,
    /// How many of them are batches.
    batches: usize,
    eos: bool,
    /// The sink must not wait.
    unlocked: bool,
    /// The epoch that is being taken.
    taken: Option<u64>,
    /// The stream is on its way to the end of an epoch that was broken off.
    breaking: bool,
    closed: bool,
    /// The first one; those behind it are its consequences.
    error: Option<FeedError>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Exchange {
    state: Mutex<State>,
    /// Signalled at every change.
    changed: Condvar,
}

impl State {
    fn check(&self) -> Result<(), FeedError> {
        match &self.error {
            _ if self.closed => Err(FeedError::Closed),
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front();
        self.batches -= usize::from(matches!(item, Some(Item::Batch(..))));
        item
    }

    fn take(&mut self) -> VecDeque<Item> {
        self.batches = 0;
        std::mem::take(&mut self.items)
    }
}

impl Exchange {
    /// A poisoned lock is used all the same: every change under it is a plain assignment.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    // The stream's side.

    /// Waits for room and puts a batch there.
    pub fn put(&self, buffer: &gst::Buffer, tensor: &Arc<Tensor>) -> Put {
        let mut state = self.lock();
        loop {
            if state.closed {
                return Put::Closed;
            }
            if state.unlocked {
                return Put::Unlocked;
            }
            if state.batches < CAPACITY {
                state.items.push_back(Item::Batch(buffer.clone(), tensor.clone()));
                state.batches += 1;
                drop(state);
                self.changed.notify_all();
                return Put::Done;
            }
            state = self.wait(state);
        }
    }

    /// An epoch has ended in the stream.
    pub fn put_end(&self, end: EpochEnd) {
        self.change(|state| state.items.push_back(Item::End(end)));
    }

    /// The stream has ended.
    pub fn put_eos(&self) {
        self.change(|state| state.eos = true);
    }

    /// Whether the sink must not wait.
    pub fn set_unlocked(&self, unlocked: bool) {
        self.change(|state| state.unlocked = unlocked);
    }

    /// The stream has been flushed: it begins anew behind what was here.
    pub fn flushed(&self) {
        let items = self.change(|state| {
            state.eos = false;
            state.take()
        });
        drop(items);
    }

    /// The stream has failed.
    pub fn fail(&self, error: FeedError) {
        self.change(|state| {
            state.error.get_or_insert(error);
        });
    }

    // The consumer's side.

    /// Nothing more is taken; every wait ends.
    pub fn close(&self) {
        let items = self.change(|state| {
            state.closed = true;
            state.take()
        });
        drop(items);
    }

    /// From now on batches of `epoch` are taken.
    pub fn begin(&self, epoch: u64) {
        self.change(|state| state.taken = Some(epoch));
    }

    /// Nothing more of `epoch` is taken. With `break_off`, says whether the stream is there to be moved to the epoch's
    /// end; [`Exchange::settle`] has to follow then.
    pub fn end(&self, break_off: bool) -> bool {
        let (items, breaking) = self.change(|state| {
            state.taken = None;
            let breaking = break_off && !state.eos && state.check().is_ok();
            state.breaking |= breaking;
            let items = if break_off { state.take() } else { VecDeque::new() };
            (items, breaking)
        });
        drop(items);
        breaking
    }

    /// The stream has been moved to the end of the epoch that was broken off.
    pub fn settle(&self) {
        self.change(|state| state.breaking = false);
    }

    /// Waits until nobody moves the stream.
    pub fn wait_settled(&self) {
        let mut state = self.lock();
        while state.breaking {
            state = self.wait(state);
        }
    }

    /// Whether the stream has ended and nothing of it is left.
    pub fn is_eos(&self) -> bool {
        let state = self.lock();
        state.eos && state.items.is_empty()
    }

    /// Whether there is still something to be had.
    ///
    /// # Errors
    /// The stream's error, or that the feed is closed.
    pub fn check(&self) -> Result<(), FeedError> {
        self.lock().check()
    }

    /// Waits until `epoch`, which was broken off, has ended in the stream.
    ///
    /// # Errors
    /// As [`Exchange::check`].
    pub fn wait_end(&self, epoch: u64) -> Result<(), FeedError> {
        let mut state = self.lock();
        loop {
            state.check()?;
            let left_over = match state.pop() {
                Some(Item::End(end)) if end.epoch == epoch => return Ok(()),
                Some(item) => item,
                None if state.eos => return Ok(()),
                None => {
                    state = self.wait(state);
                    continue;
                }
            };
            drop(state);
            self.changed.notify_all();
            drop(left_over);
            state = self.lock();
        }
    }

    /// Waits for the next batch of `epoch`, or its end.
    pub fn pop(&self, epoch: u64) -> Pop {
        let mut state = self.lock();
        let item = loop {
            if state.taken != Some(epoch) && !state.closed {
                return Pop::Left;
            }
            if let Err(error) = state.check() {
                return Pop::Failed(error);
            }
            match state.pop() {
                Some(Item::End(end)) if end.epoch < epoch => continue,
                Some(item) => break item,
                None if state.eos => return Pop::Eos,
                None => state = self.wait(state),
            }
        };
        drop(state);
        self.changed.notify_all();
        match item {
            Item::Batch(buffer, tensor) => Pop::Batch(buffer, tensor),
            Item::End(end) => Pop::End(end),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::sampler::Ledger;
    use crate::tensor::{Dtype, Layout};

    fn end(epoch: u64) -> EpochEnd {
        EpochEnd {
            epoch,
            start: 0,
            ledger: Ledger::default(),
            error: None,
        }
    }

    fn batch() -> (gst::Buffer, Arc<Tensor>) {
        gst::init().unwrap();
        let tensor = Tensor {
            shape: [1, 1, 1, 3],
            dtype: Dtype::Uint8,
            layout: Layout::Nhwc,
        };
        (gst::Buffer::with_size(3).unwrap(), Arc::new(tensor))
    }

    #[test]
    fn what_was_put_comes_out_in_order_and_only_for_its_epoch() {
        let exchange = Exchange::default();
        let (buffer, tensor) = batch();
        assert!(matches!(exchange.pop(4), Pop::Left));
        exchange.begin(4);
        exchange.put_end(end(3));
        assert_eq!(exchange.put(&buffer, &tensor), Put::Done);
        exchange.put_end(end(4));
        exchange.put_eos();
        assert!(!exchange.is_eos());
        assert!(matches!(exchange.pop(4), Pop::Batch(..)));
        assert!(matches!(exchange.pop(5), Pop::Left));
        assert!(matches!(exchange.pop(4), Pop::End(end) if end.epoch == 4));
        assert!(matches!(exchange.pop(4), Pop::Eos) && exchange.is_eos());
    }

    #[test]
    fn the_first_error_is_kept_and_closing_comes_before_it() {
        let exchange = Exchange::default();
        exchange.begin(0);
        exchange.fail(FeedError::BreakOff { epoch: 1 });
        exchange.fail(FeedError::BreakOff { epoch: 2 });
        assert!(matches!(
            exchange.pop(0),
            Pop::Failed(FeedError::BreakOff { epoch: 1 })
        ));
        assert!(!exchange.end(true), "there is no stream to be moved");
        exchange.close();
        assert!(matches!(exchange.check(), Err(FeedError::Closed)));
        assert!(matches!(exchange.pop(0), Pop::Failed(FeedError::Closed)));
        assert!(matches!(exchange.wait_end(0), Err(FeedError::Closed)));
    }

    #[test]
    fn a_full_exchange_waits_for_room_and_lets_go_when_it_is_told_to() {
        let exchange = Arc::new(Exchange::default());
        let (buffer, tensor) = batch();
        exchange.begin(0);
        assert_eq!(exchange.put(&buffer, &tensor), Put::Done);
        exchange.set_unlocked(true);
        assert_eq!(exchange.put(&buffer, &tensor), Put::Unlocked);
        exchange.set_unlocked(false);
        let (other, second) = (exchange.clone(), buffer.clone());
        let waiting = std::thread::spawn(move || other.put(&second, &tensor));
        assert!(matches!(exchange.pop(0), Pop::Batch(..)));
        assert_eq!(waiting.join().unwrap(), Put::Done);
        exchange.close();
        assert!(buffer.is_writable(), "closing lets go of what nobody has taken");
    }

    #[test]
    fn breaking_off_waits_for_the_epochs_end() {
        let exchange = Arc::new(Exchange::default());
        let (buffer, tensor) = batch();
        exchange.begin(0);
        exchange.put(&buffer, &tensor);
        assert!(exchange.end(true));
        let other = exchange.clone();
        let waiting = std::thread::spawn(move || {
            other.wait_settled();
            other.wait_end(0)
        });
        exchange.flushed();
        exchange.settle();
        exchange.put_end(end(0));
        waiting.join().unwrap().unwrap();
        exchange.begin(1);
        exchange.put_eos();
        assert!(matches!(exchange.pop(1), Pop::Eos));
    }
}
