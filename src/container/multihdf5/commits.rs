//! The list of commits of a MultiHDF5 container that is appended to live, that is, while other
//! processes read it: a row of file sizes for each commit. docs/reference/containers.md.

use std::collections::HashMap;

use super::header::file_paths;
use super::names::COMMITS;
use crate::error::{Error, Result};
use crate::h5::{Attribute, Compression, Dataset, DatasetSpec, Group};
use crate::value::{DataType, Region, Shape, Values};

/// Least bytes of a chunk of the list; a row may need more.
const CHUNK_BYTES: u64 = 1 << 12;

/// A dataset in the root group, with a row for each commit.
#[derive(Debug)]
pub(super) struct Commits {
    dataset: Dataset,
    /// Paths of all files, nested containers included, in the order of a row's sizes.
    names: Vec<String>,
}

impl Commits {
    /// Replaces an existing list by one without rows.
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

    /// `None` if the container is not appendable.
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

    /// Sizes in bytes at the last commit; empty without one.
    pub(super) fn sizes_by_path(root: &Group) -> Result<HashMap<String, u64>> {
        let Some(commits) = Self::open(root)? else { return Ok(HashMap::new()) };
        let sizes = commits.last()?.unwrap_or_default();
        Ok(commits.names.into_iter().zip(sizes).collect())
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Sizes in bytes at the last commit, in the order of `names`; `None` before the first one.
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

    /// Sizes are in the order of `names`.
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

    /// Makes commits of other processes visible.
    pub(super) fn refresh(&self) -> Result<()> {
        self.dataset.refresh()
    }
}

/// One at least, because HDF5 chunks cannot be empty.
fn columns(files: usize) -> u64 {
    files.max(1) as u64
}
