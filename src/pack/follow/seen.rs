//! Lengths and times of the files of a table and its subtables, and the counters of their writers:
//! by them it is known which files must be compared again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::error::{Context, Result, ResultExt};
use crate::pack::file_set::{Folder, SetFile};
use crate::schema::Sync;
use crate::stman;
use crate::table::{Snapshot, Watch};

/// Casacore's lock file, whose time also changes when it is locked or asked for.
pub(super) const TABLE_LOCK: &str = "table.lock";

/// Time until a write surely changes a modification time: clocks tick 100 times a second or more.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// A table whose writer is watched.
#[derive(Debug)]
pub(super) struct WatchedTable {
    /// `ANTENNA/`; empty for the main table.
    pub(super) prefix: String,
    pub(super) watch: Watch,
    /// Number at the last commit.
    pub(super) rows: Option<u64>,
}

/// State of the directories at a moment. Two equal states show that no file changed between them,
/// if the first one is settled.
#[derive(Debug)]
pub(super) struct Seen {
    at: SystemTime,
    entries: BTreeMap<String, Stamp>,
    /// Sync records by prefix; missing while one is being written.
    syncs: BTreeMap<String, Sync>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    /// 0 for a directory, whose entries are looked at.
    len: u64,
    /// `None` for a directory.
    modified: Option<SystemTime>,
}

/// Equal marks show that a file has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    stamp: Stamp,
    /// Changes of the file's data manager, or of the table: files that are mapped into memory
    /// change without changing their time.
    count: Option<u32>,
}

impl PartialEq for Seen {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries && self.syncs == other.syncs
    }
}

impl Seen {
    /// Looks into the `folders` below `source`, each named by its prefix.
    pub(super) fn look(source: &Path, folders: &BTreeSet<String>, tables: &[WatchedTable]) -> Result<Self> {
        let mut seen = Seen { at: SystemTime::now(), entries: BTreeMap::new(), syncs: BTreeMap::new() };
        for table in tables {
            if let Some(sync) = table.watch.sync()? {
                seen.syncs.insert(table.prefix.clone(), sync);
            }
        }
        for prefix in folders {
            let folder = source.join(prefix);
            // one that was removed is missing in the directory above
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries {
                let entry = entry.with_context(|| Context::path(&folder))?;
                let name = entry.file_name();
                // a file may be gone since, and a link may lead nowhere
                let Ok(metadata) = fs::metadata(entry.path()) else { continue };
                if name == TABLE_LOCK {
                    continue;
                }
                let (inode, is_file) = (metadata.ino(), metadata.is_file());
                let (len, modified) = if is_file { (metadata.len(), Some(metadata.modified()?)) } else { (0, None) };
                let path = format!("{prefix}{}", name.to_string_lossy());
                seen.entries.insert(path, Stamp { inode, len, modified });
            }
        }
        Ok(seen)
    }

    /// Whether a change after this look would show.
    pub(super) fn is_settled(&self) -> bool {
        self.entries.values().all(|stamp| self.shows_changes(stamp))
    }

    fn shows_changes(&self, stamp: &Stamp) -> bool {
        let is_old = |time| self.at.duration_since(time).is_ok_and(|age| age >= CLOCK_TICK);
        stamp.modified.is_none_or(is_old)
    }

    pub(super) fn rows(&self, prefix: &str) -> Option<u64> {
        self.syncs.get(prefix).map(|sync| sync.rows)
    }

    /// `None` if the file has to be compared the next time in any case: it changed just now, or is
    /// in a container.
    pub(super) fn mark(&self, folder: &Folder, file: &SetFile) -> Option<Mark> {
        if !file.has_path() {
            return None;
        }
        let stamp = *self.entries.get(&format!("{}{}", folder.prefix, file.name))?;
        let count = self.syncs.get(&folder.prefix).map(|sync| {
            let manager = stman::sequence_of(&file.name)
                .and_then(|sequence| folder.managers.iter().position(|manager| *manager == sequence));
            let counted = sync.counters.as_ref().zip(manager);
            counted.and_then(|(counters, manager)| counters.managers.get(manager).copied()).unwrap_or(sync.modify)
        });
        self.shows_changes(&stamp).then_some(Mark { stamp, count })
    }
}

/// Calls `read`; the result says whether a write to any of the tables overlapped.
pub(super) fn between_writes<T>(
    tables: &mut [WatchedTable],
    read: &mut dyn FnMut() -> Result<T>,
) -> Result<Snapshot<T>> {
    let Some((first, others)) = tables.split_first_mut() else { return read().map(Snapshot::Consistent) };
    Ok(match first.watch.snapshot_of(|| between_writes(others, read))? {
        Snapshot::Consistent(inner) => inner,
        Snapshot::Unconfirmed(Ok(Snapshot::Consistent(value))) => Snapshot::Unconfirmed(Ok(value)),
        Snapshot::Unconfirmed(Ok(inner)) => inner,
        Snapshot::Unconfirmed(Err(error)) => Snapshot::Unconfirmed(Err(error)),
        Snapshot::WriterActive => Snapshot::WriterActive,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn changes_show_once_the_clock_has_ticked() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let [before, later] = [now - Duration::from_secs(60), now + Duration::from_secs(60)];
        let write = |name: &str, bytes: &[u8], time: SystemTime| {
            fs::write(folder.path().join(name), bytes).unwrap();
            File::options().write(true).open(folder.path().join(name)).unwrap().set_modified(time).unwrap();
        };
        let folders = BTreeSet::from([String::new()]);
        let look = || Seen::look(folder.path(), &folders, &[]).unwrap();
        write("a", b"one", before);
        write(TABLE_LOCK, b"one", before);
        let first = look();
        assert!(first.is_settled() && first == look());
        // the sync record counts, not the time of the lock file
        write(TABLE_LOCK, b"two", later);
        assert!(first == look());
        write("a", b"two", later);
        assert!(first != look() && !look().is_settled());
        write("a", b"one", before);
        fs::create_dir(folder.path().join("b")).unwrap();
        assert!(first != look() && look().is_settled());
        // a link that leads nowhere
        std::os::unix::fs::symlink("nowhere", folder.path().join("c")).unwrap();
        look();
    }
}
