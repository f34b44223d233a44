//! `phased_array_xds`: the elements of stations that are arrays themselves, which LOFAR describes
//! in PHASED_ARRAY.
//!
//! Cells have the element as their fastest axis. COORDINATE_AXES has the vectors p, q, r of the
//! station one after the other; an older name is COORDINATE_SYSTEM.

use ctds::value::Values;

use crate::dataset::{Variable, attributes};
use crate::place::{Found, Place};
use crate::rows::{Extent, Inner, Picked, Slots, Times};

/// `Format` if cells do not fit.
pub(crate) fn read(place: &Place<'_>) -> Found {
    let Some(table) = place.subtable("PHASED_ARRAY") else { return Ok(None) };
    let Some(picked) = Picked::of(place, &table, Times::Unread)? else { return Ok(None) };
    let (antennas, receptors) = (place.antennas.ids.len(), place.receptors.count);
    let slots = Slots::on(&table, &picked.rows, &picked.antennas, antennas);

    let elements = slots.longest("ELEMENT_OFFSET", 0)?;
    let extent = Extent::Padded(elements);
    let Some(offsets) = slots.doubles("ELEMENT_OFFSET", Inner::as_stored(extent, Extent::Exact(3)))? else {
        return Ok(None);
    };
    let matrix = Inner::as_stored(Extent::Exact(3), Extent::Exact(3));
    let frames = match slots.doubles("COORDINATE_AXES", matrix)? {
        Some(frames) => frames,
        None => match slots.doubles("COORDINATE_SYSTEM", matrix)? {
            Some(frames) => frames,
            None => return Ok(None),
        },
    };
    let flags = slots.bools("ELEMENT_FLAG", Inner::as_stored(extent, Extent::Padded(receptors)), true)?;
    let mut counts = vec![0_i64; antennas];
    table.shapes("ELEMENT_OFFSET", &picked.rows, |places, shape| {
        for place in places {
            counts[picked.antennas[place]] = shape.first().map_or(0, |count| *count as i64);
        }
        Ok(())
    })?;

    let of_antenna = ("antenna_name", antennas);
    let local = ("cartesian_pos_label_local", 3);
    let element = ("element_id", elements);
    let flag_axes = [of_antenna, ("receptor_label", receptors), element];
    let flags = flags.unwrap_or_else(|| vec![true; antennas * receptors * elements]);
    let variables = vec![
        Variable::new("PHASED_ARRAY_ELEMENT_COUNT", &[of_antenna], Values::Int64(counts)),
        Variable::doubles("PHASED_ARRAY_COORDINATE_AXES", &[of_antenna, local, ("cartesian_pos_label", 3)], frames)
            .with(attributes([("type", "rotation_matrix".into()), ("units", "dimensionless".into())])),
        Variable::doubles("PHASED_ARRAY_ELEMENT_OFFSET", &[of_antenna, local, element], offsets).with(attributes([
            ("type", "location".into()),
            ("units", "m".into()),
            ("coordinate_system", "topocentric".into()),
            ("origin", "ANTENNA_POSITION".into()),
        ])),
        Variable::new("PHASED_ARRAY_ELEMENT_FLAG", &flag_axes, Values::Bool(flags)),
    ];
    let mut coordinates = vec![place.antenna_names()];
    coordinates.extend(place.receptor_coordinates());
    coordinates.push(Variable::new("element_id", &[element], Values::Int64((0..elements as i64).collect())));
    coordinates.push(Variable::labels("cartesian_pos_label", &["x", "y", "z"]));
    coordinates.push(Variable::labels("cartesian_pos_label_local", &["p", "q", "r"]));
    Ok(Some(place.dataset("phased_array_xds", "phased_array", coordinates, variables)))
}

#[cfg(test)]
mod tests {
    use ctds::value::Values;

    use super::read as phased_array;
    use crate::testing::{Filled, Made, arrays, error, read, scalars};

