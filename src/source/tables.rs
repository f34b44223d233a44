//! Sources: a table and its subtables, opened for reading in whatever form they are stored.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bstr::ByteSlice;

use super::Content;
use crate::container::{FORMATS, FileLayout};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::io::ReadAt;
use crate::limits;
use crate::native::{self, DatasetInfo, MAIN_TABLE, MAX_CUBES, NativeTable, display_name, split_name, unique};
use crate::output::Damage;
use crate::remote;
use crate::schema::TableInfo;
use crate::suggest::instead;
use crate::sync::LockUnpoisoned;
use crate::table::{Admits, Column, ColumnCells, ColumnInfo, Locking, OpenOptions, Subtable, Table, TableKind};
use crate::value::{Record, Shape, Values};

/// Columns that stay open after a read, with offsets of chunks and some decoded chunks.
const OPEN_COLUMNS: usize = 16;

/// Names in a sentence about what is left out.
const MOST_LISTED: usize = 8;

/// A table and all its subtables, opened for reading: a table directory, a container (a file with
/// all files of a table) or a native HDF5 file.
pub struct Source {
    /// Last component of the path.
    pub(crate) name: String,
    /// Path as given, for errors.
    pub(crate) place: Context,
    /// The main table first, parents before children.
    pub(crate) tables: Vec<SourceTable>,
    /// Subtables that [`open_served`](Self::open_served) must not open.
    refused: Vec<RefusedTable>,
    /// Tables that no keyword names and that cannot be opened, with their errors.
    unopened: Vec<(String, Error)>,
    /// Damaged parts are left out instead of being errors.
    pub(super) is_salvaged: bool,
    pub(super) damage: Vec<Damage>,
    open_columns: OpenColumns,
    remote: Option<Arc<dyn ReadAt>>,
}

/// The column used last is at the end.
#[derive(Default)]
struct OpenColumns(Mutex<Vec<OpenColumn>>);

/// Numbers of table and column, and cells.
type OpenColumn = (usize, usize, Arc<dyn ColumnCells>);

impl OpenColumns {
    fn get(
        &self,
        table: usize,
        column: usize,
        open: impl FnOnce() -> Result<Box<dyn ColumnCells>>,
    ) -> Result<Arc<dyn ColumnCells>> {
        let mut columns = self.0.lock_unpoisoned();
        let cells = match columns.iter().position(|known| (known.0, known.1) == (table, column)) {
            Some(known) => columns.remove(known).2,
            None => open()?.into(),
        };
        if columns.len() >= OPEN_COLUMNS {
            columns.remove(0);
        }
        columns.push((table, column, cells.clone()));
        Ok(cells)
    }
}

/// One of the tables of a [`Source`]: the main table or a subtable, which may have failed to open.
pub struct SourceTable {
    /// Name of the table in the tree of tables: `.` for the main table, else the keywords that lead
    /// to it, `ANTENNA` or `A/B`.
    pub name: String,
    /// Index of the table whose keyword names this one, or in whose directory it is.
    pub(crate) parent: Option<usize>,
    /// Whether a keyword of the parent names this table; true for the main table.
    pub(crate) is_named: bool,
    /// `None` in an HDF5 file.
    pub(crate) path: Option<PathBuf>,
    /// Path from the root of an HDF5 file.
    pub(crate) group: Option<String>,
    pub(crate) content: Result<Box<Content>>,
}

/// A subtable that [`Source::open_served`] has not opened. Its file or directory, or that of
/// another table that holds its cells, is not among those that a server may read, as the function
/// `is_served` of the caller decides.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RefusedTable {
    /// Name of the subtable that is not opened: the keywords that lead to it, `ANTENNA` or `A/B`.
    pub name: String,
    /// Index (from 0), in [`Source::tables`], of the parent table: the one with the keyword that
    /// names this subtable.
    pub parent: usize,
    /// Path of this subtable as the keyword of its parent table stores it, such as `././ANTENNA`.
    /// The subtable was not opened, because a server is not permitted to read its files, or those
    /// of a table that holds its cells.
    pub stored: String,
    /// Error that reading this subtable returns. It says that a server may not read the files of
    /// the subtable, or of another table that holds its cells.
    pub error: Error,
}

