//! `h5bridge repair` recovers a live file (a native HDF5 file to which a program appends rows)
//! whose writer did not close it.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use ctds_hdf5::documents;
use ctds_hdf5::live::{Repaired, RepairedTable, repair};

use crate::args::Global;
use crate::exit::Status;
use crate::report::Ending;

/// Command-line arguments of `h5bridge repair`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge repair live.h5")]
pub(crate) struct Args {
    /// A live HDF5 file whose writer was killed: rows that were not committed are removed. A file
    /// that another program wrote keeps all rows and is only marked as closed
    file: PathBuf,
}

/// Marks the file as closed, and removes uncommitted rows; other programs' files keep all rows.
pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let repaired = repair(&args.file)?;
    let chunks = repaired.incomplete_chunks;
    let warning = (chunks > 0).then(|| format!("{chunks} chunks are not complete; what is missing reads as zeros"));
    let torn = (!repaired.torn.is_empty()).then(|| {
        let paths = repaired.torn.join(", ");
        format!("{paths}: the index of chunks is torn after the committed rows; `h5bridge finalize` makes a file that can be relied on")
    });
    let warnings: Vec<_> = warning.into_iter().chain(torn).collect();
    Ending { warnings: &warnings, found: describe(&repaired), ..Ending::default() }
        .print(global, out, || documents::Repair::from(&repaired))
}

fn describe(repaired: &Repaired) -> Vec<String> {
    let table = |table: &RepairedTable| {
        let lost = if table.lost > 0 { format!(", {} not committed and gone", table.lost) } else { String::new() };
        format!("{}: {} rows committed{lost}", table.name, table.committed)
    };
    let (before, after) = repaired.end;
    let found = match repaired.was_open {
        true if before < after => format!("was not closed; its end was set from {before} to {after} bytes"),
        true => "was not closed".to_owned(),
        false => "was closed".to_owned(),
    };
    let last = format!("{} datasets checked; the file {found}", repaired.datasets);
    repaired.tables.iter().map(table).chain([last]).collect()
}
