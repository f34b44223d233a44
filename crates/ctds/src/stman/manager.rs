//! The traits that each storage manager implements, and the arguments with which it is opened or created.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use bstr::{BStr, BString};

use crate::container::{Container, ContainerMut};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::grid::{ChunkRead, ChunkWrite};
use crate::io::{ReadAt, WriteAt};
use crate::value::{ByteOrder, DataType, Record, Region, Shape, Values};

/// A function that opens a storage manager for reading.
type Open = fn(&OpenArgs<'_>) -> Result<Box<dyn Manager>>;

/// A function that creates a storage manager without rows.
type Create = fn(&CreateArgs<'_>) -> Result<Box<dyn ManagerMut>>;

/// A type of storage manager or virtual column engine that this crate knows, and how to open and create it.
pub struct Kind {
    /// The manager's type names as stored in `table.dat`, without template arguments: `ScaledArrayEngine` also stands for
    /// `ScaledArrayEngine<double  ,Int     >`.
    pub(super) names: &'static [&'static str],
    /// Whether casacore may put the manager's files into a container (MultiFile or MultiHDF5) with those of other
    /// managers; if not, they stay separate files in the table's directory.
    pub(super) packable: bool,
    /// Whether the manager stores its cells in hypercubes of tiles, which can be written tile by tile.
    pub(super) tiled: bool,
    /// The names of the column keywords with an engine's parameters, if the manager computes cells instead of storing
    /// them; otherwise `None`.
    pub(super) engine: Option<EngineKeywords>,
    pub(super) open: Open,
    /// Creates a manager of this type; `None` if this program can only read the type.
    pub(super) create: Option<Create>,
}

/// The column keywords in which an engine stores its parameters. formats/engines.md 0.3.
pub(super) struct EngineKeywords {
    /// Prefixes of the names of an engine's column keywords: each parameter's name begins with one of these.
    pub(super) prefixes: &'static [&'static str],
    /// Name of the column keyword that stores the engine's expression, which only casacore evaluates; `None` for
    /// engines without an expression.
    pub(super) expression: Option<&'static str>,
}

impl Kind {
    /// Defines a type of manager that can only be read, and whose files are never in a container.
    pub(super) const fn new(names: &'static [&'static str], open: Open) -> Self {
        Kind { names, packable: false, tiled: false, engine: None, open, create: None }
    }

    /// Defines a type of engine whose parameters are in keywords that begin with one of `prefixes`.
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

/// Arguments for opening a manager: the table, and the columns that the manager holds.
pub struct OpenArgs<'a> {
    /// The manager's type name as stored in `table.dat`, template arguments included.
    pub type_name: &'a BStr,
    pub files: &'a dyn Container,
    pub sequence: u32,
    /// Number of rows of the table that the manager belongs to.
    pub rows: u64,
    /// Byte order of the table's data files.
    pub order: ByteOrder,
    /// The columns that the manager holds, in the order of the table description.
    pub columns: &'a [ColumnSpec],
    /// Bytes that the manager keeps in `table.dat`, such as its name and parameters.
    pub info: &'a [u8],
    /// The table's private keywords, which hold the definitions of hypercolumns.
    pub private_keywords: &'a Record,
    /// The keywords of each column that the manager holds, in the order of `columns`.
    pub column_keywords: &'a [&'a Record],
    /// Access to the other columns of the table, for managers that compute values from them.
    pub table: &'a dyn TableContext,
}

impl OpenArgs<'_> {
    /// Opens the manager's file `table.f<sequence><suffix>` for reading; a missing file is a `Format` error that names it,
    /// since the table is damaged.
    pub fn file(&self, suffix: &str) -> Result<Arc<dyn ReadAt>> {
        let name = self.file_name(suffix);
        self.files.open(&name).map_err(|error| {
            // a table without its file is damaged, whatever the system calls that
            match error.kind() {
                ErrorKind::NotFound => Error::format("the file is missing").context(Context::member(name)),
                _ => error,
            }
        })
    }

    /// Name of the manager's file with this suffix: `table.f<sequence><suffix>`.
    pub fn file_name(&self, suffix: &str) -> String {
        format!("table.f{}{suffix}", self.sequence)
    }
}

/// Arguments for creating a manager: the table, and the columns that it will store.
pub struct CreateArgs<'a> {
    /// The name that the user gives the manager (casacore's `dataManagerGroup`).
    pub name: &'a BStr,
    pub files: Arc<dyn ContainerMut>,
    pub sequence: u32,
    /// Byte order of the data files of the table that the manager is created for.
    pub order: ByteOrder,
    /// The columns that the manager will store, in the order of the table description.
    pub columns: &'a [ColumnSpec],
    /// Parameters of the manager (bucket size, tile shape …), as [`Manager::parameters`] returns them and casacore's `SPEC`
    /// records name them; a missing one has casacore's default.
    pub parameters: &'a Record,
    /// The table's private keywords, which hold the definitions of hypercolumns.
    pub private_keywords: &'a Record,
}

