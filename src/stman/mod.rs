//! Storage managers: who turns the bytes of `table.f<sequence>` into cells. formats/stman.md.
//!
//! A manager is a file here that exports its [`Kind`], and a line in [`KINDS`]. Everything above sees [`Manager`] and
//! [`Column`] only; where the bytes lie is [`Container`]'s business.

mod aipsio;
mod alternate;
mod bucket;
mod checks;
mod dysco;
mod elements;
mod engine;
mod incremental;
mod indirect;
mod memory;
#[cfg(test)]
mod model;
#[cfg(test)]
mod samples;
mod standard;
mod tiled;
mod with_context;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use crate::container::{Container, ContainerMut};
use crate::error::{Context, Error, Result};
use crate::grid::{ChunkRead, ChunkWrite, copy_box};
use crate::io::{ByteOrder, ReadAt, WriteAt};
use crate::limits;
use crate::value::{DataType, Record, Region, Shape, Values};

/// Makes a manager without rows.
type Create = fn(&CreateArgs<'_>) -> Result<Box<dyn ManagerMut>>;

/// A storage manager that this crate knows.
pub(crate) struct Kind {
    /// Its type names as stored in table.dat, without template arguments: `ScaledArrayEngine` is that of
    /// `ScaledArrayEngine<double  ,Int     >` too.
    names: &'static [&'static str],
    /// Whether its files may be in a container; if not, they lie beside it.
    packable: bool,
    open: fn(&OpenArgs<'_>) -> Result<Box<dyn Manager>>,
    /// `None`: it is not written here.
    create: Option<Create>,
}

static KINDS: &[&Kind] = &[
    &standard::KIND,
    &incremental::KIND,
    &aipsio::KIND,
    &memory::KIND,
    &tiled::COLUMN,
    &tiled::SHAPE,
    &tiled::CELL,
    &tiled::DATA,
    &engine::FORWARD,
    &engine::FORWARD_ROWS,
    &engine::SCALED_ARRAY,
    &engine::SCALED_COMPLEX,
    &engine::MAPPED,
    &engine::COMPRESS_FLOAT,
    &engine::COMPRESS_COMPLEX,
    &engine::COMPRESS_COMPLEX_SD,
    &engine::BIT_FLAGS,
    &alternate::ANTENNA_PAIR,
    &alternate::UVW,
    &alternate::STOKES_I,
    &alternate::SISCO,
    &dysco::KIND,
];

/// Known by name only: opening one says why it is not read.
static REFUSED: &[&Kind] = &[&engine::RETYPED, &engine::TAQL, &alternate::THIRD_PARTY];

/// The names of all storage managers that can be read, as table.dat stores them, without template arguments.
pub fn supported() -> impl Iterator<Item = &'static str> {
    KINDS.iter().flat_map(|kind| kind.names.iter().copied())
}

/// The names of all storage managers that can be written.
pub fn written() -> impl Iterator<Item = &'static str> {
    KINDS.iter().filter(|kind| kind.create.is_some()).flat_map(|kind| kind.names.iter().copied())
}

/// Opens the manager with type name `name`.
pub(crate) fn open(name: &BStr, args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    (find(name)?.open)(args)
}

/// Makes a manager with type name `name`, without rows.
pub(crate) fn create(name: &BStr, args: &CreateArgs<'_>) -> Result<Box<dyn ManagerMut>> {
    match find(name)?.create {
        Some(create) => create(args),
        None => Err(Error::unsupported(format!("data manager {name} is not written"))),
    }
}

/// Whether the files of the manager with type name `name` may be in a container; if not, they lie beside it.
pub(crate) fn packable(name: &BStr) -> bool {
    find(name).is_ok_and(|kind| kind.packable)
}

