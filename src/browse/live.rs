//! Finds how many rows of a dataset in a live file (an HDF5 file that this program appends to under
//! SWMR) are committed: only these are shown.

use super::resolve::OpenFile;
use crate::error::{Error, Result};
use crate::h5::{Group, Link};
use crate::native::{COMMITTED_ROWS, Growth, described_tables, growth, is_position, row_map};
use crate::value::{DataType, Region, Shape, Values};

/// Rows of `row_cube` read at a time.
const BLOCK: u64 = 1 << 16;

/// Committed entries on the slowest axis of a dataset: rows of its table, or cells of a hypercube.
/// `None` if it grows by neither, or is not of a live table.
pub(super) fn committed(file: &OpenFile, path: &str, name: &str) -> Result<Option<u64>> {
    let (parent, last) = path.rsplit_once('/').unwrap_or(("", path));
    let column = if last.is_empty() { None } else { Some((parent, last)) };
    for (table, column) in [(path, None)].into_iter().chain(column.map(|(parent, last)| (parent, Some(last)))) {
        let Some(rows) = file.committed_rows(table, committed_rows)? else { continue };
        let Some(column) = column else { return Ok(Some(rows)) };
        let group = file.root()?.group(&format!("{table}/{column}"))?;
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

/// `None` if the group is not a table of a live file.
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
