//! Compares two sources (tables with their subtables) value by value, however they are stored.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use bstr::{BString, ByteSlice};
use rayon::prelude::*;

use super::blocks::{READ_BYTES, RowBlock, RowBlocks, Shapes};
use super::shown::{self, index_of};
use super::{Content, Source, SourceTable, coordinates};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt, column_context as place};
use crate::limits;
use crate::native::is_main;
use crate::output::Damage;
use crate::progress::Progress;
use crate::stman::FORWARD_TABLES;
use crate::table::{ColumnCells, ColumnInfo, Table};
use crate::value::{Record, Shape, Value, Values};

/// Result of comparing two sources value by value, or a native HDF5 file with its stored digests.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Comparison {
    /// Number of tables that were compared. Of two sources: tables that both have. Of a native HDF5
    /// file and the digests that it stores: tables that have digests.
    pub tables: u64,
    /// Number of columns that were compared. Of two sources: columns that both have, except those
    /// that neither can read (one that only one can read makes the comparison fail, unless its type
    /// or keywords differ). Of a native HDF5 file and the digests that it stores: columns that have
    /// a digest.
    pub columns: u64,
    /// Number of cells that were compared, directly or by a digest of their column.
    pub cells: u64,
    /// Number of original files embedded in a restorable HDF5 file whose SHA-256 was compared with
    /// the stored one.
    pub files: u64,
    /// Descriptions of tables and columns that were not compared: subtables that keywords name but
    /// both sources lack, columns that neither can read, parts that both left out as damaged,
    /// tables or columns without a stored digest.
    pub skipped: Vec<String>,
    /// The first difference of each column, keyword set or table; and all parts that only one of
    /// the sources left out because they were damaged.
    pub differences: Vec<Difference>,
    /// The parts that either source left out because they were damaged; they were not compared.
    pub damage: Vec<Damage>,
}

/// A difference that was found between two sources.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Difference {
    /// Name of the table that differs: `.` for the main table, else the keywords that lead to it,
    /// `ANTENNA` or `A/B`.
    pub table: String,
    /// Name of the column that differs; `None` if the table itself does.
    pub column: Option<String>,
    /// Number of the row that differs, from 0; `None`: the difference is one of the whole column or
    /// table.
    pub row: Option<u64>,
    /// Indices of the element in the cell, from 0, slowest axis first; `None`: the difference is
    /// not one of a single element.
    pub index: Option<Vec<u64>>,
    /// Description of the first source's value at the difference.
    pub left: String,
    /// Description of the second source's value at the difference.
    pub right: String,
}

pub(crate) fn compare(left: &Source, right: &Source, progress: &dyn Progress) -> Result<Comparison> {
    check_averaged(left, right)?;
    compare_chosen(left, right, Chosen::Everything, progress)
}

/// Compares subtables only.
pub(super) fn compare_beside_main(left: &Source, right: &Source, progress: &dyn Progress) -> Result<Comparison> {
    compare_chosen(left, right, Chosen::NotMain, progress)
}

/// Compares a table of `left` with another one, without subtables.
pub(crate) fn compare_table(
    left: &Source,
    number: usize,
    right: &Table,
    progress: &dyn Progress,
) -> Result<Comparison> {
    let (mut all, table, place) = (Comparison::default(), &left.tables[number], Context::path(right.path()));
    let sides = (Side::of(left, table)?, Side { content: right, place: &place });
    compare_tables(&table.name, sides, None, &mut all, progress)?;
    Ok(all)
}

/// Compares subtables as a whole, and `rows` of the main tables.
pub(crate) fn compare_rows(
    left: &Source,
    right: &Source,
    rows: &[Range<u64>],
    progress: &dyn Progress,
) -> Result<Comparison> {
    compare_chosen(left, right, Chosen::RowsOfMain(rows), progress)
}

#[derive(Clone, Copy)]
enum Chosen<'a> {
    Everything,
    RowsOfMain(&'a [Range<u64>]),
    NotMain,
}

