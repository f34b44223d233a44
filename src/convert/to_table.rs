//! Tables from whatever holds their content: a native HDF5 file, or other tables.
//!
//! All tables are made first, then the managers run in parallel: each column of a manager is copied tile by tile where its
//! chunks are tiles, else in blocks of rows. What the managers were is used again where it is known and can be written;
//! [`choose`](super::choose) finds managers for the rest.

use std::ops::Range;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use rayon::prelude::*;

use super::choose::Managers;
use super::content::{Content, Source};
use super::digest::digest_column;
use super::form::{MAX_CUBES, stored_size};
use super::pieces::{Pieces, Shapes};
use super::plan::place;
use super::tile_copy::copy_tiles;
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::io::ByteOrder;
use crate::output::Output;
use crate::pool::thread_pool;
use crate::progress::Progress;
use crate::schema::{ColumnKind, TableInfo, stored_name};
use crate::table::{Cells, ColumnInfo, ColumnMut, NewTable, OpenOptions, Part, Table, TableWriter};
use crate::value::{Record, Shape, Value, Values};

/// Bytes that a piece of a column takes.
const PIECE_BYTES: u64 = 4 << 20;

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

/// What was written.
#[derive(Debug)]
pub struct TableSummary {
    /// Tables written.
    pub tables: usize,
    /// Columns written.
    pub columns: usize,
    /// Columns that the source lacks.
    pub missing: usize,
    /// Rows of the main table.
    pub rows: u64,
    /// Bytes of all elements; strings are counted at 16 each.
    pub bytes: u64,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Writes the tables of `source` to the directory `target`, which appears when it is whole.
///
/// # Errors
/// `Exists` without `overwrite` if there is something at `target`, `NoSpace`, and those of reading the source. Nothing is
/// left at `target` then.
pub fn to_table(
    source: &Source,
    options: &TableOptions,
    target: &Path,
    overwrite: bool,
    progress: &(dyn Progress + Sync),
) -> Result<TableSummary> {
    let mut warnings = Vec::new();
    let mut plans = plan(source, target, options, &mut warnings)?;
    let bytes = plans.iter().map(|plan| plan.bytes).fold(0, u64::saturating_add);
    progress.expect(bytes);
    let mut output = Output::create_directory(target, overwrite, bytes)?;
    let mut told = write(source, &plans, options, &output, progress).map_err(Error::blame_source)?;
    let inexact = store_inexact(source, &mut plans, output.partial())?;
    if !inexact.is_empty() {
        drop(output);
        output = Output::create_directory(target, overwrite, bytes)?;
        told = write(source, &plans, options, &output, progress).map_err(Error::blame_source)?;
    }
    output.commit()?;
    warnings.extend(inexact);
    warnings.append(&mut told);
    Ok(TableSummary {
        tables: plans.len(),
        columns: plans.iter().map(|plan| plan.columns.len()).sum(),
        missing: plans.iter().map(|plan| plan.missing).sum(),
        rows: plans.first().map_or(0, |plan| plan.rows),
        bytes,
        warnings,
    })
}

/// Writes all tables; returns what the user should know.
fn write(
    source: &Source,
    plans: &[TablePlan],
    options: &TableOptions,
    output: &Output,
    progress: &(dyn Progress + Sync),
) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    let partial = std::path::absolute(output.partial())?;
    let syncing = output.sync_behind();
    let mut writers = Vec::new();
    for plan in plans {
        writers.push(plan.create(source, options, &partial, &mut warnings).with_context(|| plan.name.clone())?);
    }
    let pool = thread_pool(options.threads)?;
    let mut jobs = Vec::new();
    for (plan, writer) in plans.iter().zip(&mut writers) {
        jobs.extend(writer.parts().into_iter().map(|part| (plan.part_bytes(&part), plan, part)));
    }
    // the largest begin first
    jobs.sort_by_key(|(bytes, ..)| std::cmp::Reverse(*bytes));
    pool.install(|| {
        jobs.into_par_iter().with_max_len(1).try_for_each(|(_, plan, part)| plan.fill(source, part, progress))
    })?;
    // those inside others first
    writers.into_iter().rev().try_for_each(TableWriter::finish)?;
    drop(syncing);
    Ok(warnings)
}

/// Compares what engines of the tables written below `root` compute with the source. Columns that differ are to be stored; says
/// which.
fn store_inexact(source: &Source, plans: &mut [TablePlan], root: &Path) -> Result<Vec<String>> {
    let mut inexact = Vec::new();
    for plan in plans.iter_mut().filter(|plan| plan.columns.iter().any(|column| column.engine)) {
        let content = source.tables[plan.source].content()?;
        let table =
            Table::open_with(root.join(&plan.directory), OpenOptions { lock_timeout: None, ..OpenOptions::default() })?;
        for column in plan.columns.iter_mut().filter(|column| column.engine) {
            let name = &content.columns()[column.index].desc.name;
            let again = table.columns().iter().position(|info| info.desc.name == *name);
            let sha = |content: &dyn Content, index| digest_column(content, index, true).sha256.ok();
            if sha(content, column.index) != again.and_then(|index| sha(&table, index)) {
                column.engine = false;
                let name = place(&plan.name, &name.to_str_lossy());
                inexact.push(format!("{name}: the engine does not give the same values; they are stored"));
            }
        }
    }
    Ok(inexact)
}

