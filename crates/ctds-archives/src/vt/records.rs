//! Records of a data file of a store: one block each, one after the other.
//!
//! ```text
//! bsuint flags    1: the data are a zlib stream; no other bit is known
//! bsdata data
//! ```
//!
//! A file that was cut off in a record, by a writer that was killed, is good up to there. Sizes and
//! offsets are in bytes.

use ctds::error::{Context, Error, Result, ResultExt};
use ctds::io::ReadAt;

use super::wire::{LONGEST_UINT, decode_uint};
use super::zlib::{self, InflateError};

const COMPRESSED: u64 = 1;

/// Largest block that is read: a directory is one block, however large it is.
pub(super) const LARGEST_BLOCK: usize = 64 << 20;

const LONGEST_HEAD: usize = 2 * LONGEST_UINT;

/// How much is read for the data of a record before their length is known.
const GUESS: u64 = 4 << 10;

/// Minimum size of the first buffer to decompress into, as the length is not stored.
const INFLATED_GUESS: usize = 16 << 10;

/// How much is read at a time by a scan; more if a record is larger.
const PIECE_BYTES: usize = 4 << 20;

struct Head {
    is_compressed: bool,
    /// Length of the header.
    head: usize,
    /// Length of the data as stored: compressed or not.
    stored: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) offset: u64,
    is_compressed: bool,
    stored: &'a [u8],
}

#[derive(Debug, Clone)]
pub(super) struct ScanEnd {
    /// End of the last whole record.
    pub(super) end: u64,
    /// `None` if the scan reached the end of the file.
    pub(super) damage: Option<Error>,
    /// The writer was killed or is still writing.
    pub(super) is_cut_off: bool,
}

fn decode_head(bytes: &[u8]) -> Result<Option<Head>> {
    let Some((flags, flags_len)) = decode_uint(bytes)? else { return Ok(None) };
    if flags & !COMPRESSED != 0 {
        return Err(Error::format(format!("the flags of a block are {flags:#x}, expected 0 or 1")));
    }
    let Some((stored, stored_len)) = decode_uint(&bytes[flags_len..])? else { return Ok(None) };
    Ok(Some(Head { is_compressed: flags & COMPRESSED != 0, head: flags_len + stored_len, stored }))
}

impl Record<'_> {
    pub(super) fn block(&self) -> Result<Vec<u8>> {
        let block = match self.is_compressed {
            true => inflate(self.stored),
            false => Ok(self.stored.to_vec()),
        };
        block.with_context(|| Context::offset("block", self.offset))
    }

    /// Calls `f` with the block, which is copied only if it is compressed.
    pub(super) fn with_block<T>(&self, f: impl FnOnce(&[u8]) -> T) -> Result<T> {
        if self.is_compressed { Ok(f(&self.block()?)) } else { Ok(f(self.stored)) }
    }
}

pub(super) fn read_block(file: &dyn ReadAt, offset: u64) -> Result<Vec<u8>> {
    let read = || {
        let rest = file.len()?.saturating_sub(offset);
        let mut bytes = vec![0; rest.min(GUESS + LONGEST_HEAD as u64) as usize];
        file.read_at(offset, &mut bytes)?;
        let head = decode_head(&bytes)?
            .ok_or_else(|| Error::format("the file ends in a record, before the end of its head"))?;
        check_size(head.stored)?;
        let len = head.head as u64 + head.stored;
        if len > rest {
            return Err(Error::format(format!("a record of {len} bytes, of which the file has {rest}")));
        }
        let read = bytes.len();
        bytes.resize(len as usize, 0);
        if read < bytes.len() {
            file.read_at(offset + read as u64, &mut bytes[read..])?;
        }
        bytes.drain(..head.head);
        if head.is_compressed { inflate(&bytes) } else { Ok(bytes) }
    };
    read().with_context(|| Context::offset("block", offset))
}

fn check_size(bytes: u64) -> Result<()> {
    if bytes > LARGEST_BLOCK as u64 {
        return Err(Error::limit(format!("a block of {bytes} bytes; the limit is {LARGEST_BLOCK}")));
    }
    Ok(())
}

