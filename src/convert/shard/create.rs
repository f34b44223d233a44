//! Makes the plan of a conversion to HDF5 by many processes: an HDF5 file without the chunks of
//! large datasets, and a document with the items (ranges of chunks) that workers write.

use std::fs;
use std::path::{Path, PathBuf};

use super::document::{CHUNKS, Dataset, Header, LEDGER, NewDataset, PLAN, ShardPlan};
use super::structure::{STRUCTURE, keep_structure};
use crate::convert::recorded_file::RecordedFile;
use crate::convert::to_hdf5::{Compress, Held, Plan, ToHdf5Options, Writer};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::h5::File;
use crate::io::trim;
use crate::native::stored_size;
use crate::output::Output;
use crate::output::{IfExists, Publishing, SyncPolicy};
use crate::progress::Progress;
use crate::source::Source;
use crate::source::tree::Tree;

/// Datasets and hypercubes from this size on are left to workers by default.
pub(super) const LARGE_BYTES: u64 = 64 << 20;
/// Limits of the default size of an item.
const ITEM_BYTES: (u64, u64) = (32 << 20, 512 << 20);
/// Items into which a plan divides the bytes of large datasets by default, within `ITEM_BYTES`.
const ITEMS: u64 = 64;
/// Plans do not record lock files, which change with every reader.
pub(super) const LOCK_FILE: &str = "table.lock";

/// Summary of a plan, the work list of a conversion to HDF5 or to a table by many processes.
#[derive(Debug)]
#[non_exhaustive]
pub struct ShardPlanSummary {
    /// Number of items in the plan: ranges of chunks or tiles, each for one worker to write.
    pub items: usize,
    /// Bytes of the elements that the plan leaves to workers to write, uncompressed.
    pub bytes: u64,
    /// Uncompressed size in bytes of the chunks that workers write to separate files, from which
    /// commit inserts them into the HDF5 file.
    pub packed_bytes: u64,
    /// Length in bytes of the plan's HDF5 file before commit, or of all files of its table; the
    /// ranges that workers write occupy no disk space yet.
    pub file_bytes: u64,
    /// Number of rows of the main table to be converted or, if only subtables are converted, of the
    /// first of them.
    pub rows: u64,
    /// Warnings for the user, as sentences, about the conversion by many processes, such as columns
    /// that cannot be converted.
    pub warnings: Vec<String>,
}

/// Items have about `work_bytes` bytes, 0 for the default. `Usage` for options that are not for
/// plans; `Exists` if `target` has a plan.
#[allow(clippy::too_many_arguments, reason = "a conversion, the size of its items, and a target")]
pub(in crate::convert) fn create(
    source: &Source,
    path: &Path,
    plan: &Plan,
    options: &ToHdf5Options,
    work_bytes: u64,
    target: &Path,
    publishing: Publishing,
    progress: &dyn Progress,
) -> Result<ShardPlanSummary> {
    check_options(source, options)?;
    check_target(target, publishing.if_exists)?;
    let files = files_of(source, path)?;
    let least = if work_bytes == 0 { LARGE_BYTES } else { LARGE_BYTES.min(work_bytes) };
    let small = |bytes: u64| if bytes < least { bytes } else { 0 };
    let needed = plan.columns().fold(0u64, |sum, column| sum.saturating_add(small(column.bytes)));
    progress.expect(needed);
    // the disk is busy while the small datasets are written
    let publishing = Publishing { if_exists: IfExists::Fail, sync: SyncPolicy::Behind };
    let output = Output::create_directory(&ShardPlan::directory_of(target), publishing, needed)?;
    for name in [CHUNKS, LEDGER] {
        fs::create_dir(output.partial().join(name))?;
    }
    let name = target.file_name().ok_or_else(|| Error::usage("the target has no name of its own"))?;
    let file_path = output.partial().join(name);
    let file = File::create_aligned(&file_path)?;
    let mut writer = Writer::new(source, plan, options, &file)?;
    writer.write_structure(progress)?;
    let held = writer.hold_back(least)?;
    writer.write_data(&file_path, publishing.sync, progress)?;
    let mut warnings = plan.warnings.clone();
    warnings.append(&mut writer.warnings);
    let is_packed = held.iter().any(|held| held.address.is_none());
    let chunks = if is_packed { writer.chunk_ranges(&held)? } else { Vec::new() };
    drop(writer);
    file.close()?;
    trim(&file_path)?;
    let file_bytes = file_path.metadata()?.len();
    let rows = plan.tables.first().map_or(0, |table| table.rows.end - table.rows.start);
    let header = Header::new(&std::path::absolute(path)?, files, file_bytes, rows, Vec::new())?;
    header.check_source()?;
    let datasets: Vec<_> = held.iter().map(|held| dataset(plan, held)).collect();
    let work_bytes = if work_bytes == 0 { item_bytes(&datasets)? } else { work_bytes };
    let document = ShardPlan::new(target, header, datasets, work_bytes)?;
    let packed_bytes = document.items().iter().filter(|item| document.is_packed(item)).map(|item| item.bytes).sum();
    if is_packed {
        keep_structure(&document, chunks, &file_path, &output.partial().join(STRUCTURE))?;
    }
    document.write(&output.partial().join(PLAN))?;
    output.commit()?;
    let (items, bytes) = (document.items().len(), document.items().iter().map(|item| item.bytes).sum());
    Ok(ShardPlanSummary { items, bytes, packed_bytes, file_bytes, rows, warnings })
}

