//! Accepts connections of the server, and passes each request to the module that answers it.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use super::api;
use super::guard::{Guard, Verdict};
use super::live::Lives;
use super::metrics::Metrics;
use super::pages;
use super::places::{Connection, Places};
use super::reply::{self, Reply, set_text};
use super::shared::{Shared, refusal};
use super::stall::Patient;

const MAX_HEADER: usize = 16 << 10;

/// Limit for a request's header to arrive, also on a connection that is reused.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// Limit for a client that does not read.
const WRITE_TIME: Duration = Duration::from_secs(30);

/// Pause after a connection could not be accepted, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Server {
    pub(super) guard: Guard,
    pub(super) shared: Arc<Shared>,
    pub(super) lives: Lives,
    pub(super) places: Arc<Places>,
    pub(super) metrics: Option<Metrics>,
}

impl Server {
    /// Until the future is dropped.
    pub(super) async fn run(self: Arc<Self>, listener: TcpListener) {
        let server = Arc::clone(&self);
        tokio::spawn(async move { server.lives.reap(&server.shared).await });
        let _followed = self.metrics.is_some().then(|| self.lives.follow(&self.shared));
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            tokio::spawn(Arc::clone(&self).serve(stream));
        }
    }

    async fn serve(self: Arc<Self>, stream: TcpStream) {
        // answers are written at once; without this, small ones may wait for each other
        let _ = stream.set_nodelay(true);
        let Ok(local) = stream.local_addr().as_ref().map(SocketAddr::ip) else { return };
        let (connection, left) = self.places.enter();
        let connection = Arc::new(connection);
        let service = service_fn(move |request| {
            let (server, connection) = (Arc::clone(&self), Arc::clone(&connection));
            async move { Ok::<_, Infallible>(server.answer(&request, local, &connection).await) }
        });
        let answered = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME)
            .max_buf_size(MAX_HEADER)
            .serve_connection(TokioIo::new(Patient::new(stream, WRITE_TIME)), service);
        // a client that has gone, or that speaks something else, does not concern others
        let (mut answered, mut left) = (pin!(answered), pin!(left));
        poll_fn(|context| {
            let is_over = left.as_mut().poll(context).is_ready() || answered.as_mut().poll(context).is_ready();
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    async fn answer(&self, request: &Request<Incoming>, local: IpAddr, connection: &Connection) -> Reply {
        let mut reply = match self.guard.judge(request, local.to_canonical()) {
            Verdict::Stop(mut reply) => {
                self.guard.finish(&mut reply, None, None);
                *reply
            }
            Verdict::Go { path, origin } => {
                let mut reply = if connection.admit() {
                    self.route(request, &path).await
                } else {
                    let mut reply = refusal(503, "too many connections");
                    set_text(&mut reply, header::CONNECTION, "close");
                    reply
                };
                self.guard.finish(&mut reply, Some(&path), origin);
                reply
            }
        };
        reply::page(&mut reply, request.headers());
        if let Some(metrics) = &self.metrics {
            metrics.count(reply.status());
        }
        reply
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
        if let Some(metrics) = self.metrics.as_ref().filter(|_| path == "/metrics") {
            return metrics.reply(&self.places, &self.shared, &self.lives);
        }
        pages::find(path, headers).unwrap_or_else(|| refusal(404, "not found"))
    }
}
