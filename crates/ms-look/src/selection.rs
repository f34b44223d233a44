//! Converts the names in a request for a plot to numbers in the plotted table: the rows,
//! correlations and channels to add up.

use ctds::error::{Error, Result};
use ctds::suggest::similar;
use serde_json::{Value as Json, json};

use crate::axes::Axes;
use crate::calendar::utc_of_mjd;
use crate::describe::{Description, SpectralWindow, parallel_hands};
use crate::request::{Average, BaselineWords, Request, Statistic};

/// The baselines that a plot selects; cross are those of two different antennas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Baselines {
    Cross,
    Auto,
    All,
    /// The smaller antenna number first.
    Pairs(Vec<(i64, i64)>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Selection {
    pub(crate) column: String,
    /// Value of [`Description::spw_column`]; `None`, without rows or column, selects all rows.
    pub(crate) spw: Option<i64>,
    /// Empty for all.
    pub(crate) fields: Vec<i64>,
    /// Empty for all.
    pub(crate) scans: Vec<i64>,
    /// Indices in a cell; `None` for the defaults of the kind of plot.
    pub(crate) corr: Option<Vec<usize>>,
    pub(crate) baselines: Baselines,
    /// Only baselines with at least one of these antennas are selected; empty: all.
    pub(crate) antennas: Vec<i64>,
    /// TIMEs in seconds of MJD: from the first up to but without the second; `None`: no limit.
    pub(crate) time: (Option<f64>, Option<f64>),
    pub(crate) chan: (Option<u64>, Option<u64>),
    pub(crate) include_flagged: bool,
    /// The axes of the plot `xy`; the session sets them.
    pub(crate) axes: Option<Axes>,
}

/// The correlations that a plot shows unless others are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Correlations {
    All,
    ParallelHands,
    FirstParallelHand,
}

/// The scalar cells of a row that decide whether a plot selects it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowKey {
    pub(crate) time: f64,
    pub(crate) antenna1: i64,
    pub(crate) antenna2: i64,
    pub(crate) spw: i64,
    pub(crate) field: i64,
    pub(crate) scan: i64,
}

impl Selection {
    /// `Usage` for a name that the source does not have; `Unsupported` if it has nothing to plot.
    pub(crate) fn new(request: &Request, known: &Description) -> Result<Self> {
        known.check()?;
        let column = match &request.column {
            Some(column) if known.columns.contains(column) => column.clone(),
            Some(column) => return Err(unknown("column of visibilities", column, known.columns.clone())),
            None => known.columns.first().cloned().unwrap_or_default(),
        };
        let spw = match &request.spw {
            Some(word) => Some(spectral_window(word, &known.spectral_windows)?),
            None => known.newest_spw,
        };
        let names: Vec<String> = known.fields.iter().map(|field| field.name.clone()).collect();
        let fields = sorted(request.field.iter().map(|word| number("field", word, &names)).collect::<Result<_>>()?);
        let corr = (!request.corr.is_empty()).then(|| {
            let window = spw.and_then(|spw| known.window(spw));
            let names = window.map_or(&[][..], |window| &window.correlations);
            let wanted = request.corr.iter().map(|word| match number("correlation", word, names)? {
                wanted @ 0..64 => Ok(wanted as usize),
                wanted => Err(Error::usage(format!("corr: {wanted}, where a cell has fewer correlations"))),
            });
            let wanted: Vec<usize> = wanted.collect::<Result<_>>()?;
            match (1..wanted.len()).find(|&at| wanted[..at].contains(&wanted[at])) {
                Some(at) => Err(Error::usage(format!("corr names {} twice", request.corr[at]))),
                None => Ok(wanted),
            }
        });
        let antennas: Vec<String> = known.antennas.iter().map(|antenna| antenna.name.clone()).collect();
        let baselines = match &request.baseline {
            // rows of a calibration table are of one antenna each
            BaselineWords::Cross if known.is_calibration => Baselines::All,
            BaselineWords::Cross => Baselines::Cross,
            BaselineWords::Auto => Baselines::Auto,
            BaselineWords::All => Baselines::All,
            BaselineWords::Pairs(pairs) => {
                let pair = |(first, second): &(String, String)| {
                    let (first, second) = (number("antenna", first, &antennas)?, number("antenna", second, &antennas)?);
                    Ok((first.min(second), first.max(second)))
                };
                Baselines::Pairs(sorted(pairs.iter().map(pair).collect::<Result<_>>()?))
            }
        };
        let wanted = request.antenna.iter().map(|word| number("antenna", word, &antennas));
        Ok(Selection {
            column,
            spw,
            fields,
            scans: sorted(request.scan.clone()),
            corr: corr.transpose()?,
            baselines,
            antennas: sorted(wanted.collect::<Result<_>>()?),
            time: request.time,
            chan: request.chan,
            include_flagged: request.include_flagged,
            axes: None,
        })
    }

