//! Checks of the table that a conversion by many processes makes: before commit, only the tiles that workers write may have changed since planning.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use rayon::prelude::*;

use super::document::{Place, ShardPlan};
use super::structure::check_len;
use crate::error::{Context, Error, Result, ResultExt};
use crate::pool::thread_pool;

/// Maximum number of files with tiles of the new table that are made durable concurrently.
const SYNCING: usize = 16;

/// Paths, below the directory of the plan's table, of the files that workers write (files of tiles).
fn written_by_workers(plan: &ShardPlan) -> BTreeSet<&Path> {
    let tiles = plan.datasets.iter().filter_map(|dataset| match dataset.place() {
        Place::Tiles(tiles) => Some(tiles.path.as_path()),
        Place::Block(_) | Place::Chunks => None,
    });
    tiles.collect()
}

/// Path of the first file of the new table in `directory` that is missing, or differs in size or modification time from
/// its entry in the plan (the work list of the conversion), and how it differs; `None` if none does. Files of tiles,
/// which workers write, are not compared.
fn change(plan: &ShardPlan, directory: &Path) -> Option<(std::path::PathBuf, String)> {
    let by_workers = written_by_workers(plan);
    let files = plan.header.table_files.iter().filter(|file| !by_workers.contains(file.path.as_path()));
    files.into_iter().find_map(|file| Some((directory.join(&file.path), file.change_below(directory)?)))
}

/// Fails if a file of the new table has changed since the plan was made. The table is then still in
/// the plan's directory, from which commit moves it to the target. Only the lengths of files of
/// tiles, which workers write, are compared.
pub(super) fn check_files(plan: &ShardPlan) -> Result<()> {
    let directory = plan.unpublished();
    if let Some((path, change)) = change(plan, &directory) {
        let message = format!(
            "the table changed since the plan was made: {change}; remove {} and make a new plan",
            plan.directory().display()
        );
        return Err(Error::format(message).context(Context::path(path)));
    }
    let by_workers = written_by_workers(plan);
    let files = plan.header.table_files.iter().filter(|file| by_workers.contains(file.path.as_path()));
    files.into_iter().try_for_each(|file| check_len(&directory.join(&file.path), file.size))
}

/// Whether an earlier commit, killed before its end, has already moved the new table to the target's path. The
/// directory of the plan then contains the table that was replaced, if one was.
pub(super) fn is_published(plan: &ShardPlan) -> bool {
    change(plan, plan.target()).is_none() && change(plan, &plan.unpublished()).is_some()
}

/// Makes the files of tiles, which workers have written, durable.
pub(super) fn sync(plan: &ShardPlan) -> Result<()> {
    let directory = plan.unpublished();
    let paths: Vec<_> = written_by_workers(plan).into_iter().map(|path| directory.join(path)).collect();
    let sync = |path: &std::path::PathBuf| -> Result<()> {
        let sync = || -> Result<()> { Ok(File::open(path)?.sync_all()?) };
        sync().with_context(|| Context::path(path))
    };
    thread_pool(SYNCING.min(paths.len().max(1)))?.install(|| paths.par_iter().try_for_each(sync))
}
