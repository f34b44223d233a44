//! The documents `observation_info` and `processor_info`.

use ctds::Result;
use ctds::calendar::Moment;

use crate::dataset::{Attribute, attributes};
use crate::measures::UNIX_EPOCH;
use crate::tables::{Subtable, Tables};

/// ASDM tables that importasdm keeps, their columns, and what these become.
const ASDM: [(&str, &str, &str); 4] = [
    ("ASDM_EXECBLOCK", "execBlockUID", "execution_block_UID"),
    ("ASDM_EXECBLOCK", "sessionReference", "session_reference_UID"),
    ("ASDM_EXECBLOCK", "observingLog", "observing_log"),
    ("ASDM_SBSUMMARY", "sbSummaryUID", "scheduling_block_UID"),
];

/// The seconds of a time of MJD as ISO 8601; empty if it is absurd.
pub(crate) fn iso(seconds: f64) -> String {
    let unix = seconds - UNIX_EPOCH;
    // years 0000 to 9999
    if !(-62_167_219_200.0..253_402_300_800.0).contains(&unix) {
        return String::new();
    }
    let milliseconds = (unix * 1000.0).floor() as i64;
    format!("{}.{:03}", Moment::of_unix(milliseconds.div_euclid(1000)), milliseconds.rem_euclid(1000))
}

/// TELESCOPE_NAME; empty if it has none.
pub(crate) fn telescope(tables: &dyn Tables, observation: i64) -> Result<String> {
    text_of(tables, "OBSERVATION", "TELESCOPE_NAME", observation)
}

fn text_of(tables: &dyn Tables, table: &str, column: &str, row: i64) -> Result<String> {
    let texts = Subtable::open(tables, table).map_or(Ok(None), |table| table.texts(column))?.unwrap_or_default();
    Ok(usize::try_from(row).ok().and_then(|row| texts.get(row)).cloned().unwrap_or_default())
}

pub(crate) fn observation(tables: &dyn Tables, row: i64) -> Result<Attribute> {
    let table = Subtable::open(tables, "OBSERVATION");
    let place = u64::try_from(row).ok().filter(|row| table.is_some_and(|table| *row < table.rows));
    let list = |column| -> Result<Vec<String>> {
        match (table, place) {
            (Some(table), Some(row)) => Ok(table.cell_texts(column, row)?.unwrap_or_default()),
            _ => Ok(Vec::new()),
        }
    };
    let released = table.map_or(Ok(None), |table| table.doubles("RELEASE_DATE"))?.unwrap_or_default();
    let released = usize::try_from(row).ok().and_then(|row| released.get(row)).map_or(String::new(), |time| iso(*time));
    let mut found = attributes([
        ("observer", vec![text_of(tables, "OBSERVATION", "OBSERVER", row)?].into()),
        ("release_date", released.into()),
        ("project_UID", text_of(tables, "OBSERVATION", "PROJECT", row)?.into()),
    ]);
    let log = list("LOG")?;
    if !log.is_empty() {
        found.push(("observing_log".to_owned(), log.join("\n").into()));
    }
    for (name, column, key) in ASDM {
        // tables that only importasdm writes: what cannot be read of them is left out
        let Some(text) = Subtable::open(tables, name).and_then(|table| first_text(&table, column)) else { continue };
        set(&mut found, key, entity(&text).to_owned());
    }
    for part in list("SCHEDULE")? {
        let part = part.trim_matches(['[', ']', ' ']);
        for (prefix, key) in [("SchedulingBlock ", "scheduling_block_UID"), ("ExecBlock ", "execution_block_UID")] {
            if let Some(uid) = part.strip_prefix(prefix)
                && !found.iter().any(|(name, _)| name == key)
            {
                set(&mut found, key, uid.trim().to_owned());
            }
        }
    }
    Ok(Attribute::Dictionary(found))
}

fn set(attributes: &mut Vec<(String, Attribute)>, key: &str, text: String) {
    attributes.retain(|(name, _)| name != key);
    attributes.push((key.to_owned(), text.into()));
}

fn first_text(table: &Subtable<'_>, column: &str) -> Option<String> {
    table.info(column)?;
    table.cell_texts(column, 0).ok().flatten().map(|texts| texts.join("\n")).filter(|text| !text.is_empty())
}

/// The `entityId` of an XML element `EntityRef`; the text itself if it is something else.
fn entity(text: &str) -> &str {
    let id = text.split_once("entityId=\"").and_then(|(_, rest)| rest.split_once('"'));
    id.map_or(text, |(id, _)| id)
}

pub(crate) fn processor(tables: &dyn Tables, row: i64) -> Result<Attribute> {
    let text = |column| text_of(tables, "PROCESSOR", column, row).map(Attribute::from);
    Ok(Attribute::Dictionary(attributes([("type", text("TYPE")?), ("sub_type", text("SUB_TYPE")?)])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        assert_eq!(iso(5_106_716_800.25), "2020-09-13T12:26:40.250");
        assert_eq!(iso(0.0), "1858-11-17T00:00:00.000");
        assert_eq!(iso(f64::NAN), "");
        assert_eq!(iso(1e300), "");
    }

    #[test]
    fn an_entity_is_its_id() {
        assert_eq!(entity("<EntityRef entityId=\"uid://A001/X1/X2\" partId=\"X0\"/>"), "uid://A001/X1/X2");
        assert_eq!(entity("plain"), "plain");
    }
}
