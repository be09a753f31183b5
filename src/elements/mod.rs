//! The GStreamer elements.

pub mod meta;

/// Registers every element with `plugin`.
pub fn register(_plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    meta::register();
    Ok(())
}
