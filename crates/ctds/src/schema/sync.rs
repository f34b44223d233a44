//! The sync record in `table.lock`, which decides on the number of rows of a table.
//! formats/table.md 4.2, 4.3.

use crate::aipsio::{Decoder, Encoder};
use crate::error::{Result, ResultExt};
use crate::io::{ByteOrder, ReadAt};

/// The list of lock requests comes before.
const LENGTH_OFFSET: u64 = 260;

/// The sync record in `table.lock`, by which the last writer tells other processes what changed.
///
/// | field   | v1          | v2          | meaning                                                  |
/// |---------|-------------|-------------|----------------------------------------------------------|
/// | rows    | u32         | u64         |                                                          |
/// | columns | i32         | i32         | -1: written by a filler, and the next two are absent     |
/// | modify  | u32         | u32         | counts flushes that changed anything                     |
/// | table   | u32         | u32         | counts changes of table.dat                              |
/// | managers| `Block` u32 | `Block` u32 | counts changes per data manager                          |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sync {
    pub rows: u64,
    pub modify: u32,
    /// Missing after a filler (a program that only appends) has written the record.
    pub counters: Option<Counters>,
}

/// Casacore tells other processes by these counters what to read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    pub columns: u32,
    pub table: u32,
    /// Changes of each data manager, ordered as in `table.dat`.
    pub managers: Vec<u32>,
}

impl Sync {
    /// `None` if no record was written yet.
    pub fn read(lock: &dyn ReadAt) -> Result<Option<Self>> {
        if lock.len()? < LENGTH_OFFSET + 4 {
            return Ok(None);
        }
        let mut d = Decoder::new(lock, LENGTH_OFFSET, ByteOrder::Big, "sync record")?;
        if d.u32("length")? == 0 {
            return Ok(None);
        }
        Self::decode(&mut d).map(Some).context("lock file")
    }

    fn decode(d: &mut Decoder<'_>) -> Result<Self> {
        let version = d.root("sync", 1..=2)?;
        let rows = d.uint("rows", version == 2)?;
        let columns = d.i32("columns")?;
        let modify = d.u32("modify counter")?;
        let counters = match u32::try_from(columns) {
            Ok(columns) => {
                let (table, managers) = (d.u32("table counter")?, d.block_u32("data manager counters")?);
                Some(Counters { columns, table, managers })
            }
            Err(_) => None,
        };
        d.end()?;
        Ok(Sync { rows, modify, counters })
    }

    /// The record with its length, as it follows the list of lock requests.
    pub fn encode(&self) -> Vec<u8> {
        let mut e = Encoder::new(ByteOrder::Big);
        let wide = super::is_wide(self.rows);
        e.root("sync", if wide { 2 } else { 1 });
        e.uint(self.rows, wide);
        e.i32(self.counters.as_ref().map_or(-1, |counters| counters.columns as i32));
        e.u32(self.modify);
        if let Some(counters) = &self.counters {
            e.u32(counters.table);
            e.block_u32(&counters.managers);
        }
        e.end();
        let record = e.into_bytes();
        [(record.len() as u32).to_be_bytes().as_slice(), &record].concat()
    }

    /// A whole `table.lock` without lock requests.
    pub fn encode_file(&self) -> Vec<u8> {
        [[0; LENGTH_OFFSET as usize].as_slice(), &self.encode()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// formats/table.md 4.3, written by casacore.
    const RECORD: &[u8] = b"\0\0\0\x3d\xbe\xbe\xbe\xbe\0\0\0\x39\0\0\0\x04sync\0\0\0\x01\
        \0\0\0\x0d\0\0\0\x01\0\0\0\x12\0\0\0\x02\
        \0\0\0\x19\0\0\0\x05Block\0\0\0\x01\0\0\0\x01\0\0\0\x12";

    #[test]
    fn record_written_by_casacore() {
        let mut file = vec![0; 260];
        assert_eq!(Sync::read(&file).unwrap(), None);
        file.extend_from_slice(RECORD);
        let counters = Counters { columns: 1, table: 2, managers: vec![18] };
        let sync = Sync { rows: 13, modify: 18, counters: Some(counters) };
        assert_eq!(Sync::read(&file).unwrap().as_ref(), Some(&sync));
        assert_eq!(sync.encode_file(), file);
        for sync in [Sync { rows: 1 << 31, ..sync }, Sync { rows: 5, modify: 3, counters: None }] {
            assert_eq!(Sync::read(&sync.encode_file()).unwrap(), Some(sync));
        }
        file[264 + 12] = 9;
        assert!(Sync::read(&file).is_err());
    }
}
