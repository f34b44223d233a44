//! The forms that the cells of a column have in a native file. docs/layout.md, "A column".

use serde::{Deserialize, Serialize};

use super::attributes::Attributes;
use super::axes::{AxisNames, NewAxis, Scales};
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

/// What the growing axis of a dataset in the group of a column counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    Rows,
    /// The cells in the hypercube of this number.
    Positions(usize),
}

/// What the growing axis of the dataset `name` in the group of a column with hypercubes counts; `None` for what is not one of its
/// members.
pub(crate) fn growth(name: &str) -> Option<Growth> {
    if matches!(name, ROW_CUBE | ROW_INDEX) {
        return Some(Growth::Rows);
    }
    let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let number: usize = name[digits..].parse().ok()?;
    (name == cube_name(number)).then_some(Growth::Positions(number))
}

/// The names, in the group of a column with hypercubes, of the datasets with the hypercube of each row and the position in it.
pub(crate) fn row_map() -> (&'static str, &'static str) {
    (ROW_CUBE, ROW_INDEX)
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

impl<T> Members<T> {
    /// What each of [`list`](Self::list) holds.
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

    /// The same members, each made from that of these, in the order of [`list`](Self::list).
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

    /// The datasets that the column gets. They are named in the order in which they are made, so that the names of axes are
    /// those of any other file of the same table. `shape_of` knows their shapes; where they grow, only those of cells count.
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
                let cell = cell_of(&shape_of(Part::Data)?)?;
                let mut axes = names.axes(&cell, &(column.roles)(cell.len()));
                axes.push(NewAxis::Rows);
                let data = NewDataset { name: self.link.clone(), part: Part::Data, axes };
                Ok(Members::Dense { data, flags: column.flags.map(|name| of_rows(name, Part::Defined)) })
            }
            FormKind::Cubes => {
                let mut cubes = Vec::new();
                for number in 0..column.cubes {
                    let part = Part::Cube(number);
                    let shape = shape_of(part)?;
                    let cell = cell_of(&shape)?;
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

    /// Whether the column has a group of its own for its datasets.
    pub(crate) fn has_group(&self) -> bool {
        matches!(self.kind, FormKind::Cubes | FormKind::Ragged)
    }

    /// Creates the datasets of the column in the group of its table, with attributes and scales.
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
        let mut local = Scales::new(&group);
        datasets.try_map(|new| {
            let made = maker.make(&group, &new.name, new.part)?;
            attach_all(&made, &new, &group, &mut local, names, maker)?;
            Ok(made)
        })
    }
}

/// A dataset of a column that is to be made.
#[derive(Debug, Clone)]
pub(crate) struct NewDataset {
    /// The name in the group of the column, or of the table where the column has none.
    pub(crate) name: String,
    pub(crate) part: Part,
    /// First axis fastest.
    pub(crate) axes: Vec<NewAxis>,
}

/// Attaches the scales of all axes of a dataset in `group`.
fn attach_all<M: Maker>(
    made: &M::Made,
    new: &NewDataset,
    group: &Group,
    scales: &mut Scales,
    names: &AxisNames<'_>,
    maker: &mut M,
) -> Result<()> {
    for (number, axis) in new.axes.iter().enumerate() {
        match axis {
            NewAxis::Named { name, role, len } => {
                scales.attach_one(maker.dataset(made), number, name, &names.scale(role, *len), *len)?;
            }
            NewAxis::Rows => maker.dataset(made).attach_scale(number, maker.row())?,
            NewAxis::Positions(name) => {
                let positions = maker.make(group, name, Part::Position)?;
                maker.dataset(&positions).make_scale(name)?;
                maker.dataset(made).attach_scale(number, maker.dataset(&positions))?;
            }
        }
    }
    Ok(())
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
pub enum Part {
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
    /// The name of what it holds; of most of them also the name of the dataset.
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

    /// The shape that a dataset gets, without the rows or positions that come later.
    fn shape(&self, part: Part) -> Result<Shape>;

    /// Creates a dataset.
    fn make(&mut self, group: &Group, name: &str, part: Part) -> Result<Self::Made>;

    /// The dataset that something stands for.
    fn dataset<'a>(&'a self, made: &'a Self::Made) -> &'a Dataset;

    /// The scale of the rows of the table.
    fn row(&self) -> &Dataset;
}

/// The shape of the rows of a dataset.
fn cell_of(shape: &Shape) -> Result<Shape> {
    let (cell, _) = shape.split_last().ok_or_else(|| Error::format("the dataset has no axes"))?;
    Ok(cell)
}
