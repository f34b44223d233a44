//! Builders of the conversions to HDF5, to casacore tables and to the original files, of
//! comparisons and of fingerprints: each has a source, options, and a call that does the work.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::conversion::{ToHdf5Summary, to_hdf5};
use super::exact::{self, ToOriginalSummary};
use super::shard::{self, ShardPlanSummary};
use super::to_hdf5::{
    ColumnPlan, Compress, Hdf5Version, Plan, Prediction, Profile, Schema, Sharing, TablePlan, ToHdf5Options,
};
use super::to_table::{ToTableOptions, ToTableSummary, Views, to_table};
use crate::call::{Call, call_setters, open_setters};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::hash::HashKind;
use crate::io::{ByteOrder, DISK_RATE_BYTES, disk_rate};
use crate::output::Damage;
use crate::output::SyncPolicy;
use crate::output::clone::Reflink;
use crate::output::directory_of;
use crate::source::{Averaged, Averaging, Comparison, Predicate, Source, TableDigest, compare, digest};
use crate::table::OpenOptions;

/// Whether a conversion to HDF5 computes digests (CTFP-2 fingerprints) of its source and keeps them
/// in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DigestPolicy {
    /// Digests are computed only for compressed HDF5 files and for those from which the original
    /// table files can be restored. Without compression, or with `shared` (columns in tiles stay
    /// uncompressed, to share disk blocks with the source), they would take as long as the rest of
    /// the conversion.
    #[default]
    Auto,
    /// The conversion always computes digests of the columns and keywords that it reads, and keeps
    /// them in the HDF5 file that it makes.
    Always,
    /// Digests are not computed, except for files from which the originals can be restored.
    Never,
}

/// Converts a table and its subtables to a native HDF5 file, which h5py, xarray and netCDF4 open as
/// it is.
///
/// ```
/// use ctds_hdf5::convert::{Compare, ToHdf5, ToTable};
/// # use ctds_hdf5::{ColumnDesc, NewTable};
/// # let folder = tempfile::tempdir()?;
/// # let (my_ms, my_h5, copy_ms) = (folder.path().join("my.ms"), folder.path().join("my.h5"), folder.path().join("copy.ms"));
/// # let mut table = NewTable::new().column(ColumnDesc::scalar::<f64>("TIME")).create(&my_ms)?;
/// # table.add_rows(2)?;
/// # table.column("TIME")?.put_scalars(0, vec![5e9, 5e9 + 8.])?;
/// # table.close()?;
///
/// let summary = ToHdf5::new(&my_ms).write(&my_h5)?;
/// assert_eq!((summary.tables, summary.rows), (1, 2));
///
/// // the way back, and the proof
/// ToTable::new(&my_h5).write(&copy_ms)?;
/// assert!(Compare::new(&my_ms, &copy_ms).run()?.differences.is_empty());
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "`write` converts"]
pub struct ToHdf5<'a> {
    source: PathBuf,
    open: OpenOptions,
    options: ToHdf5Options,
    digest: DigestPolicy,
    salvage: bool,
    call: Call<'a>,
}

impl<'a> ToHdf5<'a> {
    /// Prepares a conversion of the table at `source`: a table directory, a file that holds a whole
    /// table, or a native HDF5 file.
    pub fn new(source: impl AsRef<Path>) -> Self {
        ToHdf5 {
            source: source.as_ref().to_owned(),
            open: OpenOptions::default(),
            options: ToHdf5Options::default(),
            digest: DigestPolicy::Auto,
            salvage: false,
            call: Call::default(),
        }
    }

    call_setters!(target);

    open_setters!(native);

