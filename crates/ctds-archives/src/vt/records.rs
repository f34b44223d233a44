//! Records of a `.vtd` data file of a content-addressed (vt) store: one block each, one after the other.
//!
//! ```text
//! bsuint flags    1: the data are a zlib stream; no other bit is known
//! bsdata data
//! ```
//!
//! A file that was cut off in a record, by a writer that was killed, is good up to there.

use ctds::error::{Context, Error, Result, ResultExt};
use ctds::io::ReadAt;

use super::wire::{LONGEST_UINT, decode_uint};
use super::zlib::{self, InflateError};

const COMPRESSED: u64 = 1;

/// Largest block (piece of data stored once, under its hash) of a vt store that is read, in bytes. Blocks of files have
/// at most 16 KiB by default; a directory is one block, however large it is.
pub(super) const LARGEST_BLOCK: usize = 64 << 20;

/// Largest header in bytes of a record (one block) in a data file (`.vtd`) of a vt (content-addressed) store.
const LONGEST_HEAD: usize = 2 * LONGEST_UINT;

/// Number of bytes that are read for the data of a record (header and data of one block) in a vt (content-addressed)
/// store before their length is known.
const GUESS: u64 = 4 << 10;

/// Minimum size in bytes of the first buffer into which a block of a vt (content-addressed) store is decompressed, as
/// the length of the block is not stored.
const INFLATED_GUESS: usize = 16 << 10;

/// Number of bytes that are read at a time when a data file (`.vtd`) of a vt (content-addressed) store is scanned for
/// its records, one block each; more if a record is larger.
const PIECE_BYTES: usize = 4 << 20;

/// Header of a record (one block) in a data file (`.vtd`) of a vt (content-addressed) store: whether the data of the
/// block are compressed, and the lengths of header and data.
struct Head {
    is_compressed: bool,
    /// Length in bytes of the header itself, with which the record of a block in a vt (content-addressed) store begins.
    head: usize,
    /// Length in bytes of the data of the block after the header, as the vt (content-addressed) store has them:
    /// compressed or not.
    stored: u64,
}

/// A record of a data file (`.vtd`) of a vt (content-addressed) store, in memory as it is stored:
/// the data may be compressed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    /// Offset in bytes of the record from the start of the data file of the vt (content-addressed)
    /// store.
    pub(super) offset: u64,
    is_compressed: bool,
    stored: &'a [u8],
}

/// Where and why the scan of a data file (`.vtd`) of a vt (content-addressed) store for records (one block each) ended.
#[derive(Debug, Clone)]
pub(super) struct ScanEnd {
    /// Offset in bytes, from the start of the data file of the vt (content-addressed) store, at which the last whole
    /// record (one block) ends.
    pub(super) end: u64,
    /// Damage at which the scan of a data file (`.vtd`) of a vt (content-addressed) store ended; `None` if it reached
    /// the end of the file.
    pub(super) damage: Option<Error>,
    /// Whether the data file of the vt (content-addressed) store ends in the middle of a record (one block), because
    /// its writer was killed or is still writing.
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
    /// Decodes the block (piece of data that a vt store has once, under its hash) that this record holds: its bytes,
    /// decompressed.
    pub(super) fn block(&self) -> Result<Vec<u8>> {
        let block = match self.is_compressed {
            true => inflate(self.stored),
            false => Ok(self.stored.to_vec()),
        };
        block.with_context(|| Context::offset("block", self.offset))
    }

    /// Calls `f` with the decoded block, which is copied only if it is compressed.
    pub(super) fn with_block<T>(&self, f: impl FnOnce(&[u8]) -> T) -> Result<T> {
        if self.is_compressed { Ok(f(&self.block()?)) } else { Ok(f(self.stored)) }
    }
}

/// Reads and decodes the block in the record that begins at byte `offset` of a data file (`.vtd`)
/// of a vt (content-addressed) store.
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

/// Scans the records (header and data of one block each) of a data file (`.vtd`) of a vt (content-addressed) store from
/// byte `start` on, where a record begins, and passes them to `visit`, many at a time; returns where and why it ended.
///
/// # Errors
/// Those of reading the file and of `visit`; damage is in the result.
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

/// Decompresses the zlib stream of a block of a vt store.
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
    fn what_is_cut_off_is_good_up_to_there() {
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
