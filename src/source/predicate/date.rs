//! Converts dates in conditions on rows to modified Julian dates.

use crate::calendar::{self, UNIX_MJD, days, days_of_month};

pub(super) const DAY: f64 = calendar::DAY as f64;

/// Modified Julian date in seconds: `2014-04-22`, `2014-04-22T10:30`, `2014-04-22T10:30:00.5`; also
/// `2014/04/22/10:30:00`, as CASA writes it, or with a space before the time.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches('Z');
    let separator = if text.contains('/') { '/' } else { '-' };
    let mut parts = text.splitn(3, separator);
    let (year, month, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let (day, time) = match rest.split_once(['T', 't', ' ', '/']) {
        Some((day, time)) => (day, Some(time)),
        None => (rest, None),
    };
    let (year, month, day): (i64, i64, i64) = (number(year)?, number(month)?, number(day)?);
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=days_of_month(year, month)).contains(&day) {
        return None;
    }
    let time = time.map_or(Some(0.0), time_of_day)?;
    Some((UNIX_MJD + days(year, month, day)) as f64 * DAY + time)
}

/// Digits only, without signs or spaces.
fn number(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// Seconds since midnight: `10:30` or `10:30:00.5`.
fn time_of_day(text: &str) -> Option<f64> {
    let mut parts = text.split(':');
    let (hours, minutes) = (number(parts.next()?)?, number(parts.next()?)?);
    let seconds: f64 = match parts.next() {
        None => 0.0,
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => text.parse().ok()?,
        Some(_) => return None,
    };
    // 60: a leap second
    let is_time = hours < 24 && minutes < 60 && seconds < 61.0 && parts.next().is_none();
    is_time.then_some((hours * 60 + minutes) as f64 * 60.0 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_casacore() {
        // casacore.quanta: quantity('2014-04-22T10:30:00.5').get_value('s')
        let known = [
            ("1858-11-17", 0.0),
            ("2000-01-01T12:00", 51_544.5 * DAY),
            ("2014-04-22T10:30:00.5", 56_769.0 * DAY + 37_800.5),
            ("2014/04/22/10:30:00.5", 56_769.0 * DAY + 37_800.5),
            ("2014-04-22 10:30:00.5", 56_769.0 * DAY + 37_800.5),
            ("2024-02-29", 60_369.0 * DAY),
            ("2024-03-01Z", 60_370.0 * DAY),
            ("1900-03-01", 15_079.0 * DAY),
        ];
        for (text, expected) in known {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in
            ["", "2014", "2014-04", "2014-13-01", "2014-02-29", "2014-04-22T25:00", "2014-04-22T10", "3C286", "a-b-c"]
        {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
