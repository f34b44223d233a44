//! One table that is followed: its new rows, and old ones that were written again.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bstr::ByteSlice;

use super::cells::{self, CellBlock};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::live::{Block, CellShapes, ColumnSpec, TableSpec, Writer};
use crate::schema::Sync;
use crate::table::{ColumnInfo, Look, Table, Watch};
use crate::value::{BString, DataType, Record};

/// Bytes of rows that are read at a time.
const BATCH_BYTES: u64 = 8 << 20;

/// Rows of the first of them.
const FIRST_BATCH: u64 = 1024;

/// Rows compared at a time in the search for old ones that were written again.
const COMPARED_ROWS: u64 = 4096;

/// How long old rows are compared before new ones are looked for again.
const COMPARE_FOR: Duration = Duration::from_millis(20);

/// A table that is followed.
#[derive(Debug)]
pub(super) struct Followed {
    /// As the live file names it.
    pub(super) name: String,
    path: PathBuf,
    watch: Watch,
    columns: Vec<FollowedColumn>,
    /// What a live file could not take, or is not to: a sentence, and how often.
    pub(super) notes: BTreeMap<String, u64>,
    /// The sync record of the newest look.
    seen: Option<Sync>,
    /// Rows read at a time.
    batch: u64,
    /// What a doubtful look has shown: if the next one shows the same, it is so.
    doubtful: Option<(Range<u64>, Vec<CellBlock>)>,
    /// Columns that may have been written again, and up to which row they were compared since.
    suspects: BTreeMap<usize, u64>,
    keywords: Record,
}

#[derive(Debug)]
struct FollowedColumn {
    name: BString,
    text: String,
    data_type: DataType,
    form: CellShapes,
    string_bytes: usize,
    keywords: Record,
}

/// A column of a live file, and the shapes that its cells can have.
pub(super) type LiveColumn = (ColumnInfo, CellShapes);

impl FollowedColumn {
    fn new((info, form): &LiveColumn) -> Self {
        FollowedColumn {
            name: info.desc.name.clone(),
            text: info.desc.name.to_str_lossy().into_owned(),
            data_type: info.data_type(),
            form: form.clone(),
            string_bytes: info.desc.max_length as usize,
            keywords: info.desc.keywords.clone(),
        }
    }
}

/// What a step has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    /// Rows that were appended.
    pub rows: u64,
    /// Blocks of old cells that were written again.
    pub rewritten: u64,
    /// Whether there is more to do at once.
    pub more: bool,
}

