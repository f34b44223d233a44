//! Sends HTTP requests for byte ranges of one file: answers are checked, and failures that may pass
//! are retried.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ureq::http::Response;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::address::Address;
use crate::error::{Error, ErrorKind, Result};

/// Milliseconds before each repetition of a failed request.
const PAUSES: [u64; 3] = [100, 400, 1600];
/// A server may ask for a longer pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// Longest time until an answer begins, and until its next bytes arrive.
const ANSWER: Duration = Duration::from_secs(20);
/// Replaces [`ANSWER`]; in seconds.
const ANSWER_VARIABLE: &str = "H5BRIDGE_HTTP_TIMEOUT";
/// Longest time to look up a server and to connect to it.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest time of a whole answer.
const BODY: Duration = Duration::from_secs(600);
/// Signed requests, those to S3, follow no redirection.
const REDIRECTIONS: u32 = 5;

/// State of a remote file that must be the same in all answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) len: u64,
    etag: Option<String>,
    modified: Option<String>,
}

/// A connection to the server of one file.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    address: Address,
}

/// Final, or the request may be repeated.
enum Failure {
    /// The server may ask for a pause.
    Passing(Error, Option<Duration>),
    Final(Error),
}

fn passing(message: impl Into<String>) -> Failure {
    Failure::Passing(Error::new(ErrorKind::Io, message), None)
}

fn fatal(kind: ErrorKind, message: impl Into<String>) -> Failure {
    Failure::Final(Error::new(kind, message))
}

impl Client {
    pub(super) fn new(address: Address) -> Self {
        let seconds = std::env::var(ANSWER_VARIABLE).ok().and_then(|text| text.parse().ok());
        let answer = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(ANSWER);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(provider)
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .https_only(address.url.starts_with("https://"))
            .http_status_as_error(false)
            .max_redirects(if address.object.is_some() { 0 } else { REDIRECTIONS })
            .user_agent(concat!("h5bridge/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(answer))
            .timeout_per_read(Some(answer))
            .timeout_recv_body(Some(BODY))
            .build();
        Client { agent: config.into(), address }
    }

    /// Reads until `out` is full or the file ends. Returns the state for [`read`](Self::read).
    pub(super) fn open(&self, out: &mut [u8]) -> Result<Version> {
        self.retried(|| self.request(0, out, None))
    }

    /// Reads until `out` is full or the file ends. Fails if the state is no longer `version`.
    pub(super) fn read(&self, version: &Version, offset: u64, out: &mut [u8]) -> Result<()> {
        self.retried(|| self.request(offset, out, Some(version))).map(drop)
    }

    fn retried<T>(&self, mut request: impl FnMut() -> Result<T, Failure>) -> Result<T> {
        for pause in PAUSES.map(Duration::from_millis) {
            match request() {
                Ok(done) => return Ok(done),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing(error, asked)) => {
                    tracing::debug!("{error}; the request is sent again");
                    std::thread::sleep(asked.map_or(pause, |asked| asked.clamp(pause, LONGEST_PAUSE)));
                }
            }
        }
        request().map_err(|failure| match failure {
            Failure::Final(error) => error,
            Failure::Passing(error, _) => {
                let attempts = PAUSES.len() + 1;
                let message = error.message();
                Error::new(error.kind(), format!("{message} (failed {attempts} times)"))
            }
        })
    }

    /// Sends one request. Fails if the state differs from `known`.
    fn request(&self, offset: u64, out: &mut [u8], known: Option<&Version>) -> Result<Version, Failure> {
        let last = offset.saturating_add(out.len() as u64).saturating_sub(1);
        let range = format!("bytes={offset}-{last}");
        tracing::debug!("request for {range}");
        let mut request = self.agent.get(&self.address.url).header("range", &range);
        for (name, value) in self.address.object.iter().flat_map(|object| object.headers(&range, SystemTime::now())) {
            request = request.header(name, value);
        }
        if let Some(Version { etag, modified, .. }) = known {
            // weak tags never match here
            match (etag.as_deref().filter(|tag| !tag.starts_with("W/")), modified) {
                (Some(tag), _) => request = request.header("if-match", tag),
                (None, Some(date)) => request = request.header("if-unmodified-since", date),
                (None, None) => {}
            }
        }
        let mut answer = request.call().map_err(unanswered)?;
        self.check_status(&answer, known)?;
        let version = self.check_range(&answer, offset, last, known)?;
        let expected = version.len.min(last + 1).saturating_sub(offset);
        let Some(out) = usize::try_from(expected).ok().and_then(|len| out.get_mut(..len)) else {
            return Err(fatal(ErrorKind::Io, "the server sent another range than was asked for"));
        };
        let mut body = answer.body_mut().as_reader();
        let mut done = 0;
        while done < out.len() {
            match body.read(&mut out[done..]) {
                Ok(0) => return Err(passing(format!("the server sent {done} bytes, {expected} are expected"))),
                Ok(count) => done += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(passing(format!("the connection ended after {done} of {expected} bytes: {error}")));
                }
            }
        }
        Ok(version)
    }

