//! Plots with a line for each antenna, baseline, field, scan or spectral window: `plot --by`; or
//! with a panel for each: `plot --panels`.

use ctds::error::{Error, Result};

use crate::describe::{Antenna, Description};
use crate::frame::Frame;
use crate::plots::Kind;
use crate::request::Request;
use crate::selection::{Correlations, Selection};
use crate::session::{BUDGET, Session};
use crate::subtables::label;

/// Names of groups for which a plot can have lines or panels: values of [`Lines::of`] and
/// [`Group::all`].
pub const BY: [&str; 6] = ["correlation", "antenna", "baseline", "field", "scan", "spw"];

const MOST: usize = 64;

/// Some rows or values of a source: those of one antenna, baseline, field, scan, spectral window or
/// correlation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// Name of the group in a legend or title.
    pub name: String,
    /// Name of the parameter of a plot that selects the group.
    pub parameter: &'static str,
    /// Value of the parameter that selects the group.
    pub value: String,
}

/// Requests for the plots of lines that are joined to one, with a line for each group of rows.
#[derive(Debug, Clone)]
pub struct Lines {
    by: String,
    /// Name and request of each group.
    groups: Vec<(String, Request)>,
}

impl Lines {
    /// The lines of the plot `kind` with the parameters in `query`, one for each group that `by`
    /// names, a value of [`BY`].
    ///
    /// # Errors
    /// `Usage` if the kind of plot has no lines, would have more than 64, or a parameter is wrong;
    /// those of reading the scan numbers.
    pub fn of(kind: &str, by: &str, session: &Session, query: &[(String, String)]) -> Result<Self> {
        let kind = Request::parse(kind, query)?.kind();
        if !matches!(
            kind,
            Kind::AmpTime | Kind::PhaseTime | Kind::Spectrum | Kind::FlagChannel | Kind::FlagTime | Kind::Xy
        ) {
            return Err(Error::usage(format!(
                "--by {by}: {} has no lines; amplitude or phase against time has",
                kind.name()
            )));
        }
        let groups = Group::all(by, session, query)?;
        let request = |group: Group| Ok((group.name.clone(), Request::parse(kind.name(), &group.query(query))?));
        Ok(Lines { by: by.to_owned(), groups: groups.into_iter().map(request).collect::<Result<_>>()? })
    }

    /// The requests of the lines, in their order.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        self.groups.iter().map(|(_, request)| request)
    }

    /// Joins the frames of all requests, in their order. Groups without data are left out; all
    /// frames have to be read before the result is complete.
    ///
    /// # Errors
    /// `Usage` if no group has data.
    pub fn join(&self, frames: Vec<Frame>) -> Result<Frame> {
        let used = frames.iter().map(|frame| frame.plot.rows_used).min().unwrap_or(0);
        let is_complete = frames.iter().all(Frame::is_complete);
        let is_read = frames.iter().all(|frame| frame.is_complete() || frame.is_stopped());
        let is_empty = |frame: &Frame| frame.array("x").is_none_or(|x| x.shape == [0]);
        let names = self.groups.iter().map(|(name, _)| name.clone());
        let named = names.zip(frames).filter(|(_, frame)| !is_empty(frame)).collect();
        let joined = Frame::joined(named, &self.by).ok_or_else(|| {
            Error::usage(format!("--by {}: the source has none of them, or no row of one is selected", self.by))
        })?;
        let mut frame = joined;
        frame.plot.rows_used = used;
        frame.plot.complete = is_complete;
        frame.plot.stopped = is_read && !is_complete;
        Ok(frame)
    }

    /// Makes the plot of the rows that are read so far, and reads further ones, as
    /// [`Session::frame`] does within the same time for all lines together.
    ///
    /// # Errors
    /// Those of [`Session::frame`] and [`join`](Self::join).
    pub fn frame(&self, session: &mut Session) -> Result<Frame> {
        session.set_selections(self.groups.len());
        session.set_budget(BUDGET / self.groups.len().max(1) as u32);
        let frames = self.requests().map(|request| session.frame(request)).collect::<Result<_>>();
        session.set_budget(BUDGET);
        self.join(frames?)
    }
}

impl Group {
    fn new(name: impl Into<String>, parameter: &'static str, value: impl Into<String>) -> Self {
        Group { name: name.into(), parameter, value: value.into() }
    }

    /// The groups of a source that `by`, a value of [`BY`], names: those that the parameters in
    /// `query` select.
    ///
    /// # Errors
    /// `Usage` if there are more than 64, or if `by` or a value in `query` is unknown; those of
    /// reading the scan numbers.
    pub fn all(by: &str, session: &Session, query: &[(String, String)]) -> Result<Vec<Self>> {
        let groups = groups(by, session, query)?;
        if groups.len() > MOST {
            return Err(Error::usage(format!(
                "by {by} there are more than {MOST} groups; select fewer with --antenna, --baseline, --field, --scan or --spw"
            )));
        }
        Ok(groups)
    }

    /// The parameters `query` with that of the group, which takes the place of another value.
    pub fn query(&self, query: &[(String, String)]) -> Vec<(String, String)> {
        let others = query.iter().filter(|(known, _)| known != self.parameter).cloned();
        others.chain([(self.parameter.to_owned(), self.value.clone())]).collect()
    }
}

