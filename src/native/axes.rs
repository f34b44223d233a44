//! Chooses and writes the dimension scales of a native HDF5 file: datasets that give the axes of other datasets names
//! and coordinates. docs/layout.md, "Dimension scales".

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::attributes::{LONG_NAME, UNITS};
use super::names::POSITION;
use crate::error::{Error, Result};
use crate::h5::{Attachments, Attribute, Compression, Dataset, DatasetSpec, Group, Scale};
use crate::value::{Region, Shape, Values};

/// Roles (meanings) of the axes of a column's cells: `corr`, `chan`, `uvw` …, or `dim` if unknown; fastest axis first, without
/// the row axis.
pub(crate) fn axis_roles(is_main_of_ms: bool, column: &str, axes: usize) -> Vec<&'static str> {
    let known: &[&str] = match column {
        "DATA"
        | "FLOAT_DATA"
        | "CORRECTED_DATA"
        | "MODEL_DATA"
        | "FLAG"
        | "WEIGHT_SPECTRUM"
        | "SIGMA_SPECTRUM"
        | "CORRECTED_WEIGHT_SPECTRUM"
        | "VIDEO_POINT" => &["corr", "chan"],
        "FLAG_CATEGORY" => &["corr", "chan", "category"],
        "WEIGHT" | "SIGMA" => &["corr"],
        "IMAGING_WEIGHT" => &["chan"],
        "UVW" => &["uvw"],
        _ => &[],
    };
    if is_main_of_ms && known.len() == axes { known.to_vec() } else { vec!["dim"; axes] }
}

/// Role of the axes of a dimension scale with a name that this layout gives: `chan` of `chan_0`; `None` for other names.
pub(super) fn role_of_scale(name: &str) -> Option<&str> {
    const ROLES: [&str; 9] = ["corr", "chan", "category", "uvw", "dim", POSITION, "element", "offset", "axis"];
    let (role, number) = name.rsplit_once('_')?;
    (ROLES.contains(&role) && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(role)
}

/// Chooses names of dimension scales such as `chan_0` for the datasets of one top-level group. Axes share a name only
/// if they have the same role (meaning, such as `chan`) and length.
#[derive(Debug, Default)]
pub(crate) struct Dimensions {
    /// The names of dimension scales chosen so far. The key has the role (meaning) and length of an axis, and the number
    /// of earlier axes of the same dataset with this role and length.
    known: BTreeMap<(String, u64, usize), String>,
    counts: BTreeMap<String, usize>,
}

impl Dimensions {
    /// Chooses names for the axes of a dataset, each given by its role (`chan`, `corr` …) and length. Two axes of the
    /// same role and length get different names; names for which `taken` returns true are not chosen.
    pub(crate) fn names(&mut self, axes: &[(&str, u64)], taken: &dyn Fn(&str) -> bool) -> Vec<String> {
        let mut names = Vec::new();
        for (i, &(role, len)) in axes.iter().enumerate() {
            let before = axes[..i].iter().filter(|&&axis| axis == (role, len)).count();
            let key = (role.to_owned(), len, before);
            let name = match self.known.get(&key) {
                Some(name) if !taken(name) => name.clone(),
                _ => {
                    let name = self.fresh(role, taken);
                    self.known.insert(key, name.clone());
                    name
                }
            };
            names.push(name);
        }
        names
    }

    /// Chooses a name of a dimension scale that is not in use, for an axis with the meaning `role`: for `chan`, the
    /// first of `chan_0`, `chan_1` … that is neither chosen before nor `taken`.
    pub(crate) fn fresh(&mut self, role: &str, taken: &dyn Fn(&str) -> bool) -> String {
        let count = self.counts.entry(role.to_owned()).or_default();
        let mut name = format!("{role}_{count}");
        while taken(&name) {
            *count += 1;
            name = format!("{role}_{count}");
        }
        *count += 1;
        name
    }
}

/// The chosen names of dimension scales, separately for each top-level group of the file.
#[derive(Debug, Default)]
pub(crate) struct TreeDimensions(BTreeMap<String, Dimensions>);

impl TreeDimensions {
    /// The names of dimension scales chosen so far in the top-level group that the group at `path` is in; empty at first.
    pub(crate) fn of_group(&mut self, path: &str) -> &mut Dimensions {
        let top = path.split('/').nth(1).unwrap_or_default();
        self.0.entry(top.to_owned()).or_default()
    }
}

/// Coordinates for dimension scales (datasets that give an axis a name and coordinates), by the role of the axis:
/// centre frequencies of the channels in Hz for `chan`, Stokes codes for `corr`.
#[derive(Debug, Default)]
pub(crate) struct Coordinates {
    /// Whether these coordinates (frequencies, Stokes codes) are for the axes of a MeasurementSet's main table.
    is_measurement_set: bool,
    /// Roles of axes (`chan`, `corr`), each with the coordinates of one axis (Hz, Stokes codes). A role occurs several
    /// times if axes of this role differ, for example `chan` for each spectral window.
    known: Vec<(String, Values)>,
}

impl Coordinates {
    /// Makes coordinates from pairs of an axis role (`chan`, `corr`) and the values along such an axis.
    pub(crate) fn new(is_measurement_set: bool, known: Vec<(String, Values)>) -> Self {
        Coordinates { is_measurement_set, known }
    }

    /// The coordinates of an axis with this role (its meaning: `chan`, `corr` …) and length; `None` if none are known,
    /// or if several are known and differ.
    fn of_axis(&self, role: &str, len: u64) -> Option<&Values> {
        let mut fitting = self.known.iter().filter(|(known, values)| known == role && values.len() as u64 == len);
        let (_, first) = fitting.next()?;
        fitting.all(|(_, other)| other == first).then_some(first)
    }
}

/// An axis of a dataset to be created, with the dimension scale that it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NewAxis {
    /// The axis of the table's rows; all columns of the table share its dimension scale.
    Rows,
    /// An axis whose dimension scale is in the same group as the dataset.
    Named {
        /// Name of the dimension scale of the axis.
        name: String,
        /// Role of the axis, that is its meaning: `chan`, `corr`, or `dim` if unknown.
        role: String,
        len: u64,
    },
    /// The slowest axis of a hypercube in a live file, along which cells are appended; holds the name of the dimension
    /// scale of this axis.
    Positions(String),
}

