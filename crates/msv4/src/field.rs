//! `field_and_source_base_xds`: the fields of a partition, and their sources with spectral lines.

use bstr::ByteSlice;
use ctds::Result;

use crate::dataset::{Attribute, Dataset, Variable, attributes, quantity};
use crate::ephemeris::{self, OfTimes};
use crate::measures::{frame, observer_named};
use crate::partition::Part;
use crate::place::{FIELDS, Place};
use crate::tables::{Subtable, Tables};

pub(crate) struct Fields {
    /// Different rows of FIELD, ascending.
    ids: Vec<i64>,
    /// `field_name` of each: NAME and number.
    names: Vec<String>,
    /// The centre of each, in radians.
    directions: Vec<[f64; 2]>,
    pub(crate) frame: String,
    reference: String,
}

impl Fields {
    /// The centres of visibilities are those of PHASE_DIR, of single dishes those of REFERENCE_DIR.
    pub(crate) fn read(
        tables: &dyn Tables,
        part: &Part,
        is_single_dish: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Self> {
        let mut ids = part.fields.clone();
        ids.sort_unstable();
        ids.dedup();
        let table = Subtable::open(tables, "FIELD");
        let names = table.map_or(Ok(None), |table| table.texts("NAME"))?.unwrap_or_default();
        let column = if is_single_dish { "REFERENCE_DIR" } else { "PHASE_DIR" };
        let mut references: Vec<String> = Vec::new();
        let (mut of_ids, mut directions, mut moving) = (Vec::new(), Vec::new(), false);
        for &id in &ids {
            let row = u64::try_from(id).ok().filter(|row| table.is_some_and(|table| *row < table.rows));
            let name = row.and_then(|row| names.get(row as usize)).map_or("", String::as_str);
            of_ids.push(format!("{name}_{id}"));
            let (mut direction, mut reference) = ([f64::NAN; 2], "J2000".to_owned());
            if let (Some(table), Some(row)) = (table, row) {
                let terms = table.cell_doubles(column, row)?.unwrap_or_default();
                if let [longitude, latitude, ..] = terms[..] {
                    direction = [longitude, latitude];
                }
                moving |= terms.len() > 2;
                reference = table.reference(column, row)?.unwrap_or(reference);
            }
            directions.push(direction);
            references.push(reference);
        }
        let reference = references.first().cloned().unwrap_or_else(|| "J2000".to_owned());
        if references.iter().any(|other| *other != reference) {
            warnings.push(format!("{column} of FIELD has several frames in a partition; {reference} is given for all"));
        }
        if moving {
            warnings.push(format!("{column} of FIELD changes with time; its first term is given"));
        }
        Ok(Fields { ids, names: of_ids, directions, frame: frame(&reference), reference })
    }

    /// The names of fields, given by their rows in FIELD.
    pub(crate) fn names_of(&self, fields: &[i64]) -> Vec<String> {
        let name = |id: &i64| self.ids.binary_search(id).map(|place| self.names[place].clone()).unwrap_or_default();
        fields.iter().map(name).collect()
    }

    /// The centre of a field, given by its row in FIELD, in radians: 0 if it is unknown.
    fn direction(&self, field: i64) -> [f64; 2] {
        let direction = self.ids.binary_search(&field).map_or([f64::NAN; 2], |place| self.directions[place]);
        if direction.iter().any(|angle| angle.is_nan()) { [0.0; 2] } else { direction }
    }

    /// Frame of UVW, which is that of the centres.
    pub(crate) fn frame_of_uvw(&self) -> &str {
        match self.reference.as_str() {
            "APP" => "APP",
            _ if self.frame == "fk5" => "fk5",
            _ => "icrs",
        }
    }

    pub(crate) fn dataset(&self, place: &Place<'_>, warnings: &mut Vec<String>) -> Result<Dataset> {
        let sources = Sources::read(place, &self.ids)?;
        let source_of =
            |field: &i64| self.ids.binary_search(field).map(|place| sources.names[place].clone()).unwrap_or_default();
        let of_times = OfTimes {
            fields: self.names_of(&place.part.fields),
            sources: place.part.fields.iter().map(source_of).collect(),
            offsets: place.part.fields.iter().map(|field| self.direction(*field)).collect(),
        };
        match ephemeris::dataset(place, of_times, warnings) {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            Err(error) => warnings.push(format!("directions are offsets from an ephemeris: {error}")),
        }
        let of_field = ("field_name", self.ids.len());
        let name =
            if place.is_single_dish { "FIELD_REFERENCE_CENTER_DIRECTION" } else { "FIELD_PHASE_CENTER_DIRECTION" };
        let centres: Vec<_> = self.directions.iter().flatten().copied().collect();
        let axes = [of_field, ("sky_dir_label", 2)];
        let mut variables = vec![Variable::doubles(name, &axes, centres).with(sky(&self.frame))];
        let names = self.names.iter().map(String::as_str);
        let mut coordinates =
            vec![Variable::texts("field_name", &[of_field], names), Variable::labels("sky_dir_label", &["ra", "dec"])];
        coordinates.push(Variable::texts("source_name", &[of_field], sources.names.iter().map(String::as_str)));
        if let Some((directions, frame)) = sources.directions {
            variables.push(Variable::doubles("SOURCE_DIRECTION", &axes, directions).with(sky(&frame)));
        }
        if sources.lines > 0 {
            let axes = [of_field, ("line_label", sources.lines)];
            coordinates.push(Variable::texts("line_name", &axes, sources.transitions));
            let labels: Vec<_> = (0..sources.lines).map(|line| line.to_string()).collect();
            coordinates.push(Variable::texts("line_label", &axes[1..], labels));
            let spectral = attributes([
                ("type", "spectral_coord".into()),
                ("units", "Hz".into()),
                ("observer", sources.observer.into()),
            ]);
            variables.push(Variable::doubles("LINE_REST_FREQUENCY", &axes, sources.frequencies).with(spectral));
            if let Some(velocities) = sources.velocities {
                let velocities = Variable::doubles("LINE_SYSTEMIC_VELOCITY", &axes, velocities);
                variables.push(velocities.with(quantity("m/s")));
            }
        }
        Ok(place.dataset(FIELDS, "field_and_source", coordinates, variables))
    }
}

fn sky(frame: &str) -> Vec<(String, Attribute)> {
    attributes([("type", "sky_coord".into()), ("units", "rad".into()), ("frame", frame.into())])
}

/// The sources of fields in a spectral window.
#[derive(Default)]
struct Sources {
    names: Vec<String>,
    /// Directions of the sources, and their frame; `None` without SOURCE.
    directions: Option<(Vec<f64>, String)>,
    /// Most lines of a source.
    lines: usize,
    transitions: Vec<String>,
    frequencies: Vec<f64>,
    observer: &'static str,
    velocities: Option<Vec<f64>>,
}

impl Sources {
    fn read(place: &Place<'_>, fields: &[i64]) -> Result<Self> {
        let unknown = || Sources { names: vec!["Unknown".to_owned(); fields.len()], ..Sources::default() };
        let (Some(table), Some(field)) = (place.subtable("SOURCE"), place.subtable("FIELD")) else {
            return Ok(unknown());
        };
        let (Some(sources), Some(ids)) = (field.integers("SOURCE_ID")?, table.integers("SOURCE_ID")?) else {
            return Ok(unknown());
        };
        let windows = table.integers("SPECTRAL_WINDOW_ID")?.unwrap_or_else(|| vec![-1; ids.len()]);
        let texts = table.texts("NAME")?.unwrap_or_default();
        let is_of_window = |row: &usize| windows[*row] == -1 || windows[*row] == place.window as i64;
        let rows: Vec<Option<u64>> = fields
            .iter()
            .map(|field| {
                let id = usize::try_from(*field).ok().and_then(|field| sources.get(field)).filter(|id| **id >= 0)?;
                (0..ids.len()).filter(|row| ids[*row] == *id).find(is_of_window).map(|row| row as u64)
            })
            .collect();
        if rows.iter().all(Option::is_none) {
            return Ok(unknown());
        }
        let name = |row: &Option<u64>| match row.map(|row| row as usize) {
            Some(row) => format!("{}_{}", texts.get(row).map_or("", String::as_str), ids[row]),
            None => "Unknown".to_owned(),
        };
        let mut found = Sources { names: rows.iter().map(name).collect(), ..Sources::default() };
        let mut directions = Vec::new();
        let mut reference = None;
        for row in &rows {
            let cell = row.map_or(Ok(None), |row| table.cell_doubles("DIRECTION", row))?;
            let pair = cell.and_then(|cell| cell.get(..2).map(|pair| [pair[0], pair[1]]));
            directions.extend(pair.unwrap_or([f64::NAN; 2]));
            if let (None, Some(row)) = (&reference, row) {
                reference = Some(table.reference("DIRECTION", *row)?.unwrap_or_else(|| "J2000".to_owned()));
            }
        }
        found.directions = reference.map(|reference| (directions, frame(&reference)));
        found.read_lines(&table, &rows)?;
        Ok(found)
    }

