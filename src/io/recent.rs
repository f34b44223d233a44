//! A bounded cache of things that are costly to read again.

use std::sync::{Arc, Mutex};

use crate::error::Result;
use crate::sync::LockUnpoisoned;

/// The items used last, up to a number of them.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    capacity: usize,
    /// Number and item, least recently used first.
    items: Mutex<Vec<(u64, Arc<T>)>>,
}

impl<T> Recent<T> {
    /// Keeps about `bytes` of items of `item_bytes` each, and at least one.
    pub(crate) fn new(bytes: u64, item_bytes: u64) -> Self {
        // the search is linear, so there are never many
        let capacity = (bytes / item_bytes.max(1)).clamp(1, 64) as usize;
        Recent { capacity, items: Mutex::new(Vec::new()) }
    }

    /// The item `number`, from `read` if it is not here.
    pub(crate) fn get(&self, number: u64, read: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        {
            let mut items = self.items.lock_unpoisoned();
            if let Some(found) = items.iter().rposition(|(known, _)| *known == number) {
                let item = items[found].1.clone();
                // the item of the last call is usually the item of this one
                items[found..].rotate_left(1);
                return Ok(item);
            }
        }
        // read without the lock: two threads may read the same item, which is harmless
        let item = Arc::new(read()?);
        let mut items = self.items.lock_unpoisoned();
        if items.len() >= self.capacity {
            items.remove(0);
        }
        items.push((number, item.clone()));
        Ok(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
