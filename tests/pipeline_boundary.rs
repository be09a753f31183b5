//! The boundary between two epochs: nothing of the next one comes before it is asked for.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use gst::prelude::*;

use common::{Buffered, Held, Pipeline, copy_photos, location, scratch};

const SAMPLES: u64 = 4;
/// How long a pipeline that must come to something may take.
const LIMIT: Duration = Duration::from_secs(20);
/// How long a pipeline that must not go on is watched. The next epoch of four samples takes a few milliseconds.
const QUIET: Duration = Duration::from_millis(300);

/// What passes a pad.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    /// A frame, by the epoch and the dataset index of its meta.
    Sample(u64, u64),
    EpochEnd,
    Eos,
}

fn sample(buffer: &gst::BufferRef) -> Seen {
    let meta = gst::meta::CustomMeta::from_buffer(buffer, "epochfeed-sample").expect("frames are stamped");
    let field = |name| meta.structure().get::<u64>(name).unwrap();
    Seen::Sample(field("epoch"), field("dataset-index"))
}

/// A pipeline over four photographs, and what arrives at its end.
struct Watched {
    pipeline: Pipeline,
    seen: Receiver<Seen>,
    _images: tempfile::TempDir,
}

impl Watched {
    /// Not started yet.
    fn new(source: &str, sink: &str) -> Self {
        let images = scratch();
        copy_photos(images.path(), 4);
        let pipeline = Pipeline::new(&format!(
            "epochsrc name=source location={} shuffle=none {source} ! epochdecode ! video/x-raw,width=16,height=16 \
             ! {sink} name=sink",
            location(images.path())
        ));
        let (send, seen) = channel();
        let pad = pipeline.element("sink").static_pad("sink").unwrap();
        let what = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
        pad.add_probe(what, move |_, info| {
            let seen = match &info.data {
                Some(gst::PadProbeData::Buffer(buffer)) => Some(sample(buffer)),
                Some(gst::PadProbeData::Event(event)) => match event.type_() {
                    gst::EventType::SegmentDone => Some(Seen::EpochEnd),
                    gst::EventType::Eos => Some(Seen::Eos),
                    _ => None,
                },
                _ => None,
            };
            if let Some(seen) = seen {
                // The test may have seen enough.
                let _ = send.send(seen);
            }
            gst::PadProbeReturn::Ok
        });
        Self {
            pipeline,
            seen,
            _images: images,
        }
    }

    fn started(source: &str, sink: &str) -> Self {
        let watched = Self::new(source, sink);
        watched.pipeline.set(gst::State::Playing);
        watched
    }

    fn next_epoch(&self) -> bool {
        self.pipeline.element("source").emit_by_name("next-epoch", &[])
    }

    #[track_caller]
    fn next(&self) -> Seen {
        let seen = self.seen.recv_timeout(LIMIT);
        seen.unwrap_or_else(|_| panic!("nothing comes any more: {:?}", self.pipeline.errors()))
    }

    /// The whole of `epoch` comes, and its end.
    #[track_caller]
    fn assert_epoch(&self, epoch: u64) {
        let wanted: Vec<_> = (0..SAMPLES)
            .map(|index| Seen::Sample(epoch, index))
            .chain([Seen::EpochEnd])
            .collect();
        let found: Vec<_> = wanted.iter().map(|_| self.next()).collect();
        assert_eq!(found, wanted);
    }

    /// Waits until epochsink has booked an epoch. From then on it holds the lock, or validates.
    fn until_booked(&self) {
        let deadline = Instant::now() + LIMIT;
        let sink = self.pipeline.element("sink");
        while sink.property::<gst::Structure>("stats").get::<u64>("epochs") == Ok(0) {
            assert!(Instant::now() < deadline, "no epoch is booked");
            std::thread::yield_now();
        }
    }

    #[track_caller]
    fn assert_waits(&self) {
        assert_eq!(self.seen.recv_timeout(QUIET), Err(RecvTimeoutError::Timeout));
    }
}

#[test]
fn without_a_consumer_the_next_epoch_waits_for_the_signal() {
    let watched = Watched::started("auto-advance=false epochs=3", "fakesink");
    watched.assert_epoch(0);
    for epoch in [1, 2] {
        watched.assert_waits();
        assert!(watched.next_epoch());
        watched.assert_epoch(epoch);
    }
    // The end needs no request.
    assert_eq!(watched.next(), Seen::Eos);
    watched.pipeline.wait_eos();
}

#[test]
fn with_auto_advance_the_source_asks_itself() {
    let watched = Watched::started("epochs=2", "fakesink");
    watched.assert_epoch(0);
    watched.assert_epoch(1);
    assert_eq!(watched.next(), Seen::Eos);
}

#[test]
fn epochsink_asks_for_each_epoch() {
    let watched = Watched::started("auto-advance=false epochs=3", "epochsink silent=true");
    for epoch in 0..3 {
        watched.assert_epoch(epoch);
    }
    assert_eq!(watched.next(), Seen::Eos);
}

/// Where an epochsink validates, the next epoch waits for it, whatever auto-advance says.
#[test]
fn epochsink_asks_only_after_its_validation() {
    let watched = Watched::started("epochs=2", "epochsink silent=true validation-time=600");
    watched.assert_epoch(0);
    watched.assert_waits();
    watched.assert_epoch(1);
}

