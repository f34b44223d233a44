//! The traits that each storage manager implements, and the arguments with which it is opened or
//! created.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use bstr::{BStr, BString};

use crate::container::{Container, ContainerMut};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::grid::{ChunkRead, ChunkWrite};
use crate::io::{ReadAt, WriteAt};
use crate::value::{ByteOrder, DataType, Record, Region, Shape, Values};

type Open = fn(&OpenArgs<'_>) -> Result<Box<dyn Manager>>;

type Create = fn(&CreateArgs<'_>) -> Result<Box<dyn ManagerMut>>;

/// A type of storage manager or engine that this crate knows.
pub struct Kind {
    /// Names in `table.dat`, without template arguments: `ScaledArrayEngine`.
    pub(super) names: &'static [&'static str],
    /// Whether casacore may put the files into a container (MultiFile or MultiHDF5).
    pub(super) packable: bool,
    pub(super) tiled: bool,
    /// `None` for a manager that stores cells.
    pub(super) engine: Option<EngineKeywords>,
    pub(super) open: Open,
    /// `None` for types that are only read.
    pub(super) create: Option<Create>,
}

/// Column keywords with an engine's parameters. formats/engines.md 0.3.
pub(super) struct EngineKeywords {
    /// Each parameter's name begins with one of these.
    pub(super) prefixes: &'static [&'static str],
    /// Keyword with an expression over other columns.
    pub(super) expression: Option<&'static str>,
}

impl Kind {
    /// A type that is only read, and whose files are never in a container.
    pub(super) const fn new(names: &'static [&'static str], open: Open) -> Self {
        Kind { names, packable: false, tiled: false, engine: None, open, create: None }
    }

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

pub struct OpenArgs<'a> {
    /// Spelt as in `table.dat`, template arguments included.
    pub type_name: &'a BStr,
    pub files: &'a dyn Container,
    pub sequence: u32,
    pub rows: u64,
    pub order: ByteOrder,
    /// Ordered as in the table description.
    pub columns: &'a [ColumnSpec],
    /// The manager's own bytes in `table.dat`, such as its name and parameters.
    pub info: &'a [u8],
    /// The table's, with the definitions of hypercolumns.
    pub private_keywords: &'a Record,
    /// Keywords of each of `columns`.
    pub column_keywords: &'a [&'a Record],
    pub table: &'a dyn TableContext,
}

impl OpenArgs<'_> {
    /// Opens `table.f<sequence><suffix>`; a missing file is a `Format` error, since the table is
    /// damaged.
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

    pub fn file_name(&self, suffix: &str) -> String {
        format!("table.f{}{suffix}", self.sequence)
    }
}

pub struct CreateArgs<'a> {
    /// Casacore's `dataManagerGroup`.
    pub name: &'a BStr,
    pub files: Arc<dyn ContainerMut>,
    pub sequence: u32,
    pub order: ByteOrder,
    /// Ordered as in the table description.
    pub columns: &'a [ColumnSpec],
    /// Bucket size, tile shape …, as in [`Manager::parameters`] and casacore's `SPEC` records; a
    /// missing one has casacore's default.
    pub parameters: &'a Record,
    /// The table's, with the definitions of hypercolumns.
    pub private_keywords: &'a Record,
}

impl CreateArgs<'_> {
    pub fn file(&self, suffix: &str) -> Result<Arc<dyn WriteAt>> {
        self.files.create(&self.file_name(suffix))
    }

    pub fn file_name(&self, suffix: &str) -> String {
        format!("table.f{}{suffix}", self.sequence)
    }
}

/// Columns of a table, for managers that compute values from them.
pub trait Columns {
    fn rows(&self) -> u64;

    /// Keywords of the table, not of a column.
    fn keywords(&self) -> &Record;

    /// Opens a column by its name, within the manager's own table also by its original one.
    ///
    /// # Errors
    /// `Format` if no column has this name, or its values come from the column itself; those of
    /// opening its manager.
    fn column(&self, name: &BStr) -> Result<OtherColumn>;
}

/// A manager's own table, and access to others.
pub trait TableContext: Columns {
    /// The name may be that with which the column was created.
    fn column_keywords(&self, name: &BStr) -> Result<&Record>;

    /// Opens another table, by the name that a keyword of this table stores.
    fn table(&self, stored: &BStr) -> Result<Box<dyn Columns>>;
}

#[derive(Debug, Clone)]
pub struct OtherColumn {
    pub spec: ColumnSpec,
    pub manager: Arc<dyn Manager>,
    /// Index within its manager.
    pub index: usize,
}

impl OtherColumn {
    pub fn cells(&self) -> &dyn ColumnCells {
        self.manager.column(self.index)
    }

    /// As [`Manager::reads`].
    pub fn reads(&self) -> u64 {
        self.manager.reads(self.index)
    }
}

