//! `/metrics`: the state of the server and of its live files for Prometheus.

use std::sync::atomic::{AtomicU64, Ordering};

use ctds_hdf5::program::os::resident_memory;
use hyper::StatusCode;
use serde_json::Value as Json;

use super::live::Lives;
use super::places::Places;
use super::reply::{Body, Reply, reply};
use super::shared::Shared;
use crate::prometheus::{self, Exposition, Kind};

/// First digit of the statuses that are counted.
const CLASSES: [u16; 4] = [2, 3, 4, 5];

#[derive(Default)]
pub(super) struct Metrics {
    answers: [AtomicU64; CLASSES.len()],
}

impl Metrics {
    pub(super) fn count(&self, status: StatusCode) {
        if let Some(at) = CLASSES.iter().position(|class| *class == status.as_u16() / 100) {
            self.answers[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn reply(&self, places: &Places, shared: &Shared, lives: &Lives) -> Reply {
        let mut text = Exposition::new("h5bridge_serve_");
        let answers = CLASSES.iter().zip(&self.answers);
        let answers = answers.map(|(class, count)| (format!("{class}xx"), count.load(Ordering::Relaxed)));
        text.labelled(Kind::Counter, "answers_total", "Answers by status.", "status", answers);
        let (connections, newcomers) = places.counts();
        let (streams, files) = lives.counts();
        let waiting = shared.pool.waiting();
        for (name, help, value) in [
            ("connections", "Connections with an accepted request.", connections),
            ("new_connections", "Connections without an accepted request.", newcomers),
            ("event_streams", "Open streams of events.", streams),
            ("open_files", "Files that are open for events, plots and the board.", files),
            ("waiting_jobs", "Jobs that wait for a thread.", waiting),
        ] {
            text.one(Kind::Gauge, name, help, value);
        }
        text.one(Kind::Gauge, "answer_bytes", "Memory of answers that clients have not read.", shared.memory.held());
        if let Some(bytes) = resident_memory() {
            text.one(Kind::Gauge, "resident_memory_bytes", "Memory of the process.", bytes);
        }
        of_files(&mut text, &lives.states());
        reply(StatusCode::OK, prometheus::CONTENT_TYPE, Body::whole(text.finish()))
    }
}

fn of_files(text: &mut Exposition, states: &[(String, Json)]) {
    let mut each = |name: &str, help: &str, value: fn(&Json) -> Option<f64>| {
        let samples = states.iter().filter_map(|(file, state)| Some((file, value(state)?)));
        text.labelled(Kind::Gauge, name, help, "file", samples);
    };
    each("file_readable", "1 if the live file can be read.", |state| {
        Some(if state["problem"].is_null() { 1.0 } else { 0.0 })
    });
    each("file_open", "1 while a writer has the live file open.", |state| state["open"].as_bool().map(f64::from));
    each("file_rows", "Committed rows of the main table.", |state| state["rows"].as_f64());
    each("file_rows_per_second", "Rows of all tables, a mean over five seconds.", |state| {
        state["rows_per_second"].as_f64()
    });
    each("file_commit_age_seconds", "Since the newest commit with rows.", |state| state["commit_age_seconds"].as_f64());
    each("file_lag_seconds", "Since the newest TIME.", |state| state["lag_seconds"].as_f64());
    each("file_flagged", "Flagged fraction of the newest cells.", |state| state["flagged"].as_f64());
    each("file_alerts", "Active alerts of --alerts.", |state| state["alerts"].as_array().map(|all| all.len() as f64));
}
