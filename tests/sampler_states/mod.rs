//! What the tests of states have in common.

use epochfeed::sampler::{Sampler, SamplerConfig, Shuffle, State};

pub const FINGERPRINT: &str = "3f786850e387550fdab836ed7e6dc881de23001b";

/// Rank 1 of 4 in epoch 2 of 1000 samples; epoch 1 was broken off.
pub fn example() -> (Sampler, State) {
    let sampler = Sampler::new(SamplerConfig {
        rank: 1,
        world_size: 4,
        samples_per_epoch: Some(401),
        ..SamplerConfig::new(Shuffle::Torch, u64::MAX, 1000)
    })
    .unwrap();
    let receipt = sampler.next(&sampler.next(&sampler.first(), true), false);
    let state = State {
        position: 60,
        skipped: 3,
        replaced: 2,
        last_good: Some(417),
        ..State::new(sampler.config(), &receipt, FINGERPRINT)
    };
    (sampler, state)
}
