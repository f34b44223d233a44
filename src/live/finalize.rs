//! Converts a live file to an archive file: a compact HDF5 file that no longer grows, with
//! compression and digests.

use std::path::{Path, PathBuf};

use super::not_followed::NotFollowed;
use crate::call::{Call, call_setters};
use crate::convert::{Compress, Plan, ToHdf5Options, ToHdf5Summary, to_hdf5};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::native::display_name;
use crate::output::IfExists;
use crate::output::{Output, WriterLock};
use crate::progress::Phase;
use crate::source::{Comparison, Source, compare};
use crate::table::{ColumnInfo, OpenOptions};

/// Summary of [`Finalize::write`]: of the conversion of a live file (HDF5, to which rows were
/// appended while others read it) to an archive file, and of the comparison after it.
#[derive(Debug)]
#[non_exhaustive]
pub struct FinalizeSummary {
    /// Summary of the conversion of the live file to the archive file, the HDF5 file that no longer
    /// grows.
    pub summary: ToHdf5Summary,
    /// Result of comparing the archive file, value by value, with the live file, or with the table
    /// given by [`Finalize::source`]. It lists no differences: [`Finalize::write`] fails if any are
    /// found.
    pub comparison: Comparison,
    /// The parts of the followed table that the live file, and so the archive file, does not hold;
    /// none with [`Finalize::source`].
    pub not_followed: NotFollowed,
}

/// Converts a live file to an archive file: HDF5 with large chunks, filters, fixed extents and
/// digests, as [`ToHdf5`](crate::convert::ToHdf5) makes it. The archive file is compared value by
/// value with its source before it receives its name, which may be that of the live file.
///
/// ```
/// use ctds_hdf5::ColumnDesc;
/// use ctds_hdf5::live::{Finalize, Schema, TableSpec};
/// # let folder = tempfile::tempdir()?;
/// # let (live_h5, my_h5) = (folder.path().join("live.h5"), folder.path().join("my.h5"));
///
/// let main = TableSpec::new("MAIN").column(ColumnDesc::scalar::<f64>("TIME"));
/// Schema::new().table(main).create(&live_h5)?.close()?;
///
/// let finalized = Finalize::new(&live_h5).write(&my_h5)?;
/// assert_eq!(finalized.summary.columns, 1);
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "`write` writes the file"]
pub struct Finalize<'a> {
    live: PathBuf,
    source: Option<PathBuf>,
    open: OpenOptions,
    options: ToHdf5Options,
    call: Call<'a>,
}

impl<'a> Finalize<'a> {
    /// Prepares the conversion of the live file at `live` to an archive file: a finished HDF5 file,
    /// compressed and with digests. [`write`](Self::write) fails if the live file still has a
    /// writer.
    pub fn new(live: impl AsRef<Path>) -> Self {
        let options = ToHdf5Options { digest: true, ..ToHdf5Options::default() };
        let (live, open) = (live.as_ref().to_owned(), OpenOptions::default());
        Finalize { live, source: None, open, options, call: Call::default() }
    }

    /// Copies the content from the casacore table at `source`, from which [`Follow`](super::Follow)
    /// filled the live file, instead of from the live file: with columns, keywords and cells that
    /// the live file could not store.
    pub fn source(mut self, source: impl AsRef<Path>) -> Self {
        self.source = Some(source.as_ref().to_owned());
        self
    }

    /// Sets how the table given by [`source`](Self::source) is opened and locked.
    pub fn open_options(mut self, options: OpenOptions) -> Self {
        self.open = options;
        self
    }

    /// Sets how the datasets of the archive file, the HDF5 file that [`write`](Self::write) makes
    /// of the live file, are compressed; by default with gzip where it saves space.
    pub fn compression(mut self, compression: impl Into<Compress>) -> Self {
        self.options.compress = compression.into();
        self
    }

    /// Sets whether the archive file, the HDF5 file that [`write`](Self::write) makes of the live
    /// file, also has small versions of the visibilities for viewers, as by
    /// [`ToHdf5::quicklook`](crate::convert::ToHdf5::quicklook).
    pub fn quicklook(mut self, quicklook: bool) -> Self {
        self.options.quicklook = quicklook;
        self
    }

