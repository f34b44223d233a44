//! Texts about the work that `to-hdf5` plans and does: bytes shared with the source by reflinks,
//! averages, tables, columns.

use std::collections::BTreeMap;

use ctds_hdf5::convert::{Averaged, ColumnPlan, NotShared, Sharing, TablePlan, ToHdf5Plan};

use crate::report;

/// Bytes below which a column that shares none by reflinks is not named in the report.
const NOTABLE_BYTES: u64 = 1 << 20;
/// Columns with less than 1/100 of all bytes are not named either.
const NOTABLE_PART: u64 = 100;

/// Names the large columns that do not share bytes. `file_bytes` is the size of the HDF5 file.
pub(super) fn sharing_lines(sharing: &Sharing, file_bytes: u64) -> Vec<String> {
    let (shared, own) = (sharing.shared_bytes, file_bytes.saturating_sub(sharing.shared_bytes));
    let mut lines = vec![format!("shared with the source: {}; copied: {}", report::bytes(shared), report::bytes(own))];
    let all: u64 = sharing.columns.iter().map(|column| column.bytes).sum();
    let mut reasons = BTreeMap::<NotShared, Vec<String>>::new();
    for column in sharing.columns.iter().filter(|column| column.bytes >= NOTABLE_BYTES.max(all / NOTABLE_PART)) {
        if let Some(reason) = column.not_shared {
            reasons.entry(reason).or_default().push(column.path());
        }
    }
    lines.extend(reasons.iter().map(|(reason, columns)| format!("not shared, {reason}: {}", columns.join(", "))));
    lines
}

/// The layout for reading from an object store; `None` for that for a disk.
pub(super) fn profile_line(plan: &ToHdf5Plan<'_>) -> Option<String> {
    let pages = report::bytes(plan.profile().page_bytes()?);
    Some(format!("profile cloud: pages of {pages}, chunks of about 4 MiB"))
}

pub(super) fn averaged_lines(averaged: &Averaged) -> Vec<String> {
    let mut channels: Vec<String> =
        averaged.channels.iter().map(|(before, after)| format!("{before} to {after}")).collect();
    channels.dedup();
    let channels = match channels.as_slice() {
        [] => String::new(),
        all => format!("; channels: {}", all.join(", ")),
    };
    let weights = averaged.weights.as_ref().map_or("without weights".to_owned(), |name| format!("weights: {name}"));
    let Averaged { averaging, rows_before, rows, .. } = averaged;
    let mut lines = vec![format!("averaged, {averaging}: rows: {rows_before} to {rows}{channels}; {weights}")];
    if !averaged.first_values.is_empty() {
        lines.push(format!("not averaged, the value of the first row is kept: {}", averaged.first_values.join(", ")));
    }
    if !averaged.left_undefined.is_empty() {
        lines.push(format!("not averaged, left undefined: {}", averaged.left_undefined.join(", ")));
    }
    lines
}

/// A predicted time in seconds, with two digits if it is short.
pub(super) fn rounded(seconds: f64) -> String {
    if seconds < 1.0 { format!("{seconds:.2} s") } else { format!("{seconds:.1} s") }
}

pub(super) fn table_lines(table: &TablePlan) -> Vec<String> {
    let column = |column: &ColumnPlan| {
        let filter = match (column.compression.is_none(), column.sample_remains()) {
            (true, None) => String::new(),
            (true, Some(remains)) => format!(", not compressed: a sample took {:.0} % of its bytes", 100.0 * remains),
            (false, None) => format!(", {}", column.compression.describe()),
            (false, Some(remains)) => {
                format!(", {} (a sample took {:.0} % of its bytes)", column.compression.describe(), 100.0 * remains)
            }
        };
        let (name, bytes, manager) = (&column.link, report::bytes(column.bytes), &column.manager);
        let (form, index) = (&column.form, column.chunk_index);
        format!("  {name:24} {:9} {manager:17} {form}, {index}{filter}, {bytes}", column.data_type.name())
    };
    let head = format!("{}  {} rows", table.group, table.rows.end - table.rows.start);
    [head].into_iter().chain(table.columns.iter().map(column)).collect()
}
