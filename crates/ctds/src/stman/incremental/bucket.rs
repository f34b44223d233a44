//! A bucket of IncrementalStMan: values, and for each column the row from which each of its values
//! holds.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::io::ByteOrder;

/// First word: byte offset of the index part; any other bit means row numbers of 64 bits.
const INDEX_OFFSET_MASK: u32 = 0x0fff_ffff;

/// The data part follows; offsets of values count from its start.
pub(super) const HEADER_BYTES: usize = 4;

/// Bit that casacore sets for row numbers of 64 bits.
pub(super) const WIDE_ROWS: u32 = 1 << 31;

/// Numbers have the table's byte order; rows of all methods count from 0 at the bucket's first.
/// formats/stman.md 2.3.
///
/// | field | type | meaning |
/// |--------------|----------------|---------------------------------------------------------------------|
/// | index_offset | u32 | of the index part; a non-zero upper half byte: rows are u64 |
/// | data | | values, to the index part |
/// | count | u32 | per column: values, at least 1 |
/// | rows | u32 or u64 each | per column: row from which a value holds, from the bucket's first |
/// | offsets | u32 each | per column: where the value is in the data part |
///
/// Bytes after the index part are left from earlier contents.
#[derive(Debug)]
pub(super) struct Bucket {
    bytes: Vec<u8>,
    order: ByteOrder,
    /// Byte offset of the index part, the end of the data part.
    index_offset: usize,
    /// 4 or 8.
    row_bytes: usize,
    columns: Vec<Entries>,
}

#[derive(Debug, Clone, Copy)]
struct Entries {
    /// Byte offset of the row numbers; the value offsets follow them.
    rows: usize,
    count: usize,
}

#[derive(Debug)]
pub(super) struct Run<'a> {
    /// Bytes of the value and of the data part after it: the end of a value is not stored.
    pub(super) value: &'a [u8],
    /// `None` if the value holds to the end of the bucket.
    pub(super) end: Option<u64>,
}

impl Bucket {
    pub(super) fn decode(bytes: Vec<u8>, order: ByteOrder, columns: usize) -> Result<Self> {
        let mut bucket = Bucket { bytes, order, index_offset: 0, row_bytes: 4, columns: Vec::new() };
        let word = bucket.u32(0)?;
        bucket.index_offset = (word & INDEX_OFFSET_MASK) as usize;
        if word & !INDEX_OFFSET_MASK != 0 {
            bucket.row_bytes = 8;
        }
        if bucket.index_offset < HEADER_BYTES {
            return Err(Error::format(format!(
                "its index part is at byte {}, expected {HEADER_BYTES} or more",
                bucket.index_offset
            )));
        }
        let mut position = bucket.index_offset;
        for column in 0..columns {
            let count = bucket.u32(position)? as usize;
            let entries = Entries { rows: position + 4, count };
            position = count
                .checked_mul(bucket.row_bytes + 4)
                .and_then(|len| entries.rows.checked_add(len))
                .filter(|&end| end <= bucket.bytes.len())
                .ok_or_else(|| {
                    Error::format(format!("{count} values of column {column} do not fit into the bucket"))
                })?;
            let rows = &bucket.bytes[entries.rows..entries.rows + count * bucket.row_bytes];
            let is_ascending = match bucket.row_bytes {
                8 => ascends_from_0(rows.as_chunks().0, |&row| order.u64(row)),
                _ => ascends_from_0(rows.as_chunks().0, |&row| order.u32(row).into()),
            };
            if !is_ascending {
                return Err(Error::format(format!("the rows of column {column}'s values do not ascend from 0")));
            }
            bucket.columns.push(entries);
        }
        Ok(bucket)
    }

