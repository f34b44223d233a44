//! Columns that a manifest (references to the chunks of a table) cannot include, each with the
//! reason.

/// A column without arrays in a manifest (a JSON file of references to the chunks of a table or
/// native HDF5 file, which readers of Zarr open as arrays), and the reason.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct LeftOutColumn {
    /// Name of the table with the column that the manifest (JSON references to chunks) does not
    /// include; `MAIN` for the main table.
    pub table: String,
    /// Name of the column that the manifest does not include.
    pub column: String,
    /// The reason why the column is left out of the manifest.
    pub reason: String,
}