impl Source {
    /// Opens the source at `path`, recognised by its bytes: a table directory, a file that holds a
    /// whole table, or a native HDF5 file; also one on a web server or in an object store, by its
    /// URL: `https://…`, `http://…`, `s3://BUCKET/KEY`.
    ///
    /// Subtables that cannot be opened keep their error; see [`problems`](Self::problems).
    ///
    /// # Errors
    /// Those of [`Table::open`] for the main table; `Format` if `path` is neither.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, OpenOptions::default())
    }

    /// Opens the source at `path` as [`open`](Self::open) does; `options` tell how long to wait for
    /// locks, and whether a native HDF5 file may have elements in other files.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        Self::open_admitted(path.as_ref(), options, None)
    }

    /// Errors in the records of tables of a native HDF5 file become [damage](Self::damage).
    pub(crate) fn open_to_salvage(path: &Path, options: OpenOptions) -> Result<Self> {
        if remote::is_remote(path) || path.is_file() && native::may_be_native(path)? {
            Self::of_native(path, options, native::open_around_damage)
        } else {
            Self::open_with(path, options)
        }
    }

    /// Opens the source at `path` for a server, without a lock. Other tables that it names, as
    /// subtables or because they hold the cells of its columns, are opened only if `is_served`
    /// accepts their file or directory, links resolved; other subtables are
    /// [refused](Self::refused).
    ///
    /// # Errors
    /// As [`open`](Self::open); `Unsupported` if the cells of a column are in a table that is not
    /// served.
    pub fn open_served(path: impl AsRef<Path>, is_served: &dyn Fn(&Path) -> bool) -> Result<Self> {
        let unlocked = OpenOptions { locking: Locking::None, ..OpenOptions::default() };
        Self::open_admitted(path.as_ref(), unlocked, Some(is_served))
    }

    fn open_admitted(path: &Path, options: OpenOptions, admits: Option<Admits<'_>>) -> Result<Self> {
        let place = Context::path(path);
        if let Some((file, table)) = Self::split_path(path) {
            return Err(Self::refuse_table(file, &table, options));
        }
        if remote::is_remote(path) || path.is_file() && native::is_native(path).context(&place)? {
            let open = |path: &Path, options| Ok((native::open(path, options)?, Vec::new()));
            return Self::of_native(path, options, open);
        }
        let options = OpenOptions { formats: FORMATS, ..options };
        Self::with_subtables(Table::open_admitted(path, options, admits)?, place, options, admits)
    }

    /// A table that is open, and its subtables; `path` is for errors.
    pub(crate) fn of_table(table: Table, path: &Path, options: OpenOptions) -> Result<Self> {
        Self::with_subtables(table, Context::path(path), options, None)
    }

    fn with_subtables(table: Table, place: Context, options: OpenOptions, admits: Option<Admits<'_>>) -> Result<Self> {
        let name = table.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut tables = Vec::new();
        let mut seen = BTreeSet::new();
        let path = canonical(table.path());
        seen.insert(path.clone());
        let content: Result<Box<Content>> = Ok(Box::new(table));
        tables.push(SourceTable {
            name: MAIN_TABLE.into(),
            parent: None,
            is_named: true,
            path: Some(path),
            group: None,
            content,
        });
        let mut opening = Opening { tables, seen, depth: vec![0], refused: Vec::new(), unopened: Vec::new() };
        let (mut next, mut looked_into) = (0, 0);
        loop {
            while next < opening.tables.len() {
                opening.open_subtables(next, options, admits)?;
                next += 1;
            }
            if looked_into == opening.tables.len() {
                break;
            }
            opening.open_unnamed(looked_into, options, admits)?;
            looked_into += 1;
        }
        let Opening { tables, refused, unopened, .. } = opening;
        let (damage, open_columns) = (Vec::new(), OpenColumns::default());
        Ok(Source { name, place, tables, refused, unopened, is_salvaged: false, damage, open_columns, remote: None })
    }

    /// Opens the source at `path`, or the one that `path` leads into: `my.h5/ANTENNA` is a table of
    /// the native HDF5 file `my.h5`. Returns the source, and the index (from 0) in
    /// [`tables`](Self::tables) of the table that `path` names.
    ///
    /// # Errors
    /// As [`open`](Self::open); `NotFound` if the file has no such table.
    pub fn open_table(path: impl AsRef<Path>, options: OpenOptions) -> Result<(Self, usize)> {
        let path = path.as_ref();
        let (file, inside) = if remote::is_remote(path) {
            let (file, inside) = remote::split(path);
            (Some(file).filter(|_| !inside.is_empty()), inside.to_owned())
        } else {
            Self::split_path(path).map_or((None, String::new()), |(file, inside)| (Some(file), inside))
        };
        let Some(file) = file else { return Ok((Self::open_with(path, options)?, 0)) };
        let source = Self::open_with(file, options)?;
        let group = native::table_path(&inside);
        let named = |table: &SourceTable| table.name == inside || table.group.as_ref() == Some(&group);
        let number = source.tables.iter().position(named);
        let number = number.ok_or_else(|| source.no_table(&inside).context(Context::path(file)))?;
        Ok((source, number))
    }

    /// Whether `path` is a native HDF5 file, with datasets for columns; false for a table
    /// directory, a container and a URL.
    ///
    /// # Errors
    /// `Io`, `Format`.
    pub fn is_hdf5(path: &Path) -> Result<bool> {
        Ok(path.is_file() && native::is_native(path).with_context(|| Context::path(path))?)
    }

    /// Whether the source is a live file: a native HDF5 file to which rows are appended, or were
    /// until its writer closed it.
    pub fn is_live(&self) -> bool {
        self.tables.iter().any(|table| table.native().is_some_and(NativeTable::is_live))
    }

    /// Splits a path that leads into a native HDF5 file, such as `my.h5/ANTENNA`: the file `my.h5`,
    /// and the rest `ANTENNA`, which should name a table. `None` for every other path, and for
    /// URLs.
    pub fn split_path(path: &Path) -> Option<(&Path, String)> {
        if remote::is_remote(path) {
            return None;
        }
        let file = path.ancestors().skip(1).find(|ancestor| ancestor.is_file())?;
        let inside = path.strip_prefix(file).ok()?.to_string_lossy().into_owned();
        native::is_native(file).unwrap_or(false).then_some((file, inside))
    }

    /// `my.h5/ANTENNA` names a table where a whole source is expected.
    fn refuse_table(file: &Path, table: &str, options: OpenOptions) -> Error {
        let error = match Self::open_with(file, options) {
            Ok(source) if source.tables.iter().any(|known| display_name(&known.name) == table) => {
                Error::unsupported(format!(
                    "{table} is a table of a native file, which is read as a whole; `h5bridge info {} --table {table}` shows it",
                    file.display()
                ))
            }
            Ok(source) => source.no_table(table),
            Err(error) => return error,
        };
        error.context(Context::path(file))
    }

    fn of_native(
        path: &Path,
        options: OpenOptions,
        open: impl FnOnce(&Path, OpenOptions) -> Result<(Vec<native::NativeEntry>, Vec<Damage>)>,
    ) -> Result<Self> {
        let place = Context::path(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let table = |entry: native::NativeEntry| {
            let native::NativeEntry { name, parent, is_named, group, table } = entry;
            let content = table.map(|table| Box::new(table) as Box<Content>);
            SourceTable { name, parent, is_named, path: None, group: Some(group), content }
        };
        let remote = remote::is_remote(path).then(|| remote::open(path)).transpose().context(&place)?;
        let opened = open(path, options);
        reachable(remote.as_deref()).context(&place)?;
        let (entries, mut damage) = opened?;
        let tables: Vec<_> = entries.into_iter().map(table).collect();
        if let Some(Ok(main)) = tables.first().map(|main| &main.content) {
            damage.extend_from_slice(main.damage());
        }
        let (refused, unopened) = (Vec::new(), Vec::new());
        let open_columns = OpenColumns::default();
        Ok(Source { name, place, tables, refused, unopened, is_salvaged: false, damage, open_columns, remote })
    }

    /// Opens a column for typed reads, named `DATA` in the main table, `ANTENNA/NAME` in a
    /// subtable. Elements of native HDF5 files are read without libhdf5, by several threads, where
    /// they are in chunks.
    ///
    /// ```
    /// use ctds_hdf5::convert::{Source, ToHdf5};
    /// # use ctds_hdf5::{ColumnDesc, NewTable};
    /// # let folder = tempfile::tempdir()?;
    /// # let (my_ms, my_h5) = (folder.path().join("my.ms"), folder.path().join("my.h5"));
    /// # let mut table = NewTable::new().column(ColumnDesc::scalar::<f64>("TIME")).create(&my_ms)?;
    /// # table.add_rows(2)?;
    /// # table.column("TIME")?.put_scalars(0, vec![5e9, 5e9 + 8.])?;
    /// # table.close()?;
    ///
    /// ToHdf5::new(&my_ms).write(&my_h5)?;
    /// let source = Source::open(&my_h5)?;
    /// let times = source.column("TIME")?.rows::<f64>(0..2)?;
    /// assert_eq!(times[[1]], 5e9 + 8.);
    /// # Ok::<(), ctds_hdf5::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if the table or the column does not exist; those of opening the column.
    pub fn column(&self, name: &str) -> Result<Column<'_>> {
        let (table, column) = split_name(name);
        let number = self.tables.iter().position(|other| other.name == table);
        let number = number.ok_or_else(|| self.no_table(table).context(self.place.clone()))?;
        let found = &self.tables[number];
        let columns = found.columns().context(&self.place)?;
        let index = columns.iter().position(|info| info.desc.name == column);
        let missing = || Error::not_found(no_column(column, &found.name, columns)).context(self.place_of(found));
        self.column_at(number, index.ok_or_else(missing)?)
    }

    /// Opens the column with index `column` in [`columns`](SourceTable::columns) of the table with
    /// index `table` in [`tables`](Self::tables), both from 0. The 16 columns of a native HDF5 file
    /// that were used last stay open.
    ///
    /// # Errors
    /// `NotFound` if the source lacks the table or column; those of opening the column.
    pub fn column_at(&self, table: usize, column: usize) -> Result<Column<'_>> {
        let (content, cells) = self.cells_at(table, column)?;
        let place = self.place_of(&self.tables[table]);
        Ok(Column::opened(&content.columns()[column], content.rows(), place, cells))
    }

    /// Fails with `Usage` for the first name that no column has.
    pub(crate) fn check_columns(&self, wanted: &[String]) -> Result<()> {
        let columns = self.tables.iter().filter_map(|table| table.columns().ok()).flatten();
        let names: BTreeSet<_> = columns.map(|info| info.desc.name.to_str_lossy()).collect();
        match wanted.iter().find(|name| !names.contains(name.as_str())) {
            Some(name) => Err(Error::usage(format!("no table has a column {name}{}", instead(name, names)))),
            None => Ok(()),
        }
    }

    /// Size in bytes of the source's file on a web server or in an object store; `None` for local
    /// sources, and if the server does not answer.
    pub fn remote_bytes(&self) -> Option<u64> {
        self.remote.as_ref()?.len().ok()
    }

    /// Returns the error of the server if reading a remote source has failed: `result` may then
    /// report missing or damaged parts.
    pub(crate) fn blame_server<T>(&self, result: Result<T>) -> Result<T> {
        reachable(self.remote.as_deref()).context(&self.place)?;
        result
    }

    /// If [`open_served`](Self::open_served) has refused this subtable, its error.
    fn no_table(&self, name: &str) -> Error {
        match self.refused.iter().find(|refused| refused.name == name) {
            Some(refused) => refused.error.clone(),
            None => Error::not_found(self.no_table_named(name)),
        }
    }

    /// Proposes a similar name or lists the existing ones.
    pub(crate) fn no_table_named(&self, name: &str) -> String {
        let names = self.tables.iter().map(|table| display_name(&table.name));
        format!("no table {name}{}", instead(name, names))
    }

    /// Columns of a native file that were used last stay open.
    pub(crate) fn cells_at(&self, table: usize, column: usize) -> Result<(&Content, Arc<dyn ColumnCells + '_>)> {
        let none =
            || Error::not_found(format!("column {column} of table {table} does not exist")).context(self.place.clone());
        let found = self.tables.get(table).ok_or_else(none)?;
        let content = found.content().context(&self.place)?;
        let info = content.columns().get(column).ok_or_else(none)?;
        let open = || -> Result<Arc<dyn ColumnCells + '_>> {
            match content.as_native().filter(|_| content.inner().is_none()) {
                Some(native) => Ok(self.open_columns.get(table, column, || native.cells(column))?),
                None => Ok(content.cells(column)?.into()),
            }
        };
        let cells = open().with_context(|| Context::column(&info.desc.name)).with_context(|| self.place_of(found))?;
        Ok((content, cells))
    }

    fn place_of(&self, table: &SourceTable) -> Context {
        match (&table.path, table.name.as_str()) {
            (Some(path), _) => Context::path(path),
            (None, MAIN_TABLE) => self.place.clone(),
            (None, name) => Context::Other(format!("{}: table {name}", self.place)),
        }
    }

    /// Index of the table whose rows the view `of` shows, by its place among those that the view
    /// names; `None` for a table outside of the source.
    pub(crate) fn part_of_view(&self, of: usize, place: usize) -> Option<usize> {
        let content = self.tables[of].content().ok()?;
        let found = match content.as_table().map(Table::kind) {
            Some(TableKind::Reference { root }) => Some(root),
            Some(TableKind::Concatenation { parts }) => parts.get(place),
            Some(TableKind::Plain) | None => None,
        };
        if let Some(path) = found.map(|path| canonical(path)) {
            return self.tables.iter().position(|table| table.path.as_ref() == Some(&path));
        }
        let name = content.view()?.tables.into_iter().nth(place)?;
        self.tables.iter().position(|table| table.group.as_ref().is_some_and(|group| name == group.as_bytes()))
    }

    /// Index of the subtable that a keyword of table `of` stores.
    pub(crate) fn find(&self, of: usize, stored: &[u8]) -> Option<usize> {
        let content = self.tables[of].content().ok()?;
        if let Some(group) = content.group(stored) {
            return self.tables.iter().position(|table| table.group.as_deref() == Some(group));
        }
        let path = canonical(&content.as_table()?.resolve(stored));
        self.tables.iter().position(|table| table.path.as_ref() == Some(&path))
    }

    /// The tables of the source, the main one first.
    pub fn tables(&self) -> &[SourceTable] {
        &self.tables
    }

    /// Subtables that [`open_served`](Self::open_served) has not opened, because its caller does
    /// not let their files be read, or those of tables that hold their cells. They are not among
    /// the [tables](Self::tables).
    pub fn refused(&self) -> &[RefusedTable] {
        &self.refused
    }

    /// Name of the table that a native HDF5 file was converted from, as its attribute `source`
    /// records it; `None` for other sources.
    pub fn converted_from(&self) -> Option<String> {
        let attributes = self.tables.first()?.content().ok()?.root_attributes().ok()??;
        let (_, attribute) = attributes.into_iter().find(|(name, _)| name == native::SOURCE)?;
        match attribute.values() {
            Values::String(names) => names.first().map(ToString::to_string),
            _ => None,
        }
    }

    /// Sentences about unreadable tables that no keyword names, and files that belong to no table.
    pub(crate) fn left_outside(&self) -> Vec<String> {
        let mut said: Vec<String> = self
            .unopened
            .iter()
            .map(|(name, error)| format!("table {name}, which no keyword names, is left out: {error}"))
            .collect();
        let mut others = Vec::new();
        for (number, table) in self.tables.iter().enumerate() {
            let Some(opened) = table.content.as_ref().ok().and_then(|content| content.as_table()) else { continue };
            let holds_tables = |path: &Path| {
                let path = canonical(path);
                self.tables.iter().any(|other| other.path.as_ref().is_some_and(|other| other.starts_with(&path)))
            };
            let names = opened.others_inside().into_iter().filter(|name| !holds_tables(&opened.path().join(name)));
            let place = if number == 0 { String::new() } else { format!("{}/", table.name) };
            others.extend(names.map(|name| format!("{place}{name}")));
        }
        if !others.is_empty() {
            let more = if others.len() > MOST_LISTED { " …" } else { "" };
            let listed = others[..others.len().min(MOST_LISTED)].join(", ");
            said.push(format!(
                "files that belong to no table are left out: {}: {listed}{more}; `h5bridge pack` and `to-hdf5 --restorable` keep them",
                others.len()
            ));
        }
        said
    }

    /// The names of subtables that keywords name but that cannot be opened, each with the error of
    /// opening it.
    pub fn problems(&self) -> impl Iterator<Item = (&str, &Error)> {
        self.tables.iter().filter_map(|table| Some((table.name.as_str(), table.content.as_ref().err()?)))
    }
}

