use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Locks; a poisoned lock is used all the same. Under the elements' locks every change is a plain assignment, and a
/// panic is an element error already.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nanoseconds since `start`.
pub(super) fn nanoseconds_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
