//! The arrays of a manifest (a list of references to chunks): the datasets that a native HDF5 file
//! of the source would have, and the places of their elements.

use std::io::Write;
use std::sync::Arc;

use super::super::to_hdf5::{
    ColumnOutline, ColumnPlan, CoordinateOutline, DatasetOutline, Outline, Plan, StoredColumn,
};
use super::super::to_hdf5::{TableOutline, TablePlan};
use super::chunks::{Found, StoredArray, StoredIn};
use super::files::Files;
use super::inline::InlineArray;
use super::left_out::LeftOutColumn;
use super::metadata::{self, ArrayMetadata};
use super::references::{References, join};
use super::tiles::Tiles;
use crate::error::{Context, Error, Result, ResultExt, column_context};
use crate::grid::ChunkCache;
use crate::h5::{Dataset, Group};
use crate::native::{Part, changed_keywords, display_name, stored_size};
use crate::progress::Progress;
use crate::source::Source;
use crate::value::{DataType, Record, Region, Shape, Values};

/// Datasets without references are left out from this size on; smaller ones are in the manifest.
const INLINE_BYTES: u64 = 1 << 20;
/// Rows in a chunk of the array `row`, if the manifest itself contains the numbers.
const ROW_NUMBERS: u64 = 1 << 17;
/// Decoded tiles kept while a column is written into the manifest.
const CACHE_BYTES: usize = 4 << 20;

pub(super) struct Arrays<'a> {
    pub(super) source: &'a Source,
    pub(super) plan: &'a Plan,
    pub(super) outline: &'a Outline,
    /// Indexed by table, column (as in `plan`), hypercube; `None` for columns not in tiles.
    pub(super) tiles: &'a [Vec<Option<Vec<Tiles>>>],
    /// HDF5 file with all other elements: the native source, or the companion.
    pub(super) stored: (Group, StoredIn),
    pub(super) files: &'a Files,
    /// Whether the arrays of the only table are in the root group of Zarr.
    pub(super) is_flat: bool,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) columns: usize,
    /// Columns with at least one array whose elements are in the manifest itself.
    pub(super) inline_columns: usize,
    pub(super) left_out: Vec<LeftOutColumn>,
}

enum Elements<'a> {
    Tiles(&'a Tiles),
    Stored(Box<StoredArray>),
    Inline(InlineArray),
}

impl Elements<'_> {
    fn metadata(&self) -> ArrayMetadata {
        match self {
            Elements::Tiles(tiles) => tiles.metadata(),
            Elements::Stored(array) => array.metadata().clone(),
            Elements::Inline(array) => array.metadata(),
        }
    }
}

impl<'a> Arrays<'a> {
    /// Columns that cannot be read, or to whose elements no reference is possible.
    pub(super) fn left_out(&self) -> Result<Vec<LeftOutColumn>> {
        let mut left_out = Vec::new();
        for (number, (table, outline)) in self.plan.tables.iter().zip(&self.outline.tables).enumerate() {
            let name = display_name(&table.name).to_owned();
            for missing in &table.missing {
                let (column, reason) = (missing.name.clone(), missing.reason.clone());
                left_out.push(LeftOutColumn { table: name.clone(), column, reason });
            }
            for (index, (column, columns)) in table.columns.iter().zip(&outline.columns).enumerate() {
                if let Err(reason) = self.column(number, index, column, columns, outline)? {
                    left_out.push(LeftOutColumn { table: name.clone(), column: column.name.clone(), reason });
                }
            }
        }
        Ok(left_out)
    }

