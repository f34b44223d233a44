//! The board of the server, a page that lists all live files: one stream of events with the state of each file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ctds_hdf5::program::LockUnpoisoned;
use serde_json::{Value as Json, json};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::live_file::LiveFile;
use super::news;
use super::open_files::OpenFiles;
use super::reply::{Body, Reply, event_stream};
use super::shared::Shared;
use super::work::Admission;

/// Maximum number of live files that the board (the page that lists all live files) shows at a time; further ones are
/// only counted.
const MAX_FILES: usize = 256;

/// Pause between two polls of a live file for the board.
const ROUND: Duration = Duration::from_secs(1);

/// Time after which the state of a live file is sent again to clients that show the board, even if
/// it has not changed.
const AT_LEAST: Duration = Duration::from_secs(5);

/// Pause between two searches of the served directories for new live files, while the board (the page that lists them)
/// is shown.
const SEARCH: Duration = Duration::from_secs(10);

/// The states of all live files of a server, as sent to clients that show the board.
#[derive(Default)]
pub(super) struct Board {
    lines: watch::Sender<Lines>,
    /// Whether a task polls the live files; it runs while any client shows the board.
    is_running: Mutex<bool>,
}

/// The newest state ("line") of each live file (a native HDF5 file to which a program appends rows). Clients are sent
/// changes as events. The number of an event, counted from 1, is called its version.
#[derive(Default)]
struct Lines {
    /// Number of events made so far, about lines (states of live files) and about the counts of files: the version of
    /// the newest event. A client is sent the events with a higher version than those that it has.
    version: u64,
    files: BTreeMap<String, Line>,
    /// Counts of live files (native HDF5 files to which a program appends rows): the version of their last change (the
    /// number of the event, counted from one; 0 before the first search), then how many the board (the page of all live
    /// files) lists, and how many beyond `MAX_FILES` it leaves out.
    extent: (u64, usize, usize),
}

/// The state of one live file, as it is sent to clients that show the board.
struct Line {
    version: u64,
    sent: Instant,
    state: Json,
    event: Arc<str>,
}

/// Names and paths of the live files that the board lists, and the time of the search that found
/// them.
struct Followed {
    files: Vec<(String, PathBuf)>,
    left_out: usize,
    /// Number of served files and tables that have not been opened yet, so that it is not known
    /// which of them are live files.
    unknown: usize,
    searched: Instant,
}

impl Board {
    /// A stream of server-sent events with the states of the live files: every state at the start,
    /// then each state that changes.
    pub(super) fn events(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        open: &Arc<OpenFiles>,
        place: OwnedSemaphorePermit,
        is_head: bool,
    ) -> Reply {
        if is_head {
            return event_stream(Body::empty());
        }
        let mut version = 0;
        let receiver = self.lines.subscribe();
        self.run(shared, open);
        let events = news::stream(receiver, move |lines| (lines.since(&mut version), false));
        event_stream(Body::pieces(events, None).keeping(place))
    }

    /// Starts the task that polls all live files as long as any client shows the board. Does
    /// nothing if that task runs already.
    fn run(self: &Arc<Self>, shared: &Arc<Shared>, open: &Arc<OpenFiles>) {
        if std::mem::replace(&mut *self.is_running.lock_unpoisoned(), true) {
            return;
        }
        let (board, shared, open) = (Arc::clone(self), Arc::clone(shared), Arc::clone(open));
        tokio::spawn(async move {
            let mut followed: Option<Followed> = None;
            let mut held: Vec<Arc<LiveFile>> = Vec::new();
            loop {
                let start = Instant::now();
                {
                    let mut is_running = board.is_running.lock_unpoisoned();
                    if board.lines.receiver_count() == 0 {
                        *is_running = false;
                        board.lines.send_modify(|lines| lines.files.clear());
                        return;
                    }
                }
                let is_due =
                    |known: &Followed| known.searched.elapsed() >= if known.unknown > 0 { ROUND } else { SEARCH };
                if followed.as_ref().is_none_or(is_due)
                    && let Some(found) = Followed::search(&shared).await
                {
                    board.lines.send_if_modified(|lines| lines.keep(&found));
                    followed = Some(found);
                }
                // those of the last round stay open until they are asked for again
                let mut files = Vec::new();
                for (name, path) in followed.iter().flat_map(|followed| &followed.files) {
                    if board.lines.receiver_count() == 0 {
                        break;
                    }
                    let Some(file) = open.get(&shared, path.clone(), name) else { continue };
                    if let Some(line) = file.line(&shared).await {
                        board.lines.send_if_modified(|lines| lines.put(&file.name, line));
                    }
                    files.push(file);
                }
                drop(std::mem::replace(&mut held, files));
                tokio::time::sleep(ROUND.saturating_sub(start.elapsed())).await;
            }
        });
    }
}

