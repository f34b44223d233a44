//! Tables in native HDF5 files, read back. docs/layout.md.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bstr::{BString, ByteSlice};
use serde_json::Value as Json;

use super::content::{Content, Layout, Source, SourceTable};
use super::json;
use crate::error::{Error, ErrorKind, Place, Result};
use crate::grid::{ChunkCache, ChunkRead, read_region};
use crate::h5::{Attribute, ChunkReader, Dataset, File, Group, LinkKind};
use crate::io::{ByteOrder, FileSource, ReadAt};
use crate::schema::{ColumnDesc, ColumnKind, TableDesc, TableInfo};
use crate::stman::RowRun;
use crate::table::{Cells, ColumnInfo, ManagerSpec, Tiling};
use crate::value::{DataType, Record, Region, Shape, Value, Values};

/// Decoded chunks kept for a dataset.
const CACHE_BYTES: usize = 4 << 20;

/// The bytes that begin an HDF5 file.
const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// Whether the file at `path` is HDF5; a user block may precede the signature.
pub(super) fn is_hdf5(path: &Path) -> Result<bool> {
    let file = FileSource::open(path)?;
    let len = file.len()?;
    let starts = std::iter::successors(Some(0u64), |&start| Some(if start == 0 { 512 } else { start * 2 }));
    for start in starts.take_while(|start| start + 8 <= len) {
        let mut bytes = [0; 8];
        file.read_at(start, &mut bytes)?;
        if bytes == *SIGNATURE {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Opens a native file: its tables in the order in which they were written.
pub(super) fn open(path: &Path) -> Result<Source> {
    let file = open_file(path)?;
    let open = || -> Result<Source> {
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
        if !root.has("_ctds") {
            return Err(Error::unsupported("a native file without the group _ctds, which is not supported yet"));
        }
        let source: Arc<dyn ReadAt> = Arc::new(FileSource::open(path)?);
        let mut tables = Vec::new();
        find_tables(&root, &root.group("_ctds")?, "", &source, &mut tables, 0)?;
        if tables.first().is_none_or(|table| table.name != ".") {
            return Err(Error::format("there is no table /MAIN"));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Source { name, tables })
    };
    open().at_with(|| path.display().to_string())
}

/// Opens a file, also one that a writer appends to, of which only what is committed is read.
fn open_file(path: &Path) -> Result<File> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::Locked => File::open_live(path).map_err(|_| error),
        opened => opened,
    }
}

fn string(attribute: &Attribute) -> Option<String> {
    match attribute.values() {
        Values::String(strings) => strings.first().map(|string| string.to_str_lossy().into_owned()),
        _ => None,
    }
}

fn find_tables(
    root: &Group,
    exact: &Group,
    path: &str,
    source: &Arc<dyn ReadAt>,
    tables: &mut Vec<SourceTable>,
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
        let content = NativeTable::open(root, &path, &group, &document, source.clone());
        tables.push(SourceTable {
            name,
            parent,
            path: None,
            group: Some(path.clone()),
            content: content.map(|content| Box::new(content) as Box<dyn Content>).at_with(|| format!("group {path}")),
        });
        find_tables(root, &group, &path, source, tables, depth + 1)?;
    }
    Ok(())
}

/// A table in a native file.
struct NativeTable {
    rows: u64,
    /// More rows may be there, which are not yet committed.
    live: bool,
    keywords: Record,
    info: TableInfo,
    columns: Vec<ColumnInfo>,
    forms: Vec<Form>,
    /// The last component of the path of each subtable, by the name that keywords store.
    table_names: HashMap<BString, String>,
    /// The path of the group of each subtable that is in the file, likewise.
    groups: HashMap<BString, String>,
    layout: Layout,
    edits: Vec<String>,
    group: Group,
    exact: Group,
    source: Arc<dyn ReadAt>,
}

/// Where the cells of a column are.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    pub(crate) kind: FormKind,
    /// The name of its dataset or group.
    pub(crate) link: String,
    /// Why the column is missing.
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormKind {
    Dense,
    Cubes,
    Ragged,
    Record,
    /// Not converted.
    Missing,
}

