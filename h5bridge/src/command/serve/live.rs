//! `/live`: the state of files that grow, as events, and frames of their plots.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ctds_hdf5::look::{Look, Request, Served, Session};
use ctds_hdf5::{Error, ErrorKind};
use hyper::body::Bytes;
use hyper::{HeaderMap, StatusCode, header};
use serde_json::{Value as Json, json};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::query::{self, Query};
use super::reply::{self, Body, Reply, reply, set_text};
use super::shared::{Shared, lost, missing, refusal};
use super::sources::status_of;
use super::work::{Admission, Lost};

/// Event streams at a time.
const MAX_STREAMS: usize = 64;

/// Files that are open at a time.
const MAX_OPEN: usize = 256;

/// Pause between two looks at a file with listeners.
const POLL: Duration = Duration::from_millis(100);

/// A look is sent this often, also when nothing has changed.
const AT_LEAST: Duration = Duration::from_secs(5);

/// Rates are means over this time.
const RATE_TIME: Duration = Duration::from_secs(5);

/// A rate over less than this is that of the last look alone.
const SHORTEST_RATE: Duration = Duration::from_secs(1);

/// A file that its writer has closed is said to have ended after this time without a change.
const CLOSED_FOR: Duration = Duration::from_secs(10);

/// A file without requests stays open for this time.
const IDLE: Duration = Duration::from_secs(60);

/// Pause between two searches for files without requests.
const REAP_PAUSE: Duration = Duration::from_secs(10);

/// Files that clients look at.
pub(super) struct Lives {
    files: Mutex<HashMap<PathBuf, Arc<LiveFile>>>,
    streams: Arc<Semaphore>,
}

/// One reader of a file, for all clients.
struct LiveFile {
    path: PathBuf,
    served: Served,
    /// Name of the file in addresses.
    name: String,
    /// `None`: not open.
    session: Arc<tokio::sync::Mutex<Option<Session>>>,
    news: watch::Sender<News>,
    /// A task looks at the file while it has listeners.
    is_polled: Mutex<bool>,
    used: Mutex<Instant>,
    rates: Mutex<Rates>,
}

/// The newest of each event. Each counts from one.
#[derive(Debug, Clone, Default)]
struct News {
    look: (u64, Arc<str>),
    revision: u64,
    progress: (u64, Progress),
    end: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Progress {
    rows_used: u64,
    rows: u64,
}

/// Numbers of rows and bytes at the looks of the last seconds, and what has changed when.
#[derive(Debug, Default)]
struct Rates {
    looks: Vec<(Instant, u64, f64)>,
    was_open: bool,
    changed: Option<Instant>,
}

impl Default for Lives {
    fn default() -> Self {
        Lives { files: Mutex::default(), streams: Arc::new(Semaphore::new(MAX_STREAMS)) }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The open session of a file; opens it if necessary.
fn opened<'a>(session: &'a mut Option<Session>, file: &LiveFile) -> Result<&'a mut Session, Error> {
    match session {
        Some(session) => Ok(session),
        None => Ok(session.insert(Session::open_served(&file.path, Arc::clone(&file.served))?)),
    }
}

impl Lives {
    /// Answers `/live/…`; `path` is what follows.
    pub(super) async fn answer(
        &self,
        shared: &Arc<Shared>,
        path: &str,
        query: &str,
        headers: &HeaderMap,
        is_head: bool,
    ) -> Reply {
        let kind = path.strip_prefix("plot/");
        if !(path == "describe" || path == "events" || kind.is_some()) {
            return refusal(404, "not found");
        }
        let parameters = query::parse(query);
        let file = match self.file(shared, &parameters).await {
            Ok(file) => file,
            Err(reply) => return *reply,
        };
        match kind {
            Some(kind) => file.frame(shared, kind, query, &parameters, headers, is_head).await,
            None if path == "describe" => file.describe(shared, is_head).await,
            None => match Arc::clone(&self.streams).try_acquire_owned() {
                Ok(place) => file.events(shared, place, is_head).await,
                Err(_) => refusal(503, "too many event streams are open; try again"),
            },
        }
    }

