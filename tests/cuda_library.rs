//! `epochfeed::cuda`: the bytes of the CPU, orderly refusals, memory that comes back.
//!
//! Without a driver only the errors are tested and every other test says that it did not run; `EPOCHFEED_REQUIRE_GPU=1` turns
//! that into a failure. The binary carries its vectors, so it can be taken to a machine that has nothing but a GPU.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod cuda;
