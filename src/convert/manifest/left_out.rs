//! Columns that a manifest lacks.

/// A column that a manifest lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOutColumn {
    /// Name of the table; `MAIN` for the main one.
    pub table: String,
    /// Name of the column.
    pub column: String,
    /// Why it is left out.
    pub reason: String,
}
