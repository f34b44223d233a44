//! Appending rows. The order in which they become visible is written here, once: [`Writer::commit`].

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use bstr::ByteSlice;

use super::block::Block;
use super::declare::TableSpec;
use super::layout::{self, COMMITTED, ColumnLayout, TableLayout};
use super::lock::WriterLock;
use super::{create, lock};
use crate::convert::output::Output;
use crate::error::{Error, ErrorKind, Place, Result};
use crate::h5::{self, LiveDataset, LiveFile};

/// Bytes of rows that wait to be written, in all columns together, and in one at most.
const WAITING_BYTES: usize = 64 << 20;
const WAITING_BYTES_OF_COLUMN: usize = 1 << 20;

/// When rows become visible, and when they are safe from a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// [`Writer::append`] commits when the last commit is this long ago.
    pub every: Option<Duration>,
    /// [`Writer::append`] commits when so many rows, of all tables together, are not yet committed.
    pub rows: Option<u64>,
    /// Whether commits wait for the disk.
    pub sync: Sync,
}

impl Default for Policy {
    /// A commit each second, safe from the end of the program but not from a power cut.
    fn default() -> Self {
        Policy { every: Some(Duration::from_secs(1)), rows: None, sync: Sync::Never }
    }
}

/// Whether commits wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// What is committed is with the operating system, which writes it when it likes. Other processes see it, and it
    /// survives the end of this one, but not a power cut.
    Never,
    /// What is committed is on the disk, the rows before the number that counts them.
    Commit,
}

/// Tables to be written live, before anybody can read them.
///
/// [`go_live`](Self::go_live) makes a [`Writer`] of it, which can append rows but create, attach or delete nothing: readers
/// would stumble over that, and libhdf5 does not refuse it.
#[derive(Debug, Default)]
pub struct Declaration {
    tables: Vec<TableSpec>,
    overwrite: bool,
}

impl Declaration {
    /// No tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a table; parents come before children.
    #[must_use]
    pub fn table(mut self, table: TableSpec) -> Self {
        self.tables.push(table);
        self
    }

    /// Replaces a file that is there.
    #[must_use]
    pub fn overwrite(mut self) -> Self {
        self.overwrite = true;
        self
    }

    /// Creates the file at `path`, where it appears when all of it is there but the rows.
    ///
    /// # Errors
    /// `Exists`, `Locked` if another writer has it, `Usage` if what is declared cannot be.
    pub fn go_live(self, path: impl AsRef<Path>, policy: Policy) -> Result<Writer> {
        let path = path.as_ref();
        let lock = WriterLock::take(path)?;
        let output = Output::create(path, self.overwrite, 0)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (layout, file) = create::create(output.partial(), &name, &self.tables)
            .and_then(|file| Ok((layout::read(&file.root()?)?, file)))
            .at_with(|| path.display().to_string())?;
        let mut writer = Writer::new(file.go_live()?, output.partial(), &layout, policy, lock)?;
        for table in &mut writer.tables {
            table.committed_rows.append(&0u64.to_le_bytes())?;
        }
        writer.file()?.flush()?;
        output.commit()?;
        Ok(writer)
    }
}

/// Appends rows to tables that others read at the same time.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("live.h5");
/// use ctds_hdf5::live::{ColumnSpec, Declaration, Policy, TableSpec};
/// use ctds_hdf5::value::DataType;
///
/// let main = TableSpec::new("MAIN")
///     .column(ColumnSpec::new("TIME", DataType::Double).unit("s"))
///     .column(ColumnSpec::new("WEIGHT", DataType::Float).cell([4]).axes(["corr"]));
/// let mut writer = Declaration::new().table(main).go_live(&path, Policy::default())?;
/// let weights = ndarray::Array2::<f32>::ones((3, 4));
/// writer.append("MAIN", 3, &[("TIME", (&[5e9, 5e9, 5e9][..]).into()), ("WEIGHT", weights.view().into())])?;
/// writer.commit()?;
/// assert_eq!(writer.committed_rows("MAIN")?, 3);
/// writer.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writer {
    /// `None` after a failure: what is in the file is no longer known, but for what is committed.
    file: Option<LiveFile>,
    tables: Vec<Table>,
    policy: Policy,
    last_commit: Instant,
    /// For `fsync`.
    descriptor: File,
    warnings: Vec<String>,
    /// Last, so that it is given back when the file is closed.
    lock: Option<WriterLock>,
}