struct Opening {
    tables: Vec<SourceTable>,
    /// Paths of all tables that were met.
    seen: BTreeSet<PathBuf>,
    /// Depth of each table below the main table.
    depth: Vec<usize>,
    refused: Vec<RefusedTable>,
    unopened: Vec<(String, Error)>,
}

impl Opening {
    fn open_subtables(&mut self, parent: usize, options: OpenOptions, admits: Option<Admits<'_>>) -> Result<()> {
        for subtable in self.table(parent).map(Table::subtables).unwrap_or_default() {
            // a table named twice, or one that contains itself, is taken once
            let Some(path) = self.met(&subtable) else { continue };
            let name = self.place(parent, &subtable)?;
            let content = subtable.open_admitted(options, admits).map(|table| Box::new(table) as Box<Content>);
            if let Err(error) = &content
                && error.leads_elsewhere()
            {
                let stored = subtable.stored.to_str_lossy().into_owned();
                self.refused.push(RefusedTable { name, parent, stored, error: error.clone() });
                // each keyword that names it is answered
                self.seen.remove(&path);
                continue;
            }
            self.add(SourceTable {
                name,
                parent: Some(parent),
                is_named: true,
                path: Some(path),
                group: None,
                content,
            });
        }
        Ok(())
    }

    /// Opens tables without keyword, such as the ephemerides of FIELD; a damaged one is left out.
    fn open_unnamed(&mut self, parent: usize, options: OpenOptions, admits: Option<Admits<'_>>) -> Result<()> {
        let inside = self.table(parent).map(Table::tables_inside).unwrap_or_default();
        if !inside.is_empty() {
            self.meet_tables_of_values(parent);
        }
        for subtable in inside {
            let Some(path) = self.met(&subtable) else { continue };
            let name = self.place(parent, &subtable)?;
            match subtable.open_admitted(options, admits) {
                Ok(table) => {
                    let content: Result<Box<Content>> = Ok(Box::new(table));
                    let (parent, path) = (Some(parent), Some(path));
                    self.add(SourceTable { name, parent, is_named: false, path, group: None, content });
                }
                Err(error) if error.kind() == ErrorKind::Locked => return Err(error),
                Err(error) => self.unopened.push((name, error)),
            }
        }
        Ok(())
    }

