//! One interface to the content of a table: a casacore table, a native HDF5 file (columns as datasets), or a view of these
//! (salvaged, selected, averaged, joined).

use std::ops::Range;
use std::path::Path;

use super::average::plan::AveragePlan;
use super::average::windows::WindowPlan;
use super::chosen::Chosen;
use super::intact::{ColumnDamage, Intact};
use super::joined::JoinedCells;
use super::row_set::RowSet;
use crate::damage::Damage;
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{Attribute, VirtualSource};
use crate::native::{AVERAGED, DatasetInfo, Layout, NativeTable, Part, StoredBlock, StoredDigests, Written};
use crate::schema::{TableDesc, TableInfo};
use crate::table::{Access, ColumnCells, ColumnInfo, ManagerInfo, ManagerSpec, RecordCells, Table};
use crate::value::{DataType, Record, Shape, Values};

/// The content of one table: a table directory, a group in a native HDF5 file, or a view of these with other rows or cells.
pub(crate) enum Content {
    Casacore(Box<Table>),
    Native(Box<NativeTable>),
    /// A view of a damaged table: damaged cells are undefined, and damaged columns cannot be opened.
    Salvaged(Box<Salvaged>),
    /// A view of a table that has only some of its rows.
    Selected(Box<Selected>),
    /// A view of a table whose cells are averaged in time, in channels or both when they are read.
    Averaged(Box<AveragedTable>),
    /// The main tables of several native HDF5 files as one table: the rows of one file after those of another.
    Joined(Box<Joined>),
}

impl Content {
    pub(crate) fn casacore(table: Table) -> Self {
        Content::Casacore(Box::new(table))
    }

    /// Makes a view of the table `whole` whose cells are averaged as the plan `how` tells.
    pub(super) fn averaged(whole: Content, how: HowAveraged) -> Self {
        Content::Averaged(Box::new(AveragedTable { whole, how }))
    }

    pub(crate) fn rows(&self) -> u64 {
        match self {
            Content::Casacore(table) => table.rows(),
            Content::Native(table) => table.rows(),
            Content::Salvaged(table) => table.whole.rows(),
            Content::Selected(table) => table.rows.len(),
            Content::Averaged(table) => match &table.how {
                HowAveraged::Rows(plan) => plan.rows(),
                HowAveraged::Windows(_) => table.whole.rows(),
            },
            Content::Joined(table) => table.rows(),
        }
    }

    /// Converts a row number of this view to the row number in the whole table, both counted from 0. The two are equal
    /// unless rows are selected.
    pub(crate) fn original_row(&self, row: u64) -> u64 {
        match self {
            Content::Selected(table) => table.rows.row(row).unwrap_or(row),
            Content::Averaged(table) if table.keeps_rows() => table.whole.original_row(row),
            _ => row,
        }
    }

    /// The attributes of the root group, if the table is in one HDF5 file; `None` for casacore tables and joined files.
    pub(crate) fn root_attributes(&self) -> Result<Option<Vec<(String, Attribute)>>> {
        self.as_native().map(NativeTable::root_attributes).transpose()
    }

