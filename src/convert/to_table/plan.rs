//! Plans the casacore tables that a source is converted to, with their directories and columns,
//! before anything is written.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};

use super::expression::unknown_column;
use super::manager_choice::Managers;
use super::options::{ToTableOptions, Views};
use super::views::{Parts, view_of_subtable};
use crate::error::{ErrorKind, Result, column_context as place};
use crate::native::{MAX_CUBES, last_part, stored_size, unique};
use crate::output::Damage;
use crate::schema::{ColumnKind, TableInfo, stored_name};
use crate::source::{Content, Source};
use crate::stman::FORWARD_TABLES;
use crate::table::{ColumnInfo, NewTable, Part, TableWriter, ViewDat};
use crate::value::{Record, Value};

pub(super) struct TableBlueprint {
    /// Index of [`Source::tables`].
    pub(super) source: usize,
    pub(super) name: String,
    /// Relative to the main table's.
    pub(super) directory: PathBuf,
    /// Absolute path of the finished table, to which names of tables outside are relative.
    pub(super) published: PathBuf,
    pub(super) rows: u64,
    pub(super) info: TableInfo,
    pub(super) keywords: Record,
    pub(super) columns: Vec<ColumnBlueprint>,
    /// `None` for a table with cells of its own.
    pub(super) view: Option<ViewDat>,
    /// Columns that are not written because their cells cannot be read.
    pub(super) missing: usize,
    pub(super) bytes: u64,
}

pub(super) struct ColumnBlueprint {
    /// Index in the source table.
    pub(super) index: usize,
    pub(super) comment: BString,
    pub(super) keywords: Record,
    pub(super) bytes: u64,
    pub(super) filling: Filling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filling {
    Copied,
    /// The restored engine computes the cells again.
    Engine,
    /// Casacore evaluates the TaQL expression, of which the source has no values.
    Expression,
}

impl Filling {
    /// Only keywords of the column are stored.
    pub(super) fn is_computed(self) -> bool {
        self != Filling::Copied
    }
}

pub(super) fn plan(
    source: &Source,
    target: &Path,
    options: &ToTableOptions,
    warnings: &mut Vec<String>,
) -> Result<Vec<TableBlueprint>> {
    let directories = directories(source, warnings)?;
    warnings.extend(source.damage().iter().map(Damage::warning));
    warnings.append(&mut source.left_outside());
    let parts = Parts::new(source, options, target)?;
    let planner = Planner { source, options, parts, target: std::path::absolute(target)?, directories: &directories };
    warnings.append(&mut source.edits(&|number| directories[number].is_some())?);
    let mut plans = Vec::new();
    for (number, table) in source.tables.iter().enumerate() {
        let (Some(directory), Ok(content)) = (&directories[number], table.content()) else { continue };
        plans.push(planner.table(number, directory, content, warnings)?);
    }
    Ok(plans)
}

struct Planner<'a> {
    source: &'a Source,
    options: &'a ToTableOptions,
    parts: Parts,
    /// Absolute.
    target: PathBuf,
    /// Relative to the main table's; `None` if this table or one above is missing or damaged.
    directories: &'a [Option<PathBuf>],
}

