//! `h5bridge shard work` writes items (ranges of chunks or tiles) of a plan that `h5bridge shard plan` made.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use anyhow::Result;
use ctds_hdf5::convert::{ShardItem, ShardPlan, ShardResult, ShardWorker, UnsyncedItem};
use ctds_hdf5::program::{LockUnpoisoned, Unpoisoned};
use ctds_hdf5::{Error, ErrorKind};
use serde_json::json;

use super::claims::Claims;
use super::items::{self, Choice, Next, Wanted};
use super::results::{Results, may_pass};
use crate::args::{Global, duration};
use crate::exit::Status;
use crate::interrupt::Interrupts;
use crate::progress::Bar;
use crate::report::{self, Ending};

/// Command-line arguments of `h5bridge shard work`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge shard work huge.h5
  h5bridge shard work huge.h5 --shard 3/16 --stop-after 230m")]
pub(super) struct Args {
    /// The HDF5 file or table for which `h5bridge shard plan` made a plan
    out: PathBuf,
    #[command(flatten)]
    choice: Choice,
    /// Begin no item (range of chunks or tiles) later than this time after the start: 500ms, 60s, 230m, 4h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    stop_after: Option<Duration>,
}

/// Counts and messages about the items that this process has written or failed to write.
#[derive(Default)]
struct Done {
    items: usize,
    bytes: u64,
    /// Identifier, state, error message and duration of each item that this process has tried to write, as JSON.
    results: Vec<serde_json::Value>,
    /// An error message for each item of the plan that this process failed to write.
    failures: Vec<String>,
    kind: Option<ErrorKind>,
}

/// Runs `h5bridge shard work`: takes items of the plan that `h5bridge shard plan` made, and writes
/// them to the output, until none is left, the time of `--stop-after` has passed, or a signal
/// comes.
pub(super) fn run(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    let plan = ShardPlan::open(&args.out)?;
    let chosen = args.choice.of(&plan)?;
    let worker = ShardWorker::open(&plan, global.open_options())?;
    let results = Mutex::new(Results::open(plan.ledger())?);
    let left: u64 = {
        let results = results.lock_unpoisoned();
        chosen.iter().filter(|item| !results.is_done(item)).map(|item| item.bytes).sum()
    };
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(left, global.quiet || global.json);
    let stoppable = interrupts.stoppable(&bar);
    let done = Mutex::new(Done::default());
    let claims = if args.choice.is_exact() { Claims::none() } else { Claims::open(&plan.directory()) };
    let record = |item: &ShardItem, began: Instant, result: Result<ShardResult, Error>| -> Result<Next, Error> {
        let seconds = began.elapsed().as_secs_f64();
        results.lock_unpoisoned().append(item, &result, seconds)?;
        claims.release(item);
        let mut done = done.lock_unpoisoned();
        let error = result.as_ref().err();
        let state = error.map_or("done", |error| if may_pass(error) { "retry" } else { "failed" });
        let said = error.map(ToString::to_string);
        done.results.push(json!({"id": item.id, "state": state, "error": said, "seconds": seconds}));
        let Err(error) = result else {
            done.items += 1;
            done.bytes += item.bytes;
            return Ok(Next::GoOn);
        };
        done.failures.push(format!("item {} ({}): {error}", item.id, plan.describe(item)));
        done.kind.get_or_insert(error.kind());
        // every other item would fail in the same way
        let ends = error.kind() == ErrorKind::NoSpace || plan.check_source().is_err();
        Ok(if ends { Next::Stop } else { Next::GoOn })
    };
    let deadline = args.stop_after.map(|time| started + time);
    let is_wanted = |item: &ShardItem| -> Result<Wanted, Error> {
        if !claims.take(item) {
            return Ok(Wanted::Later);
        }
        // after the claim: the process that had it has recorded the item
        let mut results = results.lock_unpoisoned();
        results.refresh()?;
        if results.is_done(item) {
            claims.release(item);
            return Ok(Wanted::Never);
        }
        Ok(Wanted::Now)
    };
    let threads = args.choice.threads();
    let (written, to_sync) = sync_channel(threads);
    let ends = AtomicBool::new(false);
    // all that was written while the disk was busy is made durable at one go
    let sync = |to_sync: Receiver<(ShardItem, Instant, UnsyncedItem)>| -> Result<(), Error> {
        while let Ok(first) = to_sync.recv() {
            let all = std::iter::once(first).chain(to_sync.try_iter());
            let (items, unsynced): (Vec<_>, Vec<_>) =
                all.map(|(item, began, unsynced)| ((item, began), unsynced)).unzip();
            for ((item, began), result) in items.into_iter().zip(worker.sync(unsynced)) {
                // a disk that fails fails for the next item as well
                let is_lost = result.is_err();
                if record(&item, began, result)? == Next::Stop || is_lost {
                    ends.store(true, Ordering::SeqCst);
                }
            }
        }
        Ok(())
    };
    let ran = std::thread::scope(|scope| {
        let syncing = scope.spawn(|| sync(to_sync));
        let each = |item: &ShardItem| -> Result<Next, Error> {
            if ends.load(Ordering::SeqCst) {
                return Ok(Next::Stop);
            }
            let began = Instant::now();
            match worker.write_unsynced(item, &stoppable) {
                // the other end is gone if the ledger cannot be written
                Ok(unsynced) => Ok(written.send((item.clone(), began, unsynced)).map_or(Next::Stop, |()| Next::GoOn)),
                // nothing is known of the item
                Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
                Err(error) => record(item, began, Err(error)),
            }
        };
        let ran = items::run(&chosen, threads, &stoppable, deadline, is_wanted, each);
        // ends the thread that waits for items
        drop(written);
        syncing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).and(ran)
    });
    bar.finish();
    ran?;
    let done = done.into_inner().unwrap_or_default();
    let mut results = results.into_inner().unpoisoned();
    // what other workers have done since
    results.refresh()?;
    let left = plan.items().iter().filter(|item| !results.is_done(item)).count();
    let seconds = started.elapsed().as_secs_f64();
    let target = args.out.display();
    let next = if left == 0 {
        format!("next: h5bridge shard commit {target}")
    } else {
        format!("{left} items are left, or other workers are doing them")
    };
    Ending {
        failed: done.kind.map(Status::of_kind),
        warnings: &done.failures,
        summary: vec![format!("{target}: {} items; {}", done.items, report::speed(done.bytes, seconds)), next],
        fields: json!({
            "out": target.to_string(),
            "items": done.items,
            "bytes": done.bytes,
            "left": left,
            "results": done.results,
            "seconds": seconds,
        }),
        ..Ending::default()
    }
    .print(global, out)
}
