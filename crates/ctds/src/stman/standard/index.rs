//! The indices of a StandardStMan file: for each column set (columns that share buckets), which
//! bucket holds which rows.
//!
//! The indices of all column sets follow each other in one string of bytes, which lies in index
//! buckets:
//!
//! ```text
//! index offset 0:   header -> [next|next|bytes ...] -> [next|next|bytes ...] -> ...
//! index offset > 0: header -> [next|next| ... bytes ... ]     all of it at that offset; halves alternate when rewritten
//! ```

use std::collections::BTreeSet;

use super::header::Header;
use crate::aipsio::{Decoder, Encoder};
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{ByteOrder, read_array, read_bytes};
use crate::stman::bucket::{Buckets, BucketsMut, link};
use crate::stman::checks::more_rows;

/// The number of the next index bucket, twice, each a big-endian i32. Casacore reads the second.
const LINK_BYTES: u64 = 8;

/// An entry is a position in the index. formats/stman.md 1.4. AipsIO object `SSMIndex`, with a
/// magic before each.
///
/// | field | v1 | v2 | meaning |
/// |-----------------|-------------|-------------|----------------------------------------------------|
/// | used | u32 | u32 | data buckets |
/// | rows_per_bucket | u32 | u32 | rows that fit a bucket |
/// | columns | i32 | i32 | columns in the set |
/// | free | map i32→i32 | map i32→i32 | byte offset in each bucket → free bytes |
/// | last_rows | block u32 | block u64 | last row of each bucket, ascending |
/// | buckets | block u32 | block u32 | their numbers, in the same order |
#[derive(Debug)]
pub(super) struct Index {
    /// Byte of the indices in the file, for errors; the first bucket if they fill whole ones.
    offset: u64,
    pub(super) rows_per_bucket: u32,
    pub(super) columns: i32,
    /// Offset and bytes of each unused part, the same in every bucket of the set.
    pub(super) free: Vec<(i32, i32)>,
    last_rows: Vec<u64>,
    pub(super) buckets: Vec<u32>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) bucket: u32,
    /// Number of the first within the bucket.
    pub(super) first: u64,
    pub(super) count: u64,
}

impl Index {
    /// One for each column set.
    pub(super) fn read_all(header: &Header, buckets: &Buckets, order: ByteOrder) -> Result<Vec<Self>> {
        let bytes = gather(header, buckets).context("index")?;
        let mut d = Decoder::new(&bytes, 0, order, "index")?;
        let offset = buckets.end().min(match header.index_bytes {
            0 => 0,
            _ => buckets.offset(header.first_index as u32, "the index")? + u64::from(header.index_offset),
        });
        // each takes bytes, so the number needs no check of its own
        let indices = (0..header.indices).map(|_| Self::decode(&mut d, offset)).collect::<Result<_>>();
        // the decoder counts from there
        indices.with_context(|| place(offset))
    }

    fn decode(d: &mut Decoder<'_>, offset: u64) -> Result<Self> {
        let version = d.root("SSMIndex", 1..=2)?;
        let used = d.u32("number of buckets")?;
        let rows_per_bucket = d.u32("rows per bucket")?;
        let columns = d.i32("number of columns")?;
        let free = d.map_i32("free space")?;
        let mut last_rows = d.block_uint("last rows", version >= 2)?;
        let mut buckets = d.block_u32("bucket numbers")?;
        let described = last_rows.len().min(buckets.len());
        if described < used as usize {
            return Err(d.error(format!("{used} buckets announced, but {described} described")));
        }
        last_rows.truncate(used as usize);
        buckets.truncate(used as usize);
        if !last_rows.is_sorted_by(|a, b| a < b) {
            return Err(d.error("the last rows of the buckets do not ascend"));
        }
        d.end()?;
        Ok(Index { offset, rows_per_bucket, columns, free, last_rows, buckets })
    }

    /// The bucket of `row`, and which rows up to `end` are in it.
    pub(super) fn find(&self, row: u64, end: u64) -> Result<Stretch> {
        self.at(self.last_rows.partition_point(|&last| last < row), row, end)
    }

    /// As [`find`](Self::find), searching from `entry`, which becomes that of the found bucket.
    pub(super) fn find_near(&self, row: u64, end: u64, entry: &mut usize) -> Result<Stretch> {
        let holds = |entry: usize| {
            self.last_rows.get(entry).is_some_and(|&last| row <= last)
                && (entry == 0 || self.last_rows[entry - 1] < row)
        };
        if !holds(*entry) {
            *entry += 1;
            if !holds(*entry) {
                *entry = self.last_rows.partition_point(|&last| last < row);
            }
        }
        self.at(*entry, row, end)
    }

