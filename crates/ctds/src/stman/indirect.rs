//! The indirect array file `table.f<sequence>i`: arrays of any shape, found by their offset.
//! formats/stman.md 3.
//!
//! A header, then records in no particular order. Offset and element type of an array are known
//! only to the manager.

use std::ops::Range;

use super::elements::{Elements, ElementsMut, element_bits};
use super::{EachExtent, Extent, OpenArgs, Stored, read_part};
use crate::container::ContainerMut;
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{ByteOrder, Paged, PagedMut, ReadAt, past_end, read_array, read_bytes};
use crate::value::{BString, DataType, Region, Shape, Values};

/// No array starts earlier.
const HEADER_BYTES: u64 = 16;

/// | field | type | meaning |
/// |---------|------|---------------------------------------------------------------|
/// | version | u32 | 0 or 1 |
/// | used | i64 | end of the last record; ignored, the file's length is as good |
/// | filler | i32 | |
#[derive(Debug)]
pub(super) struct Arrays<F = Paged> {
    file: F,
    order: ByteOrder,
    /// Version 1: each array has a reference count.
    counted: bool,
    suffix: String,
    place: Context,
}

/// | field | type | present |
/// |------------|--------------|-----------|
/// | references | u32 | version 1 |
/// | ndim | u32 | |
/// | shape | i32 per axis | |
struct Record {
    shape: Shape,
    /// Offset of the elements, right after the shape.
    data: u64,
}

/// The array file, or the error of opening it, reported only when an indirect array is read.
#[derive(Debug)]
pub(super) struct ArrayFile(Result<Arrays>);

impl ArrayFile {
    pub(super) fn open(args: &OpenArgs<'_>, suffix: &str, order: ByteOrder, manager: &str) -> Self {
        ArrayFile(Arrays::open(args, suffix, order, manager))
    }

    pub(super) fn arrays(&self) -> Result<&Arrays> {
        self.0.as_ref().map_err(Error::clone)
    }
}

impl Arrays {
    fn open(args: &OpenArgs<'_>, suffix: &str, order: ByteOrder, manager: &str) -> Result<Self> {
        let place = Context::managed(args.file_name(suffix), manager);
        let file = Paged::new(args.file(suffix)?).context(&place)?;
        let version = order.u32(read_array(&file, 0).context("header").context(&place)?);
        if version > 1 {
            let message = format!("array file version {version}, known are 0 and 1");
            return Err(Error::format(message).context("header").context(&place));
        }
        Ok(Arrays { file, order, counted: version == 1, suffix: suffix.to_owned(), place })
    }
}

impl<F: ReadAt> Arrays<F> {
    /// Fastest axis first. An array without axes, in casacore empty, gets a single axis of 0.
    pub(super) fn shape(&self, offset: i64) -> Result<Shape> {
        let record =
            self.record(offset).with_context(|| Context::offset("array", offset)).with_context(|| &self.place)?;
        Ok(record.shape)
    }

    pub(super) fn read(&self, offset: i64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let mut read = || {
            let record = self.record(offset)?;
            if out.data_type() == DataType::String {
                return read_part(region, &record.shape, out, |out| self.strings(&record, out));
            }
            self.elements(&record).read_array(&record.shape, region, out)
        };
        read().with_context(|| Context::offset("array", offset)).with_context(|| &self.place)
    }

    /// Calls `each` with the byte range of the array's elements, the cell of `row`.
    pub(super) fn extent(&self, row: u64, offset: i64, each: &mut EachExtent<'_>) -> Result<()> {
        let record =
            self.record(offset).with_context(|| Context::offset("array", offset)).with_context(|| &self.place)?;
        let content = Stored::Cells(row..row + 1);
        each(Extent { suffix: &self.suffix, offset: record.data, order: self.order, content })
    }

