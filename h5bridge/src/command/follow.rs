//! `follow`: keeps a live file in step with a table that another program is writing.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use ctds_hdf5::ErrorKind;
use ctds_hdf5::live::{Durability, Follow, FollowOptions, FollowSummary};
use serde_json::json;

use crate::args::{Global, duration};
use crate::exit::Status;
use crate::interrupt::Stop;
use crate::report::{self, Ending};

/// Pause between polls while a writer is in the middle of an update, which may take only a moment.
const RETRY: Duration = Duration::from_millis(5);

/// Arguments of `follow`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge follow my.ms live.h5
  h5bridge follow my.ms live.h5 --until-closed
  h5bridge follow my.ms live.h5 --idle 60s")]
pub struct Args {
    /// A table directory that another program is writing to
    source: PathBuf,
    /// The live HDF5 file; an existing one is resumed
    live: PathBuf,
    /// Stop when no other program has the table open
    #[arg(long)]
    until_closed: bool,
    /// Stop when nothing has changed for this time: 60s, 5m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    idle: Option<Duration>,
    /// Look for changes this often
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "50ms")]
    poll: Duration,
    /// Wait for the disk at each commit
    #[arg(long)]
    fsync: bool,
    /// Replace an existing live file instead of resuming it
    #[arg(long)]
    overwrite: bool,
}

/// Follows the table until a signal or one of the options ends it.
pub fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let stop = Stop::new()?;
    let timeout = global.open_options().lock_timeout.unwrap_or_default();
    let options = FollowOptions {
        timeout,
        durability: if args.fsync { Durability::Disk } else { Durability::PageCache },
        overwrite: args.overwrite,
        cancel: stop.token(),
    };
    let start = Instant::now();
    let mut changed = Instant::now();
    let idle = |since: &Instant| args.idle.is_some_and(|idle| since.elapsed() >= idle);
    let mut follow = loop {
        match Follow::start(&args.source, &args.live, &options) {
            // it has no row yet, or the table is still being made
            Err(error)
                if error.kind() == ErrorKind::NotFound && args.source.exists() && !stop.is_set() && !idle(&changed) =>
            {
                stop.sleep(args.poll);
            }
            started => break started?,
        }
    };
    if !global.quiet {
        let verb = if follow.resumed() { "resuming" } else { "writing" };
        eprintln!("following {}, {verb} {}", args.source.display(), args.live.display());
    }
    let mut told = Vec::new();
    let (mut commits, mut rewritten) = (0u64, 0u64);
    changed = Instant::now();
    while !stop.is_set() {
        // before the look, so that what was written last is seen
        let closed = args.until_closed && !follow.is_in_use()?;
        let step = follow.step()?;
        commits += u64::from(step.rows > 0);
        rewritten += step.rewritten;
        if step.rows > 0 || step.rewritten > 0 {
            changed = Instant::now();
        }
        warn(follow.notes(), &mut told);
        if !step.more && (closed || idle(&changed)) {
            break;
        }
        if step.rows == 0 {
            stop.sleep(if step.more || step.waiting { args.poll.min(RETRY) } else { args.poll });
        }
    }
    let FollowSummary { tables, notes: warnings, .. } = follow.finish()?;
    warn(warnings.clone(), &mut told);
    let rows: u64 = tables.iter().map(|(_, rows)| rows).sum();
    let seconds = start.elapsed().as_secs_f64();
    let summary = vec![
        format!("{rows} rows of {} tables, {commits} commits, {seconds:.1} s", tables.len()),
        format!("next: h5bridge finalize {} OUT.h5", args.live.display()),
    ];
    let tables: serde_json::Map<_, _> = tables.into_iter().map(|(name, rows)| (name, rows.into())).collect();
    Ending {
        warnings: &warnings,
        warned: true,
        summary,
        fields: json!({
            "tables": tables, "commits": commits, "rewritten_blocks": rewritten, "seconds": seconds,
        }),
        ..Ending::default()
    }
    .print(global, out)
}

/// Prints those of `notes` that are not in `told` yet.
fn warn(notes: Vec<String>, told: &mut Vec<String>) {
    for note in notes {
        if !told.contains(&note) {
            report::warning(&note);
            told.push(note);
        }
    }
}
