//! Streams of events: looks at files that grow, alerts, problems, the board.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ctds_hdf5::ColumnDesc;
use ctds_hdf5::live::{CommitPolicy, Schema, TableSpec, Writer};
use ctds_hdf5::value::Complex32;
use ctds_hdf5_testing::testdata;
use serde_json::Value as Json;

use crate::server::{Server, TIME};
use crate::{refused, text};

struct Growing {
    writer: Writer,
    rows: u64,
}

impl Growing {
    fn new(path: &Path) -> Self {
        let main = TableSpec::new("MAIN")
            .column(ColumnDesc::scalar::<f64>("TIME").unit("s"))
            .column(ColumnDesc::scalar::<i32>("ANTENNA1"))
            .column(ColumnDesc::scalar::<i32>("ANTENNA2"))
            .column(ColumnDesc::array::<Complex32>("DATA").fixed_shape([2, 4]))
            .column(ColumnDesc::array::<bool>("FLAG").fixed_shape([2, 4]));
        let writer = Schema::new().table(main).commit(CommitPolicy::manual()).create(path).unwrap();
        let mut growing = Growing { writer, rows: 0 };
        growing.append(3);
        growing
    }

    fn append(&mut self, count: u64) {
        self.append_flagged(count, false);
    }

    /// Rows whose cells are flagged or not, committed.
    fn append_flagged(&mut self, count: u64, flagged: bool) {
        let rows = self.rows..self.rows + count;
        let elements = count as usize * 8;
        let times: Vec<f64> = rows.clone().map(|row| 5e9 + (row / 3) as f64).collect();
        let first: Vec<i32> = rows.clone().map(|row| [0, 0, 1][row as usize % 3]).collect();
        let second: Vec<i32> = rows.clone().map(|row| [1, 2, 2][row as usize % 3]).collect();
        let mut main = self.writer.table("MAIN").unwrap().batch(count);
        main.set("TIME", &times).unwrap().set("ANTENNA1", &first).unwrap().set("ANTENNA2", &second).unwrap();
        let (data, flags) = (vec![Complex32::new(3., 4.); elements], vec![flagged; elements]);
        main.set("DATA", &data).unwrap().set("FLAG", &flags).unwrap();
        main.append().unwrap();
        self.writer.commit().unwrap();
        self.rows += count;
    }
}

struct Events(BufReader<TcpStream>, Instant);

impl Events {
    fn open(server: &Server, file: &str) -> Self {
        Self::at(server, &format!("/live/events?file={file}"))
    }

    fn at(server: &Server, target: &str) -> Self {
        let mut stream = server.connect();
        let head = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", server.port);
        stream.write_all(format!("{head}Authorization: Bearer {}\r\n\r\n", server.token()).as_bytes()).unwrap();
        Events(BufReader::new(stream), Instant::now())
    }

    /// Name and document of the next event; the lines of the chunked encoding are skipped.
    fn next(&mut self) -> (String, Json) {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ends");
            assert!(self.1.elapsed() < 6 * TIME, "the event does not come");
            if let Some(event) = line.strip_prefix("event: ") {
                name = event.trim_end().to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return (name, serde_json::from_str(data).unwrap());
            }
        }
    }

    fn next_of(&mut self, wanted: &str) -> Json {
        loop {
            let (name, document) = self.next();
            if name == wanted {
                return document;
            }
        }
    }

    /// The first look with so many rows, or more.
    fn rows(&mut self, rows: u64) -> Json {
        loop {
            let (name, look) = self.next();
            assert_eq!(name, "look");
            if look["rows"].as_u64().unwrap() >= rows {
                return look;
            }
        }
    }
}

