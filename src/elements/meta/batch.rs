use super::targets::BatchTargets;
use super::{read, write};

/// `epochfeed-batch`: the samples of a batch, in order, and the state behind it.
///
/// Every array has one entry a sample of the batch. In the structure the gains are three arrays, `hue`,
/// `saturation` and `value`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchMeta {
    /// The epoch, from 0.
    pub epoch: u64,
    /// Number of the batch in the epoch, from 0 (after a resume: from 0 again).
    pub batch: u64,
    /// The seed of the order and of the gains.
    pub seed: u64,
    /// Hash of everything the pixels depend on besides the samples themselves.
    pub recipe: u64,
    /// Prepared ahead, before the consumer asked for the epoch.
    pub prepared: bool,
    /// Positions in this rank's order of the epoch.
    pub index: Vec<u64>,
    /// Positions in the dataset.
    pub dataset_index: Vec<u64>,
    /// `file://` URIs, percent-encoded.
    pub uri: Vec<String>,
    /// Hue, saturation and value.
    pub gains: Vec<[f64; 3]>,
    /// Repeated to fill up; not counted as delivered.
    pub pad: Vec<bool>,
    /// Index in the dataset of the faulty sample whose place this one takes, or -1.
    pub replaced_from: Vec<i64>,
    /// Widths of the images before they were fitted into the frame (see [`SampleMeta`](super::SampleMeta)).
    pub source_width: Vec<u32>,
    /// Heights, likewise.
    pub source_height: Vec<u32>,
    /// The boxes of the samples, if all of them have their boxes with them.
    pub targets: Option<BatchTargets>,
    /// The state behind this batch as JSON; empty where there is no epochsrc.
    pub state: String,
}

impl BatchMeta {
    /// The meta's name.
    pub const NAME: &'static str = "epochfeed-batch";

    /// The meta of `buffer`, if it has one.
    pub fn get(buffer: &gst::BufferRef) -> Option<Self> {
        let meta = read(buffer, Self::NAME)?;
        let fields = meta.structure();
        let hue: Vec<f64> = array(fields, "hue")?;
        let saturation: Vec<f64> = array(fields, "saturation")?;
        let value: Vec<f64> = array(fields, "value")?;
        Some(Self {
            epoch: fields.get("epoch").ok()?,
            batch: fields.get("batch").ok()?,
            seed: fields.get("seed").ok()?,
            recipe: fields.get("recipe").ok()?,
            prepared: fields.get("prepared").ok()?,
            index: array(fields, "index")?,
            dataset_index: array(fields, "dataset-index")?,
            uri: array(fields, "uri")?,
            gains: hue
                .into_iter()
                .zip(saturation)
                .zip(value)
                .map(|((h, s), v)| [h, s, v])
                .collect(),
            pad: array(fields, "pad")?,
            replaced_from: array(fields, "replaced-from")?,
            source_width: array(fields, "source-width")?,
            source_height: array(fields, "source-height")?,
            targets: BatchTargets::read(fields),
            state: fields.get("state").ok()?,
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
        fields.set("batch", self.batch);
        fields.set("seed", self.seed);
        fields.set("recipe", self.recipe);
        fields.set("prepared", self.prepared);
        fields.set("index", gst::Array::new(&self.index));
        fields.set("dataset-index", gst::Array::new(&self.dataset_index));
        fields.set("uri", gst::Array::new(&self.uri));
        for (component, name) in ["hue", "saturation", "value"].into_iter().enumerate() {
            fields.set(
                name,
                gst::Array::new(self.gains.iter().map(|gains| gains[component])),
            );
        }
        fields.set("pad", gst::Array::new(&self.pad));
        fields.set("replaced-from", gst::Array::new(&self.replaced_from));
        fields.set("source-width", gst::Array::new(&self.source_width));
        fields.set("source-height", gst::Array::new(&self.source_height));
        BatchTargets::write(self.targets.as_ref(), fields);
        fields.set("state", &self.state);
        Ok(())
    }
}

/// The field `name` as a list of `T`; `None` if it is missing or has an entry of another type.
pub(super) fn array<T>(fields: &gst::StructureRef, name: &str) -> Option<Vec<T>>
where
    T: for<'a> glib::value::FromValue<'a>,
{
    let array = fields.get::<gst::ArrayRef>(name).ok()?;
    array
        .as_slice()
        .iter()
        .map(|value| value.get::<T>().ok())
        .collect()
}
