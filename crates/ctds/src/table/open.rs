//! Opens a table for reading: finds its container, acquires its lock, decodes `table.dat` and opens
//! its data managers.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::open_chain::{Admits, OpenChain};
use super::open_managers::{Files, OpenManagers};
use super::{OpenOptions, ReadLock, Table, TableKind, view};
use crate::container::{self, Container, Directory};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::io::{ReadAt, read_all};
use crate::lfs;
use crate::schema::{Body, ColumnSet, StorageOption, Sync, TableDat, TableDesc, TableInfo};
use crate::suggest::instead;
use crate::thin;
use crate::value::ByteOrder;

/// Other tables that hold some of the values are opened only if `admits` allows it.
pub(super) fn open(path: &Path, options: OpenOptions, admits: Option<Admits<'_>>) -> Result<Table> {
    let opened = Cell::new(0);
    open_last(path, &OpenChain::new(path, options, admits, &opened))
}

/// Opens the table at `path`, from which the last table of `chain` takes values.
pub(super) fn open_next(path: &Path, chain: &OpenChain<'_>) -> Result<Table> {
    let chain = chain.then(path).map_err(|error| error.context(Context::path(path)))?;
    open_last(path, &chain)
}

fn open_last(path: &Path, chain: &OpenChain<'_>) -> Result<Table> {
    open_at(path, chain).map_err(|error| error.context(Context::path(path)))
}

fn open_at(path: &Path, chain: &OpenChain<'_>) -> Result<Table> {
    // stored names are relative to the absolute path, in which symbolic links stay
    let path = std::path::absolute(path)?;
    thin::check(&path, chain.options.formats.check_thin)?;
    let files = container::locate(&path, chain.options.formats)?;
    // before anything is read, so that all of it belongs together
    let lock = ReadLock::take(&path, chain.options)?.map(Arc::new);
    open_files(path, files, lock, chain)
}

/// Opens the table in `directory` as if it were at `path`, to which the names of other tables are
/// relative. Its lock is not acquired.
pub(super) fn open_as(directory: &Path, path: &Path, options: OpenOptions) -> Result<Table> {
    let files: Arc<dyn Container> = Arc::new(Directory::new(directory));
    let opened = Cell::new(0);
    let open = || {
        let chain = OpenChain::new(path, options, None, &opened);
        open_files(path.to_owned(), files.clone(), None, &chain)
    };
    let table = open().map_err(|error| error.context(Context::path(path)))?;
    // another table may be at `path` now
    Ok(Table { home: Some(files), ..table })
}

#[cfg(any(test, feature = "internals"))]
pub(super) fn open_container(files: Arc<dyn Container>) -> Result<Table> {
    let (opened, path) = (Cell::new(0), PathBuf::from("/nowhere/t.tab"));
    let chain = OpenChain::new(&path, OpenOptions::default(), None, &opened);
    open_files(path.clone(), files, None, &chain)
}

fn open_files(
    path: PathBuf,
    files: Arc<dyn Container>,
    lock: Option<Arc<ReadLock>>,
    chain: &OpenChain<'_>,
) -> Result<Table> {
    let dat = open_table_dat(&*files, &path)?;
    for name in ["table.dat", "table.info", "table.lock"] {
        files.path(name).map_or(Ok(()), |path| lfs::check(&path))?;
    }
    let info = read_info(&*files)?;
    let decoded = TableDat::decode(&dat).context(Context::member("table.dat"))?;
    match decoded.body {
        Body::Plain(plain) => {
            let rows = locked_rows(&*files)?.unwrap_or(decoded.rows);
            let (desc, set) = *plain;
            open_plain(PlainTable { path, files, lock, info, rows, order: decoded.order, desc, set }, chain)
        }
        Body::Reference(body) => view::open_reference(&path, dat, body, info, chain),
        Body::Concatenation(body) => view::open_concatenation(&path, body, info, chain),
    }
}

/// A table before its data managers are opened.
struct PlainTable {
    path: PathBuf,
    files: Arc<dyn Container>,
    lock: Option<Arc<ReadLock>>,
    info: TableInfo,
    rows: u64,
    order: ByteOrder,
    desc: TableDesc,
    set: ColumnSet,
}

