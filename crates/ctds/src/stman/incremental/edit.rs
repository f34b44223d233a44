//! Changes the values in a bucket of IncrementalStMan.

use std::ops::Range;

use super::bucket::{Bucket, HEADER_BYTES, WIDE_ROWS};
use super::cell::{Cell, Stored};
use crate::error::Result;
use crate::io::ByteOrder;

/// Casacore's accounting for row number and offset of a value, also for 32-bit row numbers.
const ENTRY_BYTES: usize = 12;

const COUNT_BYTES: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) row: u64,
    pub(super) value: Stored,
}

/// May be larger than in the file until it is split. Rows count from 0 at its first; a column's
/// first value holds from row 0 on, and successive values differ. Sizes: casacore's accounting.
#[derive(Debug, Clone)]
pub(super) struct BucketMut {
    /// Values in row order.
    columns: Vec<Vec<Entry>>,
    bytes: usize,
}

/// Added (1) and removed (-1) values of a column: changes of the reference counts of their arrays.
pub(super) type Changes = Vec<(Stored, i32)>;

impl BucketMut {
    pub(super) fn new(values: impl Iterator<Item = Stored>) -> Self {
        Self::of(values.map(|value| vec![Entry { row: 0, value }]).collect())
    }

    fn of(columns: Vec<Vec<Entry>>) -> Self {
        let entries = columns.iter().flatten().map(Entry::bytes).sum::<usize>();
        BucketMut { bytes: HEADER_BYTES + columns.len() * COUNT_BYTES + entries, columns }
    }

    pub(super) fn decode<A>(bytes: Vec<u8>, order: ByteOrder, cells: &[&Cell<A>]) -> Result<Self> {
        let bucket = Bucket::decode(bytes, order, cells.len())?;
        let mut columns = Vec::new();
        for (number, cell) in cells.iter().enumerate() {
            let mut row = 0;
            let mut entries = Vec::new();
            for run in bucket.runs(number, 0) {
                let run = run?;
                let value = Stored::from_slice(&run.value[..cell.stored_len(run.value, order)?]);
                entries.push(Entry { row, value });
                row = run.end.unwrap_or(row);
            }
            columns.push(entries);
        }
        Ok(Self::of(columns))
    }

