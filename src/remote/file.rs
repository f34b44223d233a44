//! [`RemoteFile`] reads a file on a server: small reads come from cached blocks, large ones are
//! requests of their own.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};

use super::address::Address;
use super::client::{Client, Version};
use crate::error::{Error, Result};
use crate::io::{ReadAt, past_end};
use crate::sync::{LockUnpoisoned, Unpoisoned};

/// Block that is fetched and cached: its transfer takes about as long as the request for it.
const BLOCK: u64 = 256 << 10;
/// Cached blocks.
const KEPT: usize = 256;
/// Larger reads bypass the cache: usually whole chunks, which the caller caches after decoding.
const LARGE: usize = 1 << 20;
/// Bytes of one request.
const LARGEST: usize = 16 << 20;
/// Blocks of one request in a sequential read.
const LONGEST_RUN: u64 = 32;
/// Requests by which sequential reading is detected, at several places of a file at once.
const RUNS: usize = 16;

/// A file in the state in which it was opened.
#[derive(Debug)]
pub(super) struct RemoteFile {
    client: Client,
    version: Version,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    blocks: HashMap<u64, Arc<Vec<u8>>>,
    /// Cached blocks, the oldest first.
    order: VecDeque<u64>,
    loading: HashSet<u64>,
    /// Last requests, at most 16, the oldest first: the block after the last one fetched, and how
    /// many were. A new request that begins where an old one ended takes its place.
    runs: VecDeque<(u64, u64)>,
    /// Error after repetitions: all further reads return it, so that callers do not wait for each.
    failed: Option<Error>,
}

static OPEN: Mutex<Vec<(String, Weak<RemoteFile>)>> = Mutex::new(Vec::new());

/// Shares a file that is open already.
pub(super) fn open(text: &str) -> Result<Arc<RemoteFile>> {
    let mut files = OPEN.lock_unpoisoned();
    files.retain(|(_, file)| file.strong_count() > 0);
    let open = files.iter().filter(|(known, _)| known == text).find_map(|(_, file)| file.upgrade());
    if let Some(file) = open.filter(|file| file.state().failed.is_none()) {
        return Ok(file);
    }
    drop(files);
    let file = Arc::new(RemoteFile::open(text)?);
    let mut files = OPEN.lock_unpoisoned();
    files.push((text.to_owned(), Arc::downgrade(&file)));
    Ok(file)
}

impl RemoteFile {
    fn open(text: &str) -> Result<Self> {
        let client = Client::new(Address::parse(text, |name| std::env::var(name).ok())?);
        let mut first = vec![0; BLOCK as usize];
        let version = client.open(&mut first)?;
        first.truncate(usize::try_from(version.len).unwrap_or(usize::MAX));
        let mut state = State::default();
        state.keep(0, first);
        state.runs.push_back((1, 1));
        Ok(RemoteFile { client, version, state: Mutex::new(state), changed: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock_unpoisoned()
    }

    /// Waits if another thread is fetching the block.
    fn block(&self, number: u64) -> Result<Arc<Vec<u8>>> {
        let mut state = self.state();
        let count = loop {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            if let Some(block) = state.blocks.get(&number) {
                return Ok(block.clone());
            }
            if !state.loading.contains(&number) {
                break state.begin(number, self.version.len.div_ceil(BLOCK));
            }
            state = self.changed.wait(state).unpoisoned();
        };
        drop(state);
        let start = number * BLOCK;
        let len = (count * BLOCK).min(self.version.len - start);
        let mut bytes = vec![0; len as usize];
        let read = self.client.read(&self.version, start, &mut bytes);
        let mut state = self.state();
        for loaded in number..number + count {
            state.loading.remove(&loaded);
        }
        // all that wait look again
        self.changed.notify_all();
        if let Err(error) = read {
            state.failed = Some(error.clone());
            return Err(error);
        }
        let mut blocks = bytes.chunks(BLOCK as usize).zip(number..);
        let first = blocks.next().map(|(bytes, _)| state.keep(number, bytes.to_vec()));
        blocks.for_each(|(bytes, number)| drop(state.keep(number, bytes.to_vec())));
        first.ok_or_else(|| past_end(start, 1, self.version.len))
    }

    /// Bypasses the cache.
    fn read_large(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let mut at = offset;
        for part in out.chunks_mut(LARGEST) {
            if let Some(error) = &self.state().failed {
                return Err(error.clone());
            }
            if let Err(error) = self.client.read(&self.version, at, part) {
                self.state().failed = Some(error.clone());
                return Err(error);
            }
            at += part.len() as u64;
        }
        Ok(())
    }
}

impl State {
    /// Decides how many blocks one request fetches, of the file's `blocks`, and marks them as being
    /// fetched. A request that begins where another ended fetches twice as many as that one.
    fn begin(&mut self, number: u64, blocks: u64) -> u64 {
        let run = self.runs.iter().position(|(next, _)| *next == number).and_then(|run| self.runs.remove(run));
        let wanted = run.map_or(1, |(_, count)| (2 * count).min(LONGEST_RUN)).min(blocks - number);
        let is_missing = |number: &u64| !self.blocks.contains_key(number) && !self.loading.contains(number);
        let count = (number..number + wanted).take_while(is_missing).count().max(1) as u64;
        self.loading.extend(number..number + count);
        if self.runs.len() >= RUNS {
            self.runs.pop_front();
        }
        self.runs.push_back((number + count, count));
        count
    }

    /// A full cache loses the block that was cached first.
    fn keep(&mut self, number: u64, bytes: Vec<u8>) -> Arc<Vec<u8>> {
        let block = Arc::new(bytes);
        if self.blocks.insert(number, block.clone()).is_none() {
            self.order.push_back(number);
        }
        while self.order.len() > KEPT {
            if let Some(oldest) = self.order.pop_front() {
                self.blocks.remove(&oldest);
            }
        }
        block
    }
}

impl ReadAt for RemoteFile {
    fn len(&self) -> Result<u64> {
        Ok(self.version.len)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let len = self.version.len;
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > len) {
            return Err(past_end(offset, out.len() as u64, len));
        }
        if out.len() >= LARGE {
            return self.read_large(offset, out);
        }
        let mut at = offset;
        let mut rest = out;
        while !rest.is_empty() {
            let block = self.block(at / BLOCK)?;
            let bytes = block.get((at % BLOCK) as usize..).unwrap_or_default();
            let count = bytes.len().min(rest.len());
            if count == 0 {
                return Err(past_end(at, 1, len));
            }
            let (part, more) = rest.split_at_mut(count);
            part.copy_from_slice(&bytes[..count]);
            at += count as u64;
            rest = more;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_grow_where_a_file_is_read_on() {
        let mut state = State::default();
        let mut fetch = |number| {
            let count = state.begin(number, 100);
            for block in number..number + count {
                state.loading.remove(&block);
                state.keep(block, Vec::new());
            }
            count
        };
        assert_eq!([fetch(0), fetch(1), fetch(3), fetch(7)], [1, 2, 4, 8]);
        // at another place from one block on, and not what is kept or beyond the end
        assert_eq!([fetch(50), fetch(15), fetch(31), fetch(51)], [1, 16, 19, 2]);
        assert_eq!([fetch(98), fetch(99)], [1, 1]);
    }

    #[test]
    fn the_oldest_blocks_are_dropped() {
        let mut state = State::default();
        for number in 0..KEPT as u64 + 5 {
            state.keep(number, Vec::new());
        }
        assert_eq!((state.blocks.len(), state.order.front()), (KEPT, Some(&5)));
    }
}
