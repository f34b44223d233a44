//! Functions of texts, and values as texts. Bytes count as characters, as in casacore; letters are
//! those of ASCII.

use bstr::{BString, ByteSlice};
use num_complex::Complex64;

use super::node::Map;
use crate::error::Result;
use crate::limits;

/// Blanks that casacore's `trim` removes.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// Those that `ltrim` and `rtrim` remove.
const SPACES: [char; 2] = [' ', '\t'];

/// Functions of a text that give a text; others leave it as it is.
pub(super) fn map(function: Map, text: &BString) -> BString {
    let end = |text: &BString, blanks: &[char]| text.trim_end_with(|c| blanks.contains(&c)).into();
    let start = |text: &BString, blanks: &[char]| -> BString { text.trim_start_with(|c| blanks.contains(&c)).into() };
    match function {
        Map::Upcase => text.to_ascii_uppercase().into(),
        Map::Downcase => text.to_ascii_lowercase().into(),
        Map::Capitalize => capitalized(text),
        Map::ReverseText => text.iter().rev().copied().collect::<Vec<u8>>().into(),
        Map::Trim => end(&start(text, &BLANKS), &BLANKS),
        Map::TrimLeft => start(text, &SPACES),
        Map::TrimRight => end(text, &SPACES),
        _ => text.clone(),
    }
}

/// Words begin with capitals; a digit is part of a word.
fn capitalized(text: &BString) -> BString {
    let mut is_inside = false;
    let letter = |&byte: &u8| {
        let letter = if is_inside { byte.to_ascii_lowercase() } else { byte.to_ascii_uppercase() };
        is_inside = byte.is_ascii_alphanumeric();
        letter
    };
    text.iter().map(letter).collect::<Vec<u8>>().into()
}

/// `start` counts from 0, a negative one from the end.
pub(super) fn substring(text: &BString, start: i64, length: Option<i64>) -> BString {
    let all = text.len() as i64;
    let start = if start < 0 { start.saturating_add(all).max(0) } else { start.min(all) };
    let end = length.map_or(all, |length| start.saturating_add(length.max(0)).min(all));
    text[start as usize..end as usize].into()
}

/// All occurrences; an empty `old` occurs nowhere. `Limit` if the text gets too long.
pub(super) fn replace(text: &BString, old: &BString, new: &BString) -> Result<BString> {
    if old.is_empty() {
        return Ok(text.clone());
    }
    let added = (text.find_iter(old).count() as u64).saturating_mul(new.len() as u64);
    limits::repeated(added.saturating_add(text.len() as u64))?;
    Ok(text.replace(old, new).into())
}

/// Exactly `width` characters, the first ones at the right; 0 for all.
pub(super) fn fitted(text: &BString, width: usize) -> BString {
    if width == 0 {
        return text.clone();
    }
    let kept = &text[..text.len().min(width)];
    [&b" ".repeat(width - kept.len()), kept].concat().into()
}

/// The value at the right of at least `width` characters.
pub(super) fn padded(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

pub(super) fn of_bool(value: bool) -> &'static str {
    if value { "True " } else { "False" }
}

pub(super) fn of_complex(value: Complex64, width: usize, precision: usize) -> String {
    let part = |part| padded(&of_double(part, precision), width);
    format!("({},{})", part(value.re), part(value.im))
}

/// `precision` significant digits, 0 for 6, as C's `%g` has them.
pub(super) fn of_double(value: f64, precision: usize) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_nan() {
        return format!("{sign}nan");
    }
    if value.is_infinite() {
        return format!("{sign}inf");
    }
    let digits = if precision == 0 { 6 } else { precision };
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let shortened = |number: &str| match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number.to_owned(),
    };
    if (-4..digits as i64).contains(&exponent) {
        return shortened(&format!("{value:.*}", (digits as i64 - 1 - exponent) as usize));
    }
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{exponent_sign}{:02}", shortened(mantissa), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_c_writes_them() {
        let known = [
            (0.1, "0.1"),
            (1.5e10, "1.5e+10"),
            (123_456_789.0, "1.23457e+08"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (1e-5, "1e-05"),
            (0.000_123_456_78, "0.000123457"),
            (-0.0, "-0"),
            (f64::INFINITY, "inf"),
            (1e300, "1e+300"),
            (999_999.5, "1e+06"),
        ];
        for (value, text) in known {
            assert_eq!(of_double(value, 0), text);
        }
        assert_eq!(of_double(1.0 / 3.0, 3), "0.333");
        assert_eq!(of_complex(Complex64::new(1.0, 2.0), 8, 2), "(       1,       2)");
    }

    #[test]
    fn texts_are_changed_as_casacore_changes_them() {
        let text = |text: &str| BString::from(text);
        assert_eq!(map(Map::Trim, &text("\r a b\n")), "a b");
        assert_eq!(map(Map::TrimLeft, &text(" \n a ")), "\n a ");
        assert_eq!(map(Map::Capitalize, &text("hello wORLD x1y 3ab")), "Hello World X1y 3ab");
        assert_eq!(substring(&text("abcd"), -2, None), "cd");
        assert_eq!(substring(&text("abcd"), 1, Some(2)), "bc");
        assert_eq!(substring(&text("abcd"), 9, Some(-1)), "");
        assert_eq!(replace(&text("abcabc"), &text("b"), &text("")).unwrap(), "acac");
        assert_eq!((fitted(&text("abc"), 2), fitted(&text("abc"), 5)), (text("ab"), text("  abc")));
    }
}