impl NativeTable {
    fn open(root: &Group, path: &str, exact: &Group, document: &Attribute, source: Arc<dyn ReadAt>) -> Result<Self> {
        let group = root.group(&path[1..])?;
        let document = parse(document).at("_ctds attribute table")?;
        let committed = document.get("committed").and_then(Json::as_str);
        let rows = match committed {
            // before any other dataset is opened
            Some(name) => group.dataset(name)?.read_counter()?,
            None => document.get("rows").and_then(Json::as_u64).ok_or_else(|| missing("rows"))?,
        };
        let live = committed.is_some();
        let keywords = json::to_record(document.get("keywords").ok_or_else(|| missing("keywords"))?).at("keywords")?;
        let text = |name: &str| match document.pointer(&format!("/info/{name}")) {
            Some(text) => json::to_string(text),
            None => Ok(BString::default()),
        };
        let info = TableInfo { table_type: text("type")?, sub_type: text("subtype")?, readme: text("readme")? };
        let mut table_names = HashMap::new();
        collect_names(&document["keywords"], &mut table_names);
        let (columns, forms): (Vec<ColumnInfo>, Vec<Form>) = columns(exact, &mut table_names)?.into_iter().unzip();
        let layout = layout(&document)?;
        let groups = groups(&group, &keywords, &columns, &forms)?;
        let (exact, edits) = (exact.clone(), Vec::new());
        Ok(NativeTable {
            rows,
            live,
            keywords,
            info,
            columns,
            forms,
            table_names,
            groups,
            layout,
            edits,
            group,
            exact,
            source,
        })
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
        if !self.exact.has(&name) {
            return Ok(HashMap::new());
        }
        let group = self.exact.group(&name)?;
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

    /// Checks the rows of a dataset, which may be more than `expected` in a live table.
    fn check_rows(&self, link: &str, found: u64, expected: u64) -> Result<()> {
        if found == expected || self.live && found > expected {
            return Ok(());
        }
        Err(Error::format(format!("{link} has {found} rows where {expected} are expected")))
    }

    /// The datasets of a column and what they are for.
    fn datasets(&self, index: usize) -> Result<Vec<(String, Dataset)>> {
        let Form { kind, link, .. } = &self.forms[index];
        let names: Vec<String> = match kind {
            FormKind::Dense | FormKind::Record => return Ok(vec![(link.clone(), self.group.dataset(link)?)]),
            FormKind::Missing => return Ok(Vec::new()),
            FormKind::Ragged => ["values", "offset", "shape", "defined"].map(str::to_owned).into(),
            FormKind::Cubes => {
                let group = self.group.group(link)?;
                let cubes = (0..).map(|number| format!("cube{number}")).take_while(|name| group.has(name));
                cubes.chain(["row_cube".to_owned(), "row_index".to_owned()]).collect()
            }
        };
        let group = self.group.group(link)?;
        names.into_iter().map(|name| Ok((format!("{link}/{name}"), group.dataset(&name)?))).collect()
    }
}

impl Content for NativeTable {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn keywords(&self) -> &Record {
        &self.keywords
    }

    fn info(&self) -> &TableInfo {
        &self.info
    }

    fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    fn cells(&self, index: usize) -> Result<Box<dyn Cells + '_>> {
        let Form { kind, link, reason } = &self.forms[index];
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
                let flags = format!("{link}__defined");
                // a column may have this name too
                let is_flags = self.group.has(&flags) && !self.forms.iter().any(|form| form.link == flags);
                let defined = if is_flags { Some(self.reader(&self.group, &flags)?.with_axes(1)?) } else { None };
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
                };
                self.check_rows(link, ragged.defined.rows(), self.rows)?;
                self.check_rows(link, ragged.shape.rows(), self.rows)?;
                self.check_rows(link, ragged.offset.rows(), self.rows.saturating_add(1))?;
                Box::new(ragged)
            }
        };
        Ok(cells)
    }

    fn table_name(&self, stored: &[u8]) -> String {
        self.table_names.get(stored.as_bstr()).cloned().unwrap_or_else(|| stored.to_str_lossy().into_owned())
    }

    fn layout(&self) -> Layout {
        self.layout.clone()
    }

    fn group(&self, stored: &[u8]) -> Option<&str> {
        self.groups.get(stored.as_bstr()).map(String::as_str)
    }

    fn edits(&self) -> &[String] {
        &self.edits
    }

    fn storage(&self, index: usize) -> Result<Vec<super::content::DatasetInfo>> {
        let describe = |(name, dataset): (String, Dataset)| {
            Ok(super::content::DatasetInfo {
                name,
                shape: dataset.shape()?,
                chunk: dataset.chunk()?,
                index: dataset.index_kind()?.to_string(),
                appendable: dataset.is_appendable()?,
                filters: dataset.filters()?,
                stored_bytes: dataset.stored_bytes(),
            })
        };
        self.datasets(index)?.into_iter().map(describe).collect()
    }
}

