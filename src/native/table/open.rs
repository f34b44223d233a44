//! Opens the tables of a native HDF5 file: those that the group `_ctds` describes, with the rows
//! and columns that a user has added or removed, and those that a user has made.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::super::attributes::{self, Attributes};
use super::super::document::{
    DescribedColumn, DescribedTable, Layout, TableDocument, check_format, described_columns, described_tables,
};
use super::super::form::{FormKind, StoredForm};
use super::super::names::{MAIN_TABLE, ROW, defined_flags, last_part, row_name, table_of_path, table_path};
use super::super::undescribed::{self, Notes};
use super::{NativeTable, row_counts, unequal};
use crate::container;
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{self, Attribute, File, Group};
use crate::io::{FileSource, ReadAt};
use crate::remote;
use crate::table::{ColumnInfo, OpenOptions};
use crate::value::{Record, Value};

/// Always true for a URL, whose content is checked when it is opened.
pub(crate) fn is_native(path: &Path) -> Result<bool> {
    if remote::is_remote(path) {
        return Ok(true);
    }
    let may_be = h5::is_hdf5(&FileSource::open(path)?)? && !container::is_multi_hdf5(path)?;
    // a file that another process has locked is not told apart here
    Ok(may_be && !container::is_hdf5_files(path).unwrap_or(false))
}

/// A table, opened or with the error of opening it, and its place in the tree of tables.
pub(crate) struct NativeEntry {
    /// `.` for the main table, else the keywords that lead to the table, `ANTENNA` or `A/B`.
    pub(crate) name: String,
    /// Index in the list of the file's tables; `None` for the main table.
    pub(crate) parent: Option<usize>,
    /// Whether a keyword names it, or is to name it in a table made from the file.
    pub(crate) is_named: bool,
    /// Path in the file.
    pub(crate) group: String,
    pub(crate) table: Result<NativeTable>,
}

/// Opens all tables of a native HDF5 file, the main table first. The entry of a damaged table holds
/// the error in place of the table.
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

/// Opens a table that the group `_ctds` describes and adds it to `tables`; `known` are the paths of
/// the groups of all such tables.
fn add_described(
    root: &Group,
    described: &DescribedTable,
    known: &HashSet<String>,
    source: &Arc<dyn ReadAt>,
    tables: &mut Vec<NativeEntry>,
) {
    let path = &described.path;
    // the group's name differs where the table's was taken; a damaged document shows when the table
    // is opened
    let (name, is_named) = described.name().unwrap_or_else(|| (table_of_path(path).to_owned(), true));
    let parent = match name.rsplit_once('/') {
        _ if name == MAIN_TABLE => None,
        Some((parent, _)) => tables.iter().position(|table| table.name == parent).or(Some(0)),
        None => Some(0),
    };
    let table = NativeTable::open(root, described, known, source.clone()).with_context(|| format!("group {path}"));
    tables.push(NativeEntry { name, parent, is_named, group: path.clone(), table });
}

