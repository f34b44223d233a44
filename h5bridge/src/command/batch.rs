//! The verb `batch` converts many tables: a manifest lists the items (jobs), a ledger records the
//! attempts, a receipt beside each output how it was made.

mod clean;
mod files;
mod plan;
mod run;
mod status;

use std::io::Write;

use anyhow::Result;

use crate::args::Global;
use crate::exit::Status;

/// Command-line arguments of `h5bridge batch`.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
#[command(before_help = "Examples:
  h5bridge batch plan 'archive/**/*.ms' --to 'out/{path}/{stem}.h5' --out all.ndjson -- --restorable
  h5bridge batch run all.ndjson --ledger ledger --jobs 2
  h5bridge batch status all.ndjson --ledger ledger")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// The parts of `h5bridge batch`: plan, run, status, clean.
#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Write a manifest: the sources, what is done with each, and where the results go
    Plan(plan::Args),
    /// Do the items of a manifest that are not done
    Run(run::Args),
    /// Show how far a batch has come
    Status(status::Args),
    /// Remove the unfinished outputs that killed processes have left beside the targets
    Clean(clean::Args),
}

pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    match args.verb {
        Verb::Plan(args) => plan::run(args, global, out),
        Verb::Run(args) => run::run(&args, global, out),
        Verb::Status(args) => status::run(&args, global, out),
        Verb::Clean(args) => clean::run(&args, global, out),
    }
}