impl Planner<'_> {
    fn table(
        &self,
        number: usize,
        directory: &Path,
        content: &Content,
        warnings: &mut Vec<String>,
    ) -> Result<TableBlueprint> {
        let name = &self.source.tables[number].name;
        let new_names = |keywords| self.with_new_names(number, directory, keywords);
        let columns: Vec<(BString, Record)> =
            content.columns().iter().map(|info| (info.desc.comment.clone(), new_names(&info.desc.keywords))).collect();
        let mut keywords = new_names(content.keywords());
        self.add_unnamed_tables(number, directory, &mut keywords, &columns);
        let mut plan = TableBlueprint {
            source: number,
            name: name.clone(),
            directory: directory.to_owned(),
            published: self.parts.path(directory),
            rows: content.rows(),
            info: content.info().clone(),
            keywords,
            columns: Vec::new(),
            view: None,
            missing: 0,
            bytes: 0,
        };
        let expressions = expressions(content);
        for (index, (comment, mut keywords)) in columns.into_iter().enumerate() {
            let info = &content.columns()[index];
            let place = || place(name, &info.desc.name.to_str_lossy());
            match elements(content, index) {
                Ok(elements) => {
                    let bytes = elements.saturating_mul(stored_size(info.data_type()));
                    plan.bytes = plan.bytes.saturating_add(bytes);
                    let is_complete = expressions.iter().any(|(known, unknown)| *known == index && unknown.is_none());
                    let (filling, reason) = self.filling(content, info, is_complete, directory, &mut keywords);
                    let stored = |reason| format!("{}: the forwarded cells are stored: {reason}", place());
                    warnings.extend(reason.map(stored));
                    plan.columns.push(ColumnBlueprint { index, comment, keywords, bytes, filling });
                }
                Err(error) if self.source.may_leave_out(&error) => {
                    let why = match expressions.iter().find(|(known, _)| *known == index) {
                        Some((_, None)) => {
                            let filling = Filling::Expression;
                            plan.columns.push(ColumnBlueprint { index, comment, keywords, bytes: 0, filling });
                            continue;
                        }
                        Some((_, Some(unknown))) => format!("{error}; it names {unknown}, which is not a column here"),
                        None => error.to_string(),
                    };
                    warnings.push(format!("{} is not written: {why}", place()));
                    plan.missing += 1;
                }
                Err(error) => return Err(error.context(place())),
            }
        }
        let Planner { source, options, parts, directories, .. } = self;
        plan.view = view_of_subtable(source, number, options, parts, directories, directory, warnings)?;
        Ok(plan)
    }

    /// Also a sentence why a forwarded column is copied. `is_complete`: the table has all columns
    /// of the column's expression.
    fn filling(
        &self,
        content: &Content,
        info: &ColumnInfo,
        is_complete: bool,
        directory: &Path,
        keywords: &mut Record,
    ) -> (Filling, Option<String>) {
        let forwarded = self.forward(content, info, directory, keywords);
        let has_stored = info.stored_column().is_some_and(|name| has(content, name));
        let again = self.options.engines && (has_stored || is_complete || forwarded == Some(Ok(())));
        (if again { Filling::Engine } else { Filling::Copied }, forwarded.and_then(Result::err))
    }

    /// Changes the name of the table that has the cells of a forwarded column; fails with a
    /// sentence why it cannot be used. `None` for other columns, and where cells are copied in any
    /// case.
    fn forward(
        &self,
        content: &Content,
        info: &ColumnInfo,
        directory: &Path,
        keywords: &mut Record,
    ) -> Option<Result<(), String>> {
        let mut keys = FORWARD_TABLES.into_iter().filter_map(|key| Some((key, info.desc.keywords.string(key)?)));
        let (key, stored) = keys.next().filter(|_| self.options.engines)?;
        let found = match content.as_table() {
            // a copy of a table has its own cells unless the user asks otherwise
            Some(_) if self.options.views != Views::Always => return None,
            Some(table) => self.parts.kept(table.resolve(stored)),
            None => self.parts.find_stored(stored),
        };
        Some(found.map(|part| keywords.set(key, Value::string(self.parts.stored_name(&part, directory)))))
    }

    /// References to subtables become paths of the new tables.
    fn with_new_names(&self, table: usize, directory: &Path, keywords: &Record) -> Record {
        rename_tables(keywords, &|stored| {
            let found = self.directories[self.source.find(table, stored)?].as_ref()?;
            Some(stored_name(&self.target.join(found), &self.target.join(directory)))
        })
    }

    /// Subtables without a keyword were added to the HDF5 file by a user.
    fn add_unnamed_tables(&self, table: usize, directory: &Path, keywords: &mut Record, columns: &[(BString, Record)]) {
        for (child, below) in self.source.tables.iter().zip(self.directories) {
            let is_child = child.parent == Some(table) && child.is_named;
            let Some(below) = below.as_ref().filter(|_| is_child) else { continue };
            let stored = stored_name(&self.target.join(below), &self.target.join(directory));
            let is_named =
                names_table(keywords, &stored) || columns.iter().any(|(_, keywords)| names_table(keywords, &stored));
            if !is_named {
                let name = unique(last_part(&child.name), |name| keywords.get(name).is_some());
                keywords.set(name, Value::Table(stored));
            }
        }
    }
}

