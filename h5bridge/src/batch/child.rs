//! Child processes of `h5bridge batch`: each does the work of one item, and ends when this process
//! ends.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ctds_hdf5::program::os;
use ctds_hdf5::{Error, ErrorKind, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};

use crate::exit::Status;

/// Hidden option with the parent's process id: the child ends when the parent does.
const END_WITH: &str = "--end-with";

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(30);

const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Bytes kept of stdout, and of stderr.
const MAX_PRINTED: u64 = 1 << 20;

/// Command line that starts this program again.
#[derive(Debug, Clone)]
pub(crate) struct Program(Vec<OsString>);

#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Ended {
    /// The convention of shells: 128 plus the number of the signal that ended the process.
    pub(super) fn code(&self) -> i32 {
        self.status.code().or_else(|| self.status.signal().map(|signal| 128 + signal)).unwrap_or(1)
    }

    /// `None` if it exited by itself.
    pub(super) fn signal(&self) -> Option<i32> {
        self.status.signal()
    }
}

impl Program {
    /// Without `words`, the executable of the running process; `Io` if its path is unknown.
    pub(crate) fn new(words: &[OsString]) -> Result<Self> {
        if words.is_empty() { Ok(Program(vec![std::env::current_exe()?.into()])) } else { Ok(Program(words.to_vec())) }
    }

    /// Sends SIGTERM when `stop` becomes true, and SIGKILL after `GRACE`.
    pub(super) fn run(&self, words: &[OsString], stop: &dyn Fn() -> bool) -> Result<Ended> {
        let mut command = Command::new(&self.0[0]);
        command.args(&self.0[1..]).arg(END_WITH).arg(std::process::id().to_string()).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = |error: std::io::Error| Error::from(error).context(format!("starting {}", self.0[0].display()));
        let mut child = command.spawn().map_err(start)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        std::thread::scope(|scope| {
            let stdout = scope.spawn(|| read_all(stdout));
            let stderr = scope.spawn(|| read_all(stderr));
            let status = wait(&mut child, stop);
            let joined = |text: std::thread::Result<String>| text.unwrap_or_default();
            let (stdout, stderr) = (joined(stdout.join()), joined(stderr.join()));
            Ok(Ended { status: status?, stdout, stderr })
        })
    }
}

fn wait(child: &mut Child, stop: &dyn Fn() -> bool) -> Result<ExitStatus> {
    let (mut pause, mut told) = (Duration::from_millis(1), None::<Instant>);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        match told {
            None if stop() => {
                // the child is not waited for by another thread, so that its number is still its
                // own
                let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
                told = Some(Instant::now());
            }
            Some(since) if since.elapsed() > GRACE => child.kill()?,
            _ => {}
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Reads to the end, and keeps `MAX_PRINTED` bytes.
fn read_all(from: Option<impl Read>) -> String {
    let Some(mut from) = from else { return String::new() };
    let mut kept = Vec::new();
    let _ = from.by_ref().take(MAX_PRINTED).read_to_end(&mut kept);
    let _ = std::io::copy(&mut from, &mut std::io::sink());
    String::from_utf8_lossy(&kept).into_owned()
}

/// Makes this process receive SIGTERM when the parent ends; `Interrupted` if it has already.
pub(crate) fn end_with(parent: i32) -> Result<()> {
    let check = || match getppid() == Pid::from_raw(parent) {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Interrupted, "the process that started this one has ended")),
    };
    check()?;
    os::end_with_parent()?;
    // the parent may have ended before the signal was asked for
    check()
}

/// First line of the printed error, without the program name, or the signal.
pub(super) fn message(ended: &Ended) -> String {
    if let Some(signal) = ended.signal() {
        let name = Signal::try_from(signal).map_or("a signal", Signal::as_str);
        return format!("the process was killed by {name}");
    }
    let is_error = |line: &&str| line.starts_with("h5bridge: ") && !line.starts_with("h5bridge: warning: ");
    let line = ended.stderr.lines().find(is_error).or_else(|| ended.stderr.lines().last());
    let line = line.map(|line| line.trim_start_matches("h5bridge: ").to_owned());
    line.unwrap_or_else(|| format!("the process ended with status {}", ended.code()))
}

pub(super) fn is_transient(code: i32) -> bool {
    let is = |status: Status| code == i32::from(status.code());
    !(is(Status::Done)
        || is(Status::Usage)
        || is(Status::Source)
        || is(Status::Unsupported)
        || is(Status::Different)
        || is(Status::Warnings))
}

pub(super) fn words<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<OsString> {
    texts.into_iter().map(|text| OsStr::new(text).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str) -> Program {
        // the words that follow are $0 and so on
        Program(words(["sh", "-c", text]))
    }

    #[test]
    fn ends_are_reported() {
        let never = || false;
        let ended = shell("echo out; echo 'h5bridge: a.ms: no' >&2; exit 3").run(&[], &never).unwrap();
        assert_eq!((ended.code(), ended.stdout.as_str(), message(&ended).as_str()), (3, "out\n", "a.ms: no"));
        let ended = shell("kill -9 $$").run(&[], &never).unwrap();
        assert_eq!((ended.code(), ended.signal()), (137, Some(9)));
        assert_eq!(message(&ended), "the process was killed by SIGKILL");
        assert!(is_transient(137) && is_transient(7) && is_transient(1) && !is_transient(3) && !is_transient(0));
        // more than a pipe holds
        let ended = shell("yes | head -c 3000000").run(&[], &never).unwrap();
        assert_eq!((ended.code(), ended.stdout.len() as u64), (0, MAX_PRINTED));
    }

    #[test]
    fn a_child_is_stopped() {
        let ended = shell("exec sleep 60").run(&[], &|| true).unwrap();
        assert_eq!(ended.signal(), Some(15));
        assert!(end_with(1 << 30).is_err());
    }
}
