//! Appends rows to a table of a live file: first the cells of the new rows are set, one column at a
//! time, then the rows are appended.

use super::block::Block;
use super::table::{Checked, Table};
use super::writer::Writer;
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};

/// Access to one table of a live file for appending rows or overwriting cells, from
/// [`Writer::table`].
#[derive(Debug)]
pub struct TableAppender<'w> {
    writer: &'w mut Writer,
    /// Index among the tables of the writer.
    number: usize,
}

/// New rows of a table of a live file, whose cells are set column by column; from
/// [`TableAppender::batch`]. If it is dropped without [`append`](Self::append), the rows are
/// discarded.
#[derive(Debug)]
#[must_use = "rows are appended by `append`"]
pub struct Batch<'w, 'b> {
    table: TableAppender<'w>,
    rows: u64,
    /// One block for each column; `None` for a column without cells yet.
    cells: Vec<Option<Checked<'b>>>,
    /// Column after the last one that was set: [`set`](Self::set) compares its name first.
    next: usize,
}

impl Writer {
    /// Gives access to a table of the live file (`MAIN`, `ANTENNA`, `A/B`), to append rows or to
    /// overwrite cells.
    ///
    /// # Errors
    /// `Usage` if the file does not have the table.
    pub fn table(&mut self, name: &str) -> Result<TableAppender<'_>> {
        let number = self.number_of(name)?;
        Ok(TableAppender { writer: self, number })
    }
}

impl<'w> TableAppender<'w> {
    fn table(&self) -> &Table {
        self.writer.numbered(self.number)
    }

    fn context(&self) -> Context {
        Context::table(&self.table().name)
    }

    /// Number of rows of the table, including those that are not yet committed.
    pub fn rows(&self) -> u64 {
        self.table().rows
    }

    /// Number of committed rows of the table, which readers see.
    pub fn committed_rows(&self) -> u64 {
        self.table().committed
    }

    /// Begins `rows` new rows, whose cells are then [set](Batch::set) column by column.
    pub fn batch<'b>(self, rows: u64) -> Batch<'w, 'b> {
        let cells = self.table().columns.iter().map(|_| None).collect();
        Batch { table: self, rows, cells, next: 0 }
    }

    /// Overwrites the cells of `column` in `rows` rows that were appended before, from row
    /// `first_row` (counted from 0) on. A concurrent reader may see a mix of old and new values.
    /// The next commit flushes the new values, as it does new rows.
    ///
    /// # Errors
    /// `Usage` if the block does not fit or there are fewer rows, and `Unsupported` if a cell would
    /// get another shape: nothing is written then. `NoSpace` or `Io`, after which the writer can
    /// only be closed.
    pub fn rewrite<'b>(&mut self, column: &str, first_row: u64, rows: u64, block: impl Into<Block<'b>>) -> Result<()> {
        let place = [Context::column(column), self.context()];
        self.writer.file()?;
        let table = self.writer.numbered_mut(self.number);
        if first_row.checked_add(rows).is_none_or(|end| end > table.rows) {
            let message = format!(
                "rows {first_row}..{} exceed the table, which has {} rows",
                first_row.saturating_add(rows),
                table.rows
            );
            return Err(Error::usage(message)).in_contexts(&place);
        }
        let column = table.column(column)?;
        let cells = column.check(block.into(), rows).in_contexts(&place)?;
        match column.rewrite(first_row, &cells).in_contexts(&place) {
            // nothing was written
            Err(error) if error.kind() == ErrorKind::Unsupported => Err(error),
            written => self.writer.rewritten(written),
        }
    }
}

impl<'b> Batch<'_, 'b> {
    /// Sets the cells of the new rows in one column; see [`Block`] for the types that can be given
    /// and the order of their elements.
    ///
    /// # Errors
    /// `Usage` if the column does not exist, if it has its cells already, or if the type, the
    /// number or the shape of the cells is not the column's.
    pub fn set(&mut self, column: &str, cells: impl Into<Block<'b>>) -> Result<&mut Self> {
        let context = self.table.context();
        let table = self.table.table();
        let set = || -> Result<_> {
            let is_it = |&number: &usize| table.columns[number].name == column;
            let number = (self.next..table.columns.len()).chain(0..self.next).find(is_it);
            let number = number.ok_or_else(|| Error::usage(format!("column {column} does not exist")))?;
            if self.cells[number].is_some() {
                return Err(Error::usage("two blocks are of one column")).context(Context::column(column));
            }
            let cells = table.columns[number].check(cells.into(), self.rows).context(Context::column(column))?;
            Ok((number, cells))
        };
        let (number, cells) = set().context(context)?;
        self.cells[number] = Some(cells);
        self.next = number + 1;
        Ok(self)
    }

    /// Appends the new rows to the table. Commits if the [`CommitPolicy`](super::CommitPolicy) says
    /// so.
    ///
    /// # Errors
    /// `Usage` if a column has no cells, and nothing is written; `NoSpace` or `Io`, after which the
    /// writer can only be closed: what is committed stays readable, what is not is lost.
    pub fn append(self) -> Result<()> {
        let context = self.table.context();
        let Batch { table: TableAppender { writer, number }, rows, cells, .. } = self;
        let columns = &writer.numbered(number).columns;
        if let Some((column, _)) = columns.iter().zip(&cells).find(|(_, cells)| cells.is_none()) {
            let missing = Error::usage("appended rows need a cell in every column, but this one has none");
            return Err(missing.context(Context::column(&column.name)).context(context));
        }
        let cells: Vec<Checked<'_>> = cells.into_iter().flatten().collect();
        writer.append(number, rows, &cells)
    }
}
