//! Writes packed and unpacked tables, with all their files.

use std::path::Path;
use std::sync::Arc;

use super::copy::{Copier, shareable};
use super::elsewhere::Elsewhere;
use super::file_set::{FileSet, Folder, ORIGINAL_DAT, TABLE_DAT};
use super::format::PackFormat;
use crate::container::{
    self, CasacoreStorage, Container, ContainerMut, Directory, FormatOptions, WriteOptions, WriteTree,
};
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::Compression;
use crate::hash::HashKind;
use crate::io::read_all;
use crate::output::Damage;
use crate::output::{IfExists, Publishing};
use crate::output::{Output, directory_of};
use crate::progress::{Phase, Progress};
use crate::schema::{StorageOption, with_storage};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PackOptions {
    pub(super) format: PackFormat,
    /// `None`: by file sizes from 4 KiB to 1 MiB; for SION 4 KiB; for vt varying.
    pub(super) block_bytes: Option<u64>,
    pub(super) checksums: bool,
    /// Hash of each file in a single MultiHDF5 file; `None` for BLAKE3.
    pub(super) hash: Option<HashKind>,
    pub(super) compression: Compression,
    /// Everything, subtables included, becomes one file.
    pub(super) single_file: bool,
    /// HDF5 only: numpy's name of the datasets' element type, if not bytes.
    pub(super) dtype: Option<String>,
}

/// Summary of packing or unpacking: number and bytes of files, and what was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackSummary {
    /// Number of packed or unpacked files, counted as they are outside of containers.
    pub files: usize,
    /// Sum of the lengths of the packed or unpacked files, in bytes, as they are outside of
    /// containers.
    pub bytes: u64,
    /// Size in bytes of the files that were written: of containers, or of unpacked files.
    pub stored_bytes: u64,
    /// Number of bytes of the written files that are shared with the source by reflink (common
    /// blocks of the file system) and take no space of their own.
    pub shared_bytes: u64,
    /// Warnings for the user about the packing, in sentences.
    pub warnings: Vec<String>,
    /// The damaged files, containers and directories that were left out; empty without
    /// [`Pack::salvage`](super::Pack::salvage) or [`Unpack::salvage`](super::Unpack::salvage).
    pub damage: Vec<Damage>,
    /// The tables that the packed or unpacked tables need, but that were not packed or unpacked
    /// with them.
    pub elsewhere: Vec<Elsewhere>,
}

/// Fits in a processor's cache, and libhdf5 reads whole blocks (chunks) of MultiHDF5.
pub(super) const LARGEST_BLOCK: u64 = 1 << 20;

/// Also SION's default for files of any size.
pub(super) const SMALLEST_BLOCK: u64 = 4 << 10;

/// `target` appears when it is complete.
pub(super) fn pack(
    source: &FileSet,
    target: &Path,
    options: &PackOptions,
    publishing: Publishing,
    progress: &dyn Progress,
) -> Result<PackSummary> {
    source.check_apart(target)?;
    write(source, target, options, publishing, progress, |_| Ok(()))
}

/// Packs a live container, which a single file replaces. `check` is called with the path of the
/// output before that appears.
pub(super) fn rewrite(
    source: &FileSet,
    target: &Path,
    options: &PackOptions,
    mut publishing: Publishing,
    progress: &dyn Progress,
    check: impl FnOnce(&Path) -> Result<()>,
) -> Result<PackSummary> {
    if options.single_file {
        publishing.if_exists = IfExists::Replace;
    } else {
        source.check_apart(target)?;
    }
    write(source, target, options, publishing, progress, check)
}

fn write(
    source: &FileSet,
    target: &Path,
    options: &PackOptions,
    publishing: Publishing,
    progress: &dyn Progress,
    check: impl FnOnce(&Path) -> Result<()>,
) -> Result<PackSummary> {
    if options.dtype.is_some() && options.format != PackFormat::HDF5 {
        return Err(Error::usage(format!("a type of the elements is for HDF5, not for {}", options.format.name())));
    }
    if options.hash.is_some() && !(options.single_file && options.format == PackFormat::MULTI_HDF5) {
        let message = "only a single file in the format multihdf5 records a checksum of each file";
        return Err(Error::usage(message));
    }
    if let Some(write_tree) = options.format.write_tree() {
        return pack_at_once(source, target, options, write_tree, publishing.if_exists, progress);
    }
    if options.single_file || !options.format.is_for_tables() {
        let output = Output::create(target, publishing, needed(source, target, options))?;
        let blocks = if options.format.is_for_tables() {
            block_bytes(options, source.root.all().into_iter().flat_map(|folder| &folder.files).map(|file| file.len))
        } else {
            options.block_bytes.unwrap_or(SMALLEST_BLOCK)
        };
        let mut files = source.announce()?;
        if let Some(dtype) = &options.dtype {
            container::set_dtype(&mut files, dtype)?;
        }
        let container = options.format.create_for(output.partial(), &files, &format_options(options, blocks))?;
        return finish(source, target, output, progress, check, |copier| {
            copy_tree(&source.root, &*container, copier)?;
            drop(container);
            Ok(())
        });
    }
    let output = Output::create_directory(target, publishing, needed(source, target, options))?;
    let directory = Directory::new(output.partial()).write_behind(publishing.sync.is_behind());
    finish(source, target, output, progress, check, |copier| pack_table(&source.root, &directory, options, copier))
}

