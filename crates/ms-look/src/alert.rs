//! Alerts: warnings that begin when a rule, such as `flagged > 40 %`, holds for a table directory
//! or a live file, and end when it no longer holds. A report says that an alert begins or ends, or
//! that the antennas that it names change.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::json;

use crate::calendar::utc;
use crate::integration::{AntennaFlags, Integration};
use crate::rates::Rates;
use crate::rule::{Quantity, Rule};
use crate::sample::Look;

/// Most earlier integrations with whose mean amplitude that of the newest is compared.
const STEP_INTEGRATIONS: usize = 10;

/// Most antennas that the text of an alert names; the others are only counted.
const NAMED: usize = 8;

/// A report that an alert begins or ends: a rule, such as a limit on the percentage of flags, holds
/// for a file or no longer does. An active alert that names antennas is reported again when they
/// change. Serialized, a report is a line of `watch --json`, and the event `alert` of `serve`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Alert {
    /// Sequence number among the reports of one [`Alerts`], from 1; the beginning and the end of an
    /// alert have different numbers.
    pub number: u64,
    /// Time of the poll of the file at which the alert began or ended, or at which the antennas
    /// that it names changed.
    pub taken: SystemTime,
    /// Path of the file or table that the alert is about, as it was given when it was opened.
    pub file: PathBuf,
    /// Text of the rule that the alert is about, in the form that [`Rule`] writes:
    /// `flagged > 40 %`.
    pub rule: String,
    /// `true` if the alert begins or the antennas that it names change, `false` if it ends.
    pub active: bool,
    /// The state that the rule warns of, in words, such as `flagged 52.3 % > 40 %`; when an alert
    /// ends, `ended:` and the rule.
    pub text: String,
    /// Time of the poll at which the alert began; it is repeated in the report of its end.
    pub since: SystemTime,
    /// Revision of the file or table (number of changes seen since it was opened) at the poll at
    /// which the alert began or ended, or at which the antennas that it names changed.
    pub revision: u64,
}

impl serde::Serialize for Alert {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let document = json!({
            "event": "alert", "time": utc(self.taken), "file": self.file.display().to_string(), "rule": self.rule,
            "active": self.active, "text": self.text, "since": utc(self.since), "revision": self.revision,
        });
        document.serialize(serializer)
    }
}

/// Evaluates alert rules on the result of each poll of a file (a [`Look`]), and remembers which
/// alerts are active.
///
/// ```no_run
/// use ms_look::{Alerts, Session};
///
/// let mut session = Session::open("live.h5".as_ref())?;
/// let mut alerts = Alerts::new(["no rows for 30 s".parse()?]);
/// session.set_integration(alerts.needs_integration());
/// while let Some(look) = session.refresh()? {
///     for alert in alerts.update(&look) {
///         println!("{} {}", alert.text, if alert.active { "begins" } else { "ends" });
///     }
///     std::thread::sleep(std::time::Duration::from_secs(1));
/// }
/// # Ok::<(), ms_look::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Alerts {
    rules: Vec<Watched>,
    /// Number of reports made so far.
    count: u64,
    history: History,
}

#[derive(Debug, Clone)]
struct Watched {
    rule: Rule,
    alert: Option<Alert>,
    /// Antennas that the newest alert is about; empty if the rule does not compare single antennas.
    antennas: Vec<String>,
}

#[derive(Debug, Clone, Default)]
struct History {
    rates: Rates,
    /// Rows per second of all tables together, as a mean over five seconds.
    rate: Option<f64>,
    /// Number of rows of the main table, and the time since which it has that number.
    rows: Option<(u64, SystemTime)>,
    /// TIME in seconds of MJD, and mean amplitude.
    newest: Option<(f64, f64)>,
    /// Mean amplitudes of the integrations before the newest one, oldest first, ten at most.
    before: VecDeque<f64>,
}

/// Value of the quantity of a rule at one poll.
enum Finding {
    /// Unknown at this poll: the alert stays active or inactive.
    Unknown,
    /// The file does not grow any more, so that missing rows are normal: the alert ends.
    Ended,
    Value(f64),
    /// Names, and percentages that are flagged in the newest integration.
    Antennas(Vec<(String, f64)>),
}

