//! What a consumer takes: from the sampler alone, without a pipeline and without preparing anything.

use epochfeed::elements::faults::OnError;
use epochfeed::elements::nhwcpack::LastBatch;
use epochfeed::sampler::{Order, Receipt, Sampler, State};

use super::consumer::Batch;
use super::life::Setup;

/// A place in the sequence of epochs.
#[derive(Clone, Debug, PartialEq)]
pub struct Stand {
    pub receipt: Receipt,
    pub position: u64,
}

/// A sample of a batch by its slot: what should be there, and whether something else is.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    dataset_index: u64,
    pad: bool,
    replaced: bool,
}

/// The definition.
#[derive(Clone)]
pub struct Oracle<'a> {
    setup: &'a Setup,
    sampler: Sampler,
    /// Where the consumer takes next.
    pub stand: Stand,
    /// Position from which a seek has had this epoch read: what lies before cannot replace anything.
    read_from: u64,
    /// What a run that resumes knows of; `None` before anything was taken.
    pub acknowledged: Option<Stand>,
    /// The last epoch of the run.
    last: Option<u64>,
}

impl<'a> Oracle<'a> {
    pub fn new(setup: &'a Setup) -> Self {
        let sampler = Sampler::new(setup.sampler.clone()).unwrap();
        let stand = Stand {
            receipt: sampler.first(),
            position: 0,
        };
        let mut oracle = Self {
            setup,
            sampler,
            stand,
            read_from: 0,
            acknowledged: None,
            last: None,
        };
        oracle.begin_run();
        oracle
    }

    fn begin_run(&mut self) {
        let more = self.setup.epochs.map(|epochs| u64::from(epochs) - 1);
        self.last = more.map(|more| self.epoch() + more);
    }

    pub fn epoch(&self) -> u64 {
        self.stand.receipt.epoch()
    }

    fn order(&self) -> Order {
        self.sampler.draw(&self.stand.receipt)
    }

    /// Slots of every epoch.
    pub fn slots(&self) -> u64 {
        self.order().len()
    }

    pub fn has_next(&self) -> bool {
        self.last.is_none_or(|last| self.epoch() < last)
    }

    /// What comes from `position` on of an epoch that is read from `read_from` on, each with the position behind it.
    fn entries(&self, order: &Order, read_from: u64, position: u64) -> Vec<(Entry, u64)> {
        let policy = self.setup.on_error.for_world(self.setup.sampler.world_size);
        let is_broken = |index: u64| self.setup.broken.is_some_and(|(broken, _)| broken == index);
        let slots = |from: u64| (from..order.len()).filter_map(|at| Some((order.slot(at)?, at + 1)));
        // Without a good one there is nothing to repeat.
        let good = slots(read_from).any(|(slot, _)| !is_broken(slot.dataset_index));
        slots(position)
            .filter_map(|(slot, behind)| {
                let replaced = is_broken(slot.dataset_index);
                let entry = Entry {
                    dataset_index: slot.dataset_index,
                    pad: slot.pad,
                    replaced,
                };
                (!replaced || (policy == OnError::Replace && good)).then_some((entry, behind))
            })
            .collect()
    }

    /// What is left of the epoch, as batches.
    fn batches(&self, order: &Order, read_from: u64, position: u64) -> Vec<Vec<(Entry, u64)>> {
        let size = self.setup.batch_size as usize;
        let mut batches: Vec<_> = self
            .entries(order, read_from, position)
            .chunks(size)
            .map(<[_]>::to_vec)
            .collect();
        if self.setup.last_batch == LastBatch::Drop {
            batches.retain(|batch| batch.len() == size);
        }
        batches
    }

    /// Frames and batches of the next epoch, if this one is left as `exhausted` says.
    pub fn next_counts(&self, exhausted: bool) -> (u64, u64) {
        let order = self
            .sampler
            .draw(&self.sampler.next(&self.stand.receipt, exhausted));
        (
            self.entries(&order, 0, 0).len() as u64,
            self.batches(&order, 0, 0).len() as u64,
        )
    }

