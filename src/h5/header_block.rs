//! The first block of an object header of version 2, changed in place where libhdf5 has no call, or
//! cannot be let at a damaged object. HDF5 File Format Specification 3.0, IV.A.1.b and IV.A.2.b.

use std::ops::Range;

use h5_read::lookup3;

use crate::error::{Context, Error, Result, ResultExt};
use crate::io::WriteAt;

/// Signature, version, flags, four times, limits for attributes, length of the messages.
const MOST_BEFORE_MESSAGES: usize = 34;
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
    /// `None` for another version.
    ///
    /// # Errors
    /// `Format` if it is larger than any that is made here; those of reading.
    pub(super) fn read(file: &dyn WriteAt, at: u64) -> Result<Option<Self>> {
        let mut head = [0; MOST_BEFORE_MESSAGES];
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

    /// Sets the extent of the slowest axis.
    ///
    /// # Errors
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

/// Sets the extent of the slowest axis of the dataset whose header is at the offset `at`, without a
/// look at its chunks: the index of those beyond stays as it is.
///
/// # Errors
/// `Unsupported` for headers that no live file has.
pub(crate) fn set_slowest_extent(file: &dyn WriteAt, at: u64, extent: u64) -> Result<()> {
    let set = || -> Result<()> {
        let block = HeaderBlock::read(file, at)?;
        let mut block = block.ok_or_else(|| Error::unsupported("an object header of another version"))?;
        block.set_slowest_extent(extent)?;
        block.write(file)
    };
    set().context(Context::offset("object header", at))
}