impl Alerts {
    /// Creates an evaluator of the given alert rules; equal rules count once.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        let mut alerts = Alerts::default();
        alerts.set_rules(rules);
        alerts
    }

    /// Replaces the rules. A rule that was set before keeps its state; active alerts of removed
    /// rules disappear without a report.
    pub fn set_rules(&mut self, rules: impl IntoIterator<Item = Rule>) {
        let mut before = std::mem::take(&mut self.rules);
        for rule in rules {
            if self.rules.iter().any(|watched| watched.rule == rule) {
                continue;
            }
            let known = before.iter().position(|watched| watched.rule == rule).map(|at| before.swap_remove(at));
            self.rules.push(known.unwrap_or(Watched { rule, alert: None, antennas: Vec::new() }));
        }
    }

    /// Whether one of the rules needs a summary of the newest integration in the result of each
    /// poll, which [`Session::set_integration`](crate::Session::set_integration) turns on.
    pub fn needs_integration(&self) -> bool {
        self.rules.iter().any(|watched| watched.rule.needs_integration())
    }

    /// The newest report of each rule that has had one, in the order of the rules.
    pub fn newest(&self) -> impl Iterator<Item = &Alert> {
        self.rules.iter().filter_map(|watched| watched.alert.as_ref())
    }

    /// Evaluates the rules on the result of a poll; returns the alerts that begin or end with it.
    /// An active alert that names antennas is returned again when its antennas change.
    pub fn update(&mut self, look: &Look) -> Vec<Alert> {
        self.history.add(look);
        let mut found = Vec::new();
        for watched in &mut self.rules {
            if let Some(mut alert) = watched.judge(look, &self.history) {
                self.count += 1;
                alert.number = self.count;
                watched.alert = Some(alert.clone());
                found.push(alert);
            }
        }
        found
    }
}

impl Watched {
    /// Returns a report if the alert begins or ends, or the antennas that it names change.
    fn judge(&mut self, look: &Look, history: &History) -> Option<Alert> {
        let finding = self.find(look, history);
        let antennas = match &finding {
            Finding::Unknown => return None,
            Finding::Antennas(found) => {
                found.iter().filter(|(_, value)| self.holds(*value)).map(|(name, _)| name.clone()).collect()
            }
            _ => Vec::new(),
        };
        let active = matches!(finding, Finding::Value(value) if self.holds(value)) || !antennas.is_empty();
        let before = self.alert.as_ref().filter(|alert| alert.active);
        if active == before.is_some() && antennas == self.antennas {
            return None;
        }
        let alert = Alert {
            number: 0,
            taken: look.taken,
            file: look.file.clone(),
            rule: self.rule.to_string(),
            active,
            text: if active { self.text(&finding) } else { format!("ended: {}", self.rule) },
            since: before.map_or(look.taken, |alert| alert.since),
            revision: look.revision,
        };
        self.antennas = antennas;
        Some(alert)
    }

    fn holds(&self, value: f64) -> bool {
        if self.rule.is_above { value > self.rule.limit } else { value < self.rule.limit }
    }

    fn find(&self, look: &Look, history: &History) -> Finding {
        let value = |value: Option<f64>| value.map_or(Finding::Unknown, Finding::Value);
        let growing = |found: Option<f64>| if grows(look) { value(found) } else { Finding::Ended };
        match &self.rule.quantity {
            Quantity::Flagged => value(look.flagged.map(|fraction| 100. * fraction)),
            Quantity::AntennaFlagged(wanted) => antennas(look.integration.as_ref(), wanted.as_deref()),
            Quantity::Lag => growing(look.lag()),
            Quantity::CommitAge => growing(Some(look.age.as_secs_f64())),
            Quantity::RowRate => growing(history.rate),
            Quantity::Silence => growing(history.silence(look)),
            Quantity::AmplitudeStep => value(history.step()),
        }
    }

