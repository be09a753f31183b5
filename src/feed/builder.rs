//! What a feed is to be.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Feed;
use super::error::FeedError;
use super::settings::{Hold, Jitter, Settings};
use crate::color::{GainRanges, Gains};
use crate::dataset::Options;
use crate::decode::{Fit, Interpolation, OrientationMode, Truncated};
use crate::elements::epochbuffer::Prefetch;
use crate::elements::epochsrc::OnChange;
use crate::elements::faults::{Limit, OnError};
use crate::elements::nhwcpack::LastBatch;
use crate::sampler::{Shuffle, Uneven};
use crate::tensor::{CHANNELS, Dtype, Layout};

/// The settings of a [`Feed`]; made by [`Feed::builder`] and [`Feed::validation`]. Whatever is not set is as the elements'
/// defaults are. Nothing is checked before [`Builder::build`].
///
/// ```
/// # fn main() -> Result<(), epochfeed::FeedError> {
/// use epochfeed::Feed;
/// use epochfeed::elements::epochbuffer::Prefetch;
/// use epochfeed::sampler::Shuffle;
/// use epochfeed::tensor::Dtype;
/// # let photos = concat!(env!("CARGO_MANIFEST_DIR"), "/data/photos");
///
/// let feed = Feed::builder(photos)
///     .shuffle(Shuffle::Torch)
///     .seed(7)
///     .epochs(3)
///     .size(32, 32)
///     .batch_size(8)
///     .dtype(Dtype::Float16)
///     .prefetch(Prefetch::Complete)
///     .build()?;
/// for epoch in feed.epochs() {
///     for batch in epoch? {
///         let batch = batch?;
///         assert!(batch.as_f16().is_ok());
///     }
///     // Validate here: the next epoch is prepared in the meantime.
/// }
/// assert_eq!(feed.stats().epochs, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing before build()"]
pub struct Builder(Settings);

impl Builder {
    pub(super) fn training(location: &Path) -> Self {
        Self(Settings::new(location))
    }

    pub(super) fn validation(location: &Path) -> Self {
        Self(Settings {
            shuffle: Shuffle::None,
            epochs: None,
            jitter: Jitter::None,
            ..Settings::new(location)
        })
    }

    /// How the location is read: its format, and what of it is used. [`Batch::targets`](super::Batch::targets) has the boxes of
    /// a dataset with such. To know its classes and what is wrong with it, open it with the same options:
    /// [`Dataset::open_with`](crate::dataset::Dataset::open_with).
    pub fn dataset(mut self, options: Options) -> Self {
        self.0.dataset = options;
        self
    }

    /// What is done where the state that the feed goes on from is of another dataset than the one that is there.
    pub fn on_change(mut self, on_change: OnChange) -> Self {
        self.0.on_change = on_change;
        self
    }

    /// Order of the samples of each epoch.
    pub fn shuffle(mut self, shuffle: Shuffle) -> Self {
        self.0.shuffle = shuffle;
        self
    }

    /// Seed of the order and of the jitter.
    pub fn seed(mut self, seed: u64) -> Self {
        self.0.seed = seed;
        self
    }

    /// How many epochs there are, at least 1; 1 if not said. A feed that resumes in mid-epoch counts that one as its first.
    pub fn epochs(mut self, epochs: u32) -> Self {
        self.0.epochs = Some(epochs);
        self
    }

    /// Epochs without end.
    pub fn endless(mut self) -> Self {
        self.0.epochs = None;
        self
    }

    /// Which share of each epoch this feed delivers, from 0.
    pub fn rank(mut self, rank: u32) -> Self {
        self.0.rank = rank;
        self
    }

    /// Number of ranks that share each epoch.
    pub fn world_size(mut self, world_size: u32) -> Self {
        self.0.world_size = world_size;
        self
    }

    /// Only the first so many samples of each order, over all ranks.
    pub fn samples_per_epoch(mut self, samples: u64) -> Self {
        self.0.samples_per_epoch = Some(samples);
        self
    }

    /// What is done where ranks do not divide the samples equally.
    pub fn uneven(mut self, uneven: Uneven) -> Self {
        self.0.uneven = uneven;
        self
    }

    /// How many files are read at a time, ahead of the epoch, where storage is slow, 1 to 1024.
    pub fn io_depth(mut self, files: u32) -> Self {
        self.0.io_depth = files;
        self
    }

