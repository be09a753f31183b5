//! Runs the pipeline and collects samples before and after the jitter.

use std::path::Path;
use std::time::{Duration, Instant};

use gst::prelude::*;
use gst_video::VideoFrameExt;
use image::RgbImage;

/// Side of the frames asked for, in pixels: enough for a thumbnail, and quick.
const SIDE: u32 = 320;
/// Longest wait for one frame. A photograph takes milliseconds; only a stuck disk or a bug comes near.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a wait looks at the bus, so that an error does not sit out [`PATIENCE`].
const GLANCE: gst::ClockTime = gst::ClockTime::from_mseconds(50);

/// What to capture: the first `count` samples of one epoch.
pub struct Request<'a> {
    /// Folder, list or image, or a `file://` URI of one.
    pub location: &'a Path,
    /// Seed of order and gains.
    pub seed: u64,
    /// Epoch, from 0.
    pub epoch: u32,
    /// At most this many samples; fewer when the epoch is shorter.
    pub count: usize,
}

/// What the jitter drew for one sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    /// Added to the hue, in turns.
    pub hue: f64,
    /// Saturation is multiplied by 1 + this.
    pub saturation: f64,
    /// Value is multiplied by 1 + this.
    pub value: f64,
}

/// One sample, before and after.
pub struct Shot {
    /// Position in the dataset.
    pub dataset_index: u64,
    /// Percent-encoded `file://` URI.
    pub uri: String,
    /// What was drawn for it.
    pub gains: Gains,
    /// As decoded and fitted.
    pub before: RgbImage,
    /// As jittered.
    pub after: RgbImage,
}

