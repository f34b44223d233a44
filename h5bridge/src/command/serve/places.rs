//! Places of connections, kept for clients that have shown their token. A connection without an
//! accepted request is a *newcomer*: the oldest newcomer makes room for the next one, so that
//! sockets without a token do not keep clients out. An accepted request gives its connection a
//! place.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, OnceLock};

use ctds_hdf5::program::LockUnpoisoned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

const MAX_CONNECTIONS: usize = 256;

const MAX_NEWCOMERS: usize = 64;

/// Dropping it tells a newcomer to go.
type Leave = oneshot::Sender<Infallible>;

pub(super) struct Places {
    free: Arc<Semaphore>,
    newcomers: Mutex<Newcomers>,
}

#[derive(Default)]
struct Newcomers {
    next: u64,
    /// Numbers ascend: the oldest is first.
    waiting: VecDeque<(u64, Leave)>,
}

/// A connection, until it ends.
pub(super) struct Connection {
    number: u64,
    places: Arc<Places>,
    place: OnceLock<(OwnedSemaphorePermit, Option<Leave>)>,
}

impl Default for Places {
    fn default() -> Self {
        Places { free: Arc::new(Semaphore::new(MAX_CONNECTIONS)), newcomers: Mutex::default() }
    }
}

impl Places {
    /// A newcomer; the receiver ends when the connection has to make room.
    pub(super) fn enter(self: &Arc<Self>) -> (Connection, oneshot::Receiver<Infallible>) {
        let (leave, left) = oneshot::channel();
        let mut newcomers = self.newcomers.lock_unpoisoned();
        let number = newcomers.next;
        newcomers.next += 1;
        newcomers.waiting.push_back((number, leave));
        if newcomers.waiting.len() > MAX_NEWCOMERS {
            newcomers.waiting.pop_front();
        }
        (Connection { number, places: Arc::clone(self), place: OnceLock::new() }, left)
    }

    /// Connections with a place, and newcomers.
    pub(super) fn counts(&self) -> (usize, usize) {
        (MAX_CONNECTIONS - self.free.available_permits(), self.newcomers.lock_unpoisoned().waiting.len())
    }

    fn take(&self, number: u64) -> Option<Leave> {
        let mut newcomers = self.newcomers.lock_unpoisoned();
        let at = newcomers.waiting.iter().position(|(other, _)| *other == number)?;
        newcomers.waiting.remove(at).map(|(_, leave)| leave)
    }
}

impl Connection {
    /// Gives the connection a place, which it has until it ends; false if all are taken.
    pub(super) fn admit(&self) -> bool {
        if self.place.get().is_some() {
            return true;
        }
        let Ok(permit) = Arc::clone(&self.places.free).try_acquire_owned() else { return false };
        self.place.set((permit, self.places.take(self.number))).is_ok()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        drop(self.places.take(self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_newcomer_makes_room() {
        let places = Arc::new(Places::default());
        let (first, mut first_left) = places.enter();
        let (second, mut second_left) = places.enter();
        assert!(first.admit() && first.admit(), "a place is taken once");
        let mut others: Vec<_> = (1..MAX_NEWCOMERS).map(|_| places.enter()).collect();
        assert_eq!(places.counts(), (1, MAX_NEWCOMERS));
        assert!(second_left.try_recv() == Err(oneshot::error::TryRecvError::Empty), "all have room");
        others.push(places.enter());
        assert!(second_left.try_recv() == Err(oneshot::error::TryRecvError::Closed), "the oldest goes");
        assert!(first_left.try_recv() == Err(oneshot::error::TryRecvError::Empty), "a place is kept");
        drop((first, second, others));
        assert_eq!(places.counts(), (0, 0));
    }

    #[test]
    fn places_are_limited() {
        let places = Arc::new(Places::default());
        let admitted: Vec<_> = (0..MAX_CONNECTIONS).map(|_| places.enter().0).filter(Connection::admit).collect();
        assert_eq!(admitted.len(), MAX_CONNECTIONS);
        let (next, _left) = places.enter();
        assert!(!next.admit());
        drop(admitted);
        assert!(next.admit());
    }
}
