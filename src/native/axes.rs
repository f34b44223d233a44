//! What the axes of datasets mean, and their scales: one for every axis of every dataset. docs/layout.md, "Dimension
//! scales".

use std::collections::BTreeMap;

use super::attributes::{LONG_NAME, UNITS};
use crate::error::{Error, Result};
use crate::h5::{Attribute, Compression, Dataset, DatasetSpec, Group};
use crate::value::{Region, Shape, Values};

/// Meanings of the axes of a column, first axis fastest, without the row axis.
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

/// Hands out the names of dimensions: one name has one length below a root group.
#[derive(Debug, Default)]
pub(crate) struct Dimensions {
    /// Role, length, and how many axes before it in the same dataset have both.
    known: BTreeMap<(String, u64, usize), String>,
    counts: BTreeMap<String, usize>,
}

impl Dimensions {
    /// Chooses names for axes of these roles and lengths, none of them `taken`. Two equal axes of a dataset get two
    /// names.
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

    /// The name of an axis that is like no other, not `taken`.
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

/// The dimensions below each group of the root.
#[derive(Debug, Default)]
pub(crate) struct TreeDimensions(BTreeMap<String, Dimensions>);

impl TreeDimensions {
    /// Dimensions that apply to the group at `path`.
    pub(crate) fn of_group(&mut self, path: &str) -> &mut Dimensions {
        let top = path.split('/').nth(1).unwrap_or_default();
        self.0.entry(top.to_owned()).or_default()
    }
}

/// The values of axes, by what the axes mean.
#[derive(Debug, Default)]
pub(crate) struct Coordinates {
    /// They are those of a MeasurementSet's main table.
    is_measurement_set: bool,
    /// Role, and values of an axis that has it.
    known: Vec<(String, Values)>,
}

impl Coordinates {
    /// Values that are known beforehand.
    pub(crate) fn new(is_measurement_set: bool, known: Vec<(String, Values)>) -> Self {
        Coordinates { is_measurement_set, known }
    }

    /// Values of an axis with this role and length, if all known ones agree.
    fn of_axis(&self, role: &str, len: u64) -> Option<&Values> {
        let mut fitting = self.known.iter().filter(|(known, values)| known == role && values.len() as u64 == len);
        let (_, first) = fitting.next()?;
        fitting.all(|(_, other)| other == first).then_some(first)
    }
}

/// An axis of a dataset that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NewAxis {
    /// The rows of the table.
    Rows,
    /// An axis with a scale in the group of the dataset.
    Named {
        /// Name of the scale.
        name: String,
        /// Meaning of the axis: `chan`, `corr`.
        role: String,
        len: u64,
    },
    /// The positions in a hypercube that grows, whose scale has this name.
    Positions(String),
}

impl NewAxis {
    /// The name of its scale; `row` is that of the rows of the table.
    pub(crate) fn name<'a>(&'a self, row: &'a str) -> &'a str {
        match self {
            NewAxis::Rows => row,
            NewAxis::Named { name, .. } | NewAxis::Positions(name) => name,
        }
    }
}

/// Names the axes of the datasets in the group of a table, and in those of its columns.
pub(crate) struct AxisNames<'a> {
    dimensions: &'a mut Dimensions,
    coordinates: &'a Coordinates,
    /// Whether something else in the group has a name.
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

    /// The axes of these lengths and roles.
    pub(crate) fn axes(&mut self, extents: &[u64], roles: &[&str]) -> Vec<NewAxis> {
        let axes: Vec<(&str, u64)> = roles.iter().copied().zip(extents.iter().copied()).collect();
        let names = self.dimensions.names(&axes, self.taken);
        let named = |(name, (role, len)): (String, (&str, u64))| NewAxis::Named { name, role: role.to_owned(), len };
        names.into_iter().zip(axes).map(named).collect()
    }

    /// The name of an axis that is like no other, whose scale the caller makes.
    pub(super) fn fresh(&mut self, role: &str) -> String {
        self.dimensions.fresh(role, self.taken)
    }

    /// Makes the dimension scale of an axis.
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
    /// `None` if it only names the axis.
    pub(crate) values: Option<&'a Values>,
    /// Names and values of string attributes.
    pub(crate) attributes: &'a [(&'static str, &'static str)],
}

/// The scales of a group, made when they are first wanted.
pub(crate) struct Scales {
    group: Group,
    made: Vec<(String, Dataset)>,
}

impl Scales {
    pub(crate) fn new(group: &Group) -> Self {
        Scales { group: group.clone(), made: Vec::new() }
    }

    /// Attaches the scales of `axes`, which all are named, to the first axes of a dataset.
    pub(crate) fn attach(&mut self, dataset: &Dataset, axes: &[NewAxis], names: &AxisNames<'_>) -> Result<()> {
        axes.iter().enumerate().try_for_each(|(number, axis)| match axis {
            NewAxis::Named { name, role, len } => {
                self.attach_one(dataset, number, name, &names.scale(role, *len), *len)
            }
            NewAxis::Rows | NewAxis::Positions(_) => Err(Error::usage("an axis whose scale is not the group's")),
        })
    }

    /// Attaches the scale `name` of length `len` to an axis.
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
