//! The public interface for reading and writing casacore tables, their columns and their subtables.
//!
//! To open a table is to lock it, decode `table.dat`, take the number of rows from `table.lock`,
//! and open every data manager through `KINDS` of `stman`. A manager that cannot be opened keeps
//! its error, which reading one of its columns returns. Engines get the values of other columns and
//! tables through `TableContext`; `open_managers.rs` opens the others first and notices circles.
//! Reference and concatenated tables are managers as well, with columns of other tables for bytes.
//!
//! To make a table, `NewTable` describes it, and `TableWriter` makes its managers through the
//! registry and publishes them with `table.dat`, last. `NewView` writes reference tables and
//! concatenations.

mod column;
mod column_mut;
#[cfg(test)]
mod conformance;
mod create;
mod create_view;
mod lock;
mod open;
mod open_chain;
mod open_managers;
mod read;
mod record;
mod subtable;
#[cfg(test)]
mod tests;
mod view;
mod watch;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use crate::container::{Container, ContainerInfo, FileLayout};
use crate::error::{Context, Error, Result, ResultExt};
use crate::schema::{ColumnDesc, ColumnKind, TableDesc, TableInfo, resolve};
use crate::stman::{self, ColumnSpec, Columns, Manager, OtherColumn, Storage};
use crate::suggest::instead;
use crate::thin;
use crate::value::{ByteOrder, DataType, Field, Record, Shape};

pub use crate::stman::{Access, ColumnCells, EachExtent, Extent, RowRun, Stored, TilePlace, Tiling, read_part};
pub use column::Column;
pub use column_mut::{ColumnMut, Hypercube};
pub use create::{ManagerSpec, NewTable};
pub use create_view::{NewView, ViewDat};
pub use lock::ReadLock;
pub use lock::{Locking, OpenOptions, is_locked_here, is_open_elsewhere};
pub use open::{is_table, listed};
pub use open_chain::Admits;
pub use record::RecordCells;
pub use subtable::Subtable;
pub use view::Reference;
pub use watch::{Snapshot, Watch, between_writes};
pub use writer::Part;
pub use writer::TableWriter;

/// A casacore table, opened for reading.
///
/// ```no_run
/// use ctds::Table;
///
/// let table = Table::open("my.ms")?;
/// println!("{} rows", table.rows());
/// let time: f64 = table.column("TIME")?.scalar(0)?;
/// # Ok::<(), ctds::Error>(())
/// ```
#[derive(Debug)]
pub struct Table {
    path: PathBuf,
    /// Table names in keywords are relative to this path; a view has that of its keywords' table.
    base: PathBuf,
    kind: TableKind,
    /// `None` unless this is a reference table.
    reference: Option<Reference>,
    /// Keywords of a concatenation whose subtables are concatenated as well.
    concatenated: Vec<BString>,
    rows: u64,
    order: ByteOrder,
    desc: TableDesc,
    info: TableInfo,
    /// Held until the table is dropped: writers wait for its release.
    lock: Option<Arc<ReadLock>>,
    columns: Vec<ColumnInfo>,
    /// Index of each column's manager, and of the column in the manager.
    bindings: Vec<(usize, usize)>,
    managers: Vec<OpenManager>,
    /// Holds the managers' files; those that casacore does not pack are in the table's directory.
    storage: Option<Arc<dyn Container>>,
    /// Directory of the table, which may be in a container; `None` of a view.
    home: Option<Arc<dyn Container>>,
}

/// Where a table has its cells from: its own data managers, or other tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableKind {
    /// The table stores its own cells.
    Plain,
    /// A reference table: some rows and columns of another table.
    Reference {
        /// Path of the table that the reference table selects from.
        root: PathBuf,
    },
    /// A concatenation: several tables with equal columns, with their rows one after the other.
    Concatenation {
        /// Paths of the concatenated tables, in the order of their rows.
        parts: Vec<PathBuf>,
    },
}

/// `plain table`, or the tables that hold the cells: `reference to big.ms`.
impl fmt::Display for TableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableKind::Plain => f.write_str("plain table"),
            TableKind::Reference { root } => write!(f, "reference to {}", root.display()),
            TableKind::Concatenation { parts } => {
                let parts: Vec<_> = parts.iter().map(|part| part.display().to_string()).collect();
                write!(f, "concatenation of {}", parts.join(", "))
            }
        }
    }
}

/// Description, fixed shape and data manager of a column.
#[derive(Debug, Clone)]
pub struct ColumnInfo {
    /// Description of the column in `table.dat`: name, type, keywords …
    pub desc: ColumnDesc,
    /// The shape that all cells of the column have, first axis fastest; `None` if it is not fixed.
    /// The shape of a scalar has no axes.
    pub shape: Option<Shape>,
    /// The type name of the data manager that holds the column.
    pub manager: BString,
    /// Name of the data manager that holds the column, as chosen by the creator of the table; empty
    /// if the manager cannot be opened.
    pub manager_name: BString,
    /// Also of scalars and direct arrays, which casacore always defines: damaged cells of a
    /// salvaged table are undefined.
    #[doc(hidden)]
    pub may_be_undefined: bool,
}

