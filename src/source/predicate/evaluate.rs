//! Finds the rows of a main table that satisfy a condition such as `SCAN_NUMBER in 3..5`.

use std::cmp::Ordering;
use std::ops::Range;

use bstr::{BStr, ByteSlice};

use super::Predicate;
use super::parse::Order;
use super::resolve::{Operand, Test, resolve};
use crate::error::{Context, Error, Result, ResultExt, column_context};
use crate::limits;
use crate::progress::Progress;
use crate::source::row_set::RowSet;
use crate::source::selected::Selected;
use crate::source::{Source, SourceTable};
use crate::table::ColumnCells;
use crate::value::Values;

/// Rows in memory at a time.
const BLOCK_ROWS: u64 = 1 << 14;

impl Source {
    /// `Usage` if the predicate does not fit the main table or `rows` exceed it.
    pub(crate) fn select(
        &mut self,
        predicate: &Predicate,
        rows: Option<Range<u64>>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let chosen = self.chosen(0, predicate, rows, progress)?;
        let SourceTable { content, .. } = &mut self.tables[0];
        *content = std::mem::replace(content, Err(Error::usage("rows are being selected")))
            .map(|whole| Selected::of(whole, chosen));
        Ok(())
    }

    /// Numbers, from 0 and in order, of the rows of `self.tables()[table]` that satisfy
    /// `predicate`.
    ///
    /// # Errors
    /// `Usage` if the predicate does not fit the table, or the table does not exist; `Interrupted`;
    /// those of reading columns.
    pub fn rows_where(&self, table: usize, predicate: &Predicate, progress: &dyn Progress) -> Result<Vec<u64>> {
        if table >= self.tables.len() {
            return Err(Error::usage(format!("table {table} does not exist")));
        }
        let chosen = self.chosen(table, predicate, None, progress)?;
        Ok(chosen.ranges(0..chosen.len()).flatten().collect())
    }

    fn chosen(
        &self,
        table: usize,
        predicate: &Predicate,
        rows: Option<Range<u64>>,
        progress: &dyn Progress,
    ) -> Result<RowSet> {
        let table_name = &self.tables[table].name;
        let content = self.tables[table].content()?;
        limits::selected_rows(content.rows())?;
        let rows = rows.unwrap_or(0..content.rows());
        limits::row_range(&rows, content.rows())?;
        let resolved = resolve(&predicate.condition, self, table)
            .with_context(|| Context::Other(format!("condition {:?}", predicate.text)))?;
        let mut columns = Vec::new();
        for &index in &resolved.columns {
            let info = &content.columns()[index];
            let name = info.desc.name.to_str_lossy().into_owned();
            let cells = content.cells(index).with_context(|| column_context(table_name, &name))?;
            let is_defined = info.is_always_defined();
            columns.push(Block { name, cells, is_defined, values: Values::new(info.data_type()), places: None });
        }
        let mut chosen = RowSet::default();
        (0..rows.start).for_each(|_| chosen.push(false));
        let mut start = rows.start;
        while start < rows.end {
            progress.go_on()?;
            let block = start..rows.end.min(start + BLOCK_ROWS);
            start = block.end;
            for column in &mut columns {
                column.read(block.clone()).with_context(|| column_context(table_name, &column.name))?;
            }
            for row in 0..(block.end - block.start) as usize {
                chosen.push(holds(&resolved.test, &columns, row) == Some(true));
            }
        }
        Ok(chosen)
    }
}

struct Block<'a> {
    name: String,
    cells: Box<dyn ColumnCells + 'a>,
    /// All cells are, according to the description.
    is_defined: bool,
    /// Defined cells, in row order.
    values: Values,
    /// Index in `values` of each row's cell; without a list, all are defined.
    places: Option<Vec<Option<usize>>>,
}

