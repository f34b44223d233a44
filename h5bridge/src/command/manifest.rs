//! `h5bridge manifest` writes references to the tiles of a table, or to the chunks of a native HDF5
//! file, in the JSON format of kerchunk, with which Zarr libraries read them in place.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use ctds_hdf5::convert::{LeftOutColumn, ManifestSummary, ToManifest};
use ctds_hdf5::documents;

use crate::args::{Global, Publishing, overwrite_help};
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report::{self, Ending};

/// Command-line arguments of `h5bridge manifest`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge manifest my.ms my.json
  h5bridge manifest my.h5 my.json
  h5bridge manifest my.ms main.json --table MAIN
  h5bridge manifest my.ms my.json --base s3://archive/2026
  h5bridge verify my.json")]
#[command(mut_args(overwrite_help("Replace OUT and OUT.rest.h5 if they exist")))]
pub(crate) struct Args {
    /// A table directory, or a native HDF5 file
    source: PathBuf,
    /// The kerchunk JSON to write; its name should end in .json. If SOURCE is a table directory,
    /// its Bools and the numbers that are not in tiles are copied to OUT.rest.h5
    out: PathBuf,
    /// Take this table only (MAIN, ANTENNA): its columns are at the root, where xarray's kerchunk
    /// engine finds them
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// The directory or URL in which readers find SOURCE and OUT.rest.h5 (the HDF5 file of numbers
    /// that are not in tiles); without it, references have absolute paths
    #[arg(long, value_name = "URL")]
    base: Option<String>,
    #[command(flatten)]
    publishing: Publishing,
    /// Threads that decode and compress the data for OUT.rest.h5; 0: one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

/// A table directory also gets an HDF5 file with its Bools and the numbers that are not in tiles.
pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    report::check_target(&args.out, args.publishing.overwrite)?;
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(0, global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let mut manifest = ToManifest::new(&args.source)
        .open_options(global.open_options())
        .threads(args.threads)
        .if_exists(args.publishing.if_exists())
        .sync(args.publishing.sync)
        .progress(&stoppable);
    if let Some(base) = args.base {
        manifest = manifest.base(base);
    }
    if let Some(table) = args.table {
        manifest = manifest.table(table);
    }
    let written = manifest.write(&args.out);
    bar.finish();
    let written = written.map_err(|error| report::stopped(error, &args.source, &args.out))?;
    let seconds = started.elapsed().as_secs_f64();
    let left_out = |column: &LeftOutColumn| {
        let LeftOutColumn { table, column, reason, .. } = column;
        format!("{table}/{column} is not in the manifest: {reason}")
    };
    let mut warnings = written.warnings.clone();
    warnings.extend(written.left_out.iter().map(left_out));
    Ending { warnings: &warnings, summary: lines(&args.out, &written, seconds), ..Ending::default() }.print(
        global,
        out,
        || documents::Manifest::new(&args.out, &written, seconds),
    )
}

fn lines(target: &Path, written: &ManifestSummary, seconds: f64) -> Vec<String> {
    let ManifestSummary { tables, columns, rows, references, .. } = written;
    let (target, size) = (target.display(), report::bytes(written.file_bytes));
    let mut lines = vec![format!(
        "{target}: {tables} tables, {columns} columns, {rows} rows; {references} chunks in {size}; {seconds:.2} s"
    )];
    if let Some((path, bytes)) = &written.companion {
        let (tiled, tile_bytes) = (written.tiled_columns, report::bytes(written.tile_bytes));
        let (path, bytes) = (path.display(), report::bytes(*bytes));
        lines.push(format!(
            "{tiled} columns are read from their tiles ({tile_bytes}), other numbers are in {path} ({bytes})"
        ));
    }
    lines
}
