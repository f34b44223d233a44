//! Locking of mutexes within the program, also of those that a panic in another thread has poisoned.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks even if a thread panicked with the lock: the data of this program's mutexes is valid at any moment.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