    /// Sets whether the source is first read once to find damaged tables, columns and rows, which
    /// are then left out; by default damage ends the conversion. [`ToHdf5Summary::damage`] and the
    /// HDF5 file list them.
    ///
    /// Not for [`restorable`](Self::restorable) files, which have every byte of the original.
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.salvage = salvage;
        self
    }

    /// Converts only the columns `names`, such as `DATA` of the main table or `ANTENNA/NAME` of a
    /// subtable. Tables of which no column is named are converted whole.
    pub fn columns<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.options.columns = names.into_iter().map(Into::into).collect();
        self
    }

    /// Leaves out the columns `names`, given as for [`columns`](Self::columns), such as `DATA` of
    /// the main table or `ANTENNA/NAME` of a subtable.
    pub fn exclude<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.options.exclude = names.into_iter().map(Into::into).collect();
        self
    }

    /// Converts only the tables `names`, such as `MAIN` (the main table) and `ANTENNA`.
    pub fn tables<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.options.tables = names.into_iter().map(Into::into).collect();
        self
    }

    /// Converts only the rows `rows` of the main table, a half-open range counted from 0.
    pub fn rows(mut self, rows: Range<u64>) -> Self {
        self.options.rows = Some(rows);
        self
    }

    /// Converts only rows of the main table that satisfy `predicate` and are in the range that
    /// [`rows`](Self::rows) sets, if any. Only the tiles and buckets with cells of these rows are
    /// read. The dimension scale `row` of the HDF5 file has their row numbers in the source.
    ///
    /// ```no_run
    /// use ctds_hdf5::convert::ToHdf5;
    ///
    /// let target = ToHdf5::new("my.ms").rows_where("FIELD_ID == \"3C286\" && DATA_DESC_ID == 1".parse()?);
    /// target.write("3c286.h5")?;
    /// # Ok::<(), ctds_hdf5::Error>(())
    /// ```
    pub fn rows_where(mut self, predicate: Predicate) -> Self {
        self.options.predicate = Some(predicate);
        self
    }

    /// Averages visibilities of a MeasurementSet, weighted and without flagged samples, in time, in
    /// frequency or both. Only rows that [`rows`](Self::rows) and [`rows_where`](Self::rows_where)
    /// select are used; [`ToHdf5Plan::averaged`] lists the columns that cannot be averaged.
    ///
    /// Not for [`restorable`](Self::restorable) files.
    ///
    /// ```no_run
    /// use ctds_hdf5::convert::{Averaging, ToHdf5};
    ///
    /// let plan = ToHdf5::new("my.ms").average(Averaging::new().time(10.0).channels(4)).plan()?;
    /// if let Some(averaged) = plan.averaged() {
    ///     println!("{} rows become {}", averaged.rows_before, averaged.rows);
    /// }
    /// plan.write("averaged.h5")?;
    /// # Ok::<(), ctds_hdf5::Error>(())
    /// ```
    pub fn average(mut self, averaging: Averaging) -> Self {
        self.options.average = Some(averaging);
        self
    }

    /// Sets how the datasets of the HDF5 file are compressed; the default is gzip where it makes
    /// them smaller.
    pub fn compression(mut self, compression: impl Into<Compress>) -> Self {
        self.options.compress = compression.into();
        self
    }

    /// Sets the kind of storage on which the HDF5 file will lie when it is read: a disk (the
    /// default) or an object store. It decides how large chunks are and where metadata are stored.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.options.profile = profile;
        self
    }

    /// Sets in which form the large columns of a MeasurementSet are stored; by default as in the
    /// table.
    ///
    /// ```
    /// use ctds_hdf5::convert::{Schema, ToHdf5};
    ///
    /// # fn main() -> ctds_hdf5::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let out = folder.path().join("demo.h5");
    /// let summary = ToHdf5::new("testdata/demo/demo.ms").schema(Schema::Msv4).write(&out)?;
    /// assert_eq!(summary.warnings, Vec::<String>::new());
    /// # Ok(())
    /// # }
    /// ```
    pub fn schema(mut self, schema: Schema) -> Self {
        self.options.schema = schema;
        self
    }

    /// Sets the oldest version of HDF5 that can read the file; the default is 1.10. Files for HDF5
    /// 1.8 cannot be [`appendable`](Self::appendable), have no [`Profile::Cloud`] and no
    /// [`Compress::Shared`].
    pub fn hdf5(mut self, version: Hdf5Version) -> Self {
        self.options.hdf5 = version;
        self
    }

    /// Sets whether tiles that [`Compress::Shared`] stores unchanged in the HDF5 file share their
    /// disk space with the source (reflink); by default they do where the file system supports
    /// this.
    pub fn reflink(mut self, reflink: Reflink) -> Self {
        self.options.reflink = reflink;
        self
    }

    /// Sets whether all datasets of the HDF5 file can be extended along the row axis.
    pub fn appendable(mut self, appendable: bool) -> Self {
        self.options.appendable = appendable;
        self
    }

    /// Sets whether the HDF5 file has a group `quicklook` (not a part of the table), which viewers
    /// draw as heat maps: mean, smallest and largest amplitudes and fractions of flags by time and
    /// channel, at several resolutions (levels), each half of the one before.
    pub fn quicklook(mut self, quicklook: bool) -> Self {
        self.options.quicklook = quicklook;
        self
    }

    /// Sets whether the HDF5 file keeps what [`ToOriginal`] needs, besides the datasets, to restore
    /// every original file byte for byte.
    pub fn restorable(mut self, restorable: bool) -> Self {
        self.options.restorable = restorable;
        self
    }

    /// Sets the hash by which original files are checked when they are restored; by default BLAKE3,
    /// as `b3sum` prints it.
    pub fn checksum(mut self, kind: HashKind) -> Self {
        self.options.checksum = kind;
        self
    }

    /// Sets whether digests of the source are computed and kept in the HDF5 file.
    pub fn digest(mut self, policy: DigestPolicy) -> Self {
        self.digest = policy;
        self
    }

    /// Sets the number of threads that decode and compress in the conversion; 0, the default: one
    /// for each processor.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = threads;
        self
    }

    /// Sets about how many bytes of memory the conversion may hold at a time; 256 MiB by default.
    pub fn max_memory(mut self, bytes: u64) -> Self {
        self.options.max_memory = bytes;
        self
    }

    /// Opens the source and decides for each column which dataset it becomes; no file is written.
    ///
    /// # Errors
    /// `Interrupted` if the token is cancelled while damage is looked for; `Usage` if tables,
    /// columns or rows are named that do not exist; those of [`Source::open`] and of reading
    /// columns.
    pub fn plan(self) -> Result<ToHdf5Plan<'a>> {
        let place = Context::path(&self.source);
        self.planned().map_err(|error| error.of_file(&place))
    }

    fn planned(self) -> Result<ToHdf5Plan<'a>> {
        let mut source = open(&self.source, self.open, self.salvage)?;
        let mut options = self.options;
        if self.salvage {
            self.call.run(|progress| source.salvage(|table, column| options.takes(table, column), progress))?;
        }
        if let Some(predicate) = &options.predicate {
            let rows = options.rows.take();
            self.call.run(|progress| source.select(predicate, rows, progress))?;
        }
        let mut averaged = None;
        if let Some(averaging) = options.average {
            if options.restorable {
                return Err(Error::usage("a restorable file has the original bytes: its rows cannot be averaged"));
            }
            let (rows, max_memory) = (options.rows.take(), options.max_memory);
            averaged = Some(self.call.run(|progress| source.average(averaging, rows, max_memory, progress))?);
        }
        options.digest = match self.digest {
            DigestPolicy::Auto => options.is_compressed(),
            DigestPolicy::Always => true,
            DigestPolicy::Never => false,
        };
        let plan = Plan::new(&source, &options)?;
        Ok(ToHdf5Plan { path: self.source, source, plan, options, averaged, call: self.call })
    }

    /// Converts the source to the HDF5 file `target`, which appears under its name when it is
    /// complete.
    ///
    /// # Errors
    /// Those of [`plan`](Self::plan) and of [`ToHdf5Plan::write`].
    pub fn write(self, target: impl AsRef<Path>) -> Result<ToHdf5Summary> {
        self.plan()?.write(target)
    }
}

