//! A stream that is held: what is queued on it, and what waits for that, has not run while the gate is closed.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use epochfeed::cuda::{Device, DeviceMemory, Stream};

use super::{driver, memory};

/// A call that waits for a held stream would never come back; the gate opens by itself then, and the test fails.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Open,
    /// Nobody opened it in time.
    GivenUp,
}

/// See the [module](self). Freeing page-locked memory waits for the whole device: none while it is closed, in no test.
pub struct Gate {
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl Gate {
    /// Holds `stream` from here on.
    pub fn close(stream: &Stream) -> Self {
        let shared = Arc::new((Mutex::new(State::Closed), Condvar::new()));
        let theirs = shared.clone();
        driver::queue_host_work(stream, move || {
            let (state, changed) = &*theirs;
            let state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = changed.wait_timeout_while(state, PATIENCE, |state| *state == State::Closed);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if *state == State::Closed {
                *state = State::GivenUp;
            }
        });
        Self { shared }
    }

    fn set(&self, to: State) -> State {
        let (state, changed) = &*self.shared;
        let before = std::mem::replace(&mut *state.lock().unwrap_or_else(PoisonError::into_inner), to);
        changed.notify_all();
        before
    }

    /// Lets the stream go on.
    #[track_caller]
    pub fn open(self) {
        assert_eq!(
            self.set(State::Open),
            State::Closed,
            "a call has waited for the held stream"
        );
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // A test that fails must not leave the device held.
        self.set(State::Open);
    }
}

/// Work of the device that takes far longer than any launch of the tests: whatever nothing held has run by the time that it
/// is done.
pub struct Meanwhile {
    stream: Stream,
    memory: DeviceMemory,
}

impl Meanwhile {
    /// Made before a gate is closed.
    pub fn new(device: &Arc<Device>) -> Self {
        let stream = memory::stream(device);
        let memory = DeviceMemory::new(&stream, 256 << 20).unwrap();
        Self { stream, memory }
    }

    /// Waits for tens of milliseconds of that.
    pub fn pass(&self) {
        for turn in 0..200 {
            // SAFETY: our own memory, used on this stream only.
            unsafe { driver::fill(&self.stream, self.memory.pointer(), self.memory.len(), turn) };
        }
        self.stream.synchronize().unwrap();
    }
}
