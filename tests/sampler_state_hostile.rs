//! States that no run has written: whatever is given, reading it ends in an error that names what is wrong.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod sampler_states;

use epochfeed::sampler::{Sampler, Shuffle, State, StateError};
use proptest::prelude::*;
use sampler_states::example;
use serde_json::{Value, json};

fn with(field: &str, value: Value) -> String {
    let mut json: Value = serde_json::from_str(&example().1.to_json()).unwrap();
    json[field] = value;
    json.to_string()
}

/// The error for the example with one field replaced.
fn refused(field: &str, value: Value) -> String {
    match State::from_json(&with(field, value.clone())) {
        Ok(state) => panic!("{field} = {value} was accepted: {state:?}"),
        Err(error) => error.to_string(),
    }
}

proptest! {
    #[test]
    fn noise_is_an_error(text in ".*") {
        prop_assert!(State::from_json(&text).is_err());
    }

    /// Whatever one changes in the text of a state, reading ends in an error or in a state that could have
    /// been.
    #[test]
    fn mutated_text_never_panics(edits in proptest::collection::vec((any::<prop::sample::Index>(), 0_u8..128, 0..3), 1..6)) {
        let mut bytes = example().1.to_json().into_bytes();
        for (place, byte, edit) in edits {
            let place = place.index(bytes.len());
            match edit {
                0 => bytes[place] = byte,
                1 => bytes.insert(place, byte),
                _ => drop(bytes.remove(place)),
            }
        }
        read_hostile(&String::from_utf8(bytes).unwrap())?;
    }

    /// The same for any values in its fields: states are drawn from, so those that pass must be harmless.
    #[test]
    fn hostile_values_never_panic(
        fields in proptest::collection::vec((proptest::sample::select(NUMBERS.to_vec()), hostile_number()), 1..4),
        shuffle in proptest::sample::select(Shuffle::ALL.to_vec()),
        receipt in (hostile_number(), hostile_number()),
        keep_receipt: bool,
    ) {
        let mut json: Value = serde_json::from_str(&example().1.to_json()).unwrap();
        json["shuffle"] = json!(shuffle);
        for (field, number) in fields {
            json[field] = json!(number);
        }
        json["receipt"] = match keep_receipt {
            true => json!({ "epoch": json["epoch"] }),
            false => json!({ "epoch": receipt.0, "torch_outputs": receipt.1 }),
        };
        read_hostile(&json.to_string())?;
    }
}

const NUMBERS: [&str; 10] = [
    "seed",
    "epoch",
    "position",
    "rank",
    "world_size",
    "samples_per_epoch",
    "size",
    "skipped",
    "replaced",
    "last_good",
];

fn hostile_number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0_u64..5,
        any::<u64>(),
        (0_u32..64).prop_map(|bit| 1 << bit),
        Just(u64::MAX),
        Just(u64::MAX >> 1)
    ]
}

/// Reads; what passes is used, except that lists of more than a million samples are not made.
fn read_hostile(text: &str) -> Result<(), TestCaseError> {
    let Ok(state) = State::from_json(text) else {
        return Ok(());
    };
    prop_assert!(state.validate().is_ok());
    prop_assert_eq!(State::from_json(&state.to_json()).ok(), Some(state.clone()));
    let listed = matches!(state.shuffle, Shuffle::Torch | Shuffle::TorchDistributed);
    if !listed || state.size < 1_000_000 {
        let sampler = Sampler::new(state.config()).unwrap();
        let order = sampler.draw(&state.receipt);
        prop_assert_eq!(order.slot(state.position).is_some(), state.position < order.len());
        prop_assert!(sampler.next(&state.receipt, true).epoch() > state.epoch);
        let ledger = state.ledger(&order);
        prop_assert_eq!(
            ledger.outstanding(),
            order.len() - order.padded() - (state.position - ledger.padded)
        );
    }
    Ok(())
}

#[test]
fn every_prefix_is_an_error() {
    let text = example().1.to_json();
    for end in 0..text.len() {
        assert!(State::from_json(&text[..end]).is_err(), "{}", &text[..end]);
    }
    assert!(State::from_json(&format!("{text}x")).is_err());
    assert!(State::from_json(&"[".repeat(100_000)).is_err());
}

