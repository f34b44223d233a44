//! Asks the system early to write bytes of a file from the page cache to the disk, so that little
//! is left to do when the file is made durable.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use crate::error::Result;
use crate::os::write_back;

/// Consecutive bytes after which the system is asked to write.
const BEHIND_BYTES: u64 = 4 << 20;
/// Least bytes for which it is asked when the next are written elsewhere.
const LEAST_BYTES: u64 = 256 << 10;
/// The page cache writes whole pages; the last one may get more bytes soon.
const PAGE_BYTES: u64 = 4096;

/// Bytes not asked for yet. Small scattered writes are forgotten: a sync writes them.
#[derive(Debug, Default)]
pub(super) struct WriteBehind {
    waiting: Range<u64>,
}

impl WriteBehind {
    /// Notes written bytes; returns those for which to ask now, by [`write_back`].
    #[must_use]
    pub(super) fn wrote(&mut self, bytes: Range<u64>) -> Option<Range<u64>> {
        if self.waiting.end == bytes.start {
            self.waiting.end = bytes.end;
            return self.due(BEHIND_BYTES);
        }
        let due = self.due(LEAST_BYTES);
        self.waiting = bytes;
        due
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> Range<u64> {
        self.waiting.clone()
    }

    fn due(&mut self, least: u64) -> Option<Range<u64>> {
        let end = self.waiting.end / PAGE_BYTES * PAGE_BYTES;
        if end.saturating_sub(self.waiting.start) < least {
            return None;
        }
        let due = self.waiting.start..end;
        self.waiting.start = end;
        Some(due)
    }
}

/// A file to which libhdf5, or code without a [`FileTarget`](super::FileTarget), appends bytes.
#[derive(Debug)]
pub struct Growth {
    file: File,
    /// When it was last looked at.
    len: u64,
    behind: WriteBehind,
}

impl Growth {
    /// Watches from the present end on.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        Self::of(File::open(path)?)
    }

    /// Watches from the present end on.
    ///
    /// # Errors
    /// `Io`.
    pub fn of(file: File) -> Result<Self> {
        let len = file.metadata()?.len();
        Ok(Growth { file, len, behind: WriteBehind { waiting: len..len } })
    }

    /// The file that is watched.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Asks the system to write new bytes to the disk.
    pub fn write_back(&mut self) {
        let Ok(len) = self.file.metadata().map(|metadata| metadata.len()) else { return };
        if len > self.len {
            let due = self.behind.wrote(self.len..len);
            self.len = len;
            due.into_iter().for_each(|due| write_back(&self.file, due));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pages_of_consecutive_writes_are_asked_for_once() {
        let (mut behind, mut asked, mut at) = (WriteBehind::default(), Vec::new(), 0);
        for len in [1 << 20, 3 << 20, 100, 5000, 9 << 20, 1 << 20].repeat(3) {
            asked.extend(behind.wrote(at..at + len));
            at += len;
        }
        assert!(asked.windows(2).all(|pair| pair[0].end == pair[1].start), "{asked:?}");
        assert_eq!(asked[0], 0..4 << 20);
        let end = asked.last().unwrap().end;
        assert!(end % PAGE_BYTES == 0 && at - end < BEHIND_BYTES, "{end} of {at}");
    }

    #[test]
    fn large_writes_elsewhere_are_asked_for_and_small_ones_are_not() {
        let mut behind = WriteBehind::default();
        assert_eq!(behind.wrote(1 << 30..(1 << 30) + LEAST_BYTES), None);
        assert_eq!(behind.wrote(0..5000), Some(1 << 30..(1 << 30) + LEAST_BYTES));
        assert_eq!(behind.wrote(9000..9010), None);
        assert_eq!(behind.wrote(0..5000), None);
        assert_eq!(behind.wrote(5000..5000 + BEHIND_BYTES), Some(0..BEHIND_BYTES + 4096));
    }

    #[test]
    fn growth_is_what_was_appended() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(10_000).unwrap();
        let mut growth = Growth::of(file).unwrap();
        growth.write_back();
        assert_eq!((growth.len, growth.behind.waiting.clone()), (10_000, 10_000..10_000));
        // the page at the end is not full yet
        growth.file().set_len(10_000 + BEHIND_BYTES).unwrap();
        growth.write_back();
        assert_eq!((growth.len, growth.behind.waiting.start), (10_000 + BEHIND_BYTES, 10_000));
        growth.file().set_len(14_096 + BEHIND_BYTES).unwrap();
        growth.write_back();
        assert_eq!(growth.behind.waiting, 12_288 + BEHIND_BYTES..14_096 + BEHIND_BYTES);
    }
}