/// Events are handled with the lock that changes of state need: validation must let go of it.
#[test]
fn validation_does_not_hold_up_a_change_of_state() {
    let hour = 3_600_000;
    for states in [
        &[gst::State::Null][..],
        &[gst::State::Paused, gst::State::Playing, gst::State::Null],
        &[gst::State::Paused, gst::State::Ready, gst::State::Null],
    ] {
        let watched = Watched::started(
            "epochs=2",
            &format!("epochsink silent=true validation-time={hour}"),
        );
        watched.assert_epoch(0);
        watched.until_booked();
        // On another thread, which takes the pipeline along: where it hangs, the test must not.
        let (send, done) = channel();
        std::thread::spawn(move || {
            for state in states {
                watched.pipeline.reach(*state);
            }
            send.send(()).unwrap();
        });
        assert_eq!(done.recv_timeout(Duration::from_secs(5)), Ok(()), "{states:?}");
    }
}

#[test]
fn a_request_before_the_end_is_remembered_once() {
    let watched = Watched::new("auto-advance=false epochs=3", "fakesink");
    // Asked twice while the source is in the middle of epoch 0, from its own thread: not a moment later or earlier.
    let pad = watched.pipeline.element("source").static_pad("src").unwrap();
    let (send, answers) = channel();
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        if let Some(gst::PadProbeData::Buffer(buffer)) = &info.data
            && sample(buffer) == Seen::Sample(0, 1)
        {
            let source = pad.parent_element().unwrap();
            for _ in 0..2 {
                send.send(source.emit_by_name::<bool>("next-epoch", &[])).unwrap();
            }
        }
        gst::PadProbeReturn::Ok
    });
    watched.pipeline.set(gst::State::Playing);
    watched.assert_epoch(0);
    watched.assert_epoch(1);
    watched.assert_waits();
    assert_eq!(answers.try_iter().collect::<Vec<_>>(), [true, true]);
    assert!(watched.next_epoch());
    watched.assert_epoch(2);
    assert_eq!(watched.next(), Seen::Eos);
}

#[test]
fn before_the_start_there_is_nothing_to_ask_for() {
    let watched = Watched::new("auto-advance=false epochs=2", "fakesink");
    assert!(!watched.next_epoch());
    watched.pipeline.set(gst::State::Playing);
    watched.assert_epoch(0);
    watched.assert_waits();
}

#[test]
fn a_source_that_waits_can_be_stopped_and_goes_on_behind_the_boundary() {
    let watched = Watched::started("auto-advance=false epochs=2", "fakesink");
    for epoch in [0, 1, 2] {
        watched.assert_epoch(epoch);
        let start = Instant::now();
        watched.pipeline.reach(gst::State::Ready);
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        watched.pipeline.set(gst::State::Playing);
    }
}

/// What was said of a prepared epoch goes with it when it is flushed away, and is said again when it is delivered.
#[test]
fn a_flush_repeats_no_message_of_a_prepared_epoch() {
    let images = scratch();
    let photos = copy_photos(images.path(), 4);
    std::fs::write(&photos[1], "no image").unwrap();
    for flushes in 0..3 {
        let stream = Buffered::new(
            images.path(),
            "auto-advance=false",
            Held::Batches,
            "prefetch=complete",
            0,
        );
        stream
            .pipeline()
            .element("decode")
            .set_property_from_str("on-error", "skip");
        stream.pipeline().set(gst::State::Playing);
        stream.until_epoch_end();
        stream.until("level-buffers", 2);
        for _ in 0..flushes {
            stream.forget();
            assert!(stream.pipeline().0.send_event(gst::event::FlushStart::new()));
            assert!(stream.pipeline().0.send_event(gst::event::FlushStop::new(true)));
            stream.until_epoch_end();
            stream.until("level-buffers", 2);
        }
        stream.forget();
        assert!(stream.ask());
        stream.until_epoch_end();
        let bus = stream.pipeline().0.bus().unwrap();
        let of_the_next = std::iter::from_fn(|| bus.pop_filtered(&[gst::MessageType::Element]))
            .filter_map(|message| message.structure().map(ToOwned::to_owned))
            .filter(|said| said.name() == "epochfeed-fault" && said.get::<u64>("epoch") == Ok(1));
        assert_eq!(of_the_next.count(), 1, "{flushes} flushes");
    }
}

/// Sinks share one seek, which asks once; but that it has failed once says nothing of the next time.
#[test]
fn a_seek_that_failed_can_be_sent_again() {
    let images = scratch();
    let photos = copy_photos(images.path(), 4);
    let bytes = std::fs::read(&photos[3]).unwrap();
    let watched = common::Watched::new(&format!(
        "epochsrc name=source location={} shuffle=none auto-advance=false epochs=-1 ! epochdecode \
         ! video/x-raw,width=16,height=16 ! nhwcpack batch-size=2 ! epochbuffer name=buffer prefetch=complete \
         ! fakesink name=sink",
        location(images.path())
    ));
    // It goes behind the first epoch, before the second is read.
    let pad = watched.pipeline.element("source").static_pad("src").unwrap();
    let photo = photos[3].clone();
    pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, move |_, info| {
        if let Some(gst::PadProbeData::Event(event)) = &info.data
            && event.type_() == gst::EventType::SegmentDone
        {
            let _ = std::fs::remove_file(&photo);
        }
        gst::PadProbeReturn::Ok
    });
    watched.start();
    watched.epoch();
    watched.until("failed", 1);
    let seek = gst::event::Seek::new(
        1.0,
        gst::SeekFlags::SEGMENT,
        gst::SeekType::Set,
        gst::format::Default::ZERO,
        gst::SeekType::None,
        gst::format::Default::NONE,
    );
    std::fs::write(&photos[3], &bytes).unwrap();
    assert!(
        !watched.pipeline.0.send_event(seek.clone()),
        "the failure is told"
    );
    watched.until("level-buffers", 2);
    assert!(watched.pipeline.0.send_event(seek));
    assert_eq!(watched.epoch().len(), 2);
}
