//! The storage forms (dense, hypercubes, ragged …) that the cells of a column have in a native HDF5
//! file: which datasets there are, and what they hold. docs/reference/layout.md, "A column".

use serde::{Deserialize, Serialize};

use super::attributes::Attributes;
use super::axes::{AxisNames, NewAxis, Scales};
use super::names::POSITION;
use crate::error::{Error, Result};
use crate::h5::{Dataset, Group};
use crate::value::{DataType, Shape};

/// A column with more is stored as ragged.
pub(crate) const MAX_CUBES: usize = 64;

/// 16 for strings and records, which are references to a heap.
pub(crate) fn stored_size(data_type: DataType) -> u64 {
    if data_type.is_fixed_size() { data_type.size() as u64 } else { 16 }
}

const ROW_CUBE: &str = "row_cube";
/// Position of each row in its hypercube.
const ROW_INDEX: &str = "row_index";
const VALUES: &str = "values";
/// Index of each cell's first element in `values`.
const OFFSET: &str = "offset";
/// Extents of each cell of a ragged column, slowest axis first.
const SHAPE: &str = "shape";
const DEFINED: &str = "defined";

fn cube_name(number: usize) -> String {
    format!("cube{number}")
}

/// Unit in which a dataset of a column with hypercubes grows in a live file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    Rows,
    /// Cells of the hypercube with this number.
    Positions(usize),
}

/// `None` for a dataset that is not in the group of such a column.
pub(crate) fn growth(name: &str) -> Option<Growth> {
    if matches!(name, ROW_CUBE | ROW_INDEX) {
        return Some(Growth::Rows);
    }
    let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let number: usize = name[digits..].parse().ok()?;
    (name == cube_name(number)).then_some(Growth::Positions(number))
}

/// Hypercube of each row, and position in it.
pub(crate) fn row_map() -> (&'static str, &'static str) {
    (ROW_CUBE, ROW_INDEX)
}

#[derive(Debug, Clone)]
pub(crate) struct StoredForm {
    pub(crate) kind: FormKind,
    /// Dataset or group, in the group of the table.
    pub(crate) link: String,
    /// Dataset of the defined cells of a dense column, if some are not.
    pub(crate) flags: Option<String>,
    /// Why cells are not in the file; empty if they are.
    pub(crate) reason: String,
    /// Attribute with the TaQL expression of a column without cells.
    pub(crate) expression: Option<String>,
    /// Hypercubes that are variables of MSv4, in their order; empty if the column's group has them.
    pub(crate) grids: Vec<StoredGrid>,
}

/// A hypercube whose positions are times and baselines, the two slowest axes of its dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredGrid {
    /// Path of the dataset from the root.
    pub(crate) path: String,
    /// Whether the channels are in the opposite order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) reversed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FormKind {
    /// One shape, one dataset, rows slowest; a second dataset may tell which cells are defined.
    Dense,
    /// A dataset for each shape; two more map rows to hypercubes and positions.
    Cubes,
    /// Cells of different shapes, concatenated; other datasets have offsets, shapes, defined cells.
    Ragged,
    /// One dataset of JSON strings.
    Record,
    Missing,
}

/// Datasets of a column by their content; `T` is kept for each. First come those with cells, then
/// those that locate cells or tell which are defined.
#[derive(Debug, Clone)]
pub(crate) enum Members<T> {
    Dense { data: T, flags: Option<T> },
    Cubes { cubes: Vec<T>, row_cube: T, row_index: T },
    Ragged { values: T, offset: T, shape: T, defined: T },
}

impl<T> Members<T> {
    /// Ordered as datasets are created.
    pub(crate) fn list(&self) -> Vec<&T> {
        match self {
            Members::Dense { data, flags } => std::iter::once(data).chain(flags).collect(),
            Members::Cubes { cubes, row_cube, row_index } => cubes.iter().chain([row_cube, row_index]).collect(),
            Members::Ragged { values, offset, shape, defined } => vec![values, offset, shape, defined],
        }
    }

    pub(crate) fn into_list(self) -> Vec<T> {
        match self {
            Members::Dense { data, flags } => std::iter::once(data).chain(flags).collect(),
            Members::Cubes { cubes, row_cube, row_index } => cubes.into_iter().chain([row_cube, row_index]).collect(),
            Members::Ragged { values, offset, shape, defined } => vec![values, offset, shape, defined],
        }
    }
}

