//! A pipeline of the elements whose sink the test is: it acknowledges by taking, as any sink does.

use std::sync::Arc;

use epochfeed::feed::Hold;
use epochfeed::sampler::State;
use gst::prelude::*;

use super::consumer::{Asked, Consumer, Taken, size};
use super::gate::{End, Gate, Next};
use super::life::Door;
use super::until;
use super::world::World;
use crate::common::{Pipeline, location};

pub struct Elements {
    pipeline: Pipeline,
    gate: Arc<Gate>,
    slots: u64,
}

fn nick(value: impl Into<glib::Value>) -> String {
    let value = value.into();
    let (_, value) = glib::EnumValue::from_value(&value).unwrap();
    value.nick().to_owned()
}

fn line(world: &World, threads: u32) -> String {
    let (setup, ahead) = (&world.setup, world.ahead);
    let sampler = &setup.sampler;
    let buffer = format!(
        "epochbuffer name=epochbuffer prefetch={} max-buffers={} !",
        nick(ahead.prefetch),
        ahead.max_buffers
    );
    let (frames, batches) = match ahead.hold {
        Hold::Frames => (&buffer[..], ""),
        _ => ("", &buffer[..]),
    };
    format!(
        "epochsrc name=epochsrc location={} auto-advance=false epochs={} shuffle={} seed={} rank={} world-size={} uneven={} \
         samples-per-epoch={} ! epochdecode threads={threads} cache={} cache-bytes={} on-error={} ! capsfilter name=capsfilter caps-change-mode=delayed \
         caps=\"{}\" ! {frames} hsvquantize name=hsvquantize hue={} ! nhwcpack dtype=uint8 batch-size={} last-batch={} \
         ! {batches} fakesink name=sink sync=false async=false",
        location(world.location()),
        setup.epochs.map_or(-1, i64::from),
        sampler.shuffle,
        sampler.seed,
        sampler.rank,
        sampler.world_size,
        sampler.uneven.as_str(),
        sampler.samples_per_epoch.unwrap_or(0),
        if ahead.cache.is_some() { "ram" } else { "off" },
        ahead.cache.unwrap_or(0),
        nick(setup.on_error),
        size(world.side),
        world.hue,
        setup.batch_size,
        nick(setup.last_batch),
    )
}

impl Elements {
    /// Waits for what comes next, and until the source has heard of all before it: only then do all runs stand alike.
    fn look(&self, taken: Option<&str>) -> Result<Next, String> {
        let next = self.gate.next()?;
        match &next {
            Next::End(end) => until(&format!("{end:?} is acknowledged"), || {
                let state = self
                    .source_state()
                    .and_then(|state| State::from_json(&state).ok());
                state.is_some_and(|state| {
                    let known = End {
                        epoch: state.epoch,
                        skipped: state.skipped,
                        replaced: state.replaced,
                    };
                    known == *end && state.position == self.slots
                })
            }),
            Next::Batch => {
                if let Some(state) = taken {
                    until("the batch is acknowledged", || {
                        self.source_state().as_deref() == Some(state)
                    });
                }
            }
        }
        Ok(next)
    }

    fn end(&self, next: &Next) -> bool {
        match next {
            Next::Batch => false,
            Next::End(_) => self.gate.take_end().is_some(),
        }
    }
}

impl Consumer for Elements {
    const IS_FEED: bool = false;

    fn start(world: &World, threads: u32, state: Option<&str>) -> Self {
        let pipeline = Pipeline::new(&line(world, threads));
        if let Some(state) = state {
            pipeline.element("epochsrc").set_property("state", state);
        }
        let pad = pipeline.element("sink").static_pad("sink").unwrap();
        let gate = Gate::new(&pad, &pipeline.0.bus().unwrap());
        pipeline.set(gst::State::Playing);
        let slots = super::oracle::Oracle::new(&world.setup).slots();
        Self {
            pipeline,
            gate,
            slots,
        }
    }

    fn take(&mut self) -> Result<Taken, String> {
        let next = self.look(None)?;
        if self.end(&next) {
            return Ok(Taken {
                batch: None,
                end: true,
            });
        }
        let batch = self.gate.take_batch().expect("it stands there");
        // An error behind it is for the next call.
        let end = self.look(Some(&batch.state)).is_ok_and(|next| self.end(&next));
        Ok(Taken {
            batch: Some(batch),
            end,
        })
    }

    fn ask(&mut self, door: Door) -> Result<Asked, String> {
        let accepted = match door {
            Door::Buffer => self.element("epochbuffer").emit_by_name("next-epoch", &[]),
            Door::Source => self.element("epochsrc").emit_by_name("next-epoch", &[]),
            Door::Seek => {
                let seek = gst::event::Seek::builder(
                    1.0,
                    gst::SeekFlags::SEGMENT,
                    gst::SeekType::Set,
                    gst::format::Default::ZERO,
                    gst::SeekType::None,
                    gst::format::Default::NONE,
                );
                self.pipeline.0.send_event(seek.build())
            }
        };
        Ok(match self.gate.take_warning() {
            Some(warning) if !accepted => Asked::Failed(warning),
            Some(warning) => panic!("accepted, and warned: {warning}"),
            None if accepted => Asked::Yes,
            None => Asked::NoMore,
        })
    }

    /// Without a feed there is no other way than to its end.
    fn leave(&mut self, _meant: bool, slots: u64) {
        assert!(self.flush(slots), "behind its last slot the epoch ends");
    }

    fn flush(&mut self, position: u64) -> bool {
        let seek = gst::event::Seek::builder(
            1.0,
            gst::SeekFlags::FLUSH,
            gst::SeekType::Set,
            gst::format::Default::from_u64(position),
            gst::SeekType::None,
            gst::format::Default::NONE,
        );
        assert!(self.pipeline.0.send_event(seek.build()), "the seek is refused");
        let next = self.look(None).unwrap();
        self.end(&next)
    }

    fn restart(self, _world: &World) -> Self {
        self.gate.shut(true);
        self.pipeline.set(gst::State::Null);
        self.gate.shut(false);
        self.pipeline.set(gst::State::Playing);
        self
    }

    fn assert_closed(&self) {
        self.gate.assert_empty();
    }

    fn checkpoint(&self) -> Option<String> {
        self.source_state()
    }

    fn pipeline(&self) -> &gst::Pipeline {
        &self.pipeline.0
    }
}

impl Drop for Elements {
    fn drop(&mut self) {
        self.gate.shut(true);
    }
}
