//! The protocol against a model: whatever is prepared, dropped, failed, flushed or resumed in between, a consumer takes what it
//! would take if nothing were ever prepared.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::boundary::{Boundary, Failure, Go, Requested};
use crate::sampler::{Receipt, Sampler, SamplerConfig, Shuffle};

/// What the consumer, the world around it, and chance do.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// The source gets some time.
    Read,
    /// The consumer takes the next sample, or learns of the epoch's end.
    Take,
    /// It asks for the next epoch, at its end or early.
    Request,
    /// It leaves the epoch.
    BreakOff,
    /// It seeks to the epoch's start.
    Flush,
    /// A file goes; whoever prepares an epoch with it fails.
    Lose,
    /// It comes back.
    Restore,
    /// A property changes.
    Recipe,
    /// The pipeline stops and resumes from the state.
    Restart,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => Just(Op::Read),
        6 => Just(Op::Take),
        3 => Just(Op::Request),
        1 => Just(Op::BreakOff),
        1 => Just(Op::Flush),
        1 => Just(Op::Lose),
        1 => Just(Op::Restore),
        1 => Just(Op::Recipe),
        1 => Just(Op::Restart),
    ];
    prop::collection::vec(op, 1..120)
}

/// Where a consumer stands: the state, if it were saved now.
#[derive(Clone, Debug, PartialEq)]
struct Stand {
    receipt: Receipt,
    position: u64,
}

/// A sample as it is taken: epoch, index in the dataset, and the recipe it was made under.
type Taken = (u64, u64, u64);

/// The consumer without preparation: the definition.
struct Plain<'a> {
    sampler: &'a Sampler,
    stand: Stand,
    taken: Vec<(u64, u64)>,
}

impl Plain<'_> {
    fn len(&self) -> u64 {
        self.sampler.draw(&self.stand.receipt).len()
    }

    fn take(&mut self) {
        if let Some(slot) = self.sampler.draw(&self.stand.receipt).slot(self.stand.position) {
            self.taken.push((self.stand.receipt.epoch(), slot.dataset_index));
            self.stand.position += 1;
        }
    }

    fn next(&mut self, exhausted: bool) {
        self.stand.receipt = self.sampler.next(&self.stand.receipt, exhausted);
        self.stand.position = 0;
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Reading,
    Ended,
    Boundary,
    Failed,
}

#[derive(Debug)]
enum Held {
    Sample {
        epoch: u64,
        position: u64,
        index: u64,
        recipe: u64,
    },
    End(u64),
}

/// Source, buffer and consumer around the protocol's state, each step as the elements take it.
struct Feed<'a> {
    sampler: &'a Sampler,
    boundary: Boundary,
    receipt: Receipt,
    position: u64,
    phase: Phase,
    opened: BTreeMap<u64, Receipt>,
    held: VecDeque<Held>,
    budget: usize,
    /// The buffer stands at the boundary before this epoch.
    gate: Option<u64>,
    /// The consumer has learned of the end of the epoch it is in.
    ended: bool,
    lost: bool,
    recipe: u64,
    /// The recipe when the epoch that is being delivered was let through.
    opened_under: u64,
    stand: Stand,
    taken: Vec<Taken>,
}

/// The sample whose file goes.
const VICTIM: u64 = 1;

impl<'a> Feed<'a> {
    fn new(sampler: &'a Sampler, stand: Stand, budget: usize) -> Self {
        let (receipt, position) = (stand.receipt.clone(), stand.position);
        Self {
            sampler,
            boundary: Boundary::begin(receipt.epoch()),
            opened: BTreeMap::from([(receipt.epoch(), receipt.clone())]),
            receipt,
            position,
            phase: Phase::Reading,
            held: VecDeque::new(),
            budget,
            gate: None,
            ended: false,
            lost: false,
            recipe: 0,
            opened_under: 0,
            stand,
            taken: Vec::new(),
        }
    }

