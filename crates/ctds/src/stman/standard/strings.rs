//! The string heap of StandardStMan: strings that do not fit their cell, and all arrays of strings.
//! formats/stman.md 1.3.
//!
//! All columns share the heap. An item is found by bucket, offset and length, and may continue in
//! further buckets. Everything in it is big-endian, also in little-endian tables.

use bstr::BString;

use crate::error::{Error, Result, ResultExt};
use crate::io::{ByteOrder, ReadAt, read_array};
use crate::stman::bucket::Buckets;
use crate::stman::{extend_unbacked, read_part};
use crate::value::{Region, Shape, Values};

pub(super) const HEADER_BYTES: u64 = 16;

/// | field | type | meaning |
/// |---------|------|----------------------------------------------------------------|
/// | free | i32 | next free bucket, when this one is free |
/// | used | i32 | bytes used of the data |
/// | deleted | i32 | bytes of the data that are not live |
/// | next | i32 | bucket in which the last item goes on, -1 for none |
/// | data | | to the end of the bucket; offsets of items count from here |
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) used: u32,
    pub(super) deleted: u32,
    pub(super) next: i32,
}

impl Header {
    pub(super) fn read(file: &dyn ReadAt, offset: u64) -> Result<Self> {
        let bytes: [u8; HEADER_BYTES as usize] = read_array(file, offset)?;
        let field = |at| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Ok(Header { used: field(4), deleted: field(8), next: field(12) as i32 })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        [0, self.used, self.deleted, self.next as u32].iter().flat_map(|field| field.to_be_bytes()).collect()
    }
}

/// Longest string in the cell itself.
pub(super) const INLINE_BYTES: usize = 8;

/// A cell with a string or an [`Item`].
pub(super) const CELL_BYTES: usize = 12;

/// Location in the heap: the content of a cell, in the byte order of the table.
///
/// | field | type | meaning |
/// |--------|------|------------------------------------------------------|
/// | bucket | i32 | or the string itself, in 8 bytes, if it is that short |
/// | offset | i32 | |
/// | length | i32 | bytes; 0 for no item |
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) bucket: u32,
    pub(super) offset: u32,
    pub(super) len_bytes: i32,
}

impl Item {
    pub(super) const ABSENT: Item = Item { bucket: 0, offset: 0, len_bytes: 0 };

    pub(super) fn encode(&self, order: ByteOrder) -> [u8; CELL_BYTES] {
        let mut cell = [0; CELL_BYTES];
        for (field, value) in cell.as_chunks_mut().0.iter_mut().zip([self.bucket, self.offset, self.len_bytes as u32]) {
            *field = order.u32_bytes(value);
        }
        cell
    }

    pub(super) fn decode(cell: &[u8; CELL_BYTES], order: ByteOrder) -> Self {
        let field = |at| order.u32([cell[at], cell[at + 1], cell[at + 2], cell[at + 3]]);
        Item { bucket: field(0), offset: field(4), len_bytes: field(8) as i32 }
    }

    /// The string is empty, or nothing was stored yet.
    pub(super) fn is_absent(&self) -> bool {
        self.len_bytes == 0
    }

    /// Reads the first `limit` bytes, or all if there are fewer.
    fn read<F: ReadAt>(&self, buckets: &Buckets<F>, limit: u64) -> Result<Vec<u8>> {
        let capacity = u64::from(buckets.bucket_bytes).saturating_sub(HEADER_BYTES);
        let len = u64::try_from(self.len_bytes)
            .ok()
            .filter(|&len| len <= capacity * u64::from(buckets.count))
            .ok_or_else(|| {
                Error::format(format!(
                    "the length is {} bytes, expected 0 up to the size of all buckets",
                    self.len_bytes
                ))
            })?;
        let mut left = len.min(limit);
        let mut bytes = Vec::new();
        let mut bucket = self.bucket;
        let mut offset = u64::from(self.offset);
        // a chain that is longer than the file has buckets runs in a circle
        for _ in 0..buckets.count {
            let start = buckets.offset(bucket, "a string")?;
            let header = Header::read(&buckets.file, start)?;
            let used = u64::from(header.used);
            if offset > used || used > capacity {
                return Err(Error::format(format!(
                    "byte {offset} of bucket {bucket} is wanted, which uses {used} of {capacity} bytes"
                )));
            }
            let part = left.min(used - offset);
            let done = bytes.len();
            bytes.resize(done + part as usize, 0);
            buckets.file.read_at(start + HEADER_BYTES + offset, &mut bytes[done..])?;
            left -= part;
            if left == 0 {
                return Ok(bytes);
            }
            bucket = header.next as u32;
            offset = 0;
        }
        let count = buckets.count;
        Err(Error::format(format!(
            "{left} of its {len} bytes are missing after {count} buckets, which is all there are"
        )))
    }

    fn place(&self) -> String {
        format!("string at byte {} of bucket {}", self.offset, self.bucket)
    }
}

/// Heap bytes that a read of many cells may still use: cells of a sound file do not share bytes.
pub(super) struct HeapBudget(u64);

impl HeapBudget {
    pub(super) fn new(buckets: &Buckets) -> Self {
        HeapBudget(buckets.end())
    }

