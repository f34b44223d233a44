//! Reads files of Blosc chunks: bloscpack files of all versions, and the files that blz and bcolz
//! write for each chunk. The format: docs/reference/formats/blz.md.

use std::sync::Arc;

use crate::blosc::{self, ChunkHeader, HEADER_BYTES};
use crate::checksum::Checksum;
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{ReadAt, read_array, read_bytes};
use crate::json::Document;
use crate::limits;

pub(crate) const MAGIC: [u8; 4] = *b"blpk";

/// Begins the metadata header in bloscpack files of version 3; files of 2012, before it, lack it.
pub(crate) const METADATA_MAGIC: [u8; 8] = *b"JSON\0\0\0\0";

const HAS_OFFSETS: u8 = 1;
const HAS_METADATA: u8 = 2;
const IS_METADATA_DEFLATED: u8 = 4;

/// Largest decoded metadata that are accepted, in bytes.
const MAX_METADATA: u64 = 1 << 26;

const OFFSETS: u64 = 1 << 12;

/// Number, position and header of a chunk in a file of Blosc chunks.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Number of the chunk within its file, counted from 0.
    pub(crate) number: u64,
    position: u64,
    header: ChunkHeader,
}

impl Place {
    /// Size of the chunk's content when decoded, in bytes.
    pub fn bytes(&self) -> u64 {
        self.header.bytes.into()
    }

    /// Without the checksum.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.header.stored.into()
    }

    pub fn header(&self) -> &ChunkHeader {
        &self.header
    }

    fn place(&self) -> Context {
        Context::offset(format!("chunk {}", self.number), self.position)
    }
}

/// A file of Blosc chunks, such as bloscpack's, whose header has been read.
#[derive(Debug)]
pub struct Superchunk {
    file: Arc<dyn ReadAt>,
    len: u64,
    pub(crate) version: u8,
    pub(crate) checksum: Checksum,
    /// The keys are `dtype` and `shape` if an array was stored; `None` if the file has no metadata.
    pub(crate) metadata: Option<Document>,
    /// Number of chunks that the header states; without it the file has chunks up to its end.
    count: Option<u64>,
    /// Decoded bytes of every chunk but the last, and of the last, as the header states.
    sizes: [Option<u32>; 2],
    /// Offset of the list of chunk offsets.
    offsets: Option<u64>,
    first: u64,
}

impl Superchunk {
    /// Chunks are found by [`walk`](Self::walk); `Format` if the header is damaged or of an unknown
    /// version.
    pub(crate) fn open(file: Arc<dyn ReadAt>) -> Result<Self> {
        let opened = Self::read(file)?;
        let (len, most) = (opened.len, opened.len / HEADER_BYTES as u64);
        if opened.count.is_some_and(|count| count > most) {
            let message =
                format!("{} chunks do not fit into the file, which has {len} bytes", opened.count.unwrap_or(0));
            return Err(Error::format(message).context(Context::offset("header", 0)));
        }
        Ok(opened)
    }

    pub(crate) fn walk(&self) -> Walk<'_> {
        Walk { file: self, number: 0, at: self.first, offsets: Vec::new(), is_over: false }
    }

    /// Position and header of the first chunk of the file; `None` if it has no chunks.
    ///
    /// # Errors
    /// As [`walk`](Self::walk).
    pub fn first(&self) -> Result<Option<Place>> {
        self.walk().next().transpose()
    }

    /// Compressed, and compared with the checksum; `Format` if damaged.
    pub(crate) fn stored(&self, place: &Place) -> Result<Vec<u8>> {
        let stored = place.header.stored as usize;
        let read = || -> Result<_> {
            let mut bytes = read_bytes(&*self.file, place.position, stored as u64 + self.checksum.len() as u64)?;
            self.checksum.verify(&bytes[..stored], &bytes[stored..])?;
            bytes.truncate(stored);
            Ok(bytes)
        };
        read().with_context(|| place.place())
    }

    /// As [`stored`](Self::stored), after each block of the chunk was found to be present.
    pub(crate) fn stored_whole(&self, place: &Place) -> Result<Vec<u8>> {
        let bytes = self.stored(place)?;
        blosc::check(&bytes).with_context(|| place.place())?;
        Ok(bytes)
    }

    /// Appends the decoded bytes to `out`; `Format` if they do not fit the checksum.
    pub(crate) fn decode(&self, place: &Place, out: &mut Vec<u8>) -> Result<()> {
        blosc::decode(&self.stored(place)?, place.bytes(), out).with_context(|| place.place())
    }

    /// Decoded size: as the header states it, else the sum over the chunks.
    pub(crate) fn bytes(&self) -> Result<u64> {
        match (self.count, self.sizes) {
            (Some(0), _) => Ok(0),
            (Some(count), [Some(size), Some(last)]) => {
                let bytes = (count - 1).checked_mul(size.into()).and_then(|bytes| bytes.checked_add(last.into()));
                bytes.ok_or_else(|| Error::format(format!("{count} chunks of {size} bytes exceed 2^64 bytes")))
            }
            _ => self.walk().try_fold(0, |bytes, place| Ok(bytes + place?.bytes())),
        }
    }
}

