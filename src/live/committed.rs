//! How far the datasets of a live file are committed, for crates that show the objects of any HDF5
//! file: only committed rows are shown.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::error::{Error, Result};
use crate::h5::{Group, Link};
use crate::native::{COMMITTED_ROWS, Growth, described_tables, growth, is_position, row_map};
use crate::sync::LockUnpoisoned;
use crate::value::{DataType, Region, Shape, Values};

/// Rows of `row_cube` read at a time.
const BLOCK: u64 = 1 << 16;

/// Committed rows of the tables in one open file. Each number is read once, so that all datasets of
/// a table end at the same row.
#[derive(Debug, Default)]
pub struct CommittedRows {
    /// Keys are paths of groups; `None` for groups that are not tables of a live file.
    known: Mutex<BTreeMap<String, Option<u64>>>,
}

impl CommittedRows {
    /// Committed extent of the dataset `name` in the group `path` on its slowest axis: rows of its
    /// table, or cells of a hypercube. `None` if it grows by neither, or is not of a live table.
    ///
    /// # Errors
    /// Those of reading; `Format` for a position in a hypercube that is below 0.
    pub fn extent(&self, root: &Group, path: &str, name: &str) -> Result<Option<u64>> {
        let (parent, last) = path.rsplit_once('/').unwrap_or(("", path));
        let column = if last.is_empty() { None } else { Some((parent, last)) };
        for (table, column) in [(path, None)].into_iter().chain(column.map(|(parent, last)| (parent, Some(last)))) {
            let Some(rows) = self.of_table(root, table)? else { continue };
            let Some(column) = column else { return Ok(Some(rows)) };
            let group = root.group(&format!("{table}/{column}"))?;
            let cube = match growth(name) {
                Some(Growth::Rows) => return Ok(Some(rows)),
                Some(Growth::Positions(cube)) => Some(cube),
                None if is_position(name) => {
                    group.link_names()?.iter().filter(|name| is_position(name)).position(|other| other == name)
                }
                None => None,
            };
            return cube.map(|cube| positions(&group, rows, cube)).transpose();
        }
        Ok(None)
    }

    fn of_table(&self, root: &Group, path: &str) -> Result<Option<u64>> {
        let mut known = self.known.lock_unpoisoned();
        if let Some(&rows) = known.get(path) {
            return Ok(rows);
        }
        let rows = committed_rows(root, path)?;
        known.insert(path.to_owned(), rows);
        Ok(rows)
    }
}

fn committed_rows(root: &Group, path: &str) -> Result<Option<u64>> {
    if path.is_empty() || !root.has(path.trim_start_matches('/')) {
        return Ok(None);
    }
    let group = root.group(path)?;
    if group.any_link(COMMITTED_ROWS)? != Some(Link::Hard) {
        return Ok(None);
    }
    let is_counted = |document: &str| document == COMMITTED_ROWS;
    let mut tables = described_tables(root)?.into_iter();
    let Some(table) = tables.find(|table| table.path == path) else { return Ok(None) };
    if !table.document()?.committed.as_deref().is_some_and(is_counted) {
        return Ok(None);
    }
    let counter = group.dataset(COMMITTED_ROWS)?;
    counter.refresh()?;
    counter.read_counter().map(Some)
}

/// Cells of the first `rows` rows in hypercube `cube`.
fn positions(column: &Group, rows: u64, cube: usize) -> Result<u64> {
    let (cubes, indices) = row_map();
    let (cubes, indices) = (column.dataset(cubes)?, column.dataset(indices)?);
    for dataset in [&cubes, &indices] {
        dataset.refresh()?;
    }
    // cells come in the order of rows: the last one tells
    let mut end = rows;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        let region = Region::rows(&Shape::default(), start..end);
        let mut numbers = Values::new(DataType::Int);
        cubes.read_region(&region, &mut numbers)?;
        let Values::Int(numbers) = numbers else { return Ok(0) };
        if let Some(last) = numbers.iter().rposition(|&number| usize::try_from(number) == Ok(cube)) {
            let row = start + last as u64;
            let mut index = Values::new(DataType::Int64);
            indices.read_region(&Region::rows(&Shape::default(), row..row + 1), &mut index)?;
            let index = match index {
                Values::Int64(index) => index.first().and_then(|&index| u64::try_from(index).ok()),
                _ => None,
            };
            let index = index
                .ok_or_else(|| Error::format(format!("the position of row {row} is not a number of 0 or more")))?;
            return Ok(index.saturating_add(1));
        }
        end = start;
    }
    Ok(0)
}
