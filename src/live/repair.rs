//! Recovers a live file, an HDF5 file that others read while rows are appended, whose writer exited
//! without closing it.

use std::collections::HashMap;
use std::path::Path;

use super::layout::{self, Growing, TableLayout};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::h5::{Bounds, ChunkInfo, Dataset, File, Group, LinkKind, Superblock, set_slowest_extent};
use crate::io::{FileSource, FileTarget, ReadAt, WriteAt};
use crate::limits;
use crate::native::{COMMITTED_ROWS, open_dataset};
use crate::os;
use crate::output::WriterLock;
use crate::progress::Progress;
use crate::value::{DataType, Region, Shape, Values};

/// Summary of the repair of a live file (HDF5, to which rows were appended while others read it),
/// from [`repair`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// Whether the file had not been closed by its writer.
    pub was_open: bool,
    /// End of the file in bytes, twice: as HDF5 had recorded it before the repair, and as the
    /// repair found it (the length of the file, or the end of its last chunk if that is greater).
    pub end: (u64, u64),
    /// Number of datasets whose extents and chunks were checked.
    pub datasets: usize,
    /// Number of chunks that extend past the end of the file; the missing bytes read as zeros. 0
    /// for live files of this program, from which such chunks are removed.
    pub incomplete_chunks: usize,
    /// Paths of datasets that cannot grow any more: a power cut has torn the index of their chunks,
    /// beyond the committed rows.
    pub torn: Vec<String>,
    /// Kept and lost rows of each table; empty for files of other programs, which are closed but
    /// not truncated.
    pub tables: Vec<RepairedTable>,
}

/// Kept and lost rows of one table of a repaired file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairedTable {
    /// Name of the repaired table: `MAIN`, `ANTENNA`, `A/B`.
    pub name: String,
    /// Number of committed rows of the table, all of which are kept.
    pub committed: u64,
    /// Number of uncommitted rows that the writer had begun to write, and that were removed.
    pub lost: u64,
}

/// Repairs a live file, an HDF5 file to which rows were appended while others read it, after its
/// writer was killed, or stopped by a crash of the machine or a full disk. Committed rows are kept,
/// others are removed, and [`Writer::reopen`](super::Writer::reopen) can append to the file.
///
/// Extents, and all chunks with committed rows, are checked before anything is changed. A power cut
/// may have torn the index of chunks beyond them: the file is then as whole for readers, but can
/// not grow any more, and [`Finalize`](super::Finalize) makes a file that can be relied on. A file
/// of another program is closed, not trimmed.
///
/// # Errors
/// `Locked` if a writer has the file; `Format` if it is damaged beyond that, and then it stays as
/// it is.
pub fn repair(path: impl AsRef<Path>) -> Result<Repaired> {
    repair_with(path, &())
}

/// Repairs a live file, an HDF5 file whose writer exited without closing it, as [`repair`] does.
/// `progress` can interrupt the repair before the file is changed.
///
/// # Errors
/// `Interrupted`, and those of [`repair`]; then the file stays as it is.
pub fn repair_with(path: impl AsRef<Path>, progress: &dyn Progress) -> Result<Repaired> {
    let path = path.as_ref();
    let place = || Context::path(path);
    let source = FileSource::open(path).with_context(place)?;
    let superblock = Superblock::read(&source).with_context(place)?;
    let _lock = WriterLock::take(path)?;
    if let Some(process) = os::process_that_writes(path) {
        return Err(
            Error::new(ErrorKind::Locked, format!("process {process} has the file open for writing")).context(place())
        );
    }
    let was_open = superblock.is_being_written();
    let found = survey(path, source.len()?, was_open, progress);
    if was_open && !superblock.is_live() && !may_be_ours(&found) {
        let message = "the file was written without SWMR when its writer ended: nothing in it can be relied on";
        return Err(Error::unsupported(message).context(place()));
    }
    let found = found.with_context(place)?;
    let ends = (superblock.end(), source.len()?.max(found.end));
    if was_open {
        superblock.close(&FileTarget::open(path).with_context(place)?, ends.1).with_context(place)?;
    }
    trim_torn(path, &found).with_context(place)?;
    if found.trims().any(|trim| trim.torn.is_none()) {
        let file = File::edit(path, Bounds::V110)?;
        let trimmed = trim(&file, &found).with_context(place);
        file.close()?;
        trimmed?;
        FileTarget::open(path).and_then(|file| WriteAt::sync(&file)).with_context(place)?;
    }
    let torn = found.tables.iter().flat_map(|(_, trims)| trims).filter(|trim| trim.torn.is_some());
    let torn = torn.map(|trim| trim.path.clone()).collect();
    let tables: Vec<_> = found.tables.into_iter().map(|(table, _)| table).collect();
    // incomplete chunks of this program's tables are gone
    let incomplete_chunks = if tables.is_empty() { found.incomplete_chunks } else { 0 };
    Ok(Repaired { was_open, end: ends, datasets: found.datasets, incomplete_chunks, torn, tables })
}

