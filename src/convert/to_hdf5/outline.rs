//! Outlines the groups, datasets, axes and attributes that a source would have as a native HDF5
//! file, without writing one.

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
    AxisNames, Dimensions, MAX_CUBES, NewAxis, NewDataset, Part, TreeDimensions, json, readable, root_attributes,
};
use crate::source::{Content, Source};
use crate::value::{DataType, Field, Record, Region, Shape, Value, Values};

/// Outline of the file that [`ToHdf5`](super::super::ToHdf5) would make of a source: each group,
/// dataset, axis and attribute, with its name in the file. Nothing is written, and the only
/// elements that are read are values of axes, such as frequencies.
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
    /// Attributes of the root group of the HDF5 file that a conversion would make; those that are
    /// arrays have one axis. If the source is a native HDF5 file (one that this project made), they
    /// are those of that file. Otherwise `source_digest`, the digest of the main table's content,
    /// is missing, because it needs all elements.
    pub attributes: Record,
    /// Each table of the source as the HDF5 file would have it: its group, columns and values of
    /// axes. The main table is first, and parents precede children.
    pub tables: Vec<TableOutline>,
}

/// The group that a table would have in the HDF5 file.
#[derive(Debug)]
#[non_exhaustive]
pub struct TableOutline {
    /// Which table of the source becomes this group of the HDF5 file: an index of
    /// [`Source::tables`], from 0.
    pub table: usize,
    /// Path of the table's group in the HDF5 file.
    pub group: String,
    /// Name of the axis of the rows in the table's group, and of its dimension scale.
    pub row: String,
    /// Number of rows that the table would have in the HDF5 file; if rows of the source were
    /// selected, the number of these.
    pub rows: u64,
    /// The number, from 0, that each row of the HDF5 file has in the original table. `None` if the
    /// numbers are 0, 1, 2 … in this order, or are not known.
    pub row_numbers: Option<Vec<i64>>,
    /// Attributes of the table's group in the HDF5 file; those that are arrays have one axis.
    pub attributes: Record,
    /// Each column that can be read as the HDF5 file would have it: its datasets, with their names,
    /// axes, shapes and attributes. The columns have the order of the table.
    pub columns: Vec<ColumnOutline>,
    /// Dimension scales with values in the table's group, except for that of the rows.
    pub coordinates: Vec<CoordinateOutline>,
}

/// The dataset, or the group of datasets, that a column would have in the HDF5 file.
#[derive(Debug)]
#[non_exhaustive]
pub struct ColumnOutline {
    /// Which column of the table becomes the dataset or group: an index of
    /// [`SourceTable::columns`](crate::convert::SourceTable::columns), from 0.
    pub column: usize,
    /// Name of the column's dataset or group in the group of the table.
    pub link: String,
    /// Whether the column would be a group with its datasets; otherwise its datasets are in the
    /// group of the table.
    pub is_group: bool,
    /// Attributes of the column's group, or of its first dataset; those that are arrays have one
    /// axis.
    pub attributes: Record,
    /// Datasets that would hold the column: its elements, and in some cases where cells are or
    /// which are defined.
    pub datasets: Vec<DatasetOutline>,
}

/// A dataset of a column, as it would be in the HDF5 file.
#[derive(Debug)]
#[non_exhaustive]
pub struct DatasetOutline {
    /// Path of the dataset below the group of the table.
    pub path: String,
    /// Which part of the column the dataset holds: its cells, or data that locates them.
    pub part: Part,
    /// Names of the dataset's axes in the HDF5 file that a conversion would write, slowest axis
    /// first (unlike `shape`).
    pub dims: Vec<String>,
    /// Shape of the dataset in the HDF5 file that a conversion would write, fastest axis first
    /// (unlike `dims`).
    pub shape: Shape,
    /// Shape of the dataset's chunks in the HDF5 file that a conversion would write, fastest axis
    /// first; `None` if the dataset has no elements.
    pub chunk: Option<Shape>,
    /// Type of the dataset's elements in the HDF5 file that a conversion would write; records are
    /// JSON strings.
    pub data_type: DataType,
}

