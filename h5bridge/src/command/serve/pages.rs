//! The web pages of the server, which are compiled into the program, compressed.

use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, StatusCode};

use super::assets::ASSETS;
use super::reply::{self, Body, Reply, reply};

pub(super) fn find(path: &str, headers: &HeaderMap) -> Option<Reply> {
    let name = match path {
        "/" => "index.html",
        path => path.strip_prefix('/')?,
    };
    let (name, bytes) = *ASSETS.iter().find(|(known, _)| *known == name)?;
    let etag = reply::etag(&[bytes]);
    if reply::is_known(headers, &etag) {
        return Some(reply::not_modified(&etag));
    }
    let mut answer = if takes_gzip(headers) {
        let mut answer = reply(StatusCode::OK, content_type(name), Body::whole(bytes));
        reply::set(&mut answer, header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        answer
    } else {
        reply(StatusCode::OK, content_type(name), Body::whole(unpack(bytes)?))
    };
    reply::set(&mut answer, header::VARY, HeaderValue::from_static("Accept-Encoding"));
    reply::set_text(&mut answer, header::ETAG, &etag);
    // the name of an asset has a hash of its bytes in it
    if name.starts_with("assets/") {
        let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
        reply::set(&mut answer, header::CACHE_CONTROL, forever);
    }
    Some(answer)
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(1., |weight| weight.parse().unwrap_or(0.));
        ["gzip", "*"].contains(&name.trim()) && weight > 0.
    })
}

fn unpack(gzip: &[u8]) -> Option<Vec<u8>> {
    // a gzip file ends with the length of its content
    let length = u32::from_le_bytes(gzip.last_chunk().copied()?) as usize;
    let mut bytes = vec![0; length];
    let found = libdeflater::Decompressor::new().gzip_decompress(gzip, &mut bytes).ok()?;
    (found == length).then_some(bytes)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("txt" | "md") => "text/plain; charset=utf-8",
        Some("json") => reply::JSON,
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_can_be_sent() {
        assert!(ASSETS.iter().any(|(name, _)| *name == "index.html"));
        for (name, bytes) in ASSETS {
            assert!(unpack(bytes).is_some_and(|bytes| !bytes.is_empty()), "{name}");
            assert_ne!(content_type(name), "application/octet-stream", "{name}");
        }
    }

    #[test]
    fn encodings() {
        for (value, takes) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("*", true),
            ("identity", false),
            ("gzip;q=0", false),
            ("gzip; q=0.0, br", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            assert_eq!(takes_gzip(&headers), takes, "{value}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
