//! What a table holds, wherever it is stored.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;

use super::edits::Edited;
use super::form::MAX_CUBES;
use super::native;
use crate::container::FileLayout;
use crate::error::{Error, Result, ResultExt};
use crate::io::ByteOrder;
use crate::limits;
use crate::schema::{ColumnKind, TableDesc, TableInfo};
use crate::table::{Cells, ColumnInfo, ManagerSpec, OpenOptions, RecordCells, Table};
use crate::value::{DataType, Record, Shape};

/// The content of one table: of a table directory, or of a group in a native HDF5 file.
pub(crate) trait Content: Send + Sync {
    fn rows(&self) -> u64;

    /// The table keywords.
    fn keywords(&self) -> &Record;

    fn info(&self) -> &TableInfo;

    /// In the order of the table description.
    fn columns(&self) -> &[ColumnInfo];

    /// The cells of a column, by its number; those of a record column are records.
    fn cells(&self, index: usize) -> Result<Box<dyn Cells + '_>>;

    /// The last component of the path of the table that a keyword names as `stored`.
    fn table_name(&self, stored: &[u8]) -> String;

    /// The datasets of a column, if the table is in an HDF5 file.
    fn storage(&self, _index: usize) -> Result<Vec<DatasetInfo>> {
        Ok(Vec::new())
    }

    /// The digests that were stored with the table when its file was made.
    fn stored_digests(&self) -> Result<Option<serde_json::Value>> {
        Ok(None)
    }

    /// The path of the only dataset that the cells of a column are in, if the table is in an HDF5 file.
    fn only_dataset(&self, _index: usize) -> Option<String> {
        None
    }

    /// The table itself, if it is a casacore table.
    fn as_table(&self) -> Option<&Table> {
        None
    }

    /// How the table was stored, as far as that is known.
    fn layout(&self) -> Layout;

    /// The path of the group of the table that a keyword names as `stored`, if the table is in an HDF5 file.
    fn group(&self, _stored: &[u8]) -> Option<&str> {
        None
    }

    /// Info and keywords as a user may have changed them since the table was converted.
    ///
    /// # Errors
    /// Those of reading the file.
    fn edited(&self) -> Result<Edited> {
        Ok(Edited::nothing(self.info(), self.keywords(), self.columns()))
    }
}

/// How a casacore table was stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    /// Of the data files.
    pub(crate) order: Option<ByteOrder>,
    /// Names, comment and private keywords; neither keywords nor columns.
    pub(crate) desc: TableDesc,
    pub(crate) managers: Vec<ManagerSpec>,
    /// For each column the number of its manager; none where only the manager's name tells.
    pub(crate) bindings: Vec<Option<usize>>,
}

/// How a dataset is stored. Shapes are in casacore's order, first axis fastest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatasetInfo {
    /// Relative to the group of its table.
    pub name: String,
    /// Of the dataset. Empty, as all that follows, if the elements lie in other files and are not followed there.
    pub shape: Shape,
    /// `None` if it is not chunked.
    pub chunk: Option<Shape>,
    /// `fixed_array`, `extensible_array`, `btree_v2`, `btree_v1`, `single`, `implicit` or `none`.
    pub index: String,
    /// It can grow along its rows.
    pub appendable: bool,
    /// First applied first.
    pub filters: Vec<String>,
    /// Bytes in the file.
    pub stored_bytes: u64,
    /// Where the elements are if the dataset itself does not have them; `None` for all datasets that this program writes.
    pub elsewhere: Option<Elsewhere>,
}

/// A reference out of a native file, or from one of its datasets to others: external storage, a virtual dataset, an
/// external or user-defined link. References to other files are followed only if
/// [`OpenOptions::follow_external`] says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// `external storage`, `virtual dataset`, `external link` or `user-defined link`.
    pub kind: &'static str,
    /// The files, as the native file names them: `raw.bin`; with the path of an object in them where there is one:
    /// `other.h5:/MAIN/DATA`. The file `.` is the native file itself.
    pub targets: Vec<String>,
    /// Both, in words.
    pub text: String,
}

/// A borrowed column is as good as an owned one.
struct Borrowed<'a>(&'a dyn Cells);