pub(super) fn item_bytes(datasets: &[Dataset]) -> Result<u64> {
    let mut all = 0u64;
    for dataset in datasets {
        all = all.saturating_add(dataset.chunks()?.saturating_mul(dataset.chunk_bytes()?));
    }
    Ok((all / ITEMS).clamp(ITEM_BYTES.0, ITEM_BYTES.1))
}

/// Refuses options that need all cells in one process, or hide where the cells of an item are.
fn check_options(source: &Source, options: &ToHdf5Options) -> Result<()> {
    let refused = [
        (options.compress != Compress::Shared, "a plan compresses as `shared` does"),
        (options.predicate.is_some(), "a plan takes rows by their numbers, and has no conditions"),
        (options.average.is_some(), "rows cannot be averaged in a plan"),
        (options.restorable, "a file that is made by a plan cannot be restorable"),
        (options.digest, "digests of columns cannot be computed in a plan: each needs all cells in order"),
        (source.is_salvaged(), "damage cannot be left out in a plan"),
    ];
    match refused.iter().find(|(is_given, _)| *is_given) {
        Some((_, why)) => Err(Error::usage(*why)),
        None => Ok(()),
    }
}

/// Fails if the target exists and is not to be replaced, or has a directory of a plan.
pub(super) fn check_target(target: &Path, if_exists: IfExists) -> Result<()> {
    let directory = ShardPlan::directory_of(target);
    let exists = |path: &Path| path.symlink_metadata().is_ok();
    if exists(&directory) {
        let message =
            "a plan for this file exists: `h5bridge shard status` shows it; remove the directory to begin again";
        return Err(Error::new(ErrorKind::Exists, message).context(Context::path(directory)));
    }
    if exists(target) && !if_exists.replaces() {
        return Err(Error::new(ErrorKind::Exists, "the target exists already").context(Context::path(target)));
    }
    Ok(())
}

/// Files of all tables but lock files.
pub(super) fn files_of(source: &Source, path: &Path) -> Result<Vec<RecordedFile>> {
    let tables = source.tables.iter().filter_map(|table| table.path.clone());
    let mut roots: Vec<PathBuf> = tables.chain([path.canonicalize().context(Context::path(path))?]).collect();
    roots.sort();
    roots.dedup_by(|later, earlier| later.starts_with(earlier));
    let mut files = Vec::new();
    for root in roots {
        for (_, file) in Tree::find(&root).with_context(|| Context::path(&root))?.files {
            if file.file_name().is_none_or(|name| name != LOCK_FILE) {
                let metadata = file.metadata().with_context(|| Context::path(&file))?;
                files.push(RecordedFile::new(file, &metadata));
            }
        }
    }
    Ok(files)
}

fn dataset(plan: &Plan, held: &Held) -> Dataset {
    let table = &plan.tables[held.table];
    let column = &table.columns[held.column];
    Dataset::from(NewDataset {
        path: held.path.clone(),
        table: (table.source, &table.name),
        column: (column.index, &column.name),
        cube: held.cube,
        grid: &held.grid,
        element_bytes: stored_size(column.data_type),
        first_row: table.rows.start,
        is_of_tiles: held.is_of_tiles,
        compression: column.compression,
        address: held.address,
        tiles: None,
    })
}