/// Opens the tables that a user has added to a native HDF5 file and that its group `_ctds` does not
/// describe, and adds them to `tables`. A group that cannot be a table is noted in the table that
/// it would be a subtable of.
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
        tables.push(NativeEntry { name, parent: None, is_named: true, group: main, table });
    }
    let mut next = 0;
    while next < tables.len() {
        let (name, path) = (tables[next].name.clone(), tables[next].group.clone());
        // groups of subtables of the main table lie beside it; those of other tables lie inside
        // their parents
        let columns = tables[next].table.iter().flat_map(|table| &table.forms);
        let columns: HashSet<String> = columns.map(|form| format!("{path}/{}", form.link)).collect();
        let inside = |group: &Group, prefix: &str| -> Result<Vec<String>> {
            let paths = undescribed::tables_in(group)?.into_iter().map(|name| format!("{prefix}/{name}"));
            Ok(paths.filter(|path| !columns.contains(path)).collect())
        };
        let mut notes = Notes::default();
        let mut paths = root.group(&path[1..]).map_or(Ok(Vec::new()), |group| inside(&group, &path))?;
        if next == 0 {
            paths.append(&mut inside(root, "")?);
            undescribed::note_strays(root, known, &mut notes)?;
        }
        for path in paths {
            if tables.iter().any(|table| table.group == path) {
                continue;
            }
            // opening the table gives the error of a damaged group
            if leads_back(root, &path).unwrap_or(false) {
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
                    is_named: true,
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

impl NativeTable {
    /// Opens a table that the group `_ctds` describes; `tables` are the paths of the groups of all
    /// such tables.
    fn open(
        root: &Group,
        described: &DescribedTable,
        tables: &HashSet<String>,
        source: Arc<dyn ReadAt>,
    ) -> Result<Self> {
        let path = &described.path;
        let group = root.group(&path[1..])?;
        let document = described.document()?;
        // before any other dataset is opened
        let rows = stated_rows(&group, &document)?;
        let live = document.committed.is_some();
        let keywords = document.keywords.record().context("keywords")?;
        let mut table_names = HashMap::new();
        document.keywords.collect_table_names(&mut table_names);
        let mut notes = Notes::default();
        let found = existing_columns(&group, described.exact()?, &mut table_names, &mut notes)?;
        let bindings = found.iter().map(|column| column.manager).collect();
        let (columns, mut forms): (Vec<ColumnInfo>, Vec<StoredForm>) =
            found.into_iter().map(|column| (column.info, column.form)).unzip();
        find_flags(&group, &mut forms);
        let mut table = NativeTable {
            rows,
            written_rows: rows,
            row: if document.row.is_empty() { row_name(path) } else { document.row.clone() },
            live,
            keywords,
            info: document.info(),
            described: columns.len(),
            columns,
            forms,
            table_names,
            groups: HashMap::new(),
            layout: Layout::default(),
            exact_name: exact_name(path, &document),
            notes,
            written: Ok(None),
            damage: Vec::new(),
            group,
            exact: Some(described.exact()?.clone()),
            source,
        };
        // nothing can be added to a live table
        if !live {
            table.take_edited_rows();
            table.add_columns(tables)?;
        }
        table.layout = Layout { bindings, ..document.layout()? };
        table.damage = document.damage;
        // salvaged columns of any kind have undefined cells
        for (column, form) in table.columns.iter_mut().zip(&table.forms) {
            column.may_be_undefined = form.flags.is_some();
        }
        table.groups = table.find_groups()?;
        table.written = table.apply_edits();
        Ok(table)
    }

    /// Takes over the number of rows that all columns have, if a user has added or removed rows.
    fn take_edited_rows(&mut self) {
        let written = self.written_rows;
        if let Some(found) = edited_rows(&self.group, &self.forms, written) {
            self.notes.say(format!("the table has {found} rows, it was written with {written}"));
            self.rows = found;
        }
    }

    /// Adds the columns that a user has made in the group of the table.
    fn add_columns(&mut self, tables: &HashSet<String>) -> Result<()> {
        let added = undescribed::columns(&self.group, &self.forms, tables, &mut self.notes)?;
        for (column, form, found) in added {
            if found == self.rows {
                self.notes.say(format!("column {} was added", column.desc.name));
                self.columns.push(column);
                self.forms.push(form);
            } else {
                let why = format!("it has {found} rows, the table has {}", self.rows);
                self.notes.not_a_column(&self.group, &form.link, why);
            }
        }
        Ok(())
    }

    /// Opens the table that a user has made in the group at `path`, for example with h5py. The
    /// group `_ctds` has no description of it: columns, rows and keywords are taken from the
    /// datasets and attributes of the group.
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
}

/// The number of rows that the document of a table states or, of a live table, that its counter
/// has.
fn stated_rows(group: &Group, document: &TableDocument) -> Result<u64> {
    match (&document.committed, document.rows) {
        (Some(name), _) => group.dataset(name)?.read_counter(),
        (None, Some(rows)) => Ok(rows),
        (None, None) => Err(Error::format("rows is missing")),
    }
}

/// The columns that the group `exact` describes and that a user has not removed from `group`.
fn existing_columns(
    group: &Group,
    exact: &Group,
    table_names: &mut HashMap<BString, String>,
    notes: &mut Notes,
) -> Result<Vec<DescribedColumn>> {
    let mut found = described_columns(exact, table_names)?;
    found.retain(|column| {
        let is_present = column.form.kind == FormKind::Missing || group.has(&column.form.link);
        if !is_present {
            notes.say(format!("column {} was removed", column.info.desc.name));
        }
        is_present
    });
    Ok(found)
}

/// The exact name of a table, if that of its group at `path` differs.
fn exact_name(path: &str, document: &TableDocument) -> Option<BString> {
    let keyword = last_part(&document.name);
    let is_main = matches!(document.name.as_str(), "" | MAIN_TABLE);
    (!is_main && !path.ends_with(&format!("/{keyword}"))).then(|| keyword.into())
}

/// Adds the subtables to which `keywords` refer to `found`: the reference as a keyword stores it,
/// and the path of the subtable's group, which the attribute of the keyword shows
/// (`Table: /ANTENNA`). `attributes` are those made from the keywords, `read` reads one from the
/// file.
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

/// Finds the datasets that tell which cells of dense columns are defined, where no document records
/// them: those of older files, or that a user has added. They are called `LINK__defined`, and no
/// column's.
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

/// The number of rows of a table, if a user has added rows to all columns, or removed rows from
/// all; `None` if nothing was changed, or not in all columns alike. Columns that are groups need
/// not have the added rows. Columns that cannot be opened do not count.
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
