//! Requests that nobody would write, and files whose bytes are damaged: the server answers or
//! refuses, and keeps running.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;

use ctds_hdf5_testing::proptest::prelude::*;
use ctds_hdf5_testing::proptest::sample::select;
use ctds_hdf5_testing::{Mutation, mutations, property};

use crate::server::Server;
use crate::{small, text};

/// Content of the files that no answer may show.
const SECRET: &str = "nobody may read this";

const EVENTS: &str = "text/event-stream";

/// Memory that a server may take, in KiB.
const MEMORY: u64 = 1 << 20;

/// Statuses of answers that are meant: never 500.
const STATUSES: [u16; 11] = [200, 204, 303, 304, 400, 401, 403, 404, 405, 413, 422];

/// Paths of objects that the file has, and of some that it has not.
const OBJECTS: [&str; 12] = [
    "/",
    "",
    "/MAIN",
    "/MAIN/TIME",
    "/MAIN/DATA",
    "/MAIN/FLAG",
    "/MAIN/UVW",
    "/ANTENNA/NAME",
    "/ANTENNA/POSITION",
    "/_ctds",
    "//MAIN//",
    "/MAIN/TIME/x",
];

/// A path on a connection that is kept, or any bytes on one of their own.
#[derive(Debug, Clone)]
enum Request {
    Written { method: &'static str, target: String, headers: Vec<String> },
    Damaged { target: String, headers: Vec<String>, damage: Vec<Mutation> },
}

fn words(known: &'static [&'static str]) -> BoxedStrategy<String> {
    let odd = prop_oneof![any::<String>().prop_map(|text| escaped(&text)), "[ -~&&[^ #]]{0,12}", "(%[0-9a-f]{2}){0,6}"];
    prop_oneof![8 => select(known).prop_map(str::to_owned), 1 => odd].boxed()
}

fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut all, byte| {
        let _ = write!(all, "%{byte:02x}");
        all
    })
}

fn number() -> BoxedStrategy<String> {
    let far = select(&["9223372036854775807", "-9223372036854775808", "18446744073709551616", "1e9", "nan", ""][..]);
    prop_oneof![6 => (-9i64..40).prop_map(|number| number.to_string()), 1 => far.prop_map(str::to_owned)].boxed()
}

fn selection() -> BoxedStrategy<String> {
    let slice =
        prop::collection::vec(prop_oneof![Just(String::new()), number()], 1..=4).prop_map(|ends| ends.join(":"));
    prop::collection::vec(slice, 0..=5).prop_map(|axes| axes.join(",")).boxed()
}

fn range() -> BoxedStrategy<String> {
    prop_oneof![(number(), number()).prop_map(|(from, to)| format!("{from}..{to}")), number()].boxed()
}

fn parameter() -> BoxedStrategy<String> {
    let file: &[&str] = &[
        "small.h5",
        "link.h5",
        "table.ms",
        "damaged.h5",
        "../secret.h5",
        "out.h5",
        "elsewhere/secret.h5",
        "secret.txt",
        "%2e%2e/secret.h5",
        "/etc/passwd",
        "sub/../../secret.h5",
        "small.h5%00",
        "",
    ];
    let named =
        |name: &'static str, value: BoxedStrategy<String>| value.prop_map(move |value| format!("{name}={value}"));
    let switches = prop_oneof![
        named("format", words(&["json", "bin", "npy", "csv", "tiff", "xml"])),
        named("dtype", words(&["origin", "safe"])),
        named("flatten", words(&["true", "false"])),
        named("resolve_links", words(&["none", "only_valid", "all"])),
        named("attr_keys", words(&["CLASS", "DIMENSION_LIST", "QuantumUnits"])),
    ];
    let plots = prop_oneof![
        named("column", words(&["DATA", "FLAG", "NONE"])),
        named("spw", number()),
        named("field", number()),
        named("scan", range()),
        named("corr", words(&["XX", "XX,YY", "RR", ","])),
        named("baseline", words(&["cross", "auto", "all", "0-1", "0-1,1-2", "-"])),
        named("antenna", number()),
        named("time", range()),
        named("chan", range()),
        named("quantity", words(&["amp", "phase", "real", "imag", "flagged"])),
        named("statistic", words(&["mean", "max"])),
        named("average", words(&["scalar", "vector"])),
        named("flagged", words(&["omit", "include"])),
        named("unit", words(&["metres", "klambda"])),
    ];
    prop_oneof![
        6 => named("file", words(file)),
        6 => named("path", words(&OBJECTS)),
        3 => named("selection", selection()),
        3 => switches,
        4 => plots,
        1 => (words(&["token", "x"]), words(&["1"])).prop_map(|(name, value)| format!("{name}={value}")),
    ]
    .boxed()
}

