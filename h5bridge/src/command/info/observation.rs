//! Shows a MeasurementSet or calibration table in `h5bridge info` as CASA's listobs does.

use std::collections::BTreeSet;

use ms_look::{Antenna, FieldSummary, ObservationSummary, ScanSummary, Summary, WindowSummary, label};

use super::screen::Section;
use super::words::{date, direction, duration, kilohertz, megahertz, period, thousands};

/// Characters of the list of antennas.
const ANTENNA_NAMES: usize = 70;

/// Telescope, scans, fields, spectral windows. `shortened` lists name the option that shows all.
pub(super) fn sections(summary: &Summary, shortened: bool) -> Vec<Section> {
    let mut sections = vec![general(summary)];
    let lists = [fields(summary), windows(summary), scans(summary)];
    sections.extend(lists.into_iter().filter(|section| !section.rows.is_empty()));
    if !shortened {
        sections.iter_mut().for_each(|section| section.all = None);
    }
    sections
}

/// Fields, spectral windows or antennas of the subtable `name`, scans of the main table (`.`).
pub(super) fn table(summary: &Summary, name: &str) -> Option<Section> {
    let section = match name {
        "." => scans(summary),
        "FIELD" => fields(summary),
        "SPECTRAL_WINDOW" => windows(summary),
        "ANTENNA" => antennas(summary),
        _ => return None,
    };
    (!section.rows.is_empty()).then_some(Section { all: None, ..section })
}

fn general(summary: &Summary) -> Section {
    let mut rows = Vec::new();
    let mut add = |name: &str, text: String| {
        if !text.is_empty() {
            rows.push(vec![name.to_owned(), text]);
        }
    };
    let each = |text: fn(&ObservationSummary) -> &str| {
        let texts: BTreeSet<&str> =
            summary.observations.iter().map(text).map(str::trim).filter(|text| !text.is_empty()).collect();
        let listed: Vec<&str> = texts.iter().copied().take(4).collect();
        let more = texts.len() - listed.len();
        if more > 0 {
            format!("{}, ... {more} more; --table OBSERVATION", listed.join(", "))
        } else {
            listed.join(", ")
        }
    };
    add("Telescope", each(|observation| &observation.telescope));
    add("Observer", each(|observation| &observation.observer));
    add("Project", each(|observation| &observation.project));
    let interval = summary.interval.filter(|interval| *interval > 0.);
    let interval = interval.map_or_else(String::new, |interval| format!(", interval {}", duration(interval)));
    add("Time", summary.time_range.map_or_else(String::new, |range| format!("{}{interval}", period(range))));
    add("Antennas", antenna_names(&summary.antennas));
    let flagged = summary.flagged.map(|flagged| format!("{:.2} % of the {}", 100. * flagged.fraction, flagged.of));
    add("Flagged", flagged.unwrap_or_default());
    if summary.rows_read < summary.rows {
        add("Sampled", format!("times, scans and counts of rows are of {} rows", thousands(summary.rows_read)));
    }
    Section { rows, ..Section::default() }
}

/// Number and names, abbreviated if they are too long for the line.
fn antenna_names(antennas: &[Antenna]) -> String {
    let mut text = String::new();
    for (number, antenna) in antennas.iter().enumerate() {
        let name = label(&antenna.name, number);
        if text.len() + name.len() > ANTENNA_NAMES - 30 * usize::from(number + 1 < antennas.len()) {
            text.push_str(&format!(" ... {} more; --table ANTENNA", antennas.len() - number));
            break;
        }
        text.push(' ');
        text.push_str(&name);
    }
    if antennas.is_empty() { text } else { format!("{}:{text}", antennas.len()) }
}