    /// Describes how the rows of the table were averaged: `time=10s,chan=4`. If they were averaged when the HDF5 file
    /// was made and are averaged again on reading, both are given, separated by `; `. `None` without averaging.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(crate) fn averaging(&self) -> Result<Option<String>> {
        if let Content::Joined(table) = self {
            return table.first().averaging();
        }
        let of_file = match self.as_native() {
            Some(native) => native.root_attributes()?.into_iter().find(|(name, _)| name == AVERAGED),
            None => None,
        };
        let of_file = of_file.and_then(|(_, attribute)| match attribute.values() {
            Values::String(strings) => strings.first().map(ToString::to_string),
            _ => None,
        });
        let now = match self {
            Content::Averaged(table) => match &table.how {
                HowAveraged::Rows(plan) => Some(plan.averaging().to_string()),
                HowAveraged::Windows(_) => None,
            },
            _ => None,
        };
        Ok(match (of_file, now) {
            (Some(before), Some(now)) => Some(format!("{before}; {now}")),
            (before, now) => before.or(now),
        })
    }

    /// The number (from 0) that each row has in the table it was selected from; `None` if no rows were selected, or no numbers
    /// are known.
    pub(crate) fn row_numbers(&self) -> Result<Option<Vec<i64>>> {
        match self {
            Content::Casacore(_) => Ok(None),
            Content::Native(table) => table.row_numbers(),
            Content::Salvaged(table) => table.whole.row_numbers(),
            Content::Selected(table) => {
                Ok(Some((0..table.rows.len()).map(|row| self.original_row(row) as i64).collect()))
            }
            Content::Averaged(table) if table.keeps_rows() => table.whole.row_numbers(),
            Content::Averaged(_) | Content::Joined(_) => Ok(None),
        }
    }

    /// The keywords of the table, including those that name subtables.
    pub(crate) fn keywords(&self) -> &Record {
        match self {
            Content::Casacore(table) => table.keywords(),
            Content::Native(table) => table.keywords(),
            Content::Salvaged(table) => table.whole.keywords(),
            Content::Selected(table) => table.whole.keywords(),
            Content::Averaged(table) => table.whole.keywords(),
            Content::Joined(table) => table.first().keywords(),
        }
    }

    pub(crate) fn info(&self) -> &TableInfo {
        match self {
            Content::Casacore(table) => table.info(),
            Content::Native(table) => table.info(),
            Content::Salvaged(table) => table.whole.info(),
            Content::Selected(table) => table.whole.info(),
            Content::Averaged(table) => table.whole.info(),
            Content::Joined(table) => table.first().info(),
        }
    }

    /// Description, fixed shape and data manager of each column, in the order of the table description.
    pub(crate) fn columns(&self) -> &[ColumnInfo] {
        match self {
            Content::Casacore(table) => table.columns(),
            Content::Native(table) => table.columns(),
            Content::Salvaged(table) => &table.columns,
            Content::Selected(table) => table.whole.columns(),
            Content::Averaged(table) => match &table.how {
                HowAveraged::Rows(plan) => plan.columns(),
                HowAveraged::Windows(plan) => plan.columns(),
            },
            Content::Joined(table) => table.columns(),
        }
    }

    /// Opens the cells of a column as [`cells`](Self::cells) does, also if only a part of them can be read.
    pub(super) fn cells_in_part(&self, index: usize) -> Result<Box<dyn ColumnCells + '_>> {
        match self {
            Content::Casacore(table) => Ok(decoded(table, index, table.cells_in_part(index)?)),
            other => other.cells(index),
        }
    }

    /// Opens the cells of a column, by its number from 0; the cells of a column of type Record are decoded to records.
    pub(crate) fn cells(&self, index: usize) -> Result<Box<dyn ColumnCells + '_>> {
        match self {
            Content::Casacore(table) => Ok(decoded(table, index, table.cells(index)?)),
            Content::Native(table) => table.cells(index),
            Content::Salvaged(table) => table.cells(index),
            Content::Selected(table) => Ok(Box::new(Chosen { cells: table.whole.cells(index)?, rows: &table.rows })),
            Content::Averaged(table) => {
                let open = |index: usize| table.whole.cells(index);
                match &table.how {
                    HowAveraged::Rows(plan) => plan.cells(index, &open),
                    HowAveraged::Windows(plan) => plan.cells(index, &open),
                }
            }
            Content::Joined(table) => table.cells(index),
        }
    }

    /// Frees the memory in which a casacore table keeps what it has decoded of a column, given by its number from 0; later reads decode it again.
    /// The cells of an HDF5 file free theirs when they are dropped.
    pub(crate) fn forget(&self, index: usize) {
        match self {
            Content::Casacore(table) => {
                if let Ok(cells) = table.cells(index) {
                    cells.forget();
                }
            }
            Content::Salvaged(table) => table.whole.forget(index),
            Content::Selected(table) => table.whole.forget(index),
            Content::Averaged(table) => table.whole.forget(index),
            Content::Native(_) | Content::Joined(_) => {}
        }
    }

    /// Opens the cells of a column, by its number from 0, so that they do not borrow from this table; `None` if it is not in an
    /// HDF5 file.
    pub(crate) fn owned_cells(&self, index: usize) -> Result<Option<Box<dyn ColumnCells>>> {
        self.as_native().map(|table| table.cells(index)).transpose()
    }

    /// The error that reading a column, by its number from 0, would return, as far as it is known without opening the column;
    /// `None` if none is known.
    pub(crate) fn unreadable(&self, index: usize) -> Option<Error> {
        match self {
            Content::Casacore(table) => table.cells(index).err(),
            Content::Native(table) => table.missing(index),
            Content::Salvaged(table) if matches!(table.damaged[index], ColumnDamage::Rows(_)) => None,
            Content::Salvaged(table) => table.whole.unreadable(index),
            Content::Selected(table) => table.whole.unreadable(index),
            Content::Averaged(table) => table.whole.unreadable(index),
            Content::Joined(table) => table.unreadable(index),
        }
    }

    /// The last component of the path of the subtable that a keyword stores as `stored`.
    pub(crate) fn table_name(&self, stored: &[u8]) -> String {
        match self {
            Content::Casacore(table) => {
                table.resolve(stored).file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            Content::Native(table) => table.table_name(stored),
            Content::Salvaged(table) => table.whole.table_name(stored),
            Content::Selected(table) => table.whole.table_name(stored),
            Content::Averaged(table) => table.whole.table_name(stored),
            Content::Joined(table) => table.first().table_name(stored),
        }
    }

    /// The casacore table that the content is read from; `None` if the content is in an HDF5 file.
    pub(crate) fn as_table(&self) -> Option<&Table> {
        match self {
            Content::Casacore(table) => Some(table),
            Content::Native(_) | Content::Joined(_) => None,
            Content::Salvaged(table) => table.whole.as_table(),
            Content::Selected(table) => table.whole.as_table(),
            Content::Averaged(table) => table.whole.as_table(),
        }
    }

    /// The table of a native HDF5 file that the content is read from; `None` for a casacore table and for joined files.
    fn as_native(&self) -> Option<&NativeTable> {
        match self {
            Content::Casacore(_) | Content::Joined(_) => None,
            Content::Native(table) => Some(table),
            Content::Salvaged(table) => table.whole.as_native(),
            Content::Selected(table) => table.whole.as_native(),
            Content::Averaged(table) => table.whole.as_native(),
        }
    }

    /// The damaged parts that were left out when the native HDF5 file of this main table was made; empty for all other tables.
    pub(crate) fn damage(&self) -> &[Damage] {
        self.as_native().map_or(&[], NativeTable::damage)
    }

    /// Describes how each dataset of a column, by the column's number from 0, is stored; empty if the table is not in an HDF5
    /// file.
    pub(crate) fn storage(&self, index: usize) -> Result<Vec<DatasetInfo>> {
        self.as_native().map_or(Ok(Vec::new()), |table| table.storage(index))
    }

    /// The digests of the table that were stored in its native HDF5 file when the file was made; `None` if the table is
    /// not in such a file, or the file has no digests of it.
    pub(crate) fn stored_digests(&self) -> Result<Option<StoredDigests>> {
        self.as_native().map_or(Ok(None), NativeTable::stored_digests)
    }

    /// The path of the dataset that has all cells of a column, by its number from 0; `None` if it has several, or the table is
    /// not in an HDF5 file.
    pub(crate) fn only_dataset(&self, index: usize) -> Option<String> {
        self.as_native()?.only_dataset(index)
    }

    /// The path of the dataset of a dense column (all cells in one dataset), and the range of bytes in the file of each
    /// chunk that has cells of `rows`. `None` for other columns, and if the table is not in an HDF5 file.
    pub(crate) fn chunks_of_rows(&self, index: usize, rows: &Range<u64>) -> Result<Option<(String, Vec<Range<u64>>)>> {
        self.as_native().map_or(Ok(None), |table| table.chunks_of_rows(index, rows))
    }

    /// The datasets of a column, by its number from 0: for each the kind of its data (all cells, a hypercube, offsets
    /// of cells …) and its path from the root; empty if the table is not in an HDF5 file.
    pub(crate) fn dataset_paths(&self, index: usize) -> Result<Vec<(Part, String)>> {
        self.as_native().map_or(Ok(Vec::new()), |table| table.dataset_paths(index))
    }

    /// The hypercubes of a column, by its number from 0, if their chunks are plain little-endian elements and those of
    /// each hypercube are contiguous in the HDF5 file; empty for other columns and tables.
    pub(crate) fn blocks(&self, index: usize) -> Result<Vec<StoredBlock>> {
        match self {
            Content::Native(table) => table.blocks(index),
            _ => Ok(Vec::new()),
        }
    }

    /// The path of the group of the subtable that a keyword stores as `stored`; `None` if the table is not in an HDF5 file.
    pub(crate) fn group(&self, stored: &[u8]) -> Option<&str> {
        match self {
            Content::Joined(table) => table.first().group(stored),
            _ => self.as_native()?.group(stored),
        }
    }

    /// The number (from 0) that the first row has in the table it was selected from; `None` if this is not an HDF5 file that
    /// records it.
    pub(super) fn first_row(&self) -> Result<Option<i64>> {
        self.as_native().map_or(Ok(None), NativeTable::first_row)
    }

    /// The datasets of the joined files that together form a virtual dataset of shape `dataset` (fastest axis first)
    /// with the elements of a column, by its number from 0. `None` if the table is not joined, or the elements must be
    /// copied.
    pub(crate) fn virtual_sources(&self, index: usize, dataset: &Shape) -> Result<Option<Vec<VirtualSource>>> {
        match self {
            Content::Joined(table) => table.virtual_sources(index, dataset),
            _ => Ok(None),
        }
    }

    /// How the casacore table is or was stored (byte order, table description, data managers), as far as that is known.
    pub(crate) fn layout(&self) -> Layout {
        let table = match self {
            Content::Casacore(table) => table,
            Content::Native(table) => return table.layout(),
            Content::Salvaged(table) => return table.whole.layout(),
            Content::Selected(table) => return table.whole.layout(),
            Content::Averaged(table) => return table.whole.layout(),
            Content::Joined(table) => return table.first().layout(),
        };
        let desc = TableDesc { keywords: Record::default(), columns: Vec::new(), ..table.description().clone() };
        let manager = |manager: ManagerInfo<'_>| ManagerSpec {
            type_name: manager.type_name.to_owned(),
            name: manager.name.to_owned(),
            parameters: manager.parameters,
        };
        let managers = table.managers().map(manager).collect();
        Layout { order: Some(table.byte_order()), desc, managers, bindings: table.manager_numbers() }
    }

    /// What users have changed in the HDF5 file of the table since it was made, and what they have added to it that no table
    /// has, in sentences; nothing for a casacore table. `coordinates` gives those of its axes as it is in the file.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(crate) fn edits(&self, coordinates: &dyn Fn() -> Vec<(String, Values)>) -> Result<Vec<String>> {
        match self {
            Content::Joined(table) => table.first().edits(&Vec::new),
            Content::Averaged(table) => table.whole.edits(&Vec::new),
            content => content.as_native().map_or(Ok(Vec::new()), |table| table.edits(coordinates)),
        }
    }

    /// Info and comments that the HDF5 file of the table was made with, if attributes have been edited since.
    ///
    /// # Errors
    /// Those of reading the attributes.
    pub(crate) fn written(&self) -> Result<Option<&Written>> {
        self.as_native().map_or(Ok(None), NativeTable::written)
    }
}

