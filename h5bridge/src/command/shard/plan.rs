//! `h5bridge shard plan` prepares a conversion by several processes: it writes the new HDF5 file
//! without its large datasets, or the new table without its large hypercubes, and divides these
//! into items, ranges of chunks or tiles, for `h5bridge shard work`.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use ctds_hdf5::convert::{Compress, DigestPolicy, ShardPlan, ShardPlanSummary, Source, ToHdf5, ToTable};
use ctds_hdf5::{Error, ErrorKind, Progress, documents};

use super::split::{self, Parts};
use crate::args::{Global, if_exists, size};
use crate::command::to_hdf5::Chosen;
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report::{self, Ending};

/// Extensions by which OUT is recognised as an HDF5 file.
const HDF5_ENDS: [&str; 2] = ["h5", "hdf5"];

/// Command-line arguments of `h5bridge shard plan`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge shard plan huge.ms huge.h5
  h5bridge shard plan huge.ms huge.h5 --work-bytes 2G --exclude CORRECTED_DATA
  h5bridge shard plan huge.ms huge.h5 --split 500G
  h5bridge shard plan huge.h5 huge.ms")]
pub(super) struct Args {
    /// A table directory or an HDF5 file, in a file system that all workers share
    source: PathBuf,
    /// The HDF5 file that will be written, or the table directory if SOURCE is an HDF5 file and OUT
    /// is not named .h5 or .hdf5; the plan is in OUT.shards
    out: PathBuf,
    /// Size in bytes of an item (range of chunks or tiles) [default: a 64th of the large datasets,
    /// at least 32M and at most 512M]; datasets smaller than 64M, or than this option if it is
    /// less, are written by `shard plan` itself
    #[arg(long, value_parser = work_bytes, value_name = "512M")]
    work_bytes: Option<u64>,
    #[command(flatten)]
    chosen: Chosen,
    /// Instead of one file, plan independent files of about this size, OUT-0000 and so on, by
    /// ranges of rows: a manifest for `h5bridge batch run`
    #[arg(long, value_parser = size, value_name = "500G", conflicts_with_all = ["rows", "work_bytes"])]
    split: Option<u64>,
    /// Make the plan even if OUT exists; `h5bridge shard commit` needs --overwrite as well
    #[arg(long)]
    overwrite: bool,
    /// Threads that decode and compress the data that `shard plan` itself writes; 0: one for each
    /// processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

fn work_bytes(text: &str) -> Result<u64> {
    let bytes = size(text)?;
    if bytes < 4096 { Err(anyhow::anyhow!("at least 4K are needed")) } else { Ok(bytes) }
}

pub(super) fn run(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    let is_named = |end: &str| args.out.extension().is_some_and(|found| found.eq_ignore_ascii_case(end));
    let makes_table = !HDF5_ENDS.into_iter().any(is_named) && Source::is_hdf5(&args.source)?;
    if is_named("ms") && !makes_table && args.source.exists() {
        let message = "the target of a plan for a table is an HDF5 file, not a MeasurementSet: only a plan for an HDF5 file makes one; \
                       `h5bridge to-ms` copies tables";
        return Err(Error::new(ErrorKind::Usage, message).context(args.out.as_path()).into());
    }
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(0, global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let made = if makes_table {
        plan_table(args, global, &stoppable)
    } else {
        let convert = plan_hdf5(args, global, &stoppable);
        if let Some(bytes) = args.split {
            let Args { source, out: target, overwrite, .. } = args;
            let Chosen { columns, exclude, tables, .. } = &args.chosen;
            let names = [("--columns", &columns[..]), ("--exclude", &exclude[..]), ("--tables", &tables[..])];
            let parts = Parts { source, out: target, bytes, names, overwrite: *overwrite };
            return split::run(&convert.plan()?, &parts, global, out);
        }
        convert.plan().and_then(|plan| plan.shard(&args.out, args.work_bytes.unwrap_or(0)))
    };
    bar.finish();
    let made = made?;
    let seconds = started.elapsed().as_secs_f64();
    let directory = ShardPlan::directory_of(&args.out);
    let size = report::bytes(made.bytes);
    let packed = match makes_table {
        true => String::new(),
        false => format!(", {} of them compressed", report::bytes(made.packed_bytes)),
    };
    let target = args.out.display();
    Ending {
        warnings: &made.warnings,
        summary: vec![
            format!("{}: {} items of {size}{packed}; {seconds:.2} s", directory.display(), made.items),
            format!(
                "next: h5bridge shard work {target}, on any number of machines; then h5bridge shard commit {target}"
            ),
        ],
        ..Ending::default()
    }
    .print(global, out, || documents::ShardPlan::new(&args.out, &directory, &made, seconds))
}

fn plan_hdf5<'a>(args: &Args, global: &Global, progress: &'a dyn Progress) -> ToHdf5<'a> {
    args.chosen
        .of(ToHdf5::new(&args.source))
        .open_options(global.open_options())
        .compression(Compress::Shared)
        .digest(DigestPolicy::Never)
        .threads(args.threads)
        .if_exists(if_exists(args.overwrite))
        .progress(progress)
}

/// Writes the table without its large hypercubes, and divides their tiles into items.
fn plan_table(args: &Args, global: &Global, progress: &dyn Progress) -> Result<ShardPlanSummary, Error> {
    let Chosen { columns, exclude, rows, tables } = &args.chosen;
    let is_part = !columns.is_empty() || !exclude.is_empty() || !tables.is_empty() || rows.is_some();
    if is_part || args.split.is_some() {
        let message = "a plan for a table has all that the HDF5 file has: --columns, --exclude, --tables, --rows and --split are for plans \
                       that make HDF5 files";
        return Err(Error::new(ErrorKind::Usage, message).context(args.out.as_path()));
    }
    let to_table = ToTable::new(&args.source)
        .open_options(global.open_options())
        .threads(args.threads)
        .if_exists(if_exists(args.overwrite))
        .progress(progress);
    to_table.shard(&args.out, args.work_bytes.unwrap_or(0))
}
