//! Writes a new table: its rows, cells, columns, keywords and subtables.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use super::column_mut::ColumnMut;
use super::create::{ManagerSpec, NewTable, check_column, column_info, unique_name};
use super::{ColumnInfo, TableDesc};
use crate::container::{ContainerMut, Directory};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::schema::{
    Body, ColumnBinding, ColumnDesc, ColumnKind, ColumnSet, Counters, DEFAULT_BLOCK_BYTES, ManagerEntry, StorageOption,
    Sync, TableDat, TableInfo,
};
use crate::stman::{self, ColumnSpec, CreateArgs, ManagerMut};
use crate::suggest::instead;
use crate::value::{ByteOrder, Record, Value};

/// A new casacore table, open for writing.
///
/// Others may read the table after [`close`](Self::close); a writer that is dropped before, or a
/// process that is killed, leaves a directory that no program takes for a table.
///
/// ```
/// use ctds::{ColumnDesc, NewTable, Table};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("my.tab");
/// let mut table = NewTable::new().column(ColumnDesc::scalar::<f64>("TIME")).create(&path)?;
/// table.add_rows(3)?;
/// table.column("TIME")?.put_scalars(0, vec![4.5e9, 4.6e9, 4.7e9])?;
/// table.close()?;
/// assert_eq!(Table::open(&path)?.column("TIME")?.scalar::<f64>(2)?, 4.7e9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TableWriter {
    path: PathBuf,
    files: Arc<dyn ContainerMut>,
    order: ByteOrder,
    /// Without the columns.
    desc: TableDesc,
    info: TableInfo,
    rows: u64,
    columns: Vec<WriterColumn>,
    managers: Vec<WriterManager>,
    /// Sequence number of the next data manager.
    counter: u32,
}

#[derive(Debug)]
struct WriterColumn {
    info: ColumnInfo,
    original_name: BString,
    sequence: u32,
    index: usize,
}

#[derive(Debug)]
struct WriterManager {
    type_name: BString,
    name: BString,
    sequence: u32,
    manager: Box<dyn ManagerMut>,
}

impl TableWriter {
    /// The directory at `path` exists and is empty.
    pub(super) fn new(
        path: PathBuf,
        files: Arc<dyn ContainerMut>,
        table: NewTable,
        managers: Vec<(ManagerSpec, Vec<usize>)>,
    ) -> Result<Self> {
        let mut writer = TableWriter {
            path,
            files,
            order: table.order,
            desc: table.desc,
            info: table.info,
            rows: 0,
            columns: Vec::new(),
            managers: Vec::new(),
            counter: 0,
        };
        let mut bindings = vec![(0, 0); table.columns.len()];
        let mut infos = table.columns;
        for (spec, columns) in managers {
            let specs: Vec<ColumnSpec> = columns.iter().map(|&column| infos[column].spec()).collect();
            let sequence = writer.add_manager(&spec, &specs)?;
            for (index, column) in columns.into_iter().enumerate() {
                bindings[column] = (sequence, index);
                (infos[column].manager, infos[column].manager_name) = (spec.type_name.clone(), spec.name.clone());
            }
        }
        for (info, (sequence, index)) in infos.into_iter().zip(bindings) {
            writer.columns.push(WriterColumn { original_name: info.desc.name.clone(), info, sequence, index });
        }
        Ok(writer)
    }

    /// The manager gets all rows of the table; returns its sequence number.
    fn add_manager(&mut self, spec: &ManagerSpec, columns: &[ColumnSpec]) -> Result<u32> {
        let args = CreateArgs {
            name: spec.name.as_bstr(),
            files: self.files.clone(),
            sequence: self.counter,
            order: self.order,
            columns,
            parameters: &spec.parameters,
            private_keywords: &self.desc.private_keywords,
        };
        let place = || format!("data manager {} ({})", spec.name.as_bstr(), spec.type_name.as_bstr());
        let mut manager = stman::create(spec.type_name.as_bstr(), &args).with_context(place)?;
        if self.rows > 0 {
            manager.add_rows(self.rows).with_context(place)?;
        }
        let (type_name, name) = (spec.type_name.clone(), spec.name.clone());
        self.managers.push(WriterManager { type_name, name, sequence: self.counter, manager });
        self.counter += 1;
        Ok(self.counter - 1)
    }