pub(crate) fn parse(attribute: &Attribute) -> Result<Json> {
    let text = string(attribute).ok_or_else(|| Error::format("not a string"))?;
    serde_json::from_str(&text).map_err(|error| Error::format(format!("not JSON: {error}")).caused_by(error))
}

fn missing(name: &str) -> Error {
    Error::format(format!("{name} is missing"))
}

/// The names of subtables in the JSON of a record.
fn collect_names(record: &Json, names: &mut HashMap<BString, String>) {
    for field in record.as_array().into_iter().flatten() {
        let Some(value) = field.get(1) else { continue };
        match value.get("type").and_then(Json::as_str) {
            Some("table") => {
                let stored = value.get("value").and_then(|stored| json::to_string(stored).ok());
                let name = value.get("name").and_then(Json::as_str);
                if let (Some(stored), Some(name)) = (stored, name) {
                    names.insert(stored, name.to_owned());
                }
            }
            Some("record") => collect_names(&value["value"], names),
            _ => {}
        }
    }
}

/// What the documents in `exact` say of the columns of a table, in their order; collects the names of subtables.
pub(crate) fn columns(exact: &Group, table_names: &mut HashMap<BString, String>) -> Result<Vec<(ColumnInfo, Form)>> {
    let mut found = Vec::new();
    for name in exact.attributes()? {
        if !name.starts_with("column.") {
            continue;
        }
        let document = exact.attribute(&name)?.ok_or_else(|| missing(&name))?;
        let document = parse(&document).at_with(|| format!("_ctds attribute {name}"))?;
        let column = column(&document).at_with(|| format!("_ctds attribute {name}"))?;
        collect_names(&document["keywords"], table_names);
        found.push((document.get("position").and_then(Json::as_u64), column));
    }
    found.sort_by_key(|(position, _)| *position);
    Ok(found.into_iter().map(|(_, column)| column).collect())
}

/// What the document of a table says of the way it was stored; files of format version 1.0 need not say anything.
fn layout(document: &Json) -> Result<Layout> {
    let text = |json: Option<&Json>| json.map_or(Ok(BString::default()), json::to_string);
    let record = |json: Option<&Json>| json.map_or(Ok(Record::default()), json::to_record);
    let order = match document.get("byte_order").and_then(Json::as_str) {
        Some("big") => Some(ByteOrder::Big),
        Some("little") => Some(ByteOrder::Little),
        _ => None,
    };
    let manager = |json: &Json| {
        Ok(ManagerSpec {
            type_name: text(json.get("type"))?,
            name: text(json.get("name"))?,
            parameters: record(json.get("parameters"))?,
        })
    };
    let managers = document.get("managers").and_then(Json::as_array);
    let desc = TableDesc {
        name: text(document.pointer("/description/name"))?,
        version: text(document.pointer("/description/version"))?,
        comment: text(document.pointer("/description/comment"))?,
        private_keywords: record(document.get("private_keywords"))?,
        ..TableDesc::default()
    };
    Ok(Layout { order, desc, managers: managers.into_iter().flatten().map(manager).collect::<Result<_>>()? })
}

/// The groups that the readable forms of keywords name, by the names that the keywords store.
fn groups(
    group: &Group,
    keywords: &Record,
    columns: &[ColumnInfo],
    forms: &[Form],
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
        let keywords = &column.desc.keywords;
        match form.kind {
            FormKind::Dense | FormKind::Record => look(keywords, &|name| group.dataset(&form.link)?.attribute(name))?,
            _ => look(keywords, &|name| group.group(&form.link)?.attribute(name))?,
        }
    }
    Ok(found)
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

