//! Parts of a source that were damaged and are left out of a file: the member `damage` of the document of the main table.
//! docs/layout.md, "Salvaged files".

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::column_context;

/// A part of a source that cannot be read: a subtable, a column, or consecutive rows of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Damage {
    /// The table: `.` for the main table, else the keywords that lead to it, `ANTENNA` or `A/B`.
    pub table: String,
    /// The column; `None` if the whole table cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// The rows of the column whose cells cannot be read, counted from 0; `None` for the whole column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<Range<u64>>,
    /// The error that reading ended with, for the first of the rows.
    pub reason: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.column {
            None => write!(f, "subtable {}", self.table)?,
            Some(column) => write!(f, "{}", column_context(&self.table, column))?,
        }
        match &self.rows {
            Some(Range { start, end }) if start + 1 == *end => write!(f, ", row {start}")?,
            Some(Range { start, end }) => write!(f, ", rows {start} to {}", end - 1)?,
            None => {}
        }
        write!(f, ": {}", self.reason)
    }
}
