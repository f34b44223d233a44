//! Opens the tables of native HDF5 files (columns as datasets) and reads their keywords, their cells, how these are
//! stored, and which HDF5 attributes a user has edited. docs/layout.md.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bstr::{BStr, BString, ByteSlice};

use super::attributes::{self, Attributes, OF_COLUMN, OF_TABLE, Object, TABLE_SUBTYPE, TABLE_TYPE};
use super::cells::{Cubes, Dense, Ragged, Records};
use super::digests::StoredDigests;
use super::document::{DescribedTable, Layout, check_format, described_columns, described_tables, open_dataset};
use super::form::{FormKind, Members, Part, StoredForm};
use super::names::{MAIN_TABLE, ROW, defined_flags, last_part, row_name, table_of_path, table_path};
use super::raw_strings::RawStrings;
use super::reader::Reader;
use super::undescribed::{self, Notes};
use super::unread;
use crate::container;
use crate::damage::Damage;
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{self, Attribute, ChunkReader, Dataset, File, Group, Plugin};
use crate::io::{FileSource, ReadAt};
use crate::remote;
use crate::schema::TableInfo;
use crate::stman::LinkedCube;
use crate::table::{ColumnCells, ColumnInfo, OpenOptions};
use crate::value::{ByteOrder, DataType, Record, Shape, Value, Values};

/// Whether the file at `path` is HDF5 but not a container of packed files. Always true for a URL, whose content is
/// checked when it is opened.
pub(crate) fn is_native(path: &Path) -> Result<bool> {
    if remote::is_remote(path) {
        return Ok(true);
    }
    let may_be = h5::is_hdf5(&FileSource::open(path)?)? && !container::is_multi_hdf5(path)?;
    // a file that another process has locked is not told apart here
    Ok(may_be && !container::is_hdf5_files(path).unwrap_or(false))
}

/// A table of a native HDF5 file, opened or with the error of opening it, with its name and its parent in the tree of
/// tables.
pub(crate) struct NativeEntry {
    /// Name of the table: `.` for the main table, else the keywords that lead to it, `ANTENNA` or `A/B`.
    pub(crate) name: String,
    /// Index (from 0) of the table whose keyword names this one, in the list of the file's tables; `None` for the main table.
    pub(crate) parent: Option<usize>,
    /// The path of the table's group in the file.
    pub(crate) group: String,
    pub(crate) table: Result<NativeTable>,
}

/// Opens all tables of a native HDF5 file, the main table first. The entry of a damaged table holds the error in place
/// of the table.
pub(crate) fn open(path: &Path, options: OpenOptions) -> Result<Vec<NativeEntry>> {
    let (file, source) = File::open_with_source(path)?;
    let file = if options.follow_external { file.follow()? } else { file };
    let place = Context::path(path);
    let open = || -> Result<Vec<NativeEntry>> {
        let root = file.root()?;
        check_format(&root)?;
        let mut tables = Vec::new();
        let described = described_tables(&root)?;
        let known = described.iter().map(|table| table.path.clone()).collect();
        for table in &described {
            add_described(&root, table, &known, &source, &mut tables);
        }
        find_more_tables(&root, &known, &source, &mut tables)?;
        if tables.first().is_none_or(|table| table.name != MAIN_TABLE) {
            return Err(Error::format(format!("table {} is missing", table_path(MAIN_TABLE))));
        }
        let placed = |entry: NativeEntry| NativeEntry { table: entry.table.context(&place), ..entry };
        Ok(tables.into_iter().map(placed).collect())
    };
    open().context(&place)
}

/// Opens a table that the group `_ctds` describes and adds it to `tables`; `known` are the paths of the groups of all such
/// tables.
fn add_described(
    root: &Group,
    described: &DescribedTable,
    known: &HashSet<String>,
    source: &Arc<dyn ReadAt>,
    tables: &mut Vec<NativeEntry>,
) {
    let path = &described.path;
    // the group's name differs where the table's was taken; a damaged document shows when the table is opened
    let name = described.name().unwrap_or_else(|| table_of_path(path).to_owned());
    let parent = match name.rsplit_once('/') {
        _ if name == MAIN_TABLE => None,
        Some((parent, _)) => tables.iter().position(|table| table.name == parent).or(Some(0)),
        None => Some(0),
    };
    let table = NativeTable::open(root, described, known, source.clone()).with_context(|| format!("group {path}"));
    tables.push(NativeEntry { name, parent, group: path.clone(), table });
}