    fn record(&self, offset: i64) -> Result<Record> {
        let len = self.file.len()?;
        let start = u64::try_from(offset).ok().filter(|start| (HEADER_BYTES..len).contains(start));
        let Some(start) = start else {
            return Err(Error::format(format!("a cell refers to it, but arrays lie in bytes {HEADER_BYTES} to {len}")));
        };
        // most records are small, and all of this is in one read
        let mut head = [0; 32];
        let head = &mut head[..(len - start).min(32) as usize];
        self.file.read_at(start, head)?;
        let ndim_at = if self.counted { 4 } else { 0 };
        let (_, after) = head.split_at_checked(ndim_at).ok_or_else(|| past_end(start, 8, len))?;
        let (&ndim, axes) = after.split_first_chunk().ok_or_else(|| past_end(start, 8, len))?;
        let shape_bytes = u64::from(self.order.u32(ndim)) * 4;
        let shape_offset = start + ndim_at as u64 + 4;
        let mut shape = match axes.get(..shape_bytes as usize) {
            Some(axes) => self.decode_shape(axes)?,
            None => self.decode_shape(&read_bytes(&self.file, shape_offset, shape_bytes)?)?,
        };
        if shape.is_empty() {
            shape = Shape::from([0]);
        }
        Ok(Record { shape, data: shape_offset + shape_bytes })
    }

    fn decode_shape(&self, bytes: &[u8]) -> Result<Shape> {
        let extents = bytes.as_chunks().0.iter().map(|&extent| self.order.u32(extent) as i32);
        extents
            .map(|extent| {
                u64::try_from(extent)
                    .map_err(|_| Error::format(format!("an extent of its shape is {extent}, expected 0 or more")))
            })
            .collect()
    }

    fn elements(&self, record: &Record) -> Elements<'_> {
        Elements { file: &self.file, order: self.order, offset: record.data, first: 0 }
    }

    /// A u32 offset for each string, 0 for an empty one, leads to its u32 length and its bytes.
    fn strings(&self, record: &Record, out: &mut Values) -> Result<()> {
        let mut offsets = Values::new(DataType::UInt);
        self.elements(record).read_array(&record.shape, None, &mut offsets)?;
        let (Values::UInt(offsets), Values::String(out)) = (offsets, out) else {
            return Err(Error::usage("strings are read into strings"));
        };
        // no two elements share a string, so the file holds all of them together
        let mut left = self.file.len()?;
        for offset in offsets {
            if offset == 0 {
                out.push(Default::default());
                continue;
            }
            let offset = u64::from(offset);
            let len = u64::from(self.order.u32(read_array(&self.file, offset)?));
            left = left.checked_sub(len).ok_or_else(|| {
                Error::format(format!("its strings, up to that of {len} bytes at byte {offset}, exceed the file"))
            })?;
            out.push(read_bytes(&self.file, offset + 4, len)?.into());
        }
        Ok(())
    }
}

/// Abandoned arrays stay in the file, as casacore leaves them.
#[derive(Debug)]
pub(super) struct ArraysMut {
    arrays: Arrays<PagedMut>,
    /// Offset of the next array or string.
    end: u64,
}

impl ArraysMut {
    /// If `counted`, each array has a reference count, 1 at first.
    pub(super) fn create(
        files: &dyn ContainerMut,
        name: &str,
        order: ByteOrder,
        counted: bool,
        manager: &str,
    ) -> Result<Self> {
        let place = Context::managed(name, manager);
        let file = files.create(name).and_then(PagedMut::new).context(&place)?;
        file.grow(HEADER_BYTES);
        Ok(ArraysMut { arrays: Arrays { file, order, counted, suffix: "i".to_owned(), place }, end: HEADER_BYTES })
    }

    /// Adds zeros, `false`s or empty strings at an offset above 0; `Limit` beyond 31 bits.
    pub(super) fn add(&mut self, data_type: DataType, shape: &Shape) -> Result<i64> {
        let order = self.arrays.order;
        let mut head = Vec::with_capacity(32);
        if self.arrays.counted {
            head.extend(order.u32_bytes(1));
        }
        head.extend(order.u32_bytes(shape.len() as u32));
        for &extent in shape.iter() {
            let narrow = i32::try_from(extent).map_err(|_| {
                Error::limit(format!("an array of shape {shape}: extents have 31 bits")).context(self.place())
            });
            head.extend(order.u32_bytes(narrow? as u32));
        }
        let bits = match data_type {
            // its offset
            DataType::String => 32,
            _ => element_bits(data_type),
        };
        let bytes = shape.elements()?.checked_mul(bits).map(|bits| bits.div_ceil(8));
        let start = self.end.next_multiple_of(8);
        let data = start + head.len() as u64;
        let end = bytes.and_then(|bytes| data.checked_add(bytes)).filter(|&end| end <= i64::MAX as u64);
        let end = end.ok_or_else(|| {
            Error::limit(format!("an array of shape {shape} does not fit: the file would exceed 2^63 bytes"))
                .context(self.place())
        })?;
        self.arrays.file.write(start, &head).context(self.place())?;
        self.grow(end);
        Ok(start as i64)
    }

