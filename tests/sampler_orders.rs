//! What holds for all orders: purity, and shares that add up.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use epochfeed::sampler::{
    Ledger, Order, Receipt, Sampler, SamplerConfig, SamplerError, Shuffle, Slot, State, Uneven,
};
use proptest::prelude::*;

fn sampler(config: SamplerConfig) -> Sampler {
    Sampler::new(config).unwrap()
}

fn slots(order: &Order) -> Vec<Slot> {
    order.iter().collect()
}

fn samples(order: &Order) -> Vec<u64> {
    order.iter().map(|slot| slot.dataset_index).collect()
}

fn shuffles() -> impl Strategy<Value = Shuffle> {
    proptest::sample::select(Shuffle::ALL.to_vec())
}

/// Any possible configuration of a dataset of up to 200 samples and up to 11 ranks, for rank 0.
fn configs() -> impl Strategy<Value = SamplerConfig> {
    let parts = (
        shuffles(),
        any::<u64>(),
        1_u64..200,
        1_u32..12,
        any::<bool>(),
        any::<Option<prop::sample::Index>>(),
    );
    parts.prop_map(|(shuffle, seed, size, world_size, drop, part)| {
        let samples_per_epoch = part.map(|part| 1 + part.index(size as usize) as u64);
        let possible = samples_per_epoch.unwrap_or(size) >= u64::from(world_size);
        SamplerConfig {
            world_size,
            uneven: if drop && possible {
                Uneven::Drop
            } else {
                Uneven::Pad
            },
            samples_per_epoch,
            ..SamplerConfig::new(shuffle, seed, size)
        }
    })
}

/// The account of an epoch that was delivered whole and without faults.
fn ledger_at_end(sampler: &Sampler, receipt: &Receipt) -> Ledger {
    let order = sampler.draw(receipt);
    let state = State {
        position: order.len(),
        ..State::new(sampler.config(), receipt, "")
    };
    state.ledger(&order)
}