fn open_plain(plain: PlainTable, chain: &OpenChain<'_>) -> Result<Table> {
    let PlainTable { path, files, lock, info, rows, order, desc, set } = plain;
    let format = chain.options.formats.of_option(set.storage.code());
    if format.is_none() && set.storage != StorageOption::SepFile {
        let message =
            "the files of the table are in a container that is read by the crate ctds-hdf5: ctds_hdf5::open_table";
        return Err(Error::unsupported(message));
    }
    let packed = container::of_table(&*files, format)?;
    let managed = Files { plain: &*files, packed: packed.as_deref() };
    let (columns, bindings, managers) = OpenManagers::new(&path, managed, rows, order, &desc, &set, chain).finish();
    Ok(Table {
        base: path.clone(),
        path,
        kind: TableKind::Plain,
        reference: None,
        concatenated: Vec::new(),
        rows,
        order,
        desc,
        info,
        lock,
        columns,
        bindings,
        managers,
        home: Some(files.clone()),
        storage: Some(packed.unwrap_or(files)),
    })
}

fn open_table_dat(files: &dyn Container, path: &Path) -> Result<Arc<dyn ReadAt>> {
    files.open("table.dat").map_err(|error| match error.kind() {
        ErrorKind::NotFound if path.is_dir() => Error::format(format!("not a table: {}", without_table(path))),
        ErrorKind::NotFound if path.exists() => Error::format(
            "not a table: the container has no table.dat; if it is in a table directory, that is the table",
        ),
        // the path itself is missing
        ErrorKind::NotFound => path.metadata().err().map_or(error, |error| missing(path, error)),
        _ => error,
    })
}

/// Suggests subtables if the parent directory of `path` is a table.
fn missing(path: &Path, error: std::io::Error) -> Error {
    let names = path.parent().map(subtables).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match instead(&name, names) {
        _ if error.kind() != std::io::ErrorKind::NotFound => error.into(),
        other if other.is_empty() => error.into(),
        other => Error::not_found(format!("{error}{other}")),
    }
}

const LISTED: usize = 4;
/// Directory entries that are examined for an error message.
const LOOKED_AT: usize = 1 << 12;

/// Message on a directory without `table.dat`: names in it, and the kind of path to name instead.
fn without_table(directory: &Path) -> String {
    let (tables, all) = (names_in(directory, is_table), names_in(directory, |_| true));
    let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|name| name.starts_with("table."));
    match (tables.as_slice(), own.as_slice(), others.as_slice()) {
        // a damaged table, whatever subtables it has
        (_, [_, ..], _) => {
            format!("the directory has {} but no table.dat, which describes a table: name a complete copy", list(&own))
        }
        ([_, ..], [], _) => {
            format!("the directory has no table.dat; it has the tables {}: name one of them", list(&tables))
        }
        ([], [], []) => {
            "the directory is empty, a file table.dat is expected: name the directory that has one".to_owned()
        }
        ([], [], _) => format!(
            "the directory has no table.dat; it has {}: name the directory of a table, or a file",
            list(&others)
        ),
    }
}

/// The first names in a directory, sorted, for an error message, with ` …` in place of further
/// ones; empty if the directory is empty.
pub fn listed(directory: &Path) -> String {
    list(&names_in(directory, |_| true))
}

fn list(names: &[String]) -> String {
    let more = if names.len() > LISTED { " …" } else { "" };
    format!("{}{more}", names[..names.len().min(LISTED)].join(", "))
}

/// Whether a path is the directory of a table.
pub fn is_table(path: &Path) -> bool {
    path.join("table.dat").is_file()
}

/// Names whose paths are wanted, sorted; examines at most 4096 entries.
fn names_in(directory: &Path, is_wanted: impl Fn(&Path) -> bool) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().take(LOOKED_AT);
    let wanted = entries.filter(|entry| is_wanted(&entry.path()));
    let mut names: Vec<String> = wanted.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn subtables(directory: &Path) -> Vec<String> {
    if is_table(directory) { names_in(directory, is_table) } else { Vec::new() }
}

fn read_info(files: &dyn Container) -> Result<TableInfo> {
    match optional(files, "table.info")? {
        Some(info) => Ok(TableInfo::decode(&read_all(&info).context("table.info")?)),
        None => Ok(TableInfo::default()),
    }
}

/// Recorded by the last writer, maybe after `table.dat` was written; casacore ignores 0.
fn locked_rows(files: &dyn Container) -> Result<Option<u64>> {
    match optional(files, "table.lock")? {
        Some(lock) => {
            Ok(Sync::read(&lock).context(Context::member("table.lock"))?.map(|sync| sync.rows).filter(|&rows| rows > 0))
        }
        None => Ok(None),
    }
}

/// `None` if the file is missing.
fn optional(files: &dyn Container, name: &str) -> Result<Option<Arc<dyn ReadAt>>> {
    match files.open(name) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
