//! Records of the damaged parts of a source that are left out of the result. A converted HDF5 file
//! stores them as the member `damage` in the JSON document of the main table.
//! docs/reference/layout.md, "Salvaged files".

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::{Error, column_context};

/// A part of a source that cannot be read: a subtable, a column, consecutive rows of a column, or
/// the `part` that describes it; for `pack`, a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Damage {
    /// Path of the damaged table: `.` for the main table, otherwise the keywords that lead to the
    /// subtable, such as `ANTENNA` or `A/B`.
    pub table: String,
    /// The damaged column; `None` if the whole table, its `part`, or the file in `file`, cannot be
    /// read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Rows of the damaged column whose cells cannot be read, half-open, counted from 0; `None` for
    /// the whole column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<Range<u64>>,
    /// The part of a native HDF5 file that describes the table or column, if it is damaged and the
    /// cells are read without it: the `description` below `_ctds`, the `group` of a table with its
    /// links and attributes, the `attributes` of a column, a `dimension scale NAME`, the `root
    /// group`. Or the `values` of a column, if they differ from its digest. `None` if cells cannot
    /// be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The damaged file in the directory of the table, from calls that copy files without reading
    /// their content, such as `pack`; `None` from others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Text of the error with which reading the damaged part failed, for the first of its rows.
    pub reason: String,
}

impl Damage {
    pub(crate) fn of_table(table: &str, error: &Error) -> Self {
        Damage { table: table.to_owned(), column: None, rows: None, part: None, file: None, reason: error.to_string() }
    }

    /// `part` of a native HDF5 file that describes a table or column.
    pub(crate) fn of_part(table: &str, column: Option<&str>, part: &str, error: &Error) -> Self {
        Damage { column: column.map(str::to_owned), part: Some(part.to_owned()), ..Self::of_table(table, error) }
    }

    /// A sentence for the user.
    pub(crate) fn warning(&self) -> String {
        let what = if self.part.is_some() { "damaged" } else { "damaged, left out" };
        format!("{what}: {self}")
    }

    /// Whether all cells of a table (`column`: `None`) or of a column are damaged.
    pub(crate) fn is_all_of(&self, table: &str, column: Option<&str>) -> bool {
        let cells_of = (self.table == table && self.column.as_deref() == column).then_some((&self.rows, &self.part));
        cells_of == Some((&None, &None))
    }

    /// `rows` are half-open, from 0.
    pub(crate) fn of_column(table: &str, column: &str, rows: Option<Range<u64>>, error: &Error) -> Self {
        Damage { column: Some(column.to_owned()), rows, ..Self::of_table(table, error) }
    }

    pub(crate) fn of_file(table: &str, file: &str, error: &Error) -> Self {
        Damage { file: Some(file.to_owned()), ..Self::of_table(table, error) }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, &self.column) {
            // the main table
            (Some(file), _) if self.table == "." => write!(f, "file {file}")?,
            (Some(file), _) => write!(f, "file {}/{file}", self.table)?,
            (None, None) if self.table == "." => f.write_str("the main table")?,
            (None, None) => write!(f, "subtable {}", self.table)?,
            (None, Some(column)) => write!(f, "{}", column_context(&self.table, column))?,
        }
        match &self.rows {
            Some(Range { start, end }) if start + 1 == *end => write!(f, ", row {start}")?,
            Some(Range { start, end }) => write!(f, ", rows {start} to {}", end - 1)?,
            None => {}
        }
        if let Some(part) = &self.part {
            write!(f, ", {part}")?;
        }
        write!(f, ": {}", self.reason)
    }
}
