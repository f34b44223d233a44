//! AipsIO, casacore's framing of typed and versioned objects: decoders and encoders of the common
//! objects.
//!
//! formats/table.md section 1. A stream is a sequence of objects. An object that is not inside
//! another is preceded by the magic `BE BE BE BE`; then come
//!
//! | type   | meaning                                                                  |
//! |--------|--------------------------------------------------------------------------|
//! | u32    | length in bytes of the object, this field included and the magic not     |
//! | string | type name                                                                |
//! | u32    | version                                                                  |
//! | …      | the fields, unaligned                                                    |
//!
//! [`Decoder`] reads a stream of either byte order from any [`ReadAt`], knows the absolute offset
//! of everything it reads, and refuses counts that the remaining bytes cannot hold. [`Encoder`]
//! writes streams.

mod array;
mod encoder;
mod keyword_set;
mod record;

use std::ops::RangeInclusive;

use bstr::{BString, ByteSlice};
use byteorder::{BigEndian, ByteOrder as _, LittleEndian};

use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{ByteOrder, ReadAt};
use crate::value::{DataType, Values};

pub use encoder::Encoder;

/// Precedes every object that is not inside another.
pub const MAGIC: u32 = 0xbebe_bebe;

const WINDOW_BYTES: u64 = 1 << 16;

/// Decodes an AipsIO stream. Positions are byte offsets in the source that has the stream. The
/// parameter `field` of the methods names the value in error messages; the stream does not have it.
pub struct Decoder<'a> {
    source: &'a dyn ReadAt,
    order: ByteOrder,
    position: u64,
    len: u64,
    window: Vec<u8>,
    window_start: u64,
    /// Outermost first.
    open: Vec<Object>,
    /// Name in error messages of the bytes outside of all objects.
    outside: &'static str,
}

struct Object {
    name: BString,
    /// Position of the length field.
    start: u64,
    /// Length that the object states; `None` if its writer could not seek back to fill it in.
    len: Option<u32>,
}

