//! Decodes one Blosc chunk: blocks that are split, compressed, and shuffled. A split block has one
//! part for each byte of an element, each a compressed stream; another block has a single part.
//! docs/reference/formats/blz.md, "A Blosc chunk".

use std::cell::RefCell;

use super::blosclz;
use crate::error::{Error, Result};
use crate::shuffle::{unshuffle, unshuffle_bits};

/// Bytes of the header of a Blosc chunk.
pub const HEADER_BYTES: usize = 16;

pub(super) const VERSION: u8 = 2;

/// Flag: bytes are shuffled.
pub(super) const SHUFFLED: u8 = 1;
/// Flag: the bytes follow the header as they are, not compressed.
pub(super) const COPIED: u8 = 2;
/// Flag: bits are shuffled.
const BIT_SHUFFLED: u8 = 4;
const RESERVED: u8 = 8;
pub(super) const NOT_SPLIT: u8 = 16;

/// Fewest elements in a block that is split.
pub(super) const SPLIT_ELEMENTS: usize = 128;
/// Largest element, in bytes, whose blocks are split.
pub(super) const SPLIT_BYTES: usize = 16;

/// The header of a Blosc chunk: flags, element size, decoded and stored size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkHeader {
    flags: u8,
    /// Bytes of an element, by which blocks are shuffled and split.
    typesize: u8,
    /// Size of the decoded chunk in bytes.
    pub bytes: u32,
    block_bytes: u32,
    /// Size of the chunk in bytes as it is stored, its header included.
    pub stored: u32,
}

impl ChunkHeader {
    /// Decodes the header of a Blosc chunk.
    ///
    /// # Errors
    /// `Format` if it contradicts itself or is of an unknown version.
    pub fn decode(header: &[u8; HEADER_BYTES]) -> Result<Self> {
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
            let message = format!(
                "a Blosc chunk with {} plain bytes takes {} bytes, expected {HEADER_BYTES} more than plain",
                found.bytes, found.stored
            );
            return Err(Error::format(message));
        }
        if !found.is_copied() && found.bytes > 0 && found.block_bytes == 0 {
            return Err(Error::format("the Blosc chunk is not empty but has blocks of 0 bytes"));
        }
        Ok(found)
    }

    fn is_copied(&self) -> bool {
        self.flags & COPIED != 0
    }

    /// Number of the chunk's codec in the parameters of Blosc's HDF5 filter; `None` if the codec is
    /// unknown.
    pub fn compressor(&self) -> Option<u32> {
        // 2 is the slow LZ4, whose chunks are as those of the fast one
        [0, 1, 3, 4, 5].get(usize::from(self.flags >> 5)).copied()
    }

    /// How the bytes of the chunk are shuffled, in the numbering of Blosc's HDF5 filter: 0 not at
    /// all, 1 by bytes, 2 by bits.
    pub fn shuffle(&self) -> u32 {
        match (self.flags & SHUFFLED, self.flags & BIT_SHUFFLED) {
            (0, 0) => 0,
            (0, _) => 2,
            _ => 1,
        }
    }

    /// Name of the codec that compressed the chunk, such as `lz4`.
    pub fn codec(&self) -> &'static str {
        ["blosclz", "lz4", "snappy", "zlib", "zstd"].get(usize::from(self.flags >> 5)).copied().unwrap_or("unknown")
    }
}

fn damaged(what: &str) -> Error {
    Error::format(format!("a Blosc chunk is damaged: {what}"))
}

struct Blocks<'a> {
    chunk: &'a [u8],
    header: ChunkHeader,
    starts: &'a [[u8; 4]],
}

impl<'a> Blocks<'a> {
    fn new(chunk: &'a [u8], header: ChunkHeader) -> Result<Self> {
        let (bytes, block_bytes) = (header.bytes as usize, header.block_bytes as usize);
        let count = if bytes == 0 { 0 } else { bytes.div_ceil(block_bytes) };
        let starts = chunk.get(HEADER_BYTES..HEADER_BYTES + 4 * count);
        let starts = starts.ok_or_else(|| damaged("its list of blocks is cut off"))?;
        Ok(Blocks { chunk, header, starts: starts.as_chunks().0 })
    }

    /// Calls `visit` for each block with its decoded length in bytes and its parts.
    fn visit(&self, mut visit: impl FnMut(usize, Parts<'a>) -> Result<()>) -> Result<()> {
        let (bytes, block_bytes) = (self.header.bytes as usize, self.header.block_bytes as usize);
        for (block, start) in self.starts.iter().enumerate() {
            let start = u32::from_le_bytes(*start) as usize;
            let len = block_bytes.min(bytes - block * block_bytes);
            let stored = self.chunk.get(start..).filter(|_| start >= HEADER_BYTES);
            let stored = stored.ok_or_else(|| damaged(&format!("block {block} begins at byte {start}")))?;
            let count = self.header.parts(len, len < block_bytes);
            // the bytes that a split leaves over are not stored
            if !len.is_multiple_of(count) {
                return Err(damaged("a block is not a multiple of its elements"));
            }
            visit(len, Parts { stored, count })?;
        }
        Ok(())
    }
}

struct Parts<'a> {
    stored: &'a [u8],
    count: usize,
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let part = self.stored.split_first_chunk().and_then(|(count, rest)| {
            let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*count) as usize)?;
            self.stored = rest;
            Some(part)
        });
        Some(part.ok_or_else(|| damaged("a block is cut off")))
    }
}

