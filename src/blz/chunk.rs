//! One Blosc chunk: blocks that are split, compressed, and shuffled. docs/formats/blz.md.

use super::blosclz;
use super::shuffle::{unshuffle_bits, unshuffle_bytes};
use crate::error::{Error, Result};

/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 16;

/// Version of the chunk format.
const VERSION: u8 = 2;

/// Byte-shuffle.
const SHUFFLED: u8 = 1;
/// The bytes follow the header as they are.
const COPIED: u8 = 2;
/// Bit-shuffle.
const BIT_SHUFFLED: u8 = 4;
const RESERVED: u8 = 8;
/// Blocks are compressed as a whole, not in parts of one byte of each element.
const NOT_SPLIT: u8 = 16;

/// A part of a block has at least this many elements.
const SPLIT_ELEMENTS: usize = 128;
/// Elements larger than this are not split.
const SPLIT_BYTES: usize = 16;

/// The header of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkHeader {
    flags: u8,
    /// Bytes of an element.
    typesize: u8,
    /// Bytes of the decoded chunk.
    pub(super) bytes: u32,
    block_bytes: u32,
    /// Bytes of the chunk as it is stored, this header included.
    pub(super) stored: u32,
}

impl ChunkHeader {
    /// Decodes a header.
    ///
    /// # Errors
    /// `Format` if it contradicts itself or is of an unknown version.
    pub(super) fn decode(header: &[u8; HEADER_BYTES]) -> Result<Self> {
        let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let found = ChunkHeader {
            flags: header[2],
            typesize: header[3],
            bytes: number(4),
            block_bytes: number(8),
            stored: number(12),
        };
        if header[0] != VERSION {
            return Err(Error::format(format!("a Blosc chunk of version {}, {VERSION} is expected", header[0])));
        }
        if found.flags & RESERVED != 0 {
            return Err(Error::format(format!(
                "flags {:#04x} of a Blosc chunk have bit 3, which is reserved",
                found.flags
            )));
        }
        if (found.stored as usize) < HEADER_BYTES {
            return Err(Error::format(format!(
                "a Blosc chunk of {} bytes, its header has {HEADER_BYTES}",
                found.stored
            )));
        }
        if found.is_copied() && u64::from(found.stored) != u64::from(found.bytes) + HEADER_BYTES as u64 {
            let message = format!("a Blosc chunk with {} plain bytes is given as {} bytes", found.bytes, found.stored);
            return Err(Error::format(message));
        }
        if !found.is_copied() && found.bytes > 0 && found.block_bytes == 0 {
            return Err(Error::format("a Blosc chunk with blocks of 0 bytes"));
        }
        Ok(found)
    }

    fn is_copied(&self) -> bool {
        self.flags & COPIED != 0
    }

    /// Name of the codec of the chunk.
    pub(super) fn codec(&self) -> &'static str {
        ["blosclz", "lz4", "snappy", "zlib", "zstd"].get(usize::from(self.flags >> 5)).copied().unwrap_or("unknown")
    }
}

fn damaged(what: &str) -> Error {
    Error::format(format!("a Blosc chunk is damaged: {what}"))
}

/// Decodes a chunk, appending at most `most` bytes to `out`.
///
/// # Errors
/// `Format` if it is damaged or longer than `most`.
pub(super) fn decode(chunk: &[u8], most: u64, out: &mut Vec<u8>) -> Result<()> {
    let header = chunk.first_chunk().ok_or_else(|| damaged("it has no header"))?;
    let header = ChunkHeader::decode(header)?;
    let chunk = chunk.get(..header.stored as usize).ok_or_else(|| damaged("it is cut off"))?;
    if u64::from(header.bytes) > most {
        return Err(Error::format(format!("a Blosc chunk of {} bytes, at most {most} are expected", header.bytes)));
    }
    if header.is_copied() {
        out.extend_from_slice(&chunk[HEADER_BYTES..]);
        return Ok(());
    }
    let (bytes, block_bytes) = (header.bytes as usize, header.block_bytes as usize);
    let blocks = if bytes == 0 { 0 } else { bytes.div_ceil(block_bytes) };
    let starts =
        chunk.get(HEADER_BYTES..HEADER_BYTES + 4 * blocks).ok_or_else(|| damaged("its list of blocks is cut off"))?;
    let mut plain = Vec::new();
    for (block, start) in starts.as_chunks().0.iter().enumerate() {
        let start = u32::from_le_bytes(*start) as usize;
        let len = block_bytes.min(bytes - block * block_bytes);
        let stored = chunk.get(start..).filter(|_| start >= HEADER_BYTES);
        let stored = stored.ok_or_else(|| damaged(&format!("block {block} begins at byte {start}")))?;
        decode_block(&header, stored, len, len < block_bytes, &mut plain)?;
        let typesize = usize::from(header.typesize);
        if header.flags & SHUFFLED != 0 && typesize > 1 {
            unshuffle_bytes(&plain, typesize, out);
        } else if header.flags & BIT_SHUFFLED != 0 && typesize > 0 && len >= typesize {
            unshuffle_bits(&plain, typesize, out);
        } else {
            out.extend_from_slice(&plain);
        }
    }
    Ok(())
}

