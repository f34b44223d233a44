//! `link` and `to-hdf5 --replace` make thin tables: table directories whose files with large tiles
//! are symbolic links to an HDF5 file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use ctds_hdf5::convert::{LinkSummary, LinkTable, ReplaceTable};
use ctds_hdf5::documents;

use crate::args::{Global, Publishing};
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report::{self, Ending};

/// Command-line arguments of `h5bridge link`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge to-hdf5 my.ms my.h5 --compress shared
  h5bridge link my.h5 thin.ms
  h5bridge verify thin.ms
  h5bridge materialize thin.ms")]
pub(crate) struct Args {
    /// A native HDF5 file, made with `to-hdf5 --compress shared`
    source: PathBuf,
    /// The table directory to write
    out: PathBuf,
    /// Let programs write to the table: values written to linked columns change the HDF5 file; rows
    /// cannot be added
    #[arg(long)]
    writable: bool,
    #[command(flatten)]
    publishing: Publishing,
    /// Threads that read and write; 0: one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

const HAZARD: &str = "the table can be written to: a program that adds rows to it fails and leaves it unreadable, and what is written to \
                      linked columns changes the HDF5 file";

pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    report::check_target(&args.out, args.publishing.overwrite)?;
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(0, global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let linked = LinkTable::new(&args.source)
        .writable(args.writable)
        .threads(args.threads)
        .if_exists(args.publishing.if_exists())
        .sync(args.publishing.sync)
        .progress(&stoppable)
        .write(&args.out);
    bar.finish();
    let linked = linked.map_err(|error| report::stopped(error, &args.source, &args.out))?;
    let mut warnings = linked.warnings.clone();
    warnings.extend(args.writable.then(|| HAZARD.to_owned()));
    let seconds = started.elapsed().as_secs_f64();
    Ending { warnings: &warnings, summary: vec![line(&args.out, &linked, &args.source)], ..Ending::default() }.print(
        global,
        out,
        || documents::Link::new(&args.out, &linked, seconds),
    )
}

/// Options of `to-hdf5 --replace`.
pub(super) struct Replacement {
    pub(super) writable: bool,
    pub(super) threads: usize,
    pub(super) publishing: Publishing,
}

pub(super) fn replace(
    table: &Path,
    hdf5: &Path,
    options: &Replacement,
    global: &Global,
    out: &mut impl Write,
) -> Result<Status> {
    let started = Instant::now();
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(0, global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let replaced = ReplaceTable::new(table)
        .open_options(global.open_options())
        .writable(options.writable)
        .threads(options.threads)
        .if_exists(options.publishing.if_exists())
        .sync(options.publishing.sync)
        .progress(&stoppable)
        .write(hdf5);
    bar.finish();
    let replaced = replaced.map_err(|error| report::stopped(error, table, hdf5))?;
    let mut warnings = replaced.hdf5.warnings.clone();
    warnings.extend(replaced.table.warnings.clone());
    warnings.extend(options.writable.then(|| HAZARD.to_owned()));
    let seconds = started.elapsed().as_secs_f64();
    let size = report::bytes(replaced.hdf5.file_bytes);
    Ending {
        warnings: &warnings,
        summary: vec![
            format!("{}: {size}, {} cells compared and equal", hdf5.display(), replaced.cells),
            line(table, &replaced.table, hdf5),
        ],
        ..Ending::default()
    }
    .print(global, out, || documents::Replace::new(hdf5, table, &replaced, seconds))
}

fn line(table: &Path, linked: &LinkSummary, hdf5: &Path) -> String {
    let LinkSummary { tables, columns, links, linked_bytes, .. } = linked;
    let (bytes, table, hdf5) = (report::bytes(*linked_bytes), table.display(), hdf5.display());
    format!("{table}: {tables} tables, {columns} columns; {links} files are links to {bytes} in {hdf5}")
}
