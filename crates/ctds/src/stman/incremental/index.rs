//! The index of an IncrementalStMan file: which bucket holds which rows.

use crate::aipsio::{Decoder, Encoder};
use crate::error::{Context, Error, Result};
use crate::io::ByteOrder;
use crate::stman::bucket::Buckets;

/// AipsIO object `ISMIndex` after the last bucket, in the byte order of the table; an older, longer
/// index leaves bytes after it. formats/stman.md 2.2.
///
/// | field | v1 | v2 | meaning |
/// |---------|-----------|-----------|-------------------------------------------------|
/// | used | u32 | u32 | buckets in use, at least 1 |
/// | rows | block u32 | block u64 | first row of each, then the number of all rows |
/// | buckets | block u32 | block u32 | their numbers, in the same order |
#[derive(Debug)]
pub(super) struct Index {
    /// Byte offset in the file.
    offset: u64,
    pub(super) rows: Vec<u64>,
    pub(super) buckets: Vec<u32>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) bucket: u32,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Index {
    pub(super) fn read(buckets: &Buckets, order: ByteOrder) -> Result<Self> {
        let offset = buckets.end();
        let mut d = Decoder::new(&buckets.file, offset, order, "bucket index")?;
        let version = d.root("ISMIndex", 1..=2)?;
        let used = d.u32("number of buckets")? as usize;
        let mut rows = d.block_uint("first rows", version >= 2)?;
        let mut buckets = d.block_u32("bucket numbers")?;
        if rows.len() <= used || buckets.len() < used {
            return Err(d.error(format!(
                "{used} buckets announced, but {} first rows and {} numbers",
                rows.len(),
                buckets.len()
            )));
        }
        rows.truncate(used + 1);
        buckets.truncate(used);
        if !rows.is_sorted() || rows[0] != 0 {
            return Err(d.error("the first rows of the buckets do not ascend from 0"));
        }
        d.end()?;
        Ok(Index { offset, rows, buckets })
    }

    pub(super) fn find(&self, row: u64) -> Result<Found> {
        // an empty bucket starts with the row that the next one starts with
        let next = self.next_entry(row);
        let Some((&end, &start)) = self.rows.get(next).zip(self.rows.get(next.wrapping_sub(1))) else {
            let covered = self.rows.last().copied().unwrap_or_default();
            return Err(Error::format(format!("row {row} is not stored: the index has {covered} rows"))
                .context(Context::offset("ISMIndex", self.offset)));
        };
        Ok(Found { bucket: self.buckets[next - 1], start, end })
    }

    /// Index of the bucket after the one that holds `row`; the number of buckets after the last.
    pub(super) fn next_entry(&self, row: u64) -> usize {
        self.rows.partition_point(|&first| first <= row)
    }
}

impl Index {
    /// An index whose only bucket does not have rows yet.
    pub(super) fn new(bucket: u32) -> Self {
        Index { offset: 0, rows: vec![0, 0], buckets: vec![bucket] }
    }

    pub(super) fn table_rows(&self) -> u64 {
        self.rows.last().copied().unwrap_or_default()
    }

    pub(super) fn encode(&self, order: ByteOrder) -> Vec<u8> {
        let mut e = Encoder::new(order);
        let wide = self.table_rows() > i32::MAX as u64;
        e.root("ISMIndex", if wide { 2 } else { 1 });
        e.u32(self.buckets.len() as u32);
        e.block_uint(&self.rows, wide);
        e.block_u32(&self.buckets);
        e.end();
        e.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_the_first_of_each_bucket() {
        let index = Index { offset: 612, rows: vec![0, 5, 5, 9], buckets: vec![3, 0, 1] };
        assert_eq!(index.find(0).unwrap(), Found { bucket: 3, start: 0, end: 5 });
        assert_eq!(index.find(4).unwrap(), Found { bucket: 3, start: 0, end: 5 });
        assert_eq!(index.find(5).unwrap(), Found { bucket: 1, start: 5, end: 9 });
        assert_eq!(index.find(8).unwrap(), Found { bucket: 1, start: 5, end: 9 });
        assert_eq!(
            index.find(9).unwrap_err().to_string(),
            "ISMIndex at byte 612: row 9 is not stored: the index has 9 rows"
        );
        let empty = Index { offset: 612, rows: vec![0, 0], buckets: vec![0] };
        assert!(empty.find(0).is_err());
    }

    #[test]
    fn rows_beyond_31_bits_need_version_2() {
        let version = |rows| Index { rows: vec![0, rows], ..Index::new(0) }.encode(ByteOrder::Big)[23];
        assert_eq!((version(i32::MAX as u64), version(1 << 31)), (1, 2));
    }
}
