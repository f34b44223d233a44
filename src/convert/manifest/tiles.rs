//! Tiles of hypercubes in the files of a table, to which a manifest refers as the chunks of its
//! arrays, without converting them.

use std::path::{Path, PathBuf};

use super::super::to_hdf5::{ColumnForm, ColumnPlan};
use super::files::{FileNumber, Files};
use super::metadata::{self, ArrayMetadata};
use super::references::References;
use crate::error::{Context, Error, Result, ResultExt};
use crate::grid::{Grid, unravel};
use crate::native::MAX_CUBES;
use crate::progress::Progress;
use crate::source::Content;
use crate::table::{Stored, Table, TableKind, Tiling};
use crate::value::{ByteOrder, DataType, Shape};

/// References between two checks whether the call was cancelled.
const BETWEEN_LOOKS: u64 = 4096;

/// Directory of the main table, and the name with which references to files in it begin.
#[derive(Debug)]
pub(super) struct TableDirectory {
    /// Absolute, without symbolic links.
    pub(super) path: PathBuf,
    pub(super) name: String,
}

impl TableDirectory {
    /// Adds `table.dat` and `table.f…`, but none outside the main table's directory.
    pub(super) fn add_files(&self, content: &Content, files: &mut Files) -> Result<()> {
        let Some(table) = content.as_table() else { return Ok(()) };
        let directory = table.path().canonicalize().with_context(|| Context::path(table.path()))?;
        if !directory.starts_with(&self.path) {
            return Ok(());
        }
        let mut names = Vec::new();
        for entry in directory.read_dir().with_context(|| Context::path(&directory))? {
            let entry = entry?;
            let name = entry.file_name();
            let has_content = name == "table.dat" || name.as_encoded_bytes().starts_with(b"table.f");
            if has_content && entry.path().is_file() {
                names.push(name);
            }
        }
        names.sort();
        names.iter().try_for_each(|name| files.add(&directory.join(name), "").map(drop))
    }
}

#[derive(Debug)]
pub(super) struct Tiles {
    file: FileNumber,
    offset: u64,
    /// Bytes from the start of a tile to that of the next.
    stride: u64,
    bytes: u64,
    count: u64,
    grid: Grid,
    data_type: DataType,
    order: ByteOrder,
}

impl Tiles {
    /// `None` if cells are stored in another way (as bits, in buckets, computed), or outside of
    /// `root`; `Unsupported` if a file is a symbolic link or inside a container.
    pub(super) fn of_column(
        content: &Content,
        column: &ColumnPlan,
        root: &TableDirectory,
        files: &mut Files,
    ) -> Result<Option<Vec<Tiles>>> {
        let Some(table) = content.as_table().filter(|table| *table.kind() == TableKind::Plain) else { return Ok(None) };
        let data_type = column.data_type;
        if data_type == DataType::Bool || !data_type.is_fixed_size() {
            return Ok(None);
        }
        let cells = content.cells(column.index)?;
        let Some(tiling) = cells.tiling(MAX_CUBES) else { return Ok(None) };
        let Some(shapes) = shapes(&column.form, &tiling, table.rows()) else { return Ok(None) };
        let mut found = Vec::new();
        cells.extents(table.rows(), MAX_CUBES, &mut |extent| {
            if let Stored::Tiles { cube, tile, stride, count } = extent.content {
                found.push((cube, extent.suffix.to_owned(), extent.offset, extent.order, tile, stride, count));
            }
            Ok(())
        })?;
        if found.len() != shapes.len() || found.iter().enumerate().any(|(number, cube)| cube.0 != number) {
            return Ok(None);
        }
        let mut cubes = Vec::new();
        for ((_, suffix, offset, order, tile, stride, count), shape) in found.into_iter().zip(shapes) {
            let Some(file) = find(table, column.index, &suffix, root, files)? else { return Ok(None) };
            let bytes = tile.elements()?.saturating_mul(data_type.size() as u64);
            let grid = Grid { shape, chunk: tile };
            cubes.push(Tiles { file, offset, stride, bytes, count, grid, data_type, order });
        }
        Ok(Some(cubes))
    }

    pub(super) fn metadata(&self) -> ArrayMetadata {
        ArrayMetadata {
            shape: self.grid.shape.clone(),
            chunk: self.grid.chunk.clone(),
            dtype: metadata::dtype(self.data_type, self.order),
            filters: Vec::new(),
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.bytes.saturating_mul(self.count)
    }

    pub(super) fn write<W: std::io::Write>(
        &self,
        array: &str,
        files: &Files,
        out: &mut References<W>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let (counts, name) = (self.grid.counts(), files.name(self.file));
        for number in 0..self.count {
            if number % BETWEEN_LOOKS == 0 {
                progress.go_on()?;
            }
            out.range(array, &unravel(number, &counts), name, self.offset + number * self.stride, self.bytes)?;
        }
        Ok(())
    }
}

/// `None` if unlike the datasets of `form`, or if a dense column is not one hypercube in order.
fn shapes(form: &ColumnForm, tiling: &Tiling<'_>, rows: u64) -> Option<Vec<Shape>> {
    let found: Vec<&Shape> = tiling.cubes.iter().map(|cube| &cube.grid().shape).collect();
    match (form, found.as_slice(), tiling.runs.as_slice()) {
        (ColumnForm::Dense { shape, undefined: 0, .. }, [cube], [run]) => {
            let in_order = run.rows == (0..rows) && run.position == 0;
            (in_order && *cube == shape).then(|| vec![shape.clone()])
        }
        (ColumnForm::Cubes { cubes }, found, _) => {
            let same = cubes.len() == found.len() && cubes.iter().zip(found).all(|((shape, _), cube)| shape == *cube);
            same.then(|| cubes.iter().map(|(shape, _)| shape.clone()).collect())
        }
        _ => None,
    }
}

/// Index in `files` of the file with the tiles; `None` if the table is outside of `root`.
fn find(
    table: &Table,
    column: usize,
    suffix: &str,
    root: &TableDirectory,
    files: &mut Files,
) -> Result<Option<FileNumber>> {
    if !table.stored_files(column)?.is_empty() {
        let message =
            "its tiles are inside a container; `h5bridge unpack` takes them out, `h5bridge to-hdf5` converts the table";
        return Err(Error::unsupported(message));
    }
    let directory = table.path().canonicalize().with_context(|| Context::path(table.path()))?;
    let Ok(inside) = directory.strip_prefix(&root.path) else { return Ok(None) };
    let path = directory.join(table.file_name(column, suffix));
    let kind = path.symlink_metadata().with_context(|| Context::path(&path))?.file_type();
    if !kind.is_file() {
        let what = if kind.is_symlink() { "a symbolic link" } else { "not a regular file" };
        let message = format!("it is {what}: a manifest refers to files in the table itself only");
        return Err(Error::unsupported(message).context(Context::path(&path)));
    }
    let inside = inside.join(path.file_name().unwrap_or_default());
    let name = Path::new(&root.name).join(inside);
    let name =
        name.to_str().ok_or_else(|| Error::unsupported("a path that is not UTF-8").context(Context::path(&path)))?;
    files.add(&path, name).map(Some)
}
