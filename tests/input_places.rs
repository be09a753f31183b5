//! Datasets that are not there, or not what they should be, and files that fail: named, with a reason, and never a
//! clean end without a sample.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use common::{Report, assert_fails, cases, launch, launch_failing, launch_with_messages, location};

const REST: &str = "! video/x-raw,width=32,height=32 ! nhwcpack batch-size=4 ! epochsink silent=true";

#[test]
fn a_dataset_that_is_none_is_named_with_the_reason() {
    let scratch = common::scratch();
    let path = |name: &str| scratch.path().join(name);
    std::fs::create_dir(path("empty")).unwrap();
    std::fs::create_dir_all(path("folders/x.jpg")).unwrap();
    std::fs::create_dir(path("texts")).unwrap();
    std::fs::write(path("texts/notes.txt"), "no image").unwrap();
    std::fs::write(path("empty.txt"), "\u{feff}\r\n  \r\n").unwrap();
    std::fs::write(path("page.txt"), "<!DOCTYPE html><html>404</html>").unwrap();
    std::fs::write(path("binary.bin"), b"\x7fELF\0\0\0\0").unwrap();
    symlink("nowhere", path("dangling")).unwrap();
    symlink("loop", path("loop")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    for (name, reason) in [
        ("missing", "does not exist"),
        ("missing/deeper", "does not exist"),
        ("dangling", "does not exist"),
        ("loop", "cannot read"),
        ("pipe", "pipe"),
        ("empty", "holds no images"),
        ("folders", "holds no images"),
        ("texts", "holds no images"),
        ("empty.txt", "lists no images"),
        ("page.txt", "HTML"),
        ("binary.bin", "neither a known image nor text"),
    ] {
        for policy in ["fail", "skip"] {
            let line = format!(
                "epochsrc location={} ! epochdecode on-error={policy} {REST}",
                location(&path(name))
            );
            let place = path(name);
            assert_fails(&line, &[place.to_str().unwrap(), reason]);
        }
    }
}

#[test]
fn a_location_that_is_no_path_is_refused_with_a_remedy() {
    for (text, reason) in [
        ("", "No location is set"),
        ("location=\"\"", "No location is set"),
        ("location=file://other.host/data", "another host"),
        ("location=file:///data/%4", "incomplete percent escape"),
        ("location=file:///a%00b", "NUL byte"),
    ] {
        assert_fails(&format!("epochsrc {text} ! epochdecode {REST}"), &[reason]);
    }
}

/// A list whose entries fail in every way that a file can, with good ones between; the list, and for each entry the
/// reason, if it fails.
fn awkward_list(folder: &Path) -> (PathBuf, Vec<(String, Option<&'static str>)>) {
    let photo = std::fs::read(&common::photos()[0]).unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    write("good1.jpg", &photo);
    write("good2.jpg", &photo);
    write("zero.jpg", b"");
    write("cut.jpg", &photo[..photo.len() / 2]);
    write(
        "page.jpg",
        b"<!DOCTYPE html><html><body>404 Not Found</body></html>",
    );
    write(
        "pointer.jpg",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    );
    write("noise.jpg", &[7; 4096]);
    std::fs::create_dir(folder.join("folder.jpg")).unwrap();
    symlink("nowhere.jpg", folder.join("dangling.jpg")).unwrap();
    symlink("loop.jpg", folder.join("loop.jpg")).unwrap();
    std::fs::copy(
        cases::folder().join("a10_tiff_named.jpg"),
        folder.join("tiff.jpg"),
    )
    .unwrap();
    std::fs::copy(
        cases::folder().join("a09_bomb_header_65500sq.jpg"),
        folder.join("bomb.jpg"),
    )
    .unwrap();
    let entries = [
        ("zero.jpg", Some("empty file")),
        ("good1.jpg", None),
        ("missing.jpg", Some("does not exist")),
        ("good1.jpg/below", Some("does not exist")),
        ("cut.jpg", Some("truncated JPEG")),
        ("page.jpg", Some("HTML")),
        ("good2.jpg", None),
        ("pointer.jpg", Some("git-lfs")),
        ("noise.jpg", Some("not an image")),
        ("folder.jpg", Some("is a folder")),
        ("dangling.jpg", Some("does not exist")),
        ("loop.jpg", Some("cannot be read")),
        ("tiff.jpg", Some("TIFF")),
        ("bomb.jpg", Some("65500x65500")),
        ("/dev/null", Some("not a regular file")),
    ];
    let list = folder.join("list.txt");
    let text: Vec<_> = entries.iter().map(|(name, _)| *name).collect();
    std::fs::write(&list, text.join("\n")).unwrap();
    (
        list,
        entries.map(|(name, reason)| (name.to_owned(), reason)).into(),
    )
}

#[test]
fn each_fault_of_a_list_is_named_with_its_index_and_reason() {
    common::pipeline::init();
    let scratch = common::scratch();
    let (list, entries) = awkward_list(scratch.path());
    let report = scratch.path().join("report.jsonl");
    let line = format!(
        "epochsrc location={} shuffle=none ! epochdecode on-error=skip {REST} report={}",
        location(&list),
        location(&report)
    );
    // With so little memory the lying header must be refused before anything is taken for it.
    let outcome = launch_with_messages(&line)
        .under(&["sh", "-c", "ulimit -v 3000000; exec \"$0\" \"$@\""])
        .run()
        .success();
    let report = Report::read(&report);
    report.assert_adds_up();
    assert_eq!(report.order(0), [1, 6]);
    assert_eq!(report.epochs[0].skipped, entries.len() as u64 - 2);
    let messages: Vec<_> = outcome
        .stdout
        .lines()
        .filter_map(|line| line.split_once("(element): ")?.1.parse::<gst::Structure>().ok())
        .filter(|structure| structure.name() == "epochfeed-fault")
        .collect();
    for (index, (name, reason)) in (0u64..).zip(&entries) {
        let found = messages
            .iter()
            .find(|message| message.get::<u64>("dataset-index") == Ok(index));
        let Some(reason) = reason else {
            assert!(found.is_none(), "{name}: {found:?}");
            continue;
        };
        let message = found.unwrap_or_else(|| panic!("{name} is not announced: {outcome}"));
        assert!(message.get::<String>("uri").unwrap().ends_with(name), "{message}");
        assert!(
            message.get::<String>("reason").unwrap().contains(reason),
            "{name}: {message}"
        );
        assert_eq!(message.get::<u64>("epoch"), Ok(0));
    }
}

#[test]
fn the_first_fault_ends_the_run_by_default() {
    let scratch = common::scratch();
    let (_, entries) = awkward_list(scratch.path());
    for (name, reason) in entries {
        let Some(reason) = reason else { continue };
        let list = scratch.path().join("one.txt");
        std::fs::write(&list, format!("good1.jpg\n{name}\ngood2.jpg\n")).unwrap();
        let line = format!(
            "epochsrc location={} shuffle=none ! epochdecode {REST}",
            location(&list)
        );
        assert_fails(&line, &["Cannot use sample 1 (file://", &name, reason]);
    }
}

#[test]
fn without_a_usable_sample_no_policy_ends_cleanly() {
    let scratch = common::scratch();
    let (list, entries) = awkward_list(scratch.path());
    let bad: Vec<_> = entries
        .iter()
        .filter(|(_, reason)| reason.is_some())
        .map(|(name, _)| name.as_str())
        .collect();
    // Found by epochsrc, by epochdecode, and by both.
    for names in [&["zero.jpg", "missing.jpg"][..], &["cut.jpg", "bomb.jpg"], &bad] {
        std::fs::write(&list, names.join("\n")).unwrap();
        for (policy, message) in [
            ("fail", "Cannot use sample"),
            ("skip", "faulty; the last is sample"),
            ("replace", "faulty; the last is sample"),
        ] {
            for epochs in ["1", "-1"] {
                let source = format!("epochsrc location={} epochs={epochs}", location(&list));
                assert_fails(
                    &format!("{source} ! epochdecode on-error={policy} {REST}"),
                    &[message],
                );
            }
        }
    }
    // A decoder that is not ours has epochsrc's policy.
    std::fs::write(&list, "zero.jpg\nmissing.jpg\n").unwrap();
    for (policy, message) in [
        ("fail", "Cannot use sample"),
        ("skip", "faulty; the last is sample"),
        ("replace", "faulty; the last is sample"),
    ] {
        let line = format!(
            "epochsrc location={} on-error={policy} ! jpegdec ! fakesink",
            location(&list)
        );
        assert_fails(&line, &[message]);
    }
}

#[test]
fn a_file_without_permission_is_named() {
    let scratch = common::scratch();
    common::copy_photos(scratch.path(), 2);
    let locked = scratch.path().join("locked.jpg");
    std::fs::copy(&common::photos()[0], &locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).unwrap();
    let line = format!(
        "epochsrc location={} shuffle=none ! epochdecode {REST}",
        location(scratch.path())
    );
    let mut job = launch_failing(&line);
    // The copy belongs to whoever runs this.
    if locked.metadata().unwrap().uid() == 0 {
        // Root reads everything, unless it gives that up.
        job = job.under(&[
            "setpriv",
            "--bounding-set=-dac_override,-dac_read_search",
            "--inh-caps=-all",
        ]);
    }
    job.run()
        .failure(&["Cannot use sample 2", "locked.jpg", "permission denied"]);
}

/// What is in a folder: path, content, times of change, permissions.
type Entry = (PathBuf, Vec<u8>, [i64; 4], u32);

/// Everything under `folder`.
fn fingerprint(folder: &Path) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_file() {
                std::fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            let times = [
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.ctime(),
                metadata.ctime_nsec(),
            ];
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            found.push((path, content, times, metadata.mode()));
        }
    }
    found.sort();
    found
}

