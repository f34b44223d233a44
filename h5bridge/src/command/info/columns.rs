//! The columns of a table as lines of `h5bridge info`: type, shape, size, manager, compression.

use ctds_hdf5::convert::{DatasetInfo, Source, SourceTable};
use ctds_hdf5::value::Shape;
use ctds_hdf5::{ColumnInfo, ColumnKind};

use crate::report;

/// Maximum number of cells of a column whose shapes are read to describe the column in `info`.
const SAMPLES: u64 = 256;

/// A column of a table, described in words for `h5bridge info`.
#[derive(Debug)]
pub(super) struct ColumnFacts {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
    /// Type of the elements of the column, as python-casacore names it.
    pub(super) data_type: &'static str,
    /// Shape of the cells of the column, slowest axis first; empty for scalars.
    pub(super) shape: String,
    /// Bytes of the column on disk; if it shares its files with other columns, the bytes of all of them; `None` if not known.
    pub(super) bytes: Option<u64>,
    /// Whether other columns are stored in the same files as this column, so that `bytes` counts them as well.
    pub(super) is_shared: bool,
    /// Whether the column seems empty: no cell in a sample of its rows is defined.
    pub(super) is_empty: bool,
    /// Type of the column's storage manager, followed by the name of the manager in parentheses if that differs: `TiledShapeStMan (TiledData)`.
    pub(super) manager: String,
    /// Filters or other compression of the column; empty if it is not compressed.
    pub(super) compression: String,
    /// Unit of the values of the column, from its keywords; empty if it has none.
    pub(super) unit: String,
    pub(super) comment: String,
}

impl ColumnFacts {
    /// Describes all columns of a table.
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

    /// Bytes of the column on disk in words, such as `1.2 MiB`.
    pub(super) fn size(&self) -> String {
        match self.bytes.map(report::bytes) {
            Some(bytes) if self.is_shared => format!("in {bytes}"),
            Some(bytes) => bytes,
            None => String::new(),
        }
    }
}

/// Names of the HDF5 filters (compression) of the datasets of a column.
fn compression(datasets: &[DatasetInfo]) -> String {
    let largest = datasets.iter().max_by_key(|dataset| dataset.stored_bytes);
    match largest {
        Some(DatasetInfo { elsewhere: Some(elsewhere), .. }) => elsewhere.text.clone(),
        Some(dataset) => dataset.filters.join(", "),
        None => String::new(),
    }
}

/// Bytes on disk of the files of each data manager of a table.
struct ManagerFiles {
    /// Index of the data manager of each column; `None` for columns of reference tables and concatenations, whose
    /// managers belong to other tables.
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

    /// Bytes on disk of the files of the column with this index (`None` if not known, or if it has no files), and whether other columns are stored in
    /// them.
    fn of_column(&self, index: usize) -> (Option<u64>, bool) {
        let Some(manager) = self.numbers.get(index).copied().flatten() else { return (None, false) };
        let columns = self.numbers.iter().filter(|number| **number == Some(manager)).count();
        // engines have no files
        (self.bytes.get(manager).copied().filter(|bytes| *bytes > 0), columns > 1)
    }
}

/// The shapes of the cells of a column, found by reading a sample of its cells.
enum Cells {
    /// No cell of the sample is defined.
    Empty,
    /// All defined cells of the sample have this shape, fastest axis first.
    Same(Shape),
    /// Cells of the sample differ in shape; the value is the shape of the first defined cell, fastest axis first.
    Varying(Shape),
    /// The shapes are not known: the column cannot be read, or the table has no rows.
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

/// Reads the shapes of up to `SAMPLES` cells of a column, at equal distances in rows.
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