#[test]
fn events_of_a_file_that_grows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let mut growing = Growing::new(&path);
    let server = Server::start(&[text(folder.path())]);
    let files = server.get("/api/files").json();
    assert_eq!((files[0]["kind"].as_str(), files[0]["measurement_set"].as_bool()), (Some("live"), Some(true)));
    let mut first = Events::open(&server, "live.h5");
    let look = first.rows(3);
    assert_eq!(
        (look["event"].as_str(), look["file"].as_str(), look["kind"].as_str()),
        (Some("look"), Some("live.h5"), Some("live"))
    );
    let before = look["revision"].as_u64().unwrap();
    // a client that never reads, and one that comes later
    let _silent = Events::open(&server, "live.h5");
    for _ in 0..10 {
        growing.append(30);
        std::thread::sleep(Duration::from_millis(20));
    }
    let start = Instant::now();
    let mut second = Events::open(&server, "live.h5");
    let look = first.rows(303);
    assert_eq!(second.rows(303)["revision"], look["revision"]);
    assert!(look["revision"].as_u64().unwrap() > before);
    assert!(look["rows_per_second"].is_number() && start.elapsed() < Duration::from_secs(3));
    // without a change a look comes each five seconds
    assert_eq!(first.next().1["rows"], 303);
    assert!((Duration::from_secs(3)..Duration::from_secs(8)).contains(&start.elapsed()), "{:?}", start.elapsed());

    // the committed rows are listed
    assert_eq!(server.get("/api/files").json()[0]["rows"], 303);
    fs::remove_file(&path).unwrap();
    for events in [&mut first, &mut second] {
        let (name, end) = loop {
            let (name, document) = events.next();
            if name != "look" {
                break (name, document);
            }
        };
        assert_eq!((name.as_str(), end), ("end", serde_json::json!({"reason": "gone"})));
    }
    assert_eq!(server.get("/live/events?file=live.h5").status, 404);
}

#[test]
fn event_streams_are_limited() {
    let folder = tempfile::tempdir().unwrap();
    let _growing = Growing::new(&folder.path().join("live.h5"));
    let server = Server::start(&[text(folder.path())]);
    let mut streams: Vec<Events> = (0..64).map(|_| Events::open(&server, "live.h5")).collect();
    for stream in &mut streams {
        stream.rows(3);
    }
    let answer = server.get("/live/events?file=live.h5");
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    // others are not concerned
    assert_eq!(server.get("/api/meta?file=live.h5&path=/").status, 200);
    assert_eq!(server.get("/live/describe?file=live.h5").status, 200);
    let head = server.ask("HEAD", "/live/events?file=live.h5", "");
    assert!([200, 503].contains(&head.status));
    streams.pop();
    let start = Instant::now();
    loop {
        let mut stream = Events::open(&server, "live.h5");
        let mut line = String::new();
        stream.0.read_line(&mut line).unwrap();
        if line.contains("200 OK") {
            assert_eq!(stream.rows(3)["rows"], 3);
            break;
        }
        assert!(line.contains("503") && start.elapsed() < TIME, "{line}");
    }
}

#[test]
fn alerts_begin_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut growing = Growing::new(&folder.path().join("live.h5"));
    let rules = folder.path().join("rules");
    fs::write(&rules, "# all files\nflagged > 40 %\n").unwrap();
    let server = Server::start(&[text(folder.path()), "--alerts", text(&rules)]);
    for (words, expected) in [
        ("alert=flagged", "\"flagged\" is not a rule for alerts: < or > after flagged is expected"),
        ("alert=lag%20%3E%2020%20s,lag%20%3E%20soon", "a number instead of \"soon\""),
        (&*"alert=lag%3E1&".repeat(17), "17 rules for alerts; a request has 16 at most"),
        (&*format!("alert={}", "x".repeat(201)), "longer than 200 characters"),
    ] {
        let answer = server.get(&format!("/live/events?file=live.h5&{words}"));
        assert_eq!(answer.status, 422, "{words}");
        assert!(answer.json()["message"].as_str().unwrap().contains(expected), "{}", answer.text());
    }
    let mut own = Events::at(&server, "/live/events?file=live.h5&alert=flagged%3E10%25%20for%20antenna%202");
    own.rows(3);
    let mut plain = Events::open(&server, "live.h5");
    growing.append_flagged(300, true);
    let mut begun = [own.next_of("alert"), own.next_of("alert")];
    begun.sort_by_key(|alert| alert["rule"].to_string());
    let of_antenna = "flagged > 10 % for antenna 2";
    for (alert, rule) in begun.iter().zip([of_antenna, "flagged > 40 %"]) {
        assert_eq!((alert["rule"].as_str(), alert["active"].as_bool()), (Some(rule), Some(true)), "{alert}");
        assert_eq!((alert["event"].as_str(), alert["file"].as_str()), (Some("alert"), Some("live.h5")));
        assert!(alert["revision"].is_u64() && alert["since"] == alert["time"]);
    }
    assert_eq!(begun[0]["text"], "flagged > 10 % for antenna #2 (100 %)");
    assert_eq!(plain.next_of("alert"), begun[1], "rules of the server are for all, those of a client for it alone");
    let mut late = Events::open(&server, "live.h5");
    assert_eq!(late.next_of("alert"), begun[1], "a client that comes later is told what holds");
    growing.append_flagged(6000, false);
    for events in [&mut own, &mut plain, &mut late] {
        let ended = loop {
            let alert = events.next_of("alert");
            if alert["rule"] == "flagged > 40 %" {
                break alert;
            }
        };
        assert_eq!((ended["active"].as_bool(), &ended["since"]), (Some(false), &begun[1]["since"]));
        assert_eq!(ended["text"], "ended: flagged > 40 %");
    }
    // the rules of a client end with its connection; the next client has its own
    drop(own);
    let mut other = Events::at(&server, "/live/events?file=live.h5&alert=flagged%20%3C%201");
    assert_eq!(other.next_of("alert")["rule"], "flagged < 1 %");

    fs::write(&rules, "lag > 20 s\nlag > soon\n").unwrap();
    let (code, message) = refused(&[text(folder.path()), "--alerts", text(&rules)]);
    assert_eq!(code, Some(2));
    assert!(message.contains("rules: line 2: \"lag > soon\"") && message.contains("a number"), "{message}");
}

