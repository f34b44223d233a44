//! `pointing_xds`: the directions of the antennas in POINTING.
//!
//! The subtable can be larger than the rest of the metadata together: its antennas and times are
//! read in blocks, all else only of the rows of the partition.

use ctds::Result;
use ctds::value::Values;

use crate::dataset::{Attribute, Variable, attributes};
use crate::measures;
use crate::place::{Found, Place, sorted};
use crate::rows::{Extent, Inner, Picked, Slots, Times, times};
use crate::tables::Subtable;

/// `Format` if cells do not fit.
pub(crate) fn read(place: &Place<'_>) -> Found {
    let Some(table) = place.subtable("POINTING") else { return Ok(None) };
    let Some(picked) = Picked::of(place, &table, Times::Near)? else { return Ok(None) };
    let (axis, of_time) = sorted(&picked.times);
    let antennas = place.antennas.ids.len();
    let slots = Slots::new(&table, &picked.rows, (&of_time, axis.len()), (&picked.antennas, antennas))?;

    // the order of a polynomial in time; 0 is a constant
    let order = slots.doubles("NUM_POLY", Inner::SCALAR)?.unwrap_or_default();
    let is_constant = !order.iter().any(|order| *order > 0.0);
    let (terms, extent) = if is_constant {
        (1, Extent::Clipped(1))
    } else {
        let terms = slots.longest("DIRECTION", 1)?.max(1);
        (terms, Extent::Padded(terms))
    };
    let inner = Inner::transposed(Extent::Exact(2), extent);
    let Some(beam) = slots.doubles("DIRECTION", inner)? else { return Ok(None) };

    let axes = [
        ("time_pointing", axis.len()),
        ("antenna_name", antennas),
        ("local_sky_dir_label", 2),
        ("n_polynomial", terms),
    ];
    let of_beam = if terms > 1 { &axes[..] } else { &axes[..3] };
    let first = picked.rows.first().copied().unwrap_or_default();
    let frame = table.reference("DIRECTION", first)?.unwrap_or_else(|| "J2000".to_owned());
    let mut variables = vec![Variable::doubles("POINTING_BEAM", of_beam, beam).with(sky(&frame))];
    if is_pair(&table, "ENCODER", &picked.rows)?
        && let Some(encoder) = slots.doubles("ENCODER", Inner::vector(Extent::Exact(2)))?
    {
        let frame = table.reference("ENCODER", first)?.unwrap_or_else(|| "AZEL".to_owned());
        variables.push(Variable::doubles("POINTING_DISH_MEASURED", &axes[..3], encoder).with(sky(&frame)));
    }
    if let Some(over) = slots.bools("OVER_THE_TOP", Inner::SCALAR, false)? {
        variables.push(Variable::new("POINTING_OVER_THE_TOP", &axes[..2], Values::Bool(over)));
    }

    let mut coordinates = vec![
        place.antenna_names(),
        Variable::labels("local_sky_dir_label", &["az", "alt"]),
        times(place, &table, "time_pointing", &axis),
    ];
    if terms > 1 {
        let numbers = Values::Int64((0..terms as i64).collect());
        coordinates.push(Variable::new("n_polynomial", &[("n_polynomial", terms)], numbers));
    }
    Ok(Some(place.dataset("pointing_xds", "pointing", coordinates, variables)))
}

fn sky(reference: &str) -> Vec<(String, Attribute)> {
    attributes([("type", "sky_coord".into()), ("units", "rad".into()), ("frame", measures::frame(reference).into())])
}

/// Whether every defined cell is of two numbers: encoders of other mounts are left out.
fn is_pair(table: &Subtable<'_>, column: &str, rows: &[u64]) -> Result<bool> {
    let mut is_pair = true;
    table.shapes(column, rows, |_, shape| {
        is_pair &= shape[..] == [2];
        Ok(())
    })?;
    Ok(is_pair)
}

#[cfg(test)]
mod tests {
    use ctds::value::{Shape, Value, Values};

    use super::read as pointing;
    use crate::testing::{Filled, Made, arrays, error, read, scalars};

