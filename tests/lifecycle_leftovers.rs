//! Neither feeds nor pipelines leave threads or descriptors behind. Each test has a process of its own, since it counts all
//! of them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod feed_support;

use std::path::Path;
use std::time::Duration;

use common::usage::{descriptors, open_files, thread_names, threads};
use common::wait::until;
use common::{Buffered, Held, alone, figure, repetitions, scratch, tiny_images};
use epochfeed::elements::epochbuffer::Prefetch;
use epochfeed::feed::Hold;
use feed_support::small;

const LIMIT: Duration = Duration::from_secs(300);
const TIMES: usize = 200;

/// What a cycle leaves when it has been done again and again is what it leaves when it has been done once.
fn assert_leaves_nothing(what: &str, cycle: impl Fn(&Path, usize)) {
    let images = scratch();
    tiny_images(images.path(), 7);
    // GLib keeps threads of its pool for the next user; without that, what is there is in use.
    glib::ThreadPool::set_max_unused_threads(Some(0));
    let before = threads();
    cycle(images.path(), 0);
    // The pool's threads end a moment after they have been let go.
    until("the threads of the first have ended", || threads() == before);
    let one = (threads(), descriptors());
    let times = repetitions(TIMES);
    for number in 1..=times {
        cycle(images.path(), number);
    }
    until("all threads have ended", || threads() <= one.0);
    let all = (threads(), descriptors());
    figure(format_args!(
        "{what}: {} threads and {} descriptors after 1, {} and {} after {times}",
        one.0, one.1, all.0, all.1
    ));
    assert_eq!(all, one, "{:?} {:?}", thread_names(), open_files());
}

#[test]
fn feeds() {
    alone(LIMIT, || {
        assert_leaves_nothing("feeds", |images, number| {
            let prefetch = [Prefetch::Off, Prefetch::Complete, Prefetch::Any][number % 3];
            let hold = [Hold::Batches, Hold::Frames][number % 2];
            let feed = small(images)
                .endless()
                .batch_size(2)
                .prefetch(prefetch)
                .hold(hold)
                .build()
                .unwrap();
            let batch = feed.epochs().next().unwrap().unwrap().next().unwrap().unwrap();
            assert_eq!(batch.shape()[0], 2);
        });
    });
}

#[test]
fn pipelines() {
    alone(LIMIT, || {
        assert_leaves_nothing("pipelines", |images, number| {
            let prefetch = ["off", "complete", "any"][number % 3];
            let stream = Buffered::new(
                images,
                "",
                Held::ALL[number % 2],
                &format!("prefetch={prefetch} max-buffers=2"),
                1,
            );
            stream.start_over();
            stream.pull().unwrap();
        });
    });
}