impl NewAxis {
    /// The name of the dimension scale of the axis; the argument `row` is the name returned for the axis of rows.
    pub(crate) fn name<'a>(&'a self, row: &'a str) -> &'a str {
        match self {
            NewAxis::Rows => row,
            NewAxis::Named { name, .. } | NewAxis::Positions(name) => name,
        }
    }
}

/// Chooses names and coordinates for the axes of the datasets of one table, in its group and in the groups of its columns.
pub(crate) struct AxisNames<'a> {
    dimensions: &'a mut Dimensions,
    coordinates: &'a Coordinates,
    /// Function that returns whether an object in the table's group already has the name given to the function.
    taken: &'a dyn Fn(&str) -> bool,
}

impl<'a> AxisNames<'a> {
    pub(crate) fn new(
        dimensions: &'a mut Dimensions,
        coordinates: &'a Coordinates,
        taken: &'a dyn Fn(&str) -> bool,
    ) -> Self {
        AxisNames { dimensions, coordinates, taken }
    }

    pub(crate) fn is_measurement_set(&self) -> bool {
        self.coordinates.is_measurement_set
    }

    /// Makes the axes of a new dataset and chooses their names. `extents` has the length and `roles` the meaning of
    /// each axis (`chan`, `corr`, `position` …, `dim` if unknown), fastest axis first.
    pub(crate) fn axes(&mut self, extents: &[u64], roles: &[&str]) -> Vec<NewAxis> {
        let axes: Vec<(&str, u64)> = roles.iter().copied().zip(extents.iter().copied()).collect();
        let names = self.dimensions.names(&axes, self.taken);
        let named = |(name, (role, len)): (String, (&str, u64))| NewAxis::Named { name, role: role.to_owned(), len };
        names.into_iter().zip(axes).map(named).collect()
    }

    /// Chooses an axis name that is not in use yet, made of `role` (the meaning of the axis, such as `position`) and a
    /// number: `position_0`, `position_1` … The caller creates the dimension scale.
    pub(super) fn fresh(&mut self, role: &str) -> String {
        self.dimensions.fresh(role, self.taken)
    }

    /// The coordinates and attributes to write in the dimension scale for an axis with this role
    /// and length.
    pub(crate) fn scale(&self, role: &str, len: u64) -> NewScale<'a> {
        let Some(values) = self.coordinates.of_axis(role, len) else {
            return NewScale { values: None, attributes: &[] };
        };
        let attributes: &[(&str, &str)] = match role {
            "chan" => &[(UNITS, "Hz"), (LONG_NAME, "channel frequency")],
            "corr" => &[(LONG_NAME, "Stokes code of the correlation")],
            _ => &[],
        };
        NewScale { values: Some(values), attributes }
    }
}