impl CreateArgs<'_> {
    /// Creates the manager's file `table.f<sequence><suffix>`.
    pub fn file(&self, suffix: &str) -> Result<Arc<dyn WriteAt>> {
        self.files.create(&self.file_name(suffix))
    }

    /// Name of the manager's file with this suffix: `table.f<sequence><suffix>`.
    pub fn file_name(&self, suffix: &str) -> String {
        format!("table.f{}{suffix}", self.sequence)
    }
}

/// Access to the columns of a table, for managers that compute values from them.
pub trait Columns {
    /// Number of rows of the table whose columns a manager reads through this trait.
    fn rows(&self) -> u64;

    /// Keywords of the table (not of a column) whose columns a manager reads through this trait.
    fn keywords(&self) -> &Record;

    /// Opens a column of this table by its name. If the manager that asks belongs to this table, the name can also be the one with which
    /// the column was created, before it was renamed.
    ///
    /// # Errors
    /// `Format` if no column has this name, or its values come from the column itself; those of opening its manager.
    fn column(&self, name: &BStr) -> Result<OtherColumn>;
}

/// Access of a manager to the table that it belongs to, and to other tables.
pub trait TableContext: Columns {
    /// The keywords of the column `name`; the name can also be that with which the column was created.
    fn column_keywords(&self, name: &BStr) -> Result<&Record>;

    /// Opens another table, by the name that a keyword of this table stores.
    fn table(&self, stored: &BStr) -> Result<Box<dyn Columns>>;
}

/// A column of the same or another table, opened for reading, from which a manager computes its own values.
#[derive(Debug, Clone)]
pub struct OtherColumn {
    pub spec: ColumnSpec,
    pub manager: Arc<dyn Manager>,
    /// Index of the column, from 0, among the columns of the manager that holds it.
    pub index: usize,
}

impl OtherColumn {
    pub fn cells(&self) -> &dyn ColumnCells {
        self.manager.column(self.index)
    }
}

/// The properties of a column that its storage manager needs.
#[derive(Debug, Clone)]
pub struct ColumnSpec {
    pub name: BString,
    /// Type of the column's elements; a record column is stored as arrays of `UChar`.
    pub data_type: DataType,
    pub storage: Storage,
    /// The fixed shape of the column's cells, fastest axis first (without axes for scalars); `None` if the shape is not
    /// fixed.
    pub shape: Option<Shape>,
    /// Number of axes of the column's cells: 0 for scalars, -1 if it may differ between cells.
    pub ndim: i32,
    /// Longest string that a cell of the column may hold, in bytes; 0 for any length.
    pub max_length: u32,
}

/// How a column is declared, which decides how managers that do not tile store its cells. formats/stman.md 0.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// A scalar column: a cell is one element.
    Scalar,
    /// An array column declared as Direct: all cells have the same shape, and their elements are stored like those of scalars.
    Direct,
    /// An array column not declared as Direct, or a record column: arrays are stored apart, in an array file for example,
    /// even if their shape is fixed.
    Indirect,
}

/// A storage manager or engine that is open for reading.
pub trait Manager: Debug + Send + Sync {
    /// The name that the user gave the manager (casacore's `dataManagerGroup`).
    fn name(&self) -> &BStr;

    /// Fails if the manager's column with this index (from 0) cannot be read although others can: for example because the
    /// file or table that its values come from is missing.
    fn readable(&self, _index: usize) -> Result<()> {
        Ok(())
    }

    /// The cells of the manager's column with this index in [`OpenArgs::columns`].
    fn column(&self, index: usize) -> &dyn ColumnCells;

    /// The parameters that the manager's own files record, such as bucket size and tile shapes; empty for engines, which
    /// keep theirs in keywords of their columns.
    fn parameters(&self) -> Record {
        Record::default()
    }
}

/// A storage manager of a table that is being written. Columns are given by their index in [`CreateArgs::columns`].
///
/// Cells may be written in any order and again; memory is bounded whatever the number of rows.
pub trait ManagerMut: Debug + Send {
    /// Adds `count` rows after the existing ones; their scalars and arrays of fixed shape are zeros, their other cells
    /// undefined.
    fn add_rows(&mut self, count: u64) -> Result<()>;

    /// Whether the storage manager can remove rows from the table; by default it cannot.
    fn can_remove_rows(&self) -> bool {
        false
    }

    /// Removes a row from the manager, by its number from 0; the numbers of later rows decrease by one.
    ///
    /// `Unsupported` where casacore's manager cannot either.
    fn remove_row(&mut self, _row: u64) -> Result<()> {
        Err(Error::unsupported("the data manager cannot remove rows"))
    }

