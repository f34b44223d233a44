//! The header of the file, and what the manager keeps in table.dat.

use bstr::BString;

use crate::aipsio::Decoder;
use crate::error::Result;
use crate::io::{ByteOrder, ReadAt};

/// The header, at byte 0 of the file: AipsIO object `IncrementalStMan`, in the byte order of the table.
///
/// formats/stman.md 2.1. Big-endian tables are written as version 4, little-endian ones as version 5.
///
/// | field        | type | since | meaning                                                  |
/// |--------------|------|-------|----------------------------------------------------------|
/// | big_endian   | bool | 5     | must agree with the table; older versions are big-endian |
/// | bucket_bytes | u32  |       |                                                          |
/// | buckets      | u32  |       | in the file, free ones included                          |
/// | cache        | u32  |       | hint for the cache size                                  |
/// | unique       | u32  |       | indirect columns ever made                               |
/// | free         | u32  | 2     | free buckets                                             |
/// | first_free   | i32  | 2     | -1 for none                                              |
#[derive(Debug)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) bucket_bytes: u32,
    pub(super) buckets: u32,
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
        d.u32("cache size")?;
        d.u32("unique number")?;
        if version >= 2 {
            d.u32("number of free buckets")?;
            d.i32("first free bucket")?;
        }
        d.end()?;
        Ok(Header { version, bucket_bytes, buckets })
    }
}

/// What the manager keeps in table.dat: AipsIO object `ISM`, always big-endian. formats/stman.md 2.7.
///
/// Its version is that of the manager: since version 3 all columns share one array file.
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
}
