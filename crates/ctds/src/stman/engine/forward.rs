//! ForwardColumnEngine: each of its columns has the cells of the column of the same name in another
//! table. formats/engines.md 1.9, 1.10.
//!
//! | keyword of  | name                               | value                                             |
//! |-------------|------------------------------------|---------------------------------------------------|
//! | the column  | `_ForwardColumn_TableName`         | the other table                                   |
//! | the column  | `_ForwardColumn_TableName_Row`     | the same, for ForwardColumnIndexedRowEngine       |
//! | the table   | `_ForwardColumn_Name_<sequence>`   | the manager's name                                |
//! | the table   | `_ForwardColumn_RowName_<sequence>`| the uInt column of this table with row numbers    |
//!
//! Row `r` is row `r` of the other table, or the one that the column with row numbers tells.

use std::ops::Range;

use bstr::{BStr, BString, ByteSlice};

use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::stman::{Access, ColumnCells, ColumnSpec, Columns, Kind, Manager, OpenArgs, OtherColumn, Storage, Tiling};
use crate::value::{ByteOrder, DataType, Record, Region, Shape, Values};

const PREFIX: &str = "_ForwardColumn_";

const TABLE: &str = "_ForwardColumn_TableName";

const TABLE_OF_ROWS: &str = "_ForwardColumn_TableName_Row";

/// Keywords whose strings name tables that hold the cells of the column.
pub const FORWARD_TABLES: [&str; 2] = [TABLE, TABLE_OF_ROWS];

pub(crate) static KIND: Kind = Kind::engine(
    &["ForwardColumnEngine"],
    &[PREFIX],
    |args| {
        let forward = Forward::open("ForwardColumnEngine", args, TABLE, |spec, other, rows| {
            if rows < args.rows {
                return Err(Error::format(format!("{rows} rows, this table has {}", args.rows)));
            }
            Ok(ForwardColumn { name: spec.name.clone(), other, same_rows: rows == args.rows })
        });
        Ok(Box::new(forward?))
    },
    Some(super::write::create),
);

pub(crate) static INDEXED: Kind = Kind::engine(
    &["ForwardColumnIndexedRowEngine"],
    &[PREFIX],
    |args| {
        const NAME: &str = "ForwardColumnIndexedRowEngine";
        let numbers = row_numbers(args).context(NAME)?;
        let forward = Forward::open(NAME, args, TABLE_OF_ROWS, |spec, other, rows| {
            Ok(IndexedColumn { name: spec.name.clone(), other, rows, numbers: numbers.clone() })
        });
        Ok(Box::new(forward?))
    },
    Some(super::write::create),
);

#[derive(Debug)]
struct Forward<C> {
    name: BString,
    /// Columns may be in different tables, of which some may be missing.
    columns: Vec<Result<C>>,
}

#[derive(Debug)]
struct ForwardColumn {
    name: BString,
    other: OtherColumn,
    /// Whether the other table has as many rows.
    same_rows: bool,
}

#[derive(Debug)]
struct IndexedColumn {
    name: BString,
    other: OtherColumn,
    /// Rows of the other table.
    rows: u64,
    numbers: OtherColumn,
}

impl<C> Forward<C> {
    /// `column` makes each column from its description here, the column it is forwarded to, and the
    /// rows of that table. Fails with the first error if no column can be read.
    fn open(
        type_name: &str,
        args: &OpenArgs<'_>,
        key: &str,
        column: impl Fn(&ColumnSpec, OtherColumn, u64) -> Result<C>,
    ) -> Result<Self> {
        let mut tables = Vec::new();
        let mut open = |spec: &ColumnSpec, keywords: &Record| {
            let name = keywords.string(key);
            let name = name.ok_or_else(|| Error::format(format!("the column keyword {key} is missing")))?;
            let other = match tables.iter().position(|(known, _)| *known == name) {
                Some(index) => &tables[index].1,
                None => {
                    tables.push((name.to_owned(), open_table(args, name)));
                    &tables[tables.len() - 1].1
                }
            };
            let other: &dyn Columns = match other {
                Ok(other) => &**other,
                Err(error) => return Err(error.clone()),
            };
            let found = || {
                let found = other.column(spec.name.as_bstr())?;
                check_same(spec, &found.spec)?;
                column(spec, found, other.rows())
            };
            found().with_context(|| Context::table(name))
        };
        let columns = args.columns.iter().zip(args.column_keywords);
        let columns: Vec<Result<C>> = columns
            .map(|(spec, keywords)| open(spec, keywords).with_context(|| format!("{type_name}: column {}", spec.name)))
            .collect();
        if let (true, Some(Err(error))) = (columns.iter().all(Result::is_err), columns.first()) {
            return Err(error.clone());
        }
        let name = args.table.keywords().string(format!("_ForwardColumn_Name_{}", args.sequence));
        Ok(Forward { name: name.unwrap_or_default().to_owned(), columns })
    }
}

fn open_table(args: &OpenArgs<'_>, name: &BStr) -> Result<Box<dyn Columns>> {
    args.table.table(name).map_err(|error| match error.kind() {
        // this table is damaged without the other one
        ErrorKind::NotFound => Error::format(format!("the table {name}, which has its values, is missing: {error}")),
        _ => error,
    })
}

