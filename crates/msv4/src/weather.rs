//! `weather_xds`: the records of WEATHER at each station.
//!
//! A station is one of ALMA's (NS_WX_STATION_ID) if the subtable has them, else the pad of an
//! antenna. The columns that flag others are left out.

use ctds::{Error, Result};

use crate::dataset::Variable;
use crate::place::{Found, Place, geocentric, sorted};
use crate::rows::{Extent, Inner, Slots, quantities, times};
use crate::tables::Subtable;

/// Columns, and the units that the schema has for them.
const COLUMNS: [(&str, Option<&str>); 8] = [
    ("H2O", Some("/m^2")),
    ("IONOS_ELECTRON", Some("/m^2")),
    ("PRESSURE", Some("Pa")),
    ("REL_HUMIDITY", None),
    ("TEMPERATURE", Some("K")),
    ("DEW_POINT", Some("K")),
    ("WIND_DIRECTION", Some("rad")),
    ("WIND_SPEED", Some("m/s")),
];

/// `Format` if an index column is missing.
pub(crate) fn read(place: &Place<'_>) -> Found {
    let Some(table) = place.subtable("WEATHER") else { return Ok(None) };
    let station_ids = table.integers("NS_WX_STATION_ID")?;
    let is_alma = station_ids.is_some();
    let missing = |column: &str| Error::format(format!("WEATHER has no column {column}"));
    let ids = match station_ids {
        Some(ids) => ids,
        None => table.integers("ANTENNA_ID")?.ok_or_else(|| missing("ANTENNA_ID"))?,
    };
    let mut stations = ids.clone();
    stations.sort_unstable();
    stations.dedup();
    let of_station: Vec<_> = ids.iter().map(|id| stations.partition_point(|station| station < id)).collect();
    let (axis, of_time) = sorted(&table.doubles("TIME")?.ok_or_else(|| missing("TIME"))?);
    let rows: Vec<u64> = (0..table.rows).collect();
    let slots = Slots::new(&table, &rows, (&of_station, stations.len()), (&of_time, axis.len()))?;

    let axes = [("station_name", stations.len()), ("time_weather", axis.len())];
    let mut variables = vec![positions(place, &table, &stations, &of_station, &rows, is_alma)?];
    for (column, units) in COLUMNS {
        let Some(values) = slots.doubles(column, Inner::SCALAR)? else { continue };
        variables.push(match (units, table.units(column).as_str()) {
            (None, _) => Variable::doubles(column, &axes, values),
            (Some(units), "") if column == "PRESSURE" => quantities(column, &axes, values, "hPa", units),
            (Some(units), found) => quantities(column, &axes, values, found, units),
        });
    }
    let coordinates = vec![
        Variable::texts("station_name", &axes[..1], names(place, &stations, is_alma)?),
        times(place, &table, "time_weather", &axis),
        Variable::labels("cartesian_pos_label", &["x", "y", "z"]),
    ];
    Ok(Some(place.dataset("weather_xds", "weather", coordinates, variables)))
}

/// Names of the stations, each of which has its own.
fn names(place: &Place<'_>, stations: &[i64], is_alma: bool) -> Result<Vec<String>> {
    let (table, column) = if is_alma { ("ASDM_STATION", "name") } else { ("ANTENNA", "STATION") };
    let all = place.subtable(table).map_or(Ok(None), |table| table.texts(column))?.unwrap_or_default();
    let of = |id: &i64| {
        let name = usize::try_from(*id).ok().and_then(|id| all.get(id)).filter(|name| !name.is_empty());
        name.cloned().unwrap_or_else(|| format!("Station_{id}"))
    };
    let names: Vec<_> = stations.iter().map(of).collect();
    let mut unique = names.clone();
    unique.sort_unstable();
    let is_repeated = |name: &String| {
        unique.partition_point(|other| other <= name) - unique.partition_point(|other| other < name) > 1
    };
    let names = names.iter().zip(stations);
    Ok(names.map(|(name, id)| if is_repeated(name) { format!("{name}_{id}") } else { name.clone() }).collect())
}

fn positions(
    place: &Place<'_>,
    table: &Subtable<'_>,
    stations: &[i64],
    of_station: &[usize],
    rows: &[u64],
    is_alma: bool,
) -> Result<Variable> {
    let inner = Inner::vector(Extent::Exact(3));
    let mut found = Slots::on(table, rows, of_station, stations.len()).doubles("NS_WX_STATION_POSITION", inner)?;
    if let (None, false, Some(antennas)) = (&found, is_alma, place.subtable("ANTENNA")) {
        let known = stations.iter().zip(0..).filter_map(|(id, station)| Some((u64::try_from(*id).ok()?, station)));
        let (rows, of_station): (Vec<u64>, Vec<usize>) = known.filter(|(row, _)| *row < antennas.rows).unzip();
        found = Slots::on(&antennas, &rows, &of_station, stations.len()).doubles("POSITION", inner)?;
    }
    let values = found.unwrap_or_else(|| vec![f64::NAN; stations.len() * 3]);
    let axes = [("station_name", stations.len()), ("cartesian_pos_label", 3)];
    Ok(Variable::doubles("STATION_POSITION", &axes, values).with(geocentric()))
}

