//! The board of the server, a page that lists all live files: one stream of events with the state
//! of each file.

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

/// Live files on the board; further ones are only counted.
const MAX_FILES: usize = 256;

const ROUND: Duration = Duration::from_secs(1);

/// A state is sent again after this time even if it has not changed.
const AT_LEAST: Duration = Duration::from_secs(5);

const SEARCH: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Board {
    lines: watch::Sender<Lines>,
    /// Whether a task polls; it runs while any client shows the board.
    is_running: Mutex<bool>,
}

/// The newest state ("line") of each live file. Clients are sent changes as events, whose number,
/// from 1, is the version.
#[derive(Default)]
pub(super) struct Lines {
    /// Version of the newest event. A client is sent the events with a higher one than it has.
    version: u64,
    files: BTreeMap<String, Line>,
    /// Version of the last change (0 before the first search), live files listed, and those left
    /// out beyond `MAX_FILES`.
    extent: (u64, usize, usize),
}

struct Line {
    version: u64,
    sent: Instant,
    state: Json,
    event: Arc<str>,
}

/// Listed files, and the time of the search.
struct Followed {
    files: Vec<(String, PathBuf)>,
    left_out: usize,
    /// Served files and tables that were not opened yet, which may be live.
    unknown: usize,
    searched: Instant,
}

impl Board {
    /// Every state at the start, then each that changes.
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
        let receiver = self.follow(shared, open);
        let events = news::stream(receiver, move |lines| (lines.since(&mut version), false));
        event_stream(Body::pieces(events, None).keeping(place))
    }

    /// Follows all live files as long as the receiver is kept.
    pub(super) fn follow(self: &Arc<Self>, shared: &Arc<Shared>, open: &Arc<OpenFiles>) -> watch::Receiver<Lines> {
        let receiver = self.lines.subscribe();
        self.run(shared, open);
        receiver
    }

    pub(super) fn states(&self) -> Vec<(String, Json)> {
        self.lines.borrow().files.iter().map(|(name, line)| (name.clone(), line.state.clone())).collect()
    }

    /// Does nothing if the task runs already.
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
                // files of the last round stay open until they are asked for again
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
    /// The first `MAX_FILES` by name; `None` if the server ends.
    async fn search(shared: &Arc<Shared>) -> Option<Self> {
        let own = Arc::clone(shared);
        let (mut files, unknown) = shared.pool.run(Admission::Begun, move || own.sources.live_files()).await.ok()?;
        let left_out = files.len().saturating_sub(MAX_FILES);
        files.truncate(MAX_FILES);
        Some(Followed { files, left_out, unknown, searched: Instant::now() })
    }
}

impl Lines {
    /// Forgets other files; true if the number of listed or left out files changed, and at first.
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

    /// Returns whether clients are to be sent an event.
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

    /// Events after `version`, which becomes that of the newest.
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
