//! A file that clients of the server watch or plot, with one reader for all of them: a live file (a
//! native HDF5 file to which a program appends rows), a finished HDF5 file or a table.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use ctds_hdf5::program::LockUnpoisoned;
use ctds_hdf5::{Error, ErrorKind, Source};
use hyper::{HeaderMap, StatusCode, header};
use ms_look::{Alert, Alerts, Frame, Image, Lines, Look, Plane, Rates, Request, Rule, Served, Session};
use serde_json::{Value as Json, json};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, watch};

use super::news::{self, News, Progress, Told};
use super::query::{self, Query};
use super::reply::{self, Body, Reply, event_stream, reply, set_text};
use super::shared::{Shared, lost, refusal};
use super::sources::{Stamp, status_of};
use super::work::{Admission, Lost};

/// Pause while any client receives events.
const POLL: Duration = Duration::from_millis(100);

const POLL_AFTER_FAILURE: Duration = Duration::from_millis(500);

/// The state is sent again after this time even if it has not changed.
const AT_LEAST: Duration = Duration::from_secs(5);

/// A live file that its writer closed, and none has opened again, has ended after this time.
const CLOSED_FOR: Duration = Duration::from_secs(10);

/// A failing file is reported only after this time: its writer may be in the middle of a change.
const PERSISTENT: Duration = Duration::from_secs(2);

/// Bytes of the newest cells of each column that a poll reads for events.
const SAMPLE: u64 = 4 << 20;
/// Bytes of the newest cells of each column that a poll reads for the board.
const BOARD_SAMPLE: u64 = 64 << 10;

pub(super) struct LiveFile {
    path: PathBuf,
    /// Other tables that may be opened because this file names them.
    served: Served,
    /// Name by which clients ask.
    pub(super) name: String,
    /// `None` while the file is not open.
    session: Arc<tokio::sync::Mutex<Option<Session>>>,
    news: watch::Sender<News>,
    /// Whether a task polls; it runs while any client receives events.
    is_polled: Mutex<bool>,
    used: Mutex<Instant>,
    state: Mutex<State>,
}

/// Kept from poll to poll.
#[derive(Default)]
struct State {
    rates: Rates,
    alerts: Alerts,
    /// Alert rules of clients; an entry expires when its client disconnects.
    clients: Vec<Weak<[Rule]>>,
    was_open: bool,
    /// Poll that first found the file closed by its writer.
    closed: Option<Instant>,
    /// First of the failed polls since the last successful one.
    failing: Option<Instant>,
    /// Newest state, for the board.
    line: Option<Json>,
}

enum Tick {
    /// Revision, which changes with the content, and state as JSON.
    Look(u64, Arc<str>),
    /// Reason for clients why the stream ends.
    End(&'static str),
}

fn opened<'a>(session: &'a mut Option<Session>, file: &LiveFile) -> Result<&'a mut Session, Error> {
    match session {
        Some(session) => Ok(session),
        None => Ok(session.insert(Session::open_served(&file.path, Arc::clone(&file.served))?)),
    }
}

/// Kind of the plot of images, which have no other.
const IMAGE: &str = "image";

/// A requested plot.
enum Wanted {
    Rows(Box<Request>),
    /// A line for each antenna, field, …: kind of the plot, groups, other parameters.
    By(String, String, Vec<(String, String)>),
    Image(Plane),
}

impl Wanted {
    fn parse(kind: &str, mut parameters: Vec<(String, String)>) -> Result<Self, Error> {
        if kind == IMAGE {
            return Ok(Wanted::Image(plane(&parameters)?));
        }
        let by = query::value(&parameters, "by").filter(|by| !matches!(*by, "" | "correlation")).map(str::to_owned);
        parameters.retain(|(name, _)| name != "by");
        let request = Request::parse(kind, &parameters)?;
        Ok(by.map_or(Wanted::Rows(Box::new(request)), |by| Wanted::By(kind.to_owned(), by, parameters)))
    }

    /// Of the state of an image: sessions, whose frames have revisions, do not read images.
    fn identity(&self, file: &LiveFile) -> Result<Vec<u8>, Error> {
        Ok(if matches!(self, Wanted::Image(_)) { Stamp::of(&file.path)?.identity().0 } else { Vec::new() })
    }

    fn frame(&self, file: &LiveFile, session: &mut Session, is_wanted: &dyn Fn() -> bool) -> Result<Frame, Error> {
        match self {
            Wanted::Rows(request) => session.frame(request),
            Wanted::By(kind, by, parameters) => Lines::of(kind, by, session, parameters)?.frame(session),
            Wanted::Image(plane) => {
                let missing = || Error::new(ErrorKind::Unsupported, "the source is not an image");
                let mut frame = file.image()?.ok_or_else(missing)?.frame_while(plane, is_wanted)?;
                frame.plot.revision = session.revision();
                Ok(frame)
            }
        }
    }
}