    pub(crate) fn has(&self, row: &RowKey) -> bool {
        let pair = (row.antenna1.min(row.antenna2), row.antenna1.max(row.antenna2));
        let on_baseline = match &self.baselines {
            Baselines::Cross => pair.0 != pair.1,
            Baselines::Auto => pair.0 == pair.1,
            Baselines::All => true,
            Baselines::Pairs(pairs) => pairs.binary_search(&pair).is_ok(),
        };
        let is_in = |list: &[i64], number: i64| list.is_empty() || list.binary_search(&number).is_ok();
        on_baseline
            && self.spw.is_none_or(|spw| spw == row.spw)
            && is_in(&self.fields, row.field)
            && is_in(&self.scans, row.scan)
            && (is_in(&self.antennas, pair.0) || is_in(&self.antennas, pair.1))
            && self.time.0.is_none_or(|start| row.time >= start)
            && self.time.1.is_none_or(|end| row.time < end)
            && row.time.is_finite()
    }

    /// Indices in a cell of `count` correlations with these `names`; else those of `default`.
    pub(crate) fn correlations(&self, default: Correlations, names: &[String], count: usize) -> Vec<usize> {
        match (&self.corr, default) {
            (Some(wanted), _) => wanted.iter().copied().filter(|&corr| corr < count).collect(),
            (None, Correlations::All) => (0..count).collect(),
            (None, Correlations::ParallelHands) => parallel_hands(names, count),
            (None, Correlations::FirstParallelHand) => parallel_hands(names, count).into_iter().take(1).collect(),
        }
    }

    pub(crate) fn channels(&self, count: usize) -> std::ops::Range<usize> {
        let end = self.chan.1.map_or(count, |end| usize::try_from(end).map_or(count, |end| end.min(count)));
        let start = self.chan.0.map_or(0, |start| usize::try_from(start).map_or(end, |start| start.min(end)));
        start..end
    }

    /// Selection for the metadata of the plot, with names where they are known.
    pub(crate) fn to_json(&self, request: &Request, known: &Description, correlations: &[String]) -> Json {
        let name = |number: &i64| usize::try_from(*number).map_or_else(|_| number.to_string(), |at| known.antenna(at));
        let baseline: Json = match &self.baselines {
            Baselines::Cross => "cross".into(),
            Baselines::Auto => "auto".into(),
            Baselines::All => "all".into(),
            Baselines::Pairs(pairs) => {
                let words: Vec<String> = pairs.iter().map(|(a, b)| format!("{}-{}", name(a), name(b))).collect();
                words.join(",").into()
            }
        };
        let field = |number: &i64| usize::try_from(*number).map_or_else(|_| number.to_string(), |at| known.field(at));
        let mut selection = json!({
            "column": self.column, "spw": self.spw, "corr": correlations, "baseline": baseline,
            "flagged": if self.include_flagged { "include" } else { "omit" },
            "quantity": request.quantity.name(),
            "statistic": if request.statistic == Statistic::Max { "max" } else { "mean" },
            "average": if request.average == Average::Vector { "vector" } else { "scalar" },
        });
        if let Some(axes) = &self.axes {
            selection["x"] = axes.x.name().into();
            if let Some(y) = &axes.y {
                selection["y"] = y.name().into();
            }
        }
        if !self.fields.is_empty() {
            selection["field"] = self.fields.iter().map(field).collect::<Vec<_>>().into();
        }
        if !self.scans.is_empty() {
            selection["scan"] = self.scans.clone().into();
        }
        if !self.antennas.is_empty() {
            selection["antenna"] = self.antennas.iter().map(name).collect::<Vec<_>>().into();
        }
        if self.time != (None, None) {
            let words = [self.time.0, self.time.1].map(|time| time.map_or_else(String::new, utc_of_mjd));
            selection["time"] = words.join("..").into();
        }
        if self.chan != (None, None) {
            let words = [self.chan.0, self.chan.1].map(|chan| chan.map_or_else(String::new, |chan| chan.to_string()));
            selection["chan"] = words.join("..").into();
        }
        selection
    }
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort_unstable();
    list.dedup();
    list
}

/// `#5` is row 5; else `word` is a name of `names`, or a number where it cannot be mistaken for
/// one. Without names, while the subtable is missing or not written, any number is accepted.
/// `what`, such as `antenna`, is for the error.
pub(crate) fn number(what: &str, word: &str, names: &[String]) -> Result<i64> {
    let rows: Vec<(i64, &str)> = names.iter().enumerate().map(|(row, name)| (row as i64, name.as_str())).collect();
    find(what, word, &rows)
}

