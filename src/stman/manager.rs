//! What a storage manager is: the traits that each implements, and what they are given.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use bstr::{BStr, BString};

use crate::container::{Container, ContainerMut};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::grid::{ChunkRead, ChunkWrite};
use crate::io::{ReadAt, WriteAt};
use crate::value::{ByteOrder, DataType, Record, Region, Shape, Values};

/// Opens a manager.
type Open = fn(&OpenArgs<'_>) -> Result<Box<dyn Manager>>;

/// Creates a manager without rows.
type Create = fn(&CreateArgs<'_>) -> Result<Box<dyn ManagerMut>>;

/// A storage manager that this crate knows.
pub(crate) struct Kind {
    /// Its type names as stored in table.dat, without template arguments: `ScaledArrayEngine` also stands for
    /// `ScaledArrayEngine<double  ,Int     >`.
    pub(super) names: &'static [&'static str],
    /// Whether its files may be in a container; otherwise they lie beside it.
    pub(super) packable: bool,
    /// Whether its cells are in hypercubes, which can be written tile by tile.
    pub(super) tiled: bool,
    /// Its parameters, if it computes cells instead of storing them.
    pub(super) engine: Option<EngineKeywords>,
    pub(super) open: Open,
    /// `None`: the manager cannot be written here.
    pub(super) create: Option<Create>,
}

/// The column keywords in which an engine stores its parameters. formats/engines.md 0.3.
pub(crate) struct EngineKeywords {
    /// Each parameter's name begins with one of these.
    pub(super) prefixes: &'static [&'static str],
    /// The keyword with the expression that only casacore evaluates.
    pub(super) expression: Option<&'static str>,
}

impl Kind {
    /// A manager whose files lie beside a container, and that is only read.
    pub(super) const fn new(names: &'static [&'static str], open: Open) -> Self {
        Kind { names, packable: false, tiled: false, engine: None, open, create: None }
    }

    /// An engine whose parameters are in keywords that begin with one of `prefixes`.
    pub(super) const fn engine(
        names: &'static [&'static str],
        prefixes: &'static [&'static str],
        open: Open,
        create: Option<Create>,
    ) -> Self {
        let engine = Some(EngineKeywords { prefixes, expression: None });
        Kind { engine, create, ..Kind::new(names, open) }
    }
}

/// The table and the part of it that a manager holds.
pub(crate) struct OpenArgs<'a> {
    /// The type name as stored in table.dat, template arguments included.
    pub(crate) type_name: &'a BStr,
    pub(crate) files: &'a dyn Container,
    pub(crate) sequence: u32,
    /// Rows of the table.
    pub(crate) rows: u64,
    /// Byte order of the table's data files.
    pub(crate) order: ByteOrder,
    /// The manager's columns, in the order of the table description.
    pub(crate) columns: &'a [ColumnSpec],
    /// Data of the manager in table.dat.
    pub(crate) info: &'a [u8],
    /// The table's private keywords: hypercolumn definitions.
    pub(crate) private_keywords: &'a Record,
    /// The keywords of each of the columns.
    pub(crate) column_keywords: &'a [&'a Record],
    /// Access to the other columns of the table, for managers that compute their values.
    pub(crate) table: &'a dyn TableContext,
}

impl OpenArgs<'_> {
    /// Opens the manager's file `table.f<sequence><suffix>`; errors name it.
    pub(crate) fn file(&self, suffix: &str) -> Result<Arc<dyn ReadAt>> {
        let name = self.file_name(suffix);
        self.files.open(&name).map_err(|error| {
            // a table without its file is damaged, whatever the system calls that
            match error.kind() {
                ErrorKind::NotFound => Error::format("the file is missing").context(Context::member(name)),
                _ => error,
            }
        })
    }

    /// Name of a file of the manager: `table.f<sequence><suffix>`.
    pub(crate) fn file_name(&self, suffix: &str) -> String {
        format!("table.f{}{suffix}", self.sequence)
    }
}

/// Arguments for creating a manager: the table, and the columns that it will store.
pub(crate) struct CreateArgs<'a> {
    /// The name that the user gives it (`dataManagerGroup`).
    pub(crate) name: &'a BStr,
    pub(crate) files: Arc<dyn ContainerMut>,
    pub(crate) sequence: u32,
    /// Byte order of the table's data files.
    pub(crate) order: ByteOrder,
    /// The manager's columns, in the order of the table description.
    pub(crate) columns: &'a [ColumnSpec],
    /// Bucket size, tile shape … as [`Manager::parameters`] gives them and casacore's `SPEC` records name them; what
    /// is missing has casacore's default.
    pub(crate) parameters: &'a Record,
    /// The table's private keywords: hypercolumn definitions.
    pub(crate) private_keywords: &'a Record,
}

