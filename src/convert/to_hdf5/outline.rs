//! The groups, datasets, axes and attributes that a source has as a native file, without writing one.

use std::ops::Range;

use bstr::{BString, ByteSlice};

use super::compression::Compress;
use super::described::Described;
use super::layout_choice::Growth;
use super::plan::{ColumnPlan, Plan, TablePlan, ToHdf5Options};
use crate::error::{Context, Error, Result, ResultExt};
use crate::grid::{ChunkCache, read_region};
use crate::h5::{Attribute, Compression};
use crate::native::{
    AxisNames, Dimensions, MAX_CUBES, NewAxis, NewDataset, Part, TreeDimensions, json, readable_text, root_attributes,
};
use crate::source::{Content, Source};
use crate::value::{DataType, Field, Record, Region, Shape, Value, Values};

/// What [`ToHdf5`](super::super::ToHdf5) would make of a source: each group, dataset, axis and attribute, by the names that
/// they have in the file. Nothing is written, and no elements are read but those of the axes.
///
/// ```
/// use ctds_hdf5::convert::{Outline, Source};
/// # use ctds_hdf5::{ColumnDesc, NewTable};
/// # let folder = tempfile::tempdir()?;
/// # let my_ms = folder.path().join("my.ms");
/// # let mut table = NewTable::new().column(ColumnDesc::scalar::<f64>("TIME")).create(&my_ms)?;
/// # table.add_rows(2)?;
/// # table.close()?;
///
/// let outline = Outline::new(&Source::open(&my_ms)?)?;
/// let time = &outline.tables[0].columns[0].datasets[0];
/// assert_eq!((time.path.as_str(), time.dims.as_slice()), ("TIME", &["row".to_owned()][..]));
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Outline {
    /// Those of the root: arrays have one axis. Those of a native file are as they are; for any other source, the digest,
    /// which takes all elements, is not among them.
    pub attributes: Record,
    /// The main table first, parents before children.
    pub tables: Vec<TableOutline>,
}

/// The group of a table.
#[derive(Debug)]
#[non_exhaustive]
pub struct TableOutline {
    /// The number of the table in [`Source::tables`].
    pub table: usize,
    /// The path of the group.
    pub group: String,
    /// The name of the axis of the rows, and of its scale.
    pub row: String,
    /// Number of rows of the table.
    pub rows: u64,
    /// The numbers that the rows have in the table they are from; `None` if they count from 0.
    pub row_numbers: Option<Vec<i64>>,
    /// Arrays have one axis.
    pub attributes: Record,
    /// The columns that can be read, in the order of the table.
    pub columns: Vec<ColumnOutline>,
    /// The scales with values besides that of the rows.
    pub coordinates: Vec<CoordinateOutline>,
}

/// A dataset, or a group of datasets.
#[derive(Debug)]
#[non_exhaustive]
pub struct ColumnOutline {
    /// The number of the column in [`SourceTable::columns`](crate::convert::SourceTable::columns).
    pub column: usize,
    /// The name of its dataset or group.
    pub link: String,
    /// Whether it is a group.
    pub is_group: bool,
    /// Attributes of the group, or of the first of the datasets. Arrays have one axis.
    pub attributes: Record,
    /// What the column consists of.
    pub datasets: Vec<DatasetOutline>,
}

/// A dataset of a column.
#[derive(Debug)]
#[non_exhaustive]
pub struct DatasetOutline {
    /// The path below the group of the table.
    pub path: String,
    /// What it holds of the column.
    pub part: Part,
    /// The names of the axes, slowest first.
    pub dims: Vec<String>,
    /// Last axis slowest.
    pub shape: Shape,
    /// Last axis slowest; `None` without elements.
    pub chunk: Option<Shape>,
    /// Type of the elements; records are JSON strings.
    pub data_type: DataType,
}

/// The values of an axis.
#[derive(Debug)]
#[non_exhaustive]
pub struct CoordinateOutline {
    /// The path of the scale below the group of the table. Its last part is the name of the axis.
    pub path: String,
    /// One for each element of the axis.
    pub values: Values,
    /// Attributes of the scale, which are texts.
    pub attributes: Record,
}

