//! Access to a MeasurementSet: its main table and its subtables by name.

use std::ops::Range;

use bstr::ByteSlice;
use ctds::value::{Record, Shape, Values};
use ctds::{Column, ColumnInfo, Error, Result};

/// Name of the main table.
pub const MAIN: &str = ".";

/// Most elements that are read of a column of a subtable.
pub(crate) const MAX_ELEMENTS: u64 = 1 << 26;

/// Most rows of a subtable that is read in blocks.
const MAX_BLOCK_ROWS: u64 = 1 << 30;

/// Rows of index columns, or elements of cells, that are in memory at a time.
const BLOCK: u64 = 1 << 16;

/// The tables of a MeasurementSet.
pub trait Tables: Sync {
    /// Number of rows of a table, [`MAIN`] or a subtable; `None` if it is missing or unreadable.
    fn rows(&self, table: &str) -> Option<u64>;

    /// Columns of a table; none if it is missing or unreadable.
    fn columns(&self, table: &str) -> &[ColumnInfo];

    /// Names of all tables: of those in the directory of FIELD, `FIELD/NAME`.
    fn names(&self) -> Vec<&str>;

    /// Keywords of a table; `None` if it is missing or unreadable.
    fn keywords(&self, table: &str) -> Option<&Record>;

    /// Opens a column of a table.
    ///
    /// # Errors
    /// `NotFound` if the table or column is missing; those of opening the column.
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

