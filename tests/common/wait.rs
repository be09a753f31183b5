//! Waiting that ends: with what was waited for, or with a failed test.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long anything may take.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Does `work` on a thread of its own; a test that hangs fails.
#[track_caller]
pub fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = channel();
    let thread = std::thread::spawn(move || send.send(work()));
    match receive.recv_timeout(limit) {
        Ok(result) => {
            // A thread that still ends would be counted by tests that count threads.
            let _ = thread.join();
            result
        }
        Err(RecvTimeoutError::Timeout) => panic!("not done after {limit:?}"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => unreachable!("it sends before it ends"),
        },
    }
}

/// Waits until `wanted` holds.
#[track_caller]
pub fn until(what: &str, wanted: impl Fn() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !wanted() {
        assert!(Instant::now() < deadline, "{what}: not in {LIMIT:?}");
        std::thread::yield_now();
    }
}