/// A data manager of a table: its type, name and parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagerInfo<'a> {
    /// Type name as table.dat records it, for example `TiledShapeStMan`.
    pub type_name: &'a BStr,
    /// Sequence number of the manager; its files are `table.f<sequence>…`.
    pub sequence: u32,
    /// Name of the data manager, as chosen by the creator of the table; empty if the manager cannot
    /// be opened.
    pub name: &'a BStr,
    /// Parameters with which the data manager was made, as far as its own files record them.
    pub parameters: Record,
}

#[derive(Debug)]
struct OpenManager {
    type_name: BString,
    sequence: u32,
    /// Columns of other managers can be read in spite of an error.
    opened: Result<Arc<dyn Manager>>,
}

impl Table {
    /// Opens the table at `path`: a directory, a file that holds a whole table, or a table in such
    /// a file (`my.mfh5/ANTENNA`).
    ///
    /// Data managers that cannot be opened show when one of their columns is read.
    ///
    /// The table is locked for reading until it is dropped; [`OpenOptions`] says how long a writer
    /// is waited for.
    ///
    /// # Errors
    /// `Locked` if the wait was too long, `NotFound` if `path` does not exist, `Format` if it is
    /// not a table, is damaged, or refers to a missing table.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, OpenOptions::default())
    }

    /// Opens the table at `path`; a table directory is locked, as `options` tell, until the table
    /// is dropped.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        open::open(path.as_ref(), options, None)
    }

    /// As [`open_with`](Self::open_with). Other tables that hold some of the values are opened only
    /// if `admits` allows it.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); `Unsupported` if a table that is needed may not be opened.
    #[doc(hidden)]
    pub fn open_admitted(path: &Path, options: OpenOptions, admits: Option<Admits<'_>>) -> Result<Self> {
        open::open(path, options, admits)
    }

    /// Opens the table in `directory` as if it were at the absolute path `at`, to which the names
    /// of other tables are relative; its lock is not acquired.
    #[doc(hidden)]
    pub fn open_as(directory: &Path, at: &Path, options: OpenOptions) -> Result<Self> {
        open::open_as(directory, at, options)
    }

    /// All files of the table are in the container.
    #[cfg(any(test, feature = "internals"))]
    #[doc(hidden)]
    pub fn in_container(files: Arc<dyn Container>) -> Result<Self> {
        open::open_container(files)
    }

    /// Absolute path of the table.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the table has its cells from: its own managers, or other tables.
    pub fn kind(&self) -> &TableKind {
        &self.kind
    }

    /// Rows and columns of a reference table; `None` for other tables.
    #[doc(hidden)]
    pub fn reference(&self) -> Option<&Reference> {
        self.reference.as_ref()
    }

    /// Keywords of a concatenation whose tables are concatenated as well; empty for other tables.
    #[doc(hidden)]
    pub fn concatenated(&self) -> &[BString] {
        &self.concatenated
    }

    /// Path of the table that a keyword names as `stored`.
    #[doc(hidden)]
    pub fn resolve(&self, stored: &[u8]) -> PathBuf {
        resolve(stored, &self.base)
    }

    /// Number of rows of the table.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether this object holds a read lock on the table.
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    /// Describes the container or directory that holds the files of the data managers; `None` for
    /// tables without data of their own.
    pub fn storage(&self) -> Option<ContainerInfo> {
        self.storage.as_ref().map(|files| files.describe())
    }

    /// Files of the column's data manager, and how their container stores each; empty without a
    /// container.
    #[doc(hidden)]
    pub fn stored_files(&self, index: usize) -> Result<Vec<(String, FileLayout)>> {
        let manager = &self.managers[self.bindings[index].0];
        let Some(files) = self.storage.as_ref().filter(|files| files.path("").is_none()) else { return Ok(Vec::new()) };
        let names = files.names()?.into_iter();
        let names = names.filter(|name| stman::sequence_of(name) == Some(manager.sequence));
        names.map(|name| Ok((name.clone(), files.layout(&name)?))).collect()
    }

    /// Size in bytes of the files of each data manager, in the order of
    /// [`managers`](Self::managers). Files in a container count as stored in it. Files that a thin
    /// table has as links to an HDF5 file count as the bytes of the datasets there.
    ///
    /// # Errors
    /// Those of listing the files.
    pub fn manager_bytes(&self) -> Result<Vec<u64>> {
        let mut bytes = vec![0; self.managers.len()];
        let Some(files) = &self.storage else { return Ok(bytes) };
        let thin = thin::Record::read(&self.path).ok().flatten();
        let linked = |name: &str| thin.as_ref()?.links.iter().find(|link| link.file == name).map(|link| link.bytes);
        for name in files.names()? {
            let sequence = stman::sequence_of(&name);
            let Some(number) = self.managers.iter().position(|manager| Some(manager.sequence) == sequence) else {
                continue;
            };
            bytes[number] += match (linked(&name), files.path(&name)) {
                (Some(bytes), _) => bytes,
                (None, Some(path)) => path.metadata().map_or(0, |metadata| metadata.len()),
                (None, None) => files.layout(&name)?.stored_bytes,
            };
        }
        Ok(bytes)
    }

    /// Byte order of the data files of the table.
    pub fn byte_order(&self) -> ByteOrder {
        self.order
    }

    /// The description of the table: keywords, private keywords, comment, descriptions of the
    /// columns.
    pub fn description(&self) -> &TableDesc {
        &self.desc
    }

    /// The keywords of the table; those that name subtables are among them.
    pub fn keywords(&self) -> &Record {
        &self.desc.keywords
    }

    /// Type, subtype and readme of the table, from `table.info`.
    pub fn info(&self) -> &TableInfo {
        &self.info
    }

    /// Description, fixed shape and manager of each column, in the order of the table description.
    pub fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    /// The data managers of the table, in the order of `table.dat`; of a reference table or
    /// concatenation, one entry for each column.
    pub fn managers(&self) -> impl Iterator<Item = ManagerInfo<'_>> {
        self.managers.iter().map(|manager| {
            let opened = manager.opened.as_ref().ok();
            ManagerInfo {
                type_name: manager.type_name.as_bstr(),
                sequence: manager.sequence,
                name: opened.map_or(BStr::new(""), |opened| opened.name()),
                parameters: opened.map(|opened| opened.parameters()).unwrap_or_default(),
            }
        })
    }

    /// For each column the index of its manager among [`managers`](Self::managers), from 0; `None`
    /// for the columns of a reference table or concatenation, whose managers belong to other
    /// tables.
    pub fn manager_numbers(&self) -> Vec<Option<usize>> {
        let is_plain = self.kind == TableKind::Plain;
        self.bindings.iter().map(|(manager, _)| is_plain.then_some(*manager)).collect()
    }

    /// Gives access to the cells of the column `name`.
    ///
    /// # Errors
    /// `NotFound` if there is none of this name.
    pub fn column(&self, name: impl AsRef<[u8]>) -> Result<Column<'_>> {
        let name = name.as_ref().as_bstr();
        match self.columns.iter().position(|column| column.desc.name == name) {
            Some(index) => Ok(Column::new(self, index)),
            None => {
                let names = self.columns.iter().map(|column| column.desc.name.to_str_lossy());
                let message = format!("no column {name}{}", instead(&name.to_str_lossy(), names));
                Err(Error::not_found(message).context(Context::path(&self.path)))
            }
        }
    }

    /// Record columns have the stored bytes.
    #[doc(hidden)]
    pub fn cells(&self, index: usize) -> Result<&dyn ColumnCells> {
        let (manager, column) = self.manager_of(index)?;
        manager.readable(column)?;
        Ok(manager.column(column))
    }

    /// Also where the manager says that some cells cannot be read; reading those fails.
    #[doc(hidden)]
    pub fn cells_in_part(&self, index: usize) -> Result<&dyn ColumnCells> {
        let (manager, column) = self.manager_of(index)?;
        Ok(manager.column(column))
    }

    /// The data manager of a column, and the column's index there. Fails if the manager could not
    /// be opened, or the cells are of a class that only the manager's author has.
    fn manager_of(&self, index: usize) -> Result<(&Arc<dyn Manager>, usize)> {
        let (manager, column) = self.bindings[index];
        let opened = self.managers[manager].opened.as_ref().map_err(Error::clone)?;
        self.columns[index].desc.check_class()?;
        Ok((opened, column))
    }

    /// `table.f<sequence>` of the column's manager, and `suffix`, such as `_TSM0`.
    #[doc(hidden)]
    pub fn file_name(&self, index: usize, suffix: &str) -> String {
        format!("table.f{}{suffix}", self.managers[self.bindings[index].0].sequence)
    }

    /// The first error if all data managers fail to open, so that casacore cannot open the table.
    /// Managers of TaQL expressions, which have no files, are ignored.
    #[doc(hidden)]
    pub fn unreadable(&self) -> Option<Error> {
        let stored = self.managers.iter().filter(|manager| !stman::is_expression(manager.type_name.as_bstr()));
        let errors: Option<Vec<&Error>> = stored.map(|manager| manager.opened.as_ref().err()).collect();
        errors?.first().map(|error| Error::clone(error).context(Context::path(&self.path)))
    }

    /// The subtables: the tables to which keywords of this table and of its columns refer,
    /// including keywords in nested records.
    pub fn subtables(&self) -> Vec<Subtable> {
        subtable::find(self)
    }

    /// The tables in the directory of this one, in the order of their names, whether a keyword
    /// refers to them or not: the ephemerides of FIELD are found by their names alone. None if this
    /// table is not in a directory of its own.
    pub fn tables_inside(&self) -> Vec<Subtable> {
        subtable::inside(self)
    }

    /// Absolute paths of other tables that hold rows or cells of this one: those of a view, and
    /// those to which columns are forwarded.
    #[doc(hidden)]
    pub fn tables_of_values(&self) -> Vec<PathBuf> {
        subtable::of_values(self)
    }

    /// Names in the directory of this table that are neither its files nor tables, sorted.
    #[doc(hidden)]
    pub fn others_inside(&self) -> Vec<String> {
        subtable::others(self)
    }
}

