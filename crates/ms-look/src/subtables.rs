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

/// Reference frames, such as `J2000`, of the directions in a column of FIELD.
#[derive(Default)]
pub(crate) struct Frames {
    /// The frame of all rows; empty if it is not recorded, or if each row has a frame of its own.
    all: String,
    /// Empty where unknown; the list is empty if all rows have the same frame.
    each: Vec<String>,
}

impl Frames {
    pub(crate) fn of(source: &Source, column: &str) -> Self {
        let table = source.tables().iter().find(|table| table.name == "FIELD");
        let columns = table.and_then(|table| table.columns().ok()).unwrap_or_default();
        let info = columns.iter().find(|info| info.desc.name == column);
        let Some(measure) = info.and_then(|info| info.desc.keywords.record("MEASINFO")) else {
            return Frames::default();
        };
        let text = |name: &str| measure.string(name).map(|text| text.to_str_lossy().into_owned());
        let Some(of_rows) = text("VarRefCol") else {
            return Frames { all: text("Ref").unwrap_or_default(), each: Vec::new() };
        };
        let (names, codes) =
            (measure.strings("TabRefTypes").unwrap_or_default(), measure.integers("TabRefCodes").unwrap_or_default());
        let name = |code: i64| {
            let at = codes.iter().position(|known| *known == code)?;
            names.get(at).map(|name| name.to_str_lossy().into_owned())
        };
        let each = integers(source, "FIELD", &of_rows).into_iter().map(|code| name(code).unwrap_or_default()).collect();
        Frames { all: String::new(), each }
    }

    pub(crate) fn name(&self, row: usize) -> String {
        self.each.get(row).unwrap_or(&self.all).clone()
    }
}