/// Why there is no sheet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// GStreamer does not know our elements.
    #[error(
        "the epochfeed elements are not registered: set GST_PLUGIN_PATH to the folder of libgstepochfeed.so (target/release)"
    )]
    NoPlugin,
    /// The path cannot be told to the source.
    #[error("cannot make a file:// URI of {path}: {reason}")]
    Location { path: String, reason: glib::Error },
    /// The pipeline could not be built.
    #[error("cannot build the pipeline: {0}")]
    Build(#[from] glib::Error),
    /// The pipeline could not be started and gave no reason.
    #[error("the pipeline does not start; GST_DEBUG=3 shows why")]
    Start,
    /// An element reported an error; ours name the file.
    #[error("{element}: {message}{}", details(.debug.as_deref()))]
    Element {
        element: String,
        message: String,
        debug: Option<String>,
    },
    /// Nothing came for [`PATIENCE`].
    #[error("no frame on '{branch}' for {} s: is the storage stuck?", PATIENCE.as_secs())]
    Stalled { branch: &'static str },
    /// The stream ended without a sample.
    #[error("{location} gave no sample in epoch {epoch}")]
    Empty { location: String, epoch: u32 },
    /// A frame lacks what our elements attach, or holds something else.
    #[error("a frame on '{branch}' has no {what}: do plugin and program come from the same build?")]
    Frame {
        branch: &'static str,
        what: &'static str,
    },
    /// The branches do not hold the same sample.
    #[error("the branches disagree: {before} before the jitter, {after} after it")]
    Unpaired { before: String, after: String },
}

/// GStreamer's debug text, on lines of its own.
fn details(debug: Option<&str>) -> String {
    debug
        .map(|text| format!("\n  {}", text.trim().replace('\n', "\n  ")))
        .unwrap_or_default()
}

/// Plays the pipeline until `request.count` samples are there, or the epoch ends.
///
/// # Errors
/// Every [`Error`]; a file that cannot be read or decoded is an [`Error::Element`] that names it.
pub fn capture(request: &Request) -> Result<Vec<Shot>, Error> {
    if gst::ElementFactory::find("epochsrc").is_none() {
        return Err(Error::NoPlugin);
    }
    let running = Running(build(request)?);
    let before = Branch::new(&running.0, "before")?;
    let after = Branch::new(&running.0, "after")?;
    if running.0.set_state(gst::State::Playing).is_err() {
        return Err(running.error().unwrap_or(Error::Start));
    }
    let mut shots = Vec::new();
    while shots.len() < request.count {
        // One of each in turn: neither branch can fill while the other is waited for.
        let (Some(before), Some(after)) = (before.next(&running)?, after.next(&running)?) else {
            break;
        };
        shots.push(pair(before, after)?);
    }
    if shots.is_empty() {
        return Err(Error::Empty {
            location: request.location.display().to_string(),
            epoch: request.epoch,
        });
    }
    Ok(shots)
}

/// Builds the pipeline of [`capture`], not yet started.
fn build(request: &Request) -> Result<gst::Pipeline, Error> {
    // The caps after hsvquantize have no features on purpose: they ask for pixels, where `nhwcpack` would accept untouched
    // frames with their gains attached.
    let description = format!(
        "epochsrc name=source seed={seed} epochs={epochs} ! epochdecode \
         ! video/x-raw,format=RGB,width={SIDE},height={SIDE} ! tee name=tee \
         tee. ! queue ! video/x-raw,format=RGB ! appsink name=before sync=false max-buffers=2 \
         tee. ! queue ! hsvquantize ! video/x-raw,format=RGB ! appsink name=after sync=false max-buffers=2",
        seed = request.seed,
        epochs = request.epoch + 1,
    );
    let pipeline = gst::parse::launch(&description)?
        .downcast::<gst::Pipeline>()
        .map_err(|_| Error::Frame {
            branch: "pipeline",
            what: "several elements",
        })?;
    let source = pipeline.by_name("source").ok_or(Error::NoPlugin)?;
    source.set_property("location", location(request.location)?);
    skip_earlier_epochs(&source, u64::from(request.epoch));
    Ok(pipeline)
}

/// `path` as the `location` property takes it: itself if it is text, else (paths are bytes) a URI.
fn location(path: &Path) -> Result<String, Error> {
    if let Some(text) = path.to_str() {
        return Ok(text.to_owned());
    }
    let name = |reason| Error::Location {
        path: path.display().to_string(),
        reason,
    };
    let absolute = std::path::absolute(path)
        .map_err(|error| name(glib::Error::new(glib::FileError::Inval, &error.to_string())))?;
    Ok(glib::filename_to_uri(absolute, None).map_err(name)?.into())
}

/// Drops what the source sends before epoch `first`, while it is encoded: nothing of it is decoded.
fn skip_earlier_epochs(source: &gst::Element, first: u64) {
    let Some(pad) = source.static_pad("src") else {
        return;
    };
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        match info.buffer().and_then(|b| sample_field(b, "epoch")) {
            Some(epoch) if epoch < first => gst::PadProbeReturn::Drop,
            _ => gst::PadProbeReturn::Ok,
        }
    });
}

fn sample_field(buffer: &gst::BufferRef, field: &str) -> Option<u64> {
    gst::meta::CustomMeta::from_buffer(buffer, "epochfeed-sample")
        .ok()?
        .structure()
        .get(field)
        .ok()
}

/// The pipeline, stopped when it goes out of scope: an early return must not leave its threads behind.
struct Running(gst::Pipeline);