    /// The file that a request names.
    async fn file(&self, shared: &Arc<Shared>, parameters: &Query) -> Result<Arc<LiveFile>, Box<Reply>> {
        let name = query::value(parameters, "file").ok_or_else(|| refusal(422, "the parameter file is missing"))?;
        let (own, wanted) = (Arc::clone(shared), name.to_owned());
        let found = shared.pool.run(Admission::New, move || own.sources.find(&wanted)).await.map_err(lost)?;
        let path = found.map_err(|reason| {
            let (status, message) = missing(reason);
            refusal(status, &message)
        })?;
        let mut files = locked(&self.files);
        let before = files.get(&path);
        if let Some(file) = before.filter(|file| file.news.borrow().end.is_none()) {
            *locked(&file.used) = Instant::now();
            return Ok(Arc::clone(file));
        }
        // rows that were read before a file ended are still valid
        let session = before.map_or_else(Arc::default, |file| Arc::clone(&file.session));
        if files.len() >= MAX_OPEN && before.is_none() {
            return Err(refusal(503, "too many files are open; try again").into());
        }
        let own = Arc::clone(shared);
        let file = Arc::new(LiveFile {
            path: path.clone(),
            served: Arc::new(move |path| own.sources.serves(path)),
            name: name.to_owned(),
            session,
            news: watch::Sender::new(News::default()),
            is_polled: Mutex::new(false),
            used: Mutex::new(Instant::now()),
            rates: Mutex::default(),
        });
        files.insert(path, Arc::clone(&file));
        Ok(file)
    }

    /// Closes files without requests, until it is dropped.
    pub(super) async fn reap(&self, shared: &Arc<Shared>) {
        loop {
            tokio::time::sleep(REAP_PAUSE).await;
            let mut idle = Vec::new();
            locked(&self.files).retain(|_, file| {
                let is_idle = Arc::strong_count(file) == 1 && locked(&file.used).elapsed() > IDLE;
                if is_idle {
                    idle.push(Arc::clone(file));
                }
                !is_idle
            });
            if !idle.is_empty() {
                // closing a file is work as well
                let _ = shared.pool.run(Admission::Begun, move || drop(idle)).await;
            }
        }
    }
}

impl LiveFile {
    /// Runs a job with the session; others wait for their turn without holding a thread.
    async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        shared: &Shared,
        admission: Admission,
        job: impl FnOnce(&LiveFile, &mut OwnedMutexGuard<Option<Session>>) -> Result<T, Error> + Send + 'static,
    ) -> Result<Result<T, Error>, Lost> {
        let (file, mut session) = (Arc::clone(self), Arc::clone(&self.session).lock_owned().await);
        *locked(&self.used) = Instant::now();
        shared.pool.run(admission, move || job(&file, &mut session)).await
    }

    /// The refusal that an error of the library is. The name of the file stands for its path.
    fn refusal(&self, error: &Error) -> Reply {
        let message = error.to_string().replace(&*self.path.to_string_lossy(), &self.name);
        refusal(status_of(error.kind()), &message)
    }

    /// Looks at the newest state, unless a task does so all the time.
    fn look(&self, session: &mut Option<Session>) -> Result<(), Error> {
        let is_polled = *locked(&self.is_polled);
        let open = opened(session, self)?;
        if !is_polled && open.refresh()?.is_none() {
            // another file may have its path now
            *session = None;
            opened(session, self)?.refresh()?;
        }
        Ok(())
    }

    async fn describe(self: &Arc<Self>, shared: &Arc<Shared>, is_head: bool) -> Reply {
        let described = self.run(shared, Admission::New, |file, session| {
            file.look(session)?;
            let description = opened(session, file)?.describe()?;
            serde_json::to_vec(&description).map_err(|error| Error::new(ErrorKind::Io, error.to_string()))
        });
        match described.await {
            Ok(Ok(document)) => whole(reply::JSON, document, is_head),
            Ok(Err(error)) => self.refusal(&error),
            Err(reason) => lost(reason),
        }
    }

