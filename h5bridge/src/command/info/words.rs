//! Values of tables as text for readers of `h5bridge info`: times, angles, sizes, parameters.

use ctds_hdf5::ManagerInfo;
use ctds_hdf5::documents::keyword_value;
use ms_look::utc_of_mjd;
use serde_json::Value as Json;

pub(super) fn parameters<'a>(manager: &'a ManagerInfo<'_>) -> impl Iterator<Item = (String, Json)> + 'a {
    manager.parameters.fields.iter().map(|field| (field.name.to_string(), keyword_value(&field.value)))
}

/// UTC of seconds of MJD: `2010-11-22 03:12:35.0`.
pub(super) fn date(seconds: f64) -> String {
    utc_of_mjd(seconds).trim_end_matches('Z').replacen('T', " ", 1)
}

/// `2010-11-22 03:12:35.0 to 03:27:10.5 UTC (14 min 36 s)`.
pub(super) fn period(range: [f64; 2]) -> String {
    let [first, last] = range.map(date);
    let day = |date: &str| date.split(' ').next().map(str::to_owned);
    let last = match last.split_once(' ') {
        Some((_, time)) if day(&first) == day(&last) => time,
        _ => &last,
    };
    format!("{first} to {last} UTC ({})", duration(range[1] - range[0]))
}

/// `14 min 36 s`, `2.5 s`, `12.5 ms`.
pub(super) fn duration(seconds: f64) -> String {
    if seconds > 0. && seconds < 0.1 {
        return format!("{} ms", (seconds * 1e6).round() / 1e3);
    }
    if !seconds.is_finite() || seconds.abs() >= 1e11 || seconds < 60. {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as i64;
    let (days, hours, minutes, rest) = (whole / 86400, whole / 3600 % 24, whole / 60 % 60, whole % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes} min {rest} s"),
        (0, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// Frames whose longitude is shown in hours.
const EQUATORIAL: [&str; 11] =
    ["", "J2000", "JMEAN", "JTRUE", "APP", "B1950", "B1950_VLA", "BMEAN", "BTRUE", "ICRS", "JNAT"];

/// From radians: hours and degrees in equatorial frames, else degrees.
pub(super) fn direction(direction: [f64; 2], frame: &str) -> [String; 2] {
    let [longitude, latitude] = direction;
    if !EQUATORIAL.contains(&frame) {
        return [longitude, latitude].map(|angle| format!("{:.5} deg", angle.to_degrees()));
    }
    let longitude = if longitude < 0. { longitude + std::f64::consts::TAU } else { longitude };
    [sexagesimal(longitude.to_degrees() / 15., 10_000.), signed(latitude.to_degrees())]
}

/// `+30:30:32.959`.
fn signed(degrees: f64) -> String {
    let sign = if degrees.is_sign_negative() { '-' } else { '+' };
    format!("{sign}{}", sexagesimal(degrees.abs(), 1000.))
}

/// `13:31:08.2879`. Seconds are rounded to 1/`parts`; 10000 gives four decimals.
fn sexagesimal(number: f64, parts: f64) -> String {
    if number.is_nan() || number >= 1e6 {
        return format!("{number}");
    }
    let digits = parts.log10() as usize;
    let whole = (number * 3600. * parts).round() as u64;
    let parts = parts as u64;
    let (seconds, fraction) = (whole / parts, whole % parts);
    format!("{:02}:{:02}:{:02}.{fraction:0digits$}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Empty for `None`.
pub(super) fn megahertz(hertz: Option<f64>) -> String {
    hertz.map_or_else(String::new, |hertz| format!("{:.3}", hertz / 1e6))
}

/// Empty for `None`.
pub(super) fn kilohertz(hertz: Option<f64>) -> String {
    hertz.map_or_else(String::new, |hertz| format!("{:.3}", hertz / 1e3))
}

/// Commas between thousands.
pub(super) fn thousands(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// `1 row`, `2,100 rows`.
pub(super) fn count(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", thousands(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_are_sexagesimal() {
        let of = |hours: f64, degrees: f64, frame| direction([(hours * 15.).to_radians(), degrees.to_radians()], frame);
        assert_eq!(of(13.518968, -30.5091, "J2000"), ["13:31:08.2848", "-30:30:32.760"]);
        assert_eq!(of(23.9999999999, -0.0000001, "ICRS"), ["24:00:00.0000", "-00:00:00.000"]);
        assert_eq!(of(-1., 0., ""), ["23:00:00.0000", "+00:00:00.000"]);
        assert_eq!(of(6., 45., "AZEL"), ["90.00000 deg", "45.00000 deg"]);
        assert_eq!(direction([f64::NAN, f64::INFINITY], "J2000"), ["NaN", "+inf"]);
    }

    #[test]
    fn times_have_a_length() {
        let start = 55522. * 86400.;
        assert_eq!(period([start, start + 12.5]), "2010-11-22 00:00:00.0 to 00:00:12.5 UTC (12.5 s)");
        assert_eq!(period([start, start + 90_000.]), "2010-11-22 00:00:00.0 to 2010-11-23 01:00:00.0 UTC (1 d 1 h)");
        assert_eq!(duration(3725.), "1 h 2 min");
        assert_eq!(duration(f64::NAN), "NaN s");
        assert_eq!(duration(0.0125), "12.5 ms");
        assert_eq!(duration(0.1), "0.1 s");
        assert_eq!(duration(0.), "0.0 s");
    }
}
