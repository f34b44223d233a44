//! `system_calibration_xds`: the temperatures that SYSCAL has of the antennas, for the window.
//!
//! A column for each receptor has one of spectra beside it, which is taken where it has values. The
//! schema wants whole numbers on the axis of its channels: the frequencies in Hz if they are those
//! of the window, else the numbers of the channels.

use ctds::value::Values;
use ctds::{Error, Result};

use crate::dataset::{Variable, attributes};
use crate::measures;
use crate::place::{Found, Place, sorted};
use crate::rows::{Extent, Inner, Picked, Slots, Times, quantities, set, times};

/// Columns and their names in the schema.
const TEMPERATURES: [(&str, &str); 6] =
    [("TCAL", "TCAL"), ("TRX", "TRX"), ("TSKY", "TSKY"), ("TSYS", "TSYS"), ("TANT", "TANT"), ("TANT_TSYS", "TANT_SYS")];

/// `Format` if cells do not fit.
pub(crate) fn read(place: &Place<'_>) -> Found {
    let Some(table) = place.subtable("SYSCAL") else { return Ok(None) };
    let Some(picked) = Picked::of(place, &table, Times::All)? else { return Ok(None) };
    let (axis, of_time) = sorted(&picked.times);
    let antennas = place.antennas.ids.len();
    let slots = Slots::new(&table, &picked.rows, (&picked.antennas, antennas), (&of_time, axis.len()))?;
    let receptors = place.receptors.count;

    let mut channels = 0;
    for (column, _) in TEMPERATURES {
        if channels == 0 {
            channels = slots.longest(&format!("{column}_SPECTRUM"), 1)?;
        }
    }
    let axes = [
        ("antenna_name", antennas),
        ("time_system_cal", axis.len()),
        ("receptor_label", receptors),
        ("frequency_system_cal", channels),
    ];
    let mut variables = Vec::new();
    let mut has_spectra = false;
    for (column, name) in TEMPERATURES {
        let spectrum = format!("{column}_SPECTRUM");
        let inner = Inner::transposed(Extent::Padded(receptors), Extent::Exact(channels));
        if let Some(values) = slots.doubles(&spectrum, inner)? {
            has_spectra = true;
            variables.push(quantities(name, &axes, values, &table.units(&spectrum), "K"));
        } else if let Some(values) = slots.doubles(column, Inner::vector(Extent::Padded(receptors)))? {
            variables.push(quantities(name, &axes[..3], values, &table.units(column), "K"));
        }
    }
    if let Some(values) = slots.doubles("PHASE_DIFF", Inner::SCALAR)? {
        variables.push(quantities("PHASE_DIFFERENCE", &axes[..2], values, &table.units("PHASE_DIFF"), "rad"));
    }
    if variables.is_empty() {
        return Ok(None);
    }

    let mut coordinates = place.antenna_coordinates();
    coordinates.retain(|coordinate| matches!(coordinate.name.as_str(), "antenna_name" | "station_name"));
    coordinates.extend(place.receptor_coordinates());
    let mut time = times(place, &table, "time_system_cal", &axis);
    // the schema has another type for this axis than for other times
    set(&mut time, "type", "time".into());
    coordinates.push(time);
    if has_spectra {
        coordinates.push(frequencies(place, channels)?);
    }
    Ok(Some(place.dataset("system_calibration_xds", "system_calibration", coordinates, variables)))
}

fn frequencies(place: &Place<'_>, channels: usize) -> Result<Variable> {
    const NAME: &str = "frequency_system_cal";
    let window = place.subtable("SPECTRAL_WINDOW").filter(|table| place.window < table.rows);
    if let Some(table) = window
        && let Some(stored) = table.cell_doubles("CHAN_FREQ", place.window)?
        && stored.len() == channels
    {
        let row = usize::try_from(place.window).map_err(|_| Error::limit("SPECTRAL_WINDOW has too many rows"))?;
        let frame = table.integers("MEAS_FREQ_REF")?.and_then(|codes| codes.get(row).copied()).unwrap_or(-1);
        let values = stored.iter().map(|frequency| frequency.round() as i64).collect();
        let attributes = attributes([
            ("type", "spectral_coord".into()),
            ("units", "Hz".into()),
            ("observer", measures::observer(frame).into()),
        ]);
        return Ok(Variable::new(NAME, &[(NAME, channels)], Values::Int64(values)).with(attributes));
    }
    Ok(Variable::new(NAME, &[(NAME, channels)], Values::Int64((0..channels as i64).collect())))
}

