//! The first block of an object header of version 2, changed in place where libhdf5 has no call, or
//! cannot be let at a damaged object. HDF5 File Format Specification 3.0, IV.A.1.b and IV.A.2.b.

use std::ops::Range;

use h5_read::lookup3;

use crate::error::{Context, Error, Result, ResultExt};
use crate::io::WriteAt;

/// Signature, version, flags, four times, limits for attributes, length of the messages.
const MAX_BEFORE_MESSAGES: usize = 34;
const TIMES: Range<usize> = 6..22;
/// Flags: the size of the length; messages have a number; limits and times are stored.
const LENGTH_BYTES: u8 = 3;
const HAS_NUMBERS: u8 = 0x04;
const HAS_LIMITS: u8 = 0x10;
const HAS_TIMES: u8 = 0x20;
/// Larger ones are not made here.
const MAX_BYTES: u64 = 1 << 16;
/// Type of a message of extents, its version, and what stands before the extents.
const DATASPACE: u8 = 1;
const DATASPACE_VERSION: u8 = 2;
const BEFORE_EXTENTS: usize = 4;

pub(super) struct HeaderBlock {
    at: u64,
    /// Without the checksum.
    bytes: Vec<u8>,
    flags: u8,
    messages: usize,
}

impl HeaderBlock {
    /// `None` for another version; `Format` if it is larger than any that is made here.
    pub(super) fn read(file: &dyn WriteAt, at: u64) -> Result<Option<Self>> {
        let mut head = [0; MAX_BEFORE_MESSAGES];
        file.read_at(at, &mut head)?;
        if !head.starts_with(b"OHDR\x02") {
            return Ok(None);
        }
        let flags = head[5];
        let times = if flags & HAS_TIMES == 0 { 0 } else { TIMES.len() };
        let length_at = TIMES.start + times + if flags & HAS_LIMITS == 0 { 0 } else { 4 };
        let length_bytes = 1 << (flags & LENGTH_BYTES);
        let mut length = [0; 8];
        length[..length_bytes].copy_from_slice(&head[length_at..length_at + length_bytes]);
        let length = u64::from_le_bytes(length);
        if length > MAX_BYTES {
            return Err(Error::format(format!("the header has {length} bytes, at most {MAX_BYTES} are expected")));
        }
        let messages = length_at + length_bytes;
        let mut bytes = vec![0; messages + length as usize];
        file.read_at(at, &mut bytes)?;
        Ok(Some(HeaderBlock { at, bytes, flags, messages }))
    }

    pub(super) fn forget_times(&mut self) {
        if self.flags & HAS_TIMES != 0 {
            self.bytes[TIMES].fill(0);
        }
    }

    /// `Unsupported` if the extents are not in this block.
    pub(super) fn set_slowest_extent(&mut self, extent: u64) -> Result<()> {
        let at = self
            .message(DATASPACE)
            .filter(|message| message.len() >= BEFORE_EXTENTS + 8 && self.bytes[message.start] == DATASPACE_VERSION);
        let at = at.ok_or_else(|| Error::unsupported("the extents are not in the first block of the header"))?;
        let at = at.start + BEFORE_EXTENTS;
        self.bytes[at..at + 8].copy_from_slice(&extent.to_le_bytes());
        Ok(())
    }

    /// The content of the first message of a type.
    fn message(&self, wanted: u8) -> Option<Range<usize>> {
        let numbered = if self.flags & HAS_NUMBERS == 0 { 0 } else { 2 };
        let mut at = self.messages;
        while let Some(&[kind, low, high, _]) = self.bytes.get(at..at + 4) {
            let start = at + 4 + numbered;
            let end = start + usize::from(u16::from_le_bytes([low, high]));
            if kind == wanted {
                return (end <= self.bytes.len()).then_some(start..end);
            }
            at = end;
        }
        None
    }

    /// Writes it back, with its checksum.
    pub(super) fn write(mut self, file: &dyn WriteAt) -> Result<()> {
        let checksum = lookup3(&self.bytes);
        self.bytes.extend(checksum.to_le_bytes());
        file.write_at(self.at, &self.bytes)
    }
}

/// Changes the header at the offset `at` without a look at chunks: the index of those beyond the
/// extent stays as it is. `Unsupported` for headers that no live file has.
pub(crate) fn set_slowest_extent(file: &dyn WriteAt, at: u64, extent: u64) -> Result<()> {
    let set = || -> Result<()> {
        let block = HeaderBlock::read(file, at)?;
        let mut block =
            block.ok_or_else(|| Error::unsupported("an object header of version 2 is expected, found is another"))?;
        block.set_slowest_extent(extent)?;
        block.write(file)
    };
    set().context(Context::offset("object header", at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{MemoryFile, ReadAt};

    /// With numbered messages: filler, then extents of two axes and their limits.
    fn header(version: u8) -> Vec<u8> {
        let mut space = vec![version, 2, 1, 1];
        space.extend([7_u64, 3, u64::MAX, 3].into_iter().flat_map(u64::to_le_bytes));
        let mut messages = vec![0, 5, 0, 0, 9, 9, 1, 2, 3, 4, 5];
        messages.extend([DATASPACE, space.len() as u8, 0, 0, 8, 8]);
        messages.extend(&space);
        let mut header = b"OHDR\x02\x04".to_vec();
        header.push(messages.len() as u8);
        header.extend(messages);
        header.extend(lookup3(&header).to_le_bytes());
        header
    }

    #[test]
    fn slowest_extent_is_set_with_the_checksum() {
        let before = header(DATASPACE_VERSION);
        let file = MemoryFile::new([vec![1; 10], before.clone(), vec![2; 40]].concat());
        set_slowest_extent(&file, 10, 5).unwrap();
        let mut found = vec![0; before.len()];
        file.read_at(10, &mut found).unwrap();
        let changed: Vec<_> = (0..before.len() - 4).filter(|&at| before[at] != found[at]).collect();
        assert_eq!(changed.iter().map(|&at| (before[at], found[at])).collect::<Vec<_>>(), [(7, 5)]);
        let (content, checksum) = found.split_at(found.len() - 4);
        assert_eq!(checksum, lookup3(content).to_le_bytes());
    }

    #[test]
    fn other_headers_stay_as_they_are() {
        for (at, version) in [(10, 1), (0, DATASPACE_VERSION)] {
            let bytes = [vec![1; 10], header(version), vec![2; 40]].concat();
            let file = MemoryFile::new(bytes.clone());
            assert_eq!(set_slowest_extent(&file, at, 5).unwrap_err().kind(), crate::error::ErrorKind::Unsupported);
            let mut found = vec![0; bytes.len()];
            file.read_at(0, &mut found).unwrap();
            assert_eq!(found, bytes);
        }
    }
}
