//! Files that are read before they are asked for, several at a time.
//!
//! Where files come at once (from the page cache, a fast disk) whoever asks for one reads it: nothing is gained by threads.
//! Where one has to be waited for, a few threads take over, and where most have, one for each quarter of a millisecond waited, so
//! that soon as many are on their way as the depth allows. From then on only they read: nobody can be called back from a file
//! that a network mount does not give, but who waits for a thread can ([`Interrupter`]), and a thread can be left.
//!
//! The lock is never held while a file is opened or read, nor over the release of its content.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::util::lock;
use super::wanted::{Content, Wanted};
use crate::dataset::ReadError;

/// Somebody wants the wait for a file to end; the file is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interrupted;

/// Each time that a file was waited for so long there is one thread more.
const PATIENCE: Duration = Duration::from_micros(250);
/// Storage is slow while three of the last four files took longer than that to read.
const SLOW: (u8, u32) = (0b1111, 3);
/// Most threads where it is not: one file may have taken long because the machine is busy.
const FEW: usize = 4;
/// Most bytes that are read and not yet asked for. A file that does not fit waits until it is the next.
const MAX_BYTES: u64 = 256 << 20;
/// At the end threads are waited for so long; those that still read then end by themselves, when their file comes.
const GRACE: Duration = Duration::from_millis(500);

enum File {
    /// Nobody has begun.
    Waiting(Wanted),
    /// On its way.
    Reading,
    /// Read, and counted with so many bytes.
    Read(Content, u64),
}

#[derive(Default)]
struct State {
    files: VecDeque<File>,
    /// Number of the file in front; numbers are never used twice, so that what is read too late finds nothing.
    first: u64,
    /// Number of the first file that nobody has begun.
    next: u64,
    /// Bytes that are counted for files.
    bytes: u64,
    /// Threads that have a file on its way, and those of them whose file has been forgotten since.
    reading: usize,
    late: usize,
    /// Of each of the last files, the latest in the lowest bit: whether reading it took long.
    recent: u8,
    /// Nobody is to wait for a file.
    interrupted: bool,
    stop: bool,
}

impl State {
    fn file(&mut self, number: u64) -> Option<&mut File> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.files.get_mut(index)
    }

    /// Takes the next file that nobody has begun.
    fn begin(&mut self) -> Option<(u64, Wanted)> {
        let number = self.next;
        let file = self.file(number)?;
        match std::mem::replace(file, File::Reading) {
            File::Waiting(wanted) => {
                self.next += 1;
                Some((number, wanted))
            }
            other => {
                *file = other;
                None
            }
        }
    }

    /// Takes note of how long reading a file took.
    fn note(&mut self, took: Duration) {
        self.recent = self.recent << 1 | u8::from(took >= PATIENCE);
    }

    fn is_slow(&self) -> bool {
        (self.recent & SLOW.0).count_ones() >= SLOW.1
    }

    /// The file in front, which was counted with `size` bytes, leaves.
    fn leave(&mut self, size: u64) {
        self.files.pop_front();
        self.first += 1;
        self.next = self.next.max(self.first);
        self.bytes -= size;
    }
}

struct Shared {
    /// Most bytes that are counted, but for the file in front.
    budget: u64,
    state: Mutex<State>,
    /// Signalled for each file that somebody may begin, and at the end.
    pushed: Condvar,
    /// Signalled when a file has been read.
    read: Condvar,
    /// Signalled when a file may be the next, or room for it may have come.
    left: Condvar,
}

