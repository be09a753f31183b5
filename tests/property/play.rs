//! Lets a consumer live a life.

use std::panic::AssertUnwindSafe;

use epochfeed::elements::faults::OnError;
use epochfeed::feed::Hold;

use super::consumer::{Asked, Batch, Consumer};
use super::life::{Ahead, Door, Life, Op};
use super::oracle::Oracle;
use super::until;
use super::world::World;

/// What the consumer saw, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    Batch(Batch),
    End(u64),
    Asked(Asked),
    /// What a run that resumes would be told, after a step.
    State(Option<String>),
}

/// Where the consumer stands, besides its place in the epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Where {
    /// In an epoch; the next one may have been asked for early.
    Inside { asked: bool },
    /// At the end of one that was taken to its end or left. The next one may have been asked for; nothing of it is here.
    AtEnd { exhausted: bool, asked: bool },
}

struct Player<'a, C> {
    /// In front of the world, whose files it reads.
    consumer: Option<C>,
    world: World,
    oracle: Oracle<'a>,
    at: Where,
    lost: bool,
    seen: Vec<Seen>,
}

/// Lives `life`, preparing as `ahead` says; every step must be as the oracle says.
///
/// # Errors
/// At which step that was not so, and why.
pub fn play<C: Consumer>(life: &Life, ahead: Ahead) -> Result<Vec<Seen>, String> {
    let world = World::new(&life.setup, ahead);
    let mut player = Player {
        consumer: Some(C::start(&world, ahead.threads, None)),
        world,
        oracle: Oracle::new(&life.setup),
        at: Where::Inside { asked: false },
        lost: false,
        seen: Vec::new(),
    };
    // Whatever happened: the epochs behind it are as they should be.
    let ending = [
        Op::Finish,
        Op::Ask(Door::Buffer),
        Op::Finish,
        Op::Resume { threads: 1 },
        Op::Ask(Door::Source),
        Op::Finish,
    ];
    for (number, op) in life.ops.iter().chain(&ending).enumerate() {
        let step = AssertUnwindSafe(|| {
            player.step(*op);
            let state = player.consumer().checkpoint();
            player.oracle.check(state.as_deref());
            player.seen.push(Seen::State(state));
        });
        std::panic::catch_unwind(step).map_err(|panic| {
            let texts = (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>());
            let reason = texts.0.cloned().or(texts.1.map(|&text| text.to_owned()));
            let reason = reason.unwrap_or_default();
            format!("step {number}, {op:?}, with {ahead:?}: {reason}")
        })?;
    }
    Ok(player.seen)
}