/// The plan of a conversion to HDF5, from [`ToHdf5::plan`]. It keeps the source open, and locked if
/// it is a table directory.
#[must_use = "`write` converts"]
pub struct ToHdf5Plan<'a> {
    path: PathBuf,
    source: Source,
    plan: Plan,
    options: ToHdf5Options,
    averaged: Option<Averaged>,
    call: Call<'a>,
}

impl<'a> ToHdf5Plan<'a> {
    call_setters!(target);

    /// The opened source of the conversion: a table directory, a file that holds a whole table, or
    /// a native HDF5 file.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Groups, rows and columns of the tables that will be converted; the main table is first, each
    /// table before its subtables.
    pub fn tables(&self) -> &[TablePlan] {
        &self.plan.tables
    }

    /// Names of subtables that keywords of the source refer to but that do not exist.
    pub fn missing_tables(&self) -> &[String] {
        &self.plan.missing_tables
    }

    /// Damaged parts of the source that are left out; empty without [`ToHdf5::salvage`].
    pub fn damage(&self) -> &[Damage] {
        self.source.damage()
    }

    /// How the source was averaged; `None` without [`ToHdf5::average`].
    pub fn averaged(&self) -> Option<&Averaged> {
        self.averaged.as_ref()
    }

    /// Warnings for the user about the planned conversion, as sentences.
    pub fn warnings(&self) -> &[String] {
        &self.plan.warnings
    }

