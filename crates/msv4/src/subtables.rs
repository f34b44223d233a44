//! The datasets of a partition that come from subtables which a MeasurementSet may lack.

use crate::dataset::Dataset;
use crate::place::{Found, Place};
use crate::{gain_curve, phase_calibration, phased_array, pointing, system_calibration, weather};

type Read = fn(&Place<'_>) -> Found;

const ALL: [(&str, Read); 6] = [
    ("pointing_xds", pointing::read),
    ("system_calibration_xds", system_calibration::read),
    ("gain_curve_xds", gain_curve::read),
    ("phase_calibration_xds", phase_calibration::read),
    ("phased_array_xds", phased_array::read),
    ("weather_xds", weather::read),
];

/// All those that the MeasurementSet has. A warning is added for each that cannot be read.
pub(crate) fn read_all(place: &Place<'_>, warnings: &mut Vec<String>) -> Vec<Dataset> {
    let mut found = Vec::new();
    for (name, read) in ALL {
        match read(place) {
            Ok(dataset) => found.extend(dataset),
            Err(error) => warnings.push(format!("{name} is left out: {error}")),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::read_all;
    use crate::testing::{Made, arrays, part, place, scalars};

    fn made() -> Made {
        Made::new()
            .with("WEATHER", vec![scalars("ANTENNA_ID", [1]), scalars("TIME", [1.0]), scalars("PRESSURE", [1.0])])
            .with(
                "POINTING",
                vec![
                    scalars("ANTENNA_ID", [1]),
                    scalars("TIME", [100.0]),
                    arrays("DIRECTION", vec![Some(([2, 1], vec![1.0, 2.0]))]),
                ],
            )
    }

    fn read(tables: &Made) -> (Vec<String>, Vec<String>) {
        let (part, mut warnings) = (part(), Vec::new());
        let found = read_all(&place(tables, &part), &mut warnings);
        (found.into_iter().map(|dataset| dataset.path).collect(), warnings)
    }

    #[test]
    fn missing_subtables_are_left_out_without_a_warning() {
        assert_eq!(read(&Made::new()), (Vec::new(), Vec::new()));
        let paths = ["my_0/pointing_xds", "my_0/weather_xds"].map(str::to_owned).to_vec();
        assert_eq!(read(&made()), (paths, Vec::new()));
    }

    #[test]
    fn damaged_subtable_is_left_out_with_a_warning() {
        for (damaged, name, left) in
            [("WEATHER", "weather_xds", "my_0/pointing_xds"), ("POINTING", "pointing_xds", "my_0/weather_xds")]
        {
            let (found, warnings) = read(&made().damaged(damaged));
            assert_eq!(found, [left]);
            assert_eq!(warnings.len(), 1);
            assert!(warnings[0].starts_with(&format!("{name} is left out: ")), "{warnings:?}");
        }
    }
}
