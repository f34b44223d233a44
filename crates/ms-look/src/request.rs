//! Requests for plots: the kind of a plot and its parameters in words. Names, such as those of
//! antennas, are looked up in the plotted table only by [`Selection`](crate::selection).

use ctds::error::{Error, Result};
use ctds::suggest::similar;

use crate::calendar::mjd_of;
use crate::plots::Kind;

/// Names of all parameters that a request for a plot may have.
pub const PARAMETERS: [&str; 17] = [
    "column",
    "spw",
    "field",
    "scan",
    "corr",
    "baseline",
    "antenna",
    "time",
    "chan",
    "quantity",
    "statistic",
    "average",
    "flagged",
    "unit",
    "x",
    "y",
    "more",
];

/// Most words in the value of a parameter that is a list.
const MAX_WORDS: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    Amp,
    Phase,
    Real,
    Imag,
    /// Percentage of flagged visibilities.
    Flagged,
}

impl Quantity {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Quantity::Amp => "amp",
            Quantity::Phase => "phase",
            Quantity::Real => "real",
            Quantity::Imag => "imag",
            Quantity::Flagged => "flagged",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statistic {
    Mean,
    Max,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Average {
    /// Mean of the amplitudes of the visibilities.
    Scalar,
    /// Amplitude of the mean of the complex visibilities.
    Vector,
}

/// The quantity that is added up in each bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    Amplitude,
    /// Complex visibilities.
    Vector,
    Flags,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BaselineWords {
    Cross,
    Auto,
    All,
    /// Pairs of antennas, by name or number.
    Pairs(Vec<(String, String)>),
}

/// A request for a plot: its kind and its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub(crate) kind: Kind,
    pub(crate) column: Option<String>,
    pub(crate) spw: Option<String>,
    pub(crate) field: Vec<String>,
    pub(crate) scan: Vec<i64>,
    pub(crate) corr: Vec<String>,
    pub(crate) baseline: BaselineWords,
    pub(crate) antenna: Vec<String>,
    /// Seconds of MJD, from the first up to but without the second; `None`: no limit.
    pub(crate) time: (Option<f64>, Option<f64>),
    /// Channels to plot, from 0: from the first up to but without the second; `None`: no limit.
    pub(crate) chan: (Option<u64>, Option<u64>),
    pub(crate) quantity: Quantity,
    pub(crate) statistic: Statistic,
    pub(crate) average: Average,
    /// Otherwise flagged visibilities are left out.
    pub(crate) include_flagged: bool,
    /// Unit of u and v, instead of metres.
    pub(crate) kilowavelengths: bool,
    /// Word for the axis of the plot `xy`; `None`: time.
    pub(crate) x: Option<String>,
    /// Word for the axis of the plot `xy`; `None`: the quantity.
    pub(crate) y: Option<String>,
    /// How often reading may continue at its limit of bytes: 1 + `more` times the limit is read.
    pub(crate) more: u32,
}

impl Request {
    /// Parses a request for the plot `kind`, with the parameters in `query`. A parameter with an
    /// empty value has its default.
    ///
    /// # Errors
    /// `Usage` if the kind, a parameter or a value is unknown, or a parameter is given twice.
    pub fn parse(kind: &str, query: &[(String, String)]) -> Result<Self> {
        let known = Kind::ALL.into_iter().find(|known| known.name() == kind);
        let kind = known.ok_or_else(|| {
            let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
            Error::usage(format!("{kind:?} is not a kind of plot; kinds are {}", names.join(", ")))
        })?;
        let mut request = Request {
            kind,
            column: None,
            spw: None,
            field: Vec::new(),
            scan: Vec::new(),
            corr: Vec::new(),
            baseline: BaselineWords::Cross,
            antenna: Vec::new(),
            time: (None, None),
            chan: (None, None),
            quantity: kind.plot().quantities[0],
            statistic: Statistic::Mean,
            average: Average::Scalar,
            include_flagged: false,
            kilowavelengths: false,
            x: None,
            y: None,
            more: 0,
        };
        let mut seen = Vec::new();
        for (name, value) in query {
            if seen.contains(&name) {
                return Err(Error::usage(format!("the parameter {name} is given twice")));
            }
            seen.push(name);
            match value.trim() {
                "" if PARAMETERS.contains(&name.as_str()) => {}
                value => request.set(name, value)?,
            }
        }
        Ok(request)
    }

