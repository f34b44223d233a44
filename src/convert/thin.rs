//! Makes thin tables: table directories whose files with large tiles are links to an HDF5 file.
//! docs/howto/share.md.

use std::path::{Path, PathBuf};

use super::builders::{Compare, ToHdf5};
use super::conversion::ToHdf5Summary;
use super::to_hdf5::Compress;
use super::to_table::{ToTableOptions, ToTableSummary, to_checked_table, to_table};
use crate::call::{Call, call_setters, open_setters};
use crate::container::thin;
use crate::error::{Context, Error, Result};
use crate::io::ByteOrder;
use crate::output::IfExists;
use crate::progress::Phase;
use crate::source::Source;
use crate::table::OpenOptions;

/// Makes a thin table of a native HDF5 file: a directory that every casacore program reads as a
/// normal table, in which the files with large tiles are relative symbolic links to the HDF5 file.
/// Elements are stored once.
///
/// Only datasets that are one block can be linked to: those of hypercubes of numbers, where the
/// file was made with [`Compress::Shared`]. All other columns are copied.
///
/// ```
/// use ctds_hdf5::convert::{Compare, Compress, LinkTable, ToHdf5};
/// # use ctds_hdf5::{ColumnDesc, ManagerSpec, NewTable, value::Shape};
/// # let folder = tempfile::tempdir()?;
/// # let (my_ms, my_h5, thin_ms) = (folder.path().join("my.ms"), folder.path().join("my.h5"), folder.path().join("thin.ms"));
/// # let mut table = NewTable::new()
/// #     .column(ColumnDesc::array::<f32>("DATA").fixed_shape(Shape::from([4])))
/// #     .bind(ManagerSpec::tiled_column("tiles", &Shape::from([4, 8])), ["DATA"])
/// #     .create(&my_ms)?;
/// # table.add_rows(20)?;
/// # table.close()?;
///
/// ToHdf5::new(&my_ms).compression(Compress::Shared).write(&my_h5)?;
/// let summary = LinkTable::new(&my_h5).write(&thin_ms)?;
/// assert_eq!(summary.links, 1);
/// assert!(Compare::new(&my_ms, &thin_ms).run()?.differences.is_empty());
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "`write` makes the table"]
pub struct LinkTable<'a> {
    source: PathBuf,
    writable: bool,
    threads: usize,
    call: Call<'a>,
}

/// Summary of [`LinkTable::write`], which makes a thin table (a table directory whose large tiles
/// stay in an HDF5 file).
#[derive(Debug)]
#[non_exhaustive]
pub struct LinkSummary {
    /// Number of tables, the main one and subtables, in the thin table that was made (a directory
    /// with links to an HDF5 file).
    pub tables: usize,
    /// Number of columns in all tables of the thin table.
    pub columns: usize,
    /// Number of files of the thin table that are links to the HDF5 file.
    pub links: usize,
    /// Total size in bytes, as stored, of the datasets in the HDF5 file that the thin table reads
    /// through links.
    pub linked_bytes: u64,
    /// Number of rows of the main table in the thin table.
    pub rows: u64,
    /// Warnings for the user about the thin table, as sentences.
    pub warnings: Vec<String>,
}

impl<'a> LinkTable<'a> {
    /// Prepares a thin table (a directory with links to the tiles in an HDF5 file) of the native
    /// HDF5 file at `source`.
    pub fn new(source: impl AsRef<Path>) -> Self {
        LinkTable { source: source.as_ref().to_owned(), writable: false, threads: 0, call: Call::default() }
    }

    call_setters!(target);

    /// Sets whether programs can write to the thin table; by default its files are read-only.
    /// Values that programs write to linked columns are stored in the HDF5 file. Rows cannot be
    /// added.
    pub fn writable(mut self, writable: bool) -> Self {
        self.writable = writable;
        self
    }

    /// Sets the number of threads that read and write columns; 0, the default: one for each
    /// processor.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Writes the thin table (with links to the HDF5 file) to the directory `target`, which appears
    /// under its name when it is complete.
    ///
    /// # Errors
    /// `Unsupported` if no dataset of the file can be linked to; `Exists` if there is something at
    /// `target`, unless [`if_exists`](Self::if_exists) says otherwise; `NoSpace`; `Interrupted`;
    /// those of reading the file.
    pub fn write(self, target: impl AsRef<Path>) -> Result<LinkSummary> {
        self.write_checked(target.as_ref(), &|_| Ok(()))
    }