    /// Values of a column, beginning with the one that holds for `row`.
    pub(super) fn runs(&self, column: usize, row: u64) -> impl Iterator<Item = Result<Run<'_>>> {
        let entries = self.columns[column];
        (self.find(entries, row)..entries.count).map(move |entry| self.run(column, entry))
    }

    /// Starts at `entry`, the value read last, and updates it. `None` if a value is outside the
    /// data part, or `out` too short for `bytes` bytes per row.
    pub(super) fn fill(
        &self,
        column: usize,
        rows: Range<u64>,
        bytes: usize,
        entry: &mut usize,
        out: &mut [u8],
    ) -> Option<()> {
        let entries = self.columns[column];
        self.seek(entries, rows.start, entry);
        let offsets = entries.rows + entries.count * self.row_bytes;
        let source = Values {
            data: &self.bytes[HEADER_BYTES..self.index_offset],
            starts: &self.bytes[entries.rows + *entry * self.row_bytes..offsets],
            offsets: self.bytes.get(offsets + *entry * 4..offsets + entries.count * 4)?.as_chunks().0,
            order: self.order,
        };
        let used = match bytes {
            1 => source.fill_cells::<1>(self.row_bytes, rows, out),
            2 => source.fill_cells::<2>(self.row_bytes, rows, out),
            4 => source.fill_cells::<4>(self.row_bytes, rows, out),
            8 => source.fill_cells::<8>(self.row_bytes, rows, out),
            16 => source.fill_cells::<16>(self.row_bytes, rows, out),
            _ => source.fill_long(self.row_bytes, rows, bytes, out),
        }?;
        *entry += used;
        Some(())
    }

    /// Fast if the present `entry` or the next one is right, as when rows are read in order.
    fn seek(&self, entries: Entries, row: u64, entry: &mut usize) {
        let starts_by = |entry: usize| entry < entries.count && self.row(entries, entry) <= row;
        if !starts_by(*entry) {
            *entry = self.find(entries, row);
        } else if starts_by(*entry + 1) {
            *entry += 1;
            if starts_by(*entry + 1) {
                *entry = self.find(entries, row);
            }
        }
    }

    fn find(&self, entries: Entries, row: u64) -> usize {
        // the first entry beyond `row`; there is one before it, because the first row is 0
        let (mut low, mut high) = (1, entries.count);
        while low < high {
            let middle = low.midpoint(high);
            if self.row(entries, middle) <= row { low = middle + 1 } else { high = middle }
        }
        low - 1
    }

    fn run(&self, column: usize, entry: usize) -> Result<Run<'_>> {
        let entries = self.columns[column];
        let offset = self.u32(entries.rows + entries.count * self.row_bytes + entry * 4)? as usize;
        let value = self.bytes[HEADER_BYTES..self.index_offset].get(offset..);
        let value = value.ok_or_else(|| {
            Error::format(format!("value {entry} of column {column} is at byte {offset} of its data part"))
        })?;
        let end = (entry + 1 < entries.count).then(|| self.row(entries, entry + 1));
        Ok(Run { value, end })
    }

    /// First row of a value. `decode` has checked that the row numbers are inside the bucket.
    fn row(&self, entries: Entries, entry: usize) -> u64 {
        let bytes = &self.bytes[entries.rows + entry * self.row_bytes..];
        match (self.row_bytes, bytes.first_chunk(), bytes.first_chunk()) {
            (8, Some(&wide), _) => self.order.u64(wide),
            (_, _, Some(&narrow)) => u64::from(self.order.u32(narrow)),
            _ => unreachable!("the entries were checked to end within the bucket"),
        }
    }

    fn u32(&self, offset: usize) -> Result<u32> {
        match self.bytes.get(offset..).and_then(|bytes| bytes.first_chunk()) {
            Some(&bytes) => Ok(self.order.u32(bytes)),
            None => Err(Error::format(format!("its index part reaches byte {offset} of {}", self.bytes.len()))),
        }
    }
}

/// Whether row numbers, each `N` bytes, begin with 0 and strictly ascend.
fn ascends_from_0<const N: usize>(rows: &[[u8; N]], row: impl Fn(&[u8; N]) -> u64) -> bool {
    // without an early end, so that several rows are compared at once
    let ascends =
        rows.iter().zip(rows.get(1..).unwrap_or_default()).fold(true, |so_far, (a, b)| so_far & (row(a) < row(b)));
    rows.first().is_some_and(|first| row(first) == 0) && ascends
}

struct Values<'a> {
    data: &'a [u8],
    /// First row of each value, 4 or 8 bytes each.
    starts: &'a [u8],
    offsets: &'a [[u8; 4]],
    order: ByteOrder,
}

