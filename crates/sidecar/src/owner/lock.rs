//! Mutexes, as a process that forks has to take them.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// How often to try for a lock that is only ever held briefly.
const TRIES_MAX: u32 = 200;
/// How often that is done at once, before waiting.
const YIELDS_MAX: u32 = 100;
/// How long to wait between two of those.
const RETRY_AFTER: Duration = Duration::from_millis(1);

/// Locks a mutex whose holder may have panicked: what it guards is valid
/// between any two steps.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex of the whole process, which is never held for long.
///
/// A child may have been forked while a thread of its parent held the lock; that
/// thread is not in the child, and waiting for it would never end.
pub(super) fn lock_briefly<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for attempt in 0..TRIES_MAX {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if attempt < YIELDS_MAX => std::thread::yield_now(),
            Err(TryLockError::WouldBlock) => std::thread::sleep(RETRY_AFTER),
        }
    }
    None
}
