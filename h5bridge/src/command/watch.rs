//! `h5bridge watch` shows how a live file (a native HDF5 file to which a program appends rows)
//! grows, as a picture in the terminal or as lines.

mod draw;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use ctds_hdf5::ErrorKind;
use ctds_hdf5::documents::{WatchEnd, WatchLine};
use ms_look::{Alerts, Rule, Session};
use serde_json::json;

use self::draw::Screen;
use crate::args::{Global, duration};
use crate::exit::Status;
use crate::interrupt::Stop;
use crate::report;

/// Command-line arguments of `h5bridge watch`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge watch live.h5
  h5bridge watch live.h5 --interval 5s
  h5bridge watch live.h5 --alert 'no rows for 30 s' --alert 'flagged > 40 % for antenna'
  h5bridge watch live.h5 --json | jq .rows")]
pub(crate) struct Args {
    /// A live HDF5 file, to which follow or another program appends rows; also after its writer has
    /// closed it
    live: PathBuf,
    /// Poll the file at this interval: 200ms, 1s
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    interval: Duration,
    /// Stop after N polls of the file
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Print a warning when this rule holds and again when it no longer does; may be repeated.
    /// Rules: "flagged > 40 %", "flagged > 40 % for antenna" (for any antenna), "flagged > 40 % for
    /// antenna m003", "lag > 20 s", "commit age > 1 min", "rows/s < 100", "no rows for 30 s",
    /// "amplitude step > 3" (the newest integration against the mean of the ten before it)
    #[arg(long, value_name = "RULE", value_parser = rule)]
    alert: Vec<Rule>,
    /// A file with alert rules as for --alert, one on each line; # begins a comment
    #[arg(long, value_name = "FILE")]
    alerts: Option<PathBuf>,
}

fn rule(text: &str) -> Result<Rule, String> {
    text.parse().map_err(|error: ctds_hdf5::Error| error.message().to_owned())
}

/// Ends on a signal, after `--count` polls, or if the file is removed or no longer live.
pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let stop = Stop::new(global.caller.as_ref())?;
    let rules = args.alerts.as_deref().map(Rule::read_file).transpose()?.unwrap_or_default();
    let mut session = open(&args.live)?;
    let description = session.describe()?;
    args.alert.iter().try_for_each(|rule| rule.check(&description))?;
    let mut alerts = Alerts::new(args.alert.iter().cloned().chain(rules));
    session.set_integration(alerts.needs_integration());
    let mut screen = Screen::new(std::io::stdout().is_terminal());
    let mut looks = 0;
    let reason = loop {
        if args.count.is_some_and(|count| looks >= count) {
            break "count";
        }
        if looks > 0 {
            stop.sleep(args.interval);
        }
        if stop.is_set() {
            break "interrupted";
        }
        let Some(look) = session.refresh()? else { break "replaced" };
        looks += 1;
        let changes = alerts.update(&look);
        if global.json {
            report::write_line(&look, out)?;
            changes.iter().try_for_each(|alert| writeln!(out, "{}", json!(alert)))?;
        } else {
            screen.show(&args.live, &look, &alerts, &changes, out)?;
        }
        out.flush()?;
    };
    if global.json {
        let (status, reason) = (Status::Done, reason.to_owned());
        let (code, status) = (status.code(), status.name().to_owned());
        let end = WatchEnd { reason, looks, status, code, warnings: Vec::new() };
        writeln!(out, "{}", json!(WatchLine::End(end)))?;
    } else if reason == "replaced" {
        writeln!(out, "{}: gone, or no longer a live file", args.live.display())?;
    }
    Ok(Status::Done)
}

fn open(path: &Path) -> Result<Session> {
    let found = path.metadata().map_err(|error| ctds_hdf5::Error::from(error).context(path.display()));
    found.context("the live file does not exist; h5bridge follow makes one from a table that is being written")?;
    Session::open_live(path).map_err(|error| {
        let is_foreign = matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Format);
        let error = anyhow::Error::new(error);
        if is_foreign {
            error.context("only live files of h5bridge can be watched; info shows what it is")
        } else {
            error
        }
    })
}
