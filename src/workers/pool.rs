//! Lock order: `POOL` (the static) or `Pool::threads`, before `Shared::state`. Neither is held while a job runs or is dropped.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Class, Urgency, WorkersError};

type Job = Box<dyn FnOnce() + Send>;

/// The process's pool, if anyone uses one. `Weak`, so that it ends with its last [`Client`].
static POOL: Mutex<Weak<Pool>> = Mutex::new(Weak::new());

/// How long a client that is waited for keeps its threads after a job: the next one comes from a chain of other threads,
/// each of which has to wake up first. This is the idea of anticipatory scheduling (Iyer and Druschel, SOSP 2001): a short rest
/// costs less than what begins just before the next job arrives.
const GRACE: Duration = Duration::from_millis(10);

struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    state: Mutex<State>,
    /// Signalled when a job is queued, when one may be taken that had to wait, and at the end.
    work: Condvar,
}

#[derive(Default)]
struct State {
    /// By the client's number.
    clients: BTreeMap<u64, Queue>,
    next_client: u64,
    /// Number of the next job, for "the oldest first" across clients.
    next_job: u64,
    /// Threads there are.
    threads: usize,
    closed: bool,
}

/// One client's jobs.
struct Queue {
    limit: usize,
    /// Clients of one pipeline: they do not keep each other from preparing.
    group: u64,
    /// How many run, by urgency.
    running: [usize; 2],
    /// When the last demanded one ended.
    demanded: Option<Instant>,
    jobs: [VecDeque<(u64, Job)>; Class::COUNT],
}

impl Queue {
    /// Until when its threads are kept for jobs that somebody waits for now, if they are.
    fn reserved(&self) -> Option<Reserved> {
        let queued = |class: &Class| !self.jobs[class.rank()].is_empty();
        if self.running[Urgency::Demanded as usize] > 0 || Class::DEMANDED.iter().any(queued) {
            Some(Reserved::NoEnd)
        } else {
            self.demanded.map(|ended| Reserved::Until(ended + GRACE))
        }
    }
}

/// How long a client's threads are kept for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reserved {
    Until(Instant),
    NoEnd,
}

/// What a free thread does.
enum Next {
    Run(u64, Urgency, Job),
    /// There are jobs that may begin then.
    Wait(Instant),
    Sleep,
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
            state = match state.next() {
                Next::Run(client, urgency, job) => {
                    drop(state);
                    // What made this job possible may have made others possible, too.
                    self.work.notify_one();
                    // A panic ends the job, not the thread. Whoever waits for the job sees what it owned dropped.
                    let _ = catch_unwind(AssertUnwindSafe(job));
                    let mut state = self.lock();
                    if let Some(queue) = state.clients.get_mut(&client) {
                        queue.running[urgency as usize] -= 1;
                        if urgency == Urgency::Demanded {
                            queue.demanded = Some(Instant::now());
                        }
                    }
                    // The client may have been at its limit while other threads slept.
                    self.work.notify_one();
                    state
                }
                _ if state.closed => return,
                Next::Wait(then) => {
                    let time = then.saturating_duration_since(Instant::now());
                    let woken = self.work.wait_timeout(state, time);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                Next::Sleep => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl State {
    /// Takes the first job in the order of service of a client below its limit.
    fn next(&mut self) -> Next {
        let first = self
            .clients
            .iter()
            .filter(|(_, queue)| queue.running.iter().sum::<usize>() < queue.limit)
            .filter_map(|(client, queue)| {
                let mut classes = Class::ALL.into_iter();
                let class = classes.find(|class| !queue.jobs[class.rank()].is_empty())?;
                let (number, _) = queue.jobs[class.rank()].front()?;
                Some((class, *number, *client))
            })
            .min();
        let Some((class, _, client)) = first else {
            return Next::Sleep;
        };
        let group = self.clients.get(&client).map_or(client, |queue| queue.group);
        if class.urgency == Urgency::Ahead
            && let Some(reserved) = self.reserved(group, Instant::now())
        {
            return match reserved {
                Reserved::Until(then) => Next::Wait(then),
                Reserved::NoEnd => Next::Sleep,
            };
        }
        let queue = self.clients.get_mut(&client);
        match queue.and_then(|queue| Some((queue.jobs[class.rank()].pop_front()?, queue))) {
            Some(((_, job), queue)) => {
                queue.running[class.urgency as usize] += 1;
                Next::Run(client, class.urgency, job)
            }
            None => Next::Sleep,
        }
    }

    /// How long no thread is to spare for what `group` prepares ahead, at least; `None` if one is. A group needs at most as
    /// many threads as one of its clients may use: they work for each other.
    fn reserved(&self, group: u64, now: Instant) -> Option<Reserved> {
        let mut reserved: BTreeMap<u64, (Reserved, usize)> = BTreeMap::new();
        for queue in self.clients.values().filter(|queue| queue.group != group) {
            if let Some(until) = queue.reserved().filter(|until| *until > Reserved::Until(now)) {
                let (last, most) = reserved.entry(queue.group).or_insert((until, 0));
                (*last, *most) = ((*last).max(until), (*most).max(queue.limit));
            }
        }
        let busy: usize = self
            .clients
            .values()
            .map(|queue| queue.running[Urgency::Ahead as usize])
            .sum();
        let kept: usize = reserved.values().map(|(_, limit)| limit).sum();
        if busy + kept < self.threads {
            return None;
        }
        // Threads that prepare themselves look for more when they have done.
        let first = reserved.into_values().map(|(reserved, _)| reserved).min();
        Some(first.unwrap_or(Reserved::NoEnd))
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
            self.shared.lock().threads = running.len();
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
                group: number,
                running: [0; 2],
                demanded: None,
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

    /// Joins the clients of the pipeline that `group` stands for. What these have to do now does not keep this one from
    /// preparing what comes next.
    pub fn join<T>(&self, group: &Arc<T>) {
        // No client's own number, which is small.
        let group = Arc::as_ptr(group).addr() as u64;
        if let Some(queue) = self.pool.shared.lock().clients.get_mut(&self.number) {
            queue.group = group;
        }
    }

    /// Forgets what is queued.
    pub fn clear(&self) {
        let mut state = self.pool.shared.lock();
        let queue = state.clients.get_mut(&self.number);
        let jobs = queue.map(|queue| std::mem::take(&mut queue.jobs));
        drop(state);
        // Jobs may own buffers whose release calls out: never under the lock.
        drop(jobs);
    }

    /// What was queued as prepared ahead is waited for now.
    pub fn demand(&self) {
        let mut state = self.pool.shared.lock();
        if let Some(queue) = state.clients.get_mut(&self.number) {
            for (ahead, demanded) in Class::AHEAD.into_iter().zip(Class::DEMANDED) {
                let mut jobs = std::mem::take(&mut queue.jobs[ahead.rank()]);
                // The older ones: they come first in the stream, too.
                jobs.append(&mut queue.jobs[demanded.rank()]);
                queue.jobs[demanded.rank()] = jobs;
            }
        }
        drop(state);
        self.pool.shared.work.notify_all();
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
        // Its threads are free for what is prepared ahead.
        self.pool.shared.work.notify_all();
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