/// The manager that a file belongs to: 3 of `table.f3_TSM0`.
pub(crate) fn sequence_of(file_name: &str) -> Option<u32> {
    let rest = file_name.strip_prefix("table.f")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn find(name: &BStr) -> Result<&'static Kind> {
    let base = name.split_once_str("<").map_or(name.as_bytes(), |(base, _)| base).trim();
    let mut kinds = KINDS.iter().chain(REFUSED);
    let kind = kinds.find(|kind| kind.names.iter().any(|known| known.as_bytes() == base));
    kind.copied().ok_or_else(|| Error::unsupported(format!("data manager {name} is not supported yet")))
}

/// What a manager is told about the table and its part of it.
pub(crate) struct OpenArgs<'a> {
    /// The type name as stored in table.dat, template arguments included.
    pub(crate) type_name: &'a BStr,
    pub(crate) files: &'a dyn Container,
    pub(crate) sequence: u32,
    /// Of the table.
    pub(crate) rows: u64,
    /// Of the table's data files.
    pub(crate) order: ByteOrder,
    /// The manager's columns, in the order of the table description.
    pub(crate) columns: &'a [ColumnSpec],
    /// What the manager keeps in table.dat.
    pub(crate) info: &'a [u8],
    /// Of the table: hypercolumn definitions.
    pub(crate) private_keywords: &'a Record,
    /// Of each of the columns.
    pub(crate) column_keywords: &'a [&'a Record],
    /// The rest of the table, for managers whose values come from other columns.
    pub(crate) around: &'a dyn Around,
}

impl OpenArgs<'_> {
    /// Opens the manager's file `table.f<sequence><suffix>`; errors name it.
    pub(crate) fn file(&self, suffix: &str) -> Result<Arc<dyn ReadAt>> {
        let name = self.file_name(suffix);
        self.files.open(&name).map_err(|error| {
            // a table without its file is damaged, whatever the system calls that
            match error.kind() {
                crate::ErrorKind::NotFound => Error::format("the file is missing").context(Context::member(name)),
                _ => error,
            }
        })
    }

    /// `table.f<sequence><suffix>`.
    pub(crate) fn file_name(&self, suffix: &str) -> String {
        format!("table.f{}{suffix}", self.sequence)
    }
}

/// What a new manager is told about the table and its part of it.
pub(crate) struct CreateArgs<'a> {
    /// The name that the user gives it (`dataManagerGroup`).
    pub(crate) name: &'a BStr,
    pub(crate) files: Arc<dyn ContainerMut>,
    pub(crate) sequence: u32,
    /// Of the table's data files.
    pub(crate) order: ByteOrder,
    /// The manager's columns, in the order of the table description.
    pub(crate) columns: &'a [ColumnSpec],
    /// Bucket size, tile shape … as [`Manager::parameters`] gives them and casacore's `SPEC` records name them; what
    /// is missing has casacore's default.
    pub(crate) parameters: &'a Record,
    /// Of the table: hypercolumn definitions.
    pub(crate) private_keywords: &'a Record,
}

impl CreateArgs<'_> {
    /// Makes the manager's file `table.f<sequence><suffix>`.
    pub(crate) fn file(&self, suffix: &str) -> Result<Arc<dyn WriteAt>> {
        self.files.create(&self.file_name(suffix))
    }

    /// `table.f<sequence><suffix>`.
    pub(crate) fn file_name(&self, suffix: &str) -> String {
        format!("table.f{}{suffix}", self.sequence)
    }
}

/// The columns of a table, for managers whose values come from them.
pub(crate) trait Columns {
    /// The number of rows.
    fn rows(&self) -> u64;

    /// The table keywords.
    fn keywords(&self) -> &Record;

    /// A column by its name, or else by the one it was created with.
    ///
    /// # Errors
    /// `Format` if there is none, or it comes from itself; those of opening its manager.
    fn column(&self, name: &BStr) -> Result<OtherColumn>;
}

/// The table around a manager.
pub(crate) trait Around: Columns {
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
    /// In the manager.
    pub(crate) index: usize,
}

impl OtherColumn {
    pub(crate) fn cells(&self) -> &dyn Column {
        self.manager.column(self.index)
    }
}

