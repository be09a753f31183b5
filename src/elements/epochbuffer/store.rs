//! What the buffer holds: a bounded queue whose entries know their epoch. No threads here.

use std::collections::VecDeque;

/// How much may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    pub buffers: u64,
    pub bytes: u64,
}

/// An entry.
#[derive(Debug)]
pub(super) enum Item {
    Buffer(gst::Buffer),
    /// A serialized event.
    Event(gst::Event),
    /// The SEGMENT_DONE of an epoch.
    EpochEnd(gst::Event),
}

/// Holds entries, in order; see the [module](self).
#[derive(Debug, Default)]
pub(super) struct Store {
    items: VecDeque<Item>,
    buffers: u64,
    bytes: u64,
    /// The most there was.
    pub max_buffers: u64,
    pub max_bytes: u64,
}

impl Store {
    /// Whether a buffer of `bytes` fits; one is always admitted.
    pub fn has_room(&self, bytes: u64, budget: Budget) -> bool {
        self.buffers == 0
            || (self.buffers < budget.buffers && self.bytes.saturating_add(bytes) <= budget.bytes)
    }

    /// Appends an entry.
    pub fn push(&mut self, item: Item) {
        if let Item::Buffer(buffer) = &item {
            self.buffers += 1;
            self.bytes += buffer.size() as u64;
            self.max_buffers = self.max_buffers.max(self.buffers);
            self.max_bytes = self.max_bytes.max(self.bytes);
        }
        self.items.push_back(item);
    }

    /// The entry in front.
    pub fn front(&self) -> Option<&Item> {
        self.items.front()
    }

    /// Takes the entry in front.
    pub fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front();
        if let Some(Item::Buffer(buffer)) = &item {
            self.buffers -= 1;
            self.bytes -= buffer.size() as u64;
        }
        item
    }

    /// Takes everything, to be released without a lock. The high-water marks stay.
    pub fn take(&mut self) -> Vec<Item> {
        (self.buffers, self.bytes) = (0, 0);
        self.items.drain(..).collect()
    }

    /// Whether an EOS waits.
    pub fn has_eos(&self) -> bool {
        self.items
            .iter()
            .any(|item| matches!(item, Item::Event(event) if event.type_() == gst::EventType::Eos))
    }

    /// Buffers and bytes held now.
    pub fn level(&self) -> (u64, u64) {
        (self.buffers, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn one_buffer_is_always_admitted_and_events_cost_nothing() {
        gst::init().unwrap();
        let budget = Budget {
            buffers: 2,
            bytes: 10,
        };
        let mut store = Store::default();
        assert!(store.has_room(1000, budget));
        store.push(Item::Event(gst::event::Eos::new()));
        store.push(Item::Buffer(gst::Buffer::with_size(4).unwrap()));
        assert!(store.has_room(6, budget) && !store.has_room(7, budget));
        store.push(Item::Buffer(gst::Buffer::with_size(6).unwrap()));
        assert!(!store.has_room(0, budget));
        assert!(store.has_eos());
        assert!(matches!(store.pop(), Some(Item::Event(_))));
        assert_eq!(store.level(), (2, 10));
        assert!(matches!(store.pop(), Some(Item::Buffer(_))));
        assert_eq!(store.level(), (1, 6));
        assert_eq!(store.take().len(), 1);
        assert_eq!(store.level(), (0, 0));
        assert_eq!((store.max_buffers, store.max_bytes), (2, 10));
        assert!(store.front().is_none() && store.pop().is_none());
    }
}
