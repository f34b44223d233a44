//! State and limits that all requests of the server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::StatusCode;
use ms_look::Rule;

use super::grove::Limits;
use super::quarantine::Quarantine;
use super::reply::{Reply, message};
use super::sources::{Missing, Sources};
use super::tables::Tables;
use super::work::{Lost, Memory, Pool};

pub(super) struct Shared {
    pub(super) sources: Sources,
    pub(super) tables: Tables,
    pub(super) quarantine: Quarantine,
    pub(super) pool: Pool,
    pub(super) memory: Memory,
    pub(super) limits: Limits,
    /// Alert rules for all live files.
    pub(super) rules: Vec<Rule>,
}

impl Shared {
    pub(super) fn rules_have(&self, text: &str) -> bool {
        self.rules.iter().any(|rule| rule.to_string() == text)
    }
}

/// Whether the client still waits; dropped together with the request.
#[derive(Default)]
pub(super) struct Presence(Arc<AtomicBool>);

impl Presence {
    pub(super) fn watcher(&self) -> impl Fn() -> bool + Send + 'static {
        let gone = Arc::clone(&self.0);
        move || !gone.load(Ordering::Relaxed)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// 503 if the job was refused or dropped, 500 if it failed.
pub(super) fn lost(lost: Lost) -> Reply {
    match lost {
        Lost::Busy => message(StatusCode::SERVICE_UNAVAILABLE, "too many requests wait; try again"),
        Lost::Failed => message(StatusCode::INTERNAL_SERVER_ERROR, "the request failed: a defect of h5bridge"),
    }
}

/// The web pages compare the message: do not change it.
pub(super) fn missing(missing: Missing) -> (u16, String) {
    match missing {
        Missing::NotFound => (404, "File not found".to_owned()),
        Missing::Denied => (403, "Permission denied".to_owned()),
    }
}

pub(super) fn refusal(status: u16, text: &str) -> Reply {
    message(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), text)
}
