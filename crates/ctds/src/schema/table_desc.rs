//! The description of a table in `table.dat`: the AipsIO object `TableDesc`. formats/table.md 2.2.

use bstr::BString;

use super::ColumnDesc;
use crate::aipsio::{Decoder, Encoder};
use crate::error::Result;
use crate::value::Record;

/// The description of a table: its keywords and columns.
///
/// | field            | type            | since     |
/// |------------------|-----------------|-----------|
/// | name             | string          |           |
/// | version          | string          |           |
/// | comment          | string          |           |
/// | keywords         | `TableRecord`   |           |
/// | private_keywords | `TableRecord`   | version 2 |
/// | columns          | u32, then each  |           |
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableDesc {
    /// Name of the table description, often empty.
    pub name: BString,
    /// Version text that the creator of the table description chose; not the version of a format.
    pub version: BString,
    /// Comment on the table, free text.
    pub comment: BString,
    /// Keywords of the table; those that name subtables are among them.
    pub keywords: Record,
    /// Private keywords of the table: definitions of hypercolumns of tiled managers.
    pub private_keywords: Record,
    /// Descriptions of the columns, in the order in which they were added to the table.
    pub columns: Vec<ColumnDesc>,
}

impl TableDesc {
    pub(super) fn decode(d: &mut Decoder<'_>) -> Result<Self> {
        let format = d.start("TableDesc", 1..=2)?;
        let name = d.string("name")?;
        let version = d.string("version")?;
        let comment = d.string("comment")?;
        let keywords = d.record()?;
        let private_keywords = if format >= 2 { d.record()? } else { Record::default() };
        let count = d.u32("number of columns")?;
        let mut columns: Vec<ColumnDesc> = Vec::new();
        for _ in 0..count {
            let column = ColumnDesc::decode(d)?;
            if columns.iter().any(|other| other.name == column.name) {
                return Err(d.error(format!("two columns named {:?}", column.name)));
            }
            columns.push(column);
        }
        d.end()?;
        Ok(TableDesc { name, version, comment, keywords, private_keywords, columns })
    }

    pub(super) fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.start("TableDesc", 2);
        e.string(&self.name);
        e.string(&self.version);
        e.string(&self.comment);
        e.record("TableRecord", &self.keywords)?;
        e.record("TableRecord", &self.private_keywords)?;
        e.u32(self.columns.len() as u32);
        self.columns.iter().try_for_each(|column| column.encode(e))?;
        e.end();
        Ok(())
    }
}