/// Casacore requires equal descriptions of the two columns.
fn check_same(spec: &ColumnSpec, other: &ColumnSpec) -> Result<()> {
    let kind = |spec: &ColumnSpec| if spec.storage == Storage::Scalar { "scalars" } else { "arrays" };
    if spec.data_type != other.data_type || kind(spec) != kind(other) {
        return Err(Error::format(format!(
            "the column has {} {}, {} {} are expected",
            other.data_type,
            kind(other),
            spec.data_type,
            kind(spec)
        )));
    }
    if spec.storage == Storage::Direct && (other.storage != Storage::Direct || other.shape != spec.shape) {
        let shape = spec.shape.clone().unwrap_or_default();
        return Err(Error::format(format!("the column's cells do not have the same fixed shape, {shape}")));
    }
    Ok(())
}

fn row_numbers(args: &OpenArgs<'_>) -> Result<OtherColumn> {
    let key = format!("_ForwardColumn_RowName_{}", args.sequence);
    let name = args.table.keywords().string(&key);
    let name = name.ok_or_else(|| Error::format(format!("the table keyword {key} is missing")))?;
    let column = args.table.column(name).context(&key)?;
    if column.spec.storage != Storage::Scalar || column.spec.data_type != DataType::UInt {
        let message = format!("uInt scalars are expected, the column has {}", column.spec.data_type);
        return Err(Error::format(message).context(Context::column(name)).context(key));
    }
    Ok(column)
}

trait Forwarded: ColumnCells + std::fmt::Debug {
    fn other(&self) -> &OtherColumn;
}

impl Forwarded for ForwardColumn {
    fn other(&self) -> &OtherColumn {
        &self.other
    }
}

impl Forwarded for IndexedColumn {
    fn other(&self) -> &OtherColumn {
        &self.other
    }
}

impl<C: Forwarded> Manager for Forward<C> {
    fn name(&self) -> &BStr {
        self.name.as_bstr()
    }

    fn readable(&self, index: usize) -> Result<()> {
        match &self.columns[index] {
            Ok(_) => Ok(()),
            Err(error) => Err(error.clone()),
        }
    }

    fn column(&self, index: usize) -> &dyn ColumnCells {
        match &self.columns[index] {
            Ok(column) => column,
            Err(error) => error,
        }
    }

    fn reads(&self, index: usize) -> u64 {
        self.columns[index].as_ref().map_or(1, |column| column.other().reads())
    }
}

/// A column that could not be opened: reading it returns the error.
impl ColumnCells for Error {
    fn cell_shape(&self, _row: u64) -> Result<Option<Shape>> {
        Err(self.clone())
    }

    fn read_cell(&self, _row: u64, _region: Option<&Region>, _out: &mut Values) -> Result<()> {
        Err(self.clone())
    }
}

impl ForwardColumn {
    fn place(&self) -> String {
        format!("ForwardColumnEngine: column {}", self.name)
    }
}

impl ColumnCells for ForwardColumn {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        self.other.cells().cell_shape(row).with_context(|| self.place())
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        self.other.cells().read_cell(row, region, out).with_context(|| self.place())
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        self.other.cells().read_rows(rows, out).with_context(|| self.place())
    }

    fn read_plain(&self, runs: &mut dyn Iterator<Item = Range<u64>>, out: &mut [u8]) -> Option<ByteOrder> {
        self.other.cells().read_plain(runs, out)
    }

    fn access(&self) -> Access {
        self.other.cells().access()
    }

    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        self.other.cells().same_shape(rows)
    }

    fn tiling(&self, max_cubes: usize) -> Option<Tiling<'_>> {
        if self.same_rows { self.other.cells().tiling(max_cubes) } else { None }
    }
}

impl IndexedColumn {
    fn place(&self) -> String {
        format!("ForwardColumnIndexedRowEngine: column {}", self.name)
    }

    /// Row numbers in the other table; fails if it lacks one of them.
    fn map(&self, rows: Range<u64>) -> Result<Vec<u32>> {
        let count = rows.end - rows.start;
        let mut values = Values::new(DataType::UInt);
        let place = || Context::column(&self.numbers.spec.name);
        self.numbers.cells().read_rows(rows.clone(), &mut values).with_context(place)?;
        let Values::UInt(numbers) = values else { unreachable!("the buffer was made for uInt") };
        if numbers.len() as u64 != count {
            return Err(Error::format(format!("{count} scalars are expected")).context(place()));
        }
        match numbers.iter().position(|&number| u64::from(number) >= self.rows) {
            Some(at) => Err(Error::format(format!(
                "row {} is row {} of a table that has {} rows",
                rows.start + at as u64,
                numbers[at],
                self.rows
            ))
            .context(place())),
            None => Ok(numbers),
        }
    }

    fn map_one(&self, row: u64) -> Result<u64> {
        Ok(u64::from(self.map(row..row + 1)?[0]))
    }

    fn read(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let numbers = self.map(rows)?;
        for run in numbers.chunk_by(|&row, &next| row.checked_add(1) == Some(next)) {
            let start = u64::from(run[0]);
            self.other.cells().read_rows(start..start + run.len() as u64, out)?;
        }
        Ok(())
    }
}

impl ColumnCells for IndexedColumn {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        self.map_one(row).and_then(|row| self.other.cells().cell_shape(row)).with_context(|| self.place())
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        self.map_one(row).and_then(|row| self.other.cells().read_cell(row, region, out)).with_context(|| self.place())
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        self.read(rows, out).with_context(|| self.place())
    }
}
