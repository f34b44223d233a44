//! Writes reference tables and concatenations again: a source that was one refers to the same
//! tables as before, its **parts**, if these are found and still show the values of the source.
//!
//! A native file names its parts by names without a directory. They are looked for in one
//! directory: the one of the file, or the one that the user names. A file can lead nowhere else.
//! Parts of a subtable may also be other tables of the source.

use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};

use super::options::{ToTableOptions, Views};
use crate::container::FORMATS;
use crate::error::{Context, Error, ErrorKind, Result, column_context};
use crate::native::{View, ViewKind, display_name, name_of_stored, places_of};
use crate::output::{Output, Publishing, directory_of};
use crate::progress::{Phase, Progress};
use crate::remote;
use crate::schema::{NewRefTable, stored_name};
use crate::source::{Content, Difference, Source, SourceTable, compare, compare_table};
use crate::table::{ColumnInfo, OpenOptions, Table, TableKind, ViewDat};

/// The directory in which tables with values of the new one are looked for.
pub(super) struct Parts {
    /// `None` if the source is not in a directory.
    directory: Option<PathBuf>,
    /// Path that the main table gets, whose directory is without symbolic links.
    target: PathBuf,
}

impl Parts {
    /// `Usage` if the directory that the user names is not one.
    pub(super) fn new(source: &Source, options: &ToTableOptions, target: &Path) -> Result<Self> {
        let directory = match (&options.parts, &source.place) {
            (Some(named), _) if !named.is_dir() => {
                let message = "not a directory; --parts names the one with the tables of the source";
                return Err(Error::usage(message).context(Context::path(named)));
            }
            (Some(named), _) => Some(named.clone()),
            (None, Context::Path(path)) if !remote::is_remote(path) => Some(directory_of(path).to_owned()),
            (None, _) => None,
        };
        // a link is kept, and what it leads to is replaced
        let linked = if target.is_symlink() { target.canonicalize().ok() } else { None };
        Ok(Parts { directory, target: real(linked.as_deref().unwrap_or(target))? })
    }

    /// Path of the table that a native file calls `name`; else a sentence why it is not used.
    pub(super) fn find(&self, name: &BStr) -> Result<PathBuf, String> {
        let Some(directory) = &self.directory else {
            return Err(format!("--parts has to name the directory of the table {name}"));
        };
        let places = places_of(name, directory).ok_or_else(|| leads_elsewhere(name))?;
        let found = places.into_iter().find(|place| place.exists()).ok_or_else(|| {
            format!("the table {name} is not in {}; --parts names another directory", directory.display())
        })?;
        self.kept(found)
    }

    /// As [`find`](Self::find), by the name that a keyword stores.
    pub(super) fn find_stored(&self, stored: &BStr) -> Result<PathBuf, String> {
        self.find(name_of_stored(stored).ok_or_else(|| leads_elsewhere(stored))?)
    }

    /// `part` itself, unless it would be replaced.
    pub(super) fn kept(&self, part: PathBuf) -> Result<PathBuf, String> {
        let is_replaced = self.target.canonicalize().is_ok_and(|target| {
            let part = part.canonicalize().unwrap_or_else(|_| part.clone());
            part.starts_with(target)
        });
        match is_replaced {
            true => Err(format!("{} is replaced by the new table", part.display())),
            false => real(&part).map_err(|error| error.to_string()),
        }
    }

    /// Name of a part for the new table at `directory`, relative to the main table.
    pub(super) fn stored_name(&self, part: &Path, directory: &Path) -> BString {
        stored_name(part, &self.path(directory))
    }

    /// Path of the finished table at `directory`, relative to the main table.
    pub(super) fn path(&self, directory: &Path) -> PathBuf {
        // joined to nothing, a path would end with a slash
        let of_main = directory.as_os_str().is_empty();
        if of_main { self.target.clone() } else { self.target.join(directory) }
    }
}

fn leads_elsewhere(name: &BStr) -> String {
    format!("{name} is not the name of a table in a directory")
}

/// Absolute; the directory, but not the file itself, is without symbolic links.
fn real(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path)?;
    match (path.parent(), path.file_name()) {
        (Some(directory), Some(name)) => Ok(directory.canonicalize().unwrap_or(directory.to_owned()).join(name)),
        _ => Ok(path),
    }
}

/// A table of the source that is, or was, a view.
struct Viewed<'a> {
    source: &'a Source,
    /// Index of [`Source::tables`].
    number: usize,
    content: &'a Content,
    view: View,
}

impl<'a> Viewed<'a> {
    /// `None` for other tables, and if the rows are to be copied in any case.
    fn new(source: &'a Source, number: usize, options: &ToTableOptions) -> Result<Option<Self>> {
        let Some(table) = source.tables.get(number).filter(|_| options.views != Views::Never) else { return Ok(None) };
        let content = table.content()?;
        let is_wanted = options.views == Views::Always || content.as_native().is_some();
        let view = content.view().filter(|_| is_wanted);
        Ok(view.map(|view| Viewed { source, number, content, view }))
    }

