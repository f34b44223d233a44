//! Tables in native HDF5 files, read back. docs/layout.md.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bstr::{BStr, BString, ByteSlice};
use serde_json::Value as Json;

use super::attributes::{self, Attributes, Edited, Object};
use super::cells::{Cubes, Dense, Ragged, Records};
use super::document::{Layout, collect_names, columns, layout, missing, parse, string};
use super::form::{FormKind, StoredForm};
use super::reader::Reader;
use super::{digests, json, undescribed};
use crate::container;
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{self, Attribute, ChunkReader, File, Group, LinkKind};
use crate::io::{FileSource, ReadAt};
use crate::schema::TableInfo;
use crate::table::{Cells, ColumnInfo, OpenOptions};
use crate::value::{DataType, Record, Region, Shape, Value, Values};

/// Whether the file at `path` is HDF5 and not a container of casacore's.
pub(crate) fn is_native(path: &Path) -> Result<bool> {
    Ok(h5::is_hdf5(&FileSource::open(path)?)? && !container::is_multi_hdf5(path)?)
}

/// A table of a native file: where it is in the tree of tables, and its content.
pub(crate) struct NativeEntry {
    /// `.` for the main table, else the keywords that lead to it, `ANTENNA` or `A/B`.
    pub(crate) name: String,
    /// The table that names it, by its number; `None` for the main table.
    pub(crate) parent: Option<usize>,
    /// The path of its group.
    pub(crate) group: String,
    pub(crate) table: Result<NativeTable>,
}

/// Opens a native file: its tables in the order in which they were written.
pub(crate) fn open(path: &Path, options: OpenOptions) -> Result<Vec<NativeEntry>> {
    let file = File::open_shared(path)?;
    let file = if options.follow_external { file.follow()? } else { file };
    let place = Context::path(path);
    let open = || -> Result<Vec<NativeEntry>> {
        let root = file.root()?;
        let text = |name: &str| Ok::<_, Error>(root.attribute(name)?.as_ref().and_then(string));
        if text("format")?.as_deref() != Some("ctds-hdf5") {
            return Err(Error::unsupported(
                "an HDF5 file, but not a native ctds-hdf5 file: no attribute format = ctds-hdf5",
            ));
        }
        let version = text("format_version")?.unwrap_or_default();
        if version.split('.').next() != Some("1") {
            return Err(Error::unsupported(format!("format_version {version:?}, known is 1.0")));
        }
        let source: Arc<dyn ReadAt> = Arc::new(FileSource::open(path)?);
        let mut tables = Vec::new();
        if root.has("_ctds") {
            find_tables(&root, &root.group("_ctds")?, "", &source, &mut tables, 0)?;
        }
        find_more_tables(&root, &source, &mut tables)?;
        if tables.first().is_none_or(|table| table.name != ".") {
            return Err(Error::format("there is no table /MAIN"));
        }
        let placed = |entry: NativeEntry| NativeEntry { table: entry.table.context(&place), ..entry };
        Ok(tables.into_iter().map(placed).collect())
    };
    open().context(&place)
}

fn find_tables(
    root: &Group,
    exact: &Group,
    path: &str,
    source: &Arc<dyn ReadAt>,
    tables: &mut Vec<NativeEntry>,
    depth: usize,
) -> Result<()> {
    crate::limits::depth(depth, "groups")?;
    for (name, kind) in exact.links()? {
        let group = match kind {
            LinkKind::Group => exact.group(&name)?,
            _ => continue,
        };
        let path = format!("{path}/{name}");
        let Some(document) = group.attribute("table")? else { continue };
        // the group's name differs where the table's was taken; a damaged document shows when the table is opened
        let name = parse(&document).ok().and_then(|document| Some(document.get("name")?.as_str()?.to_owned()));
        let name = name.unwrap_or_else(|| if path == "/MAIN" { ".".to_owned() } else { path[1..].to_owned() });
        let parent = match name.rsplit_once('/') {
            _ if name == "." => None,
            Some((parent, _)) => tables.iter().position(|table| table.name == parent).or(Some(0)),
            None => Some(0),
        };
        let table = NativeTable::open(root, &path, &group, &document, source.clone());
        let table = table.with_context(|| format!("group {path}"));
        tables.push(NativeEntry { name, parent, group: path.clone(), table });
        find_tables(root, &group, &path, source, tables, depth + 1)?;
    }
    Ok(())
}