/// A view of a damaged table in which damaged cells are undefined.
pub(crate) struct Salvaged {
    whole: Content,
    /// Descriptions of the columns; those with damaged rows are marked as columns whose cells may be undefined.
    columns: Vec<ColumnInfo>,
    damaged: Vec<ColumnDamage>,
}

/// The cells of a table's column; those of type Record are decoded to records.
fn decoded<'a>(table: &Table, index: usize, cells: &'a dyn ColumnCells) -> Box<dyn ColumnCells + 'a> {
    match table.columns()[index].data_type() {
        DataType::Record => Box::new(RecordCells(cells)),
        _ => Box::new(Borrowed(cells)),
    }
}

impl Salvaged {
    pub(super) fn new(whole: Content, damaged: Vec<ColumnDamage>) -> Self {
        let mut columns = whole.columns().to_vec();
        for (info, damage) in columns.iter_mut().zip(&damaged) {
            info.may_be_undefined |= matches!(damage, ColumnDamage::Rows(_));
        }
        Salvaged { whole, columns, damaged }
    }

    /// The cells of a column, by its number from 0; damaged cells appear as undefined. Fails if the whole column is
    /// damaged.
    fn cells(&self, index: usize) -> Result<Box<dyn ColumnCells + '_>> {
        match &self.damaged[index] {
            ColumnDamage::None => self.whole.cells(index),
            ColumnDamage::Whole(error) => Err(error.clone()),
            ColumnDamage::Rows(damaged) => Ok(Box::new(Intact { cells: self.whole.cells_in_part(index)?, damaged })),
        }
    }
}