    fn columns(axes: &str) -> Vec<Filled> {
        vec![
            scalars("ANTENNA_ID", [3, 0]),
            arrays(axes, vec![Some(([3, 3], (0..9).map(f64::from).collect())); 2]),
            arrays("ELEMENT_OFFSET", vec![Some(([2, 3], (0..6).map(f64::from).collect())), None]),
            arrays("ELEMENT_FLAG", vec![Some(([2, 2], vec![false, true, false, false])), None]),
        ]
    }

    #[test]
    fn elements_of_each_station_are_padded() {
        for axes in ["COORDINATE_AXES", "COORDINATE_SYSTEM"] {
            let found = read(&Made::new().with("PHASED_ARRAY", columns(axes)), phased_array).unwrap().unwrap();
            assert_eq!(found.path, "my_0/phased_array_xds");
            assert_eq!(found.attributes, [("type".to_owned(), "phased_array".into())]);
            let all = found.get("PHASED_ARRAY_COORDINATE_AXES");
            assert_eq!(all.shown_axes(), "antenna_name 2, cartesian_pos_label_local 3, cartesian_pos_label 3");
            assert_eq!(all.numbers()[..10], [-1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, 0.0]);
            assert_eq!(["type", "units"].map(|name| all.text(name)), ["rotation_matrix", "dimensionless"]);
            let offsets = found.get("PHASED_ARRAY_ELEMENT_OFFSET");
            assert_eq!(offsets.shown_axes(), "antenna_name 2, cartesian_pos_label_local 3, element_id 2");
            assert_eq!(offsets.numbers()[5..], [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
            let attributes = ["type", "units", "coordinate_system", "origin"].map(|name| offsets.text(name));
            assert_eq!(attributes, ["location", "m", "topocentric", "ANTENNA_POSITION"]);
            let flags = found.get("PHASED_ARRAY_ELEMENT_FLAG");
            assert_eq!(flags.shown_axes(), "antenna_name 2, receptor_label 2, element_id 2");
            let expected = vec![true, true, true, true, false, true, false, false];
            assert_eq!(flags.values(), &Values::Bool(expected));
            assert_eq!(found.get("PHASED_ARRAY_ELEMENT_COUNT").values(), &Values::Int64(vec![0, 2]));
            assert_eq!(found.get("element_id").values(), &Values::Int64(vec![0, 1]));
            assert_eq!(found.get("cartesian_pos_label_local").strings(), ["p", "q", "r"]);
        }
    }

    #[test]
    fn stations_with_fewer_elements_are_padded() {
        let mut columns = columns("COORDINATE_AXES");
        columns[0] = scalars("ANTENNA_ID", [3, 1]);
        columns[2] = arrays("ELEMENT_OFFSET", vec![Some(([2, 3], vec![1.0; 6])), Some(([1, 3], vec![7.0, 8.0, 9.0]))]);
        columns[3] = arrays("ELEMENT_FLAG", vec![Some(([2, 2], vec![false; 4])), Some(([1, 2], vec![false; 2]))]);
        let found = read(&Made::new().with("PHASED_ARRAY", columns), phased_array).unwrap().unwrap();
        let offsets = found.get("PHASED_ARRAY_ELEMENT_OFFSET");
        assert_eq!(offsets.numbers()[..6], [7.0, -1.0, 8.0, -1.0, 9.0, -1.0]);
        let expected = vec![false, true, false, true, false, false, false, false];
        assert_eq!(found.get("PHASED_ARRAY_ELEMENT_FLAG").values(), &Values::Bool(expected));
        assert_eq!(found.get("PHASED_ARRAY_ELEMENT_COUNT").values(), &Values::Int64(vec![1, 2]));
    }

    #[test]
    fn incomplete_subtable_has_no_dataset() {
        assert_eq!(read(&Made::new(), phased_array).unwrap(), None);
        assert_eq!(read(&Made::new().with("PHASED_ARRAY", columns("OTHER")), phased_array).unwrap(), None);
        let offsets = vec![arrays("ELEMENT_OFFSET", vec![Some(([2, 3], vec![1.0; 6]))])];
        let tables = Made::new().with("PHASED_ARRAY", offsets);
        assert_eq!(error(&tables, phased_array), "PHASED_ARRAY has no column ANTENNA_ID");
    }
}