    /// Absolute path at which the table is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of rows that the table has by now.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Description, fixed shape and manager of each column, in the order in which they were added
    /// to the table.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = &ColumnInfo> {
        self.columns.iter().map(|column| &column.info)
    }

    /// Keywords of the table, to be changed; they are stored when the table is closed.
    pub fn keywords(&mut self) -> &mut Record {
        &mut self.desc.keywords
    }

    /// Type, subtype and readme of the table, to be changed; they are stored when the table is
    /// closed.
    pub fn info(&mut self) -> &mut TableInfo {
        &mut self.info
    }

    /// Adds `count` rows at the end of the table: their scalars and arrays of fixed shape are
    /// zeros, other cells undefined.
    ///
    /// # Errors
    /// `Io`, `NoSpace`; the table is of no use then.
    pub fn add_rows(&mut self, count: u64) -> Result<()> {
        if self.rows.checked_add(count).is_none_or(|rows| rows > i64::MAX as u64) {
            return Err(Error::limit(format!("{count} rows cannot be added to {}: the limit is 2^63 - 1", self.rows))
                .context(Context::path(&self.path)));
        }
        for manager in &mut self.managers {
            manager.manager.add_rows(count).with_context(|| Context::path(&self.path))?;
        }
        self.rows += count;
        Ok(())
    }

    /// Removes the row with this number, from 0; later rows move up by one.
    ///
    /// # Errors
    /// `Usage` if the row does not exist; `Unsupported` if one of the managers cannot remove rows,
    /// as casacore's tiled ones cannot: nothing is removed then.
    pub fn remove_row(&mut self, row: u64) -> Result<()> {
        let mut remove = || -> Result<()> {
            if row >= self.rows {
                return Err(Error::usage(format!("row {row} does not exist, the table has {} rows", self.rows)));
            }
            if let Some(fixed) = self.managers.iter().find(|manager| !manager.manager.can_remove_rows()) {
                let message = format!("data manager {} ({}) cannot remove rows", fixed.name, fixed.type_name);
                return Err(Error::unsupported(message));
            }
            self.managers.iter_mut().try_for_each(|manager| manager.manager.remove_row(row))?;
            self.rows -= 1;
            Ok(())
        };
        remove().with_context(|| Context::path(&self.path))
    }

    /// Adds a column to the table. The existing data manager with the type and name of `manager`
    /// (`None`: the first StandardStMan) stores the column; if none exists or it refuses the
    /// column, a new manager does.
    ///
    /// # Errors
    /// `Exists` if there is a column of this name; those of [`NewTable::create`].
    pub fn add_column(&mut self, desc: ColumnDesc, manager: Option<ManagerSpec>) -> Result<()> {
        let path = self.path.display().to_string();
        self.try_add_column(desc, manager).context(path)
    }

    fn try_add_column(&mut self, desc: ColumnDesc, manager: Option<ManagerSpec>) -> Result<()> {
        let mut info = column_info(desc);
        let known: Vec<ColumnInfo> = self.columns().cloned().collect();
        check_column(&info, &known)?;
        let spec = info.spec();
        let taking = self.managers.iter_mut().find(|other| match &manager {
            Some(manager) => other.type_name == manager.type_name && other.name == manager.name,
            None => other.type_name == "StandardStMan",
        });
        let added = match taking {
            Some(taking) => match taking.manager.add_column(&spec) {
                Ok(()) => Some(taking.sequence),
                Err(error) if error.kind() == ErrorKind::Unsupported => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        let sequence = match added {
            Some(sequence) => sequence,
            None => {
                let mut manager = manager.unwrap_or_else(|| ManagerSpec::standard("StandardStMan"));
                let taken = self.managers.iter().map(|other| &other.name);
                manager.name = unique_name(&manager.name.to_str_lossy(), taken).into();
                self.add_manager(&manager, &[spec])?
            }
        };
        let index = self.columns.iter().filter(|column| column.sequence == sequence).count();
        if let Some(manager) = self.managers.iter().find(|manager| manager.sequence == sequence) {
            (info.manager, info.manager_name) = (manager.type_name.clone(), manager.name.clone());
        }
        self.columns.push(WriterColumn { original_name: info.desc.name.clone(), info, sequence, index });
        Ok(())
    }

    /// Removes a column, and its data manager if the manager has no other columns.
    ///
    /// # Errors
    /// `NotFound` if there is none of this name; `Unsupported` if its manager holds others and
    /// cannot let go of one, as casacore's tiled ones cannot.
    pub fn remove_column(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        let name = name.as_ref().as_bstr();
        let found = self.find(name)?;
        let path = self.path.display().to_string();
        let WriterColumn { sequence, index, .. } = self.columns[found];
        if self.columns.iter().filter(|column| column.sequence == sequence).count() > 1 {
            let manager = find_manager(&mut self.managers, sequence);
            manager.manager.remove_column(index).with_context(|| Context::column(name)).context(path)?;
        } else {
            self.managers.retain(|manager| manager.sequence != sequence);
            self.remove_files(sequence).context(path)?;
        }
        self.columns.remove(found);
        for column in self.columns.iter_mut().filter(|column| column.sequence == sequence && column.index > index) {
            column.index -= 1;
        }
        Ok(())
    }

    /// `table.f<sequence>`, `table.f<sequence>i`, `table.f<sequence>_TSM0` …
    fn remove_files(&self, sequence: u32) -> Result<()> {
        let prefix = format!("table.f{sequence}");
        let is_theirs = |name: &String| {
            name.strip_prefix(&prefix).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        self.files.names()?.iter().filter(|name| is_theirs(name)).try_for_each(|name| self.files.remove(name))
    }

    /// The column `name` of the table, for writing its cells and keywords.
    ///
    /// # Errors
    /// `NotFound` if there is none of this name.
    pub fn column(&mut self, name: impl AsRef<[u8]>) -> Result<ColumnMut<'_>> {
        let found = self.find(name.as_ref().as_bstr())?;
        Ok(self.column_at(found))
    }

    fn column_at(&mut self, column: usize) -> ColumnMut<'_> {
        let column = &mut self.columns[column];
        let manager = find_manager(&mut self.managers, column.sequence);
        ColumnMut::new(&self.path, &mut column.info, self.rows, &mut *manager.manager, column.index)
    }

    fn find(&self, name: &BStr) -> Result<usize> {
        let found = self.columns.iter().position(|column| column.info.desc.name == name);
        found.ok_or_else(|| {
            let names = self.columns.iter().map(|column| column.info.desc.name.to_str_lossy());
            let message = format!("no column {name}{}", instead(&name.to_str_lossy(), names));
            Error::not_found(message).context(Context::path(&self.path))
        })
    }

    /// Begins the subtable `name` in the directory of this table, and adds a keyword `name` that
    /// refers to it. Close the subtable before this table.
    ///
    /// # Errors
    /// Those of [`NewTable::create`]; `Usage` if the name cannot be that of a directory.
    pub fn subtable(&mut self, name: &str, table: NewTable) -> Result<TableWriter> {
        if name.is_empty() || name.contains(['/', '\0']) || matches!(name, "." | "..") || name.starts_with("table.") {
            let message = format!("a subtable cannot be named {name:?}");
            return Err(Error::usage(message).context(Context::path(&self.path)));
        }
        let subtable = table.create(self.path.join(name))?;
        self.desc.keywords.set(name, Value::Table(format!("././{name}").into()));
        Ok(subtable)
    }

    /// One for each data manager, so that a thread can write each.
    #[doc(hidden)]
    pub fn parts(&mut self) -> Vec<Part<'_>> {
        let mut parts: Vec<Part<'_>> = Vec::new();
        let (path, rows) = (self.path.as_path(), self.rows);
        for WriterManager { sequence, manager, .. } in &mut self.managers {
            parts.push(Part { path, rows, sequence: *sequence, manager: &mut **manager, columns: Vec::new() });
        }
        for (number, column) in self.columns.iter_mut().enumerate() {
            if let Some(part) = parts.iter_mut().find(|part| part.sequence == column.sequence) {
                part.columns.push((number, column.index, &mut column.info));
            }
        }
        parts
    }

    /// Writes all data that is still in memory, makes the files durable, and writes `table.dat`, by
    /// which the directory becomes a table.
    ///
    /// # Errors
    /// `Io`, `NoSpace`; the directory is not a table then.
    pub fn close(mut self) -> Result<()> {
        let place = Context::path(&self.path);
        let mut close = || -> Result<()> {
            let dat = self.write_all()?;
            for name in self.files.names()? {
                self.files.edit(&name)?.sync()?;
            }
            self.files.commit()?;
            self.publish(&dat, true)
        };
        close().context(place)
    }

    /// As [`close`](Self::close), but the caller has to make the files durable.
    #[doc(hidden)]
    pub fn finish(mut self) -> Result<()> {
        let place = Context::path(&self.path);
        let dat = self.write_all().context(&place)?;
        self.publish(&dat, false).context(place)
    }

    /// All files but `table.dat`, whose bytes are returned.
    fn write_all(&mut self) -> Result<Vec<u8>> {
        let mut managers = Vec::new();
        for WriterManager { type_name, name, sequence, manager } in &mut self.managers {
            let info = manager.flush().with_context(|| format!("data manager {name} ({type_name})"))?;
            managers.push(ManagerEntry { type_name: type_name.clone(), sequence: *sequence, info });
        }
        let counters =
            Counters { columns: self.columns.len() as u32, table: 1, managers: managers.iter().map(|_| 1).collect() };
        let sync = Sync { rows: self.rows, modify: 1, counters: Some(counters) };
        let mut desc = self.desc.clone();
        desc.columns = self.columns().map(|info| info.desc.clone()).collect();
        let binding = |column: &WriterColumn| ColumnBinding {
            original_name: column.original_name.clone(),
            sequence: column.sequence,
            shape: column.info.shape.clone().filter(|_| column.info.desc.kind == ColumnKind::Array),
            bytes: 0..0,
        };
        let set = ColumnSet {
            rows: self.rows,
            storage: StorageOption::SepFile,
            block_bytes: Some(DEFAULT_BLOCK_BYTES),
            // where it lies in table.dat shows when that is read
            head: 0..0,
            counter: self.counter,
            managers,
            columns: self.columns.iter().map(binding).collect(),
        };
        let dat = TableDat { rows: self.rows, order: self.order, body: Body::Plain(Box::new((desc, set))) };
        let directory = Directory::new(&self.path);
        for (name, bytes) in [("table.info", self.info.encode()), ("table.lock", sync.encode_file())] {
            directory.create(name)?.write_at(0, &bytes)?;
        }
        dat.encode()
    }

    /// Writes `table.dat`, which makes the directory a table, and if `durable` waits for the disk.
    fn publish(&self, dat: &[u8], durable: bool) -> Result<()> {
        let directory = Directory::new(&self.path);
        let file = directory.create("table.dat_tmp")?;
        file.write_at(0, dat)?;
        if durable {
            file.sync()?;
        }
        fs::rename(self.path.join("table.dat_tmp"), self.path.join("table.dat"))
            .context(Context::member("table.dat"))?;
        if durable { directory.commit() } else { Ok(()) }
    }
}