impl<T> Members<T> {
    pub(crate) fn parts(&self) -> Vec<(Part, &T)> {
        match self {
            Members::Dense { data, flags } => {
                std::iter::once((Part::Data, data)).chain(flags.iter().map(|flags| (Part::Defined, flags))).collect()
            }
            Members::Cubes { cubes, row_cube, row_index } => {
                let cubes = cubes.iter().enumerate().map(|(number, cube)| (Part::Cube(number), cube));
                cubes.chain([(Part::RowCube, row_cube), (Part::RowIndex, row_index)]).collect()
            }
            Members::Ragged { values, offset, shape, defined } => {
                vec![(Part::Values, values), (Part::Offset, offset), (Part::Shape, shape), (Part::Defined, defined)]
            }
        }
    }

    pub(crate) fn try_map<U>(self, mut make: impl FnMut(T) -> Result<U>) -> Result<Members<U>> {
        Ok(match self {
            Members::Dense { data, flags } => Members::Dense { data: make(data)?, flags: flags.map(make).transpose()? },
            Members::Cubes { cubes, row_cube, row_index } => Members::Cubes {
                cubes: cubes.into_iter().map(&mut make).collect::<Result<_>>()?,
                row_cube: make(row_cube)?,
                row_index: make(row_index)?,
            },
            Members::Ragged { values, offset, shape, defined } => Members::Ragged {
                values: make(values)?,
                offset: make(offset)?,
                shape: make(shape)?,
                defined: make(defined)?,
            },
        })
    }
}