impl Followed {
    /// What a live file gets of `table`, and what it cannot get.
    pub(super) fn declare(name: &str, table: &Table, group: &str) -> Result<(TableSpec, Vec<String>)> {
        let mut spec = TableSpec::new(group);
        spec.info = table.info().clone();
        spec.keywords = table.keywords().clone();
        let mut missing = Vec::new();
        for (index, info) in table.columns().iter().enumerate() {
            let declare = || -> Result<Option<ColumnSpec>> {
                if info.data_type() == DataType::Record {
                    return Ok(None);
                }
                let column = table.cells(index)?;
                let Some(form) = cells::shapes(column, info.shape.as_ref(), table.rows())? else { return Ok(None) };
                let mut column_spec = ColumnSpec::like(info, form);
                if info.data_type() == DataType::String {
                    let bytes = cells::string_bytes(column, info.desc.max_length, table.rows())?;
                    column_spec = column_spec.string_length(bytes);
                }
                Ok(Some(column_spec))
            };
            let column = info.desc.name.as_bstr();
            match declare() {
                Ok(Some(column)) => spec.columns.push(column),
                Ok(None) if info.data_type() == DataType::Record => {
                    missing.push(format!("{name}: column {column} holds records, which a live file cannot"));
                }
                Ok(None) => {
                    missing.push(format!(
                        "{name}: column {column} has no cell yet that tells its shape, or too many shapes"
                    ));
                }
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    missing.push(format!("{name}: {column}: {error}"))
                }
                Err(error) => return Err(error),
            }
        }
        Ok((spec, missing))
    }

    /// Follows the table at `path` into the table `name` of a live file, which has these columns and so many rows.
    pub(super) fn new(path: &Path, name: &str, columns: &[LiveColumn], rows: u64) -> Result<Self> {
        let columns: Vec<_> = columns.iter().map(FollowedColumn::new).collect();
        // rows that are there already may have been written again since
        let suspects = match rows {
            0 => BTreeMap::new(),
            _ => (0..columns.len()).map(|column| (column, 0)).collect(),
        };
        Ok(Followed {
            name: name.to_owned(),
            path: path.to_owned(),
            watch: Watch::new(path)?,
            columns,
            notes: BTreeMap::new(),
            seen: None,
            batch: FIRST_BATCH,
            doubtful: None,
            suspects,
            keywords: Record::default(),
        })
    }

    /// Whether another program has the table open.
    pub(super) fn is_in_use(&self) -> Result<bool> {
        self.watch.is_in_use()
    }

    /// Whether old rows are still to be compared.
    pub(super) fn has_suspects(&self) -> bool {
        !self.suspects.is_empty()
    }

    /// Appends what is new, then looks for a while at what may have changed.
    pub(super) fn step(&mut self, writer: &mut Writer) -> Result<Activity> {
        let mut activity = Activity::default();
        // a record that is being written may look like damage
        let Ok(Some(sync)) = self.watch.sync() else { return Ok(activity) };
        let rows = writer.rows(&self.name)?;
        if sync.rows < rows {
            let message = format!("{} rows, but there were {rows}: a live file cannot lose rows", sync.rows);
            return Err(Error::unsupported(message).at(self.path.display()));
        }
        if self.seen.as_ref() != Some(&sync) {
            activity.more = !self.notice(&sync, rows)?;
        }
        while writer.rows(&self.name)? < sync.rows {
            let first = writer.rows(&self.name)?;
            match self.append(writer, first..sync.rows.min(first + self.batch))? {
                0 => {
                    activity.more = true;
                    return Ok(activity);
                }
                rows => activity.rows += rows,
            }
        }
        activity.rewritten += self.compare(writer)?;
        activity.more |= self.has_suspects();
        Ok(activity)
    }

    /// Finds out from the counters what was written; false if the table could not be looked at yet.
    fn notice(&mut self, sync: &Sync, rows: u64) -> Result<bool> {
        let Look::Sure((columns, keywords)) = self.watch.look(|table| {
            let columns: Vec<_> = table
                .columns()
                .iter()
                .enumerate()
                .map(|(index, info)| {
                    let computed = info.stored_column().is_some();
                    (info.desc.name.clone(), table.manager_of(index), computed, info.desc.keywords.clone())
                })
                .collect();
            Ok((columns, table.keywords().clone()))
        })?
        else {
            return Ok(false);
        };
        let before = self.seen.as_ref().and_then(|seen| seen.counters.as_ref());
        let changed = |manager: usize| match (before, &sync.counters) {
            (Some(before), Some(now)) => before.managers.get(manager) != now.managers.get(manager),
            _ => true,
        };
        let first = self.seen.is_none();
        for (name, manager, computed, keywords) in &columns {
            let Some(index) = self.columns.iter().position(|column| column.name == *name) else {
                if !first {
                    *self.notes.entry(format!("column {name} is new: finalize takes it")).or_default() = 1;
                }
                continue;
            };
            if rows > 0 && !first && (*computed || changed(*manager)) {
                self.suspects.insert(index, 0);
            }
            if self.columns[index].keywords != *keywords && !first {
                *self.notes.entry(format!("keywords of column {name} changed: finalize takes them")).or_default() = 1;
            }
            self.columns[index].keywords = keywords.clone();
        }
        let gone = |column: &&FollowedColumn| !columns.iter().any(|(name, ..)| column.name == *name);
        if let Some(column) = self.columns.iter().find(gone) {
            let message = format!("column {} was removed: a live file cannot lose columns", column.name);
            return Err(Error::unsupported(message).at(self.path.display()));
        }
        if self.keywords != keywords && !first {
            *self.notes.entry("keywords of the table changed: finalize takes them".into()).or_default() = 1;
        }
        self.keywords = keywords;
        self.seen = Some(sync.clone());
        Ok(true)
    }

    /// Appends rows; 0 if the writer is in the middle of something.
    fn append(&mut self, writer: &mut Writer, rows: Range<u64>) -> Result<u64> {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let blocks = match self.read(&all, rows.clone())? {
            Look::Sure(blocks) => blocks,
            Look::Busy => return Ok(0),
            Look::Doubtful(read) => {
                // a program that writes all the time leaves no time to look; twice the same is no mixture
                self.batch = (self.batch / 2).max(1);
                let before = self.doubtful.take();
                let Ok(blocks) = read else { return Ok(0) };
                let same = |(before, theirs): &(Range<u64>, Vec<CellBlock>)| {
                    *before == rows && theirs.iter().zip(&blocks).all(|(theirs, ours)| theirs.same(ours))
                };
                if !before.as_ref().is_some_and(same) {
                    self.doubtful = Some((rows, blocks));
                    return Ok(0);
                }
                blocks
            }
        };
        self.doubtful = None;
        self.note_misfits(&all, &blocks);
        let named: Vec<(&str, Block<'_>)> = self
            .columns
            .iter()
            .zip(&blocks)
            .map(|(column, block)| Ok((column.text.as_str(), block.block()?)))
            .collect::<Result<_>>()?;
        let count = rows.end - rows.start;
        writer.append(&self.name, count, &named)?;
        let bytes: u64 = blocks.iter().map(CellBlock::bytes).sum();
        self.batch = (BATCH_BYTES.saturating_mul(count) / bytes.max(1)).clamp(1, 2 * self.batch.max(FIRST_BATCH));
        Ok(count)
    }

    /// Compares old rows with what the live file has, and writes those that differ.
    fn compare(&mut self, writer: &mut Writer) -> Result<u64> {
        let (start, mut rewritten) = (Instant::now(), 0);
        while let Some((&column, &first)) = self.suspects.first_key_value() {
            let rows = first..writer.rows(&self.name)?.min(first + COMPARED_ROWS);
            if rows.is_empty() {
                self.suspects.remove(&column);
                continue;
            }
            let Look::Sure(blocks) = self.read(&[column], rows.clone())? else { break };
            let (name, count) = (self.columns[column].text.clone(), rows.end - rows.start);
            for block in &blocks {
                match writer.rewrite_if_changed(&self.name, &name, rows.start, count, &block.block()?) {
                    Ok(true) => rewritten += 1,
                    Ok(false) => {}
                    Err(error) if error.kind() == ErrorKind::Unsupported => {
                        let note = format!("column {name}: cells got another shape: finalize takes them");
                        *self.notes.entry(note).or_default() += 1;
                    }
                    Err(error) => return Err(error),
                }
            }
            self.suspects.insert(column, rows.end);
            if start.elapsed() >= COMPARE_FOR {
                break;
            }
        }
        Ok(rewritten)
    }

    fn read(&mut self, wanted: &[usize], rows: Range<u64>) -> Result<Look<Vec<CellBlock>>> {
        let columns = &self.columns;
        self.watch.look(|table| {
            if table.rows() < rows.end {
                return Err(Error::format(format!("{} rows where {} were announced", table.rows(), rows.end)));
            }
            let read = |&index: &usize| {
                let column = &columns[index];
                let found = table.columns().iter().position(|info| info.desc.name == column.name);
                let found = found.ok_or_else(|| Error::format("the column is gone"))?;
                CellBlock::read(table.cells(found)?, column.data_type, &column.form, column.string_bytes, rows.clone())
            };
            wanted.iter().map(|index| read(index).at_with(|| format!("column {}", columns[*index].text))).collect()
        })
    }

    fn note_misfits(&mut self, wanted: &[usize], blocks: &[CellBlock]) {
        for (&index, block) in wanted.iter().zip(blocks).filter(|(_, block)| block.misfits > 0) {
            let name = &self.columns[index].text;
            let note = format!("column {name}: cells that the live file has no room for: finalize takes them");
            *self.notes.entry(note).or_default() += block.misfits;
        }
    }
}