/// Packs for formats that are written as a whole, not file by file.
fn pack_at_once(
    source: &FileSet,
    target: &Path,
    options: &PackOptions,
    write_tree: WriteTree,
    if_exists: IfExists,
    progress: &dyn Progress,
) -> Result<PackSummary> {
    let name = options.format.name();
    if if_exists.replaces() {
        return Err(Error::usage(format!("the format {name} adds to what exists: nothing is overwritten")));
    }
    if options.checksums || !options.compression.is_none() {
        return Err(Error::usage(format!("the format {name} has neither a choice of compression nor of checksums")));
    }
    let write_options = WriteOptions { block_bytes: options.block_bytes };
    let written = write_tree(&*source.as_container()?, target, &write_options, progress)
        .with_context(|| Context::path(target))?;
    Ok(PackSummary {
        files: source.files(),
        bytes: source.bytes(),
        stored_bytes: written.stored_bytes,
        shared_bytes: 0,
        warnings: [source.warnings(), written.warnings].concat(),
        damage: source.damage().to_vec(),
        elsewhere: source.elsewhere()?,
    })
}

pub(super) fn unpack(
    source: &FileSet,
    target: &Path,
    publishing: Publishing,
    progress: &dyn Progress,
) -> Result<PackSummary> {
    source.check_apart(target)?;
    let needed = source.bytes().saturating_sub(shareable(source, directory_of(target)));
    let output = Output::create_directory(target, publishing, needed)?;
    let directory = Directory::new(output.partial()).write_behind(publishing.sync.is_behind());
    finish(source, target, output, progress, |_| Ok(()), |copier| copy_tree(&source.root, &directory, copier))
}

/// Calls `write` on the unfinished output, `check` with its path, and publishes it.
fn finish(
    source: &FileSet,
    target: &Path,
    output: Output,
    progress: &dyn Progress,
    check: impl FnOnce(&Path) -> Result<()>,
    write: impl FnOnce(&mut Copier<'_>) -> Result<()>,
) -> Result<PackSummary> {
    let directory = directory_of(output.partial()).to_owned();
    let mut copier = Copier::new(&directory, target, progress);
    write(&mut copier).map_err(|error| source.blame(error))?;
    let shared_bytes = copier.shared();
    let stored_bytes = output.bytes()?;
    check(output.partial()).map_err(|error| error.of_file(&Context::path(target)))?;
    progress.phase(Phase::Flushing);
    output.commit()?;
    Ok(PackSummary {
        files: source.files(),
        bytes: source.bytes(),
        stored_bytes,
        shared_bytes,
        warnings: source.warnings(),
        damage: source.damage().to_vec(),
        elsewhere: source.elsewhere()?,
    })
}

fn copy_tree(folder: &Folder, target: &dyn ContainerMut, copier: &mut Copier<'_>) -> Result<()> {
    for file in &folder.files {
        copier.copy(folder, file, target)?;
    }
    for (name, inner) in &folder.nested {
        let nested = target.create_nested(name)?;
        copy_tree(inner, &*nested, copier).context(Context::member(name))?;
    }
    copier.commit(target)
}

/// Packs a table with a container for itself and one for each table below it.
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
        copier.commit(&*container)?;
    }
    for (name, inner) in &folder.nested {
        target.create_nested(name)?;
        let nested = Directory::new(target.path(name).expect("a directory has paths"));
        pack_table(inner, &nested, options, copier).context(Context::member(name))?;
    }
    copier.commit(target)
}

fn make_container(
    folder: &Folder,
    target: &Directory,
    options: &PackOptions,
    CasacoreStorage { file_name, .. }: CasacoreStorage,
    block_bytes: u64,
) -> Result<Arc<dyn ContainerMut>> {
    if folder.files.iter().any(|file| file.name == file_name) {
        let message = "a file of this name exists, but is not the container of the table";
        return Err(Error::unsupported(message).context(format!("{}{file_name}", folder.prefix)));
    }
    let path = target.path(file_name).expect("a directory has paths");
    options.format.create(&path, &format_options(options, block_bytes))
}

fn format_options(options: &PackOptions, block_bytes: u64) -> FormatOptions {
    let PackOptions { checksums, compression, single_file: archive, hash, .. } = *options;
    FormatOptions {
        block_bytes,
        checksums,
        compression: compression.into(),
        archive,
        hash: hash.unwrap_or_default(),
        appendable: false,
    }
}

/// Unless set, an eighth of the mean file size, rounded down to a power of two from 4 KiB to 1 MiB:
/// about 1/16 of a container is unused.
pub(super) fn block_bytes(options: &PackOptions, sizes: impl Iterator<Item = u64>) -> u64 {
    let (count, bytes) = sizes.fold((0, 0), |(count, bytes): (u64, u64), size| (count + 1, bytes.saturating_add(size)));
    let fitting = (bytes / (8 * count.max(1))).clamp(SMALLEST_BLOCK, LARGEST_BLOCK);
    options.block_bytes.unwrap_or(1 << fitting.ilog2())
}

/// 0 (unknown) with compression.
fn needed(source: &FileSet, target: &Path, options: &PackOptions) -> u64 {
    if !options.compression.is_none() {
        return 0;
    }
    let is_shared = options.format == PackFormat::MULTI_FILE && !options.checksums;
    source.bytes().saturating_sub(if is_shared { shareable(source, directory_of(target)) } else { 0 })
}
