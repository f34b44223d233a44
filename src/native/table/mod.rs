//! A table of a native HDF5 file: its keywords and its cells. `open.rs` opens it, `edits.rs` finds
//! edited attributes, `storage.rs` tells how cells are stored. docs/reference/layout.md. Columns
//! and rows are numbered from 0. The **source** is the table of the conversion that made the file,
//! the **rows of the source** are recorded in the dimension scale of rows. A **live** file is read
//! while it is written.

mod edits;
pub(super) mod open;
pub(super) mod storage;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use bstr::{BString, ByteSlice};

use super::cells::{Dense, Ragged, Records};
use super::cubes::{Cube, Cubes};
use super::digests::StoredDigests;
use super::document::{Layout, open_dataset};
use super::form::{FormKind, Members, Part, StoredForm};
use super::names::VIEW_ROWS;
use super::notes::Notes;
use super::processing_set;
use super::raw_strings::RawStrings;
use super::reader::Reader;
use super::view::View;
use crate::error::{Error, Result, ResultExt};
use crate::h5::{Attribute, ChunkReader, Dataset, Group};
use crate::io::ReadAt;
use crate::output::Damage;
use crate::schema::TableInfo;
use crate::table::{ColumnCells, ColumnInfo};
use crate::value::Record;

/// Info and comments that edits of attributes have replaced.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) info: TableInfo,
    pub(crate) comments: Vec<BString>,
}

/// Info, keywords and comments are those that a user may have edited in attributes.
pub(crate) struct NativeTable {
    rows: u64,
    /// Rows that the file was written with; a user may have added or removed rows since.
    written_rows: u64,
    /// Name of the dimension scale of rows.
    row: String,
    /// Whether there may be further rows that are not yet committed.
    live: bool,
    damage: Vec<Damage>,
    keywords: Record,
    info: TableInfo,
    columns: Vec<ColumnInfo>,
    /// Number of columns that `_ctds` describes, the first ones; a user has added the others.
    described: usize,
    forms: Vec<StoredForm>,
    /// Last path component of each subtable, `ANTENNA`, by the stored reference, `././ANTENNA`.
    table_names: HashMap<BString, String>,
    /// Path of the group of each subtable in the file, by the stored reference.
    groups: HashMap<BString, String>,
    layout: Layout,
    /// The view that the source was, if this is a main table.
    view: Option<View>,
    /// `None` if the name of the group is that of the table, and for the main table.
    exact_name: Option<BString>,
    /// Columns added or removed after the file was written, and parts that cannot be used.
    notes: Notes,
    /// `None` without edits. An error is one of reading attributes.
    written: Result<Option<Written>>,
    group: Group,
    /// The group `/_ctds/TABLE`; `None` for a table that a user added to the file.
    exact: Option<Group>,
    source: Arc<dyn ReadAt>,
}

impl NativeTable {
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    pub(crate) fn root(&self) -> Result<Group> {
        self.group.root()
    }

    pub(crate) fn file_bytes(&self) -> Result<u64> {
        self.source.len()
    }

    /// The slowest axis of `dataset` must be the table's rows in a live file. Elements of a type
    /// that `part` lacks are converted.
    fn part_reader(&self, index: usize, part: Part, dataset: Dataset) -> Result<Reader> {
        let wanted = part.element(self.columns[index].data_type());
        match dataset.data_type() {
            Ok(found) if found == wanted => {}
            _ => return Reader::converting(dataset, wanted, part),
        }
        // the number of committed rows does not tell which cells of a hypercube are complete:
        // libhdf5 reads them
        if self.live && matches!(part, Part::Cube(_)) { Reader::new(dataset, None) } else { self.reader(dataset) }
    }

    /// As [`Self::part_reader`], for any dataset.
    fn reader(&self, dataset: Dataset) -> Result<Reader> {
        let source = self.source.clone();
        let chunks = if self.live {
            ChunkReader::of_rows(&dataset, source, self.rows)?
        } else {
            ChunkReader::new(&dataset, source)?
        };
        Reader::new(dataset, chunks)
    }

    /// Exact strings that the column's dataset cannot hold, by the element's number.
    fn raw_strings(&self, link: &str) -> Result<HashMap<u64, BString>> {
        self.exact.as_ref().map_or(Ok(HashMap::new()), |exact| RawStrings::read(exact, link))
    }

    /// Path from the root of each object that is left out, and why.
    pub(crate) fn left_out(&self) -> &[(String, String)] {
        &self.notes.left_out
    }

    /// Parts of the source, in any table, missing in the file; only of a salvaged main table.
    pub(crate) fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// More rows are allowed in a live file, where they may not be committed yet.
    fn check_rows(&self, link: &str, found: u64, expected: u64) -> Result<()> {
        if found == expected || self.live && found > expected {
            return Ok(());
        }
        if self.live {
            return Err(Error::format(format!("{link} has {found} rows where {expected} are expected")));
        }
        let lengths = self.forms.iter().flat_map(|form| row_counts(&self.group, form).unwrap_or_default());
        Err(Error::refused(unequal(lengths)))
    }
}

