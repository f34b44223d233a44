//! The indirect array file `table.f<sequence>i`: arrays of any shape, found by their offset. formats/stman.md 3.
//!
//! A header, then records in no particular order; whoever stored an array knows its offset and element type.

use super::elements::Elements;
use super::{EachExtent, Extent, OpenArgs, Stored, read_part};
use crate::error::{Error, Place, Result};
use crate::io::{ByteOrder, Paged, ReadAt, past_end, read_array, read_bytes};
use crate::value::{DataType, Region, Shape, Values};

/// No record starts earlier.
const HEADER_BYTES: u64 = 16;

/// An open array file.
///
/// | field   | type | meaning                                                       |
/// |---------|------|---------------------------------------------------------------|
/// | version | u32  | 0 or 1                                                        |
/// | used    | i64  | end of the last record; ignored, the file's length is as good |
/// | filler  | i32  |                                                               |
#[derive(Debug)]
pub(super) struct Arrays {
    file: Paged,
    order: ByteOrder,
    /// Whether records have a reference count: version 1.
    counted: bool,
    suffix: String,
    /// For errors: file and manager.
    place: String,
}

/// What precedes the data of an array.
///
/// | field      | type         | present   |
/// |------------|--------------|-----------|
/// | references | u32          | version 1 |
/// | ndim       | u32          |           |
/// | shape      | i32 per axis |           |
struct Record {
    shape: Shape,
    /// Offset of the data, which follow the shape.
    data: u64,
}

impl Arrays {
    /// Opens the manager's file with `suffix`.
    pub(super) fn open(args: &OpenArgs<'_>, suffix: &str, order: ByteOrder, manager: &str) -> Result<Self> {
        let place = format!("{} ({manager})", args.file_name(suffix));
        let file = Paged::new(args.file(suffix)?).at(&place)?;
        let version = order.u32(read_array(&file, 0).at("header").at(&place)?);
        if version > 1 {
            let message = format!("array file version {version}, known are 0 and 1");
            return Err(Error::format(message).at("header").at(&place));
        }
        Ok(Arrays { file, order, counted: version == 1, suffix: suffix.to_owned(), place })
    }

    /// The shape of the array at `offset`.
    ///
    /// One without axes, which has no elements in casacore, comes out with a single axis of none.
    pub(super) fn shape(&self, offset: i64) -> Result<Shape> {
        let record = self.record(offset).at_with(|| self.array_place(offset))?;
        Ok(record.shape)
    }

    /// Appends the elements of the array at `offset`, or of a region of it.
    pub(super) fn read(&self, offset: i64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let mut read = || {
            let record = self.record(offset)?;
            if out.data_type() == DataType::String {
                return read_part(region, &record.shape, out, |out| self.strings(&record, out));
            }
            self.elements(&record).read_array(&record.shape, region, out)
        };
        read().at_with(|| self.array_place(offset))
    }

    /// Calls `each` with where the elements of the array at `offset`, the cell of `row`, lie.
    pub(super) fn extent(&self, row: u64, offset: i64, each: &mut EachExtent<'_>) -> Result<()> {
        let record = self.record(offset).at_with(|| self.array_place(offset))?;
        let content = Stored::Cells(row..row + 1);
        each(Extent { suffix: &self.suffix, offset: record.data, order: self.order, content })
    }

    fn array_place(&self, offset: i64) -> String {
        format!("{}: array at byte {offset}", self.place)
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
            .map(|extent| u64::try_from(extent).map_err(|_| Error::format(format!("extent {extent} in its shape"))))
            .collect()
    }

    fn elements(&self, record: &Record) -> Elements<'_> {
        Elements { file: &self.file, order: self.order, offset: record.data, first: 0 }
    }

    /// Appends an array of strings: for each the u32 offset, 0 if empty, of its u32 length and its bytes.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::Memory;
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
        // 200 strings that all are the one of 600 bytes behind them
        let text = format!("00*16 00000001 000000c8 {} 00000258 00*600", "00000338 ".repeat(200));
        let file = arrays(samples::bytes(&text)).unwrap();
        assert_eq!(file.shape(16).unwrap(), Shape::from([200]));
        let error = read(&file, 16, DataType::String).unwrap_err();
        assert!(error.to_string().contains("exceed the file"), "{error}");
    }
}