    /// Paths in the HDF5 file, such as `MAIN/DATA`, of the columns that [`Compress::Auto`] leaves
    /// uncompressed because their samples did not shrink enough.
    pub fn left_uncompressed(&self) -> Vec<String> {
        let is_left = |column: &&ColumnPlan| column.compression.is_none() && column.sample_remains().is_some();
        let of_table = |table: &TablePlan| -> Vec<String> {
            let columns = table.columns.iter().filter(is_left);
            columns.map(|column| format!("{}/{}", table.group.trim_start_matches('/'), column.link)).collect()
        };
        self.tables().iter().flat_map(of_table).collect()
    }

    /// Bytes of all elements that will be converted, uncompressed; strings are counted as 16 bytes
    /// each.
    pub fn bytes(&self) -> u64 {
        self.plan.bytes()
    }

    /// Estimate of the memory in bytes that the conversion will hold at most.
    pub fn peak_memory(&self) -> u64 {
        let bins = self.averaged.as_ref().map_or(0, Averaged::memory);
        self.plan.memory(self.options.max_memory) + bins
    }

    /// Predicts the size of the HDF5 file and the time that the conversion takes, on a disk that
    /// writes 1.2 GB/s.
    pub fn prediction(&self) -> Prediction {
        self.predict(None)
    }

    /// Predicts the size of an HDF5 file at `target` and the time that its conversion takes, as
    /// [`prediction`](Self::prediction) does, but on the disk of `target`. Its rate is measured by
    /// a file of 32 MiB without a name, unless the HDF5 file will have less than 16 MiB, is not to
    /// be made durable ([`SyncPolicy::Never`]), or nothing can be written there.
    pub fn prediction_at(&self, target: impl AsRef<Path>) -> Prediction {
        let assumed = self.prediction();
        if self.call.publishing.sync == SyncPolicy::Never || assumed.file_bytes < DISK_RATE_BYTES {
            return assumed;
        }
        self.predict(disk_rate(directory_of(target.as_ref())).ok())
    }

    fn predict(&self, disk_rate: Option<f64>) -> Prediction {
        self.plan.prediction(&self.options, self.call.publishing.sync, self.averaged.as_ref(), disk_rate)
    }

