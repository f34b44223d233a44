//! `gain_curve_xds`: the gain of each antenna as a polynomial of its elevation, from GAIN_CURVE.
//!
//! An antenna has one curve: that of the spectral window before one of all windows, and of several
//! the last one measured before the end of the partition.

use ctds::value::Values;

use crate::dataset::{Variable, attributes};
use crate::observation::iso;
use crate::place::{Found, Place};
use crate::rows::{Extent, Inner, Picked, Slots, Times, quantities};

/// `Format` if cells do not fit.
pub(crate) fn read(place: &Place<'_>) -> Found {
    let Some(table) = place.subtable("GAIN_CURVE") else { return Ok(None) };
    let Some(mut picked) = Picked::of(place, &table, Times::All)? else { return Ok(None) };
    let chosen = choose(place, &picked);
    picked.keep(&chosen);
    let antennas = place.antennas.ids.len();
    let receptors = place.receptors.count;
    let slots = Slots::on(&table, &picked.rows, &picked.antennas, antennas);

    // NUM_POLY says the same as the cells
    let terms = slots.longest("GAIN", 1)?;
    let inner = Inner::as_stored(Extent::Padded(receptors), Extent::Padded(terms));
    let Some(gains) = slots.doubles("GAIN", inner)? else { return Ok(None) };
    let intervals = slots.doubles("INTERVAL", Inner::SCALAR)?;
    let sensitivities = slots.doubles("SENSITIVITY", Inner::vector(Extent::Padded(receptors)))?;
    let missing = |count| move || vec![f64::NAN; count];
    let axes = [("antenna_name", antennas), ("poly_term", terms), ("receptor_label", receptors)];
    let variables = vec![
        Variable::doubles("GAIN_CURVE", &axes, gains),
        quantities(
            "GAIN_CURVE_INTERVAL",
            &axes[..1],
            intervals.unwrap_or_else(missing(antennas)),
            &table.units("INTERVAL"),
            "s",
        ),
        quantities(
            "GAIN_CURVE_SENSITIVITY",
            &[axes[0], axes[2]],
            sensitivities.unwrap_or_else(missing(antennas * receptors)),
            &table.units("SENSITIVITY"),
            "K/Jy",
        ),
    ];
    let mut coordinates = place.antenna_coordinates();
    coordinates.extend(place.receptor_coordinates());
    if let Some(types) = slots.texts("TYPE")? {
        coordinates.push(Variable::texts("gain_curve_type", &axes[..1], types));
    }
    let numbers = Values::Int64((0..terms as i64).collect());
    coordinates.push(Variable::new("poly_term", &axes[1..2], numbers));
    let mut found = place.dataset("gain_curve_xds", "gain_curve", coordinates, variables);
    let last = picked.times.iter().copied().reduce(f64::max).unwrap_or(f64::NAN);
    found.attributes.extend(attributes([("measured_date", iso(last).into())]));
    Ok(Some(found))
}