impl NativeTable {
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn processing_set(&self) -> Result<Option<Group>> {
        processing_set::find(&self.group.root()?)
    }

    /// Paths of the hypercubes that are variables of the processing set.
    pub(crate) fn grid_paths(&self) -> HashSet<String> {
        self.forms.iter().flat_map(|form| &form.grids).map(|grid| grid.path.clone()).collect()
    }

    /// Attributes whose type this program cannot read are left out.
    pub(crate) fn root_attributes(&self) -> Result<Vec<(String, Attribute)>> {
        let root = self.group.root()?;
        let names = root.attributes()?.into_iter();
        Ok(names.filter_map(|name| root.attribute(&name).ok().flatten().map(|value| (name, value))).collect())
    }

    /// Rows of the source; `None` without a scale, or if lengths differ and the file is not live.
    pub(crate) fn row_numbers(&self) -> Result<Option<Vec<i64>>> {
        // rows that a user has added have no numbers
        if !self.group.has(&self.row) || self.rows > self.written_rows && !self.live {
            return Ok(None);
        }
        let scale = self.reader(self.group.dataset(&self.row)?)?.with_axes(1)?;
        if !self.live && scale.rows() != self.rows {
            return Ok(None);
        }
        scale.integers(0..self.rows).map(Some)
    }

    /// The row of the source of the first row; `None` without a scale, or without rows.
    pub(crate) fn first_row(&self) -> Result<Option<i64>> {
        if self.rows == 0 || !self.group.has(&self.row) {
            return Ok(None);
        }
        let scale = self.reader(self.group.dataset(&self.row)?)?.with_axes(1)?;
        Ok(if scale.rows() == 0 { None } else { scale.integers(0..1)?.first().copied() })
    }

    pub(crate) fn view(&self) -> Option<View> {
        self.view.clone()
    }

    /// Row numbers in the root of the reference table that the source was.
    pub(crate) fn root_rows(&self, rows: Range<u64>) -> Result<Vec<u64>> {
        let exact = self.exact.as_ref().ok_or_else(|| Error::format("the table was not a reference table"))?;
        let numbers = self.reader(exact.dataset(VIEW_ROWS)?)?.with_axes(1)?;
        let place = format!("dataset {}/{VIEW_ROWS}", exact.path());
        if numbers.rows() != self.rows {
            let message = format!("it has {} row numbers, the table has {} rows", numbers.rows(), self.rows);
            return Err(Error::format(message).context(place));
        }
        let number = |number: i64| {
            u64::try_from(number).map_err(|_| Error::format(format!("the row number is {number}, expected 0 or more")))
        };
        numbers.integers(rows)?.into_iter().map(number).collect::<Result<Vec<u64>>>().context(place)
    }

    pub(crate) fn keywords(&self) -> &Record {
        &self.keywords
    }

    pub(crate) fn info(&self) -> &TableInfo {
        &self.info
    }

    pub(crate) fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    /// The error of reading a column without cells in the file; else `None`.
    pub(crate) fn missing(&self, index: usize) -> Option<Error> {
        let form = &self.forms[index];
        (form.kind == FormKind::Missing).then(|| form.open(0, |_| Ok(())).err()).flatten()
    }

    pub(crate) fn cells(&self, index: usize) -> Result<Box<dyn ColumnCells>> {
        let form = &self.forms[index];
        let open = |path: &str| open_member(&self.group, path);
        let read = |part: Part, axes: usize, dataset: Dataset| self.part_reader(index, part, dataset)?.with_axes(axes);
        match form.open(form.cubes(&self.group)?, open)? {
            Members::Dense { data, flags } => self.dense(index, data, flags),
            Members::Cubes { cubes, row_cube, row_index } => {
                let row_cube = self.rows_of(form, read(Part::RowCube, 1, row_cube)?)?;
                let row_index = self.rows_of(form, read(Part::RowIndex, 1, row_index)?)?;
                let added = row_cube.rows().min(row_index.rows())..self.rows;
                let cube = |(number, cube)| {
                    let reader = self.part_reader(index, Part::Cube(number), cube)?;
                    match form.grids.get(number) {
                        Some(grid) => Cube::on_grid(reader, grid.reversed),
                        None => Ok(Cube::new(reader)),
                    }
                };
                let cubes = cubes.into_iter().enumerate().map(cube).collect::<Result<_>>()?;
                Ok(Box::new(Cubes { cubes, row_cube, row_index, added, runs: OnceLock::new() }))
            }
            Members::Ragged { values, offset, shape, defined } => {
                let offset = read(Part::Offset, 1, offset)?;
                // an axis of offsets does not grow: rows that a user has added are undefined
                if self.rows == self.written_rows {
                    self.check_rows(&form.link, offset.rows(), self.rows.saturating_add(1))?;
                }
                let shape = self.rows_of(form, read(Part::Shape, 2, shape)?)?;
                let defined = self.rows_of(form, read(Part::Defined, 1, defined)?)?;
                let added = shape.rows().min(defined.rows())..self.rows;
                Ok(Box::new(Ragged {
                    values: read(Part::Values, 1, values)?,
                    offset,
                    shape,
                    defined,
                    added,
                    raw: self.raw_strings(&form.link)?,
                    known: Mutex::default(),
                }))
            }
        }
    }

