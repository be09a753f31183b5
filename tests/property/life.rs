//! What is random.

use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::elements::faults::OnError;
use epochfeed::elements::nhwcpack::LastBatch;
use epochfeed::feed::Hold;
use epochfeed::sampler::{SamplerConfig, Shuffle, Uneven};
use proptest::prelude::*;
use proptest::sample::select;

/// What decides about what is taken.
#[derive(Clone, Debug)]
pub struct Setup {
    pub sampler: SamplerConfig,
    /// Epochs of a run; `None` without end.
    pub epochs: Option<u32>,
    pub batch_size: u32,
    pub last_batch: LastBatch,
    pub on_error: OnError,
    /// A file that cannot be used, by its place in the dataset, and whether the source finds that already.
    pub broken: Option<(u64, bool)>,
    /// A file that goes and comes back.
    pub victim: u64,
}

/// What must decide about nothing.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    pub prefetch: Prefetch,
    pub hold: Hold,
    pub max_buffers: u32,
    pub threads: u32,
    /// Decoded frames are kept, all of them or some.
    pub cache: Option<u64>,
}

/// How the next epoch is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Door {
    Buffer,
    Source,
    Seek,
}

/// What a consumer does, or has happen to it. What cannot be done where it stands is left out.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Takes so many batches, at most to the epoch's end.
    Take(u8),
    /// Takes all that is left of the epoch.
    Finish,
    /// Asks for the next epoch, at the end of this one or before it.
    Ask(Door),
    /// Validates until so many buffers of the next epoch are held, or all that may be.
    Validate(u32),
    /// Leaves the epoch before its end; a feed says that this is meant, or merely drops the epoch.
    Leave { meant: bool },
    /// Seeks to a position of the epoch that it is in.
    Flush(u64),
    /// Other colours from the next epoch on.
    Hue(u8),
    /// Larger frames from the next epoch on.
    Side(u8),
    /// A file goes; it comes back before the next epoch is asked for.
    Lose,
    /// A file is gone when it is needed; after the error everything starts again from the state before.
    Fail(Door),
    /// To NULL and back.
    Restart,
    /// A new pipeline goes on from the state.
    Resume { threads: u32 },
}

#[derive(Clone, Debug)]
pub struct Life {
    pub setup: Setup,
    pub ahead: Ahead,
    pub ops: Vec<Op>,
}

fn sampler() -> impl Strategy<Value = SamplerConfig> {
    let share = prop_oneof![3 => Just(1u32), 1 => 2u32..4];
    (select(Shuffle::ALL.to_vec()), 1u64..11, any::<u64>(), share).prop_flat_map(
        |(shuffle, size, seed, world_size)| {
            let part = prop_oneof![4 => Just(None), 1 => (1..=size).prop_map(Some)];
            let uneven = select(Uneven::ALL.to_vec());
            (0..world_size, part, uneven).prop_map(move |(rank, samples_per_epoch, uneven)| SamplerConfig {
                rank,
                world_size,
                samples_per_epoch,
                // Dropping must leave something.
                uneven: match samples_per_epoch.unwrap_or(size) < u64::from(world_size) {
                    true => Uneven::Pad,
                    false => uneven,
                },
                ..SamplerConfig::new(shuffle, seed, size)
            })
        },
    )
}

fn setup() -> impl Strategy<Value = Setup> {
    let on_error = prop_oneof![
        3 => Just(OnError::Fail),
        1 => Just(OnError::Skip),
        1 => Just(OnError::Replace),
    ];
    let last_batch = select(vec![LastBatch::Partial, LastBatch::Drop, LastBatch::Pad]);
    let epochs = prop_oneof![4 => Just(None), 1 => (1u32..4).prop_map(Some)];
    let files = (0u64..10, any::<bool>(), 0u64..10);
    (sampler(), epochs, 1u32..5, last_batch, on_error, files).prop_map(
        |(sampler, epochs, batch_size, last_batch, on_error, (broken, at_source, victim))| {
            // Of two different samples in this share one is good. An epoch gives at least one batch.
            let listed = sampler.samples_per_epoch.unwrap_or(sampler.size) / u64::from(sampler.world_size);
            let faulty = on_error != OnError::Fail && listed >= 2;
            let most = match last_batch {
                LastBatch::Drop => listed.saturating_sub(2).max(1),
                _ => u64::MAX,
            };
            Setup {
                epochs,
                batch_size: batch_size.min(u32::try_from(most).unwrap_or(u32::MAX)),
                last_batch,
                on_error,
                broken: faulty.then_some((broken % sampler.size, at_source)),
                victim: victim % sampler.size,
                sampler,
            }
        },
    )
}

fn ahead() -> impl Strategy<Value = Ahead> {
    let prefetch = prop_oneof![1 => Just(Prefetch::Complete), 2 => Just(Prefetch::Any)];
    let max_buffers = prop_oneof![1u32..5, Just(256)];
    (
        prefetch,
        select(vec![Hold::Batches, Hold::Frames]),
        max_buffers,
        1u32..4,
        prop_oneof![Just(None), Just(Some(1000)), Just(Some(1 << 20))],
    )
        .prop_map(|(prefetch, hold, max_buffers, threads, cache)| Ahead {
            prefetch,
            hold,
            max_buffers,
            threads,
            cache,
        })
}

fn op() -> impl Strategy<Value = Op> {
    let door = || select(vec![Door::Buffer, Door::Source, Door::Seek]);
    prop_oneof![
        4 => (1u8..4).prop_map(Op::Take),
        5 => Just(Op::Finish),
        7 => door().prop_map(Op::Ask),
        4 => prop_oneof![Just(256), 1u32..4].prop_map(Op::Validate),
        2 => any::<bool>().prop_map(|meant| Op::Leave { meant }),
        2 => (0u64..12).prop_map(Op::Flush),
        2 => (0u8..3).prop_map(Op::Hue),
        1 => (0u8..2).prop_map(Op::Side),
        2 => Just(Op::Lose),
        1 => door().prop_map(Op::Fail),
        2 => Just(Op::Restart),
        1 => (1u32..4).prop_map(|threads| Op::Resume { threads }),
    ]
}

/// Lives of up to `most` steps.
pub fn lives(most: usize) -> impl Strategy<Value = Life> {
    (setup(), ahead(), prop::collection::vec(op(), 1..most)).prop_map(|(setup, ahead, ops)| Life {
        setup,
        ahead,
        ops,
    })
}
