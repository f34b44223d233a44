//! Filters of chunks. HDF5 File Format Specification 3.0, section IV.A.2.l.
//!
//! The message lists filters in the order in which a writer applies them; readers undo them from
//! the last to the first. A bit in the mask of a chunk says that a filter was not applied to it.
//! Shuffle, Fletcher32, N-bit and scale-offset are part of this crate; all others, deflate among
//! them, are the caller's: [`Filters`].

use crate::bytes::Bytes;
use crate::error::{Error, ErrorKind, Result, Within};

mod bits;
mod nbit;
mod scale_offset;
mod shuffle;

const SHUFFLE: u16 = 2;
const FLETCHER32: u16 = 3;
const NBIT: u16 = 5;
const SCALE_OFFSET: u16 = 6;

/// Identifiers below have no name in messages of version 2.
const FIRST_NAMED: u16 = 256;
const OPTIONAL: u16 = 1;
/// Most filters of a dataset, as the mask of a chunk has a bit for each.
const MAX_FILTERS: u8 = 32;

/// Bytes by which filters may lengthen a chunk beyond its double.
const SLACK: u64 = 4096;

/// Decodes the bytes that filters have encoded.
pub trait Filters {
    /// Appends to `out`, which is empty, the bytes that `filter` has encoded as `encoded`.
    ///
    /// # Errors
    /// `Unknown` if the filter is not known; `Damaged` if `encoded` is not what it writes, or if
    /// there are more than `limit` bytes: not much more than these should be allocated.
    fn decode(
        &self,
        filter: &Filter,
        encoded: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), FilterError>;
}

/// Reason why bytes could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterError {
    /// The filter is not known.
    Unknown,
    /// The bytes are not what the filter writes.
    Damaged(String),
}

/// No filters but those that are part of this crate.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFilters;

impl Filters for NoFilters {
    fn decode(&self, _: &Filter, _: &[u8], _: usize, _: &mut Vec<u8>) -> std::result::Result<(), FilterError> {
        Err(FilterError::Unknown)
    }
}

/// A filter of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The identifier, as The HDF Group registers it.
    pub id: u16,
    /// The name as the file has it, often empty.
    pub name: Vec<u8>,
    /// Writers may leave it out for a chunk.
    pub is_optional: bool,
    /// Parameters; their meaning is the filter's.
    pub parameters: Vec<u32>,
}

/// The filters of a dataset, in the order in which a writer applies them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pipeline {
    /// The filters.
    pub filters: Vec<Filter>,
}

impl Pipeline {
    pub(crate) fn decode(fields: &mut Bytes<'_>) -> Result<Self> {
        let version = fields.version(&[1, 2])?;
        let count = fields.u8()?;
        if count > MAX_FILTERS {
            return Err(fields.error(format!("{count} filters, at most {MAX_FILTERS} are possible")));
        }
        if version == 1 {
            fields.skip(6)?;
        }
        let filters = (0..count).map(|_| filter(fields, version)).collect::<Result<_>>()?;
        Ok(Pipeline { filters })
    }

    /// Whether the pipeline is empty.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Undoes the filters of a chunk: `data` is as stored and becomes `bytes` bytes of elements.
    /// `mask` has the filters that were not applied.
    ///
    /// # Errors
    /// `Damaged` if the bytes are not what the filters write, `Unsupported` if a filter is not
    /// known.
    pub fn undo(&self, filters: &dyn Filters, mask: u32, bytes: u64, data: &mut Vec<u8>) -> Result<()> {
        let mut out = Vec::new();
        for (number, filter) in self.filters.iter().enumerate().rev() {
            if mask >> number.min(31) & 1 != 0 {
                continue;
            }
            // filters that were applied before may have lengthened the chunk
            let limit = if number == 0 { bytes } else { bytes.saturating_mul(2).saturating_add(SLACK) };
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            out.clear();
            undo(filters, filter, data, limit, &mut out).within(|| filter.describe())?;
            std::mem::swap(data, &mut out);
        }
        if data.len() as u64 != bytes {
            return Err(Error::damaged(format!("{} bytes are decoded, expected {bytes}", data.len())));
        }
        Ok(())
    }
}

