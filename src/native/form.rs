//! The storage forms (dense, hypercubes, ragged …) that the cells of a column have in a native HDF5 file: which
//! datasets there are, and what they hold. docs/layout.md, "A column".

use serde::{Deserialize, Serialize};

use super::attributes::Attributes;
use super::axes::{AxisNames, NewAxis, Scales};
use super::names::POSITION;
use crate::error::{Error, Result};
use crate::h5::{Dataset, Group};
use crate::value::{DataType, Shape};

/// Maximum number of hypercubes that a column of a native HDF5 file may have; a column with more is stored as ragged,
/// one cell after the other.
pub(crate) const MAX_CUBES: usize = 64;

/// Size in bytes of an element of this type in a dataset of a native HDF5 file; 16 for strings and records, which are
/// stored as references to a heap.
pub(crate) fn stored_size(data_type: DataType) -> u64 {
    if data_type.is_fixed_size() { data_type.size() as u64 } else { 16 }
}

/// Name of the dataset with the number (from 0) of each row's hypercube, in the group of a column with hypercubes.
const ROW_CUBE: &str = "row_cube";
/// Name of the dataset with the position (from 0) of each row in its hypercube, in the group of a column with hypercubes.
const ROW_INDEX: &str = "row_index";
/// Name of the dataset with the elements of all cells of a ragged column, in the group of the column.
const VALUES: &str = "values";
/// Name of the dataset, in the group of a ragged column, with the index (from 0) of each cell's first element in the dataset
/// `values`.
const OFFSET: &str = "offset";
/// Name of the dataset with the extents of each cell, slowest axis first, in the group of a ragged column.
const SHAPE: &str = "shape";
/// Name of the dataset that tells which cells are defined, in the group of a ragged column.
const DEFINED: &str = "defined";

/// Name of the dataset for the hypercube with this number, from 0, in the group of a column.
fn cube_name(number: usize) -> String {
    format!("cube{number}")
}

/// The unit in which a dataset of a column with hypercubes grows in a live file: rows of the table, or cells of one hypercube.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    Rows,
    /// The dataset grows along an axis that counts the cells of one hypercube; holds the number of the hypercube, from 0.
    Positions(usize),
}

/// Whether the dataset `name`, in the group of a column with hypercubes, grows by rows or by cells of a hypercube; `None` for
/// other datasets.
pub(crate) fn growth(name: &str) -> Option<Growth> {
    if matches!(name, ROW_CUBE | ROW_INDEX) {
        return Some(Growth::Rows);
    }
    let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let number: usize = name[digits..].parse().ok()?;
    (name == cube_name(number)).then_some(Growth::Positions(number))
}

/// The names of two datasets of a column with hypercubes: the one with the hypercube of each row, and the one with the row's
/// position in it.
pub(crate) fn row_map() -> (&'static str, &'static str) {
    (ROW_CUBE, ROW_INDEX)
}

/// How the cells of a column are stored in a native HDF5 file, and in which dataset or group.
#[derive(Debug, Clone)]
pub(crate) struct StoredForm {
    pub(crate) kind: FormKind,
    /// Name of the column's dataset or group, in the group of its table.
    pub(crate) link: String,
    /// Name of the dataset that tells which cells of a dense column are defined, in the group of the table; `None` if all
    /// are, and for columns of other forms.
    pub(crate) flags: Option<String>,
    /// Why the cells of the column are not in the file; empty if they are.
    pub(crate) reason: String,
    /// Name of the attribute of the table's group that shows the TaQL expression of a column without cells; `None` if it
    /// has none.
    pub(crate) expression: Option<String>,
}

/// The storage form of a column's cells in a native HDF5 file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FormKind {
    /// The cells of the column all have one shape and are one dataset, rows slowest; a second dataset may tell which cells are
    /// defined.
    Dense,
    /// The cells of the column are in a dataset for each hypercube (cells of the same shape); two more datasets map rows to
    /// hypercubes and positions.
    Cubes,
    /// The cells of the column differ in shape and are concatenated in one dataset; others have their offsets, their shapes and
    /// whether they are defined.
    Ragged,
    /// The cells of the column are records: one dataset of JSON strings.
    Record,
    /// The cells of the column were not converted and are not in the file.
    Missing,
}

/// The datasets that make up a column of a native HDF5 file, by what they hold. `T` is the type of the value kept for
/// each dataset: the dataset itself, its path …
#[derive(Debug, Clone)]
pub(crate) enum Members<T> {
    Dense { data: T, flags: Option<T> },
    Cubes { cubes: Vec<T>, row_cube: T, row_index: T },
    Ragged { values: T, offset: T, shape: T, defined: T },
}

