//! `follow` copies new rows of a table that another program is writing into a live file, a native
//! HDF5 file that can be read at the same time.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use ctds_hdf5::documents;
use ctds_hdf5::live::{Durability, Follow, FollowEvent, FollowSummary};

use crate::args::{Global, duration};
use crate::exit::Status;
use crate::interrupt::Stop;
use crate::report::{self, Ending};
use crate::stderr;

/// Command-line arguments of `h5bridge follow`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge follow my.ms live.h5
  h5bridge follow my.ms live.h5 --until-closed
  h5bridge follow my.ms live.h5 --idle 60s")]
pub(crate) struct Args {
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
    /// Poll for changes at this interval: 200ms, 1s
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "50ms")]
    poll: Duration,
    /// Flush to disk (fsync) at each commit, when new rows become visible to readers
    #[arg(long)]
    fsync: bool,
    /// Replace an existing live file instead of resuming it
    #[arg(long)]
    overwrite: bool,
}

/// Runs until a signal, or `--until-closed` or `--idle`, ends it.
pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let stop = Stop::new(global.caller.as_ref())?;
    let timeout = global.patience().unwrap_or_default();
    let follow = Follow::new(&args.source, &args.live)
        .timeout(timeout)
        .durability(if args.fsync { Durability::Disk } else { Durability::PageCache })
        .overwrite(args.overwrite)
        .poll(args.poll)
        .until_closed(args.until_closed)
        .idle(args.idle)
        .cancel(&stop.token());
    let start = Instant::now();
    let observe = |event: FollowEvent<'_>| match event {
        FollowEvent::Started { resumed } if !global.quiet => {
            let verb = if resumed { "resuming" } else { "writing" };
            stderr::line(format_args!("following {}, {verb} {}", args.source.display(), args.live.display()));
        }
        FollowEvent::Note(note) if global.caller.is_none() => report::warning(note),
        _ => {}
    };
    let followed = follow.run(observe)?;
    let FollowSummary { tables, notes: warnings, commits, .. } = &followed;
    let rows: u64 = tables.iter().map(|(_, rows)| rows).sum();
    let seconds = start.elapsed().as_secs_f64();
    let mut summary = vec![format!("{rows} rows of {} tables, {commits} commits, {seconds:.1} s", tables.len())];
    if stop.is_set() {
        summary.push(format!("interrupted; {} is whole, the same command resumes", args.live.display()));
    }
    summary.push(format!("next: h5bridge finalize {} OUT.h5", args.live.display()));
    Ending { warnings, warned: true, summary, ..Ending::default() }
        .print(global, out, || documents::Follow::new(&followed, seconds))
}