/// The properties of a column that its manager needs.
#[derive(Debug, Clone)]
pub struct ColumnSpec {
    pub name: BString,
    /// A record column is stored as arrays of `UChar`.
    pub data_type: DataType,
    pub storage: Storage,
    /// Fixed shape of the cells, fastest axis first, without axes for scalars.
    pub shape: Option<Shape>,
    /// Axes of a cell: 0 for scalars, -1 if the number may differ.
    pub ndim: i32,
    /// Bytes of the longest string; 0 for any length.
    pub max_length: u32,
}

/// How a column is declared, which decides how managers without tiles store its cells.
/// formats/stman.md 0.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    Scalar,
    /// All cells have one shape, and their elements are stored like those of scalars.
    Direct,
    /// Arrays of other columns, also of record columns, are stored apart, even if their shape is
    /// fixed.
    Indirect,
}

/// A storage manager or engine that is open for reading; columns are given by their index in
/// [`OpenArgs::columns`].
pub trait Manager: Debug + Send + Sync {
    /// Casacore's `dataManagerGroup`.
    fn name(&self) -> &BStr;

    /// Fails if this column cannot be read although others can: a file or table that its values
    /// come from is missing.
    fn readable(&self, _index: usize) -> Result<()> {
        Ok(())
    }

    fn column(&self, index: usize) -> &dyn ColumnCells;

    /// Columns that are read in the end for a cell of this one: each as often as it is read, if the
    /// column is computed from others.
    fn reads(&self, _index: usize) -> u64 {
        1
    }

    /// Parameters in the manager's own files, such as tile shapes; engines have theirs in keywords.
    fn parameters(&self) -> Record {
        Record::default()
    }
}

/// A storage manager of a table that is being written. Columns are given by their index in
/// [`CreateArgs::columns`]; shapes have the fastest axis first.
///
/// Cells may be written in any order and again; memory is bounded whatever the number of rows.
pub trait ManagerMut: Debug + Send {
    /// New scalars and arrays of fixed shape are zeros, other cells undefined.
    fn add_rows(&mut self, count: u64) -> Result<()>;

    fn can_remove_rows(&self) -> bool {
        false
    }

    /// Later rows move up. `Unsupported` where casacore's manager cannot either.
    fn remove_row(&mut self, _row: u64) -> Result<()> {
        Err(Error::unsupported("the data manager cannot remove rows"))
    }

    /// `Unsupported` where casacore's manager cannot either; the table then makes another manager.
    fn add_column(&mut self, _spec: &ColumnSpec) -> Result<()> {
        Err(Error::unsupported("the data manager cannot add columns"))
    }

    /// Indices of later columns decrease by one.
    fn remove_column(&mut self, _column: usize) -> Result<()> {
        Err(Error::unsupported("the data manager cannot remove columns"))
    }

    /// `None` if the cell is undefined.
    fn cell_shape(&self, column: usize, row: u64) -> Result<Option<Shape>>;

    /// Column without fixed shape: if the cell had another shape, its elements are lost.
    fn set_shape(&mut self, column: usize, row: u64, shape: &Shape) -> Result<()>;

    /// Sets the shape of those of `rows` that have another one or none.
    fn set_shapes(&mut self, column: usize, rows: Range<u64>, shape: &Shape) -> Result<()> {
        for row in rows {
            if self.cell_shape(column, row)?.as_ref() != Some(shape) {
                self.set_shape(column, row, shape)?;
            }
        }
        Ok(())
    }

    /// The cells must have their shape already.
    fn write_cell(&mut self, column: usize, row: u64, region: Option<&Region>, values: &Values) -> Result<()>;

    /// The cells must have their shape already.
    fn write_rows(&mut self, column: usize, rows: Range<u64>, values: &Values) -> Result<()>;

    /// Hypercubes of a tiled column, in the order of the manager's header; empty for others.
    fn cubes(&mut self, _column: usize) -> Result<Vec<Box<dyn ChunkWrite + '_>>> {
        Ok(Vec::new())
    }

    /// Where the tiles of each of [`cubes`](Self::cubes) are; empty for a column that is not tiled.
    fn tile_places(&self, _column: usize) -> Result<Vec<TilePlace>> {
        Ok(Vec::new())
    }

    /// Makes the only column of a tiled manager use tiles in an HDF5 file. Returns the manager's
    /// files, in the order of `cubes`, that the caller must replace by links; `None`, with nothing
    /// changed, if that is not supported.
    fn link(&mut self, _cubes: &[LinkedCube]) -> Result<Option<Vec<String>>> {
        Ok(None)
    }

    /// Writes pending changes; returns the manager's own bytes for `table.dat`.
    fn flush(&mut self) -> Result<Vec<u8>>;
}

/// Tiles of one hypercube of a column. A tile contains elements of all columns that share the
/// hypercube.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TilePlace {
    /// Name in the directory of the table.
    pub file: String,
    /// Offset of the column's elements in the first tile.
    pub offset: u64,
    /// Distance from the column's elements in one tile to those in the next.
    pub stride: u64,
    /// Bytes of the column's elements in one tile.
    pub bytes: u64,
}

