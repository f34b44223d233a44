//! Rules for when appended rows of a live file become visible.

use std::time::Duration;

/// When rows appended to a live file become visible to readers, and whether they survive a power
/// failure.
///
/// By default [`Batch::append`](super::Batch::append) commits once a second, without waiting for
/// the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitPolicy {
    /// A call of [`Batch::append`](super::Batch::append) commits (makes rows visible to readers) if
    /// the last commit is at least this long ago; `None`: time does not matter. Without a call
    /// nothing is committed.
    pub every: Option<Duration>,
    /// A call of [`Batch::append`](super::Batch::append) commits if at least this many rows, of all
    /// tables together, are not yet committed; `None`: their number does not matter.
    pub rows: Option<u64>,
    /// Whether a commit waits until the data are on the disk.
    pub durability: Durability,
}

impl Default for CommitPolicy {
    fn default() -> Self {
        CommitPolicy { every: Some(Duration::from_secs(1)), ..Self::manual() }
    }
}

impl CommitPolicy {
    /// A policy under which only [`Writer::commit`](super::Writer::commit) and
    /// [`Writer::close`](super::Writer::close) commit.
    pub fn manual() -> Self {
        CommitPolicy { every: None, rows: None, durability: Durability::PageCache }
    }

    /// Sets the time after which appended rows are committed (made visible to readers): each call
    /// of [`Batch::append`](super::Batch::append) commits if the last commit is at least `time`
    /// ago. Without a call nothing is committed.
    #[must_use]
    pub fn every(mut self, time: Duration) -> Self {
        self.every = Some(time);
        self
    }

    /// Sets the number of appended rows that are committed together: each call of
    /// [`Batch::append`](super::Batch::append) commits if at least `rows` rows, of all tables
    /// together, are not committed.
    #[must_use]
    pub fn every_rows(mut self, rows: u64) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Sets whether a commit waits until the data are on the disk.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }
}

/// Whether a commit waits until the data are on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A commit hands the data to the page cache of the operating system: other processes see it,
    /// and it survives a crash of this process but not a power failure.
    #[default]
    PageCache,
    /// A commit waits until first the rows, and then the number of committed rows, are on the disk
    /// (`fdatasync`).
    Disk,
}