/// The values of an axis, as a dimension scale of the HDF5 file.
#[derive(Debug)]
#[non_exhaustive]
pub struct CoordinateOutline {
    /// Path of the dimension scale below the group of the table. Its last part is the name of the
    /// axis.
    pub path: String,
    /// Values of the axis, such as frequencies: one for each index along the axis.
    pub values: Values,
    /// Attributes of the dimension scale, which are strings.
    pub attributes: Record,
}

impl Outline {
    /// Outlines everything that a conversion of `source` would write.
    ///
    /// # Errors
    /// Those of a conversion: of tables and columns that are damaged, and of reading the shapes of
    /// cells.
    pub fn new(source: &Source) -> Result<Self> {
        let options = ToHdf5Options {
            compress: Compress::With(Compression::NONE),
            digest: false,
            tries_cells: false,
            ..ToHdf5Options::default()
        };
        Self::of_plan(source, &Plan::new(source, &options)?)
    }

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
        let coordinates = described.coordinates(table);
        let taken = |name: &str| described.plan.names.has(&table.group, name);
        let mut outline = TableOutline {
            table: table.source,
            group: table.group.clone(),
            row: table.row.clone(),
            rows: table.rows.end - table.rows.start,
            row_numbers: content.row_numbers()?,
            attributes: record(described.table_attributes(table, content.info(), content.keywords())?.0),
            columns: Vec::new(),
            coordinates: Vec::new(),
        };
        let mut axes = AxisNames::new(dimensions, &coordinates, &taken);
        for column in &table.columns {
            let desc = &content.columns()[column.index].desc;
            let attributes = described.column_attributes(table, column, desc.comment.as_bstr(), &desc.keywords)?;
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
        let view = described.view(table, &mut axes, |name| outline.attributes.get(name).is_some());
        let view = record(view.into_iter().map(|(name, value)| (name.to_owned(), value)));
        outline.attributes.fields.extend(view.fields);
        Ok(outline)
    }

    /// The dataset is in the group of the table, or in `group` below it.
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

/// Elements as the datasets of a native HDF5 file would have them.
impl Source {
    /// Cells of `rows`: strings are UTF-8 and end at a NUL, records are JSON.
    ///
    /// `region` selects a box in each cell and has no row axis; shapes have the fastest axis first.
    /// An undefined cell gives default elements, such as zeros, in the shape of `region`, else in
    /// the shape `cell`; nothing if both are `None`.
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

    /// Part of a hypercube; `region` lists the fastest axis first, and the positions (rows) last.
    ///
    /// # Errors
    /// `NotFound` if the column lacks the hypercube; `Usage` if the region leaves it; those of
    /// reading.
    pub fn hypercube_part(&self, table: usize, column: usize, cube: usize, region: &Region) -> Result<Values> {
        self.hypercube_elements(table, column, cube, region, &ChunkCache::new(CACHE_BYTES))
    }

    /// [`hypercube_part`](Self::hypercube_part) with a cache of tiles that several calls share.
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

    /// Ranges of rows, each with its hypercube and the position of its first row there. Rows in
    /// none are undefined.
    ///
    /// # Errors
    /// `NotFound` if the table lacks the column; those of opening it.
    pub fn hypercube_rows(&self, table: usize, column: usize) -> Result<Vec<(Range<u64>, usize, u64)>> {
        let (_, cells) = self.cells_at(table, column)?;
        let runs = cells.tiling(MAX_CUBES).map(|tiling| tiling.runs).unwrap_or_default();
        Ok(runs.into_iter().map(|run| (run.rows, run.cube, run.position)).collect())
    }
}

/// Strings are UTF-8 and end at a NUL, records are JSON.
pub(super) fn stored_values(values: Values, content: &Content) -> Values {
    match values {
        Values::Record(records) => {
            let table_name = |stored: &[u8]| content.table_name(stored);
            let texts = records.iter().map(|record| json::from_record(record, &table_name).to_string().into());
            Values::String(texts.collect())
        }
        Values::String(_) => readable(&values).into_owned(),
        values => values,
    }
}

/// Decoded tiles kept by one call of `hypercube_part`.
const CACHE_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::ColumnDesc;
    use crate::table::NewTable;

