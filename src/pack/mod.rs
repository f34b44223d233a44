//! Tables into containers and out of them, byte for byte.
//!
//! Everything goes through the [`FileSet`] of a table, its files as they lie on their own. So any container becomes any
//! other in one step.
//! docs/packing.md.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use ctds_hdf5::OpenOptions;
//! use ctds_hdf5::pack::FileSet;
//!
//! let files = FileSet::open(Path::new("packed.ms"), OpenOptions::default())?;
//! println!("{} files, {} bytes when unpacked", files.files(), files.bytes());
//! # Ok::<(), ctds_hdf5::Error>(())
//! ```

mod compare;
mod copy;
mod file_set;
mod list;
mod special;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use crate::container::{self, CasacoreStorage, Container, ContainerMut, Directory, Format, FormatOptions};
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::Compression;
use crate::io::read_all;
use crate::output::Output;
use crate::progress::Progress;
use crate::schema::{StorageOption, with_storage};

pub use self::compare::{ByteComparison, ByteDifference, compare};
use self::copy::Copier;
pub use self::file_set::FileSet;
use self::file_set::{Folder, ORIGINAL_DAT, TABLE_DAT};
pub use self::list::{Check, ListedFile, Listing};
pub use crate::damage::Damage;

/// A kind of container that a table can be packed into.
///
/// ```
/// use ctds_hdf5::pack::PackFormat;
///
/// let names: Vec<_> = PackFormat::all().map(PackFormat::name).collect();
/// assert_eq!(names, ["multifile", "multihdf5"]);
/// assert_eq!("multihdf5".parse::<PackFormat>()?, PackFormat::MULTI_HDF5);
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct PackFormat(&'static Format);

/// How a table is packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackOptions {
    /// The kind of container.
    pub format: PackFormat,
    /// Size of a block in bytes; `None`: 1 MiB, less for small tables.
    pub block_bytes: Option<u64>,
    /// Whether each block has a checksum.
    pub checksums: bool,
    /// Compression of each block. MultiHDF5 only.
    pub compression: Compression,
    /// One file with everything, subtables included, which casacore cannot open; otherwise a table directory for it.
    pub single_file: bool,
    /// Whether a table or file that is there is replaced.
    pub overwrite: bool,
}

/// What was packed or unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackSummary {
    /// Files in plain form.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of what was made.
    pub stored_bytes: u64,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Largest block that is chosen without being asked for: larger ones do not fit in a processor's cache, and HDF5 takes a
/// block as a whole.
const LARGEST_BLOCK: u64 = 1 << 20;

/// Smallest such block.
const SMALLEST_BLOCK: u64 = 4 << 10;

impl PackFormat {
    /// MultiFile, `table.mf` in a table directory; every casacore reads it.
    pub const MULTI_FILE: Self = PackFormat(&container::MULTI_FILE);

    /// MultiHDF5, `table.mfh5` in a table directory; casacore reads it if it was built with HDF5.
    pub const MULTI_HDF5: Self = PackFormat(&container::MULTI_HDF5);

    /// All formats that can be written.
    pub fn all() -> impl Iterator<Item = Self> {
        container::FORMATS.iter().filter(|format| format.create.is_some()).map(|format| PackFormat(format))
    }

    /// Name on the command line and in listings: `multifile`, `multihdf5`.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// How casacore has such a container in a table directory.
    fn in_table_directory(self) -> Result<(CasacoreStorage, StorageOption)> {
        let storage = self.0.casacore.and_then(|casacore| Some((casacore, StorageOption::of_code(casacore.option)?)));
        storage.ok_or_else(|| {
            let message =
                format!("casacore cannot open a table with a {} container: pack it into a single file", self.name());
            Error::usage(message)
        })
    }
}

impl FromStr for PackFormat {
    type Err = Error;

    /// Finds a format by its name.
    ///
    /// # Errors
    /// `Usage` if no format that can be written has this name.
    fn from_str(name: &str) -> Result<Self> {
        Self::all().find(|format| format.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::all().map(Self::name).collect();
            Error::usage(format!("{name:?} is not a format that can be written; expected {}", known.join(" or ")))
        })
    }
}

impl fmt::Debug for PackFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PackFormat").field(&self.name()).finish()
    }
}

impl PartialEq for PackFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for PackFormat {}

/// Packs the table `source` into `target`, which appears when it is whole.
///
/// # Errors
/// `Usage` if `target` is in the source or the options do not fit the format, `Exists` without `overwrite` if there is
/// something at `target`, `NoSpace`, and those of reading the source. Nothing is left at `target` then.
pub fn pack(source: &FileSet, target: &Path, options: &PackOptions, progress: &dyn Progress) -> Result<PackSummary> {
    source.check_apart(target)?;
    if options.single_file {
        let output = Output::create(target, options.overwrite, needed(source, options))?;
        let blocks =
            block_bytes(options, source.root.all().into_iter().flat_map(|folder| &folder.files).map(|file| file.len));
        let container = options.format.0.create(output.partial(), &format_options(options, blocks))?;
        return finish(source, output, progress, |copier| copy_tree(&source.root, &*container, copier));
    }
    let output = Output::create_directory(target, options.overwrite, needed(source, options))?;
    let directory = Directory::new(output.partial());
    finish(source, output, progress, |copier| pack_table(&source.root, &directory, options, copier))
}

