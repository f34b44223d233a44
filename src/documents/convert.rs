//! Documents of verbs that convert tables and arrays.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::shown;
use crate::blz;
use crate::convert::{
    ColumnPlan, ColumnSharing, Hash, Hdf5Version, JoinSummary, Prediction, Profile, TablePlan, ToHdf5Plan,
    ToHdf5Summary, ToOriginalSummary, ToTableSummary,
};
use crate::table::TableKind;

/// The document of `to-hdf5` for tables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToHdf5 {
    /// Path of the HDF5 file, as it was given.
    pub out: String,
    /// Number of tables that the file has, with subtables.
    pub tables: u64,
    /// Number of columns of all tables that were converted.
    pub columns: u64,
    /// Number of columns that the file lacks because they could not be converted.
    pub columns_missing: u64,
    /// Number of rows of the main table that were converted.
    pub rows: u64,
    /// Size of the converted cells, uncompressed.
    pub bytes: u64,
    /// Size of the HDF5 file.
    pub file_bytes: u64,
    /// Duration of the conversion in seconds.
    pub seconds: f64,
    /// Most memory that the process has used, in bytes; `None` if the system does not tell it.
    pub peak_memory: Option<u64>,
    /// Fingerprint of the main table, in hexadecimal digits; `None` if none was computed.
    pub digest: Option<String>,
    /// Columns that `--compress auto` left uncompressed because their samples did not shrink
    /// enough, such as `MAIN/DATA`.
    pub not_compressed: Vec<String>,
    /// Size and duration that were predicted before the conversion.
    pub expected: Prediction,
    /// Effect of averaging; missing if nothing was averaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub averaged: Option<Averaged>,
    /// `cloud` for a file laid out for reading from an object store; missing for one that is laid
    /// out for a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// `1.8` for a file in the structures of HDF5 before 1.10; missing for any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hdf5: Option<String>,
    /// Bytes that the file shares with the source; missing without `--compress shared`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
}

impl ToHdf5 {
    /// Makes the document of a conversion to the file `out`. `expected` was predicted before it,
    /// `peak_memory` is the most memory of the process in bytes.
    pub fn new(
        out: &Path,
        plan: &ToHdf5Plan<'_>,
        summary: &ToHdf5Summary,
        expected: Prediction,
        seconds: f64,
        peak_memory: Option<u64>,
    ) -> Self {
        ToHdf5 {
            out: shown(out),
            tables: summary.tables as u64,
            columns: summary.columns as u64,
            columns_missing: summary.missing as u64,
            rows: summary.rows,
            bytes: summary.bytes,
            file_bytes: summary.file_bytes,
            seconds,
            peak_memory,
            digest: summary.digest.as_ref().map(Hash::to_string),
            not_compressed: plan.left_uncompressed(),
            expected,
            averaged: plan.averaged().map(Averaged::from),
            profile: profile(plan),
            hdf5: hdf5(plan),
            sharing: summary.sharing.as_ref().map(|sharing| Sharing::new(sharing, summary.file_bytes)),
        }
    }
}

fn profile(plan: &ToHdf5Plan<'_>) -> Option<String> {
    (plan.profile() == Profile::Cloud).then(|| "cloud".to_owned())
}

fn hdf5(plan: &ToHdf5Plan<'_>) -> Option<String> {
    (plan.hdf5() == Hdf5Version::V18).then(|| "1.8".to_owned())
}

/// The document of `to-hdf5 --dry-run`: the plan of a conversion that is not carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToHdf5DryRun {
    /// Size of the cells to convert, uncompressed.
    pub bytes: u64,
    /// Memory that the conversion would need, in bytes.
    pub peak_memory: u64,
    /// Predicted size and duration.
    pub expected: Prediction,
    /// The tables of the file, the main table first.
    pub tables: Vec<PlannedTable>,
    /// Bytes that the file would share with the source; missing without `--compress shared`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
    /// `cloud` for a file laid out for reading from an object store; missing for one that is laid
    /// out for a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// `1.8` for a file in the structures of HDF5 before 1.10; missing for any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hdf5: Option<String>,
    /// Effect of averaging; missing if nothing would be averaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub averaged: Option<Averaged>,
    /// Original files that the file would be able to restore; missing without `--restorable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restorable: Option<Restorable>,
}

impl ToHdf5DryRun {
    /// Makes the document of a plan, with the size and duration that are `expected`.
    pub fn new(plan: &ToHdf5Plan<'_>, expected: Prediction) -> Self {
        ToHdf5DryRun {
            bytes: plan.bytes(),
            peak_memory: plan.peak_memory(),
            expected,
            tables: plan.tables().iter().map(PlannedTable::from).collect(),
            sharing: None,
            profile: profile(plan),
            hdf5: hdf5(plan),
            averaged: plan.averaged().map(Averaged::from),
            restorable: None,
        }
    }
}