#[cfg(test)]
mod tests {
    use super::read as weather;
    use crate::dataset::{attributes, quantity};
    use crate::place::geocentric;
    use crate::testing::{Made, arrays, error, read, scalars, texts};

    #[test]
    fn stations_are_pads_of_antennas() {
        let tables = Made::new()
            .with(
                "ANTENNA",
                vec![
                    texts("STATION", &["N1", "N2"]),
                    arrays("POSITION", (0..2).map(|id| Some(([3], vec![f64::from(id), 8.0, 9.0]))).collect()),
                ],
            )
            .with(
                "WEATHER",
                vec![
                    scalars("ANTENNA_ID", [1, 0, 1, 7]),
                    scalars("TIME", [20.0, 10.0, 10.0, 10.0]).reference("TAI"),
                    scalars("PRESSURE", [1_f32, 2.0, 3.0, 4.0]),
                    scalars("TEMPERATURE", [1_f64, 2.0, 3.0, 4.0]).unit("K"),
                    scalars("REL_HUMIDITY", [0.5_f32, 0.25, 0.75, 0.0]).unit("%"),
                    scalars("PRESSURE_FLAG", [true; 4]),
                ],
            );
        let found = read(&tables, weather).unwrap().unwrap();
        assert_eq!(
            (found.path.as_str(), &found.attributes),
            ("my_0/weather_xds", &attributes([("type", "weather".into())]))
        );
        assert_eq!(found.names(), ["STATION_POSITION", "PRESSURE", "REL_HUMIDITY", "TEMPERATURE"]);
        assert_eq!(found.get("station_name").strings(), ["N1", "N2", "Station_7"]);
        let time = found.get("time_weather");
        assert_eq!(time.seconds(), [10.0, 20.0]);
        assert_eq!(
            ["type", "units", "scale", "format"].map(|name| time.text(name)),
            ["time_weather", "s", "tai", "unix"]
        );
        let pressure = found.get("PRESSURE");
        assert_eq!(pressure.shown_axes(), "station_name 3, time_weather 2");
        assert_eq!(pressure.numbers(), [200.0, -1.0, 300.0, 100.0, 400.0, -1.0]);
        assert_eq!(pressure.attributes, quantity("Pa"));
        assert_eq!(found.get("TEMPERATURE").numbers(), [2.0, -1.0, 3.0, 1.0, 4.0, -1.0]);
        assert_eq!(found.get("REL_HUMIDITY").attributes, []);
        let positions = found.get("STATION_POSITION");
        assert_eq!(positions.shown_axes(), "station_name 3, cartesian_pos_label 3");
        assert_eq!(positions.numbers(), [0.0, 8.0, 9.0, 1.0, 8.0, 9.0, -1.0, -1.0, -1.0]);
        assert_eq!(positions.attributes, geocentric());
    }

    #[test]
    fn stations_of_alma_have_their_own_names_and_positions() {
        let tables = Made::new().with("ASDM_STATION", vec![texts("name", &["A", "METEO", "METEO", "C"])]).with(
            "WEATHER",
            vec![
                scalars("ANTENNA_ID", [-1, -1]),
                scalars("NS_WX_STATION_ID", [2, 1]),
                arrays("NS_WX_STATION_POSITION", vec![None, Some(([3], vec![1.0, 2.0, 3.0]))]),
                scalars("TIME", [5.0, 5.0]),
                scalars("PRESSURE", [7_f64, 8.0]).unit("Pa"),
                scalars("WIND_SPEED", [1_f64, 2.0]).unit("m/s"),
            ],
        );
        let found = read(&tables, weather).unwrap().unwrap();
        assert_eq!(found.get("station_name").strings(), ["METEO_1", "METEO_2"]);
        assert_eq!(found.get("PRESSURE").numbers(), [8.0, 7.0]);
        assert_eq!(found.get("WIND_SPEED").attributes, quantity("m/s"));
        assert_eq!(found.get("STATION_POSITION").numbers(), [1.0, 2.0, 3.0, -1.0, -1.0, -1.0]);
    }

    #[test]
    fn missing_or_empty_subtable_has_no_dataset() {
        assert_eq!(read(&Made::new(), weather).unwrap(), None);
        let empty = Made::new().with("WEATHER", vec![scalars::<i32>("ANTENNA_ID", []), scalars::<f64>("TIME", [])]);
        assert_eq!(read(&empty, weather).unwrap(), None);
    }

    #[test]
    fn missing_index_column_and_other_types_are_named() {
        let tables = Made::new().with("WEATHER", vec![scalars("ANTENNA_ID", [1])]);
        assert_eq!(error(&tables, weather), "WEATHER has no column TIME");
        let tables = Made::new()
            .with("WEATHER", vec![scalars("ANTENNA_ID", [1]), scalars("TIME", [1.0]), texts("PRESSURE", &["x"])]);
        assert_eq!(error(&tables, weather), "WEATHER has PRESSURE of type string; expected are numbers");
    }
}
