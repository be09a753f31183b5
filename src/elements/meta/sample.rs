use super::super::faults::{Class, Fault};
use super::{read, write};

/// `epochfeed-sample`: which sample of which epoch a buffer is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleMeta {
    /// The epoch, from 0.
    pub epoch: u64,
    /// Position in this rank's order of the epoch, from 0.
    pub index: u64,
    /// Position in the dataset, from 0.
    pub dataset_index: u64,
    /// `file://` URI, percent-encoded: paths are bytes.
    pub uri: String,
    /// Which version of the file was read: a number that changes with the file, 0 where it is not known. It says something
    /// within one process only.
    pub file_version: u64,
    /// The seed of the order and of the gains.
    pub seed: u64,
    /// Hash of everything the pixels depend on besides the sample itself.
    pub recipe: u64,
    /// Prepared ahead, before the consumer asked for the epoch.
    pub prepared: bool,
    /// Delivered before, and sent again after a resume only so that it can be repeated: to stand in for a faulty sample,
    /// or to fill up the last batch. Not part of what is delivered now.
    pub again: bool,
    /// Repeated so that all ranks or batches have the same size; not counted as delivered.
    pub pad: bool,
    /// Index in the dataset of the faulty sample whose place this one takes, or -1.
    pub replaced_from: i64,
    /// Why the sample cannot be used; such a buffer is empty and has the GAP flag.
    pub fault: Option<Fault>,
    /// How many samples of the epoch were skipped (or replaced) up to and including this one.
    pub skipped: u64,
    /// How many of those were replaced.
    pub replaced: u64,
    /// Width of the image before it was fitted into the frame, turned as it is there; 0 before it is decoded.
    pub source_width: u32,
    /// Height, likewise.
    pub source_height: u32,
    /// The dataset says which boxes the image has: where the buffer has no [`BoxesMeta`](super::BoxesMeta) for its size, an
    /// element on the way has changed the geometry.
    pub annotated: bool,
}

impl SampleMeta {
    /// The meta's name.
    pub const NAME: &'static str = "epochfeed-sample";

    /// The meta of `buffer`, if it has one.
    pub fn get(buffer: &gst::BufferRef) -> Option<Self> {
        let meta = read(buffer, Self::NAME)?;
        let fields = meta.structure();
        Some(Self {
            epoch: fields.get("epoch").ok()?,
            index: fields.get("index").ok()?,
            dataset_index: fields.get("dataset-index").ok()?,
            uri: fields.get("uri").ok()?,
            // An application that stamps buffers by itself need not know the field.
            file_version: fields.get("file-version").unwrap_or(0),
            seed: fields.get("seed").ok()?,
            recipe: fields.get("recipe").ok()?,
            prepared: fields.get("prepared").ok()?,
            again: fields.get("again").ok()?,
            pad: fields.get("pad").ok()?,
            replaced_from: fields.get("replaced-from").ok()?,
            fault: fields.get("fault").ok().map(|reason| Fault {
                // Whoever stamps buffers by himself need not know the classes.
                class: fields
                    .get::<&str>("fault-class")
                    .ok()
                    .and_then(|class| class.parse().ok())
                    .unwrap_or(Class::Unreadable),
                reason,
            }),
            skipped: fields.get("skipped").ok()?,
            replaced: fields.get("replaced").ok()?,
            source_width: fields.get("source-width").ok()?,
            source_height: fields.get("source-height").ok()?,
            annotated: fields.get("annotated").unwrap_or(false),
        })
    }

    /// Adds the meta to `buffer`, or replaces it.
    ///
    /// # Errors
    /// If the meta is not registered, that is, before [`register`](crate::elements::register).
    pub fn set(&self, buffer: &mut gst::BufferRef) -> Result<(), glib::BoolError> {
        let mut meta = write(buffer, Self::NAME)?;
        let fields = meta.mut_structure();
        fields.set("epoch", self.epoch);
        fields.set("index", self.index);
        fields.set("dataset-index", self.dataset_index);
        fields.set("uri", &self.uri);
        fields.set("file-version", self.file_version);
        fields.set("seed", self.seed);
        fields.set("recipe", self.recipe);
        fields.set("prepared", self.prepared);
        fields.set("again", self.again);
        fields.set("pad", self.pad);
        fields.set("replaced-from", self.replaced_from);
        match &self.fault {
            Some(fault) => {
                fields.set("fault", &fault.reason);
                fields.set("fault-class", fault.class.as_str());
            }
            None => fields.remove_fields(["fault", "fault-class"]),
        }
        fields.set("skipped", self.skipped);
        fields.set("replaced", self.replaced);
        fields.set("source-width", self.source_width);
        fields.set("source-height", self.source_height);
        fields.set("annotated", self.annotated);
        Ok(())
    }
}