impl CreateArgs<'_> {
    /// Creates the manager's file `table.f<sequence><suffix>`.
    pub(crate) fn file(&self, suffix: &str) -> Result<Arc<dyn WriteAt>> {
        self.files.create(&self.file_name(suffix))
    }

    /// Name of a file of the manager: `table.f<sequence><suffix>`.
    pub(crate) fn file_name(&self, suffix: &str) -> String {
        format!("table.f{}{suffix}", self.sequence)
    }
}

/// The columns of a table, for managers whose values come from them.
pub(crate) trait Columns {
    /// The number of rows.
    fn rows(&self) -> u64;

    /// Keywords of the table.
    fn keywords(&self) -> &Record;

    /// Opens a column by its name, or else by the name it was created with.
    ///
    /// # Errors
    /// `Format` if there is none, or it comes from itself; those of opening its manager.
    fn column(&self, name: &BStr) -> Result<OtherColumn>;
}

/// Access of a manager to the table that it belongs to.
pub(crate) trait TableContext: Columns {
    /// The keywords of a column that [`column`](Columns::column) finds.
    fn column_keywords(&self, name: &BStr) -> Result<&Record>;

    /// Opens another table, by the name that a keyword of this one stores.
    fn table(&self, stored: &BStr) -> Result<Box<dyn Columns>>;
}

/// A column that another manager holds.
#[derive(Debug, Clone)]
pub(crate) struct OtherColumn {
    pub(crate) spec: ColumnSpec,
    pub(crate) manager: Arc<dyn Manager>,
    /// Number of the column in the manager.
    pub(crate) index: usize,
}

impl OtherColumn {
    pub(crate) fn cells(&self) -> &dyn ColumnCells {
        self.manager.column(self.index)
    }
}

/// The properties of a column that its manager needs.
#[derive(Debug, Clone)]
pub(crate) struct ColumnSpec {
    pub(crate) name: BString,
    /// Type of the elements; a record column is stored as arrays of `UChar`.
    pub(crate) data_type: DataType,
    pub(crate) storage: Storage,
    /// The shape of all cells, if it is fixed; that of scalars has no axes.
    pub(crate) shape: Option<Shape>,
    /// Axes of a cell: 0 for scalars, -1 if free.
    pub(crate) ndim: i32,
    /// Longest string in bytes, 0 for any.
    pub(crate) max_length: u32,
}

/// How managers store a column's cells. formats/stman.md 0.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// One element in each row of the manager.
    Scalar,
    /// An array of fixed shape in the manager's rows.
    Direct,
    /// An array elsewhere, even if its shape is fixed; also a cell of a record column.
    Indirect,
}

/// An open storage manager.
pub(crate) trait Manager: Debug + Send + Sync {
    /// The name that the user gave it (`dataManagerGroup`).
    fn name(&self) -> &BStr;

    /// Whether a column can be read; some have values from elsewhere, which may be missing for them alone.
    fn readable(&self, _index: usize) -> Result<()> {
        Ok(())
    }

    /// Its column, by the order in [`OpenArgs::columns`].
    fn column(&self, index: usize) -> &dyn ColumnCells;

    /// The parameters that its own files record; engines keep theirs in keywords of their columns.
    fn parameters(&self) -> Record {
        Record::default()
    }
}

/// A storage manager of a table that is being written. Columns go by their number in [`CreateArgs::columns`].
///
/// Cells may be written in any order and again; memory is bounded whatever the number of rows.
pub(crate) trait ManagerMut: Debug + Send {
    /// Adds rows at the end, in which scalars and arrays of fixed shape are zeros and other cells undefined.
    fn add_rows(&mut self, count: u64) -> Result<()>;

    /// Whether rows can be removed.
    fn can_remove_rows(&self) -> bool {
        false
    }

    /// Removes a row; later ones move up.
    ///
    /// `Unsupported` where casacore's manager cannot either.
    fn remove_row(&mut self, _row: u64) -> Result<()> {
        Err(Error::unsupported("the data manager cannot remove rows"))
    }

    /// Adds a column after the others.
    ///
    /// `Unsupported` where casacore's manager cannot either; the table then makes another manager.
    fn add_column(&mut self, _spec: &ColumnSpec) -> Result<()> {
        Err(Error::unsupported("the data manager cannot add columns"))
    }

    /// Removes a column; later ones move up.
    fn remove_column(&mut self, _column: usize) -> Result<()> {
        Err(Error::unsupported("the data manager cannot remove columns"))
    }

    /// The shape of a cell, first axis fastest; `None` if it is undefined.
    fn cell_shape(&self, column: usize, row: u64) -> Result<Option<Shape>>;

    /// Gives a cell whose shape is not fixed a shape; its elements are lost if it had another.
    fn set_shape(&mut self, column: usize, row: u64, shape: &Shape) -> Result<()>;

    /// Gives the cells of `rows` a shape where they have another or none.
    fn set_shapes(&mut self, column: usize, rows: Range<u64>, shape: &Shape) -> Result<()> {
        for row in rows {
            if self.cell_shape(column, row)?.as_ref() != Some(shape) {
                self.set_shape(column, row, shape)?;
            }
        }
        Ok(())
    }

