//! Which sample comes when: orders, receipts and the shares of ranks.
//!
//! A [`Sampler`] turns a [`Receipt`] into an [`Order`] and into the next receipt. Both are pure functions, so
//! epochs can be drawn ahead, again, on other threads or in other processes.
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
mod mt;
mod mt_jump;
mod order;
mod receipt;
mod shard;
mod torch;

pub use config::{MAX_SIZE, MAX_TORCH_SIZE, SamplerConfig, SamplerError, Shuffle, Uneven, UnknownName};
pub use draw::Sampler;
pub use order::{Order, Slot};
pub use receipt::Receipt;
