//! Marks of the axes of plots: round values, and their texts.

use ms_look::{Axis, utc_of_mjd};

/// Distances between the marks of a time axis, in seconds; longer ones are whole days.
const TIMES: [f64; 18] =
    [1., 2., 5., 10., 15., 30., 60., 120., 300., 600., 900., 1800., 3600., 7200., 10800., 21600., 43200., 86400.];

/// Steps in degrees of an axis of more than 40 degrees; longer ones are multiples of 360.
const DEGREES: [f64; 6] = [5., 10., 30., 45., 90., 180.];

/// Most marks on one axis.
const MOST: usize = 64;

/// Digits of the marks of a logarithmic axis, from many marks to few.
const LEADING: [&[f64]; 4] = [&[1., 2., 3., 4., 5., 6., 7., 8., 9.], &[1., 2., 5.], &[1., 3.], &[1.]];

/// Where a value lies between the two ends of an axis, from 0 to 1.
pub(super) fn fraction(axis: &Axis, value: f64, (low, high): (f64, f64)) -> f64 {
    match axis.scale == "log" && low > 0. {
        true => (value / low).ln() / (high / low).ln(),
        false => (value - low) / (high - low),
    }
}

/// About `count` powers of ten between `low` and `high`, above 0, and simple multiples of them.
fn decades(low: f64, high: f64, count: usize) -> Vec<(f64, String)> {
    let (from, to) = (low.log10(), high.log10());
    let decades = to - from;
    let leading = LEADING.into_iter().find(|digits| decades * digits.len() as f64 <= count as f64);
    let each = (decades / count.max(1) as f64).ceil().max(1.) as i32;
    let powers = (from.floor() as i32..=to.ceil() as i32).filter(|power| power.rem_euclid(each) == 0);
    let digits = leading.unwrap_or(&[1.]);
    let values = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
    let is_inside = |value: &f64| (low * (1. - 1e-9)..=high * (1. + 1e-9)).contains(value);
    let is_plain = low >= 1e-4 && high < 1e6;
    let text = |value: f64| if is_plain { format!("{}", value as f32) } else { format!("{:e}", value as f32) };
    values.filter(is_inside).take(MOST).map(|value| (value, text(value))).collect()
}

/// Unit, factor to it, and the range of numbers that it suits, in the unit of the axis.
type Unit = (&'static str, f64, f64, f64);

/// Units in which numbers are read more easily than in that of the axis.
const UNITS: [(&str, &[Unit]); 5] = [
    ("MHz", &[("GHz", 1e-3, 1e4, f64::INFINITY), ("kHz", 1e3, 0., 1.)]),
    ("m", &[("km", 1e-3, 1e4, f64::INFINITY)]),
    ("kλ", &[("Mλ", 1e-3, 1e4, f64::INFINITY), ("λ", 1e3, 0., 1.)]),
    ("Jy", JANSKY),
    ("Jy/beam", &[("mJy/beam", 1e3, 1e-3, 1.), ("µJy/beam", 1e6, 0., 1e-3)]),
];

const JANSKY: &[Unit] = &[("kJy", 1e-3, 1e4, f64::INFINITY), ("mJy", 1e3, 1e-3, 1.), ("µJy", 1e6, 0., 1e-3)];

/// The unit in which numbers between these ends are read easily, and the factor to it.
fn reading(axis: &Axis, (low, high): (f64, f64)) -> (&str, f64) {
    let most = low.abs().max(high.abs());
    let units = UNITS.into_iter().find(|(unit, _)| *unit == axis.unit).map_or(&[][..], |(_, units)| units);
    let found = units.iter().find(|(_, _, from, to)| most > 0. && (*from..*to).contains(&most));
    found.map_or((&axis.unit, 1.), |&(unit, factor, ..)| (unit, factor))
}

/// About `count` values between `low` and `high`, with their texts in the unit of [`label`].
pub(super) fn marks(axis: &Axis, low: f64, high: f64, count: usize) -> Vec<(f64, String)> {
    let (_, factor) = reading(axis, (low, high));
    let found = round_marks(axis, low * factor, high * factor, count);
    found.into_iter().map(|(value, text)| (value / factor, text)).collect()
}

/// Marks as by [`marks`], with the numbers as they are.
fn round_marks(axis: &Axis, low: f64, high: f64, count: usize) -> Vec<(f64, String)> {
    if axis.scale == "log" && low > 0. && high > 5. * low {
        return decades(low, high, count);
    }
    let span = high - low;
    if !span.is_finite() || span <= 0. {
        return Vec::new();
    }
    let rough = span / count.max(1) as f64;
    let size = 10f64.powf(rough.log10().floor());
    // rather some more marks than too few
    let step = [1., 2., 5., 10.].into_iter().map(|step| step * size).find(|&step| step >= 0.7 * rough).unwrap_or(rough);
    let step = match (axis.scale, &axis.names, axis.unit.as_str()) {
        ("time", ..) if rough > 0.5 => {
            TIMES.into_iter().find(|&step| step >= rough).unwrap_or((rough / 86400.).ceil() * 86400.)
        }
        (_, Some(_), _) => step.max(1.),
        (_, _, "deg") if span > 40. => {
            DEGREES.into_iter().find(|&step| step >= 0.7 * rough).unwrap_or((rough / 360.).ceil() * 360.)
        }
        _ => step,
    };
    let first = (low / step).ceil();
    let value = |number: usize| (first + number as f64) * step;
    let text = |value: f64| match (axis.scale, &axis.names) {
        ("time", _) => time_of(value, step),
        (_, Some(names)) => names.get(value as usize).map_or(String::new(), |name| shortened(name, 8)),
        _ => number_text(value, step),
    };
    let values = (0..MOST).map(value).take_while(|value| *value <= high + step * 1e-9);
    values.map(|value| (value, text(value))).collect()
}

/// The digits that distinguish the mark from its neighbours at a distance of `step`.
fn number_text(value: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).max(0.) as usize;
    match value.abs() {
        // not a zero with a sign
        size if size < step / 2. => format!("{:.*}", if digits > 5 { 0 } else { digits }, 0.),
        size if size >= 1e6 || digits > 5 => {
            format!("{value:.*e}", (size.log10().floor() - step.log10().floor()).clamp(0., 14.) as usize)
        }
        _ => format!("{value:.digits$}"),
    }
}

