//! Encodes Blosc chunks in the format of the Blosc 1 library, about as small as the chunks that the
//! library writes.

use std::cell::RefCell;
use std::str::FromStr;

#[cfg(not(all(feature = "zlib", feature = "zstd")))]
use super::chunk::not_built;
use super::chunk::{COPIED, HEADER_BYTES, NOT_SPLIT, SHUFFLED, SPLIT_BYTES, SPLIT_ELEMENTS, VERSION};
use crate::error::{Error, Result};
use crate::shuffle::shuffle;

/// Largest block that is written, in bytes.
const BLOCK_BYTES: usize = 256 << 10;

/// Shorter chunks, in decoded bytes, are stored as plain copies, without compression.
const LEAST_BYTES: usize = 128;

/// Most decoded bytes that a chunk can hold.
const MAX_BYTES: usize = i32::MAX as usize - HEADER_BYTES;

/// A codec with which Blosc chunks can be compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BloscCodec {
    /// LZ4, the fastest.
    Lz4,
    /// Snappy.
    Snappy,
    /// The DEFLATE of zlib; needs the feature `zlib`.
    Zlib,
    /// Zstandard; needs the feature `zstd`.
    Zstd,
}

impl BloscCodec {
    /// Name of the codec as the metadata of an array of Blosc chunks has it, such as `lz4`.
    pub fn name(self) -> &'static str {
        match self {
            BloscCodec::Lz4 => "lz4",
            BloscCodec::Snappy => "snappy",
            BloscCodec::Zlib => "zlib",
            BloscCodec::Zstd => "zstd",
        }
    }

    /// Number of the codec in the flags of a chunk.
    fn number(self) -> u8 {
        match self {
            BloscCodec::Lz4 => 1,
            BloscCodec::Snappy => 2,
            BloscCodec::Zlib => 3,
            BloscCodec::Zstd => 4,
        }
    }
}

impl FromStr for BloscCodec {
    type Err = Error;

    /// `lz4hc` becomes LZ4, which has the same decoder, and `blosclz` LZ4, which every Blosc 1
    /// since 2014 can decode; `Format` for an unknown name.
    fn from_str(name: &str) -> Result<Self> {
        match name {
            "lz4" | "lz4hc" | "blosclz" => Ok(BloscCodec::Lz4),
            "snappy" => Ok(BloscCodec::Snappy),
            "zlib" => Ok(BloscCodec::Zlib),
            "zstd" => Ok(BloscCodec::Zstd),
            _ => Err(Error::format(format!("the codec {name:?} is not one of Blosc"))),
        }
    }
}

/// How Blosc chunks are compressed: codec, level, shuffling, element size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkSettings {
    /// Codec of the blocks; a block that it does not make smaller is stored as it is.
    pub codec: BloscCodec,
    /// Compression level from 0, plain copies, to 9.
    pub level: u8,
    /// Whether the bytes of elements are sorted by their position in the element before they are
    /// compressed.
    pub shuffle: bool,
    /// Size of an element in bytes, for shuffling; Blosc stores at most 255.
    pub typesize: usize,
}

impl ChunkSettings {
    /// The element size in bytes as headers of Blosc chunks store it, in one byte: 1 if the size
    /// exceeds 255.
    pub fn typesize(&self) -> u8 {
        u8::try_from(self.typesize).unwrap_or(1).max(1)
    }

    /// The number of the codec in the parameters of Blosc's HDF5 filter.
    pub fn compressor(&self) -> u32 {
        [1, 3, 4, 5][usize::from(self.codec.number()) - 1]
    }
}

/// Memory that a thread reuses for the next chunk that it compresses.
#[derive(Default)]
struct Scratch {
    planes: Vec<u8>,
    part: Vec<u8>,
    compressors: Compressors,
}