    /// Whether the location is read again before each epoch, for a dataset that changes. [`Prefetch::Complete`] prepares
    /// nothing then; with [`Prefetch::Any`] an epoch is prepared from the dataset as it is at that time.
    pub fn reload(mut self, reload: bool) -> Self {
        self.0.reload = reload;
        self
    }

    /// Goes on where `state` says: a [`Batch::state`](super::Batch::state) or a [`Feed::state`]. Everything that decides what follows
    /// must be as it was (dataset, order, seed, share; see also [`on_change`](Builder::on_change)); batch size, threads and sizes of images may differ.
    pub fn resume(mut self, state: impl Into<String>) -> Self {
        self.0.state = Some(state.into());
        self
    }

    /// File that the state is saved to whenever a batch has been acknowledged, by renaming, so that a process that is killed
    /// leaves a whole one. If it is there already, the feed goes on where it says, unless [`resume`](Builder::resume) says
    /// otherwise.
    pub fn state_location(mut self, file: impl Into<PathBuf>) -> Self {
        self.0.state_location = Some(file.into());
        self
    }

    /// How many images are decoded, and frames packed, at a time, 1 to 1024; if not said, as many as there are cores for this process
    /// (`LOCAL_WORLD_SIZE` processes share them).
    pub fn threads(mut self, threads: u32) -> Self {
        self.0.threads = Some(threads);
        self
    }

    /// File for a line of JSON about each file that cannot be used, added to what is there; see [`exclude`](Self::exclude).
    pub fn quarantine(mut self, file: impl Into<PathBuf>) -> Self {
        self.0.quarantine = Some(file.into());
        self
    }

    /// List of files that are left out of the dataset: one that [`quarantine`](Self::quarantine) wrote, or one path a line. What is left
    /// has indices of its own, and a state from before is refused.
    pub fn exclude(mut self, list: impl Into<PathBuf>) -> Self {
        self.0.exclude = Some(list.into());
        self
    }

    /// Keeps decoded frames in memory, up to so many bytes, so that later epochs read and decode only what did not fit. The bytes of
    /// the batches are the same.
    pub fn cache(mut self, bytes: u64) -> Self {
        self.0.cache = Some(bytes);
        self
    }

    /// How an image is fitted into the frame. With [`Fit::None`] each keeps its size: batches of one, or images of equal size.
    pub fn fit(mut self, fit: Fit) -> Self {
        self.0.decode.fit = fit;
        self
    }

    /// Colour of the letterbox: red, green, blue.
    pub fn pad_color(mut self, color: [u8; 3]) -> Self {
        self.0.decode.pad_color = color;
        self
    }

    /// Width and height of the frames in pixels; 640 each if not said.
    pub fn size(mut self, width: u32, height: u32) -> Self {
        self.0.size = (width, height);
        self
    }

    /// How pixels are resampled.
    pub fn interpolation(mut self, interpolation: Interpolation) -> Self {
        self.0.decode.interpolation = interpolation;
        self
    }

    /// Whether images are turned as their EXIF data say; with [`OrientationMode::Match`], so that they have the size in their
    /// annotation.
    pub fn orientation(mut self, orientation: OrientationMode) -> Self {
        self.0.decode.orientation = orientation;
        self
    }

    /// Images whose header claims more pixels are refused before memory is taken.
    pub fn max_pixels(mut self, pixels: u64) -> Self {
        self.0.decode.max_pixels = pixels;
        self
    }

    /// What is done about a file that ends before its last pixel.
    pub fn truncated(mut self, truncated: Truncated) -> Self {
        self.0.decode.truncated = truncated;
        self
    }