/// A view of a table that has only some of its rows.
pub(crate) struct Selected {
    whole: Content,
    rows: RowSet,
}

impl Selected {
    pub(super) fn new(whole: Content, rows: RowSet) -> Self {
        Selected { whole, rows }
    }
}

/// A view of a table whose cells are averaged when they are read, with the plan for it.
pub(crate) struct AveragedTable {
    whole: Content,
    how: HowAveraged,
}

/// The plan by which a table is averaged: a plan for the main table, or one for SPECTRAL_WINDOW.
pub(super) enum HowAveraged {
    /// Plan for averaging the main table of a MeasurementSet: its rows in time, its channels, or both.
    Rows(AveragePlan),
    /// Plan for averaging channels in the table SPECTRAL_WINDOW, all rows of which are kept.
    Windows(WindowPlan),
}

impl AveragedTable {
    /// Whether each averaged row is made of a single row, with the same number, of the table that is averaged (itself
    /// perhaps a selection of rows): false if rows are averaged in time.
    fn keeps_rows(&self) -> bool {
        match &self.how {
            HowAveraged::Rows(plan) => plan.keeps_rows(),
            HowAveraged::Windows(_) => true,
        }
    }
}

/// A main table whose rows are divided among several native HDF5 files, its parts.
pub(crate) struct Joined {
    pub(super) parts: Vec<JoinedPart>,
    /// Descriptions of the columns of the joined table: a column may have undefined cells if it may in one of the
    /// parts, and has a fixed shape only if the shape is the same in all parts.
    columns: Vec<ColumnInfo>,
}

