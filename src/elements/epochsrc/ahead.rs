//! Files that are read before they are asked for, several at a time.
//!
//! Where files come at once (from the page cache, a fast disk) whoever asks for one reads it: nothing is gained by threads.
//! Where it has to be waited for, threads take over, one for each quarter of a millisecond waited, so that after the first
//! slow file as many are on their way as the depth allows.
//!
//! The lock is never held while a file is opened or read, nor over the release of its content.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::util::lock;
use crate::dataset::{Dataset, FileVersion, ReadError};

/// A file's bytes, and which version of it they are.
pub(super) type Content = Result<(Vec<u8>, FileVersion), ReadError>;

/// Each time that a file was waited for so long there is one thread more.
const PATIENCE: Duration = Duration::from_micros(250);
/// Most bytes that are read and not yet asked for. A file that does not fit waits until it is the next.
const MAX_BYTES: u64 = 256 << 20;

enum File {
    /// Nobody has begun.
    Waiting(Dataset, u64),
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
    stop: bool,
}

impl State {
    fn file(&mut self, number: u64) -> Option<&mut File> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.files.get_mut(index)
    }

    /// Takes the next file that nobody has begun.
    fn begin(&mut self) -> Option<(u64, Dataset, u64)> {
        let number = self.next;
        let file = self.file(number)?;
        match std::mem::replace(file, File::Reading) {
            File::Waiting(dataset, index) => {
                self.next += 1;
                Some((number, dataset, index))
            }
            other => {
                *file = other;
                None
            }
        }
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
            let Some((number, dataset, index)) = state.begin() else {
                state = self.pushed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let file = dataset.open_ahead(index);
            let size = file.size();
            // What the file is counted with, and handed in even if reading it panics: it would be waited for without end.
            let mut promise = Promise {
                shared: self,
                number,
                size: None,
                content: Err(ReadError::Io(std::io::Error::other("reading it failed inside"))),
            };
            if self.make_room(number, size) {
                promise.size = Some(size);
                promise.content = file.read_version();
            }
            drop(promise);
            state = lock(&self.state);
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

/// The file `number` on its way.
struct Promise<'a> {
    shared: &'a Shared,
    number: u64,
    /// What has been counted for it.
    size: Option<u64>,
    content: Content,
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        let size = self.size.unwrap_or(0);
        let none = Err(ReadError::Missing);
        let read = File::Read(std::mem::replace(&mut self.content, none), size);
        let mut state = lock(&self.shared.state);
        let too_late = match state.file(self.number) {
            Some(file) => std::mem::replace(file, read),
            None => {
                state.bytes -= size;
                read
            }
        };
        drop(state);
        self.shared.read.notify_one();
        drop(too_late);
    }
}

/// The files; see the [module](self).
pub(super) struct Ahead {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Most threads: with who asks for a file, as many read as there are files.
    most: usize,
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
            most: depth.saturating_sub(1),
        }
    }

    /// Has sample `index` of `dataset` read behind those that are here.
    pub fn push(&self, dataset: &Dataset, index: u64) {
        let mut state = lock(&self.shared.state);
        state.files.push_back(File::Waiting(dataset.clone(), index));
        drop(state);
        self.shared.pushed.notify_one();
    }

    /// The content of the file in front; `None` if there is none.
    pub fn pop(&mut self) -> Option<Content> {
        let start = Instant::now();
        let mut state = lock(&self.shared.state);
        let content = loop {
            match state.files.front_mut()? {
                File::Waiting(dataset, index) => {
                    let (dataset, index) = (dataset.clone(), *index);
                    state.leave(0);
                    drop(state);
                    break dataset.open_ahead(index).read_version();
                }
                File::Reading => {
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
                    break content;
                }
            }
        };
        self.shared.left.notify_all();
        self.grow(start.elapsed());
        Some(content)
    }

    /// Starts the threads that a wait of `waited` asks for. Without any more of them it is merely slower.
    fn grow(&mut self, waited: Duration) {
        let more = waited.as_nanos() / PATIENCE.as_nanos();
        let more = usize::try_from(more).unwrap_or(usize::MAX);
        for _ in 0..more.min(self.most - self.threads.len()) {
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
        lock(&self.shared.state).stop = true;
        self.shared.pushed.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has handed in its file.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const FILES: u64 = 12;
    const SIZE: usize = 100;

    /// Files of equal size, the n-th full of n; and one that does not exist.
    fn dataset() -> (tempfile::TempDir, Dataset) {
        let folder = tempfile::tempdir().unwrap();
        let name = |index: u64| format!("{index:02}.jpg");
        for index in 0..FILES {
            std::fs::write(folder.path().join(name(index)), [index as u8; SIZE]).unwrap();
        }
        let list = folder.path().join("list.txt");
        let names: Vec<_> = (0..=FILES).map(name).collect();
        std::fs::write(&list, names.join("\n")).unwrap();
        let dataset = Dataset::open(&list).unwrap();
        (folder, dataset)
    }

    /// So many files have been read, and are counted with so many bytes.
    fn read(ahead: &Ahead) -> (usize, u64) {
        let state = lock(&ahead.shared.state);
        let read = state.files.iter().filter(|file| matches!(file, File::Read(..)));
        (read.count(), state.bytes)
    }

    fn until(wanted: impl Fn() -> bool) {
        let start = Instant::now();
        while !wanted() {
            assert!(start.elapsed() < Duration::from_secs(20));
            std::thread::yield_now();
        }
    }

    #[test]
    fn files_come_in_order_whoever_reads_them() {
        let (_folder, dataset) = dataset();
        for threads in [0, 1, 5] {
            let mut ahead = Ahead::new(6);
            ahead.grow(PATIENCE * threads);
            assert_eq!(ahead.threads.len() as u32, threads);
            (0..=FILES).for_each(|index| ahead.push(&dataset, index));
            for index in 0..FILES {
                let (content, _) = ahead.pop().unwrap().unwrap();
                assert_eq!(content, [index as u8; SIZE], "{threads} threads");
            }
            assert!(matches!(ahead.pop(), Some(Err(ReadError::Missing))));
            assert!(ahead.pop().is_none());
            assert_eq!(read(&ahead), (0, 0));
        }
    }

    #[test]
    fn memory_is_bounded_and_the_next_file_always_comes() {
        let (_folder, dataset) = dataset();
        // Room for two files; for none: one at a time.
        for (budget, wanted) in [(250, 2), (0, 1)] {
            let mut ahead = Ahead::within(8, budget);
            ahead.grow(PATIENCE * 7);
            (0..FILES).for_each(|index| ahead.push(&dataset, index));
            for left in (0..FILES as usize).rev() {
                until(|| read(&ahead).0 >= wanted.min(left + 1));
                let (_, bytes) = read(&ahead);
                assert!(bytes <= budget.max(SIZE as u64) + SIZE as u64, "{bytes}");
                assert!(ahead.pop().unwrap().is_ok());
            }
        }
    }

    #[test]
    fn what_is_forgotten_does_not_come() {
        let (_folder, dataset) = dataset();
        let mut ahead = Ahead::within(4, 150);
        ahead.grow(PATIENCE * 3);
        for index in 0..FILES {
            ahead.push(&dataset, index);
            ahead.push(&dataset, 0);
            ahead.clear();
            ahead.push(&dataset, index);
            let (content, _) = ahead.pop().unwrap().unwrap();
            assert_eq!(content, [index as u8; SIZE]);
        }
        until(|| read(&ahead) == (0, 0));
        // The end comes while threads wait for room.
        (0..FILES).for_each(|index| ahead.push(&dataset, index));
    }
}
