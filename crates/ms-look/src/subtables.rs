//! Reads cells of subtables for descriptions and summaries of a MeasurementSet. A missing table or
//! an unreadable cell is not an error: it counts as empty.

use bstr::ByteSlice;
use ctds::value::Values;
use ctds_hdf5::{Source, internals};

pub(crate) const MAX_ROWS: u64 = 10_000;

/// Most channels that are read, of all spectral windows together.
pub(crate) const MAX_CHANNELS: usize = 1 << 22;

/// Text by which people see a row of a subtable: its name, or `#5` if the name of row 5 is empty.
pub fn label(name: &str, row: usize) -> String {
    if name.is_empty() { format!("#{row}") } else { name.to_owned() }
}

/// Number of rows, at most [`MAX_ROWS`]; 0 if the subtable is missing or unreadable.
pub(crate) fn rows(source: &Source, table: &str) -> usize {
    let table = source.tables().iter().find(|other| other.name == table);
    table.and_then(|table| table.rows().ok()).unwrap_or(0).min(MAX_ROWS) as usize
}

/// `reduce` gets `None` for an undefined or unreadable cell. Empty if the column is missing.
pub(crate) fn each<T>(source: &Source, table: &str, column: &str, reduce: impl Fn(Option<Values>) -> T) -> Vec<T> {
    let Some(number) = source.tables().iter().position(|other| other.name == table) else { return Vec::new() };
    let columns = source.tables()[number].columns().unwrap_or_default();
    let Some(index) = columns.iter().position(|info| info.desc.name == column) else { return Vec::new() };
    let Ok(cells) = internals::cells(source, number, index) else { return Vec::new() };
    let read = |row: u64| {
        let shape = cells.cell_shape(row).ok()??;
        if shape.elements().ok()? > MAX_CHANNELS as u64 {
            return None;
        }
        let mut values = Values::new(columns[index].data_type());
        cells.read_cell(row, None, &mut values).ok()?;
        Some(values)
    };
    (0..rows(source, table) as u64).map(|row| reduce(read(row))).collect()
}

/// `None` for cells that are undefined or cannot be read. Empty if the column is missing.
pub(crate) fn cells(source: &Source, table: &str, column: &str) -> Vec<Option<Values>> {
    each(source, table, column, |values| values)
}

/// Empty strings for cells that cannot be read. Empty if the column is missing.
pub(crate) fn strings(source: &Source, table: &str, column: &str) -> Vec<String> {
    let text = |values: Option<Values>| match values {
        Some(Values::String(strings)) => strings.first().map(|string| string.to_str_lossy().into_owned()),
        _ => None,
    };
    each(source, table, column, |values| text(values).unwrap_or_default())
}

/// `None` if the cell is of another type or could not be read.
pub(crate) fn doubles(values: &Option<Values>) -> Option<Vec<f64>> {
    match values.as_ref()? {
        Values::Double(values) => Some(values.clone()),
        _ => None,
    }
}

/// -1 for cells that cannot be read.
pub(crate) fn integers(source: &Source, table: &str, column: &str) -> Vec<i64> {
    let first = |values: Option<Values>| values?.integers()?.first().copied();
    each(source, table, column, |values| first(values).unwrap_or(-1))
}
