//! Elevation and hour angle of the phase centre of a field, seen from the mean position of the
//! antennas. The Earth turns with UTC, from which UT1 differs by less than a second; air does not
//! bend rays; elevation counts from the horizon of the ellipsoid, as casacore's AZELGEO does.

use std::ops::Range;

use ctds::error::{Context, Error, Result};
use ctds::value::Values;
use ctds_hdf5::Source;
use sofars::astro::{IauAstrom, apco13, aper13, atciq, atioq};
use sofars::coords::{g2icrs, gc2gd};
use sofars::star::fk45z;

use crate::place::middle;
use crate::subtables::{Frames, doubles, each};
use crate::{describe, subtables};

/// The date from which modified Julian dates count.
const MJD_ZERO: f64 = 2_400_000.5;
const DAY: f64 = 86_400.;

/// From 1900 to 2100, in days of MJD: the orbit of the Earth is known within these years.
const KNOWN_DAYS: Range<f64> = 15_020.0..88_069.;

/// The number of the ellipsoid.
const WGS84: i32 = 1;

#[derive(Debug)]
pub(crate) struct Sky {
    /// Longitude and latitude in radians, and height in metres.
    place: [f64; 3],
    fields: Vec<Track>,
}

/// Direction of the phase centre of a field.
#[derive(Debug)]
struct Track {
    name: String,
    /// Coefficients of a polynomial in seconds since `origin`, each a longitude and a latitude in
    /// radians; empty if the field has no direction.
    coefficients: Vec<[f64; 2]>,
    origin: f64,
    frame: String,
}

/// Elevation in degrees and hour angle in hours; NaN at times before 1900 or after 2100.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Standing {
    pub(crate) elevation: f64,
    pub(crate) hour_angle: f64,
}

impl Sky {
    /// `Unsupported` if the antennas have no positions on the Earth.
    pub(crate) fn of(source: &Source) -> Result<Self> {
        let antennas = describe::antennas(source);
        let positions: Vec<[f64; 3]> = antennas.iter().filter_map(|antenna| antenna.position).collect();
        let place = middle(&positions).and_then(|middle| gc2gd(WGS84, middle).ok()).ok_or_else(|| {
            Error::unsupported("elevations and hour angles need antennas with positions on the Earth")
                .context(Context::table("ANTENNA"))
        })?;
        Ok(Sky { place: [place.0, place.1, place.2], fields: tracks(source) })
    }

    /// Right ascension and declination of a field, in radians, in ICRS.
    fn direction(&self, field: i64, time: f64) -> Result<(f64, f64)> {
        let track = usize::try_from(field).ok().and_then(|field| self.fields.get(field));
        let missing = || Error::unsupported(format!("field {field} has no direction for its elevation"));
        let track = track.filter(|track| !track.coefficients.is_empty()).ok_or_else(missing)?;
        let [longitude, latitude] = track.at(time);
        match track.frame.as_str() {
            // J2000 and ICRS differ by 0.02 seconds of arc
            "" | "J2000" | "ICRS" => Ok((longitude, latitude)),
            "B1950" => Ok(fk45z(longitude, latitude, 1950.)),
            "GALACTIC" => Ok(g2icrs(longitude, latitude)),
            frame => Err(Error::unsupported(format!(
                "the direction of field {} is in the frame {frame}; its elevation is computed from J2000, ICRS, B1950 \
                 and GALACTIC only: choose others with --field",
                subtables::label(&track.name, field as usize)
            ))),
        }
    }

    pub(crate) fn observer(&self) -> Observer<'_> {
        Observer { sky: self, earth: None, before: None }
    }
}

/// Looks at fields at one time after the other.
pub(crate) struct Observer<'a> {
    sky: &'a Sky,
    /// The Earth of the quarter of a day that is counted first.
    earth: Option<(f64, IauAstrom)>,
    /// Field, bits of the time, and how it stood then.
    before: Option<((i64, u64), Standing)>,
}

impl Observer<'_> {
    /// `time` is in seconds of MJD. `Unsupported` if the direction of the field is not known in a
    /// frame of the stars.
    pub(crate) fn standing(&mut self, field: i64, time: f64) -> Result<Standing> {
        // rows of one time and field follow each other
        let key = (field, time.to_bits());
        if let Some((_, standing)) = self.before.filter(|(known, _)| *known == key) {
            return Ok(standing);
        }
        let (ra, dec) = self.sky.direction(field, time)?;
        let standing = self.earth(time / DAY).map_or(NOWHERE, |earth| {
            // without proper motion, parallax and air
            let (ra, dec) = atciq(ra, dec, 0., 0., 0., 0., earth);
            let (_, zenith, hour_angle, ..) = atioq(ra, dec, earth);
            Standing { elevation: 90. - zenith.to_degrees(), hour_angle: hour_angle.to_degrees() / 15. }
        });
        self.before = Some((key, standing));
        Ok(standing)
    }

    /// The Earth as it is turned then, with axis and motion of the middle of the quarter of a day,
    /// which changes directions by a second of arc at most. `None` before 1900 and after 2100.
    fn earth(&mut self, day: f64) -> Option<&mut IauAstrom> {
        if !KNOWN_DAYS.contains(&day) {
            return None;
        }
        let quarter = (day * 4.).floor();
        if self.earth.as_ref().is_none_or(|(known, _)| *known != quarter) {
            let [east, north, height] = self.sky.place;
            let (mut earth, mut origins) = (IauAstrom::default(), 0.);
            let middle = (quarter + 0.5) / 4.;
            apco13(MJD_ZERO, middle, 0., east, north, height, 0., 0., 0., 0., 0., 1e6, &mut earth, &mut origins)
                .ok()?;
            self.earth = Some((quarter, earth));
        }
        let (_, earth) = self.earth.as_mut()?;
        aper13(MJD_ZERO, day, earth);
        Some(earth)
    }
}

