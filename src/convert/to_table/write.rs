//! Writes the casacore tables of a conversion: creates all tables, then fills them in parallel.

use std::path::Path;

use bstr::ByteSlice;
use rayon::prelude::*;

use super::column::Means;
use super::hold::{HeldTiles, Holder};
use super::links::{Links, make_read_only, relative};
use super::options::ToTableOptions;
use super::plan::{Filling, TableBlueprint, plan};
use super::views::{WrittenView, check_subtable, to_view, write_subtable};
use crate::call::pool::thread_pool;
use crate::container::FORMATS;
use crate::error::{Context, Error, Result, ResultExt, column_context as place};
use crate::grid::ChunkStorage;
use crate::hash::HashKind;
use crate::native::MAX_CUBES;
use crate::output::Damage;
use crate::output::Publishing;
use crate::output::clone::{Reflink, Sharer};
use crate::output::{Output, directory_of};
use crate::progress::{Phase, Progress};
use crate::source::digest::{CellDigest, digest_column};
use crate::source::{Content, Source};
use crate::table::{Locking, OpenOptions, Table, TableKind, TableWriter};

/// Smaller hypercubes are expected to be copied, not shared.
const SHAREABLE_BYTES: u64 = 4 << 20;

/// Summary of [`ToTable::write`](super::super::ToTable::write), which writes a casacore table.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToTableSummary {
    /// Number of tables that were written, the main table and its subtables.
    pub tables: usize,
    /// Number of columns that were written in all tables.
    pub columns: usize,
    /// Number of columns of the source that were not written, because their cells cannot be read:
    /// their storage is not supported, a native HDF5 file does not have them, or they are damaged.
    pub missing: usize,
    /// Number of rows of the written main table.
    pub rows: u64,
    /// Bytes of all elements that were written; strings are counted as 16 bytes each.
    pub bytes: u64,
    /// Number of bytes that the table shares with the source by reflinks: they take no disk space
    /// of their own.
    pub shared_bytes: u64,
    /// Kind of the written main table: one with cells of its own, or one that shows rows of other
    /// tables, see [`ToTable::views`](super::super::ToTable::views).
    pub kind: TableKind,
    /// Damaged parts of the source that were left out; empty without
    /// [`ToTable::salvage`](super::super::ToTable::salvage).
    pub damage: Vec<Damage>,
    /// Warnings for the user about the written table, as sentences.
    pub warnings: Vec<String>,
    /// Symbolic links; 0 unless [`LinkTable`](super::super::LinkTable) writes the table.
    pub(crate) links: usize,
    /// Bytes of elements that stay in the source.
    pub(crate) linked_bytes: u64,
}

/// Nothing is left at `target` after an error; `Exists` if it is not to be replaced.
pub(crate) fn to_table(
    source: &Source,
    options: &ToTableOptions,
    target: &Path,
    publishing: Publishing,
    progress: &dyn Progress,
) -> Result<ToTableSummary> {
    to_checked_table(source, options, target, publishing, progress, &|_| Ok(()))
}

/// An error of `check`, which gets the temporary directory, prevents the move to `target`.
pub(crate) fn to_checked_table(
    source: &Source,
    options: &ToTableOptions,
    target: &Path,
    publishing: Publishing,
    progress: &dyn Progress,
    check: &dyn Fn(&Path) -> Result<()>,
) -> Result<ToTableSummary> {
    let mut warnings = Vec::new();
    if let Some(view) = to_view(source, options, target, publishing, progress, &mut warnings)? {
        return Ok(view.summary());
    }
    let mut plans = plan(source, target, options, &mut warnings)?;
    let bytes = plans.iter().filter(|plan| plan.view.is_none()).map(|plan| plan.bytes).fold(0, u64::saturating_add);
    progress.expect(bytes);
    progress.phase(Phase::Writing);
    let needed = match options.links {
        true => 0,
        false => bytes.saturating_sub(shareable(source, &plans, directory_of(target))?),
    };
    let links = Links::default();
    let mut output = Output::create_directory(target, publishing, needed)?;
    let mut sharer = Sharer::new(Reflink::Auto, progress);
    let write_all = |plans: &[TableBlueprint], output: &Output, sharer: &Sharer<'_>| {
        let means = Means { links: options.links.then_some(&links), holder: None, sharer, progress };
        write(source, plans, options, output.partial(), publishing.sync.is_behind(), &means)
            .map_err(Error::blame_source)
    };
    let mut told = write_all(&plans, &output, &sharer)?;
    let inexact = store_inexact(source, &mut plans, options, output.partial(), progress)?;
    if !inexact.is_empty() {
        drop(output);
        output = Output::create_directory(target, publishing, needed)?;
        sharer = Sharer::new(Reflink::Auto, progress);
        told = write_all(&plans, &output, &sharer)?;
    }
    if options.links {
        finish_links(source, &links, options, target, output.partial(), check)?;
    } else {
        check(output.partial())?;
    }
    progress.phase(Phase::Flushing);
    output.commit()?;
    let (link_count, linked_bytes) = links.size();
    warnings.extend(inexact);
    warnings.append(&mut told);
    Ok(ToTableSummary {
        tables: plans.len(),
        columns: plans.iter().map(|plan| plan.columns.len()).sum(),
        missing: plans.iter().map(|plan| plan.missing).sum(),
        rows: plans.first().map_or(0, |plan| plan.rows),
        bytes,
        shared_bytes: sharer.shared(),
        kind: TableKind::Plain,
        damage: source.damage().to_vec(),
        warnings,
        links: link_count,
        linked_bytes,
    })
}