    pub(super) fn shape(&self, offset: i64) -> Result<Shape> {
        self.arrays.shape(offset)
    }

    pub(super) fn read(&self, offset: i64, out: &mut Values) -> Result<()> {
        self.arrays.read(offset, None, out)
    }

    pub(super) fn write(&mut self, offset: i64, values: &Values, range: Range<usize>) -> Result<()> {
        let record = self.record(offset)?;
        self.check(offset, &record.shape, range.len())?;
        match values {
            Values::String(strings) => {
                let offsets = self.add_strings(&strings[range])?;
                self.elements(&record).write(&offsets, 0..offsets.len())
            }
            _ => self.elements(&record).write(values, range),
        }
        .with_context(|| Context::offset("array", offset))
        .with_context(|| &self.arrays.place)
    }

    pub(super) fn write_region(&mut self, offset: i64, region: &Region, values: &Values) -> Result<()> {
        let record = self.record(offset)?;
        region.check(&record.shape)?;
        self.check(offset, &region.shape, values.len())?;
        match values {
            Values::String(strings) => {
                let offsets = self.add_strings(strings)?;
                self.elements(&record).write_array(&record.shape, Some(region), &offsets)
            }
            _ => self.elements(&record).write_array(&record.shape, Some(region), values),
        }
        .with_context(|| Context::offset("array", offset))
        .with_context(|| &self.arrays.place)
    }

    /// Number of cells that refer to the array; an error without reference counts.
    pub(super) fn references(&self, offset: i64) -> Result<u32> {
        let bytes = read_array(&self.arrays.file, offset as u64)
            .with_context(|| Context::offset("array", offset))
            .with_context(|| &self.arrays.place)?;
        Ok(self.arrays.order.u32(bytes))
    }

    pub(super) fn set_references(&mut self, offset: i64, count: u32) -> Result<()> {
        let bytes = self.arrays.order.u32_bytes(count);
        self.arrays
            .file
            .write(offset as u64, &bytes)
            .with_context(|| Context::offset("array", offset))
            .with_context(|| &self.arrays.place)
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        let order = self.arrays.order;
        let mut header = Vec::from(order.u32_bytes(u32::from(self.arrays.counted)));
        header.extend(order.u64_bytes(self.end));
        header.extend([0; 4]);
        self.arrays.file.write(0, &header).and_then(|()| self.arrays.file.flush()).context(self.place())
    }

    fn place(&self) -> &Context {
        &self.arrays.place
    }

    fn record(&self, offset: i64) -> Result<Record> {
        self.arrays.record(offset).with_context(|| Context::offset("array", offset)).with_context(|| &self.arrays.place)
    }

    fn check(&self, offset: i64, shape: &Shape, elements: usize) -> Result<()> {
        if shape.elements()? == elements as u64 {
            return Ok(());
        }
        let message = format!("{elements} elements do not fill an array of shape {shape}");
        Err(Error::usage(message).context(Context::offset("array", offset)).context(&self.arrays.place))
    }

