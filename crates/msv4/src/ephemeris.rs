//! `field_and_source_base_xds` of fields that follow a body of the solar system: positions of the
//! table `EPHEM<EPHEMERIS_ID>_<name>.tab` in the directory of FIELD, between whose times they are
//! interpolated.

use std::f64::consts::PI;

use ctds::value::Record;
use ctds::{Error, Result};

use crate::dataset::{Attribute, Dataset, Variable, attributes, quantity};
use crate::measures::frame;
use crate::place::{FIELDS, Place};
use crate::tables::Subtable;

/// Metres of an astronomical unit.
const AU: f64 = 149_597_870_700.0;

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// Columns, and the factors from their units to those of the schema.
const QUANTITIES: [(&str, &str, &str, f64); 5] = [
    ("RadVel", "SOURCE_RADIAL_VELOCITY", "m/s", AU / DAY),
    ("NP_ang", "NORTH_POLE_POSITION_ANGLE", "rad", PI / 180.0),
    ("NP_dist", "NORTH_POLE_ANGULAR_DISTANCE", "rad", PI / 180.0),
    ("rdot", "HELIOCENTRIC_RADIAL_VELOCITY", "m/s", AU / DAY),
    ("phang", "OBSERVER_PHASE_ANGLE", "rad", PI / 180.0),
];

/// `None` if no field of the partition follows an ephemeris; `NotFound` if the table is missing.
pub(crate) fn dataset(place: &Place<'_>, of_times: OfTimes, warnings: &mut Vec<String>) -> Result<Option<Dataset>> {
    let id = place.part.shared.ephemeris;
    if id < 0 {
        return Ok(None);
    }
    let prefix = format!("FIELD/EPHEM{id}_");
    let name = place.tables.names().into_iter().find(|name| name.starts_with(&prefix));
    let name = name
        .ok_or_else(|| Error::not_found(format!("no table is called {prefix}*: the ephemeris of FIELD is missing")))?;
    let table = Subtable::open(place.tables, name);
    let table = table.ok_or_else(|| Error::format(format!("{name} cannot be read, or has no rows")))?;
    let found = Ephemeris::read(&table, place.tables.keywords(name))?;

    let times = &place.part.grid.times;
    let (mut directions, mut distances, mut is_outside) = (Vec::new(), Vec::new(), false);
    for (time, offset) in times.iter().zip(&of_times.offsets) {
        let [longitude, latitude, distance] = found.at(*time).unwrap_or([f64::NAN; 3]);
        is_outside |= longitude.is_nan();
        directions.extend([wrapped(longitude + offset[0]), latitude + offset[1]]);
        distances.push(distance);
    }
    if is_outside {
        warnings.push(format!("{name} does not have the times of all rows: their directions are NaN"));
    }
    let of_time = ("time", times.len());
    let of_rows = ("time_ephemeris", found.times.len());
    let (direction, distance) = ("sky_dir_label", "sky_dis_label");
    let centre = if place.is_single_dish { "FIELD_REFERENCE_CENTER" } else { "FIELD_PHASE_CENTER" };
    let sky = |units: &str| {
        attributes([("type", "sky_coord".into()), ("units", units.into()), ("frame", found.frame.as_str().into())])
    };
    let mut variables = vec![
        Variable::doubles(&format!("{centre}_DIRECTION"), &[of_time, (direction, 2)], directions).with(sky("rad")),
        Variable::doubles(&format!("{centre}_DISTANCE"), &[of_time, (distance, 1)], distances).with(sky("m")),
    ];
    let positions = found.positions.iter().flat_map(|at| [at[0], at[1]]).collect();
    variables.push(Variable::doubles("SOURCE_DIRECTION", &[of_rows, (direction, 2)], positions).with(sky("rad")));
    let radii = found.positions.iter().map(|at| at[2]).collect();
    variables.push(Variable::doubles("SOURCE_DISTANCE", &[of_rows, (distance, 1)], radii).with(sky("m")));
    for (column, name, units, factor) in QUANTITIES {
        if let Some(values) = table.doubles(column)? {
            let values = values.iter().map(|value| value * factor).collect();
            variables.push(Variable::doubles(name, &[of_rows], values).with(quantity(units)));
        }
    }
    let coordinates = vec![
        Variable::texts("source_name", &[of_time], of_times.sources),
        Variable::texts("field_name", &[of_time], of_times.fields),
        place.times("time", times),
        place.times("time_ephemeris", &found.times),
        Variable::labels(direction, &["ra", "dec"]),
        Variable::labels(distance, &["dist"]),
    ];
    let mut dataset = place.dataset(FIELDS, "field_and_source_ephemeris", coordinates, variables);
    if let Some(name) = found.name {
        dataset.attributes.push(("ephemeris_name".to_owned(), Attribute::Text(name)));
    }
    Ok(Some(dataset))
}