const NOWHERE: Standing = Standing { elevation: f64::NAN, hour_angle: f64::NAN };

impl Track {
    fn at(&self, time: f64) -> [f64; 2] {
        let since = time - self.origin;
        // NaN would spread from the powers of a time that only higher coefficients use
        let [constant, rest @ ..] = &self.coefficients[..] else { return [f64::NAN; 2] };
        let mut power = 1.;
        rest.iter().fold(*constant, |[longitude, latitude], coefficient| {
            power *= since;
            [longitude + coefficient[0] * power, latitude + coefficient[1] * power]
        })
    }
}

fn tracks(source: &Source) -> Vec<Track> {
    const COLUMN: &str = "PHASE_DIR";
    let names = subtables::strings(source, "FIELD", "NAME");
    let origins = each(source, "FIELD", "TIME", |values| doubles(&values).and_then(|times| times.first().copied()));
    let directions = each(source, "FIELD", COLUMN, |values| match values {
        Some(Values::Double(numbers)) => numbers.as_chunks::<2>().0.to_vec(),
        _ => Vec::new(),
    });
    let ephemerides = subtables::integers(source, "FIELD", "EPHEMERIS_ID");
    let frames = Frames::of(source, COLUMN);
    let track = |(field, coefficients): (usize, Vec<[f64; 2]>)| Track {
        name: names.get(field).cloned().unwrap_or_default(),
        coefficients,
        origin: origins.get(field).copied().flatten().unwrap_or(f64::NAN),
        frame: match ephemerides.get(field) {
            Some(0..) => "of an ephemeris".to_owned(),
            _ => frames.name(field),
        },
    };
    directions.into_iter().enumerate().map(track).collect()
}

#[cfg(test)]
mod tests {
    use ctds::error::{ErrorKind, Fails};

    use super::*;

    fn sky(frame: &str, coefficients: Vec<[f64; 2]>) -> Sky {
        let place = gc2gd(WGS84, [-1_601_185.4, -5_041_977.5, 3_554_875.9]).unwrap();
        let track = Track { name: "3C286".into(), coefficients, origin: 100., frame: frame.into() };
        Sky { place: [place.0, place.1, place.2], fields: vec![track] }
    }

    /// 2020-05-05T12:00:00.
    const NOON: f64 = 58974.5 * DAY;

    #[test]
    fn elevations_are_those_of_casacore() {
        // python-casacore 3.8.1: AZELGEO and HADEC of this direction, there and then, in radians
        let standing = sky("J2000", vec![[1.2, 0.6]]).observer().standing(0, NOON).unwrap();
        assert!((standing.elevation.to_radians() - -0.148774).abs() < 3e-5, "{standing:?}");
        assert!((standing.hour_angle.to_radians() * 15. - -2.319180).abs() < 3e-5, "{standing:?}");
    }

    #[test]
    fn directions_move_and_frames_differ() {
        let moving = sky("", vec![[1.2, 0.5], [0., 1e-3]]);
        assert_eq!(moving.fields[0].at(200.), [1.2, 0.6]);
        let fixed = sky("ICRS", vec![[1.2, 0.6]]).observer().standing(0, NOON).unwrap();
        let galactic = sofars::coords::icrs2g(1.2, 0.6);
        let same = sky("GALACTIC", vec![[galactic.0, galactic.1]]).observer().standing(0, NOON).unwrap();
        assert!((fixed.elevation - same.elevation).abs() < 1e-6, "{fixed:?} {same:?}");
        let old = sky("B1950", vec![[1.2, 0.6]]).observer().standing(0, NOON).unwrap();
        assert!((fixed.elevation - old.elevation).abs() > 0.1, "{fixed:?} {old:?}");
    }

    #[test]
    fn unknown_directions_are_refused() {
        sky("MARS", vec![[1.2, 0.6]]).observer().standing(0, NOON).fails(
            ErrorKind::Unsupported,
            "the direction of field 3C286 is in the frame MARS; its elevation is computed from J2000, ICRS, B1950 and \
             GALACTIC only: choose others with --field",
        );
        sky("", vec![])
            .observer()
            .standing(0, NOON)
            .fails(ErrorKind::Unsupported, "field 0 has no direction for its elevation");
        sky("", vec![[1.2, 0.6]])
            .observer()
            .standing(7, NOON)
            .fails(ErrorKind::Unsupported, "field 7 has no direction for its elevation");
        assert!(sky("", vec![[1.2, 0.6]]).observer().standing(0, f64::NAN).unwrap().elevation.is_nan());
    }
}
