//! Tables into containers and out of them, byte for byte.
//!
//! Everything goes through the [`Plain`] form of a table, so that any container becomes any other in one step.
//! docs/packing.md.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use ctds_hdf5::OpenOptions;
//! use ctds_hdf5::pack::Plain;
//!
//! let plain = Plain::open(Path::new("packed.ms"), OpenOptions::default())?;
//! println!("{} files, {} bytes when unpacked", plain.files(), plain.bytes());
//! # Ok::<(), ctds_hdf5::Error>(())
//! ```

mod compare;
mod copy;
mod list;
mod plain;
mod special;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use crate::container::{Container, ContainerMut, Directory, Format, FormatOptions};
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::read_all;
use crate::output::Output;
use crate::progress::Progress;
use crate::schema::{StorageOption, with_storage};

pub use self::compare::{ByteComparison, ByteDifference, compare};
use self::copy::Copier;
pub use self::list::{Check, ListedFile, Listing};
pub use self::plain::Plain;
use self::plain::{Folder, ORIGINAL_DAT, TABLE_DAT};

/// Kinds of containers that a table can be packed into. Their names on the command line are in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackFormat {
    /// `table.mf`; every casacore reads it.
    MultiFile,
    /// `table.mfh5`; casacore reads it if it was built with HDF5.
    MultiHdf5,
}

/// How a table is packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackOptions {
    /// The kind of container.
    pub format: PackFormat,
    /// Size of a block in bytes; `None`: 1 MiB, less for small tables.
    pub block_bytes: Option<u64>,
    /// Whether each block has a checksum.
    pub checksums: bool,
    /// The deflate level of each block, up to 9; 0: none. MultiHDF5 only.
    pub deflate: u8,
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
    fn format(self) -> &'static Format {
        self.storage().format().expect("it is not `SepFile`")
    }

    fn storage(self) -> StorageOption {
        match self {
            PackFormat::MultiFile => StorageOption::MultiFile,
            PackFormat::MultiHdf5 => StorageOption::MultiHdf5,
        }
    }
}

/// Packs the table `source` into `target`, which appears when it is whole.
///
/// # Errors
/// `Usage` if `target` is in the source or the options do not fit the format, `Exists` without `overwrite` if there is
/// something at `target`, `NoSpace`, and those of reading the source. Nothing is left at `target` then.
pub fn pack(source: &Plain, target: &Path, options: &PackOptions, progress: &dyn Progress) -> Result<PackSummary> {
    source.check_apart(target)?;
    if options.single_file {
        let output = Output::create(target, options.overwrite, needed(source, options))?;
        let blocks =
            block_bytes(options, source.root.all().into_iter().flat_map(|folder| &folder.files).map(|file| file.len));
        let container = (options.format.format().create)(output.partial(), &format_options(options, blocks))?;
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
pub fn unpack(source: &Plain, target: &Path, overwrite: bool, progress: &dyn Progress) -> Result<PackSummary> {
    source.check_apart(target)?;
    let output = Output::create_directory(target, overwrite, source.bytes())?;
    let directory = Directory::new(output.partial());
    finish(source, output, progress, |copier| copy_tree(&source.root, &directory, copier))
}

/// Makes what `write` writes durable and visible.
fn finish(
    source: &Plain,
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
    let format = options.format.format();
    let inside = |name: &str| folder.belongs_into_container(name);
    let sizes = folder.files.iter().filter(|file| inside(&file.name)).map(|file| file.len);
    let blocks = block_bytes(options, sizes);
    let container = match folder.is_packable() {
        Some(true) => Some(make_container(folder, target, format, &format_options(options, blocks))?),
        _ => None,
    };
    for file in &folder.files {
        match &container {
            Some(container) if inside(&file.name) => copier.copy(folder, file, &**container)?,
            _ if file.name == TABLE_DAT && folder.is_packable().is_some() => {
                let original = read_all(&file.open()?)?;
                let packed = with_storage(&original, options.format.storage(), u32::try_from(blocks).ok())?;
                // by the rule of `Plain`
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
        let nested = Directory::new(target.path(name).expect("a directory knows"));
        pack_table(inner, &nested, options, copier).context(Context::member(name))?;
    }
    target.commit()
}

fn make_container(
    folder: &Folder,
    target: &Directory,
    format: &Format,
    options: &FormatOptions,
) -> Result<Arc<dyn ContainerMut>> {
    if folder.files.iter().any(|file| file.name == format.file_name) {
        let message = "a file of this name is there that is not the table's container";
        return Err(Error::unsupported(message).context(Context::member(format!("{}{}", folder.prefix, format.file_name))));
    }
    let path = target.path(format.file_name).expect("a directory knows");
    (format.create)(&path, options)
}

fn format_options(options: &PackOptions, block_bytes: u64) -> FormatOptions {
    let PackOptions { checksums, deflate, single_file: archive, .. } = *options;
    FormatOptions { block_bytes, checksums, deflate, archive, appendable: false }
}

/// The size of a block for files of these sizes: so that a sixteenth of a container is waste, if they are not small.
fn block_bytes(options: &PackOptions, sizes: impl Iterator<Item = u64>) -> u64 {
    let (count, bytes) = sizes.fold((0, 0), |(count, bytes): (u64, u64), size| (count + 1, bytes.saturating_add(size)));
    let fitting = (bytes / (8 * count.max(1))).clamp(SMALLEST_BLOCK, LARGEST_BLOCK);
    options.block_bytes.unwrap_or(1 << fitting.ilog2())
}

/// About how many bytes a packed table takes.
fn needed(source: &Plain, options: &PackOptions) -> u64 {
    match options.deflate {
        0 => source.bytes(),
        _ => 0,
    }
}
