//! Answers of the server below `/api`: the list of served files, and the contents of HDF5 files and
//! tables.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header;
use hyper::{HeaderMap, StatusCode};
use tokio::sync::mpsc;

use super::grove::{self, Answer, Refusal};
use super::query;
use super::reply::{self, Body, Reply, reply, set_text};
use super::shared::{Presence, Shared, lost, missing, refusal};
use super::sources::Stamp;
use super::work::{Admission, Held};

/// Below `/api`: contents of one file, as in h5grove.
const REQUESTS: [&str; 5] = ["meta", "attr", "data", "stats", "paths"];

/// Reserved for values of a dataset: pieces being sent, the next one, and their source block.
const IN_FLIGHT: u64 = 8 << 20;

/// Smaller answers do not count against the memory limit.
const SMALL: u64 = 64 << 10;

/// Assumed resolution of file times: files changed less than this ago get no entity tag.
const SETTLED: Duration = Duration::from_millis(50);

type Pieces = Box<dyn Iterator<Item = ctds_hdf5::Result<Vec<u8>>> + Send>;

/// Headers and content, made by a worker thread.
struct Made {
    content_type: &'static str,
    disposition: Option<String>,
    length: Option<u64>,
    content: Content,
    etag: Option<String>,
}

enum Content {
    Whole(Vec<u8>),
    /// Made and sent in pieces; the file name for messages.
    Pieces(Pieces, String),
    /// The client already has this answer (same entity tag).
    Known,
}

/// `path` is the part after `/api`.
pub(super) async fn answer(shared: &Arc<Shared>, path: &str, query: &str, headers: &HeaderMap, is_head: bool) -> Reply {
    match path.strip_prefix('/').unwrap_or(path).trim_end_matches('/') {
        "" => reply(StatusCode::OK, "text/plain; charset=utf-8", Body::whole("ok")),
        "files" => files(shared).await,
        request => match REQUESTS.into_iter().find(|known| *known == request) {
            Some(request) => of_file(shared, request, query, headers, is_head).await,
            None => refusal(404, "not found"),
        },
    }
}

async fn files(shared: &Arc<Shared>) -> Reply {
    let presence = Presence::default();
    let (own, go_on) = (Arc::clone(shared), presence.watcher());
    let list = move || serde_json::to_vec(&own.sources.list(go_on));
    match shared.pool.run(Admission::New, list).await {
        Ok(Ok(list)) => reply(StatusCode::OK, reply::JSON, Body::whole(list)),
        Ok(Err(error)) => refusal(500, &error.to_string()),
        Err(reason) => lost(reason),
    }
}