/// The place of the row of each antenna, ascending.
fn choose(place: &Place<'_>, picked: &Picked) -> Vec<usize> {
    let end = place.time_range().map_or(f64::INFINITY, |(_, last)| last);
    // lower is better
    let rank = |at: usize| {
        let time = picked.times[at];
        let distance = if time <= end { end - time } else { time - end };
        (picked.is_general(at), time > end, distance)
    };
    let mut best: Vec<Option<usize>> = vec![None; place.antennas.ids.len()];
    for (at, &antenna) in picked.antennas.iter().enumerate() {
        let Some(best) = best.get_mut(antenna) else { continue };
        if best.is_none_or(|other| rank(at) <= rank(other)) {
            *best = Some(at);
        }
    }
    let mut chosen: Vec<_> = best.into_iter().flatten().collect();
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use ctds::value::Values;

    use super::read as gain_curve;
    use crate::dataset::quantity;
    use crate::testing::{Made, arrays, error, read, scalars, texts};

    #[test]
    fn curve_of_each_antenna_is_that_of_the_window_and_time() {
        let gain = |row: u32| Some(([2, 2], (0..4).map(|place| (10 * row + place) as f32).collect()));
        let tables = Made::new().with(
            "GAIN_CURVE",
            vec![
                // antenna 1: of all windows, too early, right, too late; antenna 3; another window
                scalars("ANTENNA_ID", [1, 1, 1, 1, 3, 3]),
                scalars("SPECTRAL_WINDOW_ID", [-1, 2, 2, 2, -1, 0]),
                scalars("TIME", [109.0, 50.0, 90.0, 115.0, 300.0, 100.0]),
                scalars("INTERVAL", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                texts("TYPE", &["a", "b", "POWER(EL)", "d", "e", "f"]),
                scalars("NUM_POLY", [2; 6]),
                arrays(
                    "GAIN",
                    (0..6).map(|row| if row == 4 { Some(([2, 1], vec![8_f32, 9.0])) } else { gain(row) }).collect(),
                ),
                arrays(
                    "SENSITIVITY",
                    vec![Some(([2], vec![0.5_f32, 0.25])), None, Some(([2], vec![1.0, 2.0])), None, None, None],
                ),
            ],
        );
        let found = read(&tables, gain_curve).unwrap().unwrap();
        assert_eq!(found.path, "my_0/gain_curve_xds");
        let attributes: Vec<_> = found.attributes.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(attributes, ["type", "measured_date"]);
        assert_eq!(found.attributes[1].1, "1858-11-17T00:05:00.000".into());
        let curve = found.get("GAIN_CURVE");
        assert_eq!(curve.shown_axes(), "antenna_name 2, poly_term 2, receptor_label 2");
        assert_eq!(curve.numbers(), [20.0, 21.0, 22.0, 23.0, 8.0, 9.0, -1.0, -1.0]);
        assert_eq!(found.get("GAIN_CURVE_INTERVAL").numbers(), [3.0, 5.0]);
        assert_eq!(found.get("GAIN_CURVE_INTERVAL").attributes, quantity("s"));
        let sensitivity = found.get("GAIN_CURVE_SENSITIVITY");
        assert_eq!(sensitivity.shown_axes(), "antenna_name 2, receptor_label 2");
        assert_eq!(sensitivity.numbers(), [1.0, 2.0, -1.0, -1.0]);
        assert_eq!(sensitivity.attributes, quantity("K/Jy"));
        assert_eq!(found.get("gain_curve_type").strings(), ["POWER(EL)", "e"]);
        assert_eq!(found.get("poly_term").values(), &Values::Int64(vec![0, 1]));
        for name in ["mount", "telescope_name", "station_name", "receptor_label", "polarization_type"] {
            assert!(found.has(name), "{name}");
        }
    }

    #[test]
    fn missing_columns_are_nan_but_for_the_gain() {
        let index = || vec![scalars("ANTENNA_ID", [3]), scalars("TIME", [100.0])];
        assert_eq!(read(&Made::new().with("GAIN_CURVE", index()), gain_curve).unwrap(), None);
        assert_eq!(read(&Made::new(), gain_curve).unwrap(), None);
        let mut columns = index();
        columns.push(arrays("GAIN", vec![Some(([1, 1], vec![5_f64]))]));
        let found = read(&Made::new().with("GAIN_CURVE", columns), gain_curve).unwrap().unwrap();
        assert_eq!(found.get("GAIN_CURVE").numbers(), [-1.0, -1.0, 5.0, -1.0]);
        assert_eq!(found.get("GAIN_CURVE_INTERVAL").numbers(), [-1.0, -1.0]);
        assert!(!found.has("gain_curve_type"));
    }

    #[test]
    fn gain_of_more_receptors_is_named() {
        let columns = vec![
            scalars("ANTENNA_ID", [3]),
            scalars("TIME", [1.0]),
            arrays("GAIN", vec![Some(([4, 2], vec![5_f64; 8]))]),
        ];
        let expected = "GAIN of GAIN_CURVE, row 0: the cell has shape [4, 2], expected is [at most 2, at most 2]";
        assert_eq!(error(&Made::new().with("GAIN_CURVE", columns), gain_curve), expected);
    }
}
