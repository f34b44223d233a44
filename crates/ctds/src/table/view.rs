//! Opens reference tables and concatenations, which have no data of their own: rows and columns of
//! another table, or several tables one after the other. Both are called views.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use byteorder::{BigEndian, ByteOrder as _};

use super::open::open_next;
use super::open_chain::OpenChain;
use super::{ColumnInfo, OpenManager, Table, TableKind};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::io::{Paged, ReadAt};
use crate::schema::{ConcatTable, RefTable, TableInfo, resolve};
use crate::stman::{Access, ColumnCells, Columns, Manager, OtherColumn, undefined};
use crate::value::{Region, Shape, Value, Values};

/// Row numbers read from `table.dat` at a time.
const BLOCK_ROWS: u64 = 4096;

#[derive(Debug)]
struct View {
    /// The first row of each concatenated table among all rows, or of the root table; its column.
    parts: Vec<(u64, OtherColumn)>,
    /// `None` for a concatenation, which has all rows of its tables.
    selection: Option<Selection>,
}

/// The rows and columns of a reference table, as those of its root.
#[derive(Debug, Clone)]
pub struct Reference {
    selection: Selection,
    /// Name here and in the root, which may lack the column now.
    pub columns: Vec<(BString, BString)>,
    /// Rows of the root when the reference table was written.
    pub root_rows: u64,
    /// Casacore's flag of ascending row numbers, which may be wrong.
    pub ordered: bool,
}

impl Reference {
    /// Numbers in the root of `rows`; `Format` if the root lacks one of them.
    pub fn row_numbers(&self, rows: Range<u64>) -> Result<Vec<u64>> {
        self.selection.row_numbers(rows)
    }

    pub(super) fn root_rows_now(&self) -> u64 {
        self.selection.root_rows
    }
}

/// Row numbers, listed in `table.dat`. A number beyond the rows of the root is an error.
#[derive(Debug, Clone)]
struct Selection {
    file: Arc<Paged>,
    offset: u64,
    wide: bool,
    root_rows: u64,
}

impl Selection {
    fn row_numbers(&self, rows: Range<u64>) -> Result<Vec<u64>> {
        let size = if self.wide { 8 } else { 4 };
        let mut bytes = vec![0; ((rows.end - rows.start) * size) as usize];
        let offset = self.offset + rows.start * size;
        self.file.read_at(offset, &mut bytes).context("table.dat: row numbers")?;
        let number = |bytes: &[u8]| match self.wide {
            true => BigEndian::read_u64(bytes),
            false => u64::from(BigEndian::read_u32(bytes)),
        };
        let numbers: Vec<u64> = bytes.chunks_exact(size as usize).map(number).collect();
        match numbers.iter().position(|&number| number >= self.root_rows) {
            None => Ok(numbers),
            Some(at) => Err(Error::format(format!(
                "the row number at byte {} is {}, but the root table has {} rows",
                offset + at as u64 * size,
                numbers[at],
                self.root_rows
            ))
            .context(Context::member("table.dat"))),
        }
    }
}

impl Manager for View {
    fn name(&self) -> &BStr {
        self.parts.first().map_or(BStr::new(""), |(_, column)| column.manager.name())
    }

    fn column(&self, _index: usize) -> &dyn ColumnCells {
        self
    }

    fn reads(&self, _index: usize) -> u64 {
        self.parts.iter().map(|(_, column)| column.reads()).max().unwrap_or(1)
    }
}

impl View {
    fn locate(&self, row: u64) -> Result<(&dyn ColumnCells, u64)> {
        let row = match &self.selection {
            Some(selection) => selection.row_numbers(row..row + 1)?[0],
            None => row,
        };
        let part = self.parts.partition_point(|(start, _)| *start <= row);
        let (start, column) = part.checked_sub(1).map(|part| &self.parts[part]).ok_or_else(|| undefined(row))?;
        Ok((column.cells(), row - start))
    }

    /// Reads `rows`, counted through all tables of a concatenation, or those of the root table.
    fn read_parts(&self, mut rows: Range<u64>, out: &mut Values) -> Result<()> {
        for (index, (start, column)) in self.parts.iter().enumerate() {
            let end = self.parts.get(index + 1).map_or(u64::MAX, |(next, _)| *next);
            if rows.start < end && rows.start < rows.end {
                let stop = rows.end.min(end);
                column.cells().read_rows(rows.start - start..stop - start, out)?;
                rows.start = stop;
            }
        }
        Ok(())
    }
}

impl ColumnCells for View {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        let (cells, row) = self.locate(row)?;
        cells.cell_shape(row)
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let (cells, row) = self.locate(row)?;
        cells.read_cell(row, region, out)
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let Some(selection) = &self.selection else { return self.read_parts(rows, out) };
        let mut start = rows.start;
        while start < rows.end {
            let end = rows.end.min(start + BLOCK_ROWS);
            let numbers = selection.row_numbers(start..end)?;
            for run in numbers.chunk_by(|a, b| a + 1 == *b) {
                self.read_parts(run[0]..run[run.len() - 1] + 1, out)?;
            }
            start = end;
        }
        Ok(())
    }

    fn access(&self) -> Access {
        self.parts.iter().map(|(_, column)| column.cells().access()).max().unwrap_or(Access::Copied)
    }

    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        if let Some(selection) = &self.selection {
            let (_, column) = self.parts.first()?;
            return column.cells().same_shape(&(0..selection.root_rows));
        }
        let mut common = None;
        for (index, (start, column)) in self.parts.iter().enumerate() {
            let end = self.parts.get(index + 1).map_or(u64::MAX, |(next, _)| *next);
            let (from, to) = (rows.start.max(*start), rows.end.min(end));
            if from < to {
                let shape = column.cells().same_shape(&(from - start..to - start))?;
                if *common.get_or_insert_with(|| shape.clone()) != shape {
                    return None;
                }
            }
        }
        common
    }
}