/// One of the native HDF5 files that are joined to one table; it has some of the table's rows.
pub(super) struct JoinedPart {
    pub(super) content: Content,
    /// Path of the native HDF5 file that is the part, relative to the directory of the new HDF5 file whose virtual
    /// datasets join the parts to one table.
    pub(super) file: String,
    /// Row number, in the joined table (from 0), of the first row of the part.
    pub(super) start: u64,
    pub(super) rows: u64,
}

impl Joined {
    /// Joins the main tables of at least one native HDF5 file to one table: the rows of each file
    /// follow those of the file before it in `parts`.
    pub(super) fn new(parts: Vec<JoinedPart>) -> Self {
        let columns = join_columns(&parts);
        Joined { parts, columns }
    }

    pub(super) fn first(&self) -> &Content {
        &self.parts[0].content
    }

    pub(super) fn rows(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.start + part.rows)
    }

    pub(super) fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    pub(super) fn unreadable(&self, index: usize) -> Option<Error> {
        self.parts.iter().find_map(|part| part.content.unreadable(index))
    }

    pub(super) fn cells(&self, index: usize) -> Result<Box<dyn ColumnCells + '_>> {
        let mut parts = Vec::new();
        for part in &self.parts {
            let cells = part.content.cells(index).with_context(|| Context::path(Path::new(&part.file)))?;
            parts.push((part.start, cells));
        }
        Ok(Box::new(JoinedCells { parts, rows: self.rows() }))
    }

    /// The datasets, one from each joined file that has rows, that a virtual dataset of shape
    /// `dataset` joins along its slowest axis to hold the elements of a column, by the column's
    /// number from 0. `None` for strings and records, and if the datasets do not form this shape.
    pub(super) fn virtual_sources(&self, index: usize, dataset: &Shape) -> Result<Option<Vec<VirtualSource>>> {
        if !self.columns[index].data_type().is_fixed_size() {
            return Ok(None);
        }
        let Some((cell, rows)) = dataset.split_last() else { return Ok(None) };
        let (mut sources, mut count) = (Vec::new(), 0);
        for part in self.parts.iter().filter(|part| part.rows > 0) {
            let paths = part.content.dataset_paths(index)?;
            let found = match paths.as_slice() {
                [(Part::Data, path)] => Some((Part::Data, path)),
                _ => paths.iter().find(|(of, _)| *of == Part::Values).map(|(of, path)| (*of, path)),
            };
            let Some((of, path)) = found else { return Ok(None) };
            let shapes = part.content.storage(index)?;
            let stored = shapes.iter().find(|stored| path.ends_with(&format!("/{}", stored.name)));
            let Some(shape) = stored.filter(|stored| stored.elsewhere.is_none()).map(|stored| &stored.shape) else {
                return Ok(None);
            };
            let fits = shape.split_last().is_some_and(|(of_part, _)| of_part == cell);
            count += match of {
                Part::Data if fits && !cell.is_empty() => part.rows,
                Part::Data if cell.is_empty() => shape.elements()?,
                Part::Values if cell.is_empty() => shape.elements()?,
                _ => return Ok(None),
            };
            sources.push(VirtualSource { file: part.file.clone(), dataset: path.clone(), shape: shape.clone() });
        }
        Ok((count == rows && count > 0).then_some(sources))
    }
}

