//! Names that casacore's measures have in the schema, which are those of astropy.

use ctds::value::Record;

/// Seconds from the beginning of MJD to 1970-01-01.
pub(crate) const UNIX_EPOCH: f64 = 3_506_716_800.0;

/// Names of correlations by casacore's Stokes number, from 1 on.
const STOKES: [&str; 32] = [
    "I",
    "Q",
    "U",
    "V",
    "RR",
    "RL",
    "LR",
    "LL",
    "XX",
    "XY",
    "YX",
    "YY",
    "RX",
    "RY",
    "LX",
    "LY",
    "XR",
    "XL",
    "YR",
    "YL",
    "PP",
    "PQ",
    "QP",
    "QQ",
    "RCircular",
    "LCircular",
    "Linear",
    "Ptotal",
    "Plinear",
    "PFtotal",
    "PFlinear",
    "Pangle",
];

/// Frames of frequencies by casacore's number.
const OBSERVERS: [&str; 9] = ["REST", "lsrk", "lsrd", "BARY", "gcrs", "TOPO", "GALACTO", "LGROUP", "CMB"];

/// Name of the correlation with this Stokes number; the number itself if it has none.
pub(crate) fn correlation(code: i64) -> String {
    let name = usize::try_from(code - 1).ok().and_then(|code| STOKES.get(code));
    name.map_or_else(|| code.to_string(), ToString::to_string)
}

/// Frame of frequencies of MEAS_FREQ_REF; that of the telescope if it is undefined.
pub(crate) fn observer(code: i64) -> &'static str {
    usize::try_from(code).ok().and_then(|code| OBSERVERS.get(code)).copied().unwrap_or("TOPO")
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

/// Time scale of a casacore reference; `utc` if there is none.
pub(crate) fn scale(measure: Option<&Record>) -> String {
    let reference = measure.and_then(|measure| measure.string("Ref")).map(|text| text.to_string().to_lowercase());
    match reference.as_deref() {
        Some("iat") => "tai".to_owned(),
        Some("tdt" | "et") => "tt".to_owned(),
        Some(known @ ("tai" | "tt" | "tdb" | "tcb" | "tcg" | "ut1")) => known.to_owned(),
        _ => "utc".to_owned(),
    }
}

/// Frame of frequencies of a casacore reference, such as `LSRK`.
pub(crate) fn observer_named(reference: &str) -> &'static str {
    const NAMES: [&str; 9] = ["REST", "LSRK", "LSRD", "BARY", "GEO", "TOPO", "GALACTO", "LGROUP", "CMB"];
    observer(NAMES.iter().position(|name| *name == reference).map_or(-1, |code| code as i64))
}