    /// Kind of storage for which the HDF5 file is laid out, a disk or an object store, as set by
    /// [`ToHdf5::profile`].
    pub fn profile(&self) -> Profile {
        self.options.profile
    }

    /// The oldest version of HDF5 that can read the file, from [`ToHdf5::hdf5`].
    pub fn hdf5(&self) -> Hdf5Version {
        self.options.hdf5
    }

    /// Estimates how much of an HDF5 file at `target` would share its bytes with the source
    /// (reflink); `None` without [`Compress::Shared`]. A temporary file without a name is created
    /// beside `target` to find out whether the file system can share.
    ///
    /// # Errors
    /// `Unsupported` with [`Reflink::Always`] if bytes cannot be shared; those of opening columns.
    pub fn sharing(&self, target: impl AsRef<Path>) -> Result<Option<Sharing>> {
        if self.options.compress != Compress::Shared {
            return Ok(None);
        }
        let directory = directory_of(target.as_ref());
        Sharing::expect(&self.source, &self.plan, self.options.reflink, directory).map(Some)
    }

    /// Whether all datasets of the HDF5 file can be extended along the row axis.
    pub fn is_appendable(&self) -> bool {
        self.options.appendable
    }

    /// Number of original files that can be restored from the HDF5 file and their total size in
    /// bytes; `None` without [`ToHdf5::restorable`].
    ///
    /// # Errors
    /// `Io` if one of them no longer exists.
    pub fn restorable(&self) -> Result<Option<(u64, u64)>> {
        self.plan.restorable()
    }

    /// Converts the source to the HDF5 file `target` by this plan; the file appears under its name
    /// when it is complete.
    ///
    /// # Errors
    /// `Exists` if there is something at `target`, unless [`if_exists`](Self::if_exists) says
    /// otherwise; `NoSpace`; `Interrupted` if the token was cancelled; those of reading the source.
    /// The target is then as it was before.
    pub fn write(&self, target: impl AsRef<Path>) -> Result<ToHdf5Summary> {
        let (target, publishing) = (target.as_ref(), self.call.publishing);
        let written =
            self.call.run(|progress| to_hdf5(&self.source, &self.plan, &self.options, target, publishing, progress));
        written.map_err(|error| {
            let is_of_source = error.contexts().any(|context| matches!(context, Context::Member { .. }));
            match error.kind() {
                ErrorKind::Io | ErrorKind::NoSpace if !is_of_source => error.of_file(&Context::path(target)),
                _ => error.of_file(&self.source.place),
            }
        })
    }

    /// Prepares a conversion to the file `target` by several processes, only with
    /// [`Compress::Shared`]: writes everything but the large datasets of numbers to [a
    /// directory](super::ShardPlan::directory_of) beside `target`, and divides these datasets into
    /// ranges of chunks (items) of about `work_bytes` bytes each (0: 1/64 of the size of all these
    /// datasets, at least 32 MiB, at most 512 MiB). [`ShardWorker`](super::ShardWorker) has an
    /// example.
    ///
    /// # Errors
    /// `Usage` for options that are not for plans, conditions on rows and averages among them;
    /// `Exists` if `target` exists or has a plan; `NoSpace`, `Interrupted`; those of reading the
    /// source.
    pub fn shard(&self, target: impl AsRef<Path>, work_bytes: u64) -> Result<ShardPlanSummary> {
        let ToHdf5Plan { path, source, plan, options, .. } = self;
        let (target, publishing) = (target.as_ref(), self.call.publishing);
        self.call.run(|progress| shard::create(source, path, plan, options, work_bytes, target, publishing, progress))
    }
}

/// Writes a casacore table from a native HDF5 file, or from another table.
///
/// See [`ToHdf5`] for an example.
#[derive(Clone)]
#[must_use = "`write` writes the table"]
pub struct ToTable<'a> {
    source: PathBuf,
    open: OpenOptions,
    options: ToTableOptions,
    salvage: bool,
    call: Call<'a>,
}

