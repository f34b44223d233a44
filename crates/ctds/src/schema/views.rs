//! Tables without data of their own in `table.dat`: reference tables and concatenated tables.
//! formats/table.md section 3.

use std::ops::Range;

use bstr::{BStr, BString};

use super::length::{LENGTH_OFFSET, add_to_length};
use crate::aipsio::{Decoder, Encoder};
use crate::error::{Error, Result};
use crate::value::{ByteOrder, DataType, Shape, Values};

/// Where a view's `table.dat` names other tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredNames {
    /// Byte of the length field of the object that holds the names.
    object: u64,
    names: Range<u64>,
}

impl StoredNames {
    /// The view's `table.dat`, `bytes`, with as many other names.
    pub fn replaced(&self, bytes: &[u8], names: &[BString]) -> Vec<u8> {
        let mut encoded = Encoder::new(ByteOrder::Big);
        names.iter().for_each(|name| encoded.string(name));
        let (start, end) = (self.names.start as usize, self.names.end as usize);
        let mut out = [&bytes[..start], &encoded.into_bytes(), &bytes[end..]].concat();
        let grown = (out.len() as u32).wrapping_sub(bytes.len() as u32);
        add_to_length(&mut out, LENGTH_OFFSET, grown);
        add_to_length(&mut out, self.object as usize, grown);
        out
    }
}

/// A reference table: some rows and columns of another table, its root. Object `RefTable` of
/// `table.dat`.
///
/// | field     | type                                    | since     |
/// |-----------|-----------------------------------------|-----------|
/// | root      | string, relative to this table          |           |
/// | names     | `SimpleOrderedMap`: name here → in root |           |
/// | order     | `Array` of string: the names here       | version 2 |
/// | root_rows | u32, v3: u64                            |           |
/// | ordered   | Bool, not to be trusted                 |           |
/// | rows      | u32, v3: u64                            |           |
/// | row numbers | u32 each, v3: u64, not counted        |           |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefTable {
    pub root: BString,
    pub stored: StoredNames,
    /// Name here and in the root.
    pub columns: Vec<(BString, BString)>,
    /// When this table was written.
    pub root_rows: u64,
    /// Casacore's flag of ascending row numbers, which may be wrong.
    pub ordered: bool,
    pub rows: u64,
    /// Byte in `table.dat` of the list of row numbers in the root.
    pub row_numbers: u64,
    /// Whether the list has u64 (version 3) or u32.
    pub wide: bool,
}

impl RefTable {
    pub(super) fn decode(d: &mut Decoder<'_>, rows: u64) -> Result<Self> {
        let object = d.position();
        let version = d.start("RefTable", 1..=3)?;
        let start = d.position();
        let root = d.string("root table")?;
        let stored = StoredNames { object, names: start..d.position() };
        let names = d.map_strings("column names")?;
        let order = if version >= 2 { d.array(DataType::String)?.1 } else { Values::String(Vec::new()) };
        let columns = match order {
            Values::String(order) if !order.is_empty() => {
                let pair = |name: BString| {
                    let found = names.iter().find(|(here, _)| *here == name);
                    let root_name = found.map(|(_, root_name)| root_name.clone());
                    root_name
                        .map(|root_name| (name.clone(), root_name))
                        .ok_or_else(|| d.error(format!("column {name} is not in the map of column names")))
                };
                order.into_iter().map(pair).collect::<Result<_>>()?
            }
            _ => names,
        };
        let wide = version >= 3;
        let root_rows = d.uint("rows of the root table", wide)?;
        let ordered = d.bool("row order")?;
        let count = d.uint("rows", wide)?;
        if count != rows {
            return Err(d.error(format!("{count} row numbers, but the table has {rows} rows")));
        }
        let row_numbers = d.position();
        let bytes = count.checked_mul(if wide { 8 } else { 4 });
        let bytes = bytes.ok_or_else(|| d.error(format!("{count} row numbers exceed 2^64 bytes")))?;
        d.skip("row numbers", bytes)?;
        d.end()?;
        Ok(RefTable { root, stored, columns, root_rows, ordered, rows, row_numbers, wide })
    }
}

/// A reference table that is to be written.
#[derive(Debug, Clone, Copy)]
pub struct NewRefTable<'a> {
    /// Relative to the new table.
    pub root: &'a BStr,
    /// Name here and in the root.
    pub columns: &'a [(BString, BString)],
    pub root_rows: u64,
    pub ordered: bool,
    pub rows: u64,
}

