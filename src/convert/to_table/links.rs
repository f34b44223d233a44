//! Makes thin tables: their files of tiles are symbolic links to the HDF5 file that has the tiles.
//! docs/howto/share.md.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

use crate::container::thin::{Link, Record};
use crate::error::{Context, Error, Result, ResultExt};
use crate::source::{Content, Source};
use crate::stman::LinkedCube;
use crate::sync::LockUnpoisoned;
use crate::table::ColumnMut;

#[derive(Debug, Default)]
pub(super) struct Links(Mutex<Vec<TableLink>>);

#[derive(Debug)]
struct TableLink {
    /// The table's, relative to the main table's.
    directory: PathBuf,
    link: Link,
}

impl Links {
    /// False, with no link planned, if the HDF5 file lacks the tiles that the table needs.
    pub(super) fn add(
        &self,
        content: &Content,
        index: usize,
        rows: u64,
        directory: &Path,
        column: &mut ColumnMut<'_>,
    ) -> Result<bool> {
        let blocks = content.blocks(index)?;
        if blocks.is_empty() || !column.is_tiled() {
            return Ok(false);
        }
        let cells = content.cells(index)?;
        let Some(tiling) = cells.tiling(crate::native::MAX_CUBES) else { return Ok(false) };
        // rows have to be at the positions that the new table gives them
        let mut next = vec![0; tiling.cubes.len()];
        for run in &tiling.runs {
            match next.get_mut(run.cube) {
                Some(next) if *next == run.position && run.rows.end <= rows => *next += run.rows.end - run.rows.start,
                _ => return Ok(false),
            }
        }
        let cubes: Vec<LinkedCube> = blocks.iter().map(|block| block.cube.clone()).collect();
        let shapes_differ =
            (1..cubes.len()).all(|number| cubes[..number].iter().all(|cube| cube.shape != cubes[number].shape));
        let is_whole = tiling.cubes.len() == cubes.len()
            && cubes.iter().zip(&next).all(|(cube, rows)| cube.shape.last() == Some(rows))
            && cubes.iter().zip(&tiling.cubes).all(|(cube, known)| cube.shape == known.grid().shape);
        if !shapes_differ || !is_whole {
            return Ok(false);
        }
        for run in &tiling.runs {
            let Some((cell, _)) = cubes[run.cube].shape.split_last() else { return Ok(false) };
            column.set_shapes(run.rows.clone(), &cell)?;
        }
        let Some(files) = column.link(&cubes)? else { return Ok(false) };
        let mut links = self.0.lock_unpoisoned();
        for (file, block) in files.into_iter().zip(blocks) {
            let link = Link { file, dataset: block.path, address: block.cube.offset, bytes: block.bytes };
            links.push(TableLink { directory: directory.to_owned(), link });
        }
        Ok(true)
    }

    /// Number of links, and bytes of the datasets that have their tiles.
    pub(super) fn size(&self) -> (usize, u64) {
        let links = self.0.lock_unpoisoned();
        (links.len(), links.iter().map(|link| link.link.bytes).sum())
    }

    /// Directories of tables with links, sorted, relative to the main table's.
    fn directories(&self) -> Vec<PathBuf> {
        let mut directories: Vec<PathBuf> =
            self.0.lock_unpoisoned().iter().map(|link| link.directory.clone()).collect();
        directories.sort();
        directories.dedup();
        directories
    }

    /// `path_from` gives the path of the HDF5 file relative to a directory.
    pub(super) fn make(&self, root: &Path, path_from: &dyn Fn(&Path) -> PathBuf) -> Result<()> {
        for link in self.0.lock_unpoisoned().iter() {
            let path = root.join(&link.directory).join(&link.link.file);
            fs::remove_file(&path).with_context(|| Context::path(&path))?;
            symlink(path_from(&link.directory), &path).with_context(|| Context::path(&path))?;
        }
        Ok(())
    }

    pub(super) fn record(
        &self,
        root: &Path,
        hdf5: &Path,
        source: &Source,
        path_from: &dyn Fn(&Path) -> PathBuf,
    ) -> Result<()> {
        let attributes = source.tables.first().map(|main| main.content()).transpose()?;
        let attributes = attributes.map_or(Ok(None), Content::root_attributes)?.unwrap_or_default();
        let digest = attributes.iter().find(|(name, _)| name == crate::native::SOURCE_DIGEST);
        let digest = digest.and_then(|(_, value)| match value.values() {
            crate::value::Values::String(text) => text.first().map(ToString::to_string),
            _ => None,
        });
        for directory in self.directories() {
            let links = self.0.lock_unpoisoned();
            let mut links: Vec<Link> =
                links.iter().filter(|link| link.directory == directory).map(|link| link.link.clone()).collect();
            links.sort_by(|one, other| one.file.cmp(&other.file));
            Record::new(hdf5, path_from(&directory), digest.clone(), links)?.write(&root.join(&directory))?;
        }
        Ok(())
    }
}

/// Both paths are absolute and without symbolic links.
pub(super) fn relative(directory: &Path, file: &Path) -> PathBuf {
    let common = directory.components().zip(file.components()).take_while(|(one, other)| one == other).count();
    let up = directory.components().skip(common).map(|_| Component::ParentDir);
    up.chain(file.components().skip(common)).collect()
}

/// Symbolic links are not followed.
pub(super) fn make_read_only(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| Context::path(directory))? {
        let path = entry?.path();
        let metadata = path.symlink_metadata().map_err(Error::from)?;
        if metadata.is_dir() {
            make_read_only(&path)?;
        } else if metadata.is_file() {
            let mut permissions = metadata.permissions();
            permissions.set_mode(permissions.mode() & !0o222);
            fs::set_permissions(&path, permissions).with_context(|| Context::path(&path))?;
        }
    }
    Ok(())
}