impl<'a> ToTable<'a> {
    /// Prepares to write a casacore table from the table at `source`: a table directory, a file
    /// that holds a whole table, or a native HDF5 file.
    pub fn new(source: impl AsRef<Path>) -> Self {
        let open = OpenOptions::default();
        let options = ToTableOptions { engines: true, views: Views::Auto, ..ToTableOptions::default() };
        ToTable { source: source.as_ref().to_owned(), open, options, salvage: false, call: Call::default() }
    }

    call_setters!(target);

    open_setters!(native);

    /// Sets whether the source is first read once to find damaged tables, columns and rows, which
    /// are then left out; by default damage ends the call. [`ToTableSummary::damage`] lists them.
    ///
    /// Damaged scalars and arrays of fixed shape, which a table cannot leave undefined, are zeros.
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.salvage = salvage;
        self
    }

    /// Sets the byte order of the data files of the casacore table; the default is the order of the
    /// original table's files if the source records it, else that of this machine.
    pub fn byte_order(mut self, order: ByteOrder) -> Self {
        self.options.byte_order = Some(order);
        self
    }

    /// Sets whether a column that a virtual column engine of casacore computed is bound to that
    /// engine again if the engine computes the same values, which is the default; otherwise the
    /// values are stored. A forwarded column needs the table that has its cells, see
    /// [`parts`](Self::parts).
    pub fn engines(mut self, engines: bool) -> Self {
        self.options.engines = engines;
        self
    }

    /// Sets whether a source that was a reference table or a concatenation becomes one again; by
    /// default [`Views::Auto`].
    pub fn views(mut self, views: Views) -> Self {
        self.options.views = views;
        self
    }

    /// Sets the directory of the tables that have the rows of a reference table or a concatenation,
    /// or the cells of forwarded columns; by default that of the native HDF5 file. Such a file
    /// names them relative to this directory, and can lead to no other one.
    pub fn parts(mut self, directory: impl AsRef<Path>) -> Self {
        self.options.parts = Some(directory.as_ref().to_owned());
        self
    }

    /// Sets the number of threads that read and write columns; 0, the default: one for each
    /// processor.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = threads;
        self
    }

    /// Writes the casacore table to the directory `target`, which appears under its name when it is
    /// complete.
    ///
    /// # Errors
    /// `Exists` if there is something at `target`, unless [`if_exists`](Self::if_exists) says
    /// otherwise; `NoSpace`; `Interrupted` if the token was cancelled; those of reading the source.
    /// The target is then as it was before.
    pub fn write(self, target: impl AsRef<Path>) -> Result<ToTableSummary> {
        let mut source = open(&self.source, self.open, self.salvage)?;
        let place = Context::path(&self.source);
        let written = self.call.run(|progress| {
            if self.salvage {
                source.salvage(|_, _| true, progress)?;
            }
            let options = ToTableOptions { open: self.open, ..self.options.clone() };
            to_table(&source, &options, target.as_ref(), self.call.publishing, progress)
        });
        written.map_err(|error| error.of_file(&place))
    }

    /// Prepares a conversion to the table directory `target` by several processes: writes
    /// everything but the tiles of large hypercubes to [a
    /// directory](super::ShardPlan::directory_of) beside `target`, and divides these tiles into
    /// ranges (items) of about `work_bytes` bytes each (0: 1/64 of the size of all these tiles, at
    /// least 32 MiB, at most 512 MiB). All values are stored: the finished table equals, byte for
    /// byte, that of [`write`](Self::write) without [`engines`](Self::engines) and
    /// [`views`](Self::views).
    ///
    /// # Errors
    /// `Usage` with [`salvage`](Self::salvage); `Exists` if `target` exists or has a plan;
    /// `NoSpace`, `Interrupted`; those of reading the source.
    pub fn shard(self, target: impl AsRef<Path>, work_bytes: u64) -> Result<ShardPlanSummary> {
        if self.salvage {
            return Err(Error::usage("damage cannot be left out in a plan"));
        }
        let source = Source::open_with(&self.source, self.open)?;
        let options = ToTableOptions { engines: false, views: Views::Never, ..self.options.clone() };
        let (publishing, target) = (self.call.publishing, target.as_ref());
        let made = self.call.run(|progress| {
            shard::create_table(&source, &self.source, &options, work_bytes, target, publishing, progress)
        });
        made.map_err(|error| error.of_file(&Context::path(&self.source)))
    }
}