/// A data manager with its columns, for one thread.
pub struct Part<'a> {
    path: &'a Path,
    rows: u64,
    sequence: u32,
    manager: &'a mut dyn ManagerMut,
    /// Number in the table, number in the manager, and description of each column.
    columns: Vec<(usize, usize, &'a mut ColumnInfo)>,
}

impl Part<'_> {
    /// Numbers in the table.
    pub fn columns(&self) -> Vec<usize> {
        self.columns.iter().map(|(number, ..)| *number).collect()
    }

    /// The column at index `nth` of [`columns`](Self::columns).
    pub fn column(&mut self, nth: usize) -> ColumnMut<'_> {
        let (_, index, info) = &mut self.columns[nth];
        ColumnMut::new(self.path, info, self.rows, self.manager, *index)
    }
}

fn find_manager(managers: &mut [WriterManager], sequence: u32) -> &mut WriterManager {
    let found = managers.iter_mut().find(|manager| manager.sequence == sequence);
    found.expect("every column has a manager")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;
    use crate::value::{Shape, Values};

    /// A scalar in a StandardStMan, arrays in tiles.
    fn new_table() -> NewTable {
        NewTable::new()
            .column(ColumnDesc::scalar::<i32>("A"))
            .column(ColumnDesc::array::<f32>("D").fixed_shape(Shape::from([3])))
            .bind(ManagerSpec::tiled_column("tiles", &Shape::from([3, 8])), ["D"])
    }

    #[test]
    fn nothing_is_a_table_before_it_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.tab");
        let mut table = new_table().create(&path).unwrap();
        table.add_rows(4).unwrap();
        drop(table);
        assert_eq!(Table::open(&path).unwrap_err().kind(), ErrorKind::Format);
        assert_eq!(new_table().create(&path).unwrap_err().kind(), ErrorKind::Exists);

        let path = directory.path().join("y.tab");
        new_table().create(&path).unwrap().close().unwrap();
        assert_eq!(Table::open(&path).unwrap().rows(), 0);
        assert!(!path.join("table.dat_tmp").exists());
    }

    #[test]
    fn a_row_is_removed_from_all_managers_or_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.tab");
        let mut table = new_table().create(&path).unwrap();
        table.add_rows(4).unwrap();
        table.column("A").unwrap().put_scalars(0, vec![0, 1, 2, 3]).unwrap();
        let error = table.remove_row(1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("tiles (TiledColumnStMan) cannot remove rows"), "{error}");
        assert_eq!(table.remove_row(4).unwrap_err().kind(), ErrorKind::Usage);
        table.remove_column("D").unwrap();
        assert!(!path.join("table.f0").exists() && !path.join("table.f0_TSM0").exists());
        table.remove_row(1).unwrap();
        table.close().unwrap();
        let table = Table::open(&path).unwrap();
        assert_eq!(table.column("A").unwrap().rows::<i32>(0..3).unwrap().into_raw_vec_and_offset().0, [0, 2, 3]);
    }

    #[test]
    fn columns_that_a_manager_cannot_take_get_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.tab");
        let mut table = new_table().create(&path).unwrap();
        table.add_rows(2).unwrap();
        table.add_column(ColumnDesc::scalar::<i32>("B"), None).unwrap();
        let tiles = ManagerSpec::tiled_column("tiles", &Shape::from([3, 8]));
        let desc = ColumnDesc::array::<f32>("E").fixed_shape(Shape::from([3]));
        table.add_column(desc, Some(tiles)).unwrap();
        assert_eq!(table.add_column(ColumnDesc::scalar::<f32>("B"), None).unwrap_err().kind(), ErrorKind::Exists);
        let shape = Shape::from([3]);
        table.column("E").unwrap().put_values(1..2, &shape, &Values::Float(vec![1., 2., 3.])).unwrap();
        table.close().unwrap();
        let table = Table::open(&path).unwrap();
        let managers: Vec<_> = table.managers().map(|manager| manager.name.to_string()).collect();
        assert_eq!(managers, ["tiles", "StandardStMan", "tiles_1"]);
        assert_eq!(table.columns()[2].manager_name, "StandardStMan");
        assert_eq!(table.column("E").unwrap().cell::<f32>(1).unwrap().as_slice(), Some([1., 2., 3.].as_slice()));
    }

    /// Casacore compares the counters to see whether a table has changed.
    #[test]
    fn counters_are_those_of_a_new_table() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.tab");
        let mut table = new_table().create(&path).unwrap();
        table.add_rows(4).unwrap();
        table.close().unwrap();
        let sync = Sync::read(&fs::read(path.join("table.lock")).unwrap()).unwrap();
        let counters = Counters { columns: 2, table: 1, managers: vec![1, 1] };
        assert_eq!(sync, Some(Sync { rows: 4, modify: 1, counters: Some(counters) }));
        let dat = TableDat::decode(&fs::read(path.join("table.dat")).unwrap()).unwrap();
        let Body::Plain(plain) = dat.body else { panic!("a plain table") };
        assert_eq!(plain.1.counter, 2);
    }

    #[test]
    fn files_of_other_managers_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.tab");
        let table = (0..11).fold(NewTable::new(), |table, number| {
            let name = format!("C{number}");
            table
                .column(ColumnDesc::scalar::<i32>(name.as_str()))
                .bind(ManagerSpec::standard(name.as_str()), [name.as_str()])
        });
        let mut table = table.create(&path).unwrap();
        table.remove_column("C1").unwrap();
        assert!(!path.join("table.f1").exists() && path.join("table.f10").exists());
        table.close().unwrap();
        assert_eq!(Table::open(&path).unwrap().columns().len(), 10);
    }

    #[test]
    fn managers_have_names_of_their_own_and_columns() {
        let directory = tempfile::tempdir().unwrap();
        let columns = || NewTable::new().column(ColumnDesc::scalar::<i32>("A")).column(ColumnDesc::scalar::<i32>("B"));
        let twice = columns().bind(ManagerSpec::standard("x"), ["A"]).bind(ManagerSpec::incremental("x"), ["B"]);
        assert_eq!(twice.create(directory.path().join("x.tab")).unwrap_err().kind(), ErrorKind::Usage);
        let path = directory.path().join("y.tab");
        let none: [&str; 0] = [];
        columns().bind(ManagerSpec::incremental("empty"), none).create(&path).unwrap().close().unwrap();
        assert_eq!(Table::open(&path).unwrap().managers().count(), 1);
    }

    #[test]
    fn strings_are_no_longer_than_described() {
        let directory = tempfile::tempdir().unwrap();
        let mut desc = ColumnDesc::scalar::<BString>("S");
        desc.max_length = 3;
        let mut table = NewTable::new().column(desc).create(directory.path().join("x.tab")).unwrap();
        table.add_rows(1).unwrap();
        let mut put = |text: &str| table.column("S")?.put_scalar(0, BString::from(text));
        assert!(put("abc").is_ok());
        assert!(put("abcd").unwrap_err().to_string().contains("the longest of this column has 3"));
    }
}