impl Shared {
    /// What a thread does.
    fn serve(&self) {
        let mut state = lock(&self.state);
        while !state.stop {
            let Some((number, wanted)) = state.begin() else {
                state = self.pushed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.reading += 1;
            drop(state);
            // A panic has been printed, and the promise says that reading failed: the next file needs this thread.
            let _ = catch_unwind(AssertUnwindSafe(|| self.deliver(number, &wanted)));
            drop(wanted);
            state = lock(&self.state);
        }
    }

    /// Reads the file `number`.
    fn deliver(&self, number: u64, wanted: &Wanted) {
        let mut promise = Promise {
            shared: self,
            number,
            size: None,
            took: None,
            content: Err(ReadError::Io(std::io::Error::other("reading it failed inside"))),
        };
        let start = Instant::now();
        let file = wanted.open();
        let opening = start.elapsed();
        let size = file.size();
        if self.make_room(number, size) {
            promise.size = Some(size);
            let start = Instant::now();
            promise.content = file.content();
            promise.took = Some(opening + start.elapsed());
        }
    }

    /// Waits until a file of `size` bytes may be read, and counts it; false if it is not wanted any more.
    fn make_room(&self, number: u64, size: u64) -> bool {
        let mut state = lock(&self.state);
        loop {
            if number < state.first {
                return false;
            }
            if number == state.first || state.bytes.saturating_add(size) <= self.budget {
                state.bytes += size;
                return true;
            }
            state = self.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The file `number` on its way; handed in whatever happens to its thread, since it would be waited for without end.
struct Promise<'a> {
    shared: &'a Shared,
    number: u64,
    /// What has been counted for it.
    size: Option<u64>,
    /// How long it was read.
    took: Option<Duration>,
    content: Content,
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        let size = self.size.unwrap_or(0);
        let none = Err(ReadError::Missing);
        let read = File::Read(std::mem::replace(&mut self.content, none), size);
        let mut state = lock(&self.shared.state);
        state.reading -= 1;
        if let Some(took) = self.took {
            state.note(took);
        }
        let too_late = match state.file(self.number) {
            Some(file) => {
                *file = read;
                None
            }
            None => {
                state.bytes -= size;
                state.late -= 1;
                Some(read)
            }
        };
        drop(state);
        self.shared.read.notify_one();
        if let Some(late) = too_late {
            // There is room for others.
            self.shared.left.notify_all();
            drop(late);
        }
    }
}

/// The files; see the [module](self).
pub(super) struct Ahead {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Most threads; none where one file is read at a time.
    most: usize,
    /// The longest wait since storage was slow: what it asks for is started as soon as it is known to be.
    owed: Duration,
}

/// Ends the wait for a file, from another thread.
#[derive(Clone)]
pub(super) struct Interrupter(Arc<Shared>);

impl Interrupter {
    /// Says whether nobody is to wait for a file.
    pub fn interrupt(&self, interrupted: bool) {
        lock(&self.0.state).interrupted = interrupted;
        self.0.read.notify_one();
    }
}

impl Ahead {
    /// Nothing yet; of at most `depth` files.
    pub fn new(depth: usize) -> Self {
        Self::within(depth, MAX_BYTES)
    }

    fn within(depth: usize, budget: u64) -> Self {
        let shared = Shared {
            budget,
            state: Mutex::default(),
            pushed: Condvar::new(),
            read: Condvar::new(),
            left: Condvar::new(),
        };
        Self {
            shared: Arc::new(shared),
            threads: Vec::new(),
            most: if depth > 1 { depth } else { 0 },
            owed: Duration::ZERO,
        }
    }

    /// What ends the waits of [`pop`](Self::pop).
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(self.shared.clone())
    }

    /// Has `wanted` read behind those that are here.
    pub fn push(&self, wanted: Wanted) {
        let mut state = lock(&self.shared.state);
        state.files.push_back(File::Waiting(wanted));
        drop(state);
        self.shared.pushed.notify_one();
    }

    /// The content of the file in front, and whether it was read ahead of this; `None` if there is none.
    ///
    /// # Errors
    /// [`Interrupted`] instead of a wait; the file stays in front.
    pub fn pop(&mut self) -> Result<Option<(Content, bool)>, Interrupted> {
        let start = Instant::now();
        let late = lock(&self.shared.state).late;
        if late > 0 && late == self.threads.len() {
            // Files that nobody wants any more must not hold up those that are wanted.
            self.start(1, self.most, late);
        }
        let mut state = lock(&self.shared.state);
        let popped = loop {
            let Some(front) = state.files.front_mut() else {
                return Ok(None);
            };
            match front {
                File::Waiting(wanted) if self.threads.is_empty() => {
                    let wanted = wanted.clone();
                    state.leave(0);
                    drop(state);
                    let start = Instant::now();
                    let content = wanted.open().content();
                    lock(&self.shared.state).note(start.elapsed());
                    break (content, false);
                }
                File::Waiting(..) | File::Reading => {
                    if state.interrupted {
                        return Err(Interrupted);
                    }
                    state = self
                        .shared
                        .read
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                File::Read(content, size) => {
                    let content = std::mem::replace(content, Err(ReadError::Missing));
                    let size = *size;
                    state.leave(size);
                    drop(state);
                    break (content, true);
                }
            }
        };
        self.shared.left.notify_all();
        self.grow(start.elapsed(), late);
        Ok(Some(popped))
    }

    /// Starts the threads that a wait of `waited` asks for.
    fn grow(&mut self, waited: Duration, late: usize) {
        self.owed = self.owed.max(waited);
        let more = usize::try_from(self.owed.as_nanos() / PATIENCE.as_nanos()).unwrap_or(usize::MAX);
        if lock(&self.shared.state).is_slow() {
            self.owed = Duration::ZERO;
            self.start(more, self.most, late);
        } else {
            self.start(more, self.most.min(FEW), late);
        }
    }

    /// Starts so many threads, up to `most`; where `late` of those that are there are held up, as many again at most, however
    /// often that happens. Without any more of them it is merely slower.
    fn start(&mut self, threads: usize, most: usize, late: usize) {
        let most = most + late.min(self.most);
        for _ in 0..threads.min(most.saturating_sub(self.threads.len())) {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new()
                .name("epochfeed-read".to_owned())
                .spawn(move || shared.serve());
            match thread {
                Ok(thread) => self.threads.push(thread),
                Err(_) => return,
            }
        }
    }

    /// Forgets the files that are here.
    pub fn clear(&self) {
        let mut state = lock(&self.shared.state);
        let files = std::mem::take(&mut state.files);
        state.first += files.len() as u64;
        state.next = state.first;
        state.late = state.reading;
        let counted = files.iter().map(|file| match file {
            File::Read(_, size) => *size,
            File::Waiting(..) | File::Reading => 0,
        });
        state.bytes -= counted.sum::<u64>();
        drop(state);
        self.shared.left.notify_all();
        drop(files);
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.clear();
        let mut state = lock(&self.shared.state);
        state.stop = true;
        self.shared.pushed.notify_all();
        let (state, _) = self
            .shared
            .read
            .wait_timeout_while(state, GRACE, |state| state.reading > 0)
            .unwrap_or_else(PoisonError::into_inner);
        let stuck = state.reading > 0;
        drop(state);
        if stuck {
            // They hold nothing but what they read into; a stop must not wait for storage that has gone away.
            self.threads.clear();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