fn has(content: &Content, column: &BStr) -> bool {
    content.columns().iter().any(|info| info.desc.name == column)
}

/// 0 if the number is not known without reading cells.
fn elements(content: &Content, index: usize) -> Result<u64> {
    let (info, cells, rows) = (&content.columns()[index], content.cells(index)?, content.rows());
    if let Some(shape) = info.shape.clone().or_else(|| cells.same_shape(&(0..rows))) {
        return Ok(shape.elements()?.saturating_mul(rows));
    }
    let Some(tiling) = cells.tiling(MAX_CUBES) else { return Ok(0) };
    tiling.cubes.iter().try_fold(0u64, |sum, cube| Ok(sum.saturating_add(cube.grid().shape.elements()?)))
}

/// Columns with a TaQL expression, and its first unknown name, with which no table opens.
fn expressions(content: &Content) -> Vec<(usize, Option<String>)> {
    let columns = content.columns();
    let has_values: Vec<bool> = (0..columns.len()).map(|index| content.cells(index).is_ok()).collect();
    let mut written: HashSet<&[u8]> = (0..columns.len())
        .filter(|&index| columns[index].expression().is_some() || has_values[index])
        .map(|index| columns[index].desc.name.as_slice())
        .collect();
    loop {
        let check = |(index, info): (usize, &ColumnInfo)| {
            let expression = info.expression()?.to_str_lossy();
            let unknown = unknown_column(&expression, |name| written.contains(name.as_bytes()));
            Some((index, unknown.map(str::to_owned)))
        };
        let found: Vec<_> = columns.iter().enumerate().filter_map(check).collect();
        let count = written.len();
        for (index, _) in found.iter().filter(|(index, unknown)| unknown.is_some() && !has_values[*index]) {
            written.remove(columns[*index].desc.name.as_slice());
        }
        // an expression may name one that is left out
        if written.len() == count {
            return found;
        }
    }
}

/// Indexed as in [`Planner`]; subtables inside the main table's directory keep their paths.
fn directories(source: &Source, warnings: &mut Vec<String>) -> Result<Vec<Option<PathBuf>>> {
    let mut directories: Vec<Option<PathBuf>> = Vec::new();
    for (number, table) in source.tables.iter().enumerate() {
        match table.content() {
            Ok(_) => {}
            // a subtable that was missing in the source stays missing
            Err(_) if source.is_left_out(&table.name) => {
                directories.push(None);
                continue;
            }
            Err(error) if error.kind() == ErrorKind::NotFound && number > 0 => {
                warnings.push(format!("subtable {} is missing", table.name));
                directories.push(None);
                continue;
            }
            Err(error) => return Err(error),
        }
        let Some(parent) = table.parent else {
            directories.push(Some(PathBuf::new()));
            continue;
        };
        let Some(above) = directories[parent].clone() else {
            directories.push(None);
            continue;
        };
        let stored = stored_names(source.tables[parent].content()?);
        let stored = stored.iter().find(|stored| source.find(parent, stored) == Some(number));
        let inside = stored.and_then(|stored| stored.strip_prefix(b"././")).and_then(|rest| rest.to_str().ok());
        let inside = inside.filter(|rest| rest.split('/').all(is_directory_name));
        let keyword = last_part(&table.name);
        let wanted = match (inside, stored) {
            (Some(rest), _) => rest.to_owned(),
            (None, Some(stored)) => source.tables[parent].content()?.table_name(stored),
            (None, None) => keyword.to_owned(),
        };
        let wanted = if wanted.split('/').all(is_directory_name) { wanted } else { format!("TABLE_{number}") };
        let is_taken = |name: &str| directories.iter().flatten().any(|taken| *taken == above.join(name));
        let directory = above.join(unique(&wanted, is_taken));
        directories.push(Some(directory));
    }
    Ok(directories)
}

/// Whether a subtable may have this name beside the files of its parent.
fn is_directory_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.starts_with("table.") && !name.contains(['/', '\0']) && name.len() < 250
}