    /// Adds a column to the manager, after the others.
    ///
    /// `Unsupported` where casacore's manager cannot either; the table then makes another manager.
    fn add_column(&mut self, _spec: &ColumnSpec) -> Result<()> {
        Err(Error::unsupported("the data manager cannot add columns"))
    }

    /// Removes a column from the manager, by its index from 0; the indices of later columns decrease by one.
    fn remove_column(&mut self, _column: usize) -> Result<()> {
        Err(Error::unsupported("the data manager cannot remove columns"))
    }

    /// The shape of the cell in `row` (from 0), fastest axis first; `None` if it is undefined.
    fn cell_shape(&self, column: usize, row: u64) -> Result<Option<Shape>>;

    /// Sets the shape (fastest axis first) of the cell in `row` (from 0) of a column whose shape is not fixed; if the cell
    /// had another shape, its elements are lost.
    fn set_shape(&mut self, column: usize, row: u64, shape: &Shape) -> Result<()>;

    /// Sets the shape of those cells of `rows` (half-open, from 0) that have another shape or are
    /// undefined.
    fn set_shapes(&mut self, column: usize, rows: Range<u64>, shape: &Shape) -> Result<()> {
        for row in rows {
            if self.cell_shape(column, row)?.as_ref() != Some(shape) {
                self.set_shape(column, row, shape)?;
            }
        }
        Ok(())
    }

    /// Writes all elements of the cell in `row` (from 0), or those of a region of it. The cell must
    /// have its shape already.
    fn write_cell(&mut self, column: usize, row: u64, region: Option<&Region>, values: &Values) -> Result<()>;

    /// Writes all elements of the cells of `rows`, one cell after the other; each must have its
    /// shape already.
    fn write_rows(&mut self, column: usize, rows: Range<u64>, values: &Values) -> Result<()>;

    /// The hypercubes of the column with this index (from 0), in the order in which the header file of a tiled manager
    /// lists them; empty if the column is not stored in tiles.
    fn cubes(&mut self, _column: usize) -> Result<Vec<Box<dyn ChunkWrite + '_>>> {
        Ok(Vec::new())
    }

    /// Where the tiles of the column with this index (from 0) are in the manager's files: one item for each hypercube, in
    /// the order of [`cubes`](Self::cubes); empty if the column is not stored in tiles.
    fn tile_places(&self, _column: usize) -> Result<Vec<TilePlace>> {
        Ok(Vec::new())
    }

    /// Makes the only column of a tiled manager use tiles that an HDF5 file already stores. Returns the names of the
    /// manager's files, in the order of `cubes`, that the caller must replace by links to the HDF5 file; `None`, with
    /// nothing changed, if the manager does not support this.
    fn link(&mut self, _cubes: &[LinkedCube]) -> Result<Option<Vec<String>>> {
        Ok(None)
    }

    /// Writes changes that are still in memory; returns the bytes that the manager keeps in `table.dat`.
    fn flush(&mut self) -> Result<Vec<u8>>;
}

/// Location in a file of the tiles of one hypercube of a tiled column. A tile contains elements of all columns that
/// share the hypercube.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TilePlace {
    /// Name of the file of tiles in the directory of the table.
    pub file: String,
    /// Offset in bytes, in the file of tiles, of the column's elements in the first tile.
    pub offset: u64,
    /// Distance in bytes from the column's elements in one tile to those in the next tile.
    pub stride: u64,
    /// Size in bytes of the column's elements in one tile, as they are stored.
    pub bytes: u64,
}

/// A hypercube whose tiles are stored one after the other in an HDF5 file. A thin table has a symbolic link to this
/// HDF5 file in place of its own file of tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedCube {
    pub shape: Shape,
    /// The shape of a chunk of the HDF5 dataset that stores the hypercube: a tile, or several that follow each other
    /// along the last axis; in elements, fastest axis first.
    pub chunk: Shape,
    /// Offset in bytes of the hypercube's first tile in the HDF5 file.
    pub offset: u64,
}

/// How a column's cells are produced when many rows are read, which decides whether several threads share the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Elements are copied as they are stored. Several threads share a read only if the cells have 4 MiB or more, or if
    /// a list of rows needs compressed tiles of 512 KiB or more in all. Else one thread is faster, and reads alone.
    Copied,
    /// Elements are computed from what is stored. Several threads share a read only if its cells take 512 KiB or more in total.
    /// Else one thread is faster, and reads alone.
    Computed,
    /// A cell can be decoded only after all cells before it. One thread reads, in row order, however many the rows are.
    InOrder,
}