/// Each step reads the header of one chunk.
pub(crate) struct Walk<'a> {
    file: &'a Superchunk,
    number: u64,
    at: u64,
    /// Offsets of the next chunks, the next one last; -1 for a chunk that begins where the previous
    /// one ends. Several are read at once from the file's list of offsets.
    offsets: Vec<i64>,
    is_over: bool,
}

impl Walk<'_> {
    fn read(&mut self, number: u64) -> Result<Place> {
        let file = self.file;
        if let Some(list) = file.offsets {
            if self.offsets.is_empty() {
                let count = file.count.unwrap_or(0).saturating_sub(number).min(OFFSETS);
                let bytes = read_bytes(&*file.file, list + 8 * number, 8 * count)?;
                self.offsets = bytes.as_chunks().0.iter().rev().map(|offset| i64::from_le_bytes(*offset)).collect();
            }
            let offset = self.offsets.pop().unwrap_or(-1);
            if offset != -1 {
                let offset = u64::try_from(offset).ok().filter(|&offset| offset < file.len);
                self.at =
                    offset.ok_or_else(|| Error::format(format!("the offset of chunk {number} is not in the file")))?;
            }
        }
        let position = self.at;
        let read = || {
            let header = ChunkHeader::decode(&read_array(&*file.file, position)?)?;
            let end = position + u64::from(header.stored) + file.checksum.len() as u64;
            if end > file.len {
                return Err(Error::format(format!("it ends at byte {end}, the file has {} bytes", file.len)));
            }
            let is_last = file.count.map_or(end + HEADER_BYTES as u64 > file.len, |count| number + 1 >= count);
            let stated = file.sizes[usize::from(is_last)];
            match stated.filter(|&bytes| bytes != header.bytes) {
                None => Ok((header, end)),
                Some(bytes) => Err(Error::format(format!("the chunk has {} bytes, {bytes} are stated", header.bytes))),
            }
        };
        let (header, end) = read().with_context(|| Context::offset(format!("chunk {number}"), position))?;
        self.at = end;
        Ok(Place { number, position, header })
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<Place>;

    /// `None` at the end and after an error.
    fn next(&mut self) -> Option<Result<Place>> {
        let Superchunk { count, len, .. } = self.file;
        if self.is_over || count.map_or(self.at + HEADER_BYTES as u64 > *len, |count| self.number >= count) {
            return None;
        }
        let place = self.read(self.number);
        self.number += 1;
        self.is_over = place.is_err();
        Some(place)
    }
}

impl Superchunk {
    fn read(file: Arc<dyn ReadAt>) -> Result<Self> {
        let read = || {
            let len = file.len()?;
            let start: [u8; 16] = read_array(&*file, 0)?;
            if start[..4] != MAGIC {
                return Err(Error::format("a bloscpack file begins with \"blpk\", this one does not"));
            }
            match start[4] {
                1 => {
                    let count = count(i64::from_le_bytes(read_array(&*file, 8)?))?;
                    let (version, checksum, sizes, file) = (1, Checksum::NONE, [None; 2], file.clone());
                    let (metadata, offsets, first) = (None, None, 16);
                    Ok(Superchunk { file, len, version, checksum, metadata, count, sizes, offsets, first })
                }
                version @ (2 | 3) => Self::read_long(&file, len, version),
                version => Err(Error::format(format!("bloscpack version {version}: 1 to 3 are known"))),
            }
        };
        read().context(Context::offset("header", 0))
    }

