//! Helpers of the black-box tests: child processes with a time limit, the built plugin, reports, data.
//!
//! Every test binary compiles this module for itself and uses a part of it.
#![allow(dead_code, unused_imports)]
#![allow(clippy::unwrap_used, clippy::expect_used)] // a helper that cannot do its work fails the test

pub mod alone;
pub mod broken;
pub mod buffered;
pub mod cases;
pub mod covered;
pub mod data;
pub mod dataset;
pub mod feed;
pub mod frames;
pub mod gpu;
pub mod marks;
pub mod pipeline;
pub mod process;
pub mod report;
pub mod soak;
pub mod tools;
pub mod usage;
pub mod wait;
pub mod watched;

pub use alone::{alive_after, alone};
pub use buffered::{Buffered, Held};
pub use data::{copy_photos, location, photos, scratch, tiny_images};
pub use feed::{Feed, SAMPLE, Sample, Taken, assert_same_bytes, quoted};
pub use marks::MarkedSet;
pub use pipeline::{Pipeline, assert_fails};
pub use process::{End, Outcome};
pub use report::{BatchLine, EpochLine, Report};
pub use soak::{figure, repeat, repetitions, soaking, timed};
pub use tools::{
    inspect, launch, launch_failing, launch_verbose, launch_with_messages, plugin_folder, python,
};
pub use watched::{Seen, Watched};