/// Describes the columns of the joined table, from the descriptions in all of its parts.
fn join_columns(parts: &[JoinedPart]) -> Vec<ColumnInfo> {
    let mut columns = parts.first().map_or_else(Vec::new, |first| first.content.columns().to_vec());
    for part in parts {
        for (column, other) in columns.iter_mut().zip(part.content.columns()) {
            column.may_be_undefined |= other.may_be_undefined;
            if column.shape != other.shape {
                column.shape = None;
            }
        }
    }
    columns
}

/// Lets borrowed cells of a column be used where a `Box` of owned cells is expected.
struct Borrowed<'a>(&'a dyn ColumnCells);

impl ColumnCells for Borrowed<'_> {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        self.0.cell_shape(row)
    }

    fn read_cell(&self, row: u64, region: Option<&crate::value::Region>, out: &mut Values) -> Result<()> {
        self.0.read_cell(row, region, out)
    }

    fn read_rows(&self, rows: std::ops::Range<u64>, out: &mut Values) -> Result<()> {
        self.0.read_rows(rows, out)
    }

    fn read_plain(
        &self,
        runs: &mut dyn Iterator<Item = std::ops::Range<u64>>,
        out: &mut [u8],
    ) -> Option<crate::value::ByteOrder> {
        self.0.read_plain(runs, out)
    }

    fn access(&self) -> Access {
        self.0.access()
    }

    fn shapes(&self, rows: std::ops::Range<u64>) -> Result<Vec<Option<Shape>>> {
        self.0.shapes(rows)
    }

    fn same_shape(&self, rows: &std::ops::Range<u64>) -> Option<Shape> {
        self.0.same_shape(rows)
    }

    fn tiling(&self, max_cubes: usize) -> Option<crate::table::Tiling<'_>> {
        self.0.tiling(max_cubes)
    }

    fn forget(&self) {
        self.0.forget();
    }

    fn extents(&self, rows: u64, max_cubes: usize, each: &mut crate::table::EachExtent<'_>) -> Result<()> {
        self.0.extents(rows, max_cubes, each)
    }
}