/// A hypercube whose tiles follow each other in an HDF5 file, to which a thin table has a link in
/// place of a file of tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedCube {
    pub shape: Shape,
    /// A chunk is a tile, or several that follow each other along the last axis; fastest axis
    /// first.
    pub chunk: Shape,
    /// Byte of the first tile in the HDF5 file.
    pub offset: u64,
}

/// How cells come about when many rows are read, which decides whether threads share the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Elements are copied as they are stored. Threads share a read from cells of 4 MiB, or
    /// compressed tiles of 512 KiB in all, on; else one thread is faster.
    Copied,
    /// Elements are computed. Threads share a read from 512 KiB of cells on; else one thread is
    /// faster.
    Computed,
    /// A cell can be decoded only after all before it: one thread reads, in row order.
    InOrder,
}

/// Cells of a column; shapes have the fastest axis first.
pub trait ColumnCells: Send + Sync {
    /// `None` if the cell is undefined.
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>>;

    /// Appends the cell, or a region of it; `NotFound` if the cell is undefined.
    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()>;

    /// Appends the defined cells of `rows`.
    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        for row in rows {
            if self.cell_shape(row)?.is_some() {
                self.read_cell(row, None, out)?;
            }
        }
        Ok(())
    }

    /// Fills `out` with the cells of `runs`, and returns their byte order: cells of one shape,
    /// whose elements are numbers, as many as fill `out`. `None`, with `out` unspecified, if that
    /// is not supported or failed: [`read_rows`](Self::read_rows) then works or returns the error.
    fn read_plain(&self, _runs: &mut dyn Iterator<Item = Range<u64>>, _out: &mut [u8]) -> Option<ByteOrder> {
        None
    }

    fn access(&self) -> Access {
        Access::Copied
    }

    /// `None` for undefined cells.
    fn shapes(&self, rows: Range<u64>) -> Result<Vec<Option<Shape>>> {
        rows.map(|row| self.cell_shape(row)).collect()
    }

    /// The common shape, if all cells are defined and it is known without reading each.
    fn same_shape(&self, _rows: &Range<u64>) -> Option<Shape> {
        None
    }

    /// `None` if the column is not tiled, a hypercube has several row axes, or the rows are in more
    /// than `max_cubes` hypercubes.
    fn tiling(&self, _max_cubes: usize) -> Option<Tiling<'_>> {
        None
    }

    /// As [`tiling`](Self::tiling), for reading alone: rows may have positions in any order, and
    /// positions may belong to no row.
    fn tiling_to_read(&self, max_cubes: usize) -> Option<Tiling<'_>> {
        self.tiling(max_cubes)
    }

    /// Frees decoded data; later reads decode it again.
    fn forget(&self) {}

    /// Calls `each` with the byte ranges of elements stored as they are (not compressed or scaled)
    /// of the first `rows` rows, in the order of rows or tiles. Ranges may be missing, as beyond
    /// `max_cubes` hypercubes: the elements stay readable, at offsets unknown to the caller.
    fn extents(&self, _rows: u64, _max_cubes: usize, _each: &mut EachExtent<'_>) -> Result<()> {
        Ok(())
    }
}

pub type EachExtent<'a> = dyn FnMut(Extent<'_>) -> Result<()> + 'a;

/// A byte range of `table.f<sequence><suffix>` in which elements of a column follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent<'a> {
    pub suffix: &'a str,
    /// Byte of the first element; packed Bools begin at bit 0.
    pub offset: u64,
    pub order: ByteOrder,
    pub content: Stored,
}

/// Cells or tiles in a byte range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    Cells(Range<u64>),
    /// All tiles of a hypercube in file order; tiles at the far edges are padded to full size.
    Tiles {
        /// Index in [`Tiling::cubes`].
        cube: usize,
        tile: Shape,
        /// Bytes from the start of a tile to that of the next.
        stride: u64,
        count: u64,
    },
}

pub struct Tiling<'a> {
    /// The last axis of each is the row axis, on which `runs` gives positions.
    pub cubes: Vec<Box<dyn ChunkRead + 'a>>,
    /// Ascending, disjoint, not empty; cells of other rows are undefined.
    pub runs: Vec<RowRun>,
}

/// Consecutive rows at consecutive positions of a hypercube's last axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowRun {
    pub rows: Range<u64>,
    pub cube: usize,
    /// Position of the first row.
    pub position: u64,
}

impl RowRun {
    /// Row r at position r of the only hypercube; no run for 0 rows.
    pub fn of_all(rows: u64) -> Vec<RowRun> {
        (rows > 0).then_some(RowRun { rows: 0..rows, cube: 0, position: 0 }).into_iter().collect()
    }
}
