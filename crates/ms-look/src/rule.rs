//! Alert rules: conditions on a file or table of which a user is warned, such as `flagged > 40 %`
//! or `no rows for 30 s`.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use ctds::error::{Context, Error, Result, ResultExt};

use crate::describe::Description;
use crate::selection::number;

/// Most characters of a rule.
const MAX_LENGTH: usize = 200;

const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_FILE_RULES: usize = 1000;

const EXAMPLES: &str = "flagged > 40 %, flagged > 40 % for antenna m003, lag > 20 s, commit age > 1 min, rows/s < 100, \
                        no rows for 30 s, amplitude step > 3";

/// An alert rule: a quantity of a file or table, such as the percentage of flags, and the limit
/// beyond which a user is warned.
///
/// | rule | holds |
/// |---|---|
/// | `flagged > 40 %` | more than 40 % of the newest cells are flagged |
/// | `flagged > 40 % for antenna` | the same for any antenna, in the newest integration |
/// | `flagged > 40 % for antenna m003` | the same for one antenna, by its name or number |
/// | `lag > 20 s` | the newest TIME is further back than 20 s, and not further than a day |
/// | `commit age > 1 min` | the newest commit with rows was a minute ago |
/// | `rows/s < 100` | rows of all tables per second, as a mean over five seconds |
/// | `no rows for 30 s` | the main table has not grown for 30 s |
/// | `amplitude step > 3` | ratio of the mean amplitude of the newest integration to the mean of those before it, ten at most |
///
/// Times are in `s`, `min` or `h`. `<` and `>` are the signs, and an equal value holds for neither.
///
/// ```
/// use ms_look::Rule;
///
/// let rule: Rule = "FLAGGED>40% for antenna m003".parse()?;
/// assert_eq!(rule.to_string(), "flagged > 40 % for antenna m003");
/// assert!("flagged".parse::<Rule>().is_err());
/// # Ok::<(), ms_look::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub(crate) quantity: Quantity,
    pub(crate) is_above: bool,
    /// Percent for flags, seconds for times, rows per second for `rows/s`, and a ratio for
    /// `amplitude step`.
    pub(crate) limit: f64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Quantity {
    Flagged,
    /// The antenna with this name or number; `None`: any antenna.
    AntennaFlagged(Option<String>),
    Lag,
    CommitAge,
    RowRate,
    Silence,
    AmplitudeStep,
}

/// Quantities that are compared by `<` or `>`, with their names in the text of a rule.
const QUANTITIES: [(&str, Quantity); 5] = [
    ("flagged", Quantity::Flagged),
    ("lag", Quantity::Lag),
    ("commit age", Quantity::CommitAge),
    ("rows/s", Quantity::RowRate),
    ("amplitude step", Quantity::AmplitudeStep),
];

const SILENCE: &str = "no rows for";

const ANTENNA: &str = "for antenna";

impl Quantity {
    /// Each with the factor that converts to the first unit; empty for quantities without a unit.
    fn units(&self) -> &'static [(&'static str, f64)] {
        match self {
            Quantity::Flagged | Quantity::AntennaFlagged(_) => &[("%", 1.)],
            Quantity::Lag | Quantity::CommitAge | Quantity::Silence => &[("s", 1.), ("min", 60.), ("h", 3600.)],
            Quantity::RowRate | Quantity::AmplitudeStep => &[],
        }
    }
}

impl Rule {
    /// Reads alert rules from a file, one on each line; `#` begins a comment.
    ///
    /// # Errors
    /// `Usage` with the file, the number of the line and the rules that can be; those of reading
    /// the file.
    pub fn read_file(path: &Path) -> Result<Vec<Self>> {
        Self::read(path).with_context(|| Context::path(path))
    }