impl NewRefTable<'_> {
    /// Whether row numbers are written as u64, which casacore does where any number needs it.
    pub fn is_wide(&self) -> bool {
        self.rows.max(self.root_rows) >= NARROW_ROWS
    }

    /// `table.dat` up to the row numbers, with which it ends.
    ///
    /// # Errors
    /// `Unsupported` if the row numbers exceed 4 GiB, which casacore does not read.
    pub fn encode_head(&self) -> Result<Vec<u8>> {
        let wide = self.is_wide();
        let mut e = Encoder::new(ByteOrder::Big);
        begin(&mut e, self.rows, "RefTable");
        let object = e.position();
        e.start("RefTable", if wide { 3 } else { 2 });
        e.string(self.root);
        let mut map: Vec<_> = self.columns.iter().collect();
        map.sort();
        e.map_strings(&map);
        let names: Vec<BString> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        e.array("Array", &Shape::from([names.len() as u64]), &Values::String(names))?;
        e.uint(self.root_rows, wide);
        e.bool(self.ordered);
        e.uint(self.rows, wide);
        e.end();
        e.end();
        let mut head = e.into_bytes();
        let numbers = self.rows.checked_mul(if wide { 8 } else { 4 });
        let whole = numbers.and_then(|numbers| u32::try_from(numbers.checked_add(head.len() as u64)?).ok());
        let numbers = whole.map(|whole| whole - head.len() as u32).ok_or_else(|| {
            Error::unsupported(format!(
                "casacore reads no reference table whose {} row numbers exceed 4 GiB",
                self.rows
            ))
        })?;
        add_to_length(&mut head, LENGTH_OFFSET, numbers);
        add_to_length(&mut head, object, numbers);
        Ok(head)
    }
}

/// Fewer rows, and numbers of rows, fit the narrow form of a reference table. formats/table.md 2.7.
const NARROW_ROWS: u64 = u32::MAX as u64;

/// `table.dat` up to the object of a view, which follows.
fn begin(e: &mut Encoder, rows: u64, kind: &str) {
    let wide = super::is_wide(rows);
    e.root("Table", if wide { 3 } else { 2 });
    e.uint(rows, wide);
    // the byte order of views means nothing, and casacore writes big
    e.u32(0);
    e.string(kind);
}

/// A concatenated table: tables with equal columns, one after the other. Object `ConcatTable` of
/// `table.dat`.
///
/// | field     | type                                                          |
/// |-----------|---------------------------------------------------------------|
/// | count     | u32                                                           |
/// | parts     | string each, relative to this table                           |
/// | subtables | `Block` of string: keywords whose tables are concatenated too |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConcatTable {
    pub parts: Vec<BString>,
    pub stored: StoredNames,
    pub subtables: Vec<BString>,
}

impl ConcatTable {
    pub(super) fn decode(d: &mut Decoder<'_>) -> Result<Self> {
        let object = d.position();
        d.start("ConcatTable", 0..=0)?;
        let count = d.u32("number of tables")?;
        let start = d.position();
        let parts = (0..count).map(|_| d.string("table name")).collect::<Result<Vec<_>>>()?;
        let stored = StoredNames { object, names: start..d.position() };
        let subtables = d.block_strings("subtables")?;
        d.end()?;
        Ok(ConcatTable { parts, stored, subtables })
    }