    /// Writes all elements of a cell, or those of a region of it. The cell must have its shape already.
    fn write_cell(&mut self, column: usize, row: u64, region: Option<&Region>, values: &Values) -> Result<()>;

    /// Writes all elements of the cells of `rows`, one after the other; each has its shape.
    fn write_rows(&mut self, column: usize, rows: Range<u64>, values: &Values) -> Result<()>;

    /// The hypercubes of a tiled column, in the order of the manager's header; empty for other managers.
    fn cubes(&mut self, _column: usize) -> Result<Vec<Box<dyn ChunkWrite + '_>>> {
        Ok(Vec::new())
    }

    /// Leaves the tiles of the only column in another file, in which they are already; returns the names of the files that are
    /// to be links to it, in the order of `cubes`. `None` if that cannot be: nothing has changed then.
    fn link(&mut self, _cubes: &[LinkedCube]) -> Result<Option<Vec<String>>> {
        Ok(None)
    }

    /// Writes changes that are still in memory; returns the manager's own bytes in table.dat.
    fn flush(&mut self) -> Result<Vec<u8>>;
}

/// A hypercube whose tiles are in another file, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkedCube {
    pub(crate) shape: Shape,
    /// The shape of a tile, or of several that follow each other along the last axis.
    pub(crate) chunk: Shape,
    /// First byte in the other file.
    pub(crate) offset: u64,
}

/// The cells of a column.
pub(crate) trait ColumnCells: Send + Sync {
    /// The shape of a cell, first axis fastest; `None` if it is undefined. That of scalars has no axes.
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>>;

    /// Appends the elements of a cell, or of a region of it, to `out`.
    ///
    /// The cell must be defined: `NotFound` if it is not.
    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()>;

    /// Appends the elements of all defined cells of `rows` to `out`.
    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        for row in rows {
            if self.cell_shape(row)?.is_some() {
                self.read_cell(row, None, out)?;
            }
        }
        Ok(())
    }

    /// The shapes of the cells of `rows`, as [`cell_shape`](Self::cell_shape) has them one by one.
    fn shapes(&self, rows: Range<u64>) -> Result<Vec<Option<Shape>>> {
        rows.map(|row| self.cell_shape(row)).collect()
    }

    /// The shape of all cells of `rows`, if they are defined and this is known without reading each.
    fn same_shape(&self, _rows: &Range<u64>) -> Option<Shape> {
        None
    }

    /// The hypercubes of the column, if it is tiled with one row axis and they are at most `max_cubes`.
    fn tiling(&self, _max_cubes: usize) -> Option<Tiling<'_>> {
        None
    }

    /// Calls `each` with the parts of the manager's files that hold elements of the first `rows` rows unchanged, in the
    /// order of rows or tiles; `max_cubes` as for [`tiling`](Self::tiling).
    ///
    /// Elements not reported stay readable; only their file offsets are unknown to the caller.
    fn extents(&self, _rows: u64, _max_cubes: usize, _each: &mut EachExtent<'_>) -> Result<()> {
        Ok(())
    }
}

/// A function that receives one [`Extent`] after the other.
pub(crate) type EachExtent<'a> = dyn FnMut(Extent<'_>) -> Result<()> + 'a;

/// Where elements of a column lie in the file `table.f<sequence><suffix>`, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extent<'a> {
    pub(crate) suffix: &'a str,
    /// Byte of the first element, also where Bools are packed.
    pub(crate) offset: u64,
    pub(crate) order: ByteOrder,
    pub(crate) content: Stored,
}

/// The cells to which elements in a file belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stored {
    /// The cells of consecutive rows.
    Cells(Range<u64>),
    /// All tiles of a hypercube, in order, edge padding included.
    Tiles {
        /// Number of the hypercube in [`Tiling::cubes`].
        cube: usize,
        tile: Shape,
        /// Bytes from the start of a tile to that of the next.
        stride: u64,
        count: u64,
    },
}

/// The hypercubes of a tiled column.
pub(crate) struct Tiling<'a> {
    /// The last axis of each is the position that rows are mapped to.
    pub(crate) cubes: Vec<Box<dyn ChunkRead + 'a>>,
    /// Ascending and disjoint, none of them empty; rows in none of them are undefined.
    pub(crate) runs: Vec<RowRun>,
}

/// Consecutive rows at consecutive positions of a cube.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowRun {
    pub(crate) rows: Range<u64>,
    pub(crate) cube: usize,
    /// Position of the first row on the cube's last axis.
    pub(crate) position: u64,
}

impl RowRun {
    /// The runs of a column whose `rows` rows are the positions of one cube.
    pub(crate) fn of_all(rows: u64) -> Vec<RowRun> {
        (rows > 0).then_some(RowRun { rows: 0..rows, cube: 0, position: 0 }).into_iter().collect()
    }
}
