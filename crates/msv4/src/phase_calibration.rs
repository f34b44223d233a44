//! `phase_calibration_xds`: the tones of phase calibration that PHASE_CAL has of the antennas.

use ctds::Result;
use ctds::value::Values;

use crate::dataset::Variable;
use crate::place::{Found, Place, sorted};
use crate::rows::{Extent, Inner, Picked, Slots, Times, quantities, times};

/// `Format` if cells do not fit.
pub(crate) fn read(place: &Place<'_>) -> Found {
    let Some(table) = place.subtable("PHASE_CAL") else { return Ok(None) };
    let Some(picked) = Picked::of(place, &table, Times::Near)? else { return Ok(None) };
    let (axis, of_time) = sorted(&picked.times);
    let (antennas, receptors) = (place.antennas.ids.len(), place.receptors.count);
    let slots = Slots::new(&table, &picked.rows, (&picked.antennas, antennas), (&of_time, axis.len()))?;

    let tones = slots.longest("PHASE_CAL", 1)?.max(slots.longest("TONE_FREQUENCY", 1)?);
    let inner = Inner::transposed(Extent::Padded(receptors), Extent::Padded(tones));
    let Some(phases) = slots.complex("PHASE_CAL", inner)? else { return Ok(None) };
    let axes = [
        ("antenna_name", antennas),
        ("time_phase_cal", axis.len()),
        ("receptor_label", receptors),
        ("tone_label", tones),
    ];
    let of_slot = |column: &str, name: &str| -> Result<Variable> {
        let values = slots.doubles(column, Inner::SCALAR)?.unwrap_or_else(|| vec![f64::NAN; antennas * axis.len()]);
        Ok(quantities(name, &axes[..2], values, &table.units(column), "s"))
    };
    let frequencies = slots.doubles("TONE_FREQUENCY", inner)?.unwrap_or_else(|| vec![f64::NAN; phases.len()]);
    let units = table.units("TONE_FREQUENCY");
    let variables = vec![
        Variable::new("PHASE_CAL", &axes, phases),
        of_slot("CABLE_CAL", "PHASE_CAL_CABLE_CAL")?,
        of_slot("INTERVAL", "PHASE_CAL_INTERVAL")?,
        quantities("PHASE_CAL_TONE_FREQUENCY", &axes, frequencies, &units, "Hz"),
    ];
    let mut coordinates = place.antenna_coordinates();
    coordinates.extend(place.receptor_coordinates());
    coordinates.push(times(place, &table, "time_phase_cal", &axis));
    let labels = (0..tones).map(|tone| format!("freq_{tone}").into()).collect();
    coordinates.push(Variable::new("tone_label", &axes[3..], Values::String(labels)));
    Ok(Some(place.dataset("phase_calibration_xds", "phase_calibration", coordinates, variables)))
}

#[cfg(test)]
mod tests {
    use ctds::value::{Complex32, Values};

    use super::read as phase_calibration;
    use crate::dataset::quantity;
    use crate::testing::{Filled, Made, arrays, read, scalars};

    fn phases(cells: &[(u64, f32)]) -> Filled {
        let cell = |(tones, first): &(u64, f32)| {
            let values = (0..2 * tones).map(|place| Complex32::new(first + place as f32, 1.0)).collect();
            Some(([2, *tones], values))
        };
        arrays("PHASE_CAL", cells.iter().map(cell).collect())
    }

    #[test]
    fn tones_are_padded_and_follow_the_receptors() {
        let tables = Made::new().with(
            "PHASE_CAL",
            vec![
                scalars("ANTENNA_ID", [3, 1, 1]),
                scalars("SPECTRAL_WINDOW_ID", [2, 2, 1]),
                scalars("TIME", [105.0, 105.0, 105.0]),
                scalars("INTERVAL", [30.0, 31.0, 32.0]),
                scalars("CABLE_CAL", [1e-9, 2e-9, 3e-9]),
                phases(&[(2, 10.0), (1, 20.0), (3, 30.0)]),
                arrays("TONE_FREQUENCY", vec![Some(([2, 2], vec![1.0, 2.0, 3.0, 4.0])), None, None]).unit("MHz"),
            ],
        );
        let found = read(&tables, phase_calibration).unwrap().unwrap();
        assert_eq!(found.path, "my_0/phase_calibration_xds");
        assert_eq!(found.attributes, [("type".to_owned(), "phase_calibration".into())]);
        let all = found.get("PHASE_CAL");
        assert_eq!(all.shown_axes(), "antenna_name 2, time_phase_cal 1, receptor_label 2, tone_label 2");
        let Values::Complex(values) = all.values() else { panic!("{:?}", all.values()) };
        let real: Vec<_> = values.iter().map(|value| if value.re.is_nan() { -1.0 } else { value.re }).collect();
        assert_eq!(real, [20.0, -1.0, 21.0, -1.0, 10.0, 12.0, 11.0, 13.0]);
        let frequencies = found.get("PHASE_CAL_TONE_FREQUENCY");
        assert_eq!(frequencies.numbers(), [-1.0, -1.0, -1.0, -1.0, 1e6, 3e6, 2e6, 4e6]);
        assert_eq!(frequencies.attributes, quantity("Hz"));
        let delays = found.get("PHASE_CAL_CABLE_CAL");
        assert_eq!(delays.shown_axes(), "antenna_name 2, time_phase_cal 1");
        assert_eq!(delays.numbers(), [2e-9, 1e-9]);
        assert_eq!(found.get("PHASE_CAL_INTERVAL").attributes, quantity("s"));
        assert_eq!(found.get("tone_label").strings(), ["freq_0", "freq_1"]);
        assert_eq!(found.get("time_phase_cal").seconds(), [105.0]);
    }

    #[test]
    fn subtable_without_tones_has_no_dataset() {
        assert_eq!(read(&Made::new(), phase_calibration).unwrap(), None);
        let index = vec![scalars("ANTENNA_ID", [3]), scalars("TIME", [105.0])];
        assert_eq!(read(&Made::new().with("PHASE_CAL", index), phase_calibration).unwrap(), None);
    }
}
