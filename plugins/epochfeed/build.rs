//! Finds the commit and date that `gst-inspect-1.0` shows.

fn main() {
    gst_plugin_version_helper::info();
}