    pub(super) fn take(&mut self, item: &Item) -> Result<()> {
        // short strings are in the cell itself, and what is negative shows when it is read
        let len = u64::try_from(item.len_bytes).unwrap_or(0);
        if len > INLINE_BYTES as u64 {
            let left = self.0.checked_sub(len);
            let exceeded = || Error::format(format!("its {len} bytes and the strings before exceed the file"));
            self.0 = left.ok_or_else(exceeded).with_context(|| item.place())?;
        }
        Ok(())
    }
}

pub(super) fn read_scalar(cell: &[u8; CELL_BYTES], order: ByteOrder, buckets: &Buckets) -> Result<BString> {
    let item = Item::decode(cell, order);
    match usize::try_from(item.len_bytes) {
        Ok(len @ ..=INLINE_BYTES) => Ok(cell[..len].into()),
        _ => Ok(item.read(buckets, u64::MAX).with_context(|| item.place())?.into()),
    }
}

/// Array of a column of fixed shape: u32 length and bytes of each string.
pub(super) fn read_fixed<F: ReadAt>(
    item: &Item,
    buckets: &Buckets<F>,
    shape: &Shape,
    region: Option<&Region>,
    out: &mut Values,
) -> Result<()> {
    read_part(region, shape, out, |out| {
        if item.is_absent() {
            return extend_unbacked(shape, out);
        }
        let bytes = item.read(buckets, u64::MAX)?;
        split(&bytes, shape.elements()?, out)
    })
    .with_context(|| item.place())
}

/// Array of a column without fixed shape, fastest axis first:
///
/// | field | type | meaning |
/// |---------|--------------|--------------------------------------------------------------|
/// | ndim | u32 | |
/// | shape | i32 per axis | |
/// | filled | i32 | 1: the strings follow; 0: all are empty, and nothing follows |
/// | strings | | u32 length and bytes of each |
pub(super) fn read_shape<F: ReadAt>(item: &Item, buckets: &Buckets<F>) -> Result<Shape> {
    let read = || {
        let ndim = item.read(buckets, 4)?;
        let &ndim = ndim.first_chunk().ok_or_else(too_short)?;
        let bytes = item.read(buckets, 4 + 4 * u64::from(u32::from_be_bytes(ndim)))?;
        split_shape(&bytes).map(|(shape, _)| shape)
    };
    read().with_context(|| item.place())
}

pub(super) fn read_variable<F: ReadAt>(
    item: &Item,
    buckets: &Buckets<F>,
    region: Option<&Region>,
    out: &mut Values,
) -> Result<()> {
    let mut read = || {
        let bytes = item.read(buckets, u64::MAX)?;
        let (shape, rest) = split_shape(&bytes)?;
        let (&filled, strings) = rest.split_first_chunk().ok_or_else(too_short)?;
        read_part(region, &shape, out, |out| match u32::from_be_bytes(filled) {
            0 => extend_unbacked(&shape, out),
            _ => split(strings, shape.elements()?, out),
        })
    };
    read().with_context(|| item.place())
}

/// Without the shape.
pub(super) fn encode_fixed(strings: &[BString]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for string in strings {
        bytes.extend((string.len() as u32).to_be_bytes());
        bytes.extend_from_slice(string);
    }
    bytes
}

/// `None`: all strings are empty. `Limit` for extents beyond 31 bits.
pub(super) fn encode_variable(shape: &Shape, strings: Option<&[BString]>) -> Result<Vec<u8>> {
    let mut bytes = Vec::from((shape.len() as u32).to_be_bytes());
    for &extent in shape.iter() {
        let extent = i32::try_from(extent);
        let extent = extent.map_err(|_| Error::limit(format!("an array of shape {shape}: extents have 31 bits")))?;
        bytes.extend(extent.to_be_bytes());
    }
    bytes.extend(i32::from(strings.is_some()).to_be_bytes());
    bytes.extend(encode_fixed(strings.unwrap_or_default()));
    Ok(bytes)
}

fn split_shape(bytes: &[u8]) -> Result<(Shape, &[u8])> {
    let (&ndim, rest) = bytes.split_first_chunk().ok_or_else(too_short)?;
    let ndim = u32::from_be_bytes(ndim) as usize;
    let (extents, rest) = ndim.checked_mul(4).and_then(|len| rest.split_at_checked(len)).ok_or_else(too_short)?;
    let shape = extents.as_chunks().0.iter().map(|&extent| {
        let extent = i32::from_be_bytes(extent);
        u64::try_from(extent)
            .map_err(|_| Error::format(format!("an extent of the shape is {extent}, expected 0 or more")))
    });
    let shape = shape.collect::<Result<Shape>>()?;
    // casacore's array without axes has no elements
    Ok((if shape.is_empty() { Shape::from([0]) } else { shape }, rest))
}

/// Decodes strings, each a big-endian u32 length and bytes.
fn split(mut bytes: &[u8], count: u64, out: &mut Values) -> Result<()> {
    let Values::String(out) = out else { return Err(Error::usage("strings are read into strings")) };
    if count > bytes.len() as u64 / 4 {
        return Err(Error::format(format!("{count} strings do not fit into {} bytes", bytes.len())));
    }
    for _ in 0..count {
        let (&len, rest) = bytes.split_first_chunk().ok_or_else(too_short)?;
        let (string, rest) = rest.split_at_checked(u32::from_be_bytes(len) as usize).ok_or_else(too_short)?;
        out.push(string.into());
        bytes = rest;
    }
    Ok(())
}

fn too_short() -> Error {
    Error::format("the item ends within its content, before all of its strings")
}
