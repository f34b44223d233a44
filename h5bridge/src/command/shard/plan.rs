//! `shard plan` writes the HDF5 file without its large datasets, and cuts these into items.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use ctds_hdf5::convert::{Compress, DigestPolicy, ShardPlan, ToHdf5};
use ctds_hdf5::{Error, ErrorKind};
use serde_json::json;

use super::split::{self, Parts};
use crate::args::{Global, if_exists, size};
use crate::command::to_hdf5::Chosen;
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report::{self, Ending};

/// Command-line arguments of `h5bridge shard plan`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge shard plan huge.ms huge.h5
  h5bridge shard plan huge.ms huge.h5 --work-bytes 2G --exclude CORRECTED_DATA
  h5bridge shard plan huge.ms huge.h5 --split 500G")]
pub(super) struct Args {
    /// A table directory, in a file system that all workers share
    source: PathBuf,
    /// The HDF5 file that will be written; the plan is in OUT.shards
    out: PathBuf,
    /// Bytes of an item; datasets of fewer than this, and fewer than 64M, are written now. Without, items are a 64th of the large
    /// datasets, but at least 32M and at most 512M
    #[arg(long, value_parser = work_bytes, value_name = "512M")]
    work_bytes: Option<u64>,
    #[command(flatten)]
    chosen: Chosen,
    /// Instead of one file, plan independent files of about this size, OUT-0000 and so on, by ranges of rows: a manifest for
    /// `h5bridge batch run`
    #[arg(long, value_parser = size, value_name = "500G", conflicts_with_all = ["rows", "work_bytes"])]
    split: Option<u64>,
    /// Plan also if OUT exists; commit needs --overwrite as well
    #[arg(long)]
    overwrite: bool,
    /// Threads that decode and compress what is written now; 0: one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

fn work_bytes(text: &str) -> Result<u64> {
    let bytes = size(text)?;
    if bytes < 4096 { Err(anyhow::anyhow!("at least 4K are needed")) } else { Ok(bytes) }
}

/// Runs `h5bridge shard plan`: makes the plan and prints a summary.
pub(super) fn run(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    if args.out.extension().is_some_and(|end| end.eq_ignore_ascii_case("ms")) {
        let message = "the target of a plan is an HDF5 file, not a MeasurementSet: `h5bridge link` makes a table of an HDF5 file in seconds, \
                       `h5bridge to-ms` an independent one";
        return Err(Error::new(ErrorKind::Usage, message).context(args.out.as_path()).into());
    }
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(0, global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let convert = args
        .chosen
        .of(ToHdf5::new(&args.source))
        .open_options(global.open_options())
        .compression(Compress::Shared)
        .digest(DigestPolicy::Never)
        .threads(args.threads)
        .if_exists(if_exists(args.overwrite))
        .progress(&stoppable);
    if let Some(bytes) = args.split {
        let Args { source, out: target, overwrite, .. } = args;
        let Chosen { columns, exclude, tables, .. } = &args.chosen;
        let names = [("--columns", &columns[..]), ("--exclude", &exclude[..]), ("--tables", &tables[..])];
        let parts = Parts { source, out: target, bytes, names, overwrite: *overwrite };
        return split::run(&convert.plan()?, &parts, global, out);
    }
    let made = convert.plan().and_then(|plan| plan.shard(&args.out, args.work_bytes.unwrap_or(0)));
    bar.finish();
    let made = made?;
    let seconds = started.elapsed().as_secs_f64();
    let directory = ShardPlan::directory_of(&args.out);
    let (size, packed) = (report::bytes(made.bytes), report::bytes(made.packed_bytes));
    let target = args.out.display();
    Ending {
        warnings: &made.warnings,
        summary: vec![
            format!(
                "{}: {} items of {size}, {packed} of them compressed; {seconds:.2} s",
                directory.display(),
                made.items
            ),
            format!(
                "next: h5bridge shard work {target}, on any number of machines; then h5bridge shard commit {target}"
            ),
        ],
        fields: json!({
            "out": target.to_string(),
            "directory": directory.display().to_string(),
            "items": made.items,
            "bytes": made.bytes,
            "packed_bytes": made.packed_bytes,
            "file_bytes": made.file_bytes,
            "rows": made.rows,
            "seconds": seconds,
        }),
        ..Ending::default()
    }
    .print(global, out)
}