/// The levels are those for which the compressors were made.
#[derive(Default)]
struct Compressors {
    #[cfg(feature = "zlib")]
    zlib: Option<(u8, libdeflater::Compressor)>,
    #[cfg(feature = "zstd")]
    zstd: Option<(u8, zstd::bulk::Compressor<'static>)>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Compresses bytes to a Blosc chunk, which is appended to `out`.
///
/// # Errors
/// `Unsupported` for 2 GiB or more, and for a codec whose feature is off.
pub fn encode(bytes: &[u8], settings: &ChunkSettings, out: &mut Vec<u8>) -> Result<()> {
    if bytes.len() > MAX_BYTES {
        return Err(Error::unsupported(format!("a Blosc chunk has less than 2 GiB, these are {} bytes", bytes.len())));
    }
    let start = out.len();
    if settings.level > 0 && bytes.len() >= LEAST_BYTES {
        SCRATCH.with_borrow_mut(|scratch| encode_blocks(bytes, settings, scratch, out))?;
        if out.len() - start < bytes.len() + HEADER_BYTES {
            return Ok(());
        }
        out.truncate(start);
    }
    put_header(out, settings, COPIED, bytes.len(), bytes.len());
    put_stored(out, start, bytes.len() + HEADER_BYTES);
    out.extend_from_slice(bytes);
    Ok(())
}

fn put_header(out: &mut Vec<u8>, settings: &ChunkSettings, flags: u8, bytes: usize, block: usize) {
    out.extend([VERSION, 1, flags, settings.typesize()]);
    for number in [bytes, block, 0] {
        out.extend((number as u32).to_le_bytes());
    }
}

/// Writes the stored length of the chunk that begins at index `start` of `out` into its header.
fn put_stored(out: &mut [u8], start: usize, len: usize) {
    out[start + 12..start + 16].copy_from_slice(&(len as u32).to_le_bytes());
}

fn encode_blocks(bytes: &[u8], settings: &ChunkSettings, scratch: &mut Scratch, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let typesize = usize::from(settings.typesize());
    let most = bytes.len().min(BLOCK_BYTES.max(typesize));
    let block_bytes = most / typesize * typesize;
    let block_bytes = if block_bytes == 0 { most } else { block_bytes };
    let is_shuffled = settings.shuffle && typesize > 1;
    // as Blosc does it: zlib and zstd take more from a whole block
    let is_split = matches!(settings.codec, BloscCodec::Lz4 | BloscCodec::Snappy);
    let shuffled = if is_shuffled { SHUFFLED } else { 0 };
    let flags = settings.codec.number() << 5 | shuffled | if is_split { 0 } else { NOT_SPLIT };
    put_header(out, settings, flags, bytes.len(), block_bytes);
    let blocks = bytes.chunks(block_bytes);
    let list = out.len();
    out.resize(list + 4 * blocks.len(), 0);
    for (number, block) in blocks.enumerate() {
        let at = out.len() - start;
        out[list + 4 * number..][..4].copy_from_slice(&(at as u32).to_le_bytes());
        let is_whole = block.len() == block_bytes;
        let parts = match is_split && typesize <= SPLIT_BYTES && block.len() / typesize >= SPLIT_ELEMENTS && is_whole {
            true => typesize,
            false => 1,
        };
        let Scratch { planes, part: packed, compressors } = scratch;
        let planes = match is_shuffled {
            true => {
                planes.resize(block.len(), 0);
                shuffle(typesize, block, planes);
                &planes[..]
            }
            false => block,
        };
        for part in planes.chunks_exact(block.len() / parts) {
            compressors.compress(part, settings, packed)?;
            let stored = if packed.len() < part.len() { &packed[..] } else { part };
            out.extend((stored.len() as u32).to_le_bytes());
            out.extend_from_slice(stored);
        }
        if out.len() - start >= bytes.len() + HEADER_BYTES {
            break;
        }
    }
    let len = out.len() - start;
    put_stored(out, start, len);
    Ok(())
}

impl Compressors {
    /// Compresses a part of a block to the content of `out`, which can be longer than the part.
    fn compress(&mut self, part: &[u8], settings: &ChunkSettings, out: &mut Vec<u8>) -> Result<()> {
        let failed = |error: &dyn std::fmt::Display| Error::format(format!("bytes cannot be compressed: {error}"));
        match settings.codec {
            BloscCodec::Lz4 => {
                out.resize(lz4_flex::block::get_maximum_output_size(part.len()), 0);
                let len = lz4_flex::block::compress_into(part, out).map_err(|error| failed(&error))?;
                out.truncate(len);
            }
            BloscCodec::Snappy => {
                out.resize(snap::raw::max_compress_len(part.len()), 0);
                let len = snap::raw::Encoder::new().compress(part, out).map_err(|error| failed(&error))?;
                out.truncate(len);
            }
            #[cfg(feature = "zlib")]
            BloscCodec::Zlib => {
                let level = settings.level;
                let kept = self.zlib.take().filter(|(has, _)| *has == level);
                let new = || (level, libdeflater::Compressor::new(zlib_level(level)));
                let (_, compressor) = self.zlib.insert(kept.unwrap_or_else(new));
                out.resize(compressor.zlib_compress_bound(part.len()), 0);
                let len = compressor.zlib_compress(part, out).map_err(|error| failed(&error))?;
                out.truncate(len);
            }
            #[cfg(feature = "zstd")]
            BloscCodec::Zstd => {
                let level = settings.level;
                let kept = self.zstd.take().filter(|(has, _)| *has == level);
                let (_, compressor) = self.zstd.insert(match kept {
                    Some(kept) => kept,
                    // Blosc's levels 1 to 9 stand for 1 to 17
                    None => (level, zstd::bulk::Compressor::new(2 * i32::from(level) - 1)?),
                });
                out.clear();
                out.reserve(zstd::zstd_safe::compress_bound(part.len()));
                compressor.compress_to_buffer(part, out)?;
            }
            #[cfg(not(all(feature = "zlib", feature = "zstd")))]
            codec => return Err(not_built(codec.name())),
        }
        Ok(())
    }
}

#[cfg(feature = "zlib")]
fn zlib_level(level: u8) -> libdeflater::CompressionLvl {
    libdeflater::CompressionLvl::new(level.into()).unwrap_or_default()
}