/// Adds the tables that a user has put into the file.
fn find_more_tables(root: &Group, source: &Arc<dyn ReadAt>, tables: &mut Vec<NativeEntry>) -> Result<()> {
    if tables.is_empty() && root.has("MAIN") {
        tables.push(by_hand(root, ".".into(), None, "/MAIN".into(), source));
    }
    let mut next = 0;
    while next < tables.len() {
        let (name, path) = (tables[next].name.clone(), tables[next].group.clone());
        // those of the main table lie beside it; all others inside their parents
        let inside = |group: &Group, prefix: &str| -> Result<Vec<String>> {
            Ok(undescribed::tables_in(group)?.into_iter().map(|name| format!("{prefix}/{name}")).collect())
        };
        let mut paths = root.group(&path[1..]).map_or(Ok(Vec::new()), |group| inside(&group, &path))?;
        if next == 0 {
            paths.append(&mut inside(root, "")?);
        }
        for path in paths {
            if !tables.iter().any(|table| table.group == path) {
                let depth = path.matches('/').count();
                crate::limits::depth(depth, "groups")?;
                // groups may lead to each other in a circle
                crate::limits::tables(tables.len())?;
                let own = path.rsplit('/').next().unwrap_or_default();
                let name = if name == "." { own.to_owned() } else { format!("{name}/{own}") };
                tables.push(by_hand(root, name, Some(next), path, source));
            }
        }
        next += 1;
    }
    Ok(())
}

/// A table that nothing exact is known of.
fn by_hand(root: &Group, name: String, parent: Option<usize>, path: String, source: &Arc<dyn ReadAt>) -> NativeEntry {
    let table = NativeTable::open_by_hand(root, &path, source.clone()).with_context(|| format!("group {path}"));
    NativeEntry { name, parent, group: path, table }
}

/// A table in a native file.
pub(crate) struct NativeTable {
    rows: u64,
    /// More rows may be there, which are not yet committed.
    live: bool,
    keywords: Record,
    info: TableInfo,
    columns: Vec<ColumnInfo>,
    /// The first columns are described under `_ctds`; a user has added the others.
    described: usize,
    forms: Vec<StoredForm>,
    /// The last component of the path of each subtable, by the name that keywords store.
    table_names: HashMap<BString, String>,
    /// The path of the group of each subtable that is in the file, likewise.
    groups: HashMap<BString, String>,
    layout: Layout,
    /// The exact name of the table, where its group has another.
    exact_name: Option<BString>,
    /// What has changed since the file was written, or cannot be used.
    notes: Vec<String>,
    group: Group,
    /// Under `_ctds`; `None` if nothing there describes the table.
    exact: Option<Group>,
    source: Arc<dyn ReadAt>,
}

impl NativeTable {
    fn open(root: &Group, path: &str, exact: &Group, document: &Attribute, source: Arc<dyn ReadAt>) -> Result<Self> {
        let group = root.group(&path[1..])?;
        let document = parse(document).context("_ctds attribute table")?;
        let committed = document.get("committed").and_then(Json::as_str);
        let rows = match committed {
            // before any other dataset is opened
            Some(name) => group.dataset(name)?.read_counter()?,
            None => document.get("rows").and_then(Json::as_u64).ok_or_else(|| missing("rows"))?,
        };
        let live = committed.is_some();
        let keywords =
            json::to_record(document.get("keywords").ok_or_else(|| missing("keywords"))?).context("keywords")?;
        let text = |name: &str| match document.pointer(&format!("/info/{name}")) {
            Some(text) => json::to_string(text),
            None => Ok(BString::default()),
        };
        let info = TableInfo { table_type: text("type")?, sub_type: text("subtype")?, readme: text("readme")? };
        let mut table_names = HashMap::new();
        collect_names(&document["keywords"], &mut table_names);
        let mut found = columns(exact, &mut table_names)?;
        let mut notes = Vec::new();
        found.retain(|(column, form, _)| {
            let is_there = form.kind == FormKind::Missing || group.has(&form.link);
            if !is_there {
                notes.push(format!("column {} was removed", column.desc.name));
            }
            is_there
        });
        let bindings = found.iter().map(|(.., number)| *number).collect();
        let (mut columns, mut forms): (Vec<ColumnInfo>, Vec<StoredForm>) =
            found.into_iter().map(|(column, form, _)| (column, form)).unzip();
        let described = columns.len();
        // nothing can be added to a live table
        let added = if live { Vec::new() } else { undescribed::columns(&group, &forms, &mut notes)? };
        for (column, form, _) in added {
            notes.push(format!("column {} was added", column.desc.name));
            columns.push(column);
            forms.push(form);
        }
        let layout = Layout { bindings, ..layout(&document)? };
        let groups = groups(&group, &keywords, &columns, &forms)?;
        let name = document.get("name").and_then(Json::as_str).unwrap_or(".");
        let keyword = name.rsplit('/').next().unwrap_or_default();
        let exact_name = (name != "." && !path.ends_with(&format!("/{keyword}"))).then(|| keyword.into());
        let exact = Some(exact.clone());
        Ok(NativeTable {
            rows,
            live,
            keywords,
            info,
            columns,
            described,
            forms,
            table_names,
            groups,
            layout,
            exact_name,
            notes,
            group,
            exact,
            source,
        })
    }