impl Running {
    /// The first error on the bus, if there is one.
    fn error(&self) -> Option<Error> {
        let message = self.0.bus()?.pop_filtered(&[gst::MessageType::Error])?;
        let gst::MessageView::Error(error) = message.view() else {
            return None;
        };
        Some(Error::Element {
            element: message
                .src()
                .map_or_else(|| "pipeline".into(), |source| source.name().into()),
            message: error.error().message().to_owned(),
            debug: error.debug().map(Into::into),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing is left to do for a pipeline that does not even stop.
        let _ = self.0.set_state(gst::State::Null);
    }
}

/// One of the two ends of the pipeline.
struct Branch {
    name: &'static str,
    sink: gst_app::AppSink,
}

/// A frame with its identity.
struct Frame {
    epoch: u64,
    index: u64,
    dataset_index: u64,
    uri: String,
    gains: Option<Gains>,
    picture: RgbImage,
}

impl Branch {
    fn new(pipeline: &gst::Pipeline, name: &'static str) -> Result<Self, Error> {
        let sink = pipeline.by_name(name).and_then(|element| element.downcast().ok());
        Ok(Self {
            name,
            sink: sink.ok_or(Error::Frame {
                branch: name,
                what: "appsink",
            })?,
        })
    }

    /// The next frame, or `None` at the end of the stream.
    fn next(&self, running: &Running) -> Result<Option<Frame>, Error> {
        let start = Instant::now();
        loop {
            if let Some(sample) = self.sink.try_pull_sample(GLANCE) {
                return self.read(&sample).map(Some);
            }
            if let Some(error) = running.error() {
                return Err(error);
            }
            if self.sink.is_eos() {
                return Ok(None);
            }
            if start.elapsed() > PATIENCE {
                return Err(Error::Stalled { branch: self.name });
            }
        }
    }

    fn read(&self, sample: &gst::Sample) -> Result<Frame, Error> {
        let lacks = |what| Error::Frame {
            branch: self.name,
            what,
        };
        let buffer = sample.buffer().ok_or_else(|| lacks("buffer"))?;
        let meta = gst::meta::CustomMeta::from_buffer(buffer, "epochfeed-sample")
            .map_err(|_| lacks("epochfeed-sample meta"))?;
        let number = |field| meta.structure().get::<u64>(field).map_err(|_| lacks(field));
        Ok(Frame {
            epoch: number("epoch")?,
            index: number("index")?,
            dataset_index: number("dataset-index")?,
            uri: meta.structure().get("uri").map_err(|_| lacks("uri"))?,
            gains: gains(buffer),
            picture: picture(sample, buffer).ok_or_else(|| lacks("readable RGB picture"))?,
        })
    }
}

fn gains(buffer: &gst::BufferRef) -> Option<Gains> {
    let meta = gst::meta::CustomMeta::from_buffer(buffer, "epochfeed-gains").ok()?;
    let number = |field| meta.structure().get::<f64>(field).ok();
    Some(Gains {
        hue: number("hue")?,
        saturation: number("saturation")?,
        value: number("value")?,
    })
}

/// Copies an RGB frame out of its buffer, without the padding at the end of the rows.
fn picture(sample: &gst::Sample, buffer: &gst::BufferRef) -> Option<RgbImage> {
    let info = gst_video::VideoInfo::from_caps(sample.caps()?).ok()?;
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info).ok()?;
    let stride = usize::try_from(*frame.plane_stride().first()?).ok()?;
    let row = usize::try_from(frame.width()).ok()? * 3;
    let rows = frame
        .plane_data(0)
        .ok()?
        .chunks(stride)
        .take(usize::try_from(frame.height()).ok()?);
    let pixels = rows
        .filter_map(|padded| padded.get(..row))
        .flatten()
        .copied()
        .collect();
    RgbImage::from_raw(frame.width(), frame.height(), pixels)
}

fn pair(before: Frame, after: Frame) -> Result<Shot, Error> {
    if (before.epoch, before.index) != (after.epoch, after.index) {
        let name = |frame: &Frame| format!("epoch {} sample {}", frame.epoch, frame.index);
        return Err(Error::Unpaired {
            before: name(&before),
            after: name(&after),
        });
    }
    Ok(Shot {
        dataset_index: after.dataset_index,
        uri: after.uri,
        gains: after.gains.ok_or(Error::Frame {
            branch: "after",
            what: "epochfeed-gains meta",
        })?,
        before: before.picture,
        after: after.picture,
    })
}
