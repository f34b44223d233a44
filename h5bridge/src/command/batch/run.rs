//! `batch run` does the items (jobs) of a manifest that are not done yet, each in a child process.

use std::io::Write;
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use anyhow::Result;
use ctds_hdf5::documents::{BatchDoneNow, BatchRun};
use ctds_hdf5::{Error, ErrorKind, Progress};

use super::files::Files;
use crate::args::{Global, duration, size};
use crate::batch::{Checksum, Limits, Manifest, Program, Run, Shard, State, Tally, Trust, Work};
use crate::exit::Status;
use crate::interrupt::Stop;
use crate::progress::Bar;
use crate::report::{self, Ending};

/// Larger manifests learn from the ledger which items are done, unless `--trust` is given.
const MANY: usize = 10_000;

/// Command-line arguments of `h5bridge batch run`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge batch run all.ndjson --ledger ledger --jobs 4 --checksums adler32,md5
  h5bridge batch run all.ndjson --ledger ledger --shard 3/100 --stop-after 3h50m
  h5bridge batch run all.ndjson --ledger ledger --again")]
pub(super) struct Args {
    #[command(flatten)]
    files: Files,
    /// Do only share K of N, counted from 0: all shares have about the same bytes, and every
    /// process computes the same division
    #[arg(long, value_name = "K/N", default_value = "0/1")]
    shard: Shard,
    /// Items that are done at the same time; 0: one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    jobs: usize,
    /// Threads of each item; 0: the number of processors divided by --jobs, at least 1
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    /// Start no more items when the run has lasted this long (3h50m, 90s); items that are running
    /// are finished
    #[arg(long, value_name = "TIME", value_parser = time)]
    stop_after: Option<Duration>,
    /// Start items so that the bytes of their sources stay below a rate in bytes per second, on
    /// average: 500M
    #[arg(long, value_name = "RATE", value_parser = size)]
    limit_read: Option<u64>,
    /// Start an item only while the file system of its target has at least this free space, in
    /// bytes: 512M, 1G
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    min_free: u64,
    /// Maximum number of repetitions of an item that fails for a reason that may pass, such as a
    /// lock
    #[arg(long, value_name = "N", default_value_t = 2)]
    retries: u32,
    /// Pause before the first repetition of an item; each later pause is six times as long as this
    /// one
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    retry_wait: Duration,
    /// Also try items again that failed for good, were killed, or have a conflict (the existing
    /// target is not the output of the item, or the source has changed)
    #[arg(long)]
    again: bool,
    /// Evidence that an item is done: the ledger, the receipt beside the target
    /// (TARGET.receipt.json), or in addition the digest of the target [default: receipt, and ledger
    /// for more than 10000 items]
    #[arg(long, value_enum, value_name = "EVIDENCE")]
    trust: Option<Trust>,
    /// Do not read the records of earlier runs: receipts (TARGET.receipt.json) alone tell which
    /// items are done. Saves time if few items are run with a large ledger
    #[arg(long)]
    ignore_ledger: bool,
    /// Kinds of checksums that are computed of each target and recorded in its receipt,
    /// TARGET.receipt.json
    #[arg(long, value_enum, value_delimiter = ',', value_name = "A,B")]
    checksums: Vec<Checksum>,
    /// Print the result of each attempt at an item as a line of JSON, as the ledger records it,
    /// instead of the summary
    #[arg(long, conflicts_with = "json")]
    records: bool,
}

/// `3h50m`.
fn time(text: &str) -> Result<Duration, String> {
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    loop {
        let unit = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let end = rest[unit..].find(|c: char| !c.is_ascii_alphabetic()).map_or(rest.len(), |end| unit + end);
        let part = duration(&rest[..end])?;
        total = total.checked_add(part).ok_or("the time is too long")?;
        rest = &rest[end..];
        if rest.is_empty() {
            return Ok(total);
        }
    }
}

