//! Reading around damage: every cell is read once, and cells that cannot be read become undefined.
//!
//! [`Source::salvage`] looks for damage before anything is converted. Afterwards the source reads as one in which the
//! damaged cells were never written, damaged columns cannot be opened and damaged subtables are absent, so that every
//! verb goes around damage in the same way. [`Source::damage`] lists what is left out.

use std::ops::Range;

use bstr::ByteSlice;

use super::blocks::RowBlocks;
use super::{Content, Source};
use crate::error::{Error, ErrorKind, Result};
use crate::native::Damage;
use crate::progress::Progress;
use crate::table::{Cells, ColumnInfo};
use crate::value::{Region, Shape, Values};

/// Rows that are read together; rows of a block that fails are read one by one.
const BLOCK_ROWS: u64 = 4096;
/// Bytes that are read together.
const BLOCK_BYTES: u64 = 4 << 20;

/// Whether an error means that the source is damaged or incomplete, rather than that the call cannot go on.
fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Format | ErrorKind::NotFound | ErrorKind::Limit | ErrorKind::Io)
}

impl Source {
    /// Whether damage is left out instead of ending the call.
    pub(crate) fn is_salvaged(&self) -> bool {
        self.is_salvaged
    }

    /// Whether a column that fails with `error` is named and left out: its form is not supported, or it is damaged and
    /// damage is left out.
    pub(crate) fn may_leave_out(&self, error: &Error) -> bool {
        error.may_be_left_out() || self.is_salvaged && is_damage(error)
    }

    /// Whether a table is left out because it is damaged.
    pub(crate) fn is_left_out(&self, table: &str) -> bool {
        self.damage.iter().any(|damage| damage.column.is_none() && damage.table == table)
    }

    /// Reads all selected columns once and goes around whatever is damaged from here on: damaged cells are undefined,
    /// damaged columns fail to open, damaged subtables are absent. [`damage`](Self::damage) lists them.
    ///
    /// `selected` says, by table (as [`Damage::table`]) and column, which columns matter.
    ///
    /// # Errors
    /// `Interrupted` when `progress` says so; what opening the main table gives if it cannot be opened at all.
    pub fn salvage(&mut self, selected: impl Fn(&str, &str) -> bool, progress: &dyn Progress) -> Result<()> {
        self.is_salvaged = true;
        for table in &mut self.tables {
            let content = match &table.content {
                Ok(content) => content,
                Err(error) if table.parent.is_some() && is_damage(error) => {
                    // a subtable without any file is only absent, as in a table that is intact
                    if error.kind() != ErrorKind::NotFound {
                        self.damage.push(Damage {
                            table: table.name.clone(),
                            column: None,
                            rows: None,
                            reason: error.to_string(),
                        });
                    }
                    continue;
                }
                Err(error) => return Err(error.clone()),
            };
            let mut damaged = Vec::new();
            for index in 0..content.columns().len() {
                let name = content.columns()[index].desc.name.to_str_lossy().into_owned();
                let found =
                    if selected(&table.name, &name) { survey(content, index, progress)? } else { ColumnDamage::None };
                let mut note = |rows: Option<Range<u64>>, error: &Error| {
                    let (table, column) = (table.name.clone(), Some(name.clone()));
                    self.damage.push(Damage { table, column, rows, reason: error.to_string() });
                };
                match &found {
                    ColumnDamage::None => {}
                    ColumnDamage::Whole(error) => note(None, error),
                    ColumnDamage::Rows(ranges) => {
                        ranges.iter().for_each(|(rows, error)| note(Some(rows.clone()), error))
                    }
                }
                damaged.push(found);
            }
            if damaged.iter().any(|found| !matches!(found, ColumnDamage::None)) {
                table.content = match std::mem::replace(&mut table.content, Err(Error::format("being salvaged"))) {
                    Ok(content) => Ok(Content::Salvaged(Box::new(Salvaged::new(content, damaged)))),
                    Err(error) => Err(error),
                };
            }
        }
        Ok(())
    }

    /// The parts that [`salvage`](Self::salvage) left out, or that the file says were left out when it was made.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }
}

/// The damage of one column.
#[derive(Debug)]
pub(super) enum ColumnDamage {
    None,
    /// Ascending ranges of rows, each with the error of its first row.
    Rows(Vec<(Range<u64>, Error)>),
    /// No cell can be read, or the column cannot be opened.
    Whole(Error),
}