/// `given`: parameters of the plot.
fn groups(by: &str, session: &Session, given: &[(String, String)]) -> Result<Vec<Group>> {
    let known = session.describe()?;
    let selects = |name: &str| given.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let antennas = || known.antennas.iter().map(|antenna| antenna.name.as_str()).collect();
    let fields = || known.fields.iter().map(|field| field.name.as_str()).collect();
    Ok(match by {
        "correlation" => correlations(&known, given)?,
        "antenna" => rows("antenna", antennas(), selects("antenna")),
        "field" => rows("field", fields(), selects("field")),
        "spw" => windows(&known, selects("spw")),
        "scan" => scans(session, selects("scan"))?,
        "baseline" => match selects("baseline").filter(|words| !matches!(*words, "cross" | "auto" | "all")) {
            Some(pairs) => words(pairs).map(|pair| Group::new(pair, "baseline", pair)).collect(),
            None => pairs(&known, selects("baseline").unwrap_or("cross"), selects("antenna")),
        },
        _ => return Err(Error::usage(format!("by: {by:?}, where {} can be", BY.join(", ")))),
    })
}

/// Those of the selected spectral window, parallel hands unless `corr` is given.
fn correlations(known: &Description, given: &[(String, String)]) -> Result<Vec<Group>> {
    let of_selection = given
        .iter()
        .filter(|(name, _)| ["spw", "corr", "column"].contains(&name.as_str()))
        .cloned()
        .collect::<Vec<_>>();
    let selection = Selection::new(&Request::parse(Kind::AmpTime.name(), &of_selection)?, known)?;
    let window = selection.spw.and_then(|spw| known.window(spw));
    let names = window.map_or(&[][..], |window| &window.correlations);
    let numbers = selection.correlations(Correlations::ParallelHands, names, names.len());
    Ok(numbers.into_iter().map(|number| Group::new(names[number].as_str(), "corr", names[number].as_str())).collect())
}

fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim)
}

/// Whether a parameter selects the row `number` with this name; without the parameter all are.
fn is_selected(wanted: Option<&str>, name: &str, number: usize) -> bool {
    wanted.is_none_or(|wanted| words(wanted).any(|word| means(word, name, number)))
}

/// The rows of a subtable that `parameter` selects; shared names get the numbers of their rows.
fn rows(parameter: &'static str, names: Vec<&str>, wanted: Option<&str>) -> Vec<Group> {
    let is_shared = |name: &str| !name.is_empty() && names.iter().filter(|other| **other == name).count() > 1;
    let named = |number: usize, name: &str| match is_shared(name) {
        true => format!("{name} #{number}"),
        false => label(name, number),
    };
    let found = names.iter().enumerate().filter(|(number, name)| is_selected(wanted, name, *number));
    found.map(|(number, name)| Group::new(named(number, name), parameter, format!("#{number}"))).collect()
}

fn windows(known: &Description, wanted: Option<&str>) -> Vec<Group> {
    let is_wanted = |name: &str, id: &str| wanted.is_none_or(|wanted| wanted == name || wanted == id);
    let windows = known.spectral_windows.iter().map(|window| (&window.name, window.id.to_string()));
    let windows = windows.filter(|(name, id)| is_wanted(name, id));
    windows.map(|(_, id)| Group::new(format!("spw {id}"), "spw", id)).collect()
}

/// The scans, one more at most than can be drawn.
fn scans(session: &Session, wanted: Option<&str>) -> Result<Vec<Group>> {
    let scans = session.scans(MOST + 1)?.into_iter().map(|scan| scan.to_string());
    let scans = scans.filter(|scan| wanted.is_none_or(|wanted| words(wanted).any(|word| word == scan)));
    Ok(scans.map(|scan| Group::new(format!("scan {scan}"), "scan", scan)).collect())
}

/// `which`: `auto`, `cross` or `all`. `antenna`: only baselines with one of these antennas. At most
/// `MOST` + 1, one more than can be drawn.
fn pairs(known: &Description, which: &str, antenna: Option<&str>) -> Vec<Group> {
    let is_wanted = |(number, row): (usize, &Antenna)| is_selected(antenna, &row.name, number);
    let is_wanted: Vec<bool> = known.antennas.iter().enumerate().map(is_wanted).collect();
    let count = known.antennas.len();
    let fits = |&(first, second): &(usize, usize)| {
        let is_kind = match which {
            "auto" => first == second,
            "all" => true,
            _ => first != second,
        };
        is_kind && (is_wanted[first] || is_wanted[second])
    };
    let named = |(first, second): (usize, usize)| {
        let name = |number: usize| label(&known.antennas[number].name, number);
        Group::new(format!("{}-{}", name(first), name(second)), "baseline", format!("#{first}&#{second}"))
    };
    let all = (0..count).flat_map(|first| (first..count).map(move |second| (first, second)));
    all.filter(fits).take(MOST + 1).map(named).collect()
}

/// Whether `word` may mean the row; the session refuses a word with two meanings.
fn means(word: &str, name: &str, number: usize) -> bool {
    word == name || word.strip_prefix('#').unwrap_or(word) == number.to_string()
}