/// A table in the plan of a conversion to HDF5.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlannedTable {
    /// The keywords that lead to the table, such as `ANTENNA` or `A/B`; `.` for the main table.
    pub name: String,
    /// Path of the table's group in the HDF5 file, such as `/MAIN`.
    pub group: String,
    /// Number of rows to convert.
    pub rows: u64,
    /// The columns to convert, in the order of the table.
    pub columns: Vec<PlannedColumn>,
}

impl From<&TablePlan> for PlannedTable {
    fn from(table: &TablePlan) -> Self {
        PlannedTable {
            name: table.name.clone(),
            group: table.group.clone(),
            rows: table.rows.end - table.rows.start,
            columns: table.columns.iter().map(PlannedColumn::from).collect(),
        }
    }
}

/// A column in the plan of a conversion to HDF5.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlannedColumn {
    /// Name of the column.
    pub name: String,
    /// Name of the column's dataset or group in the group of its table.
    pub dataset: String,
    /// Type of the elements, such as `Complex`.
    pub dtype: String,
    /// Type of the storage manager that the column is read from.
    pub manager: String,
    /// Form of the column in the HDF5 file, in words: shape, chunks.
    pub form: String,
    /// Name of the index of the chunks in the HDF5 file, such as `fixed array`.
    pub index: String,
    /// Level of the filter deflate, 1 to 9; `None` if the filter is not used.
    pub deflate: Option<u8>,
    /// Size of the cells to convert, uncompressed.
    pub bytes: u64,
    /// Compressed size of a sample as a fraction of its size, to three digits; missing if no sample
    /// was compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_remains: Option<f64>,
    /// The compression, such as `zstd:3`; missing if readers need no plugin for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<String>,
}

impl From<&ColumnPlan> for PlannedColumn {
    fn from(column: &ColumnPlan) -> Self {
        PlannedColumn {
            name: column.name.clone(),
            dataset: column.link.clone(),
            dtype: column.data_type.name().to_owned(),
            manager: column.manager.clone(),
            form: column.form.to_string(),
            index: column.chunk_index.to_owned(),
            deflate: column.compression.gzip_level(),
            bytes: column.bytes,
            sample_remains: column.sample_remains().map(|remains| (remains * 1000.0).round() / 1000.0),
            compression: column.compression.plugin().map(|_| column.compression.to_string()),
        }
    }
}

/// The original files of a table that an HDF5 file can restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restorable {
    /// Number of files.
    pub files: u64,
    /// Size of all files.
    pub bytes: u64,
}

/// How much of an HDF5 file shares its bytes with the source by reflinks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sharing {
    /// Bytes of the file that take no disk space of their own.
    pub shared_bytes: u64,
    /// All other bytes of the file.
    pub copied_bytes: u64,
    /// Columns with bytes that could not be shared.
    pub not_shared: Vec<CopiedColumn>,
}

impl Sharing {
    /// Makes the description of the sharing of an HDF5 file with `file_bytes` bytes.
    pub fn new(sharing: &crate::convert::Sharing, file_bytes: u64) -> Self {
        let copied = |column: &ColumnSharing| {
            let reason = column.not_shared?.describe().to_owned();
            Some(CopiedColumn { column: column.path(), bytes: column.bytes, reason })
        };
        Sharing {
            shared_bytes: sharing.shared_bytes,
            copied_bytes: file_bytes.saturating_sub(sharing.shared_bytes),
            not_shared: sharing.columns.iter().filter_map(copied).collect(),
        }
    }
}

/// A column with bytes that an HDF5 file does not share with the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CopiedColumn {
    /// Path of the column in the HDF5 file, such as `MAIN/DATA`.
    pub column: String,
    /// Size of all elements of the column, uncompressed.
    pub bytes: u64,
    /// The first reason why bytes are copied, in words.
    pub reason: String,
}

/// Effect of averaging a MeasurementSet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Averaged {
    /// The averaging that was requested, as `--average` takes it.
    pub averaging: String,
    /// Number of rows of the main table before averaging.
    pub rows_before: u64,
    /// Number of rows of the main table after averaging.
    pub rows: u64,
    /// Number of channels of each spectral window before and after averaging; empty if channels are
    /// not averaged.
    pub channels: Vec<(u64, u64)>,
    /// Name of the column with the weights of samples; `None` if all samples count the same.
    pub weights: Option<String>,
    /// Names of columns of which an averaged row has the value of the first row.
    pub first_values: Vec<String>,
    /// Names of columns that have no defined cell after averaging.
    pub left_undefined: Vec<String>,
}

impl From<&crate::convert::Averaged> for Averaged {
    fn from(averaged: &crate::convert::Averaged) -> Self {
        let averaged = averaged.clone();
        Averaged {
            averaging: averaged.averaging.to_string(),
            rows_before: averaged.rows_before,
            rows: averaged.rows,
            channels: averaged.channels,
            weights: averaged.weights,
            first_values: averaged.first_values,
            left_undefined: averaged.left_undefined,
        }
    }
}