fn target() -> BoxedStrategy<String> {
    let addresses: &[&str] = &[
        "/",
        "/index.html",
        "/explore.html",
        "/ms.html",
        "/licences.txt",
        "/assets/x.js",
        "/api",
        "/api/files",
        "/api/meta",
        "/api/attr",
        "/api/data",
        "/api/data",
        "/api/data",
        "/api/stats",
        "/api/paths",
        "/live/describe",
        "/live/events",
        "/live/plot/waterfall",
        "/live/plot/amp_time",
        "/live/plot/spectrum",
        "/live/plot/amp_uvdist",
        "/live/plot/uv",
        "/live/plot/flag_antenna",
        "/live/plot/baselines",
        "/live/plot/none",
        "/../../etc/passwd",
        "/api/meta/../../x",
        "//",
    ];
    let query = prop::collection::vec(parameter(), 0..=6).prop_map(|pairs| pairs.join("&"));
    // most requests name a file and an object that exist, so that they get further than the first
    // check
    let beginning = select(&["", "file=small.h5&", "file=small.h5&path=/MAIN/DATA&", "file=table.ms&"][..]);
    (words(addresses), beginning, query)
        .prop_map(|(path, beginning, query)| format!("{path}?{beginning}{query}"))
        .boxed()
}

fn headers() -> BoxedStrategy<Vec<String>> {
    let names = select(
        &[
            "If-None-Match",
            "Accept-Encoding",
            "Range",
            "Origin",
            "Cookie",
            "Authorization",
            "Sec-Fetch-Site",
            "Accept",
            "X",
        ][..],
    );
    let values = prop_oneof![
        select(
            &[
                "*",
                "\"x\"",
                "gzip",
                "bytes=0-5",
                "http://evil.example",
                "null",
                "h5bridge_1=x; ;=",
                "cross-site",
                "Bearer x"
            ][..]
        )
        .prop_map(str::to_owned),
        "[ -~]{0,40}",
    ];
    let header = (names, values).prop_map(|(name, value)| format!("{name}: {}", value.trim()));
    prop::collection::vec(header, 0..=2).boxed()
}

fn request() -> BoxedStrategy<Request> {
    let method = prop_oneof![12 => Just("GET"), 2 => Just("HEAD"), 1 => select(&["POST", "PUT", "OPTIONS", "X"][..])];
    prop_oneof![
        30 => (method, target(), headers()).prop_map(|(method, target, headers)| Request::Written { method, target, headers }),
        1 => (target(), headers(), mutations(4))
            .prop_map(|(target, headers, damage)| Request::Damaged { target, headers, damage }),
    ]
    .boxed()
}

/// A connection that is used again as long as the server keeps it.
struct Client<'a> {
    server: &'a Server,
    stream: Option<BufReader<TcpStream>>,
}

impl<'a> Client<'a> {
    fn new(server: &'a Server) -> Self {
        Client { server, stream: None }
    }

    fn head(&self, method: &str, target: &str, headers: &[String]) -> String {
        let mut head = format!(
            "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n",
            self.server.port,
            self.server.token()
        );
        for header in headers {
            let _ = write!(head, "{header}\r\n");
        }
        head + "\r\n"
    }

    /// Status and body of the answer, whose headers may end the connection.
    fn ask(&mut self, method: &str, target: &str, headers: &[String]) -> (u16, Vec<u8>) {
        let head = self.head(method, target, headers);
        let is_kept = self.stream.is_some();
        match self.try_ask(method, &head) {
            Some(answer) => answer,
            // a connection that was kept may have been closed before the request
            None if is_kept => self.try_ask(method, &head).expect("an answer on a connection of its own"),
            None => panic!("no answer"),
        }
    }

    fn try_ask(&mut self, method: &str, head: &str) -> Option<(u16, Vec<u8>)> {
        let mut stream = self.stream.take().unwrap_or_else(|| BufReader::new(self.server.connect()));
        stream.get_mut().write_all(head.as_bytes()).ok()?;
        let mut line = String::new();
        stream.read_line(&mut line).expect("an answer in time");
        let status: u16 = line.split(' ').nth(1)?.parse().ok()?;
        let (mut length, mut is_chunked, mut is_kept) = (0, false, true);
        loop {
            line.clear();
            stream.read_line(&mut line).ok()?;
            let lower = line.trim_end().to_ascii_lowercase();
            let Some((name, value)) = lower.split_once(": ") else { break };
            match (name, value) {
                ("content-length", value) => length = value.parse().ok()?,
                ("transfer-encoding", "chunked") => is_chunked = true,
                ("connection", "close") => is_kept = false,
                // a stream of events has no end
                ("content-type", EVENTS) => return Some((status, Vec::new())),
                _ => {}
            }
        }
        let mut body = Vec::new();
        if method == "HEAD" || status == 304 || status == 204 {
        } else if is_chunked {
            read_chunks(&mut stream, &mut body);
        } else {
            body.resize(length, 0);
            stream.read_exact(&mut body).expect("a whole body");
        }
        self.stream = is_kept.then_some(stream);
        Some((status, body))
    }