    /// One step of the source; false if it can do nothing.
    fn read(&mut self) -> bool {
        let epoch = self.receipt.epoch();
        match self.phase {
            Phase::Reading if self.boundary.has_failed(epoch) => self.phase = Phase::Ended,
            Phase::Reading => match self.sampler.draw(&self.receipt).slot(self.position) {
                None => self.phase = Phase::Ended,
                Some(_) if self.held.len() >= self.budget => return false,
                // A file that is missing where it is needed now is an error, which is not what is modelled here.
                Some(slot)
                    if self.lost && slot.dataset_index == VICTIM && !self.boundary.is_requested(epoch) =>
                {
                    assert_eq!(self.boundary.fail(epoch, "lost".into()), Failure::Held);
                }
                Some(slot) => {
                    self.held.push_back(Held::Sample {
                        epoch,
                        position: self.position,
                        index: slot.dataset_index,
                        recipe: self.recipe,
                    });
                    self.position += 1;
                }
            },
            Phase::Ended => {
                self.held.push_back(Held::End(epoch));
                let failed = self.boundary.has_failed(epoch);
                self.phase = if failed { Phase::Failed } else { Phase::Boundary };
            }
            Phase::Boundary => match self.boundary.go(epoch + 1) {
                Some(Go::Requested | Go::Prepare) => {
                    let exhausted = !self.boundary.is_broken_off(epoch);
                    self.receipt = self.sampler.next(&self.receipt, exhausted);
                    self.opened.insert(epoch + 1, self.receipt.clone());
                    (self.position, self.phase) = (0, Phase::Reading);
                }
                Some(Go::Ended) | None => return false,
            },
            Phase::Failed => return false,
        }
        true
    }

    /// What a flushing seek does.
    fn flush_to(&mut self, epoch: u64, position: u64) {
        self.held.clear();
        self.gate = None;
        self.receipt = self.opened[&epoch].clone();
        (self.position, self.phase) = (position, Phase::Reading);
        self.opened.retain(|of, _| *of <= epoch);
        self.boundary.flushed(epoch);
    }

    /// The buffer and the consumer, until a sample or the end of the epoch has come; false if neither can.
    fn take(&mut self) -> bool {
        if self.ended && self.gate.is_some_and(|next| !self.boundary.is_requested(next)) {
            return false;
        }
        loop {
            if let Some(next) = self.gate {
                if self.boundary.restart() == Some(next) {
                    self.boundary.restarted();
                    self.flush_to(next, 0);
                    self.gate = Some(next);
                    continue;
                }
                if !self.boundary.is_requested(next) {
                    return false;
                }
                let stale = self.held.iter().find_map(|held| match held {
                    Held::Sample { recipe, .. } => Some(*recipe != self.recipe),
                    Held::End(_) => None,
                });
                if stale == Some(true) {
                    self.boundary.invalidate(next);
                    continue;
                }
                self.boundary.deliver(next);
                self.opened_under = self.recipe;
                self.gate = None;
            }
            match self.held.pop_front() {
                Some(Held::Sample {
                    epoch,
                    position,
                    index,
                    recipe,
                }) => {
                    self.ended = false;
                    self.taken.push((epoch, index, recipe));
                    self.stand = Stand {
                        receipt: self.opened[&epoch].clone(),
                        position: position + 1,
                    };
                    return true;
                }
                Some(Held::End(epoch)) => {
                    self.gate = Some(epoch + 1);
                    self.boundary.allow(epoch + 1);
                    self.ended = true;
                    return true;
                }
                None if self.read() => (),
                None => return false,
            }
        }
    }
}