    /// What datasets and attributes say of a table.
    fn open_by_hand(root: &Group, path: &str, source: Arc<dyn ReadAt>) -> Result<Self> {
        let group = root.group(&path[1..])?;
        let mut found = undescribed::table(root, &group)?;
        let columns = undescribed::columns(&group, &[], &mut found.notes)?;
        let rows = match group.has("row") {
            true => group.dataset("row")?.shape()?.last().copied(),
            false => columns.first().map(|(_, _, rows)| *rows),
        };
        let (columns, forms) = columns.into_iter().map(|(column, form, _)| (column, form)).unzip();
        Ok(NativeTable {
            rows: rows.unwrap_or_default(),
            live: false,
            keywords: found.keywords,
            info: found.info,
            columns,
            described: 0,
            forms,
            table_names: found.groups.iter().map(|(stored, path)| (stored.clone(), last(path))).collect(),
            groups: found.groups,
            layout: Layout::default(),
            exact_name: None,
            notes: found.notes,
            group,
            exact: None,
            source,
        })
    }

    /// The group or dataset that has the attributes of a column.
    fn object(&self, form: &StoredForm) -> Result<Object> {
        object(&self.group, form)
    }

    /// A reader of a dataset along the rows of the table, or, unless it is live, of any dataset.
    fn reader(&self, group: &Group, name: &str) -> Result<Reader> {
        let (dataset, source) = (group.dataset(name)?, self.source.clone());
        let chunks = match self.live {
            true => ChunkReader::of_rows(&dataset, source, self.rows)?,
            false => ChunkReader::new(&dataset, source)?,
        };
        Reader::new(dataset, chunks)
    }

    /// A reader of a cube, of which only its row map says how much is whole while the table is live.
    fn cube_reader(&self, group: &Group, name: &str) -> Result<Reader> {
        if self.live { Reader::new(group.dataset(name)?, None) } else { self.reader(group, name) }
    }

    /// The strings of a column that its dataset cannot hold, by element.
    fn odd_strings(&self, link: &str) -> Result<HashMap<u64, BString>> {
        let name = format!("strings.{link}");
        let Some(exact) = self.exact.as_ref().filter(|exact| exact.has(&name)) else { return Ok(HashMap::new()) };
        let group = exact.group(&name)?;
        let all = |name: &str, data_type: DataType| -> Result<Values> {
            let dataset = group.dataset(name)?;
            let mut values = Values::new(data_type);
            dataset.read_region(&Region::whole(&dataset.shape()?), &mut values)?;
            Ok(values)
        };
        let (Values::Int64(index), Values::Int64(offset), Values::UChar(bytes)) =
            (all("index", DataType::Int64)?, all("offset", DataType::Int64)?, all("bytes", DataType::UChar)?)
        else {
            unreachable!("read as these types")
        };
        index
            .iter()
            .zip(offset.windows(2))
            .map(|(&index, ends)| {
                let bytes = bytes.get(ends[0] as usize..ends[1] as usize);
                let bytes = bytes.ok_or_else(|| Error::format(format!("offsets {ends:?} in {name}")))?;
                Ok((index as u64, bytes.into()))
            })
            .collect()
    }

    /// The dataset that says which cells of a dense column are defined, if there is one.
    fn flags(&self, link: &str) -> Option<String> {
        let flags = format!("{link}__defined");
        // a column may have this name too
        (self.group.has(&flags) && !self.forms.iter().any(|form| form.link == flags)).then_some(flags)
    }

    /// Checks the rows of a dataset, which may be more than `expected` in a live table.
    fn check_rows(&self, link: &str, found: u64, expected: u64) -> Result<()> {
        if found == expected || self.live && found > expected {
            return Ok(());
        }
        Err(Error::format(format!("{link} has {found} rows where {expected} are expected")))
    }