impl Cells for Borrowed<'_> {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        self.0.cell_shape(row)
    }

    fn read_cell(&self, row: u64, region: Option<&crate::value::Region>, out: &mut crate::value::Values) -> Result<()> {
        self.0.read_cell(row, region, out)
    }

    fn read_rows(&self, rows: std::ops::Range<u64>, out: &mut crate::value::Values) -> Result<()> {
        self.0.read_rows(rows, out)
    }

    fn same_shape(&self, rows: &std::ops::Range<u64>) -> Option<Shape> {
        self.0.same_shape(rows)
    }

    fn tiling(&self, max_cubes: usize) -> Option<crate::table::Tiling<'_>> {
        self.0.tiling(max_cubes)
    }

    fn extents(&self, rows: u64, max_cubes: usize, each: &mut crate::table::EachExtent<'_>) -> Result<()> {
        self.0.extents(rows, max_cubes, each)
    }
}

impl Content for Table {
    fn rows(&self) -> u64 {
        Table::rows(self)
    }

    fn keywords(&self) -> &Record {
        Table::keywords(self)
    }

    fn info(&self) -> &TableInfo {
        Table::info(self)
    }

    fn columns(&self) -> &[ColumnInfo] {
        Table::columns(self)
    }

    fn cells(&self, index: usize) -> Result<Box<dyn Cells + '_>> {
        let cells = Table::cells(self, index)?;
        Ok(match Table::columns(self)[index].data_type() {
            DataType::Record => Box::new(RecordCells(cells)),
            _ => Box::new(Borrowed(cells)),
        })
    }

    fn table_name(&self, stored: &[u8]) -> String {
        self.resolve(stored).file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn as_table(&self) -> Option<&Table> {
        Some(self)
    }

    fn layout(&self) -> Layout {
        let description = self.description();
        let desc = TableDesc { keywords: Record::default(), columns: Vec::new(), ..description.clone() };
        let manager = |manager: crate::table::ManagerInfo<'_>| ManagerSpec {
            type_name: manager.type_name.to_owned(),
            name: manager.name.to_owned(),
            parameters: manager.parameters,
        };
        let managers = self.managers().map(manager).collect();
        Layout { order: Some(self.byte_order()), desc, managers, bindings: self.manager_numbers() }
    }
}

/// Whether all cells have `info.shape`, none undefined, by the kind of the column alone.
pub(crate) fn always_defined(info: &ColumnInfo) -> bool {
    match info.desc.kind {
        ColumnKind::Scalar => info.data_type() != DataType::Record,
        ColumnKind::Array => info.desc.is_direct() && info.shape.is_some(),
    }
}

/// A table and all tables below it, opened for reading.
pub struct Source {
    /// The last component of the path.
    pub(crate) name: String,
    /// The path as it was given, for errors.
    pub(crate) place: String,
    /// The main table first, parents before children.
    pub(crate) tables: Vec<SourceTable>,
}

/// One of the tables of a [`Source`].
pub struct SourceTable {
    /// Where it is in the tree: `.` for the main table, else the keywords that lead to it, `ANTENNA` or `A/B`.
    pub name: String,
    /// The table that names it, by its number; `None` for the main table.
    pub(crate) parent: Option<usize>,
    /// Where it lies, if it has a place of its own.
    pub(crate) path: Option<PathBuf>,
    /// The path of its group, if it is in an HDF5 file.
    pub(crate) group: Option<String>,
    pub(crate) content: Result<Box<dyn Content>>,
}

impl Source {
    /// Opens whatever is at `path`, found out by its bytes: a table directory, a file that holds a whole table, or a
    /// native HDF5 file.
    ///
    /// Subtables that cannot be opened keep their error; see [`problems`](Self::problems).
    ///
    /// # Errors
    /// Those of [`Table::open`] for the main table; `Format` if `path` is neither.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, OpenOptions::default())
    }

    /// As [`open`](Self::open), with tables locked, and other files followed, as `options` say.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        let place = path.display().to_string();
        if path.is_file() && native::is_native(path).context(&place)? {
            return native::open(path, options);
        }
        let table = Table::open_with(path, options)?;
        let name = table.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut tables = Vec::new();
        let mut seen = BTreeSet::new();
        let path = canonical(table.path());
        seen.insert(path.clone());
        let content = Ok(Box::new(table) as Box<dyn Content>);
        tables.push(SourceTable { name: ".".into(), parent: None, path: Some(path), group: None, content });
        let mut next = 0;
        let mut depth = vec![0];
        while next < tables.len() {
            open_subtables(&mut tables, next, options, &mut seen, &mut depth)?;
            next += 1;
        }
        Ok(Source { name, place, tables })
    }

    /// The number of the table that a keyword of table number `of` stores as `stored`.
    pub(crate) fn find(&self, of: usize, stored: &[u8]) -> Option<usize> {
        let content = self.tables[of].content().ok()?;
        if let Some(group) = content.group(stored) {
            return self.tables.iter().position(|table| table.group.as_deref() == Some(group));
        }
        let path = canonical(&content.as_table()?.resolve(stored));
        self.tables.iter().position(|table| table.path.as_ref() == Some(&path))
    }

    /// The tables, the main one first.
    pub fn tables(&self) -> &[SourceTable] {
        &self.tables
    }

    /// Subtables that keywords name but that cannot be opened.
    pub fn problems(&self) -> impl Iterator<Item = (&str, &Error)> {
        self.tables.iter().filter_map(|table| Some((table.name.as_str(), table.content.as_ref().err()?)))
    }
}

