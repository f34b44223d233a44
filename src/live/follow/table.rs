//! Follows one casacore table: copies its new rows to a live file, an HDF5 file that others read
//! while rows are appended, and copied rows again if they were overwritten in the table.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bstr::ByteSlice;

use super::cells::{self, CellBlock};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::live::{CellShapes, ColumnSpec, TableSpec, Writer};
use crate::schema::Sync;
use crate::table::{ColumnInfo, Snapshot, Table, Watch};
use crate::value::{BString, DataType, Record};

/// New rows read at a time.
const BATCH_BYTES: u64 = 8 << 20;

/// Rows of the first batch, when the size of a row is not known yet.
const FIRST_BATCH: u64 = 1024;

/// Rows compared at a time with their copies.
const COMPARED_ROWS: u64 = 4096;

/// Longest time for which copies are compared before the table is polled again.
const COMPARE_FOR: Duration = Duration::from_millis(20);

/// State of a table at the last poll, and the copies that are still to be compared with it.
#[derive(Debug)]
pub(super) struct Followed {
    /// Name in the live file: `MAIN`, `ANTENNA`, `A/B`.
    pub(super) name: String,
    path: PathBuf,
    watch: Watch,
    columns: Vec<FollowedColumn>,
    /// Columns that the live file cannot store, so that they are not reported as new.
    absent: Vec<BString>,
    /// Sentences about content missing in the live file, with numbers of occurrences.
    pub(super) notes: BTreeMap<String, u64>,
    /// Change counters at the last poll.
    seen: Option<Sync>,
    batch: u64,
    /// Rows read during a possible write, copied only if a second read returns the same.
    doubtful: Option<(Range<u64>, Vec<CellBlock>)>,
    /// Columns whose copies may be outdated, with the rows to compare.
    suspects: BTreeMap<usize, Suspect>,
    keywords: Record,
}

struct SeenTable {
    rows: u64,
    columns: Vec<SeenColumn>,
    keywords: Record,
}

impl SeenTable {
    fn new(table: &Table) -> Self {
        let column = |(info, manager): (&ColumnInfo, Option<usize>)| SeenColumn {
            name: info.desc.name.clone(),
            manager,
            computed: info.stored_column().is_some() || info.expression().is_some(),
            keywords: info.desc.keywords.clone(),
        };
        let columns = table.columns().iter().zip(table.manager_numbers()).map(column).collect();
        SeenTable { rows: table.rows(), columns, keywords: table.keywords().clone() }
    }
}

struct SeenColumn {
    name: BString,
    /// Index of the data manager; `None` if values come from another table.
    manager: Option<usize>,
    /// Whether an engine computes the cells.
    computed: bool,
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

/// Rows of a column whose copies may be outdated: first `now`, then `later`. A restarted comparison
/// continues at the row that it had reached, so that a column that is overwritten all the time is
/// still compared completely.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Suspect {
    now: Range<u64>,
    later: Range<u64>,
}

impl Suspect {
    /// Begins at the row that an unfinished comparison `before` had reached; earlier rows follow.
    fn new(all: u64, before: Option<&Suspect>) -> Self {
        let next = before.map_or(0, |before| before.batch().start).min(all);
        Suspect { now: next..all, later: 0..next }
    }

    /// Next rows to compare, 4096 at most; empty if none is left.
    fn batch(&self) -> Range<u64> {
        let rows = if self.now.is_empty() { &self.later } else { &self.now };
        rows.start..rows.end.min(rows.start + COMPARED_ROWS)
    }

    fn advance(&mut self) {
        let end = self.batch().end;
        let rows = if self.now.is_empty() { &mut self.later } else { &mut self.now };
        rows.start = end;
    }
}

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

/// Amounts that one call of [`Following::step`](super::Following::step) has copied from casacore
/// tables to the live file, an HDF5 file that others read while rows are appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Activity {
    /// Number of rows that the call of [`Following::step`](super::Following::step) has appended to
    /// the live HDF5 file, in all tables.
    pub rows: u64,
    /// Number of blocks (4096 rows of a column, or fewer) that the call of
    /// [`Following::step`](super::Following::step) has overwritten in the live HDF5 file, because
    /// cells of the casacore table had changed.
    pub rewritten: u64,
    /// Whether rows of the casacore table are still to be copied or compared, so that
    /// [`Following::step`](super::Following::step) should be called again at once.
    pub more: bool,
    /// Whether another program is writing to the casacore table and has not yet completed its
    /// write, so that new rows may soon follow.
    pub waiting: bool,
}