#[derive(Debug)]
struct Table {
    name: String,
    row: Stream,
    columns: Vec<Column>,
    committed_rows: LiveDataset,
    /// Rows that were appended, and of those the committed.
    rows: u64,
    committed: u64,
}

#[derive(Debug)]
struct Column {
    name: String,
    /// Bytes of a string.
    string_bytes: usize,
    parts: Parts,
}

#[derive(Debug)]
enum Parts {
    Dense(Stream),
    Cubes {
        /// The cells and their positions.
        cubes: Vec<(Stream, Stream)>,
        row_cube: Stream,
        row_index: Stream,
    },
}

/// A dataset and the rows that are to be appended to it.
#[derive(Debug)]
struct Stream {
    dataset: LiveDataset,
    waiting: Vec<u8>,
}

impl Stream {
    fn new(file: &LiveFile, path: &str) -> Result<Self> {
        Ok(Stream { dataset: file.dataset(path)?, waiting: Vec::new() })
    }

    /// Rows, with those that wait.
    fn rows(&self) -> u64 {
        self.dataset.rows() + (self.waiting.len() / self.dataset.row_bytes()) as u64
    }

    fn push(&mut self, bytes: &[u8], most_waiting: usize) -> Result<()> {
        if self.waiting.len() + bytes.len() <= most_waiting {
            self.waiting.extend_from_slice(bytes);
            return Ok(());
        }
        self.drain()?;
        if bytes.len() <= most_waiting / 2 {
            self.waiting.extend_from_slice(bytes);
            return Ok(());
        }
        self.dataset.append(bytes)
    }

    fn drain(&mut self) -> Result<()> {
        if !self.waiting.is_empty() {
            self.dataset.append(&self.waiting)?;
            self.waiting.clear();
        }
        Ok(())
    }
}

/// A block that fits its column, as it is stored.
type Checked<'a> = (Cow<'a, [u8]>, Option<&'a [Option<usize>]>);

impl Column {
    fn open(file: &LiveFile, layout: &ColumnLayout) -> Result<Self> {
        let parts = match &layout.positions {
            None => Parts::Dense(Stream::new(file, &layout.path)?),
            Some(positions) => {
                let part = |name: &str| Stream::new(file, &format!("{}/{name}", layout.path));
                let cube =
                    |(number, position): (usize, &String)| Ok((part(&format!("cube{number}"))?, part(position)?));
                Parts::Cubes {
                    cubes: positions.iter().enumerate().map(cube).collect::<Result<_>>()?,
                    row_cube: part("row_cube")?,
                    row_index: part("row_index")?,
                }
            }
        };
        let desc = &layout.info.desc;
        Ok(Column { name: desc.name.to_str_lossy().into_owned(), string_bytes: desc.max_length as usize, parts })
    }

    fn streams(&mut self) -> Vec<&mut Stream> {
        match &mut self.parts {
            Parts::Dense(stream) => vec![stream],
            Parts::Cubes { cubes, row_cube, row_index } => {
                let cubes = cubes.iter_mut().flat_map(|(cube, position)| [cube, position]);
                cubes.chain([row_cube, row_index]).collect()
            }
        }
    }