    /// Antennas 3, 0, 1, 3, 1 at 95, 100, 100, 105 and 112.6 s.
    fn with(columns: Vec<Filled>) -> Made {
        let mut all = vec![scalars("ANTENNA_ID", [3, 0, 1, 3, 1]), scalars("TIME", [95.0, 100.0, 100.0, 105.0, 112.6])];
        all.extend(columns);
        Made::new().with("POINTING", all)
    }

    fn directions(terms: u64) -> Filled {
        let cell = |row: u64| (0..2 * terms).map(|place| (10 * row + place) as f64).collect();
        arrays("DIRECTION", (0..5).map(|row| Some(([2, terms], cell(row)))).collect())
    }

    #[test]
    fn rows_within_the_times_of_the_partition_are_taken() {
        let tables = with(vec![
            directions(1).reference("AZELGEO"),
            arrays("ENCODER", (0..5).map(|row| Some(([2], vec![f64::from(row), 0.5]))).collect()),
            scalars("OVER_THE_TOP", [false, false, false, true, false]),
        ]);
        let found = read(&tables, pointing).unwrap().unwrap();
        assert_eq!(found.path, "my_0/pointing_xds");
        assert_eq!(found.attributes, [("type".to_owned(), "pointing".into())]);
        assert_eq!(found.get("time_pointing").seconds(), [100.0, 105.0]);
        assert_eq!(found.get("time_pointing").text("type"), "time_pointing");
        assert_eq!(found.get("local_sky_dir_label").strings(), ["az", "alt"]);
        let beam = found.get("POINTING_BEAM");
        assert_eq!(beam.shown_axes(), "time_pointing 2, antenna_name 2, local_sky_dir_label 2");
        assert_eq!(beam.numbers(), [20.0, 21.0, -1.0, -1.0, -1.0, -1.0, 30.0, 31.0]);
        assert_eq!(["type", "units", "frame"].map(|name| beam.text(name)), ["sky_coord", "rad", "altaz"]);
        let encoder = found.get("POINTING_DISH_MEASURED");
        assert_eq!(encoder.numbers(), [2.0, 0.5, -1.0, -1.0, -1.0, -1.0, 3.0, 0.5]);
        let over = found.get("POINTING_OVER_THE_TOP");
        assert_eq!(over.shown_axes(), "time_pointing 2, antenna_name 2");
        assert_eq!(over.values(), &Values::Bool(vec![false, false, false, true]));
        assert!(!found.has("n_polynomial"));
    }

    #[test]
    fn all_rows_are_taken_if_none_are_within_the_times() {
        let columns = vec![
            scalars("ANTENNA_ID", [3, 1]),
            scalars("TIME", [1.0, 2.0]),
            arrays("DIRECTION", vec![Some(([2, 1], vec![1.0, 2.0])), Some(([2, 1], vec![3.0, 4.0]))]),
        ];
        let found = read(&Made::new().with("POINTING", columns), pointing).unwrap().unwrap();
        assert_eq!(found.get("time_pointing").seconds(), [1.0, 2.0]);
        assert_eq!(found.get("POINTING_BEAM").numbers(), [-1.0, -1.0, 1.0, 2.0, 3.0, 4.0, -1.0, -1.0]);
        assert_eq!(found.get("POINTING_BEAM").text("frame"), "fk5");
    }

    #[test]
    fn polynomials_have_all_terms_unless_they_are_constants() {
        let constant = read(&with(vec![directions(3), scalars("NUM_POLY", [0; 5])]), pointing).unwrap().unwrap();
        assert_eq!(constant.get("POINTING_BEAM").shape, [2, 2, 2]);
        let mut cells: Vec<_> = (0..5).map(|row| Some(([2, 2], vec![f64::from(row), 1.0, 2.0, 3.0]))).collect();
        cells[3] = Some(([2, 1], vec![8.0, 9.0]));
        let terms = scalars("NUM_POLY", [0, 0, 1, 0, 0]);
        let found = read(&with(vec![arrays("DIRECTION", cells), terms]), pointing).unwrap().unwrap();
        let beam = found.get("POINTING_BEAM");
        let axes = "time_pointing 2, antenna_name 2, local_sky_dir_label 2, n_polynomial 2";
        assert_eq!(beam.shown_axes(), axes);
        assert_eq!(&beam.numbers()[..4], [2.0, 2.0, 1.0, 3.0]);
        assert_eq!(&beam.numbers()[12..], [8.0, -1.0, 9.0, -1.0]);
        assert_eq!(found.get("n_polynomial").values(), &Values::Int64(vec![0, 1]));
    }

