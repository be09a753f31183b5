//! The elements inside an application, without a plugin file.

use once_cell::sync::OnceCell;

/// What `gst-inspect-1.0` and the registry show of the plugin; C strings.
const NAME: &std::ffi::CStr = c"epochfeed";
/// A string that GStreamer knows: it stands for this crate's MIT OR Apache-2.0.
const LICENSE: &std::ffi::CStr = c"MIT/X11";
const ORIGIN: &std::ffi::CStr = c"https://crates.io/crates/epochfeed";
const DESCRIPTION: &str = concat!(env!("CARGO_PKG_DESCRIPTION"), "\0");
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// Registers the elements with this process's GStreamer, so that an application which links this crate needs neither
/// the plugin file nor `GST_PLUGIN_PATH`. Initialises GStreamer if that has not been done; the second call and those
/// after it do nothing. Elements of a plugin file that is found as well are replaced by those of this crate.
///
/// # Errors
/// If GStreamer cannot be initialised, or refuses the plugin. A later call tries again.
///
/// ```
/// use gst::prelude::*;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// epochfeed::plugin_register_static()?;
/// let source = gst::ElementFactory::make("epochsrc").property("seed", 7u64).build()?;
/// assert_eq!(source.property::<u64>("seed"), 7);
/// # Ok(())
/// # }
/// ```
pub fn plugin_register_static() -> Result<(), glib::BoolError> {
    static REGISTERED: OnceCell<()> = OnceCell::new();
    REGISTERED.get_or_try_init(register).copied()
}

/// `plugin_define!` would do this, but it also exports the entry points of a plugin file, which the plugin itself defines
/// and which must not be there twice.
fn register() -> Result<(), glib::BoolError> {
    gst::init().map_err(|error| glib::bool_error!("GStreamer cannot be initialised: {error}"))?;
    // SAFETY: GStreamer is initialised; every string ends with a NUL and lives as long as the process; `init` is a
    // function of the expected signature that does not unwind.
    let registered = unsafe {
        gst::ffi::gst_plugin_register_static(
            gst::subclass::MAJOR_VERSION,
            gst::subclass::MINOR_VERSION,
            NAME.as_ptr(),
            DESCRIPTION.as_ptr().cast(),
            Some(init),
            VERSION.as_ptr().cast(),
            LICENSE.as_ptr(),
            NAME.as_ptr(),
            NAME.as_ptr(),
            ORIGIN.as_ptr(),
        )
    };
    if registered == glib::ffi::GTRUE {
        Ok(())
    } else {
        Err(glib::bool_error!(
            "GStreamer refuses the plugin epochfeed; GST_DEBUG=GST_PLUGIN_LOADING:4 says why"
        ))
    }
}

/// Called by GStreamer with the plugin to register the elements with.
unsafe extern "C" fn init(plugin: *mut gst::ffi::GstPlugin) -> glib::ffi::gboolean {
    let registered = std::panic::catch_unwind(|| {
        // SAFETY: GStreamer hands over a plugin that it keeps alive for the call.
        let plugin = unsafe { glib::translate::from_glib_borrow::<_, gst::Plugin>(plugin) };
        crate::elements::register(&plugin)
    });
    // What went wrong is logged by whoever failed; unwinding must not reach C.
    match registered {
        Ok(Ok(())) => glib::ffi::GTRUE,
        Ok(Err(_)) | Err(_) => glib::ffi::GFALSE,
    }
}