    /// Sets whether the archive file, the HDF5 file that [`write`](Self::write) makes, also stores
    /// what is needed to restore every byte of the files of the casacore table given by
    /// [`source`](Self::source), as by [`ToHdf5::restorable`](crate::convert::ToHdf5::restorable).
    pub fn restorable(mut self, restorable: bool) -> Self {
        self.options.restorable = restorable;
        self
    }

    /// Sets the number of threads that decode and compress; 0, the default: one for each processor.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = threads;
        self
    }

    /// Sets how much memory the conversion may use for data, in bytes; 256 MiB by default.
    pub fn max_memory(mut self, bytes: u64) -> Self {
        self.options.max_memory = bytes;
        self
    }

    call_setters!(target);

    /// Writes the archive file, a finished HDF5 file, and compares it value by value with its
    /// source: the live file, or the table given by [`source`](Self::source). Only then it gets the
    /// name `target`. If `target` is the live file, the archive file replaces it.
    ///
    /// # Errors
    /// `Locked` while a writer has the live file; `Usage` if the [source](Self::source) does not
    /// have all its tables, rows and columns; `Exists` if there is another file at `target`, unless
    /// [`if_exists`](Self::if_exists) says otherwise; `Format` if the comparison finds a
    /// difference; `Interrupted`; those of
    /// [`ToHdf5Plan::write`](crate::convert::ToHdf5Plan::write).
    pub fn write(self, target: impl AsRef<Path>) -> Result<FinalizeSummary> {
        let (live, target) = (self.live.as_path(), target.as_ref());
        let source = self.source.as_ref().map(|path| Source::open_with(path, self.open)).transpose()?;
        self.call.run(|progress| progress.go_on())?;
        // no writer opens the file while it is read
        let _lock = WriterLock::take(live)?;
        let own = Source::open(live)?;
        let not_followed = if source.is_some() { NotFollowed::default() } else { NotFollowed::read(live)? };
        if let Some(source) = &source {
            check_source(&own, source).with_context(|| Context::path(live))?;
        }
        let source = source.as_ref().unwrap_or(&own);
        let plan = Plan::new(source, &self.options)?;
        let mut publishing = self.call.publishing;
        if same_file(live, target) {
            publishing.if_exists = IfExists::Replace;
        }
        let output = Output::create(target, publishing, 0)?;
        let (summary, comparison) = self.call.run(|progress| {
            let summary = to_hdf5(source, &plan, &self.options, output.partial(), IfExists::Replace.into(), progress)?;
            progress.phase(Phase::Comparing);
            Ok((summary, compare(source, &Source::open(output.partial())?, progress)?))
        })?;
        if let Some(difference) = comparison.differences.first() {
            let message = format!("what was written differs, first in table {}", display_name(&difference.table));
            return Err(Error::new(ErrorKind::Format, message).context(Context::path(target)));
        }
        output.commit()?;
        Ok(FinalizeSummary { summary, comparison, not_followed })
    }
}

/// `Usage` unless `source` has all tables and columns of `live`, and at least its rows.
fn check_source(live: &Source, source: &Source) -> Result<()> {
    for table in live.tables() {
        let wrong = |what: String| Err(Error::usage(format!("the source {what}: it was not followed")));
        let name = display_name(&table.name);
        let Some(theirs) = source.tables().iter().find(|theirs| theirs.name == table.name) else {
            return wrong(format!("has no table {name}"));
        };
        let (ours, rows) = (table.content()?.rows(), theirs.content()?.rows());
        if rows < ours {
            return wrong(format!("has {rows} rows in table {name}, the live file {ours}"));
        }
        let theirs = theirs.columns()?;
        let is_missing = |ours: &&ColumnInfo| !theirs.iter().any(|theirs| theirs.desc.name == ours.desc.name);
        if let Some(column) = table.columns()?.iter().find(is_missing) {
            return wrong(format!("has no column {} in table {name}", column.desc.name));
        }
    }
    Ok(())
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
