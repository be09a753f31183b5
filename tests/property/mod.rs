//! Random lives of a consumer, on real elements.
//!
//! - `life` is what is random: a dataset with its settings, what may be prepared, and what the consumer does;
//! - `world` is where it takes place: the files, and everything that is set from outside;
//! - `consumer` is one door to the elements: `elements` a pipeline whose sink the test is, `feed` the library's own;
//! - `oracle` says what a consumer takes, from the sampler alone;
//! - `play` lets a consumer live a life and checks it against the oracle.

pub mod consumer;
pub mod elements;
pub mod feed;
pub mod gate;
pub mod life;
pub mod oracle;
pub mod play;
pub mod world;

use std::time::{Duration, Instant};

/// How long anything that is waited for may take.
pub const LIMIT: Duration = Duration::from_secs(5);

/// Waits until `wanted` holds.
#[track_caller]
pub fn until(what: &str, wanted: impl Fn() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !wanted() {
        assert!(Instant::now() < deadline, "{what}: not in {LIMIT:?}");
        std::thread::yield_now();
    }
}