proptest! {
    /// Interleaved in rank order, the unflagged slots of all ranks are the order of a single one.
    #[test]
    fn shares_add_up_to_the_whole_order(config in configs(), epochs in proptest::collection::vec(any::<bool>(), 0..3)) {
        let at = |config: &SamplerConfig| {
            let sampler = sampler(config.clone());
            let receipt = epochs.iter().fold(sampler.first(), |receipt, &exhausted| sampler.next(&receipt, exhausted));
            (sampler.draw(&receipt), ledger_at_end(&sampler, &receipt))
        };
        let (whole, _) = at(&SamplerConfig { world_size: 1, ..config.clone() });
        let whole = samples(&whole);
        prop_assert_eq!(whole.len() as u64, config.listed_by_all());

        let ranks = (0..config.world_size).map(|rank| at(&SamplerConfig { rank, ..config.clone() }));
        let (orders, ledgers): (Vec<Order>, Vec<Ledger>) = ranks.unzip();
        let length = orders[0].len();
        prop_assert!(length >= 1);
        prop_assert!(orders.iter().all(|order| order.len() == length));

        let together: Vec<Slot> = (0..length)
            .flat_map(|position| orders.iter().map(move |order| order.slot(position).unwrap()))
            .collect();
        let unflagged: Vec<u64> = together.iter().filter(|slot| !slot.pad).map(|slot| slot.dataset_index).collect();
        prop_assert!(whole.starts_with(&unflagged));
        // Pads repeat the order from its start.
        let pads: Vec<u64> = together.iter().filter(|slot| slot.pad).map(|slot| slot.dataset_index).collect();
        prop_assert!(pads.iter().eq(whole.iter().cycle().take(pads.len())));

        let mut sum = Ledger::default();
        for (order, ledger) in orders.iter().zip(ledgers) {
            prop_assert!(ledger.balanced(), "{:?}", ledger);
            prop_assert_eq!(order.listed(), order.len() - order.padded() + order.dropped());
            for position in 0..=order.len() + 1 {
                let counted = order.iter().take(position as usize).filter(|slot| slot.pad).count();
                prop_assert_eq!(order.padded_before(position), counted as u64);
            }
            prop_assert_eq!(order.slot(order.len()), None);
            sum += ledger;
        }
        prop_assert_eq!(sum.listed, whole.len() as u64);
        prop_assert_eq!(sum.delivered, unflagged.len() as u64);
        prop_assert_eq!(sum.padded, pads.len() as u64);
        match config.uneven {
            Uneven::Pad => prop_assert_eq!(sum.dropped, 0),
            Uneven::Drop => prop_assert_eq!((sum.padded, sum.dropped < u64::from(config.world_size)), (0, true)),
        }
    }

    /// Whatever was drawn before, on this sampler or another, in whichever sequence: a receipt draws one
    /// order.
    #[test]
    fn drawing_is_pure(
        config in configs(),
        exhausted in proptest::collection::vec(any::<bool>(), 1..6),
        visits in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let used = sampler(config.clone());
        let mut receipts = vec![used.first()];
        for &exhausted in &exhausted {
            let last = receipts.last().unwrap();
            receipts.push(used.next(last, exhausted));
        }
        let fresh: Vec<Vec<Slot>> =
            receipts.iter().map(|receipt| slots(&sampler(config.clone()).draw(receipt))).collect();
        for visit in visits {
            let at = visit.index(receipts.len());
            prop_assert_eq!(&slots(&used.draw(&receipts[at])), &fresh[at]);
            prop_assert_eq!(&slots(&used.clone().draw(&receipts[at])), &fresh[at]);
            prop_assert_eq!(receipts[at].epoch(), at as u64);
        }
    }

    /// An epoch prepared on the assumption that the one before is exhausted, and then never taken because
    /// that one was broken off, changes neither receipts nor orders.
    #[test]
    fn prepared_and_never_taken_leaves_no_trace(config in configs(), exhausted in proptest::collection::vec(any::<bool>(), 1..6)) {
        let (careful, eager) = (sampler(config.clone()), sampler(config));
        let (mut plain, mut ahead) = (careful.first(), eager.first());
        for exhausted in exhausted {
            let order = eager.draw(&ahead);
            let prepared = eager.next(&ahead, true);
            let _ = slots(&eager.draw(&prepared));
            let _ = slots(&eager.draw(&eager.next(&prepared, true)));
            prop_assert_eq!(slots(&order), slots(&careful.draw(&plain)));
            plain = careful.next(&plain, exhausted);
            ahead = eager.next(&ahead, exhausted);
            prop_assert_eq!(serde_json::to_string(&plain).unwrap(), serde_json::to_string(&ahead).unwrap());
        }
    }

    #[test]
    fn samples_per_epoch_takes_the_first_ones(shuffle in shuffles(), seed: u64, size in 1_u64..200, part: prop::sample::Index) {
        let samples_per_epoch = 1 + part.index(size as usize) as u64;
        let config = SamplerConfig::new(shuffle, seed, size);
        let (all, some) = (
            sampler(config.clone()),
            sampler(SamplerConfig { samples_per_epoch: Some(samples_per_epoch), ..config }),
        );
        let mut receipt = all.first();
        for _ in 0..3 {
            let (whole, start) = (samples(&all.draw(&receipt)), samples(&some.draw(&receipt)));
            prop_assert_eq!(start.len() as u64, samples_per_epoch);
            prop_assert!(whole.starts_with(&start));
            prop_assert_eq!(all.next(&receipt, true), some.next(&receipt, true));
            receipt = all.next(&receipt, true);
        }
    }
}

#[test]
fn breaking_off_matters_to_torch_only() {
    for shuffle in Shuffle::ALL {
        let sampler = sampler(SamplerConfig::new(shuffle, 7, 40));
        let first = sampler.first();
        let (whole, broken) = (sampler.next(&first, true), sampler.next(&first, false));
        assert_eq!((whole.epoch(), broken.epoch()), (1, 1));
        assert_eq!(whole != broken, shuffle == Shuffle::Torch, "{shuffle}");
    }
}

#[test]
fn four_ranks_over_ten_samples() {
    let share = |rank, uneven| {
        let sampler = sampler(SamplerConfig {
            rank,
            world_size: 4,
            uneven,
            ..SamplerConfig::new(Shuffle::Keyed, 3, 10)
        });
        let order = sampler.draw(&sampler.first());
        (order.len(), order.listed(), order.padded(), order.dropped())
    };
    assert_eq!(
        [0, 1, 2, 3].map(|rank| share(rank, Uneven::Pad)),
        [(3, 3, 0, 0), (3, 3, 0, 0), (3, 2, 1, 0), (3, 2, 1, 0)]
    );
    assert_eq!(
        [0, 1, 2, 3].map(|rank| share(rank, Uneven::Drop)),
        [(2, 3, 0, 1), (2, 3, 0, 1), (2, 2, 0, 0), (2, 2, 0, 0)]
    );
}