fn spectral_window(word: &str, known: &[SpectralWindow]) -> Result<i64> {
    let windows: Vec<(i64, &str)> = known.iter().map(|window| (window.id, window.name.as_str())).collect();
    find("spectral window", word, &windows)
}

fn find(what: &str, word: &str, known: &[(i64, &str)]) -> Result<i64> {
    let missing = || unknown(what, word, known.iter().map(|(id, name)| numbered(*id, name)).collect());
    let exists = |id: &i64| *id >= 0 && (known.is_empty() || known.iter().any(|(other, _)| other == id));
    if let Some(row) = word.strip_prefix('#') {
        return row.parse().ok().filter(exists).ok_or_else(missing);
    }
    let named: Vec<i64> =
        known.iter().filter(|(_, name)| !word.is_empty() && *name == word).map(|(id, _)| *id).collect();
    let id = match named[..] {
        [id] => return Ok(id),
        [] => word.parse().ok().filter(exists).ok_or_else(missing)?,
        _ => {
            let rows: Vec<String> = named.iter().map(|id| format!("#{id}")).collect();
            return Err(Error::usage(format!("{what} {word} is the name of {}: name one of them", rows.join(" and "))));
        }
    };
    // among names that are numbers, another number may be a name or a row
    let own = known.iter().find(|(other, _)| *other == id).map_or("", |(_, name)| name);
    let are_numbers = known.iter().any(|(_, name)| name.parse::<i64>().is_ok());
    if are_numbers && !own.is_empty() {
        let message = format!("no {what} is named {word}, and #{id} is named {own}: write #{id}, or a name");
        return Err(Error::usage(message));
    }
    Ok(id)
}

/// `1 (target)`.
fn numbered(number: i64, name: &str) -> String {
    match name.is_empty() || name == number.to_string() {
        true => number.to_string(),
        false => format!("{number} ({name})"),
    }
}

/// Error for a `word` that means none of `known`; suggests a similar name, or lists all.
pub(crate) fn unknown(what: &str, word: &str, mut known: Vec<String>) -> Error {
    const SHOWN: usize = 12;
    // a number is not misspelt; names follow their numbers: `0 (m000)`
    let names =
        known.iter().map(|known| known.split_once(" (").map_or(&known[..], |(_, name)| name.trim_end_matches(')')));
    if let Some(name) = similar(word, names).filter(|_| word.parse::<i64>().is_err()) {
        return Error::usage(format!("the source has no {what} {word}; did you mean {name}?"));
    }
    if known.len() > SHOWN {
        known.truncate(SHOWN);
        known.push("...".to_owned());
    }
    let known = if known.is_empty() { String::new() } else { format!("; it has {}", known.join(", ")) };
    Error::usage(format!("the source has no {what} {word}{known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: Result<i64>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn unknown_names_and_numbers_are_refused() {
        let names = ["m000", "", "m002"].map(str::to_owned);
        let found = ["m000", "0", "1", "2", "#2", "#0"].map(|word| number("antenna", word, &names).unwrap());
        assert_eq!(found, [0, 0, 1, 2, 2, 0]);
        let numbers = ["5", "", "7", "8", "1", "8"].map(str::to_owned);
        let found = ["7", "1", "#1", "#3"].map(|word| number("antenna", word, &numbers).unwrap());
        assert_eq!(found, [2, 4, 1, 3], "a number is a name first");
        let ambiguous = message(number("antenna", "2", &numbers));
        assert_eq!(ambiguous, "no antenna is named 2, and #2 is named 7: write #2, or a name");
        let twice = message(number("antenna", "8", &numbers));
        assert_eq!(twice, "antenna 8 is the name of #3 and #5: name one of them");
        assert_eq!(message(number("antenna", "m001", &names)), "the source has no antenna m001; did you mean m000?");
        for word in ["other", "3", "-1", "1.5"] {
            let expected = format!("the source has no antenna {word}; it has 0 (m000), 1, 2 (m002)");
            assert_eq!(message(number("antenna", word, &names)), expected);
        }
        assert_eq!(number("antenna", "7", &[]).unwrap(), 7, "the subtable may be written later");
        assert_eq!(message(number("antenna", "m001", &[])), "the source has no antenna m001");
        let many: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        assert!(message(number("field", "20", &many)).ends_with("10, 11, ..."));

        let window = |id: i64, name: &str| SpectralWindow { id, name: name.to_owned(), ..SpectralWindow::default() };
        let windows = [window(0, "L"), window(3, "")];
        assert_eq!(["L", "0", "3"].map(|word| spectral_window(word, &windows).unwrap()), [0, 0, 3]);
        for word in ["99", "1", "S"] {
            let expected = format!("the source has no spectral window {word}; it has 0 (L), 3");
            assert_eq!(message(spectral_window(word, &windows)), expected);
        }
        assert_eq!(spectral_window("99", &[]).unwrap(), 99);
    }
}
