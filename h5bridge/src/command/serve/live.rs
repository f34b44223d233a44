//! `/live`: the state of files that grow, and frames of their plots.

use std::sync::Arc;

use hyper::HeaderMap;

use super::reply::Reply;
use super::shared::{Shared, refusal};

/// Files that clients look at.
#[derive(Default)]
pub(super) struct Lives {}

impl Lives {
    /// Answers `/live/…`; `path` is what follows.
    pub(super) async fn answer(
        &self,
        _shared: &Arc<Shared>,
        _path: &str,
        _query: &str,
        _headers: &HeaderMap,
        _is_head: bool,
    ) -> Reply {
        refusal(404, "not found")
    }
}
