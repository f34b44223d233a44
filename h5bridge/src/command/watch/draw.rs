//! Output of `h5bridge watch`: a picture that is redrawn in place on a terminal, otherwise a line
//! for each poll.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use console::{Term, style, truncate_str};
use ms_look::{Alert, Alerts, Amplitudes, AmplitudesBy as Kind, Look, utc};

/// Bars from amplitude 0 to the largest one shown.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// Tables beside the main one.
const LISTED_TABLES: usize = 4;

/// A terminal, or lines if stdout is not one.
pub(crate) struct Screen {
    is_terminal: bool,
    /// Lines of the last picture, over which the next is drawn; 0 before the first.
    lines: usize,
}

impl Screen {
    pub(crate) fn new(is_terminal: bool) -> Self {
        Screen { is_terminal, lines: 0 }
    }

    /// Shows one poll: on a terminal with all active alerts, else with those that begin or end.
    pub(crate) fn show(
        &mut self,
        path: &Path,
        look: &Look,
        alerts: &Alerts,
        changes: &[Alert],
        out: &mut impl Write,
    ) -> Result<()> {
        if !self.is_terminal {
            writeln!(out, "{}", line(look))?;
            changes.iter().try_for_each(|alert| writeln!(out, "{}  alert: {}", utc(alert.taken), alert.text))?;
            return Ok(());
        }
        let (height, width) = Term::stdout().size();
        let (height, width) = (usize::from(height), usize::from(width).max(20));
        let mut lines = picture(path, look, width - 1);
        let active = alerts.newest().filter(|alert| alert.active);
        let texts =
            active.map(|alert| format!("  {}", style(format!("{}, since {}", alert.text, utc(alert.since))).red()));
        // after the name of the file
        lines.splice(1..1, texts.collect::<Vec<_>>());
        // lines that have scrolled away cannot be drawn over
        lines.truncate(height.saturating_sub(1).max(1));
        let mut picture = String::new();
        if self.lines > 0 {
            write!(picture, "\x1b[{}A\r", self.lines)?;
        }
        for line in &lines {
            writeln!(picture, "{}\x1b[K", truncate_str(line, width - 1, "…"))?;
        }
        picture.push_str("\x1b[J");
        self.lines = lines.len();
        out.write_all(picture.as_bytes())?;
        Ok(())
    }
}

fn line(look: &Look) -> String {
    let mut parts = vec![utc(look.taken)];
    parts.extend(look.rows.first().map(|(name, rows)| format!("{name} {}", thousands(*rows))));
    parts.push(format!("{}, {}", rows_rate(look.rows_per_second), bytes_rate(look.bytes_per_second)));
    parts.push(format!("committed {} ago", seconds(look.age.as_secs_f64())));
    parts.extend(look.newest.as_ref().map(|time| format!("newest {}", time.utc)));
    parts.extend(look.flagged.map(|fraction| format!("{:.1} % flagged", 100. * fraction)));
    if !look.is_open {
        parts.push("closed".to_owned());
    }
    parts.join("  ")
}

fn picture(path: &Path, look: &Look, width: usize) -> Vec<String> {
    let state = match look.is_open {
        true => style("● live").green(),
        false => style("■ closed").yellow(),
    };
    let mut lines = vec![format!("{}  {state}", style(path.display()).bold())];
    let mut field = |name: &str, value: String| lines.push(format!("  {} {value}", style(format!("{name:<9}")).dim()));
    let rows = look.rows.first().map_or(0, |(_, rows)| *rows);
    field(
        "rows",
        format!("{}   {}   {}", thousands(rows), rows_rate(look.rows_per_second), bytes_rate(look.bytes_per_second)),
    );
    field("committed", format!("{} ago", seconds(look.age.as_secs_f64())));
    if let Some(newest) = &look.newest {
        field("newest", format!("{} UTC", newest.utc.trim_end_matches('Z').replace('T', " ")));
    }
    if let Some(flagged) = look.flagged {
        field("flagged", format!("{:.1} %", 100. * flagged));
    }
    let others = look.rows.iter().skip(1).filter(|(_, rows)| *rows > 0);
    let mut others: Vec<String> = others.map(|(name, rows)| format!("{name} {}", thousands(*rows))).collect();
    if !others.is_empty() {
        let more = others.len().saturating_sub(LISTED_TABLES);
        others.truncate(LISTED_TABLES);
        let more = if more > 0 { format!("  and {more} more") } else { String::new() };
        field("also", format!("{}{more}", others.join("  ")));
    }
    if let Some(amplitudes) = &look.amplitudes {
        lines.push(String::new());
        lines.extend(strip(amplitudes, width.saturating_sub(4)));
    }
    lines
}

