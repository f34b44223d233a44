//! Tests that a MultiFile has the state of a commit at whatever moment its writer is stopped: the
//! last one, or the one under way.
//!
//! A journal records all writes and syncs. At a moment the file may have everything up to then, a
//! write in pages (the process was killed), or everything up to the last sync and any part of the
//! later writes, in sectors (the power failed).

use std::sync::{Arc, Mutex};

use ctds_hdf5_testing::property;
use ctds_hdf5_testing::proptest::collection::vec;
use ctds_hdf5_testing::proptest::prelude::*;
use ctds_hdf5_testing::proptest::strategy::ValueTree;
use ctds_hdf5_testing::proptest::test_runner::TestRunner;

use super::tests::{Change, Files, change, contents};
use super::*;
use crate::container::{ContainerMut, Memory};
use crate::io::{MemoryFile, WriteAt};
use crate::sync::LockUnpoisoned;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Killed,
    PowerFailed,
}

impl Stop {
    /// Bytes that a stopped writer has written completely or not at all.
    fn unit_bytes(self) -> u64 {
        match self {
            Stop::Killed => 4096,
            Stop::PowerFailed => 512,
        }
    }
}

#[derive(Debug, Clone)]
enum Event {
    /// Offset and bytes, within one unit.
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
}

#[derive(Debug)]
struct Journal {
    unit_bytes: u64,
    file: MemoryFile,
    events: Mutex<Vec<Event>>,
}

impl Journal {
    fn record(&self, event: Event) {
        self.events.lock_unpoisoned().push(event);
    }

    fn moment(&self) -> usize {
        self.events.lock().unwrap().len()
    }
}

impl ReadAt for Journal {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, out)
    }
}

impl WriteAt for Journal {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.file.write_at(offset, data)?;
        let (mut offset, mut data) = (offset, data);
        while !data.is_empty() {
            let (part, rest) =
                data.split_at((self.unit_bytes - offset % self.unit_bytes).min(data.len() as u64) as usize);
            self.record(Event::Write(offset, part.to_vec()));
            offset += part.len() as u64;
            data = rest;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.record(Event::SetLen(len));
        self.file.set_len(len)
    }

    fn sync(&self) -> Result<()> {
        self.record(Event::Sync);
        Ok(())
    }
}

/// The number of events before and after, and the files that were committed.
struct Commit {
    start: usize,
    end: usize,
    files: Files,
}

/// Changes before each commit, and bits that select the unsynced writes that are lost.
#[derive(Debug, Clone)]
struct History {
    commits: Vec<Vec<Change>>,
    lost: Vec<u64>,
}

fn history() -> impl Strategy<Value = History> {
    (vec(vec(change(), 0..6), 40), vec(any::<u64>(), 64)).prop_map(|(commits, lost)| History { commits, lost })
}

impl History {
    /// Whether a power failure at `moment` loses write `number`, in one of several random choices.
    fn is_lost(&self, moment: usize, attempt: usize, number: usize) -> bool {
        let word = self.lost[(moment * 7 + attempt * 13 + number / 64) % self.lost.len()];
        attempt > 0 && word.rotate_left((number + moment) as u32) & 1 == 0
    }
}

fn record(stop: Stop, history: &History, block_bytes: u64, checksums: bool) -> (Vec<Event>, Vec<Commit>) {
    let journal =
        Arc::new(Journal { unit_bytes: stop.unit_bytes(), file: MemoryFile::default(), events: Mutex::default() });
    let container = MultiFileMut::create(journal.clone(), block_bytes, checksums).unwrap();
    let (mut files, mut commits) = (Files::new(), Vec::new());
    for changes in &history.commits {
        changes.iter().for_each(|change| change.apply(&container, &mut files, block_bytes));
        let start = journal.moment();
        container.commit().unwrap();
        commits.push(Commit { start, end: journal.moment(), files: files.clone() });
    }
    let events = journal.events.lock().unwrap().clone();
    (events, commits)
}

fn replay<'a>(events: impl Iterator<Item = &'a Event>) -> Vec<u8> {
    let file = MemoryFile::default();
    for event in events {
        match event {
            Event::Write(offset, data) => file.write_at(*offset, data).unwrap(),
            Event::SetLen(len) => file.set_len(*len).unwrap(),
            Event::Sync => {}
        }
    }
    file.bytes()
}

/// Counts states after a stop at any event that are neither the last commit's nor the next one's.
fn wrong_states(stop: Stop, events: &[Event], commits: &[Commit], history: &History) -> usize {
    let mut wrong = 0;
    for moment in 0..=events.len() {
        let last = commits.iter().rev().find(|commit| commit.end <= moment);
        let under_way = commits.iter().find(|commit| commit.start <= moment && moment < commit.end);
        let synced = events[..moment].iter().rposition(|event| matches!(event, Event::Sync)).map_or(0, |sync| sync + 1);
        for attempt in 0..if stop == Stop::Killed { 1 } else { 6 } {
            let mut part = Vec::new();
            for (number, event) in events[synced..moment].iter().enumerate() {
                if !history.is_lost(moment, attempt, number) {
                    part.push(event);
                }
            }
            let bytes = replay(events[..synced].iter().chain(part));
            let found = contents(&Memory::new([("table.mf", bytes)]));
            let right = match (&found, last, under_way) {
                (Ok(found), last, new) => last.into_iter().chain(new).any(|commit| commit.files == *found),
                // before the first commit there is nothing
                (Err(_), last, _) => last.is_none(),
            };
            wrong += usize::from(!right);
        }
    }
    wrong
}

#[test]
fn old_or_new_state_at_every_moment() {
    use Stop::{Killed, PowerFailed};
    for (stop, block_bytes, checksums) in [
        (PowerFailed, 128, false),
        (PowerFailed, 128, true),
        (PowerFailed, 512, false),
        (PowerFailed, 400, true),
        (Killed, 1024, true),
        (Killed, 5000, false),
    ] {
        property(1, history(), |history| {
            let (events, commits) = record(stop, &history, block_bytes, checksums);
            let wrong = wrong_states(stop, &events, &commits, &history);
            assert_eq!(wrong, 0, "{stop:?}: blocks of {block_bytes} bytes, checksums {checksums}");
        });
    }
}

#[test]
fn each_of_the_two_syncs_of_a_commit_is_needed() {
    let history = history().new_tree(&mut TestRunner::deterministic()).unwrap().current();
    let (events, commits) = record(Stop::PowerFailed, &history, 128, false);
    for missing in [0, 1] {
        let mut syncs = 0;
        let events = events.iter().map(|event| match event {
            Event::Sync => {
                syncs += 1;
                // numbers of events stay what they are
                if syncs % 2 == missing { Event::Write(0, Vec::new()) } else { Event::Sync }
            }
            event => event.clone(),
        });
        let wrong = wrong_states(Stop::PowerFailed, &events.collect::<Vec<_>>(), &commits, &history);
        assert!(wrong > 0, "nothing goes wrong without sync {missing}");
    }
}
