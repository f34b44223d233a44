//! `antenna_xds`: ANTENNA, and the receptors of FEED.

use ctds::Result;

use crate::dataset::{Dataset, Variable, attributes, quantity};
use crate::partition::Part;
use crate::place::{Antennas, Place, Receptors, geocentric};
use crate::tables::{Subtable, Tables};

/// Telescopes whose antennas are moved between stations: the names of both are needed.
const RELOCATABLE: [&str; 4] = ["ALMA", "EVLA", "NOEMA", "VLA"];

pub(crate) fn antennas(tables: &dyn Tables, part: &Part, telescope: String) -> Result<Antennas> {
    let mut ids: Vec<i64> =
        part.grid.baselines.iter().flat_map(|(first, second)| [i64::from(*first), i64::from(*second)]).collect();
    ids.sort_unstable();
    ids.dedup();
    let table = Subtable::open(tables, "ANTENNA");
    let texts = |column| -> Result<Vec<String>> {
        let all = table.map_or(Ok(None), |table| table.texts(column))?.unwrap_or_default();
        let of = |id: &i64| usize::try_from(*id).ok().and_then(|id| all.get(id)).cloned().unwrap_or_default();
        Ok(ids.iter().map(of).collect())
    };
    let (mut names, stations, mounts) = (texts("NAME")?, texts("STATION")?, texts("MOUNT")?);
    if RELOCATABLE.contains(&telescope.as_str()) {
        names.iter_mut().zip(&stations).for_each(|(name, station)| *name = format!("{name}_{station}"));
    }
    let mut unique: Vec<_> = names.iter().collect();
    unique.sort_unstable();
    unique.dedup();
    if unique.len() < names.len() || names.iter().any(String::is_empty) {
        names.iter_mut().zip(&ids).for_each(|(name, id)| *name = format!("{name}_{id}"));
    }
    let position = |id: &i64| -> Result<[f64; 3]> {
        let row = u64::try_from(*id).ok();
        let cell = match (table, row) {
            (Some(table), Some(row)) if row < table.rows => table.cell_doubles("POSITION", row)?,
            _ => None,
        };
        Ok(cell.and_then(|cell| cell.try_into().ok()).unwrap_or([f64::NAN; 3]))
    };
    let positions = ids.iter().map(position).collect::<Result<_>>()?;
    Ok(Antennas { ids, names, stations, mounts, positions, telescope })
}

/// Receptors of FEED if each antenna has the same number, else the letters of the correlations.
pub(crate) fn receptors(
    tables: &dyn Tables,
    antennas: &Antennas,
    window: u64,
    correlations: &[String],
) -> Result<Receptors> {
    if let Some(found) = of_feed(tables, antennas, window)? {
        return Ok(found);
    }
    let mut letters: Vec<String> = Vec::new();
    for letter in correlations.iter().filter(|name| name.len() == 2).flat_map(|name| name.chars()) {
        let letter = letter.to_string();
        if !letters.contains(&letter) && letters.len() < 2 {
            letters.push(letter);
        }
    }
    if letters.is_empty() {
        letters = vec!["X".to_owned(), "Y".to_owned()];
    }
    let types = antennas.ids.iter().flat_map(|_| letters.clone()).collect();
    Ok(Receptors { count: letters.len(), types, angles: None })
}

fn of_feed(tables: &dyn Tables, antennas: &Antennas, window: u64) -> Result<Option<Receptors>> {
    let Some(feed) = Subtable::open(tables, "FEED") else { return Ok(None) };
    let (Some(ids), Some(windows)) = (feed.integers("ANTENNA_ID")?, feed.integers("SPECTRAL_WINDOW_ID")?) else {
        return Ok(None);
    };
    let (mut types, mut angles) = (Vec::new(), Vec::new());
    let mut count = None;
    for id in &antennas.ids {
        let is_of = |other: &i64, wanted: i64| *other == -1 || *other == wanted;
        let row = (0..ids.len()).find(|row| ids[*row] == *id && is_of(&windows[*row], window as i64));
        let Some(row) = row.map(|row| row as u64) else { return Ok(None) };
        let Some(of_row) = feed.cell_texts("POLARIZATION_TYPE", row)? else { return Ok(None) };
        if of_row.is_empty() || *count.get_or_insert(of_row.len()) != of_row.len() {
            return Ok(None);
        }
        angles.extend(feed.cell_doubles("RECEPTOR_ANGLE", row)?.unwrap_or_default());
        types.extend(of_row);
    }
    let Some(count) = count else { return Ok(None) };
    let angles = Some(angles).filter(|angles| angles.len() == types.len());
    Ok(Some(Receptors { count, types, angles }))
}

pub(crate) fn dataset(place: &Place<'_>) -> Result<Dataset> {
    let antennas = &place.antennas;
    let count = antennas.ids.len();
    let of_antenna = ("antenna_name", count);
    let mut coordinates = place.antenna_coordinates();
    coordinates.extend(place.receptor_coordinates());
    coordinates.push(Variable::labels("cartesian_pos_label", &["x", "y", "z"]));
    let positions = antennas.positions.iter().flatten().copied().collect();
    let mut variables = vec![
        Variable::doubles("ANTENNA_POSITION", &[of_antenna, ("cartesian_pos_label", 3)], positions).with(geocentric()),
    ];
    if let Some(all) = place.subtable("ANTENNA").map_or(Ok(None), |table| table.doubles("DISH_DIAMETER"))? {
        let of = |id: &i64| usize::try_from(*id).ok().and_then(|id| all.get(id)).copied().unwrap_or(f64::NAN);
        let diameters = antennas.ids.iter().map(of).collect();
        variables.push(Variable::doubles("ANTENNA_DISH_DIAMETER", &[of_antenna], diameters).with(quantity("m")));
    }
    if let Some(angles) = &place.receptors.angles {
        let axes = [of_antenna, ("receptor_label", place.receptors.count)];
        variables.push(Variable::doubles("ANTENNA_RECEPTOR_ANGLE", &axes, angles.clone()).with(quantity("rad")));
    }
    let mut found = place.dataset("antenna_xds", "antenna", coordinates, variables);
    found.attributes.extend(attributes([
        ("overall_telescope_name", antennas.telescope.as_str().into()),
        ("relocatable_antennas", RELOCATABLE.contains(&antennas.telescope.as_str()).into()),
    ]));
    Ok(found)
}