    /// `table.dat` for the new table at `directory`, relative to the main table. `directories` are
    /// those of all tables of the source that are written, else `None`. The inner error is a
    /// sentence why the table cannot be a view.
    fn dat(&self, parts: &Parts, directories: &[Option<PathBuf>], directory: &Path) -> Result<Result<ViewDat, String>> {
        let paths = match self.part_paths(parts, directories) {
            Ok(paths) => paths,
            Err(reason) => return Ok(Err(reason)),
        };
        let names: Vec<BString> = paths.iter().map(|path| parts.stored_name(path, directory)).collect();
        let rows = self.content.rows();
        let dat = match (&self.view.kind, names.first()) {
            (ViewKind::Reference { columns, root_rows, ordered }, Some(root)) => {
                let columns: Vec<_> = columns.iter().filter(|(name, _)| self.has(name)).cloned().collect();
                let (root_rows, ordered) = (*root_rows, *ordered);
                ViewDat::reference(&NewRefTable { root: root.as_bstr(), columns: &columns, root_rows, ordered, rows })
            }
            (ViewKind::Reference { .. }, None) => Err(Error::format("the reference table has no root")),
            (ViewKind::Concatenation { subtables }, _) => Ok(ViewDat::concatenation(&names, subtables, rows)),
        };
        dat.map_or_else(reason, |dat| Ok(Ok(dat)))
    }

    /// Paths of the root, or of all parts.
    fn part_paths(&self, parts: &Parts, directories: &[Option<PathBuf>]) -> Result<Vec<PathBuf>, String> {
        let part = |(number, name): (usize, &BString)| match self.source.part_of_view(self.number, number) {
            Some(other) => {
                let directory = directories.get(other).and_then(Option::as_ref);
                directory
                    .map(|directory| parts.path(directory))
                    .ok_or_else(|| format!("the table {name} is not written"))
            }
            None => match self.content.as_table().map(Table::kind) {
                Some(TableKind::Reference { root }) => parts.kept(root.clone()),
                Some(TableKind::Concatenation { parts: paths }) => parts.kept(paths[number].clone()),
                Some(TableKind::Plain) | None => parts.find(name.as_bstr()),
            },
        };
        self.view.tables.iter().enumerate().map(part).collect()
    }

    fn has(&self, column: &BString) -> bool {
        self.content.columns().iter().any(|info| info.desc.name == *column)
    }

    fn write(&self, dat: &ViewDat, directory: &Path) -> Result<()> {
        dat.write(directory, self.content.info(), &|rows| self.content.root_rows(rows))
    }

    /// A sentence about the first column whose comment is not that of the view `shown`.
    fn differing_comment(&self, shown: &Content) -> Option<String> {
        let differs = |info: &&ColumnInfo| {
            let same_name = |other: &&ColumnInfo| other.desc.name == info.desc.name;
            shown.columns().iter().find(same_name).is_some_and(|other| other.desc.comment != info.desc.comment)
        };
        let column = &self.content.columns().iter().find(differs)?.desc.name;
        Some(format!("the comment of column {column} differs from that in the other tables"))
    }

    /// A warning, or the error that the user asked for.
    fn refuse(&self, reason: &str, options: &ToTableOptions) -> Result<String> {
        let (kind, name) = (self.view.kind_name(), &self.source.tables[self.number].name);
        let place = if self.number == 0 { String::new() } else { format!("{}: ", Context::Subtable(name.clone())) };
        if options.views == Views::Always {
            return Err(Error::unsupported(format!("{place}the {kind} cannot be written again: {reason}")));
        }
        Ok(format!("{place}the source was a {kind}, a plain table is written: {reason}"))
    }
}

/// A main table that was written as a view.
pub(super) struct WrittenView {
    pub(super) kind: TableKind,
    pub(super) columns: usize,
    pub(super) rows: u64,
    /// About edits in the source that the table does not show.
    pub(super) warnings: Vec<String>,
}

/// Writes a view to `target` if the main table was one. `None`, with a warning, if rows have to be
/// copied.
pub(super) fn to_view(
    source: &Source,
    options: &ToTableOptions,
    target: &Path,
    publishing: Publishing,
    progress: &dyn Progress,
    warnings: &mut Vec<String>,
) -> Result<Option<WrittenView>> {
    let Some(viewed) = Viewed::new(source, 0, options)? else { return Ok(None) };
    let parts = Parts::new(source, options, target)?;
    match write_main(&viewed, options, &parts, target, publishing, progress)? {
        Ok(written) => Ok(Some(written)),
        Err(reason) => {
            warnings.push(viewed.refuse(&reason, options)?);
            Ok(None)
        }
    }
}

