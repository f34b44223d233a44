//! The list of block versions of a live container whose files are changed as well as appended to:
//! which row of a file's dataset has which block. docs/reference/containers.md.

use std::path::Path;
use std::sync::Arc;

use super::names::BLOCKS;
use super::virtual_file::BlockRows;
use crate::error::{Error, Result, ResultExt};
use crate::h5::{Attribute, Compression, Dataset, DatasetSpec, Group};
use crate::value::{DataType, Region, Shape, Values};

/// Entries of a chunk of the list.
const CHUNK_ENTRIES: u64 = 1 << 10;

/// Entries that are read at once.
const READ_ENTRIES: u64 = 1 << 16;

/// Attribute of the list: the directory whose files the container has.
const SOURCE: &str = "source";

/// Attribute of the list: number of the inode of the table's lock file.
const INODE: &str = "inode";

/// A block that was written to a row of the dataset of its file; a later entry of the same block
/// replaces this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    /// Index in the list of names of the commits.
    pub(super) file: usize,
    pub(super) block: u64,
    pub(super) row: u64,
}

/// The table that a container is kept in step with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) path: String,
    /// A table that is made again at the same path has another lock file.
    pub(crate) inode: u64,
}

impl Origin {
    pub(crate) fn new(path: &Path, inode: u64) -> Self {
        Origin { path: path.to_string_lossy().into_owned(), inode }
    }
}

/// A dataset in the root group, int64 (entries, 3): file, block, row.
#[derive(Debug)]
pub(super) struct Blocks {
    dataset: Dataset,
}

impl Blocks {
    pub(super) fn create(root: &Group, origin: &Origin) -> Result<()> {
        let spec = DatasetSpec {
            element: DataType::Int64,
            shape: &Shape::from([3, 0]),
            chunk: Some(Shape::from([3, CHUNK_ENTRIES])),
            appendable: true,
            compression: Compression::NONE,
        };
        let dataset = root.create_dataset(BLOCKS, &spec)?;
        dataset.set_attribute(SOURCE, &Attribute::string(origin.path.as_str()))?;
        dataset.set_attribute(INODE, &Attribute::Scalar(Values::Int64(vec![origin.inode as i64])))
    }

    /// `None` if blocks of files are where they are in other containers.
    pub(super) fn open(root: &Group) -> Result<Option<Self>> {
        if !root.has(BLOCKS) {
            return Ok(None);
        }
        Ok(Some(Blocks { dataset: root.dataset(BLOCKS)? }))
    }

    pub(super) fn origin(&self) -> Result<Origin> {
        let attribute = |name: &str| {
            let missing = || Error::format(format!("dataset {} has no attribute {name}", self.dataset.path()));
            self.dataset.attribute(name)?.ok_or_else(missing)
        };
        let wrong = |name: &str| Error::format(format!("dataset {BLOCKS}: attribute {name} has no value of its own"));
        let path = match attribute(SOURCE)?.values() {
            Values::String(texts) if texts.len() == 1 => texts[0].to_string(),
            _ => return Err(wrong(SOURCE)),
        };
        match attribute(INODE)?.values().integers().as_deref() {
            Some([inode]) => Ok(Origin { path, inode: *inode as u64 }),
            _ => Err(wrong(INODE)),
        }
    }

    /// Writes entries from entry `first` on.
    pub(super) fn write(&self, first: u64, versions: &[Version]) -> Result<()> {
        let count = versions.len() as u64;
        if self.entries()? < first + count {
            self.dataset.set_extent(first + count)?;
        }
        let entry = |version: &Version| [version.file as i64, version.block as i64, version.row as i64];
        let region = Region { start: Shape::from([0, first]), shape: Shape::from([3, count]) };
        self.dataset.write_region(&region, &Values::Int64(versions.iter().flat_map(entry).collect()))
    }

    fn entries(&self) -> Result<u64> {
        let shape = self.dataset.shape()?;
        match shape[..] {
            [3, entries] => Ok(entries),
            _ => Err(Error::format(format!(
                "dataset {} has shape {shape}, expected three numbers for each entry",
                self.dataset.path()
            ))),
        }
    }

    /// Makes entries of other processes visible.
    pub(super) fn refresh(&self) -> Result<()> {
        self.dataset.refresh()
    }
}

/// Row of each block of each file, after some entries of the list. Memory is bounded by the entries
/// that were read.
#[derive(Debug, Clone)]
pub(super) struct Order {
    rows: Vec<BlockRows>,
    entries: u64,
}

impl Order {
    pub(super) fn new(files: usize) -> Self {
        Order { rows: vec![Arc::default(); files], entries: 0 }
    }

    /// Rows by block; there may be more blocks than the file has now.
    pub(super) fn rows(&self, file: usize) -> &BlockRows {
        &self.rows[file]
    }

    /// Reads the entries up to number `entries`, those from before left out.
    pub(super) fn read(&mut self, blocks: &Blocks, entries: u64) -> Result<()> {
        let place = || format!("dataset {}", blocks.dataset.path());
        let there = blocks.entries()?;
        if entries > there {
            let message = format!("the list has {there} entries, but the commit has {entries}");
            return Err(Error::format(message)).with_context(place);
        }
        while self.entries < entries {
            let count = READ_ENTRIES.min(entries - self.entries);
            let region = Region { start: Shape::from([0, self.entries]), shape: Shape::from([3, count]) };
            let mut values = Values::new(DataType::Int64);
            blocks.dataset.read_region(&region, &mut values)?;
            for (number, entry) in values.integers().unwrap_or_default().chunks_exact(3).enumerate() {
                self.add([entry[0], entry[1], entry[2]])
                    .with_context(|| format!("entry {}", self.entries + number as u64))
                    .with_context(place)?;
            }
            self.entries += count;
        }
        Ok(())
    }

    /// A file has each of its blocks once before it has the next one.
    fn add(&mut self, [file, block, row]: [i64; 3]) -> Result<()> {
        let files = self.rows.len();
        let rows = usize::try_from(file).ok().and_then(|file| self.rows.get_mut(file));
        let rows =
            rows.ok_or_else(|| Error::format(format!("file {file} is listed, but the container has {files}")))?;
        let rows = Arc::make_mut(rows);
        let row = u64::try_from(row)
            .map_err(|_| Error::format(format!("the row of a block is {row}, expected 0 or more")))?;
        match usize::try_from(block).ok().filter(|&block| block <= rows.len()) {
            Some(block) if block == rows.len() => rows.push(row),
            Some(block) => rows[block] = row,
            None => {
                let message =
                    format!("block {block} of file {file} is listed, but the file has {} blocks before", rows.len());
                return Err(Error::format(message));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_of_a_block_counts() {
        let mut order = Order::new(2);
        for entry in [[0, 0, 0], [1, 0, 0], [0, 1, 1], [0, 0, 2], [0, 2, 3], [0, 0, 4]] {
            order.add(entry).unwrap();
        }
        assert_eq!((&**order.rows(0), &**order.rows(1)), (&vec![4, 1, 3], &vec![0]));
        for (entry, words) in [
            ([2, 0, 0], "file 2 is listed, but the container has 2"),
            ([-1, 0, 0], "file -1 is listed"),
            ([1, 2, 0], "block 2 of file 1 is listed, but the file has 1 blocks before"),
            ([1, -1, 0], "block -1 of file 1"),
            ([1, i64::MAX, 0], "the file has 1 blocks before"),
            ([1, 0, -3], "the row of a block is -3, expected 0 or more"),
        ] {
            let error = order.clone().add(entry).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