/// Access to the cells of a column for reading; rows count from 0.
pub trait ColumnCells: Send + Sync {
    /// The shape of the cell in `row` (from 0), fastest axis first; `None` if the cell is
    /// undefined.
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>>;

    /// Appends the elements of the cell in `row` (from 0), or of a region of it, to `out`.
    ///
    /// The cell must be defined: `NotFound` if it is not.
    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()>;

    /// Appends the elements of all defined cells of `rows` to `out`, one cell after the other.
    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        for row in rows {
            if self.cell_shape(row)?.is_some() {
                self.read_cell(row, None, out)?;
            }
        }
        Ok(())
    }

    /// Fills `out` with the elements of the cells in the row ranges `runs`, and returns their byte order. `None`, with
    /// `out` unspecified, if the column does not support this or reading failed: the caller then uses
    /// [`read_rows`](Self::read_rows), which works or returns the error.
    ///
    /// The cells have one shape, their elements are numbers, and `out` has the size of all of them.
    fn read_plain(&self, _runs: &mut dyn Iterator<Item = Range<u64>>, _out: &mut [u8]) -> Option<ByteOrder> {
        None
    }

    /// How the column's cells are produced when many rows are read, which decides whether several threads share the rows.
    fn access(&self) -> Access {
        Access::Copied
    }

    /// The shape of each cell of `rows`, fastest axis first; `None` for an undefined cell.
    fn shapes(&self, rows: Range<u64>) -> Result<Vec<Option<Shape>>> {
        rows.map(|row| self.cell_shape(row)).collect()
    }

    /// The common shape of all cells of `rows`, fastest axis first, if all are defined and the
    /// shape is known without reading each cell; otherwise `None`.
    fn same_shape(&self, _rows: &Range<u64>) -> Option<Shape> {
        None
    }

    /// The hypercubes of a tiled column and the rows in each; `None` if the column is not tiled, a hypercube has
    /// several row axes, or the rows are in more than `max_cubes` hypercubes.
    fn tiling(&self, _max_cubes: usize) -> Option<Tiling<'_>> {
        None
    }

    /// Frees the memory in which the column keeps what it has decoded; later reads decode it again.
    fn forget(&self) {}

    /// Calls `each` with the byte ranges of the manager's files that hold elements of the first `rows` rows as they are
    /// (not compressed or scaled), in the order of rows or tiles. A column with more than `max_cubes` hypercubes may
    /// report none.
    ///
    /// Elements not reported stay readable; only their file offsets are unknown to the caller.
    fn extents(&self, _rows: u64, _max_cubes: usize, _each: &mut EachExtent<'_>) -> Result<()> {
        Ok(())
    }
}

/// A function that is called with each [`Extent`] of a column's elements in a file, one after the other.
pub type EachExtent<'a> = dyn FnMut(Extent<'_>) -> Result<()> + 'a;

/// A byte range of the manager's file `table.f<sequence><suffix>` in which elements of a column lie one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent<'a> {
    pub suffix: &'a str,
    /// Offset in bytes, in the manager's file, at which the byte range begins with its first element. Bools that are
    /// packed as bits begin at bit 0 of the byte at this offset.
    pub offset: u64,
    pub order: ByteOrder,
    pub content: Stored,
}

/// The cells or tiles of a column whose elements a byte range of the manager's file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// The cells of consecutive rows (half-open, from 0).
    Cells(Range<u64>),
    /// All tiles of a hypercube, in their order in the file; tiles at the far edges of the hypercube are padded to full
    /// size.
    Tiles {
        /// Index of the hypercube in [`Tiling::cubes`].
        cube: usize,
        tile: Shape,
        /// Distance from the start of a tile to that of the next, in bytes.
        stride: u64,
        count: u64,
    },
}

/// The hypercubes of a tiled column, and the rows that are in each.
pub struct Tiling<'a> {
    /// The hypercubes of the column; the last axis of each is the row axis, and `runs` maps rows to positions on it.
    pub cubes: Vec<Box<dyn ChunkRead + 'a>>,
    /// The ranges of consecutive rows that are in the hypercubes, ascending and disjoint, none of them empty; cells of
    /// other rows are undefined.
    pub runs: Vec<RowRun>,
}

/// Consecutive rows of a tiled column whose cells are at consecutive positions of a hypercube's last axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowRun {
    pub rows: Range<u64>,
    pub cube: usize,
    /// Position (from 0), on the last axis of the hypercube that has these consecutive rows, of the first of them.
    pub position: u64,
}

impl RowRun {
    /// Maps all `rows` rows of a column to its only hypercube, row r to position r of the last axis: a list of one run,
    /// or an empty list if `rows` is 0.
    pub fn of_all(rows: u64) -> Vec<RowRun> {
        (rows > 0).then_some(RowRun { rows: 0..rows, cube: 0, position: 0 }).into_iter().collect()
    }
}