    /// `table.dat` of a concatenation of `parts`, which have `rows` rows together; both lists are
    /// those of the fields.
    pub fn encode(parts: &[BString], subtables: &[BString], rows: u64) -> Vec<u8> {
        let mut e = Encoder::new(ByteOrder::Big);
        begin(&mut e, rows, "ConcatTable");
        e.start("ConcatTable", 0);
        e.u32(parts.len() as u32);
        parts.iter().for_each(|part| e.string(part));
        e.block(subtables.iter(), |e, name| e.string(name));
        e.end();
        e.end();
        e.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use crate::aipsio::Encoder;
    use crate::error::{ErrorKind, Fails};
    use crate::io::ByteOrder;
    use crate::schema::{Body, ConcatTable, NewRefTable, TableDat};
    use crate::value::{Shape, Values};

    fn unhex(text: &str) -> Vec<u8> {
        let digits: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        crate::hex::parse(&digits).unwrap()
    }

    /// formats/table.md 3.1, written by casacore.
    #[test]
    fn reference_written_by_casacore() {
        let bytes = unhex(
            "bebebebe 000000c0 00000005 5461626c65 00000002 00000003 00000000 00000008 5265665461626c65
             0000009b 00000008 5265665461626c65 00000002 00000007 2e2f702e746162
             0000003e 00000010 53696d706c654f7264657265644d6170 00000001 00000000 00000002 00000001
             00000001 49 00000001 49 00000003 535452 00000001 53
             00000029 00000005 4172726179 00000003 00000001 00000002 00000002 00000003 535452 00000001 49
             00000006 01 00000003 00000005 00000003 00000001",
        );
        let dat = TableDat::decode(&bytes).unwrap();
        assert_eq!((dat.rows, dat.order), (3, ByteOrder::Big));
        let Body::Reference(table) = dat.body else { panic!() };
        assert_eq!(table.root, "./p.tab");
        assert_eq!(table.columns, [("STR".into(), "S".into()), ("I".into(), "I".into())]);
        assert_eq!((table.root_rows, table.rows, table.row_numbers, table.wide), (6, 3, 0xb8, false));
        let renamed = table.stored.replaced(&bytes, &["././inside/parent.tab".into()]);
        let Body::Reference(renamed) = TableDat::decode(&renamed).unwrap().body else { panic!() };
        assert_eq!(renamed.root, "././inside/parent.tab");
        let new =
            NewRefTable { root: table.root.as_ref(), columns: &table.columns, root_rows: 6, ordered: true, rows: 3 };
        let numbers = [5u32, 3, 1].map(u32::to_be_bytes);
        assert_eq!([new.encode_head().unwrap(), numbers.concat()].concat(), bytes);
        assert_eq!((renamed.columns, renamed.rows), (table.columns, table.rows));
        for len in 0..bytes.len() {
            assert!(TableDat::decode(&bytes[..len].to_vec()).is_err());
        }
    }

    #[test]
    fn more_row_numbers_than_a_file_has() {
        let mut e = Encoder::new(ByteOrder::Big);
        let rows = 1 << 61;
        e.root("Table", 3);
        e.u64(rows);
        e.u32(0);
        e.string("RefTable");
        e.start("RefTable", 3);
        e.string("p.tab");
        e.start("SimpleOrderedMap", 1);
        e.string("");
        e.u32(0);
        e.u32(1);
        e.end();
        e.array("Array", &Shape::from([0]), &Values::String(Vec::new())).unwrap();
        e.u64(rows);
        e.bool(true);
        e.u64(rows);
        e.end();
        e.end();
        TableDat::decode(&e.into_bytes()).fails(ErrorKind::Format, "2305843009213693952 row numbers exceed 2^64 bytes");
    }

    /// formats/table.md 2.7.
    #[test]
    fn wide_row_numbers() {
        let columns = [("A".into(), "A".into())];
        let new =
            |rows, root_rows| NewRefTable { root: "./p".into(), columns: &columns, root_rows, ordered: false, rows };
        assert!(!new(2, 4294967294).is_wide() && new(2, 4294967295).is_wide() && new(4294967295, 2).is_wide());
        let numbers = [4999999999u64, 7].map(u64::to_be_bytes);
        let bytes = [new(2, 5_000_000_000).encode_head().unwrap(), numbers.concat()].concat();
        let Body::Reference(table) = TableDat::decode(&bytes).unwrap().body else { panic!() };
        assert_eq!((table.wide, table.rows, table.root_rows, table.ordered), (true, 2, 5_000_000_000, false));
        assert_eq!(table.row_numbers as usize, bytes.len() - 16);
        new(1 << 30, 1 << 30).encode_head().fails(
            ErrorKind::Unsupported,
            "casacore reads no reference table whose 1073741824 row numbers exceed 4 GiB",
        );
        new(1 << 62, 1 << 62).encode_head().fails(
            ErrorKind::Unsupported,
            "casacore reads no reference table whose 4611686018427387904 row numbers exceed 4 GiB",
        );
    }

    /// formats/table.md 3.2, written by casacore.
    #[test]
    fn concatenation_written_by_casacore() {
        let bytes = unhex(
            "bebebebe 00000076 00000005 5461626c65 00000002 0000000a 00000000 0000000b 436f6e6361745461626c65
             0000004e 0000000b 436f6e6361745461626c65 00000000
             00000002 00000007 2e2f702e746162 00000008 2e2f70322e746162
             0000001c 00000005 426c6f636b 00000001 00000001 00000003 535542",
        );
        let Body::Concatenation(table) = TableDat::decode(&bytes).unwrap().body else { panic!() };
        assert_eq!(table.parts, ["./p.tab", "./p2.tab"]);
        assert_eq!(table.subtables, ["SUB"]);
        let renamed = table.stored.replaced(&bytes, &["././a".into(), "././longer than before".into()]);
        let Body::Concatenation(renamed) = TableDat::decode(&renamed).unwrap().body else { panic!() };
        assert_eq!(renamed.parts, ["././a", "././longer than before"]);
        assert_eq!(ConcatTable::encode(&table.parts, &table.subtables, 10), bytes);
        assert_eq!(renamed.subtables, ["SUB"]);
    }
}
