//! `h5bridge refs` prints a kerchunk document: offsets and lengths of the chunks of a native HDF5
//! file, with which Zarr libraries read it in place.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use ctds_hdf5::convert::ToManifest;

use crate::args::Global;
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::report;
use crate::stderr;

/// Command-line arguments of `h5bridge refs`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge refs my.h5 > refs.json
  h5bridge refs my.h5 --url s3://bucket/my.h5 > refs.json
  h5bridge refs s3://bucket/my.h5 > refs.json
  h5bridge refs my.h5 --table MAIN > main.json")]
pub(crate) struct Args {
    /// An HDF5 file, such as to-hdf5 makes, or its address (https://..., s3://BUCKET/KEY)
    source: PathBuf,
    /// The address at which readers find the file; without it, SOURCE
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Take this table only (MAIN, ANTENNA): its columns are at the root, where xarray's kerchunk
    /// engine finds them
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
}

/// Prints on stderr the number of chunks, and the columns that are left out.
pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let interrupts = Interrupts::of_caller(global.caller.as_ref());
    let progress = interrupts.stoppable(&());
    let mut manifest = ToManifest::new(&args.source).open_options(global.open_options()).progress(&progress);
    if let Some(table) = args.table {
        manifest = manifest.table(table);
    }
    let written = manifest.write_references(args.url.as_deref(), BufWriter::with_capacity(1 << 18, out))?;
    let mut warnings = written.warnings.clone();
    warnings.extend(
        written
            .left_out
            .iter()
            .map(|column| format!("{}/{} is not in the references: {}", column.table, column.column, column.reason)),
    );
    if global.caller.is_none() {
        warnings.iter().for_each(|text| report::warning(text));
    }
    if !global.quiet {
        let (tables, columns, bytes) = (written.tables, written.columns, report::bytes(written.file_bytes));
        let references = written.references;
        stderr::line(format_args!("{tables} tables, {columns} columns; {references} chunks in {bytes}"));
    }
    Ok(if global.strict && !warnings.is_empty() { Status::Warnings } else { Status::Done })
}
