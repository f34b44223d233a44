//! Chooses and writes the dimension scales of a native HDF5 file: datasets that give the axes of
//! other datasets names and coordinates. docs/reference/layout.md, "Dimension scales".

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::attributes::{LONG_NAME, UNITS};
use super::names::POSITION;
use crate::error::{Error, Result};
use crate::h5::{Attachments, Attribute, Dataset, Group, Scale};
use crate::value::{Shape, Values};

/// `corr`, `chan`, `uvw` …, or `dim` if unknown; fastest axis first, without the row axis.
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

/// `chan` of `chan_0`.
pub(super) fn role_of_scale(name: &str) -> Option<&str> {
    const ROLES: [&str; 9] = ["corr", "chan", "category", "uvw", "dim", POSITION, "element", "offset", "axis"];
    let (role, number) = name.rsplit_once('_')?;
    (ROLES.contains(&role) && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(role)
}

/// Scales of one top-level group; axes share a name only if they have the same role and length.
#[derive(Debug, Default)]
pub(crate) struct Dimensions {
    /// Keys are role, length, and the number of earlier such axes of the same dataset.
    known: BTreeMap<(String, u64, usize), String>,
    counts: BTreeMap<String, usize>,
}

impl Dimensions {
    /// Axes are given by role and length. Two axes of a dataset get different names.
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

    /// The first of `chan_0`, `chan_1` … that is neither chosen nor `taken`.
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

/// Keys are top-level groups.
#[derive(Debug, Default)]
pub(crate) struct TreeDimensions(BTreeMap<String, Dimensions>);

impl TreeDimensions {
    pub(crate) fn of_group(&mut self, path: &str) -> &mut Dimensions {
        let top = path.split('/').nth(1).unwrap_or_default();
        self.0.entry(top.to_owned()).or_default()
    }
}

/// Values of axes by their role: frequencies in Hz for `chan`, Stokes codes for `corr`.
#[derive(Debug, Default)]
pub(crate) struct Coordinates {
    is_measurement_set: bool,
    /// A role occurs several times if its axes differ, for example `chan` for each spectral window.
    known: Vec<(String, Values)>,
}

impl Coordinates {
    pub(crate) fn new(is_measurement_set: bool, known: Vec<(String, Values)>) -> Self {
        Coordinates { is_measurement_set, known }
    }

    /// `None` if no values are known, or several that differ.
    fn of_axis(&self, role: &str, len: u64) -> Option<&Values> {
        let mut fitting = self.known.iter().filter(|(known, values)| known == role && values.len() as u64 == len);
        let (_, first) = fitting.next()?;
        fitting.all(|(_, other)| other == first).then_some(first)
    }
}

/// An axis of a dataset to be created, with its scale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NewAxis {
    /// All columns of the table share the scale.
    Rows,
    /// The scale is in the group of the dataset.
    Named {
        name: String,
        /// `chan`, `corr`, or `dim` if unknown.
        role: String,
        len: u64,
    },
    /// Slowest axis of a live hypercube, along which cells are appended: name of its scale.
    Positions(String),
}

impl NewAxis {
    /// `row` is the name for the axis of rows.
    pub(crate) fn name<'a>(&'a self, row: &'a str) -> &'a str {
        match self {
            NewAxis::Rows => row,
            NewAxis::Named { name, .. } | NewAxis::Positions(name) => name,
        }
    }
}

pub(crate) struct AxisNames<'a> {
    dimensions: &'a mut Dimensions,
    coordinates: &'a Coordinates,
    /// Whether an object in the table's group has this name.
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

    /// `roles` are meanings (`chan`, `corr`, `position` …, `dim` if unknown), fastest axis first.
    pub(crate) fn axes(&mut self, extents: &[u64], roles: &[&str]) -> Vec<NewAxis> {
        let axes: Vec<(&str, u64)> = roles.iter().copied().zip(extents.iter().copied()).collect();
        let names = self.dimensions.names(&axes, self.taken);
        let named = |(name, (role, len)): (String, (&str, u64))| NewAxis::Named { name, role: role.to_owned(), len };
        names.into_iter().zip(axes).map(named).collect()
    }

    /// `position_0`, `position_1` … The caller creates the scale.
    pub(super) fn fresh(&mut self, role: &str) -> String {
        self.dimensions.fresh(role, self.taken)
    }

    pub(crate) fn scale(&self, role: &str, len: u64) -> NewScale<'a> {
        let Some(values) = self.coordinates.of_axis(role, len) else {
            return NewScale { values: None, attributes: &[] };
        };
        let attributes: &[(&str, &str)] = match role {
            // viewers would show a long name in place of the name and its unit
            "chan" => &[(UNITS, "Hz")],
            "corr" => &[(LONG_NAME, "Stokes code of the correlation")],
            _ => &[],
        };
        NewScale { values: Some(values), attributes }
    }

    /// Scale of an axis of cells; `None` unless it has values.
    pub(crate) fn scale_with_values<'b>(&self, axis: &'b NewAxis) -> Option<&'b str> {
        let NewAxis::Named { name, role, len } = axis else { return None };
        self.scale(role, *len).values.map(|_| name.as_str())
    }
}

pub(crate) struct NewScale<'a> {
    /// `None` if the scale only names the axis.
    pub(crate) values: Option<&'a Values>,
    pub(crate) attributes: &'a [(&'static str, &'static str)],
}

/// Scales in one group, each created when the first axis needs it, and their attachments.
pub(crate) struct Scales {
    group: Group,
    made: HashMap<String, Scale>,
    /// Shared with the groups of the table's columns.
    attachments: Rc<RefCell<Attachments>>,
}

impl Scales {
    pub(crate) fn new(group: &Group) -> Self {
        Scales { group: group.clone(), made: HashMap::new(), attachments: Rc::default() }
    }

    /// Scales in the group of a column.
    pub(super) fn inside(&self, group: &Group) -> Self {
        Scales { attachments: self.attachments.clone(), ..Scales::new(group) }
    }

    /// Fastest axis first.
    pub(super) fn attach(&self, dataset: &Dataset, scales: &[Scale]) -> Result<()> {
        self.attachments.borrow_mut().attach(dataset, scales)
    }

    /// Fastest axis first; an axis that is not [`NewAxis::Named`] is an error.
    pub(crate) fn attach_named(&mut self, dataset: &Dataset, axes: &[NewAxis], names: &AxisNames<'_>) -> Result<()> {
        let scale = |axis: &NewAxis| match axis {
            NewAxis::Named { name, role, len } => self.named(name, &names.scale(role, *len), *len),
            NewAxis::Rows | NewAxis::Positions(_) => Err(Error::usage("an axis whose scale is not the group's")),
        };
        let scales = axes.iter().map(scale).collect::<Result<Vec<_>>>()?;
        self.attach(dataset, &scales)
    }

    /// Called once, when all datasets of the table are made: writes the attachments.
    pub(crate) fn finish(self) -> Result<()> {
        self.attachments.borrow_mut().write()
    }

    /// Creates the scale with length `len` if it does not exist.
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
        let dataset = self.group.create_filled(name, &Shape::from([len]), values)?;
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
