//! What tables will be written where, before anything is.

use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};

use super::manager_choice::Managers;
use crate::error::{Error, ErrorKind, Result, column_context as place};
use crate::io::ByteOrder;
use crate::native::{MAX_CUBES, stored_size};
use crate::schema::{ColumnKind, TableInfo, stored_name};
use crate::source::{Content, Source};
use crate::table::{NewTable, Part, TableWriter};
use crate::value::{Record, Value};

/// What to write, and how.
#[derive(Debug, Clone, Default)]
pub struct TableOptions {
    /// Of the data files; `None`: as it was, or else that of this machine.
    pub byte_order: Option<ByteOrder>,
    /// Threads that read and write; 0: one for each processor.
    pub threads: usize,
    /// Columns that engines computed are computed by them again, where that gives the same; otherwise they are stored.
    pub engines: bool,
}

/// A table that will be written.
pub(super) struct TableBlueprint {
    /// In [`Source::tables`].
    pub(super) source: usize,
    pub(super) name: String,
    /// Below the main table.
    pub(super) directory: PathBuf,
    pub(super) rows: u64,
    pub(super) info: TableInfo,
    pub(super) keywords: Record,
    pub(super) columns: Vec<ColumnBlueprint>,
    /// Columns that are not there.
    pub(super) missing: usize,
    pub(super) bytes: u64,
}

pub(super) struct ColumnBlueprint {
    /// In the source.
    pub(super) index: usize,
    pub(super) comment: BString,
    pub(super) keywords: Record,
    pub(super) bytes: u64,
    /// It is computed again by the engine that computed it.
    pub(super) engine: bool,
}

/// Where each table goes, and what is known before anything is written.
pub(super) fn plan(
    source: &Source,
    target: &Path,
    options: &TableOptions,
    warnings: &mut Vec<String>,
) -> Result<Vec<TableBlueprint>> {
    let target = std::path::absolute(target)?;
    let directories = directories(source, warnings)?;
    let mut plans = Vec::new();
    for (number, table) in source.tables.iter().enumerate() {
        let (Some(directory), Ok(content)) = (&directories[number], table.content()) else { continue };
        let rename = |record: &Record| {
            rename_tables(record, &|stored| {
                let found = directories[source.find(number, stored)?].as_ref()?;
                Some(stored_name(&target.join(found), &target.join(directory)))
            })
        };
        let edited = content.edited()?;
        let mut plan = TableBlueprint {
            source: number,
            name: table.name.clone(),
            directory: directory.clone(),
            rows: content.rows(),
            info: edited.info,
            keywords: rename(&edited.keywords),
            columns: Vec::new(),
            missing: 0,
            bytes: 0,
        };
        // a table that no keyword leads to, because a user has put it there
        for (child, directory) in directories.iter().enumerate() {
            let is_child = source.tables[child].parent == Some(number);
            if let Some(below) = directory.as_ref().filter(|_| is_child)
                && let stored = stored_name(&target.join(below), &target.join(&plan.directory))
                && !names_table(&plan.keywords, &stored)
                && !edited.columns.iter().any(|(_, keywords)| names_table(&rename(keywords), &stored))
            {
                let name = source.tables[child].name.rsplit('/').next().unwrap_or_default();
                plan.keywords.set(name, Value::Table(stored));
            }
        }
        warnings.extend(edited.notes.iter().map(|note| match table.name.as_str() {
            "." => note.clone(),
            name => format!("subtable {name}: {note}"),
        }));
        for (index, info) in content.columns().iter().enumerate() {
            let cells = match content.cells(index) {
                Ok(cells) => cells,
                Err(error) if error.may_be_left_out() => {
                    let name = info.desc.name.to_str_lossy();
                    warnings.push(format!("{} is not written: {error}", place(&table.name, &name)));
                    plan.missing += 1;
                    continue;
                }
                Err(error) => return Err(error.context(place(&table.name, &info.desc.name.to_str_lossy()))),
            };
            let elements =
                match (info.shape.clone().or_else(|| cells.same_shape(&(0..plan.rows))), cells.tiling(MAX_CUBES)) {
                    (Some(shape), _) => shape.elements()?.saturating_mul(plan.rows),
                    (None, Some(tiling)) => tiling.cubes.iter().try_fold(0u64, |sum, cube| {
                        Ok::<_, Error>(sum.saturating_add(cube.grid().shape.elements()?))
                    })?,
                    // as many as there are, which is not known yet
                    (None, None) => 0,
                };
            let bytes = elements.saturating_mul(stored_size(info.data_type()));
            plan.bytes = plan.bytes.saturating_add(bytes);
            let (comment, keywords) = &edited.columns[index];
            let has = |name: &BStr| content.columns().iter().any(|other| other.desc.name == name);
            let engine = options.engines && info.stored_column().is_some_and(has);
            let (comment, keywords) = (comment.clone(), rename(keywords));
            plan.columns.push(ColumnBlueprint { index, comment, keywords, bytes, engine });
        }
        plans.push(plan);
    }
    Ok(plans)
}

