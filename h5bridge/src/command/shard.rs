//! `h5bridge shard` divides the conversion of one large table among many processes or machines:
//! `plan` cuts its data into items, which `work` writes.

mod claims;
mod items;
mod plan;
mod publish;
mod results;
mod split;
mod status;
mod verify;
mod work;

use std::io::Write;

use anyhow::Result;

use crate::args::Global;
use crate::exit::Status;

/// Command-line arguments of `h5bridge shard`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge shard plan huge.ms huge.h5
  h5bridge shard work huge.h5
  h5bridge shard work huge.h5 --shard 3/16
  h5bridge shard status huge.h5
  h5bridge shard commit huge.h5
  h5bridge shard plan huge.h5 huge-again.ms")]
pub(crate) struct Args {
    #[command(subcommand)]
    step: Step,
}

/// The steps of a conversion by several processes: plan, work, status, commit, verify.
#[derive(Debug, clap::Subcommand)]
enum Step {
    /// Write everything but the large datasets or hypercubes, and divide these into items (ranges
    /// of chunks or tiles) for workers
    Plan(plan::Args),
    /// Write the items of a plan (ranges of chunks or tiles) that are not done; may run on many
    /// machines at the same time
    Work(work::Args),
    /// Show how many items of a plan (ranges of chunks or tiles) are done, and which failed
    Status(status::Args),
    /// Publish the HDF5 file or table of a plan under its final name when all its items are done
    Commit(publish::Args),
    /// Read back what was written and compare it with the recorded hash, before or after commit
    Verify(verify::Args),
}

pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    match args.step {
        Step::Plan(args) => plan::run(&args, global, out),
        Step::Work(args) => work::run(&args, global, out),
        Step::Status(args) => status::run(&args, global, out),
        Step::Commit(args) => publish::run(&args, global, out),
        Step::Verify(args) => verify::run(&args, global, out),
    }
}