/// Opens the tables that a user has added to a native HDF5 file and that its group `_ctds` does not describe, and adds
/// them to `tables`. A group that cannot be a table is noted in the table that it would be a subtable of.
fn find_more_tables(
    root: &Group,
    known: &HashSet<String>,
    source: &Arc<dyn ReadAt>,
    tables: &mut Vec<NativeEntry>,
) -> Result<()> {
    let main = table_path(MAIN_TABLE);
    if tables.is_empty() && root.has(&main[1..]) {
        let table = NativeTable::open_by_hand(root, &main, known, source.clone());
        // a file needs its main table
        let table = table.map_err(Error::not_left_out).with_context(|| format!("group {main}"));
        let name = table_of_path(&main).to_owned();
        tables.push(NativeEntry { name, parent: None, group: main, table });
    }
    let mut next = 0;
    while next < tables.len() {
        let (name, path) = (tables[next].name.clone(), tables[next].group.clone());
        // those of the main table lie beside it; all others inside their parents
        let inside = |group: &Group, prefix: &str| -> Result<Vec<String>> {
            Ok(undescribed::tables_in(group)?.into_iter().map(|name| format!("{prefix}/{name}")).collect())
        };
        let mut notes = Notes::default();
        let mut paths = root.group(&path[1..]).map_or(Ok(Vec::new()), |group| inside(&group, &path))?;
        if next == 0 {
            paths.append(&mut inside(root, "")?);
            undescribed::note_strays(root, &mut notes)?;
        }
        for path in paths {
            if tables.iter().any(|table| table.group == path) {
                continue;
            }
            if leads_back(root, &path)? {
                notes.not_a_subtable(path, "it leads back to a group that it is in");
                continue;
            }
            crate::limits::depth(path.matches('/').count(), "groups")?;
            crate::limits::tables(tables.len())?;
            let own = last_part(&path);
            let name = if name == MAIN_TABLE { own.to_owned() } else { format!("{name}/{own}") };
            match NativeTable::open_by_hand(root, &path, known, source.clone()) {
                Err(error) if error.may_be_left_out() => notes.not_a_subtable(path, error),
                table => tables.push(NativeEntry {
                    name,
                    parent: Some(next),
                    group: path.clone(),
                    table: table.with_context(|| format!("group {path}")),
                }),
            }
        }
        if let Ok(table) = &mut tables[next].table {
            table.notes.append(notes);
        }
        next += 1;
    }
    Ok(())
}

/// Whether the group at `path` is one of those on the way to it, because links lead in a circle.
fn leads_back(root: &Group, path: &str) -> Result<bool> {
    let id = root.group(path.trim_start_matches('/'))?.id()?;
    let above = path.match_indices('/').skip(1).map(|(end, _)| &path[1..end]);
    let mut ids = above.map(|path| root.group(path)?.id());
    Ok(id == root.id()? || ids.any(|above| above.is_ok_and(|above| above == id)))
}

/// What edits of attributes have replaced in a table.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) info: TableInfo,
    /// The comment of each column.
    pub(crate) comments: Vec<BString>,
}

/// An open table of a native HDF5 file: info, keywords and comments are those that a user may have edited in attributes.
pub(crate) struct NativeTable {
    rows: u64,
    /// Number of rows that the file was written with; a user may have added or removed rows since.
    written_rows: u64,
    /// Name of the dimension scale of the table's rows.
    row: String,
    /// Whether the file is live: it may have further rows that are not yet committed.
    live: bool,
    /// The parts of the conversion's source, in any of its tables, that could not be read and are not in the file;
    /// empty except in the main table.
    damage: Vec<Damage>,
    keywords: Record,
    info: TableInfo,
    columns: Vec<ColumnInfo>,
    /// Number of columns that the group `_ctds` describes. They are the first in the list of columns; a user has added
    /// the columns after them.
    described: usize,
    forms: Vec<StoredForm>,
    /// The last path component of each subtable (`ANTENNA`), by the reference that keywords store (`././ANTENNA`).
    table_names: HashMap<BString, String>,
    /// The path of the group of each subtable that is in the file (`/ANTENNA`), by the reference that keywords store
    /// (`././ANTENNA`).
    groups: HashMap<BString, String>,
    layout: Layout,
    /// The exact name of the table if the name of its group differs from it; `None` if both agree, and for the main
    /// table.
    exact_name: Option<BString>,
    /// What the user is told about columns that were added or removed after the file was written, and about parts of
    /// the table that cannot be used.
    notes: Notes,
    /// What the edits of attributes have replaced; `None` without edits. An error is one of reading attributes.
    written: Result<Option<Written>>,
    group: Group,
    /// The group `/_ctds/TABLE` that describes the table exactly; `None` for a table that a user added to the file.
    exact: Option<Group>,
    source: Arc<dyn ReadAt>,
}

