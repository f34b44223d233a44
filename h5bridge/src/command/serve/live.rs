//! Answers of the server below `/live`: events about served files, such as live ones (HDF5 files to
//! which a program appends), and the data of their plots.

use std::sync::Arc;

use hyper::HeaderMap;
use ms_look::Rule;
use serde_json::Value as Json;
use tokio::sync::{Semaphore, watch};

use super::board::{Board, Lines};
use super::live_file::LiveFile;
use super::open_files::OpenFiles;
use super::query::{self, Query};
use super::reply::Reply;
use super::shared::{Shared, lost, missing, refusal};
use super::sources::status_of;
use super::work::Admission;

const MAX_STREAMS: usize = 64;

/// Alert rules in one request.
const MAX_RULES: usize = 16;

pub(super) struct Lives {
    files: Arc<OpenFiles>,
    board: Arc<Board>,
    streams: Arc<Semaphore>,
}

impl Default for Lives {
    fn default() -> Self {
        Lives { files: Arc::default(), board: Arc::default(), streams: Arc::new(Semaphore::new(MAX_STREAMS)) }
    }
}

impl Lives {
    /// `describe` (what can be plotted, as JSON), `plot/KIND` (the data of a plot), `events` (of
    /// one file) or `board`; 404 for any other `path`.
    pub(super) async fn answer(
        &self,
        shared: &Arc<Shared>,
        path: &str,
        query: &str,
        headers: &HeaderMap,
        is_head: bool,
    ) -> Reply {
        let kind = path.strip_prefix("plot/");
        if !(["describe", "events", "board"].contains(&path) || kind.is_some()) {
            return refusal(404, "not found");
        }
        let parameters = query::parse(query);
        let busy = || refusal(503, "too many event streams are open; try again");
        if path == "board" {
            let Ok(place) = Arc::clone(&self.streams).try_acquire_owned() else { return busy() };
            return self.board.events(shared, &self.files, place, is_head);
        }
        let file = match self.file(shared, &parameters).await {
            Ok(file) => file,
            Err(reply) => return *reply,
        };
        match kind {
            Some(kind) => file.frame(shared, kind, query, &parameters, headers, is_head).await,
            None if path == "describe" => file.describe(shared, is_head).await,
            None => match (rules(&parameters), Arc::clone(&self.streams).try_acquire_owned()) {
                (Err(reply), _) => *reply,
                (Ok(_), Err(_)) => busy(),
                (Ok(rules), Ok(place)) => file.events(shared, place, rules, is_head).await,
            },
        }
    }

    /// One reader for all clients, made if needed. An error is the answer that refuses the request.
    async fn file(&self, shared: &Arc<Shared>, parameters: &Query) -> Result<Arc<LiveFile>, Box<Reply>> {
        let name = query::value(parameters, "file").ok_or_else(|| refusal(422, "the parameter file is missing"))?;
        let (own, wanted) = (Arc::clone(shared), name.to_owned());
        let found = shared.pool.run(Admission::New, move || own.sources.find(&wanted)).await.map_err(lost)?;
        let path = found.map_err(|reason| {
            let (status, message) = missing(reason);
            refusal(status, &message)
        })?;
        let file = self.files.get(shared, path, name);
        file.ok_or_else(|| refusal(503, "too many files are open; try again").into())
    }

    /// Follows all live files as long as the receiver is kept.
    pub(super) fn follow(&self, shared: &Arc<Shared>) -> watch::Receiver<Lines> {
        self.board.follow(shared, &self.files)
    }

    pub(super) fn states(&self) -> Vec<(String, Json)> {
        self.board.states()
    }

    /// Event streams, and files that are open for events, plots and the board.
    pub(super) fn counts(&self) -> (usize, usize) {
        (MAX_STREAMS - self.streams.available_permits(), self.files.len())
    }

    pub(super) async fn reap(&self, shared: &Arc<Shared>) {
        self.files.reap(shared).await;
    }
}

/// The parameter `alert`, repeated, or with several rules separated by commas.
fn rules(parameters: &Query) -> Result<Vec<Rule>, Box<Reply>> {
    let values = parameters.iter().filter(|(name, _)| name == "alert").flat_map(|(_, value)| value.split(','));
    let texts: Vec<&str> = values.map(str::trim).filter(|text| !text.is_empty()).collect();
    if texts.len() > MAX_RULES {
        let message = format!("{} rules for alerts; a request has {MAX_RULES} at most", texts.len());
        return Err(refusal(422, &message).into());
    }
    let rule = |text: &str| text.parse::<Rule>();
    let rules: Result<Vec<Rule>, _> = texts.into_iter().map(rule).collect();
    rules.map_err(|error| refusal(status_of(error.kind()), &error.to_string()).into())
}
