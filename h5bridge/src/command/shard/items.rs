//! Selects the items of a shard plan that a process writes, and divides them among its threads.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Result, anyhow};
use ctds_hdf5::convert::{ShardItem, ShardPlan};
use ctds_hdf5::program::LockUnpoisoned;
use ctds_hdf5::{Error, ErrorKind, Progress};

/// Command-line options that choose items of a shard plan.
#[derive(Debug, clap::Args)]
pub(super) struct Choice {
    /// K/N: take only every N-th item (range of chunks or tiles) of the plan, from item K on,
    /// counted from 0, so that N processes divide all items among them
    #[arg(long, value_name = "K/N", value_parser = share)]
    shard: Option<(usize, usize)>,
    /// Take only the items (ranges of chunks or tiles) with these identifiers, which
    /// `h5bridge shard status --json` lists
    #[arg(long, value_delimiter = ',', value_name = "ID,ID", conflicts_with = "shard")]
    ids: Vec<String>,
    /// Number of items (ranges of chunks or tiles) that are done at the same time; 0: one for each
    /// processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

impl Choice {
    /// The items that `--shard` or `--ids` choose. Without these options, all items, beginning at
    /// one that depends on the process id, so that processes seldom try the same one.
    pub(super) fn of<'a>(&self, plan: &'a ShardPlan) -> Result<Vec<&'a ShardItem>> {
        let items = plan.items();
        if let Some(unknown) = self.ids.iter().find(|id| !items.iter().any(|item| item.id == **id)) {
            let message = format!("item {unknown} does not exist: `h5bridge shard status --json` lists all");
            return Err(Error::new(ErrorKind::Usage, message).into());
        }
        if !self.ids.is_empty() {
            return Ok(items.iter().filter(|item| self.ids.contains(&item.id)).collect());
        }
        let (first, step) = self.shard.unwrap_or((0, 1));
        let mut chosen: Vec<_> = items.iter().skip(first).step_by(step).collect();
        if self.shard.is_none() && !chosen.is_empty() {
            // the golden ratio spreads consecutive process numbers evenly
            let start = u64::from(std::process::id()).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            let len = chosen.len();
            chosen.rotate_left((start as usize * len) >> 32);
        }
        Ok(chosen)
    }

    /// Certain items are written without locks: the user divides them among processes.
    pub(super) fn is_exact(&self) -> bool {
        self.shard.is_some() || !self.ids.is_empty()
    }

    pub(super) fn threads(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        }
    }
}

fn share(text: &str) -> Result<(usize, usize)> {
    let numbers = || -> Option<(usize, usize)> {
        let (first, step) = text.split_once('/')?;
        Some((first.trim().parse().ok()?, step.trim().parse().ok()?))
    };
    let found = numbers().filter(|(first, step)| first < step);
    found.ok_or_else(|| anyhow!("expected K/N, with K from 0 to N - 1"))
}

/// Items for which `is_wanted` returns `Later` are tried once more after all others. Begins no
/// further item after `deadline`, or after `each` has returned `Stop`.
pub(super) fn run(
    items: &[&ShardItem],
    threads: usize,
    progress: &dyn Progress,
    deadline: Option<Instant>,
    is_wanted: impl Fn(&ShardItem) -> Result<Wanted, Error> + Sync,
    each: impl Fn(&ShardItem) -> Result<Next, Error> + Sync,
) -> Result<(), Error> {
    let queue = Mutex::new((VecDeque::from(items.to_vec()), Vec::new()));
    let next = || -> Result<Option<&ShardItem>, Error> {
        let mut queue = queue.lock_unpoisoned();
        let (first, second) = &mut *queue;
        loop {
            if progress.is_cancelled() {
                return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
            }
            let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if is_late {
                return Ok(None);
            }
            let (item, is_first) = match first.pop_front() {
                Some(item) => (item, true),
                None => match second.pop() {
                    Some(item) => (item, false),
                    None => return Ok(None),
                },
            };
            match is_wanted(item)? {
                Wanted::Now => return Ok(Some(item)),
                Wanted::Later if is_first => second.push(item),
                Wanted::Later | Wanted::Never => {}
            }
        }
    };
    let work = || -> Result<(), Error> {
        while let Some(item) = next()? {
            if each(item)? == Next::Stop {
                *queue.lock_unpoisoned() = Default::default();
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.min(items.len()).max(1)).map(|_| scope.spawn(work)).collect();
        let ends =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ends.fold(Ok(()), Result::and)
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Now,
    /// Another process is writing the item but may fail: tried once more after all others.
    Later,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    Stop,
}