impl NativeTable {
    /// Opens a table that the group `_ctds` describes; `tables` are the paths of the groups of all such tables.
    fn open(
        root: &Group,
        described: &DescribedTable,
        tables: &HashSet<String>,
        source: Arc<dyn ReadAt>,
    ) -> Result<Self> {
        let (path, exact) = (&described.path, &described.exact);
        let group = root.group(&path[1..])?;
        let document = described.document()?;
        let rows = match (&document.committed, document.rows) {
            // before any other dataset is opened
            (Some(name), _) => group.dataset(name)?.read_counter()?,
            (None, Some(rows)) => rows,
            (None, None) => return Err(Error::format("rows is missing")),
        };
        let live = document.committed.is_some();
        let keywords = document.keywords.record().context("keywords")?;
        let mut table_names = HashMap::new();
        document.keywords.collect_table_names(&mut table_names);
        let mut found = described_columns(exact, &mut table_names)?;
        let mut notes = Notes::default();
        found.retain(|column| {
            let is_present = column.form.kind == FormKind::Missing || group.has(&column.form.link);
            if !is_present {
                notes.say(format!("column {} was removed", column.info.desc.name));
            }
            is_present
        });
        let bindings = found.iter().map(|column| column.manager).collect();
        let (mut columns, mut forms): (Vec<ColumnInfo>, Vec<StoredForm>) =
            found.into_iter().map(|column| (column.info, column.form)).unzip();
        find_flags(&group, &mut forms);
        let written_rows = rows;
        let mut rows = rows;
        if !live && let Some(found) = edited_rows(&group, &forms, rows) {
            notes.say(format!("the table has {found} rows, it was written with {rows}"));
            rows = found;
        }
        let described = columns.len();
        // nothing can be added to a live table
        let added = if live { Vec::new() } else { undescribed::columns(&group, &forms, tables, &mut notes)? };
        for (column, form, found) in added {
            if found == rows {
                notes.say(format!("column {} was added", column.desc.name));
                columns.push(column);
                forms.push(form);
            } else {
                notes.not_a_column(&group, &form.link, format!("it has {found} rows, the table has {rows}"));
            }
        }
        let layout = Layout { bindings, ..document.layout()? };
        let keyword = last_part(&document.name);
        let is_main = matches!(document.name.as_str(), "" | MAIN_TABLE);
        let exact_name = (!is_main && !path.ends_with(&format!("/{keyword}"))).then(|| keyword.into());
        let exact = Some(exact.clone());
        let mut table = NativeTable {
            rows,
            written_rows,
            row: if document.row.is_empty() { row_name(path) } else { document.row.clone() },
            live,
            keywords,
            info: document.info(),
            columns,
            described,
            forms,
            table_names,
            groups: HashMap::new(),
            layout,
            exact_name,
            notes,
            written: Ok(None),
            damage: document.damage,
            group,
            exact,
            source,
        };
        for index in 0..table.columns.len() {
            let form = &table.forms[index];
            // salvaged columns of any kind have undefined cells
            table.columns[index].may_be_undefined = form.flags.is_some();
        }
        table.groups = table.find_groups()?;
        table.written = table.apply_edits();
        Ok(table)
    }

