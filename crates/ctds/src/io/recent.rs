//! A bounded cache of numbered values that are costly to read again.

use std::sync::{Arc, Mutex};

use super::Asked;
use crate::error::Result;
use crate::sync::LockUnpoisoned;

/// A cache of items by number: those used last, as many as fit into a number of bytes, but at most
/// 64.
#[derive(Debug)]
pub struct Recent<T> {
    capacity: usize,
    /// Least recently used first.
    items: Mutex<Vec<(u64, Arc<T>)>>,
    asked: Mutex<Asked<u64>>,
}

impl<T> Recent<T> {
    /// As many items of `item_bytes` as fit into `bytes` bytes: at least 1, at most 64.
    pub fn new(bytes: u64, item_bytes: u64) -> Self {
        // the search is linear, so there are never many
        let capacity = (bytes / item_bytes.max(1)).clamp(1, 64) as usize;
        Recent { capacity, items: Mutex::default(), asked: Mutex::default() }
    }

    /// Whether the item is cached, or many parts of it, or a few near each other, were requested;
    /// else counts a request for the part at `at`.
    pub fn expects(&self, number: u64, at: u64, len: u64) -> bool {
        self.items.lock_unpoisoned().iter().any(|(known, _)| *known == number)
            || self.asked.lock_unpoisoned().is_worth_reading(number, at, len)
    }

    /// Calls `read` for an item that is not cached.
    pub fn get(&self, number: u64, read: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        self.get_in_place_of(number, |_| read())
    }

    /// As [`get`](Self::get); `read` may reuse the memory of the item that leaves the cache, unless
    /// it is in use.
    pub fn get_in_place_of(&self, number: u64, read: impl FnOnce(Option<T>) -> Result<T>) -> Result<Arc<T>> {
        let old = {
            let mut items = self.items.lock_unpoisoned();
            if let Some(found) = items.iter().rposition(|(known, _)| *known == number) {
                let item = items[found].1.clone();
                // the item of the last call is usually the item of this one
                items[found..].rotate_left(1);
                return Ok(item);
            }
            (items.len() >= self.capacity).then(|| items.remove(0).1)
        };
        // read without the lock: two threads may read the same item, which is harmless
        let item = Arc::new(read(old.and_then(Arc::into_inner))?);
        let mut items = self.items.lock_unpoisoned();
        if items.len() >= self.capacity {
            items.remove(0);
        }
        items.push((number, item.clone()));
        Ok(item)
    }

    /// Items in use stay valid.
    pub fn clear(&self) {
        // freed without the lock
        let items = std::mem::take(&mut *self.items.lock_unpoisoned());
        drop(items);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.items.lock_unpoisoned().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expects_what_it_has() {
        let recent = Recent::new(2, 1);
        assert!(!recent.expects(2, 0, 100));
        assert_eq!(*recent.get(2, || Ok(20)).unwrap(), 20);
        assert!(recent.expects(2, 0, 100));
        assert!(!recent.expects(1, 0, 100));
    }

    #[test]
    fn passes_on_what_leaves_unless_it_is_in_use() {
        let recent = Recent::new(2, 1);
        let get = |number, expected: Option<u64>| {
            let read = |old| {
                assert_eq!(old, expected);
                Ok(number)
            };
            recent.get_in_place_of(number, read).unwrap()
        };
        get(1, None);
        let used = get(2, None);
        get(3, Some(1));
        get(4, None);
        assert_eq!((*used, recent.len()), (2, 2));
    }

    #[test]
    fn drops_what_was_used_longest_ago() {
        let recent = Recent::new(2, 1);
        let get = |number| *recent.get(number, || Ok(number)).unwrap();
        assert_eq!([get(1), get(2), get(1), get(3)], [1, 2, 1, 3]);
        // 2 was dropped for 3; 1 and 3 are still there
        assert_eq!(*recent.get(1, || panic!()).unwrap(), 1);
        assert_eq!(*recent.get(3, || panic!()).unwrap(), 3);
        assert_eq!(*recent.get(2, || Ok(20)).unwrap(), 20);
    }
}