#[derive(Debug)]
struct Locked {
    manager: Arc<dyn Manager>,
    _lock: Arc<ReadLock>,
}

impl Manager for Locked {
    fn name(&self) -> &BStr {
        self.manager.name()
    }

    fn column(&self, index: usize) -> &dyn ColumnCells {
        self.manager.column(index)
    }

    fn reads(&self, index: usize) -> u64 {
        self.manager.reads(index)
    }

    fn parameters(&self) -> Record {
        self.manager.parameters()
    }

    fn readable(&self, index: usize) -> Result<()> {
        self.manager.readable(index)
    }
}

impl Columns for Table {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn keywords(&self) -> &Record {
        &self.desc.keywords
    }

    fn column(&self, name: &BStr) -> Result<OtherColumn> {
        let found = self.columns.iter().position(|column| column.desc.name == name);
        let found = found
            .ok_or_else(|| Error::format(format!("column {name} does not exist")).context(Context::path(&self.path)))?;
        let (opened, index) = self.manager_of(found).context(Context::path(&self.path))?;
        opened.readable(index).context(Context::path(&self.path))?;
        let manager: Arc<dyn Manager> = match &self.lock {
            Some(lock) => Arc::new(Locked { manager: opened.clone(), _lock: lock.clone() }),
            None => opened.clone(),
        };
        Ok(OtherColumn { spec: self.columns[found].spec(), manager, index })
    }
}

