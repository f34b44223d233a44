//! Checks which requests the server accepts (token, host, origin, method), and adds the headers
//! that keep other sites away.

use std::net::IpAddr;

use anyhow::{Context, Result};
use ctds_hdf5::program::Hex;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};

use super::query;
use super::reply::{Body, Reply, message, set, set_text, text};

/// Random bytes, written in hexadecimal digits.
const TOKEN_BYTES: usize = 16;

/// A page may load only its own files, and pictures that it makes itself (data addresses, blobs).
const POLICY: &str =
    "default-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// H5Web's page, which allows `eval`: a library of it draws nothing without.
const EVALUATING_PAGE: &str = "/explore.html";

/// Only in addresses of these pages may the access token be a parameter.
const PAGES: [&str; 4] = ["/", "/index.html", "/explore.html", "/ms.html"];

pub(super) struct Guard {
    /// Hash of the access token; `None` accepts every client that can reach the port.
    token: Option<blake3::Hash>,
    cookie_name: String,
    port: u16,
    /// Names, with or without a port, by which browsers may address this server.
    hosts: Vec<String>,
    /// Other sites whose pages may send requests, as browsers write them.
    origins: Vec<String>,
    /// `--base-path`, such as `/h5bridge`, without a slash at its end; empty by default.
    base: String,
}

pub(super) fn new_token() -> Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    let mut source = std::fs::File::open("/dev/urandom").context("/dev/urandom")?;
    std::io::Read::read_exact(&mut source, &mut bytes).context("/dev/urandom")?;
    Ok(Hex(&bytes).to_string())
}

pub(super) enum Verdict {
    /// `path` is below the base path; `origin` is another site that may read the answer, `None` for
    /// our own pages.
    Go { path: String, origin: Option<HeaderValue> },
    /// A refusal or a redirection.
    Stop(Box<Reply>),
}

impl Guard {
    /// Without `token`, all clients are accepted.
    pub(super) fn new(token: Option<&str>, port: u16, hosts: &[String], origins: &[String], base: &str) -> Self {
        let lower =
            |texts: &[String]| texts.iter().map(|text| text.trim_end_matches('/').to_ascii_lowercase()).collect();
        Guard {
            token: token.map(hash),
            cookie_name: format!("h5bridge_{port}"),
            port,
            hosts: lower(hosts),
            origins: lower(origins),
            base: base.to_owned(),
        }
    }

    /// The request arrived at `local`.
    pub(super) fn judge<T>(&self, request: &Request<T>, local: IpAddr) -> Verdict {
        self.checked(request, local).unwrap_or_else(Verdict::Stop)
    }

    fn checked<T>(&self, request: &Request<T>, local: IpAddr) -> Result<Verdict, Box<Reply>> {
        let (headers, uri) = (request.headers(), request.uri());
        let host = self.host(headers, uri.authority().map(|authority| authority.as_str()), local)?;
        let origin = self.origin(headers, &host)?;
        if request.method() == Method::OPTIONS
            && let Some(origin) = &origin
        {
            return Ok(Verdict::Stop(preflight(origin).into()));
        }
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut reply = message(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
            set(&mut reply, header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return Err(reply.into());
        }
        Self::site(headers, origin.is_some())?;
        let Some(path) = uri.path().strip_prefix(self.base.as_str()) else {
            return Err(message(StatusCode::NOT_FOUND, "not found").into());
        };
        if path.is_empty() {
            return Ok(Verdict::Stop(redirect(&format!("{}/", self.base), uri.query().unwrap_or_default()).into()));
        }
        if !path.starts_with('/') {
            return Err(message(StatusCode::NOT_FOUND, "not found").into());
        }
        if let Some(reply) = self.exchange(path, uri.query().unwrap_or_default()) {
            return Ok(Verdict::Stop(reply.into()));
        }
        self.token(headers)?;
        Ok(Verdict::Go { path: path.to_owned(), origin })
    }

    /// Name of this server in `Host`, in lower case. `authority`, the host in the request line, is
    /// checked as well: another site could make its own host name lead here (DNS rebinding).
    fn host(&self, headers: &HeaderMap, authority: Option<&str>, local: IpAddr) -> Result<String, Box<Reply>> {
        let unknown = || Box::new(message(StatusCode::FORBIDDEN, "unknown Host; --allow-host names further ones"));
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(unknown()) };
        let host = host.to_str().map_err(|_| unknown())?.to_ascii_lowercase();
        let is_known = |host: &str| {
            let (name, port) = split_port(host);
            let is_ours = ["127.0.0.1", "localhost", "[::1]"].contains(&name)
                // an address in digits is not a name that a stranger could point here
                || name.trim_start_matches('[').trim_end_matches(']').parse() == Ok(local);
            is_ours && port.unwrap_or("80") == self.port.to_string()
                || self.hosts.iter().any(|known| known == host || known == name)
        };
        if !is_known(&host) || authority.is_some_and(|authority| !is_known(&authority.to_ascii_lowercase())) {
            return Err(unknown());
        }
        Ok(host)
    }

