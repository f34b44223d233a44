//! The file `table.dat`: the AipsIO object `Table`. formats/table.md 2.1, 3.

use super::{ColumnSet, ConcatTable, RefTable, TableDesc};
use crate::aipsio::{Decoder, Encoder};
use crate::error::{Error, Result};
use crate::io::{ByteOrder, ReadAt};

/// Content of `table.dat`, the main file of a table.
///
/// | field  | v1, v2 | v3     | meaning                                                         |
/// |--------|--------|--------|-----------------------------------------------------------------|
/// | rows   | u32    | u64    | may be stale: table.lock has the last word                      |
/// | endian | u32    | u32    | 0 big, 1 little: of the data files                              |
/// | kind   | string | string | `PlainTable`, `RefTable`, `ConcatTable`                         |
/// | body   |        |        | [`Body`]                                                        |
#[derive(Debug, Clone, PartialEq)]
pub struct TableDat {
    pub rows: u64,
    pub order: ByteOrder,
    pub body: Body,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A table with data of its own.
    Plain(Box<(TableDesc, ColumnSet)>),
    /// Rows and columns of another table.
    Reference(RefTable),
    Concatenation(ConcatTable),
}

impl TableDat {
    pub fn decode(file: &dyn ReadAt) -> Result<Self> {
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

    /// Plain tables only: version 2 if the number of rows fits in 32 bits.
    ///
    /// # Errors
    /// `Unsupported` for other tables, and for keywords that casacore's records cannot hold.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let Body::Plain(plain) = &self.body else {
            return Err(Error::unsupported("only tables with data of their own are written"));
        };
        let (desc, columns) = &**plain;
        let mut e = Encoder::new(ByteOrder::Big);
        let wide = super::is_wide(self.rows);
        e.root("Table", if wide { 3 } else { 2 });
        e.uint(self.rows, wide);
        e.u32(match self.order {
            ByteOrder::Big => 0,
            ByteOrder::Little => 1,
        });
        e.string("PlainTable");
        desc.encode(&mut e)?;
        columns.encode(&mut e, self.rows, desc);
        e.end();
        Ok(e.into_bytes())
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

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::error::{ErrorKind, Fails};

    fn find(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => find(&path, found),
                false if path.file_name().unwrap() == "table.dat" => found.push(path),
                false => {}
            }
        }
    }

    #[test]
    fn descriptions_that_contradict_themselves() {
        let read = |name: &str| std::fs::read(ctds_hdf5_testing::testdata().join(name).join("table.dat")).unwrap();
        let decode = |bytes: &[u8]| TableDat::decode(&bytes.to_vec());
        let changed = |change: &dyn Fn(&mut TableDesc, &mut ColumnSet)| {
            let mut dat = decode(&read("multifile/m2/t.tab")).unwrap();
            let Body::Plain(plain) = &mut dat.body else { panic!("a plain table") };
            change(&mut plain.0, &mut plain.1);
            dat.encode()
        };
        let twice = changed(&|desc, _| desc.columns[1].name = desc.columns[0].name.clone()).unwrap();
        decode(&twice).fails(ErrorKind::Format, "two columns named \"col\"");
        let twice = changed(&|_, set| {
            set.managers[0].sequence = 7;
            set.managers.push(set.managers[0].clone());
        });
        decode(&twice.unwrap()).fails(ErrorKind::Format, "two data managers with sequence number 7");
        let mut bytes = changed(&|_, _| {}).unwrap();
        let Body::Plain(plain) = decode(&bytes).unwrap().body else { panic!("a plain table") };
        bytes[plain.1.head.start as usize + 15] = 7;
        decode(&bytes).fails(ErrorKind::Format, "storage option 7, known are 0 to 2");

        let records = changed(&|desc, _| desc.columns[0].data_type = crate::value::DataType::Record);
        records.fails(ErrorKind::Unsupported, "column col: arrays of records");
        let view = decode(&read("ref_tables/sel.ref")).unwrap();
        view.encode().fails(ErrorKind::Unsupported, "only tables with data of their own are written");
    }

    /// Tables come out again byte for byte.
    #[test]
    fn tables_written_by_casacore() {
        let mut files = Vec::new();
        find(&ctds_hdf5_testing::testdata(), &mut files);
        let mut same = 0;
        for file in &files {
            let bytes = std::fs::read(file).unwrap();
            let dat = TableDat::decode(&bytes).unwrap();
            if let Body::Plain(_) = dat.body {
                assert!(dat.encode().unwrap() == bytes, "{}", file.display());
                same += 1;
            }
        }
        assert!(same > 200, "{same} tables");
    }
}