/// Row numbers are read later from `file`, whose decoded content is `dat`.
pub(super) fn open_reference(
    path: &Path,
    file: Arc<dyn ReadAt>,
    dat: RefTable,
    info: TableInfo,
    chain: &OpenChain<'_>,
) -> Result<Table> {
    let root = open_part(&dat.root, path, chain)?;
    if root.rows < dat.root_rows {
        return Err(Error::format(format!(
            "the root table {} has {} rows, but had {} when rows were selected from it",
            root.path.display(),
            root.rows,
            dat.root_rows
        )));
    }
    let selection =
        Selection { file: Arc::new(Paged::new(file)?), offset: dat.row_numbers, wide: dat.wide, root_rows: root.rows };
    let mut columns = Vec::new();
    for (name, root_name) in &dat.columns {
        // as in casacore, columns that the root no longer has are gone
        if let Some(info) = root.columns.iter().find(|info| info.desc.name == *root_name) {
            let view = Columns::column(&root, root_name.as_bstr())
                .map(|column| View { parts: vec![(0, column)], selection: Some(selection.clone()) });
            let mut info = info.clone();
            info.desc.name = name.clone();
            columns.push((info, view));
        }
    }
    let kind = TableKind::Reference { root: root.path.clone() };
    let mut table = assemble(path, dat.rows, kind, &root, info, columns);
    let RefTable { columns, root_rows, ordered, .. } = dat;
    table.reference = Some(Reference { selection, columns, root_rows, ordered });
    Ok(table)
}

pub(super) fn open_concatenation(
    path: &Path,
    dat: ConcatTable,
    info: TableInfo,
    chain: &OpenChain<'_>,
) -> Result<Table> {
    let parts = dat.parts.iter().map(|name| open_part(name, path, chain)).collect::<Result<Vec<_>>>()?;
    let mut table = concatenate(path, &parts, info)?;
    table.concatenated = dat.subtables;
    Ok(table)
}

/// Rows of `parts`, with equal columns, as if at `path`; keywords of the first. Writes nothing.
pub(super) fn concatenate(path: &Path, parts: &[Table], info: TableInfo) -> Result<Table> {
    let first = parts.first().ok_or_else(|| Error::format("the concatenation has no tables"))?;
    let mut columns = Vec::new();
    for info in &first.columns {
        let mut start = 0;
        let column = |part: &Table| -> Result<(u64, OtherColumn)> {
            let column = Columns::column(part, info.desc.name.as_bstr())?;
            let other = part.columns.iter().find(|other| other.desc.name == info.desc.name);
            if other.is_none_or(|other| other.data_type() != info.data_type() || other.desc.kind != info.desc.kind) {
                let message = format!("column {} has another type than in the first table", info.desc.name);
                return Err(Error::format(message).context(Context::path(&part.path)));
            }
            let from = start;
            start += part.rows;
            Ok((from, column))
        };
        let found: Result<Vec<_>> = parts.iter().map(column).collect();
        // parts without rows hold no row
        let view = found.map(|mut found| {
            found.dedup_by(|later, earlier| {
                let empty = later.0 == earlier.0;
                if empty {
                    std::mem::swap(later, earlier);
                }
                empty
            });
            View { parts: found, selection: None }
        });
        let mut info = info.clone();
        if parts
            .iter()
            .any(|part| part.columns.iter().any(|other| other.desc.name == info.desc.name && other.shape != info.shape))
        {
            info.shape = None;
        }
        columns.push((info, view));
    }
    let rows = parts.iter().map(|part| part.rows).sum();
    let kind = TableKind::Concatenation { parts: parts.iter().map(|part| part.path.clone()).collect() };
    Ok(assemble(path, rows, kind, first, info, columns))
}

fn open_part(stored: &BString, path: &Path, chain: &OpenChain<'_>) -> Result<Table> {
    let part = resolve(stored, path);
    open_next(&part, chain).map_err(|error| match error.kind() {
        // the view exists, but cannot be read without it
        ErrorKind::NotFound => Error::format(format!("the table {} it refers to is missing", part.display())),
        _ => error,
    })
}

fn assemble(
    path: &Path,
    rows: u64,
    kind: TableKind,
    base: &Table,
    info: TableInfo,
    columns: Vec<(ColumnInfo, Result<View>)>,
) -> Table {
    let mut desc = base.desc.clone();
    desc.columns = columns.iter().map(|(info, _)| info.desc.clone()).collect();
    let bindings = (0..columns.len()).map(|column| (column, 0)).collect();
    let (columns, managers) = columns
        .into_iter()
        .enumerate()
        .map(|(number, (info, view))| {
            let opened = view.map(|view| Arc::new(view) as Arc<dyn Manager>);
            let manager = OpenManager { type_name: info.manager.clone(), sequence: number as u32, opened };
            (info, manager)
        })
        .unzip();
    Table {
        path: path.to_owned(),
        base: base.base.clone(),
        kind,
        reference: None,
        concatenated: Vec::new(),
        rows,
        order: base.order,
        desc,
        info,
        lock: None,
        columns,
        bindings,
        managers,
        storage: None,
        home: None,
    }
}

/// Parts without the subtable are skipped.
pub(super) fn subtable_paths(parts: &[Table], name: &BStr) -> Vec<std::path::PathBuf> {
    let stored = |part: &Table| match part.keywords().get(name.to_str().ok()?)? {
        Value::Table(stored) => Some(resolve(stored, &part.base)),
        _ => None,
    };
    parts.iter().filter_map(stored).collect()
}
