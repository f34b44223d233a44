//! Dimension scales: one for every axis of every dataset. docs/layout.md, "Dimension scales".

use super::content::{Content, Source};
use super::mapping::Dimensions;
use super::plan::TablePlan;
use crate::error::Result;
use crate::h5::{Attribute, Compression, Dataset, DatasetSpec, Group};
use crate::value::{DataType, Region, Shape, Values};

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

    /// What the subtables of `table` say, if it is the main table of a MeasurementSet.
    pub(crate) fn of(source: &Source, table: &TablePlan) -> Self {
        let Ok(content) = source.tables[table.source].content() else { return Self::default() };
        if table.source != 0 || !content.info().table_type.starts_with(b"Measurement Set") {
            return Self::default();
        }
        Self::new(true, coordinates(source))
    }

    /// The values of an axis, where everything of that length agrees on them.
    fn of_axis(&self, role: &str, len: u64) -> Option<&Values> {
        let mut fitting = self.known.iter().filter(|(known, values)| known == role && values.len() as u64 == len);
        let (_, first) = fitting.next()?;
        fitting.all(|(_, other)| other == first).then_some(first)
    }
}

/// The values of the axes of a MeasurementSet, by role: CHAN_FREQ of each spectral window, CORR_TYPE of each polarization
/// setup.
pub(crate) fn coordinates(source: &Source) -> Vec<(String, Values)> {
    let frequencies = column(source, "SPECTRAL_WINDOW", "CHAN_FREQ", DataType::Double);
    let correlations = column(source, "POLARIZATION", "CORR_TYPE", DataType::Int);
    let known = frequencies.into_iter().map(|values| ("chan".to_owned(), values));
    known.chain(correlations.into_iter().map(|values| ("corr".to_owned(), values))).collect()
}

/// The cells of a small column of a subtable; none if it is not there or cannot be read.
fn column(source: &Source, table: &str, column: &str, data_type: DataType) -> Vec<Values> {
    let read = || -> Option<Vec<Values>> {
        let content: &dyn Content = source.tables.iter().find(|other| other.name == table)?.content().ok()?;
        let index =
            content.columns().iter().position(|info| info.desc.name == column && info.data_type() == data_type)?;
        let cells = content.cells(index).ok()?;
        (0..content.rows().min(10_000))
            .filter(|&row| matches!(cells.cell_shape(row), Ok(Some(_))))
            .map(|row| {
                let mut values = Values::new(data_type);
                cells.read_cell(row, None, &mut values).ok()?;
                Some(values)
            })
            .collect()
    };
    read().unwrap_or_default()
}

/// The scales of a group, made when they are first wanted.
pub(crate) struct Scales<'a> {
    group: Group,
    dimensions: &'a mut Dimensions,
    coordinates: &'a Coordinates,
    /// Whether something else in the group has a name.
    taken: &'a dyn Fn(&str) -> bool,
    made: Vec<(String, Dataset)>,
}

impl<'a> Scales<'a> {
    pub(crate) fn new(
        group: &Group,
        dimensions: &'a mut Dimensions,
        coordinates: &'a Coordinates,
        taken: &'a dyn Fn(&str) -> bool,
    ) -> Self {
        Scales { group: group.clone(), dimensions, coordinates, taken, made: Vec::new() }
    }

    pub(crate) fn is_measurement_set(&self) -> bool {
        self.coordinates.is_measurement_set
    }

    /// The scales of a group below, which takes part in the same dimensions.
    pub(crate) fn within(&mut self, group: &Group) -> Scales<'_> {
        Scales {
            group: group.clone(),
            dimensions: self.dimensions,
            coordinates: self.coordinates,
            taken: self.taken,
            made: Vec::new(),
        }
    }

    /// Attaches scales to the first axes of a dataset, whose extents and roles these are.
    pub(crate) fn attach(&mut self, dataset: &Dataset, extents: &[u64], roles: &[&str]) -> Result<()> {
        let axes: Vec<(&str, u64)> = roles.iter().copied().zip(extents.iter().copied()).collect();
        let names = self.dimensions.names(&axes, self.taken);
        for (axis, (name, &(role, len))) in names.iter().zip(&axes).enumerate() {
            let made = match self.made.iter().position(|(known, _)| known == name) {
                Some(made) => made,
                None => {
                    self.made.push((name.clone(), self.make(name, role, len)?));
                    self.made.len() - 1
                }
            };
            dataset.attach_scale(axis, &self.made[made].1)?;
        }
        Ok(())
    }

    /// The name of an axis that is like no other, whose scale the caller makes.
    pub(crate) fn fresh(&mut self, role: &str) -> String {
        self.dimensions.fresh(role, self.taken)
    }

    fn make(&self, name: &str, role: &str, len: u64) -> Result<Dataset> {
        let Some(values) = self.coordinates.of_axis(role, len) else {
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
        let attributes: &[(&str, &str)] = match role {
            "chan" => &[("units", "Hz"), ("long_name", "channel frequency")],
            "corr" => &[("long_name", "Stokes code of the correlation")],
            _ => &[],
        };
        for (name, value) in attributes {
            dataset.set_attribute(name, &Attribute::string(*value))?;
        }
        dataset.make_scale(name)?;
        Ok(dataset)
    }
}
