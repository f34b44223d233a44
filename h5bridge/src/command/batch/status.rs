//! `batch status` shows how many items of a batch are done, waiting or failed.

use std::io::{BufWriter, Write};

use anyhow::Result;
use ctds_hdf5::documents::{BatchCount, BatchFailure, BatchStatus};
use serde_json::json;

use super::files::Files;
use crate::args::Global;
use crate::batch::{Count, Counts, Folded, Manifest, State, prometheus};
use crate::exit::Status;
use crate::report::{self, Ending};

/// Command-line arguments of `h5bridge batch status`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge batch status all.ndjson --ledger ledger
  h5bridge batch status all.ndjson --ledger ledger --failed
  h5bridge batch status all.ndjson --ledger ledger --prometheus >batch.prom")]
pub(super) struct Args {
    #[command(flatten)]
    files: Files,
    /// Also name the items that failed, were killed, have a conflict with an existing target or
    /// will be tried again, and why
    #[arg(long)]
    failed: bool,
    /// Print the numbers of items in each state, and the bytes of their sources, in the text format
    /// of Prometheus
    #[arg(long, conflicts_with_all = ["json", "failed"])]
    prometheus: bool,
    /// Print the last record of each item as a line of JSON
    #[arg(long, conflicts_with_all = ["json", "failed", "prometheus"])]
    records: bool,
}

pub(super) fn run(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let manifest = args.files.open()?;
    let folded = Folded::read(&args.files.ledger, &manifest)?;
    if args.records {
        return print_records(&manifest, &folded, out);
    }
    let counts = Counts::new(&manifest, &folded);
    if args.prometheus {
        write!(out, "{}", prometheus(&counts))?;
        return Ok(Status::Done);
    }
    let mut lines = vec![format!("{:>12} {:>12}", "items", "sources")];
    for state in State::ALL {
        let count = counts.of(state);
        if count.items > 0 {
            lines.push(format!("{:>12} {:>12}  {}", count.items, report::bytes(count.bytes), state.name()));
        }
    }
    lines.push(format!("{:>12} {:>12}  all", counts.all.items, report::bytes(counts.all.bytes)));
    let left = counts.left().filter(|&left| left > 0.);
    lines.extend(left.map(|left| format!("at the rate so far, {:.1} h are left", left / 3600.)));
    let failed = if args.failed { Some(failures(&manifest, &folded)?) } else { None };
    lines.extend(failed.iter().flatten().map(line));
    let unreadable = folded.unreadable;
    let lost = (unreadable > 0).then(|| format!("{unreadable} lines of the ledger are not records"));
    let warned = |&item: &usize| folded.last(item).warned && folded.state(item).is_finished();
    let warned = (0..manifest.len()).filter(warned).count();
    let warned = (warned > 0).then(|| format!("{warned} of the items were done with warnings, which --records lists"));
    let warnings: Vec<String> = lost.into_iter().chain(warned).collect();
    let count = |state| {
        let Count { items, bytes } = counts.of(state);
        BatchCount { items, bytes }
    };
    Ending { warnings: &warnings, found: lines, ..Ending::default() }.print(global, out, || BatchStatus {
        items: counts.all.items,
        bytes: counts.all.bytes,
        finished: counts.finished().items,
        states: State::ALL.iter().map(|&state| (state.name().to_owned(), count(state))).collect(),
        codes: counts.codes.iter().map(|(code, count)| (code.to_string(), *count)).collect(),
        file_bytes: counts.file_bytes,
        work_seconds: counts.seconds,
        seconds_left: left,
        failed,
    })
}

fn line(failure: &BatchFailure) -> String {
    let BatchFailure { state, source, error, code, .. } = failure;
    format!("{state} {source}: {error} ({code})")
}

fn failures(manifest: &Manifest, folded: &Folded) -> Result<Vec<BatchFailure>> {
    let items = (0..manifest.len()).filter(|&item| {
        let state = folded.state(item);
        state.is_final_failure() || state == State::Retry
    });
    let mut failures = Vec::new();
    folded.records(items, |number, record| {
        let (Some(record), item) = (record, manifest.read(number)?) else { return Ok(()) };
        failures.push(BatchFailure {
            id: item.id.to_string(),
            state: record.state.name().to_owned(),
            source: item.source,
            target: item.target,
            code: record.code,
            attempt: record.attempt,
            error: record.error.unwrap_or_default(),
            host: record.host,
            time: record.time,
        });
        Ok(())
    })?;
    Ok(failures)
}

fn print_records(manifest: &Manifest, folded: &Folded, out: &mut impl Write) -> Result<Status> {
    let mut out = BufWriter::new(out);
    folded.records(0..manifest.len(), |number, record| {
        match record {
            Some(record) => serde_json::to_writer(&mut out, &record).map_err(std::io::Error::from)?,
            None => write!(out, "{}", json!({"id": manifest.id(number), "state": State::Waiting}))?,
        }
        Ok(out.write_all(b"\n")?)
    })?;
    out.flush()?;
    Ok(Status::Done)
}
