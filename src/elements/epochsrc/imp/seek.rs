//! Seeks and flushes: where they go, and how.

use gst::subclass::prelude::*;
use gst_base::subclass::prelude::*;

use super::super::super::util::lock;
use super::super::run::Run;
use super::{CAT, EpochSrc};
use crate::sampler::State;

/// Where a flush goes.
#[derive(Clone, Debug)]
pub(super) struct Target {
    epoch: u64,
    position: u64,
    /// What has been taken of the epoch, if it is not begun anew.
    state: Option<State>,
}

impl Target {
    /// The epoch is begun anew, at `position`.
    fn at(epoch: u64, position: u64) -> Self {
        Self {
            epoch,
            position,
            state: None,
        }
    }
}

impl EpochSrc {
    /// A seek of the application: with SEGMENT and without FLUSH it asks for the next epoch, with FLUSH it discards what
    /// has not been taken and reads the current epoch again from `start`, in samples.
    pub(super) fn seek(&self, seek: &gst::event::Seek, seqnum: gst::Seqnum) -> bool {
        let (rate, flags, start_type, start, _, _) = seek.get();
        if !flags.contains(gst::SeekFlags::FLUSH) {
            return flags.contains(gst::SeekFlags::SEGMENT)
                && self.coordinator.ask_once(seqnum, |next| self.ask(next));
        }
        let position = match start {
            gst::GenericFormattedValue::Default(start) if start_type == gst::SeekType::Set => {
                start.map_or(0, |start| *start)
            }
            gst::GenericFormattedValue::Default(_) if start_type == gst::SeekType::None => 0,
            _ => {
                gst::warning!(
                    CAT,
                    imp = self,
                    "Refusing a seek that is not in samples (format DEFAULT)"
                );
                return false;
            }
        };
        if rate != 1.0 {
            gst::warning!(
                CAT,
                imp = self,
                "Refusing a seek with rate {rate}: only 1.0 is possible"
            );
            return false;
        }
        self.seek_alone(seqnum, || {
            // A restart reads an epoch again that nobody has taken; else it is the one that the consumer is in.
            let restart = self.coordinator.take_restart(seqnum);
            let epoch = restart.or_else(|| self.coordinator.current())?;
            Some(Target::at(epoch, position))
        })
    }

    /// Goes where `target` says, when nobody else seeks.
    fn seek_alone(&self, seqnum: gst::Seqnum, target: impl FnOnce() -> Option<Target>) -> bool {
        if !self.coordinator.begin_seek(self.coordinator.is_restart(seqnum)) {
            return false;
        }
        let done = target().is_some_and(|target| self.flush_to(target, seqnum));
        self.coordinator.end_seek();
        done
    }

    /// Discards what has not been taken and goes on behind what has: a flush from outside loses and repeats nothing.
    pub(super) fn flush_to_consumer(&self, seqnum: gst::Seqnum) -> bool {
        self.seek_alone(seqnum, || {
            let epoch = self.coordinator.current()?;
            let state = self.coordinator.state();
            let state = state.and_then(|state| State::from_json(&state).ok());
            Some(match state.filter(|state| state.epoch == epoch) {
                Some(state) => Target {
                    epoch,
                    position: state.position,
                    state: Some(state),
                },
                None => Target::at(epoch, 0),
            })
        })
    }

    /// Has the base class flush, stop the streaming thread, and call `do_seek`.
    fn flush_to(&self, target: Target, seqnum: gst::Seqnum) -> bool {
        *lock(&self.target) = Some(target);
        let event = gst::event::Seek::builder(
            1.0,
            gst::SeekFlags::FLUSH,
            gst::SeekType::Set,
            gst::ClockTime::ZERO,
            gst::SeekType::None,
            gst::ClockTime::NONE,
        )
        .seqnum(seqnum)
        .build();
        BaseSrcImplExt::parent_event(self, &event)
    }

    /// Goes where the flush that has begun is to go. The streaming thread stands still.
    pub(super) fn go(&self) -> bool {
        // The base class also "seeks" to the beginning when it starts.
        let Some(target) = lock(&self.target).take() else {
            return true;
        };
        let mut run = lock(&self.run).take();
        let gone = run.as_mut().is_none_or(|run| self.go_to(run, &target));
        *lock(&self.run) = run;
        if gone {
            self.coordinator.flushed(target.epoch, target.state);
        }
        gone
    }

    /// Brings `run` to `target`; false if that cannot be.
    fn go_to(&self, run: &mut Run, target: &Target) -> bool {
        let known = self.coordinator.drawn(target.epoch);
        // An epoch that was asked for and left at once may not have been drawn yet.
        let is_drawn = known.is_some();
        let receipt = match known {
            Some((drawn, receipt)) => {
                (run.reader.dataset, run.reader.sampler) = (drawn.dataset, drawn.sampler);
                receipt
            }
            None => match run.reader.receipt_of(target.epoch) {
                Some(receipt) => receipt,
                None => return false,
            },
        };
        let exhausted = !self.coordinator.is_broken_off(target.epoch);
        run.reader.seek(receipt, target.position, exhausted);
        run.begin_epoch();
        run.segment_done = false;
        run.start = target.position.min(run.reader.order().len());
        match &target.state {
            Some(state) => run.resume(state),
            None => run.pass_over(target.position),
        }
        // In its middle, positions are those of the dataset that it was drawn from.
        run.current |= is_drawn && run.start > 0;
        self.set_recipe(run);
        true
    }
}
