//! Names that casacore's measures have in the schema, which are those of astropy.

use ctds::calendar::{DAY, UNIX_MJD};
use ctds::measures::FREQUENCY_FRAMES;
use ctds::value::Record;

/// Seconds from the beginning of MJD to 1970-01-01.
pub(crate) const UNIX_EPOCH: f64 = (UNIX_MJD * DAY) as f64;

/// Frame of frequencies of MEAS_FREQ_REF; that of the telescope if it is undefined.
pub(crate) fn observer(code: i64) -> &'static str {
    let name = usize::try_from(code).ok().and_then(|code| FREQUENCY_FRAMES.get(code));
    name.map_or("TOPO", |name| observer_named(name))
}

/// Frame of frequencies of a casacore reference, such as `LSRK`.
pub(crate) fn observer_named(reference: &str) -> &'static str {
    match reference {
        "LSRK" => "lsrk",
        "LSRD" => "lsrd",
        "GEO" => "gcrs",
        other => FREQUENCY_FRAMES.into_iter().find(|name| *name == other).unwrap_or("TOPO"),
    }
}

/// Frame of directions of a casacore reference; the lower-case reference if astropy has none.
pub(crate) fn frame(reference: &str) -> String {
    match reference {
        "J2000" => "fk5".to_owned(),
        "B1950" => "fk4".to_owned(),
        "AZEL" | "AZELGEO" => "altaz".to_owned(),
        "ITRF" => "itrs".to_owned(),
        "APP" => "APP".to_owned(),
        other => other.to_lowercase(),
    }
}

/// Time scale of the references that the schema has names for; without a reference, `utc`.
pub(crate) fn scale(measure: Option<&Record>) -> Option<&'static str> {
    let reference = measure.and_then(|measure| measure.string("Ref")).map(|text| text.to_string().to_uppercase());
    Some(match reference.as_deref() {
        None | Some("" | "UTC") => "utc",
        Some("TAI" | "IAT") => "tai",
        Some("TT" | "TDT" | "ET") => "tt",
        Some("UT1" | "UT") => "ut1",
        Some("TDB") => "tdb",
        Some("TCB") => "tcb",
        Some("TCG") => "tcg",
        Some(_) => return None,
    })
}