    /// The cells of `rows` rows as they are stored.
    fn check<'a>(&self, block: &'a Block<'_>, rows: u64) -> Result<Checked<'a>> {
        let (data, expected) = match (&self.parts, block.shapes) {
            (Parts::Dense(stream), None) => (Some(stream), rows as usize * stream.dataset.row_bytes()),
            (Parts::Dense(_), Some(_)) => return Err(Error::usage("all cells have the same shape, none is asked for")),
            (Parts::Cubes { .. }, None) => return Err(Error::usage("which shape each cell has is not said")),
            (Parts::Cubes { cubes, .. }, Some(shapes)) => {
                if shapes.len() as u64 != rows {
                    return Err(Error::usage(format!("shapes of {} cells for {rows} rows", shapes.len())));
                }
                let bytes = shapes.iter().flatten().try_fold(0, |sum, &shape| {
                    let (cube, _) = cubes.get(shape)?;
                    Some(sum + cube.dataset.row_bytes())
                });
                let known = cubes.len();
                let bytes =
                    bytes.ok_or_else(|| Error::usage(format!("a shape is named, only {known} are declared")))?;
                (cubes.first().map(|(cube, _)| cube), bytes)
            }
        };
        if let Some(stream) = data {
            let stored = stream.dataset.data_type()?;
            if stored != block.data_type() {
                return Err(Error::usage(format!("{} values where {stored} are declared", block.data_type())));
            }
            let own = stream.dataset.extents(rows);
            if let Some(extents) = block.extents.as_ref().filter(|extents| block.shapes.is_none() && **extents != own) {
                return Err(Error::usage(format!("a view of shape {extents:?} where {own:?} is expected")));
            }
        }
        let bytes = block.elements.stored(self.string_bytes)?;
        if bytes.len() != expected {
            let message = format!("{} bytes for {rows} rows, which take {expected}", bytes.len());
            return Err(Error::usage(message));
        }
        Ok((bytes, block.shapes))
    }

    fn append(&mut self, (bytes, shapes): &Checked<'_>, most_waiting: usize) -> Result<()> {
        match (&mut self.parts, shapes) {
            (Parts::Dense(stream), _) => stream.push(bytes, most_waiting),
            (Parts::Cubes { cubes, row_cube, row_index }, shapes) => {
                let mut rest = &bytes[..];
                for shape in shapes.unwrap_or_default() {
                    let mut place = (-1i32, -1i64);
                    if let Some(number) = *shape {
                        let (cube, position) = &mut cubes[number];
                        place = (number as i32, cube.rows() as i64);
                        let (cell, others) = rest.split_at(cube.dataset.row_bytes());
                        rest = others;
                        cube.push(cell, most_waiting)?;
                        position.push(&place.1.to_le_bytes(), most_waiting)?;
                    }
                    row_cube.push(&place.0.to_le_bytes(), most_waiting)?;
                    row_index.push(&place.1.to_le_bytes(), most_waiting)?;
                }
                Ok(())
            }
        }
    }

    /// Whether the cells of `rows` rows are these already.
    fn holds(&mut self, first: u64, rows: u64, (bytes, shapes): &Checked<'_>) -> Result<bool> {
        self.streams().into_iter().try_for_each(Stream::drain)?;
        let mut found = Vec::new();
        match (&self.parts, shapes) {
            (Parts::Dense(stream), _) => stream.dataset.read(first, rows, &mut found)?,
            (Parts::Cubes { cubes, row_cube, row_index }, shapes) => {
                let (mut cube_bytes, mut index_bytes) = (Vec::new(), Vec::new());
                row_cube.dataset.read(first, rows, &mut cube_bytes)?;
                row_index.dataset.read(first, rows, &mut index_bytes)?;
                let (numbers, positions) = (cube_bytes.as_chunks::<4>().0, index_bytes.as_chunks::<8>().0);
                for ((number, position), wanted) in numbers.iter().zip(positions).zip(shapes.unwrap_or_default()) {
                    let number = usize::try_from(i32::from_le_bytes(*number)).ok();
                    if number != *wanted {
                        return Ok(false);
                    }
                    if let Some((cube, _)) = number.and_then(|number| cubes.get(number)) {
                        cube.dataset.read(i64::from_le_bytes(*position) as u64, 1, &mut found)?;
                    }
                }
            }
        }
        Ok(found == **bytes)
    }