fn compare_chosen(left: &Source, right: &Source, chosen: Chosen<'_>, progress: &dyn Progress) -> Result<Comparison> {
    let mut all = Comparison::default();
    all.leave_out(left.damage(), right.damage());
    for table in &left.tables {
        if all.is_left_out(&table.name, None) || is_main(&table.name) && matches!(chosen, Chosen::NotMain) {
            continue;
        }
        let Some(other) = right.tables.iter().find(|other| other.name == table.name) else {
            // a missing subtable is missing on both sides
            if table.content.is_ok() {
                all.differ(&table.name, None, "a table", "no such table");
            }
            continue;
        };
        if let (Err(a), Err(b)) = (&table.content, &other.content)
            && a.kind() == ErrorKind::NotFound
            && b.kind() == ErrorKind::NotFound
        {
            all.skipped.push(format!("subtable {}, which is missing", table.name));
            continue;
        }
        all.tables += 1;
        let sides = (Side::of(left, table)?, Side::of(right, other)?);
        let rows = match chosen {
            Chosen::RowsOfMain(rows) if is_main(&table.name) => Some(rows),
            _ => None,
        };
        compare_tables(&table.name, sides, rows, &mut all, progress)?;
    }
    for table in &right.tables {
        if all.is_left_out(&table.name, None) || is_main(&table.name) && matches!(chosen, Chosen::NotMain) {
            continue;
        }
        if table.content.is_ok() && !left.tables.iter().any(|other| other.name == table.name) {
            all.differ(&table.name, None, "no such table", "a table");
        }
    }
    Ok(all)
}

/// Averages cannot be compared with their input: fails if rows or channels differ by averaging.
fn check_averaged(left: &Source, right: &Source) -> Result<()> {
    let main = |source: &Source| -> Result<(Option<String>, u64)> {
        let Some(Ok(content)) = source.tables.first().map(|table| &table.content) else { return Ok((None, 0)) };
        Ok((content.averaging()?, content.rows()))
    };
    let ((left_how, left_rows), (right_how, right_rows)) = (main(left)?, main(right)?);
    if left_how == right_how {
        return Ok(());
    }
    // a table made of averages need not say so
    let channels = |source: &Source| -> Vec<usize> {
        let of_windows = coordinates(source).into_iter().filter(|(role, _)| role == "chan");
        of_windows.map(|(_, frequencies)| frequencies.len()).collect()
    };
    if left_rows == right_rows && channels(left) == channels(right) {
        return Ok(());
    }
    let (averaged, how) = match (right_how, left_how) {
        (Some(how), _) => (right, how),
        (None, how) => (left, how.unwrap_or_default()),
    };
    Err(Error::usage(format!(
        "the rows were averaged ({how}): averages cannot be compared with what they were made of; `verify` with this file alone compares it with its digests"
    ))
    .context(averaged.place.clone()))
}

#[derive(Clone, Copy)]
struct Side<'a> {
    content: &'a Content,
    place: &'a Context,
}

impl<'a> Side<'a> {
    fn of(source: &'a Source, table: &'a SourceTable) -> Result<Self> {
        Ok(Side { content: table.content().context(&source.place)?, place: &source.place })
    }
}

