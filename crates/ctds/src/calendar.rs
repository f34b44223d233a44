//! Dates of the Gregorian calendar, which is extended to all years, and days since 1970-01-01.
//!
//! The calculations begin years in March, so that the leap day is the last of its year.

use std::fmt;

/// Modified Julian day number of 1970-01-01.
pub const UNIX_MJD: i64 = 40_587;

/// Number of seconds of a day.
pub const DAY: i64 = 86_400;

/// Number of days of 400 years.
const ERA: i64 = 146_097;

/// Number of days from 0000-03-01 to 1970-01-01.
const UNIX_ZERO: i64 = 719_468;

/// A second in UTC, displayed as `2026-11-20T17:30:00`. Months and days count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
}

impl Moment {
    /// The second that begins `seconds` after 1970-01-01T00:00:00.
    pub fn of_unix(seconds: i64) -> Self {
        let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let (year, month, day) = date(days);
        Moment { year, month, day, hour: second / 3600, minute: second / 60 % 60, second: second % 60 }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Moment { year, month, day, hour, minute, second } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
    }
}

/// Year, month and day of the month of the day that is `days` after 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + UNIX_ZERO;
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day - (153 * march + 2) / 5 + 1)
}

/// Number of days from 1970-01-01 to a date.
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + (153 * march + 2) / 5 + day - 1 - UNIX_ZERO
}

/// Number of days of a month.
pub fn days_of_month(year: i64, month: i64) -> i64 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days(next_year, next, 1) - days(year, month, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_other_programs() {
        // date -u -d @SECONDS +%FT%T
        for (seconds, text) in [
            (-3_506_716_800, "1858-11-17T00:00:00"),
            (-1, "1969-12-31T23:59:59"),
            (0, "1970-01-01T00:00:00"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_600_000_000, "2020-09-13T12:26:40"),
            (1_709_251_199, "2024-02-29T23:59:59"),
            (4_107_542_399, "2100-02-28T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(Moment::of_unix(seconds).to_string(), text);
        }
    }

    #[test]
    fn days_are_the_inverse_of_dates() {
        for day in (-800_000..800_000).step_by(97).chain([-40587, -1, 0, 59, 11016, 11017, 47540]) {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), day);
            assert!((1..=days_of_month(year, month)).contains(&of_month));
        }
        assert_eq!(days(1858, 11, 17), -UNIX_MJD);
    }

    #[test]
    fn leap_years_have_a_leap_day() {
        let february = |year| days_of_month(year, 2);
        assert_eq!([1900, 2000, 2023, 2024, 2100].map(february), [28, 29, 28, 29, 28]);
        assert_eq!([1, 4, 11, 12].map(|month| days_of_month(2026, month)), [31, 30, 30, 31]);
    }
}
