//! The header of a StandardStMan file, and the bytes that the manager keeps in `table.dat`.

use bstr::BString;

use crate::aipsio::{Decoder, Encoder};
use crate::error::Result;
use crate::io::{ByteOrder, ReadAt};

/// AipsIO object `StandardStMan`, in the byte order of the table. formats/stman.md 1.1. Written are
/// version 2 in big-endian tables and 3 in little-endian ones.
///
/// | field | type | since | meaning |
/// |---------------|------|-------|---------------------------------------------------------------------|
/// | big_endian | bool | 3 | must agree with the table; older versions are big-endian |
/// | bucket_bytes | u32 | | |
/// | buckets | u32 | | in the file, of all kinds |
/// | cache | u32, since 4 u64 | | hint for the cache size |
/// | free | u32 | | free buckets |
/// | first_free | i32 | | -1 for none |
/// | index_buckets | u32 | | |
/// | first_index | i32 | | bucket in which the index begins, -1 for none |
/// | index_offset | u32 | 2 | byte in the bucket where all of the index is; 0: after the links |
/// | last_heap | i32 | | bucket where strings are appended, -1 for none |
/// | index_bytes | u32 | | |
/// | indices | u32 | | |
#[derive(Debug)]
pub(super) struct Header {
    pub(super) bucket_bytes: u32,
    pub(super) buckets: u32,
    /// A hint beyond `i32::MAX` counts as all buckets: casacore reserves memory for each.
    pub(super) cache: u32,
    pub(super) free: u32,
    pub(super) first_free: i32,
    pub(super) index_buckets: u32,
    pub(super) first_index: i32,
    pub(super) index_offset: u32,
    pub(super) last_heap: i32,
    pub(super) index_bytes: u32,
    pub(super) indices: u32,
}

impl Header {
    pub(super) fn decode(file: &dyn ReadAt, order: ByteOrder) -> Result<Self> {
        let mut d = Decoder::new(file, 0, order, "header")?;
        let version = d.root("StandardStMan", 1..=4)?;
        let big_endian = if version >= 3 { d.bool("big endian flag")? } else { true };
        if big_endian != (order == ByteOrder::Big) {
            return Err(d.error(format!("big endian: {big_endian}, but the table is {} endian", order.name())));
        }
        let bucket_bytes = d.u32("bucket size")?;
        let buckets = d.u32("number of buckets")?;
        let cache = d.uint("cache size", version >= 4)?;
        let cache = if cache > i32::MAX as u64 { buckets } else { cache as u32 };
        let free = d.u32("number of free buckets")?;
        let first_free = d.i32("first free bucket")?;
        let index_buckets = d.u32("number of index buckets")?;
        let first_index = d.i32("first index bucket")?;
        let index_offset = if version >= 2 { d.u32("index offset")? } else { 0 };
        let last_heap = d.i32("last string bucket")?;
        let index_bytes = d.u32("index length")?;
        let indices = d.u32("number of indices")?;
        d.end()?;
        Ok(Header {
            bucket_bytes,
            buckets,
            cache,
            free,
            first_free,
            index_buckets,
            first_index,
            index_offset,
            last_heap,
            index_bytes,
            indices,
        })
    }

    pub(super) fn encode(&self, order: ByteOrder) -> Vec<u8> {
        let mut e = Encoder::new(order);
        match order {
            ByteOrder::Big => e.root("StandardStMan", 2),
            ByteOrder::Little => {
                e.root("StandardStMan", 3);
                e.bool(false);
            }
        }
        e.u32(self.bucket_bytes);
        e.u32(self.buckets);
        e.u32(self.cache);
        e.u32(self.free);
        e.i32(self.first_free);
        e.u32(self.index_buckets);
        e.i32(self.first_index);
        e.u32(self.index_offset);
        e.i32(self.last_heap);
        e.u32(self.index_bytes);
        e.u32(self.indices);
        e.end();
        e.into_bytes()
    }
}

/// AipsIO object `SSM` in `table.dat`, always big-endian. Blocks may be longer than there are
/// columns: entries of removed columns remain. formats/stman.md 1.7.
///
/// | field   | type      | meaning                                              |
/// |---------|-----------|------------------------------------------------------|
/// | name    | string    | of the manager                                       |
/// | offsets | block u32 | byte in each bucket where the column's rows begin    |
/// | sets    | block u32 | number of the index that knows the column's buckets  |
#[derive(Debug)]
pub(super) struct Info {
    pub(super) name: BString,
    pub(super) offsets: Vec<u32>,
    pub(super) sets: Vec<u32>,
}

impl Info {
    pub(super) fn decode(info: &[u8], columns: usize) -> Result<Self> {
        let mut d = Decoder::new(&info, 0, ByteOrder::Big, "data manager info")?;
        d.root("SSM", 1..=2)?;
        let name = d.string("name")?;
        let offsets = d.block_u32("column offsets")?;
        let sets = d.block_u32("column sets")?;
        d.end()?;
        let described = offsets.len().min(sets.len());
        if described < columns {
            return Err(d.error(format!("{described} columns described, the table has {columns} in this manager")));
        }
        Ok(Info { name, offsets, sets })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut e = Encoder::new(ByteOrder::Big);
        e.root("SSM", 2);
        e.string(&self.name);
        e.block_u32(&self.offsets);
        e.block_u32(&self.sets);
        e.end();
        e.into_bytes()
    }
}
