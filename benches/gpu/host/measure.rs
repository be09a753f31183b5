//! Times: by events on the device, and medians.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use epochfeed::cuda::{Event, Stream};

use crate::driver;

/// What is queued on `stream` from now on waits until the result is dropped, so that launches run behind each other however
/// long the host takes to queue them.
pub fn hold(stream: &Stream) -> Sender<()> {
    let (held, released) = channel::<()>();
    driver::queue_host_work(stream, move || {
        // Dropping ends it. A call that itself waits for the stream must not hang the machine.
        let _ = released.recv_timeout(Duration::from_secs(20));
    });
    held
}

/// Milliseconds of each of `turns` calls of `queue`, which queues one launch on `stream`, all of them queued beforehand.
pub fn device_ms(stream: &Stream, turns: usize, mut queue: impl FnMut(usize)) -> f64 {
    let held = hold(stream);
    let begin = stream.record_timed().unwrap();
    for turn in 0..turns {
        queue(turn);
    }
    let end = stream.record_timed().unwrap();
    drop(held);
    ms(&begin, &end) / turns as f64
}

/// From one moment to another.
pub fn ms(from: &Event, to: &Event) -> f64 {
    f64::from(from.elapsed_ms(to).unwrap())
}

/// The middle of `values`.
pub fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty());
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Stretches of time, in milliseconds since some moment.
pub type Spans = Vec<(f64, f64)>;

/// How much of `spans` lies within any of `others`.
pub fn covered(spans: &Spans, others: &Spans) -> f64 {
    let mut sorted = others.clone();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sum = 0.0;
    for (from, to) in spans {
        let mut reached = *from;
        for (begin, end) in &sorted {
            let (begin, end) = (begin.max(reached), end.min(*to));
            if begin < end {
                sum += end - begin;
                reached = end;
            }
        }
    }
    sum
}

/// The sum of the lengths.
pub fn length(spans: &Spans) -> f64 {
    spans.iter().map(|(from, to)| to - from).sum()
}