    /// Moves the table to `target` only if `check`, which gets its temporary path, succeeds.
    fn write_checked(self, target: &Path, check: &dyn Fn(&Path) -> Result<()>) -> Result<LinkSummary> {
        let source = Source::open(&self.source)?;
        if source.tables.first().is_none_or(|main| main.group.is_none()) {
            return Err(
                Error::usage("not a native HDF5 file: tables are linked to those").context(source.place.clone())
            );
        }
        check_apart(&self.source, target)?;
        let options = ToTableOptions {
            byte_order: Some(ByteOrder::Little),
            threads: self.threads,
            links: true,
            writable: self.writable,
            ..ToTableOptions::default()
        };
        let publishing = self.call.publishing;
        let written =
            self.call.run(|progress| to_checked_table(&source, &options, target, publishing, progress, check))?;
        let ToTableSummary { tables, columns, links, linked_bytes, rows, warnings, .. } = written;
        Ok(LinkSummary { tables, columns, links, linked_bytes, rows, warnings })
    }
}

/// Converts a table directory to HDF5 and replaces the table by a thin one, whose files with large
/// tiles are links to the HDF5 file: elements in tiles are stored once.
///
/// The table is replaced in one step, after both the HDF5 file and the thin table were compared
/// with it.
#[derive(Clone)]
#[must_use = "`write` converts"]
pub struct ReplaceTable<'a> {
    conversion: ToHdf5<'a>,
    table: PathBuf,
    open: OpenOptions,
    writable: bool,
    threads: usize,
    call: Call<'a>,
}

/// Summary of [`ReplaceTable::write`], which converts a table to HDF5 and replaces it by a thin
/// table.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReplaceSummary {
    /// Summary of the conversion to the HDF5 file.
    pub hdf5: ToHdf5Summary,
    /// Summary of the thin table, with links to the HDF5 file, that replaced the original table.
    pub table: LinkSummary,
    /// Number of cells that were compared between the original table and the HDF5 file.
    pub cells: u64,
}

impl<'a> ReplaceTable<'a> {
    /// Prepares to convert the table directory `table` to HDF5 and to replace it by a thin table.
    pub fn new(table: impl AsRef<Path>) -> Self {
        ReplaceTable {
            conversion: ToHdf5::new(table.as_ref()),
            table: table.as_ref().to_owned(),
            open: OpenOptions::default(),
            writable: false,
            threads: 0,
            call: Call::default(),
        }
    }

    call_setters!(target);

    open_setters!();

    /// Sets whether programs can write to the thin table, see [`LinkTable::writable`].
    pub fn writable(mut self, writable: bool) -> Self {
        self.writable = writable;
        self
    }

    /// Sets the number of threads that decode, compress, read and write columns; 0, the default:
    /// one for each processor.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Converts the table to the HDF5 file `hdf5`, and replaces the table by a thin one with links
    /// to that file.
    ///
    /// # Errors
    /// `Exists` if there is something at `hdf5`, unless [`if_exists`](Self::if_exists) says
    /// otherwise; `Format` if what was written differs from the table; `Unsupported` if the table
    /// is not a directory, or thin already; `NoSpace`; `Interrupted`. The table is then as it was;
    /// the HDF5 file may exist.
    pub fn write(self, hdf5: impl AsRef<Path>) -> Result<ReplaceSummary> {
        let (table, hdf5) = (self.table.as_path(), hdf5.as_ref());
        let place = Context::path(table);
        // writers of the table wait until it is replaced
        let source = Source::open_with(table, self.open)?;
        if !table.is_dir() {
            return Err(Error::unsupported("only a table directory can be replaced by a thin one").context(place));
        }
        if thin::Record::read(table)?.is_some() {
            return Err(Error::unsupported("the table is thin already: its tiles are in an HDF5 file").context(place));
        }
        check_apart(hdf5, table)?;
        let is_elsewhere = |path: &Path| !path.starts_with(source.tables[0].path.as_deref().unwrap_or(path));
        if let Some(other) =
            source.tables.iter().filter_map(|table| table.path.as_deref()).find(|path| is_elsewhere(path))
        {
            let message = format!("its subtable {} lies elsewhere", other.display());
            return Err(Error::unsupported(message).context(place));
        }
        let mut conversion =
            self.conversion.clone().open_options(self.open).compression(Compress::Shared).threads(self.threads);
        conversion = conversion.if_exists(self.call.publishing.if_exists).sync(self.call.publishing.sync);
        conversion = conversion.progress(self.call.progress);
        if let Some(token) = self.call.cancel {
            conversion = conversion.cancel(token);
        }
        let written = conversion.write(hdf5)?;
        if written.missing > 0 {
            let message = format!("{} columns are not converted: the table stays as it is", written.missing);
            return Err(Error::unsupported(message).context(place));
        }
        let cells = self.compare(table, hdf5)?;
        let mut link = LinkTable::new(hdf5).writable(self.writable).threads(self.threads);
        link.call = self.call;
        link.call.publishing.if_exists = IfExists::Replace;
        let linked = link.write_checked(table, &|thin| self.compare(table, thin).map(drop))?;
        drop(source);
        Ok(ReplaceSummary { hdf5: written, table: linked, cells })
    }

