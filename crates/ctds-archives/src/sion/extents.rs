//! The stream of a task as a list of extents: contiguous byte ranges of the SION file, in the order
//! of the stream.

use std::sync::Arc;

use ctds::error::{Error, Result};
use ctds::io::{FileTarget, Raw, RawCopy, ReadAt, WriteAt, past_end};

#[derive(Debug, Clone, Default)]
pub(super) struct Extents {
    /// Offset in the stream of each extent, and its offset in the SION file; no extent is empty.
    starts: Vec<(u64, u64)>,
    pub(super) len: u64,
}

impl Extents {
    pub(super) fn push(&mut self, position: u64, len: u64) {
        if len > 0 {
            self.starts.push((self.len, position));
            self.len += len;
        }
    }

    /// Offset in the SION file of byte `offset` of the stream, and the number of bytes that are
    /// contiguous there, this byte included; `None` after the end of the stream.
    fn find(&self, offset: u64) -> Option<(u64, u64)> {
        let next = self.starts.partition_point(|&(start, _)| start <= offset);
        let (start, position) = *self.starts.get(next.checked_sub(1)?)?;
        let end = self.starts.get(next).map_or(self.len, |&(start, _)| start);
        (offset < end).then(|| (position + (offset - start), end - offset))
    }

    /// Calls `each` for every contiguous piece: offset in the SION file, range within the `count`
    /// bytes.
    fn pieces(
        &self,
        offset: u64,
        count: usize,
        mut each: impl FnMut(u64, std::ops::Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut done = 0;
        while done < count {
            let found = self.find(offset.saturating_add(done as u64));
            let (position, rest) = found.ok_or_else(|| past_end(offset, count as u64, self.len))?;
            let end = done + rest.min((count - done) as u64) as usize;
            each(position, done..end)?;
            done = end;
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) file: Arc<dyn ReadAt>,
    pub(super) extents: Extents,
}

impl ReadAt for Stream {
    fn len(&self) -> Result<u64> {
        Ok(self.extents.len)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > self.extents.len) {
            return Err(past_end(offset, out.len() as u64, self.extents.len));
        }
        self.extents.pieces(offset, out.len(), |position, range| self.file.read_at(position, &mut out[range]))
    }

    fn raw(&self, offset: u64) -> Option<Raw<'_>> {
        let (position, rest) = self.extents.find(offset)?;
        let raw = self.file.raw(position)?;
        Some(Raw { len: raw.len.min(rest), ..raw })
    }
}

/// A stream that is open for writing; its length is fixed.
#[derive(Debug)]
pub(super) struct StreamMut {
    pub(super) file: Arc<FileTarget>,
    pub(super) extents: Extents,
}

impl ReadAt for StreamMut {
    fn len(&self) -> Result<u64> {
        Ok(self.extents.len)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.extents.pieces(offset, out.len(), |position, range| self.file.read_at(position, &mut out[range]))
    }
}

impl WriteAt for StreamMut {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        if offset.checked_add(data.len() as u64).is_none_or(|end| end > self.extents.len) {
            return Err(changed(self.extents.len));
        }
        self.extents.pieces(offset, data.len(), |position, range| self.file.write_at(position, &data[range]))
    }

    fn copy_raw(&self, offset: u64, bytes: Raw<'_>, by: &dyn RawCopy) -> u64 {
        let Some((position, rest)) = self.extents.find(offset) else { return 0 };
        self.file.copy_raw(position, Raw { len: bytes.len.min(rest), ..bytes }, by)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        if len == self.extents.len { Ok(()) } else { Err(changed(self.extents.len)) }
    }

    fn sync(&self) -> Result<()> {
        self.file.sync()
    }
}

fn changed(len: u64) -> Error {
    Error::usage(format!("a stream of {len} bytes was announced, and its length cannot change"))
}