impl Values<'_> {
    /// Calls `each` for every value in `rows`, with its offset in the data part and its rows,
    /// counted from the first of `rows`. Returns the index of the last value; `None` if `each` did.
    fn for_each(
        &self,
        row_bytes: usize,
        rows: Range<u64>,
        each: impl FnMut(usize, Range<usize>) -> Option<()>,
    ) -> Option<usize> {
        match row_bytes {
            8 => self.for_each_of(self.starts.as_chunks().0, |&start| self.order.u64(start), rows, each),
            _ => self.for_each_of(self.starts.as_chunks().0, |&start| self.order.u32(start).into(), rows, each),
        }
    }

    #[inline]
    fn for_each_of<const N: usize>(
        &self,
        starts: &[[u8; N]],
        start_of: impl Fn(&[u8; N]) -> u64,
        rows: Range<u64>,
        mut each: impl FnMut(usize, Range<usize>) -> Option<()>,
    ) -> Option<usize> {
        let mut row = rows.start;
        // a value holds until the next one does
        let ends = starts.get(1..)?.iter().map(start_of).chain([u64::MAX]);
        for (number, (offset, end)) in self.offsets.iter().zip(ends).enumerate() {
            let end = end.min(rows.end);
            each(self.order.u32(*offset) as usize, (row - rows.start) as usize..(end - rows.start) as usize)?;
            row = end;
            if row == rows.end {
                return Some(number);
            }
        }
        None
    }

    /// Offsets, if there is another value for each row.
    fn offsets_of_rows(&self, row_bytes: usize, rows: &Range<u64>) -> Option<&[[u8; 4]]> {
        let count = usize::try_from(rows.end - rows.start).ok().filter(|&count| count > 0)?;
        let offsets = self.offsets.get(..count)?;
        let start = |value: usize| match row_bytes {
            8 => self.starts.as_chunks().0.get(value).map(|&start| self.order.u64(start)),
            _ => self.starts.as_chunks().0.get(value).map(|&start| self.order.u32(start).into()),
        };
        // the starts ascend, as `Bucket::decode` has checked
        (start(0) == Some(rows.start) && start(count - 1) == Some(rows.end - 1)).then_some(offsets)
    }

    /// Fills `out` with `N` bytes per row; returns and fails as [`fill_long`](Self::fill_long).
    fn fill_cells<const N: usize>(&self, row_bytes: usize, rows: Range<u64>, out: &mut [u8]) -> Option<usize> {
        let (cells, []) = out.as_chunks_mut::<N>() else { return None };
        if let Some(offsets) = self.offsets_of_rows(row_bytes, &rows).filter(|offsets| offsets.len() == cells.len()) {
            for (cell, &offset) in cells.iter_mut().zip(offsets) {
                *cell = *self.data.get(self.order.u32(offset) as usize..)?.first_chunk()?;
            }
            return Some(offsets.len() - 1);
        }
        self.for_each(row_bytes, rows, |offset, rows| {
            let value = self.data.get(offset..)?.first_chunk()?;
            cells.get_mut(rows)?.fill(*value);
            Some(())
        })
    }

    /// Returns the last value's index; `None` if one is outside the data part, or `out` too short.
    fn fill_long(&self, row_bytes: usize, rows: Range<u64>, bytes: usize, out: &mut [u8]) -> Option<usize> {
        self.for_each(row_bytes, rows, |offset, rows| {
            let value = self.data.get(offset..)?.get(..bytes)?;
            let cells = out.get_mut(rows.start.checked_mul(bytes)?..rows.end.checked_mul(bytes)?)?;
            // cells without elements have no bytes
            cells.chunks_exact_mut(bytes.max(1)).for_each(|cell| cell.copy_from_slice(value));
            Some(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four values of a column, of one byte each, and one of another column.
    fn bucket(row_bytes: usize, order: ByteOrder) -> Bucket {
        let mut bytes = Vec::new();
        let mut put = |word: u64, len: usize| match order {
            ByteOrder::Little => bytes.extend(&word.to_le_bytes()[..len]),
            ByteOrder::Big => bytes.extend(&word.to_be_bytes()[8 - len..]),
        };
        put(8 | if row_bytes == 8 { u64::from(WIDE_ROWS) } else { 0 }, 4);
        (1..=4).for_each(|value| put(value, 1));
        for (rows, offsets) in [(&[0, 3, 4, 9][..], &[0, 1, 2, 3][..]), (&[0], &[2])] {
            put(rows.len() as u64, 4);
            rows.iter().for_each(|&row| put(row, row_bytes));
            offsets.iter().for_each(|&offset| put(offset, 4));
        }
        Bucket::decode(bytes, order, 2).unwrap()
    }

    #[test]
    fn a_value_for_each_row_is_found_by_its_row() {
        for (row_bytes, order) in
            [(4, ByteOrder::Little), (8, ByteOrder::Little), (4, ByteOrder::Big), (8, ByteOrder::Big)]
        {
            let put = |word: u64, len: usize| match order {
                ByteOrder::Little => word.to_le_bytes()[..len].to_vec(),
                ByteOrder::Big => word.to_be_bytes()[8 - len..].to_vec(),
            };
            let words = |words: &[u64], len: usize| words.iter().flat_map(|&word| put(word, len)).collect::<Vec<u8>>();
            let flags = if row_bytes == 8 { u64::from(WIDE_ROWS) } else { 0 };
            // values of two bytes for the rows 0, 1, 2, 4 and 5, not in the order of their places
            let starts = words(&[0, 1, 2, 4, 5], row_bytes);
            let parts = [put(14 | flags, 4), (10..20).collect(), put(5, 4), starts, words(&[8, 0, 2, 4, 6], 4)];
            let bucket = Bucket::decode(parts.concat(), order, 1).unwrap();
            let cell = |row: u64| [18u8, 10, 12, 12, 14, 16, 16][row as usize];
            for first in 0..7 {
                for end in first + 1..=7 {
                    let mut out = vec![0; 2 * (end - first) as usize];
                    bucket.fill(0, first..end, 2, &mut 0, &mut out).unwrap();
                    let expected: Vec<u8> = (first..end).flat_map(|row| [cell(row), cell(row) + 1]).collect();
                    assert_eq!(out, expected, "rows {first}..{end}");
                }
            }
            // a place outside of the data part
            let starts = words(&[0, 1], row_bytes);
            let parts = [put(6 | flags, 4), vec![1, 2], put(2, 4), starts, words(&[0, 1], 4)];
            let bucket = Bucket::decode(parts.concat(), order, 1).unwrap();
            assert!(bucket.fill(0, 0..2, 2, &mut 0, &mut [0; 4]).is_none());
        }
    }

    #[test]
    fn values_fill_the_rows_for_which_they_hold() {
        let expected = [1, 1, 1, 2, 3, 3, 3, 3, 3, 4, 4, 4];
        for bucket in [4, 8].into_iter().flat_map(|n| [ByteOrder::Little, ByteOrder::Big].map(|order| bucket(n, order)))
        {
            for first in [0, 1, 3, 4, 100] {
                let mut entry = first;
                for rows in [0..12, 0..1, 1..3, 2..5, 9..12, 8..9, 5..5 + 1, 3..12, 0..4, 11..12] {
                    let expected = &expected[rows.start as usize..rows.end as usize];
                    let mut out = vec![0; expected.len()];
                    bucket.fill(0, rows.clone(), 1, &mut entry, &mut out).unwrap();
                    assert_eq!(out, expected, "rows {rows:?} from value {first}");
                    assert_eq!(entry + 1, usize::from(expected[expected.len() - 1]), "rows {rows:?}");
                    // the value that reading one by one finds
                    for (row, value) in rows.zip(expected) {
                        assert_eq!(bucket.runs(0, row).next().unwrap().unwrap().value[0], *value);
                    }
                }
                let mut out = [0; 3];
                bucket.fill(1, 7..10, 1, &mut 0, &mut out).unwrap();
                assert_eq!(out, [3; 3]);
            }
            // values of 2 bytes, the last of which leaves the data part; and of 3
            let mut out = [0; 6];
            bucket.fill(0, 3..6, 2, &mut 0, &mut out).unwrap();
            assert_eq!(out, [2, 3, 3, 4, 3, 4]);
            assert!(bucket.fill(0, 9..12, 2, &mut 0, &mut out).is_none());
            bucket.fill(0, 2..4, 3, &mut 0, &mut out).unwrap_or_else(|| panic!("rows 2 to 4"));
            assert_eq!(out, [1, 2, 3, 2, 3, 4]);
            assert!(bucket.fill(0, 3..5, 3, &mut 0, &mut out).is_none());
            // room for other rows
            assert!(bucket.fill(0, 0..12, 1, &mut 0, &mut [0; 5]).is_none());
        }
    }
}
