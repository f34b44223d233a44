//! Files of Blosc chunks: bloscpack, in all its versions. docs/formats/blz.md.

use std::sync::Arc;

use super::checksum::Checksum;
use super::chunk::{self, ChunkHeader, HEADER_BYTES};
use super::json;
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{ReadAt, read_array, read_bytes};
use crate::limits;

/// First bytes of every file.
pub(super) const MAGIC: [u8; 4] = *b"blpk";

/// First bytes of the metadata header of version 3 as it was released.
const METADATA_MAGIC: [u8; 8] = *b"JSON\0\0\0\0";

const HAS_OFFSETS: u8 = 1;
const HAS_METADATA: u8 = 2;
const IS_METADATA_DEFLATED: u8 = 4;

/// Longest metadata that are decoded.
const MOST_METADATA: u64 = 1 << 26;

/// A chunk of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    position: u64,
    /// Bytes as stored, without checksum.
    stored: u32,
    /// Bytes of the decoded chunk.
    pub(super) bytes: u32,
}

/// A file of chunks.
#[derive(Debug)]
pub(super) struct Superchunk {
    file: Arc<dyn ReadAt>,
    pub(super) version: u8,
    pub(super) checksum: Checksum,
    /// JSON; the keys `dtype` and `shape` if an array was stored.
    pub(super) metadata: Option<serde_json::Value>,
    pub(super) chunks: Vec<Place>,
}

/// The header, as far as it tells where chunks are.
struct Header {
    version: u8,
    checksum: Checksum,
    metadata: Option<serde_json::Value>,
    /// `None`: as many as there are.
    count: Option<u64>,
    /// Bytes of every chunk but the last, and of the last, if stated.
    sizes: [Option<u32>; 2],
    /// Position of the list of offsets, and where the chunks begin.
    offsets: Option<u64>,
    first: u64,
}

impl Superchunk {
    /// Reads the header of the file and of each chunk.
    ///
    /// # Errors
    /// `Format` if the file is damaged or of an unknown version.
    pub(super) fn open(file: Arc<dyn ReadAt>) -> Result<Self> {
        let header = Header::read(&*file)?;
        let len = file.len()?;
        let most = len / HEADER_BYTES as u64;
        if header.count.is_some_and(|count| count > most) {
            let message = format!("{} chunks in a file of {len} bytes", header.count.unwrap_or(0));
            return Err(Error::format(message).context(Context::offset("header", 0)));
        }
        let (mut chunks, mut at) = (Vec::new(), header.first);
        loop {
            let number = chunks.len() as u64;
            let is_last = header.count.map_or(at + HEADER_BYTES as u64 > len, |count| number >= count);
            if is_last {
                break;
            }
            if let Some(offsets) = header.offsets {
                let offset = i64::from_le_bytes(read_array(&*file, offsets + 8 * number)?);
                if offset != -1 {
                    let offset = u64::try_from(offset).ok().filter(|&offset| offset < len);
                    at = offset
                        .ok_or_else(|| Error::format(format!("the offset of chunk {number} is not in the file")))?;
                }
            }
            let read = || {
                let found = ChunkHeader::decode(&read_array(&*file, at)?)?;
                let end = at + u64::from(found.stored) + header.checksum.len() as u64;
                match end <= len {
                    true => Ok((found, end)),
                    false => Err(Error::format(format!("it ends at byte {end}, the file has {len} bytes"))),
                }
            };
            let (found, end) = read().with_context(|| Context::offset(format!("chunk {number}"), at))?;
            chunks.push(Place { position: at, stored: found.stored, bytes: found.bytes });
            at = end;
        }
        let opened =
            Superchunk { file, version: header.version, checksum: header.checksum, metadata: header.metadata, chunks };
        opened.check_sizes(header.sizes)?;
        Ok(opened)
    }

