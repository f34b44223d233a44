//! Reads a file of which many small parts are wanted, mostly near each other, through a cache of
//! pages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};

use super::recent::Recent;
use super::{ReadAt, past_end};
use crate::error::Result;
use crate::sync::LockUnpoisoned;

const PAGE_BYTES: u64 = 1 << 16;
/// Pages cached of one file.
const CACHE_BYTES: u64 = 1 << 22;
/// Files of which pages are cached: a program may have thousands open.
const FILES: usize = 64;

/// Files with cached pages, the oldest in front.
static KEPT: Mutex<VecDeque<Weak<Pages>>> = Mutex::new(VecDeque::new());

type Pages = Recent<Vec<u8>>;

/// A cache of the pages used last. Large reads, and the first few small ones in a page, bypass it.
#[derive(Debug)]
pub struct Paged {
    file: Arc<dyn ReadAt>,
    /// Length at opening; bytes that others append later are not seen.
    len: u64,
    pages: Arc<Pages>,
}

impl Paged {
    /// Fails if the length of `file` cannot be found.
    pub fn new(file: Arc<dyn ReadAt>) -> Result<Self> {
        let len = file.len()?;
        Ok(Paged { file, len, pages: Arc::new(Recent::new(CACHE_BYTES, PAGE_BYTES)) })
    }

    /// The file itself, past the cache.
    pub fn file(&self) -> &dyn ReadAt {
        &*self.file
    }

    fn page(&self, number: u64) -> Result<Arc<Vec<u8>>> {
        self.pages.get_in_place_of(number, |old| {
            let start = number * PAGE_BYTES;
            let mut page = old.unwrap_or_default();
            page.resize(PAGE_BYTES.min(self.len - start) as usize, 0);
            self.file.read_at(start, &mut page)?;
            keep(&self.pages);
            Ok(page)
        })
    }
}

/// If the list is full, the oldest file loses its pages.
fn keep(pages: &Arc<Pages>) {
    let forgotten = {
        let mut kept = KEPT.lock_unpoisoned();
        if kept.iter().any(|other| std::ptr::eq(other.as_ptr(), Arc::as_ptr(pages))) {
            return;
        }
        kept.push_back(Arc::downgrade(pages));
        if kept.len() > FILES { kept.pop_front() } else { None }
    };
    if let Some(pages) = forgotten.and_then(|pages| pages.upgrade()) {
        pages.clear();
    }
}

impl ReadAt for Paged {
    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let wanted = out.len() as u64;
        if offset.checked_add(wanted).is_none_or(|end| end > self.len) {
            return Err(past_end(offset, wanted, self.len));
        }
        if wanted >= PAGE_BYTES {
            return self.file.read_at(offset, out);
        }
        let (first, last) = (offset / PAGE_BYTES, (offset + wanted).saturating_sub(1) / PAGE_BYTES);
        if wanted > 0 && first == last && !self.pages.expects(first, offset % PAGE_BYTES, PAGE_BYTES) {
            return self.file.read_at(offset, out);
        }
        let mut done = 0;
        while done < out.len() {
            let position = offset + done as u64;
            let page = self.page(position / PAGE_BYTES)?;
            let from = &page[(position % PAGE_BYTES) as usize..];
            let count = from.len().min(out.len() - done);
            out[done..done + count].copy_from_slice(&from[..count]);
            done += count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_file_holds() {
        let bytes: Vec<u8> = (0..3 * PAGE_BYTES + 5).map(|i| (i % 251) as u8).collect();
        let paged = Paged::new(Arc::new(bytes.clone())).unwrap();
        for (offset, len) in [(0, 0), (0, 1), (PAGE_BYTES - 2, 4), (3 * PAGE_BYTES, 5), (7, PAGE_BYTES + 9)] {
            let mut out = vec![0; len as usize];
            paged.read_at(offset, &mut out).unwrap();
            assert_eq!(out, bytes[offset as usize..][..len as usize]);
        }
        assert!(paged.read_at(3 * PAGE_BYTES, &mut [0; 6]).is_err());
        assert!(paged.read_at(u64::MAX, &mut [0; 6]).is_err());
    }

    #[test]
    fn pages_of_many_files_are_not_kept() {
        let open = |_| Paged::new(Arc::new(vec![7; 3 * PAGE_BYTES as usize])).unwrap();
        let files: Vec<_> = (0..3 * FILES).map(open).collect();
        let read = |file: &Paged| {
            let mut out = [0; 8];
            file.read_at(PAGE_BYTES - 4, &mut out).unwrap();
            assert_eq!(out, [7; 8]);
        };
        files.iter().for_each(read);
        // other tests have files as well
        let with_pages = files.iter().filter(|file| file.pages.len() > 0).count();
        assert!((1..=FILES).contains(&with_pages), "{with_pages}");
        assert_eq!(files[0].pages.len(), 0);
        read(&files[0]);
    }
}
