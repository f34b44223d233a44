//! How the columns of a table are stored: datasets, chunks, blocks and filters. A dense column is
//! one dataset, whose cells have one shape.

use std::ops::Range;

use super::super::document::open_dataset;
use super::super::form::{FormKind, Part, StoredForm};
use super::NativeTable;
use crate::error::Result;
use crate::h5::{Group, Plugin};
use crate::stman::LinkedCube;
use crate::value::{ByteOrder, DataType, Shape};

impl NativeTable {
    pub(crate) fn only_dataset(&self, index: usize) -> Option<String> {
        let StoredForm { kind, link, flags, .. } = &self.forms[index];
        let has_type = || self.group.dataset(link)?.data_type().map(|found| found == self.columns[index].data_type());
        let only = *kind == FormKind::Dense && flags.is_none() && has_type().unwrap_or_default();
        only.then(|| format!("{}/{link}", self.group.path()))
    }

    /// Path of the dataset, byte range of each chunk with cells of `rows`; `None` unless in chunks.
    pub(crate) fn chunks_of_rows(&self, index: usize, rows: &Range<u64>) -> Result<Option<(String, Vec<Range<u64>>)>> {
        let StoredForm { kind, link, .. } = &self.forms[index];
        if *kind != FormKind::Dense {
            return Ok(None);
        }
        let dataset = open_dataset(&self.group, link)?;
        let Some(&count) = dataset.chunk()?.as_ref().and_then(|chunk| chunk.last()) else { return Ok(None) };
        let mut found = Vec::new();
        dataset.each_chunk(|chunk| {
            let first = chunk.index.last().map_or(0, |index| index.saturating_mul(count));
            if first < rows.end && first.saturating_add(count) > rows.start {
                found.push(chunk.address..chunk.address.saturating_add(chunk.stored_bytes));
            }
        })?;
        Ok(Some((dataset.path().to_owned(), found)))
    }

    /// Role and path from the root of each dataset; empty if the cells are not in the file.
    pub(crate) fn dataset_paths(&self, index: usize) -> Result<Vec<(Part, String)>> {
        let form = &self.forms[index];
        if form.kind == FormKind::Missing {
            return Ok(Vec::new());
        }
        let path = |path: &str| {
            Ok(if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.group.path()) })
        };
        let members = form.open(form.cubes(&self.group)?, path)?;
        Ok(members.parts().into_iter().map(|(part, path)| (part, path.clone())).collect())
    }

    /// The hypercubes of the column, if the chunks of each are plain little-endian elements in one
    /// contiguous block of the file; else empty. A dense column counts as one hypercube.
    pub(crate) fn blocks(&self, index: usize) -> Result<Vec<StoredBlock>> {
        let mut blocks = Vec::new();
        if self.live || !self.forms[index].grids.is_empty() {
            return Ok(blocks);
        }
        for (part, path) in self.dataset_paths(index)? {
            if !matches!(part, Part::Data | Part::Cube(_)) {
                if matches!(part, Part::RowCube | Part::RowIndex) {
                    continue;
                }
                return Ok(Vec::new());
            }
            let dataset = open_dataset(
                &self.group,
                path.strip_prefix(self.group.path()).unwrap_or(&path).trim_start_matches('/'),
            )?;
            let (Some(chunk), Some(offset)) = (dataset.chunk()?, dataset.block()?) else { return Ok(Vec::new()) };
            let data_type = self.columns[index].data_type();
            let is_other = dataset.data_type()? != data_type || data_type == DataType::Bool;
            if dataset.raw_order()? != Some(ByteOrder::Little) || is_other {
                return Ok(Vec::new());
            }
            let cube = LinkedCube { shape: dataset.shape()?, chunk, offset };
            blocks.push(StoredBlock { path, bytes: dataset.stored_bytes(), cube });
        }
        Ok(blocks)
    }

    pub(crate) fn storage(&self, index: usize) -> Result<Vec<DatasetInfo>> {
        let describe = |(group, link, name): (Group, String, String)| {
            let (dataset, elsewhere) = group.dataset_and_elsewhere(&link)?;
            let elsewhere = elsewhere.map(|found| Elsewhere {
                kind: found.kind(),
                targets: found.targets(),
                text: found.to_string(),
            });
            let dataset = match dataset {
                Ok(dataset) => dataset,
                // a dataset in another file is described, although it is refused
                Err(_) if elsewhere.is_some() => {
                    return Ok(DatasetInfo { name, elsewhere, index: "none".into(), ..DatasetInfo::default() });
                }
                Err(error) => return Err(error),
            };
            Ok(DatasetInfo {
                name,
                shape: dataset.shape()?,
                chunk: dataset.chunk()?,
                index: dataset.index_kind()?.to_string(),
                appendable: dataset.is_appendable()?,
                filters: dataset.filters()?,
                plugins: dataset.plugins()?,
                stored_bytes: dataset.stored_bytes(),
                elsewhere,
            })
        };
        self.datasets(index)?.into_iter().map(describe).collect()
    }

    /// Group, name in that group, and path from the table's group of each dataset of the column. If
    /// the column's group is in another file, the list holds only that group.
    fn datasets(&self, index: usize) -> Result<Vec<(Group, String, String)>> {
        let form = &self.forms[index];
        let whole = |path: String| (self.group.clone(), path.clone(), path);
        if form.kind == FormKind::Missing {
            return Ok(Vec::new());
        }
        if self.group.elsewhere(&form.link)?.is_some() {
            return Ok(vec![whole(form.link.clone())]);
        }
        let paths = form.open(form.cubes(&self.group)?, |path| Ok(path.to_owned()))?.into_list();
        let in_group = |path: String| match path.rsplit_once('/') {
            Some((group, name)) if path.starts_with('/') => {
                Ok((self.group.root()?.group(&group[1..])?, name.to_owned(), path))
            }
            Some((group, name)) => Ok((self.group.group(group)?, name.to_owned(), path)),
            None => Ok(whole(path)),
        };
        paths.into_iter().map(in_group).collect()
    }
}