impl ColumnInfo {
    /// Certain to be defined and of the shape `shape`: scalars other than records, and direct
    /// arrays, unless `may_be_undefined` is set.
    #[doc(hidden)]
    pub fn is_always_defined(&self) -> bool {
        match self.desc.kind {
            _ if self.may_be_undefined => false,
            ColumnKind::Scalar => self.data_type() != DataType::Record,
            ColumnKind::Array => self.desc.is_direct() && self.shape.is_some(),
        }
    }

    /// The element type of the column.
    pub fn data_type(&self) -> DataType {
        self.desc.data_type
    }

    /// Name of the column of the same table that stores the values from which an engine computes
    /// this one; `None` if no engine does.
    pub fn stored_column(&self) -> Option<&BStr> {
        stman::stored_column(&self.desc.keywords)
    }

    /// The parameters of the engine that computes the column (scale, offset, masks, the table it
    /// forwards to …); none for a stored column.
    pub fn engine_parameters(&self) -> impl Iterator<Item = &Field> {
        self.desc.keywords.fields.iter().filter(|field| stman::is_engine_keyword(field.name.as_bstr()))
    }

    /// The TaQL expression that computes the column.
    #[doc(hidden)]
    pub fn expression(&self) -> Option<&BStr> {
        stman::expression(&self.desc.keywords).filter(|_| stman::is_expression(self.manager.as_bstr()))
    }

    #[doc(hidden)]
    pub fn spec(&self) -> ColumnSpec {
        let desc = &self.desc;
        if desc.data_type == DataType::Record {
            let (name, storage) = (desc.name.clone(), Storage::Indirect);
            return ColumnSpec { name, data_type: DataType::UChar, storage, shape: None, ndim: 1, max_length: 0 };
        }
        let storage = match desc.kind {
            ColumnKind::Scalar => Storage::Scalar,
            ColumnKind::Array if desc.is_direct() => Storage::Direct,
            ColumnKind::Array => Storage::Indirect,
        };
        ColumnSpec {
            name: desc.name.clone(),
            data_type: desc.data_type,
            storage,
            shape: self.shape.clone(),
            ndim: self.shape.as_ref().map_or(desc.ndim, |shape| shape.len() as i32),
            max_length: desc.max_length,
        }
    }
}