impl Comparison {
    /// Damaged parts are differences, unless both sources left them out.
    fn leave_out(&mut self, left: &[Damage], right: &[Damage]) {
        let is_same =
            |a: &Damage, b: &Damage| (&a.table, &a.column, &a.rows, &a.part) == (&b.table, &b.column, &b.rows, &b.part);
        let difference = |damage: &Damage| {
            let what = match (&damage.column, &damage.rows, &damage.part) {
                (_, _, Some(part)) => part.clone(),
                (None, ..) => "a table".to_owned(),
                (_, None, _) => "a column".to_owned(),
                (_, Some(rows), _) => format!("rows {} to {}", rows.start, rows.end.saturating_sub(1)),
            };
            let Damage { table, column, rows, reason, .. } = damage.clone();
            let (row, right) = (rows.map(|rows| rows.start), format!("left out as damaged: {reason}"));
            Difference { table, column, row, index: None, left: what, right }
        };
        for damage in left {
            match right.iter().any(|other| is_same(damage, other)) {
                true => self.skipped.push(format!("{damage} (left out of both)")),
                false => {
                    let mut difference = difference(damage);
                    std::mem::swap(&mut difference.left, &mut difference.right);
                    self.differences.push(difference);
                }
            }
            self.damage.push(damage.clone());
        }
        for damage in right.iter().filter(|damage| !left.iter().any(|other| is_same(other, damage))) {
            self.differences.push(difference(damage));
            self.damage.push(damage.clone());
        }
    }

    /// Whether either source left out the whole table, or the whole column.
    fn is_left_out(&self, table: &str, column: Option<&str>) -> bool {
        self.damage.iter().any(|damage| damage.is_all_of(table, column))
    }

    /// Rows that neither source left out.
    fn intact_rows(&self, table: &str, column: &str, rows: u64) -> Vec<Range<u64>> {
        let of_column = |damage: &&Damage| damage.table == table && damage.column.as_deref() == Some(column);
        let mut damaged: Vec<_> =
            self.damage.iter().filter(of_column).filter_map(|damage| damage.rows.clone()).collect();
        damaged.sort_by_key(|range| range.start);
        let (mut intact, mut start) = (Vec::new(), 0);
        damaged.push(rows..rows);
        for range in damaged {
            if start < range.start.min(rows) {
                intact.push(start..range.start.min(rows));
            }
            start = start.max(range.end);
        }
        intact
    }

    pub(crate) fn differ(
        &mut self,
        table: &str,
        column: Option<&str>,
        left: impl Into<String>,
        right: impl Into<String>,
    ) {
        self.differences.push(Difference {
            table: table.to_owned(),
            column: column.map(str::to_owned),
            row: None,
            index: None,
            left: left.into(),
            right: right.into(),
        });
    }
}

/// `None`: all intact rows.
fn compare_tables(
    name: &str,
    sides: (Side<'_>, Side<'_>),
    chosen: Option<&[Range<u64>]>,
    all: &mut Comparison,
    progress: &dyn Progress,
) -> Result<()> {
    let (left, right) = (sides.0.content, sides.1.content);
    if left.rows() != right.rows() {
        all.differ(name, None, format!("{} rows", left.rows()), format!("{} rows", right.rows()));
        return Ok(());
    }
    if let Some((a, b)) = compare_records(left.keywords(), right.keywords(), left, right) {
        all.differ(name, None, a, b);
    }
    if left.info() != right.info() {
        let (left, right) = shown::infos(left.info(), right.info());
        all.differ(name, None, left, right);
    }
    let pairs = pair_columns(name, left, right, all);
    all.columns += pairs.len() as u64;
    let cells = AtomicU64::new(0);
    let known = &*all;
    let compared: Vec<Result<Option<Difference>>> = pairs
        .into_par_iter()
        .map(|(a, b)| {
            let column = left.columns()[a].desc.name.to_str_lossy().into_owned();
            let rows = chosen.map_or_else(|| known.intact_rows(name, &column, left.rows()), <[_]>::to_vec);
            let found = compare_columns((sides.0, a), (sides.1, b), &rows, &cells, progress)
                .with_context(|| place(name, &column))?;
            Ok(found.map(|found| found.of(name, column)))
        })
        .collect();
    for difference in compared {
        all.differences.extend(difference?);
    }
    all.cells += cells.into_inner();
    Ok(())
}