impl Block<'_> {
    fn read(&mut self, rows: Range<u64>) -> Result<()> {
        self.values.clear();
        if !self.is_defined {
            let mut next = 0;
            let mut place = |row| -> Result<Option<usize>> {
                let is_defined = self.cells.cell_shape(row)?.is_some();
                next += usize::from(is_defined);
                Ok(is_defined.then(|| next - 1))
            };
            self.places = Some(rows.clone().map(&mut place).collect::<Result<_>>()?);
        }
        let expected =
            self.places.as_ref().map_or((rows.end - rows.start) as usize, |places| places.iter().flatten().count());
        self.cells.read_rows(rows.clone(), &mut self.values)?;
        if self.values.len() != expected {
            let (Range { start, end }, found) = (rows, self.values.len());
            return Err(Error::format(format!("rows {start}..{end} have {found} elements, expected {expected}")));
        }
        Ok(())
    }

    fn scalar(&self, row: usize) -> Option<Scalar<'_>> {
        let place = match &self.places {
            Some(places) => places[row]?,
            None => row,
        };
        Some(match &self.values {
            Values::Bool(v) => Scalar::Bool(v[place]),
            Values::UChar(v) => Scalar::Int(v[place].into()),
            Values::Short(v) => Scalar::Int(v[place].into()),
            Values::UShort(v) => Scalar::Int(v[place].into()),
            Values::Int(v) => Scalar::Int(v[place].into()),
            Values::UInt(v) => Scalar::Int(v[place].into()),
            Values::Int64(v) => Scalar::Int(v[place]),
            Values::Float(v) => Scalar::Float(v[place].into()),
            Values::Double(v) => Scalar::Float(v[place]),
            Values::String(v) => Scalar::Text(v[place].as_bstr()),
            Values::Complex(_) | Values::DComplex(_) | Values::Record(_) => return None,
        })
    }
}

#[derive(Debug, Clone, Copy)]
enum Scalar<'a> {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a BStr),
}

/// `None` if undefined cells leave it undecided.
fn holds(test: &Test, columns: &[Block<'_>], row: usize) -> Option<bool> {
    match test {
        Test::Not(inner) => holds(inner, columns, row).map(|held| !held),
        Test::Any(list) => decided(list, columns, row, true),
        Test::All(list) => decided(list, columns, row, false),
        Test::Compare(left, order, right) => {
            Some(compare(value(left, columns, row)?, *order, value(right, columns, row)?))
        }
        Test::Between(operand, first, order, last) => {
            let operand = value(operand, columns, row)?;
            let (first, last) = (value(first, columns, row)?, value(last, columns, row)?);
            Some(compare(operand, Order::GreaterEqual, first) && compare(operand, *order, last))
        }
    }
}

fn decided(list: &[Test], columns: &[Block<'_>], row: usize, decisive: bool) -> Option<bool> {
    let mut is_open = false;
    for test in list {
        match holds(test, columns, row) {
            Some(held) if held == decisive => return Some(decisive),
            Some(_) => {}
            None => is_open = true,
        }
    }
    (!is_open).then_some(!decisive)
}

fn value<'a>(operand: &'a Operand, columns: &'a [Block<'_>], row: usize) -> Option<Scalar<'a>> {
    match operand {
        Operand::Column(column) => columns[*column].scalar(row),
        Operand::Bool(value) => Some(Scalar::Bool(*value)),
        Operand::Int(value) => Some(Scalar::Int(*value)),
        Operand::Float(value) => Some(Scalar::Float(*value)),
        Operand::Text(text) => Some(Scalar::Text(text.as_bstr())),
    }
}

fn compare(left: Scalar<'_>, order: Order, right: Scalar<'_>) -> bool {
    let found = match (left, right) {
        (Scalar::Bool(a), Scalar::Bool(b)) => Some(a.cmp(&b)),
        (Scalar::Int(a), Scalar::Int(b)) => Some(a.cmp(&b)),
        (Scalar::Int(a), Scalar::Float(b)) => (a as f64).partial_cmp(&b),
        (Scalar::Float(a), Scalar::Int(b)) => a.partial_cmp(&(b as f64)),
        (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(&b),
        (Scalar::Text(a), Scalar::Text(b)) => Some(a.cmp(b)),
        // resolving has compared the types
        _ => None,
    };
    // as always with NaN: unequal to everything
    match order {
        Order::Equal => found == Some(Ordering::Equal),
        Order::Unequal => found != Some(Ordering::Equal),
        Order::Less => found == Some(Ordering::Less),
        Order::LessEqual => matches!(found, Some(Ordering::Less | Ordering::Equal)),
        Order::Greater => found == Some(Ordering::Greater),
        Order::GreaterEqual => matches!(found, Some(Ordering::Greater | Ordering::Equal)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, Fails};
    use crate::stman::contradictory::Contradictory;

    #[test]
    fn rows_have_one_value_each() {
        let cells = Box::new(Contradictory(Values::Int(vec![1; 3])));
        let values = Values::Int(Vec::new());
        let mut block = Block { name: "A".into(), cells, is_defined: true, values, places: None };
        block.read(0..4).fails(ErrorKind::Format, "rows 0..4 have 3 elements, expected 4");
    }
}