impl WrittenView {
    fn summary(self) -> ToTableSummary {
        let WrittenView { kind, columns, rows, warnings } = self;
        ToTableSummary {
            tables: 1,
            columns,
            missing: 0,
            rows,
            bytes: 0,
            shared_bytes: 0,
            kind,
            damage: Vec::new(),
            warnings,
            links: 0,
            linked_bytes: 0,
        }
    }
}

/// Estimated bytes that new tables in `directory` can share.
fn shareable(source: &Source, plans: &[TableBlueprint], directory: &Path) -> Result<u64> {
    let sharer = Sharer::new(Reflink::Auto, &());
    let mut bytes = 0;
    for plan in plans {
        let content = source.tables[plan.source].content()?;
        for column in plan.columns.iter().filter(|column| !column.filling.is_computed()) {
            let info = &content.columns()[column.index];
            if !info.data_type().is_fixed_size() {
                continue;
            }
            // a column that cannot be read fails when it is copied
            let Ok(cells) = content.cells(column.index) else { continue };
            for cube in cells.tiling(MAX_CUBES).iter().flat_map(|tiling| &tiling.cubes) {
                let size = cube.grid().shape.elements()?.saturating_mul(info.data_type().size() as u64);
                if let ChunkStorage::Block { file, .. } = cube.storage()
                    && size >= SHAREABLE_BYTES
                    && sharer.can_share(file, directory)
                {
                    bytes += size;
                }
            }
        }
    }
    Ok(bytes)
}

/// `check` is called while links below `root` are absolute, so that it can read the tables; then
/// links become relative, valid at `target`.
fn finish_links(
    source: &Source,
    links: &Links,
    options: &ToTableOptions,
    target: &Path,
    root: &Path,
    check: &dyn Fn(&Path) -> Result<()>,
) -> Result<()> {
    let hdf5 = match &source.place {
        Context::Path(path) => path.canonicalize().with_context(|| Context::path(path))?,
        _ => return Err(Error::usage("only a native HDF5 file can be linked")),
    };
    if links.size().0 == 0 {
        let message = "no dataset of the file is one block of tiles, to which a table could be linked; `h5bridge to-hdf5 --compress shared` \
                       makes such datasets of tiled columns of numbers";
        return Err(Error::unsupported(message).context(source.place.clone()));
    }
    // a link has another way from where the table is written than from where it will be
    let absolute = |_: &Path| hdf5.clone();
    links.make(root, &absolute)?;
    links.record(root, &hdf5, source, &absolute)?;
    check(root)?;
    let target = if target.is_symlink() { target.canonicalize()? } else { std::path::absolute(target)? };
    let parent = target.parent().unwrap_or(Path::new("/")).canonicalize()?;
    let home = parent.join(target.file_name().unwrap_or_default());
    let from = |directory: &Path| relative(&home.join(directory), &hdf5);
    links.make(root, &from)?;
    links.record(root, &hdf5, source, &from)?;
    if options.writable { Ok(()) } else { make_read_only(root) }
}

/// A table without the tiles that other processes will write.
#[derive(Debug)]
pub(crate) struct HeldTable {
    pub(crate) held: Vec<HeldTiles>,
    pub(crate) rows: u64,
    pub(crate) warnings: Vec<String>,
}

