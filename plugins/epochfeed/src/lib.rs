//! The GStreamer plugin `epochfeed`: the library's elements, registered.
#![allow(missing_docs)] // plugin_define! emits undocumented public items

use epochfeed::elements::register;

gst::plugin_define!(
    epochfeed,
    env!("CARGO_PKG_DESCRIPTION"),
    register,
    concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
    "MIT/X11",
    "epochfeed",
    "epochfeed",
    "https://crates.io/crates/epochfeed",
    env!("BUILD_REL_DATE")
);
