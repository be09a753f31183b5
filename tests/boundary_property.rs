//! Random lives of a consumer on real elements: whatever is prepared, dropped, failed, flushed, stopped or resumed in between,
//! it takes what it would take if nothing were ever prepared, and its state is the same.
//!
//! `EPOCHFEED_PROPERTY_CASES` sets how many lives there are for each door (`make property`); a failing one is shrunk to the steps
//! that matter. What depends on the moment fails in one of thousands of lives, and shrinking such a life may end elsewhere.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod property;

use std::cell::Cell;
use std::sync::Once;

use epochfeed::elements::epochbuffer::Prefetch;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use property::consumer::Consumer;
use property::elements::Elements;
use property::feed::ByFeed;
use property::life::{Ahead, lives};
use property::play::play;

static QUIET: Once = Once::new();
thread_local! {
    static SHRINKING: Cell<bool> = const { Cell::new(false) };
}

fn what_is_prepared_changes_nothing<C: Consumer>(cases: u32) {
    common::pipeline::init();
    QUIET.call_once(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // A life that fails is shrunk in many steps, each of which panics on the test's thread; the last one is told below.
            if SHRINKING.with(|shrinking| !shrinking.get()) {
                told(panic);
            }
        }));
    });
    SHRINKING.set(true);
    let cases = std::env::var("EPOCHFEED_PROPERTY_CASES").map_or(cases, |cases| {
        cases.parse().expect("EPOCHFEED_PROPERTY_CASES is a number")
    });
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        // A life that hangs takes its time at every step of shrinking.
        max_shrink_time: 120_000,
        ..ProptestConfig::default()
    };
    let result = TestRunner::new(config).run(&lives(16), |life| {
        let plain = Ahead {
            prefetch: Prefetch::Off,
            threads: 1,
            cache: None,
            ..life.ahead
        };
        let played = |ahead| play::<C>(&life, ahead).map_err(TestCaseError::fail);
        let (found, wanted) = (played(life.ahead)?, played(plain)?);
        let differs = found
            .iter()
            .zip(&wanted)
            .position(|(found, wanted)| found != wanted);
        if let Some(at) = differs {
            prop_assert_eq!(&found[at], &wanted[at], "step {} of what is seen", at);
        }
        prop_assert_eq!(found.len(), wanted.len());
        Ok(())
    });
    SHRINKING.set(false);
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn a_sink_takes_what_it_would_take_if_nothing_were_prepared() {
    what_is_prepared_changes_nothing::<Elements>(1000);
}

#[test]
fn a_feed_takes_what_it_would_take_if_nothing_were_prepared() {
    what_is_prepared_changes_nothing::<ByFeed>(1000);
}
