//! Settings and neighbours that cannot work together: refused before or when it matters, naming the property and the
//! remedy.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{assert_fails, launch, location};

fn photos() -> String {
    location(&common::photos()[0].with_file_name(""))
}

const SMALL: &str = "epochdecode ! video/x-raw,width=32,height=32";

#[test]
fn gains_that_are_none_are_refused() {
    for gains in ["nan,0,0", "0,inf,0", "0,0,-inf", "1,2", "1,2,3,4", "a,b,c", ","] {
        let line = format!(
            "epochsrc location={} ! {SMALL} ! hsvquantize gains={gains} ! fakesink",
            photos()
        );
        assert_fails(&line, &[&format!("gains is {gains:?}")]);
    }
    // Out of the properties' range: gst-launch-1.0 itself refuses what GObject does.
    let line = format!(
        "epochsrc location={} ! {SMALL} ! hsvquantize gains=0.5,-1,3 ! fakesink",
        photos()
    );
    launch(&line).run().success();
}

#[test]
fn normalisation_is_checked() {
    for (properties, words) in [
        ("dtype=uint8 mean=0.5", &["uint8", "mean"][..]),
        ("dtype=uint8 std=0.2,0.2,0.2", &["uint8", "std"]),
        ("mean=1,2", &["mean is \"1,2\"", "three"]),
        ("std=x", &["std is \"x\""]),
        ("std=0", &["std", "0"]),
        ("std=0.5,nan,0.5", &["std", "NaN"]),
        ("mean=inf", &["mean", "inf"]),
    ] {
        let line = format!(
            "epochsrc location={} ! {SMALL} ! nhwcpack {properties} ! fakesink",
            photos()
        );
        assert_fails(&line, words);
    }
}

#[test]
fn numbers_of_epochs_ranks_and_samples_are_checked() {
    for (properties, words) in [
        ("epochs=0", &["epochs is 0", "-1"][..]),
        ("rank=2 world-size=2", &["rank", "2"]),
        ("rank=1", &["rank", "1"]),
        ("world-size=1000 uneven=drop", &["1000", "ranks"]),
        ("state=nonsense", &["state"]),
        ("state-location=.", &["state", "state-location"]),
    ] {
        let line = format!("epochsrc location={} {properties} ! {SMALL} ! fakesink", photos());
        assert_fails(&line, words);
    }
}

#[test]
fn a_report_that_cannot_be_written_is_an_error_at_the_start() {
    let scratch = common::scratch();
    for place in [
        scratch.path().join("no/such/folder/report.jsonl"),
        scratch.path().to_owned(),
    ] {
        let line = format!(
            "epochsrc location={} ! {SMALL} ! nhwcpack ! epochsink silent=true report={}",
            photos(),
            location(&place)
        );
        assert_fails(&line, &["Cannot create the report", place.to_str().unwrap()]);
    }
}

#[test]
fn frames_of_two_sizes_in_one_batch_are_named() {
    let scratch = common::scratch();
    for name in ["a00_control_rgb8.png", "a07_exif_bad_o0.jpg"] {
        std::fs::copy(common::cases::folder().join(name), scratch.path().join(name)).unwrap();
    }
    let line = |batch| {
        format!(
            "epochsrc location={} shuffle=none ! epochdecode fit=none ! hsvquantize ! nhwcpack batch-size={batch} ! fakesink",
            location(scratch.path())
        )
    };
    assert_fails(&line(2), &["160x120", "96x64", "fit"]);
    // One a batch: each has its own caps.
    launch(&line(1)).run().success();
}

#[test]
fn a_batch_size_that_downstream_fixes_needs_padding() {
    let scratch = common::scratch();
    common::copy_photos(scratch.path(), 6);
    let line = |properties| {
        format!(
            "epochsrc location={} ! {SMALL} ! nhwcpack batch-size=4 {properties} \
             ! other/tensors,dimensions=(string)3:32:32:4 ! fakesink",
            location(scratch.path())
        )
    };
    assert_fails(&line(""), &["last-batch=pad"]);
    launch(&line("last-batch=pad")).run().success();
    launch(&line("last-batch=drop")).run().success();
}

#[test]
fn a_size_that_nobody_can_give_is_refused() {
    for caps in ["video/x-raw,format=NV12", "video/x-bayer"] {
        // gst-launch-1.0 refuses the link where the templates already say so.
        assert_fails(
            &format!("epochsrc location={} ! epochdecode ! {caps} ! fakesink", photos()),
            &["epochdecode"],
        );
    }
    // Encoded images are no frames, frames no encoded images.
    for wrong in ["nhwcpack", "hsvquantize", "epochsink"] {
        assert_fails(&format!("epochsrc location={} ! {wrong}", photos()), &["link"]);
    }
}