fn open_subtables(
    tables: &mut Vec<SourceTable>,
    parent: usize,
    options: OpenOptions,
    seen: &mut BTreeSet<PathBuf>,
    depth: &mut Vec<usize>,
) -> Result<()> {
    let Some(table) = tables[parent].content.as_ref().ok().and_then(|content| content.as_table()) else {
        return Ok(());
    };
    let prefix = match tables[parent].name.as_str() {
        "." => String::new(),
        name => format!("{name}/"),
    };
    for subtable in table.subtables() {
        // a table named twice, or one that contains itself, is taken once
        let Some(path) = subtable.paths.first().map(|path| canonical(path)) else { continue };
        if !seen.insert(path.clone()) {
            continue;
        }
        limits::depth(depth[parent] + 1, "subtables")?;
        let mut name = format!("{prefix}{}", subtable.name.to_str_lossy());
        for number in 2.. {
            if !tables.iter().any(|other| other.name == name) {
                break;
            }
            name = format!("{prefix}{}__{number}", subtable.name.to_str_lossy());
        }
        let content = subtable.open(options).map(|table| Box::new(table) as Box<dyn Content>);
        tables.push(SourceTable { name, parent: Some(parent), path: Some(path), group: None, content });
        depth.push(depth[parent] + 1);
    }
    Ok(())
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

impl SourceTable {
    /// The number of rows.
    ///
    /// # Errors
    /// That of opening the table.
    pub fn rows(&self) -> Result<u64> {
        Ok(self.content()?.rows())
    }

    /// What is known of each column, in the order of the table description.
    ///
    /// # Errors
    /// That of opening the table.
    pub fn columns(&self) -> Result<&[ColumnInfo]> {
        Ok(self.content()?.columns())
    }

    /// Type, subtype and readme.
    ///
    /// # Errors
    /// That of opening the table.
    pub fn info(&self) -> Result<&TableInfo> {
        Ok(self.content()?.info())
    }

    /// The datasets of a column, by its number; none if the source is a table directory.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn storage(&self, column: usize) -> Result<Vec<DatasetInfo>> {
        self.content()?.storage(column)
    }

    /// The table itself, if the source is a table directory.
    ///
    /// # Errors
    /// That of opening the table.
    pub fn table(&self) -> Result<Option<&Table>> {
        Ok(self.content()?.as_table())
    }

    /// How the container stores the files of the data manager of a column, by its number, with their names; none if they
    /// are in no container.
    ///
    /// # Errors
    /// That of opening the table; those of reading the container.
    pub fn stored_files(&self, column: usize) -> Result<Vec<(String, FileLayout)>> {
        self.table()?.map_or(Ok(Vec::new()), |table| table.stored_files(column))
    }

    /// The hypercubes of a column of a table directory, by its number: shape and tile of each, rows last; none if the
    /// column is not tiled or cannot be read.
    pub fn hypercubes(&self, column: usize) -> Vec<(Shape, Shape)> {
        let cubes = || -> Option<Vec<_>> {
            let cells = self.content.as_ref().ok()?.cells(column).ok()?;
            let tiling = cells.tiling(MAX_CUBES)?;
            let grids = tiling.cubes.iter().map(|cube| cube.grid());
            Some(grids.map(|grid| (grid.shape.clone(), grid.chunk.clone())).collect())
        };
        cubes().unwrap_or_default()
    }

    pub(crate) fn content(&self) -> Result<&dyn Content> {
        match &self.content {
            Ok(content) => Ok(&**content),
            Err(error) if self.name == "." => Err(error.clone()),
            Err(error) => Err(error.clone()).with_context(|| format!("subtable {}", self.name)),
        }
    }
}