impl Outline {
    /// The outline of everything in `source`.
    ///
    /// # Errors
    /// Those of a conversion: of tables and columns that are damaged, and of reading the shapes of cells.
    pub fn new(source: &Source) -> Result<Self> {
        let options = ToHdf5Options {
            compress: Compress::With(Compression::NONE),
            digest: false,
            tries_cells: false,
            ..ToHdf5Options::default()
        };
        Self::of_plan(source, &Plan::new(source, &options)?)
    }

    /// The outline of what a plan of `source` takes.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub(crate) fn of_plan(source: &Source, plan: &Plan) -> Result<Self> {
        let described = Described { source, plan };
        let mut dimensions = TreeDimensions::default();
        let tables = plan.tables.iter().map(|table| {
            let outline = TableOutline::new(described, table, dimensions.of_group(&table.group));
            outline.with_context(|| Context::table(&table.name))
        });
        let tables = tables.collect::<Result<_>>()?;
        let main = source.tables.first().map(|main| main.content()).transpose()?;
        let attributes = main.map_or(Ok(None), Content::root_attributes)?;
        let attributes = attributes.unwrap_or_else(|| root_attributes(&source.name));
        Ok(Outline { attributes: record(attributes), tables })
    }
}

impl TableOutline {
    fn new(described: Described<'_>, table: &TablePlan, dimensions: &mut Dimensions) -> Result<Self> {
        let content = described.content(table)?;
        let edited = content.edited()?;
        let coordinates = described.coordinates(table);
        let taken = |name: &str| described.plan.names.has(&table.group, name);
        let mut outline = TableOutline {
            table: table.source,
            group: table.group.clone(),
            row: table.row.clone(),
            rows: table.rows.end - table.rows.start,
            row_numbers: content.row_numbers()?,
            attributes: record(described.table_attributes(table, &edited.info, &edited.keywords)?),
            columns: Vec::new(),
            coordinates: Vec::new(),
        };
        let mut axes = AxisNames::new(dimensions, &coordinates, &taken);
        for column in &table.columns {
            let (comment, keywords) = &edited.columns[column.index];
            let attributes = described.column_attributes(table, column, comment.as_bstr(), keywords)?;
            let form = column.stored_form();
            let datasets = column.with_new(table, &attributes, &mut axes, |new, axes| {
                form.lay_out(new, axes, false, &|part| Ok(column.extents(part, outline.rows, Growth::None)?.0))
            });
            let datasets = datasets.with_context(|| Context::column(&column.name))?.into_list();
            let is_group = form.has_group();
            for dataset in &datasets {
                outline.add_coordinates(&axes, dataset, is_group.then_some(column.link.as_str()));
            }
            let attributes = attributes.iter().map(|attribute| (attribute.name.clone(), attribute.value.clone()));
            outline.columns.push(ColumnOutline {
                column: column.index,
                link: column.link.clone(),
                is_group,
                attributes: record(attributes),
                datasets: datasets
                    .into_iter()
                    .map(|dataset| DatasetOutline::new(dataset, column, is_group, &outline))
                    .collect::<Result<_>>()?,
            });
        }
        Ok(outline)
    }

    /// Adds the values of the axes of a dataset, which is in the group of the table, or in `group` below it.
    fn add_coordinates(&mut self, axes: &AxisNames<'_>, dataset: &NewDataset, group: Option<&str>) {
        for axis in &dataset.axes {
            let NewAxis::Named { name, role, len } = axis else { continue };
            let path = group.map_or_else(|| name.clone(), |group| format!("{group}/{name}"));
            let scale = axes.scale(role, *len);
            let Some(values) = scale.values.filter(|_| !self.coordinates.iter().any(|known| known.path == path)) else {
                continue;
            };
            let attributes = scale.attributes.iter().map(|&(name, text)| (name.to_owned(), Attribute::string(text)));
            let attributes = record(attributes);
            self.coordinates.push(CoordinateOutline { path, values: values.clone(), attributes });
        }
    }
}

impl DatasetOutline {
    fn new(dataset: NewDataset, column: &ColumnPlan, is_group: bool, table: &TableOutline) -> Result<Self> {
        let (shape, chunk) = column.extents(dataset.part, table.rows, Growth::None)?;
        let name = dataset.name;
        Ok(DatasetOutline {
            path: if is_group { format!("{}/{name}", column.link) } else { name },
            part: dataset.part,
            dims: dataset.axes.iter().rev().map(|axis| axis.name(&table.row).to_owned()).collect(),
            chunk: (!shape.contains(&0)).then_some(chunk),
            shape,
            data_type: dataset.part.element(column.data_type),
        })
    }
}