impl<'a> Decoder<'a> {
    /// Starts at the byte `position`; `outside` names in error messages the bytes outside of all
    /// objects.
    pub fn new(source: &'a dyn ReadAt, position: u64, order: ByteOrder, outside: &'static str) -> Result<Self> {
        let len = source.len()?;
        Ok(Decoder { source, order, position, len, window: Vec::new(), window_start: 0, open: Vec::new(), outside })
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// Starts an object that must follow the magic, be named `name` and have one of `versions`;
    /// returns its version.
    pub fn root(&mut self, name: &str, versions: RangeInclusive<u32>) -> Result<u32> {
        let start = self.position;
        let magic = self.u32("magic").map_err(|error| error.context(format!("{name} header")))?;
        if magic != MAGIC {
            return Err(
                self.error_at(start, format!("{magic:#010x} where the AipsIO magic 0xbebebebe begins a {name}"))
            );
        }
        self.start(name, versions)
    }

    /// Starts an object inside another, which must be named `name` and have one of `versions`;
    /// returns its version.
    pub fn start(&mut self, name: &str, versions: RangeInclusive<u32>) -> Result<u32> {
        let start = self.position;
        let (found, version) = self.start_any()?;
        if found != name {
            return Err(self.error_at(start, format!("object {:?} where a {name} is expected", found.as_bstr())));
        }
        if !versions.contains(&version) {
            return Err(self.error_at(
                start,
                format!("{name} version {version}, known are {} to {}", versions.start(), versions.end()),
            ));
        }
        Ok(version)
    }

    /// Starts the next object, whatever its name; returns its name and version.
    pub fn start_any(&mut self) -> Result<(BString, u32)> {
        let start = self.position;
        let len = self.u32("object length")?;
        let name = self.string("object name")?;
        let version = self.u32("object version")?;
        let len = (len != MAGIC).then_some(len);
        if let Some(len) = len
            && start + u64::from(len) > self.len
        {
            return Err(self.error_at(
                start,
                format!("{:?} of {len} bytes, but the file ends at byte {}", name.as_bstr(), self.len),
            ));
        }
        self.open.push(Object { name: name.clone(), start, len });
        Ok((name, version))
    }

    /// Ends the innermost object; an error unless it was read to its last byte.
    pub fn end(&mut self) -> Result<()> {
        let object = self.open.pop().expect("an object was started");
        // the stored length wraps at 4 GiB
        let read = (self.position - object.start) as u32;
        match object.len {
            Some(len) if len != read => Err(Error::format(format!(
                "{} at byte {}: {len} bytes long by its header, {read} by its content",
                object.name, object.start
            ))),
            _ => Ok(()),
        }
    }

    /// Error about the byte `position`; its context names the innermost open object.
    pub fn error_at(&self, position: u64, message: impl Into<String>) -> Error {
        let structure = self.open.last().map_or(self.outside.into(), |object| object.name.to_str_lossy());
        Error::format(message).context(Context::offset(structure, position))
    }

    pub fn error(&self, message: impl Into<String>) -> Error {
        self.error_at(self.position, message)
    }

    /// Bytes up to the end of the innermost object, or of the file if none is open or its end is
    /// not known.
    pub fn remaining(&self) -> u64 {
        let end = match self.open.last() {
            // lengths wrap in files beyond 4 GiB and bound nothing there
            Some(Object { start, len: Some(len), .. }) if self.len <= u64::from(u32::MAX) => start + u64::from(*len),
            _ => self.len,
        };
        end.saturating_sub(self.position)
    }

    /// Checks, before allocation, that the innermost object holds `count` items of `bytes` bytes.
    fn check_count(&self, field: &str, count: u64, bytes: u64) -> Result<()> {
        let remaining = self.remaining();
        match count.checked_mul(bytes) {
            Some(wanted) if wanted <= remaining => Ok(()),
            _ => Err(self.error(format!("{field}: {count} items announced, but only {remaining} bytes are left"))),
        }
    }

    /// Fails if the innermost object ends earlier. Short fields only: all bytes are in memory.
    fn take(&mut self, field: &str, count: usize) -> Result<&[u8]> {
        self.check_count(field, count as u64, 1)?;
        let inside = self.position >= self.window_start
            && self.position + count as u64 <= self.window_start + self.window.len() as u64;
        if !inside {
            let len = (self.len - self.position).min(WINDOW_BYTES.max(count as u64));
            self.window.resize(len as usize, 0);
            self.source.read_at(self.position, &mut self.window).context(field)?;
            self.window_start = self.position;
        }
        let start = (self.position - self.window_start) as usize;
        self.position += count as u64;
        Ok(&self.window[start..start + count])
    }

    /// Whether `expected` lies `ahead` bytes after the position, which stays unchanged.
    pub fn peek(&self, ahead: u64, expected: &[u8]) -> bool {
        let mut found = vec![0; expected.len()];
        self.source.read_at(self.position + ahead, &mut found).is_ok() && found == expected
    }

    pub fn skip(&mut self, field: &str, count: u64) -> Result<()> {
        self.check_count(field, count, 1)?;
        self.position += count;
        Ok(())
    }

    pub fn u8(&mut self, field: &str) -> Result<u8> {
        Ok(self.take(field, 1)?[0])
    }

    /// A Bool is one byte, of which only the lowest bit has a meaning.
    pub fn bool(&mut self, field: &str) -> Result<bool> {
        Ok(self.u8(field)? & 1 != 0)
    }

    pub fn u32(&mut self, field: &str) -> Result<u32> {
        let order = self.order;
        let bytes = self.take(field, 4)?;
        Ok(match order {
            ByteOrder::Big => BigEndian::read_u32(bytes),
            ByteOrder::Little => LittleEndian::read_u32(bytes),
        })
    }

    pub fn i32(&mut self, field: &str) -> Result<i32> {
        Ok(self.u32(field)? as i32)
    }

    pub fn u64(&mut self, field: &str) -> Result<u64> {
        let order = self.order;
        let bytes = self.take(field, 8)?;
        Ok(match order {
            ByteOrder::Big => BigEndian::read_u64(bytes),
            ByteOrder::Little => LittleEndian::read_u64(bytes),
        })
    }

    pub fn i64(&mut self, field: &str) -> Result<i64> {
        Ok(self.u64(field)? as i64)
    }

    /// Decodes u64 if `wide`, as newer versions of casacore's objects store it, else u32.
    pub fn uint(&mut self, field: &str, wide: bool) -> Result<u64> {
        if wide { self.u64(field) } else { Ok(u64::from(self.u32(field)?)) }
    }

    /// A string is a u32 byte count, then the bytes.
    pub fn string(&mut self, field: &str) -> Result<BString> {
        let len = self.u32(field)?;
        self.check_count(field, u64::from(len), 1)?;
        Ok(self.take(field, len as usize)?.into())
    }

    /// Decodes bytes as they are, without a length before them.
    pub fn bytes(&mut self, field: &str, count: u64) -> Result<Vec<u8>> {
        self.check_count(field, count, 1)?;
        let mut bytes = vec![0; count as usize];
        self.source.read_at(self.position, &mut bytes).context(field)?;
        self.position += count;
        Ok(bytes)
    }

    /// Decodes elements stored one after the other; Bools are packed to bits, strings have their
    /// own lengths.
    pub fn values(&mut self, field: &str, data_type: DataType, count: u64) -> Result<Values> {
        let mut values = Values::new(data_type);
        match &mut values {
            Values::Bool(_) => {
                let bits = self.bytes(field, crate::value::bits::packed_len(count))?;
                values.extend_from_bits(&bits, 0, count as usize);
            }
            Values::String(strings) => {
                self.check_count(field, count, 4)?;
                for _ in 0..count {
                    strings.push(self.string(field)?);
                }
            }
            Values::Record(_) => return Err(self.error(format!("{field}: records have no plain form"))),
            _ => {
                self.check_count(field, count, data_type.size() as u64)?;
                let bytes = self.bytes(field, count * data_type.size() as u64)?;
                values.extend_from_bytes(&bytes, self.order);
            }
        }
        Ok(values)
    }

    /// A `Block` is a count, then the items.
    pub fn block_u32(&mut self, field: &str) -> Result<Vec<u32>> {
        self.numbers(field, |order, &number: &[u8; 4]| order.u32(number))
    }

    /// Decodes a `Block` of u64 if `wide`, else of u32.
    pub fn block_uint(&mut self, field: &str, wide: bool) -> Result<Vec<u64>> {
        if wide {
            self.numbers(field, |order, &number: &[u8; 8]| order.u64(number))
        } else {
            self.numbers(field, |order, &number: &[u8; 4]| u64::from(order.u32(number)))
        }
    }

    /// Decodes 1024 numbers at a time: the bucket index of a storage manager may have a million.
    fn numbers<const N: usize, T>(&mut self, field: &str, decode: impl Fn(ByteOrder, &[u8; N]) -> T) -> Result<Vec<T>> {
        const STEP: u64 = 1 << 10;
        self.start("Block", 1..=1).with_context(|| field.to_owned())?;
        let count = u64::from(self.u32(field)?);
        self.check_count(field, count, N as u64)?;
        let mut numbers = Vec::with_capacity(count as usize);
        let order = self.order;
        while (numbers.len() as u64) < count {
            let step = (count - numbers.len() as u64).min(STEP) as usize;
            let bytes = self.take(field, step * N)?;
            numbers.extend(bytes.as_chunks().0.iter().map(|number| decode(order, number)));
        }
        self.end()?;
        Ok(numbers)
    }

    pub fn block_strings(&mut self, field: &str) -> Result<Vec<BString>> {
        self.block(field, 4, |decoder| decoder.string(field))
    }

    fn block<T>(&mut self, field: &str, bytes: u64, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.start("Block", 1..=1).with_context(|| field.to_owned())?;
        let count = u64::from(self.u32(field)?);
        self.check_count(field, count, bytes)?;
        let items = (0..count).map(|_| item(self)).collect::<Result<_>>()?;
        self.end()?;
        Ok(items)
    }

    /// Decodes a `SimpleOrderedMap`, in stored order.
    pub fn map_i32(&mut self, field: &str) -> Result<Vec<(i32, i32)>> {
        self.start("SimpleOrderedMap", 1..=1)?;
        self.i32("default")?;
        let count = u64::from(self.u32(field)?);
        self.u32("increment")?;
        self.check_count(field, count, 8)?;
        let entries = (0..count).map(|_| Ok((self.i32(field)?, self.i32(field)?))).collect::<Result<_>>()?;
        self.end()?;
        Ok(entries)
    }

    /// Decodes a `SimpleOrderedMap`, in stored order.
    pub fn map_strings(&mut self, field: &str) -> Result<Vec<(BString, BString)>> {
        self.start("SimpleOrderedMap", 1..=1)?;
        self.string("default")?;
        let count = u64::from(self.u32(field)?);
        self.u32("increment")?;
        self.check_count(field, count, 8)?;
        let entries = (0..count).map(|_| Ok((self.string(field)?, self.string(field)?))).collect::<Result<_>>()?;
        self.end()?;
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, Fails};

    /// The index part of the sample in formats/stman.md 2.8, little endian.
    const ISM_INDEX: &[u8] = b"\xbe\xbe\xbe\xbe\x4e\0\0\0\x08\0\0\0ISMIndex\x01\0\0\0\x01\0\0\0\
        \x1d\0\0\0\x05\0\0\0Block\x01\0\0\0\x02\0\0\0\0\0\0\0\x06\0\0\0\
        \x19\0\0\0\x05\0\0\0Block\x01\0\0\0\x01\0\0\0\0\0\0\0";

    #[test]
    fn reads_nested_objects() {
        let mut d = Decoder::new(&ISM_INDEX, 0, ByteOrder::Little, "index").unwrap();
        assert_eq!(d.root("ISMIndex", 1..=2).unwrap(), 1);
        assert_eq!(d.u32("used").unwrap(), 1);
        assert_eq!(d.block_uint("rows", false).unwrap(), [0, 6]);
        assert_eq!(d.block_u32("buckets").unwrap(), [0]);
        d.end().unwrap();
    }

    #[test]
    fn records_are_not_elements() {
        let mut d = Decoder::new(&ISM_INDEX, 0, ByteOrder::Little, "index").unwrap();
        d.values("keyword", DataType::Record, 1).fails(ErrorKind::Format, "keyword: records have no plain form");
    }

    #[test]
    fn long_blocks_are_read_in_steps() {
        let narrow: Vec<u32> = (0..2500).map(|i: u32| i.wrapping_mul(2_654_435_761)).collect();
        let wide: Vec<u64> = narrow.iter().map(|&number| u64::from(number) << 20 | 5).collect();
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let mut e = Encoder::new(order);
            e.root("Blocks", 1);
            e.block_u32(&narrow);
            e.block_uint(&wide, true);
            e.block_uint(&[7; 1024], false);
            e.block_u32(&[]);
            e.end();
            let bytes = e.into_bytes();
            let mut d = Decoder::new(&bytes, 0, order, "blocks").unwrap();
            d.root("Blocks", 1..=1).unwrap();
            assert_eq!(d.block_u32("narrow").unwrap(), narrow);
            assert_eq!(d.block_uint("wide", true).unwrap(), wide);
            assert_eq!(d.block_uint("sevens", false).unwrap(), [7; 1024]);
            assert!(d.block_u32("nothing").unwrap().is_empty());
            d.end().unwrap();
        }
    }

    #[test]
    fn every_truncation_is_an_error_with_its_place() {
        for len in 0..ISM_INDEX.len() {
            let bytes = &ISM_INDEX[..len];
            let read = || {
                let mut d = Decoder::new(&bytes, 0, ByteOrder::Little, "index")?;
                d.root("ISMIndex", 1..=2)?;
                d.u32("used")?;
                d.block_uint("rows", false)?;
                d.block_u32("buckets")?;
                d.end()
            };
            let message = read().unwrap_err().to_string();
            assert!(message.contains("at byte"), "{message}");
        }
    }

    #[test]
    fn counts_are_checked_before_allocating() {
        let bytes = b"\x7f\xff\xff\xffabc".as_slice();
        let mut d = Decoder::new(&bytes, 0, ByteOrder::Big, "name").unwrap();
        let message = d.string("table name").unwrap_err().to_string();
        assert_eq!(message, "name at byte 4: table name: 2147483647 items announced, but only 3 bytes are left");
    }
}
