//! Elements of fixed size as managers store them: back to back, Bools packed to bits.

use crate::error::Result;
use crate::grid::copy_box;
use crate::io::{ByteOrder, ReadAt, past_end};
use crate::value::{DataType, Region, Shape, Values, for_each_type};

/// Read at a time, so that a large cell is in memory once only.
const STEP_BYTES: u64 = 1 << 20;

/// Where elements are: element `i` is `first + i` elements (of Bools: bits) behind byte `offset`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements<'a> {
    pub(super) file: &'a dyn ReadAt,
    pub(super) order: ByteOrder,
    pub(super) offset: u64,
    pub(super) first: u64,
}

/// Bits that an element takes; strings and records have no fixed size.
pub(super) fn element_bits(data_type: DataType) -> u64 {
    match data_type {
        DataType::Bool => 1,
        _ => data_type.size() as u64 * 8,
    }
}

impl Elements<'_> {
    /// Appends `count` elements.
    ///
    /// # Errors
    /// `Format`, before anything is allocated, if the file does not hold them.
    pub(super) fn read(&self, count: u64, out: &mut Values) -> Result<()> {
        self.check_backed(count, out.data_type())?;
        for_each_type!(out, v => v.reserve(count as usize));
        if out.data_type() == DataType::Bool {
            return self.read_bits(count, out);
        }
        let size = out.data_type().size() as u64;
        let mut position = self.offset + self.first * size;
        let mut left = count * size;
        let mut buffer = vec![0; left.min(STEP_BYTES) as usize];
        while left > 0 {
            let step = left.min(STEP_BYTES);
            self.file.read_at(position, &mut buffer[..step as usize])?;
            out.extend_from_bytes(&buffer[..step as usize], self.order);
            position += step;
            left -= step;
        }
        Ok(())
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

    /// Appends an array of `shape`, or a region of it: no more is read than what spans the region on the last axis.
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_the_file_does_not_hold_is_not_allocated() {
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
}
