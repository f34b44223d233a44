//! Declarations of the tables and columns of a live file (HDF5 that is read while it is written),
//! before it is created.

use crate::error::{Error, Result};
use crate::schema::{ColumnDesc, ColumnKind, TableInfo};
use crate::table::ColumnInfo;
use crate::value::{DataType, Record, Shape, Values};

/// Declaration of a table of a live file, to which rows will be appended.
///
/// ```
/// use ctds_hdf5::live::{ColumnSpec, TableSpec};
/// use ctds_hdf5::{ColumnDesc, value::Complex32};
///
/// let data = ColumnDesc::array::<Complex32>("DATA").fixed_shape([4, 64]);
/// let main = TableSpec::new("MAIN")
///     .column(ColumnDesc::scalar::<f64>("TIME").unit("s"))
///     .column(ColumnSpec::from(data).axes(["corr", "chan"]));
/// assert_eq!(main.columns[1].chunk_rows(), 256);
/// ```
#[derive(Debug, Clone)]
pub struct TableSpec {
    /// Name of the table: `MAIN`, or the keywords that lead to a subtable, such as `ANTENNA` or
    /// `A/B`. The last of these keywords is added to the parent table.
    pub name: String,
    /// Type, subtype and readme of the table; a MeasurementSet's main table has the type
    /// `Measurement Set`.
    pub info: TableInfo,
    /// Keywords of the table, which become attributes of its group.
    pub keywords: Record,
    /// Declarations of the columns of the table, in their order.
    pub columns: Vec<ColumnSpec>,
    /// Coordinate values for axes of cells: pairs of the meaning of an axis (`chan`, `corr`) and
    /// one value for each index. They become the HDF5 dimension scale of all axes with this meaning
    /// and as many indices.
    pub coordinates: Vec<(String, Values)>,
    /// Whether a keyword of the parent names the table.
    pub(crate) is_named: bool,
}

impl TableSpec {
    /// Declares a table without columns; `name` is `MAIN`, or the keywords that lead to a subtable,
    /// as in `A/B`.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let (info, keywords) = (TableInfo::default(), Record::default());
        TableSpec { name, info, keywords, columns: Vec::new(), coordinates: Vec::new(), is_named: true }
    }

    /// Adds the declaration of a column to the table: a [`ColumnDesc`], or a [`ColumnSpec`] made of
    /// one.
    #[must_use]
    pub fn column(mut self, column: impl Into<ColumnSpec>) -> Self {
        self.columns.push(column.into());
        self
    }

    /// Sets coordinate values (one for each index) for the axes of cells whose meaning is `role`:
    /// `chan`, `corr`, or another that a column declares. They become the HDF5 dimension scale of
    /// these axes.
    #[must_use]
    pub fn coordinate(mut self, role: impl Into<String>, values: Values) -> Self {
        self.coordinates.push((role.into(), values));
        self
    }
}

/// Declaration of a column of a table of a live file: a [`ColumnDesc`], and what only live files
/// have. Cells have the shape that the description fixes, or one of [`shapes`](Self::shapes);
/// strings have its longest length.
#[derive(Debug, Clone)]
pub struct ColumnSpec {
    /// Name, type, comment, keywords and maximum length of strings of the column, and its other
    /// casacore properties.
    pub info: ColumnInfo,
    /// Shapes that the cells of the column may have.
    pub cells: CellShapes,
    /// Meanings of the axes of a cell (`corr`, `chan` …), first axis fastest. If empty, the
    /// MeasurementSet standard's meanings for a main-table column of this name are used.
    pub axes: Vec<String>,
    /// Rows in a chunk of the column; `None`: as many as make about 512 KiB, at most 4096.
    pub chunk_rows: Option<u64>,
}

/// The shapes that the cells of a column of a live file may have, first axis fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellShapes {
    /// The shape of all cells, first axis fastest; without axes for a column of scalars. The column
    /// is stored as one dataset.
    One(Shape),
    /// Each cell has one of these shapes, or is undefined. The column is stored as a group with a
    /// dataset for each shape, and the datasets `row_cube` and `row_index`, which say where the
    /// cell of each row is.
    Several(Vec<Shape>),
}

