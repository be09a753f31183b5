//! From the settings to the pipeline.
//!
//! ```text
//! epochsrc ─▶ epochdecode ─▶ caps ─▶ [epochbuffer] ─▶ hsvquantize ─▶ nhwcpack ─▶ [epochbuffer] ─▶ feedsink
//! ```

use gst::prelude::*;

use super::dataset::describe;
use super::error::FeedError;
use super::part::Part;
use super::settings::{Hold, Jitter, Nick, Settings, channels, limit, location};
use super::sink::FeedSink;
use crate::decode::Fit;
use crate::elements::epochdecode::CacheMode;

/// The pipeline and those of its elements that the feed talks to.
pub(super) struct Assembly {
    pub pipeline: gst::Pipeline,
    pub buffer: gst::Element,
    pub sink: FeedSink,
}

/// Makes and links the elements; nothing is started.
pub(super) fn assemble(settings: &Settings) -> Result<Assembly, FeedError> {
    let buffer = Part::make("epochbuffer")?
        .choice("prefetch", settings.prefetch)
        .number("max-buffers", settings.max_buffers.into())?
        .number("max-bytes", settings.max_bytes)?
        .element();
    let mut chain = vec![source(settings)?, decoder(settings)?, size(settings)?];
    if settings.hold == Hold::Frames {
        chain.push(buffer.clone());
    }
    chain.extend(jitter(settings)?);
    chain.push(packer(settings)?);
    if settings.hold == Hold::Batches {
        chain.push(buffer.clone());
    }
    let sink = FeedSink::new();
    chain.push(sink.clone().upcast());

    let failed = |error: glib::BoolError| FeedError::Element {
        name: "pipeline".to_owned(),
        reason: error.to_string(),
    };
    let pipeline = gst::Pipeline::new();
    pipeline.add_many(&chain).map_err(failed)?;
    gst::Element::link_many(&chain).map_err(failed)?;
    Ok(Assembly {
        pipeline,
        buffer,
        sink,
    })
}

fn source(settings: &Settings) -> Result<gst::Element, FeedError> {
    let path = location(&settings.location)
        .map_err(|error| Part::refuse("location", settings.location.display(), &error.to_string()))?;
    let epochs = match settings.epochs {
        None => -1,
        Some(epochs) => i64::from(epochs),
    };
    let part = Part::make("epochsrc")?
        .text("location", &path)?
        .name("shuffle", settings.shuffle.as_str())?
        .number("seed", settings.seed)?
        .signed("epochs", epochs)?
        .number("rank", settings.rank.into())?
        .number("world-size", settings.world_size.into())?
        .number("samples-per-epoch", settings.samples_per_epoch.unwrap_or(0))?
        .name("uneven", settings.uneven.as_str())?
        .number("io-depth", settings.io_depth.into())?
        .choice("reload", settings.reload)
        .choice("on-change", settings.on_change);
    let part = describe(part, &settings.dataset)?;
    if settings.samples_per_epoch == Some(0) {
        return Err(Part::refuse(
            "samples-per-epoch",
            0,
            "at least 1, or leave it out for all",
        ));
    }
    if let Some(list) = &settings.exclude {
        part.element().set_property("exclude", list);
    }
    if let Some(path) = &settings.state_location {
        part.element().set_property("state-location", path);
    }
    match settings.state.as_deref() {
        Some("") => Err(Part::refuse(
            "resume",
            "an empty text",
            "the state of a batch or a feed",
        )),
        Some(state) => Ok(part.text("state", state)?.element()),
        None => Ok(part.element()),
    }
}

fn decoder(settings: &Settings) -> Result<gst::Element, FeedError> {
    let options = &settings.decode;
    let [red, green, blue] = options.pad_color.map(u64::from);
    let mut part = Part::make("epochdecode")?
        .number("threads", settings.threads.unwrap_or(0).into())?
        .name("fit", options.fit.nick())?
        .number("pad-color", red << 16 | green << 8 | blue)?
        .name("interpolation", options.interpolation.nick())?
        .name("orientation", options.orientation.nick())?
        .number("max-pixels", options.max_pixels)?
        .name("truncated", options.truncated.nick())?
        .choice("on-error", settings.on_error)
        .text("max-errors", &limit(settings.max_errors))?;
    if let Some(file) = &settings.quarantine {
        part.element().set_property("quarantine", file);
    }
    if let Some(bytes) = settings.cache {
        part = part
            .choice("cache", CacheMode::Ram)
            .number("cache-bytes", bytes)?;
    }
    Ok(part.element())
}

fn size(settings: &Settings) -> Result<gst::Element, FeedError> {
    let (width, height) = settings.size;
    let side = |name: &str, pixels: u32| {
        i32::try_from(pixels)
            .ok()
            .filter(|pixels| (1..=0x7fff).contains(pixels))
            .ok_or_else(|| Part::refuse(name, pixels, "1 to 32767"))
    };
    let mut caps = gst::Caps::builder("video/x-raw").field("format", "RGB");
    if settings.decode.fit != Fit::None {
        caps = caps
            .field("width", side("width", width)?)
            .field("height", side("height", height)?);
    }
    let filter = Part::make("capsfilter")?.element();
    filter.set_property("caps", caps.build());
    Ok(filter)
}

fn jitter(settings: &Settings) -> Result<Option<gst::Element>, FeedError> {
    let part = match settings.jitter {
        Jitter::None => return Ok(None),
        Jitter::Stated(gains) => Part::make("hsvquantize")?.text("gains", &gains.to_string())?,
        Jitter::Drawn(ranges) => Part::make("hsvquantize")?
            .real("hue", ranges.hue)?
            .real("saturation", ranges.saturation)?
            .real("value", ranges.value)?,
    };
    part.element().set_property("fuse", settings.fuse);
    // nhwcpack follows: either it has the pixels, on its device, or each operation is a pass of its own on the CPU.
    Ok(Some(part.text("device", "cpu")?.element()))
}

fn packer(settings: &Settings) -> Result<gst::Element, FeedError> {
    let mut part = Part::make("nhwcpack")?
        .number("batch-size", settings.batch_size.into())?
        .number("threads", settings.threads.unwrap_or(0).into())?
        .name("dtype", settings.dtype.as_str())?
        .name("layout", settings.layout.as_str())?
        .text("device", &settings.device)?
        .choice("last-batch", settings.last_batch);
    for (name, values) in [("mean", settings.mean), ("std", settings.std)] {
        if let Some(values) = values {
            part = part.text(name, &channels(values))?;
        }
    }
    Ok(part.element())
}