    /// `row` must be in the bucket at `entry`.
    fn at(&self, entry: usize, row: u64, end: u64) -> Result<Stretch> {
        let Some(&last) = self.last_rows.get(entry) else {
            let covered = self.last_rows.last().map_or("no rows".into(), |last| format!("rows 0 to {last}"));
            return Err(
                Error::format(format!("row {row} is not stored: the index has {covered}")).context(place(self.offset))
            );
        };
        let bucket_start = if entry == 0 { 0 } else { self.last_rows[entry - 1] + 1 };
        if last - bucket_start >= u64::from(self.rows_per_bucket) {
            return Err(Error::format(format!(
                "rows {bucket_start} to {last} in bucket {}, but only {} fit",
                self.buckets[entry], self.rows_per_bucket
            ))
            .context(place(self.offset)));
        }
        let count = end.min(last.saturating_add(1)) - row;
        Ok(Stretch { bucket: self.buckets[entry], first: row - bucket_start, count })
    }
}

impl Index {
    /// Columns have the first `used_bytes` of a bucket, the next `free_bytes` are unused.
    pub(super) fn new(rows_per_bucket: u32, used_bytes: u64, free_bytes: u64) -> Self {
        let free = if free_bytes > 0 { vec![(used_bytes as i32, free_bytes as i32)] } else { Vec::new() };
        Index { offset: 0, rows_per_bucket, columns: 0, free, last_rows: Vec::new(), buckets: Vec::new() }
    }

    pub(super) fn encode(&self, e: &mut Encoder) {
        let wide = self.last_rows.last().is_some_and(|&last| last > i32::MAX as u64);
        e.root("SSMIndex", if wide { 2 } else { 1 });
        e.u32(self.buckets.len() as u32);
        e.u32(self.rows_per_bucket);
        e.i32(self.columns);
        e.map_i32(&self.free);
        e.block_uint(&self.last_rows, wide);
        e.block_u32(&self.buckets);
        e.end();
    }

    /// Fills the last bucket, then adds new ones.
    pub(super) fn add_rows(&mut self, count: u64, buckets: &mut BucketsMut) -> Result<()> {
        let mut next = self.last_rows.last().map_or(0, |&last| last + 1);
        let end = more_rows(next, count)?;
        if let Some(entry) = self.buckets.len().checked_sub(1) {
            let full = self.start(entry) + u64::from(self.rows_per_bucket);
            next = next.max(full.min(end));
            self.last_rows[entry] = next - 1;
        }
        while next < end {
            self.buckets.push(buckets.take()?);
            next = end.min(next + u64::from(self.rows_per_bucket));
            self.last_rows.push(next - 1);
        }
        Ok(())
    }

    pub(super) fn rest(&self, row: u64) -> Result<Stretch> {
        self.find(row, u64::MAX)
    }

    /// Returns the number of the bucket if it has no other rows and can be freed.
    pub(super) fn remove_row(&mut self, row: u64) -> Option<u32> {
        let entry = self.last_rows.partition_point(|&last| last < row);
        let alone = self.start(entry) == self.last_rows[entry];
        let emptied = alone.then(|| {
            self.last_rows.remove(entry);
            self.buckets.remove(entry)
        });
        self.last_rows[entry..].iter_mut().for_each(|last| *last -= 1);
        emptied
    }

    fn start(&self, entry: usize) -> u64 {
        if entry == 0 { 0 } else { self.last_rows[entry - 1] + 1 }
    }

    /// The smallest free part of at least `bytes` bytes.
    pub(super) fn best_fit(&self, bytes: u64) -> Option<(i32, i32)> {
        self.free.iter().copied().filter(|&(_, len)| len as u64 >= bytes).min_by_key(|&(_, len)| len)
    }

    pub(super) fn occupy(&mut self, offset: i32, bytes: i32) {
        if let Some(part) = self.free.iter_mut().find(|part| part.0 == offset) {
            *part = (offset + bytes, part.1 - bytes);
        }
        self.free.retain(|part| part.1 > 0);
    }

    /// Joins free parts beside each other.
    pub(super) fn vacate(&mut self, offset: i32, bytes: i32) {
        self.free.push((offset, bytes));
        self.free.sort_unstable();
        self.free.dedup_by(|part, before| {
            let adjacent = before.0 + before.1 == part.0;
            if adjacent {
                before.1 += part.1;
            }
            adjacent
        });
    }
}

#[derive(Debug, Default)]
pub(super) struct IndexBuckets {
    /// Ordered as a linked list.
    pub(super) numbers: Vec<u32>,
    /// Offset within the only bucket, if the indices fit into half of it; else 0.
    pub(super) offset: u32,
}