/// Decodes a block of `len` bytes into `plain`, still shuffled.
fn decode_block(header: &ChunkHeader, mut stored: &[u8], len: usize, is_rest: bool, plain: &mut Vec<u8>) -> Result<()> {
    let typesize = usize::from(header.typesize).max(1);
    let is_split =
        header.flags & NOT_SPLIT == 0 && typesize <= SPLIT_BYTES && len / typesize >= SPLIT_ELEMENTS && !is_rest;
    let parts = if is_split { typesize } else { 1 };
    let part_bytes = len / parts;
    plain.clear();
    for _ in 0..parts {
        let (count, rest) = stored.split_first_chunk().ok_or_else(|| damaged("a block is cut off"))?;
        let count = u32::from_le_bytes(*count) as usize;
        let part = rest.get(..count).ok_or_else(|| damaged("a block is cut off"))?;
        stored = &rest[count..];
        if count == part_bytes {
            plain.extend_from_slice(part);
        } else {
            let before = plain.len();
            expand(header, part, part_bytes, plain)?;
            if plain.len() - before != part_bytes {
                return Err(damaged(&format!("a part of {part_bytes} bytes decodes to {}", plain.len() - before)));
            }
        }
    }
    // what a split leaves over is not stored
    if plain.len() == len { Ok(()) } else { Err(damaged("a block is not a multiple of its elements")) }
}

/// The largest number of bytes that one compressed byte can stand for, but for zstd, whose frames state their length.
const MOST_EXPANSION: usize = 1 << 11;

/// Appends `len` decoded bytes to `plain`.
fn expand(header: &ChunkHeader, part: &[u8], len: usize, plain: &mut Vec<u8>) -> Result<()> {
    let codec = header.codec();
    let wrong = || damaged(&format!("{codec} data cannot be decoded"));
    if codec != "zstd" && len / MOST_EXPANSION > part.len() {
        return Err(damaged(&format!("{} bytes of {codec} data for {len} bytes", part.len())));
    }
    let start = plain.len();
    match codec {
        "blosclz" => return blosclz::decode(part, len, plain),
        "lz4" => {
            plain.resize(start + len, 0);
            let count = lz4_flex::block::decompress_into(part, &mut plain[start..]).map_err(|_| wrong())?;
            plain.truncate(start + count);
        }
        "snappy" => {
            if snap::raw::decompress_len(part).map_err(|_| wrong())? != len {
                return Err(wrong());
            }
            plain.resize(start + len, 0);
            snap::raw::Decoder::new().decompress(part, &mut plain[start..]).map_err(|_| wrong())?;
        }
        "zlib" => {
            plain.resize(start + len, 0);
            let count =
                libdeflater::Decompressor::new().zlib_decompress(part, &mut plain[start..]).map_err(|_| wrong())?;
            plain.truncate(start + count);
        }
        "zstd" => {
            if zstd::zstd_safe::get_frame_content_size(part).ok().flatten().is_some_and(|bytes| bytes != len as u64) {
                return Err(wrong());
            }
            plain.resize(start + len, 0);
            let count = zstd::bulk::decompress_to_buffer(part, &mut plain[start..]).map_err(|_| wrong())?;
            plain.truncate(start + count);
        }
        _ => return Err(Error::format(format!("a Blosc chunk with codec {}, 0 to 4 are known", header.flags >> 5))),
    }
    Ok(())
}