impl Followed {
    /// Searches all served files and directories for live files, and keeps the first `MAX_FILES` by
    /// name; `None` if the server ends.
    async fn search(shared: &Arc<Shared>) -> Option<Self> {
        let own = Arc::clone(shared);
        let (mut files, unknown) = shared.pool.run(Admission::Begun, move || own.sources.live_files()).await.ok()?;
        let left_out = files.len().saturating_sub(MAX_FILES);
        files.truncate(MAX_FILES);
        Some(Followed { files, left_out, unknown, searched: Instant::now() })
    }
}

impl Lines {
    /// Forgets the states of live files that are not in `followed`, the result of the newest search. Returns whether
    /// one of two counts has changed since the search before: files in `followed`, and live files that it leaves out
    /// because there are more than `MAX_FILES`. The first call returns true.
    fn keep(&mut self, followed: &Followed) -> bool {
        self.files.retain(|name, _| followed.files.iter().any(|(known, _)| known == name));
        let (version, files, left_out) = self.extent;
        let is_same = (files, left_out) == (followed.files.len(), followed.left_out) && version > 0;
        if !is_same {
            self.version += 1;
            self.extent = (self.version, followed.files.len(), followed.left_out);
        }
        !is_same
    }

    /// Records the newest state of the live file `name` for the board; returns whether clients are
    /// to be sent an event.
    fn put(&mut self, name: &str, state: Json) -> bool {
        // ages go on by themselves
        let lasting = ["open", "rows", "rows_per_second", "flagged", "revision", "alerts", "problem"];
        let is_same = |before: &Line| lasting.iter().all(|key| before.state[key] == state[key]);
        if self.files.get(name).is_some_and(|before| is_same(before) && before.sent.elapsed() < AT_LEAST) {
            return false;
        }
        self.version += 1;
        let event = news::event("look", &state.to_string()).into();
        self.files.insert(name.to_owned(), Line { version: self.version, sent: Instant::now(), state, event });
        true
    }

    /// Formats the events whose version (number of the event, from 1) is higher than `version`: those of the live files, and the one
    /// that says how many live files are followed and how many are left out. Sets `version` to that of the newest event.
    fn since(&self, version: &mut u64) -> String {
        let before = std::mem::replace(version, self.version);
        let mut events = String::new();
        let (changed, files, left_out) = self.extent;
        if changed > before {
            events.push_str(&news::event("board", &json!({"files": files, "left_out": left_out}).to_string()));
        }
        self.files.values().filter(|line| line.version > before).for_each(|line| events.push_str(&line.event));
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_lines_that_are_new_to_them() {
        let mut lines = Lines::default();
        let state = |rows: u64, age: f64| json!({"rows": rows, "commit_age_seconds": age});
        let followed = |names: &[&str], left_out| Followed {
            files: names.iter().map(|name| ((*name).to_owned(), PathBuf::new())).collect(),
            left_out,
            unknown: 0,
            searched: Instant::now(),
        };
        let (mut first, mut second) = (0, 0);
        assert!(lines.keep(&followed(&["a", "b"], 3)) && !lines.keep(&followed(&["a", "b"], 3)));
        assert!(lines.put("a", state(1, 0.)) && lines.put("b", state(1, 0.)));
        let events = lines.since(&mut first);
        assert!(events.starts_with("event: board\ndata: {\"files\":2,\"left_out\":3}\n\n"), "{events}");
        assert_eq!(events.matches("event: look").count(), 2);
        assert_eq!(lines.since(&mut first), "");
        assert!(!lines.put("a", state(1, 5.)), "an age alone is not sent");
        assert!(lines.put("a", state(2, 0.)) && lines.put("a", state(3, 0.)));
        let events = lines.since(&mut first);
        assert!(events.contains("\"rows\":3") && events.matches("event: ").count() == 1, "{events}");
        assert_eq!(lines.since(&mut second).matches("event: ").count(), 3);
        lines.keep(&followed(&["b"], 0));
        assert_eq!(lines.files.keys().collect::<Vec<_>>(), ["b"]);
    }
}
