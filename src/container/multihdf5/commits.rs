//! The list of commits of a MultiHDF5 container that is appended to live, that is, while other
//! processes read it: a row of file sizes for each commit, and of the number of block versions if
//! its files are also changed. docs/reference/containers.md.

use std::collections::HashMap;

use super::blocks::{Blocks, Order};
use super::header::file_paths;
use super::names::{BLOCKS, COMMITS};
use super::virtual_file::BlockRows;
use crate::error::{Error, Result};
use crate::h5::{Attribute, Compression, Dataset, DatasetSpec, Group};
use crate::value::{DataType, Region, Shape, Values};

/// Least bytes of a chunk of the list; a row may need more.
const CHUNK_BYTES: u64 = 1 << 12;

/// Stands for the size of a file that was removed.
const REMOVED: i64 = -1;

/// A dataset in the root group, with a row for each commit.
#[derive(Debug)]
pub(super) struct Commits {
    dataset: Dataset,
    /// Paths of all files, nested containers included, in the order of a row's sizes.
    names: Vec<String>,
    /// A row ends with the number of entries in the list of block versions.
    counts_versions: bool,
}

/// State of all files at a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    /// Bytes of each file, in the order of the names; `None` for one that was removed.
    pub(super) sizes: Vec<Option<u64>>,
    /// Entries in the list of block versions.
    pub(super) versions: u64,
}

/// A file at the last commit.
#[derive(Debug, Clone)]
pub(super) struct CommittedFile {
    /// Bytes; `None` if it was removed.
    pub(super) size: Option<u64>,
    /// Row of each block; `None` if they are in order.
    pub(super) order: Option<BlockRows>,
}

impl Commits {
    /// Replaces an existing list by one without rows.
    pub(super) fn create(root: &Group, counts_versions: bool) -> Result<()> {
        if root.has(COMMITS) {
            root.remove(COMMITS)?;
        }
        let names = file_paths(root)?;
        let columns = columns(names.len(), counts_versions);
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
        Ok(Some(Commits { dataset, names, counts_versions: root.has(BLOCKS) }))
    }

    /// The files at the last commit, by path; empty without one.
    pub(super) fn files_by_path(root: &Group) -> Result<HashMap<String, CommittedFile>> {
        let Some(commits) = Self::open(root)? else { return Ok(HashMap::new()) };
        let Some(Commit { sizes, versions }) = commits.last()? else { return Ok(HashMap::new()) };
        let order = match Blocks::open(root)? {
            Some(blocks) => {
                let mut order = Order::new(sizes.len());
                order.read(&blocks, versions)?;
                Some(order)
            }
            None => None,
        };
        let rows = |number: usize| order.as_ref().map(|order| order.rows(number).clone());
        let file = |(number, size)| CommittedFile { size, order: rows(number) };
        Ok(commits.names.into_iter().zip(sizes.into_iter().enumerate().map(file)).collect())
    }

    /// Whether files are changed as well as appended to.
    pub(super) fn counts_versions(&self) -> bool {
        self.counts_versions
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// `None` before the first one.
    pub(super) fn last(&self) -> Result<Option<Commit>> {
        let (dataset, count) = (&self.dataset, self.names.len());
        let shape = dataset.shape()?;
        let [found, rows] = shape[..] else {
            return Err(Error::format(format!("dataset {} has shape {shape}, expected two axes", dataset.path())));
        };
        if found != columns(count, self.counts_versions) {
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
        let numbers = values.integers().unwrap_or_default();
        let counted = |what: &str, number: i64, unit: &str| {
            u64::try_from(number)
                .map_err(|_| Error::format(format!("the {what} is {number} {unit}, expected 0 or more")))
        };
        let size = |&size: &i64| match size {
            REMOVED if self.counts_versions => Ok(None),
            size => counted("size of a file", size, "bytes").map(Some),
        };
        let sizes = numbers.iter().take(count).map(size).collect::<Result<_>>()?;
        let versions = match numbers.last() {
            Some(&number) if self.counts_versions => counted("length of the list of blocks", number, "entries")?,
            _ => 0,
        };
        Ok(Some(Commit { sizes, versions }))
    }

    pub(super) fn append(&self, commit: &Commit) -> Result<()> {
        let sizes = commit.sizes.iter().map(|size| size.map_or(REMOVED, |size| size as i64));
        let sizes: Vec<i64> = sizes.chain(self.counts_versions.then_some(commit.versions as i64)).collect();
        let columns = columns(self.names.len(), self.counts_versions);
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
fn columns(files: usize, counts_versions: bool) -> u64 {
    (files + usize::from(counts_versions)).max(1) as u64
}
