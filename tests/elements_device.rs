//! The property `device`, and what an element says of its path, on a machine without a GPU; `cuda_frames.rs` is for those
//! with one.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::pipeline::error_of;
use common::{Pipeline, assert_fails, gpu, launch, launch_failing};
use gst::prelude::*;

/// The nick of an enumeration's value.
fn nick(element: &gst::Element, property: &str) -> String {
    let value = element.property_value(property);
    glib::EnumValue::from_value(&value).unwrap().1.nick().to_owned()
}

/// What the element called `jitter` of a pipeline says of its path, in the message and in its properties.
#[track_caller]
fn path_of(line: &str) -> gst::Structure {
    let pipeline = Pipeline::playing(line);
    let jitter = pipeline.element("jitter");
    let message = pipeline.wait(|message| {
        let is_path = message
            .structure()
            .is_some_and(|structure| structure.name() == "epochfeed-path");
        is_path && message.src() == Some(jitter.upcast_ref())
    });
    let said = message.structure().unwrap().to_owned();
    for name in ["path", "path-reason"] {
        assert_eq!(said.get::<String>(name).unwrap(), nick(&jitter, name), "{line}");
    }
    pipeline.wait_eos();
    said
}

#[track_caller]
fn assert_path(line: &str, path: &str, reason: &str, deferred: bool) -> gst::Structure {
    let said = path_of(line);
    let text = |name| said.get::<String>(name).unwrap();
    assert_eq!(
        (text("path"), text("path-reason")),
        (path.into(), reason.into()),
        "{line}"
    );
    assert_eq!(text("device"), "cpu", "{line}");
    assert_eq!(said.get::<bool>("deferred"), Ok(deferred), "{line}");
    assert!(!text("backend").is_empty());
    assert_eq!(said.has_field("detail"), reason.starts_with("no-"), "{said}");
    said
}

const VIDEO: &str = "videotestsrc num-buffers=2 ! video/x-raw,format=RGB,width=16,height=8";

#[test]
fn the_cpu_is_said_with_the_reason() {
    assert_path(
        &format!("{VIDEO} ! hsvquantize name=jitter device=cpu ! fakesink"),
        "fused-cpu",
        "ok",
        false,
    );
    for device in ["device=auto", "device=cpu"] {
        let line = format!("{VIDEO} ! hsvquantize name=jitter {device} fuse=false ! fakesink");
        assert_path(&line, "native", "fuse-off", false);
    }
}

#[test]
fn auto_falls_back_to_the_cpu() {
    if !gpu::has_no_driver() {
        return;
    }
    for device in ["", "device=auto"] {
        let line = format!("{VIDEO} ! hsvquantize name=jitter {device} ! fakesink");
        let said = assert_path(&line, "fused-cpu", "no-driver", false);
        let detail: String = said.get("detail").unwrap();
        assert!(
            detail.contains("libcuda.so.1") && detail.contains("Install the driver"),
            "{detail}"
        );
    }
}

/// Of a pass that nhwcpack does, hsvquantize says what nhwcpack has chosen, and looks for no GPU of its own.
#[test]
fn a_deferred_pass_is_nhwcpacks() {
    let deferred = |between: &str| {
        format!("{VIDEO} ! hsvquantize name=jitter {between} ! nhwcpack batch-size=2 ! fakesink")
    };
    for between in ["", "! queue", "! tee"] {
        let said = path_of(&deferred(between));
        assert_eq!(said.get::<bool>("deferred"), Ok(true));
        if gpu::has_no_driver() {
            assert_path(&deferred(between), "fused-cpu", "no-driver", true);
        }
    }
}

#[test]
fn a_gpu_that_is_not_there_is_an_error() {
    if !gpu::has_no_driver() {
        return;
    }
    for behind in ["! fakesink", "! nhwcpack ! fakesink"] {
        assert_fails(
            &format!("{VIDEO} ! hsvquantize device=cuda:0 {behind}"),
            &[
                "device is cuda:0",
                "libcuda.so.1",
                "Install the driver",
                "device=auto",
                "device=cpu",
            ],
        );
    }
}

