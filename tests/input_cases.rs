//! All awkward files in one run under each policy. Each on its own is in `input_exit_codes.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::collections::BTreeMap;

use common::cases::{self, Case, TRUNCATED};
use common::{Outcome, Report, launch_with_messages, location};

/// Small frames: what is tested is not the pixels.
const REST: &str =
    "! video/x-raw,width=48,height=48 ! hsvquantize ! nhwcpack batch-size=8 ! epochsink silent=true";

/// The folder in one run with `decode` as the decoder's settings; the report, and what gst-launch printed.
fn whole_folder(source: &str, decode: &str) -> (Report, Outcome) {
    let scratch = common::scratch();
    let report = scratch.path().join("report.jsonl");
    let line = format!(
        "epochsrc location={} {source} ! epochdecode {decode} {REST} report={}",
        location(&cases::folder()),
        location(&report)
    );
    let outcome = launch_with_messages(&line).run().success();
    (Report::read(&report), outcome)
}

/// The faults in gst-launch's messages, by dataset index: (URI, reason, action).
fn faults(outcome: &Outcome) -> BTreeMap<u64, (String, String, String)> {
    let mut faults = BTreeMap::new();
    let messages = outcome
        .stdout
        .lines()
        .filter_map(|line| line.split_once("(element): "));
    for structure in messages.filter_map(|(_, text)| text.parse::<gst::Structure>().ok()) {
        if structure.name() == "epochfeed-fault" {
            let text = |name| structure.get::<String>(name).unwrap();
            let fault = (text("uri"), text("reason"), text("action"));
            assert!(fault.1.len() > 10, "{structure}");
            let before = faults.insert(structure.get::<u64>("dataset-index").unwrap(), fault);
            assert_eq!(before, None, "announced twice: {structure}");
        }
    }
    faults
}

/// Checks that exactly the files that `bad` names were announced, under their names.
fn assert_announced(outcome: &Outcome, cases: &[Case], action: &str, bad: impl Fn(&Case) -> bool) {
    let faults = faults(outcome);
    let wanted: Vec<_> = (0u64..)
        .zip(cases)
        .filter(|(_, case)| bad(case))
        .map(|(index, _)| index)
        .collect();
    assert_eq!(faults.keys().copied().collect::<Vec<_>>(), wanted, "{outcome}");
    for (index, (uri, _, found)) in faults {
        let name = &cases[usize::try_from(index).unwrap()].name;
        assert!(
            uri.starts_with("file:///") && uri.ends_with(&format!("/{name}")),
            "{index}: {uri}"
        );
        assert_eq!(found, action);
    }
}

fn indices(report: &Report) -> Vec<u64> {
    report.order(0)
}

#[test]
fn skip_leaves_out_what_is_faulty_and_nothing_else() {
    common::pipeline::init();
    let cases = cases::all();
    let good: Vec<u64> = (0..)
        .zip(&cases)
        .filter(|(_, case)| case.good)
        .map(|(index, _)| index)
        .collect();
    let (report, outcome) = whole_folder("shuffle=none", "on-error=skip");
    report.assert_adds_up();
    let epoch = &report.epochs[0];
    assert_eq!(
        (epoch.listed, epoch.delivered),
        (cases.len() as u64, good.len() as u64)
    );
    assert_eq!(
        (epoch.skipped, epoch.dropped, epoch.replaced),
        (epoch.listed - epoch.delivered, 0, 0)
    );
    assert_eq!(indices(&report), good, "identity travels with the buffer");
    assert_announced(&outcome, &cases, "skip", |case| !case.good);
    let reported: Vec<_> = report
        .faults
        .iter()
        .map(|fault| (fault.dataset_index, &fault.class[..]))
        .collect();
    let wanted: Vec<_> = (0..)
        .zip(&cases)
        .filter(|(_, case)| !case.good)
        .map(|(index, case)| (index, cases::class(&case.name)))
        .collect();
    assert_eq!(reported, wanted, "in the report, with their classes");
}

#[test]
fn truncated_files_count_as_good_where_they_are_used() {
    common::pipeline::init();
    let cases = cases::all();
    let (report, outcome) = whole_folder("shuffle=none", "on-error=skip truncated=use");
    report.assert_adds_up();
    let bad = |case: &Case| !case.good && !TRUNCATED.contains(&case.name.as_str());
    assert_eq!(
        report.epochs[0].skipped,
        cases.iter().filter(|case| bad(case)).count() as u64
    );
    assert_announced(&outcome, &cases, "skip", bad);
}

#[test]
fn replace_keeps_the_number_of_slots_and_says_what_stands_where() {
    common::pipeline::init();
    let cases = cases::all();
    let slots = cases.len() as u64;
    for source in ["shuffle=none", "shuffle=torch seed=3"] {
        let (report, outcome) = whole_folder(source, "on-error=replace threads=3");
        report.assert_adds_up();
        let epoch = &report.epochs[0];
        let bad = cases.iter().filter(|case| !case.good).count() as u64;
        assert_eq!(
            (
                epoch.listed,
                epoch.delivered,
                epoch.skipped,
                epoch.replaced,
                epoch.dropped
            ),
            (slots, slots - bad, bad, bad, 0)
        );
        assert_announced(&outcome, &cases, "replace", |case| !case.good);
        assert_replacements(&report, &cases);
    }
}

/// Every faulty sample's slot holds the good one before it in the order of delivery (the first good one, at the start),
/// with that sample's URI and gains.
fn assert_replacements(report: &Report, cases: &[Case]) {
    struct Slot<'a> {
        index: u64,
        from: i64,
        uri: &'a str,
        gains: [f64; 3],
    }
    let slots: Vec<_> = report
        .batches
        .iter()
        .flat_map(|batch| {
            (0..batch.indices.len()).map(|slot| Slot {
                index: batch.indices[slot],
                from: batch.replaced_from[slot],
                uri: &batch.uris[slot],
                gains: batch.gains[slot],
            })
        })
        .collect();
    assert_eq!(slots.len(), cases.len());
    let is_good = |index: u64| cases[usize::try_from(index).unwrap()].good;
    let first_good = slots.iter().find(|slot| slot.from < 0).unwrap();
    let mut previous = first_good;
    let mut seen = vec![false; cases.len()];
    for slot in &slots {
        assert!(
            is_good(slot.index),
            "a faulty sample was delivered: {}",
            slot.index
        );
        let asked = if slot.from < 0 {
            slot.index
        } else {
            u64::try_from(slot.from).unwrap()
        };
        assert!(
            !std::mem::replace(&mut seen[usize::try_from(asked).unwrap()], true),
            "{asked} came twice"
        );
        if slot.from < 0 {
            previous = slot;
        } else {
            assert!(!is_good(asked), "{asked} is good and was replaced");
            assert_eq!(slot.index, previous.index, "in the place of {asked}");
        }
        assert_eq!((slot.uri, slot.gains), (previous.uri, previous.gains));
        assert!(
            slot.uri
                .ends_with(&cases[usize::try_from(slot.index).unwrap()].name)
        );
    }
    assert!(seen.iter().all(|seen| *seen));
    // Gains of different samples differ, so that the comparison above says something.
    assert_ne!(
        slots.first().map(|slot| slot.gains),
        slots.last().map(|slot| slot.gains)
    );
}

#[test]
fn two_runs_are_the_same_whatever_the_threads() {
    let run = |threads| {
        let (report, _) = whole_folder("epochs=2 seed=9", &format!("on-error=replace threads={threads}"));
        report.assert_adds_up();
        assert_eq!(report.epochs.len(), 2);
        report.without_times()
    };
    assert_eq!(run(1), run(4));
}
