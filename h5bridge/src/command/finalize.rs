//! `finalize` converts a live file (a native HDF5 file that was written while others read it) to
//! one for the archive: compressed, with digests. A container that `pack --follow` has written it
//! converts to an ordinary one.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use ctds_hdf5::convert::Compress;
use ctds_hdf5::live::{Finalize, NotFollowed};
use ctds_hdf5::pack::{FinalizeFiles, is_followed};
use ctds_hdf5::program::os::peak_memory;
use ctds_hdf5::{Error, ErrorKind, documents};

use super::to_hdf5::{compress, compress_help, memory};
use crate::args::{Global, Publishing};
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report::{self, Ending};

/// Command-line arguments of `h5bridge finalize`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge finalize live.h5 my.h5
  h5bridge finalize live.h5 my.h5 --source my.ms
  h5bridge finalize live.h5
  h5bridge finalize live.mfh5 packed.ms")]
pub(crate) struct Args {
    /// A live HDF5 file (one to which rows were appended while others read it) whose writer has
    /// ended, or a container that pack --follow has written
    live: PathBuf,
    /// The HDF5 file to write; if omitted, the live file is replaced. Of a container: the table
    /// directory to write, with a multihdf5 container in each table, which casacore opens; if
    /// omitted, a single multihdf5 file takes its place
    out: Option<PathBuf>,
    /// The casacore table from which h5bridge follow made the live file; the content is read from
    /// the table, also values that the live file could not store
    #[arg(long, value_name = "TABLE")]
    source: Option<PathBuf>,
    /// Store the original files of the table that --source names in OUT, so that to-ms --exact
    /// restores them
    #[arg(long, requires = "source")]
    restorable: bool,
    /// Add small versions of the visibilities, which HDFView and H5Web draw as heat maps (group
    /// quicklook)
    #[arg(long)]
    quicklook: bool,
    #[arg(long, default_value = "auto", value_parser = compress, help = compress_help())]
    compress: Compress,
    #[command(flatten)]
    publishing: Publishing,
    /// Threads that decode and compress; 0: one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    /// Limit of the memory for data, in bytes: 512M, 2G
    #[arg(long, default_value = "256M", value_parser = memory, value_name = "256M")]
    max_memory: u64,
}

/// The new file is compared with the source before it gets its final name.
pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    if is_followed(&args.live) {
        return files(&args, global, out);
    }
    let started = Instant::now();
    let target = args.out.as_ref().unwrap_or(&args.live);
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(args.live.metadata().map_or(0, |metadata| metadata.len()), global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let mut finalize = Finalize::new(&args.live)
        .open_options(global.open_options())
        .compression(args.compress)
        .restorable(args.restorable)
        .quicklook(args.quicklook)
        .threads(args.threads)
        .max_memory(args.max_memory)
        .if_exists(args.publishing.if_exists())
        .sync(args.publishing.sync)
        .progress(&stoppable);
    if let Some(source) = &args.source {
        finalize = finalize.source(source);
    }
    let finalized = finalize.write(target);
    bar.finish();
    let finalized = finalized.map_err(|error| report::stopped(error, &args.live, target))?;
    let (summary, compared) = (&finalized.summary, &finalized.comparison);
    let seconds = started.elapsed().as_secs_f64();
    let (tables, columns, rows) = (summary.tables, summary.columns, summary.rows);
    let size = report::bytes(summary.file_bytes);
    let NotFollowed { source, parts, .. } = &finalized.not_followed;
    let left_out = parts.iter().map(|part| format!("not in the live file: {part}; --source {} brings it", source));
    let warnings: Vec<String> = summary.warnings.iter().cloned().chain(left_out).collect();
    Ending {
        warnings: &warnings,
        summary: vec![
            format!("{}: {tables} tables, {columns} columns, {rows} rows in {size}", target.display()),
            format!("{} cells compared and equal; {seconds:.2} s", compared.cells),
        ],
        plugins: args.compress.plugin().into_iter().collect(),
        ..Ending::default()
    }
    .print(global, out, || documents::Finalize::new(target, &finalized, seconds))
}

/// Makes an ordinary container of one that `pack --follow` has written.
fn files(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let for_rows = [
        (args.source.is_some(), "--source"),
        (args.restorable, "--restorable"),
        (args.quicklook, "--quicklook"),
        (args.compress != Compress::Auto, "--compress"),
    ];
    if let Some((_, option)) = for_rows.iter().find(|(given, _)| *given) {
        let message = format!("{option} is for live files with rows; this is a container of files");
        return Err(Error::new(ErrorKind::Usage, message).into());
    }
    let started = Instant::now();
    let target = args.out.as_ref().unwrap_or(&args.live);
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(0, global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let finalize = FinalizeFiles::new(&args.live)
        .if_exists(args.publishing.if_exists())
        .sync(args.publishing.sync)
        .progress(&stoppable);
    let finalized = match &args.out {
        Some(out) => finalize.write(out),
        None => finalize.replace(),
    };
    bar.finish();
    let finalized = finalized.map_err(|error| report::stopped(error, &args.live, target))?;
    let (summary, compared) = (&finalized.summary, &finalized.comparison);
    let seconds = started.elapsed().as_secs_f64();
    let (size, stored) = (report::bytes(summary.bytes), report::bytes(summary.stored_bytes));
    Ending {
        warnings: &summary.warnings,
        summary: vec![
            format!("{}: {} files of {size} in {stored}", target.display(), summary.files),
            format!("{} files compared and equal; {seconds:.2} s", compared.files),
        ],
        ..Ending::default()
    }
    .print(global, out, || documents::Pack::new(target, summary, seconds, peak_memory()))
}