#[test]
fn a_file_that_cannot_be_read_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("my.ms");
    let copied = Command::new("cp").arg("-r").arg(testdata().join("demo/demo.ms")).arg(&table).status().unwrap();
    assert!(copied.success());
    let server = Server::start(&[text(folder.path())]);
    let mut events = Events::open(&server, "my.ms");
    let revision = events.next_of("look")["revision"].clone();
    let lock = table.join("table.lock");
    let good = fs::read(&lock).unwrap();
    fs::write(&lock, vec![0xff; good.len().max(300)]).unwrap();
    let problem = events.next_of("problem");
    let message = problem["message"].as_str().unwrap();
    assert!(message.contains("my.ms") && !message.contains(text(folder.path())), "{message}");
    // one that comes later cannot be told by a refusal only: the file is open
    let mut second = Events::open(&server, "my.ms");
    assert_eq!(second.next_of("problem"), problem);
    fs::write(&lock, &good).unwrap();
    let (name, document) = events.next();
    assert_eq!((name.as_str(), &document["message"]), ("problem", &Json::Null), "once for each change");
    assert_eq!(second.next_of("problem"), document);
    assert!(events.next_of("look")["revision"].as_u64() >= revision.as_u64());
}

#[test]
fn a_board_of_200_files() {
    const FILES: usize = 200;
    const GROWING: usize = 20;
    let folder = tempfile::tempdir().unwrap();
    let path = |number: usize| folder.path().join(format!("live{number:03}.h5"));
    let mut growing: Vec<Growing> = (0..GROWING).map(|number| Growing::new(&path(number))).collect();
    // the others are as a writer that was killed leaves them: open, without further rows
    for number in GROWING..FILES {
        fs::copy(path(0), path(number)).unwrap();
    }
    let rules = folder.path().join("rules");
    fs::write(&rules, "flagged > 60 %\n").unwrap();
    let server = Server::start(&[text(folder.path()), "--alerts", text(&rules)]);
    let mut boards = [Events::at(&server, "/live/board"), Events::at(&server, "/live/board")];
    let rows_of = |number: usize, grown: bool| if grown && number < GROWING { 9 } else { 3 };
    for grown in [false, true] {
        for board in &mut boards {
            let mut known = BTreeMap::new();
            let wanted = if grown { GROWING } else { FILES };
            while known.len() < wanted {
                let line = board.next_of("look");
                let number: usize = line["file"].as_str().unwrap()[4..7].parse().unwrap();
                if line["rows"] == rows_of(number, grown) && (number < GROWING || !grown) {
                    known.insert(number, line);
                }
            }
            for (number, line) in known {
                assert_eq!((line["open"].as_bool(), &line["problem"]), (Some(true), &Json::Null), "{line}");
                let alerts = line["alerts"].as_array().unwrap();
                let flagged = grown && number == 7;
                assert_eq!(alerts.len(), usize::from(flagged), "{line}");
                assert!(!flagged || alerts[0]["text"] == "flagged 66.7 % > 60 %", "{line}");
            }
        }
        for (number, growing) in growing.iter_mut().enumerate().filter(|_| !grown) {
            growing.append_flagged(6, number == 7);
        }
    }
    // the files are open for others as well
    let mut events = Events::open(&server, "live007.h5");
    assert_eq!(events.next_of("look")["rows"], 9);
    assert_eq!(server.get("/live/plot/waterfall?file=live199.h5").status, 200);
    let files = fs::read_dir(format!("/proc/{}/fd", server.child.id())).unwrap().count();
    assert!(files < 300, "{files} files are open");
    let memory = server.memory() >> 10;
    assert!(memory < 1024, "{memory} MiB");
    let head = server.ask("HEAD", "/live/board", "");
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
}