#[test]
fn a_device_has_three_forms() {
    for device in ["gpu", "cuda", "cuda:", "cuda:one", "cuda:-1", "CPU", "\"\""] {
        assert_fails(
            &format!("{VIDEO} ! hsvquantize device={device} ! fakesink"),
            &["device is", device.trim_matches('"'), "auto, cpu or cuda:N"],
        );
    }
}

/// The environment belongs to the process: these have one each.
#[test]
fn the_rank_on_this_machine_chooses_the_device() {
    let line = format!("{VIDEO} ! hsvquantize ! fakesink");
    let words = ["LOCAL_RANK", "\"two\"", "unset it"];
    launch_failing(&line)
        .env("LOCAL_RANK", "two")
        .run()
        .failure(&words);
    for rank in ["", "1", " 3 "] {
        launch(&line).env("LOCAL_RANK", rank).run().success();
    }
    // Who asks for nothing of the kind is not bothered with it.
    let line = format!("{VIDEO} ! hsvquantize device=cpu ! fakesink");
    launch(&line).env("LOCAL_RANK", "two").run().success();
}

/// The memories of which a pad of a new element takes or gives frames.
fn features(properties: &str, pad: &str) -> Vec<String> {
    let pipeline = Pipeline::new(&format!("hsvquantize name=jitter {properties}"));
    let caps = pipeline
        .element("jitter")
        .static_pad(pad)
        .unwrap()
        .query_caps(None);
    caps.iter_with_features()
        .map(|(_, features)| features.to_string())
        .collect()
}

#[test]
fn memories_that_are_offered() {
    let (system, cuda) = ("memory:SystemMemory", "memory:CUDAMemory");
    let gains = "memory:SystemMemory, meta:EpochfeedGains";
    for properties in ["", "device=auto", "device=cuda:1"] {
        assert_eq!(features(properties, "sink"), [cuda, system], "{properties}");
        assert_eq!(features(properties, "src"), [gains, cuda, system], "{properties}");
    }
    assert_eq!(features("device=cpu", "sink"), [system]);
    assert_eq!(features("device=cpu", "src"), [gains, system]);
    for properties in ["fuse=false", "fuse=false device=cuda:0"] {
        assert_eq!(features(properties, "sink"), [system], "{properties}");
        assert_eq!(features(properties, "src"), [system], "{properties}");
    }
}

const CUDA_CAPS: &str = "video/x-raw(memory:CUDAMemory),format=RGB,width=16,height=8,framerate=25/1";

#[test]
fn frames_in_cuda_memory_need_a_driver() {
    let frames = format!("fakesrc num-buffers=1 sizetype=fixed sizemax=384 ! {CUDA_CAPS}");
    if gpu::has_no_driver() {
        assert_fails(
            &format!("{frames} ! hsvquantize ! fakesink"),
            &["CUDA memory", "libcuda.so.1", "install the NVIDIA driver"],
        );
    }
    // Where the element cannot take them, they are not negotiated.
    for properties in ["device=cpu", "fuse=false"] {
        let error = error_of(&format!("{frames} ! hsvquantize {properties} ! fakesink"));
        assert!(
            error.contains("could not link") || error.contains("not-negotiated"),
            "{error}"
        );
    }
}

/// libgstcuda ends the process when it is asked for a context and there is no driver.
#[test]
fn a_cuda_context_is_not_asked_for_without_a_driver() {
    let pipeline = Pipeline::new("hsvquantize name=jitter ! fakesink");
    let answered = || {
        ["sink", "src"].map(|pad| {
            let pad = pipeline.element("jitter").static_pad(pad).unwrap();
            pad.query(&mut gst::query::Context::new("gst.cuda.context"))
        })
    };
    let wanted = [gpu::is_there(); 2];
    assert_eq!(answered(), wanted, "in NULL");
    pipeline.element("jitter").set_property("device", "cpu");
    assert_eq!(answered(), [false; 2], "with device=cpu");
}
