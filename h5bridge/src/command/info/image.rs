//! Description of a casacore image in `h5bridge info`: axes, unit, object and beam, from the
//! keywords of the table.

use ctds_hdf5::convert::SourceTable;
use ctds_hdf5::value::{Record, Value, Values};

use super::screen::Section;
use super::words::date;

pub(super) fn sections(main: &SourceTable) -> Vec<Section> {
    let Ok(keywords) = main.keywords() else { return Vec::new() };
    let text =
        |record: Option<&Record>, name: &str| record.and_then(|record| record.string(name)).map(ToString::to_string);
    let (coords, info) = (keywords.record("coords"), keywords.record("imageinfo"));
    let mut rows = Vec::new();
    let mut add = |name: &str, text: Option<String>| {
        rows.extend(text.filter(|text| !text.is_empty()).map(|text| vec![name.to_owned(), text]));
    };
    add("Object", text(info, "objectname"));
    add("Kind", text(info, "imagetype"));
    add("Unit", text(Some(keywords), "units"));
    add("Beam", info.and_then(|info| beam(info.record("restoringbeam")?)));
    add("Telescope", text(coords, "telescope"));
    add("Observer", text(coords, "observer"));
    add("Observed", coords.and_then(|coords| observed(coords.record("obsdate")?)));
    let mut sections = vec![Section { rows, ..Section::default() }];
    let axes = coords.map(axes).unwrap_or_default();
    if !axes.is_empty() {
        sections.push(Section {
            title: format!("Axes ({}), fastest first", axes.len()),
            heads: vec!["Name", ">Reference value", ">Increment", "Unit"],
            rows: axes,
            all: Some("--keywords lists all".to_owned()),
            ..Section::default()
        });
    }
    sections
}

/// Axes and position angle with units; `None` if one of them is missing.
fn beam(beam: &Record) -> Option<String> {
    let quantity = |name: &str| {
        let quantity = beam.record(name)?;
        Some(format!("{:.3} {}", number(quantity.get("value")?)?, quantity.string("unit")?))
    };
    Some(format!("{} x {}, {}", quantity("major")?, quantity("minor")?, quantity("positionangle")?))
}

/// Date with time reference, from a measure of MJD in days; `None` for another form.
fn observed(measure: &Record) -> Option<String> {
    let days = number(measure.record("m0")?.get("value")?)?;
    Some(format!("{} {}", date(days * 86400.), measure.string("refer")?))
}

fn number(value: &Value) -> Option<f64> {
    numbers(value)?.first().copied()
}

fn numbers(value: &Value) -> Option<Vec<f64>> {
    match value {
        Value::Scalar(Values::Double(values)) | Value::Array(_, Values::Double(values)) => Some(values.clone()),
        _ => None,
    }
}

/// Name, reference value, increment, unit of each pixel axis, fastest first.
fn axes(coords: &Record) -> Vec<Vec<String>> {
    let mut found: Vec<(i64, Vec<String>)> = Vec::new();
    for field in &coords.fields {
        let name = field.name.to_string();
        let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let (Value::Record(coordinate), false) = (&field.value, kind == name) else { continue };
        let map = match coords.get(format!("pixelmap{}", &name[kind.len()..])) {
            Some(Value::Array(_, Values::Int(map))) => map.clone(),
            _ => continue,
        };
        let lines = coordinate_axes(kind, coordinate);
        found.extend(
            map.into_iter().zip(lines).filter(|(axis, _)| *axis >= 0).map(|(axis, line)| (i64::from(axis), line)),
        );
    }
    found.sort_by_key(|(axis, _)| *axis);
    found.into_iter().map(|(_, line)| line).collect()
}

/// Axes of a coordinate of the type `kind`, such as `direction`, `spectral` or `stokes`.
fn coordinate_axes(kind: &str, coordinate: &Record) -> Vec<Vec<String>> {
    let name = coordinate.string("name").map_or_else(|| kind.to_owned(), ToString::to_string);
    match kind {
        "stokes" => {
            let names: Vec<String> =
                coordinate.strings("stokes").unwrap_or_default().iter().map(ToString::to_string).collect();
            vec![vec!["Stokes".to_owned(), names.join(" "), String::new(), String::new()]]
        }
        "spectral" => {
            let wcs = coordinate.record("wcs").unwrap_or(coordinate);
            let text =
                |name: &str| wcs.get(name).and_then(number).map_or_else(String::new, |number| number.to_string());
            let unit = coordinate.string("unit").map_or_else(String::new, ToString::to_string);
            vec![vec![name, text("crval"), text("cdelt"), unit]]
        }
        _ => {
            let names = coordinate.strings("axes").unwrap_or_default();
            let units = coordinate.strings("units").unwrap_or_default();
            let (values, steps) =
                (coordinate.get("crval").and_then(numbers), coordinate.get("cdelt").and_then(numbers));
            let at = |list: &Option<Vec<f64>>, axis: usize| {
                list.as_ref().and_then(|list| list.get(axis)).map_or_else(String::new, ToString::to_string)
            };
            let line = |(axis, name): (usize, &ctds_hdf5::value::BString)| {
                let unit = units.get(axis).map_or_else(String::new, ToString::to_string);
                vec![name.to_string(), at(&values, axis), at(&steps, axis), unit]
            };
            names.iter().enumerate().map(line).collect()
        }
    }
}
