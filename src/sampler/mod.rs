//! Which sample comes when: orders, receipts, shares of ranks, the state a run continues from, and the
//! account of what became of every sample.
//!
//! A [`Sampler`] turns a [`Receipt`] into an [`Order`] and into the next receipt. Both are pure functions, so
//! epochs can be drawn ahead, again, on other threads or in other processes. [`State`] is a place in such a
//! sequence of epochs, as small JSON; [`Ledger`] says what became of the samples of one epoch.
//!
//! ```
//! use epochfeed::sampler::{Sampler, SamplerConfig, Shuffle};
//!
//! let sampler = Sampler::new(SamplerConfig::new(Shuffle::Keyed, 42, 10_000_000_000))?;
//! let mut receipt = sampler.first();
//! for epoch in 0..3 {
//!     let order = sampler.draw(&receipt);
//!     assert_eq!((order.epoch(), order.len()), (epoch, 10_000_000_000));
//!     assert!(order.slot(9_999_999_999).is_some());
//!     receipt = sampler.next(&receipt, true);
//! }
//! # Ok::<(), epochfeed::sampler::SamplerError>(())
//! ```

mod config;
mod draw;
mod keyed;
mod ledger;
mod mt;
mod mt_jump;
mod order;
mod receipt;
mod shard;
mod state;
mod state_error;
mod torch;

pub use config::{MAX_SIZE, MAX_TORCH_SIZE, SamplerConfig, SamplerError, Shuffle, Uneven, UnknownName};
pub use draw::Sampler;
pub use ledger::Ledger;
pub use order::{Order, Slot};
pub use receipt::Receipt;
pub use state::State;
pub use state_error::StateError;
