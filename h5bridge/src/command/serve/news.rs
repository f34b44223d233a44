//! Events (server-sent events) about a served file for the clients that watch it. Only the newest
//! event of each kind is kept, so that a slow client skips older ones.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use ms_look::Rule;
use serde_json::json;
use tokio::sync::{mpsc, watch};

/// An empty comment finds out whether the client is still connected.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// The newest event of each kind, numbered from 1; 0 is none.
#[derive(Debug, Clone, Default)]
pub(super) struct News {
    pub(super) look: (u64, Arc<str>),
    pub(super) revision: u64,
    pub(super) progress: (u64, Progress),
    pub(super) alerts: Arc<[Told]>,
    /// Number, and the reason why the file cannot be read now.
    pub(super) problem: (u64, Option<Arc<str>>),
    pub(super) end: Option<&'static str>,
}

/// An alert begins, changes or ends.
#[derive(Debug, Clone)]
pub(super) struct Told {
    /// Counted from 1 over all alerts of the file; clients are sent those above their last one.
    pub(super) number: u64,
    pub(super) rule: String,
    pub(super) active: bool,
    pub(super) text: String,
    pub(super) document: Arc<str>,
}

/// Rows read of the main table, and all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) rows_used: u64,
    pub(super) rows: u64,
}

/// Newest events that a client has, and its rules.
struct Client {
    has_begun: bool,
    looks: u64,
    progress: u64,
    alerts: u64,
    problems: u64,
    rules: HashSet<String>,
}

impl Client {
    /// Events that are new to the client.
    fn events(&mut self, news: &News) -> String {
        let mut events = String::new();
        if news.problem.0 > self.problems {
            self.problems = news.problem.0;
            events.push_str(&event("problem", &json!({"message": news.problem.1.as_deref()}).to_string()));
        }
        if news.look.0 > self.looks {
            self.looks = news.look.0;
            events.push_str(&format!("event: look\nid: {}\ndata: {}\n\n", news.revision, news.look.1));
        }
        if news.progress.0 > self.progress {
            self.progress = news.progress.0;
            let Progress { rows_used, rows } = news.progress.1;
            events.push_str(&event("progress", &json!({"rows_used": rows_used, "rows": rows}).to_string()));
        }
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let is_new = |told: &&Told| told.number > self.alerts && self.rules.contains(&told.rule);
        let mut alerts: Vec<&Told> = news.alerts.iter().filter(is_new).collect();
        alerts.sort_by_key(|told| told.number);
        self.alerts = alerts.last().map_or(self.alerts, |told| told.number);
        // alerts that ended before the client came are not told
        for told in alerts.into_iter().filter(|told| told.active || !is_first) {
            events.push_str(&event("alert", &told.document));
        }
        if let Some(reason) = news.end {
            events.push_str(&event("end", &json!({"reason": reason}).to_string()));
        }
        events
    }
}

pub(super) fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// `look` (newest state), `progress` (rows read for plots), `problem`, `end`, and `alert`.
/// `own_rules` are dropped when the client disconnects.
pub(super) fn of_file(
    news: watch::Receiver<News>,
    own_rules: Arc<[Rule]>,
    server_rules: &[Rule],
) -> mpsc::Receiver<io::Result<Bytes>> {
    let progress = news.borrow().progress.0;
    let rules = own_rules.iter().chain(server_rules).map(ToString::to_string).collect();
    let mut client = Client { has_begun: false, looks: 0, progress, alerts: 0, problems: 0, rules };
    stream(news, move |news| {
        let _held = &own_rules;
        (client.events(news), news.end.is_some())
    })
}

/// `events` returns text for each new value, and whether it is the last.
pub(super) fn stream<T: Send + Sync + 'static>(
    mut news: watch::Receiver<T>,
    mut events: impl FnMut(&T) -> (String, bool) + Send + 'static,
) -> mpsc::Receiver<io::Result<Bytes>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut text = "retry: 1000\n\n".to_owned();
        loop {
            // the place first, so that the newest state is sent
            let Ok(place) = sender.reserve().await else { return };
            let (new, is_end) = events(&news.borrow_and_update());
            text.push_str(&new);
            if !text.is_empty() {
                place.send(Ok(Bytes::from(std::mem::take(&mut text))));
            }
            if is_end {
                return;
            }
            match tokio::time::timeout(SIGN_OF_LIFE, news.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                // a comment
                Err(_) => text.push_str(":\n\n"),
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(number: u64, rule: &str, active: bool) -> Told {
        let document = format!("{rule} {active}").into();
        Told { number, rule: rule.to_owned(), active, text: String::new(), document }
    }

    #[test]
    fn a_client_gets_what_is_new_of_its_rules() {
        let rules = ["a", "b"].map(str::to_owned).into();
        let mut client = Client { has_begun: false, looks: 0, progress: 0, alerts: 0, problems: 0, rules };
        let mut news = News::default();
        let mut tell = |alerts: &[Told]| {
            news.alerts = alerts.into();
            client.events(&news).replace("event: alert\ndata: ", "").replace("\n\n", ";")
        };
        let first = [told(3, "a", false), told(2, "b", true), told(4, "other", true)];
        assert_eq!(tell(&first), "b true;", "what has ended before it came is not told");
        assert_eq!(tell(&first), "");
        assert_eq!(tell(&[told(6, "a", true), told(5, "b", false)]), "b false;a true;");
        assert_eq!(tell(&[told(9, "a", true), told(8, "b", false)]), "b false;a true;", "those between were missed");
        news.problem = (1, Some("no such file".into()));
        assert_eq!(client.events(&news), "event: problem\ndata: {\"message\":\"no such file\"}\n\n");
        assert_eq!(client.events(&news), "");
        news.problem = (2, None);
        assert_eq!(client.events(&news), "event: problem\ndata: {\"message\":null}\n\n");
    }
}
