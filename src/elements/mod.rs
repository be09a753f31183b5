//! The GStreamer elements, one folder each, and what they share.
//!
//! - [`epochsrc`] reads a dataset epoch by epoch, [`epochdecode`] decodes, [`hsvquantize`] jitters colours,
//!   [`nhwcpack`] gathers frames into batches, [`epochsink`] stands in for a trainer.
//! - [`coordinator`] is the protocol of an epoch between source and consumer, [`epoch_end`] the end of an epoch in
//!   the stream, [`meta`] what travels with buffers, [`faults`] what happens to samples that cannot be used.

pub(crate) mod account;
pub mod coordinator;
pub mod cuda;
mod device;
pub mod epoch_end;
pub mod epochbuffer;
pub mod epochdecode;
pub mod epochsink;
pub mod epochsrc;
pub mod faults;
mod file_memory;
mod gstcuda;
pub mod hsvquantize;
mod identity;
pub mod meta;
pub mod nhwcpack;
pub mod path;
pub(crate) mod util;
mod video;

/// Who the elements name as their author.
pub(crate) const AUTHOR: &str = env!("CARGO_PKG_AUTHORS");

/// Registers every element with `plugin`.
///
/// # Errors
/// If GStreamer refuses a feature.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    meta::register();
    epochsrc::register(Some(plugin))?;
    epochdecode::register(Some(plugin))?;
    hsvquantize::register(Some(plugin))?;
    nhwcpack::register(Some(plugin))?;
    epochbuffer::register(Some(plugin))?;
    epochsink::register(Some(plugin))
}

/// The encoded images that epochsrc gives and epochdecode takes.
fn encoded_caps() -> gst::Caps {
    ["image/jpeg", "image/png", "image/webp", "image/bmp"]
        .into_iter()
        .map(gst::Structure::new_empty)
        .collect()
}
