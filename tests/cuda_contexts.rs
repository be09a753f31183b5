//! The CUDA contexts that hsvquantize shares with nvcodec's elements and with the application.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::frames::{assert_same, frames, frames_of, pull, video};
use common::{Pipeline, gpu};
use gst::prelude::*;

const GAINS: &str = "gains=\"0.1,0.2,0.1\"";

/// The GstCudaContext in a GstContext.
fn object(context: &gst::Context) -> gst::Object {
    context.structure().get("gst.cuda.context").unwrap()
}

/// What hsvquantize answers, in NULL state.
fn shared_context() -> gst::Context {
    let pipeline = Pipeline::new("hsvquantize name=jitter device=cuda:0 ! fakesink");
    let answers = ["sink", "src"].map(|pad| {
        let mut query = gst::query::Context::new("gst.cuda.context");
        let pad = pipeline.element("jitter").static_pad(pad).unwrap();
        assert!(pad.query(&mut query), "{pad:?} does not answer");
        query.context_owned().unwrap()
    });
    assert_eq!(
        object(&answers[0]),
        object(&answers[1]),
        "one device, two contexts"
    );
    let [context, _] = answers;
    context
}

/// nvcodec's elements take the primary context, and all of a process take the same.
#[test]
fn elements_share_the_primary_context() {
    gpu::with(&gpu::NVCODEC, || {
        let shared = shared_context();
        assert_eq!(shared.structure().get::<u32>("cuda-device-id"), Ok(0));
        let pipeline = Pipeline::new(&format!(
            "{} ! cudaupload name=up ! hsvquantize ! cudadownload name=down ! fakesink",
            video(3, "RGBA", 32, 16)
        ));
        pipeline.reach(gst::State::Paused);
        for name in ["up", "down"] {
            let context = pipeline.element(name).context("gst.cuda.context").unwrap();
            assert_eq!(object(&context), object(&shared), "{name}");
        }
    });
}

/// What was not asked for is not kept, and keeps nothing: the next answer is as good as the first.
#[test]
fn a_shared_context_ends_with_its_last_user() {
    gpu::on_idle_gpu(1, || {
        if !gpu::has(&gpu::NVCODEC) {
            return;
        }
        let first = object(&shared_context()).downgrade();
        assert!(first.upgrade().is_none(), "somebody keeps the context");
        shared_context();
    });
}

/// Frames of a context that GStreamer has made for itself.
#[test]
fn frames_of_another_context_are_taken() {
    gpu::with(&gpu::NVCODEC, || {
        let video = video(5, "RGBA", 640, 480);
        let source = Pipeline::playing(&format!(
            "{video} ! cudaupload name=up ! video/x-raw(memory:CUDAMemory) ! appsink name=sink sync=false"
        ));
        let samples: Vec<_> = std::iter::from_fn(|| pull(&source, "sink")).collect();
        let own = object(&source.element("up").context("gst.cuda.context").unwrap());
        assert_ne!(own, object(&shared_context()));

        let pipeline = Pipeline::new(&format!(
            "appsrc name=source format=time ! hsvquantize {GAINS} ! cudadownload ! appsink name=sink sync=false"
        ));
        let input: gst_app::AppSrc = pipeline.element("source").downcast().unwrap();
        input.set_caps(Some(&samples[0].caps_owned().unwrap()));
        pipeline.set(gst::State::Playing);
        let count = samples.len();
        for sample in samples {
            // The sample's hold on the frame ends first: then it is changed in place.
            let buffer = sample.buffer_owned().unwrap();
            drop(sample);
            input.push_buffer(buffer).unwrap();
        }
        input.end_of_stream().unwrap();
        // Nothing but the frames holds their context now.
        drop((own, source));
        let found = frames_of(&pipeline, "sink");
        assert_eq!(found.len(), count);
        assert_same(
            &found,
            &frames(&format!("{video} ! hsvquantize {GAINS} device=cpu")),
            "frames of another context",
        );
    });
}

/// What an application gives is used, and passed on.
#[test]
fn a_context_of_the_application_is_used() {
    gpu::with(&gpu::NVCODEC, || {
        // One of GStreamer's own.
        let maker = Pipeline::playing(&format!(
            "{} ! cudaupload name=up ! fakesink",
            video(1, "RGBA", 32, 16)
        ));
        maker.wait_eos();
        let given = maker.element("up").context("gst.cuda.context").unwrap();
        for device in ["auto", "cuda:0"] {
            let line = format!(
                "{} ! hsvquantize name=jitter {GAINS} device={device}",
                video(3, "RGB", 64, 48)
            );
            let pipeline = Pipeline::new(&format!("{line} ! appsink name=sink sync=false"));
            pipeline.0.set_context(&given);
            let mut query = gst::query::Context::new("gst.cuda.context");
            assert!(
                pipeline
                    .element("jitter")
                    .static_pad("src")
                    .unwrap()
                    .query(&mut query)
            );
            assert_eq!(object(&query.context_owned().unwrap()), object(&given));
            pipeline.set(gst::State::Playing);
            let wanted = frames(&format!(
                "{} ! hsvquantize {GAINS} device=cpu",
                video(3, "RGB", 64, 48)
            ));
            assert_same(&frames_of(&pipeline, "sink"), &wanted, device);
        }
    });
}