    /// Sends any bytes and no more; what comes back, if anything does.
    fn send(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.server.connect();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut stream = BufReader::new(stream);
        let mut answer = Vec::new();
        while stream.read_until(b'\n', &mut answer).is_ok_and(|bytes| bytes > 0) {
            // an event stream has no end
            if answer.windows(EVENTS.len()).any(|window| window == EVENTS.as_bytes()) {
                break;
            }
        }
        answer
    }
}

fn read_chunks(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) {
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).expect("a chunk");
        let length = usize::from_str_radix(line.trim_end(), 16).expect("the length of a chunk");
        let start = body.len();
        body.resize(start + length + 2, 0);
        stream.read_exact(&mut body[start..]).expect("a whole chunk");
        body.truncate(start + length);
        if length == 0 {
            return;
        }
    }
}

fn check(server: &Server, status: u16, body: &[u8], target: &str) {
    assert!(STATUSES.contains(&status), "{status} for {target}: {}", String::from_utf8_lossy(body));
    let shows = |wanted: &str| body.windows(wanted.len()).any(|window| window == wanted.as_bytes());
    assert!(!shows(SECRET) && !shows("root:x:0:0"), "{target} shows a file outside");
    assert!(server.memory() < MEMORY, "{target}: {} KiB", server.memory());
}

#[test]
fn any_request_has_an_answer() {
    let folder = small();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir_all(path("served/sub")).unwrap();
    fs::rename(path("small.h5"), path("served/small.h5")).unwrap();
    fs::write(path("secret.txt"), SECRET).unwrap();
    fs::copy(path("secret.txt"), path("secret.h5")).unwrap();
    for (to, name) in
        [(path("secret.h5"), "out.h5"), (folder.path().to_owned(), "elsewhere"), (path("served/small.h5"), "link.h5")]
    {
        symlink(to, path("served").join(name)).unwrap();
    }
    ctds_hdf5_testing::copy_tree(&ctds_hdf5_testing::testdata().join("demo/demo.ms"), &path("served/table.ms"));
    damage(&path("served/small.h5"), &path("served/damaged.h5"), &[]);
    let server = Server::start(&[text(&path("served"))]);
    let client = RefCell::new(Client::new(&server));
    property(4000, request(), |request| match request {
        Request::Written { method, target, headers } => {
            let (status, body) = client.borrow_mut().ask(method, &target, &headers);
            check(&server, status, &body, &target);
        }
        Request::Damaged { target, headers, damage } => {
            let mut bytes = client.borrow().head("GET", &target, &headers).into_bytes();
            for mutation in &damage {
                mutation.apply(&mut bytes);
            }
            let answer = client.borrow().send(&bytes);
            check(&server, 200, &answer, &target);
        }
    });
    assert_eq!(server.get("/api/meta?file=small.h5&path=/").status, 200);
}

/// Writes `from` with changes as `to`, which appears at once.
fn damage(from: &Path, to: &Path, mutations: &[Mutation]) -> Vec<String> {
    let mut bytes = fs::read(from).unwrap();
    let changes = mutations.iter().map(|mutation| mutation.apply(&mut bytes)).collect();
    let new = to.with_extension("new");
    fs::write(&new, bytes).unwrap();
    fs::rename(new, to).unwrap();
    changes
}

#[test]
fn any_file_has_an_answer() {
    let folder = small();
    let (whole, damaged) = (folder.path().join("small.h5"), folder.path().join("damaged.h5"));
    let server = RefCell::new(Server::start(&[text(folder.path())]));
    let object = select(&OBJECTS[..]);
    let request = prop_oneof![
        8 => (select(&["meta", "attr", "data", "stats"][..]), object)
            .prop_map(|(request, path)| format!("/api/{request}?file=damaged.h5&path={path}")),
        1 => Just("/api/paths?file=damaged.h5&path=/".to_owned()),
        1 => select(&["describe", "plot/waterfall", "plot/flag_antenna"][..])
            .prop_map(|request| format!("/live/{request}?file=damaged.h5")),
    ];
    // few for each file: libhdf5 reads damaged metadata a hundred times, since a writer might be at
    // work
    property(20, (mutations(6), prop::collection::vec(request, 1..=4)), |(mutations, targets)| {
        let changes = damage(&whole, &damaged, &mutations);
        if server.borrow_mut().child.try_wait().unwrap().is_some() {
            // the case before ended it, and was reported
            server.replace(Server::start(&[text(folder.path())]));
        }
        for target in targets {
            let (status, body) = Client::new(&server.borrow()).ask("GET", &target, &[]);
            let words = String::from_utf8_lossy(&body);
            assert!(STATUSES.contains(&status), "{status} for {target}: {words} ({changes:?})");
        }
        assert!(server.borrow().memory() < MEMORY, "{} KiB after {changes:?}", server.borrow().memory());
    });
}
