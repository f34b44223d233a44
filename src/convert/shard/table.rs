//! Checks of the table that a conversion by many processes makes: before commit, only the tiles
//! that workers write may have changed since planning.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use rayon::prelude::*;

use super::document::{Place, ShardPlan};
use super::structure::check_len;
use crate::call::pool::thread_pool;
use crate::error::{Context, Error, Result, ResultExt};

/// Files made durable concurrently.
const SYNCING: usize = 16;

/// Files of tiles, by their paths below the table.
fn written_by_workers(plan: &ShardPlan) -> BTreeSet<&Path> {
    let tiles = plan.datasets.iter().filter_map(|dataset| match dataset.place() {
        Place::Tiles(tiles) => Some(tiles.path.as_path()),
        Place::Block(_) | Place::Chunks => None,
    });
    tiles.collect()
}

/// First missing file, or with another size or time, and the difference; not files of tiles.
fn change(plan: &ShardPlan, directory: &Path) -> Option<(std::path::PathBuf, String)> {
    let by_workers = written_by_workers(plan);
    let files = plan.header.table_files.iter().filter(|file| !by_workers.contains(file.path.as_path()));
    files.into_iter().find_map(|file| Some((directory.join(&file.path), file.change_below(directory)?)))
}

/// Compares with the state at planning; of files of tiles, lengths only.
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

/// Whether a killed commit had moved the table; the plan's directory then has the replaced one.
pub(super) fn is_published(plan: &ShardPlan) -> bool {
    change(plan, plan.target()).is_none() && change(plan, &plan.unpublished()).is_some()
}

pub(super) fn sync(plan: &ShardPlan) -> Result<()> {
    let directory = plan.unpublished();
    let paths: Vec<_> = written_by_workers(plan).into_iter().map(|path| directory.join(path)).collect();
    let sync = |path: &std::path::PathBuf| -> Result<()> {
        let sync = || -> Result<()> { Ok(File::open(path)?.sync_all()?) };
        sync().with_context(|| Context::path(path))
    };
    thread_pool(SYNCING.min(paths.len().max(1)))?.install(|| paths.par_iter().try_for_each(sync))
}
