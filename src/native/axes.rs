//! Dimension scales of a native file: the meaning and the name of every axis of every dataset. docs/layout.md, "Dimension
//! scales".

use std::collections::BTreeMap;

use super::attributes::{LONG_NAME, UNITS};
use crate::error::{Error, Result};
use crate::h5::{Attribute, Compression, Dataset, DatasetSpec, Group};
use crate::value::{Region, Shape, Values};

/// Meanings of the axes of a column's cells (`corr`, `chan`, `uvw`; `dim` if unknown), fastest axis first, without the row
/// axis.
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

/// Chooses the names of dimension scales below a root group, such that datasets share a name only for axes of the same length.
#[derive(Debug, Default)]
pub(crate) struct Dimensions {
    /// The names chosen so far, by role and length of the axis, and how many axes before it in the same dataset have both.
    known: BTreeMap<(String, u64, usize), String>,
    counts: BTreeMap<String, usize>,
}

impl Dimensions {
    /// Chooses names for axes of these roles and lengths, none of them `taken`. Two equal axes of a dataset get two names.
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

    /// Chooses a new name for the scale of an axis with this role, `role_0`, `role_1` …, which is not `taken`.
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

/// The chosen names of dimension scales, for each group of the root apart.
#[derive(Debug, Default)]
pub(crate) struct TreeDimensions(BTreeMap<String, Dimensions>);

impl TreeDimensions {
    /// The names of dimension scales that apply to the group at `path`, which is in one of the groups of the root.
    pub(crate) fn of_group(&mut self, path: &str) -> &mut Dimensions {
        let top = path.split('/').nth(1).unwrap_or_default();
        self.0.entry(top.to_owned()).or_default()
    }
}

/// The values of dimension scales (frequencies, Stokes codes), by the role of the axis.
#[derive(Debug, Default)]
pub(crate) struct Coordinates {
    /// Whether the values are for the axes of a MeasurementSet's main table.
    is_measurement_set: bool,
    /// Roles of axes (`chan`, `corr`), each with the values of one axis of that role; a role may occur several times.
    known: Vec<(String, Values)>,
}

impl Coordinates {
    /// Coordinates with these values for the axes of a table, each with the role of its axis.
    pub(crate) fn new(is_measurement_set: bool, known: Vec<(String, Values)>) -> Self {
        Coordinates { is_measurement_set, known }
    }

    /// The values of an axis with this role and length; `None` if none are known, or those known differ.
    fn of_axis(&self, role: &str, len: u64) -> Option<&Values> {
        let mut fitting = self.known.iter().filter(|(known, values)| known == role && values.len() as u64 == len);
        let (_, first) = fitting.next()?;
        fitting.all(|(_, other)| other == first).then_some(first)
    }
}

/// An axis of a dataset that is to be made, by its dimension scale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NewAxis {
    /// The axis of the table's rows, with the scale that all columns share.
    Rows,
    /// An axis whose scale is in the group of the dataset.
    Named {
        /// Name of the dimension scale of the axis.
        name: String,
        /// Role of the axis, that is its meaning: `chan`, `corr`, or `dim` if unknown.
        role: String,
        len: u64,
    },
    /// The axis of the cells in a hypercube that grows; holds the name of its dimension scale.
    Positions(String),
}

impl NewAxis {
    /// The name of the dimension scale of the axis; `row` is the name for the rows of the table.
    pub(crate) fn name<'a>(&'a self, row: &'a str) -> &'a str {
        match self {
            NewAxis::Rows => row,
            NewAxis::Named { name, .. } | NewAxis::Positions(name) => name,
        }
    }
}

/// Chooses names for the axes of the datasets in the group of a table and in those of its columns.
pub(crate) struct AxisNames<'a> {
    dimensions: &'a mut Dimensions,
    coordinates: &'a Coordinates,
    /// Tells whether another object in the group has this name already.
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

    /// The new axes of a dataset for these lengths and roles, which correspond, with chosen names.
    pub(crate) fn axes(&mut self, extents: &[u64], roles: &[&str]) -> Vec<NewAxis> {
        let axes: Vec<(&str, u64)> = roles.iter().copied().zip(extents.iter().copied()).collect();
        let names = self.dimensions.names(&axes, self.taken);
        let named = |(name, (role, len)): (String, (&str, u64))| NewAxis::Named { name, role: role.to_owned(), len };
        names.into_iter().zip(axes).map(named).collect()
    }

    /// Chooses a new name for an axis with this role; the caller makes its dimension scale.
    pub(super) fn fresh(&mut self, role: &str) -> String {
        self.dimensions.fresh(role, self.taken)
    }

    /// The values and attributes of the dimension scale for an axis with this role and length.
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
    /// The values of the dimension scale; `None` if it only names the axis.
    pub(crate) values: Option<&'a Values>,
    /// Names and values of the string attributes of the dimension scale.
    pub(crate) attributes: &'a [(&'static str, &'static str)],
}

/// The dimension scales of a group, each made when the first axis needs it.
pub(crate) struct Scales {
    group: Group,
    made: Vec<(String, Dataset)>,
}

impl Scales {
    pub(crate) fn new(group: &Group) -> Self {
        Scales { group: group.clone(), made: Vec::new() }
    }

    /// Attaches dimension scales to the first axes of a dataset, in the order of `axes`, which all must be [`NewAxis::Named`].
    pub(crate) fn attach(&mut self, dataset: &Dataset, axes: &[NewAxis], names: &AxisNames<'_>) -> Result<()> {
        axes.iter().enumerate().try_for_each(|(number, axis)| match axis {
            NewAxis::Named { name, role, len } => {
                self.attach_one(dataset, number, name, &names.scale(role, *len), *len)
            }
            NewAxis::Rows | NewAxis::Positions(_) => Err(Error::usage("an axis whose scale is not the group's")),
        })
    }

    /// Attaches the dimension scale `name` of length `len` to the axis number `axis` (from 0) of a dataset, and makes it if it
    /// does not exist.
    pub(super) fn attach_one(
        &mut self,
        dataset: &Dataset,
        axis: usize,
        name: &str,
        scale: &NewScale<'_>,
        len: u64,
    ) -> Result<()> {
        let made = match self.made.iter().position(|(known, _)| known == name) {
            Some(made) => made,
            None => {
                self.made.push((name.to_owned(), self.make(name, scale, len)?));
                self.made.len() - 1
            }
        };
        dataset.attach_scale(axis, &self.made[made].1)
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
