//! The builders [`Pack`], [`Unpack`] and [`CompareBytes`]: each holds the options of one call that
//! packs, unpacks or compares tables, and runs it.

use std::path::{Path, PathBuf};

use super::compare::{ByteComparison, compare};
use super::elsewhere::Elsewhere;
use super::file_set::{FileSet, Wanted};
use super::format::PackFormat;
use super::write::{PackOptions, PackSummary, pack, unpack};
use crate::call::{Call, call_setters, open_setters};
use crate::error::Result;
use crate::h5::Compression;
use crate::hash::HashKind;
use crate::progress::{Phase, Progress};
use crate::table::OpenOptions;

/// Packs the files of a table, and of its subtables, into container files: MultiFile, MultiHDF5 or
/// another [`PackFormat`].
///
/// See [the module](super) for an example.
#[derive(Clone)]
#[must_use = "`write` packs"]
pub struct Pack<'a> {
    source: PathBuf,
    open: OpenOptions,
    salvage: bool,
    follow: bool,
    format: Option<PackFormat>,
    options: PackOptions,
    call: Call<'a>,
}

impl<'a> Pack<'a> {
    /// Prepares packing of the table at `source`: a directory, or a file that holds a whole table.
    pub fn new(source: impl AsRef<Path>) -> Self {
        let options = PackOptions {
            format: PackFormat::MULTI_FILE,
            block_bytes: None,
            checksums: false,
            hash: None,
            compression: Compression::NONE,
            single_file: false,
            dtype: None,
        };
        let source = source.as_ref().to_owned();
        let (open, call) = (OpenOptions::default(), Call::default());
        Pack { source, open, salvage: false, follow: false, format: None, options, call }
    }

    open_setters!();

    /// Sets the kind of container; by default MultiFile, which casacore 3.6 and later read, but
    /// MultiHDF5 if everything is packed into one output file ([`single_file`](Self::single_file))
    /// or compressed.
    pub fn format(mut self, format: PackFormat) -> Self {
        self.format = Some(format);
        self
    }

    /// Sets the size of a block of the container in bytes; by default 4 KiB to 1 MiB by
    /// the sizes of the files for MultiFile and MultiHDF5, and 4 KiB for SION.
    pub fn block_bytes(mut self, bytes: u64) -> Self {
        self.options.block_bytes = Some(bytes);
        self
    }

    /// Sets whether each block of the container has a checksum; by default none has.
    pub fn checksums(mut self, checksums: bool) -> Self {
        self.options.checksums = checksums;
        self
    }

    /// Sets the hash that the output records of each file: BLAKE3 by default, as `b3sum` prints it.
    /// Single MultiHDF5 files only.
    pub fn checksum(mut self, kind: HashKind) -> Self {
        self.options.hash = Some(kind);
        self
    }

    /// Sets how each block of the container is compressed; by default it is not. MultiHDF5 only.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.options.compression = compression;
        self
    }

    /// Sets whether the table and its subtables are packed into one file, which casacore cannot
    /// open; by default a table directory is written.
    pub fn single_file(mut self, single_file: bool) -> Self {
        self.options.single_file = single_file;
        self
    }

    /// Sets the element type of the datasets that hold the packed files, by numpy's name: `f4`,
    /// `int32`; the bytes of a file are taken as little-endian elements of this type. By default
    /// datasets are of bytes. HDF5 only.
    pub fn dtype(mut self, name: &str) -> Self {
        self.options.dtype = Some(name.to_owned());
        self
    }

    /// Sets whether files that cannot be read, and containers and directories that cannot be
    /// opened, are left out; by default damage ends the call. If set, every file is read once
    /// before anything is packed. [`PackSummary::damage`] lists what was left out.
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.salvage = salvage;
        self
    }

    /// Sets whether tables outside of the source that its tables need are packed as well, as
    /// folders in it: those that hold the rows of reference tables and concatenations and the cells
    /// of forwarded columns, and subtables in other directories. The packed `table.dat` names them
    /// in the container. By default [`PackSummary::elsewhere`] names them.
    pub fn follow_references(mut self, follow: bool) -> Self {
        self.follow = follow;
        self
    }

    call_setters!(target);

    /// Whether [`follow_references`](Self::follow_references) is set.
    pub fn follows_references(&self) -> bool {
        self.follow
    }

    /// Whether [`salvage`](Self::salvage) is set.
    pub fn is_salvaging(&self) -> bool {
        self.salvage
    }

    /// Lists the tables that the tables of the source need but that would not be packed; nothing is
    /// written.
    ///
    /// # Errors
    /// Those of reading the source.
    pub fn elsewhere(&self) -> Result<Vec<Elsewhere>> {
        open(&self.source, self.wanted(), self.open, self.salvage, self.follow, &())?.elsewhere()
    }

    fn wanted(&self) -> Wanted {
        if self.options().format.is_for_tables() { Wanted::Table } else { Wanted::Files }
    }

    /// The default format is MultiFile, or MultiHDF5 for a single file or with compression.
    fn options(&self) -> PackOptions {
        let is_multi_file = !self.options.single_file && self.options.compression.is_none();
        let default = if is_multi_file { PackFormat::MULTI_FILE } else { PackFormat::MULTI_HDF5 };
        PackOptions { format: self.format.unwrap_or(default), ..self.options.clone() }
    }

    /// Packs the table into `target`, a table directory or a single file, which appears under its
    /// name when it is complete.
    ///
    /// # Errors
    /// `Usage` if `target` is in the source or the options do not fit the format; `Exists` if there
    /// is something at `target`, unless [`if_exists`](Self::if_exists) says otherwise; `NoSpace`;
    /// `Interrupted`; those of reading the source. The target is then as it was before.
    pub fn write(self, target: impl AsRef<Path>) -> Result<PackSummary> {
        let (options, target) = (self.options(), target.as_ref());
        self.call.run(|progress| {
            let source = open(&self.source, self.wanted(), self.open, self.salvage, self.follow, progress)?;
            progress.expect(source.bytes());
            progress.phase(Phase::Writing);
            pack(&source, target, &options, self.call.publishing, progress)
        })
    }
}

