//! Makes the plot of antenna positions, the array layout, in metres east and north of the centre of
//! the array.

use serde_json::json;

use super::kind::PlotKind;
use crate::describe::Description;
use crate::frame::{Array, Axis, Frame, Numbers, Plot};
use crate::place::{is_on_earth, mean};
use crate::request::Quantity;

/// Square of the first eccentricity of the WGS84 ellipsoid, for the latitude of an antenna.
const ECCENTRICITY: f64 = 6.694_379_990_14e-3;

const MAX_ANTENNAS: usize = 1024;

pub(super) static PLOT: PlotKind = PlotKind { name: "antennas", quantities: &[Quantity::Amp], rows: None };

/// Each antenna is a series with one point, in metres east and north of the mean position, or along
/// x and y of positions that are not on the Earth. Antennas at the origin, the centre of the Earth,
/// have no position.
pub(crate) fn frame(known: &Description, (session, revision, rows): (u64, u64, u64)) -> Frame {
    let finite = |position: &[f64; 3]| position.iter().all(|metres| metres.is_finite());
    let mut found: Vec<(String, [f64; 3])> = known
        .antennas
        .iter()
        .enumerate()
        .filter_map(|(number, antenna)| Some((known.antenna(number), antenna.position.filter(finite)?)))
        .take(MAX_ANTENNAS)
        .collect();
    let all = found.len();
    if found.iter().any(|(_, position)| is_on_earth(*position)) {
        found.retain(|(_, position)| *position != [0.; 3]);
    }
    let count = found.len();
    let middle = mean(found.iter().map(|(_, position)| *position));
    let is_on_earth = is_on_earth(middle);
    let places: Vec<(f64, f64)> = found
        .iter()
        .map(|(_, [x, y, z])| [x - middle[0], y - middle[1], z - middle[2]])
        .map(|offset| if is_on_earth { east_and_north(middle, offset) } else { (offset[0], offset[1]) })
        .collect();
    // each antenna has a column of its own: the places need not ascend
    let mut values = vec![f32::NAN; count * count];
    places.iter().enumerate().for_each(|(number, (_, north))| values[number * count + number] = *north as f32);
    let names = found.iter().map(|(name, _)| name.clone()).collect();
    let axis = |on_earth: &str, other: &str| Axis::new(if is_on_earth { on_earth } else { other }, "m", "linear");
    let plot = Plot {
        kind: PLOT.name,
        title: "Antennas".to_owned(),
        note: note(&known.telescope, count, all - count),
        revision,
        rows,
        rows_used: rows,
        complete: true,
        stopped: false,
        stale: false,
        selection: json!({}),
        x: axis("east", "x"),
        y: axis("north", "y"),
        z: None,
        series: Some(names),
    };
    let x = places.into_iter().map(|(east, _)| east).collect();
    let arrays = vec![Array::new("x", [count], Numbers::F64(x)), Array::new("y", [count, count], Numbers::F32(values))];
    Frame { plot, arrays, session }
}

/// `left_out`: number of antennas at the origin.
fn note(telescope: &str, count: usize, left_out: usize) -> String {
    let antennas = match (telescope, count) {
        (_, 0) => "ANTENNA has no positions".to_owned(),
        ("", count) => format!("{count} antennas"),
        (telescope, count) => format!("{telescope}, {count} antennas"),
    };
    match left_out {
        0 => antennas,
        left_out => format!("{antennas}; {left_out} at the origin, without a position, are left out"),
    }
}

/// Components, in metres, of the ITRF vector `[dx, dy, dz]` at `at`, near the Earth's surface.
fn east_and_north(at: [f64; 3], [dx, dy, dz]: [f64; 3]) -> (f64, f64) {
    let (sin_longitude, cos_longitude) = at[1].atan2(at[0]).sin_cos();
    let latitude = (at[2] / (1. - ECCENTRICITY)).atan2(at[0].hypot(at[1]));
    let (sin_latitude, cos_latitude) = latitude.sin_cos();
    let outward = cos_longitude * dx + sin_longitude * dy;
    (cos_longitude * dy - sin_longitude * dx, cos_latitude * dz - sin_latitude * outward)
}