/// Target size; chunks have at most [`CHUNK_ROWS`] rows, so that a short table stays small.
const CHUNK_BYTES: u64 = 1 << 19;
const CHUNK_ROWS: u64 = 4096;

impl From<ColumnDesc> for ColumnSpec {
    fn from(desc: ColumnDesc) -> Self {
        let shape = match desc.kind {
            ColumnKind::Scalar => Some(Shape::scalar()),
            ColumnKind::Array => desc.is_fixed_shape().then(|| desc.shape.clone()),
        };
        let cells = shape.clone().map_or(CellShapes::Several(Vec::new()), CellShapes::One);
        let info = ColumnInfo {
            desc,
            shape,
            manager: "StandardStMan".into(),
            manager_name: "StandardStMan".into(),
            may_be_undefined: false,
        };
        ColumnSpec { info, cells, axes: Vec::new(), chunk_rows: None }
    }
}

impl ColumnSpec {
    /// Declares a column with the name, type, keywords and other properties `info` of an existing
    /// column; `cells` are the shapes that its cells may have.
    pub fn like(info: &ColumnInfo, cells: CellShapes) -> Self {
        ColumnSpec { info: info.clone(), cells, axes: Vec::new(), chunk_rows: None }
    }

    /// Declares that each cell of the column has one of these shapes (first axis fastest), or is
    /// undefined.
    #[must_use]
    pub fn shapes(mut self, shapes: impl IntoIterator<Item = Shape>) -> Self {
        let shapes: Vec<Shape> = shapes.into_iter().collect();
        let axes = shapes.first().map_or(0, |first| first.len());
        let desc = &mut self.info.desc;
        desc.kind = ColumnKind::Array;
        desc.options = 0;
        desc.ndim = if shapes.iter().all(|shape| shape.len() == axes) { axes as i32 } else { -1 };
        desc.shape = Shape::scalar();
        self.info.shape = None;
        self.cells = CellShapes::Several(shapes);
        self
    }

    /// Sets the meanings of the axes of the column's cells, first axis fastest: `corr`, `chan`.
    #[must_use]
    pub fn axes<S: Into<String>>(mut self, roles: impl IntoIterator<Item = S>) -> Self {
        self.axes = roles.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the number of rows in an HDF5 chunk of the column; by default a chunk has about 512 KiB
    /// and at most 4096 rows.
    #[must_use]
    pub fn with_chunk_rows(mut self, rows: u64) -> Self {
        self.chunk_rows = Some(rows);
        self
    }

    /// Number of rows in an HDF5 chunk of the column; if the cells may have several shapes, in a
    /// chunk of the dataset for the first shape.
    pub fn chunk_rows(&self) -> u64 {
        let shape = match &self.cells {
            CellShapes::One(shape) => Some(shape),
            CellShapes::Several(shapes) => shapes.first(),
        };
        shape.map_or(1, |shape| self.chunk_rows_of(shape))
    }

    pub(super) fn chunk_rows_of(&self, cell: &Shape) -> u64 {
        let size = self.element().map_or(1, |element| element.size() as u64);
        let row_bytes = cell.elements().unwrap_or(u64::MAX).saturating_mul(size);
        self.chunk_rows.unwrap_or((CHUNK_BYTES / row_bytes.max(1)).clamp(1, CHUNK_ROWS))
    }

    pub(super) fn element(&self) -> Result<crate::h5::Element> {
        use crate::h5::Element;
        if self.cells == CellShapes::Several(Vec::new()) {
            return Err(Error::usage("the shape of the cells is to be declared, or several that they may have"));
        }
        match self.info.data_type() {
            DataType::Record => Err(Error::unsupported("cells that are records have no fixed size")),
            DataType::String if self.info.desc.max_length == 0 => {
                Err(Error::usage("the length of the strings is to be declared: they have a fixed size in a live file"))
            }
            DataType::String => Ok(Element::String(self.info.desc.max_length as usize)),
            number => Ok(Element::Number(number)),
        }
    }
}
