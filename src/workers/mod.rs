//! The worker pool: one per process, shared by every element, ended (joined) with its last user.
//!
//! Each user has a [`Client`] with a limit of its own; the pool has as many threads as the largest limit asked for.
//! A free thread takes the most urgent job of all clients that are below their limit: what a consumer waits for
//! now before what is prepared ahead, packing before decoding, and otherwise the oldest.
//!
//! A job that runs cannot be put aside. So that validation is not slowed by what training prepares beside it, a client
//! with jobs that are demanded now, or were some milliseconds ago, has all its threads to itself: what other pipelines
//! prepare ahead runs on the others, or when it rests.
//!
//! ```
//! use epochfeed::workers::{Class, Client, Stage, Urgency};
//!
//! let client = Client::new(2)?;
//! let (send, receive) = std::sync::mpsc::channel();
//! client.spawn(Class::new(Urgency::Demanded, Stage::Decode), move || {
//!     let _ = send.send(6 * 7);
//! });
//! assert_eq!(receive.recv(), Ok(42));
//! # Ok::<(), epochfeed::workers::WorkersError>(())
//! ```

mod for_each;
mod pool;
mod threads;

pub use pool::Client;
pub use threads::default_threads;

/// Whether a consumer waits for the job's result now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// Of the epoch that the consumer is taking.
    Demanded,
    /// Of an epoch that nobody has asked for yet.
    Ahead,
}

/// Where in the path of a sample the job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Gathering frames into a batch: it frees frames, so it goes first.
    Pack,
    /// Decoding a file: it makes frames.
    Decode,
}

/// A job's class; the smaller one runs first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    urgency: Urgency,
    stage: Stage,
}

impl Class {
    /// How many classes there are.
    const COUNT: usize = 4;

    const DEMANDED: [Self; 2] = [
        Self::new(Urgency::Demanded, Stage::Pack),
        Self::new(Urgency::Demanded, Stage::Decode),
    ];
    const AHEAD: [Self; 2] = [
        Self::new(Urgency::Ahead, Stage::Pack),
        Self::new(Urgency::Ahead, Stage::Decode),
    ];
    /// In the order of service.
    const ALL: [Self; Self::COUNT] = [
        Self::DEMANDED[0],
        Self::DEMANDED[1],
        Self::AHEAD[0],
        Self::AHEAD[1],
    ];

    /// The class of a job of `stage` with `urgency`.
    pub const fn new(urgency: Urgency, stage: Stage) -> Self {
        Self { urgency, stage }
    }

    /// Position in the order of service, 0 first.
    fn rank(self) -> usize {
        self.urgency as usize * 2 + self.stage as usize
    }
}

/// Why the pool could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkersError {
    /// The environment variable `LOCAL_WORLD_SIZE` is not a positive number.
    #[error(
        "the environment variable LOCAL_WORLD_SIZE is {0:?}: unset it, or set it to the number of ranks on this machine"
    )]
    LocalWorldSize(String),
    /// The system refused a thread.
    #[error("cannot start a worker thread: {0}; lower `threads` or raise the limit on processes (ulimit -u)")]
    Spawn(#[from] std::io::Error),
}

#[cfg(test)]
mod tests;