/// What a manager must know of a column.
#[derive(Debug, Clone)]
pub(crate) struct ColumnSpec {
    pub(crate) name: BString,
    /// Of the elements; a record column is stored as arrays of `UChar`.
    pub(crate) data_type: DataType,
    pub(crate) storage: Storage,
    /// The shape that all cells have, if it is fixed; that of scalars has no axes.
    pub(crate) shape: Option<Shape>,
    /// Axes of a cell: 0 for scalars, -1 if free.
    pub(crate) ndim: i32,
    /// Longest string in bytes, 0 for any.
    pub(crate) max_length: u32,
}

/// How managers store a column's cells. formats/stman.md 0.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// One element in the manager's rows.
    Scalar,
    /// An array of fixed shape in the manager's rows.
    Direct,
    /// An array elsewhere; the shape may be fixed nevertheless. Record columns too.
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
    fn column(&self, index: usize) -> &dyn Column;

    /// What it was made with, as far as its own files say so; engines keep theirs in keywords of their columns.
    fn parameters(&self) -> Record {
        Record::default()
    }
}

/// A storage manager of a table that is being written. Columns go by their number in [`CreateArgs::columns`].
///
/// Cells may be written in any order and again; memory is bounded whatever the number of rows.
pub(crate) trait ManagerMut: Debug + Send {
    /// Adds rows at the end: scalars and arrays of fixed shape are zeros there, other cells undefined.
    fn add_rows(&mut self, count: u64) -> Result<()>;

    /// Whether rows can be removed.
    fn can_remove_rows(&self) -> bool {
        false
    }

    /// Removes a row; those behind it move up.
    ///
    /// `Unsupported` where casacore's manager cannot either.
    fn remove_row(&mut self, _row: u64) -> Result<()> {
        Err(Error::unsupported("the data manager cannot remove rows"))
    }

    /// Adds a column behind the others.
    ///
    /// `Unsupported` where casacore's manager cannot either; the table then makes another manager.
    fn add_column(&mut self, _spec: &ColumnSpec) -> Result<()> {
        Err(Error::unsupported("the data manager cannot add columns"))
    }

    /// Removes a column; those behind it move up.
    fn remove_column(&mut self, _column: usize) -> Result<()> {
        Err(Error::unsupported("the data manager cannot remove columns"))
    }

    /// The shape of a cell, first axis fastest; `None` if it is undefined.
    fn cell_shape(&self, column: usize, row: u64) -> Result<Option<Shape>>;

    /// Gives a cell whose shape is not fixed a shape; what it held is lost if it had another.
    fn set_shape(&mut self, column: usize, row: u64, shape: &Shape) -> Result<()>;

    /// Gives the cells of `rows` a shape, where they have another or none.
    fn set_shapes(&mut self, column: usize, rows: Range<u64>, shape: &Shape) -> Result<()> {
        for row in rows {
            if self.cell_shape(column, row)?.as_ref() != Some(shape) {
                self.set_shape(column, row, shape)?;
            }
        }
        Ok(())
    }

    /// Writes all elements of a cell, or those of a region of it. The cell has its shape.
    fn write_cell(&mut self, column: usize, row: u64, region: Option<&Region>, values: &Values) -> Result<()>;

    /// Writes all elements of the cells of `rows`, one after the other; each has its shape.
    fn write_rows(&mut self, column: usize, rows: Range<u64>, values: &Values) -> Result<()>;

    /// The hypercubes of a tiled column, in the order of the manager's header; empty for other managers.
    fn cubes(&mut self, _column: usize) -> Result<Vec<Box<dyn ChunkWrite + '_>>> {
        Ok(Vec::new())
    }

    /// Writes what is still in memory; returns what the manager keeps in table.dat.
    fn flush(&mut self) -> Result<Vec<u8>>;
}

/// The cells of a column.
pub(crate) trait Column: Send + Sync {
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

    /// The shape that all cells of `rows` have, all of them being defined, where that is known without a look at each.
    fn same_shape(&self, _rows: &Range<u64>) -> Option<Shape> {
        None
    }