    fn check_sizes(&self, [size, last]: [Option<u32>; 2]) -> Result<()> {
        let Some((end, others)) = self.chunks.split_last() else { return Ok(()) };
        let wrong = |chunk: &Place, size: u32| {
            Err(Error::format(format!("a chunk has {} bytes, {size} are stated", chunk.bytes)))
        };
        if let (Some(size), Some(other)) =
            (size, others.iter().find(|chunk| size.is_some_and(|size| chunk.bytes != size)))
        {
            return wrong(other, size);
        }
        match last {
            Some(last) if last != end.bytes => wrong(end, last),
            _ => Ok(()),
        }
    }

    /// A chunk as it is stored, compared with its checksum.
    ///
    /// # Errors
    /// `Format` if it is damaged.
    pub(super) fn stored(&self, number: usize) -> Result<Vec<u8>> {
        let Place { position, stored, .. } = self.chunks[number];
        let read = || -> Result<_> {
            let mut bytes = read_bytes(&*self.file, position, u64::from(stored) + self.checksum.len() as u64)?;
            self.checksum.verify(&bytes[..stored as usize], &bytes[stored as usize..])?;
            bytes.truncate(stored as usize);
            Ok(bytes)
        };
        read().with_context(|| Context::offset(format!("chunk {number}"), position))
    }

    /// Appends a decoded chunk of at most `most` bytes to `out`.
    ///
    /// # Errors
    /// `Format` if it is damaged.
    pub(super) fn decode(&self, number: usize, most: u64, out: &mut Vec<u8>) -> Result<()> {
        let Place { position, bytes, .. } = self.chunks[number];
        let before = out.len();
        chunk::decode(&self.stored(number)?, most, out)
            .with_context(|| Context::offset(format!("chunk {number}"), position))?;
        debug_assert_eq!(out.len() - before, bytes as usize);
        Ok(())
    }

    /// Bytes of all chunks together, decoded.
    pub(super) fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.bytes)).sum()
    }

    /// Name of the codec of the first chunk.
    pub(super) fn codec(&self) -> Option<&'static str> {
        let first = self.chunks.first()?;
        Some(ChunkHeader::decode(&read_array(&*self.file, first.position).ok()?).ok()?.codec())
    }
}

impl Header {
    fn read(file: &dyn ReadAt) -> Result<Self> {
        let read = || {
            let start: [u8; 16] = read_array(file, 0)?;
            if start[..4] != MAGIC {
                return Err(Error::format("a bloscpack file begins with \"blpk\", this one does not"));
            }
            match start[4] {
                1 => {
                    let count = count(i64::from_le_bytes(read_array(file, 8)?))?;
                    let (version, checksum, sizes) = (1, Checksum::NONE, [None; 2]);
                    Ok(Header { version, checksum, metadata: None, count, sizes, offsets: None, first: 16 })
                }
                version @ (2 | 3) => Self::read_long(file, version),
                version => Err(Error::format(format!("bloscpack version {version}: 1 to 3 are known"))),
            }
        };
        read().context(Context::offset("header", 0))
    }

    fn read_long(file: &dyn ReadAt, version: u8) -> Result<Self> {
        let start: [u8; 32] = read_array(file, 0)?;
        let options = start[5];
        if options & !(HAS_OFFSETS | HAS_METADATA | IS_METADATA_DEFLATED) != 0 {
            return Err(Error::format(format!("options {options:#04x}: only bits 0 to 2 are known")));
        }
        let checksum = Checksum::of_number(start[6])?;
        let size = |at: usize| match i32::from_le_bytes([start[at], start[at + 1], start[at + 2], start[at + 3]]) {
            -1 => Ok(None),
            size => match u32::try_from(size) {
                Ok(size) => Ok(Some(size)),
                Err(_) => Err(Error::format(format!("chunks of {size} bytes"))),
            },
        };
        let sizes = [size(8)?, size(12)?];
        let count = count(i64::from_le_bytes(read_array(file, 16)?))?;
        let spare = i64::from_le_bytes(read_array(file, 24)?);
        let (mut metadata, mut first, mut more) = (None, 32, if version == 3 { spare } else { 0 });
        if version == 3 && options & HAS_METADATA != 0 {
            let is_released = read_array(file, 32).is_ok_and(|magic: [u8; 8]| magic == METADATA_MAGIC);
            let (value, end) = match is_released {
                true => read_metadata(file)?,
                false => {
                    more = 0;
                    read_early_metadata(file, options, u64::from(spare as u32))?
                }
            };
            (metadata, first) = (Some(value), end);
        }
        let mut offsets = None;
        if options & HAS_OFFSETS != 0 {
            let entries = count.and_then(|count| count.checked_add(u64::try_from(more).ok()?));
            let fits = |&entries: &u64| entries <= file.len().unwrap_or(0) / 8;
            let entries =
                entries.filter(fits).ok_or_else(|| Error::format(format!("a list of {count:?} and {more} offsets")))?;
            offsets = Some(first);
            first += 8 * entries;
        }
        Ok(Header { version, checksum, metadata, count, sizes, offsets, first })
    }
}