/// About three significant digits, such as `0.123` or `1.2e-3`.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        0. => "0".to_owned(),
        size if (0.01..1e4).contains(&size) => {
            format!("{value:.*}", (2. - size.log10().floor()).clamp(0., 4.) as usize)
        }
        _ => format!("{value:.1e}"),
    }
}

/// The day if `step`, in seconds between marks, is a day or more, else the time of day.
pub(super) fn time_of(mjd_seconds: f64, step: f64) -> String {
    let text = utc_of_mjd(mjd_seconds);
    match text.split_once('T') {
        Some((day, _)) if step >= 86400. => day.to_owned(),
        Some((_, time)) if step < 1. => time.trim_end_matches('Z').to_owned(),
        Some((_, time)) => time.chars().take(8).collect(),
        None => text,
    }
}

/// Label with the unit of the marks; that of a time also has the day on which it begins.
pub(super) fn label(axis: &Axis, ends: Option<(f64, f64)>) -> String {
    let unit = ends.map_or(axis.unit.as_str(), |ends| reading(axis, ends).0);
    let day = ends.filter(|_| axis.scale == "time").map(|(start, _)| utc_of_mjd(start));
    match (day.as_deref().and_then(|time| time.split_once('T')), unit) {
        (Some((day, _)), unit) => format!("{} ({unit}, {day})", axis.label),
        (None, "") => axis.label.clone(),
        (None, unit) => format!("{} ({unit})", axis.label),
    }
}

/// The first `len` characters, of which the last three are `...` if the text was longer.
pub(super) fn shortened(text: &str, len: usize) -> String {
    if text.chars().count() <= len {
        text.to_owned()
    } else {
        text.chars().take(len.saturating_sub(3)).collect::<String>() + "..."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        let texts = |unit, scale, low, high| {
            let axis = Axis::new("", unit, scale);
            marks(&axis, low, high, 5).into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(texts("", "linear", 0.03, 1.01), "0.2 0.4 0.6 0.8 1.0");
        assert_eq!(texts("", "linear", -10., 40.), "-10 0 10 20 30 40");
        assert_eq!(texts("deg", "linear", -180., 180.), "-180 -90 0 90 180");
        let noon = 51544.5 * 86400.;
        assert_eq!(texts("UTC", "time", noon, noon + 100.), "12:00:00 12:00:30 12:01:00 12:01:30");
        assert_eq!(texts("", "linear", 1., 1.), "");
        assert_eq!(texts("", "linear", f64::NAN, 1.), "");
        assert_eq!([0., 0.125, 12.25, 123456.].map(short), ["0", "0.125", "12.2", "1.2e5"]);
        assert_eq!(texts("", "linear", -3e-14, 5e-14), "-2e-14 0 2e-14 4e-14", "no zeros without end");
        assert_eq!(texts("", "log", 0.02, 40.), "0.1 1 10");
        assert_eq!(texts("Jy", "log", 3e-9, 2e-5), "0.01 0.1 1 10");
        assert_eq!(texts("MHz", "linear", 36304., 36312.), "36.304 36.306 36.308 36.310 36.312");
        let units = |unit, low, high| label(&Axis::new("x", unit, "linear"), Some((low, high)));
        assert_eq!(units("MHz", 36304., 36312.), "x (GHz)");
        assert_eq!(units("MHz", 0.1, 0.9), "x (kHz)");
        assert_eq!(units("Jy", 0., 0.02), "x (mJy)");
        assert_eq!(units("Jy", 0., 0.), "x (Jy)");
        assert_eq!(units("kλ", 0., 0.03), "x (λ)");
    }
}