    /// The path of the group of each subtable, by the reference that keywords store.
    fn find_groups(&self) -> Result<HashMap<BString, String>> {
        let mut found = HashMap::new();
        if names_table(&self.keywords) {
            add_groups(&self.keywords, &self.written_attributes(), &|name| self.group.attribute(name), &mut found)?;
        }
        for (info, form) in self.columns.iter().zip(&self.forms).take(self.described) {
            let keywords = &info.desc.keywords;
            if form.kind != FormKind::Missing && names_table(keywords) {
                let object = self.object(form)?;
                let attributes = self.written_column_attributes(info, form);
                add_groups(keywords, &attributes, &|name| object.attribute(name), &mut found)?;
            }
        }
        Ok(found)
    }

    /// The attributes that the group of the table was written with.
    fn written_attributes(&self) -> Attributes {
        let exact_name = self.exact_name.as_ref().map(|name| name.as_bstr());
        Attributes::of_table(exact_name, &self.info, &self.keywords, &|stored| self.path_of(stored))
    }

    /// The attributes that the dataset or group of a column was written with.
    fn written_column_attributes(&self, info: &ColumnInfo, form: &StoredForm) -> Attributes {
        let desc = &info.desc;
        let exact_name = (form.link != desc.name.to_str_lossy()).then(|| desc.name.as_bstr());
        Attributes::of_column(exact_name, desc.comment.as_bstr(), &desc.keywords, &|stored| self.path_of(stored))
    }

    /// The path of the group of the subtable that a keyword stores as `stored`; `stored` if the file lacks it.
    fn path_of(&self, stored: &BStr) -> String {
        self.groups.get(stored).cloned().unwrap_or_else(|| stored.to_string())
    }

    /// Opens the table that a user has made in the group at `path`, for example with h5py. The group `_ctds` has no
    /// description of it: columns, rows and keywords are taken from the datasets and attributes of the group.
    ///
    /// # Errors
    /// `Unsupported` if its datasets have different numbers of rows, as columns never have.
    fn open_by_hand(root: &Group, path: &str, tables: &HashSet<String>, source: Arc<dyn ReadAt>) -> Result<Self> {
        let group = root.group(&path[1..])?;
        let mut found = undescribed::table(root, &group)?;
        let mut columns = undescribed::columns(&group, &[], tables, &mut found.notes)?;
        let rows = match (group.has(ROW), columns.first()) {
            (true, _) => group.dataset(ROW)?.shape()?.last().copied().unwrap_or_default(),
            (false, first) => first.map_or(0, |(_, _, rows)| *rows),
        };
        if group.has(ROW) {
            columns.retain(|(_, form, found_rows)| {
                let is_column = *found_rows == rows;
                if !is_column {
                    let why = format!("it has {found_rows} rows, the table has {rows}");
                    found.notes.not_a_column(&group, &form.link, why);
                }
                is_column
            });
        }
        if columns.iter().any(|(_, _, found)| *found != rows) {
            let lengths = columns.iter().map(|(_, form, rows)| (form.link.clone(), *rows));
            return Err(Error::unsupported(unequal(lengths)));
        }
        let (columns, forms) = columns.into_iter().map(|(column, form, _)| (column, form)).unzip();
        Ok(NativeTable {
            rows,
            written_rows: rows,
            row: row_name(path),
            live: false,
            keywords: found.keywords,
            info: found.info,
            columns,
            described: 0,
            forms,
            table_names: found
                .groups
                .iter()
                .map(|(stored, path)| (stored.clone(), last_part(path).to_owned()))
                .collect(),
            groups: found.groups,
            layout: Layout::default(),
            exact_name: None,
            notes: found.notes,
            written: Ok(None),
            damage: Vec::new(),
            group,
            exact: None,
            source,
        })
    }

    /// Opens the dataset or group that carries the attributes of a column; `form` tells how and where the column is
    /// stored.
    fn object(&self, form: &StoredForm) -> Result<Object> {
        object(&self.group, form)
    }

    /// Makes a reader for a dataset of the table that holds `part` of the column number `index` (from 0). In a live file
    /// (an HDF5 file that is read while it is written) the dataset must have the table's rows as its slowest axis. Elements
    /// of a type that the part does not have are converted.
    fn part_reader(&self, index: usize, part: Part, dataset: Dataset) -> Result<Reader> {
        let wanted = part.element(self.columns[index].data_type());
        match dataset.data_type() {
            Ok(found) if found == wanted => {}
            _ => return Reader::converting(dataset, wanted, part),
        }
        // the number of committed rows does not tell which cells of a hypercube are complete: libhdf5 reads them
        if self.live && matches!(part, Part::Cube(_)) { Reader::new(dataset, None) } else { self.reader(dataset) }
    }