impl<T> Members<T> {
    /// The `T` of each dataset of the column (the dataset itself, its path …), in the order in which the datasets are
    /// created in a file: first those with the cells, then those that locate cells or tell which are defined.
    pub(crate) fn list(&self) -> Vec<&T> {
        match self {
            Members::Dense { data, flags } => std::iter::once(data).chain(flags).collect(),
            Members::Cubes { cubes, row_cube, row_index } => cubes.iter().chain([row_cube, row_index]).collect(),
            Members::Ragged { values, offset, shape, defined } => vec![values, offset, shape, defined],
        }
    }

    /// Returns the `T` of each dataset of the column by value: first for the datasets with the
    /// cells, then for those that locate cells or tell which are defined.
    pub(crate) fn into_list(self) -> Vec<T> {
        match self {
            Members::Dense { data, flags } => std::iter::once(data).chain(flags).collect(),
            Members::Cubes { cubes, row_cube, row_index } => cubes.into_iter().chain([row_cube, row_index]).collect(),
            Members::Ragged { values, offset, shape, defined } => vec![values, offset, shape, defined],
        }
    }
}

impl<T> Members<T> {
    /// The `T` of each dataset of the column, with the part of the column that the dataset holds:
    /// first for the datasets with the cells, then for those that locate cells or tell which are
    /// defined.
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

