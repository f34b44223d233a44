//! `serve`, asked over plain sockets: who may ask, what a name leads to, every limit.
#![cfg(feature = "serve")]

mod events;
mod fuzz;
mod places;
mod server;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ctds_hdf5::convert::ToHdf5;
use ctds_hdf5::ndarray::ArrayD;
use ctds_hdf5::value::{Shape, Value};
use ctds_hdf5::{ColumnDesc, NewTable};
use ctds_hdf5_testing::testdata;
use serde_json::Value as Json;

use server::{Answer, Server, TIME};

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A file of 16 MiB and more with one column, as /MAIN/VALUES.
fn large_file(folder: &Path) -> PathBuf {
    let (table, file) = (folder.join("large.tab"), folder.join("large.h5"));
    let column = ColumnDesc::array::<f64>("VALUES").fixed_shape(Shape::from([1 << 17]));
    let mut written = NewTable::new().column(column).create(&table).unwrap();
    written.add_rows(24).unwrap();
    let values = ArrayD::from_elem(vec![24, 1 << 17], 0.5);
    written.column("VALUES").unwrap().put_rows::<f64>(0, &values).unwrap();
    written.close().unwrap();
    ToHdf5::new(&table).compression(ctds_hdf5::Compression::NONE).plan().unwrap().write(&file).unwrap();
    file
}

/// A folder with a small HDF5 file, `small.h5`.
pub(crate) fn small() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let table = testdata().join("demo/demo.ms");
    ToHdf5::new(&table).plan().unwrap().write(folder.path().join("small.h5")).unwrap();
    folder
}

/// Header line of a client that knows the token.
const GOOD: &str = "Authorization: Bearer TOKEN\r\n";

/// Methods and headers, with the status of the answer of a server at `port`.
fn access_cases(port: u16, token: &str) -> Vec<(&'static str, String, u16)> {
    let cookie = format!("Cookie: a=b; h5bridge_{port}=TOKEN; c=d\r\n");
    let wrong_cookie = format!("Cookie: h5bridge_{port}={}\r\n", "0".repeat(32));
    let other_cookie = format!("Cookie: h5bridge_{}=TOKEN\r\n", port ^ 1);
    let ours = |name: &str| format!("Host: {name}:{port}\r\n{GOOD}");
    let host = "Host: HOST\r\n";
    let from = |headers: &str| format!("{host}{GOOD}{headers}\r\n");
    vec![
        ("GET", format!("{host}{GOOD}"), 200),
        ("GET", format!("{host}{cookie}"), 200),
        ("GET", host.to_owned(), 401),
        ("GET", format!("{host}{wrong_cookie}"), 401),
        ("GET", format!("{host}{other_cookie}"), 401),
        ("GET", format!("{host}Authorization: Bearer {}\r\n", &token[..31]), 401),
        ("GET", format!("{host}Authorization: Basic TOKEN\r\n"), 401),
        ("GET", ours("localhost"), 200),
        ("GET", ours("LocalHost"), 200),
        ("GET", ours("[::1]"), 200),
        ("GET", ours("evil.example"), 403),
        ("GET", ours("127.0.0.1.evil.example"), 403),
        ("GET", ours("localhost.evil.example"), 403),
        ("GET", ours("192.0.2.1"), 403),
        ("GET", format!("Host: 127.0.0.1:{}\r\n{GOOD}", port ^ 1), 403),
        ("GET", format!("Host: 127.0.0.1\r\n{GOOD}"), 403),
        ("GET", format!("{host}Host: evil.example\r\n{GOOD}"), 403),
        ("GET", GOOD.to_owned(), 403),
        ("GET", from("Origin: http://HOST"), 200),
        ("GET", from("Origin: http://evil.example"), 403),
        ("GET", from(&format!("Origin: http://127.0.0.1:{}", port ^ 1)), 403),
        ("GET", from("Origin: null"), 403),
        ("GET", from("Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors"), 200),
        ("GET", from("Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate"), 200),
        ("GET", from("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate"), 200),
        ("GET", from("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors"), 403),
        ("GET", from("Sec-Fetch-Site: cross-site"), 403),
        ("GET", from("Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors"), 403),
        ("HEAD", format!("{host}{GOOD}"), 200),
        ("POST", format!("{host}{GOOD}"), 405),
        ("PUT", format!("{host}{GOOD}"), 405),
        ("DELETE", format!("{host}{GOOD}"), 405),
        ("OPTIONS", format!("{host}{GOOD}"), 405),
        ("TRACE", format!("{host}{GOOD}"), 405),
    ]
}