    /// `batch` must be what comes next.
    pub fn take(&mut self, batch: &Batch) {
        let mut left = self.batches(&self.order(), self.read_from, self.stand.position);
        assert!(
            !left.is_empty(),
            "a batch behind the end of epoch {}: {batch:?}",
            self.epoch()
        );
        let wanted = left.remove(0);
        assert_eq!(batch.epoch, self.epoch(), "{batch:?}");
        let found: Vec<_> = batch
            .samples
            .iter()
            .map(|sample| Entry {
                dataset_index: sample.replaced_from.unwrap_or(sample.dataset_index),
                pad: sample.pad,
                replaced: sample.replaced_from.is_some(),
            })
            .collect();
        let entries: Vec<_> = wanted.iter().map(|(entry, _)| *entry).collect();
        assert_eq!(found.get(..entries.len()), Some(&entries[..]), "{batch:?}");
        // What fills up a last batch repeats what has been there; only a last one is filled up, and to its end.
        let filling = &found[entries.len()..];
        assert!(filling.iter().all(|entry| entry.pad), "{batch:?}");
        let whole = self.setup.last_batch == LastBatch::Pad || !left.is_empty();
        let size = self.setup.batch_size as usize;
        assert_eq!(found.len(), if whole { size } else { entries.len() }, "{batch:?}");
        self.stand.position = wanted.last().map_or(0, |(_, behind)| *behind);
        // Too little for another batch belongs to what is behind.
        let tail = self.slots() - self.stand.position;
        // So does what is left out behind a batch that the epoch's end has completed.
        let completed = wanted.len() < size;
        let dropped = self.setup.last_batch == LastBatch::Drop && tail < u64::from(self.setup.batch_size);
        if completed || dropped {
            self.stand.position = self.slots();
        }
        self.acknowledged = Some(self.stand.clone());
        self.assert_stands_at(&batch.state, &self.stand);
    }

    /// Whether nothing more comes of the epoch.
    pub fn is_at_end(&self) -> bool {
        self.batches(&self.order(), self.read_from, self.stand.position)
            .is_empty()
    }

    /// The epoch must end here.
    pub fn end(&mut self) {
        let left = self.batches(&self.order(), self.read_from, self.stand.position);
        assert!(left.is_empty(), "epoch {} ends before {left:?}", self.epoch());
        self.stand.position = self.slots();
        self.acknowledged = Some(self.stand.clone());
    }

    /// The next epoch begins.
    pub fn next(&mut self, exhausted: bool) {
        self.stand = Stand {
            receipt: self.sampler.next(&self.stand.receipt, exhausted),
            position: 0,
        };
        self.read_from = 0;
        if !exhausted {
            self.acknowledged = Some(self.stand.clone());
        }
    }

    /// This epoch was left on purpose: a run that resumes goes on with the next.
    pub fn acknowledge_leaving(&mut self) {
        let mut behind = self.clone();
        behind.next(false);
        self.acknowledged = behind.acknowledged;
    }

    /// The consumer seeks.
    pub fn seek(&mut self, position: u64) {
        self.stand.position = position.min(self.slots());
        self.read_from = self.stand.position;
    }

    /// A new run goes on from what is known.
    pub fn restart(&mut self) {
        let first = Stand {
            receipt: self.sampler.first(),
            position: 0,
        };
        self.stand = self.acknowledged.clone().unwrap_or(first);
        if self.stand.position >= self.slots() {
            self.stand = Stand {
                receipt: self.sampler.next(&self.stand.receipt, true),
                position: 0,
            };
        }
        // The state names the sample delivered last, which can replace others.
        self.read_from = 0;
        self.begin_run();
    }

    fn assert_stands_at(&self, json: &str, stand: &Stand) {
        let state = State::from_json(json).unwrap_or_else(|error| panic!("{json}: {error}"));
        assert_eq!((&state.receipt, state.position), (&stand.receipt, stand.position));
    }

    /// `state` must say what is known.
    pub fn check(&self, state: Option<&str>) {
        match (state, &self.acknowledged) {
            (Some(state), Some(stand)) => self.assert_stands_at(state, stand),
            (None, None) => (),
            (state, stand) => panic!("the state is {state:?}, the consumer at {stand:?}"),
        }
    }
}
