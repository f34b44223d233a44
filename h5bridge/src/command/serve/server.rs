//! Accepts connections of the server, and passes each request to the module that answers it.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::api;
use super::guard::{Guard, Verdict};
use super::live::Lives;
use super::pages;
use super::reply::Reply;
use super::shared::{Shared, refusal};
use super::stall::Patient;

const MAX_CONNECTIONS: usize = 256;

/// Connections beyond `MAX_CONNECTIONS` answered with "503" at a time; further ones are closed
/// without an answer.
const MAX_REFUSALS: usize = 64;

const MAX_HEADER: usize = 16 << 10;

/// Limit for a request's header to arrive, also on a connection that is reused.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// Limit for a client that does not read.
const WRITE_TIME: Duration = Duration::from_secs(30);

/// Pause after a connection could not be accepted, for example because no file descriptors are
/// left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n\
    Connection: close\r\nContent-Length: 34\r\n\r\n{\"message\":\"too many connections\"}";

/// Guard, state of all requests, and the watched files.
pub(super) struct Server {
    pub(super) guard: Guard,
    pub(super) shared: Arc<Shared>,
    pub(super) lives: Lives,
}

impl Server {
    /// Until the future is dropped.
    pub(super) async fn run(self: Arc<Self>, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let refusals = Arc::new(Semaphore::new(MAX_REFUSALS));
        let server = Arc::clone(&self);
        tokio::spawn(async move { server.lives.reap(&server.shared).await });
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            match Arc::clone(&places).try_acquire_owned() {
                Ok(place) => drop(tokio::spawn(Arc::clone(&self).serve(stream, place))),
                Err(_) => {
                    if let Ok(place) = Arc::clone(&refusals).try_acquire_owned() {
                        tokio::spawn(tokio::time::timeout(Duration::from_secs(1), refuse(stream, place)));
                    }
                }
            }
        }
    }

    async fn serve(self: Arc<Self>, stream: TcpStream, _place: OwnedSemaphorePermit) {
        // answers are written at once; without this, small ones may wait for each other
        let _ = stream.set_nodelay(true);
        let Ok(local) = stream.local_addr().as_ref().map(SocketAddr::ip) else { return };
        let service = service_fn(move |request| {
            let server = Arc::clone(&self);
            async move { Ok::<_, Infallible>(server.answer(&request, local).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME)
            .max_buf_size(MAX_HEADER)
            .serve_connection(TokioIo::new(Patient::new(stream, WRITE_TIME)), service);
        // a client that has gone, or that speaks something else, does not concern others
        let _ = connection.await;
    }

    async fn answer(&self, request: &Request<Incoming>, local: IpAddr) -> Reply {
        match self.guard.judge(request, local.to_canonical()) {
            Verdict::Stop(mut reply) => {
                self.guard.finish(&mut reply, None, None);
                *reply
            }
            Verdict::Go { path, origin } => {
                let mut reply = self.route(request, &path).await;
                self.guard.finish(&mut reply, Some(&path), origin);
                reply
            }
        }
    }

    async fn route(&self, request: &Request<Incoming>, path: &str) -> Reply {
        let (headers, query) = (request.headers(), request.uri().query().unwrap_or_default());
        let is_head = request.method() == Method::HEAD;
        if let Some(path) = path.strip_prefix("/api").filter(|path| path.is_empty() || path.starts_with('/')) {
            return api::answer(&self.shared, path, query, headers, is_head).await;
        }
        if let Some(path) = path.strip_prefix("/live/") {
            return self.lives.answer(&self.shared, path, query, headers, is_head).await;
        }
        pages::find(path, headers).unwrap_or_else(|| refusal(404, "not found"))
    }
}

async fn refuse(mut stream: TcpStream, _place: OwnedSemaphorePermit) {
    if stream.write_all(TOO_MANY).await.is_err() || stream.shutdown().await.is_err() {
        return;
    }
    // closing before the request has been read would take the answer back
    let mut request = [0; 1024];
    while stream.read(&mut request).await.is_ok_and(|bytes| bytes > 0) {}
}