async fn of_file(
    shared: &Arc<Shared>,
    request: &'static str,
    query: &str,
    headers: &HeaderMap,
    is_head: bool,
) -> Reply {
    // before the file is opened: files that wait for clients hold memory of their own
    let mut held = None;
    if request == "data" && !is_head {
        held = shared.memory.hold(IN_FLIGHT).await;
        if held.is_none() {
            return full();
        }
    }
    let (own, address, headers) = (Arc::clone(shared), query.to_owned(), headers.clone());
    let made = shared.pool.run(Admission::New, move || make(&own, request, &address, &headers)).await;
    let made = match made {
        Ok(Ok(made)) => made,
        Ok(Err(Refusal { status, message })) => return refusal(status, &message),
        Err(reason) => return lost(reason),
    };
    let Made { content_type, disposition, length, content, etag } = made;
    let length = match &content {
        Content::Whole(bytes) => Some(bytes.len() as u64),
        _ => length,
    };
    let body = match content {
        Content::Known => return reply::not_modified(etag.as_deref().unwrap_or_default()),
        content if is_head => Ok(without_content(shared, content).await),
        Content::Whole(bytes) => whole(shared, bytes, held).await,
        Content::Pieces(pieces, name) => in_pieces(shared, pieces, &name, length, held).await,
    };
    let body = match body {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let mut answer = reply(StatusCode::OK, content_type, body);
    if let Some(length) = length {
        set_text(&mut answer, header::CONTENT_LENGTH, &length.to_string());
    }
    if let Some(disposition) = &disposition {
        set_text(&mut answer, header::CONTENT_DISPOSITION, disposition);
    }
    if let Some(etag) = &etag {
        set_text(&mut answer, header::ETAG, etag);
    }
    answer
}

/// The body of an answer to HEAD.
async fn without_content(shared: &Shared, content: Content) -> Body {
    if let Content::Pieces(pieces, _) = content {
        // closing a file is work as well
        let _ = shared.pool.run(Admission::Begun, move || drop(pieces)).await;
    }
    Body::empty()
}

/// A large body counts as memory until it is sent; `held` was reserved for the answer.
async fn whole(shared: &Shared, bytes: Vec<u8>, held: Option<Held>) -> Result<Body, Reply> {
    let bytes = Bytes::from(bytes);
    if held.is_some() && bytes.len() as u64 <= IN_FLIGHT {
        return Ok(Body::whole(bytes).keeping(held));
    }
    if bytes.len() as u64 <= SMALL {
        return Ok(Body::whole(bytes));
    }
    // its memory is counted once
    drop(held);
    let held = shared.memory.hold(bytes.len() as u64).await.ok_or_else(full)?;
    Ok(Body::whole(bytes).keeping(held))
}

/// The first piece is made before the head is sent, so that its error is an answer.
async fn in_pieces(
    shared: &Arc<Shared>,
    mut pieces: Pieces,
    name: &str,
    length: Option<u64>,
    held: Option<Held>,
) -> Result<Body, Reply> {
    match shared.pool.run(Admission::Begun, move || (pieces.next(), pieces)).await {
        Ok((Some(Ok(first)), pieces)) => {
            Ok(Body::pieces(send(Arc::clone(shared), first, pieces), length).keeping(held))
        }
        Ok((Some(Err(error)), _)) => {
            let Refusal { status, message } = grove::refusal(&error, name);
            Err(refusal(status, &message))
        }
        Ok((None, _)) => Ok(Body::empty()),
        Err(reason) => Err(lost(reason)),
    }
}

fn full() -> Reply {
    refusal(503, "other answers hold all memory that --max-memory allows; try again")
}

/// Runs in a worker thread, since it reads the file; `address` is the query, which names the file.
fn make(shared: &Shared, request: &str, address: &str, headers: &HeaderMap) -> Result<Made, Refusal> {
    let query = query::parse(address);
    let Some(name) = query::value(&query, "file") else {
        return Err(Refusal { status: 422, message: "the parameter file is missing".to_owned() });
    };
    let refused = |reason| {
        let (status, message) = missing(reason);
        Refusal { status, message }
    };
    let path = shared.sources.find(name).map_err(refused)?;
    let stamp =
        Stamp::of(&path).map_err(|error| Refusal { status: 404, message: format!("File not found: {error}") })?;
    let watch = shared.quarantine.watch(&path).map_err(|message| Refusal { status: 422, message })?;
    let (identity, age) = stamp.identity();
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    let etag = reply::etag(&[version, &identity, request.as_bytes(), address.as_bytes()]);
    if reply::is_known(headers, &etag) {
        let content = Content::Known;
        return Ok(Made { content_type: "", disposition: None, length: None, content, etag: Some(etag) });
    }
    // other files change without this one
    let has_others = AtomicBool::new(false);
    let served = |path: &std::path::Path| {
        has_others.store(true, Ordering::Relaxed);
        shared.sources.serves(path)
    };
    let table = || {
        let open = shared.tables.open(&path, &shared.sources)?;
        has_others.fetch_or(open.has_others, Ordering::Relaxed);
        Ok(open.file)
    };
    let answer = grove::answer(&path, name, request, &query, &served, &table, &shared.limits)?;
    let Answer { content_type, disposition, length, body } = answer;
    let content = match body {
        grove::Body::Bytes(bytes) => Content::Whole(bytes),
        grove::Body::Pieces(pieces) => Content::Pieces(Box::new(pieces.inspect(move |_| _ = &watch)), name.to_owned()),
    };
    let etag = Some(etag).filter(|_| age > SETTLED && !has_others.load(Ordering::Relaxed));
    Ok(Made { content_type, disposition, length, content, etag })
}

/// Makes each piece when the client has received the one before. Returns the body's queue.
fn send(shared: Arc<Shared>, first: Vec<u8>, mut pieces: Pieces) -> mpsc::Receiver<io::Result<Bytes>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut next = Some(Ok(first));
        loop {
            let Ok(place) = sender.reserve().await else {
                let _ = shared.pool.run(Admission::Begun, move || drop(pieces)).await;
                return;
            };
            match next {
                Some(Ok(piece)) => place.send(Ok(Bytes::from(piece))),
                Some(Err(error)) => return place.send(Err(error)),
                None => return,
            }
            let made = shared.pool.run(Admission::Begun, move || {
                let piece = pieces.next();
                // the last one closes its files here
                (piece.is_some().then_some(pieces), piece)
            });
            let Ok((left, piece)) = made.await else {
                // the client sees that the answer ends too early
                next = Some(Err(io::Error::other("the server ends")));
                pieces = Box::new(std::iter::empty());
                continue;
            };
            pieces = left.unwrap_or_else(|| Box::new(std::iter::empty()));
            next = piece.map(|piece| piece.map_err(io::Error::other));
        }
    });
    receiver
}
