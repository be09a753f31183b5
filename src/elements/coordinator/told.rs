//! What was told of faulty samples, kept for a consumer that reports it: a sink sees no messages.

use std::collections::BTreeMap;

use super::Coordinator;
use crate::elements::faults::FAULT;

/// The faults that were told, by epoch and place in it; told twice, behind a flush, they are one.
pub(super) type Told = BTreeMap<(u64, u64), gst::Message>;

impl Coordinator {
    /// Says whether the faults that are told are kept until they are [taken](Self::take_faults).
    pub fn keep_faults(&self, keep: bool) {
        let before = std::mem::replace(&mut self.lock().told, keep.then(Told::default));
        drop(before);
    }

    /// The `epochfeed-fault` messages of the epochs up to `epoch`, in order.
    pub fn take_faults(&self, epoch: u64) -> Vec<gst::Message> {
        let mut inner = self.lock();
        let Some(told) = &mut inner.told else {
            return Vec::new();
        };
        let later = told.split_off(&(epoch.saturating_add(1), 0));
        let taken = std::mem::replace(told, later);
        drop(inner);
        taken.into_values().collect()
    }

    /// `message` is told now.
    pub(super) fn note_told(&self, message: &gst::Message) {
        let place = message
            .structure()
            .filter(|said| said.name() == FAULT)
            .and_then(|said| Some((said.get("epoch").ok()?, said.get("index").ok()?)));
        if let Some(place) = place {
            let mut inner = self.lock();
            let before = inner
                .told
                .as_mut()
                .and_then(|told| told.insert(place, message.clone()));
            // A message holds its element: not under the lock.
            drop(inner);
            drop(before);
        }
    }
}
