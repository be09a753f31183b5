//! What the buffer holds: a bounded queue whose entries know their epoch. No threads here.

use std::collections::VecDeque;

use glib::{GStr, gstr};

use super::super::cuda::MEMORY_TYPE;

/// Types of memory on a GPU, as their allocators call them: our batches and the frames of GStreamer's CUDA elements.
const DEVICE_MEMORY: &[&GStr] = &[MEMORY_TYPE, gstr!("gst.cuda.memory")];

/// How much may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    pub buffers: u64,
    pub bytes: u64,
}

/// How much is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Level {
    pub buffers: u64,
    /// On the host and on devices.
    pub bytes: u64,
    /// Those of them that are on devices.
    pub device_bytes: u64,
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
#[derive(Debug)]
pub(super) struct Store {
    items: VecDeque<Item>,
    level: Level,
    /// The most there was, of each.
    most: Level,
    /// The types of memory that count as a device's.
    device_memory: &'static [&'static GStr],
}

impl Default for Store {
    fn default() -> Self {
        Self {
            items: VecDeque::new(),
            level: Level::default(),
            most: Level::default(),
            device_memory: DEVICE_MEMORY,
        }
    }
}

/// Bytes of `buffer` in memory of one of `types`.
fn bytes_of(buffer: &gst::BufferRef, types: &[&GStr]) -> u64 {
    let memories = buffer.iter_memories();
    memories
        .filter(|memory| types.iter().any(|name| memory.is_type(*name)))
        .map(|memory| memory.size() as u64)
        .sum()
}

impl Store {
    /// Whether a buffer of `bytes` fits; one is always admitted.
    pub fn has_room(&self, bytes: u64, budget: Budget) -> bool {
        let held = self.level;
        held.buffers == 0
            || (held.buffers < budget.buffers && held.bytes.saturating_add(bytes) <= budget.bytes)
    }

    /// Appends an entry.
    pub fn push(&mut self, item: Item) {
        if let Item::Buffer(buffer) = &item {
            let (level, most) = (&mut self.level, &mut self.most);
            level.buffers += 1;
            level.bytes += buffer.size() as u64;
            level.device_bytes += bytes_of(buffer, self.device_memory);
            most.buffers = most.buffers.max(level.buffers);
            most.bytes = most.bytes.max(level.bytes);
            most.device_bytes = most.device_bytes.max(level.device_bytes);
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
            self.level.buffers -= 1;
            self.level.bytes -= buffer.size() as u64;
            self.level.device_bytes -= bytes_of(buffer, self.device_memory);
        }
        item
    }

    /// Takes everything, to be released without a lock. The high-water marks stay.
    pub fn take(&mut self) -> Vec<Item> {
        self.level = Level::default();
        self.items.drain(..).collect()
    }

    /// Whether an EOS waits.
    pub fn has_eos(&self) -> bool {
        self.items
            .iter()
            .any(|item| matches!(item, Item::Event(event) if event.type_() == gst::EventType::Eos))
    }

    /// What is held now.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The most that was held, of each.
    pub fn most(&self) -> Level {
        self.most
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn level(buffers: u64, bytes: u64, device_bytes: u64) -> Level {
        Level {
            buffers,
            bytes,
            device_bytes,
        }
    }

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
        assert_eq!(store.level(), level(2, 10, 0));
        assert!(matches!(store.pop(), Some(Item::Buffer(_))));
        assert_eq!(store.level(), level(1, 6, 0));
        assert_eq!(store.take().len(), 1);
        assert_eq!(store.level(), level(0, 0, 0));
        assert_eq!(store.most(), level(2, 10, 0));
        assert!(store.front().is_none() && store.pop().is_none());
    }

    #[test]
    fn memory_counts_as_a_devices_by_its_type() {
        /// The host's memory stands in for a device's, whose types need a device.
        const STAND_IN: &[&GStr] = &[gstr!("another"), gstr!("SystemMemory")];
        gst::init().unwrap();
        let mut store = Store {
            device_memory: STAND_IN,
            ..Store::default()
        };
        let buffer = |size: usize| gst::Buffer::with_size(size).unwrap();
        let mut mixed = buffer(4);
        // Memory of another allocator, behind that of the system's.
        mixed
            .get_mut()
            .unwrap()
            .append_memory(gst::Memory::from_slice([0u8; 3]));
        store.push(Item::Buffer(mixed));
        store.push(Item::Buffer(buffer(5)));
        assert_eq!(store.level(), level(2, 12, 9));
        store.pop();
        assert_eq!(store.level(), level(1, 5, 5));
        store.take();
        assert_eq!((store.level(), store.most()), (level(0, 0, 0), level(2, 12, 9)));

        let mut store = Store::default();
        store.push(Item::Buffer(buffer(4)));
        assert_eq!(
            store.level(),
            level(1, 4, 0),
            "the system's memory is not a device's"
        );
    }
}
