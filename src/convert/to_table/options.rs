//! Options of writing casacore tables.

use std::path::PathBuf;

use crate::io::ByteOrder;
use crate::table::OpenOptions;

#[derive(Debug, Clone, Default)]
pub(crate) struct ToTableOptions {
    /// `None` for that of the original files, or of this machine if that is unknown.
    pub(crate) byte_order: Option<ByteOrder>,
    /// 0 for one on each processor.
    pub(crate) threads: usize,
    /// Restores engines that compute the same values; otherwise all values are stored.
    pub(crate) engines: bool,
    pub(crate) views: Views,
    /// Directory of tables that hold rows or cells; `None` for that of a native file.
    pub(crate) parts: Option<PathBuf>,
    /// How those tables are opened.
    pub(crate) open: OpenOptions,
    /// Whether to make a thin table, whose tiles stay in the source.
    pub(crate) links: bool,
    /// Whether the files of a thin table keep write permission.
    pub(crate) writable: bool,
}

/// Whether a casacore table that is written becomes a reference table or a concatenation, which
/// have no cells of their own, if the source was one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Views {
    /// Rows of other tables are copied: the table is a plain one.
    #[default]
    Never,
    /// A native HDF5 file that was made from a reference table or a concatenation becomes one, if
    /// the tables with its rows are found and have the values of the file; otherwise, and from
    /// other sources, rows are copied.
    Auto,
    /// Views come back as for `Auto`, also from a reference table or a concatenation itself; it is
    /// an error if the tables with its rows are not found or have other values.
    Always,
}
