//! The list of commits of a MultiHDF5 container that is appended to live, that is, while other processes read it: a row of
//! file sizes for each commit. docs/containers.md.

use std::collections::HashMap;

use super::header::file_paths;
use super::names::COMMITS;
use crate::error::{Error, Result};
use crate::h5::{Attribute, Compression, Dataset, DatasetSpec, Group};
use crate::value::{DataType, Region, Shape, Values};

/// Size in bytes of a chunk of the dataset with the list of commits (a row of file sizes for each commit). A chunk is
/// larger if a single row is.
const CHUNK_BYTES: u64 = 1 << 12;

/// The list of commits of a MultiHDF5 container that other processes read while it grows: a dataset in its root group, with
/// a row of file sizes for each commit.
#[derive(Debug)]
pub(super) struct Commits {
    dataset: Dataset,
    /// Paths of all files of the container, those in nested containers included. A commit is a row in the dataset of
    /// commits, with the sizes in bytes of the files in the order of these paths.
    names: Vec<String>,
}

impl Commits {
    /// Writes an empty list of commits to the root group, in place of an existing one: a dataset without rows, with a
    /// column for the size of each file of the container and of the containers nested in it.
    pub(super) fn create(root: &Group) -> Result<()> {
        if root.has(COMMITS) {
            root.remove(COMMITS)?;
        }
        let names = file_paths(root)?;
        let columns = columns(names.len());
        let spec = DatasetSpec {
            element: DataType::Int64,
            shape: &Shape::from([columns, 0]),
            chunk: Some(Shape::from([columns, (CHUNK_BYTES / 8 / columns).max(1)])),
            appendable: true,
            compression: Compression::NONE,
        };
        let dataset = root.create_dataset(COMMITS, &spec)?;
        let names = names.into_iter().map(Into::into).collect();
        dataset.set_attribute("names", &Attribute::Array(Values::String(names)))
    }

    /// Opens the list of commits in the root group of a MultiHDF5 container; `None` if the container is not appendable.
    pub(super) fn open(root: &Group) -> Result<Option<Self>> {
        if !root.has(COMMITS) {
            return Ok(None);
        }
        let dataset = root.dataset(COMMITS)?;
        let names = match dataset.attribute("names")? {
            Some(Attribute::Array(Values::String(names))) => names.iter().map(ToString::to_string).collect(),
            _ => {
                return Err(Error::format(format!(
                    "dataset {} has no attribute names, which lists the files",
                    dataset.path()
                )));
            }
        };
        Ok(Some(Commits { dataset, names }))
    }

    /// Sizes in bytes of all files of the container at its last commit, by path. Empty if the container has no list of
    /// commits, or none was made yet.
    pub(super) fn sizes_by_path(root: &Group) -> Result<HashMap<String, u64>> {
        let Some(commits) = Self::open(root)? else { return Ok(HashMap::new()) };
        let sizes = commits.last()?.unwrap_or_default();
        Ok(commits.names.into_iter().zip(sizes).collect())
    }

    /// Paths of the files in the container, in the order in which each commit lists their sizes.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Sizes in bytes of all files of the container at the last commit, in the order of the file paths in `names`;
    /// `None` before the first commit.
    pub(super) fn last(&self) -> Result<Option<Vec<u64>>> {
        let (dataset, count) = (&self.dataset, self.names.len());
        let shape = dataset.shape()?;
        let [found, rows] = shape[..] else {
            return Err(Error::format(format!("dataset {} has shape {shape}, expected two axes", dataset.path())));
        };
        if found != columns(count) {
            return Err(Error::format(format!(
                "dataset {} has {found} sizes, expected one for each of {count} files",
                dataset.path()
            )));
        }
        if rows == 0 {
            return Ok(None);
        }
        let mut values = Values::new(DataType::Int64);
        let last = Region { start: Shape::from([0, rows - 1]), shape: Shape::from([found, 1]) };
        dataset.read_region(&last, &mut values)?;
        let sizes = values.integers().unwrap_or_default();
        let size = |size| {
            u64::try_from(size)
                .map_err(|_| Error::format(format!("the size of a file is {size} bytes, expected 0 or more")))
        };
        Ok(Some(sizes.into_iter().take(count).map(size).collect::<Result<_>>()?))
    }

    /// Appends a commit to the list of commits: a row with the sizes in bytes of all files, in the order of the file
    /// paths in `names`.
    pub(super) fn append(&self, sizes: Vec<i64>) -> Result<()> {
        let columns = columns(sizes.len());
        let shape = self.dataset.shape()?;
        let count = shape.last().copied().unwrap_or(0);
        self.dataset.set_extent(count + 1)?;
        if !sizes.is_empty() {
            let row = Region { start: Shape::from([0, count]), shape: Shape::from([columns, 1]) };
            self.dataset.write_region(&row, &Values::Int64(sizes))?;
        }
        Ok(())
    }

    /// Reads again from the HDF5 file how many rows the dataset of commits has, one for each commit. Commits that
    /// another process has added since the last reading become visible.
    pub(super) fn refresh(&self) -> Result<()> {
        self.dataset.refresh()
    }
}

/// Number of columns of the dataset of commits, in which a commit is a row of file sizes: one for each file, and at
/// least one because HDF5 chunks cannot be empty.
fn columns(files: usize) -> u64 {
    files.max(1) as u64
}