impl Filter {
    fn describe(&self) -> String {
        match self.id {
            1 => "filter deflate".to_owned(),
            SHUFFLE => "filter shuffle".to_owned(),
            FLETCHER32 => "filter fletcher32".to_owned(),
            4 => "filter szip".to_owned(),
            NBIT => "filter nbit".to_owned(),
            SCALE_OFFSET => "filter scaleoffset".to_owned(),
            id if self.name.is_empty() => format!("filter {id}"),
            id => format!("filter {id} \"{}\"", self.name.escape_ascii()),
        }
    }
}

fn filter(fields: &mut Bytes<'_>, version: u8) -> Result<Filter> {
    let id = fields.u16()?;
    let name_bytes = if version == 1 || id >= FIRST_NAMED { usize::from(fields.u16()?) } else { 0 };
    let flags = fields.u16()?;
    let count = usize::from(fields.u16()?);
    let padded = if version == 1 { name_bytes.next_multiple_of(8) } else { name_bytes };
    let name = fields.take(padded)?.split(|&byte| byte == 0).next().unwrap_or_default().to_vec();
    let mut parameters = Vec::with_capacity(count.min(fields.remaining() / 4));
    for _ in 0..count {
        parameters.push(fields.u32()?);
    }
    if version == 1 && count % 2 == 1 {
        fields.skip(4)?;
    }
    Ok(Filter { id, name, is_optional: flags & OPTIONAL != 0, parameters })
}

fn undo(filters: &dyn Filters, filter: &Filter, data: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    match filter.id {
        SHUFFLE => shuffle::undo(&filter.parameters, data, out),
        FLETCHER32 => fletcher32(data, out),
        NBIT => nbit::decode(&filter.parameters, data, limit, out),
        SCALE_OFFSET => scale_offset::decode(&filter.parameters, data, limit, out),
        _ => match filters.decode(filter, data, limit, out) {
            Ok(()) => Ok(()),
            Err(FilterError::Unknown) => Err(Error::unsupported("the filter is not known")),
            Err(FilterError::Damaged(message)) => Err(Error::damaged(message)),
        },
    }?;
    if out.len() > limit {
        return Err(Error::new(ErrorKind::Damaged, format!("{} bytes are decoded, at most {limit} fit", out.len())));
    }
    Ok(())
}

/// Releases before 1.6.3 exchanged the bytes of the checksum, the last four, in pairs.
fn fletcher32(data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let Some((data, stored)) = data.split_last_chunk::<4>() else {
        return Err(Error::damaged("the chunk is too short for a checksum"));
    };
    let found = u32::from_le_bytes(*stored);
    let expected = fletcher32_of(data);
    let exchanged = expected >> 8 & 0x00ff_00ff | (expected & 0x00ff_00ff) << 8;
    if found != expected && found != exchanged {
        return Err(Error::damaged(format!("the checksum is {found:#010x}, expected {expected:#010x}")));
    }
    out.extend_from_slice(data);
    Ok(())
}