/// Restores the original table directory, every file and every byte, from a native HDF5 file made
/// with [`ToHdf5::restorable`].
#[derive(Clone)]
#[must_use = "`write` restores the files"]
pub struct ToOriginal<'a> {
    source: PathBuf,
    threads: usize,
    call: Call<'a>,
}

impl<'a> ToOriginal<'a> {
    /// Prepares to restore the table directory from which the HDF5 file at `source` was made with
    /// [`ToHdf5::restorable`].
    pub fn new(source: impl AsRef<Path>) -> Self {
        ToOriginal { source: source.as_ref().to_owned(), threads: 0, call: Call::default() }
    }

    call_setters!(target);

    /// Sets the number of threads that decode the HDF5 file; 0, the default: one for each
    /// processor.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Restores the original table directory as `target`, which appears when it is complete and the
    /// SHA-256 of every file has been checked.
    ///
    /// # Errors
    /// `Usage` if the file does not hold its originals. `Format` if a file would differ from the
    /// original, because of damage or because columns, which are named, were changed since.
    /// `Exists`, `NoSpace` and `Interrupted` as for [`ToTable::write`].
    pub fn write(self, target: impl AsRef<Path>) -> Result<ToOriginalSummary> {
        let (publishing, threads) = (self.call.publishing, self.threads);
        self.call.run(|progress| exact::restore(&self.source, target.as_ref(), publishing, threads, progress))
    }
}

/// Compares two sources value by value, whatever their storage; or a native HDF5 file (columns as
/// datasets) with the digests of its content that were stored in it when it was made.
///
/// See [`ToHdf5`] for an example.
#[derive(Clone)]
#[must_use = "`run` compares"]
pub struct Compare<'a> {
    left: PathBuf,
    /// `None` compares the left one with its stored digests.
    right: Option<PathBuf>,
    predicate: Option<Predicate>,
    open: OpenOptions,
    call: Call<'a>,
}

impl<'a> Compare<'a> {
    /// Prepares a comparison of all tables of two sources: rows, columns, keywords, cells. Each
    /// source is a table directory, a container (a file that holds all files of a table), or a
    /// native HDF5 file.
    pub fn new(left: impl AsRef<Path>, right: impl AsRef<Path>) -> Self {
        Self::of(left.as_ref(), Some(right.as_ref()))
    }

    /// Prepares a comparison of the native HDF5 file at `path` with the digests that were stored in
    /// it when it was made: every column, every keyword set, and, if the original casacore files
    /// can be restored from it, the bytes of each. Damage in the elements of a column is a
    /// difference.
    pub fn with_stored_digests(path: impl AsRef<Path>) -> Self {
        Self::of(path.as_ref(), None)
    }

    fn of(left: &Path, right: Option<&Path>) -> Self {
        let (left, right) = (left.to_owned(), right.map(Path::to_owned));
        Compare { left, right, predicate: None, open: OpenOptions::default(), call: Call::default() }
    }

    /// Compares only the rows of the left source's main table that satisfy `predicate`, as
    /// [`ToHdf5::rows_where`] selects them, with all rows of the right source's main table, such as
    /// a file converted with the same condition.
    pub fn rows_where(mut self, predicate: Predicate) -> Self {
        self.predicate = Some(predicate);
        self
    }