    /// The datasets of a column: the group of each, its name there, and its path from the group of the table. A group that
    /// is in another file stands for all of its datasets.
    fn datasets(&self, index: usize) -> Result<Vec<(Group, String, String)>> {
        let StoredForm { kind, link, .. } = &self.forms[index];
        let whole = || vec![(self.group.clone(), link.clone(), link.clone())];
        let names: Vec<String> = match kind {
            FormKind::Dense | FormKind::Record => return Ok(whole()),
            FormKind::Missing => return Ok(Vec::new()),
            _ if self.group.elsewhere(link)?.is_some() => return Ok(whole()),
            FormKind::Ragged => ["values", "offset", "shape", "defined"].map(str::to_owned).into(),
            FormKind::Cubes => {
                let group = self.group.group(link)?;
                let cubes = (0..).map(|number| format!("cube{number}")).take_while(|name| group.has(name));
                cubes.chain(["row_cube".to_owned(), "row_index".to_owned()]).collect()
            }
        };
        let group = self.group.group(link)?;
        Ok(names.into_iter().map(|name| (group.clone(), name.clone(), format!("{link}/{name}"))).collect())
    }
}

impl NativeTable {
    pub(crate) fn rows(&self) -> u64 {
        self.rows
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

    pub(crate) fn cells(&self, index: usize) -> Result<Box<dyn Cells + '_>> {
        let StoredForm { kind, link, reason } = &self.forms[index];
        let cells: Box<dyn Cells> = match kind {
            FormKind::Missing => return Err(Error::unsupported(reason.as_str())),
            FormKind::Dense | FormKind::Record => {
                let data = self.reader(&self.group, link)?;
                let (cell, rows) = data.shape.split_last().ok_or_else(|| Error::format("a dataset without axes"))?;
                self.check_rows(link, rows, self.rows)?;
                let expected = self.columns[index].shape.as_ref().filter(|_| *kind == FormKind::Dense);
                if expected.is_some_and(|expected| *expected != cell) || *kind == FormKind::Record && !cell.is_empty() {
                    return Err(Error::format(format!("{link} has cells of shape {cell}, which its column has not")));
                }
                let defined = match self.flags(link) {
                    Some(flags) => Some(self.reader(&self.group, &flags)?.with_axes(1)?),
                    None => None,
                };
                let odd = self.odd_strings(link)?;
                let dense = Dense { data, cell, defined, odd };
                match kind {
                    FormKind::Record => Box::new(Records(dense)),
                    _ => Box::new(dense),
                }
            }
            FormKind::Cubes => {
                let group = self.group.group(link)?;
                let mut cubes = Vec::new();
                while group.has(&format!("cube{}", cubes.len())) {
                    cubes.push(self.cube_reader(&group, &format!("cube{}", cubes.len()))?);
                }
                let row_cube = self.reader(&group, "row_cube")?.with_axes(1)?;
                let row_index = self.reader(&group, "row_index")?.with_axes(1)?;
                self.check_rows(link, row_cube.rows(), self.rows)?;
                self.check_rows(link, row_index.rows(), self.rows)?;
                Box::new(Cubes { cubes, row_cube, row_index })
            }
            FormKind::Ragged => {
                let group = self.group.group(link)?;
                let ragged = Ragged {
                    values: self.reader(&group, "values")?.with_axes(1)?,
                    offset: self.reader(&group, "offset")?.with_axes(1)?,
                    shape: self.reader(&group, "shape")?.with_axes(2)?,
                    defined: self.reader(&group, "defined")?.with_axes(1)?,
                    odd: self.odd_strings(link)?,
                    known: Mutex::default(),
                };
                self.check_rows(link, ragged.defined.rows(), self.rows)?;
                self.check_rows(link, ragged.shape.rows(), self.rows)?;
                self.check_rows(link, ragged.offset.rows(), self.rows.saturating_add(1))?;
                Box::new(ragged)
            }
        };
        Ok(cells)
    }

    pub(crate) fn table_name(&self, stored: &[u8]) -> String {
        self.table_names.get(stored.as_bstr()).cloned().unwrap_or_else(|| stored.to_str_lossy().into_owned())
    }

    pub(crate) fn stored_digests(&self) -> Result<Option<Json>> {
        let Some(exact) = &self.exact else { return Ok(None) };
        let stored = exact.attribute(digests::ATTRIBUTE)?;
        stored.map(|stored| parse(&stored).context("_ctds attribute digests")).transpose()
    }

    pub(crate) fn only_dataset(&self, index: usize) -> Option<String> {
        let StoredForm { kind, link, .. } = &self.forms[index];
        let only = *kind == FormKind::Dense && self.flags(link).is_none();
        only.then(|| format!("{}/{link}", self.group.path()))
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout.clone()
    }