    async fn frame(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        kind: &str,
        address: &str,
        parameters: &Query,
        headers: &HeaderMap,
        is_head: bool,
    ) -> Reply {
        let format = query::value(parameters, "format").unwrap_or("safetensors").to_owned();
        let (content_type, extension) = match &*format {
            "safetensors" => ("application/octet-stream", None),
            "npy" => ("application/octet-stream", Some("npy")),
            "csv" => ("text/csv; charset=utf-8", Some("csv")),
            _ => return refusal(422, "format is safetensors, npy or csv"),
        };
        let others = parameters.iter().filter(|(name, _)| name != "file" && name != "format");
        let others: Vec<_> = others.cloned().collect();
        let request = match Request::parse(kind, &others) {
            Ok(request) => request,
            Err(error) => return self.refusal(&error),
        };
        let (headers, name, words) = (headers.clone(), kind.to_owned(), address.to_owned());
        let made = self.run(shared, Admission::New, move |file, session| {
            file.look(session)?;
            let frame = opened(session, file)?.frame(&request)?;
            let progress = Progress { rows_used: frame.plot.rows_used, rows: frame.plot.rows };
            let etag = reply::etag(&[frame.revision().as_bytes(), name.as_bytes(), words.as_bytes()]);
            let bytes = if reply::is_known(&headers, &etag) {
                None
            } else {
                Some(match &*format {
                    "npy" => frame.to_npy(),
                    "csv" => frame.to_csv().into_bytes(),
                    _ => frame.to_safetensors(),
                })
            };
            Ok((bytes, etag, progress, frame.plot.complete))
        });
        let (bytes, etag, progress, is_complete) = match made.await {
            Ok(Ok(made)) => made,
            Ok(Err(error)) => return self.refusal(&error),
            Err(reason) => return lost(reason),
        };
        self.progressed(progress, is_complete);
        let Some(bytes) = bytes else { return reply::not_modified(&etag) };
        let Some(held) = shared.memory.hold(bytes.len() as u64).await else {
            return refusal(503, "other answers hold all memory that --max-memory allows; try again");
        };
        let mut answer = whole(content_type, bytes, is_head);
        let body = std::mem::replace(answer.body_mut(), Body::empty());
        *answer.body_mut() = body.keeping(held);
        set_text(&mut answer, header::ETAG, &etag);
        if let Some(extension) = extension {
            let disposition = format!("attachment; filename=\"{kind}.{extension}\"");
            set_text(&mut answer, header::CONTENT_DISPOSITION, &disposition);
        }
        answer
    }

    /// Tells listeners how much of the file is read; a file that was read in one go has no progress.
    fn progressed(&self, progress: Progress, is_complete: bool) {
        self.news.send_if_modified(|news| {
            let was_begun = news.progress.0 > 0 && news.progress.1.rows_used < news.progress.1.rows;
            let is_new = news.progress.1 != progress && (!is_complete || was_begun);
            if is_new {
                news.progress = (news.progress.0 + 1, progress);
            }
            is_new
        });
    }

    async fn events(self: &Arc<Self>, shared: &Arc<Shared>, place: OwnedSemaphorePermit, is_head: bool) -> Reply {
        // what cannot be opened is a refusal, which says why
        let first = self.run(shared, Admission::New, |file, session| {
            file.look(session)?;
            opened(session, file).map(|_| ())
        });
        match first.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return self.refusal(&error),
            Err(reason) => return lost(reason),
        }
        let body = if is_head {
            Body::empty()
        } else {
            let receiver = self.news.subscribe();
            self.poll(shared);
            Body::pieces(stream(receiver), None).keeping(place)
        };
        let mut answer = reply(StatusCode::OK, "text/event-stream", body);
        set_text(&mut answer, header::CACHE_CONTROL, "no-store");
        // nginx keeps nothing back
        set_text(&mut answer, header::HeaderName::from_static("x-accel-buffering"), "no");
        answer
    }

    /// Looks at the file again and again, while it has listeners.
    fn poll(self: &Arc<Self>, shared: &Arc<Shared>) {
        if std::mem::replace(&mut *locked(&self.is_polled), true) {
            return;
        }
        let (file, shared) = (Arc::clone(self), Arc::clone(shared));
        tokio::spawn(async move {
            let mut sent = None;
            loop {
                let start = Instant::now();
                {
                    let mut is_polled = locked(&file.is_polled);
                    if file.news.receiver_count() == 0 || file.news.borrow().end.is_some() {
                        *is_polled = false;
                        return;
                    }
                }
                let due = sent.is_none_or(|sent: Instant| sent.elapsed() >= AT_LEAST);
                let looked = file.run(&shared, Admission::Begun, |file, session| file.tick(session)).await;
                match looked {
                    Ok(Ok(Tick::Look(revision, look))) => {
                        if due || file.news.borrow().revision != revision {
                            sent = Some(start);
                            file.news.send_modify(|news| {
                                news.look = (news.look.0 + 1, look);
                                news.revision = revision;
                            });
                        }
                    }
                    Ok(Ok(Tick::End(reason))) => file.news.send_modify(|news| news.end = Some(reason)),
                    // a writer may be in the middle of it
                    Ok(Err(_)) => {}
                    Err(_) => file.news.send_modify(|news| news.end = Some("gone")),
                }
                tokio::time::sleep(POLL.saturating_sub(start.elapsed())).await;
            }
        });
    }

    /// One look of the task.
    fn tick(&self, session: &mut Option<Session>) -> Result<Tick, Error> {
        let open = opened(session, self)?;
        let Some(look) = open.refresh()? else {
            let reason = open.ended().map_or("gone", |ended| ended.name());
            *session = None;
            return Ok(Tick::End(reason));
        };
        let mut rates = locked(&self.rates);
        if rates.has_closed(&look) {
            return Ok(Tick::End("closed"));
        }
        let (rows, bytes) = rates.add(&look);
        let mut document = serde_json::to_value(&look).unwrap_or(Json::Null);
        document["file"] = self.name.as_str().into();
        if let Some((rows, bytes)) = rows.zip(bytes) {
            document["rows_per_second"] = rows.into();
            document["bytes_per_second"] = bytes.into();
        }
        Ok(Tick::Look(look.revision, document.to_string().into()))
    }
}