    /// A dense column, or records as JSON; `flags` tells which cells are defined, `None`: all.
    fn dense(&self, index: usize, data: Dataset, flags: Option<Dataset>) -> Result<Box<dyn ColumnCells>> {
        let StoredForm { kind, link, .. } = &self.forms[index];
        let data = self.part_reader(index, Part::Data, data)?;
        let (cell, rows) = data.shape.split_last().ok_or_else(|| Error::format("the dataset has no axes"))?;
        self.check_rows(link, rows, self.rows)?;
        let is_record = *kind == FormKind::Record;
        let expected = self.columns[index].shape.as_ref().filter(|_| !is_record);
        if expected.is_some_and(|expected| *expected != cell) || is_record && !cell.is_empty() {
            return Err(Error::refused(format!("{link} has cells of shape {cell}, which its column has not")));
        }
        let read = |flags| {
            let flags = self.part_reader(index, Part::Defined, flags)?.with_axes(1)?;
            self.check_rows(link, flags.rows(), self.rows).map(|()| flags)
        };
        let defined = flags.map(read).transpose()?;
        let dense = Dense { data, cell, defined, raw: self.raw_strings(link)? };
        Ok(if is_record { Box::new(Records(dense)) } else { Box::new(dense) })
    }

    /// Fails unless `reader` has the rows of the table; more are allowed in a live table, and rows
    /// that a user has added may be missing.
    fn rows_of(&self, form: &StoredForm, reader: Reader) -> Result<Reader> {
        let is_short = self.written_rows < self.rows && reader.rows() == self.written_rows;
        if !is_short {
            self.check_rows(&form.link, reader.rows(), self.rows)?;
        }
        Ok(reader)
    }

    pub(crate) fn table_name(&self, stored: &[u8]) -> String {
        self.table_names.get(stored.as_bstr()).cloned().unwrap_or_else(|| stored.to_str_lossy().into_owned())
    }

    pub(crate) fn stored_digests(&self) -> Result<Option<StoredDigests>> {
        self.exact.as_ref().map_or(Ok(None), StoredDigests::read)
    }

    /// The name of the dataset or group of a column, in the group of the table.
    pub(crate) fn link(&self, index: usize) -> &str {
        &self.forms[index].link
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout.clone()
    }

    pub(crate) fn group(&self, stored: &[u8]) -> Option<&str> {
        self.groups.get(stored.as_bstr()).map(String::as_str)
    }
}

/// `path` is below the group of the table or, with a slash, from the root.
fn open_member(table: &Group, path: &str) -> Result<Dataset> {
    if path.starts_with('/') { open_dataset(&table.root()?, path) } else { open_dataset(table, path) }
}

/// Rows by path in `group`, of datasets with an axis of rows; none for a column without cells.
fn row_counts(group: &Group, form: &StoredForm) -> Result<Vec<(String, u64)>> {
    if form.kind == FormKind::Missing {
        return Ok(Vec::new());
    }
    let members = form.open(0, |path| Ok(path.to_owned()))?;
    let has_rows = |part: &Part| !matches!(part, Part::Values | Part::Offset | Part::Cube(_));
    let paths = members.parts().into_iter().filter(|(part, _)| has_rows(part));
    let count = |(_, path): (Part, &String)| {
        let shape = open_dataset(group, path)?.shape()?;
        Ok((path.clone(), shape.last().copied().unwrap_or_default()))
    };
    paths.map(count).collect()
}

/// Most names that a message lists for each number of rows.
const LISTED: usize = 20;

/// A sentence with all numbers of rows, and the columns that have each.
fn unequal(lengths: impl IntoIterator<Item = (String, u64)>) -> String {
    let mut by_rows: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (name, rows) in lengths {
        by_rows.entry(rows).or_default().push(name);
    }
    let list = |(rows, names): (&u64, &Vec<String>)| {
        let more = names.len().saturating_sub(LISTED);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{rows} in {}{rest}", names[..names.len() - more].join(", "))
    };
    let lists: Vec<String> = by_rows.iter().map(list).collect();
    format!("the columns have different numbers of rows: {}", lists.join("; "))
}
