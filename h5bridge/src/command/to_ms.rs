//! `to-ms`: the table back from a native HDF5 file.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use ctds_hdf5::convert::{RestoreOptions, restore};
use serde_json::json;

use crate::cli::Global;
use crate::exit::Status;
use crate::progress::Bar;
use crate::{interrupt, report};

/// Arguments of `to-ms`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge to-ms my.h5 my.ms --exact")]
pub struct Args {
    /// A native HDF5 file
    source: PathBuf,
    /// The table directory to write
    out: PathBuf,
    /// The original directory, every file and every byte; needs a file made with `to-hdf5 --restorable`
    #[arg(long, required = true)]
    exact: bool,
    /// Replace OUT if it is a table
    #[arg(long)]
    overwrite: bool,
    /// Threads that decode; 0: one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

/// Restores the original directory.
pub fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    interrupt::remove_when_told_to_stop(args.out.clone())?;
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