fn column(document: &Json) -> Result<(ColumnInfo, Form)> {
    let text = |name: &str| match document.get(name) {
        Some(text) => json::to_string(text),
        None => Ok(BString::default()),
    };
    let number = |name: &str| document.get(name).and_then(Json::as_i64).ok_or_else(|| missing(name));
    let data_type = DataType::from_name(&text("dtype")?.to_str_lossy()).ok_or_else(|| missing("a known dtype"))?;
    let kind = match text("kind")?.as_slice() {
        b"array" => ColumnKind::Array,
        b"scalar" => ColumnKind::Scalar,
        _ => return Err(missing("kind array or scalar")),
    };
    let form = match text("form")?.as_slice() {
        b"dense" => FormKind::Dense,
        b"cubes" => FormKind::Cubes,
        b"ragged" => FormKind::Ragged,
        b"record" => FormKind::Record,
        b"missing" => FormKind::Missing,
        _ => return Err(missing("a known form")),
    };
    let shape = match document.get("shape").and_then(Json::as_array) {
        Some(extents) => {
            let extents: Option<Vec<u64>> = extents.iter().map(Json::as_u64).collect();
            Some(Shape::from_reversed(&extents.ok_or_else(|| missing("shape"))?))
        }
        None if kind == ColumnKind::Scalar => Some(Shape::scalar()),
        None => None,
    };
    let manager = |index: usize| {
        document.pointer(&format!("/default_manager/{index}")).map_or(Ok(BString::default()), json::to_string)
    };
    let keywords = json::to_record(document.get("keywords").ok_or_else(|| missing("keywords"))?).at("keywords")?;
    let desc = ColumnDesc {
        name: text("name")?,
        comment: text("comment")?,
        manager_type: manager(0)?,
        manager_group: manager(1)?,
        data_type,
        kind,
        options: number("options")? as i32,
        ndim: number("ndim")? as i32,
        shape: shape.clone().filter(|_| document["shape_described"] == true).unwrap_or_default(),
        max_length: number("max_length")? as u32,
        keywords,
        default: None,
    };
    let info = ColumnInfo { desc, shape, manager: text("manager")?, manager_name: text("manager_name")? };
    let (link, reason) = (text("link")?.to_str_lossy().into_owned(), text("reason")?.to_str_lossy().into_owned());
    Ok((info, Form { kind: form, link, reason }))
}

/// A dataset, read by ourselves where that can be, else by libhdf5.
struct Reader {
    shape: Shape,
    data_type: DataType,
    chunks: Option<ChunkReader>,
    dataset: Dataset,
    cache: ChunkCache,
}

impl Reader {
    fn new(dataset: Dataset, chunks: Option<ChunkReader>) -> Result<Self> {
        let (shape, data_type) = (dataset.shape()?, dataset.data_type()?);
        Ok(Reader { shape, data_type, chunks, dataset, cache: ChunkCache::new(CACHE_BYTES) })
    }

    /// Checks the number of axes.
    fn with_axes(self, axes: usize) -> Result<Self> {
        if self.shape.len() == axes {
            return Ok(self);
        }
        let message = format!("shape {:?}, which should have {axes} axes", self.shape.reversed());
        Err(Error::format(message).at(format!("dataset {}", self.dataset.path())))
    }

    /// The extent of the slowest axis.
    fn rows(&self) -> u64 {
        self.shape.last().copied().unwrap_or_default()
    }

    /// Appends a region; `out` has the column's type, which must be that of the dataset.
    fn read(&self, region: &Region, out: &mut Values) -> Result<()> {
        if out.data_type() != self.data_type {
            let message = format!("elements of type {}, but the column's are {}", self.data_type, out.data_type());
            return Err(Error::format(message).at(format!("dataset {}", self.dataset.path())));
        }
        match &self.chunks {
            Some(chunks) => read_region(chunks, &self.cache, 0, region, out),
            None => self.dataset.read_region(region, out),
        }
    }

    /// Appends the elements `range` of a dataset with one axis.
    fn read_range(&self, range: Range<u64>, out: &mut Values) -> Result<()> {
        let region = Region { start: Shape::from([range.start]), shape: Shape::from([range.end - range.start]) };
        self.read(&region, out)
    }

    /// Elements of a dataset of integers with one axis.
    fn integers(&self, range: Range<u64>) -> Result<Vec<i64>> {
        let mut values = Values::new(self.data_type);
        self.read_range(range, &mut values)?;
        match values {
            Values::Int64(v) => Ok(v),
            Values::Int(v) => Ok(v.into_iter().map(i64::from).collect()),
            Values::Bool(v) => Ok(v.into_iter().map(i64::from).collect()),
            _ => Err(Error::format(format!("elements of type {} where integers are expected", self.data_type))
                .at(format!("dataset {}", self.dataset.path()))),
        }
    }
}

