//! Locking that also works after a thread panicked while it held the lock: the contents are as that
//! thread left them.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// Locks a mutex even if a thread panicked while it held the lock.
pub trait LockUnpoisoned<T> {
    /// The contents are as the last holder left them, even if it panicked.
    fn lock_unpoisoned(&self) -> MutexGuard<'_, T>;
}

impl<T> LockUnpoisoned<T> for Mutex<T> {
    fn lock_unpoisoned(&self) -> MutexGuard<'_, T> {
        self.lock().unpoisoned()
    }
}

/// Adds a method to the results of everything else that locks: `RwLock::read`, `Condvar::wait`,
/// `Mutex::into_inner`.
pub trait Unpoisoned<T> {
    /// The guard or the contents, also if a thread panicked while it held the lock.
    fn unpoisoned(self) -> T;
}

impl<T> Unpoisoned<T> for LockResult<T> {
    fn unpoisoned(self) -> T {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_leaves_the_contents() {
        let mutex = Mutex::new(1);
        let panicked = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                *mutex.lock_unpoisoned() = 2;
                let _held = mutex.lock_unpoisoned();
                panic!("while it is held");
            });
            holder.join().is_err()
        });
        assert!(panicked && mutex.is_poisoned());
        assert_eq!(*mutex.lock_unpoisoned(), 2);
        assert_eq!(mutex.into_inner().unpoisoned(), 2);
    }
}