    /// The state that a rule warns of: `flagged 52.3 % > 40 %`.
    fn text(&self, finding: &Finding) -> String {
        let (name, condition, unit) = (self.rule.name(), self.rule.condition(), self.rule.unit());
        match finding {
            Finding::Antennas(found) => {
                let holding: Vec<_> = found.iter().filter(|(_, value)| self.holds(*value)).collect();
                let words = |(antenna, value): &&(String, f64)| format!("{antenna} ({}{unit})", short(*value));
                let mut words: Vec<String> = holding.iter().take(NAMED).map(words).collect();
                if holding.len() > NAMED {
                    words.push(format!("{} more", holding.len() - NAMED));
                }
                format!("{name} {condition} for antenna {}", words.join(", "))
            }
            Finding::Value(value) if self.rule.quantity == Quantity::Silence => {
                format!("no rows for {} s", short(*value))
            }
            Finding::Value(value) => format!("{name} {}{unit} {condition}", short(*value)),
            Finding::Unknown | Finding::Ended => self.rule.to_string(),
        }
    }
}

/// False for an HDF5 file that its writer has closed; true for a table directory, which does not
/// record whether its writer has ended.
fn grows(look: &Look) -> bool {
    match look.kind {
        "live" => look.is_open,
        kind => kind == "table",
    }
}

/// Flagged percentages; `wanted` is a name or number. `Unknown` if no such antenna has rows.
fn antennas(integration: Option<&Integration>, wanted: Option<&str>) -> Finding {
    let Some(integration) = integration else { return Finding::Unknown };
    let is_wanted = |flags: &&AntennaFlags| {
        wanted.is_none_or(|name| flags.name == name || is_number(name, flags.number, integration))
    };
    let found: Vec<_> = integration.flagged.iter().filter(is_wanted).collect();
    if found.is_empty() {
        return Finding::Unknown;
    }
    Finding::Antennas(found.into_iter().map(|flags| (flags.name.clone(), 100. * flags.fraction)).collect())
}

/// Whether `word` means the antenna with this number: `#5`, or `5` if no antenna has that name.
fn is_number(word: &str, number: usize, integration: &Integration) -> bool {
    match word.strip_prefix('#') {
        Some(row) => row.parse() == Ok(number),
        None => word.parse() == Ok(number) && !integration.flagged.iter().any(|flags| flags.name == word),
    }
}

/// Two decimals at most below 10, one below 100, none above.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100. => 0,
        size if size >= 10. => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

impl History {
    fn add(&mut self, look: &Look) {
        self.rate = self.rates.add(look).map(|(rows, _)| rows);
        let rows = look.rows.first().map_or(0, |(_, rows)| *rows);
        match self.rows {
            Some((before, _)) if before == rows => {}
            Some(_) => self.rows = Some((rows, look.taken)),
            // the newest commit was before the first look
            None => self.rows = Some((rows, look.taken.checked_sub(look.age).unwrap_or(look.taken))),
        }
        let Some((time, amplitude)) = look.integration.as_ref().and_then(|found| Some((found.time, found.amplitude?)))
        else {
            return;
        };
        if let Some((_, before)) = self.newest.filter(|(before, _)| *before != time) {
            self.before.push_back(before);
            if self.before.len() > STEP_INTEGRATIONS {
                self.before.pop_front();
            }
        }
        self.newest = Some((time, amplitude));
    }

    /// Seconds since the main table last grew.
    fn silence(&self, look: &Look) -> Option<f64> {
        let (_, since) = self.rows?;
        Some(look.taken.duration_since(since).unwrap_or_default().as_secs_f64())
    }