    /// An allowed other site; `None` without `Origin` or from our own pages.
    fn origin(&self, headers: &HeaderMap, host: &str) -> Result<Option<HeaderValue>, Box<Reply>> {
        let Some(value) = headers.get(header::ORIGIN) else { return Ok(None) };
        let origin = value.to_str().unwrap_or_default().to_ascii_lowercase();
        // a proxy may have taken TLS away
        let own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if own == Some(host) {
            Ok(None)
        } else if self.origins.contains(&origin) {
            Ok(Some(value.clone()))
        } else {
            Err(message(StatusCode::FORBIDDEN, "another Origin; --allow-origin names those that may ask").into())
        }
    }

    /// Refuses requests of other sites (`Sec-Fetch-Site`); following a link from one is accepted.
    fn site(headers: &HeaderMap, is_allowed: bool) -> Result<(), Box<Reply>> {
        let is_foreign = matches!(text(headers, "sec-fetch-site"), Some("cross-site" | "same-site"));
        if is_foreign && !is_allowed && text(headers, "sec-fetch-mode") != Some("navigate") {
            return Err(message(StatusCode::FORBIDDEN, "asked by a page of another site").into());
        }
        Ok(())
    }

    /// Stores a token in the address of a page as a cookie and redirects to the address without it,
    /// or refuses it.
    fn exchange(&self, path: &str, query: &str) -> Option<Reply> {
        if !PAGES.contains(&path) {
            return None;
        }
        let is_token = |pair: &&str| pair.starts_with("token=");
        let given = query.split('&').find(is_token)?.strip_prefix("token=")?;
        let others: Vec<&str> = query.split('&').filter(|pair| !is_token(pair)).collect();
        if self.token.is_some_and(|token| token != hash(given)) {
            return Some(unauthorized());
        }
        // relative, because a proxy may have taken a prefix away
        let mut reply = redirect(&format!(".{path}"), &others.join("&"));
        if self.token.is_some() {
            let cookie = format!("{}={given}; HttpOnly; SameSite=Lax; Path={}/", self.cookie_name, self.base);
            set_text(&mut reply, header::SET_COOKIE, &cookie);
        }
        Some(reply)
    }

    /// In a cookie or as `Authorization: Bearer`.
    fn token(&self, headers: &HeaderMap) -> Result<(), Box<Reply>> {
        let Some(token) = self.token else { return Ok(()) };
        let bearer = text(headers, header::AUTHORIZATION).and_then(|value| value.split_once(' '));
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let cookies = cookies.flat_map(|value| value.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
        let mut given = cookies.filter(|(name, _)| *name == self.cookie_name).map(|(_, value)| value).chain(bearer);
        // equal hashes are found in constant time
        if given.any(|given| hash(given) == token) { Ok(()) } else { Err(unauthorized().into()) }
    }

    /// `path` is `None` if the guard answered; `origin` is the allowed other site.
    pub(super) fn finish(&self, reply: &mut Reply, path: Option<&str>, origin: Option<HeaderValue>) {
        let constant =
            |reply: &mut Reply, name, value| set(reply, HeaderName::from_static(name), HeaderValue::from_static(value));
        if path == Some(EVALUATING_PAGE) {
            set_text(reply, header::CONTENT_SECURITY_POLICY, &format!("{POLICY}; script-src 'self' 'unsafe-eval'"));
        } else {
            constant(reply, "content-security-policy", POLICY);
        }
        constant(reply, "x-content-type-options", "nosniff");
        constant(reply, "referrer-policy", "no-referrer");
        constant(reply, "cross-origin-resource-policy", "same-origin");
        if let Some(origin) = origin {
            set(reply, header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            set(reply, header::VARY, HeaderValue::from_static("Origin"));
            constant(reply, "access-control-expose-headers", "ETag, Content-Disposition");
            constant(reply, "cross-origin-resource-policy", "cross-origin");
        }
        if !reply.headers().contains_key(header::CACHE_CONTROL) {
            constant(reply, "cache-control", "no-cache");
        }
    }
}

fn hash(token: &str) -> blake3::Hash {
    blake3::hash(token.as_bytes())
}

fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    }
}

fn unauthorized() -> Reply {
    let mut reply = message(StatusCode::UNAUTHORIZED, "open the address that h5bridge serve printed: it has a token");
    set(&mut reply, header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    reply
}

fn redirect(path: &str, query: &str) -> Reply {
    let mut reply = Response::new(Body::empty());
    *reply.status_mut() = StatusCode::SEE_OTHER;
    let mark = if query.is_empty() { "" } else { "?" };
    set_text(&mut reply, header::LOCATION, &format!("{path}{mark}{query}"));
    set(&mut reply, header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// Preflight (CORS) before a page of another site may send a token.
fn preflight(origin: &HeaderValue) -> Reply {
    let mut reply = Response::new(Body::empty());
    *reply.status_mut() = StatusCode::NO_CONTENT;
    set(&mut reply, header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    set(&mut reply, header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD"));
    let headers = HeaderValue::from_static("Authorization, If-None-Match");
    set(&mut reply, header::ACCESS_CONTROL_ALLOW_HEADERS, headers);
    set(&mut reply, header::VARY, HeaderValue::from_static("Origin"));
    reply
}

/// `http://HOST/BASE/?token=TOKEN`, for a person.
pub(super) fn address(host: &str, base: &str, token: Option<&str>) -> String {
    let token = token.map_or(String::new(), |token| format!("?token={}", query::encode(token)));
    format!("http://{host}{base}/{token}")
}
