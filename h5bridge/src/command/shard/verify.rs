//! `shard verify` reads back the items that workers of a shard plan have written, and compares them
//! with their recorded hash.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::Result;
use ctds_hdf5::convert::{RangeCheck, ShardItem, ShardPlan, ShardResult, ShardWorker};
use ctds_hdf5::documents::{ShardDifference, ShardVerify};
use ctds_hdf5::program::{LockUnpoisoned, Unpoisoned};
use ctds_hdf5::{Error, ErrorKind, Progress};

use super::items::{self, Choice, Next, Wanted};
use super::results::Results;
use crate::args::Global;
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report::{self, Ending};

/// Command-line arguments of `h5bridge shard verify`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge shard verify huge.h5
  h5bridge shard verify huge.h5 --source --shard 3/16")]
pub(super) struct Args {
    /// The HDF5 file or table for which `h5bridge shard plan` made a plan
    out: PathBuf,
    /// Also read the cells of the source again, and compare the bytes to which they are converted
    /// with the recorded hash
    #[arg(long)]
    source: bool,
    #[command(flatten)]
    choice: Choice,
}

/// A damaged item is recorded as not done before `shard commit`, so that `shard work` writes it
/// again.
pub(super) fn run(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    let plan = ShardPlan::open(&args.out)?;
    let chosen = args.choice.of(&plan)?;
    let verification = Verification::new(&plan, args, global)?;
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(chosen.iter().map(|item| item.bytes).sum(), global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let each = |item: &ShardItem| verification.verify(item, &stoppable).map(|()| Next::GoOn);
    let ran = items::run(&chosen, args.choice.threads(), &stoppable, None, |_| Ok(Wanted::Now), each);
    bar.finish();
    ran?;
    let compared = verification.compared.into_inner().unpoisoned();
    compared.print(chosen.len(), started.elapsed().as_secs_f64(), global, out)
}

#[derive(Default)]
struct Compared {
    items: usize,
    bytes: u64,
    differences: Vec<ShardDifference>,
}

impl Compared {
    /// Ends a run for which `chosen` items were selected.
    fn print(mut self, chosen: usize, seconds: f64, global: &Global, out: &mut impl Write) -> Result<Status> {
        self.differences.sort();
        let Compared { items, bytes, differences } = self;
        let equal = differences.is_empty();
        let verdict = if equal { "equal" } else { "different" };
        let skipped = chosen - items;
        let speed = report::speed(bytes, seconds);
        let line = |found: &ShardDifference| format!("item {} ({}): {}", found.id, found.name, found.difference);
        Ending {
            failed: (!equal).then_some(Status::Different),
            found: differences.iter().map(line).collect(),
            summary: vec![format!("{verdict}: {items} items, {skipped} are not done; {speed}")],
            ..Ending::default()
        }
        .print(global, out, || {
            let (items, skipped) = (items as u64, skipped as u64);
            ShardVerify { equal, items, skipped, bytes, differences, seconds }
        })
    }
}

struct Verification<'a> {
    plan: &'a ShardPlan,
    check: RangeCheck<'a>,
    /// Reads the source again; `None` without `--source`.
    source: Option<ShardWorker<'a>>,
    /// The ledger; `None` after `shard commit`.
    results: Option<Mutex<Results>>,
    compared: Mutex<Compared>,
}

impl<'a> Verification<'a> {
    fn new(plan: &'a ShardPlan, args: &Args, global: &Global) -> Result<Self> {
        let check = RangeCheck::open(plan)?;
        let source = if args.source { Some(ShardWorker::for_digests(plan, global.open_options())?) } else { None };
        let directory = if plan.is_committed() { None } else { Some(plan.ledger()) };
        let results = directory.map(Results::open).transpose()?.map(Mutex::new);
        Ok(Verification { plan, check, source, results, compared: Mutex::default() })
    }

    fn verify(&self, item: &ShardItem, progress: &dyn Progress) -> Result<(), Error> {
        let expected = match &self.results {
            Some(results) => results.lock_unpoisoned().of(item),
            None => item.result,
        };
        let Some(expected) = expected else { return Ok(()) };
        let began = Instant::now();
        let difference = self.compare(item, &expected, progress)?;
        if let (Some(difference), Some(results)) = (&difference, &self.results) {
            let error = Error::new(ErrorKind::Format, format!("the bytes are damaged: {difference}"));
            results.lock_unpoisoned().append(item, &Err(error), began.elapsed().as_secs_f64())?;
        }
        let mut compared = self.compared.lock_unpoisoned();
        compared.items += 1;
        compared.bytes += expected.file_bytes;
        let described =
            |difference| ShardDifference { id: item.id.clone(), name: self.plan.describe(item), difference };
        compared.differences.extend(difference.map(described));
        Ok(())
    }

    fn compare(
        &self,
        item: &ShardItem,
        expected: &ShardResult,
        progress: &dyn Progress,
    ) -> Result<Option<String>, Error> {
        if let Some(difference) = self.check.check(item, expected, progress)? {
            return Ok(Some(difference));
        }
        let Some(worker) = &self.source else { return Ok(None) };
        let found = worker.digest(item, expected.hash.kind(), progress)?;
        Ok((found != *expected).then(|| "the source gives other bytes".to_owned()))
    }
}