    /// Makes a reader for a dataset of the table. In a live file the dataset must have the table's rows as its slowest axis.
    fn reader(&self, dataset: Dataset) -> Result<Reader> {
        let source = self.source.clone();
        let chunks = if self.live {
            ChunkReader::of_rows(&dataset, source, self.rows)?
        } else {
            ChunkReader::new(&dataset, source)?
        };
        Reader::new(dataset, chunks)
    }

    /// The exact strings of the column `link` that its dataset cannot hold, by the element's number in the dataset (from 0);
    /// empty if it holds all.
    fn raw_strings(&self, link: &str) -> Result<HashMap<u64, BString>> {
        self.exact.as_ref().map_or(Ok(HashMap::new()), |exact| RawStrings::read(exact, link))
    }

    /// Path from the root of each object in the group of the table, or of a subtable that cannot be one, that is left out,
    /// and why.
    pub(crate) fn left_out(&self) -> &[(String, String)] {
        &self.notes.left_out
    }

    /// The parts of the conversion's source, in any of its tables, that could not be read and are not in the file;
    /// empty except in the main table of a salvaged conversion.
    pub(crate) fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Fails unless a dataset of a column has the expected number of rows, by its number `found`.
    /// It may be larger in a live file, where rows may not be committed yet.
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

    /// Lists the datasets of the column with the number `index` (from 0), each by its group, its name in that group,
    /// and its path from the table's group. If the column's group is in another file, the list holds only that group.
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
        let in_group = |path: String| match path.split_once('/') {
            Some((group, name)) => Ok((self.group.group(group)?, name.to_owned(), path)),
            None => Ok(whole(path)),
        };
        paths.into_iter().map(in_group).collect()
    }
}

impl NativeTable {
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Names and values of the root attributes of the native HDF5 file, without those whose type this program cannot
    /// read.
    pub(crate) fn root_attributes(&self) -> Result<Vec<(String, Attribute)>> {
        let root = self.group.root()?;
        let names = root.attributes()?.into_iter();
        Ok(names.filter_map(|name| root.attribute(&name).ok().flatten().map(|value| (name, value))).collect())
    }

    /// The number (from 0) that each row had in the source of the conversion, as this table's dimension scale of rows
    /// records it; `None` without such a scale, or if the scale of a file that is not live has another number of rows.
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