    /// The kind of plot that is requested.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn measure(&self) -> Measure {
        match (self.quantity, self.average, self.statistic) {
            (Quantity::Flagged, ..) => Measure::Flags,
            (Quantity::Amp, _, Statistic::Max) | (Quantity::Amp, Average::Scalar, _) => Measure::Amplitude,
            _ => Measure::Vector,
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "column" => self.column = Some(value.to_owned()),
            "spw" => self.spw = Some(value.to_owned()),
            "field" => self.field = words(value)?,
            "scan" => {
                let number =
                    |word: String| word.parse().map_err(|_| Error::usage(format!("scan: {word:?} is not a number")));
                self.scan = words(value)?.into_iter().map(number).collect::<Result<_>>()?;
            }
            "corr" => self.corr = words(value)?,
            "baseline" => self.baseline = baselines(value)?,
            "antenna" => self.antenna = words(value)?,
            "time" => {
                let (start, end) = range(name, value)?;
                let time = |text: Option<&str>| text.map(mjd_of).transpose();
                self.time = (time(start)?, time(end)?);
            }
            "chan" => {
                let (start, end) = range(name, value)?;
                let number = |text: Option<&str>| {
                    let wrong = |_| Error::usage(format!("chan: {:?} is not a number", text.unwrap_or_default()));
                    text.map(|text| text.trim().parse().map_err(wrong)).transpose()
                };
                self.chan = (number(start)?, number(end)?);
            }
            "quantity" => {
                let choices: Vec<_> =
                    self.kind.plot().quantities.iter().map(|quantity| (quantity.name(), *quantity)).collect();
                self.quantity = choice(&format!("quantity of {}", self.kind.name()), value, &choices)?;
            }
            "statistic" => self.statistic = choice(name, value, &[("mean", Statistic::Mean), ("max", Statistic::Max)])?,
            "average" => {
                self.average = choice(name, value, &[("scalar", Average::Scalar), ("vector", Average::Vector)])?
            }
            "flagged" => self.include_flagged = choice(name, value, &[("omit", false), ("include", true)])?,
            "unit" => self.kilowavelengths = choice(name, value, &[("m", false), ("klambda", true)])?,
            "x" | "y" if self.kind != Kind::Xy => {
                return Err(Error::usage(format!("{name} is a parameter of xy, not of {}", self.kind.name())));
            }
            "x" => self.x = Some(value.to_owned()),
            "y" => self.y = Some(value.to_owned()),
            "more" => {
                self.more = value.parse().map_err(|_| Error::usage(format!("more: {value:?} is not a number")))?
            }
            _ => {
                let names = PARAMETERS.join(", ");
                return Err(Error::usage(format!("{name:?} is not a parameter of plots; parameters are {names}")));
            }
        }
        Ok(())
    }
}

fn choice<T: Copy>(name: &str, value: &str, choices: &[(&str, T)]) -> Result<T> {
    let found = choices.iter().find(|(word, _)| *word == value);
    let names: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
    let wrong = || {
        let meant = similar(value, &names).map_or(String::new(), |word| format!("; did you mean {word}?"));
        Error::usage(format!("{name}: {value:?}, where {} can be{meant}", names.join(" or ")))
    };
    found.map(|(_, choice)| *choice).ok_or_else(wrong)
}

/// `A,B,C`; an empty word is an error.
fn words(value: &str) -> Result<Vec<String>> {
    let words: Vec<String> = value.split(',').map(|word| word.trim().to_owned()).collect();
    if words.len() > MAX_WORDS {
        return Err(Error::usage(format!("a list of {} words; {MAX_WORDS} can be", words.len())));
    }
    if words.iter().any(String::is_empty) {
        return Err(Error::usage(format!("{value:?} has an empty word")));
    }
    Ok(words)
}

