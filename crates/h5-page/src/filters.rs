//! Filters of chunks besides those of h5-read: deflate, LZF, LZ4 and Zstandard. Blosc and SZIP are
//! not known; their datasets are described, but not shown.

use std::io::Read;

use h5_read::{Filter, FilterError, Filters};
use zlib_rs::{InflateConfig, ReturnCode};

const DEFLATE: u16 = 1;
const LZF: u16 = 32000;
const LZ4: u16 = 32004;
const ZSTD: u16 = 32015;

pub(crate) struct Codecs;

impl Filters for Codecs {
    fn decode(&self, filter: &Filter, encoded: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        let decoded = match filter.id {
            DEFLATE => deflate(encoded, limit, out),
            LZF => lzf(encoded, limit, out),
            LZ4 => lz4(encoded, limit, out),
            ZSTD => zstd(encoded, limit, out),
            _ => return Err(FilterError::Unknown),
        };
        decoded.ok_or_else(|| FilterError::Damaged("the bytes are not what the filter writes".to_owned()))
    }
}

fn deflate(encoded: &[u8], limit: usize, out: &mut Vec<u8>) -> Option<()> {
    // a byte of deflate stands for 1032 at most
    out.resize(limit.min(encoded.len().saturating_mul(1032)), 0);
    let (decoded, ended) = zlib_rs::decompress_slice(out, encoded, InflateConfig::default());
    let len = decoded.len();
    out.truncate(len);
    (ended == ReturnCode::Ok).then_some(())
}

fn zstd(encoded: &[u8], limit: usize, out: &mut Vec<u8>) -> Option<()> {
    let decoder = ruzstd::decoding::StreamingDecoder::new(encoded).ok()?;
    decoder.take(limit as u64 + 1).read_to_end(out).ok()?;
    (out.len() <= limit).then_some(())
}

/// Big-endian lengths: of the chunk in 8 bytes, of a block in 4; then for each block its stored
/// bytes in 4, and the block, as it is if it has the length of a block.
fn lz4(encoded: &[u8], limit: usize, out: &mut Vec<u8>) -> Option<()> {
    let (len, rest) = encoded.split_first_chunk::<8>()?;
    let (block, mut rest) = rest.split_first_chunk::<4>()?;
    let len = usize::try_from(u64::from_be_bytes(*len)).ok().filter(|&len| len <= limit)?;
    out.resize(len.min(encoded.len().saturating_mul(255)), 0);
    for block in out.chunks_mut((u32::from_be_bytes(*block) as usize).max(1)) {
        let (stored, after) = rest.split_first_chunk::<4>()?;
        let (stored, after) = after.split_at_checked(u32::from_be_bytes(*stored) as usize)?;
        rest = after;
        if stored.len() == block.len() {
            block.copy_from_slice(stored);
        } else if lz4_flex::block::decompress_into(stored, block).ok()? != block.len() {
            return None;
        }
    }
    (out.len() == len && rest.is_empty()).then_some(())
}

/// Runs of literals, and copies of earlier bytes.
fn lzf(encoded: &[u8], limit: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut rest = encoded.iter().map(|&byte| usize::from(byte));
    while let Some(control) = rest.next() {
        if control < 32 {
            for _ in 0..=control {
                out.push(rest.next()? as u8);
            }
        } else {
            let len = match control >> 5 {
                7 => 7 + rest.next()?,
                len => len,
            };
            let from = out.len().checked_sub(((control & 31) << 8) + rest.next()? + 1)?;
            for at in from..from + len + 2 {
                out.push(out[at]);
            }
        }
        if out.len() > limit {
            return None;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(id: u16, encoded: &[u8], limit: usize) -> Option<Vec<u8>> {
        let filter = Filter { id, name: Vec::new(), is_optional: false, parameters: Vec::new() };
        let mut out = Vec::new();
        Codecs.decode(&filter, encoded, limit, &mut out).ok().map(|()| out)
    }

    #[test]
    fn chunks_as_other_programs_write_them() {
        // python: zlib.compress(b'abcabcabc'); a Zstandard frame of one raw block
        let deflated = b"\x78\x9c\x4b\x4c\x4a\x4e\x04\x23\x00\x11\x3d\x03\x73";
        let framed = b"\x28\xb5\x2f\xfd\x20\x03\x19\x00\x00abc";
        let blocks = b"\0\0\0\0\0\0\0\x05\0\0\0\x02\0\0\0\x02ab\0\0\0\x03\x20cd\0\0\0\x01e";
        for (id, encoded, decoded) in [
            (DEFLATE, &deflated[..], &b"abcabcabc"[..]),
            (LZF, b"\x02abc\x20\x02", b"abcabc"),
            (LZ4, blocks, b"abcde"),
            (ZSTD, framed, b"abc"),
        ] {
            assert_eq!(decode(id, encoded, decoded.len()).as_deref(), Some(decoded), "filter {id}");
            assert_eq!(decode(id, encoded, decoded.len() - 1), None, "filter {id} beyond the limit");
            assert_eq!(decode(id, &encoded[..encoded.len() - 1], decoded.len()), None, "filter {id} cut off");
        }
        assert_eq!(decode(32001, b"", 9), None);
    }
}
