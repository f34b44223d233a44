//! A running server, and what it answers.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value as Json;

/// No answer of these tests takes longer.
pub(crate) const TIME: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) output: BufReader<std::process::ChildStdout>,
    pub(crate) url: String,
    pub(crate) port: u16,
}

impl Server {
    pub(crate) fn start(words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_h5bridge"));
        command.args(["serve", "--json"]).args(words).stdout(Stdio::piped()).stdin(Stdio::null());
        if !words.contains(&"--port") {
            command.args(["--port", "0"]);
        }
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let event: Json = serde_json::from_str(&line).unwrap();
        assert_eq!(event["event"], "listening");
        let port = event["port"].as_u64().unwrap().try_into().unwrap();
        Server { child, output, url: event["url"].as_str().unwrap().to_owned(), port }
    }

    pub(crate) fn token(&self) -> &str {
        self.url.split_once("?token=").unwrap().1
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(TIME)).unwrap();
        stream
    }

    /// The answer to a request as it is written here; `HOST` and `TOKEN` stand for ours.
    pub(crate) fn raw(&self, request: &str) -> Answer {
        let request = request.replace("HOST", &format!("127.0.0.1:{}", self.port));
        let request = if request.contains("TOKEN") { request.replace("TOKEN", self.token()) } else { request };
        let mut stream = self.connect();
        // a server that refuses may close before it has read everything
        let _ = stream.write_all(request.as_bytes());
        Answer::read(&mut stream)
    }

    /// A request that may be made, with further header lines.
    pub(crate) fn ask(&self, method: &str, target: &str, headers: &str) -> Answer {
        let token = self.url.split_once("?token=").map(|(_, token)| format!("Authorization: Bearer {token}\r\n"));
        let token = token.unwrap_or_default();
        self.raw(&format!("{method} {target} HTTP/1.1\r\nHost: HOST\r\n{token}Connection: close\r\n{headers}\r\n"))
    }

    pub(crate) fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, "")
    }

    /// Memory of the server in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Sends a signal; returns the exit code and the last line of the output.
    pub(crate) fn end(mut self, signal: &str) -> (Option<i32>, String) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
        let status = self.child.wait().unwrap();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        (status.code(), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn read(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, body: bytes.split_off(bytes.len().min(end + 4)), head }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "))
            .find_map(|(known, value)| known.eq_ignore_ascii_case(name).then_some(value))
    }

    pub(crate) fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or(Json::Null)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
