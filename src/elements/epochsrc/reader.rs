use std::collections::VecDeque;

use super::super::coordinator::Keepers;
use super::ahead::{Ahead, Interrupted, Interrupter};
use super::wanted::{Content, Wanted};
use crate::dataset::{Dataset, ReadError};
use crate::sampler::{Order, Receipt, Sampler, Slot};

/// Draws epoch after epoch and reads its files in order, some of them ahead: `io_depth` at a time where storage is slow.
/// Nothing is opened beyond the end of the epoch.
pub(super) struct Reader {
    pub dataset: Dataset,
    pub sampler: Sampler,
    receipt: Receipt,
    order: Order,
    /// The next slot to be delivered.
    position: u64,
    /// The epoch is taken to its end; false once the consumer has broken it off.
    exhausted: bool,
    /// The slots from `position` on whose files are read ahead.
    slots: VecDeque<Slot>,
    ahead: Ahead,
    io_depth: usize,
    /// Who keeps frames, whose files need not be read.
    pub keepers: Keepers,
}

/// A slot of the epoch with its file's content.
pub(super) struct Read {
    /// Position in this rank's order.
    pub position: u64,
    pub slot: Slot,
    pub content: Content,
}

impl Reader {
    /// A reader that starts at `position` of the epoch of `receipt`.
    pub fn new(dataset: Dataset, sampler: Sampler, receipt: Receipt, position: u64, io_depth: usize) -> Self {
        let order = sampler.draw(&receipt);
        Self {
            dataset,
            sampler,
            receipt,
            order,
            position,
            exhausted: true,
            slots: VecDeque::new(),
            ahead: Ahead::new(io_depth),
            io_depth: io_depth.max(1),
            keepers: Keepers::default(),
        }
    }

    pub fn epoch(&self) -> u64 {
        self.receipt.epoch()
    }

    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// The receipt of `epoch`, if that is the current one or the one behind it.
    pub fn receipt_of(&self, epoch: u64) -> Option<Receipt> {
        match epoch.checked_sub(self.epoch())? {
            0 => Some(self.receipt.clone()),
            1 => Some(self.sampler.next(&self.receipt, self.exhausted)),
            _ => None,
        }
    }

    pub fn order(&self) -> &Order {
        &self.order
    }

    /// What ends the waits of [`next`](Self::next).
    pub fn interrupter(&self) -> Interrupter {
        self.ahead.interrupter()
    }

    /// Reads the next slot; `None` at the end of the epoch.
    ///
    /// # Errors
    /// [`Interrupted`], and the same slot is still the next.
    pub fn next(&mut self) -> Result<Option<Read>, Interrupted> {
        while self.slots.len() < self.io_depth {
            let Some(slot) = self.order.slot(self.position + self.slots.len() as u64) else {
                break;
            };
            self.slots.push_back(slot);
            self.ahead.push(self.wanted(slot));
        }
        let popped = self.ahead.pop()?;
        let Some((slot, (content, read_ahead))) = self.slots.pop_front().zip(popped) else {
            return Ok(None);
        };
        let content = match content {
            Err(error) if read_ahead => self.look_again(slot, error),
            content => content,
        };
        let position = self.position;
        self.position += 1;
        Ok(Some(Read {
            position,
            slot,
            content,
        }))
    }

    /// Reads a slot that is already behind, on its own.
    pub fn read_again(&self, position: u64, slot: Slot) -> Read {
        Read {
            position,
            slot,
            content: self.read_now(slot),
        }
    }

    fn read_now(&self, slot: Slot) -> Content {
        self.wanted(slot).open().content()
    }

    fn wanted(&self, slot: Slot) -> Wanted {
        Wanted {
            dataset: self.dataset.clone(),
            index: slot.dataset_index,
            epoch: self.epoch(),
            keepers: self.keepers.clone(),
        }
    }

    /// Reads a file that could not be read ahead: what counts is what it is when it is needed. Not one that is as empty as
    /// before: on slow storage a look costs little, and a read holds up everybody.
    fn look_again(&self, slot: Slot, before: ReadError) -> Content {
        let file = self.wanted(slot).open();
        match before {
            ReadError::Empty if file.is_empty() => Err(before),
            _ => file.content(),
        }
    }

    /// Forgets what is read ahead.
    fn forget(&mut self) {
        self.slots.clear();
        self.ahead.clear();
    }

    /// Leaves out what comes before `position`.
    pub fn skip_to(&mut self, position: u64) {
        self.position = position;
        self.forget();
    }

    /// Draws the epoch from `dataset` instead, at its start.
    pub fn reload(&mut self, dataset: Dataset, sampler: Sampler) {
        self.order = sampler.draw(&self.receipt);
        (self.dataset, self.sampler) = (dataset, sampler);
        self.position = 0;
        self.forget();
    }

    /// Starts at `position` of the epoch of `receipt`, of which nothing is opened yet. `exhausted` says whether the epoch
    /// is taken to its end then.
    pub fn seek(&mut self, receipt: Receipt, position: u64, exhausted: bool) {
        self.exhausted = exhausted;
        self.order = self.sampler.draw(&receipt);
        self.receipt = receipt;
        self.position = position.min(self.order.len());
        self.forget();
    }

    /// Goes on to the next epoch, of which nothing is opened yet.
    pub fn advance(&mut self) {
        self.receipt = self.sampler.next(&self.receipt, self.exhausted);
        self.exhausted = true;
        self.order = self.sampler.draw(&self.receipt);
        self.position = 0;
        self.forget();
    }
}