    /// Writes cells that are there anew.
    fn rewrite(&mut self, first: u64, (bytes, shapes): &Checked<'_>) -> Result<()> {
        self.streams().into_iter().try_for_each(Stream::drain)?;
        match (&mut self.parts, shapes) {
            (Parts::Dense(stream), _) => stream.dataset.write(first, bytes),
            (Parts::Cubes { cubes, row_cube, row_index }, shapes) => {
                let shapes = shapes.unwrap_or_default();
                let (mut cube_bytes, mut index_bytes) = (Vec::new(), Vec::new());
                row_cube.dataset.read(first, shapes.len() as u64, &mut cube_bytes)?;
                row_index.dataset.read(first, shapes.len() as u64, &mut index_bytes)?;
                let (numbers, _) = cube_bytes.as_chunks::<4>();
                let (positions, _) = index_bytes.as_chunks::<8>();
                let is = numbers.iter().map(|number| usize::try_from(i32::from_le_bytes(*number)).ok());
                if let Some(row) = is.zip(shapes).position(|(is, wanted)| is != *wanted) {
                    let row = first + row as u64;
                    return Err(Error::unsupported(format!("the cell of row {row} has another shape, which stays")));
                }
                let mut rest = &bytes[..];
                for (shape, position) in shapes.iter().zip(positions) {
                    if let Some(number) = *shape {
                        let (cube, _) = &cubes[number];
                        let (cell, others) = rest.split_at(cube.dataset.row_bytes());
                        rest = others;
                        cube.dataset.write(i64::from_le_bytes(*position) as u64, cell)?;
                    }
                }
                Ok(())
            }
        }
    }
}

impl Table {
    fn open(file: &LiveFile, layout: &TableLayout) -> Result<Self> {
        let committed_rows = file.dataset(&format!("{}/{COMMITTED}", layout.path))?;
        let mut bytes = Vec::new();
        committed_rows.read(0, committed_rows.rows(), &mut bytes)?;
        let committed = bytes.as_chunks().0.first().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let row = Stream::new(file, &format!("{}/{}", layout.path, layout.row))?;
        let columns = layout.columns.iter().map(|column| Column::open(file, column)).collect::<Result<_>>()?;
        Ok(Table { name: layout.name.clone(), row, columns, committed_rows, rows: committed, committed })
    }

    fn streams(&mut self) -> impl Iterator<Item = &mut Stream> {
        std::iter::once(&mut self.row).chain(self.columns.iter_mut().flat_map(Column::streams))
    }

    fn column(&mut self, name: &str) -> Result<&mut Column> {
        let found = self.columns.iter_mut().find(|column| column.name == name);
        found.ok_or_else(|| Error::usage(format!("there is no column {name}")))
    }