    /// What is done about a sample that cannot be used.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.0.on_error = on_error;
        self
    }

    /// How many samples of an epoch may be skipped or replaced.
    pub fn max_errors(mut self, limit: Limit) -> Self {
        self.0.max_errors = limit;
        self
    }

    /// How far hue, saturation and value are jittered, each 0 to 1.
    pub fn jitter(mut self, ranges: GainRanges) -> Self {
        self.0.jitter = Jitter::Drawn(ranges);
        self
    }

    /// The same gains for every sample, instead of drawn ones.
    pub fn gains(mut self, gains: Gains) -> Self {
        self.0.jitter = Jitter::Stated(gains);
        self
    }

    /// Leaves the colours as they are.
    pub fn no_jitter(mut self) -> Self {
        self.0.jitter = Jitter::None;
        self
    }

    /// Whether jitter, restoring and layout are one pass over the pixels; the values are the same without.
    pub fn fuse(mut self, fuse: bool) -> Self {
        self.0.fuse = fuse;
        self
    }

    /// Where batches are made and are:
    ///
    /// - `cpu`, if not said (the element's own default is `auto`): the consumer of a feed is the application, and one that reads
    ///   the values on the host would only have them copied forth and back;
    /// - `cuda:N`: the GPU with this number; [`Builder::build`] fails where it cannot be used, naming what is missing;
    /// - `auto`: the GPU of this rank (the environment variable `LOCAL_RANK`, else the first one) where it can be used, otherwise
    ///   the CPU. [`Batch::device`](super::Batch::device) tells which it is, and the properties `path` and `path-reason` of the
    ///   pipeline's `nhwcpack` why.
    ///
    /// The values are the same, to the last bit. What is held ready ([`Builder::max_bytes`]) is device memory then, and
    /// [`Batch::as_f32`](super::Batch::as_f32) and its like copy a batch to the host when they are first called.
    pub fn device(mut self, device: impl Into<String>) -> Self {
        self.0.device = device.into();
        self
    }

    /// Samples a batch, 1 to 65536; 1 if not said.
    pub fn batch_size(mut self, samples: u32) -> Self {
        self.0.batch_size = samples;
        self
    }

    /// Type of the values.
    pub fn dtype(mut self, dtype: Dtype) -> Self {
        self.0.dtype = dtype;
        self
    }

    /// Order of the axes in memory.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.0.layout = layout;
        self
    }

    /// Subtracted from the values (0 to 1) of red, green and blue; not with uint8.
    pub fn mean(mut self, mean: [f32; CHANNELS]) -> Self {
        self.0.mean = Some(mean);
        self
    }

    /// What the values of red, green and blue are divided by; not with uint8.
    pub fn std(mut self, std: [f32; CHANNELS]) -> Self {
        self.0.std = Some(std);
        self
    }

    /// What is done with samples that are too few for a batch at the end of an epoch.
    pub fn last_batch(mut self, last_batch: LastBatch) -> Self {
        self.0.last_batch = last_batch;
        self
    }

    /// What may be prepared before it is asked for; nothing if not said, since it stays in memory while the application
    /// validates.
    pub fn prefetch(mut self, prefetch: Prefetch) -> Self {
        self.0.prefetch = prefetch;
        self
    }

    /// How many buffers are held ready at most, at least 1; 256 if not said.
    pub fn max_buffers(mut self, buffers: u32) -> Self {
        self.0.max_buffers = buffers;
        self
    }

    /// How many bytes are held ready at most; 1 GiB if not said. One buffer is always held.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.0.max_bytes = bytes;
        self
    }

    /// What is held ready: batches, or frames that are still to be packed.
    pub fn hold(mut self, hold: Hold) -> Self {
        self.0.hold = hold;
        self
    }

    /// Ends the feed after so many batches in all. Since that may be in the middle of an epoch, [`Prefetch::Complete`] prepares
    /// nothing then.
    pub fn max_steps(mut self, batches: u64) -> Self {
        self.0.max_steps = Some(batches);
        self
    }

    /// Has `listener` see every message of the pipeline's elements: `epochfeed-fault` for a skipped file, `epochfeed-epoch`,
    /// warnings. It is called on the thread that posts the message, so it must neither wait nor panic; dropping the feed in
    /// it is possible.
    pub fn on_message(mut self, listener: impl Fn(&gst::Message) + Send + Sync + 'static) -> Self {
        self.0.listener = Some(Arc::new(listener));
        self
    }

    /// Builds the pipeline and starts it: the first epoch is read from now on.
    ///
    /// # Errors
    /// [`FeedError::Setting`] for a value that an element does not take; [`FeedError::Stream`] for a dataset that cannot be
    /// opened or a state that does not fit it, naming both; [`FeedError::Register`] and [`FeedError::Element`] where GStreamer's
    /// installation is at fault.
    pub fn build(self) -> Result<Feed, FeedError> {
        Feed::start(self.0)
    }
}
