//! The codec LZ4 (HDF5 filter 32004). Each chunk is a header and LZ4 blocks in the layout of HDF5's
//! plugin.
//!
//! All numbers are big-endian:
//!
//! ```text
//! 8 bytes   length of the chunk
//! 4 bytes   length of a block, before compression; the last block may be shorter
//! for each block:
//!   4 bytes   length of the stored block
//!   the block in LZ4's block format; or as it was, if both lengths are equal
//! ```
//! The filter may have one parameter, the length of a block. It is written without; a chunk of up
//! to 1 GiB is then one block. Other programs need a plugin for this filter.

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};

use super::interface::{Codec, Decoder, Encoder};
use crate::error::{Error, Result};

/// A byte that extends a length stands for at most 255 bytes.
const MAX_EXPANSION: u64 = 255;
/// Largest written block before compression; a chunk that is not longer is one block.
const BLOCK_BYTES: usize = 1 << 30;

#[derive(Debug)]
pub(super) struct Lz4;

impl Codec for Lz4 {
    fn id(&self) -> i32 {
        32004
    }

    fn name(&self) -> &'static str {
        "lz4"
    }

    fn plugin(&self) -> Option<&'static str> {
        Some("hdf5plugin")
    }

    fn bound(&self, stored: u64) -> u64 {
        stored.saturating_mul(MAX_EXPANSION)
    }

    fn encoder(&self, _level: u8) -> Option<Box<dyn Encoder>> {
        Some(Box::new(Blocks))
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Blocks)
    }
}

struct Blocks;

impl Encoder for Blocks {
    fn encode(&mut self, bytes: &[u8], _plane: usize, out: &mut Vec<u8>) -> Result<()> {
        let block_bytes = bytes.len().min(BLOCK_BYTES);
        out.clear();
        out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        out.extend_from_slice(&(block_bytes as u32).to_be_bytes());
        for block in bytes.chunks(block_bytes.max(1)) {
            let start = out.len() + 4;
            out.resize(start + get_maximum_output_size(block.len()), 0);
            let len = compress_into(block, &mut out[start..])
                .map_err(|error| Error::usage("a chunk was not compressed with LZ4").caused_by(error))?;
            if len < block.len() {
                out.truncate(start + len);
            } else {
                out.truncate(start);
                out.extend_from_slice(block);
            }
            let len = (out.len() - start) as u32;
            out[start - 4..start].copy_from_slice(&len.to_be_bytes());
        }
        Ok(())
    }
}

impl Decoder for Blocks {
    fn decode(&mut self, bytes: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        let (len, block_bytes, mut rest) = header(bytes).ok_or_else(|| Error::format("the LZ4 chunk has no header"))?;
        let Some(len) = usize::try_from(len).ok().filter(|len| *len <= limit) else {
            return Err(Error::format(format!("the LZ4 chunk has {len} bytes, expected at most {limit}")));
        };
        if block_bytes == 0 && len > 0 {
            return Err(Error::format("the LZ4 chunk is not empty but has blocks of 0 bytes"));
        }
        out.resize(len, 0);
        for block in out.chunks_mut(block_bytes.max(1) as usize) {
            let (stored, after) = split_block(rest)
                .ok_or_else(|| Error::format("an LZ4 chunk ends within a block, before all of its bytes"))?;
            rest = after;
            if stored.len() == block.len() {
                block.copy_from_slice(stored);
                continue;
            }
            let decoded = decompress_into(stored, block);
            let found = decoded.map_err(|error| {
                Error::format("the bytes of an LZ4 block cannot be decompressed: it is damaged").caused_by(error)
            })?;
            if found != block.len() {
                return Err(Error::format(format!(
                    "an LZ4 block of {found} bytes, where {} are expected",
                    block.len()
                )));
            }
        }
        if !rest.is_empty() {
            return Err(Error::format(format!("{} bytes follow the last block of an LZ4 chunk", rest.len())));
        }
        Ok(())
    }
}

/// Decoded length of the chunk, of a block, and the stored blocks.
fn header(bytes: &[u8]) -> Option<(u64, u32, &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<8>()?;
    let (block_bytes, blocks) = rest.split_first_chunk::<4>()?;
    Some((u64::from_be_bytes(*len), u32::from_be_bytes(*block_bytes), blocks))
}

/// The first block, and the bytes after it; `None` if it is cut off.
fn split_block(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*len) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framing() {
        let mut out = Vec::new();
        Blocks.encode(b"abc", 3, &mut out).unwrap();
        // three bytes do not compress
        assert_eq!(out, *b"\0\0\0\0\0\0\0\x03\0\0\0\x03\0\0\0\x03abc");
        // two blocks of 2 bytes and one of 1, the second compressed: a literal run of 2
        let stored = b"\0\0\0\0\0\0\0\x05\0\0\0\x02\0\0\0\x02ab\0\0\0\x03\x20cd\0\0\0\x01e";
        Blocks.decode(stored, 5, &mut out).unwrap();
        assert_eq!(out, b"abcde");
        assert!(Blocks.decode(stored, 4, &mut out).is_err());
        assert!(Blocks.decode(&[&stored[..], b"f"].concat(), 5, &mut out).is_err());
    }
}
