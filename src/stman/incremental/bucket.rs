//! A bucket of IncrementalStMan: values, and for each column the rows from which they hold.

use crate::error::{Error, Result};
use crate::io::ByteOrder;

/// Bits of a bucket's first word that give the offset of the index part; the others tell that rows have 64 bits.
const INDEX_OFFSET_MASK: u32 = 0x0fff_ffff;

/// Size in bytes of a bucket's header before the data part; the offsets of values count from its end.
pub(super) const HEADER_BYTES: usize = 4;

/// Bit of a bucket's first word that casacore sets for row numbers of 64 bits.
pub(super) const WIDE_ROWS: u32 = 1 << 31;

/// A bucket of IncrementalStMan, in the byte order of the table. formats/stman.md 2.3.
///
/// | field        | type           | meaning                                                             |
/// |--------------|----------------|---------------------------------------------------------------------|
/// | index_offset | u32            | of the index part; a non-zero upper half byte: rows are u64         |
/// | data         |                | values, to the index part                                           |
/// | count        | u32            | per column: values, at least 1                                      |
/// | rows         | u32 or u64 each | per column: row from which a value holds, from the bucket's first  |
/// | offsets      | u32 each       | per column: where the value is in the data part                     |
///
/// What follows the index part is left from earlier contents.
#[derive(Debug)]
pub(super) struct Bucket {
    bytes: Vec<u8>,
    order: ByteOrder,
    /// Offset of the index part in the bucket in bytes, which is the end of the data part.
    index_offset: usize,
    /// Size of a row number in the bucket, in bytes: 4 or 8.
    row_bytes: usize,
    columns: Vec<Entries>,
}

/// Where the row numbers and value offsets of one column are in the index part of a bucket.
#[derive(Debug, Clone, Copy)]
struct Entries {
    /// Offset of the column's row numbers in the bucket, in bytes.
    rows: usize,
    count: usize,
}

/// A value of a column in a bucket, and the rows for which it holds, counted from the bucket's first row.
#[derive(Debug)]
pub(super) struct Run<'a> {
    /// Bytes from the value to the end of the data part: only its content tells how long it is.
    pub(super) value: &'a [u8],
    /// The row after the last one for which the value holds, counted from the bucket's first; `None` if it holds to the end of
    /// the bucket.
    pub(super) end: Option<u64>,
}

impl Bucket {
    /// Reads a bucket with `columns` columns from its bytes, and checks its index part.
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
            let rows = || (0..count).map(|entry| bucket.row(entries, entry));
            if rows().next() != Some(0) || !rows().is_sorted_by(|a, b| a < b) {
                return Err(Error::format(format!("the rows of column {column}'s values do not ascend from 0")));
            }
            bucket.columns.push(entries);
        }
        Ok(bucket)
    }

    /// The values of a column, by its number from 0, from the one that holds for `row` (counted from the bucket's first) on.
    pub(super) fn runs(&self, column: usize, row: u64) -> impl Iterator<Item = Result<Run<'_>>> {
        let entries = self.columns[column];
        (self.find(entries, row)..entries.count).map(move |entry| self.run(column, entry))
    }

    /// The value of a column that holds for `row`, counted from the bucket's first. `entry` is the index of the value that
    /// was found last, where the search begins; it is set to that of this value.
    pub(super) fn run_near(&self, column: usize, row: u64, entry: &mut usize) -> Result<Run<'_>> {
        let entries = self.columns[column];
        let starts_by = |entry: usize| entry < entries.count && self.row(entries, entry) <= row;
        // rows ascend: the value of the last row, or the next one
        if !starts_by(*entry) {
            *entry = self.find(entries, row);
        } else if starts_by(*entry + 1) {
            *entry += 1;
            if starts_by(*entry + 1) {
                *entry = self.find(entries, row);
            }
        }
        self.run(column, *entry)
    }

    /// Index, among a column's entries in a bucket, of the entry whose value holds for `row`, counted from the bucket's
    /// first.
    fn find(&self, entries: Entries, row: u64) -> usize {
        // the first entry beyond `row`; there is one before it, because the first row is 0
        let (mut low, mut high) = (1, entries.count);
        while low < high {
            let middle = low.midpoint(high);
            if self.row(entries, middle) <= row { low = middle + 1 } else { high = middle }
        }
        low - 1
    }

    /// The value of an entry (from 0) of a column in a bucket, and where the rows for which it holds end.
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

    /// The row from which the value of an entry holds, counted from the bucket's first; decoding has checked that the entry
    /// is inside the bucket.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_from_the_last_one_on() {
        // four values of a column, of one byte each, and one of another column
        let words = [8, 0x0403_0201, 4, 0, 3, 4, 9, 0, 1, 2, 3, 1, 0, 2];
        let bytes = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        let bucket = Bucket::decode(bytes, ByteOrder::Little, 2).unwrap();
        let value_of = |run: Run<'_>| (run.value[0], run.end);
        for first in [0, 1, 3, 4, 100] {
            let mut entry = first;
            for row in [0, 1, 2, 3, 4, 5, 8, 9, 100, 3, 0, 9, 4, 0, 4] {
                let found = value_of(bucket.run_near(0, row, &mut entry).unwrap());
                let expected = value_of(bucket.runs(0, row).next().unwrap().unwrap());
                assert_eq!(found, expected, "row {row} from value {first}");
                let (value, end) = match row {
                    0..3 => (1, Some(3)),
                    3 => (2, Some(4)),
                    4..9 => (3, Some(9)),
                    _ => (4, None),
                };
                assert_eq!(found, (value, end), "row {row}");
            }
            assert_eq!(value_of(bucket.run_near(1, 7, &mut entry).unwrap()), (3, None));
        }
    }
}