impl IndexBuckets {
    /// Writes elsewhere than before; the old place can be reused afterwards. formats/stman.md 1.4.
    pub(super) fn write(&mut self, bytes: &[u8], buckets: &mut BucketsMut) -> Result<()> {
        let capacity = buckets.bytes() as usize - LINK_BYTES as usize;
        let half = (LINK_BYTES as usize + capacity / 2) as u32;
        let fits_half = bytes.len() <= capacity / 2;
        if fits_half && self.offset > 0 {
            self.offset = if self.offset == half { LINK_BYTES as u32 } else { half };
            return buckets.file().write(buckets.offset(self.numbers[0]) + u64::from(self.offset), bytes);
        }
        // as casacore does, the last part first
        let mut numbers = Vec::new();
        for part in bytes.chunks(capacity).rev() {
            let next = link(numbers.last().copied()).to_be_bytes();
            let number = buckets.take()?;
            buckets.file().write(buckets.offset(number), &[&next, &next, part].concat())?;
            numbers.push(number);
        }
        numbers.reverse();
        for old in std::mem::replace(&mut self.numbers, numbers) {
            buckets.give(old)?;
        }
        self.offset = if fits_half { LINK_BYTES as u32 } else { 0 };
        Ok(())
    }
}

fn place(offset: u64) -> Context {
    Context::offset("index", offset)
}

fn gather(header: &Header, buckets: &Buckets) -> Result<Vec<u8>> {
    let bucket_bytes = u64::from(buckets.bucket_bytes);
    let capacity = bucket_bytes.saturating_sub(LINK_BYTES);
    let mut left = u64::from(header.index_bytes);
    let mut bytes = Vec::new();
    let mut next = header.first_index;
    if header.index_offset > 0 {
        let start = buckets.offset(next as u32, "the first index bucket")?;
        if u64::from(header.index_offset) + left > bucket_bytes {
            return Err(Error::format(format!(
                "{left} bytes at byte {} do not fit into the bucket, which has {bucket_bytes}",
                header.index_offset
            )));
        }
        return read_bytes(&buckets.file, start + u64::from(header.index_offset), left);
    }
    if left > capacity * u64::from(buckets.count) {
        return Err(Error::format(format!("{left} bytes announced, more than all buckets hold")));
    }
    let mut seen = BTreeSet::<i32>::new();
    while left > 0 {
        if !seen.insert(next) {
            return Err(Error::format(format!("bucket {next} comes twice in the chain, {left} bytes before its end")));
        }
        let start = buckets.offset(next as u32, "the next index bucket")?;
        let part = left.min(capacity);
        bytes.extend_from_slice(&read_bytes(&buckets.file, start + LINK_BYTES, part)?);
        left -= part;
        next = i32::from_be_bytes(read_array(&buckets.file, start + LINK_BYTES / 2)?);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::io::MemoryFile;

    #[test]
    fn rows_are_found_by_the_last_of_each_bucket() {
        // a row was removed from the first bucket
        let index = Index {
            offset: 520,
            rows_per_bucket: 4,
            columns: 1,
            free: vec![],
            last_rows: vec![2, 6, 7],
            buckets: vec![5, 1, 2],
        };
        let find = |row, end| index.find(row, end).unwrap();
        assert_eq!(find(0, 8), Stretch { bucket: 5, first: 0, count: 3 });
        assert_eq!(find(3, 8), Stretch { bucket: 1, first: 0, count: 4 });
        assert_eq!(find(5, 6), Stretch { bucket: 1, first: 2, count: 1 });
        assert_eq!(find(7, 8), Stretch { bucket: 2, first: 0, count: 1 });
        // from any entry on
        for first in 0..5 {
            let mut entry = first;
            for row in [0, 1, 3, 6, 7, 2, 7, 0, 3, 7, 6] {
                assert_eq!(index.find_near(row, 8, &mut entry).unwrap(), find(row, 8), "row {row} from entry {first}");
            }
            assert!(index.find_near(8, 9, &mut entry).is_err());
        }
        let error = index.find(8, 9).unwrap_err();
        assert_eq!(error.to_string(), "index at byte 520: row 8 is not stored: the index has rows 0 to 7");
        assert_eq!(error.kind(), crate::ErrorKind::Format);
    }

    #[test]
    fn free_parts_are_joined_and_used() {
        let mut index = Index::new(8, 96, 32);
        for (offset, bytes) in [(0, 16), (80, 16), (32, 8)] {
            index.vacate(offset, bytes);
        }
        assert_eq!(index.free, [(0, 16), (32, 8), (80, 48)]);
        assert_eq!((index.best_fit(9), index.best_fit(17)), (Some((0, 16)), Some((80, 48))));
        index.occupy(80, 40);
        index.occupy(0, 16);
        assert_eq!(index.free, [(32, 8), (120, 8)]);
    }

    #[test]
    fn indices_are_never_written_over_the_last_ones() {
        let mut buckets = BucketsMut::create(Arc::new(MemoryFile::default()), 128).unwrap();
        let mut index = IndexBuckets::default();
        let mut write = |len| {
            index.write(&vec![7; len], &mut buckets).unwrap();
            (index.offset, index.numbers.clone(), buckets.free)
        };
        // two fit a bucket
        assert_eq!([60; 3].map(&mut write), [(8, vec![0], 0), (68, vec![0], 0), (8, vec![0], 0)]);
        assert_eq!(write(130), (0, vec![2, 1], 1));
        assert_eq!(write(60), (8, vec![0], 2));
    }
}