/// A dimension scale to be written: its values and attributes.
pub(crate) struct NewScale<'a> {
    /// Coordinates along the axis; `None` if they are not known, and the dimension scale only names the axis.
    pub(crate) values: Option<&'a Values>,
    /// Names and values of the string attributes of the dimension scale.
    pub(crate) attributes: &'a [(&'static str, &'static str)],
}

/// The dimension scales in one group of the file, each created when the first axis needs it, and what the scales of a table
/// are attached to.
pub(crate) struct Scales {
    group: Group,
    made: HashMap<String, Scale>,
    /// Shared by the scales in the group of a table and in the groups of its columns.
    attachments: Rc<RefCell<Attachments>>,
}

impl Scales {
    pub(crate) fn new(group: &Group) -> Self {
        Scales { group: group.clone(), made: HashMap::new(), attachments: Rc::default() }
    }

    /// The dimension scales in a group of a column.
    pub(super) fn inside(&self, group: &Group) -> Self {
        Scales { attachments: self.attachments.clone(), ..Scales::new(group) }
    }

    /// Attaches a dimension scale to each axis of a dataset; `scales` lists them, fastest axis first.
    pub(super) fn attach(&self, dataset: &Dataset, scales: &[Scale]) -> Result<()> {
        self.attachments.borrow_mut().attach(dataset, scales)
    }

    /// Attaches dimension scales in the group to all `axes` of a dataset, fastest first; an axis that is not
    /// [`NewAxis::Named`] is an error.
    pub(crate) fn attach_named(&mut self, dataset: &Dataset, axes: &[NewAxis], names: &AxisNames<'_>) -> Result<()> {
        let scale = |axis: &NewAxis| match axis {
            NewAxis::Named { name, role, len } => self.named(name, &names.scale(role, *len), *len),
            NewAxis::Rows | NewAxis::Positions(_) => Err(Error::usage("an axis whose scale is not the group's")),
        };
        let scales = axes.iter().map(scale).collect::<Result<Vec<_>>>()?;
        self.attach(dataset, &scales)
    }

    /// Tells each scale of the table what it is attached to. Called once, when all datasets of the table are made.
    pub(crate) fn finish(self) -> Result<()> {
        self.attachments.borrow_mut().write()
    }

    /// The dimension scale `name`; creates it with length `len` if it does not exist.
    pub(super) fn named(&mut self, name: &str, scale: &NewScale<'_>, len: u64) -> Result<Scale> {
        if let Some(made) = self.made.get(name) {
            return Ok(made.clone());
        }
        let made = self.make(name, scale, len)?.as_scale()?;
        self.made.insert(name.to_owned(), made.clone());
        Ok(made)
    }

    fn make(&self, name: &str, scale: &NewScale<'_>, len: u64) -> Result<Dataset> {
        let Some(values) = scale.values else {
            return self.group.create_dimension(name, len);
        };
        let shape = Shape::from([len]);
        let spec = DatasetSpec {
            element: values.data_type(),
            shape: &shape,
            chunk: None,
            appendable: false,
            compression: Compression::NONE,
        };
        let dataset = self.group.create_dataset(name, &spec)?;
        dataset.write_region(&Region::whole(&shape), values)?;
        for (name, value) in scale.attributes {
            dataset.set_attribute(name, &Attribute::string(*value))?;
        }
        dataset.make_scale(name)?;
        Ok(dataset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_axes_of_a_dataset_differ_in_name() {
        let mut dimensions = Dimensions::default();
        assert_eq!(dimensions.names(&[("dim", 2), ("dim", 2)], &|_| false), ["dim_0", "dim_1"]);
        assert_eq!(dimensions.names(&[("dim", 2)], &|_| false), ["dim_0"]);
        assert_eq!(dimensions.names(&[("corr", 4), ("chan", 64)], &|_| false), ["corr_0", "chan_0"]);
        assert_eq!(dimensions.names(&[("corr", 2), ("chan", 64)], &|_| false), ["corr_1", "chan_0"]);
        assert_eq!(dimensions.names(&[("chan", 64)], &|name| name == "chan_0"), ["chan_1"]);
    }
}
