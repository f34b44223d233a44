//! Converts casacore's times (seconds of MJD) to dates in UTC, and dates to times.

use std::time::{SystemTime, UNIX_EPOCH};

use ctds::calendar::{DAY, Moment, UNIX_MJD, days};
use ctds::error::{Error, Result};

/// 1970-01-01.
pub(crate) const UNIX_ZERO: f64 = (UNIX_MJD * DAY) as f64;

/// Formats a casacore time, in seconds of MJD, as a date in UTC: `2026-11-20T17:30:00.0Z`.
pub fn utc_of_mjd(seconds: f64) -> String {
    calendar(seconds - UNIX_ZERO)
}

/// Formats a time of the system as a date in UTC: `2026-11-20T17:30:00.0Z`.
pub fn utc(time: SystemTime) -> String {
    calendar(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64())
}

/// Precise to 0.1 s; times beyond about 3,000 years before or 30,000 after 1970 are in seconds.
fn calendar(unix: f64) -> String {
    if !(-1e11..1e12).contains(&unix) {
        return format!("{unix} s");
    }
    let tenths = (unix * 10.).round() as i64;
    format!("{}.{}Z", Moment::of_unix(tenths.div_euclid(10)), tenths.rem_euclid(10))
}

/// Seconds of MJD of a number of seconds, or of a date in UTC, `2026-11-20` or
/// `2026-11-20T17:30:00.5Z`. `Usage` if `text` is neither.
pub(crate) fn mjd_of(text: &str) -> Result<f64> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Some(seconds).filter(|seconds| seconds.is_finite()).ok_or_else(|| wrong(text));
    }
    let (date, time) = match text.trim_end_matches('Z').split_once(['T', ' ']) {
        Some((date, time)) => (date, time),
        None => (text, "0:0"),
    };
    let parts = |text: &str, separator: char| -> Option<Vec<f64>> {
        text.split(separator).map(|part| part.parse::<f64>().ok().filter(|part| (0. ..1e4).contains(part))).collect()
    };
    let read = || -> Option<f64> {
        let [year, month, day] = parts(date, '-')?.try_into().ok()?;
        let clock = parts(time, ':')?;
        let [hour, minute, second] = [clock.first()?, clock.get(1)?, clock.get(2).unwrap_or(&0.)];
        let whole = [year, month, day, *hour, *minute].iter().all(|part| part.fract() == 0.);
        let sensible = (1. ..=12.).contains(&month) && (1. ..=31.).contains(&day) && clock.len() <= 3;
        let in_day = *hour <= 24. && *minute < 60. && *second < 61.;
        let day = days(year as i64, month as i64, day as i64) as f64;
        (whole && sensible && in_day).then_some(UNIX_ZERO + day * 86400. + hour * 3600. + minute * 60. + second)
    };
    read().ok_or_else(|| wrong(text))
}

fn wrong(text: &str) -> Error {
    Error::usage(format!("{text:?} is not a time: seconds of MJD, or UTC as 2026-11-20T17:30:00"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_the_gregorian_calendar() {
        assert_eq!(utc_of_mjd(40587. * 86400.), "1970-01-01T00:00:00.0Z");
        // IERS: MJD 51544.5 is J2000; 2000, 2100 and 2024 differ as leap years
        assert_eq!(utc_of_mjd(51544.5 * 86400.), "2000-01-01T12:00:00.0Z");
        assert_eq!(utc_of_mjd(60369. * 86400.), "2024-02-29T00:00:00.0Z");
        assert_eq!(utc_of_mjd(51603. * 86400. + 86399.96), "2000-03-01T00:00:00.0Z");
        assert_eq!(utc_of_mjd(0.), "1858-11-17T00:00:00.0Z");
        assert_eq!(utc_of_mjd(f64::INFINITY), "inf s");
    }

    #[test]
    fn dates_are_read_as_they_are_written() {
        for seconds in [0., 51544.5 * 86400., 60369. * 86400. + 3661.5] {
            assert_eq!(mjd_of(&utc_of_mjd(seconds)).unwrap(), seconds);
        }
        assert_eq!(mjd_of("1858-11-17").unwrap(), 0.);
        assert_eq!(mjd_of("4.5e9").unwrap(), 4.5e9);
        for text in
            ["", "noon", "2026-13-01", "2026-1", "2026-01-01T25:00", "2026-01-01T10", "inf", "1-1-1-1", "-1-1-1"]
        {
            assert!(mjd_of(text).is_err(), "{text}");
        }
    }
}