    fn elements(&self, record: &Record) -> ElementsMut<'_> {
        ElementsMut { file: &self.arrays.file, order: self.arrays.order, offset: record.data, first: 0 }
    }

    fn grow(&mut self, end: u64) {
        self.end = end;
        self.arrays.file.grow(end);
    }

    /// Offsets of the appended strings; empty ones are stored as well.
    fn add_strings(&mut self, strings: &[BString]) -> Result<Values> {
        let order = self.arrays.order;
        let mut offsets = Vec::with_capacity(strings.len());
        let mut bytes = Vec::new();
        let start = self.end;
        for string in strings {
            // an empty string also has an offset: casacore's has one once it was written
            let offset = u32::try_from(start + bytes.len() as u64).ok();
            let len = u32::try_from(string.len()).ok();
            let (offset, len) = offset.zip(len).ok_or_else(|| {
                Error::limit("strings beyond 4 GiB in an array file, where their offsets have 32 bits")
            })?;
            offsets.push(offset);
            bytes.extend(order.u32_bytes(len));
            bytes.extend_from_slice(string);
        }
        self.arrays.file.write(start, &bytes)?;
        self.grow(start + bytes.len() as u64);
        Ok(Values::UInt(offsets))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::container::{Container, Memory};
    use crate::error::Fails;
    use crate::stman::samples;

    /// formats/stman.md 3.4, written by casacore: Float [2,2], String [3], Bool [3].
    const SAMPLE: &str = "
        00000001 000000000000006d 00000000
        00000001 00000002 00000002 00000002
        3f800000 40000000 40400000 40800000
        00000001 00000001 00000003 00000048
        0000004e 00000052 00000002 'ab' 00000000
        00000003 'xyz' 00*7
        00000001 00000001 00000003 05";

    fn arrays(bytes: Vec<u8>) -> Result<Arrays> {
        let files = Memory::new([("table.f0i", bytes)]);
        Arrays::open(&samples::args(&files, ByteOrder::Big, 0, &[], &[]), "i", ByteOrder::Big, "Test")
    }

    fn read(arrays: &Arrays, offset: i64, data_type: DataType) -> Result<(Shape, Values)> {
        let mut values = Values::new(data_type);
        let shape = arrays.shape(offset)?;
        arrays.read(offset, None, &mut values)?;
        Ok((shape, values))
    }

    #[test]
    fn written_by_casacore() {
        let file = arrays(samples::bytes(SAMPLE)).unwrap();
        let read = |offset, data_type| read(&file, offset, data_type).unwrap();
        assert_eq!(read(0x10, DataType::Float), (Shape::from([2, 2]), Values::Float(vec![1., 2., 3., 4.])));
        let strings = Values::String(vec!["ab".into(), "".into(), "xyz".into()]);
        assert_eq!(read(0x30, DataType::String), (Shape::from([3]), strings));
        assert_eq!(read(0x60, DataType::Bool), (Shape::from([3]), Values::Bool(vec![true, false, true])));
        let mut column = Values::new(DataType::Float);
        let region = Region { start: Shape::from([1, 0]), shape: Shape::from([1, 2]) };
        file.read(0x10, Some(&region), &mut column).unwrap();
        assert_eq!(column, Values::Float(vec![2., 4.]));
        let text = file.record(0x30).unwrap();
        let read = file.strings(&text, &mut Values::new(DataType::Int));
        read.fails(crate::ErrorKind::Usage, "strings are read into strings");
    }

    fn create(files: &Arc<Memory>, order: ByteOrder, counted: bool) -> ArraysMut {
        ArraysMut::create(&**files, "table.f0i", order, counted, "Test").unwrap()
    }

    fn contents(files: &Memory) -> Vec<u8> {
        crate::io::read_all(&*files.open("table.f0i").unwrap()).unwrap()
    }

    fn strings(strings: &[&str]) -> Values {
        Values::String(strings.iter().map(|&string| string.into()).collect())
    }

    #[test]
    fn writes_what_casacore_does() {
        let files = Arc::new(Memory::default());
        let mut file = create(&files, ByteOrder::Big, true);
        for (shape, values) in [
            (Shape::from([2, 2]), Values::Float(vec![1., 2., 3., 4.])),
            (Shape::from([3]), strings(&["ab", "", "xyz"])),
            (Shape::from([3]), Values::Bool(vec![true, false, true])),
        ] {
            let offset = file.add(values.data_type(), &shape).unwrap();
            file.write(offset, &values, 0..values.len()).unwrap();
        }
        file.flush().unwrap();
        assert_eq!(contents(&files), samples::bytes(SAMPLE));
    }

    #[test]
    fn arrays_are_written_again() {
        for (order, counted) in [(ByteOrder::Big, false), (ByteOrder::Little, true)] {
            let files = Arc::new(Memory::default());
            let mut file = create(&files, order, counted);
            let bools = file.add(DataType::Bool, &Shape::from([3, 4])).unwrap();
            let texts = file.add(DataType::String, &Shape::from([2, 2])).unwrap();
            let none = file.add(DataType::DComplex, &Shape::from([0, 5])).unwrap();
            let behind = file.add(DataType::UChar, &Shape::from([3])).unwrap();
            file.write(texts, &strings(&["a", "b", "c", "d"]), 0..4).unwrap();
            file.write(none, &Values::new(DataType::DComplex), 0..0).unwrap();
            file.write(behind, &Values::UChar(vec![9, 7, 8, 9]), 1..4).unwrap();
            file.write_region(texts, &Region { start: [1, 0].into(), shape: [1, 2].into() }, &strings(&["long", ""]))
                .unwrap();
            let corner = Region { start: [1, 2].into(), shape: [2, 2].into() };
            file.write_region(bools, &corner, &Values::Bool(vec![true; 4])).unwrap();
            if counted {
                assert_eq!(file.references(behind).unwrap(), 1);
                file.set_references(behind, 7).unwrap();
                assert_eq!(file.references(behind).unwrap(), 7);
            }
            file.flush().unwrap();
            let bytes = contents(&files);
            assert_eq!(order.u64(*bytes[4..].first_chunk().unwrap()), bytes.len() as u64);
            let files = Memory::new([("table.f0i", bytes)]);
            let file = Arrays::open(&samples::args(&files, order, 0, &[], &[]), "i", order, "Test").unwrap();
            let read = |offset, data_type| read(&file, offset, data_type).unwrap();
            assert_eq!(read(texts, DataType::String), (Shape::from([2, 2]), strings(&["a", "long", "c", ""])));
            assert_eq!(read(none, DataType::DComplex), (Shape::from([0, 5]), Values::DComplex(vec![])));
            assert_eq!(read(behind, DataType::UChar), (Shape::from([3]), Values::UChar(vec![7, 8, 9])));
            let expected = [0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1].map(|bit| bit != 0);
            assert_eq!(read(bools, DataType::Bool), (Shape::from([3, 4]), Values::Bool(expected.into())));
        }
    }

    #[test]
    fn arrays_beyond_the_format_are_rejected() {
        let mut file = create(&Arc::new(Memory::default()), ByteOrder::Big, false);
        let error = file.add(DataType::Bool, &Shape::from([1, 1 << 31])).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Limit);
        assert_eq!(error.to_string(), "table.f0i (Test): an array of shape [1, 2147483648]: extents have 31 bits");
        let offset = file.add(DataType::Int, &Shape::from([2])).unwrap();
        let error = file.write(offset, &Values::Int(vec![1]), 0..1).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Usage);
        let region = Region { start: Shape::from([1]), shape: Shape::from([2]) };
        assert!(file.write_region(offset, &region, &Values::Int(vec![1, 2])).is_err());
        // strings after an array that ends at 4 GiB; nothing of it is in memory
        file.add(DataType::UChar, &Shape::from([(1 << 31) - 1])).unwrap();
        file.add(DataType::UChar, &Shape::from([(1 << 31) - 1])).unwrap();
        let texts = file.add(DataType::String, &Shape::from([1])).unwrap();
        assert_eq!(file.write(texts, &strings(&["a"]), 0..1).unwrap_err().kind(), crate::ErrorKind::Limit);
    }

    #[test]
    fn damage_is_an_error() {
        samples::damage(&samples::bytes(SAMPLE), |bytes| {
            let file = arrays(bytes)?;
            for (offset, data_type) in [(0x10, DataType::Float), (0x30, DataType::String), (0x60, DataType::Bool)] {
                read(&file, offset, data_type)?;
            }
            Ok(())
        });
        let file = arrays(samples::bytes(SAMPLE)).unwrap();
        for offset in [-1, 0, 15, 0x6d, i64::MAX, i64::MIN] {
            assert_eq!(file.shape(offset).unwrap_err().kind(), crate::ErrorKind::Format);
        }
    }

    #[test]
    fn strings_share_no_bytes() {
        // 200 strings that all are the one of 600 bytes after them
        let text = format!("00*16 00000001 000000c8 {} 00000258 00*600", "00000338 ".repeat(200));
        let file = arrays(samples::bytes(&text)).unwrap();
        assert_eq!(file.shape(16).unwrap(), Shape::from([200]));
        let error = read(&file, 16, DataType::String).unwrap_err();
        assert!(error.to_string().contains("exceed the file"), "{error}");
    }
}