/// A record begins at `start`; `visit` receives many at a time. Damage is in the result, not an
/// error.
pub(super) fn scan(
    file: &dyn ReadAt,
    start: u64,
    mut visit: impl FnMut(&[Record<'_>]) -> Result<()>,
) -> Result<ScanEnd> {
    let len = file.len()?;
    let mut end = start;
    let mut wanted = PIECE_BYTES;
    let mut piece = Vec::new();
    while end < len {
        piece.resize((len - end).min(wanted as u64) as usize, 0);
        file.read_at(end, &mut piece)?;
        let mut records = Vec::new();
        let mut at = 0;
        let mut damage = None;
        wanted = PIECE_BYTES;
        while at < piece.len() {
            let offset = end + at as u64;
            let head = match decode_head(&piece[at..]).and_then(|head| {
                head.as_ref().map_or(Ok(()), |head| check_size(head.stored))?;
                Ok(head)
            }) {
                Ok(Some(head)) => head,
                Ok(None) => break,
                Err(error) => {
                    damage = Some(error.context(Context::offset("block", offset)));
                    break;
                }
            };
            let from = at + head.head;
            let Some(stored) = piece.get(from..from + head.stored as usize) else {
                wanted = PIECE_BYTES.max(head.head + head.stored as usize);
                break;
            };
            records.push(Record { offset, is_compressed: head.is_compressed, stored });
            at = from + stored.len();
        }
        visit(&records)?;
        end += at as u64;
        if damage.is_some() {
            return Ok(ScanEnd { end, damage, is_cut_off: false });
        }
        // nothing more can be read of a record that the file does not have as a whole
        if at == 0 && (len - end <= piece.len() as u64) {
            let message = format!("the file ends in a record, of which it has {} bytes", len - end);
            let damage = Error::format(message).context(Context::offset("block", end));
            return Ok(ScanEnd { end, damage: Some(damage), is_cut_off: true });
        }
    }
    Ok(ScanEnd { end, damage: None, is_cut_off: false })
}

fn inflate(stream: &[u8]) -> Result<Vec<u8>> {
    let mut size = (stream.len() * 4).clamp(INFLATED_GUESS, LARGEST_BLOCK);
    loop {
        let mut out = vec![0; size];
        match zlib::inflate(stream, &mut out) {
            Ok(len) => {
                out.truncate(len);
                return Ok(out);
            }
            Err(InflateError::InsufficientSpace) if size < LARGEST_BLOCK => {
                size = (size * 4).min(LARGEST_BLOCK);
            }
            Err(InflateError::InsufficientSpace) => {
                return Err(Error::limit(format!("a block is too large: the limit is {LARGEST_BLOCK} bytes")));
            }
            Err(InflateError::Damaged) => return Err(Error::format("the zlib stream of a block is damaged")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vt::wire::put_data;

    fn records(bytes: &[u8]) -> (Vec<(u64, Vec<u8>)>, ScanEnd) {
        let mut found = Vec::new();
        let end = scan(&bytes.to_vec(), 0, |records| {
            found.extend(records.iter().map(|record| (record.offset, record.block().unwrap())));
            Ok(())
        });
        (found, end.unwrap())
    }

    fn sample() -> Vec<u8> {
        let mut bytes = vec![0];
        put_data(&mut bytes, b"plain");
        bytes.push(1);
        let mut out = vec![0; 200];
        let len = zlib::by_zlib_rs::deflate(&[7; 100_000], &mut out).unwrap();
        put_data(&mut bytes, &out[..len]);
        bytes
    }

    #[test]
    fn records_are_read_in_order_and_each_on_its_own() {
        let bytes = sample();
        let (found, end) = records(&bytes);
        assert_eq!(found, [(0, b"plain".to_vec()), (7, vec![7; 100_000])]);
        assert!(end.end == bytes.len() as u64 && end.damage.is_none());
        for (offset, block) in found {
            assert_eq!(read_block(&bytes, offset).unwrap(), block);
        }
        // larger than a piece
        let mut large = vec![0];
        put_data(&mut large, &vec![5; PIECE_BYTES + 9]);
        large.extend(&bytes);
        let (found, end) = records(&large);
        assert!(found.len() == 3 && found[0].1.len() == PIECE_BYTES + 9 && end.damage.is_none());
        assert_eq!(read_block(&large, 0).unwrap().len(), PIECE_BYTES + 9);
    }

    #[test]
    fn records_before_a_cut_are_read() {
        let bytes = sample();
        for len in 0..bytes.len() {
            let (found, end) = records(&bytes[..len]);
            assert_eq!((found.len(), end.end), if len < 7 { (0, 0) } else { (1, 7) }, "{len}");
            assert!(end.damage.is_some() == (len != 0 && len != 7) && end.is_cut_off == end.damage.is_some(), "{len}");
            assert!(read_block(&bytes[..len].to_vec(), if len < 7 { 0 } else { 7 }).is_err());
        }
    }

    #[test]
    fn flags_and_sizes_are_checked() {
        let (found, end) = records(&[&sample()[..7], &[2, 1, 0]].concat());
        assert_eq!(found.len(), 1);
        let damage = end.damage.unwrap().to_string();
        assert_eq!(damage, "block at byte 7: the flags of a block are 0x2, expected 0 or 1");
        let huge = [&[0, 0xff, 0xff, 0xff, 0xff, 0x7f][..], &[0; 100]].concat();
        assert_eq!(records(&huge).1.damage.unwrap().kind(), ctds::ErrorKind::Limit);
        assert_eq!(read_block(&huge, 0).unwrap_err().kind(), ctds::ErrorKind::Limit);
        let not_zlib = vec![1, 3, 1, 2, 3];
        assert!(read_block(&not_zlib, 0).unwrap_err().to_string().contains("zlib"));
    }
}
