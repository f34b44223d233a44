//! Elements of fixed size as storage managers store them: back to back, Bools packed to bits.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::grid::copy_box;
use crate::io::{ByteOrder, PagedMut, ReadAt, past_end};
use crate::value::{DataType, Region, Shape, Values, bits, for_each_type, swap_bytes, swap_width};

/// Bytes converted at a time, so that a large cell is in memory only once.
const STEP_BYTES: u64 = 1 << 20;

/// Element `i` is `first + i` elements (for Bools: bits) after byte `offset`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements<'a> {
    pub(super) file: &'a dyn ReadAt,
    pub(super) order: ByteOrder,
    pub(super) offset: u64,
    pub(super) first: u64,
}

/// Bits of an element in a file; 0 for strings and records, which have no fixed size.
pub(super) fn element_bits(data_type: DataType) -> u64 {
    match data_type {
        DataType::Bool => 1,
        _ => data_type.size() as u64 * 8,
    }
}

impl Elements<'_> {
    /// `Format`, before anything is allocated, if the file does not hold `count` elements.
    pub(super) fn read(&self, count: u64, out: &mut Values) -> Result<()> {
        self.check_backed(count, out.data_type())?;
        for_each_type!(out, v => v.reserve(count as usize));
        if out.data_type() == DataType::Bool {
            return self.read_bits(count, out);
        }
        let position = self.offset + self.first * out.data_type().size() as u64;
        out.extend_by_reading(count as usize, self.order, |bytes| self.file.read_at(position, bytes))
    }

    fn read_bits(&self, count: u64, out: &mut Values) -> Result<()> {
        let mut bit = self.first;
        let mut left = count;
        let mut buffer = Vec::new();
        while left > 0 {
            let skip = bit % 8;
            let step = left.min(STEP_BYTES * 8 - skip);
            buffer.resize((skip + step).div_ceil(8) as usize, 0);
            self.file.read_at(self.offset + bit / 8, &mut buffer)?;
            out.extend_from_bits(&buffer, skip as usize, step as usize);
            bit += step;
            left -= step;
        }
        Ok(())
    }

    /// Appends the array or `region`, but reads all elements whose last index is within the region.
    pub(super) fn read_array(&self, shape: &Shape, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let total = shape.elements()?;
        self.check_backed(total, out.data_type())?;
        let Some(region) = region else { return self.read(total, out) };
        region.check(shape)?;
        if region.shape.contains(&0) {
            return Ok(());
        }
        let Some((slab, _)) = shape.split_last() else { return self.read(total, out) };
        let last = slab.len();
        let stride = slab.elements()?;
        let from = Elements { first: self.first + region.start[last] * stride, ..*self };
        let count = region.shape[last] * stride;
        if region.shape[..last] == slab[..] {
            return from.read(count, out);
        }
        let mut span = Values::new(out.data_type());
        from.read(count, &mut span)?;
        let span_shape = slab.with_axis(region.shape[last]);
        let start: Shape = region.start[..last].iter().copied().chain([0]).collect();
        let base = out.len();
        out.extend_default(region.shape.elements()? as usize);
        copy_box(&span, &span_shape, &start, out, base, &region.shape, &vec![0; shape.len()], &region.shape);
        Ok(())
    }

    fn check_backed(&self, count: u64, data_type: DataType) -> Result<()> {
        let bits = u128::from(element_bits(data_type)) * (u128::from(self.first) + u128::from(count));
        let len = self.file.len()?;
        if u128::from(self.offset) + bits.div_ceil(8) > u128::from(len) {
            let wanted = u64::try_from(bits.div_ceil(8)).unwrap_or(u64::MAX);
            return Err(past_end(self.offset, wanted, len));
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ElementsMut<'a> {
    pub(super) file: &'a PagedMut,
    pub(super) order: ByteOrder,
    pub(super) offset: u64,
    pub(super) first: u64,
}

impl ElementsMut<'_> {
    /// The file is long enough already.
    pub(super) fn write(&self, values: &Values, range: Range<usize>) -> Result<()> {
        if let Values::Bool(bools) = values {
            return self.write_bits(&bools[range]);
        }
        let size = values.data_type().size();
        let bytes = values.le_bytes().ok_or_else(|| Error::usage("strings and records have no fixed size"))?;
        let bytes = &bytes[range.start * size..range.end * size];
        let start = self.offset + self.first * size as u64;
        let width = swap_width(values.data_type());
        if self.order == ByteOrder::Little || width == 1 {
            return self.file.write(start, bytes);
        }
        let mut swapped = Vec::new();
        for (number, step) in bytes.chunks(STEP_BYTES as usize).enumerate() {
            swapped.clear();
            swapped.extend_from_slice(step);
            swap_bytes(&mut swapped, width);
            self.file.write(start + number as u64 * STEP_BYTES, &swapped)?;
        }
        Ok(())
    }

    fn write_bits(&self, bools: &[bool]) -> Result<()> {
        let mut bit = self.first;
        let mut left = bools;
        while !left.is_empty() {
            let skip = (bit % 8) as usize;
            let (step, rest) = left.split_at(left.len().min(STEP_BYTES as usize * 8 - skip));
            let end = skip + step.len();
            let start = self.offset + bit / 8;
            let mut buffer = vec![0; end.div_ceil(8)];
            // neighbouring Bools share the first and the last byte
            if skip > 0 {
                self.file.read_at(start, &mut buffer[..1])?;
            }
            if !end.is_multiple_of(8) {
                let last = buffer.len() - 1;
                self.file.read_at(start + last as u64, &mut buffer[last..])?;
            }
            bits::pack_into(step, &mut buffer, skip);
            self.file.write(start, &buffer)?;
            bit += step.len() as u64;
            left = rest;
        }
        Ok(())
    }

    pub(super) fn write_array(&self, shape: &Shape, region: Option<&Region>, values: &Values) -> Result<()> {
        let Some(region) = region else { return self.write(values, 0..values.len()) };
        region.check(shape)?;
        if region.shape.contains(&0) {
            return Ok(());
        }
        let Some((slab, _)) = shape.split_last() else { return self.write(values, 0..values.len()) };
        // the slab that spans the region on the last axis is read and written again
        let last = slab.len();
        let first = self.first + region.start[last] * slab.elements()?;
        let to = ElementsMut { first, ..*self };
        if region.shape[..last] == slab[..] {
            return to.write(values, 0..values.len());
        }
        let span_shape = slab.with_axis(region.shape[last]);
        let mut span = Values::new(values.data_type());
        to.elements().read(span_shape.elements()?, &mut span)?;
        let start: Shape = region.start[..last].iter().copied().chain([0]).collect();
        let zero = vec![0; shape.len()];
        copy_box(values, &region.shape, &zero, &mut span, 0, &span_shape, &start, &region.shape);
        to.write(&span, 0..span.len())
    }

    fn elements(&self) -> Elements<'_> {
        Elements { file: self.file, order: self.order, offset: self.offset, first: self.first }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::error::Fails;
    use crate::io::MemoryFile;

    #[test]
    fn regions_equal_the_cropped_whole() {
        let bytes: Vec<u8> = (0..64).collect();
        let shape = Shape::from([3, 4, 2]);
        for data_type in [DataType::Bool, DataType::UChar, DataType::Short] {
            let elements = Elements { file: &bytes, order: ByteOrder::Big, offset: 3, first: 5 };
            let mut whole = Values::new(data_type);
            elements.read_array(&shape, None, &mut whole).unwrap();
            for (start, extent) in
                [([0, 0, 0], [3, 4, 2]), ([0, 0, 1], [3, 4, 1]), ([1, 2, 0], [2, 1, 2]), ([0, 1, 1], [3, 0, 1])]
            {
                let region = Region { start: Shape::from(start), shape: Shape::from(extent) };
                let mut part = Values::new(data_type);
                elements.read_array(&shape, Some(&region), &mut part).unwrap();
                let mut expected = Values::new(data_type);
                super::super::read_part(Some(&region), &shape, &mut expected, |out| out.extend_from(&whole, 0..24))
                    .unwrap();
                assert_eq!(part, expected);
            }
        }
    }

    #[test]
    fn written_regions_change_nothing_else() {
        let shape = Shape::from([3, 4, 2]);
        for data_type in [DataType::Bool, DataType::UChar, DataType::Short, DataType::Complex] {
            for order in [ByteOrder::Big, ByteOrder::Little] {
                for (start, extent) in
                    [([0, 0, 0], [3, 4, 2]), ([0, 0, 1], [3, 4, 1]), ([1, 2, 0], [2, 1, 2]), ([0, 1, 1], [3, 0, 1])]
                {
                    let bytes: Vec<u8> = (0..512).map(|i| (i % 61) as u8).collect();
                    let file = PagedMut::new(Arc::new(MemoryFile::new(bytes.clone()))).unwrap();
                    let elements = ElementsMut { file: &file, order, offset: 3, first: 5 };
                    let whole = |file| {
                        let mut whole = Values::new(data_type);
                        Elements { file, order, offset: 3, first: 0 }.read(5 + 24 + 3, &mut whole).unwrap();
                        whole
                    };
                    let mut expected = whole(&bytes);
                    let region = Region { start: Shape::from(start), shape: Shape::from(extent) };
                    let mut part = Values::new(data_type);
                    part.extend_default(region.shape.elements().unwrap() as usize);
                    let zero = [0; 3];
                    copy_box(&part, &extent, &zero, &mut expected, 5, &shape, &start, &extent);
                    elements.write_array(&shape, Some(&region), &part).unwrap();
                    assert_eq!(whole(&file), expected);
                }
            }
        }
    }

    #[test]
    fn missing_elements_are_not_allocated() {
        let bytes = vec![0; 64];
        let elements = Elements { file: &bytes, order: ByteOrder::Big, offset: 3, first: 5 };
        for data_type in [DataType::Bool, DataType::DComplex] {
            let mut out = Values::new(data_type);
            assert!(elements.read_array(&Shape::from([1 << 60]), None, &mut out).is_err());
            let region = Region { start: Shape::from([0]), shape: Shape::from([1]) };
            assert!(elements.read_array(&Shape::from([1 << 60]), Some(&region), &mut out).is_err());
            assert!(out.is_empty());
        }
    }

    #[test]
    fn strings_have_no_place() {
        let file = PagedMut::new(Arc::new(MemoryFile::default())).unwrap();
        let elements = ElementsMut { file: &file, order: ByteOrder::Big, offset: 0, first: 0 };
        let text = Values::String(vec!["a".into()]);
        elements.write(&text, 0..1).fails(crate::ErrorKind::Usage, "strings and records have no fixed size");
    }
}