impl FormKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            FormKind::Dense => "dense",
            FormKind::Cubes => "cubes",
            FormKind::Ragged => "ragged",
            FormKind::Record => "record",
            FormKind::Missing => "missing",
        }
    }

    /// Hypercubes or ragged, by the names of datasets; `None` if the group is not that of a column.
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
    pub(crate) fn new(kind: FormKind, link: impl Into<String>) -> Self {
        StoredForm { kind, link: link.into(), flags: None, reason: String::new(), expression: None, grids: Vec::new() }
    }

    pub(crate) fn with_flags(self, flags: Option<String>) -> Self {
        StoredForm { flags, ..self }
    }

    pub(crate) fn with_grids(self, grids: Vec<StoredGrid>) -> Self {
        StoredForm { grids, ..self }
    }

    /// Cells are not in the file; `reason` is for the user.
    pub(crate) fn missing(link: String, reason: String, expression: Option<String>) -> Self {
        StoredForm { reason, expression, ..StoredForm::new(FormKind::Missing, link) }
    }

    /// 0 unless the column is stored as hypercubes; `table` is the group of its table.
    pub(crate) fn cubes(&self, table: &Group) -> Result<usize> {
        if self.kind != FormKind::Cubes || !self.grids.is_empty() {
            return Ok(self.grids.len());
        }
        let group = table.group(&self.link)?;
        Ok((0..).take_while(|&number| group.has(&cube_name(number))).count())
    }

    /// Other than scales.
    pub(super) fn has_member(&self, name: &str) -> bool {
        match self.kind {
            FormKind::Cubes => growth(name).is_some(),
            FormKind::Ragged => matches!(name, VALUES | OFFSET | SHAPE | DEFINED),
            FormKind::Dense | FormKind::Record | FormKind::Missing => false,
        }
    }

    /// Paths are below the table's group or, with a slash, from the root; `Unsupported` if missing.
    pub(crate) fn open<T>(&self, cubes: usize, mut open: impl FnMut(&str) -> Result<T>) -> Result<Members<T>> {
        let path = |name: &str| format!("{}/{name}", self.link);
        Ok(match self.kind {
            FormKind::Missing => return Err(Error::unsupported(self.reason.as_str())),
            FormKind::Dense | FormKind::Record => {
                let data = open(&self.link)?;
                Members::Dense { data, flags: self.flags.as_deref().map(open).transpose()? }
            }
            FormKind::Cubes => Members::Cubes {
                cubes: match &self.grids[..] {
                    [] => (0..cubes).map(|number| open(&path(&cube_name(number)))).collect::<Result<_>>()?,
                    grids => grids.iter().map(|grid| open(&grid.path)).collect::<Result<_>>()?,
                },
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

    /// Path of the elements, or of the hypercube `cube`; `table` is that of the table's group.
    pub(crate) fn elements_path(&self, table: &str, cube: usize) -> String {
        if let Some(grid) = self.grids.get(cube) {
            return grid.path.clone();
        }
        let path = format!("{table}/{}", self.link);
        match self.kind {
            FormKind::Cubes => format!("{path}/{}", cube_name(cube)),
            FormKind::Ragged => format!("{path}/{VALUES}"),
            FormKind::Dense | FormKind::Record | FormKind::Missing => path,
        }
    }

    /// If the table `grows`, the number of cells in a shape is not used. Names of axes are chosen
    /// in the order in which datasets are created: all files made from a table have the same names.
    pub(crate) fn lay_out(
        &self,
        column: &NewColumn<'_>,
        names: &mut AxisNames<'_>,
        grows: bool,
        shape_of: &dyn Fn(Part) -> Result<Shape>,
    ) -> Result<Members<NewDataset>> {
        let of_rows = |name: &str, part: Part| NewDataset { name: name.to_owned(), part, axes: vec![NewAxis::Rows] };
        match self.kind {
            FormKind::Missing => Err(Error::unsupported(self.reason.as_str())),
            FormKind::Dense | FormKind::Record => {
                let cell = cell_of(&shape_of(Part::Data)?);
                let mut axes = names.axes(&cell, &(column.roles)(cell.len()));
                axes.push(NewAxis::Rows);
                let data = NewDataset { name: self.link.clone(), part: Part::Data, axes };
                Ok(Members::Dense { data, flags: self.flags.as_deref().map(|name| of_rows(name, Part::Defined)) })
            }
            FormKind::Cubes => {
                let mut cubes = Vec::new();
                for number in 0..column.cubes {
                    let part = Part::Cube(number);
                    let shape = shape_of(part)?;
                    let cell = cell_of(&shape);
                    let mut roles = (column.roles)(cell.len());
                    let axes = if grows {
                        // the axis has no length that a name could stand for
                        let mut axes = names.axes(&cell, &roles);
                        axes.push(NewAxis::Positions(names.fresh(POSITION)));
                        axes
                    } else {
                        roles.push(POSITION);
                        names.axes(&shape, &roles)
                    };
                    cubes.push(NewDataset { name: cube_name(number), part, axes });
                }
                let row_cube = of_rows(ROW_CUBE, Part::RowCube);
                Ok(Members::Cubes { cubes, row_cube, row_index: of_rows(ROW_INDEX, Part::RowIndex) })
            }
            FormKind::Ragged => {
                let mut make = |name: &str, part: Part, role: &str| -> Result<NewDataset> {
                    let axes = names.axes(&shape_of(part)?[..1], &[role]);
                    Ok(NewDataset { name: name.to_owned(), part, axes })
                };
                let values = make(VALUES, Part::Values, "element")?;
                let offset = make(OFFSET, Part::Offset, "offset")?;
                let mut shape = make(SHAPE, Part::Shape, "axis")?;
                shape.axes.push(NewAxis::Rows);
                Ok(Members::Ragged { values, offset, shape, defined: of_rows(DEFINED, Part::Defined) })
            }
        }
    }

    /// Hypercubes and ragged columns do.
    pub(crate) fn has_group(&self) -> bool {
        matches!(self.kind, FormKind::Cubes | FormKind::Ragged)
    }

    /// Datasets get attributes and scales, but no elements; returns the results of [`Maker::make`].
    pub(crate) fn create<M: Maker>(
        &self,
        table: &Group,
        column: &NewColumn<'_>,
        scales: &mut Scales,
        names: &mut AxisNames<'_>,
        maker: &mut M,
    ) -> Result<Members<M::Made>> {
        let datasets = self.lay_out(column, names, M::GROWS, &|part| maker.shape(part))?;
        if !self.has_group() {
            return datasets.try_map(|new| {
                let made = maker.make(table, &new.name, new.part)?;
                if new.part == Part::Data {
                    let dataset = maker.dataset(&made);
                    column.attributes.write(|name, value| dataset.set_attribute(name, value))?;
                }
                attach_all(&made, &new, table, scales, names, maker)?;
                Ok(made)
            });
        }
        let group = table.create_group(&self.link)?;
        column.attributes.write(|name, value| group.set_attribute(name, value))?;
        let mut local = scales.inside(&group);
        datasets.try_map(|new| {
            let made = maker.make(&group, &new.name, new.part)?;
            attach_all(&made, &new, &group, &mut local, names, maker)?;
            Ok(made)
        })
    }
}

#[derive(Debug, Clone)]
pub(crate) struct NewDataset {
    /// Name in the group of the column, or of the table if the column has none.
    pub(crate) name: String,
    pub(crate) part: Part,
    /// First axis fastest.
    pub(crate) axes: Vec<NewAxis>,
}

fn attach_all<M: Maker>(
    made: &M::Made,
    new: &NewDataset,
    group: &Group,
    scales: &mut Scales,
    names: &AxisNames<'_>,
    maker: &mut M,
) -> Result<()> {
    let mut attached = Vec::new();
    for axis in &new.axes {
        attached.push(match axis {
            NewAxis::Named { name, role, len } => scales.named(name, &names.scale(role, *len), *len)?,
            NewAxis::Rows => maker.row().as_scale()?,
            NewAxis::Positions(name) => {
                let positions = maker.make(group, name, Part::Position)?;
                maker.dataset(&positions).make_scale(name)?;
                maker.dataset(&positions).as_scale()?
            }
        });
    }
    scales.attach(maker.dataset(made), &attached)
}

pub(crate) struct NewColumn<'a> {
    pub(crate) attributes: &'a Attributes,
    /// Meanings (`corr`, `chan`) of this number of axes, fastest first.
    pub(crate) roles: &'a dyn Fn(usize) -> Vec<&'a str>,
    /// 0 unless stored as hypercubes.
    pub(crate) cubes: usize,
}

/// The part of a column that a dataset of a native HDF5 file holds: its cells, or data that locates
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All cells of a dense column (one whose cells have one shape and are in one dataset), or the
    /// JSON strings of a column of records; rows are the slowest axis.
    Data,
    /// The cells of one hypercube, one after the other along the slowest axis; holds the number of
    /// the hypercube, from 0.
    Cube(usize),
    /// The dimension scale of the slowest axis of a hypercube that grows; the axis counts the
    /// hypercube's cells.
    Position,
    /// The number of the hypercube (from 0) that has the cell of each row; -1 for an undefined
    /// cell.
    RowCube,
    /// The position (from 0) of each row's cell along the slowest axis of its hypercube; without
    /// meaning for undefined cells.
    RowIndex,
    /// The elements of all cells of a ragged column (one whose cells differ in shape), one cell
    /// after the other.
    Values,
    /// The index (from 0) in [`Part::Values`] of the first element of each row's cell in a ragged
    /// column, then the end of the last cell: one entry more than rows.
    Offset,
    /// The extents of each row's cell in a ragged column, slowest axis first, filled up with -1 for
    /// cells with fewer axes.
    Shape,
    /// One boolean for each row: whether its cell is defined. Part of every ragged column (cells of
    /// differing shapes), and of a dense column (cells of one shape, in one dataset) that has
    /// undefined cells.
    Defined,
}

impl Part {
    /// Name of the part of a column: `data`, `cube`, `row_cube` … Also the name of the dataset,
    /// except for `data`, `cube`, `position`, and `defined` of dense columns.
    pub fn name(self) -> &'static str {
        match self {
            Part::Data => "data",
            Part::Cube(_) => "cube",
            Part::Position => POSITION,
            Part::RowCube => ROW_CUBE,
            Part::RowIndex => ROW_INDEX,
            Part::Values => VALUES,
            Part::Offset => OFFSET,
            Part::Shape => SHAPE,
            Part::Defined => DEFINED,
        }
    }

    /// Type `column` for cells, strings (JSON) for records; other parts have types of their own.
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

/// Creates datasets, with their final extents in a conversion, with 0 rows in a live file.
pub(crate) trait Maker {
    /// Rows come later, while other processes read the file.
    const GROWS: bool;
    /// The dataset, or what is needed to write its elements.
    type Made;

    /// Fastest axis first; the slowest extent is 0 if rows come later.
    fn shape(&self, part: Part) -> Result<Shape>;

    fn make(&mut self, group: &Group, name: &str, part: Part) -> Result<Self::Made>;

    fn dataset<'a>(&'a self, made: &'a Self::Made) -> &'a Dataset;

    fn row(&self) -> &Dataset;
}

/// Without the slowest axis, which counts cells.
fn cell_of(shape: &Shape) -> Shape {
    shape.split_last().map(|(cell, _)| cell).unwrap_or_default()
}