#[test]
fn fields_must_be_there_once_and_known() {
    let text = example().1.to_json();
    let object: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(object.len(), 16);
    for field in object.keys() {
        let mut without = object.clone();
        without.remove(field);
        let error = State::from_json(&Value::Object(without).to_string()).unwrap_err();
        assert!(error.to_string().contains(&format!("`{field}`")), "{error}");

        let twice = format!("{},\"{field}\":{}}}", text.trim_end_matches('}'), object[field]);
        let error = State::from_json(&twice).unwrap_err();
        assert!(matches!(error, StateError::Json { .. }), "{error}");

        // Of a type that no field has.
        let error = refused(field, json!([true]));
        assert!(error.starts_with(field.as_str()), "{error}");
    }
    let error = State::from_json(&with("colour", json!(1)))
        .unwrap_err()
        .to_string();
    assert!(error.contains("colour"), "{error}");
    let error = refused("receipt", json!({ "epoch": 2, "torch_outputs": 2997, "more": 1 }));
    assert!(error.starts_with("receipt") && error.contains("more"), "{error}");
}

#[test]
fn impossible_values_are_refused_by_name() {
    for (field, value, says) in [
        (
            "version",
            json!(2),
            "version of the state is 2, this program reads 1",
        ),
        ("version", json!("1"), "version of the state is \"1\""),
        ("seed", json!(-1), "seed of the state is -1"),
        ("seed", json!(1.5), "seed of the state is 1.5"),
        (
            "epoch",
            json!(3),
            "receipt of the state is of epoch 2: the state is of epoch 3",
        ),
        (
            "position",
            json!(102),
            "position of the state is 102: this rank's epoch has 101 slots",
        ),
        (
            "position",
            json!(u64::MAX),
            "position of the state is 18446744073709551615",
        ),
        ("rank", json!(4), "rank is 4 with world-size 4"),
        ("rank", json!(1_u64 << 32), "rank of the state is 4294967296"),
        ("world_size", json!(0), "rank is 1 with world-size 0"),
        ("shuffle", json!("random"), "shuffle of the state is \"random\""),
        ("uneven", json!("trim"), "uneven of the state is \"trim\""),
        ("samples_per_epoch", json!(0), "samples-per-epoch is 0"),
        ("samples_per_epoch", json!(1001), "samples-per-epoch is 1001"),
        ("size", json!(0), "no samples"),
        ("size", json!(u64::MAX), "at most 4294967296"),
        ("fingerprint", json!(7), "fingerprint of the state is 7"),
        ("skipped", json!(61), "skipped of the state is 61: only 60"),
        ("replaced", json!(61), "replaced of the state is 61: only 60"),
        ("last_good", json!(1000), "last_good of the state is 1000"),
        ("reloaded", json!("no"), "reloaded of the state is \"no\""),
        (
            "receipt",
            json!({ "epoch": 1, "torch_outputs": 999 }),
            "receipt of the state is of epoch 1",
        ),
        (
            "receipt",
            json!({ "epoch": 2 }),
            "receipt of the state is after 0 torch outputs",
        ),
        (
            "receipt",
            json!({ "epoch": 2, "torch_outputs": 2998 }),
            "after 2998 torch outputs",
        ),
        (
            "receipt",
            json!({ "epoch": 2, "torch_outputs": 4995 }),
            "after 4995 torch outputs",
        ),
        (
            "receipt",
            json!({ "epoch": 2, "torch_outputs": 999 }),
            "after 999 torch outputs",
        ),
    ] {
        let error = refused(field, value);
        assert!(error.contains(says), "{field}: {error}");
    }
    let mut start: Value = serde_json::from_str(&with("position", json!(0))).unwrap();
    (start["skipped"], start["replaced"]) = (json!(0), json!(0));
    let error = State::from_json(&start.to_string()).unwrap_err().to_string();
    assert!(
        error.contains("last_good of the state is 417: no slot"),
        "{error}"
    );
    // Of other sizes in epochs before, nothing is known.
    let mut reloaded: Value = serde_json::from_str(&with("reloaded", json!(true))).unwrap();
    reloaded["receipt"] = json!({ "epoch": 2, "torch_outputs": 77 });
    assert!(State::from_json(&reloaded.to_string()).is_ok());
    // An unlimited string in a wrong place does not end up in the message.
    assert!(refused("seed", json!("9".repeat(100_000))).len() < 500);
    // Other orders draw nothing from the generator.
    let mut keyed: Value = serde_json::from_str(&with("shuffle", json!("keyed"))).unwrap();
    assert!(
        State::from_json(&keyed.to_string())
            .unwrap_err()
            .to_string()
            .contains("receipt")
    );
    keyed["receipt"] = json!({ "epoch": 2 });
    assert!(State::from_json(&keyed.to_string()).is_ok());
}
