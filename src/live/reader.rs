//! Reads the committed rows of a live file while it grows.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bstr::ByteSlice;

use super::CellShapes;
use super::layout::{self, ColumnLayout, Growing, TableLayout};
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{Dataset, File, Group, Superblock, retry_while_locked};
use crate::io::FileSource;
use crate::native::{COMMITTED_ROWS, open_dataset};
use crate::suggest::instead;
use crate::table::ColumnInfo;
use crate::value::{DataType, Element, Region, Shape, Values};

/// Reads the tables of a live file: an HDF5 file to which a writer is appending rows, or has
/// appended them before.
///
/// ```no_run
/// use ctds_hdf5::live::Reader;
///
/// let reader = Reader::open("live.h5")?;
/// let main = reader.table("MAIN")?;
/// loop {
///     let rows = main.refresh()?;
///     let times = main.rows::<f64>("TIME", rows.saturating_sub(100)..rows)?;
///     println!("{rows} rows, newest at {:?}", times.last());
///     std::thread::sleep(std::time::Duration::from_secs(1));
/// }
/// # #[allow(unreachable_code)] Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    tables: Vec<TableReader>,
}

/// Called for each run of cells that are stored one after the other, with their positions in the
/// list of rows, their shape, and a function that appends their elements.
#[cfg(any(test, feature = "internals"))]
pub(crate) type EachRun<'a> = dyn FnMut(Range<usize>, &Shape, &dyn Fn(&mut Values) -> Result<()>) -> Result<()> + 'a;

/// Reads a table of a live file, an HDF5 file to which a writer appends rows. Reads only rows that
/// were committed (complete in every column) at the last [`refresh`](Self::refresh).
#[derive(Debug)]
pub struct TableReader {
    name: String,
    committed_rows: Dataset,
    committed: AtomicU64,
    /// Number of refreshes. Datasets of an older refresh read their extents again.
    age: AtomicU64,
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Column {
    info: ColumnInfo,
    parts: Parts,
}

#[derive(Debug)]
enum Parts {
    Dense(Box<Part>),
    Cubes { cubes: Vec<Part>, row_cube: Box<Part>, row_index: Box<Part> },
}

/// A dataset with the shape of its cells, and the refresh at which its extents were last read.
#[derive(Debug)]
struct Part {
    dataset: Dataset,
    cell: Shape,
    age: AtomicU64,
}

impl Part {
    fn open(root: &Group, path: &str) -> Result<Self> {
        let dataset = open_dataset(root, path)?;
        let (cell, _) = dataset.shape()?.split_last().ok_or_else(|| Error::format("the dataset has no axes"))?;
        Ok(Part { dataset, cell, age: AtomicU64::new(0) })
    }

    /// Reads the extents first if `age`, the number of refreshes, has changed.
    fn read(&self, rows: Range<u64>, age: u64, out: &mut Values) -> Result<()> {
        if self.age.load(Ordering::Acquire) != age {
            self.dataset.refresh()?;
            self.age.store(age, Ordering::Release);
        }
        self.dataset.read_region(&Region::rows(&self.cell, rows), out)
    }
}

impl Reader {
    /// Opens a live file for reading: an HDF5 file that this program made to append rows to it. A
    /// writer may have it open at the same time; one that is just opening it is waited for.
    ///
    /// # Errors
    /// `Locked` if a program keeps HDF5's lock for 2 s, as those do that write without SWMR.
    /// `Unsupported` if no table in the HDF5 file has a number of committed rows, as those of live
    /// files have.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = retry_while_locked(|| File::open_live(path))?;
        let open = || -> Result<_> {
            let root = file.root()?;
            let tables = layout::read(&root)?;
            let tables = tables.into_iter().map(|table| TableReader::open(&root, table)).collect::<Result<_>>()?;
            Ok(Reader { path: path.to_owned(), tables })
        };
        open().with_context(|| Context::path(path))
    }

    /// Whether the live file, an HDF5 file to which rows are appended, is marked as being written:
    /// its writer has it open, or ended without closing it.
    ///
    /// # Errors
    /// `Io`, `NotFound`, `Format`.
    pub fn is_being_written(&self) -> Result<bool> {
        let read = || -> Result<_> { Ok(Superblock::read(&FileSource::open(&self.path)?)?.is_being_written()) };
        read().with_context(|| Context::path(&self.path))
    }

    /// The tables of the live file, the main one first.
    pub fn tables(&self) -> &[TableReader] {
        &self.tables
    }

