//! table.dat: the object `Table`. formats/table.md 2.1, 3.

use super::{ColumnSet, ConcatTable, RefTable, TableDesc};
use crate::aipsio::Decoder;
use crate::error::Result;
use crate::io::{ByteOrder, ReadAt};

/// What a table is.
///
/// | field  | v1, v2 | v3     | meaning                                                         |
/// |--------|--------|--------|-----------------------------------------------------------------|
/// | rows   | u32    | u64    | may be stale: table.lock has the last word                      |
/// | endian | u32    | u32    | 0 big, 1 little: of the data files                              |
/// | kind   | string | string | `PlainTable`, `RefTable`, `ConcatTable`                         |
/// | body   |        |        | [`Body`]                                                        |
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableDat {
    pub(crate) rows: u64,
    pub(crate) order: ByteOrder,
    pub(crate) body: Body,
}

/// The part that depends on the kind of the table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    /// A table with data of its own.
    Plain(Box<(TableDesc, ColumnSet)>),
    /// A selection from another table.
    Reference(RefTable),
    /// Several tables, one after the other.
    Concatenation(ConcatTable),
}

impl TableDat {
    pub(crate) fn decode(file: &dyn ReadAt) -> Result<Self> {
        let mut d = Decoder::new(file, 0, ByteOrder::Big, "table.dat")?;
        if file.is_empty()? {
            return Err(d.error("the file is empty: the table is still being made, or was never finished"));
        }
        let version = d.root("Table", 1..=3)?;
        let rows = d.uint("rows", version >= 3)?;
        let order = match d.u32("endian flag")? {
            0 => ByteOrder::Big,
            1 => ByteOrder::Little,
            flag => return Err(d.error(format!("endian flag {flag}, known are 0 (big) and 1 (little)"))),
        };
        let kind = d.string("table kind")?;
        let body = match kind.as_slice() {
            b"PlainTable" => Self::decode_plain(&mut d, version)?,
            b"RefTable" => Body::Reference(RefTable::decode(&mut d, rows)?),
            b"ConcatTable" => Body::Concatenation(ConcatTable::decode(&mut d)?),
            _ => return Err(d.error(format!("table kind {kind:?}, known are PlainTable, RefTable and ConcatTable"))),
        };
        d.end()?;
        Ok(TableDat { rows, order, body })
    }

    fn decode_plain(d: &mut Decoder<'_>, version: u32) -> Result<Body> {
        let mut desc = TableDesc::decode(d)?;
        if version == 1 {
            for field in d.record()?.fields {
                desc.keywords.set(field.name, field.value);
            }
        }
        let columns = ColumnSet::decode(d, &mut desc)?;
        Ok(Body::Plain(Box::new((desc, columns))))
    }
}