/// Bars by antenna or shades by time and channel, `width` on a line at most, after a title.
fn strip(amplitudes: &Amplitudes, width: usize) -> Vec<String> {
    let means = amplitudes.means.iter().flatten().flatten();
    let largest = means.copied().fold(0., f64::max);
    let count = amplitudes.means.iter().map(Vec::len).max().unwrap_or(0);
    let (by, marks) = match amplitudes.by {
        Kind::Antenna => (format!("by antenna, 0 to {}", count.saturating_sub(1)), &BARS[..]),
        Kind::Waterfall => {
            (format!("by time (newest last) and channel, 0 to {}", count.saturating_sub(1)), &SHADES[..])
        }
    };
    let title = format!("  mean |{}| {by}; {} is {largest:.4}", amplitudes.column, marks[marks.len() - 1]);
    let row = |means: &Vec<Option<f64>>| {
        let marks: String = fold(means, width).into_iter().map(|mean| mark(mean, largest, marks)).collect();
        format!("  {}", style(marks).cyan())
    };
    std::iter::once(style(title).dim().to_string()).chain(amplitudes.means.iter().map(row)).collect()
}

/// Means of runs of neighbours without unknown ones; `None` if a whole run is unknown.
fn fold(means: &[Option<f64>], width: usize) -> Vec<Option<f64>> {
    let each = means.len().div_ceil(width.max(1)).max(1);
    let mean = |group: &[Option<f64>]| {
        let known: Vec<f64> = group.iter().flatten().copied().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    means.chunks(each).map(mean).collect()
}

/// `marks` go from amplitude 0 to `largest`; a blank for an unknown mean.
fn mark(mean: Option<f64>, largest: f64, marks: &[char]) -> char {
    let Some(mean) = mean else { return ' ' };
    let fraction = if largest > 0. { mean / largest } else { 0. };
    marks[((fraction * marks.len() as f64) as usize).min(marks.len() - 1)]
}

fn rows_rate(rate: Option<f64>) -> String {
    rate.map_or_else(|| "– rows/s".to_owned(), |rate| format!("{rate:.1} rows/s"))
}

fn bytes_rate(rate: Option<f64>) -> String {
    rate.map_or_else(|| "– MB/s".to_owned(), |rate| format!("{:.2} MB/s", rate / 1e6))
}

/// `0.3 s`, `12 s`, `5 min`, `3.2 h`, `12 d`.
fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 10. => format!("{s:.1} s"),
        s if s < 120. => format!("{s:.0} s"),
        s if s < 7200. => format!("{:.0} min", s / 60.),
        s if s < 172_800. => format!("{:.1} h", s / 3600.),
        s => format!("{:.0} d", s / 86400.),
    }
}

/// `1 234 567`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1 000", "1 234 567"]);
        assert_eq!([0.25, 59.6, 600., 7200., 864_000.].map(seconds), ["0.2 s", "60 s", "10 min", "2.0 h", "10 d"]);
    }

    #[test]
    fn strips_fit_their_width() {
        let means = vec![vec![Some(0.), None, Some(1.), Some(4.)]];
        let amplitudes = Amplitudes { column: "DATA", by: Kind::Antenna, means };
        console::set_colors_enabled(false);
        let lines = strip(&amplitudes, 80);
        assert_eq!(lines, ["  mean |DATA| by antenna, 0 to 3; █ is 4.0000", "  ▁ ▃█"]);
        assert_eq!(strip(&amplitudes, 2)[1], "  ▁▆");
        assert_eq!(strip(&Amplitudes { means: vec![], ..amplitudes }, 2).len(), 1);
    }
}
