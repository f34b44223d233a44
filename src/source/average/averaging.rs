//! The request to average visibilities in time and channels: `time=10s,chan=4`.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::suggest::similar;
use crate::value::Shape;

/// How the visibilities of a MeasurementSet are averaged: over how many seconds, over how many
/// channels.
///
/// The rows of a baseline become one where their times are in the same bin and their other numbers
/// (DATA_DESC_ID, FIELD_ID, SCAN_NUMBER, STATE_ID …) are equal. Samples count by their weights,
/// flagged ones not at all.
///
/// ```
/// use ctds_hdf5::convert::Averaging;
///
/// let averaging: Averaging = "time=10s,chan=4".parse()?;
/// assert_eq!(averaging, Averaging::new().time(10.0).channels(4));
/// assert_eq!(averaging.to_string(), "time=10s,chan=4");
/// assert!("time=-1s".parse::<Averaging>().is_err());
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Averaging {
    pub(super) seconds: Option<f64>,
    pub(super) channels: Option<u64>,
}

/// Lengths in seconds.
const UNITS: [(&str, f64); 5] = [("ms", 1e-3), ("min", 60.0), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

impl Averaging {
    /// Makes a request without any averaging, until [`time`](Self::time) or
    /// [`channels`](Self::channels) is set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the length of a time bin to `seconds`, a positive number. The rows of each baseline in
    /// a bin become one row.
    pub fn time(mut self, seconds: f64) -> Self {
        self.seconds = Some(seconds);
        self
    }

    /// Sets how many neighbouring channels become one: 2 or more. The last averaged channel of a
    /// spectral window is the mean of fewer channels if their number is not a multiple of `count`.
    pub fn channels(mut self, count: u64) -> Self {
        self.channels = Some(count);
        self
    }

    /// Length of a time bin of rows in seconds; `None` if rows are not averaged in time.
    pub fn seconds(&self) -> Option<f64> {
        self.seconds
    }

    /// The number of neighbouring channels that become one: 1 if channels are not averaged.
    pub fn channel_factor(&self) -> u64 {
        self.channels.unwrap_or(1)
    }

    /// A positive number of seconds, 2 or more channels, or both.
    pub(super) fn check(&self) -> Result<()> {
        if self.seconds.is_some_and(|seconds| !(seconds.is_finite() && seconds > 0.0)) {
            return Err(Error::usage(format!("averaging {self}: the time must be a positive number of seconds")));
        }
        if self.channels.is_some_and(|channels| channels < 2) {
            return Err(Error::usage(format!("averaging {self}: the number of channels must be 2 or more")));
        }
        if self.seconds.is_none() && self.channels.is_none() {
            return Err(Error::usage("averaging needs time=SECONDS, chan=COUNT or both"));
        }
        Ok(())
    }
}

/// The last axis divided by `factor` and rounded up.
pub(super) fn fewer_channels(shape: &Shape, factor: u64) -> Shape {
    match shape.split_last() {
        Some((others, channels)) => others.with_axis(channels.div_ceil(factor)),
        None => shape.clone(),
    }
}

impl FromStr for Averaging {
    type Err = Error;

    /// `time=10s`, `chan=4` or both, separated by a comma. Units of time are ms, s, min (or m) and
    /// h; a number without a unit is in seconds.
    ///
    /// # Errors
    /// `Usage` if the text is not such a list.
    fn from_str(text: &str) -> Result<Self> {
        let mut averaging = Averaging::new();
        for part in text.split(',').map(str::trim) {
            let expected =
                || Error::usage(format!("{part:?} in {text:?}: expected time=10s or chan=4, units ms, s, min, h"));
            let (name, value) = part.split_once('=').ok_or_else(expected)?;
            let value = value.trim();
            match name.trim() {
                "time" if averaging.seconds.is_none() => averaging.seconds = Some(seconds(value).ok_or_else(expected)?),
                "chan" if averaging.channels.is_none() => {
                    averaging.channels = Some(value.parse().map_err(|_| expected())?);
                }
                "time" | "chan" => return Err(Error::usage(format!("{} is given twice in {text:?}", name.trim()))),
                name => match similar(name, ["time", "chan"]) {
                    Some(meant) => {
                        return Err(Error::usage(format!(
                            "{name} in {text:?} is not an average; did you mean {meant}?"
                        )));
                    }
                    None => return Err(expected()),
                },
            }
        }
        averaging.check()?;
        Ok(averaging)
    }
}

/// `1.5min` or `10` (seconds).
fn seconds(text: &str) -> Option<f64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim() {
        "" => 1.0,
        unit => UNITS.iter().find(|(name, _)| *name == unit)?.1,
    };
    Some(number.trim().parse::<f64>().ok()? * factor)
}

impl fmt::Display for Averaging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.seconds, self.channels) {
            (Some(seconds), Some(channels)) => write!(f, "time={seconds}s,chan={channels}"),
            (Some(seconds), None) => write!(f, "time={seconds}s"),
            (None, Some(channels)) => write!(f, "chan={channels}"),
            (None, None) => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written() {
        let read = |text: &str| text.parse::<Averaging>().map(|averaging| averaging.to_string()).ok();
        let cases = [
            ("time=10s", Some("time=10s")),
            ("chan=4, time=1.5min", Some("time=90s,chan=4")),
            ("time=500ms", Some("time=0.5s")),
            ("time=2m", Some("time=120s")),
            ("time=1e2", Some("time=100s")),
            ("time=1h", Some("time=3600s")),
            ("", None),
            ("time", None),
            ("time=0s", None),
            ("time=-2s", None),
            ("time=nan", None),
            ("time=3d", None),
            ("chan=1", None),
            ("chan=2.5", None),
            ("chan=2,chan=3", None),
            ("freq=2", None),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
    }
}