/// Columns of both tables that at least one can read; others are differences or skipped.
fn pair_columns(name: &str, left: &Content, right: &Content, all: &mut Comparison) -> Vec<(usize, usize)> {
    let position = |content: &Content, info: &ColumnInfo| {
        content.columns().iter().position(|other| other.desc.name == info.desc.name)
    };
    let is_unreadable =
        |content: &Content, index: usize| content.cells(index).is_err_and(|error| error.may_be_left_out());
    let mut pairs = Vec::new();
    for (index, info) in left.columns().iter().enumerate() {
        let column = info.desc.name.to_str_lossy();
        if all.is_left_out(name, Some(&column)) {
            continue;
        }
        match position(right, info) {
            Some(other) if is_unreadable(left, index) && is_unreadable(right, other) => {
                all.skipped.push(place(name, &column).to_string());
            }
            Some(other) => pairs.push((index, other)),
            None => all.differ(name, Some(&column), "a column", "no such column"),
        }
    }
    for info in right.columns().iter().filter(|info| position(left, info).is_none()) {
        let column = info.desc.name.to_str_lossy();
        if !all.is_left_out(name, Some(&column)) {
            all.differ(name, Some(&column), "no such column", "a column");
        }
    }
    pairs
}

struct CellDifference {
    row: Option<u64>,
    index: Option<Vec<u64>>,
    left: String,
    right: String,
}

impl CellDifference {
    /// A difference of type or keywords, and not of a cell.
    fn of_column((left, right): (String, String)) -> Self {
        CellDifference { row: None, index: None, left, right }
    }

    fn of(self, table: &str, column: String) -> Difference {
        let CellDifference { row, index, left, right } = self;
        Difference { table: table.to_owned(), column: Some(column), row, index, left, right }
    }
}