/// What a look at a file finds.
enum Tick {
    /// Its revision, and the state as JSON.
    Look(u64, Arc<str>),
    /// Why there will be no more.
    End(&'static str),
}

impl Rates {
    /// Whether a writer had the file open, and has closed it for good.
    fn has_closed(&mut self, look: &Look) -> bool {
        if look.kind != "live" {
            return false;
        }
        if look.is_open {
            (self.was_open, self.changed) = (true, None);
            return false;
        }
        let closed = *self.changed.get_or_insert_with(Instant::now);
        self.was_open && closed.elapsed() >= CLOSED_FOR && {
            *self = Rates::default();
            true
        }
    }

    /// Adds a look; returns rows and bytes per second, if they are known for long enough.
    fn add(&mut self, look: &Look) -> (Option<f64>, Option<f64>) {
        let (now, rows) = (Instant::now(), look.all_rows());
        if self.looks.last().is_some_and(|(_, before, _)| *before > rows) {
            self.looks.clear();
        }
        self.looks.push((now, rows, look.bytes));
        let old = self.looks.iter().filter(|(then, ..)| now.duration_since(*then) > RATE_TIME).count();
        self.looks.drain(..old);
        let Some(&(then, first_rows, first_bytes)) = self.looks.first() else { return (None, None) };
        let time = now.duration_since(then);
        if time < SHORTEST_RATE {
            return (None, None);
        }
        let per_second = |amount: f64| Some(amount.max(0.) / time.as_secs_f64());
        (per_second((rows - first_rows) as f64), per_second(look.bytes - first_bytes))
    }
}

/// The events for one client: of each kind the newest, when it takes them.
fn stream(mut news: watch::Receiver<News>) -> mpsc::Receiver<io::Result<Bytes>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let (mut looks, mut progress) = (0, news.borrow().progress.0);
        let mut events = "retry: 1000\n\n".to_owned();
        loop {
            // the place first, so that the newest state is sent
            let Ok(place) = sender.reserve().await else { return };
            let newest = news.borrow_and_update().clone();
            if newest.look.0 > looks {
                looks = newest.look.0;
                events.push_str(&format!("event: look\nid: {}\ndata: {}\n\n", newest.revision, newest.look.1));
            }
            if newest.progress.0 > progress {
                progress = newest.progress.0;
                let Progress { rows_used, rows } = newest.progress.1;
                let data = json!({"rows_used": rows_used, "rows": rows});
                events.push_str(&format!("event: progress\ndata: {data}\n\n"));
            }
            if let Some(reason) = newest.end {
                events.push_str(&format!("event: end\ndata: {}\n\n", json!({"reason": reason})));
            }
            if !events.is_empty() {
                place.send(Ok(Bytes::from(std::mem::take(&mut events))));
            }
            if newest.end.is_some() {
                return;
            }
            match tokio::time::timeout(AT_LEAST, news.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                // a comment: finds out whether the client has gone
                Err(_) => events.push_str(":\n\n"),
            }
        }
    });
    receiver
}

/// An answer whose bytes are known; HEAD gives their number only.
fn whole(content_type: &'static str, bytes: Vec<u8>, is_head: bool) -> Reply {
    let length = bytes.len().to_string();
    let mut answer = reply(StatusCode::OK, content_type, if is_head { Body::empty() } else { Body::whole(bytes) });
    set_text(&mut answer, header::CONTENT_LENGTH, &length);
    answer
}
