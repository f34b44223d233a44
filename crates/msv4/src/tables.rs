//! What is asked of a MeasurementSet: its main table and its subtables by name.

use bstr::ByteSlice;
use ctds::value::{Record, Shape, Values};
use ctds::{Column, ColumnInfo, Error, Result};

/// Name of the main table.
pub const MAIN: &str = ".";

/// Most elements that are read of a column of a subtable.
const MAX_ELEMENTS: u64 = 1 << 26;

/// The tables of a MeasurementSet.
pub trait Tables: Sync {
    /// Number of rows of a table, [`MAIN`] or a subtable; `None` if it is missing or unreadable.
    fn rows(&self, table: &str) -> Option<u64>;

    /// Columns of a table; none if it is missing or unreadable.
    fn columns(&self, table: &str) -> &[ColumnInfo];

    /// Opens a column of a table.
    ///
    /// # Errors
    /// `NotFound` if there is no such table or column; those of opening the column.
    fn column(&self, table: &str, column: &str) -> Result<Column<'_>>;
}

/// A subtable, of which a missing column reads as `None`.
#[derive(Clone, Copy)]
pub(crate) struct Subtable<'a> {
    tables: &'a dyn Tables,
    pub(crate) name: &'a str,
    pub(crate) rows: u64,
}

impl<'a> Subtable<'a> {
    /// `None` if it is missing, or has no rows.
    pub(crate) fn open(tables: &'a dyn Tables, name: &'a str) -> Option<Self> {
        let rows = tables.rows(name).filter(|rows| *rows > 0)?;
        Some(Subtable { tables, name, rows })
    }

    pub(crate) fn info(&self, column: &str) -> Option<&'a ColumnInfo> {
        self.tables.columns(self.name).iter().find(|info| info.desc.name == column)
    }

    /// The first of the units of a column; empty if none are recorded.
    pub(crate) fn units(&self, column: &str) -> String {
        let keywords = self.info(column).map(|info| &info.desc.keywords);
        let units = keywords.and_then(|keywords| keywords.strings("QuantumUnits"));
        units.and_then(|units| units.first()).map(ToString::to_string).unwrap_or_default()
    }

    /// Keyword MEASINFO of a column.
    pub(crate) fn measure(&self, column: &str) -> Option<&'a Record> {
        self.info(column)?.desc.keywords.record("MEASINFO")
    }

    /// A scalar of each row as an integer.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn integers(&self, column: &str) -> Result<Option<Vec<i64>>> {
        let Some(values) = self.scalars(column)? else { return Ok(None) };
        match values.integers() {
            Some(integers) => Ok(Some(integers)),
            None => Err(self.other_type(column, "integers")),
        }
    }

    /// A scalar of each row as a double.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn doubles(&self, column: &str) -> Result<Option<Vec<f64>>> {
        let Some(values) = self.scalars(column)? else { return Ok(None) };
        doubles(&values).map(Some).ok_or_else(|| self.other_type(column, "numbers"))
    }

    /// A string of each row.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn texts(&self, column: &str) -> Result<Option<Vec<String>>> {
        match self.scalars(column)? {
            Some(Values::String(texts)) => {
                Ok(Some(texts.into_iter().map(|text| text.to_str_lossy().into_owned()).collect()))
            }
            Some(_) => Err(self.other_type(column, "strings")),
            None => Ok(None),
        }
    }

    fn scalars(&self, column: &str) -> Result<Option<Values>> {
        if self.info(column).is_none() {
            return Ok(None);
        }
        let opened = self.tables.column(self.name, column)?;
        if self.rows > MAX_ELEMENTS {
            return Err(Error::limit(format!("{column} of {}: more than {MAX_ELEMENTS} rows", self.name)));
        }
        opened.values(0..self.rows).map(Some)
    }

    /// The cell of a row with its shape, first axis fastest; `None` if it is undefined.
    ///
    /// # Errors
    /// Those of reading; `Limit` if it is absurdly large.
    pub(crate) fn cell(&self, column: &str, row: u64) -> Result<Option<(Shape, Values)>> {
        if self.info(column).is_none() {
            return Ok(None);
        }
        let opened = self.tables.column(self.name, column)?;
        let Some(shape) = opened.cell_shape(row)? else { return Ok(None) };
        if shape.elements()? > MAX_ELEMENTS {
            return Err(Error::limit(format!("{column} of {}, row {row}: a cell of {shape} elements", self.name)));
        }
        opened.values(row..row + 1).map(|values| Some((shape, values)))
    }

    /// The elements of the cell of a row, first axis fastest; `None` if it is undefined.
    ///
    /// # Errors
    /// As [`cell`](Self::cell).
    pub(crate) fn cell_doubles(&self, column: &str, row: u64) -> Result<Option<Vec<f64>>> {
        let Some((_, values)) = self.cell(column, row)? else { return Ok(None) };
        doubles(&values).map(Some).ok_or_else(|| self.other_type(column, "numbers"))
    }

    /// As [`cell_doubles`](Self::cell_doubles), of strings.
    ///
    /// # Errors
    /// As [`cell`](Self::cell).
    pub(crate) fn cell_texts(&self, column: &str, row: u64) -> Result<Option<Vec<String>>> {
        match self.cell(column, row)? {
            Some((_, Values::String(texts))) => {
                Ok(Some(texts.into_iter().map(|text| text.to_str_lossy().into_owned()).collect()))
            }
            Some(_) => Err(self.other_type(column, "strings")),
            None => Ok(None),
        }
    }

    fn other_type(&self, column: &str, expected: &str) -> Error {
        let found = self.info(column).map_or("", |info| info.data_type().name());
        Error::format(format!("{} has {column} of type {found}; expected are {expected}", self.name))
    }
}

/// Real numbers of any type as doubles; `None` for other values.
fn doubles(values: &Values) -> Option<Vec<f64>> {
    match values {
        Values::Double(values) => Some(values.clone()),
        Values::Float(values) => Some(values.iter().map(|value| f64::from(*value)).collect()),
        values => Some(values.integers()?.into_iter().map(|value| value as f64).collect()),
    }
}