impl ChunkHeader {
    /// Number of parts of `len` decoded bytes; a shorter last block, `is_rest`, is not split.
    fn parts(&self, len: usize, is_rest: bool) -> usize {
        let typesize = usize::from(self.typesize).max(1);
        let is_split =
            self.flags & NOT_SPLIT == 0 && typesize <= SPLIT_BYTES && len / typesize >= SPLIT_ELEMENTS && !is_rest;
        if is_split { typesize } else { 1 }
    }
}

/// The header, and the whole chunk, without bytes after the size that the header states.
fn whole(chunk: &[u8]) -> Result<(ChunkHeader, &[u8])> {
    let header = chunk.first_chunk().ok_or_else(|| damaged("it has no header"))?;
    let header = ChunkHeader::decode(header)?;
    let chunk = chunk.get(..header.stored as usize).ok_or_else(|| damaged("it is cut off"))?;
    Ok((header, chunk))
}

/// Checks that all blocks of a Blosc chunk are present and their codec is known, without decoding
/// them.
///
/// # Errors
/// `Format` if it is damaged.
pub fn check(chunk: &[u8]) -> Result<()> {
    let (header, chunk) = whole(chunk)?;
    if header.is_copied() {
        return Ok(());
    }
    if header.compressor().is_none() {
        return Err(unknown_codec(&header));
    }
    Blocks::new(chunk, header)?.visit(|_, mut parts| parts.try_for_each(|part| part.map(drop)))
}

thread_local! {
    /// A decoded block that is still shuffled.
    static PLAIN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Decodes a Blosc chunk and appends its bytes to `out`; `most` is the largest accepted number of
/// decoded bytes.
///
/// # Errors
/// `Format` if it is damaged or longer than `most`.
pub fn decode(chunk: &[u8], most: u64, out: &mut Vec<u8>) -> Result<()> {
    let (header, chunk) = whole(chunk)?;
    if u64::from(header.bytes) > most {
        return Err(Error::format(format!("a Blosc chunk of {} bytes, at most {most} are expected", header.bytes)));
    }
    if header.is_copied() {
        out.extend_from_slice(&chunk[HEADER_BYTES..]);
        return Ok(());
    }
    let typesize = usize::from(header.typesize);
    PLAIN.with_borrow_mut(|plain| {
        Blocks::new(chunk, header)?.visit(|len, parts| {
            let start = out.len();
            let is_bytes = header.flags & SHUFFLED != 0 && typesize > 1;
            let is_bits = !is_bytes && header.flags & BIT_SHUFFLED != 0 && typesize > 0 && len >= typesize;
            if !is_bits && !is_bytes {
                return decode_block(&header, parts, len, start, out);
            }
            plain.clear();
            decode_block(&header, parts, len, 0, plain)?;
            out.resize(start + len, 0);
            match is_bits {
                true => unshuffle_bits(typesize, plain, &mut out[start..]),
                false => unshuffle(typesize, plain, &mut out[start..]),
            }
            Ok(())
        })
    })
}

/// Writes `len` decoded bytes from index `start` of `out` on, still shuffled.
fn decode_block(header: &ChunkHeader, parts: Parts<'_>, len: usize, start: usize, out: &mut Vec<u8>) -> Result<()> {
    let part_bytes = len / parts.count;
    for (number, part) in parts.enumerate() {
        let part = part?;
        if part.len() == part_bytes {
            out.extend_from_slice(part);
            continue;
        }
        let codec = header.codec();
        let most = if codec == "zstd" { MAX_EXPANSION_ZSTD } else { MAX_EXPANSION };
        if part_bytes / most > part.len() {
            return Err(damaged(&format!("{} bytes of {codec} data for {part_bytes} bytes", part.len())));
        }
        let at = start + number * part_bytes;
        out.resize(at + part_bytes, 0);
        let found = expand(header, part, &mut out[at..])?;
        if found != part_bytes {
            return Err(damaged(&format!("a part of {part_bytes} bytes decodes to {found}")));
        }
    }
    Ok(())
}

/// Most bytes that one compressed byte can decode to, in all codecs but zstd.
const MAX_EXPANSION: usize = 1 << 11;
/// The same for zstd: 4 bytes may be a block of 128 KiB.
const MAX_EXPANSION_ZSTD: usize = 1 << 15;

fn unknown_codec(header: &ChunkHeader) -> Error {
    Error::format(format!("a Blosc chunk with codec {}, 0 to 4 are known", header.flags >> 5))
}

pub(crate) fn not_built(codec: &str) -> Error {
    Error::unsupported(format!("{codec} data needs the feature {codec:?} of the crate blosc-arrays"))
}

/// Decompresses a part into `out`; returns the number of bytes.
fn expand(header: &ChunkHeader, part: &[u8], out: &mut [u8]) -> Result<usize> {
    let codec = header.codec();
    let wrong = || damaged(&format!("{codec} data cannot be decoded"));
    match codec {
        "blosclz" => blosclz::decode(part, out).ok_or_else(wrong),
        "lz4" => lz4_flex::block::decompress_into(part, out).map_err(|_| wrong()),
        "snappy" => {
            if snap::raw::decompress_len(part).map_err(|_| wrong())? != out.len() {
                return Err(wrong());
            }
            snap::raw::Decoder::new().decompress(part, out).map_err(|_| wrong())
        }
        #[cfg(feature = "zlib")]
        "zlib" => libdeflater::Decompressor::new().zlib_decompress(part, out).map_err(|_| wrong()),
        #[cfg(feature = "zstd")]
        "zstd" => zstd::bulk::decompress_to_buffer(part, out).map_err(|_| wrong()),
        _ if header.compressor().is_some() => Err(not_built(codec)),
        _ => Err(unknown_codec(header)),
    }
}
