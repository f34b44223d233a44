//! `h5bridge unpack` extracts the files of a table from containers such as MultiFile, MultiHDF5 and
//! tar archives.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use ctds_hdf5::Compression;
use ctds_hdf5::blz::Arrays;
use ctds_hdf5::pack::Unpack;

use super::pack;
use crate::args::{Global, Publishing, overwrite_help};
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report;

/// Command-line arguments of `h5bridge unpack`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge unpack packed.ms my.ms
  h5bridge unpack archive.h5 my.ms")]
#[command(mut_args(overwrite_help("Replace OUT if it exists and is a table")))]
pub(crate) struct Args {
    /// A table directory whose files are in containers, a file that holds a whole table, a
    /// container of other files, or an HDF5 file made from BLZ, bcolz or bloscpack arrays, which
    /// are restored in their original format
    source: PathBuf,
    /// The directory to create, or the file if arrays are restored in bloscpack's format
    out: PathBuf,
    #[command(flatten)]
    publishing: Publishing,
    /// Leave out files that cannot be read, name them, and unpack the rest; the exit code is then 6
    #[arg(long)]
    salvage: bool,
}

pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let is_for_arrays = !args.salvage && Arrays::are_at(&args.source);
    if is_for_arrays && Arrays::open(&args.source)?.are_datasets() {
        return pack::export(&args.source, &args.out, global, out, |export| {
            export.if_exists(args.publishing.if_exists()).sync(args.publishing.sync)
        });
    }
    let started = Instant::now();
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(0, global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let unpack = Unpack::new(&args.source)
        .open_options(global.open_options())
        .salvage(args.salvage)
        .if_exists(args.publishing.if_exists())
        .sync(args.publishing.sync)
        .progress(&stoppable);
    let summary = unpack.write(&args.out);
    bar.finish();
    let next = format!("h5bridge verify --bytes {} {}", args.source.display(), args.out.display());
    let suggest = |error| pack::suggest(error, args.salvage, &args.source);
    let summary = summary.map_err(|error| report::stopped(suggest(error), &args.source, &args.out))?;
    pack::finish(&summary, &args.out, started, &next, Compression::NONE, "unpacked", global, out)
}
