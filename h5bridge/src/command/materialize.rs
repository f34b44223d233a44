//! `materialize` makes a thin table (one whose data is in an HDF5 file) independent of that file:
//! it copies the data.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use ctds_hdf5::convert::Materialize;
use ctds_hdf5::documents;

use crate::args::Global;
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report::{self, Ending};

/// Command-line arguments of `h5bridge materialize`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge materialize thin.ms")]
pub(crate) struct Args {
    /// A table that `link` or `to-hdf5 --replace` has made
    table: PathBuf,
    /// Threads that read and write; 0: one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(0, global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let copied = Materialize::new(&args.table)
        .open_options(global.open_options())
        .threads(args.threads)
        .progress(&stoppable)
        .run();
    bar.finish();
    let copied = copied.map_err(|error| report::stopped(error, &args.table, &args.table))?;
    let (tables, columns, size) = (copied.tables, copied.columns, report::bytes(copied.bytes));
    Ending {
        warnings: &copied.warnings,
        summary: vec![format!("{}: {tables} tables, {columns} columns, {size}; independent", args.table.display())],
        ..Ending::default()
    }
    .print(global, out, || documents::Materialize::new(&args.table, &copied))
}