    /// One block for each column, in their order, as it is stored.
    fn check<'a>(&self, rows: u64, blocks: &'a [(&str, Block<'_>)]) -> Result<Vec<Checked<'a>>> {
        if let Some((name, _)) = blocks.iter().find(|(name, _)| !self.columns.iter().any(|column| column.name == *name))
        {
            return Err(Error::usage(format!("there is no column {name}")));
        }
        let check = |column: &Column| {
            let mut own = blocks.iter().filter(|(name, _)| *name == column.name);
            match (own.next(), own.next()) {
                (Some((_, block)), None) => column.check(block, rows),
                (None, _) => Err(Error::usage("a row has a cell in every column, but none is given")),
                _ => Err(Error::usage("given twice")),
            }
            .at_with(|| format!("column {}", column.name))
        };
        self.columns.iter().map(check).collect()
    }

    fn append(&mut self, rows: u64, cells: &[Checked<'_>], most_waiting: usize) -> Result<()> {
        for (column, cells) in self.columns.iter_mut().zip(cells) {
            column.append(cells, most_waiting).at_with(|| format!("column {}", column.name))?;
        }
        let numbers: Vec<u8> = (self.rows..self.rows + rows).flat_map(u64::to_le_bytes).collect();
        self.row.push(&numbers, most_waiting)?;
        self.rows += rows;
        Ok(())
    }
}

impl Writer {
    /// Opens a live file that its writer has closed, or that was repaired, to append more rows.
    ///
    /// # Errors
    /// `Locked` if a writer has it, or did not close it: `repair` brings that in order. `Unsupported` if it is no live
    /// file.
    pub fn reopen(path: impl AsRef<Path>, policy: Policy) -> Result<Self> {
        let path = path.as_ref();
        let lock = WriterLock::take(path)?;
        let layout = {
            let file = h5::File::open(path)?;
            layout::read(&file.root()?).at_with(|| path.display().to_string())?
        };
        let writer = Writer::new(LiveFile::open(path)?, path, &layout, policy, lock)?;
        for table in &writer.tables {
            table.check_extents().at_with(|| format!("table {}", table.name)).at_with(|| path.display().to_string())?;
        }
        Ok(writer)
    }

    fn new(file: LiveFile, path: &Path, layout: &[TableLayout], policy: Policy, lock: WriterLock) -> Result<Self> {
        let tables = layout.iter().map(|table| Table::open(&file, table)).collect::<Result<_>>()?;
        let descriptor = File::open(path).at_with(|| path.display().to_string())?;
        let warnings = lock::network_file_system(path).into_iter().collect();
        Ok(Writer {
            file: Some(file),
            tables,
            policy,
            last_commit: Instant::now(),
            descriptor,
            warnings,
            lock: Some(lock),
        })
    }

    /// What the user should know: the file is on a network file system.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The names of the tables: `MAIN`, `ANTENNA`, `A/B`.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|table| table.name.as_str())
    }

    /// Rows of a table, with those that are not yet committed.
    ///
    /// # Errors
    /// `Usage` if there is no such table.
    pub fn rows(&self, table: &str) -> Result<u64> {
        Ok(self.table(table)?.rows)
    }

    /// Rows of a table that readers see.
    ///
    /// # Errors
    /// `Usage` if there is no such table.
    pub fn committed_rows(&self, table: &str) -> Result<u64> {
        Ok(self.table(table)?.committed)
    }

    fn table(&self, name: &str) -> Result<&Table> {
        let found = self.tables.iter().find(|table| table.name == name);
        found.ok_or_else(|| Error::usage(format!("there is no table {name}")))
    }

    fn table_mut(&mut self, name: &str) -> Result<&mut Table> {
        let found = self.tables.iter_mut().find(|table| table.name == name);
        found.ok_or_else(|| Error::usage(format!("there is no table {name}")))
    }

    fn file(&self) -> Result<&LiveFile> {
        self.file.as_ref().ok_or_else(|| Error::new(ErrorKind::Io, "the file cannot be written since an earlier error"))
    }

    /// After an error of writing nothing more is written, so that what is committed stays as it is.
    fn guard<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err()
            && let Some(file) = self.file.take()
            && file.close().is_err()
        {
            // libhdf5 has it open until the program ends
            std::mem::forget(self.lock.take());
        }
        result
    }

    /// Appends rows to a table: one block for each of its columns. Commits if the [`Policy`] says so.
    ///
    /// # Errors
    /// `Usage` if the blocks do not fit, and nothing is written; `NoSpace` or `Io`, after which the writer can only be
    /// closed: what is committed stays readable, what is not is lost.
    pub fn append(&mut self, table: &str, rows: u64, blocks: &[(&str, Block<'_>)]) -> Result<()> {
        self.file()?;
        let streams: usize = self.tables.iter().map(|table| table.columns.len() + 1).sum();
        let most_waiting = (WAITING_BYTES / streams.max(1)).min(WAITING_BYTES_OF_COLUMN);
        let found = self.table_mut(table)?;
        let cells = found.check(rows, blocks).at_with(|| format!("table {table}"))?;
        let appended = found.append(rows, &cells, most_waiting).at_with(|| format!("table {table}"));
        self.guard(appended)?;
        self.commit_if_due()
    }

    /// Writes cells of rows that were appended before anew, in their place. Those who read them meanwhile may see some of
    /// the old and some of the new.
    ///
    /// # Errors
    /// As [`append`](Self::append); `Unsupported` if a cell would get another shape.
    pub fn rewrite(&mut self, table: &str, column: &str, first_row: u64, rows: u64, block: &Block<'_>) -> Result<()> {
        self.file()?;
        let place = || format!("table {table}: column {column}");
        let found = self.table_mut(table)?;
        if first_row.checked_add(rows).is_none_or(|end| end > found.rows) {
            let message = format!("rows {first_row} to {}, of {}", first_row.saturating_add(rows), found.rows);
            return Err(Error::usage(message).at(place()));
        }
        let column = found.column(column)?;
        let cells = column.check(block, rows).at_with(place)?;
        match column.rewrite(first_row, &cells).at_with(place) {
            // nothing was written
            Err(error) if error.kind() == ErrorKind::Unsupported => Err(error),
            written => self.guard(written),
        }
    }

    /// As [`rewrite`](Self::rewrite), if the cells are not the same already; says whether they were not.
    ///
    /// # Errors
    /// As [`rewrite`](Self::rewrite).
    pub fn rewrite_if_changed(
        &mut self,
        table: &str,
        column: &str,
        first_row: u64,
        rows: u64,
        block: &Block<'_>,
    ) -> Result<bool> {
        self.file()?;
        let place = || format!("table {table}: column {column}");
        let found = self.table_mut(table)?;
        if first_row.checked_add(rows).is_none_or(|end| end > found.rows) {
            return self.rewrite(table, column, first_row, rows, block).map(|()| true);
        }
        let found = found.column(column)?;
        let cells = found.check(block, rows).at_with(place)?;
        if found.holds(first_row, rows, &cells).at_with(place)? {
            return Ok(false);
        }
        self.rewrite(table, column, first_row, rows, block).map(|()| true)
    }

    /// Commits if the [`Policy`] says that it is time; for those who have nothing to append at the moment.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_if_due(&mut self) -> Result<()> {
        let waiting: u64 = self.tables.iter().map(|table| table.rows - table.committed).sum();
        let late = self.policy.every.is_some_and(|every| self.last_commit.elapsed() >= every);
        let many = self.policy.rows.is_some_and(|rows| waiting >= rows);
        if waiting > 0 && (late || many) { self.commit() } else { Ok(()) }
    }

    /// Lets readers see all rows that were appended: when it returns, the rows that [`committed_rows`](Self::committed_rows)
    /// gives are whole for everybody who reads that number first.
    ///
    /// # Errors
    /// `NoSpace` or `Io`, after which the writer can only be closed.
    pub fn commit(&mut self) -> Result<()> {
        let committed = self.commit_in_order();
        self.guard(committed)
    }

    fn commit_in_order(&mut self) -> Result<()> {
        self.file()?;
        self.last_commit = Instant::now();
        let changed = |table: &&mut Table| table.rows > table.committed;
        // the cells of every column
        for table in self.tables.iter_mut().filter(changed) {
            let drained = table.streams().try_for_each(Stream::drain);
            drained.at_with(|| format!("table {}", table.name))?;
        }
        // and all that leads to them
        self.file()?.flush()?;
        self.sync()?;
        // only then the number of rows
        for table in self.tables.iter_mut().filter(changed) {
            table.committed_rows.write(0, &table.rows.to_le_bytes())?;
            table.committed_rows.flush()?;
            table.committed = table.rows;
        }
        self.sync()
    }

    fn sync(&self) -> Result<()> {
        match self.policy.sync {
            Sync::Never => Ok(()),
            Sync::Commit => Ok(self.descriptor.sync_data()?),
        }
    }

    /// Commits, closes the file and gives back the lock. A file that is dropped instead is closed as well, but what is not
    /// committed is lost.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn close(mut self) -> Result<()> {
        self.commit()?;
        let Some(file) = self.file.take() else { return Ok(()) };
        self.tables.clear();
        let closed = file.close();
        if closed.is_err() {
            std::mem::forget(self.lock.take());
        }
        closed?;
        self.sync()
    }
}

impl Table {
    /// Rows after the committed ones are what a writer left that was dropped.
    fn check_extents(&self) -> Result<()> {
        let expect = |stream: &Stream, rows: u64| match stream.rows() {
            found if found == rows => Ok(()),
            found => {
                Err(Error::format(format!("{found} rows where {rows} are committed; repair brings that in order")))
            }
        };
        expect(&self.row, self.committed)?;
        for column in &self.columns {
            match &column.parts {
                Parts::Dense(stream) => expect(stream, self.committed),
                Parts::Cubes { row_cube, row_index, .. } => {
                    expect(row_cube, self.committed).and_then(|()| expect(row_index, self.committed))
                }
            }
            .at_with(|| format!("column {}", column.name))?;
        }
        Ok(())
    }
}