    /// Counts as met the tables that hold rows or cells of a table. They are not subtables, also
    /// where `pack --follow-references` has put them into its directory.
    fn meet_tables_of_values(&mut self, number: usize) {
        let mut pending = self.table(number).map(Table::tables_of_values).unwrap_or_default();
        let unlocked = OpenOptions { locking: Locking::None, formats: FORMATS, ..OpenOptions::default() };
        while let Some(path) = pending.pop() {
            if self.seen.insert(canonical(&path))
                && let Ok(table) = Table::open_with(&path, unlocked)
            {
                pending.extend(table.tables_of_values());
            }
        }
    }

    fn table(&self, number: usize) -> Option<&Table> {
        self.tables[number].content.as_ref().ok().and_then(|content| content.as_table())
    }

    /// The path of a subtable; `None` if it has been met before.
    fn met(&mut self, subtable: &Subtable) -> Option<PathBuf> {
        let path = canonical(subtable.paths.first()?);
        self.seen.insert(path.clone()).then_some(path)
    }

    fn place(&self, parent: usize, subtable: &Subtable) -> Result<String> {
        limits::depth(self.depth[parent] + 1, "subtables")?;
        let own = subtable.name.to_str_lossy();
        let wanted = match self.tables[parent].name.as_str() {
            MAIN_TABLE => own.into_owned(),
            above => format!("{above}/{own}"),
        };
        Ok(unique(&wanted, |name| self.tables.iter().any(|other| other.name == name)))
    }

