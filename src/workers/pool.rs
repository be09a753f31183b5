//! Lock order: `POOL` (the static) before `Shared::state`. Neither is held while a job runs or is dropped.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use super::{Class, WorkersError};

type Job = Box<dyn FnOnce() + Send>;

/// The process's pool, if anyone uses one. `Weak`, so that it ends with its last [`Client`].
static POOL: Mutex<Weak<Pool>> = Mutex::new(Weak::new());

struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    state: Mutex<State>,
    /// Signalled when a job is queued, when a client gets room below its limit, and at the end.
    work: Condvar,
}

#[derive(Default)]
struct State {
    /// By the client's number.
    clients: BTreeMap<u64, Queue>,
    next_client: u64,
    /// Number of the next job, for "the oldest first" across clients.
    next_job: u64,
    closed: bool,
}

/// One client's jobs.
struct Queue {
    limit: usize,
    running: usize,
    jobs: [VecDeque<(u64, Job)>; Class::COUNT],
}

impl Shared {
    /// A poisoned lock is used all the same: no code that can panic runs under it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a worker thread does until the pool ends.
    fn run(&self) {
        let mut state = self.lock();
        loop {
            if let Some((client, job)) = state.take() {
                drop(state);
                // A panic ends the job, not the thread. Whoever waits for the job sees what it owned dropped.
                let _ = catch_unwind(AssertUnwindSafe(job));
                state = self.lock();
                if let Some(queue) = state.clients.get_mut(&client) {
                    queue.running -= 1;
                }
                // The client may have been at its limit while other threads slept.
                self.work.notify_one();
            } else if state.closed {
                return;
            } else {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl State {
    /// Takes the first job in the order of service of a client below its limit.
    fn take(&mut self) -> Option<(u64, Job)> {
        let (_, _, client, class) = self
            .clients
            .iter()
            .filter(|(_, queue)| queue.running < queue.limit)
            .filter_map(|(client, queue)| {
                let class = queue.jobs.iter().position(|jobs| !jobs.is_empty())?;
                let (number, _) = queue.jobs[class].front()?;
                Some((class, *number, *client, class))
            })
            .min()?;
        let queue = self.clients.get_mut(&client)?;
        let (_, job) = queue.jobs[class].pop_front()?;
        queue.running += 1;
        Some((client, job))
    }
}

impl Pool {
    /// The process's pool with at least `threads` threads.
    fn get(threads: usize) -> Result<Arc<Self>, WorkersError> {
        let mut current = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = current.upgrade().unwrap_or_else(|| {
            Arc::new(Self {
                shared: Arc::new(Shared {
                    state: Mutex::default(),
                    work: Condvar::new(),
                }),
                threads: Mutex::default(),
            })
        });
        *current = Arc::downgrade(&pool);
        // On an error the pool is dropped outside the lock if nobody else uses it.
        drop(current);
        pool.grow(threads)?;
        Ok(pool)
    }

    fn grow(&self, threads: usize) -> Result<(), WorkersError> {
        let mut running = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        while running.len() < threads {
            let shared = self.shared.clone();
            let name = format!("epochfeed:{}", running.len());
            running.push(thread::Builder::new().name(name).spawn(move || shared.run())?);
        }
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
        let threads = self.threads.get_mut().unwrap_or_else(PoisonError::into_inner);
        for handle in threads.drain(..) {
            // The last client may be dropped by a job; a thread cannot join itself, and ends right after.
            if handle.thread().id() != thread::current().id() {
                let _ = handle.join();
            }
        }
    }
}

/// One user's door to the process's pool.
///
/// Dropping it discards its queued jobs; those that run finish.
pub struct Client {
    pool: Arc<Pool>,
    number: u64,
}

impl Client {
    /// A client that runs at most `limit` (at least 1) jobs at a time.
    ///
    /// # Errors
    /// [`WorkersError::Spawn`] if the system refuses a thread.
    pub fn new(limit: usize) -> Result<Self, WorkersError> {
        let limit = limit.max(1);
        let pool = Pool::get(limit)?;
        let mut state = pool.shared.lock();
        let number = state.next_client;
        state.next_client += 1;
        state.clients.insert(
            number,
            Queue {
                limit,
                running: 0,
                jobs: Default::default(),
            },
        );
        drop(state);
        Ok(Self { pool, number })
    }

    /// Queues `job`. If it panics, the panic ends the job alone and what it owned is dropped.
    pub fn spawn(&self, class: Class, job: impl FnOnce() + Send + 'static) {
        let mut state = self.pool.shared.lock();
        let number = state.next_job;
        state.next_job += 1;
        if let Some(queue) = state.clients.get_mut(&self.number) {
            queue.jobs[class.rank()].push_back((number, Box::new(job)));
        }
        drop(state);
        self.pool.shared.work.notify_one();
    }

    /// How many jobs this client runs at most at a time.
    pub fn limit(&self) -> usize {
        self.pool
            .shared
            .lock()
            .clients
            .get(&self.number)
            .map_or(1, |queue| queue.limit)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let queue = self.pool.shared.lock().clients.remove(&self.number);
        // Jobs may own buffers whose release calls out: never under the lock.
        drop(queue);
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
