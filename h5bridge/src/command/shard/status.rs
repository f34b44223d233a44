//! `h5bridge shard status` prints how many items of a plan are done, and which failed.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use ctds_hdf5::convert::{ShardItem, ShardPlan};
use ctds_hdf5::documents::{ShardCounts, ShardPlanItem, ShardStatus};

use super::results::Results;
use crate::args::Global;
use crate::batch::{Record, State};
use crate::exit::Status;
use crate::report::{self, Ending};

/// Most failed items that are listed as text; further ones are only counted.
const LISTED: usize = 20;

/// Command-line arguments of `h5bridge shard status`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge shard status huge.h5
  h5bridge shard status huge.h5 --json")]
pub(super) struct Args {
    /// The HDF5 file or table for which `h5bridge shard plan` made a plan
    out: PathBuf,
}

pub(super) fn run(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let plan = ShardPlan::open(&args.out)?;
    let results = if plan.is_committed() { None } else { Some(Results::open(plan.ledger())?) };
    let record = |item: &ShardItem| results.as_ref().and_then(|results| results.last(item));
    let is_done =
        |item: &ShardItem| plan.is_committed() || record(item).is_some_and(|found| found.state == State::Done);
    let is_failed = |item: &ShardItem| record(item).is_some_and(|found| found.state != State::Done);
    let items = plan.items();
    let bytes = |items: &mut dyn Iterator<Item = &ShardItem>| items.map(|item| item.bytes).sum::<u64>();
    let done = items.iter().filter(|item| is_done(item)).count();
    let failed = items.iter().filter(|item| is_failed(item)).count();
    let (all_bytes, done_bytes) = (bytes(&mut items.iter()), bytes(&mut items.iter().filter(|item| is_done(item))));
    let target = args.out.display();
    let mut found = vec![format!(
        "{target}: {done} of {} items are done ({} of {}), {failed} failed",
        items.len(),
        report::bytes(done_bytes),
        report::bytes(all_bytes)
    )];
    let failure = |item: &ShardItem, record: &Record| {
        let error = record.error.as_deref().unwrap_or_default();
        format!("{} ({}): attempt {}: {error}", item.id, plan.describe(item), record.attempt)
    };
    let failures = items.iter().filter(|item| is_failed(item)).filter_map(|item| Some(failure(item, record(item)?)));
    found.extend(failures.take(LISTED));
    if failed > LISTED {
        found.push(format!("{} more failures are in --json", failed - LISTED));
    }
    let next = match (plan.is_committed(), done == items.len()) {
        (true, _) => "the target is published".to_owned(),
        (false, true) => format!("next: h5bridge shard commit {target}"),
        (false, false) => format!("next: h5bridge shard work {target}"),
    };
    let of_item = |item: &ShardItem| {
        let record = record(item);
        let state = if is_done(item) {
            "done"
        } else if is_failed(item) {
            "failed"
        } else {
            "waiting"
        };
        ShardPlanItem {
            id: item.id.clone(),
            name: plan.describe(item),
            bytes: item.bytes,
            state: state.to_owned(),
            attempts: record.map_or(0, |record| record.attempt),
            code: record.map(|record| record.code),
            error: record.and_then(|record| record.error.clone()),
            seconds: record.map(|record| record.seconds),
        }
    };
    Ending { found, summary: vec![next], ..Ending::default() }.print(global, out, || {
        let [all, done, failed] = [items.len(), done, failed].map(|count| count as u64);
        ShardStatus {
            out: target.to_string(),
            published: plan.is_committed(),
            counts: ShardCounts { all, done, failed, waiting: all - done - failed },
            bytes: all_bytes,
            done_bytes,
            items: items.iter().map(of_item).collect(),
        }
    })
}