    /// Finds a table of the live file by its name, such as `MAIN`, `ANTENNA` or `A/B`.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn table(&self, name: &str) -> Result<&TableReader> {
        let found = self.tables.iter().find(|table| table.name == name);
        found.ok_or_else(|| {
            let names = self.tables.iter().map(|table| &table.name);
            Error::not_found(format!("no table {name}{}", instead(name, names)))
        })
    }
}

impl TableReader {
    fn open(root: &Group, layout: TableLayout) -> Result<Self> {
        let group = root.group(&layout.path[1..])?;
        let column = |column: ColumnLayout| {
            let parts = match column.open(|path| Part::open(root, path))? {
                Growing::Dense(data) => Parts::Dense(Box::new(data)),
                Growing::Cubes { cubes, row_cube, row_index } => {
                    Parts::Cubes { cubes, row_cube: Box::new(row_cube), row_index: Box::new(row_index) }
                }
            };
            Ok(Column { info: column.info, parts })
        };
        let table = TableReader {
            name: layout.name,
            committed_rows: group.dataset(COMMITTED_ROWS)?,
            committed: AtomicU64::new(0),
            age: AtomicU64::new(0),
            columns: layout.columns.into_iter().map(column).collect::<Result<_>>()?,
        };
        table.refresh()?;
        Ok(table)
    }

    /// Name of the table in the live file: `MAIN`, `ANTENNA`, `A/B`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name, type, shape and keywords of each column of the table.
    pub fn columns(&self) -> impl Iterator<Item = &ColumnInfo> {
        self.columns.iter().map(|column| &column.info)
    }