    /// The number (from 0) that the first row had in the source of the conversion, as this table's dimension scale of
    /// rows records it; `None` without such a scale, or if the scale or the table has no rows.
    pub(crate) fn first_row(&self) -> Result<Option<i64>> {
        if self.rows == 0 || !self.group.has(&self.row) {
            return Ok(None);
        }
        let scale = self.reader(self.group.dataset(&self.row)?)?.with_axes(1)?;
        Ok(if scale.rows() == 0 { None } else { scale.integers(0..1)?.first().copied() })
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

    /// The error to report when a column without cells in the file is read, with the reason; `None` if its cells are in the
    /// file.
    pub(crate) fn missing(&self, index: usize) -> Option<Error> {
        let form = &self.forms[index];
        (form.kind == FormKind::Missing).then(|| form.open(0, |_| Ok(())).err()).flatten()
    }

    pub(crate) fn cells(&self, index: usize) -> Result<Box<dyn ColumnCells>> {
        let form = &self.forms[index];
        let open = |path: &str| open_dataset(&self.group, path);
        let read = |part: Part, axes: usize, dataset: Dataset| self.part_reader(index, part, dataset)?.with_axes(axes);
        match form.open(form.cubes(&self.group)?, open)? {
            Members::Dense { data, flags } => self.dense(index, data, flags),
            Members::Cubes { cubes, row_cube, row_index } => {
                let row_cube = self.rows_of(form, read(Part::RowCube, 1, row_cube)?)?;
                let row_index = self.rows_of(form, read(Part::RowIndex, 1, row_index)?)?;
                let added = row_cube.rows().min(row_index.rows())..self.rows;
                let cube = |(number, cube)| self.part_reader(index, Part::Cube(number), cube);
                let cubes = cubes.into_iter().enumerate().map(cube).collect::<Result<_>>()?;
                Ok(Box::new(Cubes { cubes, row_cube, row_index, added }))
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

    /// Makes a reader of the cells of the column number `index` (from 0) that is one dataset, `data`: a dense column,
    /// whose cells have one shape, or records as JSON strings. `flags` is the dataset that tells which cells are
    /// defined, `None` if all are.
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

    /// Returns `reader` of a dataset of a column that is a group unchanged, or an error if it does not have the rows of the
    /// table. More are allowed in a live table, and rows that a user has added to the table may be missing.
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

    pub(crate) fn only_dataset(&self, index: usize) -> Option<String> {
        let StoredForm { kind, link, flags, .. } = &self.forms[index];
        let has_type = || self.group.dataset(link)?.data_type().map(|found| found == self.columns[index].data_type());
        let only = *kind == FormKind::Dense && flags.is_none() && has_type().unwrap_or_default();
        only.then(|| format!("{}/{link}", self.group.path()))
    }

    /// For the column number `index` (from 0): the path of its dataset from the root, and the byte range in the file of
    /// each chunk that has cells of `rows` (half-open, from 0). `None` unless the column is stored as dense (cells of
    /// one shape, in one dataset) and has chunks.
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

    /// The name of the dataset or group of the column number `index` (from 0), in the group of the table.
    pub(crate) fn link(&self, index: usize) -> &str {
        &self.forms[index].link
    }

    /// The datasets of the column number `index` (from 0), each as its role (cells, one hypercube, offsets, flags …)
    /// and its path from the root; empty if the cells are not in the file.
    pub(crate) fn dataset_paths(&self, index: usize) -> Result<Vec<(Part, String)>> {
        let form = &self.forms[index];
        if form.kind == FormKind::Missing {
            return Ok(Vec::new());
        }
        let path = |path: &str| Ok(format!("{}/{path}", self.group.path()));
        let members = form.open(form.cubes(&self.group)?, path)?;
        Ok(members.parts().into_iter().map(|(part, path)| (part, path.clone())).collect())
    }

    /// The hypercubes of the column number `index` (from 0), if the chunks of each are plain
    /// little-endian elements in one contiguous block of the file; else empty. A dense column
    /// counts as one hypercube.
    pub(crate) fn blocks(&self, index: usize) -> Result<Vec<StoredBlock>> {
        let mut blocks = Vec::new();
        if self.live {
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

    pub(crate) fn layout(&self) -> Layout {
        self.layout.clone()
    }

    pub(crate) fn group(&self, stored: &[u8]) -> Option<&str> {
        self.groups.get(stored.as_bstr()).map(String::as_str)
    }

    /// What the user is told: edits since the file was made, and what of it no table has. `coordinates` gives
    /// those of the axes of the table, with the role of each axis; the values of other dimension scales are not compared.
    ///
    /// # Errors
    /// Those of reading attributes, also when the table was opened.
    pub(crate) fn edits(&self, coordinates: &dyn Fn() -> Vec<(String, Values)>) -> Result<Vec<String>> {
        self.written()?;
        let mut notes = self.notes.texts.clone();
        if self.group.path() == table_path(MAIN_TABLE) {
            notes.append(&mut unread::in_root(&self.group.root()?)?);
        }
        notes.append(&mut unread::in_table(&self.group, &self.forms, &self.row, &coordinates())?);
        Ok(notes)
    }

    /// Info and comments that the file was made with, if attributes have been edited since.
    pub(crate) fn written(&self) -> Result<Option<&Written>> {
        self.written.as_ref().map(Option::as_ref).map_err(Error::clone)
    }

    /// Applies what a user has changed in attributes to info, keywords and comments of the table, and notes it.
    fn apply_edits(&mut self) -> Result<Option<Written>> {
        let expressions: Vec<&str> = self.forms.iter().filter_map(|form| form.expression.as_deref()).collect();
        let object = Object::Group(self.group.clone());
        let changes = attributes::diff(&object, &self.written_attributes(), &self.keywords, &OF_TABLE, &expressions)?;
        let mut of_columns = Vec::new();
        for (info, form) in self.columns.iter().zip(&self.forms).take(self.described) {
            let changes = match form.kind {
                FormKind::Missing => None,
                _ => {
                    let expected = self.written_column_attributes(info, form);
                    let object = self.object(form)?;
                    Some(attributes::diff(&object, &expected, &info.desc.keywords, &OF_COLUMN, &[])?)
                }
            };
            of_columns.push(changes);
        }
        if changes.notes.is_empty() && of_columns.iter().flatten().all(|changes| changes.notes.is_empty()) {
            return Ok(None);
        }
        let comments = self.columns.iter().map(|info| info.desc.comment.clone()).collect();
        let written = Written { info: self.info.clone(), comments };
        self.keywords = changes.keywords;
        self.notes.texts.extend(changes.notes);
        for (name, text) in changes.own {
            match name {
                TABLE_TYPE => self.info.table_type = text,
                TABLE_SUBTYPE => self.info.sub_type = text,
                _ => self.info.readme = text,
            }
        }
        for (info, changes) in self.columns.iter_mut().zip(of_columns) {
            let Some(changes) = changes else { continue };
            let desc = &mut info.desc;
            desc.keywords = changes.keywords;
            attributes::apply_own(&changes.own, &mut desc.comment, &mut desc.keywords);
            self.notes.texts.extend(changes.notes.into_iter().map(|note| format!("column {}: {note}", desc.name)));
        }
        Ok(Some(written))
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
                // it is described, although it is refused
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
}

/// A hypercube of a column whose chunks are one contiguous block of the native HDF5 file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredBlock {
    /// Path of the hypercube's dataset from the root.
    pub(crate) path: String,
    /// Size of all chunks of the hypercube in bytes; they are not compressed.
    pub(crate) bytes: u64,
    pub(crate) cube: LinkedCube,
}

/// How a dataset of a native HDF5 file is stored. Shapes are in casacore's order, first axis fastest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatasetInfo {
    /// Path of the dataset in the native HDF5 file, relative to the group of its table.
    pub name: String,
    /// Shape of the dataset, first axis fastest. Empty if the elements are in another file that is not read: all
    /// properties except the name, `elsewhere` and `index` (`none`) are then empty, false or 0.
    pub shape: Shape,
    /// Shape of the chunks in elements, first axis fastest; `None` if the dataset is not chunked.
    pub chunk: Option<Shape>,
    /// Kind of the index by which HDF5 finds the dataset's chunks in the file: `fixed_array`, `extensible_array`,
    /// `btree_v2`, `btree_v1`, `single`, `implicit`, `none` if it is not chunked, or `unknown_N` for the number N of
    /// another kind.
    pub index: String,
    /// Whether the dataset can grow along its rows, the slowest axis.
    pub appendable: bool,
    /// Names of the dataset's filters, with the levels of codecs, in the order in which a writer applies them; empty without
    /// filters.
    pub filters: Vec<String>,
    /// The plugins that HDF5 readers need for the dataset's filters; empty if they need none.
    pub plugins: Vec<Plugin>,
    /// Size in bytes of the dataset's elements as stored in the file, after filters, without the text of strings of variable
    /// length.
    pub stored_bytes: u64,
    /// Where the elements of the dataset are if it does not hold them itself; `None` for all datasets that this program writes.
    pub elsewhere: Option<Elsewhere>,
}

/// A reference from a native HDF5 file to another file, or between its own datasets: external storage, a virtual
/// dataset, an external or user-defined link. References to other files are followed only if
/// [`OpenOptions::follow_external`] is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// Kind of the reference out of a native HDF5 file: `external storage`, `virtual dataset`, `external link` or
    /// `user-defined link`.
    pub kind: &'static str,
    /// The files that the reference leads to, as the native HDF5 file names them: `raw.bin`, or with the path of an
    /// object in the file, `other.h5:/MAIN/DATA`. The file `.` is the native HDF5 file itself. For a user-defined link,
    /// the number of its class: `class 100`.
    pub targets: Vec<String>,
    /// The reference out of a native HDF5 file in words, for the user: its kind (external storage,
    /// virtual dataset, external or user-defined link) and at most three targets, such as `external
    /// link to other.h5:/MAIN/DATA`.
    pub text: String,
}

/// Adds the subtables to which `keywords` refer to `found`: the reference as a keyword stores it (`././ANTENNA`), and the path
/// of the subtable's group, which the attribute of the keyword shows (`Table: /ANTENNA`). `attributes` are those made from
/// the keywords, `read` reads one from the file.
fn add_groups(
    keywords: &Record,
    attributes: &Attributes,
    read: &dyn Fn(&str) -> Result<Option<Attribute>>,
    found: &mut HashMap<BString, String>,
) -> Result<()> {
    for (name, stored) in attributes.tables(keywords) {
        let text = read(name)?.as_ref().and_then(attributes::text);
        if let Some(path) = text.as_ref().and_then(|text| text.to_str().ok()?.strip_prefix("Table: "))
            && path.starts_with('/')
        {
            found.entry(stored.clone()).or_insert_with(|| path.to_owned());
        }
    }
    Ok(())
}

/// Whether a record, or one nested in it, refers to a table.
fn names_table(record: &Record) -> bool {
    record.fields.iter().any(|field| match &field.value {
        Value::Table(_) => true,
        Value::Record(nested) => names_table(nested),
        _ => false,
    })
}

/// Finds the datasets that tell which cells of dense columns are defined, where no document records them: those of files from
/// before the names were recorded, or that a user has added. They are called `LINK__defined`, and no column's.
fn find_flags(group: &Group, forms: &mut [StoredForm]) {
    let claimed: HashSet<&str> =
        forms.iter().flat_map(|form| std::iter::once(form.link.as_str()).chain(form.flags.as_deref())).collect();
    let find = |form: &StoredForm| {
        let usual =
            || Some(defined_flags(&form.link)).filter(|name| !claimed.contains(name.as_str()) && group.has(name));
        form.flags.clone().or_else(|| usual().filter(|_| form.kind == FormKind::Dense))
    };
    let found: Vec<Option<String>> = forms.iter().map(find).collect();
    for (form, flags) in forms.iter_mut().zip(found) {
        form.flags = flags;
    }
}

/// The number of rows of a table, other than the one that was `written`, if a user has added rows to all columns, or removed
/// rows from all; `None` if nothing was changed, or not in all columns alike. Columns that are groups need not have the added
/// rows. Columns that cannot be opened do not count.
fn edited_rows(group: &Group, forms: &[StoredForm], written: u64) -> Option<u64> {
    let counts = |is_group: bool| {
        let forms = forms.iter().filter(move |form| form.has_group() == is_group);
        forms.filter_map(|form| row_counts(group, form).ok()).flatten().map(|(_, rows)| rows)
    };
    // a file without such edits is known by one column
    let first = counts(false).chain(counts(true)).next().filter(|first| *first != written)?;
    let is_equal = counts(false).all(|rows| rows == first);
    let fits = |rows: u64| rows == first || rows == written && written < first;
    (is_equal && counts(true).all(fits)).then_some(first)
}

/// The number of rows of each dataset of a column that has an axis of the table's rows, by the dataset's path in the group
/// of the table; none for a column without cells in the file.
fn row_counts(group: &Group, form: &StoredForm) -> Result<Vec<(String, u64)>> {
    if form.kind == FormKind::Missing {
        return Ok(Vec::new());
    }
    let members = form.open(0, |path| Ok(path.to_owned()))?;
    let paths = members.parts().into_iter().filter(|(part, _)| !matches!(part, Part::Values | Part::Offset));
    let count = |(_, path): (Part, &String)| {
        let shape = open_dataset(group, path)?.shape()?;
        Ok((path.clone(), shape.last().copied().unwrap_or_default()))
    };
    paths.map(count).collect()
}

/// Largest number of names that a message lists for each number of rows.
const LISTED: usize = 20;

/// A sentence about columns with different numbers of rows: all numbers, and the columns that have each.
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

fn object(group: &Group, form: &StoredForm) -> Result<Object> {
    Ok(match form.kind {
        FormKind::Dense | FormKind::Record => Object::Dataset(group.header(&form.link)?),
        _ => Object::Group(group.group(&form.link)?),
    })
}