/// The document of `to-hdf5` for arrays of BLZ, bcolz or bloscpack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToHdf5Arrays {
    /// Path of the HDF5 file, as it was given.
    pub out: String,
    /// Number of arrays.
    pub arrays: u64,
    /// Size of all elements, uncompressed.
    pub bytes: u64,
    /// Size of the HDF5 file.
    pub file_bytes: u64,
    /// Duration of the conversion in seconds.
    pub seconds: f64,
    /// Most memory that the process has used, in bytes; `None` if the system does not tell it.
    pub peak_memory: Option<u64>,
}

impl ToHdf5Arrays {
    /// Makes the document of a conversion to the file `out`; `peak_memory` is the most memory of
    /// the process in bytes.
    pub fn new(out: &Path, summary: &blz::ToHdf5Summary, seconds: f64, peak_memory: Option<u64>) -> Self {
        let blz::ToHdf5Summary { arrays, bytes, file_bytes } = *summary;
        ToHdf5Arrays { out: shown(out), arrays: arrays as u64, bytes, file_bytes, seconds, peak_memory }
    }
}

/// The document of `to-ms`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToMs {
    /// Path of the table directory, as it was given.
    pub out: String,
    /// Number of tables that were written, with subtables.
    pub tables: u64,
    /// Number of columns of all tables that were written.
    pub columns: u64,
    /// Number of columns that the table lacks because the source does not have their cells.
    pub columns_missing: u64,
    /// Number of rows of the main table.
    pub rows: u64,
    /// Size of the cells, uncompressed.
    pub bytes: u64,
    /// Other tables whose rows the main table shows; missing if it has cells of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<ToMsView>,
    /// Duration of the conversion in seconds.
    pub seconds: f64,
    /// Most memory that the process has used, in bytes; `None` if the system does not tell it.
    pub peak_memory: Option<u64>,
}

/// In the document of `to-ms`: a reference table or concatenation that was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToMsView {
    /// `reference` to rows of one table, or `concatenation` of all rows of tables.
    pub kind: String,
    /// Paths of the tables whose rows the written table shows.
    pub tables: Vec<String>,
}

impl ToMsView {
    /// `None` for a plain table.
    fn new(kind: &TableKind) -> Option<Self> {
        let (kind, tables) = match kind {
            TableKind::Plain => return None,
            TableKind::Reference { root } => ("reference", vec![shown(root)]),
            TableKind::Concatenation { parts } => ("concatenation", parts.iter().map(|part| shown(part)).collect()),
        };
        Some(ToMsView { kind: kind.to_owned(), tables })
    }
}

impl ToMs {
    /// Makes the document of a table written to `out`; `peak_memory` is the most memory of the
    /// process in bytes.
    pub fn new(out: &Path, summary: &ToTableSummary, seconds: f64, peak_memory: Option<u64>) -> Self {
        ToMs {
            out: shown(out),
            tables: summary.tables as u64,
            columns: summary.columns as u64,
            columns_missing: summary.missing as u64,
            rows: summary.rows,
            bytes: summary.bytes,
            view: ToMsView::new(&summary.kind),
            seconds,
            peak_memory,
        }
    }
}

/// The document of `to-ms --exact`, which restores the original files of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToMsExact {
    /// Path of the table directory, as it was given.
    pub out: String,
    /// Number of files that were restored.
    pub files: u64,
    /// Size of these files.
    pub bytes: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Most memory that the process has used, in bytes; `None` if the system does not tell it.
    pub peak_memory: Option<u64>,
}

impl ToMsExact {
    /// Makes the document of a table restored at `out`; `peak_memory` is the most memory of the
    /// process in bytes.
    pub fn new(out: &Path, restored: &ToOriginalSummary, seconds: f64, peak_memory: Option<u64>) -> Self {
        ToMsExact { out: shown(out), files: restored.files, bytes: restored.bytes, seconds, peak_memory }
    }
}

/// The document of `join --virtual`: one HDF5 file over several with ranges of rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Join {
    /// Path of the HDF5 file, as it was given.
    pub out: String,
    /// Number of files that were joined.
    pub parts: u64,
    /// Number of rows of the joined table.
    pub rows: u64,
    /// Number of tables that the file has, with subtables.
    pub tables: u64,
    /// Names of the columns that are virtual datasets, whose elements stay in the parts.
    pub virtual_columns: Vec<String>,
    /// Size of the elements that stay in the parts, uncompressed.
    pub virtual_bytes: u64,
    /// Size of the elements that were copied, uncompressed.
    pub copied_bytes: u64,
    /// Number of cells that were read through the new file and compared with the parts.
    pub cells_compared: u64,
    /// Size of the HDF5 file.
    pub file_bytes: u64,
    /// Duration in seconds.
    pub seconds: f64,
}

impl Join {
    /// Makes the document of parts joined in the file `out`.
    pub fn new(out: &Path, joined: &JoinSummary, seconds: f64) -> Self {
        Join {
            out: shown(out),
            parts: joined.parts as u64,
            rows: joined.rows,
            tables: joined.tables as u64,
            virtual_columns: joined.virtual_columns.clone(),
            virtual_bytes: joined.virtual_bytes,
            copied_bytes: joined.copied_bytes,
            cells_compared: joined.cells,
            file_bytes: joined.file_bytes,
            seconds,
        }
    }
}