#[cfg(test)]
mod tests {
    use ctds::value::Values;

    use super::read as system_calibration;
    use crate::dataset::quantity;
    use crate::testing::{Filled, Made, arrays, error, read, scalars};

    /// Antennas 3, 1, 1, 2, 1 at 4 times, in windows 2, -1, 2, 2, 5.
    fn index() -> Vec<Filled> {
        vec![
            scalars("ANTENNA_ID", [3, 1, 1, 2, 1]),
            scalars("SPECTRAL_WINDOW_ID", [2, -1, 2, 2, 5]),
            scalars("TIME", [20.0, 10.0, 20.0, 20.0, 20.0]),
        ]
    }

    fn with(mut columns: Vec<Filled>, more: Vec<Filled>) -> Made {
        columns.extend(more);
        Made::new().with("SYSCAL", columns)
    }

    #[test]
    fn rows_of_the_window_and_its_antennas_are_on_axes() {
        let tsys = arrays("TSYS", (0..5).map(|row| Some(([2], vec![row as f32, row as f32 + 0.5]))).collect());
        let tcal = arrays("TCAL", vec![Some(([1], vec![9_f32])), None, None, None, None]);
        let tables = with(index(), vec![tsys, tcal, scalars("PHASE_DIFF", [5_f32, 6.0, 7.0, 8.0, 9.0])]);
        let found = read(&tables, system_calibration).unwrap().unwrap();
        assert_eq!(found.path, "my_0/system_calibration_xds");
        assert_eq!(found.attributes, [("type".to_owned(), "system_calibration".into())]);
        assert_eq!(found.names(), ["TCAL", "TSYS", "PHASE_DIFFERENCE"]);
        assert_eq!(found.get("time_system_cal").seconds(), [10.0, 20.0]);
        assert_eq!(found.get("time_system_cal").text("type"), "time");
        let tsys = found.get("TSYS");
        assert_eq!(tsys.shown_axes(), "antenna_name 2, time_system_cal 2, receptor_label 2");
        assert_eq!(tsys.numbers(), [1.0, 1.5, 2.0, 2.5, -1.0, -1.0, 0.0, 0.5]);
        assert_eq!(tsys.attributes, quantity("K"));
        assert_eq!(found.get("TCAL").numbers(), [-1.0, -1.0, -1.0, -1.0, -1.0, -1.0, 9.0, -1.0]);
        assert_eq!(found.get("PHASE_DIFFERENCE").numbers(), [6.0, 7.0, -1.0, 5.0]);
        assert_eq!(found.get("PHASE_DIFFERENCE").attributes, quantity("rad"));
        let coordinates: Vec<_> = found.coordinates.iter().map(|coordinate| coordinate.name.as_str()).collect();
        let expected = ["antenna_name", "station_name", "receptor_label", "polarization_type", "time_system_cal"];
        assert_eq!(coordinates, expected);
    }

    #[test]
    fn row_of_the_window_comes_before_one_of_all_windows() {
        let columns = vec![
            scalars("ANTENNA_ID", [1; 5]),
            scalars("SPECTRAL_WINDOW_ID", [-1, 2, 2, 2, -1]),
            scalars("FEED_ID", [0, 1, 0, 0, 0]),
            scalars("TIME", [10.0; 5]),
        ];
        let tables = with(columns, vec![scalars("PHASE_DIFF", [1_f32, 2.0, 3.0, 4.0, 5.0])]);
        let found = read(&tables, system_calibration).unwrap().unwrap();
        // of equal rows the last one
        assert_eq!(found.get("PHASE_DIFFERENCE").numbers(), [4.0, -1.0]);
    }