fn record(attributes: impl IntoIterator<Item = (String, Attribute)>) -> Record {
    let field = |(name, attribute): (String, Attribute)| {
        let value = match attribute {
            Attribute::Scalar(values) => Value::Scalar(values),
            Attribute::Array(values) => Value::Array(Shape::from([values.len() as u64]), values),
        };
        Field { name: name.into(), value, comment: BString::default() }
    };
    Record { fields: attributes.into_iter().map(field).collect() }
}

/// The datasets of columns as they would be in the file.
impl Source {
    /// The elements of the cells of `rows`, one cell after the other, as datasets have them: strings are UTF-8 and end at a
    /// NUL, records are JSON. Of each cell a part if there is a `region`. Where a cell is undefined, there are zeros or empty
    /// strings: as many as `cell` has elements, or none.
    ///
    /// # Errors
    /// `NotFound` if the table lacks the column; those of reading the cells.
    pub fn stored_cells(
        &self,
        table: usize,
        column: usize,
        rows: Range<u64>,
        region: Option<&Region>,
        cell: Option<&Shape>,
    ) -> Result<Values> {
        let (content, cells) = self.cells_at(table, column)?;
        let data_type = content.columns()[column].data_type();
        let wanted = region.map(|region| &region.shape).or(cell);
        let missing = wanted.map_or(Ok(0), Shape::elements)? as usize;
        crate::limits::row_range(&rows, content.rows())?;
        let mut values = Values::new(data_type);
        if region.is_none() && cells.same_shape(&rows).is_some() {
            cells.read_rows(rows, &mut values)?;
        } else {
            for row in rows {
                match cells.cell_shape(row)? {
                    Some(_) => cells.read_cell(row, region, &mut values)?,
                    None => values.extend_default(missing),
                }
            }
        }
        Ok(stored_values(values, content))
    }

    /// A part of a hypercube of a column. The positions are the last axis.
    ///
    /// # Errors
    /// `NotFound` if the column lacks the hypercube; `Usage` if the region leaves it; those of reading.
    pub fn hypercube_part(&self, table: usize, column: usize, cube: usize, region: &Region) -> Result<Values> {
        self.hypercube_elements(table, column, cube, region, &ChunkCache::new(CACHE_BYTES))
    }

    /// As [`hypercube_part`](Self::hypercube_part), with decoded tiles in a cache that several calls share.
    pub(super) fn hypercube_elements(
        &self,
        table: usize,
        column: usize,
        cube: usize,
        region: &Region,
        cache: &ChunkCache,
    ) -> Result<Values> {
        let (_, cells) = self.cells_at(table, column)?;
        let tiling = cells.tiling(MAX_CUBES);
        let cube = tiling.as_ref().and_then(|tiling| tiling.cubes.get(cube));
        let cube = cube.ok_or_else(|| Error::not_found("the hypercube does not exist"))?;
        let mut values = Values::new(cube.data_type());
        read_region(&**cube, cache, 0, region, &mut values)?;
        Ok(values)
    }

    /// Which rows are in which hypercube of a column: consecutive rows, the number of the cube, the position of the first of
    /// the rows. Rows in none of them are undefined.
    ///
    /// # Errors
    /// `NotFound` if the table lacks the column; those of opening it.
    pub fn hypercube_rows(&self, table: usize, column: usize) -> Result<Vec<(Range<u64>, usize, u64)>> {
        let (_, cells) = self.cells_at(table, column)?;
        let runs = cells.tiling(MAX_CUBES).map(|tiling| tiling.runs).unwrap_or_default();
        Ok(runs.into_iter().map(|run| (run.rows, run.cube, run.position)).collect())
    }
}

/// The elements of cells as datasets have them: strings are UTF-8 and end at a NUL, records are JSON.
pub(super) fn stored_values(values: Values, content: &Content) -> Values {
    match values {
        Values::String(strings) => {
            Values::String(strings.iter().map(|string| readable_text(string.as_bstr()).0).collect())
        }
        Values::Record(records) => {
            let table_name = |stored: &[u8]| content.table_name(stored);
            let texts = records.iter().map(|record| json::from_record(record, &table_name).to_string().into());
            Values::String(texts.collect())
        }
        values => values,
    }
}

/// Decoded tiles that one call keeps.
const CACHE_BYTES: usize = 4 << 20;
