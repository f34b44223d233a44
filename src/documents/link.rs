//! Documents of verbs that refer to stored bytes in place: thin tables, and manifests of kerchunk.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::shown;
use crate::convert::{LeftOutColumn, LinkSummary, ManifestSummary, ReplaceSummary, ToTableSummary};

/// The document of `link`, which makes a thin table: its files with large tiles are symbolic links
/// to an HDF5 file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Link {
    /// Number of tables that were written, with subtables.
    pub tables: u64,
    /// Number of columns of all tables.
    pub columns: u64,
    /// Number of rows of the main table.
    pub rows: u64,
    /// Number of files that are links.
    pub links: u64,
    /// Size of the datasets to which the links lead.
    pub linked_bytes: u64,
    /// Path of the thin table, as it was given.
    pub out: String,
    /// Duration in seconds.
    pub seconds: f64,
}

impl Link {
    /// Makes the document of a thin table at `out`.
    pub fn new(out: &Path, linked: &LinkSummary, seconds: f64) -> Self {
        Link {
            tables: linked.tables as u64,
            columns: linked.columns as u64,
            rows: linked.rows,
            links: linked.links as u64,
            linked_bytes: linked.linked_bytes,
            out: shown(out),
            seconds,
        }
    }
}

/// The document of `to-hdf5 --replace`, which converts a table to HDF5 and replaces it by a thin
/// table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Replace {
    /// Number of tables that were written, with subtables.
    pub tables: u64,
    /// Number of columns of all tables.
    pub columns: u64,
    /// Number of rows of the main table.
    pub rows: u64,
    /// Number of files of the thin table that are links.
    pub links: u64,
    /// Size of the datasets to which the links lead.
    pub linked_bytes: u64,
    /// Path of the HDF5 file, as it was given.
    pub out: String,
    /// Path of the table that was replaced, as it was given.
    pub table: String,
    /// Size of the HDF5 file.
    pub file_bytes: u64,
    /// Number of cells that were compared before the table was replaced.
    pub cells_compared: u64,
    /// Duration in seconds.
    pub seconds: f64,
}

impl Replace {
    /// Makes the document of the table `table`, whose cells are in the HDF5 file `out` now.
    pub fn new(out: &Path, table: &Path, replaced: &ReplaceSummary, seconds: f64) -> Self {
        let Link { tables, columns, rows, links, linked_bytes, out, seconds } =
            Link::new(out, &replaced.table, seconds);
        Replace {
            tables,
            columns,
            rows,
            links,
            linked_bytes,
            out,
            table: shown(table),
            file_bytes: replaced.hdf5.file_bytes,
            cells_compared: replaced.cells,
            seconds,
        }
    }
}

/// The document of `materialize`, which makes a thin table independent of its HDF5 file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Materialize {
    /// Path of the table, as it was given.
    pub out: String,
    /// Number of tables that were written, with subtables.
    pub tables: u64,
    /// Number of columns of all tables.
    pub columns: u64,
    /// Number of rows of the main table.
    pub rows: u64,
    /// Size of the cells, uncompressed.
    pub bytes: u64,
}

impl Materialize {
    /// Makes the document of the table at `out`.
    pub fn new(out: &Path, copied: &ToTableSummary) -> Self {
        Materialize {
            out: shown(out),
            tables: copied.tables as u64,
            columns: copied.columns as u64,
            rows: copied.rows,
            bytes: copied.bytes,
        }
    }
}

/// The document of `manifest`, which writes references of kerchunk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Manifest {
    /// Path of the manifest, as it was given.
    pub out: String,
    /// Number of tables that it has.
    pub tables: u64,
    /// Number of columns that it has.
    pub columns: u64,
    /// Number of columns that are read from tiles of the table.
    pub tiled_columns: u64,
    /// Number of columns whose elements are in the manifest itself.
    pub inline_columns: u64,
    /// Number of rows of the main table, or of the one that was chosen.
    pub rows: u64,
    /// Number of chunks that the manifest refers to.
    pub references: u64,
    /// Size of the tiles that it refers to.
    pub tile_bytes: u64,
    /// Size of the manifest.
    pub file_bytes: u64,
    /// Path of the HDF5 file with columns that are not read from tiles; `None` if none was written.
    pub companion: Option<String>,
    /// Size of that HDF5 file; `None` if none was written.
    pub companion_bytes: Option<u64>,
    /// Columns that the manifest lacks.
    pub left_out: Vec<LeftOutColumn>,
    /// Duration in seconds.
    pub seconds: f64,
}

impl Manifest {
    /// Makes the document of the manifest `out`.
    pub fn new(out: &Path, written: &ManifestSummary, seconds: f64) -> Self {
        let companion = written.companion.as_ref();
        Manifest {
            out: shown(out),
            tables: written.tables as u64,
            columns: written.columns as u64,
            tiled_columns: written.tiled_columns as u64,
            inline_columns: written.inline_columns as u64,
            rows: written.rows,
            references: written.references,
            tile_bytes: written.tile_bytes,
            file_bytes: written.file_bytes,
            companion: companion.map(|(path, _)| shown(path)),
            companion_bytes: companion.map(|(_, bytes)| *bytes),
            left_out: written.left_out.clone(),
            seconds,
        }
    }
}
