//! The forms that the cells of a column have in a native file. docs/layout.md, "A column".

use serde::{Deserialize, Serialize};

use super::attributes::Attributes;
use super::axes::Scales;
use super::names::POSITION;
use crate::error::{Error, Result};
use crate::h5::{Dataset, Group};
use crate::value::{DataType, Shape};

/// Hypercubes of a column beyond which it is written as cells of differing shapes.
pub(crate) const MAX_CUBES: usize = 64;

/// Bytes of an element in the file; a string is a reference of 16.
pub(crate) fn stored_size(data_type: DataType) -> u64 {
    if data_type.is_fixed_size() { data_type.size() as u64 } else { 16 }
}

/// The datasets in the group of a column: the cube of each row and its position there; the elements of all cells, where
/// each begins, its shape, and whether it is defined.
const ROW_CUBE: &str = "row_cube";
const ROW_INDEX: &str = "row_index";
const VALUES: &str = "values";
const OFFSET: &str = "offset";
const SHAPE: &str = "shape";
const DEFINED: &str = "defined";

/// The dataset of a hypercube.
fn cube_name(number: usize) -> String {
    format!("cube{number}")
}

/// Where the cells of a column are.
#[derive(Debug, Clone)]
pub(crate) struct StoredForm {
    pub(crate) kind: FormKind,
    /// The name of its dataset or group.
    pub(crate) link: String,
    /// Why the column is missing.
    pub(crate) reason: String,
}

/// The form of the cells of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FormKind {
    /// One dataset, perhaps with one that says which cells are defined.
    Dense,
    /// A dataset for each hypercube.
    Cubes,
    /// Cells of differing shapes, one after the other.
    Ragged,
    /// One dataset of records as JSON.
    Record,
    /// Not converted.
    Missing,
}

/// The datasets of a column by what they hold, or what stands for each of them.
#[derive(Debug, Clone)]
pub(crate) enum Members<T> {
    Dense { data: T, flags: Option<T> },
    Cubes { cubes: Vec<T>, row_cube: T, row_index: T },
    Ragged { values: T, offset: T, shape: T, defined: T },
}

impl<T> Members<T> {
    /// All of them, in the order in which they are made.
    pub(crate) fn list(&self) -> Vec<&T> {
        match self {
            Members::Dense { data, flags } => std::iter::once(data).chain(flags).collect(),
            Members::Cubes { cubes, row_cube, row_index } => cubes.iter().chain([row_cube, row_index]).collect(),
            Members::Ragged { values, offset, shape, defined } => vec![values, offset, shape, defined],
        }
    }

    /// The parts of [`list`](Self::list) themselves.
    pub(crate) fn into_list(self) -> Vec<T> {
        match self {
            Members::Dense { data, flags } => std::iter::once(data).chain(flags).collect(),
            Members::Cubes { cubes, row_cube, row_index } => cubes.into_iter().chain([row_cube, row_index]).collect(),
            Members::Ragged { values, offset, shape, defined } => vec![values, offset, shape, defined],
        }
    }
}

impl FormKind {
    /// The name in documents.
    pub(super) fn name(self) -> &'static str {
        match self {
            FormKind::Dense => "dense",
            FormKind::Cubes => "cubes",
            FormKind::Ragged => "ragged",
            FormKind::Record => "record",
            FormKind::Missing => "missing",
        }
    }

    /// The form of the column that a group is, if it is one, by the datasets that are in it.
    pub(super) fn of_group(group: &Group) -> Option<Self> {
        let has = |names: &[&str]| names.iter().all(|name| group.has(name));
        if has(&[&cube_name(0), ROW_CUBE, ROW_INDEX]) {
            Some(FormKind::Cubes)
        } else if has(&[VALUES, OFFSET, SHAPE, DEFINED]) {
            Some(FormKind::Ragged)
        } else {
            None
        }
    }
}

impl StoredForm {
    /// A column whose cells are here.
    pub(crate) fn new(kind: FormKind, link: impl Into<String>) -> Self {
        StoredForm { kind, link: link.into(), reason: String::new() }
    }

    /// A column whose cells are not in the file.
    pub(crate) fn missing(link: String, reason: String) -> Self {
        StoredForm { kind: FormKind::Missing, link, reason }
    }