/// Leaves tiles of hypercubes of `least` bytes or more to other processes, unless a chunk of the
/// source, or all tiles with the same rows, have more than `most` bytes. Files of missing tiles
/// have their full lengths, with holes.
pub(crate) fn to_held_table(
    source: &Source,
    options: &ToTableOptions,
    target: &Path,
    root: &Path,
    (least, most): (u64, u64),
    progress: &dyn Progress,
) -> Result<HeldTable> {
    let mut warnings = Vec::new();
    let plans = plan(source, target, options, &mut warnings)?;
    let small = |bytes: u64| if bytes < least { bytes } else { 0 };
    let columns = plans.iter().flat_map(|plan| &plan.columns);
    progress.expect(columns.map(|column| small(column.bytes)).fold(0, u64::saturating_add));
    progress.phase(Phase::Writing);
    let (holder, sharer) = (Holder::new(least, most), Sharer::new(Reflink::Auto, progress));
    let means = Means { links: None, holder: Some(&holder), sharer: &sharer, progress };
    let written = write(source, &plans, options, root, true, &means);
    warnings.append(&mut written.map_err(Error::blame_source)?);
    let rows = plans.first().map_or(0, |plan| plan.rows);
    Ok(HeldTable { held: holder.finish(), rows, warnings })
}

/// Returns warnings. `write_behind`: the system is asked early to write tables to the disk.
fn write(
    source: &Source,
    plans: &[TableBlueprint],
    options: &ToTableOptions,
    root: &Path,
    write_behind: bool,
    means: &Means<'_>,
) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    let root = std::path::absolute(root)?;
    let mut writers = Vec::new();
    let (views, plans): (Vec<_>, Vec<_>) = plans.iter().partition(|plan| plan.view.is_some());
    for plan in &plans {
        means.progress.go_on()?;
        writers.push(
            plan.create(source, options, &root, write_behind, &mut warnings)
                .with_context(|| Context::table(&plan.name))?,
        );
    }
    let pool = thread_pool(options.threads)?;
    let mut jobs = Vec::new();
    for (&plan, writer) in plans.iter().zip(&mut writers) {
        jobs.extend(writer.parts().into_iter().map(|part| (plan.part_bytes(&part), plan, part)));
    }
    // the largest begin first
    jobs.sort_by_key(|(bytes, ..)| std::cmp::Reverse(*bytes));
    pool.install(|| {
        jobs.into_par_iter().with_max_len(1).try_for_each(|(_, plan, part)| plan.fill(source, part, means))
    })?;
    // tables inside others are finished first
    writers.into_iter().rev().try_for_each(TableWriter::finish)?;
    for plan in views {
        let directory = root.join(&plan.directory);
        std::fs::create_dir_all(&directory)?;
        plan.view.iter().try_for_each(|dat| write_subtable(source, plan.source, dat, &directory))?;
    }
    means.progress.go_on()?;
    Ok(warnings)
}

/// Compares cells that engines compute, and subtables that are views, with the source. Returns a
/// warning for each column or table that differs, and plans to copy it; the caller has to write the
/// tables again.
fn store_inexact(
    source: &Source,
    plans: &mut [TableBlueprint],
    options: &ToTableOptions,
    root: &Path,
    progress: &dyn Progress,
) -> Result<Vec<String>> {
    let mut inexact = Vec::new();
    for plan in plans.iter_mut().filter(|plan| plan.view.is_some()) {
        let found = check_subtable(source, plan.source, options, &root.join(&plan.directory), progress)?;
        if let Some(warning) = found {
            plan.view = None;
            inexact.push(warning);
        }
    }
    let plain = plans.iter_mut().filter(|plan| plan.view.is_none());
    for plan in plain.filter(|plan| plan.columns.iter().any(|column| column.filling == Filling::Engine)) {
        let content = source.tables[plan.source].content()?;
        let (directory, opening) = (root.join(&plan.directory), OpenOptions { formats: FORMATS, ..options.open });
        let table = match plan.is_forwarded() {
            true => Table::open_as(&directory, &plan.published, opening)?,
            false => Table::open_with(&directory, OpenOptions { locking: Locking::None, ..opening })?,
        };
        for column in plan.columns.iter_mut().filter(|column| column.filling == Filling::Engine) {
            let name = &content.columns()[column.index].desc.name;
            let again = table.columns().iter().position(|info| info.desc.name == *name);
            let wanted = CellDigest::Wanted(HashKind::default());
            let hash = |content: &Content, index| digest_column(content, index, wanted, progress).hash.ok();
            let (wanted, found) = (hash(content, column.index), again.and_then(|index| hash(&table, index)));
            progress.go_on()?;
            if wanted.is_none() || wanted != found {
                column.filling = Filling::Copied;
                let name = place(&plan.name, &name.to_str_lossy());
                inexact.push(format!("{name}: the engine does not give the same values; they are stored"));
            }
        }
    }
    Ok(inexact)
}