/// Reads all cells of a column.
fn survey(content: &Content, index: usize, progress: &dyn Progress) -> Result<ColumnDamage> {
    let (info, rows) = (&content.columns()[index], content.rows());
    let cells = match content.cells(index) {
        Ok(cells) => cells,
        Err(error) if is_damage(&error) => return Ok(ColumnDamage::Whole(error)),
        // an unknown manager is no damage: the caller names the column
        Err(_) => return Ok(ColumnDamage::None),
    };
    let mut damaged: Vec<(Range<u64>, Error)> = Vec::new();
    let mut values = Values::new(info.data_type());
    let mut start = 0;
    while start < rows {
        progress.go_on()?;
        let block = start..(start + BLOCK_ROWS).min(rows);
        start = block.end;
        match read_all(info, &*cells, block.clone(), &mut values) {
            Ok(()) => continue,
            Err(error) if !is_damage(&error) => return Ok(ColumnDamage::None),
            Err(_) => {}
        }
        for row in block {
            progress.go_on()?;
            let Err(error) = read_all(info, &*cells, row..row + 1, &mut values) else { continue };
            match damaged.last_mut() {
                Some((range, _)) if range.end == row => range.end += 1,
                _ => damaged.push((row..row + 1, error)),
            }
        }
    }
    Ok(match damaged.as_slice() {
        [] => ColumnDamage::None,
        [(range, error)] if *range == (0..rows) => ColumnDamage::Whole(error.clone()),
        _ => ColumnDamage::Rows(damaged),
    })
}

fn read_all(info: &ColumnInfo, cells: &dyn Cells, rows: Range<u64>, values: &mut Values) -> Result<()> {
    for block in RowBlocks::new(info, cells, rows, BLOCK_BYTES) {
        values.clear();
        block?.read(cells, values)?;
    }
    Ok(())
}

/// A table read around its damage.
pub(crate) struct Salvaged {
    pub(super) whole: Content,
    /// As in the table, but that cells of damaged columns may be undefined.
    pub(super) columns: Vec<ColumnInfo>,
    damaged: Vec<ColumnDamage>,
}

impl Salvaged {
    fn new(whole: Content, damaged: Vec<ColumnDamage>) -> Self {
        let mut columns = whole.columns().to_vec();
        for (info, damage) in columns.iter_mut().zip(&damaged) {
            info.may_be_undefined |= matches!(damage, ColumnDamage::Rows(_));
        }
        Salvaged { whole, columns, damaged }
    }

    /// The intact cells of a column.
    pub(super) fn cells(&self, index: usize) -> Result<Box<dyn Cells + '_>> {
        match &self.damaged[index] {
            ColumnDamage::None => self.whole.cells(index),
            ColumnDamage::Whole(error) => Err(error.clone()),
            ColumnDamage::Rows(damaged) => Ok(Box::new(Intact { cells: self.whole.cells(index)?, damaged })),
        }
    }
}

/// A column whose damaged cells are undefined.
struct Intact<'a> {
    cells: Box<dyn Cells + 'a>,
    damaged: &'a [(Range<u64>, Error)],
}

impl Intact<'_> {
    /// The damage of a row, if it is damaged.
    fn damage(&self, row: u64) -> Option<&Error> {
        let next = self.damaged.partition_point(|(range, _)| range.start <= row);
        let (range, error) = self.damaged.get(next.checked_sub(1)?)?;
        range.contains(&row).then_some(error)
    }
}

impl Cells for Intact<'_> {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        if self.damage(row).is_some() { Ok(None) } else { self.cells.cell_shape(row) }
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        match self.damage(row) {
            Some(error) => Err(error.clone()),
            None => self.cells.read_cell(row, region, out),
        }
    }

    /// The elements of the intact cells, without those of damaged ones, as for undefined cells.
    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let mut start = rows.start;
        for (damaged, _) in self.damaged.iter().filter(|(range, _)| range.end > rows.start && range.start < rows.end) {
            if damaged.start > start {
                self.cells.read_rows(start..damaged.start, out)?;
            }
            start = damaged.end;
        }
        if start < rows.end { self.cells.read_rows(start..rows.end, out) } else { Ok(()) }
    }

    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        let is_intact = !self.damaged.iter().any(|(range, _)| range.end > rows.start && range.start < rows.end);
        is_intact.then(|| self.cells.same_shape(rows)).flatten()
    }
}
