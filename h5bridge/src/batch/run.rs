//! Does the items (jobs) of a manifest that are not done yet (`h5bridge batch run`).

use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use ctds_hdf5::Result;
use ctds_hdf5::program::LockUnpoisoned;

use super::check::Trust;
use super::item::{Effect, Verb};
use super::ledger::{Folded, Last, Ledger, Record, State};
use super::limits::Limits;
use super::manifest::Manifest;
use super::queue::{Attempt, Queue};
use super::shard::Shard;
use super::work::Work;
use crate::exit::Status;
use crate::interrupt::Stop;
use crate::report::{bytes, warning};

const SPACE_PAUSE: Duration = Duration::from_secs(2);

/// Records that wait to be printed; then threads that finish an item wait as well.
const SHOWN_LATER: usize = 1024;

/// A run over a manifest, or over one shard of it.
pub(crate) struct Run<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) ledger: &'a Path,
    pub(crate) work: &'a Work,
    pub(crate) limits: &'a Limits,
    pub(crate) shard: Shard,
    /// If not, only receipts tell which items are done.
    pub(crate) with_ledger: bool,
    /// Items that failed for good are tried again.
    pub(crate) again: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// In the order of `State::ALL`.
    counts: [u64; State::ALL.len()],
    /// Done, with warnings or left out damage.
    pub(crate) warned: u64,
    /// Of these, with the exit code of warnings: damage was left out, or `--strict` was given.
    pub(crate) incomplete: u64,
    pub(crate) done_now: u64,
    /// Sources of the items that this run has done.
    pub(crate) bytes: u64,
    /// Targets that this run has written.
    pub(crate) file_bytes: u64,
}

impl Tally {
    fn add(&mut self, record: &Record) {
        if record.state == State::Done {
            self.done_now += 1;
            self.bytes += record.bytes;
            self.file_bytes += record.file_bytes.unwrap_or(0);
        }
    }

    /// Adds an item as it is at the end of the run.
    fn end(&mut self, Standing { state, warned, code }: Standing) {
        let is_incomplete = code == i32::from(Status::Warnings.code());
        let slot = State::ALL.iter().zip(&mut self.counts).find(|(other, _)| **other == state);
        slot.into_iter().for_each(|(_, count)| *count += 1);
        self.warned += u64::from((warned || is_incomplete) && state.is_finished());
        self.incomplete += u64::from(is_incomplete && state.is_finished());
    }

    pub(crate) fn count(&self, state: State) -> u64 {
        State::ALL.iter().zip(self.counts).find(|(other, _)| **other == state).map_or(0, |(_, count)| count)
    }

    pub(crate) fn items(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Earlier runs count.
    pub(crate) fn is_finished(&self) -> bool {
        self.count(State::Done) + self.count(State::Skipped) == self.items()
    }
}

#[derive(Clone, Copy)]
struct Standing {
    state: State,
    warned: bool,
    code: i32,
}

impl Standing {
    fn of(record: &Record) -> Self {
        Standing { state: record.state, warned: !record.warnings.is_empty(), code: record.code }
    }
}

impl Run<'_> {
    /// `show` gets each record after it is in the ledger. Items that fail are in the tally.
    pub(crate) fn run(&self, stop: &Stop, show: &mut dyn FnMut(&Record) -> Result<()>) -> Result<Tally> {
        let folded = match self.with_ledger {
            true => Folded::read(self.ledger, self.manifest)?,
            false => Folded::empty(self.manifest),
        };
        let items = self.shard.items(self.manifest);
        let mut standings: Vec<Standing> = (0..self.manifest.len())
            .map(|item| {
                let Last { state, warned, code, .. } = folded.last(item);
                Standing { state, warned, code }
            })
            .collect();
        drop(folded);
        let todo: Vec<u32> =
            items.iter().copied().filter(|&item| self.is_to_do(standings[item as usize].state)).collect();
        let ledger = Ledger::create(self.ledger)?;
        let queue = Queue::new(todo, self.limits, stop);
        let failure = Mutex::new(None);
        let (mut tally, states) = (Tally::default(), standings.clone());
        std::thread::scope(|scope| -> Result<()> {
            let (send, records) = sync_channel(SHOWN_LATER);
            let (queue, ledger, failure, states) = (&queue, &ledger, &failure, &states);
            for _ in 0..self.limits.jobs.max(1) {
                let send = send.clone();
                scope.spawn(move || {
                    let is_finished = |item: u32| states[item as usize].state.is_finished();
                    if let Err(error) = self.work_off(queue, ledger, &is_finished, &send) {
                        queue.close();
                        failure.lock_unpoisoned().get_or_insert(error);
                    }
                });
            }
            drop(send);
            let mut shown = Ok(());
            for (item, record) in records {
                standings[item as usize] = Standing::of(&record);
                tally.add(&record);
                if shown.is_ok() {
                    shown = show(&record);
                    if shown.is_err() {
                        queue.close();
                    }
                }
            }
            shown
        })?;
        if let Some(error) = failure.lock_unpoisoned().take() {
            return Err(error);
        }
        items.iter().for_each(|&item| tally.end(standings[item as usize]));
        Ok(tally)
    }

    fn is_to_do(&self, state: State) -> bool {
        match state {
            _ if state.is_finished() => self.work.trust() != Trust::Ledger,
            _ if state.is_final_failure() => self.again,
            _ => true,
        }
    }

    /// Work of one thread.
    fn work_off(
        &self,
        queue: &Queue<'_>,
        ledger: &Ledger,
        is_finished: &dyn Fn(u32) -> bool,
        send: &SyncSender<(u32, Record)>,
    ) -> Result<()> {
        while let Some(attempt) = queue.next(|item| self.manifest.bytes(item as usize)) {
            let Attempt { item: number, number: tries } = attempt;
            let again = match self.do_one(queue, attempt, is_finished(number)) {
                Ok(Some(record)) => {
                    let again = record.state == State::Retry && tries <= self.limits.retries;
                    let again = again.then(|| self.limits.pause(tries));
                    let written = ledger.append(&record);
                    // the receiver ends early if records cannot be shown
                    let _ = send.send((number, record));
                    written.map(|()| again)
                }
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            };
            queue.finish(attempt, *again.as_ref().unwrap_or(&None));
            again?;
        }
        Ok(())
    }

    /// `None` without anything to record: the item is finished, or the run has ended.
    fn do_one(&self, queue: &Queue<'_>, attempt: Attempt, is_finished: bool) -> Result<Option<Record>> {
        let item = self.manifest.read(attempt.item as usize)?;
        let writes = Verb::find(&item.verb)?.effect == Effect::Writes;
        if is_finished && !writes {
            return Ok(None);
        }
        if let Some(directory) = item.output().and_then(Path::parent).filter(|_| writes) {
            self.wait_for_space(queue, directory);
            if queue.has_ended() {
                return Ok(None);
            }
        }
        let is_last = attempt.number > self.limits.retries;
        let record = self.work.attempt(&item, attempt.number, is_last, &|| queue.is_stopped());
        Ok(Some(record).filter(|record| !(is_finished && record.state == State::Skipped)))
    }

    /// Waits for the free space that the limits demand, or the end of the run; warns once.
    fn wait_for_space(&self, queue: &Queue<'_>, directory: &Path) {
        let mut told = false;
        while !self.limits.has_space(directory) && !queue.has_ended() {
            if !told {
                let (free, place) = (bytes(self.limits.min_free), directory.display());
                warning(&format!("{place}: less than {free} is free (--min-free): no item starts until it is"));
                told = true;
            }
            queue.pause(SPACE_PAUSE);
        }
    }
}
