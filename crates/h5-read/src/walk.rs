//! Bounds for walks along addresses: no block is visited twice, and no more bytes are read than the
//! file has.

use std::collections::HashSet;

use crate::error::{Error, Result};

#[derive(Debug)]
pub(crate) struct Walk {
    seen: HashSet<u64>,
    /// Bytes left for blocks: these cannot overlap, so that the file's length bounds them.
    left: u64,
}

impl Walk {
    pub(crate) fn new(file_bytes: u64) -> Self {
        Walk { seen: HashSet::new(), left: file_bytes }
    }

    pub(crate) fn enter(&mut self, structure: &'static str, address: u64, bytes: u64) -> Result<()> {
        let refused =
            |message: &str| Err(Error::damaged(message).within(format_args!("{structure} at byte {address}")));
        if !self.seen.insert(address) {
            return refused("the block is part of two others, or of itself");
        }
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => return refused("blocks overlap: together they are larger than the file"),
        }
        Ok(())
    }
}

/// Items that could be read, and the damage beside them.
#[derive(Debug)]
pub struct Listing<T> {
    /// The items that are whole, in the order of the file.
    pub items: Vec<T>,
    /// Parts that could not be read; without any, `items` is complete.
    pub damage: Vec<Error>,
}

impl<T> Listing<T> {
    pub(crate) fn new() -> Self {
        Listing { items: Vec::new(), damage: Vec::new() }
    }

    /// The items, unless there is damage.
    ///
    /// # Errors
    /// The first of [`damage`](Self::damage).
    pub fn whole(mut self) -> Result<Vec<T>> {
        if self.damage.is_empty() { Ok(self.items) } else { Err(self.damage.swap_remove(0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_entered_once_and_fit_the_file() {
        let mut walk = Walk::new(100);
        walk.enter("node", 0, 60).unwrap();
        assert!(walk.enter("node", 0, 1).unwrap_err().to_string().ends_with("part of two others, or of itself"));
        walk.enter("node", 60, 40).unwrap();
        assert!(walk.enter("node", 99, 1).unwrap_err().to_string().contains("larger than the file"));
    }
}