#[test]
fn more_ranks_than_samples() {
    let config = |rank, uneven| SamplerConfig {
        rank,
        world_size: 7,
        uneven,
        ..SamplerConfig::new(Shuffle::None, 0, 3)
    };
    let slots = (0..7).map(|rank| {
        let sampler = sampler(config(rank, Uneven::Pad));
        let order = sampler.draw(&sampler.first());
        assert_eq!(order.len(), 1);
        let slot = order.slot(0).unwrap();
        (slot.dataset_index, slot.pad)
    });
    let expected = [
        (0, false),
        (1, false),
        (2, false),
        (0, true),
        (1, true),
        (2, true),
        (0, true),
    ];
    assert!(slots.eq(expected));
    let error = Sampler::new(config(0, Uneven::Drop)).unwrap_err();
    assert_eq!(
        error,
        SamplerError::NothingLeft {
            listed: 3,
            world_size: 7
        }
    );
}

/// The same small thing for ten samples and for ten billion: any rank, any position, without a list.
#[test]
fn ten_billion_samples() {
    let size = 10_000_000_000;
    let sampler = sampler(SamplerConfig {
        rank: 7,
        world_size: 8,
        ..SamplerConfig::new(Shuffle::Keyed, 1, size)
    });
    let order = sampler.draw(&sampler.first());
    assert_eq!(order.len(), size / 8);
    let mut seen: Vec<u64> = (0..1000)
        .map(|i| i * (size / 8 / 1000))
        .chain(order.len() - 1000..order.len())
        .map(|position| order.slot(position).unwrap().dataset_index)
        .collect();
    assert!(seen.iter().all(|&sample| sample < size));
    assert!(seen.iter().any(|&sample| sample > size / 2));
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 2000);
}

#[test]
fn impossible_configurations_are_refused() {
    let good = SamplerConfig::new(Shuffle::Keyed, 0, 10);
    let refused = |config: SamplerConfig| Sampler::new(config).unwrap_err();
    assert_eq!(
        refused(SamplerConfig {
            size: 0,
            ..good.clone()
        }),
        SamplerError::Empty
    );
    for (rank, world_size) in [(0, 0), (1, 1), (8, 8), (u32::MAX, 3)] {
        let config = SamplerConfig {
            rank,
            world_size,
            ..good.clone()
        };
        assert_eq!(refused(config), SamplerError::Rank { rank, world_size });
    }
    for samples in [0, 11, u64::MAX] {
        let config = SamplerConfig {
            samples_per_epoch: Some(samples),
            ..good.clone()
        };
        assert_eq!(
            refused(config),
            SamplerError::SamplesPerEpoch { samples, size: 10 }
        );
    }
    for shuffle in Shuffle::ALL {
        let max = shuffle.max_size();
        assert!(SamplerConfig::new(shuffle, 0, max).validate().is_ok());
        let error = refused(SamplerConfig::new(shuffle, 0, max + 1));
        assert_eq!(
            error,
            SamplerError::TooLarge {
                size: max + 1,
                shuffle,
                max
            }
        );
    }
}

#[test]
fn names_are_read_back() {
    for shuffle in Shuffle::ALL {
        assert_eq!(shuffle.as_str().parse(), Ok(shuffle));
        assert_eq!(
            serde_json::to_value(shuffle).unwrap(),
            serde_json::Value::from(shuffle.as_str())
        );
    }
    for uneven in Uneven::ALL {
        assert_eq!(uneven.as_str().parse(), Ok(uneven));
        assert_eq!(
            serde_json::to_value(uneven).unwrap(),
            serde_json::Value::from(uneven.as_str())
        );
    }
    let error = "Keyed".parse::<Shuffle>().unwrap_err().to_string();
    assert!(
        error.contains("\"Keyed\"") && error.contains("torch-distributed"),
        "{error}"
    );
}