/// Puts the exact strings where the dataset, from element `first` on, has others.
fn restore(odd: &HashMap<u64, BString>, first: u64, base: usize, out: &mut Values) {
    let Values::String(strings) = out else { return };
    if odd.is_empty() {
        return;
    }
    for (number, string) in strings[base..].iter_mut().enumerate() {
        if let Some(exact) = odd.get(&(first + number as u64)) {
            *string = exact.clone();
        }
    }
}

struct Dense {
    data: Reader,
    cell: Shape,
    defined: Option<Reader>,
    odd: HashMap<u64, BString>,
}

impl Dense {
    fn read_block(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let axes = self.cell.len();
        let mut region = Region::whole(&self.cell.with_axis(rows.end - rows.start));
        region.start = region.start[..axes].iter().copied().chain([rows.start]).collect();
        let base = out.len();
        self.data.read(&region, out)?;
        restore(&self.odd, rows.start * self.cell.elements()?, base, out);
        Ok(())
    }
}

impl Cells for Dense {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        let defined = match &self.defined {
            Some(defined) => defined.integers(row..row + 1)? == [1],
            None => true,
        };
        Ok(defined.then(|| self.cell.clone()))
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let Some(region) = region else { return self.read_block(row..row + 1, out) };
        region.check(&self.cell)?;
        let region = Region { start: region.start.with_axis(row), shape: region.shape.with_axis(1) };
        self.data.read(&region, out)
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        if self.defined.is_none() {
            return self.read_block(rows, out);
        }
        for row in rows {
            if self.cell_shape(row)?.is_some() {
                self.read_cell(row, None, out)?;
            }
        }
        Ok(())
    }

    fn same_shape(&self, _rows: &Range<u64>) -> Option<Shape> {
        self.defined.is_none().then(|| self.cell.clone())
    }

    fn tiling(&self, max_cubes: usize) -> Option<Tiling<'_>> {
        let chunks = self.data.chunks.as_ref().filter(|_| self.defined.is_none() && max_cubes > 0)?;
        let runs = vec![RowRun { rows: 0..self.data.rows(), cube: 0, position: 0 }];
        Some(Tiling { cubes: vec![Box::new(chunks)], runs })
    }
}

/// Records are JSON strings.
struct Records(Dense);

impl Cells for Records {
    fn cell_shape(&self, _row: u64) -> Result<Option<Shape>> {
        Ok(Some(Shape::scalar()))
    }

    fn read_cell(&self, row: u64, _region: Option<&Region>, out: &mut Values) -> Result<()> {
        let mut strings = Values::new(DataType::String);
        self.0.read_cell(row, None, &mut strings)?;
        let (Values::String(strings), Values::Record(records)) = (&strings, out) else {
            unreachable!("read as strings, wanted as records")
        };
        for string in strings {
            let parsed = serde_json::from_slice(string)
                .map_err(|error| Error::format(format!("row {row} is not JSON: {error}")).caused_by(error))?;
            records.push(json::to_record(&parsed).at_with(|| format!("row {row}"))?);
        }
        Ok(())
    }

    fn same_shape(&self, _rows: &Range<u64>) -> Option<Shape> {
        Some(Shape::scalar())
    }
}

struct Cubes {
    cubes: Vec<Reader>,
    row_cube: Reader,
    row_index: Reader,
}

impl Cubes {
    /// The cube of a row and the position in it.
    fn locate(&self, row: u64) -> Result<Option<(&Reader, u64)>> {
        let cube = self.row_cube.integers(row..row + 1)?;
        let [cube] = cube.as_slice() else { return Ok(None) };
        if *cube < 0 {
            return Ok(None);
        }
        let reader = usize::try_from(*cube).ok().and_then(|cube| self.cubes.get(cube));
        let reader = reader.ok_or_else(|| Error::format(format!("row {row} in cube{cube}, which is not there")))?;
        let index = self.row_index.integers(row..row + 1)?;
        match u64::try_from(index.first().copied().unwrap_or(-1)) {
            Ok(index) if index < reader.rows() => Ok(Some((reader, index))),
            _ => Err(Error::format(format!("row {row} at position {index:?} of cube{cube}"))),
        }
    }
}