    /// Applies `make` to the `T` of each dataset of the column: first of the datasets with the
    /// cells, then of those that locate cells or tell which are defined. Returns the results or the
    /// first error.
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
    /// The name of the storage form in JSON documents: `dense`, `cubes` …
    pub(super) fn name(self) -> &'static str {
        match self {
            FormKind::Dense => "dense",
            FormKind::Cubes => "cubes",
            FormKind::Ragged => "ragged",
            FormKind::Record => "record",
            FormKind::Missing => "missing",
        }
    }

    /// The storage form of the column whose group is `group`: hypercubes or ragged, by the names of its datasets; `None` if the
    /// group is not that of a column.
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
    /// Describes a column whose cells are in the file, in the dataset or group `link`.
    pub(crate) fn new(kind: FormKind, link: impl Into<String>) -> Self {
        StoredForm { kind, link: link.into(), flags: None, reason: String::new(), expression: None }
    }

    /// Sets the name of the dataset that tells which cells of a dense column are defined.
    pub(crate) fn with_flags(self, flags: Option<String>) -> Self {
        StoredForm { flags, ..self }
    }

    /// Describes a column whose cells are not in the file; `reason` tells the user why. `expression` names the attribute of
    /// the table's group with the TaQL expression of the column.
    pub(crate) fn missing(link: String, reason: String, expression: Option<String>) -> Self {
        StoredForm { kind: FormKind::Missing, link, flags: None, reason, expression }
    }

    /// Counts the hypercubes that the column has in the file; 0 if it is not stored as hypercubes (a dataset for each). `table` is the group of
    /// its table.
    pub(crate) fn cubes(&self, table: &Group) -> Result<usize> {
        if self.kind != FormKind::Cubes {
            return Ok(0);
        }
        let group = table.group(&self.link)?;
        Ok((0..).take_while(|&number| group.has(&cube_name(number))).count())
    }

    /// Whether a column that is a group has a dataset of this name in it, other than dimension scales.
    pub(super) fn has_member(&self, name: &str) -> bool {
        match self.kind {
            FormKind::Cubes => growth(name).is_some(),
            FormKind::Ragged => matches!(name, VALUES | OFFSET | SHAPE | DEFINED),
            FormKind::Dense | FormKind::Record | FormKind::Missing => false,
        }
    }

    /// Calls `open` with the path, below the table's group, of each dataset of the column; returns the results. `cubes`
    /// is the number of hypercubes.
    ///
    /// # Errors
    /// `Unsupported` if the column is missing, and those of `open`.
    pub(crate) fn open<T>(&self, cubes: usize, mut open: impl FnMut(&str) -> Result<T>) -> Result<Members<T>> {
        let path = |name: &str| format!("{}/{name}", self.link);
        Ok(match self.kind {
            FormKind::Missing => return Err(Error::unsupported(self.reason.as_str())),
            FormKind::Dense | FormKind::Record => {
                let data = open(&self.link)?;
                Members::Dense { data, flags: self.flags.as_deref().map(open).transpose()? }
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

    /// The path of the dataset with the elements of the column, or of its hypercube `cube` (from 0); `table` is the path of the
    /// table's group.
    pub(crate) fn elements_path(&self, table: &str, cube: usize) -> String {
        let path = format!("{table}/{}", self.link);
        match self.kind {
            FormKind::Cubes => format!("{path}/{}", cube_name(cube)),
            FormKind::Ragged => format!("{path}/{VALUES}"),
            FormKind::Dense | FormKind::Record | FormKind::Missing => path,
        }
    }

    /// Plans the datasets of a new column: for each its name, the part of the column that it holds, and its axes with
    /// their names. `shape_of` returns the shape of the dataset for a part; if the table `grows`, the number of cells
    /// in this shape is not used.
    ///
    /// Names of axes are chosen in the order in which datasets are created, so that all files made from a table have
    /// the same names.
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

    /// Whether the column has a group of its own for its datasets, as columns with hypercubes and ragged ones have.
    pub(crate) fn has_group(&self) -> bool {
        matches!(self.kind, FormKind::Cubes | FormKind::Ragged)
    }

    /// Creates the datasets of the column in a native HDF5 file (columns as datasets), without elements, below the group
    /// `table`, with attributes and dimension scales. Returns for each dataset the value that [`Maker::make`] returned.
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

/// A dataset of a column that is to be made in a native HDF5 file.
#[derive(Debug, Clone)]
pub(crate) struct NewDataset {
    /// Name of the dataset in the group of the column, or of the table if the column has no group.
    pub(crate) name: String,
    pub(crate) part: Part,
    /// The axes of the dataset, first axis fastest.
    pub(crate) axes: Vec<NewAxis>,
}

/// Attaches the dimension scales of all axes to a new dataset of a column in `group`.
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

/// Everything about a new column, except its elements, that is needed to create its datasets: attributes, axis roles,
/// hypercubes.
pub(crate) struct NewColumn<'a> {
    pub(crate) attributes: &'a Attributes,
    /// Function from the number of axes of a cell to their meanings (`corr`, `chan`), fastest axis first.
    pub(crate) roles: &'a dyn Fn(usize) -> Vec<&'a str>,
    /// Number of hypercubes of the new column; 0 if it is not stored as hypercubes.
    pub(crate) cubes: usize,
}

/// The part of a column that a dataset of a native HDF5 file holds: its cells, or data that locates them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All cells of a dense column (one whose cells have one shape and are in one dataset), or the JSON strings of a
    /// column of records; rows are the slowest axis.
    Data,
    /// The cells of one hypercube, one after the other along the slowest axis; holds the number of the hypercube, from 0.
    Cube(usize),
    /// The dimension scale of the slowest axis of a hypercube that grows; the axis counts the hypercube's cells.
    Position,
    /// The number of the hypercube (from 0) that has the cell of each row; -1 for an undefined cell.
    RowCube,
    /// The position (from 0) of each row's cell along the slowest axis of its hypercube; without meaning for undefined cells.
    RowIndex,
    /// The elements of all cells of a ragged column (one whose cells differ in shape), one cell after the other.
    Values,
    /// The index (from 0) in [`Part::Values`] of the first element of each row's cell in a ragged
    /// column, then the end of the last cell: one entry more than rows.
    Offset,
    /// The extents of each row's cell in a ragged column, slowest axis first, filled up with -1 for
    /// cells with fewer axes.
    Shape,
    /// One boolean for each row: whether its cell is defined. Part of every ragged column (cells of differing shapes),
    /// and of a dense column (cells of one shape, in one dataset) that has undefined cells.
    Defined,
}

impl Part {
    /// Name of the part of a column: `data`, `cube`, `row_cube` … Also the name of the dataset, except for `data`,
    /// `cube`, `position`, and `defined` of dense columns.
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

    /// The element type of the dataset that holds this part of a column. Cells have the type `column`, but records are
    /// strings (JSON); numbers that locate cells, and booleans that tell which are defined, have types of their own.
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

/// Creates the datasets of a new column: with their final extents in a conversion, with 0 rows in a live file.
pub(crate) trait Maker {
    /// Whether the created datasets get their rows later, while other processes read the file.
    const GROWS: bool;
    /// Type of the value that [`make`](Self::make) returns for a dataset that it has created: the dataset itself, or
    /// what is needed to write its elements.
    type Made;

    /// The shape, fastest axis first, with which the dataset is created that holds `part` of the column (its cells, one
    /// hypercube, offsets of cells …). The slowest extent is 0 if the rows are added later.
    fn shape(&self, part: Part) -> Result<Shape>;

    /// Creates one of the datasets of the column, with the name `name` in `group`; `part` tells what the dataset holds:
    /// the cells, one hypercube, offsets of cells …
    fn make(&mut self, group: &Group, name: &str, part: Part) -> Result<Self::Made>;

    /// The HDF5 dataset that [`make`](Self::make) created: `made` is the value that `make` returned, either the dataset
    /// itself or what is needed to write its elements.
    fn dataset<'a>(&'a self, made: &'a Self::Made) -> &'a Dataset;

    /// The dataset that is the dimension scale of the rows of the table.
    fn row(&self) -> &Dataset;
}

/// The shape of a cell, fastest axis first, from the `shape` of a dataset of cells, whose slowest axis counts the
/// cells.
fn cell_of(shape: &Shape) -> Shape {
    shape.split_last().map(|(cell, _)| cell).unwrap_or_default()
}