/// The inner error is a sentence why the source cannot be this view.
fn write_main(
    viewed: &Viewed<'_>,
    options: &ToTableOptions,
    parts: &Parts,
    target: &Path,
    publishing: Publishing,
    progress: &dyn Progress,
) -> Result<Result<WrittenView, String>> {
    let (source, content) = (viewed.source, viewed.content);
    let dat = match viewed.dat(parts, &[], Path::new(""))? {
        Ok(dat) => dat,
        Err(reason) => return Ok(Err(reason)),
    };
    progress.expect(0);
    progress.phase(Phase::Writing);
    let output = Output::create_directory(target, publishing, content.rows().saturating_mul(8))?;
    let written = match viewed.write(&dat, output.partial()) {
        Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::NoSpace) => return Err(error),
        written => written,
    };
    // names of other tables are right at the target only
    let opening = OpenOptions { formats: FORMATS, ..options.open };
    let open = || {
        let table = Table::open_as(output.partial(), &parts.target, opening)?;
        Source::of_table(table, &parts.target, opening)
    };
    let view = match written.and_then(|()| open()) {
        Ok(view) => view,
        Err(error) => return reason(error),
    };
    progress.phase(Phase::Comparing);
    let found = match source.blame_server(compare(source, &view, progress)) {
        Ok(found) => found,
        Err(error) => return reason(error),
    };
    let shown = view.tables.first().map(SourceTable::content).transpose()?;
    let comment = || viewed.differing_comment(shown?);
    if let Some(difference) = found.differences.first().map(sentence).or_else(comment) {
        return Ok(Err(difference));
    }
    let kind = shown.and_then(|shown| shown.as_table()).map_or(TableKind::Plain, |table| table.kind().clone());
    let warnings = source.edits(&|_| true)?;
    progress.phase(Phase::Flushing);
    output.commit()?;
    Ok(Ok(WrittenView { kind, columns: content.columns().len(), rows: content.rows(), warnings }))
}

/// `table.dat` of the subtable `number` if that was a view; `None`, maybe with a warning, if its
/// rows are copied. Arguments are those of [`Viewed::dat`].
pub(super) fn view_of_subtable(
    source: &Source,
    number: usize,
    options: &ToTableOptions,
    parts: &Parts,
    directories: &[Option<PathBuf>],
    directory: &Path,
    warnings: &mut Vec<String>,
) -> Result<Option<ViewDat>> {
    let Some(viewed) = Viewed::new(source, number, options)?.filter(|viewed| viewed.number > 0) else {
        return Ok(None);
    };
    match viewed.dat(parts, directories, directory)? {
        Ok(dat) => Ok(Some(dat)),
        Err(reason) => {
            warnings.push(viewed.refuse(&reason, options)?);
            Ok(None)
        }
    }
}

/// Writes the files of a subtable into the existing `directory`. An error other than one of the
/// system or the user is left to [`check_subtable`].
pub(super) fn write_subtable(source: &Source, number: usize, dat: &ViewDat, directory: &Path) -> Result<()> {
    let content = source.tables[number].content()?;
    match dat.write(directory, content.info(), &|rows| content.root_rows(rows)) {
        Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::NoSpace) => Err(error),
        _ => Ok(()),
    }
}

/// A warning if the view in `directory` is not as the subtable `number`, so that rows have to be
/// copied.
pub(super) fn check_subtable(
    source: &Source,
    number: usize,
    options: &ToTableOptions,
    directory: &Path,
    progress: &dyn Progress,
) -> Result<Option<String>> {
    let Some(viewed) = Viewed::new(source, number, options)? else { return Ok(None) };
    let opening = OpenOptions { formats: FORMATS, ..options.open };
    let compared = Table::open_with(directory, opening).and_then(|table| {
        let found = source.blame_server(compare_table(source, number, &table, progress))?;
        Ok(found.differences.first().map(sentence).or_else(|| viewed.differing_comment(&table)))
    });
    let found = match compared.map_or_else(reason, |found| Ok(Ok(found)))? {
        Ok(difference) => difference,
        Err(reason) => Some(reason),
    };
    found.map(|reason| viewed.refuse(&reason, options)).transpose()
}

/// An error of reading parts is a reason to copy rows, unless the user waits for a lock, or has
/// interrupted the call.
fn reason<T>(error: Error) -> Result<Result<T, String>> {
    match error.kind() {
        ErrorKind::Locked | ErrorKind::Interrupted => Err(error),
        _ => Ok(Err(error.to_string())),
    }
}

/// `column A has 5 in row 3, in the other tables it is 7`.
fn sentence(found: &Difference) -> String {
    let place = match &found.column {
        Some(column) => column_context(&found.table, column).to_string(),
        None => display_name(&found.table).to_owned(),
    };
    let row = found.row.map_or(String::new(), |row| format!(" in row {row}"));
    format!("{place} has {}{row}, in the other tables it is {}", found.left, found.right)
}