    /// Warnings about strings, also in keywords, that Zarr cannot hold.
    pub(super) fn changed_strings(&self) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        let mut warn = |place: Context, what: &str, count: u64| {
            if count > 0 {
                warnings.push(format!(
                    "{place}: {count} {what} not UTF-8 or contain a NUL: readers of the manifest get other bytes"
                ));
            }
        };
        for table in &self.plan.tables {
            let content = self.source.tables[table.source].content()?;
            warn(
                Context::table(display_name(&table.name)),
                "strings of keywords are",
                changed_keywords(content.keywords()),
            );
            for column in &table.columns {
                let place = || column_context(&table.name, &column.name);
                let keywords = &content.columns()[column.index].desc.keywords;
                warn(place(), "strings of keywords are", changed_keywords(keywords));
                if column.data_type == DataType::String {
                    let cache = &ChunkCache::new(CACHE_BYTES);
                    let stored = StoredColumn { source: self.source, table, column, cache };
                    warn(place(), "strings are", stored.changed_strings().with_context(place)?);
                }
            }
        }
        Ok(warnings)
    }

    pub(super) fn write<W: Write>(
        &self,
        left_out: Vec<LeftOutColumn>,
        out: &mut References<W>,
        progress: &dyn Progress,
    ) -> Result<Counts> {
        let mut counts = Counts { left_out, ..Counts::default() };
        if !self.is_flat {
            write_group(out, "", &self.outline.attributes)?;
        }
        for (number, (table, outline)) in self.plan.tables.iter().zip(&self.outline.tables).enumerate() {
            let written = self.write_table(number, table, outline, out, &mut counts, progress);
            written.with_context(|| Context::table(&table.name))?;
        }
        Ok(counts)
    }

    /// Without a leading slash; empty for the root.
    fn group<'b>(&self, outline: &'b TableOutline) -> &'b str {
        if self.is_flat { "" } else { outline.group.trim_start_matches('/') }
    }

    fn write_table<W: Write>(
        &self,
        number: usize,
        table: &TablePlan,
        outline: &TableOutline,
        out: &mut References<W>,
        counts: &mut Counts,
        progress: &dyn Progress,
    ) -> Result<()> {
        let group = self.group(outline);
        write_group(out, group, &outline.attributes)?;
        self.write_row_numbers(table, outline, out, progress)?;
        let mut groups = Vec::new();
        for (index, (column, columns)) in table.columns.iter().zip(&outline.columns).enumerate() {
            progress.go_on()?;
            let mut write = || -> Result<()> {
                let Ok(datasets) = self.column(number, index, column, columns, outline)? else { return Ok(()) };
                counts.columns += 1;
                counts.inline_columns += usize::from(datasets.iter().any(|(_, at)| matches!(at, Elements::Inline(_))));
                if columns.is_group {
                    write_group(out, &join(group, &columns.link), &columns.attributes)?;
                    groups.push(columns.link.as_str());
                }
                for (number, (dataset, elements)) in datasets.iter().enumerate() {
                    let own = (!columns.is_group && number == 0).then_some(&columns.attributes);
                    self.write_dataset(table, column, outline, dataset, elements, own, out, progress)?;
                }
                Ok(())
            };
            write().with_context(|| Context::column(&column.name))?;
        }
        for coordinate in &outline.coordinates {
            let of_column = coordinate.path.rsplit_once('/').map(|(column, _)| column);
            if of_column.is_none_or(|column| groups.contains(&column)) {
                self.write_coordinate(outline, coordinate, out, progress)?;
            }
        }
        Ok(())
    }

    /// The inner error is the reason why the manifest cannot refer to the elements.
    fn column(
        &self,
        table: usize,
        index: usize,
        column: &ColumnPlan,
        outline: &'a ColumnOutline,
        of_table: &TableOutline,
    ) -> Result<Result<Vec<(&'a DatasetOutline, Elements<'a>)>, String>> {
        let tiles = self.tiles[table][index].as_deref();
        let content = self.source.tables[of_table.table].content()?;
        // datasets of a native file may have other names than a plan gives them
        let known = content.dataset_paths(column.index)?;
        let mut found = Vec::new();
        for dataset in &outline.datasets {
            let cube = match dataset.part {
                Part::Data => tiles.and_then(|tiles| tiles.first()),
                Part::Cube(number) => tiles.and_then(|tiles| tiles.get(number)),
                _ => None,
            };
            if let Some(tiles) = cube {
                found.push((dataset, Elements::Tiles(tiles)));
                continue;
            }
            let path = known.iter().find(|(part, _)| *part == dataset.part).map(|(_, path)| path.clone());
            let path = path.unwrap_or_else(|| format!("{}/{}", of_table.group, dataset.path));
            // the companion lacks columns of strings, of which some datasets are numbers
            let is_in_file = !known.is_empty() || tiles.is_none() && column.data_type.is_fixed_size();
            let is_stored = is_in_file && dataset.data_type.is_fixed_size();
            let reason = match is_stored.then(|| self.find(&path, &dataset.shape, dataset.data_type)).transpose()? {
                Some(Ok(array)) => {
                    found.push((dataset, Elements::Stored(Box::new(array))));
                    continue;
                }
                Some(Err(reason)) => Some(reason),
                None => None,
            };
            let bytes = dataset.shape.elements()?.saturating_mul(stored_size(dataset.data_type));
            match reason {
                Some(reason) if bytes > INLINE_BYTES => return Ok(Err(reason)),
                // the chunks of the file may be parts of cells
                Some(_) => found.push((dataset, inline(dataset, None))),
                None => found.push((dataset, inline(dataset, dataset.chunk.clone()))),
            }
        }
        Ok(Ok(found))
    }

    fn find(&self, path: &str, shape: &Shape, data_type: DataType) -> Result<Found> {
        let (root, stored) = &self.stored;
        StoredArray::find(root.dataset(path.trim_start_matches('/'))?, shape, data_type, *stored)
    }

    #[expect(clippy::too_many_arguments, reason = "a dataset is known by its table, its column, and itself")]
    fn write_dataset<W: Write>(
        &self,
        table: &TablePlan,
        column: &ColumnPlan,
        outline: &TableOutline,
        dataset: &DatasetOutline,
        elements: &Elements<'_>,
        attributes: Option<&Record>,
        out: &mut References<W>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let array = join(self.group(outline), &dataset.path);
        write_array(out, &array, &elements.metadata(), attributes, &dataset.dims)?;
        let cache = ChunkCache::new(CACHE_BYTES);
        let stored = StoredColumn { source: self.source, table, column, cache: &cache };
        let mut known = None;
        let mut read = |region: &Region| {
            if known.is_none() && matches!(dataset.part, Part::Values | Part::Offset) {
                known = Some(Arc::new(stored.starts()?));
            }
            let starts = || known.clone().ok_or_else(|| Error::usage("starts of a column that is not ragged"));
            stored.read(dataset.part, region, &starts)
        };
        self.write_elements(&array, elements, out, progress, &mut read)
    }

    fn write_elements<W: Write>(
        &self,
        array: &str,
        elements: &Elements<'_>,
        out: &mut References<W>,
        progress: &dyn Progress,
        read: &mut dyn FnMut(&Region) -> Result<Values>,
    ) -> Result<()> {
        match elements {
            Elements::Tiles(tiles) => tiles.write(array, self.files, out, progress),
            Elements::Stored(stored) => stored.write(array, self.stored.1, self.files, out),
            Elements::Inline(inline) => inline.write(array, out, progress, read),
        }
    }

    /// References to the dimension scale of the rows if possible, else the numbers.
    fn write_row_numbers<W: Write>(
        &self,
        table: &TablePlan,
        outline: &TableOutline,
        out: &mut References<W>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let content = self.source.tables[table.source].content()?;
        let shape = Shape::from([outline.rows]);
        let group = self.source.tables[table.source].group.as_deref().unwrap_or(&outline.group);
        let found = self.scale(&format!("{group}/{}", outline.row), &shape, DataType::Int64)?;
        let elements = match found {
            Some(array) => Elements::Stored(Box::new(array)),
            None => {
                let chunk = Shape::from([outline.rows.clamp(1, ROW_NUMBERS)]);
                Elements::Inline(InlineArray::new(shape, Some(chunk), DataType::Int64))
            }
        };
        let array = join(self.group(outline), &outline.row);
        write_array(out, &array, &elements.metadata(), None, std::slice::from_ref(&outline.row))?;
        let numbers = &outline.row_numbers;
        self.write_elements(&array, &elements, out, progress, &mut |region| {
            let (first, count) = (region.start[0], region.shape[0]);
            let number = |row: u64| match numbers {
                Some(numbers) => numbers.get(row as usize).copied().unwrap_or_default(),
                None => content.original_row(table.rows.start + row) as i64,
            };
            Ok(Values::Int64((first..first + count).map(number).collect()))
        })
    }

    fn write_coordinate<W: Write>(
        &self,
        outline: &TableOutline,
        coordinate: &CoordinateOutline,
        out: &mut References<W>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let values = &coordinate.values;
        let (shape, data_type) = (Shape::from([values.len() as u64]), values.data_type());
        let group = self.source.tables[outline.table].group.as_deref().unwrap_or(&outline.group);
        let path = format!("{group}/{}", coordinate.path);
        let is_same = |dataset: &Dataset| -> Result<bool> {
            let mut found = Values::new(data_type);
            dataset.read_region(&Region::whole(&shape), &mut found)?;
            Ok(found.same_bits(values))
        };
        let stored = match self.dataset(&path, &shape, data_type)? {
            Some(dataset) if is_same(&dataset)? => self.scale(&path, &shape, data_type)?,
            _ => None,
        };
        let elements = match stored {
            Some(array) => Elements::Stored(Box::new(array)),
            None => Elements::Inline(InlineArray::new(shape, None, data_type)),
        };
        let dim = coordinate.path.rsplit('/').next().unwrap_or_default().to_owned();
        let array = join(self.group(outline), &coordinate.path);
        write_array(out, &array, &elements.metadata(), Some(&coordinate.attributes), &[dim])?;
        self.write_elements(&array, &elements, out, progress, &mut |_| Ok(values.clone()))
    }

    /// `None` if the dataset is missing or has another shape or type.
    fn dataset(&self, path: &str, shape: &Shape, data_type: DataType) -> Result<Option<Dataset>> {
        let (root, path) = (&self.stored.0, path.trim_start_matches('/'));
        let Some((group, name)) = path.rsplit_once('/') else { return Ok(None) };
        let exists = || root.group(group).is_ok_and(|group| group.has(name));
        if !exists() {
            return Ok(None);
        }
        let dataset = root.dataset(path)?;
        let suits = dataset.data_type().is_ok_and(|found| found == data_type) && dataset.shape()? == *shape;
        Ok(suits.then_some(dataset))
    }

    /// `None` if the dataset is missing, has another shape or type, or cannot be referred to.
    fn scale(&self, path: &str, shape: &Shape, data_type: DataType) -> Result<Option<StoredArray>> {
        let Some(dataset) = self.dataset(path, shape, data_type)? else { return Ok(None) };
        Ok(StoredArray::find(dataset, shape, data_type, self.stored.1)?.ok())
    }
}

fn inline<'a>(dataset: &DatasetOutline, chunk: Option<Shape>) -> Elements<'a> {
    Elements::Inline(InlineArray::new(dataset.shape.clone(), chunk, dataset.data_type))
}

fn write_group<W: Write>(out: &mut References<W>, path: &str, attributes: &Record) -> Result<()> {
    out.document(path, ".zgroup", metadata::group())?;
    out.document(path, ".zattrs", metadata::attributes(attributes).into())
}

fn write_array<W: Write>(
    out: &mut References<W>,
    path: &str,
    metadata: &ArrayMetadata,
    attributes: Option<&Record>,
    dims: &[String],
) -> Result<()> {
    out.document(path, ".zarray", metadata.to_json())?;
    out.document(path, ".zattrs", metadata::array_attributes(attributes, dims))
}
