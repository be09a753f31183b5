//! Frames kept in memory from one epoch to the next.
//!
//! What is kept is what the decoder gave: the transform behind it caches nothing. A frame is shared with whoever it was
//! delivered to; who wants to write to it gets a copy, as with every shared buffer. It is found again under its file's URI
//! as long as the file is the same version and frames are made as they were.
//!
//! Nothing is thrown out to make room for what is new: in an epoch each sample comes once, so that of a dataset larger than
//! the budget the part that fits gives hits in every epoch, where throwing out the oldest would give none in sequence. Only
//! frames that nobody asked for in a whole epoch make room: those of files that are gone.
//!
//! The lock is never held over the release of a frame.

use std::collections::HashMap;
use std::sync::Mutex;

use super::super::coordinator::FrameKey;
use super::super::util::lock;
use super::job::Decoded;
use super::output::Output;
use crate::decode::Format;

struct Entry {
    version: u64,
    annotated: Option<(u32, u32)>,
    decoded: Decoded,
    bytes: u64,
    /// The last epoch that asked for it.
    used: u64,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<String, Entry>,
    bytes: u64,
    /// The last epoch for which room was made.
    swept: u64,
}

/// The frames; see the [module](self).
pub(super) struct Cache {
    budget: u64,
    inner: Mutex<Inner>,
}

impl Cache {
    /// An empty cache for `budget` bytes of frames.
    pub fn new(budget: u64) -> Self {
        Self {
            budget,
            inner: Mutex::default(),
        }
    }

    /// What was kept under `key`, if `output` would make it the same again.
    pub fn get(&self, key: &FrameKey, output: &Output) -> Option<Decoded> {
        let mut inner = lock(&self.inner);
        let entry = inner.entries.get_mut(&key.uri)?;
        let same = (entry.version, entry.annotated) == (key.version, key.annotated);
        if !same || !output.makes(&entry.decoded.info) {
            return None;
        }
        entry.used = entry.used.max(key.epoch);
        Some(Decoded {
            warnings: 0,
            warning: None,
            cached: true,
            ..entry.decoded.clone()
        })
    }

    /// The format of the file of `key`, if its frame is kept; it stays at least for this epoch.
    pub fn format(&self, key: &FrameKey) -> Option<Format> {
        let mut inner = lock(&self.inner);
        let entry = inner.entries.get_mut(&key.uri)?;
        if (entry.version, entry.annotated) != (key.version, key.annotated) {
            return None;
        }
        entry.used = entry.used.max(key.epoch);
        Some(entry.decoded.format)
    }

    /// Keeps `decoded`, if there is room for it.
    pub fn put(&self, key: FrameKey, decoded: &Decoded) {
        let bytes = decoded.frame.size() as u64;
        let mut inner = lock(&self.inner);
        let mut gone = Vec::from_iter(inner.entries.remove(&key.uri));
        if inner.bytes - total(&gone) + bytes > self.budget && inner.swept < key.epoch {
            inner.swept = key.epoch;
            let unused = inner
                .entries
                .extract_if(|_, entry| entry.used.saturating_add(1) < key.epoch);
            gone.extend(unused.map(|(_, entry)| entry));
        }
        inner.bytes -= total(&gone);
        if inner.bytes + bytes <= self.budget {
            inner.bytes += bytes;
            let entry = Entry {
                version: key.version,
                annotated: key.annotated,
                decoded: decoded.clone(),
                bytes,
                used: key.epoch,
            };
            inner.entries.insert(key.uri, entry);
        }
        drop(inner);
        drop(gone);
    }

    /// How many frames there are, and their bytes.
    pub fn levels(&self) -> (u64, u64) {
        let inner = lock(&self.inner);
        (inner.entries.len() as u64, inner.bytes)
    }
}

fn total(entries: &[Entry]) -> u64 {
    entries.iter().map(|entry| entry.bytes).sum()
}