/// Names and offsets of the field of each time of a partition.
pub(crate) struct OfTimes {
    pub(crate) fields: Vec<String>,
    pub(crate) sources: Vec<String>,
    /// Directions that are added to those of the ephemeris, in radians.
    pub(crate) offsets: Vec<[f64; 2]>,
}

/// Positions in ascending times.
struct Ephemeris {
    /// Seconds of MJD.
    times: Vec<f64>,
    /// Right ascension and declination in radians, distance in m.
    positions: Vec<[f64; 3]>,
    frame: String,
    name: Option<String>,
}

impl Ephemeris {
    fn read(table: &Subtable<'_>, keywords: Option<&Record>) -> Result<Self> {
        let column = |name: &str| -> Result<Vec<f64>> {
            let values = table.doubles(name)?;
            values.ok_or_else(|| Error::format(format!("{} has no column {name}, as an ephemeris has", table.name)))
        };
        let (days, longitudes, latitudes) = (column("MJD")?, column("RA")?, column("DEC")?);
        let distances = table.doubles("Rho")?.unwrap_or_else(|| vec![f64::NAN; days.len()]);
        let at = |row: usize| [longitudes[row].to_radians(), latitudes[row].to_radians(), distances[row] * AU];
        let mut rows: Vec<_> = (0..days.len()).filter(|row| days[*row].is_finite()).collect();
        rows.sort_by(|a, b| days[*a].total_cmp(&days[*b]));
        let text = |name| keywords.and_then(|keywords| keywords.string(name)).map(ToString::to_string);
        // such as ICRF/J2000.0
        let system = text("posrefsys").unwrap_or_default();
        let system = system.rsplit('/').next().unwrap_or_default().trim_end_matches(".0");
        Ok(Ephemeris {
            times: rows.iter().map(|row| days[*row] * DAY).collect(),
            positions: rows.iter().map(|row| at(*row)).collect(),
            frame: if system.is_empty() { "icrs".to_owned() } else { frame(system) },
            name: text("NAME"),
        })
    }

    /// The position at a time, between two of the table.
    fn at(&self, time: f64) -> Option<[f64; 3]> {
        let after = self.times.partition_point(|other| *other < time);
        if self.times.get(after) == Some(&time) {
            return Some(self.positions[after]);
        }
        let before = after.checked_sub(1)?;
        let (start, end) = (self.times[before], *self.times.get(after)?);
        let part = (time - start) / (end - start);
        let (from, to) = (self.positions[before], self.positions[after]);
        let turn = wrapped(to[0] - from[0]);
        Some([wrapped(from[0] + part * turn), from[1] + part * (to[1] - from[1]), from[2] + part * (to[2] - from[2])])
    }
}

/// The same angle between -π and π.
fn wrapped(angle: f64) -> f64 {
    (angle + PI).rem_euclid(2.0 * PI) - PI
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ephemeris() -> Ephemeris {
        let positions = vec![[3.0, 0.1, 1.0], [-3.0, 0.3, 3.0], [-2.8, 0.5, 5.0]];
        Ephemeris { times: vec![0.0, 10.0, 20.0], positions, frame: String::new(), name: None }
    }

    #[test]
    fn positions_are_interpolated_across_the_meridian() {
        let [longitude, latitude, distance] = ephemeris().at(5.0).unwrap();
        assert!((longitude.abs() - PI).abs() < 1e-12, "{longitude}");
        assert!((latitude - 0.2).abs() < 1e-12 && (distance - 2.0).abs() < 1e-12);
        assert_eq!(ephemeris().at(20.0), Some([-2.8, 0.5, 5.0]));
        assert_eq!(ephemeris().at(0.0), Some([3.0, 0.1, 1.0]));
    }

    #[test]
    fn times_outside_have_no_position() {
        assert_eq!(ephemeris().at(-0.1), None);
        assert_eq!(ephemeris().at(20.1), None);
    }
}