    pub(crate) fn measure(&self, column: &str) -> Option<&'a Record> {
        self.info(column)?.desc.keywords.record("MEASINFO")
    }

    /// Asks the column that has the reference of each row, as a name or a code, if one does.
    pub(crate) fn reference(&self, column: &str, row: u64) -> Result<Option<String>> {
        let Some(measure) = self.measure(column) else { return Ok(None) };
        let of_column = measure.string("Ref").map(ToString::to_string);
        let Some(name) = measure.string("VarRefCol").map(ToString::to_string) else { return Ok(of_column) };
        let found = match self.cell(&name, row)? {
            Some((_, Values::String(texts))) => texts.first().map(ToString::to_string),
            Some((_, values)) => {
                let code = values.integers().and_then(|codes| codes.first().copied());
                let codes = measure.integers("TabRefCodes").unwrap_or_default();
                let place = codes.iter().position(|other| Some(*other) == code);
                let types = measure.strings("TabRefTypes").unwrap_or_default();
                place.and_then(|place| types.get(place)).map(ToString::to_string)
            }
            None => None,
        };
        Ok(found.or(of_column))
    }

    /// Scalar column.
    pub(crate) fn integers(&self, column: &str) -> Result<Option<Vec<i64>>> {
        let Some(values) = self.scalars(column)? else { return Ok(None) };
        match values.integers() {
            Some(integers) => Ok(Some(integers)),
            None => Err(self.other_type(column, "integers")),
        }
    }

    /// Scalar column.
    pub(crate) fn doubles(&self, column: &str) -> Result<Option<Vec<f64>>> {
        let Some(values) = self.scalars(column)? else { return Ok(None) };
        doubles(&values).map(Some).ok_or_else(|| self.other_type(column, "numbers"))
    }

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
            return Err(Error::limit(format!("{column} of {} has more than {MAX_ELEMENTS} rows", self.name)));
        }
        opened.values(0..self.rows).map(Some)
    }

    /// First axis fastest; `None` if undefined, `Limit` if absurdly large.
    pub(crate) fn cell(&self, column: &str, row: u64) -> Result<Option<(Shape, Values)>> {
        if self.info(column).is_none() {
            return Ok(None);
        }
        let opened = self.tables.column(self.name, column)?;
        let Some(shape) = opened.cell_shape(row)? else { return Ok(None) };
        if shape.elements()? > MAX_ELEMENTS {
            return Err(Error::limit(format!(
                "{column} of {} has a cell of shape {shape} in row {row}, which is absurdly large",
                self.name
            )));
        }
        opened.values(row..row + 1).map(|values| Some((shape, values)))
    }

    /// First axis fastest; `None` if undefined, `Limit` if absurdly large.
    pub(crate) fn cell_doubles(&self, column: &str, row: u64) -> Result<Option<Vec<f64>>> {
        let Some((_, values)) = self.cell(column, row)? else { return Ok(None) };
        doubles(&values).map(Some).ok_or_else(|| self.other_type(column, "numbers"))
    }

    /// As [`cell_doubles`](Self::cell_doubles).
    pub(crate) fn cell_texts(&self, column: &str, row: u64) -> Result<Option<Vec<String>>> {
        match self.cell(column, row)? {
            Some((_, Values::String(texts))) => {
                Ok(Some(texts.into_iter().map(|text| text.to_str_lossy().into_owned()).collect()))
            }
            Some(_) => Err(self.other_type(column, "strings")),
            None => Ok(None),
        }
    }

    /// `each` receives the first row of a block, and the values of `columns`, which are scalars;
    /// `Format` if a column is missing, `Limit` if the rows are absurdly many.
    pub(crate) fn blocks<const N: usize>(
        &self,
        columns: [&str; N],
        mut each: impl FnMut(u64, &[Values; N]) -> Result<()>,
    ) -> Result<()> {
        if self.rows > MAX_BLOCK_ROWS {
            return Err(Error::limit(format!("{} has more than {MAX_BLOCK_ROWS} rows", self.name)));
        }
        let mut opened = Vec::with_capacity(N);
        for column in columns {
            if self.info(column).is_none() {
                return Err(Error::format(format!("{} has no column {column}", self.name)));
            }
            opened.push(self.tables.column(self.name, column)?);
        }
        for start in (0..self.rows).step_by(BLOCK as usize) {
            let rows = start..self.rows.min(start + BLOCK);
            let mut values = [const { Values::Bool(Vec::new()) }; N];
            for ((column, opened), values) in columns.iter().zip(&opened).zip(&mut values) {
                *values = opened.values(rows.clone())?;
                self.check_length(column, &rows, 1, values)?;
            }
            each(start, &values)?;
        }
        Ok(())
    }

    /// Calls `each` for consecutive ones of `rows`, which ascend, with cells of one shape: places
    /// in `rows`, and shape, first axis fastest. Undefined and empty cells are left out, and all
    /// those of a missing column; `Limit` if a cell is absurdly large.
    pub(crate) fn shapes(
        &self,
        column: &str,
        rows: &[u64],
        mut each: impl FnMut(Range<usize>, &Shape) -> Result<()>,
    ) -> Result<()> {
        if self.info(column).is_none() {
            return Ok(());
        }
        let opened = self.tables.column(self.name, column)?;
        let mut each = |places: Range<usize>, shape: &Shape| match shape.elements()? {
            0 => Ok(()),
            elements if elements > MAX_ELEMENTS => {
                let row = rows.get(places.start).copied().unwrap_or_default();
                Err(Error::limit(format!(
                    "{column} of {} has a cell of shape {shape} in row {row}, which is absurdly large",
                    self.name
                )))
            }
            _ => each(places, shape),
        };
        let mut start = 0;
        while let Some(&first) = rows.get(start) {
            let len = rows[start..].iter().zip(first..).take_while(|(row, next)| **row == *next).count();
            match opened.shape(first..first + len as u64) {
                Ok(shape) => each(start..start + len, &shape)?,
                // differing or undefined cells
                Err(_) => {
                    let mut last: Option<(usize, Shape)> = None;
                    for (place, row) in (start..start + len).zip(first..) {
                        let shape = opened.cell_shape(row)?;
                        if last.as_ref().map(|(_, shape)| shape) != shape.as_ref() {
                            if let Some((from, shape)) = last.take() {
                                each(from..place, &shape)?;
                            }
                            last = shape.map(|shape| (place, shape));
                        }
                    }
                    if let Some((from, shape)) = last {
                        each(from..start + len, &shape)?;
                    }
                }
            }
            start += len;
        }
        Ok(())
    }

    /// As [`shapes`](Self::shapes), with the elements, one cell after the other.
    pub(crate) fn cells(
        &self,
        column: &str,
        rows: &[u64],
        mut each: impl FnMut(Range<usize>, &Shape, &Values) -> Result<()>,
    ) -> Result<()> {
        if self.info(column).is_none() {
            return Ok(());
        }
        let opened = self.tables.column(self.name, column)?;
        self.shapes(column, rows, |places, shape| {
            let elements = shape.elements()?;
            let step = (BLOCK / elements).max(1) as usize;
            for start in places.clone().step_by(step) {
                let end = places.end.min(start + step);
                let read = rows[start]..rows[start] + (end - start) as u64;
                let values = opened.values(read.clone())?;
                self.check_length(column, &read, elements, &values)?;
                each(start..end, shape, &values)?;
            }
            Ok(())
        })
    }

    fn check_length(&self, column: &str, rows: &Range<u64>, elements: u64, values: &Values) -> Result<()> {
        let (found, expected) = (values.len() as u64, (rows.end - rows.start) * elements);
        if found == expected {
            return Ok(());
        }
        let message = format!("{found} elements in rows {rows:?}, {expected} are expected");
        Err(Error::format(format!("{column} of {}: {message}", self.name)))
    }

    pub(crate) fn other_type(&self, column: &str, expected: &str) -> Error {
        let found = self.info(column).map_or("", |info| info.data_type().name());
        Error::format(format!("{} has {column} of type {found}; expected are {expected}", self.name))
    }
}

/// Real numbers of any type as doubles; `None` for other values.
pub(crate) fn doubles(values: &Values) -> Option<Vec<f64>> {
    match values {
        Values::Double(values) => Some(values.clone()),
        Values::Float(values) => Some(values.iter().map(|value| f64::from(*value)).collect()),
        values => Some(values.integers()?.into_iter().map(|value| value as f64).collect()),
    }
}