impl<C: Consumer> Player<'_, C> {
    fn consumer(&mut self) -> &mut C {
        self.consumer
            .as_mut()
            .expect("there is always one between two steps")
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Take(batches) => self.take(batches.into()),
            Op::Finish => self.take(usize::MAX),
            Op::Ask(door) => self.ask(door),
            Op::Validate(buffers) => self.validate(buffers.into()),
            Op::Leave { meant } => self.leave(meant),
            Op::Flush(position) => self.flush(position),
            Op::Hue(tenths) if self.is_free() => {
                self.world.hue = f64::from(tenths) / 10.0;
                let hue = self.world.hue;
                self.consumer().set_hue(hue);
            }
            Op::Side(more) if self.is_free() && !C::IS_FEED => {
                self.world.side = 8 + 4 * i32::from(more);
                let side = self.world.side;
                self.consumer().set_side(side);
            }
            Op::Lose => self.lose(),
            Op::Fail(door) => self.fail(door),
            Op::Restart => self.renew(|consumer, world| consumer.restart(world)),
            Op::Resume { threads } => self.renew(|consumer, world| {
                let state = consumer.checkpoint();
                drop(consumer);
                C::start(world, threads, state.as_deref())
            }),
            Op::Hue(_) | Op::Side(_) => (),
        }
        if self.is_free() {
            self.consumer().assert_closed();
        }
    }

    /// At the end of an epoch, and the next one has not been asked for.
    fn is_free(&self) -> bool {
        matches!(self.at, Where::AtEnd { asked: false, .. })
    }

    fn end(&mut self) {
        self.oracle.end();
        self.seen.push(Seen::End(self.oracle.epoch()));
        let Where::Inside { asked } = self.at else {
            unreachable!("an epoch ends once")
        };
        self.at = Where::AtEnd {
            exhausted: true,
            asked,
        };
    }

    /// The epoch that was asked for begins, as far as the consumer knows.
    fn begin(&mut self) {
        if let Where::AtEnd {
            exhausted,
            asked: true,
        } = self.at
        {
            self.oracle.next(exhausted);
            self.at = Where::Inside { asked: false };
        }
    }

    fn take(&mut self, batches: usize) {
        self.begin();
        for _ in 0..batches {
            if !matches!(self.at, Where::Inside { .. }) {
                return;
            }
            let taken = self.consumer().take().unwrap();
            if let Some(batch) = taken.batch {
                self.oracle.take(&batch);
                self.seen.push(Seen::Batch(batch));
            }
            if taken.end {
                self.end();
            }
        }
    }

    fn ask(&mut self, door: Door) {
        match self.at {
            // The victim comes back when the next epoch is prepared, failed or not at all.
            Where::Inside { .. } if self.lost => return,
            Where::Inside { .. } if C::IS_FEED => {
                self.at = Where::AtEnd {
                    exhausted: false,
                    asked: false,
                };
            }
            Where::AtEnd { asked: true, .. } => return,
            _ => (),
        }
        self.find();
        let mut asked = self.consumer().ask(door).unwrap();
        if let Asked::Failed(reason) = &asked {
            let name = format!("{:02}.png", self.world.setup.victim);
            assert!(reason.contains(&name), "{reason}");
            asked = self.consumer().ask(door).unwrap();
        }
        let wanted = match self.oracle.has_next() {
            true => Asked::Yes,
            false => Asked::NoMore,
        };
        assert_eq!(asked, wanted);
        self.seen.push(Seen::Asked(asked));
        let has_next = self.oracle.has_next();
        match &mut self.at {
            Where::Inside { asked } | Where::AtEnd { asked, .. } => *asked = has_next,
        }
        if C::IS_FEED {
            if let (Where::AtEnd { exhausted: false, .. }, false) = (self.at, has_next) {
                self.oracle.acknowledge_leaving();
            }
            self.begin();
        }
    }

    /// How many buffers the next epoch is, if it may be prepared now.
    fn next_buffers(&self) -> Option<u64> {
        let Where::AtEnd {
            exhausted,
            asked: false,
        } = self.at
        else {
            return None;
        };
        if !self.oracle.has_next() {
            return None;
        }
        let (frames, batches) = self.oracle.next_counts(exhausted);
        Some(match self.world.ahead.hold {
            Hold::Frames => frames,
            _ => batches,
        })
    }

    /// Waits until all that may be held of the next epoch is, or `enough`.
    fn wait_prepared(&mut self, enough: u64) {
        let prepares = self.consumer().prepares();
        let Some(all) = self.next_buffers().filter(|_| prepares) else {
            return;
        };
        let wanted = all.min(enough).min(self.world.ahead.max_buffers.into());
        let next = self.oracle.epoch() + 1;
        let consumer = self.consumer();
        let coordinator = consumer.coordinator();
        until("the next epoch is prepared", || {
            // What is made under two recipes is thrown away, and may lack what was.
            consumer.level() >= wanted || coordinator.has_failed(next) || coordinator.is_wasted(next)
        });
    }

    fn validate(&mut self, enough: u64) {
        self.wait_prepared(enough);
    }

    fn leave(&mut self, meant: bool) {
        let Where::Inside { asked } = self.at else { return };
        if self.lost {
            return;
        }
        let slots = self.oracle.slots();
        self.consumer().leave(meant, slots);
        if C::IS_FEED {
            if meant {
                self.oracle.acknowledge_leaving();
            }
            self.at = Where::AtEnd {
                exhausted: false,
                asked: false,
            };
        } else {
            self.oracle.seek(slots);
            self.at = Where::Inside { asked };
            self.end();
        }
    }

    fn flush(&mut self, position: u64) {
        if C::IS_FEED || self.lost {
            return;
        }
        if let Where::AtEnd { asked: true, .. } = self.at {
            // The end has been seen, and is acknowledged when the push that brought it returns.
            let (next, coordinator) = (self.oracle.epoch() + 1, self.consumer().coordinator());
            until("the consumer has left the epoch", || {
                coordinator.current() == Some(next)
            });
        }
        self.begin();
        if let Where::AtEnd { .. } = self.at {
            self.at = Where::Inside { asked: false };
        }
        self.oracle.seek(position);
        if self.consumer().flush(position) {
            self.end();
        }
    }

    /// While the next epoch is prepared one of its files goes.
    fn lose(&mut self) {
        let can = self.is_free() && !self.lost && self.oracle.has_next();
        if can && self.world.setup.on_error == OnError::Fail {
            self.world.lose();
            self.lost = true;
        }
    }

    /// It comes back; what was prepared meanwhile has been prepared without it.
    fn find(&mut self) {
        if self.lost {
            self.wait_prepared(u64::MAX);
            self.world.restore();
            self.lost = false;
        }
    }

    fn fail(&mut self, door: Door) {
        let can = self.is_free() && !self.lost && self.oracle.has_next();
        if !can || self.world.setup.on_error != OnError::Fail {
            return;
        }
        let Where::AtEnd { exhausted, .. } = self.at else {
            unreachable!()
        };
        let (state, before) = (self.consumer().checkpoint(), self.oracle.clone());
        self.world.lose();
        self.oracle.next(exhausted);
        if let Ok(Asked::Yes) = self.consumer().ask(door) {
            // Whatever comes until the error is right.
            while let Ok(taken) = self.consumer().take() {
                if let Some(batch) = &taken.batch {
                    self.oracle.take(batch);
                }
                if taken.end {
                    break;
                }
            }
        }
        self.consumer = None;
        self.world.restore();
        self.oracle = before;
        self.oracle.restart();
        self.at = Where::Inside { asked: false };
        let threads = self.world.ahead.threads;
        self.consumer = Some(C::start(&self.world, threads, state.as_deref()));
    }

    /// The run ends, and another one goes on.
    fn renew(&mut self, renew: impl FnOnce(C, &World) -> C) {
        let consumer = self.consumer.take().expect("there is one");
        if self.lost {
            // Not read before the run begins.
            self.world.restore();
            self.lost = false;
        }
        self.consumer = Some(renew(consumer, &self.world));
        self.oracle.restart();
        self.at = Where::Inside { asked: false };
        // Of what was left nothing can be used: the end comes by itself, and is waited for.
        if self.oracle.is_at_end() {
            self.take(1);
        }
    }
}
