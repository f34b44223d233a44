//! Reports the progress of a verb (subcommand) of `h5bridge` on stderr: a bar on a terminal,
//! otherwise a line for each table.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ctds_hdf5::convert::display_name;
use ctds_hdf5::program::LockUnpoisoned;
use ctds_hdf5::{Phase, Progress};
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::stderr;

/// Shorter runs print only their summary, if stderr is not a terminal.
const SILENT: Duration = Duration::from_secs(1);

/// A bar on stderr if that is a terminal, else lines; nothing with `--quiet`.
pub(crate) struct Bar {
    bar: ProgressBar,
    lines: Option<Mutex<Lines>>,
}

struct Lines {
    start: Instant,
    /// Tables whose conversion has begun, in order.
    tables: Vec<String>,
    phase: Option<Phase>,
    /// Lines held back during the first second.
    waiting: Vec<String>,
}

impl Bar {
    /// `bytes` is 0 if it is not known yet.
    pub(crate) fn new(bytes: u64, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr_with_hz(8));
        let is_shown = !quiet && std::io::stderr().is_terminal();
        if !is_shown {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let style = "{prefix} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} left  {msg}";
        bar.set_style(ProgressStyle::with_template(style).expect("the template is constant and valid"));
        let lines = || Lines { start: Instant::now(), tables: Vec::new(), phase: None, waiting: Vec::new() };
        Bar { bar, lines: (!quiet && !is_shown).then(|| Mutex::new(lines())) }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn print(lines: &mut Lines) {
        if lines.start.elapsed() >= SILENT {
            lines.waiting.drain(..).for_each(stderr::line);
        }
    }

    /// Bytes done and in all, speed and time left; empty as long as these are not known.
    fn so_far(&self) -> String {
        let (done, total) = (self.bar.position(), self.bar.length().unwrap_or(0));
        if done == 0 || total == 0 {
            return String::new();
        }
        let rate = HumanBytes(self.bar.per_sec() as u64);
        let left = HumanDuration(self.bar.eta());
        format!("; {} of {} done, {rate}/s, {left} left", HumanBytes(done), HumanBytes(total))
    }
}

impl Progress for Bar {
    fn expect(&self, bytes: u64) {
        self.bar.set_length(bytes);
    }

    fn advance(&self, bytes: u64, table: &str, column: &str) {
        if let Some(lines) = &self.lines {
            let mut lines = lines.lock_unpoisoned();
            if !lines.tables.iter().any(|known| known == table) {
                let phase = lines.phase.map_or("reading", Phase::name);
                let line = format!("{phase} {}{}", display_name(table), self.so_far());
                lines.tables.push(table.to_owned());
                lines.waiting.push(line);
            }
            Self::print(&mut lines);
        } else if self.bar.is_hidden() {
            return;
        }
        self.bar.inc(bytes);
        self.bar.set_message(if table == "." { column.to_owned() } else { format!("{table}/{column}") });
    }

    fn phase(&self, phase: Phase) {
        self.bar.set_prefix(phase.name());
        if let Some(lines) = &self.lines {
            let mut lines = lines.lock_unpoisoned();
            lines.phase = Some(phase);
            lines.tables.clear();
            if phase == Phase::Flushing {
                lines.waiting.push("flushing to disk".to_owned());
            }
            Self::print(&mut lines);
        }
    }
}