/// A table that will be written.
struct TablePlan {
    /// In [`Source::tables`].
    source: usize,
    name: String,
    /// Below the main table.
    directory: PathBuf,
    rows: u64,
    info: TableInfo,
    keywords: Record,
    columns: Vec<ColumnPlan>,
    /// Columns that are not there.
    missing: usize,
    bytes: u64,
}

struct ColumnPlan {
    /// In the source.
    index: usize,
    comment: BString,
    keywords: Record,
    bytes: u64,
    /// It is computed again by the engine that computed it.
    engine: bool,
}

/// Where each table goes, and what is known before anything is written.
fn plan(source: &Source, target: &Path, options: &TableOptions, warnings: &mut Vec<String>) -> Result<Vec<TablePlan>> {
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
        let mut plan = TablePlan {
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
            plan.columns.push(ColumnPlan { index, comment, keywords, bytes, engine });
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
fn stored_names(content: &dyn Content) -> Vec<BString> {
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

impl TablePlan {
    /// Makes the table with all its rows, which hold nothing yet.
    fn create(
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

    fn part_bytes(&self, part: &Part<'_>) -> u64 {
        part.columns().iter().map(|&column| self.columns[column].bytes).fold(0, u64::saturating_add)
    }

    /// Copies the columns of a manager.
    fn fill(&self, source: &Source, mut part: Part<'_>, progress: &(dyn Progress + Sync)) -> Result<()> {
        let content = source.tables[self.source].content()?;
        for (nth, number) in part.columns().into_iter().enumerate().filter(|(_, number)| !self.columns[*number].engine)
        {
            let index = self.columns[number].index;
            let name = content.columns()[index].desc.name.to_str_lossy();
            let advance = |bytes| progress.advance(bytes, &self.name, &name);
            let cells = content.cells(index).with_context(|| place(&self.name, &name))?;
            let info = &content.columns()[index];
            Copy { info, cells: &*cells, rows: 0..self.rows, advance: &advance }
                .run(part.column(nth))
                .with_context(|| place(&self.name, &name))?;
        }
        Ok(())
    }
}

/// A column on its way.
struct Copy<'a> {
    info: &'a ColumnInfo,
    cells: &'a dyn Cells,
    rows: Range<u64>,
    advance: &'a (dyn Fn(u64) + Sync),
}

impl Copy<'_> {
    fn run(&self, mut column: ColumnMut<'_>) -> Result<()> {
        if column.is_tiled()
            && let Some(tiling) = self.cells.tiling(MAX_CUBES)
        {
            for run in &tiling.runs {
                let cube = tiling.cubes.get(run.cube).ok_or_else(|| Error::format("a row in no hypercube"))?;
                let Some((cell, _)) = cube.grid().shape.split_last() else { continue };
                column.set_shapes(run.rows.clone(), &cell)?;
            }
            if copy_tiles(&tiling, &column.cubes()?, self.advance)? {
                return Ok(());
            }
        }
        let mut values = Values::new(self.info.data_type());
        for piece in Pieces::new(self.info, self.cells, self.rows.clone(), PIECE_BYTES) {
            let piece = piece?;
            values.clear();
            piece.read(self.cells, &mut values)?;
            (self.advance)(values.len() as u64 * stored_size(self.info.data_type()));
            match (&piece.part, &piece.shapes) {
                (Some(region), Shapes::Same(shape)) => {
                    if !piece.continues() {
                        column.set_shape(piece.rows.start, shape)?;
                    }
                    column.put_part_values(piece.rows.start, region, &values)?;
                }
                (_, Shapes::Same(shape)) => column.put_values(piece.rows.clone(), shape, &values)?,
                (_, Shapes::Each(shapes)) => put_each(&mut column, piece.rows.start, shapes, &values)?,
            }
        }
        Ok(())
    }
}

/// Puts the cells of consecutive rows, those of one shape together.
fn put_each(column: &mut ColumnMut<'_>, first: u64, shapes: &[Option<Shape>], values: &Values) -> Result<()> {
    let (mut row, mut start) = (first, 0);
    for run in shapes.chunk_by(|a, b| a == b) {
        let rows = row..row + run.len() as u64;
        row = rows.end;
        if let Some(Some(shape)) = run.first() {
            let end = start + shape.elements()? as usize * run.len();
            let mut cells = Values::new(values.data_type());
            cells.extend_from(values, start..end)?;
            column.put_values(rows, shape, &cells)?;
            start = end;
        }
    }
    Ok(())
}
