//! `to-ms` writes a casacore table from a native HDF5 file, or from another table.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, anyhow};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ctds_hdf5::convert::{ToOriginal, ToTable, ToTableSummary, Views};
use ctds_hdf5::io::ByteOrder;
use ctds_hdf5::program::os::peak_memory;
use ctds_hdf5::{TableKind, documents};

use crate::args::{External, Global, Publishing, SOURCE};
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report::{self, Ending, Salvaging};

/// Command-line arguments of `h5bridge to-ms`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge to-ms my.h5 my.ms
  h5bridge to-ms my.h5 my.ms --overwrite
  h5bridge to-ms my.h5 my.ms --exact
  h5bridge to-ms selected.h5 selected.ms --parts /data/ms
  h5bridge to-ms old.ms copy.ms --byte-order big")]
pub(crate) struct Args {
    #[arg(help = SOURCE)]
    source: PathBuf,
    /// The table directory to write
    out: PathBuf,
    #[command(flatten)]
    publishing: Publishing,
    /// Restore the original directory, every file and every byte; needs a file made with
    /// `to-hdf5 --restorable`
    #[arg(long, conflicts_with = "byte_order")]
    exact: bool,
    /// Byte order of the data files, big or little [default: that of the original table]
    #[arg(long, value_parser = byte_order, value_name = "ORDER")]
    byte_order: Option<ByteOrder>,
    /// Leave out damaged parts, name them, and write the rest; the exit code is then 6
    #[arg(long, conflicts_with = "exact")]
    salvage: bool,
    /// Store all values, also those of columns that an engine (ScaledArrayEngine, BitFlagsEngine,
    /// ForwardColumnEngine …) computed; by default the engine comes back where it computes exactly
    /// the values of the source
    #[arg(long, conflicts_with = "exact")]
    plain: bool,
    /// The default by now, accepted from older scripts
    #[arg(long = "engines", hide = true, conflicts_with_all = ["exact", "plain"])]
    _engines: bool,
    /// Write a reference table or a concatenation where the source was one: auto, if its tables are
    /// found and still have the values of SOURCE; always, or fail; never, copy their rows
    ///
    /// Without their tables, and from a table directory unless "always" is given, a plain table is
    /// written.
    #[arg(long, value_name = "WHEN", default_value = "auto", value_parser = views(), conflicts_with = "exact")]
    views: Views,
    /// Directory of the tables that have the rows of such a table, or the cells of forwarded
    /// columns [default: that of SOURCE]
    #[arg(long, value_name = "DIR", conflicts_with = "exact")]
    parts: Option<PathBuf>,
    /// Threads that read and write; 0: one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    #[command(flatten)]
    external: External,
}

fn views() -> impl TypedValueParser<Value = Views> {
    PossibleValuesParser::new(["never", "auto", "always"]).map(|word| match word.as_str() {
        "never" => Views::Never,
        "always" => Views::Always,
        _ => Views::Auto,
    })
}

fn byte_order(text: &str) -> Result<ByteOrder> {
    let orders = [ByteOrder::Big, ByteOrder::Little];
    orders.into_iter().find(|order| order.name() == text).ok_or_else(|| anyhow!("expected big or little"))
}

pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    report::check_target(&args.out, args.publishing.overwrite)?;
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    if args.exact {
        return run_exact(&args, &interrupts, started, global, out);
    }
    let bar = Bar::new(0, global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let mut to_table = ToTable::new(&args.source)
        .open_options(args.external.open_options(global))
        .salvage(args.salvage)
        .engines(!args.plain)
        .views(args.views)
        .threads(args.threads)
        .if_exists(args.publishing.if_exists())
        .sync(args.publishing.sync)
        .progress(&stoppable);
    if let Some(order) = args.byte_order {
        to_table = to_table.byte_order(order);
    }
    if let Some(directory) = &args.parts {
        to_table = to_table.parts(directory);
    }
    let summary = to_table.write(&args.out);
    bar.finish();
    let suggest = |error| report::suggest(error, Salvaging::of_tables(args.salvage, &args.source), report::SALVAGE);
    let summary = summary.map_err(|error| report::stopped(suggest(error), &args.source, &args.out))?;
    let seconds = started.elapsed().as_secs_f64();
    let ToTableSummary { tables, columns, rows, bytes, kind, warnings, .. } = &summary;
    let (out_path, size) = (args.out.display(), report::bytes(*bytes));
    let written = match kind {
        TableKind::Plain => vec![
            format!("{out_path}: {tables} tables, {columns} columns, {rows} rows; {size} of data"),
            report::speed(*bytes, seconds),
        ],
        view => vec![format!("{out_path}: {view}; {columns} columns, {rows} rows; {seconds:.2} s")],
    };
    let next = format!("next: h5bridge verify {} {out_path}", args.source.display());
    Ending {
        warnings,
        summary: written.into_iter().chain([next]).collect(),
        shared: summary.shared_bytes,
        damage: &summary.damage,
        ..Ending::default()
    }
    .print(global, out, || documents::ToMs::new(&args.out, &summary, seconds, peak_memory()))
}

/// Restores the original directory with every byte (`to-ms --exact`).
fn run_exact(
    args: &Args,
    interrupts: &Interrupts,
    started: Instant,
    global: &Global,
    out: &mut impl Write,
) -> Result<Status> {
    let bar = Bar::new(0, global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let to_original = ToOriginal::new(&args.source)
        .threads(args.threads)
        .if_exists(args.publishing.if_exists())
        .sync(args.publishing.sync)
        .progress(&stoppable);
    let restored = to_original.write(&args.out);
    bar.finish();
    let restored = restored.map_err(|error| report::stopped(error, &args.source, &args.out))?;
    let seconds = started.elapsed().as_secs_f64();
    let size = report::bytes(restored.bytes);
    Ending {
        summary: vec![
            format!("{}: {} files, {size}, all identical to the originals", args.out.display(), restored.files),
            report::speed(restored.bytes, seconds),
        ],
        shared: restored.shared_bytes,
        ..Ending::default()
    }
    .print(global, out, || documents::ToMsExact::new(&args.out, &restored, seconds, peak_memory()))
}