fn fields(summary: &Summary) -> Section {
    let row = |field: &FieldSummary| {
        let [longitude, latitude] =
            field.direction.map_or([String::new(), String::new()], |at| direction(at, &field.frame));
        let rows = thousands(field.rows);
        vec![
            field.id.to_string(),
            label(&field.name, field.id),
            field.code.clone(),
            longitude,
            latitude,
            field.frame.clone(),
            rows,
        ]
    };
    Section {
        title: format!("Fields ({})", summary.fields.len()),
        heads: vec![">ID", "Name", "Code", ">RA", ">Dec", "Frame", ">Rows"],
        rows: summary.fields.iter().map(row).collect(),
        all: Some("--table FIELD lists all".to_owned()),
        ..Section::default()
    }
}

fn windows(summary: &Summary) -> Section {
    let row = |window: &WindowSummary| {
        vec![
            window.id.to_string(),
            window.name.clone(),
            thousands(window.channels),
            megahertz(window.first),
            megahertz(window.last),
            kilohertz(window.width),
            megahertz(window.bandwidth),
            window.frame.clone(),
            window.correlations.join(" "),
            thousands(window.rows),
        ]
    };
    Section {
        title: format!("Spectral windows ({})", summary.spectral_windows.len()),
        heads: vec![
            ">ID",
            "Name",
            ">Chans",
            ">First MHz",
            ">Last MHz",
            ">Width kHz",
            ">Total MHz",
            "Frame",
            "Corrs",
            ">Rows",
        ],
        rows: summary.spectral_windows.iter().map(row).collect(),
        all: Some("--table SPECTRAL_WINDOW lists all".to_owned()),
        ..Section::default()
    }
}

fn antennas(summary: &Summary) -> Section {
    let row = |(number, antenna): (usize, &Antenna)| {
        let position =
            antenna.position.map_or([const { String::new() }; 3], |at| at.map(|metres| format!("{metres:.3}")));
        let diameter = antenna.diameter.map_or_else(String::new, |metres| format!("{metres:.1}"));
        [number.to_string(), label(&antenna.name, number), antenna.station.clone(), diameter]
            .into_iter()
            .chain(position)
            .collect()
    };
    Section {
        title: format!("Antennas ({})", summary.antennas.len()),
        heads: vec![">ID", "Name", "Station", ">Dish m", ">X m", ">Y m", ">Z m"],
        rows: summary.antennas.iter().enumerate().map(row).collect(),
        ..Section::default()
    }
}

fn scans(summary: &Summary) -> Section {
    let list = |numbers: &BTreeSet<i64>, separator: &str, each: &dyn Fn(&i64) -> String| {
        let more = (numbers.len() > 4).then(|| "…".to_owned());
        numbers.iter().take(4).map(each).chain(more).collect::<Vec<_>>().join(separator)
    };
    let field = |id: &i64| {
        let field = usize::try_from(*id).ok().and_then(|id| summary.fields.get(id));
        field.map_or_else(|| id.to_string(), |field| format!("{id} {}", field.name).trim_end().to_owned())
    };
    let row = |scan: &ScanSummary| {
        let [first, last] = scan.time_range.map_or([String::new(), String::new()], |range| range.map(date));
        let last = match (first.split_once(' '), last.split_once(' ')) {
            (Some((day, _)), Some((of_last, time))) if day == of_last => time.to_owned(),
            _ => last,
        };
        let intents = scan.intents.iter().map(|intent| intent.strip_suffix("#UNSPECIFIED").unwrap_or(intent));
        let intents: Vec<&str> = intents.collect();
        vec![
            scan.number.to_string(),
            first,
            last,
            scan.interval.map_or_else(String::new, duration),
            thousands(scan.rows),
            list(&scan.fields, ", ", &field),
            list(&scan.spectral_windows, ",", &i64::to_string),
            intents.join(" "),
        ]
    };
    Section {
        title: format!("Scans ({})", thousands(summary.scans.len() as u64)),
        heads: vec![">Scan", "First time (UTC)", "Last time", ">Interval", ">Rows", "Fields", "Windows", "Intents"],
        rows: summary.scans.iter().map(row).collect(),
        all: Some("--table MAIN lists all".to_owned()),
        ..Section::default()
    }
}