    fn read(path: &Path) -> Result<Vec<Self>> {
        let bytes = path.metadata()?.len();
        if bytes > MAX_FILE_BYTES {
            return Err(Error::limit(format!("{bytes} bytes; a file with rules has {MAX_FILE_BYTES} at most")));
        }
        let text = String::from_utf8(std::fs::read(path)?);
        let text = text.map_err(|_| Error::usage("a file with rules is text in UTF-8"))?;
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).enumerate();
        let rule = |(line, text): (usize, &str)| -> Result<Self> {
            text.parse().map_err(|error: Error| Error::usage(format!("line {}: {}", line + 1, error.message())))
        };
        let rules: Vec<Self> = lines.filter(|(_, text)| !text.is_empty()).map(rule).collect::<Result<_>>()?;
        match rules.len() > MAX_FILE_RULES {
            true => Err(Error::limit(format!("{} rules; a file has {MAX_FILE_RULES} at most", rules.len()))),
            false => Ok(rules),
        }
    }

    /// Checks that the described file or table has the antenna that the rule names; succeeds if the
    /// rule does not name one.
    ///
    /// # Errors
    /// `Usage` with the antennas that it has.
    pub fn check(&self, source: &Description) -> Result<()> {
        if let Quantity::AntennaFlagged(Some(antenna)) = &self.quantity {
            let names: Vec<String> = source.antennas.iter().map(|antenna| antenna.name.clone()).collect();
            number("antenna", antenna, &names)?;
        }
        Ok(())
    }

    pub(crate) fn name(&self) -> &'static str {
        let quantity = match &self.quantity {
            Quantity::AntennaFlagged(_) => &Quantity::Flagged,
            quantity => quantity,
        };
        QUANTITIES.iter().find(|(_, known)| known == quantity).map_or("no rows", |(name, _)| name)
    }

    /// The comparison with limit and unit: `> 40 %`.
    pub(crate) fn condition(&self) -> String {
        format!("{} {}{}", if self.is_above { '>' } else { '<' }, self.limit, self.unit())
    }

    /// The unit with a blank before it; empty if the quantity has no unit.
    pub(crate) fn unit(&self) -> String {
        self.quantity.units().first().map_or(String::new(), |(unit, _)| format!(" {unit}"))
    }

    /// Whether the rule needs a summary of the newest integration in the result of each poll.
    pub fn needs_integration(&self) -> bool {
        matches!(self.quantity, Quantity::AntennaFlagged(_) | Quantity::AmplitudeStep)
    }
}

impl FromStr for Rule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.chars().count() > MAX_LENGTH {
            return Err(Error::usage(format!("a rule for alerts is longer than {MAX_LENGTH} characters")));
        }
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        parse(&words).map_err(|expected| {
            Error::usage(format!("{words:?} is not a rule for alerts: {expected} is expected; rules are {EXAMPLES}"))
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.quantity {
            Quantity::Silence => write!(f, "{SILENCE} {}{}", self.limit, self.unit()),
            Quantity::AntennaFlagged(antenna) => {
                write!(f, "{} {} {ANTENNA}", self.name(), self.condition())?;
                antenna.as_ref().map_or(Ok(()), |antenna| write!(f, " {antenna}"))
            }
            _ => write!(f, "{} {}", self.name(), self.condition()),
        }
    }
}

/// Removes `words`, in upper or lower case, from the beginning of a text; returns the rest.
fn strip<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let begin = text.get(..words.len()).filter(|begin| begin.eq_ignore_ascii_case(words))?;
    Some(text[begin.len()..].trim_start())
}

/// Single spaces separate the words. The error names the expected words.
fn parse(text: &str) -> std::result::Result<Rule, String> {
    if let Some(rest) = strip(text, SILENCE) {
        let (limit, rest) = limit(rest, &Quantity::Silence)?;
        return match (rest.is_empty(), limit > 0.) {
            (true, true) => Ok(Rule { quantity: Quantity::Silence, is_above: true, limit }),
            (true, false) => Err("a time above 0".to_owned()),
            (false, _) => Err(format!("nothing after the time, instead of {rest:?},")),
        };
    }
    let known = QUANTITIES.iter().find_map(|(name, quantity)| Some((name, quantity, strip(text, name)?)));
    let Some((name, quantity, rest)) = known else {
        let names = QUANTITIES.map(|(name, _)| name).join(", ");
        return Err(format!("one of {names} or {SILENCE}"));
    };
    let is_above = rest.starts_with('>');
    let rest = rest.strip_prefix(['<', '>']).ok_or_else(|| format!("< or > after {name}"))?;
    let (limit, rest) = limit(rest.trim_start(), quantity)?;
    let quantity = match (quantity, strip(rest, ANTENNA)) {
        (quantity, _) if rest.is_empty() => quantity.clone(),
        (Quantity::Flagged, Some(antenna)) => {
            Quantity::AntennaFlagged(Some(antenna.to_owned()).filter(|name| !name.is_empty()))
        }
        (Quantity::Flagged, None) => return Err(format!("\"{ANTENNA}\" or nothing, instead of {rest:?},")),
        _ => return Err(format!("nothing after the limit, instead of {rest:?},")),
    };
    Ok(Rule { quantity, is_above, limit })
}

