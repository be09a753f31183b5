//! Pipelines with an epochbuffer, in which nothing asks for epochs but the test.

use std::path::Path;
use std::sync::{Arc, Mutex};

use gst::prelude::*;

use super::wait::until;
use super::{Pipeline, location};

/// What the buffer holds, that is, where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    Frames,
    Batches,
}

impl Held {
    pub const ALL: [Self; 2] = [Self::Frames, Self::Batches];
}

/// A batch's epoch and dataset indices.
pub type Indices = (u64, Vec<u64>);

/// Batches of two samples from `images` in the order of the dataset, by way of an epochbuffer that holds `held`, in an
/// appsink that holds `room` (0: any number) and that nobody has to empty.
#[derive(Clone)]
pub struct Buffered {
    pipeline: Arc<Pipeline>,
    passed: Arc<Mutex<Passed>>,
}

/// What has come to the sink since it was last looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    batches: usize,
    epoch_ends: usize,
}

impl Buffered {
    pub fn new(images: &Path, source: &str, held: Held, buffer: &str, room: u32) -> Self {
        let (frames, batches) = match held {
            Held::Frames => (format!("epochbuffer name=buffer {buffer} !"), String::new()),
            Held::Batches => (String::new(), format!("epochbuffer name=buffer {buffer} !")),
        };
        let pipeline = Pipeline::new(&format!(
            "epochsrc name=source location={} shuffle=none epochs=-1 {source} ! epochdecode name=decode \
             ! video/x-raw,format=RGB,width=32,height=32 ! {frames} hsvquantize name=jitter ! nhwcpack batch-size=2 \
             ! {batches} appsink name=sink sync=false max-buffers={room}",
            location(images)
        ));
        let pad = pipeline.element("sink").static_pad("sink").unwrap();
        let passed: Arc<Mutex<Passed>> = Arc::default();
        let counted = passed.clone();
        let what = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
        pad.add_probe(what, move |_, info| {
            let mut passed = counted.lock().unwrap();
            match &info.data {
                Some(gst::PadProbeData::Buffer(_)) => passed.batches += 1,
                Some(gst::PadProbeData::Event(event)) if event.type_() == gst::EventType::SegmentDone => {
                    passed.epoch_ends += 1;
                }
                _ => (),
            }
            gst::PadProbeReturn::Ok
        });
        Self {
            pipeline: Arc::new(pipeline),
            passed,
        }
    }

    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    pub fn sink(&self) -> gst_app::AppSink {
        self.pipeline().element("sink").downcast().unwrap()
    }

    /// Starts at the beginning of the dataset.
    pub fn start_over(&self) {
        self.pipeline().element("source").set_property("state", "");
        self.forget();
        self.pipeline().set(gst::State::Playing);
    }

    /// What has come to the sink counts no longer.
    pub fn forget(&self) {
        *self.passed.lock().unwrap() = Passed::default();
    }

    pub fn ask(&self) -> bool {
        self.pipeline().element("buffer").emit_by_name("next-epoch", &[])
    }

    /// Changes the recipe.
    pub fn set_jitter(&self, hue: f64) {
        self.pipeline().element("jitter").set_property("hue", hue);
    }

    /// A figure of the buffer's.
    pub fn stat(&self, name: &str) -> u64 {
        let stats: gst::Structure = self.pipeline().element("buffer").property("stats");
        stats.get(name).unwrap()
    }

    /// Waits until the buffer's figure `name` is `wanted`.
    #[track_caller]
    pub fn until(&self, name: &str, wanted: u64) {
        until(&format!("{name} is {wanted}"), || self.stat(name) == wanted);
    }

    /// Waits until so many batches have come to the sink; one that it has no room for is among them.
    #[track_caller]
    pub fn until_batches(&self, wanted: usize) {
        until("batches come", || self.passed.lock().unwrap().batches >= wanted);
    }

    /// Waits until an epoch has ended at the sink.
    #[track_caller]
    pub fn until_epoch_end(&self) {
        until("the epoch ends", || self.passed.lock().unwrap().epoch_ends > 0);
    }

    /// The next batch; `None` at the end of the stream.
    #[track_caller]
    pub fn pull(&self) -> Option<Indices> {
        let sink = self.sink();
        let Some(sample) = sink.try_pull_sample(super::pipeline::LIMIT) else {
            assert!(
                sink.is_eos(),
                "nothing comes any more: {:?}",
                self.pipeline().errors()
            );
            return None;
        };
        let meta = gst::meta::CustomMeta::from_buffer(sample.buffer().unwrap(), "epochfeed-batch").unwrap();
        let indices = meta.structure().get::<gst::ArrayRef>("dataset-index").unwrap();
        let indices = indices.as_slice().iter().map(|index| index.get().unwrap());
        Some((meta.structure().get("epoch").unwrap(), indices.collect()))
    }

    /// Where the consumer is: epoch and position.
    pub fn place(&self) -> (u64, u64) {
        let state: Option<String> = self.pipeline().element("source").property("state");
        let state: serde_json::Value = serde_json::from_str(&state.unwrap_or_default()).unwrap_or_default();
        let number = |name: &str| state[name].as_u64().unwrap_or(0);
        (number("epoch"), number("position"))
    }
}
