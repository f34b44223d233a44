//! Writes a file of which many small parts are written and read again, mostly near each other,
//! through a cache of pages.

use std::sync::{Arc, Mutex, MutexGuard};

use super::{ReadAt, WriteAt, past_end};
use crate::error::Result;
use crate::sync::LockUnpoisoned;

const PAGE_BYTES: usize = 1 << 16;
const CACHE_PAGES: usize = 64;

/// A cache of the pages used last; a changed page is written when another one replaces it. Writes
/// of whole pages bypass the cache.
///
/// Bytes that were never written are zeros. Until [`flush`](Self::flush) the file itself holds some
/// of the bytes only.
#[derive(Debug)]
pub struct PagedMut {
    file: Arc<dyn WriteAt>,
    state: Mutex<PageCache>,
}

#[derive(Debug)]
struct PageCache {
    len: u64,
    /// Length of the file so far; cached pages may be after its end.
    stored: u64,
    /// Least recently used first.
    pages: Vec<Page>,
}

#[derive(Debug)]
struct Page {
    number: u64,
    dirty: bool,
    bytes: Vec<u8>,
}

impl PagedMut {
    /// Fails if the length of `file` cannot be found.
    pub fn new(file: Arc<dyn WriteAt>) -> Result<Self> {
        let len = file.len()?;
        Ok(PagedMut { file, state: Mutex::new(PageCache { len, stored: len, pages: Vec::new() }) })
    }

    /// Lengthens the file with zeros.
    pub fn grow(&self, len: u64) {
        let mut state = self.lock();
        state.len = state.len.max(len);
    }

    /// Writes through the cache.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut state = self.lock();
        state.len = state.len.max(offset + data.len() as u64);
        let mut done = 0;
        while done < data.len() {
            let (number, within) = locate(offset + done as u64);
            let whole = (data.len() - done) / PAGE_BYTES;
            if within == 0 && whole > 0 {
                let pages = number..number + whole as u64;
                state.pages.retain(|page| !pages.contains(&page.number));
                state.store(&*self.file, number, &data[done..done + whole * PAGE_BYTES])?;
                done += whole * PAGE_BYTES;
                continue;
            }
            let page = state.page(&*self.file, number)?;
            let count = (PAGE_BYTES - within).min(data.len() - done);
            page.bytes[within..within + count].copy_from_slice(&data[done..done + count]);
            page.dirty = true;
            done += count;
        }
        Ok(())
    }

    /// Writes all changed pages to the file.
    pub fn flush(&self) -> Result<()> {
        let mut state = self.lock();
        let mut pages = std::mem::take(&mut state.pages);
        pages.sort_unstable_by_key(|page| page.number);
        let stored = pages.iter_mut().try_for_each(|page| state.store_page(&*self.file, page));
        state.pages = pages;
        stored?;
        if state.stored < state.len {
            self.file.set_len(state.len)?;
            state.stored = state.len;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, PageCache> {
        self.state.lock_unpoisoned()
    }
}

/// Number of the page, and offset in it.
fn locate(offset: u64) -> (u64, usize) {
    (offset / PAGE_BYTES as u64, (offset % PAGE_BYTES as u64) as usize)
}

impl PageCache {
    fn page(&mut self, file: &dyn WriteAt, number: u64) -> Result<&mut Page> {
        match self.pages.iter().rposition(|page| page.number == number) {
            Some(found) => self.pages[found..].rotate_left(1),
            None => {
                let mut page = Page { number, dirty: false, bytes: self.evict(file)? };
                let start = number * PAGE_BYTES as u64;
                let there = self.stored.saturating_sub(start).min(PAGE_BYTES as u64) as usize;
                page.bytes[there..].fill(0);
                if there > 0 {
                    file.read_at(start, &mut page.bytes[..there])?;
                }
                self.pages.push(page);
            }
        }
        let last = self.pages.len() - 1;
        Ok(&mut self.pages[last])
    }

    /// A new buffer, or that of the least recently used page, which is written first if changed.
    fn evict(&mut self, file: &dyn WriteAt) -> Result<Vec<u8>> {
        if self.pages.len() < CACHE_PAGES {
            return Ok(vec![0; PAGE_BYTES]);
        }
        // a page that cannot be written stays
        let mut oldest = self.pages.remove(0);
        if let Err(error) = self.store_page(file, &mut oldest) {
            self.pages.insert(0, oldest);
            return Err(error);
        }
        Ok(oldest.bytes)
    }

    fn store_page(&mut self, file: &dyn WriteAt, page: &mut Page) -> Result<()> {
        if page.dirty {
            let count = (self.len - page.number * PAGE_BYTES as u64).min(PAGE_BYTES as u64);
            self.store(file, page.number, &page.bytes[..count as usize])?;
            page.dirty = false;
        }
        Ok(())
    }

    fn store(&mut self, file: &dyn WriteAt, page: u64, bytes: &[u8]) -> Result<()> {
        let start = page * PAGE_BYTES as u64;
        file.write_at(start, bytes)?;
        self.stored = self.stored.max(start + bytes.len() as u64);
        Ok(())
    }
}

impl ReadAt for PagedMut {
    fn len(&self) -> Result<u64> {
        Ok(self.lock().len)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let mut state = self.lock();
        let wanted = out.len() as u64;
        if offset.checked_add(wanted).is_none_or(|end| end > state.len) {
            return Err(past_end(offset, wanted, state.len));
        }
        let mut done = 0;
        while done < out.len() {
            let (number, within) = locate(offset + done as u64);
            let page = state.page(&*self.file, number)?;
            let count = (PAGE_BYTES - within).min(out.len() - done);
            out[done..done + count].copy_from_slice(&page.bytes[within..within + count]);
            done += count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::MemoryFile;

    #[test]
    fn holds_what_was_written() {
        let page = PAGE_BYTES as u64;
        let file = Arc::new(MemoryFile::new(vec![9; 100]));
        let paged = PagedMut::new(file.clone()).unwrap();
        let mut expected = vec![9; 100];
        let mut write = |offset: u64, len: usize, byte: u8| {
            let end = offset as usize + len;
            expected.resize(expected.len().max(end), 0);
            expected[offset as usize..end].fill(byte);
            paged.write(offset, &vec![byte; len]).unwrap();
        };
        write(98, 4, 1);
        write(3 * page - 5, 2 * PAGE_BYTES + 10, 2);
        write(4 * page + 1, 7, 3);
        write(4 * page, PAGE_BYTES, 4);
        // more pages than are kept, twice
        for number in (0..2 * CACHE_PAGES as u64).chain(0..2 * CACHE_PAGES as u64) {
            write(number * page + 17, 3, number as u8);
        }
        paged.grow(200 * page + 1);
        expected.resize(200 * PAGE_BYTES + 1, 0);
        let mut read = vec![0; expected.len()];
        paged.read_at(0, &mut read).unwrap();
        assert!(read == expected);
        assert!(paged.read_at(1, &mut read).is_err());
        paged.flush().unwrap();
        assert!(file.bytes() == expected);
    }
}
