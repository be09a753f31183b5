//! Gives the plugin its commit and date, which `plugin_define!` shows in `gst-inspect-1.0`.

fn main() {
    gst_plugin_version_helper::info();
}