/// Whether a repair that was killed can have left the file: its committed rows are whole.
fn may_be_ours(found: &Result<Survey>) -> bool {
    match found {
        Ok(found) => !found.tables.is_empty(),
        Err(error) => error.kind() == ErrorKind::Interrupted,
    }
}

#[derive(Debug, Default)]
struct Survey {
    datasets: usize,
    len: u64,
    /// End of the last chunk; may be past the file's end.
    end: u64,
    incomplete_chunks: usize,
    /// Datasets with a damaged index of chunks, by path.
    damage: HashMap<String, Error>,
    tables: Vec<(RepairedTable, Vec<Trim>)>,
}

impl Survey {
    /// The datasets that have other rows than the committed ones.
    fn trims(&self) -> impl Iterator<Item = &Trim> {
        self.tables.iter().flat_map(|(_, trims)| trims).filter(|trim| trim.extent != trim.rows)
    }
}

#[derive(Debug)]
struct Trim {
    path: String,
    extent: u64,
    rows: u64,
    /// Offset of the header, if chunks beyond `rows` have a damaged index, unfit for libhdf5.
    torn: Option<u64>,
}

/// Reads all metadata, so that damage is found before anything is changed.
fn survey(path: &Path, len: u64, was_open: bool, progress: &dyn Progress) -> Result<Survey> {
    let file = if was_open { File::open_left(path)? } else { File::open(path)? };
    let root = file.root()?;
    let mut found = Survey { len, ..Survey::default() };
    check_group(&root, &mut found, 0, progress)?;
    let tables = match layout::read(&root) {
        Ok(tables) => tables,
        // another program's
        Err(error) if error.may_be_left_out() => Vec::new(),
        Err(error) => return Err(error),
    };
    for table in tables {
        let mut checked = check_table(&root, &table, len).with_context(|| Context::table(&table.name))?;
        for trim in &mut checked.1 {
            if found.damage.remove(&trim.path).is_some() {
                trim.torn = open_dataset(&root, &trim.path)?.header_offset()?;
            }
        }
        found.tables.push(checked);
    }
    match found.damage.values().next() {
        Some(error) => Err(error.clone()),
        None => Ok(found),
    }
}

fn check_group(group: &Group, found: &mut Survey, depth: usize, progress: &dyn Progress) -> Result<()> {
    limits::depth(depth, "groups")?;
    for (name, kind) in group.links()? {
        progress.go_on()?;
        match kind {
            LinkKind::Group => check_group(&group.group(&name)?, found, depth + 1, progress)?,
            LinkKind::Dataset => {
                let dataset = group.dataset(&name)?;
                dataset.shape()?;
                let (chunks, damage) = dataset.intact_chunks()?;
                found.damage.extend(damage.map(|error| (dataset.path().to_owned(), error)));
                for chunk in chunks {
                    let end = chunk_end(&chunk).with_context(|| format!("dataset {}", dataset.path()))?;
                    found.end = found.end.max(end);
                    found.incomplete_chunks += usize::from(end > found.len);
                }
                found.datasets += 1;
            }
            _ => {}
        }
    }
    Ok(())
}

fn chunk_end(chunk: &ChunkInfo) -> Result<u64> {
    let end = chunk.address.checked_add(chunk.stored_bytes);
    end.ok_or_else(|| Error::format(format!("chunk {} ends past 2^64", chunk.index)))
}