pub(super) fn run(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    if global.caller.is_some() {
        let message = "batch run starts processes: run the command instead of calling it";
        return Err(Error::new(ErrorKind::Unsupported, message).into());
    }
    let stop = Stop::new(None)?;
    let manifest = args.files.open()?;
    let limits = args.limits();
    let work = args.work(&manifest, limits.jobs, global)?;
    let run = Run {
        manifest: &manifest,
        ledger: &args.files.ledger,
        work: &work,
        limits: &limits,
        shard: args.shard,
        with_ledger: !args.ignore_ledger,
        again: args.again,
    };
    let bytes = (0..manifest.len()).map(|item| manifest.bytes(item)).sum();
    let bar = Bar::new(bytes, global.quiet || global.json || args.records);
    let tally = run.run(&stop, &mut |record| {
        bar.advance(record.bytes, ".", record.state.name());
        if args.records {
            serde_json::to_writer(&mut *out, record).map_err(std::io::Error::from)?;
            out.write_all(b"\n")?;
            out.flush()?;
        }
        Ok(())
    });
    bar.finish();
    let tally = tally?;
    let status = status(&tally, &stop);
    if args.records {
        return Ok(status);
    }
    let (list, ledger) = (manifest.path().display(), args.files.ledger.display());
    let mut warnings = Vec::new();
    if tally.warned > 0 {
        let shown = format!("`h5bridge batch status {list} --ledger {ledger} --records`");
        warnings.push(format!("{} of the items were done with warnings, which {shown} lists", tally.warned));
    }
    let seconds = started.elapsed().as_secs_f64();
    let mut ending = Ending { warnings: &warnings, summary: summary(&tally, seconds), ..Ending::default() };
    if status != Status::Done {
        ending.failed = Some(status);
        ending.summary.push(format!("next: h5bridge batch status {list} --ledger {ledger} --failed"));
    }
    ending.print(global, out, || document(&tally, &manifest, seconds))
}

impl Args {
    fn limits(&self) -> Limits {
        Limits {
            jobs: if self.jobs == 0 { processors() } else { self.jobs },
            retries: self.retries,
            retry_wait: self.retry_wait,
            stop_after: self.stop_after,
            read_rate: self.limit_read,
            min_free: self.min_free,
        }
    }

    fn work(&self, manifest: &Manifest, jobs: usize, global: &Global) -> Result<Work> {
        let threads = if self.threads == 0 { (processors() / jobs).max(1) } else { self.threads };
        let trust = self.trust.unwrap_or(if manifest.len() > MANY { Trust::Ledger } else { Trust::Receipt });
        let program = Program::new(&global.program)?;
        Ok(Work::new(program, &global.words(), threads, trust).checksums(&self.checksums))
    }
}

fn processors() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

fn status(tally: &Tally, stop: &Stop) -> Status {
    match () {
        () if stop.is_set() => Status::Interrupted,
        () if !tally.is_finished() => Status::Failed,
        () if tally.incomplete > 0 => Status::Warnings,
        () => Status::Done,
    }
}

fn summary(tally: &Tally, seconds: f64) -> Vec<String> {
    let counts = State::ALL.map(|state| (tally.count(state), state.name()));
    let words: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    vec![
        format!("{} items: {}", tally.items(), words.join(", ")),
        format!(
            "done now: {}, {} of sources, {} of targets; {seconds:.1} s",
            tally.done_now,
            report::bytes(tally.bytes),
            report::bytes(tally.file_bytes)
        ),
    ]
}

fn document(tally: &Tally, manifest: &Manifest, seconds: f64) -> BatchRun {
    BatchRun {
        manifest: manifest.path().display().to_string(),
        items: tally.items(),
        repeated: manifest.repeated() as u64,
        states: State::ALL.iter().map(|&state| (state.name().to_owned(), tally.count(state))).collect(),
        with_warnings: tally.warned,
        done_now: BatchDoneNow { items: tally.done_now, bytes: tally.bytes, file_bytes: tally.file_bytes },
        seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_several_units() {
        assert_eq!(time("3h50m"), Ok(Duration::from_secs(13800)));
        assert_eq!(time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert!(time("3x").is_err() && time("").is_err() && time("h").is_err());
    }
}
