//! `epochdecode quarantine` lists what cannot be used, once; `epochsrc exclude` leaves it out.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use common::broken::{self, BROKEN, SAMPLES};
use common::pipeline::assert_fails;
use common::wait::until;
use common::{Feed, Pipeline, Report, copy_photos, launch, location, quoted, scratch};
use epochfeed::sampler::{Sampler, SamplerConfig, Shuffle};
use gst::prelude::*;

fn lines(file: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Each broken file is listed once, with its class and reason.
#[track_caller]
fn assert_lists_the_broken(file: &Path) {
    let listed = lines(file);
    assert_eq!(listed.len(), BROKEN.len(), "{listed:?}");
    let by_name: BTreeMap<_, _> = listed
        .iter()
        .map(|line| (line["uri"].as_str().unwrap().rsplit('/').next().unwrap(), line))
        .collect();
    for (name, class, reason) in BROKEN {
        let line = by_name[name];
        assert_eq!(line["class"], class, "{line}");
        assert!(line["reason"].as_str().unwrap().contains(reason), "{line}");
        assert!(line["uri"].as_str().unwrap().starts_with("file:///"), "{line}");
    }
}

fn run(list: &Path, source: &str, decode: &str) -> Report {
    let feed = Feed {
        source: &format!("seed=2 {source}"),
        decode,
        pack: "batch-size=8",
        ..Feed::new(list)
    };
    feed.report()
}

#[test]
fn what_one_run_lists_another_leaves_out() {
    let folder = scratch();
    let list = broken::dataset(folder.path());
    // A name that needs care on both ways.
    let quarantine = folder.path().join("bad files.jsonl");
    let property = |name: &str| format!("{name}={}", quoted(quarantine.to_str().unwrap()));
    let decode = format!("on-error=replace {}", property("quarantine"));
    let listing = Pipeline::new(&format!(
        "epochsrc name=source location={} seed=2 epochs=3 ! epochdecode {decode} ! video/x-raw,width=16,height=16 ! fakesink",
        location(&list)
    ));
    listing.set(gst::State::Playing);
    listing.wait_eos();
    assert_lists_the_broken(&quarantine);
    // In another run nothing is added, but for the end of a line that a killed process left.
    listing.set(gst::State::Null);
    let mut file = std::fs::File::options().append(true).open(&quarantine).unwrap();
    file.write_all(b"{\"uri\":\"fi").unwrap();
    drop(file);
    listing.element("source").set_property("state", "");
    listing.set(gst::State::Playing);
    listing.wait_eos();
    let text = std::fs::read_to_string(&quarantine).unwrap();
    assert_eq!(text.lines().count(), BROKEN.len() + 1);
    assert!(text.ends_with("{\"uri\":\"fi\n"), "{text}");

    let excluding = Pipeline::new(&format!(
        "epochsrc location={} seed=2 epochs=2 {} ! epochdecode name=decode \
         ! video/x-raw,width=16,height=16 ! fakesink",
        location(&list),
        property("exclude")
    ));
    excluding.set(gst::State::Playing);
    let dataset = excluding.wait_element("epochfeed-dataset");
    let left = SAMPLES - BROKEN.len() as u64;
    assert_eq!(dataset.get::<u64>("samples"), Ok(left));
    assert_eq!(dataset.get::<u64>("excluded"), Ok(BROKEN.len() as u64));
    // on-error=fail: there is nothing to fail about.
    excluding.wait_eos();
    let stats: gst::Structure = excluding.element("decode").property("stats");
    assert_eq!(stats.get::<u64>("decoded"), Ok(2 * left));
}

/// What is left is a dataset of its own: its order is that of so many samples, and states belong to it.
#[test]
fn what_is_left_is_a_dataset_of_its_own() {
    let folder = scratch();
    let list = broken::dataset(folder.path());
    let names: Vec<_> = BROKEN.iter().map(|(name, _, _)| *name).collect();
    let exclude = folder.path().join("by-hand.txt");
    std::fs::write(&exclude, names.join("\n")).unwrap();
    let option = format!("exclude={}", location(&exclude));
    let report = run(&list, &option, "");
    let left = SAMPLES - BROKEN.len() as u64;
    let sampler = Sampler::new(SamplerConfig::new(Shuffle::Keyed, 2, left)).unwrap();
    let order = sampler.draw(&sampler.first());
    let wanted: Vec<_> = order.iter().map(|slot| slot.dataset_index).collect();
    assert_eq!(report.order(0), wanted);
    assert_eq!(report.epochs[0].listed, left);

    let state = report.batches[3].state.clone();
    let resume = format!("state={}", quoted(&state.to_string()));
    let resumed = run(&list, &format!("{option} {resume}"), "");
    assert_eq!(resumed.order(0), wanted[32..]);
    let line = |source: &str| format!("epochsrc location={} seed=2 {source} ! fakesink", location(&list));
    assert_fails(&line(&resume), &["The state cannot be resumed", "size"]);
    // One more is left out.
    std::fs::write(&exclude, format!("{}\n00.png", names.join("\n"))).unwrap();
    assert_fails(
        &line(&format!("{option} {resume}")),
        &["The state cannot be resumed"],
    );
}

/// A fault that is found while an epoch is prepared is listed when that epoch is asked for.
#[test]
fn what_is_never_told_is_not_listed() {
    let images = scratch();
    let photos = copy_photos(images.path(), 3);
    std::fs::write(&photos[1], "no image").unwrap();
    // A seed whose first epoch has the good ones only, and the second one has not.
    let has_bad = |sampler: &Sampler, receipt: &_| {
        let order = sampler.draw(receipt);
        order.iter().any(|slot| slot.dataset_index == 1)
    };
    let seed = (0..1000)
        .find(|seed| {
            let config = SamplerConfig {
                samples_per_epoch: Some(2),
                ..SamplerConfig::new(Shuffle::Keyed, *seed, 3)
            };
            let sampler = Sampler::new(config).unwrap();
            let first = sampler.first();
            !has_bad(&sampler, &first) && has_bad(&sampler, &sampler.next(&first, true))
        })
        .unwrap();
    let quarantine = images.path().join("bad.jsonl");
    let pipeline = Pipeline::new(&format!(
        "epochsrc location={} auto-advance=false epochs=2 seed={seed} samples-per-epoch=2 \
         ! epochdecode name=decode on-error=skip quarantine={} ! video/x-raw,width=16,height=16 \
         ! epochbuffer name=buffer prefetch=any ! fakesink",
        location(images.path()),
        location(&quarantine)
    ));
    pipeline.set(gst::State::Playing);
    until("the second epoch is prepared", || {
        let stats: gst::Structure = pipeline.element("decode").property("stats");
        stats.get::<u64>("faults") == Ok(1) && stats.get::<u64>("decoded") == Ok(3)
    });
    assert_eq!(lines(&quarantine), [(); 0].map(|()| serde_json::Value::Null));
    assert!(pipeline.element("buffer").emit_by_name::<bool>("next-epoch", &[]));
    pipeline.wait_eos();
    let listed = lines(&quarantine);
    assert_eq!((listed.len(), &listed[0]["class"]), (1, &"corrupt".into()));
}

#[test]
fn the_file_that_ends_a_run_is_listed() {
    let folder = scratch();
    let photos = copy_photos(folder.path(), 2);
    std::fs::write(&photos[1], "").unwrap();
    let quarantine = folder.path().join("bad.jsonl");
    let line = format!(
        "epochsrc location={} ! epochdecode quarantine={} ! fakesink",
        location(folder.path()),
        location(&quarantine)
    );
    assert_fails(&line, &["Cannot use sample 1"]);
    let listed = lines(&quarantine);
    assert_eq!((listed.len(), &listed[0]["class"]), (1, &"empty".into()));
}

/// The disk is full in the middle of a line: the run goes on, says so once, and the next one finds a list that it can use.
#[test]
fn a_full_disk_costs_no_more_than_lines() {
    const SIZE: usize = 16 << 20;
    let folder = scratch();
    let list = broken::dataset(folder.path());
    let quarantine = folder.path().join("bad.jsonl");
    std::fs::write(&quarantine, vec![b'\n'; SIZE - 50]).unwrap();
    let line = |source: &str| {
        let list = location(&list);
        let quarantine = location(&quarantine);
        format!(
            "epochsrc location={list} epochs=2 {source} ! epochdecode on-error=skip quarantine={quarantine} \
             ! video/x-raw,width=16,height=16 ! fakesink"
        )
    };
    let limit = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", SIZE / 512);
    let outcome = common::launch_with_messages(&line(""))
        .under(&["sh", "-c", &limit])
        .run()
        .success();
    let warnings = outcome.to_string().matches("WARNING: from element").count();
    assert!(
        outcome.to_string().contains("Cannot write the quarantine list"),
        "{outcome}"
    );
    assert_eq!(warnings, 1, "{outcome}");
    assert_eq!(std::fs::metadata(&quarantine).unwrap().len(), SIZE as u64);

    launch(&line("")).run().success();
    let exclude = format!("exclude={}", location(&quarantine));
    let outcome = common::launch_with_messages(&line(&exclude)).run().success();
    let excluded = format!("excluded=(guint64){}", BROKEN.len());
    assert!(outcome.to_string().contains(&excluded), "{outcome}");
}

#[test]
fn lists_that_cannot_be_used_are_errors() {
    let folder = scratch();
    copy_photos(folder.path(), 2);
    let line = |source: &str, decode: &str| {
        format!(
            "epochsrc location={} {source} ! epochdecode {decode} ! fakesink",
            location(folder.path())
        )
    };
    assert_fails(
        &line("", "quarantine=/nowhere/bad.jsonl"),
        &[
            "Cannot open the quarantine list /nowhere/bad.jsonl",
            "Set quarantine to",
        ],
    );
    // Nothing is read from these, or without end.
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    for list in [pipe.to_str().unwrap(), "/dev/full"] {
        let words = ["Cannot open the quarantine list", "not a regular file"];
        assert_fails(&line("", &format!("quarantine={list}")), &words);
    }
    assert_fails(
        &line("exclude=/nowhere/bad.jsonl", ""),
        &["/nowhere/bad.jsonl does not exist", "unset exclude"],
    );
    let list = folder.path().join("bad.jsonl");
    let exclude = format!("exclude={}", location(&list));
    std::fs::write(&list, "{\"url\":\"file:///a.jpg\"}\n").unwrap();
    assert_fails(&line(&exclude, ""), &["line 1 of", "bad.jsonl", "uri"]);
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path().display().to_string())
        .collect();
    std::fs::write(&list, names.join("\n")).unwrap();
    assert_fails(&line(&exclude, ""), &["all 2 samples are left out"]);
}
