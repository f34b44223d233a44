//! table.lock: the sync record, which has the last word on the number of rows. formats/table.md 4.2, 4.3.

use crate::aipsio::Decoder;
use crate::error::{Place, Result};
use crate::io::{ByteOrder, ReadAt};

/// Offset of the length of the sync record, behind the list of lock requests.
const LENGTH_OFFSET: u64 = 260;

/// What the last writer left for others.
///
/// | field   | v1          | v2          | meaning                                                  |
/// |---------|-------------|-------------|----------------------------------------------------------|
/// | rows    | u32         | u64         |                                                          |
/// | columns | i32         | i32         | -1: written by a filler, and the next two are absent     |
/// | modify  | u32         | u32         | counts flushes that changed anything                     |
/// | table   | u32         | u32         | counts changes of table.dat                              |
/// | managers| `Block` u32 | `Block` u32 | counts changes per data manager                          |
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sync {
    pub(crate) rows: u64,
}

impl Sync {
    /// Reads the record of a lock file; `None` if nothing was written yet.
    pub(crate) fn read(lock: &dyn ReadAt) -> Result<Option<Self>> {
        if lock.len()? < LENGTH_OFFSET + 4 {
            return Ok(None);
        }
        let mut d = Decoder::new(lock, LENGTH_OFFSET, ByteOrder::Big, "sync record")?;
        if d.u32("length")? == 0 {
            return Ok(None);
        }
        Self::decode(&mut d).map(Some).at("lock file")
    }

    fn decode(d: &mut Decoder<'_>) -> Result<Self> {
        let version = d.root("sync", 1..=2)?;
        let rows = d.uint("rows", version == 2)?;
        let columns = d.i32("columns")?;
        d.u32("modify counter")?;
        if columns >= 0 {
            d.u32("table counter")?;
            d.block_u32("data manager counters")?;
        }
        d.end()?;
        Ok(Sync { rows })
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
        assert_eq!(Sync::read(&file).unwrap(), Some(Sync { rows: 13 }));
        file[264 + 12] = 9;
        assert!(Sync::read(&file).is_err());
    }
}