    /// Fails unless the status is 206; without `known`, 416 means that the file is empty.
    fn check_status(&self, answer: &Response<Body>, known: Option<&Version>) -> Result<(), Failure> {
        let status = answer.status().as_u16();
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let refused =
            |advice: &str| fatal(ErrorKind::Io, format!("the server refuses access (status {status}): {advice}"));
        let region = header("x-amz-bucket-region");
        match (status, &self.address.object) {
            (206, _) => Ok(()),
            (200, _) => Err(fatal(
                ErrorKind::Unsupported,
                "the server sends the whole file and no ranges of it: download the file",
            )),
            (412, _) => Err(replaced()),
            (416, _) if known.is_none() => Err(fatal(ErrorKind::Format, "the file is empty")),
            (416, _) => Err(replaced()),
            (404 | 410, _) => Err(fatal(ErrorKind::NotFound, format!("the file does not exist (status {status})"))),
            (301 | 307 | 400, Some(_)) if region.is_some() => {
                let region = region.unwrap_or_default();
                Err(fatal(ErrorKind::Usage, format!("the bucket is in another region: set AWS_REGION={region}")))
            }
            (401 | 403, Some(object)) if object.credentials.is_none() => Err(refused(
                "no keys were found in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or in ~/.aws/credentials",
            )),
            (401 | 403, Some(_)) => {
                Err(refused("the keys that were found do not permit reading the object, or it does not exist"))
            }
            (401 | 403, None) => Err(refused("the address may need a signature, or one that has not expired")),
            (408 | 429 | 500..=599, _) => {
                let asked = header("retry-after").and_then(|text| text.parse().ok()).map(Duration::from_secs);
                let error = Error::new(ErrorKind::Io, format!("the server failed (status {status})"));
                Err(Failure::Passing(error, asked))
            }
            _ => Err(fatal(ErrorKind::Io, format!("the server answered with status {status}, 206 is expected"))),
        }
    }

    /// The answer must have bytes `offset` to `last`, or to the end, and the state `known`.
    fn check_range(
        &self,
        answer: &Response<Body>,
        offset: u64,
        last: u64,
        known: Option<&Version>,
    ) -> Result<Version, Failure> {
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        if let Some(encoding) = header("content-encoding").filter(|encoding| *encoding != "identity") {
            let message = format!("the server compresses what it sends ({encoding}): ranges of the file are expected");
            return Err(fatal(ErrorKind::Unsupported, message));
        }
        let text = header("content-range").unwrap_or_default();
        let Some((start, end, len)) = content_range(text) else {
            return Err(fatal(
                ErrorKind::Io,
                format!("the server sent the range {text:?} of a file of unknown length"),
            ));
        };
        let text = |name: &str| header(name).map(str::to_owned);
        let version = Version { len, etag: text("etag"), modified: text("last-modified") };
        if known.is_some_and(|known| *known != version) {
            return Err(replaced());
        }
        if (start, end) != (offset, last.min(len.saturating_sub(1))) {
            let message = format!("the server sent bytes {start} to {end} of {len}, expected bytes {offset} to {last}");
            return Err(fatal(ErrorKind::Io, message));
        }
        let count = header("content-length").and_then(|text| text.parse::<u64>().ok());
        match count.filter(|count| *count != end + 1 - start) {
            Some(count) => {
                Err(fatal(ErrorKind::Io, format!("the server sends {count} bytes, expected {}", end + 1 - start)))
            }
            None => Ok(version),
        }
    }
}

fn replaced() -> Failure {
    fatal(ErrorKind::Io, "the file was replaced while it was read: try again")
}

/// Numbers of `bytes FIRST-LAST/LENGTH`.
fn content_range(text: &str) -> Option<(u64, u64, u64)> {
    let (range, len) = text.trim().strip_prefix("bytes")?.trim_start().split_once('/')?;
    let (start, end) = range.split_once('-')?;
    let (start, end, len) = (start.parse().ok()?, end.parse().ok()?, len.parse().ok()?);
    (start <= end && end < len).then_some((start, end, len))
}

/// Some errors of the HTTP client contain the address, which may have a signature in it: their own
/// text is not shown.
fn unanswered(error: ureq::Error) -> Failure {
    match error {
        // a failed check of the certificate arrives as an error of the connection
        ureq::Error::Io(error) if error.get_ref().is_some_and(|error| error.is::<rustls::Error>()) => {
            fatal(ErrorKind::Io, format!("no secure connection: {error}"))
        }
        ureq::Error::Io(error) => passing(format!("the connection failed: {error}")),
        ureq::Error::Timeout(_) => passing("the server does not answer in time"),
        ureq::Error::HostNotFound => passing("the host of the address is not found"),
        ureq::Error::ConnectionFailed => passing("the connection failed"),
        ureq::Error::Protocol(error) => passing(format!("the answer is not HTTP: {error}")),
        ureq::Error::TooManyRedirects => {
            fatal(ErrorKind::Io, format!("the server redirects more than {REDIRECTIONS} times"))
        }
        ureq::Error::RequireHttpsOnly(_) => {
            fatal(ErrorKind::Io, "the server redirects to an address without encryption, which is not followed")
        }
        ureq::Error::Rustls(error) => fatal(ErrorKind::Io, format!("no secure connection: {error}")),
        ureq::Error::Tls(error) => fatal(ErrorKind::Io, format!("no secure connection: {error}")),
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => fatal(ErrorKind::Usage, "not a well-formed URL"),
        ureq::Error::ConnectProxyFailed(_) | ureq::Error::InvalidProxyUrl => {
            fatal(ErrorKind::Io, "the proxy that the environment names does not connect")
        }
        _ => fatal(ErrorKind::Io, "the request failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges() {
        for (text, found) in [
            ("bytes 0-9/10", Some((0, 9, 10))),
            ("bytes 5-5/6", Some((5, 5, 6))),
            ("bytes 0-9/*", None),
            ("bytes */10", None),
            ("bytes 9-0/10", None),
            ("bytes 0-10/10", None),
            ("", None),
            ("items 0-9/10", None),
        ] {
            assert_eq!(content_range(text), found, "{text}");
        }
    }
}
