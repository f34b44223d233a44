//! `shard commit` publishes the HDF5 file or table under its final name after all items of its plan
//! have been written.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use ctds_hdf5::convert::{CommitShards, ShardPlan};
use ctds_hdf5::documents;

use super::results::Results;
use crate::args::{Global, Publishing};
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report::{self, Ending};

/// Command-line arguments of `h5bridge shard commit`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge shard commit huge.h5
  h5bridge shard commit huge.h5 --check")]
pub(super) struct Args {
    /// The HDF5 file or table for which `h5bridge shard plan` made a plan
    out: PathBuf,
    /// Read back everything that workers have written and compare it with the recorded hash; by
    /// default only compressed datasets are read back
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    publishing: Publishing,
    /// Number of threads that read back the written data; 0: one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

pub(super) fn run(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    let plan = ShardPlan::open(&args.out)?;
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(0, global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let results: Vec<_> =
        if plan.ledger().exists() { Results::open(plan.ledger())?.all().collect() } else { Vec::new() };
    let published = CommitShards::new(&plan, results)
        .check_ranges(args.check)
        .threads(args.threads)
        .if_exists(args.publishing.if_exists())
        .sync(args.publishing.sync)
        .progress(&stoppable)
        .write();
    bar.finish();
    let published = published?;
    let seconds = started.elapsed().as_secs_f64();
    let (target, size) = (args.out.display(), report::bytes(published.file_bytes));
    let inserted = match plan.makes_table() {
        true => String::new(),
        false => format!(", {} compressed", report::bytes(published.inserted_bytes)),
    };
    Ending {
        summary: vec![
            format!("{target}: {size}, {} rows; {} items{inserted}; {seconds:.2} s", published.rows, published.items),
            format!("next: h5bridge shard verify {target}, or h5bridge verify {} {target}", plan.source().display()),
        ],
        ..Ending::default()
    }
    .print(global, out, || {
        documents::ShardCommit::new(&args.out, &published, &ShardPlan::ranges_of(&args.out), seconds)
    })
}