    fn read_long(source: &Arc<dyn ReadAt>, len: u64, version: u8) -> Result<Self> {
        let file = &**source;
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
                Err(_) => Err(Error::format(format!("the size of a chunk is {size} bytes, expected -1 or more"))),
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
            let fits = |&entries: &u64| entries <= len / 8;
            let entries = entries.filter(fits).ok_or_else(|| {
                Error::format(format!("the list of {count:?} and {more} offsets is longer than the file"))
            })?;
            offsets = Some(first);
            first += 8 * entries;
        }
        let file = source.clone();
        Ok(Superchunk { file, len, version, checksum, metadata, count, sizes, offsets, first })
    }
}

fn count(stored: i64) -> Result<Option<u64>> {
    match stored {
        -1 => Ok(None),
        stored => match u64::try_from(stored) {
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(Error::format(format!("the number of chunks is {stored}, expected -1 or more"))),
        },
    }
}

/// Reads a file of version 3; also returns the offset of the end of metadata and header.
fn read_metadata(file: &dyn ReadAt) -> Result<(Document, u64)> {
    let header: [u8; 32] = read_array(file, 32)?;
    let number =
        |at: usize| u64::from(u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]));
    let checksum = Checksum::of_number(header[9])?;
    let (plain, most, stored) = (number(12), number(16), number(20));
    let read = || {
        limits::whole_file(plain)?;
        if stored > most || plain > MAX_METADATA {
            return Err(Error::format(format!(
                "the metadata has {plain} bytes, stored as {stored}, but the file reserves {most}"
            )));
        }
        let bytes = read_bytes(file, 64, stored)?;
        checksum.verify(&bytes, &read_bytes(file, 64 + most, checksum.len() as u64)?)?;
        let bytes = match header[10] {
            0 => bytes,
            1 => inflate(&bytes, plain)?,
            codec => return Err(Error::format(format!("the codec of the metadata is {codec}, expected 0 or 1"))),
        };
        if bytes.len() as u64 != plain {
            return Err(Error::format(format!(
                "the metadata have {} bytes, but their header states {plain}",
                bytes.len()
            )));
        }
        Document::decode(&bytes)
    };
    Ok((read().context(Context::offset("metadata", 32))?, 64 + most + checksum.len() as u64))
}

/// Files from 2012, before version 3: `stored` bytes from byte 32 on, zlib data if bit 2 of the
/// header's `options` is set. Also returns the offset of their end.
fn read_early_metadata(file: &dyn ReadAt, options: u8, stored: u64) -> Result<(Document, u64)> {
    let read = || {
        let bytes = read_bytes(file, 32, stored)?;
        let bytes = if options & IS_METADATA_DEFLATED == 0 { bytes } else { inflate_any(&bytes)? };
        Document::decode(&bytes)
    };
    Ok((read().context(Context::offset("metadata", 32))?, 32 + stored))
}

/// Decompresses zlib data of `len` decoded bytes.
fn inflate(bytes: &[u8], len: u64) -> Result<Vec<u8>> {
    let mut out = vec![0; len as usize];
    match inflate_into(bytes, &mut out)? {
        Some(count) if count == out.len() => Ok(out),
        _ => Err(cannot_be_decoded()),
    }
}

/// Decompresses zlib data of unknown decoded length.
fn inflate_any(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = vec![0; (4 * bytes.len()).clamp(1 << 12, MAX_METADATA as usize)];
    loop {
        match inflate_into(bytes, &mut out)? {
            Some(count) => {
                out.truncate(count);
                return Ok(out);
            }
            None if (out.len() as u64) < MAX_METADATA => {
                let len = 4 * out.len();
                out.resize(len.min(MAX_METADATA as usize), 0);
            }
            None => return Err(cannot_be_decoded()),
        }
    }
}

fn cannot_be_decoded() -> Error {
    Error::format("the zlib data cannot be decoded")
}

/// Decompresses into `out`; returns the number of bytes, `None` if `out` is too short.
#[cfg(feature = "zlib")]
fn inflate_into(bytes: &[u8], out: &mut [u8]) -> Result<Option<usize>> {
    use libdeflater::{DecompressionError, Decompressor};
    match Decompressor::new().zlib_decompress(bytes, out) {
        Ok(count) => Ok(Some(count)),
        Err(DecompressionError::InsufficientSpace) => Ok(None),
        Err(_) => Err(cannot_be_decoded()),
    }
}

#[cfg(not(feature = "zlib"))]
fn inflate_into(_bytes: &[u8], _out: &mut [u8]) -> Result<Option<usize>> {
    Err(blosc::not_built("zlib"))
}