fn compare_columns(
    (Side { content: left, place: left_place }, a): (Side<'_>, usize),
    (Side { content: right, place: right_place }, b): (Side<'_>, usize),
    rows: &[Range<u64>],
    cells: &AtomicU64,
    progress: &dyn Progress,
) -> Result<Option<CellDifference>> {
    let (info, other) = (&left.columns()[a], &right.columns()[b]);
    if shown::cells(info) != shown::cells(other) {
        return Ok(Some(CellDifference::of_column((shown::cells(info), shown::cells(other)))));
    }
    if let Some(sides) = compare_records(&info.desc.keywords, &other.desc.keywords, left, right) {
        return Ok(Some(CellDifference::of_column(sides)));
    }
    limits::rows(left.rows()).context(left_place)?;
    let (a, b) = (left.cells(a).context(left_place)?, right.cells(b).context(right_place)?);
    let mut values = (Values::new(info.data_type()), Values::new(info.data_type()));
    for block in rows.iter().flat_map(|rows| RowBlocks::new(info, &*a, rows.clone(), READ_BYTES)) {
        progress.go_on()?;
        let block = block.context(left_place)?;
        if let Some(found) =
            compare_shapes(&block.shapes, block.rows.start, block.rows.end, &*b).context(right_place)?
        {
            return Ok(Some(found));
        }
        values.0.clear();
        values.1.clear();
        block.read(&*a, &mut values.0).context(left_place)?;
        block.read(&*b, &mut values.1).context(right_place)?;
        if let Some(element) = first_difference(&values.0, &values.1, left, right) {
            let (row, index) = locate(&block, element)?;
            let (left, right) = (shown::element(&values.0, element), shown::element(&values.1, element));
            return Ok(Some(CellDifference { row: Some(row), index: Some(index), left, right }));
        }
        if !block.continues() {
            cells.fetch_add(block.rows.end - block.rows.start, Ordering::Relaxed);
        }
    }
    Ok(None)
}

fn compare_shapes(shapes: &Shapes, start: u64, end: u64, other: &dyn ColumnCells) -> Result<Option<CellDifference>> {
    if let Shapes::Same(shape) = shapes
        && other.same_shape(&(start..end)).as_ref() == Some(shape)
    {
        return Ok(None);
    }
    let show = |shape: Option<&Shape>| match shape {
        Some(shape) => format!("a cell of shape {:?}", shape.reversed()),
        None => "undefined".to_owned(),
    };
    for row in start..end {
        let expected = shapes.of((row - start) as usize);
        let found = other.cell_shape(row)?;
        if found.as_ref() != expected {
            let (left, right) = (show(expected), show(found.as_ref()));
            return Ok(Some(CellDifference { row: Some(row), index: None, left, right }));
        }
    }
    Ok(None)
}

/// Compares all bits.
fn first_difference(a: &Values, b: &Values, left: &Content, right: &Content) -> Option<usize> {
    if let (Some(x), Some(y)) = (a.le_bytes(), b.le_bytes()) {
        let size = a.data_type().size();
        let first = || x.iter().zip(y.iter()).position(|(x, y)| x != y).unwrap_or(x.len().min(y.len()));
        return (x != y).then(|| first() / size);
    }
    match (a, b) {
        (Values::Record(x), Values::Record(y)) => {
            x.iter().zip(y).position(|(x, y)| compare_records(x, y, left, right).is_some())
        }
        (Values::String(x), Values::String(y)) => x.iter().zip(y).position(|(x, y)| x != y),
        _ => None,
    }
}

/// Row and indices in its cell, slowest axis first.
fn locate(block: &RowBlock, element: usize) -> Result<(u64, Vec<u64>)> {
    let mut left = element as u64;
    if let Some(part) = &block.part {
        let index = index_of(left, &part.shape);
        let index = index.iter().zip(part.start.iter().rev()).map(|(i, start)| i + start).collect();
        return Ok((block.rows.start, index));
    }
    for row in block.rows.clone() {
        let Some(shape) = block.shapes.of((row - block.rows.start) as usize) else { continue };
        let elements = shape.elements()?;
        if left < elements {
            return Ok((row, index_of(left, shape)));
        }
        left -= elements;
    }
    Ok((block.rows.end, Vec::new()))
}

/// Last components of paths as keywords store them.
fn last_parts(stored: &[BString]) -> Vec<Option<&[u8]>> {
    stored.iter().map(|stored| stored.rsplit(|&byte| byte == b'/').next()).collect()
}

/// Describes the first difference. Subtables, and tables of forwarded columns, are equal if the
/// last components of their paths are.
fn compare_records(a: &Record, b: &Record, left: &Content, right: &Content) -> Option<(String, String)> {
    let names =
        |record: &Record| record.fields.iter().map(|field| field.name.to_string()).collect::<Vec<_>>().join(", ");
    if a.fields.len() != b.fields.len() || a.fields.iter().zip(&b.fields).any(|(a, b)| a.name != b.name) {
        return Some((format!("keywords {}", names(a)), format!("keywords {}", names(b))));
    }
    a.fields.iter().zip(&b.fields).find_map(|(x, y)| match (&x.value, &y.value) {
        (Value::Record(x), Value::Record(y)) => compare_records(x, y, left, right),
        (Value::Table(x), Value::Table(y)) => {
            let (x, y) = (left.table_name(x), right.table_name(y));
            (x != y).then(|| (format!("subtable {x}"), format!("subtable {y}")))
        }
        (Value::Scalar(v), Value::Scalar(w)) if v.same_bits(w) => None,
        (Value::Scalar(Values::String(v)), Value::Scalar(Values::String(w)))
            if FORWARD_TABLES.iter().any(|key| x.name == *key) && last_parts(v) == last_parts(w) =>
        {
            None
        }
        (Value::Array(s, v), Value::Array(t, w)) if s == t && v.same_bits(w) => None,
        (v, w) => {
            let differing = match (v, w) {
                (Value::Array(s, v), Value::Array(t, w)) if s == t && v.data_type() == w.data_type() => {
                    first_difference(v, w, left, right)
                }
                _ => None,
            };
            Some(shown::keywords(x.name.as_bstr(), (v, w), differing))
        }
    })
}