/// Rows of the row map that are read at a time.
const MAP_ROWS: u64 = 1 << 16;

impl Cubes {
    /// Consecutive rows at consecutive positions.
    fn runs(&self) -> Result<Vec<RowRun>> {
        let mut runs: Vec<RowRun> = Vec::new();
        let rows = self.row_cube.rows();
        for start in (0..rows).step_by(MAP_ROWS as usize) {
            let block = start..rows.min(start + MAP_ROWS);
            let (cubes, positions) = (self.row_cube.integers(block.clone())?, self.row_index.integers(block.clone())?);
            for (row, (cube, position)) in block.zip(cubes.into_iter().zip(positions)) {
                let (Ok(cube), Ok(position)) = (usize::try_from(cube), u64::try_from(position)) else { continue };
                match runs.last_mut() {
                    Some(run)
                        if run.cube == cube
                            && run.rows.end == row
                            && run.position + (row - run.rows.start) == position =>
                    {
                        run.rows.end += 1;
                    }
                    _ => runs.push(RowRun { rows: row..row + 1, cube, position }),
                }
            }
        }
        Ok(runs)
    }
}

impl Cells for Cubes {
    fn tiling(&self, max_cubes: usize) -> Option<Tiling<'_>> {
        if self.cubes.len() > max_cubes {
            return None;
        }
        let mut cubes: Vec<Box<dyn ChunkRead>> = Vec::new();
        for cube in &self.cubes {
            cubes.push(Box::new(cube.chunks.as_ref()?));
        }
        Some(Tiling { cubes, runs: self.runs().ok()? })
    }

    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        Ok(self.locate(row)?.and_then(|(reader, _)| reader.shape.split_last()).map(|(cell, _)| cell))
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let (reader, index) = self.locate(row)?.ok_or_else(|| Error::not_found(format!("row {row} is undefined")))?;
        let cell: Shape = reader.shape[..reader.shape.len() - 1].into();
        let region = region.cloned().unwrap_or_else(|| Region::whole(&cell));
        region.check(&cell)?;
        reader.read(&Region { start: region.start.with_axis(index), shape: region.shape.with_axis(1) }, out)
    }
}

struct Ragged {
    values: Reader,
    offset: Reader,
    shape: Reader,
    defined: Reader,
    odd: HashMap<u64, BString>,
}

impl Cells for Ragged {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        if self.defined.integers(row..row + 1)? != [1] {
            return Ok(None);
        }
        let mut extents = Values::new(DataType::Int);
        let width = self.shape.shape[0];
        self.shape.read(&Region { start: Shape::from([0, row]), shape: Shape::from([width, 1]) }, &mut extents)?;
        let Values::Int(extents) = extents else { unreachable!("read as Int") };
        let extents: Vec<u64> = extents.iter().map_while(|&extent| u64::try_from(extent).ok()).collect();
        Ok(Some(Shape::from_reversed(&extents)))
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let shape = self.cell_shape(row)?.ok_or_else(|| Error::not_found(format!("row {row} is undefined")))?;
        let ends = self.offset.integers(row..row + 2)?;
        let (&[start, end], elements) = (ends.as_slice(), shape.elements()?) else {
            return Err(Error::format("two offsets are expected"));
        };
        if start < 0 || end.checked_sub(start) != Some(elements as i64) || end as u64 > self.values.rows() {
            return Err(Error::format(format!("row {row}: elements {start} to {end} for a cell of shape {shape}")));
        }
        crate::table::read_part(region, &shape, out, |out| {
            let base = out.len();
            self.values.read_range(start as u64..end as u64, out)?;
            restore(&self.odd, start as u64, base, out);
            Ok(())
        })
    }
}

/// The error of a file that is neither a table nor HDF5.
pub(super) fn not_a_source(path: &Path) -> Error {
    Error::new(ErrorKind::Format, "neither a table directory nor an HDF5 file").at(path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn names_of_subtables_come_from_the_document() {
        let mut record = Record::default();
        record.set("SUB", Value::Table("inner/.".into()));
        let mut outer = Record::default();
        outer.set("nested", Value::Record(record));
        let document = json::from_record(&outer, &|_| "p.tab".into());
        let mut names = HashMap::new();
        collect_names(&document, &mut names);
        assert_eq!(names[&BString::from("inner/.")], "p.tab");
    }
}