    /// The hypercubes behind the column, if it is tiled with one row axis and they are at most `max_cubes`.
    fn tiling(&self, _max_cubes: usize) -> Option<Tiling<'_>> {
        None
    }

    /// Calls `each` with the places in the manager's files where elements of the first `rows` rows lie as they are, in
    /// the order of rows or tiles; `max_cubes` as for [`tiling`](Self::tiling).
    ///
    /// What is not given is not lost: it is only known to nobody but the manager.
    fn extents(&self, _rows: u64, _max_cubes: usize, _each: &mut EachExtent<'_>) -> Result<()> {
        Ok(())
    }
}

/// Takes one [`Extent`] after the other.
pub(crate) type EachExtent<'a> = dyn FnMut(Extent<'_>) -> Result<()> + 'a;

/// Where elements of a column lie in the file `table.f<sequence><suffix>`, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extent<'a> {
    pub(crate) suffix: &'a str,
    /// Of the first element; a byte, also where Bools are packed.
    pub(crate) offset: u64,
    pub(crate) order: ByteOrder,
    pub(crate) content: Stored,
}

/// Whose elements lie there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stored {
    /// Those of the cells of consecutive rows.
    Cells(Range<u64>),
    /// Those of all tiles of a hypercube, in order, edge padding included.
    Tiles {
        /// In [`Tiling::cubes`].
        cube: usize,
        tile: Shape,
        /// From a tile to the next.
        stride: u64,
        count: u64,
    },
}

/// A tiled column as its hypercubes.
pub(crate) struct Tiling<'a> {
    /// The last axis of each is the position that rows are mapped to.
    pub(crate) cubes: Vec<Box<dyn ChunkRead + 'a>>,
    /// Ascending and disjoint; rows in none of them are undefined.
    pub(crate) runs: Vec<RowRun>,
}

/// Consecutive rows at consecutive positions of a cube.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowRun {
    pub(crate) rows: Range<u64>,
    pub(crate) cube: usize,
    /// Of the first row, on the cube's last axis.
    pub(crate) position: u64,
}

/// Appends `region` of a cell of `shape` that `read` appends whole.
pub(crate) fn read_part(
    region: Option<&Region>,
    shape: &Shape,
    out: &mut Values,
    read: impl FnOnce(&mut Values) -> Result<()>,
) -> Result<()> {
    let Some(region) = region else { return read(out) };
    region.check(shape)?;
    let mut whole = Values::new(out.data_type());
    read(&mut whole)?;
    let base = out.len();
    out.extend_default(region.shape.elements()? as usize);
    let zero = vec![0; shape.len()];
    copy_box(&whole, shape, &region.start, out, base, &region.shape, &zero, &region.shape);
    Ok(())
}

/// Puts `values` where `region` is in a cell of `shape`; the caller has checked the region and the types.
pub(crate) fn write_part(region: &Region, shape: &Shape, cell: &mut Values, values: &Values) {
    let zero = vec![0; shape.len()];
    copy_box(values, &region.shape, &zero, cell, 0, shape, &region.start, &region.shape);
}

/// The error of reading an undefined cell.
pub(crate) fn undefined(row: u64) -> Error {
    Error::not_found(format!("the cell in row {row} is undefined"))
}

/// Bytes that a cell of `elements` elements takes in memory.
pub(crate) fn memory_bytes(data_type: DataType, elements: u64) -> u64 {
    let size = if data_type.is_fixed_size() { data_type.size() } else { size_of::<BString>() };
    elements.saturating_mul(size as u64)
}

/// Appends a cell of which the file stores nothing: zeros, `false`, empty strings.
pub(crate) fn extend_unbacked(shape: &Shape, out: &mut Values) -> Result<()> {
    let elements = shape.elements()?;
    limits::unbacked_cell(memory_bytes(out.data_type(), elements))?;
    out.extend_default(elements as usize);
    Ok(())
}