    fn add(&mut self, table: SourceTable) {
        let above = table.parent.map_or(0, |parent| self.depth[parent]);
        self.tables.push(table);
        self.depth.push(above + 1);
    }
}

/// Proposes a similar name or lists the existing ones.
pub(crate) fn no_column(name: &str, table: &str, columns: &[ColumnInfo]) -> String {
    let names = columns.iter().map(|info| info.desc.name.to_str_lossy());
    format!("no column {name} in {}{}", display_name(table), instead(name, names))
}

/// Fails if an earlier read of the remote file failed, since all later ones return the same error.
fn reachable(remote: Option<&dyn ReadAt>) -> Result<()> {
    remote.map_or(Ok(()), |file| file.read_at(0, &mut [0]))
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

impl SourceTable {
    pub(crate) fn native(&self) -> Option<&NativeTable> {
        self.content.as_ref().ok().and_then(|content| content.as_native())
    }

    /// The index (from 0) in [`Source::tables`] of the table that names this one; `None` for the
    /// main table.
    pub fn parent(&self) -> Option<usize> {
        self.parent
    }

    /// The keywords of the table; those that name subtables are among them.
    ///
    /// # Errors
    /// That of opening the table.
    pub fn keywords(&self) -> Result<&Record> {
        Ok(self.content()?.keywords())
    }

    /// Number of rows of the table.
    ///
    /// # Errors
    /// That of opening the table.
    pub fn rows(&self) -> Result<u64> {
        Ok(self.content()?.rows())
    }

    /// Description, fixed shape and data manager of each column, in the order of the table
    /// description.
    ///
    /// # Errors
    /// That of opening the table.
    pub fn columns(&self) -> Result<&[ColumnInfo]> {
        Ok(self.content()?.columns())
    }

    /// Type, subtype and readme of the table, as in `table.info`.
    ///
    /// # Errors
    /// That of opening the table.
    pub fn info(&self) -> Result<&TableInfo> {
        Ok(self.content()?.info())
    }

    /// The error that reading a column, by its number from 0, would return, as far as it is known
    /// without opening the column. In a casacore table, the data manager is not supported or its
    /// files are damaged; in a native HDF5 file, the column was not converted. `None` if no error
    /// is known.
    pub fn unreadable(&self, column: usize) -> Option<Error> {
        self.content().map_or_else(Some, |content| content.unreadable(column))
    }

    /// The storage manager or engine of a column, by the column's number from 0, and for an engine
    /// the columns from which it computes the values, as `COLUMN in MANAGER`, down to one in a
    /// storage manager.
    ///
    /// # Errors
    /// That of opening the table.
    pub fn engine_chain(&self, column: usize) -> Result<Vec<String>> {
        let columns = self.columns()?;
        let column = &columns[column];
        let mut chain = vec![column.manager.to_string().trim_end().to_owned()];
        let mut next = column.stored_column();
        while let Some(name) = next
            && chain.len() <= columns.len()
            && let Some(stored) = columns.iter().find(|stored| stored.desc.name == name)
        {
            chain.push(format!("{name} in {}", stored.manager.to_string().trim_end()));
            next = stored.stored_column();
        }
        Ok(chain)
    }

    /// How the datasets of a column are stored, by the column's number from 0; empty if the table
    /// is not in an HDF5 file.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn storage(&self, column: usize) -> Result<Vec<DatasetInfo>> {
        self.content()?.storage(column)
    }

    /// Whether columns of the table are stored by the axes of MSv4: that of a native HDF5 file made
    /// by [`Schema::Msv4`](crate::convert::Schema::Msv4).
    pub fn is_by_msv4(&self) -> bool {
        let native = self.native();
        native.is_some_and(|native| !native.grid_paths().is_empty())
    }

    /// The casacore table, if the source is a table directory or a container; `None` for a native
    /// HDF5 file.
    ///
    /// # Errors
    /// That of opening the table.
    pub fn table(&self) -> Result<Option<&Table>> {
        Ok(self.content()?.as_table())
    }

    /// The names of the files of a column's data manager, and how the container stores each, by the
    /// column's number from 0; empty if they are not in a container.
    ///
    /// # Errors
    /// That of opening the table; those of reading the container.
    pub fn stored_files(&self, column: usize) -> Result<Vec<(String, FileLayout)>> {
        self.table()?.map_or(Ok(Vec::new()), |table| table.stored_files(column))
    }

    /// The hypercubes of a column of a casacore table, by the column's number from 0: the shape of
    /// each hypercube and of its tiles, fastest axis first, rows last; empty if the column is not
    /// tiled or cannot be read.
    pub fn hypercubes(&self, column: usize) -> Vec<(Shape, Shape)> {
        let cubes = || -> Option<Vec<_>> {
            let cells = self.content.as_ref().ok()?.cells(column).ok()?;
            let tiling = cells.tiling(MAX_CUBES)?;
            let grids = tiling.cubes.iter().map(|cube| cube.grid());
            Some(grids.map(|grid| (grid.shape.clone(), grid.chunk.clone())).collect())
        };
        cubes().unwrap_or_default()
    }

    pub(crate) fn content(&self) -> Result<&Content> {
        match &self.content {
            Ok(content) => Ok(&**content),
            Err(error) if self.name == MAIN_TABLE => Err(error.clone()),
            Err(error) => Err(error.clone()).with_context(|| Context::Subtable(self.name.clone())),
        }
    }
}