    #[test]
    fn spectrum_replaces_the_column_of_the_same_name() {
        let spectra = |channels: u64| {
            let cell = move |row: u64| {
                Some(([2, channels], (0..2 * channels).map(|place| (10 * row + place) as f32).collect()))
            };
            arrays("TSYS_SPECTRUM", vec![cell(0), None, cell(2), None, None])
        };
        let tsys = || arrays("TSYS", vec![Some(([2], vec![1_f32, 2.0])); 5]);
        let trx = arrays("TRX", vec![Some(([2], vec![1_f32, 2.0])); 5]);
        let found = read(&with(index(), vec![tsys(), spectra(2), trx]), system_calibration).unwrap().unwrap();
        let tsys_found = found.get("TSYS");
        let axes = "antenna_name 2, time_system_cal 2, receptor_label 2, frequency_system_cal 2";
        assert_eq!(tsys_found.shown_axes(), axes);
        // receptor after receptor, with the channels of each
        let expected = [-1.0, -1.0, -1.0, -1.0, 20.0, 22.0, 21.0, 23.0, -1.0, -1.0, -1.0, -1.0, 0.0, 2.0, 1.0, 3.0];
        assert_eq!(tsys_found.numbers(), expected);
        assert_eq!(found.get("TRX").shown_axes(), "antenna_name 2, time_system_cal 2, receptor_label 2");
        assert_eq!(found.get("frequency_system_cal").values(), &Values::Int64(vec![0, 1]));

        let undefined = arrays::<f32, 2>("TSYS_SPECTRUM", vec![None; 5]);
        let found = read(&with(index(), vec![tsys(), undefined]), system_calibration).unwrap().unwrap();
        assert_eq!(found.get("TSYS").shape, [2, 2, 2]);
        assert!(!found.has("frequency_system_cal"));
    }

    #[test]
    fn channels_of_the_window_have_its_frequencies() {
        let frequencies = (0..3).map(|row| Some(([2], vec![f64::from(row) + 0.4, 7e9]))).collect();
        let spectrum = arrays("TRX_SPECTRUM", vec![Some(([2, 2], vec![1_f32; 4])); 5]);
        let tables = with(index(), vec![spectrum])
            .with("SPECTRAL_WINDOW", vec![arrays("CHAN_FREQ", frequencies), scalars("MEAS_FREQ_REF", [5, 5, 1])]);
        let found = read(&tables, system_calibration).unwrap().unwrap();
        let axis = found.get("frequency_system_cal");
        assert_eq!(axis.values(), &Values::Int64(vec![2, 7_000_000_000]));
        assert_eq!(["type", "units", "observer"].map(|name| axis.text(name)), ["spectral_coord", "Hz", "lsrk"]);
    }

    #[test]
    fn cell_of_another_shape_is_named() {
        let mut cells = vec![Some(([2, 4], vec![1_f32; 8])); 5];
        cells[2] = Some(([2, 3], vec![1_f32; 6]));
        let tables = with(index(), vec![arrays("TSKY_SPECTRUM", cells)]);
        let expected = "TSKY_SPECTRUM of SYSCAL, row 2: the cell has shape [2, 3], expected is [at most 2, 4]";
        assert_eq!(error(&tables, system_calibration), expected);
        let tables = with(index(), vec![arrays("TANT_TSYS", vec![Some(([3], vec![1_f32; 3])); 5])]);
        let expected = "TANT_TSYS of SYSCAL, row 0: the cell has shape [3], expected is [at most 2]";
        assert_eq!(error(&tables, system_calibration), expected);
    }

    #[test]
    fn rows_of_others_have_no_dataset() {
        let columns =
            vec![scalars("ANTENNA_ID", [1, 0]), scalars("SPECTRAL_WINDOW_ID", [1, 2]), scalars("TIME", [1.0, 2.0])];
        let tables = with(columns, vec![scalars("PHASE_DIFF", [1_f32, 2.0])]);
        assert_eq!(read(&tables, system_calibration).unwrap(), None);
        assert_eq!(read(&Made::new(), system_calibration).unwrap(), None);
        // without values
        assert_eq!(read(&with(index(), vec![]), system_calibration).unwrap(), None);
    }
}