/// Sums of big-endian words modulo 65535, where 65535 stands for 0 unless all words are 0.
fn fletcher32_of(data: &[u8]) -> u32 {
    let fold = |sum: u64| (sum & 0xffff) + (sum >> 16);
    let (mut first, mut second) = (0u64, 0u64);
    // sums of a block, at most 2^16 * 2^15 * 2^15, fit 64 bits
    for block in data.chunks(1 << 16) {
        let (words, last) = block.as_chunks::<2>();
        for &word in words {
            first += u64::from(u16::from_be_bytes(word));
            second += first;
        }
        if let &[last] = last {
            first += u64::from(last) << 8;
            second += first;
        }
        (first, second) = (fold(fold(fold(first))), fold(fold(fold(second))));
    }
    (second as u32) << 16 | first as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Sizes;

    fn decode(bytes: &[u8]) -> Result<Pipeline> {
        Pipeline::decode(&mut Bytes::new("filters", 0, bytes, Sizes { address: 8, length: 8 }))
    }

    /// Parameters 7 and 8 of filter 32000 "lzf", and an optional deflate.
    const BOTH: [&[u8]; 2] = [
        b"\x01\x02\0\0\0\0\0\0\x00\x7d\x04\0\0\0\x01\0lzf\0\0\0\0\0\x07\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0",
        b"\x02\x02\x00\x7d\x04\0\0\0\x01\0lzf\0\x07\0\0\0\x01\0\x01\0\0\0",
    ];

    #[test]
    fn messages_of_both_versions() {
        let lzf = Filter { id: 32000, name: b"lzf".to_vec(), is_optional: false, parameters: vec![7] };
        let deflate = Filter { id: 1, name: Vec::new(), is_optional: true, parameters: Vec::new() };
        for bytes in BOTH {
            let filters = decode(bytes).unwrap().filters;
            assert_eq!(filters, [lzf.clone(), deflate.clone()]);
            for end in 0..bytes.len() {
                assert!(decode(&bytes[..end]).is_err(), "{end}");
            }
        }
        assert!(decode(b"\x02\x21").unwrap_err().message().contains("33 filters"));
    }

    /// Filter 300 doubles each byte.
    struct Doubled;

    impl Filters for Doubled {
        fn decode(
            &self,
            filter: &Filter,
            encoded: &[u8],
            _: usize,
            out: &mut Vec<u8>,
        ) -> std::result::Result<(), FilterError> {
            if filter.id != 300 {
                return Err(FilterError::Unknown);
            }
            out.extend(encoded.iter().step_by(2));
            Ok(())
        }
    }

    fn pipeline(ids: &[u16]) -> Pipeline {
        let filter = |&id: &u16| Filter { id, name: Vec::new(), is_optional: false, parameters: vec![2] };
        Pipeline { filters: ids.iter().map(filter).collect() }
    }

    #[test]
    fn filters_are_undone_from_the_last_unless_masked() {
        let stored = b"aaccbbdd".to_vec();
        let undo = |ids: &[u16], mask, bytes| {
            let mut data = stored.clone();
            pipeline(ids).undo(&Doubled, mask, bytes, &mut data).map(|()| data)
        };
        assert_eq!(undo(&[2, 300], 0, 4).unwrap(), b"abcd");
        assert_eq!(undo(&[2, 300], 1, 4).unwrap(), b"acbd");
        assert_eq!(undo(&[2, 300], 3, 8).unwrap(), stored);
        assert_eq!(undo(&[2, 300], 0, 5).unwrap_err().to_string(), "4 bytes are decoded, expected 5");
        assert_eq!(undo(&[300], 0, 3).unwrap_err().to_string(), "filter 300: 4 bytes are decoded, at most 3 fit");
        assert_eq!(undo(&[301], 0, 4).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn fletcher32_is_checked_and_removed() {
        // sums of the words 0x6162, 0x6364, 0x6500
        let mut data = b"abcde".to_vec();
        assert_eq!(fletcher32_of(&data), 0x4ff0_29c7);
        let sum = fletcher32_of(&data);
        data.extend(sum.to_le_bytes());
        let mut out = Vec::new();
        fletcher32(&data, &mut out).unwrap();
        assert_eq!(out, b"abcde");
        data[0] ^= 1;
        assert!(fletcher32(&data, &mut out).unwrap_err().message().starts_with("the checksum is 0x"));
        assert!(fletcher32(&data[..3], &mut out).is_err());
        assert_eq!(fletcher32_of(&[0; 8]), 0);
        assert_eq!(fletcher32_of(&[0xff; 8]), 0xffff_ffff);
    }
}