/// Ends of `A..B`, `None` for one that is missing; `name` is the parameter, for the error message.
fn range<'a>(name: &str, value: &'a str) -> Result<(Option<&'a str>, Option<&'a str>)> {
    let wrong = || Error::usage(format!("{name}: {value:?} is not a range, expected A..B: from A up to but without B"));
    let (start, end) = value.split_once("..").ok_or_else(wrong)?;
    let part = |text: &'a str| Some(text.trim()).filter(|text| !text.is_empty());
    Ok((part(start), part(end)))
}

/// `cross`, `auto`, `all`, or pairs such as `m000-m001`, `0&1`.
fn baselines(value: &str) -> Result<BaselineWords> {
    match value {
        "cross" => return Ok(BaselineWords::Cross),
        "auto" => return Ok(BaselineWords::Auto),
        "all" => return Ok(BaselineWords::All),
        _ => {}
    }
    let pair = |word: String| {
        let parts = word.split_once('&').or_else(|| word.split_once('-'));
        let parts = parts.map(|(first, second)| (first.trim().to_owned(), second.trim().to_owned()));
        let wrong = || {
            Error::usage(format!("baseline: {word:?}, where cross, auto, all or pairs such as m000-m001 or 0-1 can be"))
        };
        parts.filter(|(first, second)| !first.is_empty() && !second.is_empty()).ok_or_else(wrong)
    };
    Ok(BaselineWords::Pairs(words(value)?.into_iter().map(pair).collect::<Result<_>>()?))
}

#[cfg(test)]
mod tests {
    use ctds::ErrorKind;
    use ctds::error::Fails;

    use super::*;

    fn parse(kind: &str, query: &str) -> Result<Request> {
        let pair = |word: &str| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap();
        Request::parse(kind, &query.split_whitespace().map(pair).collect::<Vec<_>>())
    }

    #[test]
    fn parameters_have_defaults() {
        let plain = parse("waterfall", "").unwrap();
        assert_eq!(plain, parse("waterfall", "baseline=cross quantity=amp flagged=omit corr= statistic=mean").unwrap());
        let request =
            parse("spectrum", "corr=XX,3 time=..2000-01-01T12:00 chan=3.. baseline=0-1,m1&m-2 more=2").unwrap();
        assert_eq!(request.corr, ["XX", "3"]);
        assert_eq!(request.time, (None, Some(51544.5 * 86400.)));
        assert_eq!(request.chan, (Some(3), None));
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(request.baseline, BaselineWords::Pairs(vec![pair("0", "1"), pair("m1", "m-2")]));
        assert_eq!(request.more, 2);
        assert_eq!(parse("flag_time", "").unwrap().quantity, Quantity::Flagged);
    }

    #[test]
    fn unknown_parameters_and_values_are_refused() {
        for (kind, query) in [
            ("histogram", ""),
            ("uv", "color=red"),
            ("uv", "colour="),
            ("uv", "scan=first"),
            ("uv", "quantity=phase"),
            ("phase_time", "quantity=amp"),
            ("amp_time", "x=elevation"),
            ("waterfall", "flagged=yes"),
            ("waterfall", "time=now"),
            ("waterfall", "time=now.."),
            ("waterfall", "chan=1"),
            ("waterfall", "chan=-1..3"),
            ("waterfall", "baseline=m000"),
            ("waterfall", "corr=XX,,YY"),
            ("waterfall", "more=all"),
            ("waterfall", "corr=XX corr=YY"),
        ] {
            let error = parse(kind, query).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{kind} {query}");
        }
    }

    #[test]
    fn length_of_lists_is_limited() {
        let words = vec!["XX"; MAX_WORDS + 1].join(",");
        parse("waterfall", &format!("corr={words}")).fails(ErrorKind::Usage, "a list of 4097 words; 4096 can be");
    }
}