impl Followed {
    /// Returns also the columns that a live file cannot store, each with the reason.
    pub(super) fn declare(name: &str, table: &Table) -> Result<(TableSpec, Vec<(BString, String)>)> {
        let mut spec = TableSpec::new(name);
        spec.info = table.info().clone();
        spec.keywords = table.keywords().clone();
        let mut absent = Vec::new();
        for (index, info) in table.columns().iter().enumerate() {
            match declare_column(table, index, info) {
                Ok(column) => spec.columns.push(column),
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    absent.push((info.desc.name.clone(), error.to_string()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok((spec, absent))
    }

    /// The live file has `rows` rows of the table already; it lacks the columns `absent`.
    pub(super) fn new(path: &Path, name: &str, columns: &[LiveColumn], absent: &[BString], rows: u64) -> Result<Self> {
        let columns: Vec<_> = columns.iter().map(FollowedColumn::new).collect();
        // existing rows may have been overwritten since
        let suspects = match rows {
            0 => BTreeMap::new(),
            rows => (0..columns.len()).map(|column| (column, Suspect::new(rows, None))).collect(),
        };
        Ok(Followed {
            name: name.to_owned(),
            path: path.to_owned(),
            watch: Watch::new(path)?,
            columns,
            absent: absent.to_vec(),
            notes: BTreeMap::new(),
            seen: None,
            batch: FIRST_BATCH,
            doubtful: None,
            suspects,
            keywords: Record::default(),
        })
    }

    /// Fails if the table was removed or replaced.
    pub(super) fn check_same(&self) -> Result<()> {
        self.watch.check_same()
    }

    pub(super) fn is_in_use(&self) -> Result<bool> {
        self.watch.is_in_use()
    }

    pub(super) fn has_suspects(&self) -> bool {
        !self.suspects.is_empty()
    }

    /// Copies new rows, then compares older copies for about [`COMPARE_FOR`].
    pub(super) fn step(&mut self, writer: &mut Writer) -> Result<Activity> {
        let mut activity = Activity::default();
        let Some(sync) = self.watch.sync()? else { return Ok(activity) };
        if self.seen.as_ref() != Some(&sync) {
            activity.more = !self.notice(&sync, writer.rows(&self.name)?)?;
        }
        while writer.rows(&self.name)? < sync.rows {
            match self.append(writer, sync.rows)? {
                0 => {
                    activity.more = true;
                    return Ok(activity);
                }
                rows => activity.rows += rows,
            }
        }
        activity.rewritten += self.compare(writer)?;
        activity.more |= self.has_suspects();
        activity.waiting = !activity.more && self.watch.prompt()?;
        Ok(activity)
    }

    /// False, with nothing marked, if another program may have written during the call.
    fn notice(&mut self, sync: &Sync, rows: u64) -> Result<bool> {
        let Snapshot::Consistent(table) = self.watch.snapshot(|table| Ok(SeenTable::new(table)))? else {
            return Ok(false);
        };
        self.check_kept(&table, rows)?;
        let news = self.news(&table);
        self.notes.extend(news.into_iter().map(|note| (note, 1)));
        if rows > 0 {
            self.suspect_written(&table, sync, rows);
        }
        for seen in &table.columns {
            if let Some(column) = self.columns.iter_mut().find(|column| column.name == seen.name) {
                column.keywords = seen.keywords.clone();
            }
        }
        self.keywords = table.keywords;
        self.seen = Some(sync.clone());
        Ok(true)
    }

    /// `Unsupported` if copied rows or columns are gone: the live file cannot lose them.
    fn check_kept(&self, table: &SeenTable, rows: u64) -> Result<()> {
        if table.rows < rows {
            let message = format!("{} rows, but there were {rows}: a live file cannot lose rows", table.rows);
            return Err(Error::unsupported(message).context(Context::path(&self.path)));
        }
        let is_lost = |column: &&FollowedColumn| !table.columns.iter().any(|seen| column.name == seen.name);
        if let Some(column) = self.columns.iter().find(is_lost) {
            let message = format!("column {} was removed: a live file cannot lose columns", column.name);
            return Err(Error::unsupported(message).context(Context::path(&self.path)));
        }
        Ok(())
    }

    /// Sentences about new columns and changed keywords, which the live file does not get.
    fn news(&self, table: &SeenTable) -> Vec<String> {
        let is_first_look = self.seen.is_none();
        let mut news = Vec::new();
        for SeenColumn { name, keywords, .. } in &table.columns {
            match self.columns.iter().find(|column| column.name == *name) {
                Some(column) if column.keywords != *keywords && !is_first_look => {
                    news.push(format!("keywords of column {name} changed: finalize takes them"));
                }
                None if !self.absent.contains(name) => news.push(format!("column {name} is new: finalize takes it")),
                _ => {}
            }
        }
        if self.keywords != table.keywords && !is_first_look {
            news.push("keywords of the table changed: finalize takes them".to_owned());
        }
        news
    }

    /// Marks computed columns, and others unless counters show that their manager did not write.
    fn suspect_written(&mut self, table: &SeenTable, sync: &Sync, rows: u64) {
        let before = self.seen.as_ref().and_then(|seen| seen.counters.as_ref());
        let changed = |manager: Option<usize>| match (before, &sync.counters, manager) {
            (Some(before), Some(now), Some(manager)) => before.managers.get(manager) != now.managers.get(manager),
            _ => true,
        };
        for seen in table.columns.iter().filter(|seen| seen.computed || changed(seen.manager)) {
            if let Some(index) = self.columns.iter().position(|column| column.name == seen.name) {
                // with those that are appended before they are compared
                let suspect = Suspect::new(sync.rows.max(rows), self.suspects.get(&index));
                self.suspects.insert(index, suspect);
            }
        }
    }

    /// Returns the number of rows; 0 if another program may have written: the next call repeats it.
    fn append(&mut self, writer: &mut Writer, end: u64) -> Result<u64> {
        let first = writer.rows(&self.name)?;
        // the same rows again, if it was doubtful what is in them
        let again = self.doubtful.take().filter(|(rows, _)| rows.start == first && rows.end <= end);
        let rows = again.as_ref().map_or(first..end.min(first + self.batch), |(rows, _)| rows.clone());
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let blocks = match self.read(&all, rows.clone())? {
            Snapshot::Consistent(blocks) => blocks,
            Snapshot::WriterActive => return Ok(0),
            Snapshot::Unconfirmed(read) => {
                // a program that writes all the time leaves no time to look; twice the same is
                // hardly a mixture, and if it was one after all, the counters change and the rows
                // are compared
                match (read, again) {
                    (Ok(blocks), Some((_, before))) if all.iter().all(|&i| blocks[i].same(&before[i])) => blocks,
                    (Ok(blocks), None) => {
                        self.doubtful = Some((rows, blocks));
                        return Ok(0);
                    }
                    // fewer rows are read in less time
                    _ => {
                        self.batch = (self.batch / 2).max(1);
                        return Ok(0);
                    }
                }
            }
        };
        self.note_misfits(&all, &blocks);
        let count = rows.end - rows.start;
        let mut batch = writer.table(&self.name)?.batch(count);
        for (column, block) in self.columns.iter().zip(&blocks) {
            batch.set(&column.text, block.block()?)?;
        }
        batch.append()?;
        let bytes: u64 = blocks.iter().map(CellBlock::bytes).sum();
        self.batch = (BATCH_BYTES.saturating_mul(count) / bytes.max(1)).clamp(1, 2 * self.batch.max(FIRST_BATCH));
        Ok(count)
    }

    /// Compares for about [`COMPARE_FOR`]; returns the number of overwritten blocks.
    fn compare(&mut self, writer: &mut Writer) -> Result<u64> {
        let (start, mut rewritten) = (Instant::now(), 0);
        while let Some((&column, suspect)) = self.suspects.first_key_value() {
            let batch = suspect.batch();
            if batch.is_empty() {
                self.suspects.remove(&column);
                continue;
            }
            // rows that were announced and did not come are gone
            let rows = batch.start..batch.end.min(writer.rows(&self.name)?);
            if rows.is_empty() {
                self.suspects.entry(column).and_modify(Suspect::advance);
                continue;
            }
            let Snapshot::Consistent(blocks) = self.read(&[column], rows.clone())? else { break };
            let (name, count) = (self.columns[column].text.clone(), rows.end - rows.start);
            for block in &blocks {
                let updated = writer.update(&self.name, &name, rows.start, count, block.block()?)?;
                rewritten += u64::from(updated.written);
                // misfits have been counted when they were appended, unless they came later
                for (note, times) in [(too_large_note(&name), block.misfits), (reshaped_note(&name), updated.refused)] {
                    if times > 0 {
                        let known = self.notes.entry(note).or_default();
                        *known = times.max(*known);
                    }
                }
            }
            self.suspects.entry(column).and_modify(Suspect::advance);
            if start.elapsed() >= COMPARE_FOR {
                break;
            }
        }
        Ok(rewritten)
    }

    fn read(&mut self, wanted: &[usize], rows: Range<u64>) -> Result<Snapshot<Vec<CellBlock>>> {
        let columns = &self.columns;
        self.watch.snapshot(|table| {
            if table.rows() < rows.end {
                return Err(Error::format(format!(
                    "the table has {} rows, but {} were announced",
                    table.rows(),
                    rows.end
                )));
            }
            let read = |&index: &usize| {
                let column = &columns[index];
                let found = table.columns().iter().position(|info| info.desc.name == column.name);
                let found =
                    found.ok_or_else(|| Error::format("the column is missing: the table had it when it was opened"))?;
                CellBlock::read(table.cells(found)?, column.data_type, &column.form, column.string_bytes, rows.clone())
            };
            wanted.iter().map(|index| read(index).with_context(|| Context::column(&columns[*index].text))).collect()
        })
    }

    fn note_misfits(&mut self, wanted: &[usize], blocks: &[CellBlock]) {
        for (&index, block) in wanted.iter().zip(blocks).filter(|(_, block)| block.misfits > 0) {
            *self.notes.entry(too_large_note(&self.columns[index].text)).or_default() += block.misfits;
        }
    }
}

/// Fails with `Unsupported` if a live file cannot store the column.
fn declare_column(table: &Table, index: usize, info: &ColumnInfo) -> Result<ColumnSpec> {
    if info.data_type() == DataType::Record {
        return Err(Error::unsupported("it holds records, which a live file cannot"));
    }
    let column = table.cells(index)?;
    let form = cells::shapes(column, info.shape.as_ref(), table.rows())?;
    let form = form.ok_or_else(|| Error::unsupported("it has no cell yet that tells its shape, or too many shapes"))?;
    let mut spec = ColumnSpec::like(info, form);
    if info.data_type() == DataType::String {
        spec.info.desc.max_length = cells::string_bytes(column, info.desc.max_length, table.rows())?;
    }
    Ok(spec)
}

fn too_large_note(column: &str) -> String {
    format!("column {column}: cells that the live file has no room for: finalize takes them")
}

fn reshaped_note(column: &str) -> String {
    format!("column {column}: cells got another shape: finalize takes them")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(suspect: &mut Suspect, batches: usize) -> Vec<u64> {
        let mut rows = Vec::new();
        for _ in 0..batches {
            rows.extend(suspect.batch());
            suspect.advance();
        }
        rows
    }

    #[test]
    fn all_rows_are_compared_once() {
        for all in [0, 1, COMPARED_ROWS - 1, COMPARED_ROWS, 3 * COMPARED_ROWS + 7] {
            let mut suspect = Suspect::new(all, None);
            assert_eq!(compare(&mut suspect, 5), (0..all).collect::<Vec<_>>());
            assert!(suspect.batch().is_empty());
            suspect.advance();
            assert!(suspect.batch().is_empty());
        }
    }

    /// A row written during its comparison is compared again.
    #[test]
    fn a_circle_leaves_no_gap() {
        let rows = 3 * COMPARED_ROWS + 5;
        for done in 0..6 {
            for more in [0, 1, 7, COMPARED_ROWS, 2 * COMPARED_ROWS + 1] {
                let mut first = Suspect::new(rows, None);
                let before = compare(&mut first, done);
                let mut again = Suspect::new(rows + more, Some(&first));
                let next = if (1..4).contains(&done) { before.len() as u64 } else { 0 };
                assert_eq!(again.batch().start, next, "not from the start: others have waited longer");
                let mut found = compare(&mut again, 8);
                assert!(again.batch().is_empty());
                found.sort_unstable();
                assert_eq!(found, (0..rows + more).collect::<Vec<_>>(), "{done} batches, then {more} rows more");
            }
        }
    }

    /// A column whose rows are overwritten faster than they can be compared.
    #[test]
    fn every_row_has_its_turn() {
        let (mut rows, mut suspect) = (10 * COMPARED_ROWS, None);
        let mut compared = std::collections::BTreeSet::new();
        for _ in 0..12 {
            rows += 7;
            let mut again = Suspect::new(rows, suspect.as_ref());
            compared.extend(compare(&mut again, 1));
            suspect = Some(again);
        }
        assert!((0..10 * COMPARED_ROWS).all(|row| compared.contains(&row)));
    }
}