/// The directory of each table, relative to the main one; those inside it stay where they were.
fn directories(source: &Source, warnings: &mut Vec<String>) -> Result<Vec<Option<PathBuf>>> {
    let mut directories: Vec<Option<PathBuf>> = Vec::new();
    for (number, table) in source.tables.iter().enumerate() {
        match table.content() {
            Ok(_) => {}
            // a subtable that was not there is not there either
            Err(error) if error.kind() == ErrorKind::NotFound && number > 0 => {
                warnings.push(format!("subtable {} is not there", table.name));
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
        let keyword = table.name.rsplit('/').next().unwrap_or_default();
        let wanted = match (inside, stored) {
            (Some(rest), _) => rest.to_owned(),
            (None, Some(stored)) => source.tables[parent].content()?.table_name(stored),
            (None, None) => keyword.to_owned(),
        };
        let wanted = if wanted.split('/').all(is_directory_name) { wanted } else { format!("TABLE_{number}") };
        let mut directory = above.join(&wanted);
        for count in 2.. {
            if !directories.iter().flatten().any(|taken| *taken == directory) {
                break;
            }
            directory = above.join(format!("{wanted}__{count}"));
        }
        directories.push(Some(directory));
    }
    Ok(directories)
}

/// Whether a subtable may have this name beside the files of its parent.
fn is_directory_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.starts_with("table.") && !name.contains(['/', '\0']) && name.len() < 250
}

/// The tables that the keywords of a table and its columns name, as stored.
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

/// The record with other names of tables where `rename` gives one.
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
    /// Makes the table with all its rows, which hold nothing yet.
    pub(super) fn create(
        &self,
        source: &Source,
        options: &TableOptions,
        root: &Path,
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
            // what the engine computed is stored now
            let engine: Vec<BString> = info.engine_parameters().map(|field| field.name.clone()).collect();
            desc.comment = column.comment.clone();
            desc.keywords = column.keywords.clone();
            if !column.engine {
                desc.keywords.fields.retain(|field| !engine.contains(&field.name));
            }
            // the cells of an engine need not have the axes that its description says
            let was_engine = !engine.is_empty() && !column.engine && desc.kind == ColumnKind::Array;
            if let Some(shape) = info.shape.as_ref().filter(|_| was_engine) {
                desc.ndim = shape.len() as i32;
                if !desc.shape.is_empty() {
                    desc.shape = shape.clone();
                }
            }
            if let Some(replaced) = managers.add(info, content, column.index, column.engine)? {
                warnings.push(format!("{}: {replaced}", place(&self.name, &info.desc.name.to_str_lossy())));
            }
            let described = Some(&desc.shape).filter(|shape| !shape.is_empty()).cloned();
            let shape = if column.engine { described } else { info.shape.clone() };
            table = table.column_of_shape(desc, shape);
        }
        for (spec, columns) in managers.finish() {
            table = table.bind(spec, columns);
        }
        let path = root.join(&self.directory);
        std::fs::create_dir_all(&path)?;
        let mut writer = table.create_in(&path)?;
        writer.add_rows(self.rows)?;
        Ok(writer)
    }

    pub(super) fn part_bytes(&self, part: &Part<'_>) -> u64 {
        part.columns().iter().map(|&column| self.columns[column].bytes).fold(0, u64::saturating_add)
    }
}