/// Writes the table `source` to the directory `target`, each file on its own.
///
/// # Errors
/// As [`pack`].
pub fn unpack(source: &FileSet, target: &Path, overwrite: bool, progress: &dyn Progress) -> Result<PackSummary> {
    source.check_apart(target)?;
    let output = Output::create_directory(target, overwrite, source.bytes())?;
    let directory = Directory::new(output.partial());
    finish(source, output, progress, |copier| copy_tree(&source.root, &directory, copier))
}

/// Makes what `write` writes durable and visible.
fn finish(
    source: &FileSet,
    output: Output,
    progress: &dyn Progress,
    write: impl FnOnce(&mut Copier<'_>) -> Result<()>,
) -> Result<PackSummary> {
    let syncing = output.sync_behind();
    write(&mut Copier::new(progress))?;
    drop(syncing);
    let stored_bytes = output.bytes()?;
    output.commit()?;
    Ok(PackSummary { files: source.files(), bytes: source.bytes(), stored_bytes, warnings: source.warnings() })
}

fn copy_tree(folder: &Folder, target: &dyn ContainerMut, copier: &mut Copier<'_>) -> Result<()> {
    for file in &folder.files {
        copier.copy(folder, file, target)?;
    }
    for (name, inner) in &folder.nested {
        let nested = target.create_nested(name)?;
        copy_tree(inner, &*nested, copier).context(Context::member(name))?;
    }
    target.commit()
}

/// Packs the table into `target`, with a container for itself and one for each table below it.
fn pack_table(folder: &Folder, target: &Directory, options: &PackOptions, copier: &mut Copier<'_>) -> Result<()> {
    let (casacore, storage) = options.format.in_table_directory()?;
    let inside = |name: &str| folder.belongs_into_container(name);
    let sizes = folder.files.iter().filter(|file| inside(&file.name)).map(|file| file.len);
    let blocks = block_bytes(options, sizes);
    let container = match folder.is_packable() {
        Some(true) => Some(make_container(folder, target, options, casacore, blocks)?),
        _ => None,
    };
    for file in &folder.files {
        match &container {
            Some(container) if inside(&file.name) => copier.copy(folder, file, &**container)?,
            _ if file.name == TABLE_DAT && folder.is_packable().is_some() => {
                let original = read_all(&file.open()?)?;
                let packed = with_storage(&original, storage, u32::try_from(blocks).ok())?;
                // by the rule of `FileSet`
                let restorable = with_storage(&packed, StorageOption::SepFile, None)? == original;
                if !restorable && let Some(container) = &container {
                    container.create(ORIGINAL_DAT)?.write_at(0, &original)?;
                }
                // without a container nothing depends on it
                let bytes = if restorable || container.is_some() { packed } else { original };
                target.create(TABLE_DAT)?.write_at(0, &bytes)?;
                copier.advance(file.len, folder, file)?;
            }
            _ => copier.copy(folder, file, target)?,
        }
    }
    if let Some(container) = container {
        container.commit()?;
    }
    for (name, inner) in &folder.nested {
        target.create_nested(name)?;
        let nested = Directory::new(target.path(name).expect("a directory has paths"));
        pack_table(inner, &nested, options, copier).context(Context::member(name))?;
    }
    target.commit()
}

fn make_container(
    folder: &Folder,
    target: &Directory,
    options: &PackOptions,
    CasacoreStorage { file_name, .. }: CasacoreStorage,
    block_bytes: u64,
) -> Result<Arc<dyn ContainerMut>> {
    if folder.files.iter().any(|file| file.name == file_name) {
        let message = "a file of this name is there that is not the table's container";
        return Err(Error::unsupported(message).context(format!("{}{file_name}", folder.prefix)));
    }
    let path = target.path(file_name).expect("a directory has paths");
    options.format.0.create(&path, &format_options(options, block_bytes))
}

fn format_options(options: &PackOptions, block_bytes: u64) -> FormatOptions {
    let PackOptions { checksums, compression, single_file: archive, .. } = *options;
    FormatOptions { block_bytes, checksums, compression, archive, appendable: false }
}

/// The size of a block for files of these sizes: so that a sixteenth of a container is waste, if they are not small.
fn block_bytes(options: &PackOptions, sizes: impl Iterator<Item = u64>) -> u64 {
    let (count, bytes) = sizes.fold((0, 0), |(count, bytes): (u64, u64), size| (count + 1, bytes.saturating_add(size)));
    let fitting = (bytes / (8 * count.max(1))).clamp(SMALLEST_BLOCK, LARGEST_BLOCK);
    options.block_bytes.unwrap_or(1 << fitting.ilog2())
}

/// About how many bytes a packed table takes.
fn needed(source: &FileSet, options: &PackOptions) -> u64 {
    if options.compression.is_none() { source.bytes() } else { 0 }
}
