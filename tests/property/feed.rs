//! The library's own feed.

use epochfeed::color::GainRanges;
use epochfeed::feed::{Builder, Epoch, Feed};
use epochfeed::tensor::Dtype;
use epochfeed::{Batch, FeedError};

use super::consumer::{self, Asked, Consumer, Sample, Taken};
use super::life::Door;
use super::world::World;

pub struct ByFeed {
    /// In front of the feed: an epoch that is dropped behind it would be the same, and less of a test.
    epoch: Option<Epoch>,
    feed: Feed,
    threads: u32,
    /// State behind the batch that was taken last, unless the feed knows better.
    behind: Option<String>,
}

fn builder(world: &World, threads: u32) -> Builder {
    let (setup, ahead) = (&world.setup, world.ahead);
    let sampler = &setup.sampler;
    let side = u32::try_from(world.side).unwrap();
    // What hsvquantize draws if not told otherwise, but for the hue.
    let ranges = GainRanges {
        hue: world.hue,
        saturation: 0.7,
        value: 0.4,
    };
    let builder = Feed::builder(world.location())
        .shuffle(sampler.shuffle)
        .seed(sampler.seed)
        .rank(sampler.rank)
        .world_size(sampler.world_size)
        .uneven(sampler.uneven)
        .threads(threads)
        .on_error(setup.on_error)
        .size(side, side)
        .jitter(ranges)
        .dtype(Dtype::Uint8)
        .batch_size(setup.batch_size)
        .last_batch(setup.last_batch)
        .prefetch(ahead.prefetch)
        .max_buffers(ahead.max_buffers)
        .hold(ahead.hold);
    let builder = match ahead.cache {
        Some(bytes) => builder.cache(bytes),
        None => builder,
    };
    let builder = match setup.epochs {
        Some(epochs) => builder.epochs(epochs),
        None => builder.endless(),
    };
    match sampler.samples_per_epoch {
        Some(samples) => builder.samples_per_epoch(samples),
        None => builder,
    }
}

fn seen(batch: &Batch) -> consumer::Batch {
    let samples = batch.samples().iter().map(|sample| Sample {
        dataset_index: sample.dataset_index,
        pad: sample.pad,
        replaced_from: sample.replaced_from,
    });
    consumer::Batch {
        epoch: batch.epoch(),
        samples: samples.collect(),
        digest: crc32fast::hash(batch.as_bytes().unwrap()),
        state: batch.state().to_owned(),
    }
}

impl Consumer for ByFeed {
    const IS_FEED: bool = true;

    fn start(world: &World, threads: u32, state: Option<&str>) -> Self {
        let builder = builder(world, threads);
        let builder = match state {
            Some(state) => builder.resume(state),
            None => builder,
        };
        let feed = builder.build().unwrap();
        let epoch = feed.epochs().next().map(Result::unwrap);
        Self {
            epoch,
            feed,
            threads,
            behind: None,
        }
    }

    fn take(&mut self) -> Result<Taken, String> {
        let epoch = self.epoch.as_mut().expect("an epoch has begun");
        match epoch.next().transpose().map_err(|error| error.to_string())? {
            Some(batch) => {
                self.behind = Some(batch.state().to_owned());
                Ok(Taken {
                    batch: Some(seen(&batch)),
                    end: false,
                })
            }
            None => {
                self.behind = None;
                Ok(Taken {
                    batch: None,
                    end: true,
                })
            }
        }
    }

    fn ask(&mut self, _door: Door) -> Result<Asked, String> {
        // What was left before is left for good with the request, and the feed's state says so.
        self.behind = None;
        match self.feed.epochs().next() {
            None => Ok(Asked::NoMore),
            Some(Ok(epoch)) => {
                self.epoch = Some(epoch);
                Ok(Asked::Yes)
            }
            Some(Err(FeedError::Prepare { reason, .. })) => Ok(Asked::Failed(reason)),
            Some(Err(error)) => Err(error.to_string()),
        }
    }

    fn leave(&mut self, meant: bool, _slots: u64) {
        let epoch = self.epoch.take();
        if let (true, Some(epoch)) = (meant, epoch) {
            epoch.break_off().unwrap();
            self.behind = None;
        }
    }

    fn flush(&mut self, _position: u64) -> bool {
        unreachable!("a feed has its own seeks")
    }

    fn restart(self, world: &World) -> Self {
        let (state, threads) = (self.checkpoint(), self.threads);
        drop(self);
        Self::start(world, threads, state.as_deref())
    }

    fn assert_closed(&self) {
        // The sink holds one batch at most, and only of an epoch that was asked for; taking would wait for ever.
    }

    fn checkpoint(&self) -> Option<String> {
        self.behind.clone().or_else(|| self.feed.state())
    }

    fn pipeline(&self) -> &gst::Pipeline {
        self.feed.pipeline()
    }
}