#[test]
fn access_rules_hold() {
    let folder = small();
    let server = Server::start(&[text(folder.path())]);
    let (port, token) = (server.port, server.token().to_owned());
    assert_eq!(token.len(), 32);
    for (method, headers, status) in access_cases(port, &token) {
        for target in ["/api/files", "/", "/api/meta?file=small.h5"] {
            let answer = server.raw(&format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n"));
            assert_eq!(answer.status, status, "{method} {target} {headers:?}: {}", answer.head);
            if status >= 400 {
                assert!(answer.json()["message"].is_string(), "{}", answer.text());
            }
            let policy = answer.header("content-security-policy").unwrap();
            assert!(policy.contains("default-src 'self'") && policy.contains("frame-ancestors 'none'"), "{policy}");
            assert!(!policy.contains("unsafe"));
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
            assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
            assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    // the target may have a host, too
    for (host, status) in [(format!("127.0.0.1:{port}"), 200), ("evil.example".to_owned(), 403)] {
        let answer = server
            .raw(&format!("GET http://{host}/api/files HTTP/1.1\r\nHost: HOST\r\n{GOOD}Connection: close\r\n\r\n"));
        assert_eq!(answer.status, status, "{host}");
    }
    // no answer has the token in it
    assert!(!server.get("/api/files").text().contains(&token));
}

#[test]
fn the_token_becomes_a_cookie() {
    let folder = small();
    let server = Server::start(&[text(folder.path())]);
    let plain = |target: &str| server.raw(&format!("GET {target} HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"));
    let answer = plain("/?token=TOKEN");
    assert_eq!((answer.status, answer.header("location")), (303, Some("./")));
    let expected = format!("h5bridge_{}={}; HttpOnly; SameSite=Lax; Path=/", server.port, server.token());
    assert_eq!(answer.header("set-cookie"), Some(expected.as_str()));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let answer = plain("/ms.html?file=a%20b.h5&token=TOKEN&spw=1");
    assert_eq!((answer.status, answer.header("location")), (303, Some("./ms.html?file=a%20b.h5&spw=1")));
    for target in [
        "/?token=",
        "/?token=0123456789abcdef0123456789abcdef",
        "/?token=TOKENx",
        "/api/files?token=TOKEN",
        "//evil.example/?token=TOKEN",
    ] {
        let answer = plain(target);
        assert_eq!(answer.status, 401, "{target}");
        assert_eq!(answer.header("set-cookie"), None);
    }
    let cookie = format!("Cookie: {}\r\n", expected.split(';').next().unwrap());
    let request = format!("GET /api/files HTTP/1.1\r\nHost: HOST\r\n{cookie}Connection: close\r\n\r\n");
    let files = server.raw(&request).json();
    assert_eq!(files[0]["file"], "small.h5");
    assert_eq!(files[0]["measurement_set"], true);
    assert_eq!(files[0]["kind"], "hdf5");
    assert_eq!(files[0]["bytes"], fs::metadata(folder.path().join("small.h5")).unwrap().len());
    assert!(files[0]["rows"].as_u64().unwrap() > 0 && files[0]["modified"].as_f64().unwrap() > 1e9);
}

#[test]
fn other_names_and_origins() {
    let folder = small();
    let words = ["--allow-host", "proxy.example", "--allow-origin", "https://board.example", "--base-path", "/h5/"];
    let server = Server::start(&[&[text(folder.path())][..], &words].concat());
    assert!(server.url.contains("/h5/?token="), "{}", server.url);
    let with = |target: &str, host: &str, headers: &str| {
        let good = "Authorization: Bearer TOKEN\r\nConnection: close\r\n";
        server.raw(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{good}{headers}\r\n"))
    };
    assert_eq!(with("/h5/api/files", "proxy.example", "Origin: https://proxy.example\r\n").status, 200);
    assert_eq!(with("/h5/api/files", "proxy.example:8443", "").status, 200);
    assert_eq!(with("/h5/api/files", "xproxy.example", "").status, 403);
    assert_eq!(with("/api/files", "proxy.example", "").status, 404);
    assert_eq!(with("/h5x/api/files", "proxy.example", "").status, 404);
    let answer = with("/h5", "proxy.example", "");
    assert_eq!((answer.status, answer.header("location")), (303, Some("/h5/")));
    let answer = with("/h5/?token=TOKEN", "proxy.example", "");
    assert!(answer.header("set-cookie").unwrap().ends_with("; Path=/h5/"), "{}", answer.head);

    let board = "Origin: https://board.example\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\n";
    let answer = with("/h5/api/files", "proxy.example", board);
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some("https://board.example")));
    let preflight = |origin: &str| {
        let headers = "Access-Control-Request-Method: GET\r\nConnection: close\r\n\r\n";
        server.raw(&format!("OPTIONS /h5/api/files HTTP/1.1\r\nHost: proxy.example\r\nOrigin: {origin}\r\n{headers}"))
    };
    let answer = preflight("https://board.example");
    assert_eq!(
        (answer.status, answer.header("access-control-allow-headers")),
        (204, Some("Authorization, If-None-Match"))
    );
    assert_eq!(preflight("https://evil.example").status, 403);
}

/// A folder `served` with a file below it, and links to that file, to one outside of it, and to the
/// folder around it.
fn served_beside_a_secret() -> tempfile::TempDir {
    let folder = small();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir_all(path("served/sub")).unwrap();
    fs::rename(path("small.h5"), path("secret.h5")).unwrap();
    fs::copy(path("secret.h5"), path("served/sub/in.h5")).unwrap();
    symlink(path("secret.h5"), path("served/out.h5")).unwrap();
    symlink(folder.path(), path("served/elsewhere")).unwrap();
    symlink(path("served/sub/in.h5"), path("served/link.h5")).unwrap();
    assert!(Command::new("mkfifo").arg(path("served/pipe.h5")).status().unwrap().success());
    folder
}

/// Names that no served file has, beside absolute ones.
const NAMES_OUTSIDE: [&str; 21] = [
    "../secret.h5",
    "%2e%2e/secret.h5",
    "sub/../../secret.h5",
    "sub/../link.h5",
    "..%2fsecret.h5",
    "./link.h5",
    "sub//in.h5",
    "out.h5",
    "elsewhere/secret.h5",
    "elsewhere/served/link.h5/",
    "pipe.h5",
    "sub",
    "",
    "/",
    ".",
    "none.h5",
    "link.h5%00",
    "%00",
    "%ff",
    "/etc/passwd",
    "file:///etc/passwd",
];

/// Targets that no route has.
const NOWHERE: [&str; 10] = [
    "/nothing",
    "/api/nothing",
    "/api/meta/x",
    "/apix/files",
    "/assets/",
    "/assets/../index.html",
    "/%2e%2e/etc/passwd",
    "//",
    "/live/",
    "/live/x",
];

#[test]
fn names_lead_nowhere_else() {
    let folder = served_beside_a_secret();
    let path = |name: &str| folder.path().join(name);
    let server = Server::start(&[text(&path("served"))]);
    let files = server.get("/api/files").json();
    let names = files.as_array().unwrap().iter().map(|file| file["file"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["link.h5", "sub/in.h5"]);
    let asked = |name: &str| server.get(&format!("/api/meta?path=/&file={name}"));
    for name in ["sub/in.h5", "link.h5", "sub%2Fin.h5"] {
        assert_eq!(asked(name).status, 200, "{name}");
    }
    let absolute = path("secret.h5").to_string_lossy().into_owned();
    let inside = path("served/sub/in.h5").to_string_lossy().into_owned();
    for name in NAMES_OUTSIDE.into_iter().chain([absolute.as_str(), &inside]) {
        let answer = asked(name);
        assert_eq!((answer.status, answer.json()["message"].as_str()), (404, Some("File not found")), "{name}");
        assert!(!answer.text().contains(text(folder.path())), "a path of the server: {}", answer.text());
        for request in ["describe", "events", "plot/waterfall"] {
            assert!(
                [404, 422].contains(&server.get(&format!("/live/{request}?file={name}")).status),
                "{request} {name}"
            );
        }
    }
    assert_eq!(server.get("/api/meta?path=/").status, 422);
    for target in NOWHERE {
        assert_eq!(server.get(target).status, 404, "{target}");
    }
    // a file that is made later
    fs::copy(path("secret.h5"), path("served/new.nxs")).unwrap();
    assert_eq!(asked("new.nxs").status, 200);
    fs::remove_file(path("served/new.nxs")).unwrap();
    assert_eq!(asked("new.nxs").status, 404);
}

#[test]
fn answers_that_the_client_has() {
    let folder = small();
    let file = folder.path().join("small.h5");
    let server = Server::start(&[text(&file)]);
    let target = "/api/meta?file=small.h5&path=/";
    std::thread::sleep(Duration::from_millis(60));
    let answer = server.get(target);
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-cache")));
    let etag = answer.header("etag").unwrap().to_owned();
    let again = |target: &str, etag: &str| server.ask("GET", target, &format!("If-None-Match: {etag}\r\n"));
    for tag in [etag.as_str(), "*", &format!("\"x\", W/{etag}")] {
        let answer = again(target, tag);
        assert_eq!((answer.status, answer.body.len()), (304, 0));
        assert_eq!(answer.header("etag"), Some(etag.as_str()));
    }
    assert_eq!(again(target, "\"x\"").status, 200);
    assert_eq!(again("/api/meta?file=small.h5&path=/MAIN", &etag).status, 200);
    assert_eq!(again("/api/attr?file=small.h5&path=/", &etag).status, 200);
    fs::File::options().append(true).open(&file).unwrap().write_all(b"x").unwrap();
    assert_eq!(again(target, &etag).status, 200);

    let head = server.ask("HEAD", target, "");
    let length = head.header("content-length").unwrap().parse::<usize>().unwrap();
    assert_eq!((head.status, head.body.len(), length), (200, 0, server.get(target).body.len()));

    let page = server.ask("GET", "/", "Accept-Encoding: gzip\r\n");
    assert_eq!((page.header("content-encoding"), &page.body[..2]), (Some("gzip"), &[0x1f, 0x8b][..]));
    let unpacked = server.get("/");
    assert_eq!(unpacked.header("content-encoding"), None);
    assert!(unpacked.text().starts_with("<!doctype html>"), "{}", unpacked.text());
    assert_eq!(unpacked.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(again("/", page.header("etag").unwrap()).status, 304);

    // the explorer alone makes functions from text
    for (target, evaluates) in
        [("/", false), ("/ms.html", false), ("/explore.html", true), ("/licences.txt", false), ("/none", false)]
    {
        let policy = server.get(target).header("content-security-policy").unwrap().to_owned();
        assert_eq!(policy.contains("'unsafe-eval'"), evaluates, "{target}: {policy}");
        assert!(!policy.contains("unsafe-inline") && policy.contains("frame-ancestors 'none'"));
    }
    let script = unpacked.text();
    let script = script.split('"').find(|word| word.contains("assets/") && word.ends_with(".js")).unwrap();
    let script = server.get(&format!("/{}", script.trim_start_matches("./")));
    assert_eq!((script.status, script.header("content-type")), (200, Some("text/javascript; charset=utf-8")));
    assert!(script.header("cache-control").unwrap().contains("immutable"));
}

#[test]
fn large_answers() {
    let folder = tempfile::tempdir().unwrap();
    let file = large_file(folder.path());
    let data = "/api/data?file=large.h5&path=/MAIN/VALUES&format=bin";
    let server = Server::start(&[text(&file), "--max-response", "1M"]);
    let answer = server.get(data);
    assert_eq!(answer.status, 413);
    assert!(answer.json()["message"].as_str().unwrap().len() > 20);
    drop(server);

    let server = Server::start(&[text(&file), "--max-memory", "16M"]);
    let answer = server.get(data);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-length"), Some(answer.body.len().to_string().as_str()));
    assert!(answer.body.len() >= 24 << 20);
    assert_eq!(server.ask("HEAD", data, "").body.len(), 0);

    // clients that ask and never read: 3 MiB each, five fit; the others are told to come again, and
    // small requests go on
    let before = server.memory();
    let stalled: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = server.connect();
            let head = format!("GET {data} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", server.port);
            stream.write_all(format!("{head}Authorization: Bearer {}\r\n\r\n", server.token()).as_bytes()).unwrap();
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    for _ in 0..20 {
        let start = Instant::now();
        assert_eq!(server.get("/api/meta?file=large.h5&path=/").status, 200);
        assert_eq!(server.get("/api/files").status, 200);
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    }
    let after = server.memory();
    assert!(after < before + (40 << 10), "{before} KiB before, {after} KiB after");
    drop(stalled);
    // memory of the stalled clients is free again
    let start = Instant::now();
    while server.get(data).status != 200 {
        assert!(start.elapsed() < TIME);
    }
}

#[test]
fn headers_that_are_large_or_never_end() {
    let folder = small();
    let server = Server::start(&[text(folder.path())]);
    let start = Instant::now();
    let mut slow = server.connect();
    let mut silent = server.connect();
    let slow = std::thread::spawn(move || {
        slow.write_all(b"GET / HTTP/1.1\r\nX-Slow: ").unwrap();
        while slow.write_all(b"x").is_ok() && start.elapsed() < TIME {
            std::thread::sleep(Duration::from_millis(200));
        }
        let _ = silent.read_to_end(&mut Vec::new());
        start.elapsed()
    });
    let large = format!("X-Large: {}\r\n", "x".repeat(16 << 10));
    let answer = server.ask("GET", "/", &large);
    assert_eq!(answer.status, 431, "{}", answer.head);
    let answer = server.get(&format!("/?{}", "x".repeat(20 << 10)));
    assert!([414, 431].contains(&answer.status), "{}", answer.head);
    assert_eq!(server.ask("GET", "/", &"X-Many: 1\r\n".repeat(200)).status, 431);
    assert_eq!(server.ask("GET", "/", &format!("X-Large: {}\r\n", "x".repeat(8 << 10))).status, 200);
    for nonsense in [
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}",
        "GET / HTTP/1.1\r\nHost HOST\r\n\r\n",
    ] {
        let mut stream = server.connect();
        stream.write_all(nonsense.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let status = Answer::read(&mut stream).status;
        assert!([0, 400].contains(&status), "{nonsense:?}: {status}");
    }
    // a body is not waited for
    assert_eq!(server.ask("GET", "/api/files", "Content-Length: 1000000000000\r\n").status, 200);
    assert_eq!(server.get("/api/files").status, 200);
    let elapsed = slow.join().unwrap();
    assert!(elapsed > Duration::from_secs(8) && elapsed < Duration::from_secs(14), "{elapsed:?}");
}

#[test]
fn signals_end_it() {
    let folder = small();
    for signal in ["-INT", "-TERM"] {
        let server = Server::start(&[text(folder.path())]);
        let mut open = server.connect();
        open.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        let start = Instant::now();
        let (code, rest) = server.end(signal);
        assert_eq!(code, Some(0), "{signal}");
        assert!(start.elapsed() < Duration::from_secs(3));
        let end: Json = serde_json::from_str(&rest).unwrap();
        assert_eq!((end["event"].as_str(), end["code"].as_u64()), (Some("end"), Some(0)));
    }
}

/// Exit code and stderr of a server that does not start.
pub(crate) fn refused(words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new("timeout")
        .arg("10")
        .arg(env!("CARGO_BIN_EXE_h5bridge"))
        .arg("serve")
        .args(words)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn invalid_servers_do_not_start() {
    let folder = small();
    let source = text(folder.path());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, message) = refused(&[source, "--port", &port]);
    assert_eq!(code, Some(7));
    assert!(message.contains(&port) && message.lines().count() == 1, "{message}");
    let (code, message) = refused(&[source, "--no-token", "--host", "0.0.0.0", "--port", "0"]);
    assert_eq!(code, Some(2));
    assert!(message.contains("--no-token"), "{message}");
    assert_eq!(refused(&[text(&folder.path().join("none")), "--port", "0"]).0, Some(3));
    assert_eq!(refused(&[]).0, Some(2));
    assert_eq!(refused(&[source, "--base-path", "h5"]).0, Some(2));
    assert_eq!(refused(&[source, "--host", "name.invalid", "--port", "0"]).0, Some(2));
}

#[test]
fn without_a_token() {
    let folder = small();
    let server = Server::start(&[text(folder.path()), "--no-token"]);
    assert!(!server.url.contains("token"));
    assert_eq!(server.get("/api/files").status, 200);
    assert_eq!(server.raw("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").status, 403);
}

#[test]
fn the_next_free_port() {
    let folder = small();
    let output = |words: &[&str]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_h5bridge"))
            .arg("serve")
            .args(words)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (child, line)
    };
    let (mut first, one) = output(&[text(folder.path())]);
    let (mut second, two) = output(&[text(folder.path())]);
    for child in [&mut first, &mut second] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let port =
        |line: &str| line.strip_prefix("http://127.0.0.1:").unwrap().split('/').next().unwrap().parse::<u16>().unwrap();
    assert!((5380..5390).contains(&port(&one)) && port(&two) > port(&one) && port(&two) < 5390, "{one} {two}");
    assert!(one.trim_end().contains("/?token=") && one.ends_with('\n'));
}

#[test]
fn plots() {
    let folder = small();
    let server = Server::start(&[text(folder.path())]);
    let description = server.get("/live/describe?file=small.h5");
    assert_eq!((description.status, description.header("content-type")), (200, Some("application/json")));
    assert!(!description.json()["antennas"].as_array().unwrap().is_empty(), "{}", description.text());
    let target = "/live/plot/waterfall?file=small.h5&corr=XX";
    let frame = server.get(target);
    assert_eq!(frame.status, 200, "{}", frame.text());
    let length = u64::from_le_bytes(*frame.body.first_chunk().unwrap()) as usize;
    let header: Json = serde_json::from_slice(&frame.body[8..8 + length]).unwrap();
    let plot: Json = serde_json::from_str(header["__metadata__"]["plot"].as_str().unwrap()).unwrap();
    assert_eq!((plot["kind"].as_str(), plot["complete"].as_bool()), (Some("waterfall"), Some(true)));
    let etag = frame.header("etag").unwrap();
    let again = |target: &str| server.ask("GET", target, &format!("If-None-Match: {etag}\r\n")).status;
    assert_eq!(again(target), 304);
    assert_eq!(again("/live/plot/waterfall?file=small.h5&corr=YY"), 200);
    assert_eq!(again("/live/plot/spectrum?file=small.h5&corr=XX"), 200);
    let head = server.ask("HEAD", target, "");
    assert_eq!((head.body.len(), head.header("content-length")), (0, Some(frame.body.len().to_string().as_str())));
    let npy = server.get(&format!("{target}&format=npy"));
    assert_eq!(&npy.body[..6], b"\x93NUMPY");
    assert_eq!(npy.header("content-disposition"), Some("attachment; filename=\"waterfall.npy\""));
    let csv = server.get(&format!("{target}&format=csv"));
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    assert!(csv.text().lines().count() > 2);
    for wrong in [
        "waterfall?file=small.h5&corr=ZZ",
        "waterfall?file=small.h5&nothing=1",
        "nothing?file=small.h5",
        "?file=small.h5",
        "waterfall?file=small.h5&format=xml",
        "waterfall",
        "../describe?file=small.h5",
    ] {
        let answer = server.get(&format!("/live/plot/{wrong}"));
        assert!([404, 422].contains(&answer.status), "{wrong}: {}", answer.status);
        assert!(answer.json()["message"].is_string());
    }
    // without visibilities there is no plot, and the reason is said
    let large = large_file(folder.path());
    fs::remove_dir_all(folder.path().join("large.tab")).unwrap();
    let answer = server.get(&format!("/live/plot/waterfall?file={}", large.file_name().unwrap().to_str().unwrap()));
    assert_eq!(answer.status, 422);
    assert!(!answer.text().contains(text(folder.path())), "{}", answer.text());
}

#[test]
fn plots_of_missing_data() {
    let folder = small();
    let server = Server::start(&[text(folder.path())]);
    let words = |parameter: &str| {
        let answer = server.get(&format!("/live/plot/waterfall?file=small.h5&{parameter}"));
        (answer.status, answer.json()["message"].as_str().unwrap_or_default().to_owned())
    };
    for (parameter, what) in [
        ("spw=99", "spectral window 99; it has 0"),
        ("field=99", "field 99; it has 0"),
        ("field=nowhere", "field nowhere; it has 0"),
        ("antenna=99", "antenna 99; it has 0"),
        ("baseline=0-99", "antenna 99; it has 0"),
        ("corr=ZZ", "correlation ZZ; it has 0"),
        ("scan=99", "scan 99; it has "),
        ("column=NONE", "column of visibilities NONE; it has DATA"),
    ] {
        let (status, message) = words(parameter);
        assert_eq!(status, 422, "{parameter}: {message}");
        assert!(message.starts_with(&format!("the source has no {what}")), "{parameter}: {message}");
    }
    let (_, message) = words("scan=99");
    let scan = message.rsplit(' ').next().unwrap();
    assert_eq!(words(&format!("scan={scan}&spw=0&antenna=0")).0, 200, "{message}");
}

/// A table with one column of numbers, and subtables that keywords store by these names.
fn table_with(path: &Path, rows: u64, subtables: &[(&str, &str)]) {
    let mut table = NewTable::new().column(ColumnDesc::scalar::<f64>("VALUE"));
    for (keyword, stored) in subtables {
        table = table.keyword(*keyword, Value::Table((*stored).into()));
    }
    let mut table = table.create(path).unwrap();
    table.add_rows(rows).unwrap();
    table.column("VALUE").unwrap().put_scalars(0, (0..rows).map(|row| row as f64).collect()).unwrap();
    table.close().unwrap();
}

#[test]
fn tables_that_tables_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("served")).unwrap();
    table_with(&path("secret.tab"), 3, &[]);
    table_with(&path("served/beside.tab"), 4, &[]);
    let absolute = path("secret.tab").to_string_lossy().into_owned();
    let names = [
        ("INSIDE", "././INSIDE"),
        ("LINKED", "././LINKED"),
        ("BESIDE", "./beside.tab"),
        ("ABOVE", "./../secret.tab"),
        ("ABSOLUTE", &absolute),
        ("MISSING", "././MISSING"),
    ];
    table_with(&path("served/my.tab"), 2, &names);
    table_with(&path("served/my.tab/INSIDE"), 5, &[]);
    symlink(path("secret.tab"), path("served/my.tab/LINKED")).unwrap();

    let asked = |server: &Server, target: &str, file: &str| server.get(&format!("/api/{target}&file={file}"));
    let server = Server::start(&[text(&path("served"))]);
    let listed = asked(&server, "paths?path=/", "my.tab").json();
    let has = |name: &str| listed.as_array().unwrap().iter().any(|path| path == name);
    assert!(has("/INSIDE/VALUE") && has("/BESIDE/VALUE") && has("/ABOVE") && has("/LINKED"), "{listed}");
    assert!(!has("/MISSING") && !has("/ABOVE/VALUE") && !has("/LINKED/VALUE") && !has("/ABSOLUTE/VALUE"), "{listed}");
    let value = |table: &str, of: &str| asked(&server, &format!("data?path=/{of}/VALUE"), table);
    assert_eq!(value("my.tab", "BESIDE").json(), serde_json::json!([0., 1., 2., 3.]));
    assert_eq!(value("my.tab", "INSIDE").json().as_array().unwrap().len(), 5);
    for (name, stored) in names.iter().filter(|(name, _)| ["LINKED", "ABOVE", "ABSOLUTE"].contains(name)) {
        let link = asked(&server, &format!("meta?path=/{name}"), "my.tab").json();
        assert_eq!((link["kind"].as_str(), link["target_file"].as_str()), (Some("external_link"), Some(*stored)));
        let answer = value("my.tab", name);
        assert!([404, 422].contains(&answer.status), "{name}: {}", answer.text());
        let attributes = asked(&server, &format!("attr?path=/{name}"), "my.tab");
        assert!([404, 422].contains(&attributes.status), "{name}: {}", attributes.text());
    }
    // one that is a source itself is read
    let both = Server::start(&[text(&path("served")), &absolute]);
    let answer = asked(&both, "data?path=/LINKED/VALUE", "served/my.tab");
    assert_eq!(answer.json(), serde_json::json!([0., 1., 2.]));
}

#[test]
fn tables_that_change() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("my.tab");
    let server = Server::start(&[text(folder.path())]);
    for rows in [2, 5, 3] {
        let _ = fs::remove_dir_all(&table);
        table_with(&table, rows, &[]);
        let shape = server.get("/api/meta?file=my.tab&path=/MAIN/VALUE").json()["shape"].clone();
        assert_eq!(shape, serde_json::json!([rows]));
        let values = server.get("/api/data?file=my.tab&path=/MAIN/VALUE&selection=1:").json();
        assert_eq!(values, Json::from((1..rows).map(|row| row as f64).collect::<Vec<_>>()));
    }
    // nothing is written beside the table
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
