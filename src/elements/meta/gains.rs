use super::{read, write};

/// `epochfeed-gains`: the jitter of a frame.
///
/// On a frame whose caps carry the feature `meta:EpochfeedGains` it is work that is still to be done. On a plain
/// frame that passed hsvquantize, `applied` says that the pixels have it already; a frame that comes to hsvquantize
/// with gains that are not applied states them, and they win over its properties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GainsMeta {
    /// Added to the hue, in turns.
    pub hue: f64,
    /// The saturation is multiplied by `1 + saturation`.
    pub saturation: f64,
    /// The value is multiplied by `1 + value`.
    pub value: f64,
    /// Whether the pixels have been changed.
    pub applied: bool,
}

impl GainsMeta {
    /// The meta's name.
    pub const NAME: &'static str = "epochfeed-gains";

    /// The meta of `buffer`, if it has one.
    pub fn get(buffer: &gst::BufferRef) -> Option<Self> {
        let meta = read(buffer, Self::NAME)?;
        let fields = meta.structure();
        Some(Self {
            hue: fields.get("hue").ok()?,
            saturation: fields.get("saturation").ok()?,
            value: fields.get("value").ok()?,
            // An application that states gains need not know the field.
            applied: fields.get("applied").unwrap_or(false),
        })
    }

    /// Adds the meta to `buffer`, or replaces it.
    ///
    /// # Errors
    /// If the meta is not registered, that is, before [`register`](crate::elements::register).
    pub fn set(&self, buffer: &mut gst::BufferRef) -> Result<(), glib::BoolError> {
        let mut meta = write(buffer, Self::NAME)?;
        let fields = meta.mut_structure();
        fields.set("hue", self.hue);
        fields.set("saturation", self.saturation);
        fields.set("value", self.value);
        fields.set("applied", self.applied);
        Ok(())
    }
}