    pub(crate) fn group(&self, stored: &[u8]) -> Option<&str> {
        self.groups.get(stored.as_bstr()).map(String::as_str)
    }

    pub(crate) fn edited(&self) -> Result<Edited> {
        let mut edited = Edited::nothing(&self.info, &self.keywords, &self.columns);
        edited.notes = self.notes.clone();
        if self.exact.is_none() {
            return Ok(edited);
        }
        let table_path = |stored: &BStr| self.groups.get(stored).cloned().unwrap_or_else(|| stored.to_string());
        let exact_name = self.exact_name.as_ref().map(|name| name.as_bstr());
        let expected = Attributes::of_table(exact_name, &self.info, &self.keywords, &table_path);
        let changes = attributes::changes(&Object::Group(self.group.clone()), &expected, &self.keywords)?;
        edited.keywords = changes.keywords;
        edited.notes.extend(changes.notes);
        for (name, text) in changes.own {
            match name {
                "table_type" => edited.info.table_type = text,
                "table_subtype" => edited.info.sub_type = text,
                _ => edited.info.readme = text,
            }
        }
        let described = self.columns.iter().zip(&self.forms).zip(&mut edited.columns).take(self.described);
        for ((info, form), (comment, keywords)) in described {
            let desc = &info.desc;
            if form.kind == FormKind::Missing {
                continue;
            }
            let exact_name = (form.link.as_bytes() != desc.name).then(|| desc.name.as_bstr());
            let expected = Attributes::of_column(exact_name, desc.comment.as_bstr(), &desc.keywords, &table_path);
            let changes = attributes::changes(&self.object(form)?, &expected, &desc.keywords)?;
            *keywords = changes.keywords;
            attributes::apply_own(&changes.own, comment, keywords);
            edited.notes.extend(changes.notes.into_iter().map(|note| format!("column {}: {note}", desc.name)));
        }
        Ok(edited)
    }

    pub(crate) fn storage(&self, index: usize) -> Result<Vec<DatasetInfo>> {
        let describe = |(group, link, name): (Group, String, String)| {
            let elsewhere = group.elsewhere(&link)?.map(|found| Elsewhere {
                kind: found.kind(),
                targets: found.targets(),
                text: found.to_string(),
            });
            let dataset = match group.dataset(&link) {
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
                stored_bytes: dataset.stored_bytes(),
                elsewhere,
            })
        };
        self.datasets(index)?.into_iter().map(describe).collect()
    }
}

/// How a dataset is stored. Shapes are in casacore's order, first axis fastest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatasetInfo {
    /// Relative to the group of its table.
    pub name: String,
    /// The extents. Empty, as all that follows, if the elements lie in other files and are not followed there.
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

/// The groups that the readable forms of keywords name, by the names that the keywords store.
fn groups(
    group: &Group,
    keywords: &Record,
    columns: &[ColumnInfo],
    forms: &[StoredForm],
) -> Result<HashMap<BString, String>> {
    let mut found = HashMap::new();
    let mut look = |record: &Record, read: &dyn Fn(&str) -> Result<Option<Attribute>>| -> Result<()> {
        for (name, stored) in table_fields("", record) {
            let text = read(&name)?.as_ref().and_then(string);
            if let Some(path) = text.as_deref().and_then(|text| text.strip_prefix("Table: "))
                && path.starts_with('/')
            {
                found.entry(stored.clone()).or_insert_with(|| path.to_owned());
            }
        }
        Ok(())
    };
    look(keywords, &|name| group.attribute(name))?;
    for (column, form) in columns.iter().zip(forms).filter(|(_, form)| form.kind != FormKind::Missing) {
        look(&column.desc.keywords, &|name| object(group, form)?.attribute(name))?;
    }
    Ok(found)
}

fn object(group: &Group, form: &StoredForm) -> Result<Object> {
    Ok(match form.kind {
        FormKind::Dense | FormKind::Record => Object::Dataset(group.header(&form.link)?),
        _ => Object::Group(group.group(&form.link)?),
    })
}

fn last(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// The subtables in a record: the names of their attributes, and as they are stored.
fn table_fields<'a>(prefix: &str, record: &'a Record) -> Vec<(String, &'a BString)> {
    let mut found = Vec::new();
    for field in &record.fields {
        let name = format!("{prefix}{}", field.name.to_str_lossy());
        match &field.value {
            Value::Table(stored) => found.push((name, stored)),
            Value::Record(nested) => found.append(&mut table_fields(&format!("{name}."), nested)),
            _ => {}
        }
    }
    found
}