fn check_table(root: &Group, table: &TableLayout, len: u64) -> Result<(RepairedTable, Vec<Trim>)> {
    let committed = open_dataset(root, &format!("{}/{COMMITTED_ROWS}", table.path))?.read_counter()?;
    let mut trims = vec![to_trim(root, len, format!("{}/{}", table.path, table.row), committed)?];
    for column in &table.columns {
        match column.open(|path| Ok(path.to_owned()))? {
            Growing::Dense(data) => trims.push(to_trim(root, len, data, committed)?),
            Growing::Cubes { cubes, row_cube, row_index } => {
                let counts = cells_of_cubes(&open_dataset(root, &row_cube)?, committed, cubes.len())?;
                trims.push(to_trim(root, len, row_cube, committed)?);
                trims.push(to_trim(root, len, row_index, committed)?);
                let positions = column.open_positions(|path| Ok(path.to_owned()))?;
                for ((cube, position), cells) in cubes.into_iter().zip(positions).zip(counts) {
                    trims.push(to_trim(root, len, cube, cells)?);
                    trims.push(to_trim(root, len, position, cells)?);
                }
            }
        }
    }
    // a cube has fewer cells than rows, so that this is the rows that some column has more
    let lost = trims.iter().map(|trim| trim.extent.saturating_sub(committed)).max().unwrap_or(0);
    Ok((RepairedTable { name: table.name.clone(), committed, lost }, trims))
}

/// Checks that all chunks with the first `rows` rows exist in the file of `len` bytes.
fn to_trim(root: &Group, len: u64, path: String, rows: u64) -> Result<Trim> {
    let check = || -> Result<u64> {
        let dataset = open_dataset(root, &path)?;
        let extent = dataset.shape()?.last().copied().unwrap_or(0);
        if extent < rows {
            return Err(Error::format(format!("the dataset has {extent} rows, but {rows} are committed")));
        }
        let chunk_rows = dataset.chunk()?.and_then(|chunk| chunk.last().copied()).unwrap_or(1).max(1);
        let needed = rows.div_ceil(chunk_rows);
        let mut has = 0;
        for chunk in dataset.chunks_of_rows(rows)? {
            if chunk.index.last().is_none_or(|&last| last >= needed) {
                continue;
            }
            if chunk_end(&chunk)? > len {
                return Err(Error::format(format!("chunk {} ends past the end of the file, byte {len}", chunk.index)));
            }
            has += 1;
        }
        if has != needed {
            return Err(Error::format(format!("the dataset has {has} chunks, but {rows} rows need {needed}")));
        }
        Ok(extent)
    };
    let extent = check().with_context(|| format!("dataset {path}"))?;
    Ok(Trim { path, extent, rows, torn: None })
}

/// Elements of `row_cube` read at a time.
const BLOCK: u64 = 1 << 20;

/// Cells that the first `rows` rows have in each of `cubes` hypercubes.
fn cells_of_cubes(row_cube: &Dataset, rows: u64, cubes: usize) -> Result<Vec<u64>> {
    let mut counts = vec![0; cubes];
    let mut first = 0;
    while first < rows {
        let count = BLOCK.min(rows - first);
        let mut numbers = Values::new(DataType::Int);
        row_cube.read_region(&Region { start: Shape::from([first]), shape: Shape::from([count]) }, &mut numbers)?;
        let Values::Int(numbers) = numbers else { unreachable!("read as Int") };
        for number in numbers.into_iter().filter(|&number| number >= 0) {
            let cells = counts.get_mut(number as usize);
            *cells.ok_or_else(|| {
                Error::format(format!("a cell refers to cube{number}, but there are {cubes} hypercubes"))
            })? += 1;
        }
        first += count;
    }
    Ok(counts)
}

/// Sets the extents of datasets at which libhdf5 cannot be let.
fn trim_torn(path: &Path, found: &Survey) -> Result<()> {
    let torn: Vec<_> = found.trims().filter_map(|trim| trim.torn.map(|header| (trim, header))).collect();
    if torn.is_empty() {
        return Ok(());
    }
    let file = FileTarget::open(path)?;
    for (trim, header) in torn {
        set_slowest_extent(&file, header, trim.rows).with_context(|| format!("dataset {}", trim.path))?;
    }
    WriteAt::sync(&file)
}

fn trim(file: &File, found: &Survey) -> Result<()> {
    let root = file.root()?;
    for trim in found.trims().filter(|trim| trim.torn.is_none()) {
        open_dataset(&root, &trim.path)?.set_extent(trim.rows)?;
    }
    Ok(())
}
