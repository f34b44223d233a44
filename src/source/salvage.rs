//! Salvages a damaged source: reads every cell once, and makes cells that cannot be read undefined,
//! so that the rest can be converted.
//!
//! [`Source::salvage`] looks for damage before anything is converted. Afterwards the source reads
//! as one in which the damaged cells were never written, damaged columns cannot be opened and
//! damaged subtables are absent, so that every verb goes around damage in the same way.
//! [`Source::damage`] lists what is left out.

use std::ops::Range;

use bstr::ByteSlice;

use super::blocks::RowBlocks;
use super::salvaged::{ColumnDamage, Salvaged};
use super::stored_digests::{Change, changes};
use super::{Content, Source};
use crate::error::{Error, ErrorKind, Result};
use crate::output::Damage;
use crate::progress::Progress;
use crate::table::{ColumnCells, ColumnInfo};
use crate::value::Values;

/// Rows of a block that fails are read one by one.
const BLOCK_ROWS: u64 = 4096;
/// Name in [`Damage`] of values that are other than those of the digest.
const VALUES: &str = "values";
/// Elements read together, approximately.
const BLOCK_BYTES: u64 = 4 << 20;

impl Source {
    /// If not, damage ends a conversion with an error.
    pub(crate) fn is_salvaged(&self) -> bool {
        self.is_salvaged
    }

    /// True for unsupported storage, and for damage if the source is salvaged.
    pub(crate) fn may_leave_out(&self, error: &Error) -> bool {
        error.may_be_left_out() || self.is_salvaged && error.is_damage()
    }

    pub(crate) fn is_left_out(&self, table: &str) -> bool {
        self.damage.iter().any(|damage| damage.is_all_of(table, None))
    }

    /// `selected` gets names of table, as in [`Damage::table`], and column. Fails if the main table
    /// cannot be opened.
    pub(crate) fn salvage(
        &mut self,
        selected: impl Fn(&str, &str) -> bool + Sync,
        progress: &dyn Progress,
    ) -> Result<()> {
        self.is_salvaged = true;
        for table in &mut self.tables {
            let content = match &table.content {
                Ok(content) => &**content,
                Err(error) if table.parent.is_some() && error.is_damage() => {
                    // a subtable without any file is only absent, as in a table that is intact
                    if error.kind() != ErrorKind::NotFound {
                        self.damage.push(Damage::of_table(&table.name, error));
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
                    self.damage.push(Damage::of_column(&table.name, &name, rows, error));
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
            let chosen = |index: usize| selected(&table.name, &content.columns()[index].desc.name.to_str_lossy());
            self.damage.extend(differing(content, &table.name, &damaged, &chosen, progress)?);
            if damaged.iter().any(|found| !matches!(found, ColumnDamage::None)) {
                let content = std::mem::replace(&mut table.content, Err(Error::format("the table is being salvaged")));
                table.content = content.map(|content| Salvaged::of(content, damaged));
            }
        }
        Ok(())
    }

    /// The damaged parts that are left out of the source, because it is salvaged or because they
    /// were left out when its native HDF5 file was made.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }
}

/// Readable columns of a native HDF5 file whose values differ, or may, from their digests.
fn differing(
    content: &Content,
    table: &str,
    damaged: &[ColumnDamage],
    chosen: &(dyn Fn(usize) -> bool + Sync),
    progress: &dyn Progress,
) -> Result<Vec<Damage>> {
    let Some(stored) = content.stored_digests().ok().flatten() else { return Ok(Vec::new()) };
    let name = |index: usize| content.columns()[index].desc.name.to_str_lossy();
    let values = |column: Option<&str>, reason: String| Damage::of_part(table, column, VALUES, &Error::format(reason));
    let mut found = Vec::new();
    for (index, damage) in damaged.iter().enumerate() {
        // chunks of a single dataset are damaged by themselves, but a map of rows is not
        if matches!(damage, ColumnDamage::Rows(_)) && content.only_dataset(index).is_none() {
            found
                .push(values(Some(&name(index)), "rows are lost: its digest cannot tell whether others differ".into()));
        }
    }
    let is_compared = |index: usize| matches!(damaged[index], ColumnDamage::None) && chosen(index);
    let changed = changes(content, &stored, &is_compared, progress);
    progress.go_on()?;
    let changed = match changed {
        Ok(changed) => changed,
        Err(error) => {
            found.push(values(None, format!("they cannot be compared with their digests: {error}")));
            return Ok(found);
        }
    };
    for Change { column, stored, found: now } in changed {
        let number = column.as_deref().and_then(|column| (0..damaged.len()).find(|&index| name(index) == column));
        if stored.starts_with("cells") && number.is_some_and(is_compared) {
            let place = now.find(", first").map_or("", |at| &now[at..]);
            found.push(values(column.as_deref(), format!("damaged or edited since the file was made{place}")));
        }
    }
    Ok(found)
}

fn survey(content: &Content, index: usize, progress: &dyn Progress) -> Result<ColumnDamage> {
    let (info, rows) = (&content.columns()[index], content.rows());
    let (cells, is_whole) = match content.cells(index) {
        Ok(cells) => (cells, true),
        Err(error) if error.is_damage() => match content.cells_in_part(index) {
            Ok(cells) if rows > 0 => (cells, false),
            _ => return Ok(ColumnDamage::Whole(error)),
        },
        // an unknown manager does not count as damage: the caller names the column
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
            Err(error) if !error.is_damage() => return Ok(ColumnDamage::None),
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
        [] if is_whole => ColumnDamage::None,
        [(range, error)] if *range == (0..rows) => ColumnDamage::Whole(error.clone()),
        _ => ColumnDamage::Rows(damaged),
    })
}

fn read_all(info: &ColumnInfo, cells: &dyn ColumnCells, rows: Range<u64>, values: &mut Values) -> Result<()> {
    for block in RowBlocks::new(info, cells, rows, BLOCK_BYTES) {
        values.clear();
        block?.read(cells, values)?;
    }
    Ok(())
}
