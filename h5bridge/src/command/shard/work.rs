//! `h5bridge shard work` writes items of a plan that `h5bridge shard plan` made.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::Result;
use ctds_hdf5::convert::{ShardItem, ShardPlan, ShardResult, ShardWorker, UnsyncedItem};
use ctds_hdf5::documents::{self, ShardWork};
use ctds_hdf5::program::{LockUnpoisoned, Unpoisoned};
use ctds_hdf5::{Error, ErrorKind, Progress};

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
    /// Begin no item (range of chunks or tiles) later than this time after the start: 500ms, 60s,
    /// 230m, 4h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    stop_after: Option<Duration>,
}

pub(super) fn run(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let started = Instant::now();
    let plan = ShardPlan::open(&args.out)?;
    let chosen = args.choice.of(&plan)?;
    let work = Work::new(&plan, args, global)?;
    let interrupts = Interrupts::listen(global.caller.as_ref())?;
    let bar = Bar::new(work.left(chosen.iter().copied()).map(|item| item.bytes).sum(), global.quiet || global.json);
    let deadline = args.stop_after.map(|time| started + time);
    let ran = work.run(&chosen, args.choice.threads(), deadline, &interrupts.stoppable(&bar));
    bar.finish();
    ran?;
    // other workers may have done items since
    work.results.lock_unpoisoned().refresh()?;
    let left = work.left(plan.items()).count();
    let done = work.done.into_inner().unpoisoned();
    done.print(&args.out, left, started.elapsed().as_secs_f64(), global, out)
}

/// Items that this process has written or failed to write.
#[derive(Default)]
struct Done {
    items: usize,
    bytes: u64,
    results: Vec<documents::ShardResult>,
    failures: Vec<String>,
    kind: Option<ErrorKind>,
}

impl Done {
    /// `left` items of the plan are not done.
    fn print(self, target: &Path, left: usize, seconds: f64, global: &Global, out: &mut impl Write) -> Result<Status> {
        let target = target.display();
        let next = if left == 0 {
            format!("next: h5bridge shard commit {target}")
        } else {
            format!("{left} items are left, or other workers are doing them")
        };
        Ending {
            failed: self.kind.map(Status::of_kind),
            warnings: &self.failures,
            summary: vec![format!("{target}: {} items; {}", self.items, report::speed(self.bytes, seconds)), next],
            ..Ending::default()
        }
        .print(global, out, || ShardWork {
            out: target.to_string(),
            items: self.items as u64,
            bytes: self.bytes,
            left: left as u64,
            results: self.results,
            seconds,
        })
    }
}

/// An item that is written but not yet durable, and when its writing began.
type Written = (ShardItem, Instant, UnsyncedItem);

struct Work<'a> {
    plan: &'a ShardPlan,
    worker: ShardWorker<'a>,
    results: Mutex<Results>,
    claims: Claims,
    done: Mutex<Done>,
    /// Whether no further item is to be begun.
    ends: AtomicBool,
}

impl<'a> Work<'a> {
    fn new(plan: &'a ShardPlan, args: &Args, global: &Global) -> Result<Self> {
        Ok(Work {
            plan,
            worker: ShardWorker::open(plan, global.open_options())?,
            results: Mutex::new(Results::open(plan.ledger())?),
            claims: if args.choice.is_exact() { Claims::none() } else { Claims::open(&plan.directory()) },
            done: Mutex::default(),
            ends: AtomicBool::new(false),
        })
    }

    fn left<'i>(&self, items: impl IntoIterator<Item = &'i ShardItem>) -> impl Iterator<Item = &'i ShardItem> {
        let results = self.results.lock_unpoisoned();
        items.into_iter().filter(move |item| !results.is_done(item))
    }

    /// Writes the items in `chosen` on several threads, while another one makes them durable.
    fn run(
        &self,
        chosen: &[&ShardItem],
        threads: usize,
        deadline: Option<Instant>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let (written, to_sync) = sync_channel(threads);
        std::thread::scope(|scope| {
            let syncing = scope.spawn(|| self.sync(to_sync));
            let each = |item: &ShardItem| self.write(item, &written, progress);
            let ran = items::run(chosen, threads, progress, deadline, |item| self.is_wanted(item), each);
            // ends the thread that waits for items
            drop(written);
            syncing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).and(ran)
        })
    }

    fn is_wanted(&self, item: &ShardItem) -> Result<Wanted, Error> {
        if !self.claims.take(item) {
            return Ok(Wanted::Later);
        }
        // after the claim: the process that had it has recorded the item
        let mut results = self.results.lock_unpoisoned();
        results.refresh()?;
        if results.is_done(item) {
            self.claims.release(item);
            return Ok(Wanted::Never);
        }
        Ok(Wanted::Now)
    }

    fn write(&self, item: &ShardItem, written: &SyncSender<Written>, progress: &dyn Progress) -> Result<Next, Error> {
        if self.ends.load(Ordering::SeqCst) {
            return Ok(Next::Stop);
        }
        let began = Instant::now();
        match self.worker.write_unsynced(item, progress) {
            // the other end is gone if the ledger cannot be written
            Ok(unsynced) => Ok(written.send((item.clone(), began, unsynced)).map_or(Next::Stop, |()| Next::GoOn)),
            // nothing is known of the item
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            Err(error) => self.record(item, began, Err(error)),
        }
    }

    /// Items that were written while the disk was busy become durable at one go.
    fn sync(&self, to_sync: Receiver<Written>) -> Result<(), Error> {
        while let Ok(first) = to_sync.recv() {
            let all = std::iter::once(first).chain(to_sync.try_iter());
            let (items, unsynced): (Vec<_>, Vec<_>) =
                all.map(|(item, began, unsynced)| ((item, began), unsynced)).unzip();
            for ((item, began), result) in items.into_iter().zip(self.worker.sync(unsynced)) {
                // a disk that fails fails for the next item as well
                let is_lost = result.is_err();
                if self.record(&item, began, result)? == Next::Stop || is_lost {
                    self.ends.store(true, Ordering::SeqCst);
                }
            }
        }
        Ok(())
    }

    fn record(&self, item: &ShardItem, began: Instant, result: Result<ShardResult, Error>) -> Result<Next, Error> {
        let seconds = began.elapsed().as_secs_f64();
        self.results.lock_unpoisoned().append(item, &result, seconds)?;
        self.claims.release(item);
        let mut done = self.done.lock_unpoisoned();
        let error = result.as_ref().err();
        let state = error.map_or("done", |error| if may_pass(error) { "retry" } else { "failed" }).to_owned();
        let said = error.map(ToString::to_string);
        done.results.push(documents::ShardResult { id: item.id.clone(), state, error: said, seconds });
        let Err(error) = result else {
            done.items += 1;
            done.bytes += item.bytes;
            return Ok(Next::GoOn);
        };
        done.failures.push(format!("item {} ({}): {error}", item.id, self.plan.describe(item)));
        done.kind.get_or_insert(error.kind());
        // every other item would fail in the same way
        let ends = error.kind() == ErrorKind::NoSpace || self.plan.check_source().is_err();
        Ok(if ends { Next::Stop } else { Next::GoOn })
    }
}