/// `plane=0,12`: numbers on the axes of an image after the first two.
fn plane(parameters: &Query) -> Result<Plane, Error> {
    let wrong = |message: String| Error::new(ErrorKind::Usage, message);
    if let Some((name, _)) = parameters.iter().find(|(name, _)| name != "plane") {
        return Err(wrong(format!("{name:?} is not a parameter of images; their parameter is plane")));
    }
    let words = query::value(parameters, "plane").unwrap_or_default().split(',').map(str::trim);
    let number = |word: &str| word.parse().map_err(|_| wrong(format!("plane: {word:?} is not a number")));
    Ok(Plane(words.filter(|word| !word.is_empty()).map(number).collect::<Result<_, _>>()?))
}

impl LiveFile {
    /// `before` has ended; its session, with the rows read so far, is used again.
    pub(super) fn new(path: PathBuf, name: &str, served: Served, before: Option<&LiveFile>) -> Self {
        LiveFile {
            path,
            served,
            name: name.to_owned(),
            session: before.map_or_else(Arc::default, |file| Arc::clone(&file.session)),
            news: watch::Sender::new(News::default()),
            is_polled: Mutex::new(false),
            used: Mutex::new(Instant::now()),
            state: Mutex::default(),
        }
    }

    /// Clients were told that the file was closed, removed or replaced; this reader sends no more.
    pub(super) fn has_ended(&self) -> bool {
        self.news.borrow().end.is_some()
    }

    /// Keeps the file from being closed as unused.
    pub(super) fn touch(&self) {
        *self.used.lock_unpoisoned() = Instant::now();
    }

    /// Since a client has last asked.
    pub(super) fn unused(&self) -> Duration {
        self.used.lock_unpoisoned().elapsed()
    }

