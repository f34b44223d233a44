//! `to-ms`: a casacore table from a native HDF5 file, or from another table.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, anyhow};
use ctds_hdf5::convert::{RestoreOptions, Source, TableOptions, TableSummary, restore, to_table};
use ctds_hdf5::io::ByteOrder;
use serde_json::json;

use crate::cli::Global;
use crate::exit::Status;
use crate::progress::Bar;
use crate::{interrupt, report};

/// Arguments of `to-ms`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge to-ms my.h5 my.ms
  h5bridge to-ms my.h5 my.ms --overwrite
  h5bridge to-ms my.h5 my.ms --exact
  h5bridge to-ms old.ms copy.ms --byte-order big")]
pub struct Args {
    /// A native HDF5 file, or a table directory
    source: PathBuf,
    /// The table directory to write
    out: PathBuf,
    /// Replace OUT if it exists
    #[arg(long)]
    overwrite: bool,
    /// The original directory, every file and every byte; needs a file made with `to-hdf5 --restorable`
    #[arg(long, conflicts_with = "byte_order")]
    exact: bool,
    /// Byte order of the data files: big or little; as it was unless given
    #[arg(long, value_parser = byte_order, value_name = "ORDER")]
    byte_order: Option<ByteOrder>,
    /// Let engines (ScaledArrayEngine, BitFlagsEngine …) compute their columns again, where that gives the same values
    #[arg(long, conflicts_with = "exact")]
    engines: bool,
    /// Threads that read and write; 0: one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

fn byte_order(text: &str) -> Result<ByteOrder> {
    let orders = [ByteOrder::Big, ByteOrder::Little];
    orders.into_iter().find(|order| order.name() == text).ok_or_else(|| anyhow!("expected big or little"))
}

/// Writes the table.
pub fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    if args.out.symlink_metadata().is_ok() && !args.overwrite {
        let message = format!("{}: the target exists already (--overwrite replaces it)", args.out.display());
        return Err(ctds_hdf5::Error::new(ctds_hdf5::ErrorKind::Exists, message).into());
    }
    interrupt::remove_when_told_to_stop(args.out.clone())?;
    if args.exact {
        return run_exact(&args, started, global, out);
    }
    let source = Source::open_with(&args.source, global.open_options())?;
    let options = TableOptions { byte_order: args.byte_order, threads: args.threads, engines: args.engines };
    let bar = Bar::new(0, global.quiet || global.json);
    let summary = to_table(&source, &options, &args.out, args.overwrite, &bar);
    bar.finish();
    let summary = summary?;
    let status = report::finished(summary.warnings.len(), global.strict);
    let seconds = started.elapsed().as_secs_f64();
    if global.json {
        let document = json!({
            "status": status.name(),
            "code": status.code(),
            "warnings": summary.warnings,
            "out": args.out.display().to_string(),
            "tables": summary.tables,
            "columns": summary.columns,
            "columns_missing": summary.missing,
            "rows": summary.rows,
            "bytes": summary.bytes,
            "seconds": seconds,
            "peak_memory": report::peak_memory(),
        });
        writeln!(out, "{document:#}")?;
    } else if !global.quiet {
        print_summary(&summary, &args, seconds);
    } else {
        summary.warnings.iter().for_each(|warning| eprintln!("h5bridge: warning: {warning}"));
    }
    Ok(status)
}

/// Restores the original directory.
fn run_exact(args: &Args, started: Instant, global: &Global, out: &mut impl Write) -> Result<Status> {
    let bar = Bar::new(0, global.quiet || global.json);
    let options = RestoreOptions { overwrite: args.overwrite, threads: args.threads };
    let restored = restore(&args.source, &args.out, &options, &bar);
    bar.finish();
    let restored = restored?;
    let seconds = started.elapsed().as_secs_f64();
    if global.json {
        let document = json!({
            "status": Status::Done.name(),
            "code": Status::Done.code(),
            "warnings": [],
            "out": args.out.display().to_string(),
            "files": restored.files,
            "bytes": restored.bytes,
            "seconds": seconds,
            "peak_memory": report::peak_memory(),
        });
        writeln!(out, "{document:#}")?;
    } else if !global.quiet {
        let (files, bytes) = (restored.files, report::bytes(restored.bytes));
        let speed = report::bytes((restored.bytes as f64 / seconds) as u64);
        eprintln!("{}: {files} files, {bytes}, every one as it was; {seconds:.2} s, {speed}/s", args.out.display());
    }
    Ok(Status::Done)
}

/// Words go to stderr.
fn print_summary(summary: &TableSummary, args: &Args, seconds: f64) {
    for warning in &summary.warnings {
        eprintln!("warning: {warning}");
    }
    let TableSummary { tables, columns, rows, bytes, .. } = summary;
    let (bytes, speed) = (report::bytes(*bytes), report::bytes((*bytes as f64 / seconds) as u64));
    eprintln!("{}: {tables} tables, {columns} columns, {rows} rows; {bytes} of data", args.out.display());
    let memory = report::peak_memory().map_or(String::new(), |peak| format!(", peak memory {}", report::bytes(peak)));
    eprintln!("{seconds:.2} s, {speed}/s{memory}");
    eprintln!("next: h5bridge verify {} {}", args.source.display(), args.out.display());
}
