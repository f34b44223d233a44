//! Addresses of remote files, and the HTTP requests that they become.

use std::time::SystemTime;

use super::settings::{Credentials, Settings};
use super::signature::{EMPTY_SHA256, authorization, date, encode};
use crate::error::{Error, Result};

#[derive(Debug)]
pub(super) struct Address {
    pub(super) url: String,
    /// `None` for a file on a web server.
    pub(super) object: Option<Object>,
}

#[derive(Debug)]
pub(super) struct Object {
    host: String,
    /// Encoded, as in the URL.
    path: String,
    region: String,
    pub(super) credentials: Option<Credentials>,
}

impl Address {
    /// `https://`, `http://` or `s3://`; `variable` reads environment variables such as
    /// credentials. Fails with `Usage` if the address is not well-formed or has a password.
    pub(super) fn parse(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        if let Some(object) = text.strip_prefix("s3://") {
            return Self::object(object, &Settings::read(variable)?);
        }
        let url = text.split('#').next().unwrap_or_default();
        let authority = url.split("://").nth(1).unwrap_or_default().split(['/', '?']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(Error::usage("a user or password in an address is visible to others: it is not accepted"));
        }
        let well_formed =
            ureq::http::Uri::try_from(url).is_ok_and(|uri| uri.host().is_some_and(|host| !host.is_empty()));
        if !well_formed {
            return Err(Error::usage("not a well-formed URL: expected https://HOST/PATH, with %20 for a space"));
        }
        Ok(Address { url: url.to_owned(), object: None })
    }

    fn object(text: &str, settings: &Settings) -> Result<Self> {
        let (bucket, key) = text.split_once('/').unwrap_or((text, ""));
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if bucket.is_empty() || !bucket.chars().all(is_name) || key.is_empty() {
            return Err(Error::usage("not the address of an object: expected s3://BUCKET/KEY"));
        }
        let region = settings.region.clone();
        if !region.chars().all(is_name) {
            return Err(Error::usage("the region of AWS (AWS_REGION) contains characters that no region has"));
        }
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let (base, path) = match &settings.endpoint {
            Some(endpoint) => (endpoint.trim_end_matches('/').to_owned(), format!("/{bucket}/{key}")),
            // certificates do not cover names with further dots
            None if bucket.contains('.') => (format!("https://s3.{region}.{domain}"), format!("/{bucket}/{key}")),
            None => (format!("https://{bucket}.s3.{region}.{domain}"), format!("/{key}")),
        };
        let is_url = base.starts_with("http://") || base.starts_with("https://");
        let host = base.split("://").nth(1).unwrap_or_default();
        if !is_url || host.is_empty() || host.contains(['/', '@', '?', '#', ' ']) {
            return Err(Error::usage("AWS_ENDPOINT_URL is not a URL: expected https://HOST:PORT"));
        }
        let path = encode(&path);
        let (url, host) = (format!("{base}{path}"), host.to_owned());
        Ok(Address { url, object: Some(Object { host, path, region, credentials: settings.credentials.clone() }) })
    }
}

impl Object {
    /// Headers beside `Host` and `Range` that sign `bytes=FIRST-LAST`; empty without credentials.
    pub(super) fn headers(&self, range: &str, now: SystemTime) -> Vec<(&'static str, String)> {
        let Some(credentials) = &self.credentials else { return Vec::new() };
        let date = date(now);
        let mut signed = vec![
            ("host", self.host.as_str()),
            ("range", range),
            ("x-amz-content-sha256", EMPTY_SHA256),
            ("x-amz-date", date.as_str()),
        ];
        if let Some(token) = &credentials.token {
            signed.push(("x-amz-security-token", token));
        }
        let authorization = authorization(credentials, &self.region, &date, &self.path, &signed);
        // the client sets the first two
        let mut headers: Vec<_> = signed[2..].iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        headers.push(("authorization", authorization));
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn url(text: &str, set: &[(&str, &str)]) -> Result<String> {
        let variable = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Ok(Address::parse(text, variable)?.url)
    }

    #[test]
    fn requests_of_addresses() {
        let there = [("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/"), ("AWS_REGION", "eu-west-1")];
        for (text, set, found) in [
            ("s3://b/k.h5", &there[..], "http://127.0.0.1:9000/b/k.h5"),
            ("s3://b/a b/k.h5", &there[1..], "https://b.s3.eu-west-1.amazonaws.com/a%20b/k.h5"),
            ("s3://b.c/k", &[], "https://s3.us-east-1.amazonaws.com/b.c/k"),
            ("s3://b/k", &[("AWS_REGION", "cn-north-1")], "https://b.s3.cn-north-1.amazonaws.com.cn/k"),
            ("https://h:1/a%20b?c=d#e", &[], "https://h:1/a%20b?c=d"),
        ] {
            assert_eq!(url(text, set).unwrap(), found);
        }
        for (text, set) in [
            ("s3://b", &[][..]),
            ("s3:///k", &[]),
            ("s3://b@c/k", &[]),
            ("https://", &[]),
            ("https://h/a b", &[]),
            ("https://me:secret@h/f", &[]),
            ("s3://b/k", &[("AWS_ENDPOINT_URL", "127.0.0.1")]),
            ("s3://b/k", &[("AWS_REGION", "evil.org/")]),
        ] {
            let error = url(text, set).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{text}");
            assert!(!error.to_string().contains("secret"));
        }
    }
}
