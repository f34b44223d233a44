//! Makes the plan of a conversion to a table by many processes: a table without the tiles of large
//! hypercubes, and a document with the items (ranges of tiles) that workers write.

use std::fs;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;

use super::create::{LARGE_BYTES, LOCK_FILE, ShardPlanSummary, check_target, files_of, item_bytes};
use super::document::{Dataset, Header, LEDGER, MAX_CHUNK_BYTES, NewDataset, PLAN, ShardPlan};
use super::tile_file::TileFile;
use crate::convert::recorded_file::RecordedFile;
use crate::convert::to_table::{HeldTable, HeldTiles, ToTableOptions, to_held_table};
use crate::error::{Error, Result};
use crate::h5::Compression;
use crate::native::{display_name, stored_size};
use crate::output::{IfExists, Publishing, SyncPolicy};
use crate::output::{Output, walk};
use crate::progress::Progress;
use crate::source::Source;

/// Items have about `work_bytes` bytes, 0 for the default. `Usage` for options that are not for
/// plans; `Exists` if `target` has a plan.
pub(in crate::convert) fn create_table(
    source: &Source,
    path: &Path,
    options: &ToTableOptions,
    work_bytes: u64,
    target: &Path,
    publishing: Publishing,
    progress: &dyn Progress,
) -> Result<ShardPlanSummary> {
    check_target(target, publishing.if_exists)?;
    let files = files_of(source, path)?;
    let least = if work_bytes == 0 { LARGE_BYTES } else { LARGE_BYTES.min(work_bytes) };
    let publishing = Publishing { if_exists: IfExists::Fail, sync: SyncPolicy::End };
    let output = Output::create_directory(&ShardPlan::directory_of(target), publishing, 0)?;
    fs::create_dir(output.partial().join(LEDGER))?;
    let root =
        output.partial().join(target.file_name().ok_or_else(|| Error::usage("the target has no name of its own"))?);
    fs::create_dir(&root)?;
    let HeldTable { held, rows, warnings } =
        to_held_table(source, options, target, &root, (least, MAX_CHUNK_BYTES), progress)?;
    let datasets = held.iter().map(|held| dataset(source, held)).collect::<Result<Vec<_>>>()?;
    let table_files = table_files(&root)?;
    let file_bytes = table_files.iter().map(|file| file.size).sum();
    let header = Header::new(&std::path::absolute(path)?, files, file_bytes, rows, table_files)?;
    header.check_source()?;
    let work_bytes = if work_bytes == 0 { item_bytes(&datasets)? } else { work_bytes };
    let document = ShardPlan::new(target, header, datasets, work_bytes)?;
    document.write(&output.partial().join(PLAN))?;
    output.commit()?;
    let (items, bytes) = (document.items().len(), document.items().iter().map(|item| item.bytes).sum());
    Ok(ShardPlanSummary { items, bytes, packed_bytes: 0, file_bytes, rows, warnings })
}

/// Files below `root` but lock files, by their paths below it.
fn table_files(root: &Path) -> Result<Vec<RecordedFile>> {
    let mut files = Vec::new();
    walk(root, &mut |path| {
        let metadata = path.metadata()?;
        if metadata.is_file() && path.file_name().is_none_or(|name| name != LOCK_FILE) {
            let below = path.strip_prefix(root).unwrap_or(path);
            files.push(RecordedFile::new(below.to_owned(), &metadata));
        }
        Ok(())
    })?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

fn dataset(source: &Source, held: &HeldTiles) -> Result<Dataset> {
    let table = &source.tables[held.table];
    let info = &table.content()?.columns()[held.column];
    let column = info.desc.name.to_str_lossy();
    let of_cube = if held.cubes > 1 { format!(" (hypercube {})", held.cube) } else { String::new() };
    let file: PathBuf = held.directory.join(&held.place.file);
    Ok(Dataset::from(NewDataset {
        path: format!("{}/{column}{of_cube}", display_name(&table.name)),
        table: (held.table, &table.name),
        column: (held.column, &column),
        cube: held.cube,
        grid: &held.grid,
        element_bytes: stored_size(info.data_type()),
        first_row: 0,
        is_of_tiles: held.is_of_chunks,
        compression: Compression::NONE,
        address: None,
        tiles: Some(TileFile::new(file, &held.place, held.order, held.joined)),
    }))
}