    fn read_lines(&mut self, table: &Subtable<'_>, rows: &[Option<u64>]) -> Result<()> {
        let Some(counts) = table.integers("NUM_LINES")? else { return Ok(()) };
        let mut lines = Vec::new();
        for row in rows {
            let row = row.filter(|row| counts[*row as usize] > 0);
            let frequencies = row.map_or(Ok(None), |row| table.cell_doubles("REST_FREQUENCY", row))?;
            let velocities = row.map_or(Ok(None), |row| table.cell_doubles("SYSVEL", row))?;
            let transitions = row.map_or(Ok(None), |row| table.cell_texts("TRANSITION", row))?;
            lines.push((frequencies.unwrap_or_default(), velocities, transitions.unwrap_or_default()));
        }
        self.lines = lines.iter().map(|(frequencies, ..)| frequencies.len()).max().unwrap_or(0);
        let has_velocities = lines.iter().any(|(_, velocities, _)| velocities.is_some());
        let mut of_fields = Vec::new();
        for (frequencies, velocities, transitions) in &lines {
            let padded = |list: &[f64]| {
                (0..self.lines).map(|line| list.get(line).copied().unwrap_or(f64::NAN)).collect::<Vec<_>>()
            };
            self.frequencies.extend(padded(frequencies));
            of_fields.extend(padded(velocities.as_deref().unwrap_or_default()));
            self.transitions.extend((0..self.lines).map(|line| transitions.get(line).cloned().unwrap_or_default()));
        }
        self.velocities = has_velocities.then_some(of_fields);
        let reference = table.measure("REST_FREQUENCY").and_then(|measure| measure.string("Ref"));
        self.observer = observer_named(reference.map_or("REST", |text| text.to_str().unwrap_or("")));
        Ok(())
    }
}