    /// Newest mean amplitude, divided by the average of those before it; `None` if still unknown.
    fn step(&self) -> Option<f64> {
        let (_, newest) = self.newest?;
        let mean = self.before.iter().sum::<f64>() / self.before.len() as f64;
        Some(newest / mean).filter(|ratio| ratio.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sample::tests::look;

    fn alerts(rules: &[&str]) -> Alerts {
        Alerts::new(rules.iter().map(|rule| rule.parse().unwrap()))
    }

    /// The alerts that begin, `+`, and end, `-`, with a look.
    fn changes(alerts: &mut Alerts, look: &Look) -> Vec<String> {
        let change = |alert: &Alert| format!("{}{}", if alert.active { '+' } else { '-' }, alert.text);
        alerts.update(look).iter().map(change).collect()
    }

    #[test]
    fn an_alert_begins_and_ends_once() {
        let mut alerts = alerts(&["flagged > 40 %", "flagged < 0.5 %"]);
        let mut at = |second: f64, flagged: Option<f64>| {
            let look = Look { flagged, revision: second as u64, ..look(second, 100) };
            (changes(&mut alerts, &look), alerts.newest().last().cloned())
        };
        assert_eq!(at(0., Some(0.4)).0, [""; 0], "the limit itself is not above it");
        let (begin, alert) = at(1., Some(0.5231));
        assert_eq!(begin, ["+flagged 52.3 % > 40 %"]);
        let first = alert.unwrap();
        assert_eq!((first.number, first.revision, first.rule.as_str()), (1, 1, "flagged > 40 %"));
        assert_eq!(at(2., Some(0.9)).0, [""; 0]);
        assert_eq!(at(3., None).0, [""; 0], "what is not known changes nothing");
        let (end, alert) = at(4., Some(0.1));
        assert_eq!(end, ["-ended: flagged > 40 %"]);
        let last = alert.unwrap();
        assert_eq!((last.number, last.since, last.active), (2, first.since, false));
        assert!(last.taken > last.since);
        assert_eq!(at(5., Some(0.004)).0, ["+flagged 0.4 % < 0.5 %"]);
        let document = serde_json::to_value(&first).unwrap();
        let expected = serde_json::json!({
            "event": "alert", "time": "2001-09-09T01:46:41.0Z", "file": "live.h5", "rule": "flagged > 40 %",
            "active": true, "text": "flagged 52.3 % > 40 %", "since": "2001-09-09T01:46:41.0Z", "revision": 1,
        });
        assert_eq!(document, expected);
    }

    #[test]
    fn rules_of_growth() {
        let rules = ["lag > 20 s", "commit age > 1 min", "rows/s < 100", "no rows for 30 s"];
        let mut alerts = alerts(&rules);
        let mut at = |second: f64, rows: u64, age: u64, lag: f64, is_open: bool| {
            let mut look = Look { age: Duration::from_secs(age), is_open, ..look(second, rows) };
            look.newest.as_mut().unwrap().mjd_seconds -= lag;
            changes(&mut alerts, &look)
        };
        assert_eq!(at(0., 0, 0, 0., true), [""; 0]);
        assert_eq!(at(2., 400, 0, 10., true), [""; 0]);
        assert_eq!(at(20., 400, 18, 20.5, true), ["+lag 20.5 s > 20 s", "+rows/s 0 < 100"]);
        assert_eq!(at(32., 400, 30, 90_000., true), [""; 0], "a lag beyond a day is not known");
        assert_eq!(at(33., 400, 31, 33., true), ["+no rows for 31 s"]);
        assert_eq!(at(63., 400, 61, 63., true), ["+commit age 61 s > 60 s"]);
        let ended = rules.map(|rule| rule.replace("1 min", "60 s")).map(|rule| format!("-ended: {rule}"));
        assert_eq!(at(64., 400, 62, 64., false), ended, "a closed file does not grow");
        let mut silent = self::alerts(&["no rows for 30 s"]);
        let look = Look { age: Duration::from_secs(100), ..look(0., 5) };
        assert_eq!(changes(&mut silent, &look), ["+no rows for 100 s"], "the silence before the first look counts");
        let mut file = self::alerts(&["no rows for 30 s"]);
        assert_eq!(changes(&mut file, &Look { kind: "hdf5", ..look.clone() }), [""; 0]);
        assert_eq!(changes(&mut file, &Look { kind: "table", is_open: false, ..look }), ["+no rows for 100 s"]);
    }

    fn integration(time: f64, amplitude: Option<f64>, flagged: &[(usize, f64)]) -> Option<Integration> {
        let name = |number: usize| format!("m{number:03}");
        let of = |&(number, fraction): &(usize, f64)| AntennaFlags { number, name: name(number), fraction };
        Some(Integration { time, amplitude, flagged: flagged.iter().map(of).collect() })
    }

    #[test]
    fn flags_of_antennas() {
        let rules = ["flagged > 40 % for antenna", "flagged > 40 % for antenna m003", "flagged > 40 % for antenna 4"];
        let mut alerts = alerts(&rules);
        assert!(alerts.needs_integration() && !self::alerts(&["flagged > 40 %"]).needs_integration());
        let mut at = |flagged: &[(usize, f64)]| {
            let look = Look { integration: integration(0., None, flagged), flagged: Some(0.), ..look(0., 5) };
            changes(&mut alerts, &look)
        };
        assert_eq!(at(&[(1, 0.4), (3, 0.1), (4, 0.)]), [""; 0]);
        let begin = ["+flagged > 40 % for antenna m001 (50 %)", "+flagged > 40 % for antenna m004 (41.2 %)"];
        assert_eq!(at(&[(1, 0.5), (3, 0.1)])[..], begin[..1]);
        assert_eq!(at(&[(4, 0.412)]), [begin[1], begin[1]], "it names others, and the third rule is about them");
        assert_eq!(at(&[(4, 0.9)]), [""; 0]);
        assert_eq!(at(&[(3, 1.)]), ["+flagged > 40 % for antenna m003 (100 %)"; 2]);
        let ended = rules.map(|rule| format!("-ended: {rule}"));
        assert_eq!(at(&[(3, 0.), (4, 0.)]), ended);
        let many: Vec<(usize, f64)> = (10..20).map(|number| (number, 0.5)).collect();
        assert!(at(&many)[0].ends_with("m017 (50 %), 2 more"), "{:?}", at(&many));
    }

    #[test]
    fn steps_of_the_amplitude() {
        let mut alerts = alerts(&["amplitude step > 3", "amplitude step < 0.3"]);
        let mut at = |time: f64, amplitude: Option<f64>| {
            changes(&mut alerts, &Look { integration: integration(time, amplitude, &[]), ..look(time, 5) })
        };
        assert_eq!(at(0., Some(9.)), [""; 0], "the first is compared with nothing");
        assert_eq!(at(0., Some(2.)), [""; 0], "it was not whole");
        assert_eq!(at(1., Some(1.)), [""; 0]);
        assert_eq!(at(2., Some(4.5)), [""; 0], "3 times the mean of 2 and 1");
        assert_eq!(at(3., Some(8.)), ["+amplitude step 3.2 > 3"], "the mean of 2, 1 and 4.5");
        assert_eq!(at(4., None), [""; 0]);
        assert_eq!(at(5., Some(8.)), ["-ended: amplitude step > 3"]);
        for time in 6..20 {
            assert_eq!(at(time.into(), Some(8.)), [""; 0]);
        }
        assert_eq!(at(20., Some(2.)), ["+amplitude step 0.25 < 0.3"], "ten integrations of 8");
    }

    #[test]
    fn rules_that_stay_keep_their_state() {
        let rule = |text: &str| text.parse::<Rule>().unwrap();
        let mut alerts = alerts(&["flagged > 40 %", "flagged > 40 %"]);
        let look = Look { flagged: Some(0.5), ..look(0., 5) };
        assert_eq!(changes(&mut alerts, &look).len(), 1);
        alerts.set_rules([rule("flagged > 10 %"), rule("flagged > 40 %")]);
        assert_eq!(changes(&mut alerts, &look), ["+flagged 50 % > 10 %"]);
        assert_eq!(alerts.newest().map(|alert| alert.number).collect::<Vec<_>>(), [2, 1]);
        alerts.set_rules([]);
        assert!(alerts.newest().next().is_none() && changes(&mut alerts, &look).is_empty());
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0., 0.25, 3.2, 31., 99.96, 12345.6].map(short), ["0", "0.25", "3.2", "31", "100", "12346"]);
    }
}