#[test]
fn users_files_are_never_written() {
    let scratch = common::scratch();
    let (list, _) = awkward_list(scratch.path());
    for case in cases::all() {
        std::fs::copy(cases::folder().join(&case.name), scratch.path().join(&case.name)).unwrap();
    }
    let before = fingerprint(scratch.path());
    assert!(before.len() > 80);
    for place in [scratch.path(), &list] {
        for (decode, ends) in [
            ("on-error=fail", false),
            ("on-error=skip truncated=use", true),
            ("on-error=replace orientation=ignore fit=none", true),
        ] {
            // One frame a batch, so that sizes may differ.
            let line = format!(
                "epochsrc location={} epochs=2 ! epochdecode {decode} ! hsvquantize ! nhwcpack ! epochsink silent=true",
                location(place)
            );
            if ends {
                launch(&line).run().success();
            } else {
                assert_fails(&line, &["Cannot use"]);
            }
        }
    }
    assert!(
        fingerprint(scratch.path()) == before,
        "a file of the user's has changed"
    );
}

#[test]
fn too_many_faults_are_an_error_and_so_is_a_limit_that_is_none() {
    let all = cases::all();
    let bad = all.iter().filter(|case| !case.good).count();
    let share = bad * 100 / all.len();
    assert!((15..30).contains(&share), "{share} % of the cases are bad");
    let line = |policy: &str, limit: &str| {
        format!(
            "epochsrc location={} ! epochdecode on-error={policy} max-errors={limit} {REST}",
            location(&cases::folder())
        )
    };
    for policy in ["skip", "replace"] {
        for limit in ["1", "10%", "0", "0%", &(bad - 1).to_string()] {
            let words = ["Too many faulty samples", "file://", "max-errors"];
            assert_fails(&line(policy, limit), &words);
        }
        for limit in ["-1", "30%", "100%", &bad.to_string()] {
            launch(&line(policy, limit)).run().success();
        }
    }
    for limit in ["ten", "-2", "101%", "1.5", "%"] {
        assert_fails(
            &line("skip", limit),
            &["max-errors=", "is not a limit", "write a count"],
        );
    }
}
