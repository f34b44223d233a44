//! HTTP answers of the server: the status, the headers and a body that is sent as the client reads
//! it.

use std::any::Any;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Bytes, Frame, SizeHint};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use serde_json::json;
use tokio::sync::mpsc;

pub(super) type Reply = Response<Body>;

/// Bytes that are known, or pieces that another task makes.
pub(super) struct Body {
    content: Content,
    /// Dropped when the answer is sent or the client has gone, such as reserved memory.
    keep: Option<Box<dyn Any + Send>>,
}

enum Content {
    Whole(Bytes),
    Pieces { pieces: mpsc::Receiver<io::Result<Bytes>>, left: Option<u64> },
}

impl Body {
    pub(super) fn empty() -> Self {
        Body::whole(Bytes::new())
    }

    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        Body { content: Content::Whole(bytes.into()), keep: None }
    }

    /// Another task makes the pieces; `length` is in bytes, if it is known.
    pub(super) fn pieces(pieces: mpsc::Receiver<io::Result<Bytes>>, length: Option<u64>) -> Self {
        Body { content: Content::Pieces { pieces, left: length }, keep: None }
    }

    pub(super) fn keeping(mut self, keep: impl Any + Send) -> Self {
        self.keep = Some(Box::new(keep));
        self
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.content {
            Content::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Content::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Content::Pieces { pieces, left } => pieces.poll_recv(context).map(|piece| {
                let piece = piece?;
                if let (Ok(piece), Some(left)) = (&piece, left) {
                    *left = left.saturating_sub(piece.len() as u64);
                }
                Some(piece.map(Frame::data))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Pieces { left: Some(left), .. } => SizeHint::with_exact(*left),
            Content::Pieces { left: None, .. } => SizeHint::default(),
        }
    }
}

pub(super) const JSON: &str = "application/json";

pub(super) fn reply(status: StatusCode, content_type: &'static str, body: Body) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    set(&mut reply, header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

/// Text of a refusal, kept with the answer for [`page`].
#[derive(Clone)]
struct Message(String);

/// `{"message": …}`, which the web pages show.
pub(super) fn message(status: StatusCode, text: impl AsRef<str>) -> Reply {
    let mut reply = reply(status, JSON, Body::whole(json!({"message": text.as_ref()}).to_string()));
    reply.extensions_mut().insert(Message(text.as_ref().to_owned()));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        set(&mut reply, header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    reply
}

/// Turns a refusal into a page, for requests that ask for HTML: those of a browser that follows a
/// link.
pub(super) fn page(reply: &mut Reply, headers: &HeaderMap) {
    let wants_page = text(headers, header::ACCEPT).is_some_and(|kinds| kinds.contains("text/html"));
    let Some(Message(text)) = reply.extensions_mut().remove::<Message>().filter(|_| wants_page) else { return };
    let (title, help) = match reply.status() {
        StatusCode::UNAUTHORIZED => (
            "This address needs a token",
            "h5bridge serve prints an address that ends with <code>?token=</code> and 32 characters when it starts: \
             open that one. This browser then stays let in until serve ends; a server that is started again prints \
             another token.",
        ),
        StatusCode::NOT_FOUND => {
            ("Nothing is at this address", "<a href=\"./?list\">The list of sources</a> has what this server shows.")
        }
        _ => ("This request is refused", "<a href=\"./?list\">The list of sources</a>"),
    };
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let status = reply.status().as_u16();
    *reply.body_mut() = Body::whole(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\
         <link rel=\"icon\" href=\"data:,\"><title>{title} - h5bridge</title><main><h1>{title}</h1><p>{help}</p>\
         <p>Status {status}: {text}</p></main></html>\n"
    ));
    set(reply, header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    reply.headers_mut().remove(header::CONTENT_LENGTH);
}

pub(super) fn set(reply: &mut Reply, name: HeaderName, value: HeaderValue) {
    reply.headers_mut().insert(name, value);
}

/// Bytes that headers may not have are left out.
pub(super) fn set_text(reply: &mut Reply, name: HeaderName, text: &str) {
    let text: String = text.chars().filter(|c| (' '..='~').contains(c)).collect();
    if let Ok(value) = HeaderValue::from_str(&text) {
        set(reply, name, value);
    }
}

/// The first such header; `None` if it has other than visible ASCII characters.
pub(super) fn text(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

pub(super) fn etag(parts: &[&[u8]]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    format!("\"{}\"", &hasher.finalize().to_hex()[..32])
}

/// `If-None-Match`.
pub(super) fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let tags = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    tags.flat_map(|value| value.split(',')).any(|tag| {
        let tag = tag.trim();
        tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag
    })
}

pub(super) fn not_modified(etag: &str) -> Reply {
    let mut reply = Response::new(Body::empty());
    *reply.status_mut() = StatusCode::NOT_MODIFIED;
    set_text(&mut reply, header::ETAG, etag);
    reply
}

pub(super) fn event_stream(body: Body) -> Reply {
    let mut answer = reply(StatusCode::OK, "text/event-stream", body);
    set_text(&mut answer, header::CACHE_CONTROL, "no-store");
    // nginx keeps nothing back
    set_text(&mut answer, header::HeaderName::from_static("x-accel-buffering"), "no");
    answer
}
