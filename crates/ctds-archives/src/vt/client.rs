//! The client's side of the protocol: sends requests over a stream and takes their responses, which
//! come in any order. At most [`MAX_OUTSTANDING`] requests wait for a response at a time.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ctds::error::{Error, ErrorKind, Result};

use super::address::Transport;
use super::protocol::{Packet, PacketReader, Request};

/// The original queues 16 responses before it waits for its client.
const MAX_OUTSTANDING: usize = 16;

/// How long a server may take to respond.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long a command may take to end after its input has ended.
const END_WAIT: Duration = Duration::from_secs(5);
const END_POLL: Duration = Duration::from_millis(5);

/// A connection to a store.
pub(super) struct Client {
    packets: PacketReader<Box<dyn Read + Send>>,
    /// `None` once the stream was ended.
    target: Option<BufWriter<Box<dyn Write + Send>>>,
    command: Option<Child>,
    /// Tag of the last request; the original does not take one twice.
    tag: u64,
    /// Responses cannot be told apart after an error.
    is_broken: bool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("tag", &self.tag).finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn connect(transport: Transport<'_>) -> Result<Self> {
        match transport {
            Transport::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(Self::new(Box::new(stream.try_clone()?), Box::new(stream), None))
            }
            Transport::Exec(command) => {
                let mut shell = Command::new("sh");
                let mut child = shell.args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
                let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
                    return Err(Error::new(ErrorKind::Io, "the command has no standard input and output"));
                };
                Ok(Self::new(Box::new(output), Box::new(input), Some(child)))
            }
        }
    }

    fn new(source: Box<dyn Read + Send>, target: Box<dyn Write + Send>, command: Option<Child>) -> Self {
        let target = Some(BufWriter::new(target));
        Client { packets: PacketReader::new(source), target, command, tag: 0, is_broken: false }
    }

    /// Flags and payload of the response. `Format` with the message of the server if the request
    /// has failed there.
    pub(super) fn ask(&mut self, request: &Request) -> Result<(u64, Vec<u8>)> {
        Ok(self.ask_all(std::slice::from_ref(request))?.remove(0))
    }

    /// Flags and payloads of the responses, in the order of the requests.
    pub(super) fn ask_all(&mut self, requests: &[Request]) -> Result<Vec<(u64, Vec<u8>)>> {
        if self.is_broken {
            return Err(Error::new(ErrorKind::Io, "the connection to the store has failed before"));
        }
        self.is_broken = true;
        let answers = self.exchange(requests)?;
        self.is_broken = false;
        answers.into_iter().map(Packet::answer).collect()
    }

    fn exchange(&mut self, requests: &[Request]) -> Result<Vec<Packet>> {
        let mut answers: Vec<Option<Packet>> = requests.iter().map(|_| None).collect();
        let mut pending = HashMap::new();
        let mut sent = 0;
        while sent < requests.len() || !pending.is_empty() {
            while sent < requests.len() && pending.len() < MAX_OUTSTANDING {
                let (kind, flags, payload) = requests[sent].encode()?;
                let tag = self.send(kind, flags, payload).map_err(|error| self.not_sent(error))?;
                pending.insert(tag, sent);
                sent += 1;
            }
            let flushed = self.target.as_mut().map_or(Ok(()), Write::flush);
            flushed.map_err(|error| self.not_sent(error))?;
            let packet = self.packets.next()?.filter(|packet| !packet.is_end()).ok_or_else(|| self.ended())?;
            let Some(number) = pending.remove(&packet.tag).filter(|_| packet.request.is_none()) else {
                let what = if packet.request.is_some() { "a request" } else { "a response to no request" };
                let tag = packet.tag;
                return Err(Error::format(format!(
                    "found {what} with the tag {tag}, expected a response to a request"
                )));
            };
            answers[number] = Some(packet);
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// Returns the tag.
    fn send(&mut self, kind: u64, flags: u64, payload: Vec<u8>) -> io::Result<u64> {
        self.tag += 1;
        let mut bytes = Vec::with_capacity(payload.len() + 16);
        Packet::request(self.tag, kind, flags, payload).encode(&mut bytes);
        if let Some(target) = &mut self.target {
            target.write_all(&bytes)?;
        }
        Ok(self.tag)
    }

    fn not_sent(&mut self, error: io::Error) -> Error {
        if error.kind() == io::ErrorKind::BrokenPipe { self.ended() } else { error.into() }
    }

    fn ended(&mut self) -> Error {
        match self.command.as_mut().and_then(status) {
            Some(status) => Error::not_found(format!("the command that serves the store has ended: {status}")),
            None => Error::new(ErrorKind::Io, "the server has ended the connection"),
        }
    }
}

/// `None` if the command does not end by itself.
fn status(command: &mut Child) -> Option<ExitStatus> {
    let until = Instant::now() + END_WAIT;
    loop {
        match command.try_wait() {
            Ok(None) if Instant::now() < until => std::thread::sleep(END_POLL),
            status => return status.ok().flatten(),
        }
    }
}

/// Ends the stream, and waits for the command.
impl Drop for Client {
    fn drop(&mut self) {
        if let Some(mut target) = self.target.take() {
            let mut end = Vec::new();
            Packet::end().encode(&mut end);
            let _ = target.write_all(&end).and_then(|()| target.flush());
        }
        if let Some(command) = &mut self.command
            && status(command).is_none()
        {
            let _ = command.kill();
            let _ = command.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vt::hash::HashKind;

    fn client(bytes: Vec<u8>) -> Client {
        Client::new(Box::new(std::io::Cursor::new(bytes)), Box::new(std::io::sink()), None)
    }

    fn bytes(packets: &[Packet]) -> Vec<u8> {
        let mut out = Vec::new();
        packets.iter().for_each(|packet| packet.encode(&mut out));
        out
    }

    #[test]
    fn responses_are_matched_by_their_tags() {
        let requests: Vec<_> = (1..=40).map(|tag| Packet::request(tag, 3, 0, vec![])).collect();
        let mut answers: Vec<_> = requests.iter().map(|request| request.success(0, vec![request.tag as u8])).collect();
        // within the requests that wait at a time
        answers[..16].reverse();
        answers[20..24].reverse();
        let found = client(bytes(&answers)).ask_all(&vec![Request::Flush; 40]).unwrap();
        let payloads: Vec<_> = found.into_iter().flat_map(|(_, payload)| payload).collect();
        assert_eq!(payloads, (1..=40).collect::<Vec<u8>>());
    }

    #[test]
    fn wrong_responses_break_the_connection() {
        let request = Packet::request(1, 3, 0, vec![]);
        let success = request.success(0, vec![]);
        for (packets, message) in [
            (
                vec![Packet { tag: 9, ..success.clone() }],
                "found a response to no request with the tag 9, expected a response to a request",
            ),
            (vec![request.clone()], "found a request with the tag 1, expected a response to a request"),
            (vec![Packet::end()], "the server has ended the connection"),
            (vec![], "the server has ended the connection"),
        ] {
            let mut client = client(bytes(&packets));
            assert_eq!(client.ask(&Request::Flush).unwrap_err().message(), message);
            let error = client.ask(&Request::Flush).unwrap_err();
            assert_eq!(error.message(), "the connection to the store has failed before");
        }
        // a refusal does not
        let mut client = client(bytes(&[request.failure("no\n"), Packet { tag: 2, ..success }]));
        let hash = HashKind::Sha1.hash(b"x");
        assert_eq!(client.ask(&Request::Get(hash)).unwrap_err().message(), "the store refuses the request: no ");
        assert!(client.ask(&Request::Flush).is_ok());
    }

    #[test]
    fn a_command_that_ends_is_named() {
        for command in ["exit 5", "exec >&- <&-; exit 5", "sleep 0.1; exit 5"] {
            let mut client = Client::connect(Transport::Exec(command)).unwrap();
            let error = client.ask(&Request::Flush).unwrap_err();
            assert_eq!(error.message(), "the command that serves the store has ended: exit status: 5", "{command}");
        }
    }
}
