//! The header of an IncrementalStMan file, and the bytes that the manager keeps in `table.dat`.

use bstr::BString;

use crate::aipsio::{Decoder, Encoder};
use crate::error::Result;
use crate::io::{ByteOrder, ReadAt};

/// AipsIO object `IncrementalStMan`, in the byte order of the table. formats/stman.md 2.1.
///
/// | field | type | since | meaning |
/// |--------------|------|-------|----------------------------------------------------------|
/// | big_endian | bool | 5 | must agree with the table; older versions are big-endian |
/// | bucket_bytes | u32 | | |
/// | buckets | u32 | | in the file, free ones included |
/// | cache | u32 | | hint for the cache size |
/// | unique | u32 | | indirect columns ever made |
/// | free | u32 | 2 | free buckets |
/// | first_free | i32 | 2 | -1 for none |
#[derive(Debug)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) bucket_bytes: u32,
    pub(super) buckets: u32,
    pub(super) cache: u32,
    pub(super) unique: u32,
    pub(super) free: u32,
    pub(super) first_free: i32,
}

impl Header {
    pub(super) fn decode(file: &dyn ReadAt, order: ByteOrder) -> Result<Self> {
        let mut d = Decoder::new(file, 0, order, "header")?;
        let version = d.root("IncrementalStMan", 1..=5)?;
        let big_endian = if version >= 5 { d.bool("big endian flag")? } else { true };
        if big_endian != (order == ByteOrder::Big) {
            return Err(d.error(format!("big endian: {big_endian}, but the table is {} endian", order.name())));
        }
        let bucket_bytes = d.u32("bucket size")?;
        let buckets = d.u32("number of buckets")?;
        let cache = d.u32("cache size")?;
        let unique = d.u32("unique number")?;
        let (free, first_free) = match version {
            1 => (0, -1),
            _ => (d.u32("number of free buckets")?, d.i32("first free bucket")?),
        };
        d.end()?;
        Ok(Header { version, bucket_bytes, buckets, cache, unique, free, first_free })
    }

    /// 4 for big-endian, 5 for little-endian.
    pub(super) fn version(order: ByteOrder) -> u32 {
        match order {
            ByteOrder::Big => 4,
            ByteOrder::Little => 5,
        }
    }

    pub(super) fn encode(&self, order: ByteOrder) -> Vec<u8> {
        let mut e = Encoder::new(order);
        e.root("IncrementalStMan", self.version);
        if self.version >= 5 {
            e.bool(order == ByteOrder::Big);
        }
        e.u32(self.bucket_bytes);
        e.u32(self.buckets);
        e.u32(self.cache);
        e.u32(self.unique);
        e.u32(self.free);
        e.i32(self.first_free);
        e.end();
        e.into_bytes()
    }
}

/// AipsIO object `ISM` in `table.dat`, always big-endian; its version is that of the manager.
/// formats/stman.md 2.7.
///
/// | field | type   | meaning        |
/// |-------|--------|----------------|
/// | name  | string | of the manager |
#[derive(Debug)]
pub(super) struct Info {
    pub(super) version: u32,
    pub(super) name: BString,
}

impl Info {
    pub(super) fn decode(info: &[u8]) -> Result<Self> {
        let mut d = Decoder::new(&info, 0, ByteOrder::Big, "data manager info")?;
        let version = d.root("ISM", 1..=3)?;
        let name = d.string("name")?;
        d.end()?;
        Ok(Info { version, name })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut e = Encoder::new(ByteOrder::Big);
        e.root("ISM", self.version);
        e.string(&self.name);
        e.end();
        e.into_bytes()
    }
}
