//! The sampler's state.

use epochfeed::sampler::{Sampler, Shuffle, State};

/// Longest list of a PyTorch order that is drawn, so that one execution stays short.
const LONGEST: u64 = 10_000;

/// Reads `bytes` as a state, and continues from one that is accepted.
pub fn state(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let state = match State::from_json(text) {
        Ok(state) => state,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(state.validate().is_ok());
    assert_eq!(State::from_json(&state.to_json()).ok().as_ref(), Some(&state));
    assert!(state.check(&state.config(), &state.fingerprint).is_ok());
    assert!(state.position <= state.slots());

    let sampler = Sampler::new(state.config()).expect("a state that was accepted has a sampler");
    assert!(sampler.next(&state.receipt, true).epoch() > state.epoch);
    let listed = matches!(state.shuffle, Shuffle::Torch | Shuffle::TorchDistributed);
    if listed && state.size > LONGEST {
        return;
    }
    let order = sampler.draw(&state.receipt);
    assert_eq!(order.len(), state.slots());
    assert_eq!(order.slot(state.position).is_some(), state.position < order.len());
    if let Some(slot) = order.slot(state.position) {
        assert!(slot.dataset_index < state.size);
    }
    let ledger = state.ledger(&order);
    let left = order.len() - order.padded() - (state.position - ledger.padded);
    assert_eq!(ledger.outstanding(), left);
}