/// Tables to which keywords of a table and its columns refer, as stored: `././ANTENNA`.
fn stored_names(content: &Content) -> Vec<BString> {
    fn collect(record: &Record, found: &mut Vec<BString>) {
        for field in &record.fields {
            match &field.value {
                Value::Table(stored) => found.push(stored.clone()),
                Value::Record(nested) => collect(nested, found),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    collect(content.keywords(), &mut found);
    content.columns().iter().for_each(|info| collect(&info.desc.keywords, &mut found));
    found
}

fn names_table(record: &Record, stored: &BString) -> bool {
    record.fields.iter().any(|field| match &field.value {
        Value::Table(other) => other == stored,
        Value::Record(nested) => names_table(nested, stored),
        _ => false,
    })
}

/// `None` keeps the name.
fn rename_tables(record: &Record, rename: &dyn Fn(&[u8]) -> Option<BString>) -> Record {
    let mut record = record.clone();
    for field in &mut record.fields {
        match &mut field.value {
            Value::Table(stored) => *stored = rename(stored).unwrap_or_else(|| stored.clone()),
            Value::Record(nested) => *nested = rename_tables(nested, rename),
            _ => {}
        }
    }
    record
}

impl TableBlueprint {
    /// Cells are empty. `write_behind`: the system is asked early to write files to the disk.
    pub(super) fn create(
        &self,
        source: &Source,
        options: &ToTableOptions,
        root: &Path,
        write_behind: bool,
        warnings: &mut Vec<String>,
    ) -> Result<TableWriter> {
        let content = source.tables[self.source].content()?;
        let layout = content.layout();
        let mut table = NewTable::new().description(layout.desc.clone()).info(self.info.clone());
        if let Some(order) = options.byte_order.or(layout.order) {
            table = table.byte_order(order);
        }
        for field in &self.keywords.fields {
            table = table.keyword_field(field.clone());
        }
        let mut managers = Managers::new(&layout);
        for column in &self.columns {
            let info = &content.columns()[column.index];
            let mut desc = info.desc.clone();
            // values that an engine computed are stored now
            let engine: Vec<BString> = info.engine_parameters().map(|field| field.name.clone()).collect();
            desc.comment = column.comment.clone();
            desc.keywords = column.keywords.clone();
            if !column.filling.is_computed() {
                desc.keywords.fields.retain(|field| !engine.contains(&field.name));
            }
            // the cells of an engine need not have the axes that its description says
            let was_engine = !engine.is_empty() && !column.filling.is_computed() && desc.kind == ColumnKind::Array;
            if let Some(shape) = info.shape.as_ref().filter(|_| was_engine) {
                desc.ndim = shape.len() as i32;
                if !desc.shape.is_empty() {
                    desc.shape = shape.clone();
                }
            }
            if let Some(replaced) = managers.add(info, content, column.index, column.filling.is_computed())? {
                warnings.push(format!("{}: {replaced}", place(&self.name, &info.desc.name.to_str_lossy())));
            }
            let described = Some(&desc.shape).filter(|shape| !shape.is_empty()).cloned();
            // a fixed shape that only the manager recorded, unless it is that of a stored column
            let recorded = info.shape.clone().filter(|_| desc.is_fixed_shape() && info.stored_column().is_none());
            let shape = if column.filling == Filling::Engine { described.or(recorded) } else { info.shape.clone() };
            table = table.column_of_shape(desc, shape);
        }
        for (spec, columns) in managers.finish() {
            table = table.bind(spec, columns);
        }
        let path = root.join(&self.directory);
        std::fs::create_dir_all(&path)?;
        let mut writer = table.create_in(&path, write_behind)?;
        writer.add_rows(self.rows)?;
        Ok(writer)
    }

    /// Whether engines take cells from tables outside.
    pub(super) fn is_forwarded(&self) -> bool {
        let names_table =
            |column: &ColumnBlueprint| FORWARD_TABLES.iter().any(|key| column.keywords.get(key).is_some());
        self.columns.iter().any(|column| column.filling == Filling::Engine && names_table(column))
    }

    pub(super) fn part_bytes(&self, part: &Part<'_>) -> u64 {
        part.columns().iter().map(|&column| self.columns[column].bytes).fold(0, u64::saturating_add)
    }
}