    #[test]
    fn axes_of_a_simulator_are_put_in_order() {
        let swapped = arrays("DIRECTION", vec![Some(([1, 2], vec![1.0, 2.0])); 5]);
        let found = read(&with(vec![swapped]), pointing).unwrap().unwrap();
        assert_eq!(&found.get("POINTING_BEAM").numbers()[..2], [1.0, 2.0]);
    }

    #[test]
    fn frame_may_be_that_of_the_row() {
        let names = Values::String(vec!["J2000".into(), "AZEL".into()]);
        let measure = [
            ("VarRefCol", Value::string("REF")),
            ("TabRefCodes", Value::Array(Shape::from([2]), Values::Int(vec![0, 7]))),
            ("TabRefTypes", Value::Array(Shape::from([2]), names)),
        ];
        let tables = with(vec![directions(1).measure(&measure), scalars("REF", [0, 0, 7, 7, 7])]);
        assert_eq!(read(&tables, pointing).unwrap().unwrap().get("POINTING_BEAM").text("frame"), "altaz");
    }

    #[test]
    fn encoders_of_three_axes_are_left_out() {
        let encoder = arrays("ENCODER", vec![Some(([3], vec![1.0; 3])); 5]);
        let found = read(&with(vec![directions(1), encoder]), pointing).unwrap().unwrap();
        assert_eq!(found.names(), ["POINTING_BEAM"]);
    }

    #[test]
    fn undefined_directions_have_no_dataset() {
        assert_eq!(read(&with(vec![arrays::<f64, 2>("DIRECTION", vec![None; 5])]), pointing).unwrap(), None);
        let empty = arrays::<f64, 2>("DIRECTION", vec![Some(([2, 0], vec![])); 5]);
        assert_eq!(read(&with(vec![empty]), pointing).unwrap(), None);
        let others = vec![scalars("ANTENNA_ID", [0]), scalars("TIME", [100.0])];
        assert_eq!(read(&Made::new().with("POINTING", others), pointing).unwrap(), None);
    }

    #[test]
    fn cell_of_another_shape_is_named() {
        let mut cells = vec![Some(([2, 1], vec![1.0; 2])); 5];
        cells[3] = Some(([3, 1], vec![1.0; 3]));
        let expected = "DIRECTION of POINTING, row 3: the cell has shape [3, 1], expected is [2, at least 1]";
        assert_eq!(error(&with(vec![arrays("DIRECTION", cells)]), pointing), expected);
    }

    /// More rows than a block: all in one run, and in runs of two.
    #[test]
    fn rows_of_several_blocks_are_found() {
        let count = 70_000_u32;
        for antennas in [[1, 1, 1], [1, 1, 2]] {
            let antenna = |row: u32| antennas[row as usize % 3];
            let columns = vec![
                scalars("ANTENNA_ID", (0..count).map(antenna)),
                scalars("TIME", (0..count).map(|row| 100.0 + f64::from(row) * 1e-4)),
                arrays("DIRECTION", (0..count).map(|row| Some(([2, 1], vec![f64::from(row), 0.0]))).collect()),
            ];
            let found = read(&Made::new().with("POINTING", columns), pointing).unwrap().unwrap();
            let beam = found.get("POINTING_BEAM").numbers();
            let wanted: Vec<_> = (0..count).filter(|row| antenna(*row) == 1).map(f64::from).collect();
            let read: Vec<_> = beam.chunks(4).map(|slots| slots[0]).collect();
            assert!(read == wanted);
        }
    }
}
