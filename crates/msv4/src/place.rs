//! One partition on its way to datasets: what its subtables are asked by.

use ctds::Result;

use crate::dataset::{Attribute, Dataset, Variable, attributes};
use crate::measures::UNIX_EPOCH;
use crate::partition::Part;
use crate::tables::{Subtable, Tables};

/// Name of the dataset of fields, which every data group refers to.
pub(crate) const FIELDS: &str = "field_and_source_base_xds";

pub(crate) struct Place<'a> {
    pub(crate) tables: &'a dyn Tables,
    pub(crate) part: &'a Part,
    /// Path of its group, such as `my_0`.
    pub(crate) path: String,
    /// Row of SPECTRAL_WINDOW.
    pub(crate) window: u64,
    /// Names of the correlations, such as `XX`.
    pub(crate) correlations: Vec<String>,
    pub(crate) is_single_dish: bool,
    pub(crate) antennas: Antennas,
    /// Receptors of the antennas, in the order of `antennas`.
    pub(crate) receptors: Receptors,
    /// Time scale of TIME, such as `utc`.
    pub(crate) scale: String,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Antennas {
    /// Rows of ANTENNA, ascending.
    pub(crate) ids: Vec<i64>,
    /// `antenna_name` of each: unique.
    pub(crate) names: Vec<String>,
    /// STATION of each; empty if there is none.
    pub(crate) stations: Vec<String>,
    pub(crate) mounts: Vec<String>,
    /// POSITION of each, in m; NaN if unknown.
    pub(crate) positions: Vec<[f64; 3]>,
    /// TELESCOPE_NAME of the observation.
    pub(crate) telescope: String,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Receptors {
    /// Number of receptors of each antenna.
    pub(crate) count: usize,
    /// Letter of each receptor of each antenna, such as `X`.
    pub(crate) types: Vec<String>,
    /// RECEPTOR_ANGLE of the same in radians; `None` without FEED.
    pub(crate) angles: Option<Vec<f64>>,
}

impl Antennas {
    /// The place of an antenna by its row in ANTENNA.
    pub(crate) fn place(&self, id: i64) -> Option<usize> {
        self.ids.binary_search(&id).ok()
    }
}

impl<'a> Place<'a> {
    /// `None` if the subtable is missing or empty.
    pub(crate) fn subtable(&self, name: &'a str) -> Option<Subtable<'a>> {
        Subtable::open(self.tables, name)
    }

    /// First and last TIME in seconds of MJD.
    pub(crate) fn time_range(&self) -> Option<(f64, f64)> {
        let times = &self.part.grid.times;
        Some((*times.first()?, *times.last()?))
    }

    pub(crate) fn dataset(
        &self,
        name: &str,
        kind: &str,
        coordinates: Vec<Variable>,
        variables: Vec<Variable>,
    ) -> Dataset {
        Dataset {
            path: format!("{}/{name}", self.path),
            attributes: attributes([("type", kind.into())]),
            coordinates,
            variables,
        }
    }

    pub(crate) fn antenna_names(&self) -> Variable {
        self.of_antennas("antenna_name", &self.antennas.names)
    }

    /// The coordinates of the antennas' names, stations, mounts and telescope.
    pub(crate) fn antenna_coordinates(&self) -> Vec<Variable> {
        let telescopes = vec![self.antennas.telescope.clone(); self.antennas.ids.len()];
        vec![
            self.antenna_names(),
            self.of_antennas("station_name", &self.antennas.stations),
            self.of_antennas("mount", &self.antennas.mounts),
            self.of_antennas("telescope_name", &telescopes),
        ]
    }

    fn of_antennas(&self, name: &str, texts: &[String]) -> Variable {
        Variable::texts(name, &[("antenna_name", texts.len())], texts.iter().map(String::as_str))
    }

    /// The coordinates `receptor_label` and `polarization_type`.
    pub(crate) fn receptor_coordinates(&self) -> Vec<Variable> {
        let count = self.receptors.count;
        let labels: Vec<_> = (0..count).map(|number| format!("pol_{number}")).collect();
        let axes = [("antenna_name", self.antennas.ids.len()), ("receptor_label", count)];
        vec![
            Variable::texts("receptor_label", &axes[1..], labels),
            Variable::texts("polarization_type", &axes, self.receptors.types.iter().map(String::as_str)),
        ]
    }

    /// A coordinate of times, given in seconds of MJD, which becomes seconds since 1970.
    pub(crate) fn times(&self, name: &str, times: &[f64]) -> Variable {
        let values = times.iter().map(|time| time - UNIX_EPOCH).collect();
        Variable::doubles(name, &[(name, times.len())], values).with(attributes([
            ("type", name.into()),
            ("units", "s".into()),
            ("scale", self.scale.as_str().into()),
            ("format", "unix".into()),
        ]))
    }
}

/// Attributes of positions on earth, in m from its centre.
pub(crate) fn geocentric() -> Vec<(String, Attribute)> {
    attributes([
        ("type", "location".into()),
        ("units", "m".into()),
        ("frame", "ITRS".into()),
        ("coordinate_system", "geocentric".into()),
        ("origin_object_name", "earth".into()),
    ])
}

/// Different values in ascending order, and the place of each value among them.
pub(crate) fn sorted(values: &[f64]) -> (Vec<f64>, Vec<usize>) {
    let mut unique = values.to_vec();
    unique.sort_by(f64::total_cmp);
    unique.dedup_by(|a, b| a.to_bits() == b.to_bits());
    let places = values.iter().map(|value| unique.partition_point(|other| other.total_cmp(value).is_lt())).collect();
    (unique, places)
}

/// A dataset of a subtable that may be missing.
pub(crate) type Found = Result<Option<Dataset>>;