    /// The shapes that the cells of a column may have, first axis fastest.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn shapes(&self, column: &str) -> Result<CellShapes> {
        Ok(match &self.column(column, &(0..0))?.parts {
            Parts::Dense(part) => CellShapes::One(part.cell.clone()),
            Parts::Cubes { cubes, .. } => CellShapes::Several(cubes.iter().map(|part| part.cell.clone()).collect()),
        })
    }

    /// Reads from the file how many rows of the table are committed now, and returns this number.
    /// After this call, all of these rows can be read.
    ///
    /// # Errors
    /// `Io`, `Format`.
    pub fn refresh(&self) -> Result<u64> {
        self.committed_rows.refresh()?;
        let rows = self.committed_rows.read_counter()?;
        self.committed.store(rows, Ordering::Release);
        self.age.fetch_add(1, Ordering::AcqRel);
        Ok(rows)
    }

    /// Number of rows of the table that were committed at the last [`refresh`](Self::refresh).
    pub fn committed_rows(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    fn column(&self, name: &str, rows: &Range<u64>) -> Result<&Column> {
        if rows.start > rows.end || rows.end > self.committed.load(Ordering::Acquire) {
            let message = format!(
                "rows {}..{} of {} that are committed",
                rows.start,
                rows.end,
                self.committed.load(Ordering::Acquire)
            );
            return Err(Error::usage(message));
        }
        let found = self.columns.iter().find(|column| column.info.desc.name == name);
        found.ok_or_else(|| {
            let names = self.columns.iter().map(|column| column.info.desc.name.to_str_lossy());
            Error::not_found(format!("no column {name}{}", instead(name, names)))
        })
    }

    /// Reads the cells of `rows` (counted from 0) of a column, and appends their elements to `out`,
    /// which has the column's type: row after row, in each cell the first axis fastest.
    ///
    /// # Errors
    /// `Usage` if the rows are not committed, `Unsupported` if the cells have several shapes.
    pub fn read(&self, column: &str, rows: Range<u64>, out: &mut Values) -> Result<()> {
        match &self.column(column, &rows)?.parts {
            Parts::Dense(part) => part.read(rows, self.age.load(Ordering::Acquire), out),
            Parts::Cubes { .. } => Err(Error::unsupported("cells of several shapes are read one by one")),
        }
        .with_context(|| Context::column(column))
    }

    /// Reads the cells of `rows` of a column, which count from 0, and returns their elements: row
    /// after row, in each cell the first axis fastest.
    ///
    /// # Errors
    /// As [`read`](Self::read), and `Usage` if `T` is not the column's type.
    pub fn rows<T: Element>(&self, column: &str, rows: Range<u64>) -> Result<Vec<T>> {
        let found = self.column(column, &rows)?.info.data_type();
        if found != T::DATA_TYPE {
            let message = format!("the elements are of type {found}, not {}", T::DATA_TYPE);
            return Err(Error::usage(message).context(Context::column(column)));
        }
        let mut values = Values::new(found);
        self.read(column, rows, &mut values)?;
        Ok(T::of(values).unwrap_or_default())
    }

    /// Calls `each` for each run of consecutively stored cells of `rows` (ascending), without
    /// undefined cells; `Usage` if a row is not committed, `Format` if the row map is damaged.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn each_run(&self, column: &str, rows: &[u64], each: &mut EachRun<'_>) -> Result<()> {
        let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else { return Ok(()) };
        let (hull, age) = (first..last.saturating_add(1), self.age.load(Ordering::Acquire));
        let found = self.column(column, &hull)?;
        let mut run = || -> Result<()> {
            let (cubes, positions): (Vec<Option<&Part>>, Vec<u64>) = match &found.parts {
                Parts::Dense(part) => (vec![Some(&**part); rows.len()], rows.to_vec()),
                Parts::Cubes { cubes, row_cube, row_index } => {
                    let (mut cube, mut index) = (Values::new(DataType::Int), Values::new(DataType::Int64));
                    row_cube.read(hull.clone(), age, &mut cube)?;
                    row_index.read(hull.clone(), age, &mut index)?;
                    let (cube, index) = (cube.integers().unwrap_or_default(), index.integers().unwrap_or_default());
                    let place = |&row: &u64| {
                        let at = (row - first) as usize;
                        let (cube, index) = (cube.get(at).copied(), index.get(at).copied());
                        if cube == Some(-1) {
                            return Ok((None, 0));
                        }
                        let part = cube.and_then(|cube| cubes.get(usize::try_from(cube).ok()?));
                        let position = index.and_then(|index| u64::try_from(index).ok());
                        let wrong = || no_cell(row, cube.unwrap_or_default(), index.unwrap_or_default());
                        part.zip(position).map(|(part, position)| (Some(part), position)).ok_or_else(wrong)
                    };
                    rows.iter().map(place).collect::<Result<Vec<_>>>()?.into_iter().unzip()
                }
            };
            let mut start = 0;
            while start < rows.len() {
                let same = |next: usize| match (cubes[start], cubes[next]) {
                    (Some(part), Some(other)) => {
                        std::ptr::eq(part, other) && positions[next - 1].checked_add(1) == Some(positions[next])
                    }
                    _ => false,
                };
                let mut end = start + 1;
                while end < rows.len() && same(end) {
                    end += 1;
                }
                if let Some(part) = cubes[start] {
                    let cells = positions[start]..positions[start].saturating_add((end - start) as u64);
                    each(start..end, &part.cell, &|out| part.read(cells.clone(), age, out))?;
                }
                start = end;
            }
            Ok(())
        };
        run().with_context(|| Context::column(column))
    }

    /// Reads the shape (first axis fastest) and the elements of the cell of a column in one row,
    /// counted from 0; `None` if the cell is undefined.
    ///
    /// # Errors
    /// `Usage` if the row is not committed; `Format` if the row map is damaged.
    pub fn cell(&self, column: &str, row: u64) -> Result<Option<(Shape, Values)>> {
        let rows = row..row.saturating_add(1);
        let found = self.column(column, &rows)?;
        let (mut values, age) = (Values::new(found.info.data_type()), self.age.load(Ordering::Acquire));
        let cell = |values: &mut Values| -> Result<Option<Shape>> {
            let (part, row) = match &found.parts {
                Parts::Dense(part) => (&**part, row),
                Parts::Cubes { cubes, row_cube, row_index } => {
                    let (mut cube, mut index) = (Values::new(DataType::Int), Values::new(DataType::Int64));
                    row_cube.read(rows.clone(), age, &mut cube)?;
                    row_index.read(rows, age, &mut index)?;
                    match (cube, index) {
                        (Values::Int(cube), _) if cube == [-1] => return Ok(None),
                        (Values::Int(cube), Values::Int64(index)) => {
                            let cube = cube.first().copied().unwrap_or_default();
                            let index = index.first().copied().unwrap_or_default();
                            let part = usize::try_from(cube).ok().and_then(|cube| cubes.get(cube));
                            let position = u64::try_from(index).ok();
                            part.zip(position).ok_or_else(|| no_cell(row, cube.into(), index))?
                        }
                        _ => return Ok(None),
                    }
                }
            };
            part.read(row..row.saturating_add(1), age, values)?;
            Ok(Some(part.cell.clone()))
        };
        let shape = cell(&mut values).with_context(|| Context::column(column))?;
        Ok(shape.map(|shape| (shape, values)))
    }
}

/// The row map leads to a cell that does not exist.
fn no_cell(row: u64, cube: i64, position: i64) -> Error {
    Error::format(format!("row {row} refers to position {position} of hypercube {cube}, which does not exist"))
}
