//! The columns of a table as lines: type, shape, size, manager, compression.

use ctds_hdf5::convert::{DatasetInfo, Source, SourceTable};
use ctds_hdf5::value::Shape;
use ctds_hdf5::{ColumnInfo, ColumnKind};

use crate::report;

/// Cells whose shapes are looked at.
const SAMPLES: u64 = 256;

/// A column in words.
#[derive(Debug)]
pub(super) struct ColumnFacts {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
    /// Type of the elements as python-casacore names it.
    pub(super) data_type: &'static str,
    /// Shape of the cells, slowest axis first; empty for scalars.
    pub(super) shape: String,
    /// Bytes on disk; of a column that shares its files with others, of all of them.
    pub(super) bytes: Option<u64>,
    /// Whether other columns are in the same files.
    pub(super) is_shared: bool,
    /// Whether no cell that was looked at is defined.
    pub(super) is_empty: bool,
    /// Type of the storage manager, and in parentheses the name of this one if that differs: `TiledShapeStMan (TiledData)`.
    pub(super) manager: String,
    /// Filters or other compression; empty if there is none.
    pub(super) compression: String,
    /// Unit and comment.
    pub(super) unit: String,
    pub(super) comment: String,
}

impl ColumnFacts {
    /// The columns of a table.
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
                data_type: info.data_type().name(),
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

    /// Bytes on disk in words.
    pub(super) fn size(&self) -> String {
        match self.bytes.map(report::bytes) {
            Some(bytes) if self.is_shared => format!("in {bytes}"),
            Some(bytes) => bytes,
            None => String::new(),
        }
    }
}

/// Filters of the datasets of a column.
fn compression(datasets: &[DatasetInfo]) -> String {
    let largest = datasets.iter().max_by_key(|dataset| dataset.stored_bytes);
    match largest {
        Some(DatasetInfo { elsewhere: Some(elsewhere), .. }) => elsewhere.text.clone(),
        Some(dataset) => dataset.filters.join(", "),
        None => String::new(),
    }
}

/// Bytes of the data managers of a table.
struct ManagerFiles {
    /// Number of the manager of each column.
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

    /// Bytes of the files of a column, and whether other columns are in them.
    fn of_column(&self, index: usize) -> (Option<u64>, bool) {
        let Some(manager) = self.numbers.get(index).copied().flatten() else { return (None, false) };
        let columns = self.numbers.iter().filter(|number| **number == Some(manager)).count();
        // engines have no files
        (self.bytes.get(manager).copied().filter(|bytes| *bytes > 0), columns > 1)
    }
}

/// Shapes of the cells of a column.
enum Cells {
    /// No cell is defined.
    Empty,
    /// All cells that were looked at have this shape.
    Same(Shape),
    /// The first defined cell has this shape, others differ.
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

/// The shapes of some cells at equal distances.
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