/// A hypercube whose chunks are one contiguous block of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredBlock {
    /// Path of the dataset from the root.
    pub(crate) path: String,
    /// All chunks, which are not compressed.
    pub(crate) bytes: u64,
    pub(crate) cube: LinkedCube,
}

/// How a dataset of a native HDF5 file is stored. Shapes are in casacore's order, first axis
/// fastest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatasetInfo {
    /// Path of the dataset in the native HDF5 file, relative to the group of its table.
    pub name: String,
    /// Shape of the dataset, first axis fastest. Empty if the elements are in another file that is
    /// not read: all properties except the name, `elsewhere` and `index` (`none`) are then empty,
    /// false or 0.
    pub shape: Shape,
    /// Shape of the chunks in elements, first axis fastest; `None` if the dataset is not chunked.
    pub chunk: Option<Shape>,
    /// Kind of the index by which HDF5 finds the dataset's chunks in the file: `fixed_array`,
    /// `extensible_array`, `btree_v2`, `btree_v1`, `single`, `implicit`, `none` if it is not
    /// chunked, or `unknown_N` for the number N of another kind.
    pub index: String,
    /// Whether the dataset can grow along its rows, the slowest axis.
    pub appendable: bool,
    /// Names of the dataset's filters, with the levels of codecs, in the order in which a writer
    /// applies them; empty without filters.
    pub filters: Vec<String>,
    /// The plugins that HDF5 readers need for the dataset's filters; empty if they need none.
    pub plugins: Vec<Plugin>,
    /// Size in bytes of the dataset's elements as stored in the file, after filters, without the
    /// text of strings of variable length.
    pub stored_bytes: u64,
    /// Where the elements of the dataset are if it does not hold them itself; `None` for all
    /// datasets that this program writes.
    pub elsewhere: Option<Elsewhere>,
}

/// A reference from a native HDF5 file to another file, or between its own datasets: external
/// storage, a virtual dataset, an external or user-defined link. References to other files are
/// followed only if [`OpenOptions::follow_external`](crate::OpenOptions::follow_external) is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// Kind of the reference out of a native HDF5 file: `external storage`, `virtual dataset`,
    /// `external link` or `user-defined link`.
    pub kind: &'static str,
    /// The files that the reference leads to, as the native HDF5 file names them: `raw.bin`, or
    /// with the path of an object in the file, `other.h5:/MAIN/DATA`. The file `.` is the native
    /// HDF5 file itself. For a user-defined link, the number of its class: `class 100`.
    pub targets: Vec<String>,
    /// The reference out of a native HDF5 file in words, for the user: its kind (external storage,
    /// virtual dataset, external or user-defined link) and at most three targets, such as `external
    /// link to other.h5:/MAIN/DATA`.
    pub text: String,
}
