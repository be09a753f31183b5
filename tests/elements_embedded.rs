//! The elements inside a Rust application: registered from the crate, without a plugin file.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use gst::prelude::*;

const ELEMENTS: [&str; 6] = [
    "epochbuffer",
    "epochdecode",
    "epochsink",
    "epochsrc",
    "hsvquantize",
    "nhwcpack",
];

/// Run before GStreamer is initialised, in a process that must not find a plugin file.
fn register() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let empty = common::scratch();
        // SAFETY: the only threads are libtest's, which do not read the environment, and the tests, which wait here.
        unsafe {
            for name in ["GST_PLUGIN_PATH", "GST_PLUGIN_PATH_1_0"] {
                std::env::remove_var(name);
            }
            std::env::set_var("GST_REGISTRY_1_0", empty.path().join("registry.bin"));
        }
        epochfeed::plugin_register_static().unwrap();
    });
}

#[test]
fn the_elements_are_those_of_the_crate_and_of_no_file() {
    register();
    let plugin = gst::Registry::get().find_plugin("epochfeed").unwrap();
    assert_eq!(plugin.filename(), None, "a plugin file was found, not the crate");
    assert_eq!(plugin.version(), env!("CARGO_PKG_VERSION"));
    assert_eq!(plugin.license(), "MIT/X11");
    let mut features: Vec<_> = gst::Registry::get()
        .features_by_plugin("epochfeed")
        .iter()
        .map(|feature| feature.name().to_string())
        .collect();
    features.sort();
    assert_eq!(features, ELEMENTS);
    // The crate's Rust type is the factory's type: what a second copy in a plugin file would not be.
    let source = gst::ElementFactory::make("epochsrc").build().unwrap();
    assert!(
        source
            .downcast::<epochfeed::elements::epochsrc::EpochSrc>()
            .is_ok()
    );
}

#[test]
fn registering_again_changes_nothing() {
    register();
    let plugins = || {
        gst::Registry::get()
            .plugins()
            .iter()
            .filter(|plugin| plugin.plugin_name() == "epochfeed")
            .count()
    };
    let before = gst::ElementFactory::find("nhwcpack").unwrap();
    assert_eq!(plugins(), 1);
    epochfeed::plugin_register_static().unwrap();
    assert_eq!(plugins(), 1, "there is a second plugin");
    assert_eq!(gst::ElementFactory::find("nhwcpack").unwrap(), before);
}

#[test]
fn a_pipeline_of_them_runs() {
    register();
    let folder = common::scratch();
    common::copy_photos(folder.path(), 3);
    let pipeline = gst::parse::launch(&format!(
        "epochsrc location={} ! epochdecode ! video/x-raw,width=32,height=32 ! hsvquantize ! nhwcpack batch-size=2 \
         ! epochsink name=sink silent=true",
        common::location(folder.path())
    ))
    .unwrap();
    let pipeline = pipeline.downcast::<gst::Pipeline>().unwrap();
    let bus = pipeline.bus().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let last = bus
        .timed_pop_filtered(
            gst::ClockTime::from_seconds(20),
            &[gst::MessageType::Eos, gst::MessageType::Error],
        )
        .expect("the pipeline hangs");
    assert_eq!(last.type_(), gst::MessageType::Eos, "{last:?}");
    let stats = pipeline
        .by_name("sink")
        .unwrap()
        .property::<gst::Structure>("stats");
    assert_eq!(
        (stats.get::<u64>("batches"), stats.get::<u64>("samples")),
        (Ok(2), Ok(3))
    );
    pipeline.set_state(gst::State::Null).unwrap();
}
