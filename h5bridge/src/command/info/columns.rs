//! The columns of a table as lines of `h5bridge info`: type, shape, size, manager, compression.

use ctds_hdf5::convert::{DatasetInfo, Source, SourceTable};
use ctds_hdf5::value::Shape;
use ctds_hdf5::{ColumnInfo, ColumnKind};

use crate::report;

/// Cells whose shapes are read to describe a column.
const SAMPLES: u64 = 256;

#[derive(Debug)]
pub(super) struct ColumnFacts {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
    /// python-casacore's name.
    pub(super) data_type: &'static str,
    /// Slowest axis first; empty for scalars.
    pub(super) shape: String,
    /// Bytes on disk, if known; of all columns that share the files.
    pub(super) bytes: Option<u64>,
    pub(super) is_shared: bool,
    /// No sampled cell is defined.
    pub(super) is_empty: bool,
    /// The manager's name follows in parentheses if it differs: `TiledShapeStMan (TiledData)`.
    pub(super) manager: String,
    /// Empty without compression.
    pub(super) compression: String,
    /// Empty without a unit.
    pub(super) unit: String,
    pub(super) comment: String,
}

impl ColumnFacts {
    pub(super) fn of(source: &Source, table: &SourceTable) -> Vec<Self> {
        let columns = table.columns().unwrap_or_default();
        let number = source.tables().iter().position(|other| std::ptr::eq(other, table));
        let files = ManagerFiles::of(table);
        let fact = |(index, info): (usize, &ColumnInfo)| {
            let datasets = table.storage(index).unwrap_or_default();
            let stored: u64 = datasets.iter().map(|dataset| dataset.stored_bytes).sum();
            let (bytes, is_shared) = if datasets.is_empty() { files.of_column(index) } else { (Some(stored), false) };
            let shape = number.map_or(Cells::Unknown, |number| cells(source, number, index, info));
            let manager = info.manager.to_string().trim_end().to_owned();
            let text = |name: &str| info.desc.keywords.string(name).map(ToString::to_string);
            let units =
                info.desc.keywords.strings("QuantumUnits").and_then(|units| units.first()).map(ToString::to_string);
            ColumnFacts {
                name: info.desc.name.to_string(),
                kind: info.desc.kind,
                data_type: info.desc.type_name(),
                shape: shape.text(info),
                bytes,
                is_shared,
                is_empty: matches!(shape, Cells::Empty),
                manager: match info.manager_name.to_string() {
                    name if name.is_empty() || name == manager => manager,
                    name => format!("{manager} ({name})"),
                },
                compression: compression(&datasets),
                unit: units.or_else(|| text("UNIT")).unwrap_or_default(),
                comment: info.desc.comment.to_string(),
            }
        };
        columns.iter().enumerate().map(fact).collect()
    }

    pub(super) fn size(&self) -> String {
        match self.bytes.map(report::bytes) {
            Some(bytes) if self.is_shared => format!("in {bytes}"),
            Some(bytes) => bytes,
            None => String::new(),
        }
    }
}

fn compression(datasets: &[DatasetInfo]) -> String {
    let largest = datasets.iter().max_by_key(|dataset| dataset.stored_bytes);
    match largest {
        Some(DatasetInfo { elsewhere: Some(elsewhere), .. }) => elsewhere.text.clone(),
        Some(dataset) => dataset.filters.join(", "),
        None => String::new(),
    }
}

struct ManagerFiles {
    /// Manager of each column; `None` in references and concatenations, where other tables have it.
    numbers: Vec<Option<usize>>,
    bytes: Vec<u64>,
}

impl ManagerFiles {
    fn of(table: &SourceTable) -> Self {
        match table.table() {
            Ok(Some(table)) => {
                ManagerFiles { numbers: table.manager_numbers(), bytes: table.manager_bytes().unwrap_or_default() }
            }
            _ => ManagerFiles { numbers: Vec::new(), bytes: Vec::new() },
        }
    }

    /// Bytes on disk, if known, and whether other columns share the files.
    fn of_column(&self, index: usize) -> (Option<u64>, bool) {
        let Some(manager) = self.numbers.get(index).copied().flatten() else { return (None, false) };
        let columns = self.numbers.iter().filter(|number| **number == Some(manager)).count();
        // engines have no files
        (self.bytes.get(manager).copied().filter(|bytes| *bytes > 0), columns > 1)
    }
}

enum Cells {
    Empty,
    /// Fastest axis first.
    Same(Shape),
    /// Shape of the first defined cell, fastest axis first.
    Varying(Shape),
    /// The column cannot be read, or the table has no rows.
    Unknown,
}

impl Cells {
    fn text(&self, info: &ColumnInfo) -> String {
        match self {
            _ if info.desc.kind == ColumnKind::Scalar => String::new(),
            Cells::Same(shape) => format!("{:?}", shape.reversed()),
            Cells::Varying(shape) => format!("{:?}, varies", shape.reversed()),
            Cells::Empty | Cells::Unknown => {
                info.shape.as_ref().map_or_else(|| "any".to_owned(), |shape| format!("{:?}", shape.reversed()))
            }
        }
    }
}

/// Up to `SAMPLES` cells, at equal distances in rows.
fn cells(source: &Source, table: usize, index: usize, info: &ColumnInfo) -> Cells {
    let rows = source.tables()[table].rows().unwrap_or(0);
    let Some(last) = rows.checked_sub(1) else { return Cells::Unknown };
    if info.desc.kind == ColumnKind::Scalar {
        return Cells::Same(Shape::scalar());
    }
    let Ok(column) = source.column_at(table, index) else { return Cells::Unknown };
    let samples = rows.min(SAMPLES);
    let row = |sample: u64| (u128::from(last) * u128::from(sample) / u128::from((samples - 1).max(1))) as u64;
    let mut found: Option<Shape> = None;
    for sample in 0..samples {
        match (column.cell_shape(row(sample)), &found) {
            (Err(_), _) => return Cells::Unknown,
            (Ok(Some(shape)), Some(first)) if shape != *first => return Cells::Varying(first.clone()),
            (Ok(Some(shape)), None) => found = Some(shape),
            _ => {}
        }
    }
    found.map_or(Cells::Empty, Cells::Same)
}