    /// Outline of the main table's attributes.
    fn attributes(table: NewTable, rows: u64) -> Record {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.tab");
        let mut table = table.create(&path).unwrap();
        table.add_rows(rows).unwrap();
        table.close().unwrap();
        let mut outline = Outline::new(&Source::open(&path).unwrap()).unwrap();
        assert_eq!(outline.attributes.string("default").unwrap(), "MAIN");
        outline.tables.swap_remove(0).attributes
    }

    /// Signal and axes; `None` if viewers are not told how to draw the table.
    fn drawn(table: NewTable, rows: u64) -> Option<(String, Vec<String>)> {
        let attributes = attributes(table, rows);
        let signal = attributes.string("signal").map(ToString::to_string);
        let axes = attributes.strings("axes").map(|axes| axes.iter().map(ToString::to_string).collect());
        let class = attributes.string("NX_class").map(ToString::to_string);
        assert_eq!(class.as_deref(), signal.as_ref().map(|_| "NXdata"));
        signal.zip(axes)
    }

    fn expected(signal: &str, axes: &[&str]) -> Option<(String, Vec<String>)> {
        Some((signal.to_owned(), axes.iter().map(|&axis| axis.to_owned()).collect()))
    }

    #[test]
    fn viewers_draw_the_first_dataset_of_arrays() {
        let data = || ColumnDesc::array::<f32>("DATA").fixed_shape(Shape::from([2, 3]));
        let time = || NewTable::new().column(ColumnDesc::scalar::<f64>("TIME"));
        assert_eq!(drawn(time().column(data()), 4), expected("DATA", &["TIME", ".", "."]));
        assert_eq!(drawn(NewTable::new().column(data()), 4), expected("DATA", &[".", ".", "."]));
        let of_integers = NewTable::new().column(ColumnDesc::scalar::<i32>("TIME"));
        assert_eq!(drawn(of_integers.column(data()), 4), expected("DATA", &[".", ".", "."]));
        assert_eq!(drawn(time().column(data()), 0), None, "nothing to draw");
        assert_eq!(drawn(time(), 4), None);
        let scalar = time().column(ColumnDesc::scalar::<f32>("DATA"));
        let map = ColumnDesc::array::<f32>("map").fixed_shape(Shape::from([5]));
        assert_eq!(drawn(scalar.column(map), 4), expected("map", &["TIME", "."]));
        let texts = ColumnDesc::array::<BString>("DATA").fixed_shape(Shape::from([2]));
        assert_eq!(drawn(time().column(texts), 4), None);
    }

    #[test]
    fn long_axes_are_not_read_by_viewers() {
        let table = || {
            let data = ColumnDesc::array::<u8>("DATA").direct(Shape::from([1]));
            NewTable::new().column(ColumnDesc::scalar::<f64>("TIME")).column(data)
        };
        assert_eq!(drawn(table(), 1 << 20), expected("DATA", &["TIME", "."]));
        assert_eq!(drawn(table(), (1 << 20) + 1), expected("DATA", &[".", "."]));
    }

    #[test]
    fn keywords_keep_the_names_of_their_attributes() {
        for name in ["NX_class", "signal", "axes"] {
            let data = ColumnDesc::array::<f32>("DATA").fixed_shape(Shape::from([2]));
            let table = NewTable::new().column(data).keyword(name, Value::string("mine"));
            let found = attributes(table, 4);
            assert_eq!(found.string(name).unwrap(), "mine");
            let all = ["NX_class", "signal", "axes"].iter().filter(|name| found.get(**name).is_some());
            assert_eq!(all.collect::<Vec<_>>(), [&name]);
        }
    }
}