    open_setters!(native);

    call_setters!();

    /// Compares the two sources, or the native HDF5 file with the digests stored in it. Differences
    /// are a result, not an error.
    ///
    /// # Errors
    /// Those of reading either source; `Usage` if a file that is to be compared with its digests
    /// has none; `Interrupted`.
    pub fn run(self) -> Result<Comparison> {
        let Some(right) = &self.right else {
            return self.call.run(|progress| super::check::check(&self.left, self.open, progress));
        };
        let (mut left, right) = (Source::open_with(&self.left, self.open)?, Source::open_with(right, self.open)?);
        self.call.run(|progress| {
            if let Some(predicate) = &self.predicate {
                left.select(predicate, None, progress)?;
            }
            right.blame_server(left.blame_server(compare(&left, &right, progress)))
        })
    }
}

/// Computes fingerprints (CTFP-2, or CTFP-1 with SHA-256) of the content of a source, which do not
/// depend on how it is stored.
///
/// ```
/// use ctds_hdf5::convert::{Digest, ToHdf5};
/// # use ctds_hdf5::{ColumnDesc, NewTable};
/// # let folder = tempfile::tempdir()?;
/// # let (my_ms, my_h5) = (folder.path().join("my.ms"), folder.path().join("my.h5"));
/// # NewTable::new().column(ColumnDesc::scalar::<f64>("TIME")).create(&my_ms)?.close()?;
///
/// ToHdf5::new(&my_ms).write(&my_h5)?;
/// let main = |path| -> ctds_hdf5::Result<_> {
///     let (name, table) = Digest::new(path).run()?.remove(0);
///     assert_eq!(name, ".");
///     Ok(table?.hash)
/// };
/// assert_eq!(main(&my_ms)?, main(&my_h5)?);
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "`run` computes"]
pub struct Digest<'a> {
    source: PathBuf,
    open: OpenOptions,
    columns: Vec<String>,
    hash: HashKind,
    call: Call<'a>,
}

impl<'a> Digest<'a> {
    /// Prepares fingerprints of all tables of `source`: a table directory, a file that holds a
    /// whole table, or a native HDF5 file.
    pub fn new(source: impl AsRef<Path>) -> Self {
        let (source, open) = (source.as_ref().to_owned(), OpenOptions::default());
        Digest { source, open, columns: Vec::new(), hash: HashKind::default(), call: Call::default() }
    }

    open_setters!(native);

    /// Restricts the fingerprints to the columns `names`, such as `TIME`, of every table; by
    /// default all columns are included.
    pub fn columns<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.columns = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the hash of the fingerprints: BLAKE3 (CTFP-2) by default, or SHA-256 (CTFP-1).
    pub fn hash(mut self, kind: HashKind) -> Self {
        self.hash = kind;
        self
    }

    call_setters!();

    /// Computes the fingerprints, reading columns in parallel. Returns each table with its name,
    /// `.` for the main one; a table that cannot be opened is returned with its error.
    ///
    /// # Errors
    /// Those of [`Source::open`]; `Usage` if no table has a column of a given name; `Interrupted`.
    /// Errors of tables and columns are in the result.
    pub fn run(self) -> Result<Vec<(String, Result<TableDigest>)>> {
        let source = Source::open_with(&self.source, self.open)?;
        source.check_columns(&self.columns).with_context(|| source.place.clone())?;
        let selected =
            |_: &str, column: &str| self.columns.is_empty() || self.columns.iter().any(|name| name == column);
        self.call.run(|progress| source.blame_server(digest(&source, self.hash, selected, progress)))
    }
}

fn open(path: &Path, options: OpenOptions, salvage: bool) -> Result<Source> {
    if salvage { Source::open_to_salvage(path, options) } else { Source::open_with(path, options) }
}