    /// Jobs about the same file run one after another, and wait without a thread.
    async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        shared: &Shared,
        admission: Admission,
        job: impl FnOnce(&LiveFile, &mut OwnedMutexGuard<Option<Session>>) -> Result<T, Error> + Send + 'static,
    ) -> Result<Result<T, Error>, Lost> {
        self.run_while(shared, admission, |file, session, _| job(file, session)).await
    }

    /// [`run`](Self::run) for a job that asks whether the client still waits.
    async fn run_while<T: Send + 'static>(
        self: &Arc<Self>,
        shared: &Shared,
        admission: Admission,
        job: impl FnOnce(&LiveFile, &mut OwnedMutexGuard<Option<Session>>, &dyn Fn() -> bool) -> Result<T, Error>
        + Send
        + 'static,
    ) -> Result<Result<T, Error>, Lost> {
        let (file, mut session) = (Arc::clone(self), Arc::clone(&self.session).lock_owned().await);
        self.touch();
        let quarantine = shared.quarantine.clone();
        let watched = move |is_wanted: &dyn Fn() -> bool| {
            let refused = |reason| Error::new(ErrorKind::Unsupported, reason);
            let _watch = quarantine.watch(&file.path).map_err(refused)?;
            job(&file, &mut session, is_wanted)
        };
        let done = shared.pool.run_while(admission, watched).await;
        if matches!(done, Err(Lost::Failed)) {
            *self.session.lock().await = None; // it may be half changed
        }
        done
    }

    /// The path is replaced by the name by which clients ask.
    fn words(&self, error: &Error) -> String {
        error.to_string().replace(&*self.path.to_string_lossy(), &self.name)
    }

    fn refusal(&self, error: &Error) -> Reply {
        refusal(status_of(error.kind()), &self.words(error))
    }

    /// `None` if the file or table is not an image.
    fn image(&self) -> Result<Option<Image>, Error> {
        Image::of(Source::open_served(&self.path, &*self.served)?)
    }

    /// Reads the newest state. A file that a task polls is not read again.
    fn look(&self, session: &mut Option<Session>) -> Result<(), Error> {
        let is_polled = *self.is_polled.lock_unpoisoned();
        let open = opened(session, self)?;
        if !is_polled && open.refresh()?.is_none() {
            // another file may have its path now
            *session = None;
            opened(session, self)?.refresh()?;
        }
        Ok(())
    }

    pub(super) async fn describe(self: &Arc<Self>, shared: &Arc<Shared>, is_head: bool) -> Reply {
        let described = self.run(shared, Admission::New, |file, session| {
            file.look(session)?;
            let description = opened(session, file)?.describe()?;
            let mut document = json!(description);
            if description.missing.is_some()
                && let Ok(Some(image)) = file.image()
            {
                (document["missing"], document["plots"]) = (Json::Null, json!([IMAGE]));
                document["planes"] = json!(image.planes());
            }
            Ok(document.to_string().into_bytes())
        });
        match described.await {
            Ok(Ok(document)) => whole(reply::JSON, document, is_head),
            Ok(Err(error)) => self.refusal(&error),
            Err(reason) => lost(reason),
        }
    }

    pub(super) async fn frame(
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
        let wanted = match Wanted::parse(kind, others.cloned().collect()) {
            Ok(wanted) => wanted,
            Err(error) => return self.refusal(&error),
        };
        let (headers, name, words) = (headers.clone(), kind.to_owned(), address.to_owned());
        let made = self.run_while(shared, Admission::New, move |file, session, is_wanted| {
            file.look(session)?;
            let frame = wanted.frame(file, opened(session, file)?, is_wanted)?;
            let progress = Progress { rows_used: frame.plot.rows_used, rows: frame.plot.rows };
            let identity = wanted.identity(file)?;
            let etag = reply::etag(&[frame.revision().as_bytes(), &identity, name.as_bytes(), words.as_bytes()]);
            let bytes = (!reply::is_known(&headers, &etag)).then(|| match &*format {
                "npy" => frame.to_npy(),
                "csv" => frame.to_csv().into_bytes(),
                _ => frame.to_safetensors(),
            });
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

    /// Sends how many rows were read for a plot; nothing if a single step read all.
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

    /// Alerts are those of the client's `rules` and the server's.
    pub(super) async fn events(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        place: OwnedSemaphorePermit,
        rules: Vec<Rule>,
        is_head: bool,
    ) -> Reply {
        // a file that cannot be opened is a refusal with the reason; so is a rule about an antenna
        // that does not exist
        let rules: Arc<[Rule]> = rules.into();
        let checked = Arc::clone(&rules);
        let first = self.run(shared, Admission::New, move |file, session| {
            file.look(session)?;
            let description = opened(session, file)?.describe()?;
            checked.iter().try_for_each(|rule| rule.check(&description))
        });
        match first.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return self.refusal(&error),
            Err(reason) => return lost(reason),
        }
        let body = if is_head {
            Body::empty()
        } else {
            self.state.lock_unpoisoned().clients.push(Arc::downgrade(&rules));
            let receiver = self.news.subscribe();
            self.poll(shared);
            Body::pieces(news::of_file(receiver, rules, &shared.rules), None).keeping(place)
        };
        event_stream(body)
    }

    fn poll(self: &Arc<Self>, shared: &Arc<Shared>) {
        if std::mem::replace(&mut *self.is_polled.lock_unpoisoned(), true) {
            return;
        }
        let (file, shared) = (Arc::clone(self), Arc::clone(shared));
        tokio::spawn(async move {
            let mut sent = None;
            loop {
                let start = Instant::now();
                {
                    let mut is_polled = file.is_polled.lock_unpoisoned();
                    if file.news.receiver_count() == 0 || file.has_ended() {
                        *is_polled = false;
                        return;
                    }
                }
                let due = sent.is_none_or(|sent: Instant| sent.elapsed() >= AT_LEAST);
                let own = Arc::clone(&shared);
                let looked =
                    file.run(&shared, Admission::Begun, move |file, session| file.tick(session, &own.rules, SAMPLE));
                let looked = looked.await;
                let has_failed = matches!(looked, Ok(Err(_)));
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
                    // tick has told of it
                    Ok(Err(_)) => {}
                    Err(_) => file.news.send_modify(|news| news.end = Some("gone")),
                }
                let pause = if has_failed { POLL_AFTER_FAILURE } else { POLL };
                tokio::time::sleep(pause.saturating_sub(start.elapsed())).await;
            }
        });
    }

    /// Polls unless a task does, or another job is reading the file.
    pub(super) async fn line(self: &Arc<Self>, shared: &Arc<Shared>) -> Option<Json> {
        let is_polled = *self.is_polled.lock_unpoisoned();
        if !is_polled && let Ok(mut session) = Arc::clone(&self.session).try_lock_owned() {
            let (file, own) = (Arc::clone(self), Arc::clone(shared));
            let job = move || file.tick(&mut session, &own.rules, BOARD_SAMPLE).map(|_| ());
            // errors are in the line
            let _ = shared.pool.run(Admission::Begun, job).await;
        }
        let known = self.state.lock_unpoisoned().line.clone();
        let news = self.news.borrow();
        let mut line = known.or_else(|| news.problem.1.is_some().then(|| json!({"file": self.name})))?;
        let active = news.alerts.iter().filter(|told| told.active && shared.rules_have(&told.rule));
        let alert = |told: &Told| json!({"rule": told.rule, "text": told.text});
        line["alerts"] = active.map(alert).collect();
        line["problem"] = news.problem.1.as_deref().into();
        Some(line)
    }

    fn tick(&self, session: &mut Option<Session>, rules: &[Rule], sample: u64) -> Result<Tick, Error> {
        let looked = self.refresh(session, sample);
        let mut state = self.state.lock_unpoisoned();
        let look = match looked {
            Ok(Some(look)) => look,
            Ok(None) => {
                let reason = session.as_ref().and_then(Session::ended).map_or("gone", |ended| ended.name());
                *session = None;
                return Ok(Tick::End(reason));
            }
            Err(error) => {
                let since = *state.failing.get_or_insert_with(Instant::now);
                if since.elapsed() >= PERSISTENT {
                    self.has_problem(Some(self.words(&error)));
                }
                return Err(error);
            }
        };
        state.failing = None;
        self.has_problem(None);
        let mut look = look;
        if let Some((rows, bytes)) = state.rates.add(&look) {
            (look.rows_per_second, look.bytes_per_second) = (Some(rows), Some(bytes));
        }
        self.judge(&mut state, &look, rules);
        state.line = Some(self.line_of(&look));
        if state.has_closed(&look) {
            return Ok(Tick::End("closed"));
        }
        Ok(Tick::Look(look.revision, self.document(&look).to_string().into()))
    }

    fn refresh(&self, session: &mut Option<Session>, sample: u64) -> Result<Option<Look>, Error> {
        let needs_integration = self.state.lock_unpoisoned().alerts.needs_integration();
        let open = opened(session, self)?;
        open.set_sample_bytes(sample);
        open.set_integration(needs_integration);
        open.refresh()
    }

    /// Sends alerts that begin or end. `rules` of the server are for live files.
    fn judge(&self, state: &mut State, look: &Look, rules: &[Rule]) {
        state.clients.retain(|rules| rules.strong_count() > 0);
        let of_clients: Vec<Arc<[Rule]>> = state.clients.iter().filter_map(Weak::upgrade).collect();
        let of_server = if look.kind == "live" { rules } else { &[] };
        let all = of_server.iter().chain(of_clients.iter().flat_map(|rules| rules.iter()));
        state.alerts.set_rules(all.cloned());
        if !state.alerts.update(look).is_empty() {
            let alerts = state.alerts.newest().map(|alert| self.told(alert)).collect();
            self.news.send_modify(|news| news.alerts = alerts);
        }
    }

    fn told(&self, alert: &Alert) -> Told {
        let Alert { number, active, .. } = *alert;
        let document = self.document(alert).to_string().into();
        Told { number, rule: alert.rule.clone(), active, text: alert.text.clone(), document }
    }

    /// The member `file` is the name by which clients ask.
    fn document(&self, of: &impl serde::Serialize) -> Json {
        let mut document = serde_json::to_value(of).unwrap_or(Json::Null);
        document["file"] = self.name.as_str().into();
        document
    }

    fn line_of(&self, look: &Look) -> Json {
        json!({
            "file": self.name, "open": look.is_open, "rows": look.rows.first().map_or(0, |(_, rows)| *rows),
            "rows_per_second": look.rows_per_second, "bytes_per_second": look.bytes_per_second,
            "commit_age_seconds": look.age.as_secs_f64(), "lag_seconds": look.lag(), "flagged": look.flagged,
            "revision": look.revision,
        })
    }

    /// `None`: the file can be read again. Nothing is sent if `words` are the same as before.
    fn has_problem(&self, words: Option<String>) {
        self.news.send_if_modified(|news| {
            let is_new = news.problem.1.as_deref() != words.as_deref();
            if is_new {
                news.problem = (news.problem.0 + 1, words.map(Into::into));
            }
            is_new
        });
    }
}

impl State {
    /// A live file that a writer had open and closed at least `CLOSED_FOR` ago.
    fn has_closed(&mut self, look: &Look) -> bool {
        if look.kind != "live" {
            return false;
        }
        if look.is_open {
            (self.was_open, self.closed) = (true, None);
            return false;
        }
        let closed = *self.closed.get_or_insert_with(Instant::now);
        let is_over = self.was_open && closed.elapsed() >= CLOSED_FOR;
        if is_over {
            (self.was_open, self.closed) = (false, None);
        }
        is_over
    }
}

/// A HEAD request gets `Content-Length` only.
fn whole(content_type: &'static str, bytes: Vec<u8>, is_head: bool) -> Reply {
    let length = bytes.len().to_string();
    let mut answer = reply(StatusCode::OK, content_type, if is_head { Body::empty() } else { Body::whole(bytes) });
    set_text(&mut answer, header::CONTENT_LENGTH, &length);
    answer
}