fn open(
    path: &Path,
    wanted: Wanted,
    options: OpenOptions,
    salvage: bool,
    follow: bool,
    progress: &dyn Progress,
) -> Result<FileSet> {
    match (salvage, follow) {
        (true, _) => FileSet::salvage(path, wanted, options, follow, progress),
        (false, true) => FileSet::follow(path, wanted, options),
        (false, false) => FileSet::open(path, wanted, options),
    }
}

/// Unpacks a table: writes its files, and those of its subtables, into directories as separate
/// files, outside of containers.
///
/// See [the module](super) for an example.
#[derive(Clone)]
#[must_use = "`write` unpacks"]
pub struct Unpack<'a> {
    source: PathBuf,
    open: OpenOptions,
    salvage: bool,
    call: Call<'a>,
}

impl<'a> Unpack<'a> {
    /// Prepares unpacking of the table at `source`: a table directory, packed or not, or a file
    /// that holds a whole table.
    pub fn new(source: impl AsRef<Path>) -> Self {
        let (source, open) = (source.as_ref().to_owned(), OpenOptions::default());
        Unpack { source, open, salvage: false, call: Call::default() }
    }

    open_setters!();

    /// Sets whether files that cannot be read, and containers and directories that cannot be
    /// opened, are left out; by default damage ends the call. If set, every file is read once
    /// before anything is unpacked. [`PackSummary::damage`] lists what was left out.
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.salvage = salvage;
        self
    }

    call_setters!(target);

    /// Writes the unpacked table, or the files of a container that holds none, to the directory
    /// `target`, which appears under its name when it is complete.
    ///
    /// # Errors
    /// As [`Pack::write`].
    pub fn write(self, target: impl AsRef<Path>) -> Result<PackSummary> {
        self.call.run(|progress| {
            let source = open(&self.source, Wanted::Packed, self.open, self.salvage, false, progress)?;
            progress.expect(source.bytes());
            progress.phase(Phase::Writing);
            unpack(&source, target.as_ref(), self.call.publishing, progress)
        })
    }
}

/// Compares the files of two tables byte by byte, each taken out of its container if it is in one.
///
/// See [the module](super) for an example; [`convert::Compare`](crate::convert::Compare) compares
/// values.
#[derive(Clone)]
#[must_use = "`run` compares"]
pub struct CompareBytes<'a> {
    left: PathBuf,
    right: PathBuf,
    open: OpenOptions,
    call: Call<'a>,
}

impl<'a> CompareBytes<'a> {
    /// Prepares the comparison of two tables, each a table directory, packed or not, or a file that
    /// holds a whole table.
    pub fn new(left: impl AsRef<Path>, right: impl AsRef<Path>) -> Self {
        let (left, right) = (left.as_ref().to_owned(), right.as_ref().to_owned());
        CompareBytes { left, right, open: OpenOptions::default(), call: Call::default() }
    }

    open_setters!();

    call_setters!();

    /// Compares the files of the two tables given to [`new`](Self::new) byte by byte; differences
    /// are a result, not an error.
    ///
    /// # Errors
    /// Those of reading either table; `Interrupted`.
    pub fn run(self) -> Result<ByteComparison> {
        let open = |path: &Path| FileSet::open(path, Wanted::Files, self.open);
        let (left, right) = (open(&self.left)?, open(&self.right)?);
        self.call.run(|progress| {
            progress.expect(left.bytes());
            progress.phase(Phase::Comparing);
            compare(&left, &right, progress)
        })
    }
}