    /// How many hypercubes there are, in the group of the table.
    pub(crate) fn cubes(&self, table: &Group) -> Result<usize> {
        if self.kind != FormKind::Cubes {
            return Ok(0);
        }
        let group = table.group(&self.link)?;
        Ok((0..).take_while(|&number| group.has(&cube_name(number))).count())
    }

    /// Opens the datasets of the column: `open` gets the path of each below the group of the table. The column has this
    /// number of hypercubes, or the dataset `flags` that says which cells are defined.
    ///
    /// # Errors
    /// `Unsupported` if the column is missing, and those of `open`.
    pub(crate) fn open<T>(
        &self,
        cubes: usize,
        flags: Option<&str>,
        mut open: impl FnMut(&str) -> Result<T>,
    ) -> Result<Members<T>> {
        let path = |name: &str| format!("{}/{name}", self.link);
        Ok(match self.kind {
            FormKind::Missing => return Err(Error::unsupported(self.reason.as_str())),
            FormKind::Dense | FormKind::Record => {
                Members::Dense { data: open(&self.link)?, flags: flags.map(open).transpose()? }
            }
            FormKind::Cubes => Members::Cubes {
                cubes: (0..cubes).map(|number| open(&path(&cube_name(number)))).collect::<Result<_>>()?,
                row_cube: open(&path(ROW_CUBE))?,
                row_index: open(&path(ROW_INDEX))?,
            },
            FormKind::Ragged => Members::Ragged {
                values: open(&path(VALUES))?,
                offset: open(&path(OFFSET))?,
                shape: open(&path(SHAPE))?,
                defined: open(&path(DEFINED))?,
            },
        })
    }

    /// The path of the dataset with the elements of a column, or of its hypercube `cube`, in a table's group at `table`.
    pub(crate) fn elements_path(&self, table: &str, cube: usize) -> String {
        let path = format!("{table}/{}", self.link);
        match self.kind {
            FormKind::Cubes => format!("{path}/{}", cube_name(cube)),
            FormKind::Ragged => format!("{path}/{VALUES}"),
            FormKind::Dense | FormKind::Record | FormKind::Missing => path,
        }
    }

    /// Creates the datasets of the column in the group of its table, with attributes and scales.
    pub(crate) fn create<M: Maker>(
        &self,
        table: &Group,
        column: &NewColumn<'_>,
        scales: &mut Scales<'_>,
        maker: &mut M,
    ) -> Result<Members<M::Made>> {
        match self.kind {
            FormKind::Missing => Err(Error::unsupported(self.reason.as_str())),
            FormKind::Dense | FormKind::Record => self.create_dense(table, column, scales, maker),
            FormKind::Cubes => self.create_cubes(table, column, scales, maker),
            FormKind::Ragged => self.create_ragged(table, column, scales, maker),
        }
    }

    fn create_dense<M: Maker>(
        &self,
        table: &Group,
        column: &NewColumn<'_>,
        scales: &mut Scales<'_>,
        maker: &mut M,
    ) -> Result<Members<M::Made>> {
        let data = maker.make(table, &self.link, Part::Data)?;
        let dataset = maker.dataset(&data);
        column.attributes.write(|name, value| dataset.set_attribute(name, value))?;
        let cell = cell_shape(dataset)?;
        scales.attach(dataset, &cell, &(column.roles)(cell.len()))?;
        dataset.attach_scale(cell.len(), maker.row())?;
        let flags = column.flags.map(|name| make_rows(table, name, Part::Defined, maker)).transpose()?;
        Ok(Members::Dense { data, flags })
    }

    fn create_cubes<M: Maker>(
        &self,
        table: &Group,
        column: &NewColumn<'_>,
        scales: &mut Scales<'_>,
        maker: &mut M,
    ) -> Result<Members<M::Made>> {
        let group = table.create_group(&self.link)?;
        column.attributes.write(|name, value| group.set_attribute(name, value))?;
        let mut local = scales.within(&group);
        let mut cubes = Vec::new();
        for number in 0..column.cubes {
            let cube = maker.make(&group, &cube_name(number), Part::Cube(number))?;
            let dataset = maker.dataset(&cube);
            let (shape, cell) = (dataset.shape()?, cell_shape(dataset)?);
            let mut roles = (column.roles)(cell.len());
            if M::GROWS {
                // the axis has no length that a name could stand for
                local.attach(dataset, &cell, &roles)?;
                let name = local.fresh(POSITION);
                let positions = maker.make(&group, &name, Part::Position)?;
                maker.dataset(&positions).make_scale(&name)?;
                maker.dataset(&cube).attach_scale(cell.len(), maker.dataset(&positions))?;
            } else {
                roles.push(POSITION);
                local.attach(dataset, &shape, &roles)?;
            }
            cubes.push(cube);
        }
        let row_cube = make_rows(&group, ROW_CUBE, Part::RowCube, maker)?;
        let row_index = make_rows(&group, ROW_INDEX, Part::RowIndex, maker)?;
        Ok(Members::Cubes { cubes, row_cube, row_index })
    }

