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
use super::super::names::{CTDS, MAIN_TABLE, ROW, defined_flags, last_part, row_name, table_of_path, table_path};
use super::super::notes::{DESCRIPTION, Notes};
use super::super::undescribed;
use super::{NativeTable, row_counts, unequal};
use crate::container::{self, Hdf5Kind};
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{self, Attribute, File, Group};
use crate::io::{FileSource, ReadAt};
use crate::output::Damage;
use crate::remote;
use crate::table::{ColumnInfo, OpenOptions};
use crate::value::{Record, Value};

/// Always true for a URL, whose content is checked when it is opened.
pub(crate) fn is_native(path: &Path) -> Result<bool> {
    if remote::is_remote(path) {
        return Ok(true);
    }
    Ok(container::hdf5_kind(path)? == Some(Hdf5Kind::Plain))
}

/// Also true, unlike [`is_native`], of an HDF5 file in which damage hides it.
pub(crate) fn may_be_native(path: &Path) -> Result<bool> {
    let is_hdf5 = || FileSource::open(path).and_then(|file| h5::is_hdf5(&file)).unwrap_or(false);
    is_native(path).or_else(|error| if error.is_damage() && is_hdf5() { Ok(true) } else { Err(error) })
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

/// The main table comes first; the entry of a damaged table holds the error.
pub(crate) fn open(path: &Path, options: OpenOptions) -> Result<Vec<NativeEntry>> {
    open_all(File::open_with_source(path)?, path, options, Notes::default).map(|(tables, _)| tables)
}

/// Opens a table with a damaged description as one made by hand, without damaged attributes.
pub(crate) fn open_around_damage(path: &Path, options: OpenOptions) -> Result<(Vec<NativeEntry>, Vec<Damage>)> {
    open_all(File::open_to_salvage(path)?, path, options, Notes::salvaging)
}

fn open_all(
    (file, source): (File, Arc<dyn ReadAt>),
    path: &Path,
    options: OpenOptions,
    notes: fn() -> Notes,
) -> Result<(Vec<NativeEntry>, Vec<Damage>)> {
    let file = if options.follow_external { file.follow()? } else { file };
    let place = Context::path(path);
    let open = || -> Result<_> {
        let root = file.root()?;
        let mut damage = Vec::new();
        if let Some(error) = root.damage() {
            damage.push(Damage::of_part(MAIN_TABLE, None, "root group", &error));
        } else {
            check_format(&root)?;
        }
        if let Some(error) = root.group(CTDS).ok().as_ref().and_then(Group::damage) {
            damage.push(Damage::of_part(MAIN_TABLE, None, DESCRIPTION, &error));
        }
        let described = described_tables(&root).or_else(|error| {
            let is_salvaged = error.is_damage() && notes().damage.is_some();
            damage.push(Damage::of_part(MAIN_TABLE, None, DESCRIPTION, &error));
            if is_salvaged { Ok(Vec::new()) } else { Err(error) }
        })?;
        let known = described.iter().map(|table| table.path.clone()).collect();
        let mut opening = Opening { root, known, source, tables: Vec::new(), notes };
        let is_main = |table: &DescribedTable| table.path == table_path(MAIN_TABLE);
        if described.is_empty() || opening.is_salvaged() && !described.iter().any(is_main) {
            opening.add_main();
        }
        described.iter().for_each(|table| opening.add_described(table));
        opening.find_more_tables()?;
        if opening.tables.first().is_none_or(|table| table.name != MAIN_TABLE) {
            let missing = Error::format(format!("table {} is missing", table_path(MAIN_TABLE)));
            return Err(opening.root.damage().unwrap_or(missing));
        }
        for entry in &mut opening.tables {
            let found = entry.table.iter_mut().filter_map(|table| table.notes.damage.take()).flatten();
            damage.extend(found.map(|found| match found.table.as_str() {
                "" => Damage { table: entry.name.clone(), ..found },
                _ => found,
            }));
        }
        let placed = |entry: NativeEntry| NativeEntry { table: entry.table.context(&place), ..entry };
        Ok((opening.tables.into_iter().map(placed).collect(), damage))
    };
    open().context(&place)
}

struct Opening {
    root: Group,
    /// Paths of the groups of all tables that the group `_ctds` describes.
    known: HashSet<String>,
    source: Arc<dyn ReadAt>,
    tables: Vec<NativeEntry>,
    /// Notes of a new table.
    notes: fn() -> Notes,
}

impl Opening {
    fn is_salvaged(&self) -> bool {
        (self.notes)().damage.is_some()
    }

    /// Opens the main table if the group `_ctds` does not describe it.
    fn add_main(&mut self) {
        let main = table_path(MAIN_TABLE);
        if self.root.has(&main[1..]) {
            // a file needs its main table
            let table = NativeTable::open_by_hand(self, &main, (self.notes)()).map_err(Error::not_left_out);
            let table = table.with_context(|| format!("group {main}"));
            let name = table_of_path(&main).to_owned();
            self.tables.push(NativeEntry { name, parent: None, is_named: true, group: main, table });
        }
    }

    fn add_described(&mut self, described: &DescribedTable) {
        let path = &described.path;
        // the group's name differs where the table's was taken; a damaged document shows when the
        // table is opened
        let (name, is_named) = described.name().unwrap_or_else(|| (table_of_path(path).to_owned(), true));
        let parent = match name.rsplit_once('/') {
            _ if name == MAIN_TABLE => None,
            Some((parent, _)) => self.tables.iter().position(|table| table.name == parent).or(Some(0)),
            None => Some(0),
        };
        let table = NativeTable::open(self, described).or_else(|error| self.without_description(path, error));
        let table = table.with_context(|| format!("group {path}"));
        self.tables.push(NativeEntry { name, parent, is_named, group: path.clone(), table });
    }

    /// Opens by hand a described table that fails with `error`, if damage is gone around.
    fn without_description(&self, path: &str, error: Error) -> Result<NativeTable> {
        let mut notes = (self.notes)();
        notes
            .around(Err(error.clone()), |error| Damage::of_part("", None, DESCRIPTION, error))
            .map(|_: Option<()>| ())?;
        NativeTable::open_by_hand(self, path, notes).map_err(|_| error)
    }

    /// Opens tables that a user has added, which `_ctds` does not describe. A group that cannot be
    /// a table is noted in the one that it would be a subtable of.
    fn find_more_tables(&mut self) -> Result<()> {
        let mut next = 0;
        while next < self.tables.len() {
            let mut notes = (self.notes)();
            let paths = self.inside(next, &mut notes)?;
            self.add_found(next, paths, &mut notes)?;
            if let Ok(table) = &mut self.tables[next].table {
                table.notes.append(notes);
            }
            next += 1;
        }
        Ok(())
    }

    /// Paths of the groups that may be subtables of a table.
    fn inside(&self, number: usize, notes: &mut Notes) -> Result<Vec<String>> {
        // groups of subtables of the main table lie beside it; those of other tables lie inside
        // their parents
        let path = &self.tables[number].group;
        let columns = self.tables[number].table.iter().flat_map(|table| &table.forms);
        let columns: HashSet<String> = columns.map(|form| format!("{path}/{}", form.link)).collect();
        let is_column = |group: &Group, name: &str| {
            let rest = || group.group(name).ok().as_ref().and_then(undescribed::rest_of_column);
            notes.damage.is_some() && rest().is_some()
        };
        let tables_in = |group: &Group, prefix: &str| -> Result<Vec<String>> {
            let mut names = undescribed::tables_in(group)?;
            names.retain(|name| prefix.is_empty() || !is_column(group, name));
            let paths = names.into_iter().map(|name| format!("{prefix}/{name}"));
            Ok(paths.filter(|path| !columns.contains(path)).collect())
        };
        let mut paths = self.root.group(&path[1..]).map_or(Ok(Vec::new()), |group| tables_in(&group, path))?;
        if number == 0 {
            paths.append(&mut tables_in(&self.root, "")?);
            undescribed::note_strays(&self.root, &self.known, notes)?;
        }
        Ok(paths)
    }

    fn add_found(&mut self, parent: usize, paths: Vec<String>, notes: &mut Notes) -> Result<()> {
        for path in paths {
            if self.tables.iter().any(|table| table.group == path) {
                continue;
            }
            // opening the table gives the error of a damaged group
            if leads_back(&self.root, &path).unwrap_or(false) {
                notes.not_a_subtable(path, "it leads back to a group that it is in");
                continue;
            }
            crate::limits::depth(path.matches('/').count(), "groups")?;
            crate::limits::tables(self.tables.len())?;
            let own = last_part(&path);
            let name = match self.tables[parent].name.as_str() {
                MAIN_TABLE => own.to_owned(),
                above => format!("{above}/{own}"),
            };
            match NativeTable::open_by_hand(self, &path, (self.notes)()) {
                Err(error) if error.may_be_left_out() => notes.not_a_subtable(path, error),
                table => self.tables.push(NativeEntry {
                    name,
                    parent: Some(parent),
                    is_named: true,
                    group: path.clone(),
                    table: table.with_context(|| format!("group {path}")),
                }),
            }
        }
        Ok(())
    }
}

/// Whether the group at `path` is one of those on the way to it, because links lead in a circle.
fn leads_back(root: &Group, path: &str) -> Result<bool> {
    let id = root.group(path.trim_start_matches('/'))?.id()?;
    let above = path.match_indices('/').skip(1).map(|(end, _)| &path[1..end]);
    let mut ids = above.map(|path| root.group(path)?.id());
    Ok(id == root.id()? || ids.any(|above| above.is_ok_and(|above| above == id)))
}

impl NativeTable {
    fn open(opening: &Opening, described: &DescribedTable) -> Result<Self> {
        let path = &described.path;
        let group = opening.root.group(&path[1..])?;
        let document = described.document()?;
        // before any other dataset is opened
        let rows = stated_rows(&group, &document)?;
        let live = document.committed.is_some();
        let keywords = document.keywords.record().context("keywords")?;
        let mut table_names = HashMap::new();
        document.keywords.collect_table_names(&mut table_names);
        let mut notes = (opening.notes)();
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
            view: document.view().filter(|_| !live),
            exact_name: exact_name(path, &document),
            notes,
            written: Ok(None),
            damage: Vec::new(),
            group,
            exact: Some(described.exact()?.clone()),
            source: opening.source.clone(),
        };
        // nothing can be added to a live table
        if !live {
            table.take_edited_rows();
            table.add_columns(&opening.known)?;
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

    fn add_columns(&mut self, tables: &HashSet<String>) -> Result<()> {
        let added = undescribed::columns(&self.group, &self.forms, tables, &mut self.notes)?;
        let is_damaged = self.notes.damage.as_ref().is_some_and(|damage| !damage.is_empty());
        for (column, form, found) in added {
            if found == self.rows {
                // a column whose description is damaged looks like one that was added
                if !is_damaged {
                    self.notes.say(format!("column {} was added", column.desc.name));
                }
                self.columns.push(column);
                self.forms.push(form);
            } else {
                let why = format!("it has {found} rows, the table has {}", self.rows);
                self.notes.not_a_column(&self.group, &form.link, why);
            }
        }
        Ok(())
    }

    /// Opens a table made by a user, e.g. with h5py: columns, rows and keywords come from datasets
    /// and attributes. `Unsupported` if the datasets have different numbers of rows.
    fn open_by_hand(opening: &Opening, path: &str, mut notes: Notes) -> Result<Self> {
        let group = opening.root.group(&path[1..])?;
        let found = undescribed::table(&opening.root, &group, &mut notes)?;
        let mut columns = undescribed::columns(&group, &[], &opening.known, &mut notes)?;
        let rows = match (group.has(ROW), columns.first()) {
            (true, _) => group.dataset(ROW)?.shape()?.last().copied().unwrap_or_default(),
            (false, first) => first.map_or(0, |(_, _, rows)| *rows),
        };
        if group.has(ROW) {
            columns.retain(|(_, form, found_rows)| {
                let is_column = *found_rows == rows;
                if !is_column {
                    let why = format!("it has {found_rows} rows, the table has {rows}");
                    notes.not_a_column(&group, &form.link, why);
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
            view: None,
            exact_name: None,
            notes,
            written: Ok(None),
            damage: Vec::new(),
            group,
            exact: None,
            source: opening.source.clone(),
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

/// Number of rows in the document or, of a live table, in its counter.
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
    let mut found = described_columns(exact, table_names, notes)?;
    let damage = group.damage();
    found.retain(|column| {
        let is_present = column.form.kind == FormKind::Missing || group.has(&column.form.link);
        match &damage {
            _ if is_present => {}
            None => notes.say(format!("column {} was removed", column.info.desc.name)),
            Some(error) => notes.lost(&column.info.desc.name.to_str_lossy(), error),
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

/// Adds subtables in `keywords` to `found`: the stored reference, and the path of the group, which
/// the keyword's attribute shows (`Table: /ANTENNA`). `attributes` are made from the keywords,
/// `read` reads one from the file.
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

/// Finds datasets of defined cells, `LINK__defined`, that no document records: in older files, or
/// added by a user. Each belongs to no other column.
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

/// Rows that a user has given all columns; `None` if unchanged, or not in all alike. Columns that
/// are groups need not have added rows; columns that cannot be opened do not count.
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