    /// Number of cells that were compared; fails unless the contents are the same.
    fn compare(&self, one: &Path, other: &Path) -> Result<u64> {
        self.call.progress.phase(Phase::Comparing);
        let mut compare = Compare::new(one, other).open_options(self.open).progress(self.call.progress);
        if let Some(token) = self.call.cancel {
            compare = compare.cancel(token);
        }
        let found = compare.run()?;
        match found.differences.first() {
            None => Ok(found.cells),
            Some(difference) => {
                let column = difference.column.as_deref().unwrap_or_default();
                let message =
                    format!("what was written differs in {} {column}; the table stays as it is", difference.table);
                Err(Error::format(message).context(Context::path(one)))
            }
        }
    }
}

/// `table` is to be replaced: the HDF5 file must not be that directory, or be in it.
fn check_apart(hdf5: &Path, table: &Path) -> Result<()> {
    let real = |path: &Path| path.ancestors().find_map(|path| path.canonicalize().ok()).unwrap_or_default();
    if table.symlink_metadata().is_ok() && real(hdf5).starts_with(real(table)) {
        let message = "the HDF5 file is in the directory of the table, which would be replaced";
        return Err(Error::usage(message).context(Context::path(hdf5)));
    }
    Ok(())
}

/// Makes a thin table independent of the HDF5 file: the linked tiles are copied into files of its
/// own.
#[derive(Clone)]
#[must_use = "`run` copies"]
pub struct Materialize<'a> {
    table: PathBuf,
    open: OpenOptions,
    threads: usize,
    call: Call<'a>,
}

impl<'a> Materialize<'a> {
    /// Prepares to copy the linked tiles of the thin table in the directory `table` from its HDF5
    /// file into files of its own.
    pub fn new(table: impl AsRef<Path>) -> Self {
        let open = OpenOptions::default();
        Materialize { table: table.as_ref().to_owned(), open, threads: 0, call: Call::default() }
    }

    call_setters!();

    open_setters!();

    /// Sets the number of threads that read and write columns; 0, the default: one for each
    /// processor.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Replaces the thin table (with links to an HDF5 file), in one step, by a table that has all
    /// tiles in files of its own.
    ///
    /// # Errors
    /// `Usage` if the table is not thin; `Format` if the HDF5 file was moved or rewritten;
    /// `NoSpace`; `Interrupted`. The table is then as it was.
    pub fn run(self) -> Result<ToTableSummary> {
        let source = Source::open_with(&self.table, self.open)?;
        if thin::Record::read(&self.table)?.is_none() {
            return Err(
                Error::usage("not a thin table: nothing of it is in an HDF5 file").context(Context::path(&self.table))
            );
        }
        let options = ToTableOptions { threads: self.threads, ..ToTableOptions::default() };
        let mut publishing = self.call.publishing;
        publishing.if_exists = IfExists::Replace;
        self.call.run(|progress| to_table(&source, &options, &self.table, publishing, progress))
    }
}

/// A thin table, as its own record of the links describes it: the HDF5 file and the links.
#[derive(Debug, Clone)]
pub struct ThinTable {
    directory: PathBuf,
    record: thin::Record,
}

impl ThinTable {
    /// Opens the thin table in `directory`, that is, reads its record of the links to an HDF5 file;
    /// `None` if it is not a thin table.
    ///
    /// # Errors
    /// `Format` if the record is damaged.
    pub fn open(directory: impl AsRef<Path>) -> Result<Option<Self>> {
        let directory = directory.as_ref();
        Ok(thin::Record::read(directory)?.map(|record| ThinTable { directory: directory.to_owned(), record }))
    }

    /// Path of the HDF5 file that has the tiles, relative to the directory of the thin table (a
    /// casacore table with links to this file).
    pub fn hdf5(&self) -> &Path {
        &self.record.hdf5
    }

    /// The files of the thin table that are links to the HDF5 file: file name, path of the linked
    /// dataset, and size in bytes of the dataset's chunks as stored.
    pub fn links(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        self.record.links.iter().map(|link| (link.file.as_str(), link.dataset.as_str(), link.bytes))
    }

    /// Checks that the HDF5 file is still the one to which this thin table (a casacore table whose
    /// files with large tiles are links to the HDF5 file) was linked, neither moved nor rewritten.
    /// Changed elements are allowed.
    ///
    /// # Errors
    /// `Format` if it was moved or rewritten since it was linked.
    pub fn check(&self) -> Result<()> {
        self.record.check(&self.directory, crate::container::FORMATS.check_thin)
    }
}
