//! Feeds leave neither threads nor descriptors. Alone in its process, since it counts all of them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod feed_support;

use common::{copy_photos, scratch};
use epochfeed::elements::epochbuffer::Prefetch;
use feed_support::{LIMIT, small, until, within};

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// The process's threads but for the one with which GLib starts those of its pools: newer versions keep it for good.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // One that has ended meanwhile has no name any more.
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.trim_end() != "pool-spawner").count()
}

#[test]
fn fifty_feeds_leave_what_one_leaves() {
    let images = scratch();
    copy_photos(images.path(), 7);
    let folder = images.path().to_owned();
    within(LIMIT, move || {
        // GLib keeps threads of its pool for the next user; without that, what is there is in use.
        glib::ThreadPool::set_max_unused_threads(Some(0));
        let cycle = |number: usize| {
            let prefetch = if number.is_multiple_of(2) {
                Prefetch::Off
            } else {
                Prefetch::Any
            };
            let feed = small(&folder)
                .endless()
                .batch_size(2)
                .prefetch(prefetch)
                .build()
                .unwrap();
            let batch = feed.epochs().next().unwrap().unwrap().next().unwrap().unwrap();
            assert_eq!(batch.shape()[0], 2);
        };
        let counts = || (threads(), count("/proc/self/fd"));
        let threads_before = threads();
        cycle(0);
        // The pool's threads end a moment after they have been let go.
        until("the first feed's threads have ended", || {
            threads() == threads_before
        });
        let one = counts();
        for number in 1..=50 {
            cycle(number);
        }
        until("the threads have ended", || counts().0 <= one.0);
        assert_eq!(counts(), one, "threads and descriptors");
    });
}