fn config() -> impl Strategy<Value = SamplerConfig> {
    let shuffle = prop::sample::select(Shuffle::ALL.to_vec());
    (shuffle, 2u64..7, any::<u64>(), 1u32..3).prop_flat_map(|(shuffle, size, seed, world_size)| {
        (0..world_size).prop_map(move |rank| SamplerConfig {
            rank,
            world_size,
            ..SamplerConfig::new(shuffle, seed, size)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_taken_does_not_depend_on_what_is_prepared(config in config(), ops in ops(), budget in 1usize..12) {
        let sampler = Sampler::new(config).unwrap();
        let start = Stand { receipt: sampler.first(), position: 0 };
        let mut plain = Plain { sampler: &sampler, stand: start.clone(), taken: Vec::new() };
        let mut feed = Feed::new(&sampler, start, budget);
        // The highest epoch that the consumer asked for.
        let mut asked = 0;
        for op in ops {
            match op {
                Op::Read => {
                    feed.read();
                }
                Op::Take => {
                    let before = feed.taken.len();
                    let came = feed.take();
                    if feed.taken.len() > before {
                        // The first sample of an epoch that was asked for moves the plain consumer there.
                        let (epoch, _, recipe) = feed.taken[before];
                        prop_assert!(epoch <= asked, "nobody asked for epoch {epoch}");
                        if epoch != plain.stand.receipt.epoch() {
                            prop_assert_eq!(plain.stand.position, plain.len(), "an epoch is left before its end");
                            plain.next(true);
                        }
                        plain.take();
                        prop_assert!(recipe >= feed.opened_under, "made under a recipe that was gone when it was let through");
                    } else if came {
                        prop_assert_eq!(plain.stand.position, plain.len(), "the end comes at the end");
                    }
                }
                Op::Request => {
                    let next = feed.boundary.next().unwrap();
                    match feed.boundary.request(next) {
                        Requested::Accepted => asked = asked.max(next),
                        Requested::Failed(reason) => prop_assert_eq!(reason, "lost"),
                    }
                }
                Op::BreakOff => {
                    let epoch = plain.stand.receipt.epoch();
                    // Left before its end, and not yet asked for the next.
                    if plain.stand.position < plain.len() && feed.boundary.current() == Some(epoch)
                        && feed.boundary.requested() == Some(epoch)
                    {
                        feed.boundary.break_off(epoch);
                        let length = sampler.draw(&feed.opened[&epoch]).len();
                        feed.flush_to(epoch, length);
                        while !feed.ended {
                            prop_assert!(feed.take(), "the epoch that was left never ends");
                        }
                        plain.next(false);
                        feed.boundary.request(epoch + 1);
                        asked = epoch + 1;
                        feed.stand = plain.stand.clone();
                    }
                }
                Op::Flush => {
                    let epoch = feed.boundary.current().unwrap();
                    if epoch == plain.stand.receipt.epoch() {
                        feed.flush_to(epoch, 0);
                        feed.ended = false;
                        plain.stand.position = 0;
                        feed.stand = plain.stand.clone();
                    }
                }
                Op::Lose => feed.lost = true,
                Op::Restore => feed.lost = false,
                Op::Recipe => feed.recipe += 1,
                Op::Restart => {
                    prop_assert_eq!(&feed.stand, &plain.stand, "the state that is saved");
                    // As epochsrc resumes: behind the end of an epoch begins the next.
                    if plain.stand.position >= plain.len() {
                        plain.next(true);
                    }
                    let (taken, lost, recipe) = (std::mem::take(&mut feed.taken), feed.lost, feed.recipe);
                    feed = Feed::new(&sampler, plain.stand.clone(), budget);
                    asked = plain.stand.receipt.epoch();
                    (feed.taken, feed.lost, feed.recipe) = (taken, lost, recipe);
                }
            }
            let taken: Vec<_> = feed.taken.iter().map(|(epoch, index, _)| (*epoch, *index)).collect();
            prop_assert_eq!(&taken, &plain.taken);
            prop_assert_eq!(&feed.stand, &plain.stand);
        }
        // Nothing stands still for ever: what is asked for comes.
        feed.lost = false;
        for _ in 0..3 {
            let next = feed.boundary.next().unwrap();
            if feed.boundary.request(next) != Requested::Accepted {
                prop_assert_eq!(feed.boundary.request(next), Requested::Accepted);
            }
            let mut steps = 0;
            while feed.boundary.current() != Some(next) {
                prop_assert!(feed.take(), "the epoch that was asked for never begins");
                steps += 1;
                prop_assert!(steps < 100);
            }
        }
    }
}