/// Limit, times in seconds, at the beginning of `text`, and the rest of the text.
fn limit<'a>(text: &'a str, quantity: &Quantity) -> std::result::Result<(f64, &'a str), String> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().map_err(|_| format!("a number instead of {text:?}"))?;
    let rest = text[end..].trim_start();
    let end = rest.find(' ').unwrap_or(rest.len());
    let unit = quantity.units().iter().find(|(unit, _)| rest[..end].eq_ignore_ascii_case(unit));
    let wants_unit = !rest.is_empty() && strip(rest, "for").is_none();
    match unit {
        Some((_, factor)) => Ok((number * factor, rest[end..].trim_start())),
        None if wants_unit && !quantity.units().is_empty() => {
            let names: Vec<&str> = quantity.units().iter().map(|(unit, _)| *unit).collect();
            Err(format!("the unit {} instead of {rest:?}", names.join(", ")))
        }
        None => Ok((number, rest)),
    }
}

#[cfg(test)]
mod tests {
    use ctds::ErrorKind;
    use ctds::error::Fails;

    use super::*;

    #[test]
    fn rules_are_read_and_written() {
        for (text, written) in [
            ("flagged > 40 %", "flagged > 40 %"),
            ("  Flagged<0.5%", "flagged < 0.5 %"),
            ("flagged > 40 for antenna", "flagged > 40 % for antenna"),
            ("flagged > 40 % FOR  antenna m003", "flagged > 40 % for antenna m003"),
            ("flagged > 40 % for antenna CS 001 > x", "flagged > 40 % for antenna CS 001 > x"),
            ("lag > 20", "lag > 20 s"),
            ("lag > 1.5 min", "lag > 90 s"),
            ("commit   age > 2h", "commit age > 7200 s"),
            ("rows/s < 100", "rows/s < 100"),
            ("no rows for 30 s", "no rows for 30 s"),
            ("NO ROWS FOR 2min", "no rows for 120 s"),
            ("amplitude step > 3", "amplitude step > 3"),
        ] {
            let rule: Rule = text.parse().unwrap();
            assert_eq!(rule.to_string(), written, "{text}");
            assert_eq!(written.parse::<Rule>().unwrap(), rule);
        }
    }

    #[test]
    fn errors_say_what_is_expected() {
        let message = |text: &str| {
            let error = text.parse::<Rule>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            error.to_string()
        };
        for (text, expected) in [
            ("", "one of flagged, lag, commit age, rows/s, amplitude step or no rows for is expected"),
            ("speed > 3", "one of flagged, lag, commit age, rows/s, amplitude step or no rows for is expected"),
            ("flagged", "< or > after flagged is expected"),
            ("flagged = 4", "< or > after flagged is expected"),
            ("lag > soon", "a number instead of \"soon\" is expected"),
            ("lag > -3 s", "a number instead of \"-3 s\" is expected"),
            ("lag > 1.2.3", "a number instead of \"1.2.3\" is expected"),
            ("lag > 3 days", "the unit s, min, h instead of \"days\" is expected"),
            ("flagged > 3 s", "the unit % instead of \"s\" is expected"),
            ("lag > 3 s for antenna", "nothing after the limit, instead of \"for antenna\", is expected"),
            ("flagged > 3 % for field", "\"for antenna\" or nothing, instead of \"for field\", is expected"),
            ("rows/s < 3 s", "nothing after the limit, instead of \"s\", is expected"),
            ("no rows for ever", "a number instead of \"ever\" is expected"),
            ("no rows for 0 s", "a time above 0 is expected"),
            ("no rows for 3 s or so", "nothing after the time, instead of \"or so\", is expected"),
        ] {
            assert!(message(text).contains(expected), "{text}: {}", message(text));
            assert!(message(text).contains(&format!("{text:?} is not a rule")) && message(text).contains(EXAMPLES));
        }
        assert!(message(&"x".repeat(201)).contains("longer than 200 characters"));
    }

    #[test]
    fn files_have_one_rule_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Rule::read_file(&path)
        };
        let rules = read("# all files\n\nlag > 20 s # late\r\n  flagged > 40 % for antenna\n").unwrap();
        let texts: Vec<String> = rules.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["lag > 20 s", "flagged > 40 % for antenna"]);
        let error = read("lag > 20 s\n\nlag > soon\n").unwrap_err();
        let message = error.to_string();
        assert!(message.contains("rules: line 3: \"lag > soon\"") && message.contains("a number"), "{message}");
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(read(&"lag > 1 s\n".repeat(1001)).unwrap_err().kind(), ErrorKind::Limit);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(Rule::read_file(&path).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn files_without_valid_rules_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.txt");
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Rule::read_file(&path)
        };
        assert!(read(b"# none").unwrap().is_empty());
        read(b"lag > 20 \xff").fails(ErrorKind::Usage, "rules.txt: a file with rules is text in UTF-8");
        read(&vec![b'#'; MAX_FILE_BYTES as usize + 1])
            .fails(ErrorKind::Limit, "rules.txt: 1048577 bytes; a file with rules has 1048576 at most");
    }
}