fn count(stored: i64) -> Result<Option<u64>> {
    match stored {
        -1 => Ok(None),
        stored => match u64::try_from(stored) {
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(Error::format(format!("{stored} chunks"))),
        },
    }
}

/// Metadata of version 3 as it was released, and where they end.
fn read_metadata(file: &dyn ReadAt) -> Result<(serde_json::Value, u64)> {
    let header: [u8; 32] = read_array(file, 32)?;
    let number =
        |at: usize| u64::from(u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]));
    let checksum = Checksum::of_number(header[9])?;
    let (plain, most, stored) = (number(12), number(16), number(20));
    let read = || {
        limits::whole_file(plain)?;
        if stored > most || plain > MOST_METADATA {
            return Err(Error::format(format!("{plain} bytes, stored as {stored} in space for {most}")));
        }
        let bytes = read_bytes(file, 64, stored)?;
        checksum.verify(&bytes, &read_bytes(file, 64 + most, checksum.len() as u64)?)?;
        let bytes = match header[10] {
            0 => bytes,
            1 => inflate(&bytes, plain)?,
            codec => return Err(Error::format(format!("codec {codec}: 0 and 1 are known"))),
        };
        if bytes.len() as u64 != plain {
            return Err(Error::format(format!("{} bytes, {plain} are stated", bytes.len())));
        }
        json::decode(&bytes)
    };
    Ok((read().context(Context::offset("metadata", 32))?, 64 + most + checksum.len() as u64))
}

/// Metadata of version 3 as it was in 2012, before its release.
fn read_early_metadata(file: &dyn ReadAt, options: u8, stored: u64) -> Result<(serde_json::Value, u64)> {
    let read = || {
        let bytes = read_bytes(file, 32, stored)?;
        let bytes = if options & IS_METADATA_DEFLATED == 0 { bytes } else { inflate_any(&bytes)? };
        json::decode(&bytes)
    };
    Ok((read().context(Context::offset("metadata", 32))?, 32 + stored))
}

fn inflate(bytes: &[u8], len: u64) -> Result<Vec<u8>> {
    let mut out = vec![0; len as usize];
    let count = libdeflater::Decompressor::new().zlib_decompress(bytes, &mut out);
    match count {
        Ok(count) if count == out.len() => Ok(out),
        _ => Err(Error::format("the zlib data cannot be decoded")),
    }
}

/// Inflates data of unknown length.
fn inflate_any(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = vec![0; (4 * bytes.len()).clamp(1 << 12, MOST_METADATA as usize)];
    loop {
        match libdeflater::Decompressor::new().zlib_decompress(bytes, &mut out) {
            Ok(count) => {
                out.truncate(count);
                return Ok(out);
            }
            Err(libdeflater::DecompressionError::InsufficientSpace) if (out.len() as u64) < MOST_METADATA => {
                let len = 4 * out.len();
                out.resize(len.min(MOST_METADATA as usize), 0);
            }
            Err(_) => return Err(Error::format("the zlib data cannot be decoded")),
        }
    }
}