    fn create_ragged<M: Maker>(
        &self,
        table: &Group,
        column: &NewColumn<'_>,
        scales: &mut Scales<'_>,
        maker: &mut M,
    ) -> Result<Members<M::Made>> {
        let group = table.create_group(&self.link)?;
        column.attributes.write(|name, value| group.set_attribute(name, value))?;
        let mut local = scales.within(&group);
        let mut make = |name: &str, part: Part, role: &str| -> Result<M::Made> {
            let made = maker.make(&group, name, part)?;
            let dataset = maker.dataset(&made);
            local.attach(dataset, &dataset.shape()?[..1], &[role])?;
            Ok(made)
        };
        let values = make(VALUES, Part::Values, "element")?;
        let offset = make(OFFSET, Part::Offset, "offset")?;
        let shape = make(SHAPE, Part::Shape, "axis")?;
        maker.dataset(&shape).attach_scale(1, maker.row())?;
        let defined = make_rows(&group, DEFINED, Part::Defined, maker)?;
        Ok(Members::Ragged { values, offset, shape, defined })
    }
}

/// What the datasets of a new column have besides elements.
pub(crate) struct NewColumn<'a> {
    pub(crate) attributes: &'a Attributes,
    /// What a number of axes of a cell mean.
    pub(crate) roles: &'a dyn Fn(usize) -> Vec<&'a str>,
    /// The number of its hypercubes.
    pub(crate) cubes: usize,
    /// The name of the dataset that says which cells of a dense column are defined.
    pub(crate) flags: Option<&'a str>,
}

/// What a dataset of a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The cells of a dense column, rows last.
    Data,
    /// The cells of a hypercube, by its number, positions last.
    Cube(usize),
    /// The positions in a hypercube, where it grows.
    Position,
    /// The hypercube of each row.
    RowCube,
    /// The position of each row there.
    RowIndex,
    /// The elements of all cells.
    Values,
    /// Where the elements of each row begin, and where the last end.
    Offset,
    /// The extents of the cell of each row.
    Shape,
    /// Whether the cell of each row is defined.
    Defined,
}

impl Part {
    /// The type of its elements, those of the column being of type `column`.
    pub(crate) fn element(self, column: DataType) -> DataType {
        match self {
            // records are JSON
            Part::Data | Part::Cube(_) | Part::Values if column == DataType::Record => DataType::String,
            Part::Data | Part::Cube(_) | Part::Values => column,
            Part::RowCube | Part::Shape => DataType::Int,
            Part::Position | Part::RowIndex | Part::Offset => DataType::Int64,
            Part::Defined => DataType::Bool,
        }
    }
}

/// Makes the datasets of columns: of fixed extents while converting, without rows in a live file.
pub(crate) trait Maker {
    /// Whether rows come later, while others read the file.
    const GROWS: bool;
    /// What stands for a dataset.
    type Made;

    /// Creates a dataset.
    fn make(&mut self, group: &Group, name: &str, part: Part) -> Result<Self::Made>;

    /// The dataset that something stands for.
    fn dataset<'a>(&'a self, made: &'a Self::Made) -> &'a Dataset;

    /// The scale of the rows of the table.
    fn row(&self) -> &Dataset;
}

/// A dataset that has one element for each row.
fn make_rows<M: Maker>(group: &Group, name: &str, part: Part, maker: &mut M) -> Result<M::Made> {
    let made = maker.make(group, name, part)?;
    maker.dataset(&made).attach_scale(0, maker.row())?;
    Ok(made)
}

/// The shape of the rows of a dataset.
fn cell_shape(dataset: &Dataset) -> Result<Shape> {
    let shape = dataset.shape()?;
    let (cell, _) = shape.split_last().ok_or_else(|| Error::format("a dataset without axes"))?;
    Ok(cell)
}