    /// `bucket_bytes` must suffice.
    pub(super) fn encode(&self, order: ByteOrder, bucket_bytes: u32) -> Vec<u8> {
        let mut entries: Vec<_> = (0..)
            .zip(&self.columns)
            .flat_map(|(number, column)| {
                column.iter().enumerate().map(move |(entry, Entry { row, value })| (*row, number, entry, value))
            })
            .collect();
        // as they come when tables are written row by row
        entries.sort_unstable_by_key(|&(row, number, ..)| (row, number));
        let wide = entries.last().is_some_and(|&(row, ..)| row > i32::MAX as u64);
        let mut bytes = vec![0; HEADER_BYTES];
        let mut offsets: Vec<_> = self.columns.iter().map(|column: &Vec<Entry>| vec![0; column.len()]).collect();
        for (_, number, entry, value) in entries {
            let number: usize = number;
            offsets[number][entry] = (bytes.len() - HEADER_BYTES) as u32;
            bytes.extend_from_slice(value);
        }
        let index_offset = bytes.len() as u32 | if wide { WIDE_ROWS } else { 0 };
        bytes[..HEADER_BYTES].copy_from_slice(&order.u32_bytes(index_offset));
        for (column, offsets) in self.columns.iter().zip(offsets) {
            bytes.extend(order.u32_bytes(column.len() as u32));
            for entry in column {
                match wide {
                    true => bytes.extend(order.u64_bytes(entry.row)),
                    false => bytes.extend(order.u32_bytes(entry.row as u32)),
                }
            }
            offsets.into_iter().for_each(|offset| bytes.extend(order.u32_bytes(offset)));
        }
        bytes.resize(bucket_bytes as usize, 0);
        bytes
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn last_change(&self) -> u64 {
        self.columns.iter().filter_map(|column| column.last()).map(|entry| entry.row).max().unwrap_or_default()
    }

    /// The value in `row`, and the rows in which it holds; the bucket has `rows` rows.
    pub(super) fn find(&self, column: usize, row: u64, rows: u64) -> (&Stored, Range<u64>) {
        let entries = &self.columns[column];
        let next = entries.partition_point(|entry| entry.row <= row);
        let entry = &entries[next - 1];
        (&entry.value, entry.row..entries.get(next).map_or(rows, |entry| entry.row))
    }

    /// Upper bound of the size after [`replace`](Self::replace).
    pub(super) fn bytes_with(&self, column: usize, range: &Range<u64>, rows: u64, new: &[Entry]) -> usize {
        let after = if range.end < rows { ENTRY_BYTES + self.find(column, range.end, rows).0.len() } else { 0 };
        self.bytes + new.iter().map(Entry::bytes).sum::<usize>() + after
    }

    /// Replaces the values in `range`; the first of `new` is for its first row.
    pub(super) fn replace(&mut self, column: usize, range: Range<u64>, rows: u64, new: Vec<Entry>) -> Changes {
        let entries = &mut self.columns[column];
        let first = entries.partition_point(|entry| entry.row < range.start);
        let behind = entries.partition_point(|entry| entry.row <= range.end);
        // the value that holds after the range keeps holding
        let after = (range.end < rows).then(|| Entry { row: range.end, value: entries[behind - 1].value.clone() });
        let behind = if after.is_some() { behind } else { entries.len() };
        let mut merged: Vec<Entry> = Vec::with_capacity(new.len() + 1);
        let before = first.checked_sub(1).map(|before| entries[before].value.clone());
        for entry in new.into_iter().chain(after) {
            let last = merged.last().map(|last| &last.value).or(before.as_ref());
            if last != Some(&entry.value) {
                merged.push(entry);
            }
        }
        let mut changes: Changes = merged.iter().map(|entry| (entry.value.clone(), 1)).collect();
        self.bytes += merged.iter().map(Entry::bytes).sum::<usize>();
        for gone in entries.splice(first..behind, merged) {
            self.bytes -= gone.bytes();
            changes.push((gone.value, -1));
        }
        changes
    }

    /// The bucket has `rows` rows, at least two; returns the changes of each column.
    pub(super) fn remove_row(&mut self, row: u64, rows: u64) -> Vec<Changes> {
        let columns = self.columns.len();
        let mut remove = |column: usize| {
            let (_, range) = self.find(column, row, rows);
            let mut changes = Changes::new();
            if range == (row..row + 1) {
                // the value before also holds there, or else the one after
                let other = if row > 0 { row - 1 } else { row + 1 };
                let value = self.find(column, other, rows).0.clone();
                changes = self.replace(column, row..row + 1, rows, vec![Entry { row, value }]);
            }
            for entry in self.columns[column].iter_mut().filter(|entry| entry.row > row) {
                entry.row -= 1;
            }
            changes
        };
        (0..columns).map(&mut remove).collect()
    }

    /// Cuts into parts of about `wanted` bytes, each at least a row, at most `limit` or one row.
    pub(super) fn cuts(&self, limit: usize, wanted: usize) -> Vec<u64> {
        let mut entries: Vec<_> = (0..self.columns.len())
            .flat_map(|column| self.columns[column].iter().map(move |entry| (entry.row, column, entry.bytes())))
            .collect();
        entries.sort_unstable();
        let mut current = vec![0; self.columns.len()];
        let fixed = HEADER_BYTES + self.columns.len() * COUNT_BYTES;
        let mut bytes = fixed;
        let mut cuts = Vec::new();
        for changes in entries.chunk_by(|a, b| a.0 == b.0) {
            let more = changes.iter().map(|change| change.2).sum::<usize>();
            changes.iter().for_each(|&(_, column, bytes)| current[column] = bytes);
            let row = changes[0].0;
            if row > 0 && (bytes + more > limit || bytes >= wanted) {
                cuts.push(row);
                bytes = fixed + current.iter().sum::<usize>();
            } else {
                bytes += more;
            }
        }
        cuts
    }

    /// New bucket from `row` on. A value on both sides of the cut gets another reference.
    pub(super) fn split_off(&mut self, row: u64) -> (BucketMut, Vec<Changes>) {
        let mut changes = Vec::new();
        let mut parts = Vec::new();
        for column in &mut self.columns {
            let first = column.partition_point(|entry| entry.row < row);
            let mut part = column.split_off(first);
            part.iter_mut().for_each(|entry| entry.row -= row);
            let mut doubled = Changes::new();
            if part.first().is_none_or(|entry| entry.row > 0) {
                let value = column[first - 1].value.clone();
                doubled.push((value.clone(), 1));
                part.insert(0, Entry { row: 0, value });
            }
            parts.push(part);
            changes.push(doubled);
        }
        *self = Self::of(std::mem::take(&mut self.columns));
        (Self::of(parts), changes)
    }

    /// All values, each with -1, to remove the bucket.
    pub(super) fn all(&self) -> Vec<Changes> {
        let gone = |column: &Vec<Entry>| column.iter().map(|entry| (entry.value.clone(), -1)).collect();
        self.columns.iter().map(gone).collect()
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        ENTRY_BYTES + self.value.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(row: u64, byte: u8) -> Entry {
        Entry { row, value: Stored::from_slice(&[byte]) }
    }

    #[test]
    fn neighbours_differ() {
        let mut bucket = BucketMut::new([entry(0, 1).value].into_iter());
        let mut replace = |range, new: &[Entry]| {
            bucket.replace(0, range, 9, new.to_vec());
            (bucket.columns[0].clone(), bucket.bytes())
        };
        let reckoned = |entries: usize| HEADER_BYTES + COUNT_BYTES + entries * (ENTRY_BYTES + 1);
        let three = replace(3..5, &[entry(3, 2)]);
        assert_eq!(three, (vec![entry(0, 1), entry(3, 2), entry(5, 1)], reckoned(3)));
        let three = replace(4..5, &[entry(4, 1)]);
        assert_eq!(three, (vec![entry(0, 1), entry(3, 2), entry(4, 1)], reckoned(3)));
        let last = replace(8..9, &[entry(8, 3)]);
        assert_eq!(last, (vec![entry(0, 1), entry(3, 2), entry(4, 1), entry(8, 3)], reckoned(4)));
        let two = replace(3..4, &[entry(3, 1)]);
        assert_eq!(two, (vec![entry(0, 1), entry(8, 3)], reckoned(2)));
    }

    #[test]
    fn rows_have_64_bits_where_31_do_not_suffice() {
        for (row, wide) in [(i32::MAX as u64, false), (1 << 31, true)] {
            let mut bucket = BucketMut::new([entry(0, 1).value].into_iter());
            bucket.replace(0, row..row + 1, row + 1, vec![entry(row, 2)]);
            assert_eq!(bucket.encode(ByteOrder::Big, 64)[0], if wide { 0x80 } else { 0 });
        }
    }
}
