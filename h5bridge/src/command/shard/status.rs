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
    let progress = Progress { plan: &plan, results };
    let items = plan.items();
    let (done, failed) = (progress.items_in(DONE), progress.items_in(FAILED));
    let all_bytes: u64 = items.iter().map(|item| item.bytes).sum();
    let done_bytes: u64 = done.iter().map(|item| item.bytes).sum();
    let target = args.out.display();
    let mut found = vec![format!(
        "{target}: {} of {} items are done ({} of {}), {} failed",
        done.len(),
        items.len(),
        report::bytes(done_bytes),
        report::bytes(all_bytes),
        failed.len()
    )];
    found.extend(failed.iter().filter_map(|item| progress.failure(item)).take(LISTED));
    if failed.len() > LISTED {
        found.push(format!("{} more failures are in --json", failed.len() - LISTED));
    }
    let next = match (plan.is_committed(), done.len() == items.len()) {
        (true, _) => "the target is published".to_owned(),
        (false, true) => format!("next: h5bridge shard commit {target}"),
        (false, false) => format!("next: h5bridge shard work {target}"),
    };
    Ending { found, summary: vec![next], ..Ending::default() }.print(global, out, || {
        let [all, done, failed] = [items.len(), done.len(), failed.len()].map(|count| count as u64);
        ShardStatus {
            out: target.to_string(),
            published: plan.is_committed(),
            counts: ShardCounts { all, done, failed, waiting: all - done - failed },
            bytes: all_bytes,
            done_bytes,
            items: items.iter().map(|item| progress.document(item)).collect(),
        }
    })
}

/// States of items, as the document names them.
const DONE: &str = "done";
const FAILED: &str = "failed";
const WAITING: &str = "waiting";

struct Progress<'a> {
    plan: &'a ShardPlan,
    /// `None` once the plan is committed: all items are done.
    results: Option<Results>,
}

impl Progress<'_> {
    fn record(&self, item: &ShardItem) -> Option<&Record> {
        self.results.as_ref()?.last(item)
    }

    fn state(&self, item: &ShardItem) -> &'static str {
        match self.record(item).map(|record| record.state) {
            None if self.results.is_some() => WAITING,
            None | Some(State::Done) => DONE,
            Some(_) => FAILED,
        }
    }

    fn items_in(&self, state: &str) -> Vec<&ShardItem> {
        self.plan.items().iter().filter(|item| self.state(item) == state).collect()
    }

    fn failure(&self, item: &ShardItem) -> Option<String> {
        let record = self.record(item)?;
        let error = record.error.as_deref().unwrap_or_default();
        Some(format!("{} ({}): attempt {}: {error}", item.id, self.plan.describe(item), record.attempt))
    }

    fn document(&self, item: &ShardItem) -> ShardPlanItem {
        let record = self.record(item);
        ShardPlanItem {
            id: item.id.clone(),
            name: self.plan.describe(item),
            bytes: item.bytes,
            state: self.state(item).to_owned(),
            attempts: record.map_or(0, |record| record.attempt),
            code: record.map(|record| record.code),
            error: record.and_then(|record| record.error.clone()),
            seconds: record.map(|record| record.seconds),
        }
    }
}
