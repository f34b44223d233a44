//! `to-ms`: a casacore table from a native HDF5 file, or from another table.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, anyhow};
use ctds_hdf5::convert::{RestoreOptions, Source, TableOptions, TableSummary, restore, to_table};
use ctds_hdf5::io::ByteOrder;
use serde_json::json;

use crate::args::{External, Global, SOURCE};
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report::{self, Ending};

/// Arguments of `to-ms`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge to-ms my.h5 my.ms
  h5bridge to-ms my.h5 my.ms --overwrite
  h5bridge to-ms my.h5 my.ms --exact
  h5bridge to-ms old.ms copy.ms --byte-order big")]
pub struct Args {
    #[arg(help = SOURCE)]
    source: PathBuf,
    /// The table directory to write
    out: PathBuf,
    /// Replace OUT if it exists
    #[arg(long)]
    overwrite: bool,
    /// Restore the original directory, every file and every byte; needs a file made with `to-hdf5 --restorable`
    #[arg(long, conflicts_with = "byte_order")]
    exact: bool,
    /// Byte order of the data files, big or little; by default that of the original table
    #[arg(long, value_parser = byte_order, value_name = "ORDER")]
    byte_order: Option<ByteOrder>,
    /// Leave out what is damaged, name it, and write the rest; the exit code is then 6
    #[arg(long, conflicts_with = "exact")]
    salvage: bool,
    /// Let engines (ScaledArrayEngine, BitFlagsEngine …) compute their columns again, where that gives the same values
    #[arg(long, conflicts_with = "exact")]
    engines: bool,
    /// Threads that read and write; 0: one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    #[command(flatten)]
    external: External,
}

fn byte_order(text: &str) -> Result<ByteOrder> {
    let orders = [ByteOrder::Big, ByteOrder::Little];
    orders.into_iter().find(|order| order.name() == text).ok_or_else(|| anyhow!("expected big or little"))
}

/// Writes the table.
pub fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    report::check_target(&args.out, args.overwrite)?;
    let interrupts = Interrupts::listen()?;
    if args.exact {
        return run_exact(&args, &interrupts, started, global, out);
    }
    let mut source = Source::open_with(&args.source, args.external.open_options(global))?;
    if args.salvage {
        interrupts.stop(|token| source.salvage(|_, _| true, &token.with(&())))?;
    }
    let options = TableOptions { byte_order: args.byte_order, threads: args.threads, engines: args.engines };
    let bar = Bar::new(0, global.quiet || global.json);
    let summary = interrupts.stop(|token| to_table(&source, &options, &args.out, args.overwrite, &token.with(&bar)));
    bar.finish();
    let summary = summary.map_err(|error| report::suggest(error, report::SALVAGE))?;
    let seconds = started.elapsed().as_secs_f64();
    let TableSummary { tables, columns, missing, rows, bytes, warnings, .. } = &summary;
    let size = report::bytes(*bytes);
    Ending {
        warnings,
        summary: vec![
            format!("{}: {tables} tables, {columns} columns, {rows} rows; {size} of data", args.out.display()),
            report::speed(*bytes, seconds),
            format!("next: h5bridge verify {} {}", args.source.display(), args.out.display()),
        ],
        fields: json!({
            "out": args.out.display().to_string(),
            "tables": tables,
            "columns": columns,
            "columns_missing": missing,
            "rows": rows,
            "bytes": bytes,
            "seconds": seconds,
            "peak_memory": report::peak_memory(),
        }),
        damage: source.damage(),
        ..Ending::default()
    }
    .print(global, out)
}

/// Restores the original directory.
fn run_exact(
    args: &Args,
    interrupts: &Interrupts,
    started: Instant,
    global: &Global,
    out: &mut impl Write,
) -> Result<Status> {
    let bar = Bar::new(0, global.quiet || global.json);
    let options = RestoreOptions { overwrite: args.overwrite, threads: args.threads };
    let restored = interrupts.stop(|token| restore(&args.source, &args.out, &options, &token.with(&bar)));
    bar.finish();
    let restored = restored?;
    let seconds = started.elapsed().as_secs_f64();
    let size = report::bytes(restored.bytes);
    Ending {
        summary: vec![
            format!("{}: {} files, {size}, all identical to the originals", args.out.display(), restored.files),
            report::speed(restored.bytes, seconds),
        ],
        fields: json!({
            "out": args.out.display().to_string(),
            "files": restored.files,
            "bytes": restored.bytes,
            "seconds": seconds,
            "peak_memory": report::peak_memory(),
        }),
        ..Ending::default()
    }
    .print(global, out)
}
