//! States: round trip, resuming, the account so far, and what belongs to another run.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod sampler_states;

use epochfeed::sampler::{Receipt, Sampler, SamplerConfig, Shuffle, State, StateError, Uneven};
use proptest::prelude::*;
use sampler_states::{FINGERPRINT, example};

#[test]
fn the_json_is_what_it_is() {
    // The format is a contract: this text must stay readable as long as the version is 1.
    let text = r#"{"version":1,"seed":18446744073709551615,"shuffle":"torch","epoch":2,"position":60,"rank":1,"world_size":4,"uneven":"pad","samples_per_epoch":401,"size":1000,"receipt":{"epoch":2,"torch_outputs":2997},"fingerprint":"3f786850e387550fdab836ed7e6dc881de23001b","skipped":3,"replaced":2,"last_good":417,"reloaded":false}"#;
    let (sampler, state) = example();
    assert_eq!(state.to_json(), text);
    assert_eq!(State::from_json(text).unwrap(), state);
    assert_eq!(serde_json::from_str::<State>(text).unwrap(), state);
    state.check(sampler.config(), FINGERPRINT).unwrap();
    assert_eq!(State::VERSION, 1);
}

proptest! {
    #[test]
    fn round_trip(
        shuffle in proptest::sample::select(Shuffle::ALL.to_vec()),
        seed: u64,
        size in 1_u64..=1 << 32,
        world_size in 1_u32..64,
        drop: bool,
        limited: bool,
        exhausted in proptest::collection::vec(any::<bool>(), 0..5),
        place: prop::sample::Index,
        fingerprint: String,
    ) {
        let config = SamplerConfig {
            rank: world_size / 2,
            world_size,
            uneven: if drop { Uneven::Drop } else { Uneven::Pad },
            samples_per_epoch: limited.then_some(size.div_ceil(2)),
            ..SamplerConfig::new(shuffle, seed, size)
        };
        prop_assume!(config.validate().is_ok());
        let sampler = Sampler::new(config.clone()).unwrap();
        let receipt = exhausted.iter().fold(sampler.first(), |receipt, &whole| sampler.next(&receipt, whole));
        let position = place.index(config.listed_by_all().div_ceil(u64::from(world_size)) as usize) as u64;
        let state = State { position, ..State::new(&config, &receipt, fingerprint.as_str()) };
        prop_assert!(state.validate().is_ok(), "{:?}", state.validate());
        let read = State::from_json(&state.to_json()).unwrap();
        prop_assert_eq!(&read, &state);
        prop_assert_eq!(read.config(), config.clone());
        prop_assert!(read.check(&config, &fingerprint).is_ok());
    }

    /// What a run reads back draws the tail of the uninterrupted epoch, and the epochs after it.
    #[test]
    fn resuming_continues_exactly_behind(shuffle in proptest::sample::select(Shuffle::ALL.to_vec()), seed: u64, size in 1_u64..300, cut: prop::sample::Index, broken: bool) {
        let config = SamplerConfig::new(shuffle, seed, size);
        let sampler = Sampler::new(config.clone()).unwrap();
        let receipt = sampler.next(&sampler.first(), !broken);
        let cut = cut.index(size as usize + 1) as u64;
        let text = State { position: cut, ..State::new(&config, &receipt, "") }.to_json();

        let state = State::from_json(&text).unwrap();
        let resumed = Sampler::new(state.config()).unwrap();
        let (order, again) = (sampler.draw(&receipt), resumed.draw(&state.receipt));
        prop_assert!((state.position..size).all(|at| order.slot(at) == again.slot(at) && order.slot(at).is_some()));
        let following = |sampler: &Sampler, receipt: &Receipt| -> Vec<_> {
            sampler.draw(&sampler.next(receipt, true)).iter().collect()
        };
        prop_assert_eq!(following(&sampler, &receipt), following(&resumed, &state.receipt));
    }
}

/// Pads are not listed, so a fault in one is no listed sample that was skipped.
#[test]
fn pads_cannot_be_skipped() {
    let config = SamplerConfig {
        rank: 3,
        world_size: 4,
        ..SamplerConfig::new(Shuffle::None, 0, 10)
    };
    let sampler = Sampler::new(config.clone()).unwrap();
    let mut state = State {
        position: 3,
        skipped: 2,
        replaced: 3,
        ..State::new(&config, &sampler.first(), "")
    };
    state.validate().unwrap();
    let ledger = state.ledger(&sampler.draw(&state.receipt));
    assert_eq!((ledger.delivered, ledger.skipped, ledger.padded), (0, 2, 1));
    assert!(ledger.balanced());
    state.skipped = 3;
    assert!(state.validate().unwrap_err().to_string().starts_with("skipped"));
}

#[test]
fn every_difference_is_refused_by_name_with_both_values() {
    let (sampler, state) = example();
    let config = sampler.config();
    let check = |run: SamplerConfig, fingerprint: &str| state.check(&run, fingerprint).unwrap_err();
    let changed = |change: fn(&mut SamplerConfig)| {
        let mut run = config.clone();
        change(&mut run);
        run
    };
    for (run, field, was, is) in [
        (
            changed(|run| run.shuffle = Shuffle::Keyed),
            "shuffle",
            "torch",
            "keyed",
        ),
        (changed(|run| run.seed = 7), "seed", "18446744073709551615", "7"),
        (changed(|run| run.rank = 2), "rank", "1", "2"),
        (changed(|run| run.world_size = 8), "world_size", "4", "8"),
        (changed(|run| run.uneven = Uneven::Drop), "uneven", "pad", "drop"),
        (
            changed(|run| run.samples_per_epoch = None),
            "samples_per_epoch",
            "401",
            "all",
        ),
        (changed(|run| run.size = 1001), "size", "1000", "1001"),
    ] {
        assert_mismatch(check(run, FINGERPRINT), field, was, is);
    }
    assert_mismatch(
        check(config.clone(), "c0ffee"),
        "fingerprint",
        FINGERPRINT,
        "c0ffee",
    );
}

fn assert_mismatch(error: StateError, field: &str, was: &str, is: &str) {
    let text = error.to_string();
    let StateError::Mismatch {
        field: named,
        state,
        run,
    } = error
    else {
        panic!("{field}: {text}");
    };
    assert_eq!((named, state.as_str(), run.as_str()), (field, was, is));
    assert!(
        text.contains(field) && text.contains(was) && text.contains(is),
        "{text}"
    );
}

#[test]
fn a_state_that_was_tampered_with_in_memory_is_refused_too() {
    let (sampler, good) = example();
    let tampered = State {
        position: 102,
        ..good.clone()
    };
    assert!(tampered.check(sampler.config(), FINGERPRINT).is_err());
    let tampered = State { version: 9, ..good };
    let error = tampered.check(sampler.config(), FINGERPRINT).unwrap_err();
    assert!(matches!(error, StateError::Version { .. }), "{error}");
}

#[test]
fn the_ledger_so_far() {
    let (sampler, state) = example();
    let order = sampler.draw(&state.receipt);
    let ledger = state.ledger(&order);
    assert_eq!(
        (ledger.listed, ledger.delivered, ledger.skipped, ledger.replaced),
        (100, 57, 3, 2)
    );
    assert_eq!(ledger.outstanding(), 40);
    let stopped = ledger.closed();
    assert_eq!((stopped.dropped, stopped.balanced()), (40, true));
    let end = State {
        position: order.len(),
        ..state
    }
    .ledger(&order);
    assert_eq!((end.delivered, end.padded, end.balanced()), (97, 1, true));
}
