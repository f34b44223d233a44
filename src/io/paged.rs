//! A file of which many small parts are read, mostly near each other.

use std::sync::Arc;

use super::recent::Recent;
use super::{ReadAt, past_end};
use crate::error::Result;

const PAGE_BYTES: u64 = 1 << 16;
/// All pages kept of a file.
const CACHE_BYTES: u64 = 1 << 22;

/// Reads pages of a file and keeps those used last; larger reads pass it by, and so do the first few of a page.
#[derive(Debug)]
pub(crate) struct Paged {
    file: Arc<dyn ReadAt>,
    /// Length of the file when it was opened; bytes that others append later are not seen.
    len: u64,
    pages: Recent<Vec<u8>>,
}

impl Paged {
    pub(crate) fn new(file: Arc<dyn ReadAt>) -> Result<Self> {
        let len = file.len()?;
        Ok(Paged { file, len, pages: Recent::new(CACHE_BYTES, PAGE_BYTES) })
    }

    fn page(&self, number: u64) -> Result<Arc<Vec<u8>>> {
        self.pages.get(number, || {
            let start = number * PAGE_BYTES;
            let mut page = vec![0; PAGE_BYTES.min(self.len - start) as usize];
            self.file.read_at(start, &mut page)?;
            Ok(page)
        })
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
}
