//! A parallel loop over borrowed data, in which the caller takes part.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{Class, Client};

type Body<'a> = dyn Fn(usize) + Sync + 'a;

/// What the caller and its helpers share. Helpers that start after the caller has finished find `closed`.
struct Loop {
    /// The caller's closure with its lifetime erased; see the SAFETY comments.
    body: *const Body<'static>,
    count: usize,
    next: AtomicUsize,
    helpers: Mutex<Helpers>,
    idle: Condvar,
}

#[derive(Default)]
struct Helpers {
    /// In the body now.
    active: usize,
    /// No helper may enter any more.
    closed: bool,
    /// The first panic of a helper.
    panic: Option<Box<dyn Any + Send>>,
}

// SAFETY: `body` points to a closure that is `Sync`, and is dereferenced only between `active += 1` with `closed`
// unset and the matching `active -= 1`, a span that `Client::for_each` waits for before the closure ends.
unsafe impl Send for Loop {}
// SAFETY: as for Send; every other field is Sync.
unsafe impl Sync for Loop {}

impl Loop {
    fn lock(&self) -> MutexGuard<'_, Helpers> {
        self.helpers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the body for indices nobody has taken yet.
    fn turn(&self, body: &Body<'_>) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.count {
                return;
            }
            body(index);
        }
    }

    /// A helper's whole life.
    fn help(&self) {
        {
            let mut helpers = self.lock();
            if helpers.closed {
                return;
            }
            helpers.active += 1;
        }
        // SAFETY: `active` was raised with `closed` unset, so `for_each` has not returned and does not until it is
        // lowered below; the closure it borrows is alive.
        let body: &Body<'_> = unsafe { &*self.body };
        let outcome = catch_unwind(AssertUnwindSafe(|| self.turn(body)));
        let mut helpers = self.lock();
        helpers.active -= 1;
        if let Err(panic) = outcome {
            helpers.panic.get_or_insert(panic);
        }
        self.idle.notify_all();
    }
}

impl Client {
    /// Calls `body(0)` to `body(count - 1)`, each once, in any order, on the calling thread and on workers of this
    /// client that are free, and returns when all have returned. It makes progress also when no worker is free.
    ///
    /// # Panics
    /// A panic of the body is passed on, after the others have stopped.
    pub fn for_each(&self, class: Class, count: usize, body: impl Fn(usize) + Sync) {
        let body: &Body<'_> = &body;
        // SAFETY: only the lifetime changes. The pointer outlives the closure, but is not dereferenced after this
        // function has returned: see `Loop::help` and the wait below, which unwinding cannot skip.
        let erased: *const Body<'static> =
            unsafe { std::mem::transmute::<*const Body<'_>, *const Body<'static>>(body) };
        let shared = Arc::new(Loop {
            body: erased,
            count,
            next: AtomicUsize::new(0),
            helpers: Mutex::default(),
            idle: Condvar::new(),
        });
        for _ in 1..count.min(self.limit() + 1) {
            let shared = shared.clone();
            self.spawn(class, move || shared.help());
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| shared.turn(body)));
        let mut helpers = shared.lock();
        helpers.closed = true;
        while helpers.active > 0 {
            helpers = shared.idle.wait(helpers).unwrap_or_else(PoisonError::into_inner);
        }
        let panic = outcome.err().or_else(|| helpers.panic.take());
        drop(helpers);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}
